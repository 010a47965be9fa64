"""Whether the children of a parent can sum to it within their constraints at all. Public."""

from collections.abc import Sequence

import numpy as np
from scipy.optimize import linprog

from yupana.arrays import Ints
from yupana.topdown.constraints import Joint, Limits


def impossible(
    groups: Ints, children: slice, limits: Limits | None, totals: Ints | None, joint: Sequence[Joint]
) -> bool:
    """Whether no counts of the children sum to their parent.

    Within a group of the first attribute cells are all alike to the constraints, so group totals decide.

    Parameters
    ----------
    groups : ndarray of int64, shape (groups,)
        Totals of the parent by the levels of the first attribute; only their sum matters without limits.
    children : slice
        The children's positions in their geolevel.
    limits : Limits or None
        Of the geolevel of the children.
    totals : ndarray of int64, shape (units,), or None
        Known totals of the geolevel.
    joint : sequence of Joint
        Known sums of totals of children.
    """
    wanted = [] if totals is None else [(position, int(totals[position])) for position in _positions(children)]
    sums = [*(((position,), total) for position, total in wanted), *((one.units, one.total) for one in joint)]
    if limits is None:
        covered = {unit for units, _ in sums for unit in units}
        known, total = sum(total for _, total in sums), int(groups.sum())
        return known != total if covered == set(_positions(children)) else known > total
    lower, upper = limits.part(children.start, children.stop).wide()
    if bool((lower > upper).any() or (lower.sum(axis=0) > groups).any() or (upper.sum(axis=0) < groups).any()):
        return True
    return bool(sums) and not _flows(groups, lower, upper, [([u - children.start for u in us], t) for us, t in sums])


def _positions(children: slice) -> range:
    return range(children.start, children.stop)


def _flows(groups: Ints, lower: Ints, upper: Ints, sums: list[tuple[list[int], int]]) -> bool:
    """Whether totals by child and group exist within bounds, with sums by group and by sets of children."""
    number, width = lower.shape
    by_group = np.tile(np.eye(width), number)
    by_sum = np.zeros((len(sums), number * width))
    for row, (units, _) in enumerate(sums):
        for unit in units:
            by_sum[row, unit * width : (unit + 1) * width] = 1
    found = linprog(
        np.zeros(number * width),
        A_eq=np.vstack([by_group, by_sum]),
        b_eq=np.concatenate([groups, [total for _, total in sums]]),
        bounds=np.stack([lower.ravel(), upper.ravel()], axis=1),
        method="highs",
    )
    return bool(found.status != 2)  # 2: infeasible
