"""How far counts are from optimal: the KKT residual, from the counts and multipliers any solver found."""

from dataclasses import dataclass

import numpy as np

from yupana.arrays import Floats
from yupana.topdown.node.arranged import Arranged
from yupana.topdown.node.kernels import optimality, sum_of_squares
from yupana.topdown.node.problem import Solution


@dataclass(frozen=True, slots=True, eq=False)
class Multipliers:
    """Multipliers of a solution, in the order and scale of `Arranged`.

    Attributes
    ----------
    cells : ndarray, shape (m + joint totals,)
        Of the parent's cells, then of the joint totals, as halves of derivatives of the objective.
    rows : ndarray, shape (rows, k)
        Of the bounds, by the scale of the child: positive at a lower, negative at an upper bound.
    """

    cells: Floats
    rows: Floats


def certify(a: Arranged, counts: Floats, multipliers: Multipliers, iterations: int, solver: str) -> Solution:
    """Compute objective and KKT residual of counts.

    Parameters
    ----------
    a : Arranged
    counts : ndarray, shape (m, k)
        In the order of `Arranged`.
    multipliers : Multipliers
    iterations : int
    solver : str
    """
    residual = optimality(*a.arguments(counts, multipliers.cells, multipliers.rows))
    if not np.isfinite(counts).all():
        residual = np.inf
    objective = sum_of_squares(a.labels, a.offsets, a.targets, a.inverse, counts)
    out = np.empty(counts.shape[::-1])
    out[a.order] = counts.T
    return Solution(out, objective, residual, iterations, solver)
