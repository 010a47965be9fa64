"""From fractional to integer counts: every count goes up or down, and the children still sum to their parent.

Let f be the floor of the estimate of the children and z be 1 where a count is rounded up. A pass minimises, over its
queries q and the children c, the distances |Q_q z_c - t|, where t is the answer to q of the fractional parts, rounded
half up; for the detailed query t is the fractional part itself, so that its distance is the sum of (1 - 2 t) z and a
constant. The answers of a pass are held in the later ones.

Under the failsafe the children cannot sum to their parent: the constraints and the parent's total are kept, and the
children may miss the parent's counts by v + 1 persons in all, where v is the least that fractional counts must miss it
by.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Floats, Indices, Ints
from yupana.topdown.node.problem import InfeasibleNode
from yupana.topdown.node.solve import bounds_of
from yupana.topdown.queries import margin
from yupana.topdown.rounding.network import round_on_network
from yupana.topdown.rounding.program import (
    TOLERANCE,
    Joint,
    Limit,
    cannot_round,
    hold,
    round_by_program,
    split,
    start_program,
)

Passes = tuple[tuple[Indices | None, ...], ...]

UNBOUNDED = np.int64(1) << 50
"""More than any count."""


@dataclass(frozen=True, slots=True, eq=False)
class Rounding:
    """What a rounding of the children of one parent goes by, on live cells."""

    parent: Ints  # shape (m,)
    # shape (m,), or None: the queries of each pass as the answer each cell counts in; None is the detailed query
    passes: Passes
    limits: tuple[Limit, ...] = ()  # on each child by itself
    joint: tuple[Joint, ...] = ()  # children whose totals together are known


def round_counts(estimate: Floats, rounding: Rounding) -> Ints:
    """Round the children of one parent, on live cells.

    Parameters
    ----------
    estimate : ndarray of float64, shape (k, m)
        Non-negative; sums to the parent over the children up to the solver's error.

    Returns
    -------
    ndarray of int64, shape (k, m)

    Raises
    ------
    InfeasibleNode
        Where no counts between the floor and the ceiling of the estimate keep the parent and the constraints.
    """
    parent, passes, joint = rounding.parent, rounding.passes, rounding.joint
    limits = rounding.limits
    # Most often all passes are one flow; else as many of the first as are nested, and a program for the others.
    for flowing in range(len(passes), -1, -1):
        counts = round_on_network(estimate, parent, passes[:flowing], limits, joint)
        if counts is None:
            continue
        if flowing == len(passes):
            return counts
        held = [hold(counts, labels) for queries in passes[:flowing] for labels in queries]
        return round_by_program(estimate, parent, passes[flowing:], (*limits, *held), joint)
    return round_by_program(estimate, parent, passes, limits, joint)


def round_node(
    estimate: NDArray[np.floating],
    parent: NDArray[np.integer],
    shape: Sequence[int],
    passes: Sequence[Sequence[Sequence[int]]],
    lower: NDArray[np.generic] | None = None,
    upper: NDArray[np.generic] | None = None,
) -> Ints:
    """Round the children of one parent to integers that sum to it.

    Parameters
    ----------
    estimate : ndarray of float, shape (children, cells)
        Non-negative estimates that sum to the parent in every cell.
    parent : ndarray of int, shape (cells,)
        Counts of the parent.
    shape : sequence of int
        Levels of each attribute; cells are in C order.
    passes : sequence of sequences of queries
        A query is a row of 0/1 flags, one per attribute: 1 where it is kept, 0 where it is summed over. All ones is
        the detailed query, whose target alone is not rounded.
    lower, upper : ndarray, shape (children, shape[0]), optional
        Bounds on the totals by the first attribute; infinite for none.

    Returns
    -------
    ndarray of int64, shape (children, cells)
        Each count is the floor or the ceiling of the estimate; an estimate within 1e-6 of an integer is that integer.

    Raises
    ------
    InfeasibleNode
        Where no such counts exist.
    ValueError
        Where the arguments do not fit together.
    """
    values = np.ascontiguousarray(estimate, dtype=np.float64)
    totals = np.asarray(parent)
    cells = prod(shape)
    if values.ndim != 2 or values.shape[1] != cells:
        raise ValueError(f"estimate has shape {values.shape}; give (children, {cells}), cells in C order of {shape}.")
    if totals.shape != (cells,) or not np.issubdtype(totals.dtype, np.integer):
        raise ValueError(f"parent must be {cells} integers, one per cell; it is {totals.dtype} of {totals.shape}.")
    if not np.isfinite(values).all() or (values < -TOLERANCE).any():
        raise ValueError("estimate holds a value that is negative or not finite; give non-negative estimates.")
    queries = []
    for number, rows in enumerate(passes):
        for kept in rows:
            if len(kept) != len(shape) or any(flag not in {0, 1} for flag in kept):
                raise ValueError(
                    f"pass {number} has the query {tuple(kept)}; a query is {len(shape)} flags of 0 or 1, one per "
                    "attribute: 1 where it is kept."
                )
        queries.append([None if all(kept) else margin("", shape, kept).answers() for kept in rows])
    live = np.flatnonzero((totals > 0) | (values > TOLERANCE).any(axis=0))
    by_first = np.asarray(np.arange(cells) // (cells // shape[0]), dtype=np.int32)
    limits: list[Limit] = []
    if (bounds := bounds_of(shape, len(values), lower, upper)) is not None:
        inward = np.ceil(bounds[0] - TOLERANCE), np.floor(bounds[1] + TOLERANCE)
        low, high = (np.clip(of, -float(UNBOUNDED), float(UNBOUNDED)).astype(np.int64) for of in inward)
        limits.append(Limit(by_first[live], low, high))
    out = np.zeros(values.shape, dtype=np.int64)
    rounding = Rounding(
        totals[live].astype(np.int64),
        tuple(tuple(None if q is None else q[live] for q in rows) for rows in queries),
        tuple(limits),
    )
    out[:, live] = round_counts(np.ascontiguousarray(values[:, live]), rounding)
    return out


WIDENINGS = (0, 1, 1 << 20)
"""How far beyond its floor and its ceiling a count may go, tried in this order."""


def round_failsafe(estimate: Floats, rounding: Rounding, missed: float) -> Ints:
    """Round the children of one parent that they cannot sum to.

    Parameters
    ----------
    estimate : ndarray of float64, shape (k, m)
        Non-negative; the children need not sum to the parent.
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
    need = rounding.parent - counts.sum(axis=0)
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
        try:
            return counts + program.keeping(rounding.limits, rounding.joint, counts).solve_passes(
                rounding.passes, fractions.shape
            )
        except InfeasibleNode:
            continue
    raise cannot_round()
