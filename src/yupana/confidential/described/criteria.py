"""What the true counts of records say about acceptance criteria. Confidential, unless the records are synthetic."""

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any, Final

import numpy as np

from yupana.arrays import Flags, Ints
from yupana.plan.plan import Plan
from yupana.products.described.criteria import predictions, rows_of
from yupana.products.described.criterion import Criterion
from yupana.products.described.description import Description
from yupana.products.described.errors import MeasurementErrors


def tested(description: Description, plan: Plan, errors: Sequence[MeasurementErrors]) -> dict[str, dict[str, Any]]:
    """Of every criterion what it says, what the plan promises, and under "tested" what the truth says of it.

    Parameters
    ----------
    description : Description
    plan : Plan
    errors : sequence of MeasurementErrors
        Of all that was measured, over all trials. Those that no criterion is about are not looked at.
    """
    told = predictions(description, plan)
    levels = {level.name: level for table in description.tables for level in table.levels}
    trials = 1 + max((int(of.trial.max()) for of in errors if len(of.trial)), default=0)
    for criterion in description.criteria:
        rows, groups = rows_of(description, criterion), len(levels[criterion.level].groups)
        seen: list[tuple[Ints, Ints, Ints]] = []
        for of in errors:
            parts = rows.parts.get((of.measurement.name, of.table.name))
            if parts is None:
                continue
            some = np.isin(of.area * groups + of.group, rows.groups)
            truth, noisy = (
                np.stack([counts[some][:, of_row].sum(axis=1) for of_row in parts], axis=1)
                for counts in (of.truth - of.left_out, of.truth + of.noise)
            )
            seen.append((np.repeat(of.trial[some], len(parts)), truth.ravel(), noisy.ravel()))
        by_trial, truth, noisy = (np.concatenate(column) for column in zip(*seen, strict=True)) if seen else [_NONE] * 3
        told[criterion.name]["tested"] = _tested(criterion, trials, by_trial, truth, noisy)
    return told


_NONE: Final = np.zeros(0, dtype=np.int64)


def _tested(criterion: Criterion, trials: int, trial: Ints, truth: Ints, noisy: Ints) -> Mapping[str, Any]:
    """Compare noisy counts of rows with their true ones, trial by trial; arrays of shape (rows of all trials,)."""
    some = _of_size(criterion, truth)
    errors = np.abs(noisy[some] - truth[some]) / (truth[some] if criterion.relative else 1)
    numbers = np.bincount(trial[some], minlength=trials)
    by_trial = np.split(errors[np.argsort(trial[some], kind="stable")], np.cumsum(numbers)[:-1])
    of_trials = [np.sort(of)[ceil(criterion.quantile * len(of)) - 1] for of in by_trial if len(of) >= criterion.fewest]
    told = {"rows": int(numbers.max()), "trials": trials}
    if not of_trials:
        return {**told, "value": None, "holds": None}
    value = float(np.sort(of_trials)[ceil(criterion.chance * len(of_trials)) - 1])
    return {**told, "value": value, "holds": value <= float(criterion.most)}


def _of_size(criterion: Criterion, truth: Ints) -> Flags:
    most = np.iinfo(np.int64).max if criterion.at_most is None else criterion.at_most
    found: Flags = (truth >= criterion.at_least) & (truth <= most)
    return found
