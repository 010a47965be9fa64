"""The rounding of a node whose children cannot sum to their parent.

The constraints and the parent's total are kept, and the children may miss the parent's counts by v + 1 persons in
all, where v is the least that fractional counts must miss it by.
"""

import numpy as np

from yupana.arrays import Floats, Ints
from yupana.topdown.node.problem import InfeasibleNode
from yupana.topdown.rounding.program import TOLERANCE, cannot_round, split, start_program
from yupana.topdown.rounding.rounding import Rounding

WIDENINGS = (0, 1, 1 << 20)
"""How far beyond its floor and its ceiling a count may go, tried in this order."""


def round_failsafe(estimate: Floats, rounding: Rounding, missed: float) -> Ints:
    """Round the children of one parent that they cannot sum to.

    Parameters
    ----------
    estimate : ndarray of float64, shape (k, m)
        Non-negative; the children need not sum to the parent.
    rounding : Rounding
    missed : float
        v, the least sum over cells of |parent - sum of children| that fractional counts reach.

    Returns
    -------
    ndarray of int64, shape (k, m)
        Sum over cells of |parent - sum of children| is at most v + 1. Counts are the floor or the ceiling of the
        estimate; where no such counts keep the constraints, one may lie one beyond, and where that is not enough,
        anywhere.

    Raises
    ------
    InfeasibleNode
        Where no non-negative integer counts keep the constraints.
    """
    counts, fractions = split(estimate)
    parent, limits = rounding.parent, rounding.limits()
    need = parent - counts.sum(axis=0)
    missing = np.array([need.sum()])
    for widening in WIDENINGS:
        # The variables: z, and by cell how much the children exceed and fall short of the parent.
        child, cell = np.nonzero(fractions if widening == 0 else np.ones_like(fractions))
        cells = np.arange(len(need))
        ceiling = (fractions[child, cell] > 0) + widening
        floor = -np.minimum(counts[child, cell], widening)
        least = np.concatenate([floor, np.zeros(2 * len(need))])
        most = np.concatenate([ceiling, np.full(2 * len(need), missed + 1 + TOLERANCE)])
        program = start_program(fractions, child, cell, least, most)
        by_cell = program.sums(cell, len(need)).tolil()
        by_cell[cells, len(child) + cells] = -1
        by_cell[cells, len(child) + len(need) + cells] = 1
        program = program.with_rows(by_cell.tocsr(), need, need)
        program = program.with_rows(program.sums(np.zeros(len(cell), dtype=np.int64), 1), missing, missing)
        away = program.sums(np.full(len(child), -1), 1).tolil()
        away[0, len(child) :] = 1
        program = program.with_rows(away.tocsr(), np.zeros(1), np.array([missed + 1 + TOLERANCE]))
        for limit in limits:
            program = program.holding(limit.less(counts))
        for members, total in rounding.joint:
            among = np.where(np.isin(child, members), 0, -1)
            rest = np.array([total - counts[list(members)].sum()])
            program = program.with_rows(program.sums(among, 1), rest, rest)
        try:
            return counts + program.solve_passes(rounding.passes, fractions.shape)
        except InfeasibleNode:
            continue
    raise cannot_round()
