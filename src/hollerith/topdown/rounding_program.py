"""Roundings as a mixed-integer program, for queries that form no network and for the failsafe.

Exact, and slow where queries overlap: HiGHS needs seconds for some thousand fractional counts. The variables are
z[e], 1 where the fractional count e (of one child in one cell) is rounded up, and for each answer of a query how much
it lies above and below its target.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array

from hollerith.topdown.infeasible import InfeasibleNode

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Labels = NDArray[np.int32]
Joint = tuple[tuple[int, ...], int]


@dataclass(frozen=True, slots=True, eq=False)
class Limit:
    """Bounds on the answers of one query, the same query for every child.

    Attributes
    ----------
    labels : ndarray of int32, shape (m,)
        Which answer each cell counts in.
    lower, upper : ndarray of int64, shape (k, answers)
    """

    labels: Labels
    lower: Ints
    upper: Ints

    def less(self, counts: Ints) -> "Limit":
        """What is left of the bounds after ``counts``, of shape (k, m)."""
        used = sum_by_label(counts, self.labels, self.lower.shape[1])
        return Limit(self.labels, self.lower - used, self.upper - used)


def sum_by_label(counts: Ints, labels: Labels, size: int) -> Ints:
    """Answers of a query, of shape (k, size), from counts by cell, of shape (k, m)."""
    out = np.zeros((len(counts), size), dtype=np.int64)
    np.add.at(out.T, labels, counts.T)
    return out


def round_half_up(sums: Floats) -> Ints:
    """Targets: sums of fractional parts to the nearest integer, halves up.

    A sum less than 1e-6 below a half counts as that half, as a count within 1e-6 of an integer counts as the integer:
    the solver's last digits shall not decide.
    """
    return np.floor(sums + (0.5 + 1e-6)).astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """The constraints that all passes share.

    Attributes
    ----------
    child, cell : ndarray of int, shape (entries,)
        Where the fractional counts stand.
    fraction : ndarray of float64, shape (entries,)
    shape : tuple of int
        Children and cells.
    rows : tuple of (index, lower, upper)
        The entries of each constraint: sums of z by ``index`` (entries,; -1 for none) lie between the bounds.
    """

    child: Ints
    cell: Ints
    fraction: Floats
    shape: tuple[int, int]
    rows: tuple[tuple[Ints, Ints, Ints], ...]

    def holding(self, limit: Limit) -> "Program":
        """The same with bounds on one more query."""
        size = limit.lower.shape[1]
        index = self.child * size + limit.labels[self.cell]
        row = (index, limit.lower.reshape(-1), limit.upper.reshape(-1))
        return Program(self.child, self.cell, self.fraction, self.shape, (*self.rows, row))

    def holding_sum(self, index: Ints, lower: Ints, upper: Ints) -> "Program":
        """The same with bounds on sums of entries."""
        return Program(self.child, self.cell, self.fraction, self.shape, (*self.rows, (index, lower, upper)))

    def solve(self, queries: Sequence[Labels | None]) -> Ints:
        """Minimise the distance of one pass; the z of an optimum, of shape (entries,)."""
        count = len(self.child)
        cost = np.zeros(count)
        index: list[Ints] = []
        lower: list[Ints] = []
        upper: list[Ints] = []
        for at, low, high in self.rows:
            index.append(at)
            lower.append(low)
            upper.append(high)
        rows = sum(len(low) for low in lower)
        extra_rows: list[Ints] = []
        for labels in queries:
            if labels is None:
                cost += 1 - 2 * self.fraction
                continue
            key = self.child * (int(labels.max(initial=0)) + 1) + labels[self.cell]
            _, at = np.unique(key, return_inverse=True)
            target = round_half_up(np.asarray(np.bincount(at, self.fraction), dtype=np.float64))
            index.append(at)
            lower.append(target)
            upper.append(target)
            extra_rows.append(rows + np.arange(len(target)))
            rows += len(target)
        starts = np.cumsum([0, *(len(low) for low in lower)])
        entry = np.arange(count)
        row = np.concatenate([np.where(at >= 0, start + at, -1) for at, start in zip(index, starts[:-1], strict=True)])
        column = np.tile(entry, len(index))
        kept = row >= 0
        distance = np.concatenate([np.zeros(0, dtype=np.int64), *extra_rows])
        above = count + np.arange(len(distance))
        below = above + len(distance)
        matrix = coo_array(
            (
                np.concatenate([np.ones(int(kept.sum())), -np.ones(len(distance)), np.ones(len(distance))]),
                (
                    np.concatenate([row[kept], distance, distance]),
                    np.concatenate([column[kept], above, below]),
                ),
            ),
            shape=(rows, count + 2 * len(distance)),
        )
        width = matrix.shape[1]
        if width == 0:  # nothing to decide, and no program for HiGHS
            if any((low > 0).any() or (high < 0).any() for _, low, high in self.rows):
                raise cannot_round()
            return np.zeros(0, dtype=np.int64)
        limit = np.full(width, np.inf)
        limit[:count] = 1
        outcome = milp(
            np.concatenate([cost, np.ones(2 * len(distance))]),
            integrality=np.concatenate([np.ones(count), np.zeros(2 * len(distance))]),
            bounds=Bounds(np.zeros(width), limit),
            constraints=LinearConstraint(matrix.tocsc(), np.concatenate(lower), np.concatenate(upper)),
            options={"mip_rel_gap": 0.0},
        )
        if outcome.status == 2:
            raise cannot_round()
        if outcome.status != 0:
            raise RuntimeError(f"HiGHS could not round a node of {count} fractional counts: {outcome.message}")
        return np.asarray(np.rint(outcome.x[:count]), dtype=np.int64)


def cannot_round() -> InfeasibleNode:
    """The error of a node that has no rounding."""
    return InfeasibleNode(
        "No integer counts between the floor and the ceiling of the estimate keep the parent's counts and the "
        "constraints. Use the failsafe, or drop a constraint or a query held from an earlier pass."
    )


def round_by_program(
    fractions: Floats,
    need: Ints,
    passes: Sequence[Sequence[Labels | None]],
    limits: Sequence[Limit],
    joint: Sequence[Joint],
) -> Ints:
    """Round up or down, pass by pass; the answers of a pass are held in the later ones.

    Parameters
    ----------
    fractions : ndarray of float64, shape (k, m)
        0 where there is no choice.
    need : ndarray of int64, shape (m,)
        How many children of each cell to round up.
    passes : sequence of sequences of ndarray of int32, shape (m,), or None
        None is the detailed query.
    limits : sequence of Limit
        On what is rounded up.
    joint : sequence of (children, total)

    Returns
    -------
    ndarray of int64, shape (k, m)
        1 where rounded up.
    """
    children, cells = fractions.shape
    child, cell = np.nonzero(fractions)
    program = Program(child, cell, fractions[child, cell], (children, cells), ((cell, need, need),))
    for limit in limits:
        program = program.holding(limit)
    for members, total in joint:
        index = np.where(np.isin(child, members), 0, -1)
        program = program.holding_sum(index, np.array([total]), np.array([total]))
    out = np.zeros((children, cells), dtype=np.int64)
    for queries in passes or ((),):
        out[child, cell] = program.solve(queries)
        for labels in queries:
            if labels is not None:
                held = sum_by_label(out, labels, int(labels.max(initial=0)) + 1)
                program = program.holding(Limit(labels, held, held))
    return out
