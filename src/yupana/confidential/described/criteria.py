"""What the true counts of records say about acceptance criteria. Confidential, unless the records are synthetic."""

from collections.abc import Mapping
from math import ceil
from typing import Any

import numpy as np

from yupana.arrays import Flags, Ints
from yupana.plan.plan import Plan
from yupana.products.described.criteria import predictions, rows_of
from yupana.products.described.criterion import Criterion
from yupana.products.described.description import Description


def tested(
    description: Description, plan: Plan, truth: Mapping[str, Ints], noisy: Mapping[str, Ints]
) -> dict[str, dict[str, Any]]:
    """Of every criterion what it says, what the plan promises, and under "tested" what the truth says of it.

    Parameters
    ----------
    description : Description
    plan : Plan
    truth : mapping of measurement to int64 array, shape (areas by groups, cells)
        True counts, before limits. Measurements that no criterion is about are not looked at.
    noisy : mapping of measurement to int64 array, shape (trials by areas by groups, cells)
        What was measured.
    """
    told = predictions(description, plan)
    for criterion in description.criteria:
        rows = rows_of(description, criterion)
        true = truth[rows.measurement]
        measured = noisy[rows.measurement].reshape(-1, *true.shape)
        of_rows, shown = (
            np.stack([counts[..., parts].sum(axis=-1) for parts in rows.parts], axis=-1)
            for counts in (true[rows.groups], measured[:, rows.groups])
        )
        told[criterion.name]["tested"] = _tested(criterion, of_rows.ravel(), shown.reshape(len(shown), -1))
    return told


def _tested(criterion: Criterion, truth: Ints, noisy: Ints) -> Mapping[str, Any]:
    """Compare noisy counts of rows, shape (trials, rows), with their true ones, shape (rows,)."""
    some = _of_size(criterion, truth)
    rows, trials = int(some.sum()), len(noisy)
    if rows < criterion.fewest:
        return {"rows": rows, "trials": trials, "value": None, "holds": None}
    errors = np.abs(noisy[:, some] - truth[some]) / (truth[some] if criterion.relative else 1)
    of_trials = np.sort(errors, axis=1)[:, ceil(criterion.quantile * rows) - 1]
    value = float(np.sort(of_trials)[ceil(criterion.chance * trials) - 1])
    return {"rows": rows, "trials": trials, "value": value, "holds": value <= float(criterion.most)}


def _of_size(criterion: Criterion, truth: Ints) -> Flags:
    most = np.iinfo(np.int64).max if criterion.at_most is None else criterion.at_most
    found: Flags = (truth >= criterion.at_least) & (truth <= most)
    return found
