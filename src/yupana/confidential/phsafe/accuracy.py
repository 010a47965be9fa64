"""Experimental against expected margins of error of PHSafe, on a synthetic census. Confidential by construction."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np

import yupana
from yupana.arrays import Ints
from yupana.confidential.phsafe.count import count
from yupana.confidential.phsafe.run import checked_census, measure
from yupana.confidential.request import check_accuracy_allowed
from yupana.plan.ledger import Ledger
from yupana.plan.plan import Plan
from yupana.privacy.entropy import Entropy
from yupana.products.phsafe.configuration import Config
from yupana.products.phsafe.errors import Accuracy, CellError
from yupana.products.phsafe.specification import DERIVED, table
from yupana.products.phsafe.tables import groups, level_of
from yupana.release.check import describe_tables
from yupana.release.folder import new_folder, write_manifest
from yupana.release.status import CONFIDENTIAL, NOT_FOR_RELEASE
from yupana.release.tables import ReleaseTable, write_table


def trials(
    config: Config,
    plan: Plan,
    data: Path,
    number: int,
    entropy: Entropy,
    announce: Callable[[str], None],
    *,
    internal: bool = False,
) -> list[CellError]:
    """Count a synthetic census, or for ``internal`` use any, once and measure it ``number`` times.

    Raises
    ------
    ConfigError
        If `check_accuracy_allowed` refuses: errors tell the truth, and repeated runs spend the budget each time.
    InputError
        If the records break a rule.
    """
    check_accuracy_allowed(plan, entropy, data, internal=internal)
    announce("reading and checking the records")
    with checked_census(config, data) as census:
        census.require_valid()
        announce("counting with truncation")
        truncated = count(census, config, plan)
        announce("counting without truncation")
        untruncated = count(census, config, plan, truncate=False)
    announce(f"adding noise, {number} times")
    exact = truncated.by_measurement
    drawn = [measure(Ledger(plan), truncated, entropy) for _ in range(number)]
    noise = {m.name: np.stack([noisy[m.name] - exact[m.name] for noisy in drawn]) for m in plan.measurements}
    lost = {m.name: exact[m.name] - untruncated.by_measurement[m.name] for m in plan.measurements}
    return list(_cells(plan, truncated.states, exact, lost, noise))


def _cells(
    plan: Plan,
    states: tuple[str, ...],
    exact: Mapping[str, Ints],
    lost: Mapping[str, Ints],
    noise: Mapping[str, Ints],
) -> Iterator[CellError]:
    derived: defaultdict[str, list[tuple[str, Mapping[int, tuple[int, ...]]]]] = defaultdict(list)
    for d in DERIVED:
        derived[d.source].append((d.name, d.cells))
    for m in plan.measurements:
        place = {cell: i for i, cell in enumerate(table(m.table).cells)}
        basis: Mapping[int, tuple[int, ...]] = {cell: (cell,) for cell in place}
        for name, cells in [(m.table, basis), *derived[m.table]]:
            for cell, parts in cells.items():
                columns = [place[part] for part in parts]
                yield CellError(
                    table=name,
                    level=m.level,
                    cell=cell,
                    groups=groups(level_of(m.level), states),
                    expected_moe=plan.margin(m, len(parts)),
                    truth=exact[m.name][:, columns].sum(axis=-1),
                    truncation_error=lost[m.name][:, columns].sum(axis=-1),
                    noise=noise[m.name][:, :, columns].sum(axis=-1),
                )


def write_accuracy(rows: list[Accuracy], out: Path, *, overwrite: bool, internal: bool = False) -> None:
    """Write ``OUT/accuracy.csv`` and a manifest that says NOT FOR RELEASE, or CONFIDENTIAL after ``internal`` use.

    Raises
    ------
    OutputError
        If ``out`` cannot be used.
    """
    table = ReleaseTable(
        "accuracy",
        {
            "TABLE": [row.table for row in rows],
            "REGION_TYPE": [row.region_type for row in rows],
            "LEVEL": [row.level for row in rows],
            "ITERATION_CODE": [row.iteration for row in rows],
            "DATA_CELL": [row.cell for row in rows],
            "EXPERIMENTAL_MOE": [row.experimental_moe for row in rows],
            "EXPERIMENTAL_MOE_WITH_TRUNCATION": [row.experimental_moe_with_truncation for row in rows],
            "TRUNCATION_BIAS": [row.bias_from_truncation for row in rows],
            "COUNT": [row.count for row in rows],
            "EXPECTED_MOE": [row.expected_moe for row in rows],
            "COVERAGE": [row.coverage for row in rows],
        },
    )
    with new_folder(out, overwrite=overwrite, private=internal) as partial:
        path = write_table(partial, table, "csv")
        write_manifest(
            partial,
            {
                "yupana": yupana.__version__,
                "product": "phsafe accuracy",
                "status": CONFIDENTIAL if internal else NOT_FOR_RELEASE,
                "tables": describe_tables({table.name: path}, [table]),
            },
        )
