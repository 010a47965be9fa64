"""Experimental against expected margins of error of SafeTab-H, on synthetic households. Confidential by its nature."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import numpy as np

from yupana.confidential.request import check_accuracy_allowed
from yupana.confidential.safetab.households import (
    KIND,
    count_levels,
    list_groups,
    measure_levels,
    reasons_against_areas,
    totals_of,
)
from yupana.confidential.safetab.run import checked_records
from yupana.plan.ledger import Ledger
from yupana.plan.plan import Plan
from yupana.privacy.entropy import Entropy
from yupana.products.safetab.errors import SIZES, LevelErrors, TableErrors, size_bins
from yupana.products.safetab.households.configuration import Config
from yupana.products.safetab.iterations import MOST_RACE_CODES, CharacteristicIterations
from yupana.products.safetab.regions import LEVELS
from yupana.products.tables import Groups
from yupana.progress import Announce

_LEVELS = {level.name: level for level in LEVELS}


def trials(
    config: Config,
    iterations: CharacteristicIterations,
    plan: Plan,
    totals: Path,
    data: Path,
    number: int,
    entropy: Entropy,
    announce: Announce,
    *,
    internal: bool = False,
) -> list[LevelErrors]:
    """Count synthetic households once and measure them ``number`` times, in the tables that T01001 gives each group.

    For ``internal`` use the households may be real.

    Returns
    -------
    list of LevelErrors
        By level and family of tables; the size of a group is the sum of its true cells.

    Raises
    ------
    ConfigError
        If `check_accuracy_allowed` refuses: errors tell the truth, and repeated runs spend the budget each time.
    InputError
        If the totals or the records break a rule.
    """
    check_accuracy_allowed(plan, entropy, data, internal=internal)
    announce("reading and checking the records")
    source, chosen, _ = totals_of(totals, config, iterations, data)
    with checked_records(data, KIND, config.settings, iterations, None) as records:
        records.require_valid()
        announce("counting")
        listed = list_groups(records, config, chosen)
        reasons_against_areas(totals, listed, source, data)
        count_levels(records, config, iterations, listed.levels)
        all_codes = replace(config, settings=replace(config.settings, max_race_codes=MOST_RACE_CODES))
        uncapped = list_groups(records, all_codes, chosen)
        count_levels(records, all_codes, iterations, uncapped.levels)
    announce(f"adding noise, {number} times")
    exact, whole = (
        list(measure_levels(found.levels, config, iterations, Ledger(plan.without_noise()), entropy))
        for found in (listed, uncapped)
    )
    drawn = [list(measure_levels(listed.levels, config, iterations, Ledger(plan), entropy)) for _ in range(number)]
    of_table = [_errors(plan, truth, all_, noisy) for truth, all_, *noisy in zip(exact, whole, *drawn, strict=True)]
    return list(_by_level(exact, of_table, number))


def _errors(plan: Plan, truth: Groups, whole: Groups, drawn: Sequence[Groups]) -> TableErrors:
    """Errors of one table at one level; ``whole`` is the truth with all race codes of every record."""
    return TableErrors(
        table=truth.family.choices[truth.choice].own.name,
        expected_moe=plan.margin(drawn[0].measurement),
        sizes=np.tile(truth.counts.sum(axis=1), len(drawn)),
        errors=np.concatenate([noisy.counts - truth.counts for noisy in drawn]),
        iterations=np.tile(truth.iteration.places.astype(np.int64), len(drawn)),
        bias=np.tile(truth.counts - whole.counts, (len(drawn), 1)),
    )


def _by_level(exact: Sequence[Groups], errors: Sequence[TableErrors], number: int) -> Iterator[LevelErrors]:
    pairs = zip(exact, errors, strict=True)
    for (_, level), found in groupby(pairs, key=lambda p: (p[0].family.name, p[0].measurement.level)):
        tables = tuple(of_table for _, of_table in found)
        sizes = np.concatenate([of_table.sizes for of_table in tables])
        groups = np.bincount(size_bins(sizes), minlength=len(SIZES)) // number
        yield LevelErrors(_LEVELS[level], detailed_only=False, groups=groups, tables=tables, trials=number)
