"""Roundings as a mixed-integer program, for queries that form no network and for the failsafe.

Exact, and slow where queries overlap: HiGHS needs seconds for some thousand fractional counts. The variables are
z[e], 1 where the fractional count e (of one child in one cell) is rounded up, and for each answer of a query how much
it lies above and below its target.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array, csr_array, eye_array, hstack, vstack

from yupana.arrays import Floats, Indices, Ints
from yupana.topdown.node.problem import InfeasibleNode

Joint = tuple[tuple[int, ...], int]
Numbers = TypeVar("Numbers", Ints, Floats)

TOLERANCE = 1e-6
"""A count this close to an integer is that integer, and has no choice."""


@dataclass(frozen=True, slots=True, eq=False)
class Limit:
    """Bounds on the answers of one query, the same query for every child."""

    labels: Indices  # shape (m,): which answer each cell counts in
    lower: Ints  # shape (k, answers)
    upper: Ints  # shape (k, answers)

    def less(self, counts: Ints) -> "Limit":
        """What is left of the bounds after ``counts``, of shape (k, m)."""
        used = sum_by(counts, self.labels, self.lower.shape[1])
        return Limit(self.labels, self.lower - used, self.upper - used)


def split(estimate: Floats) -> tuple[Ints, Floats]:
    """Floors and fractional parts, of shape (k, m); the parts of what is within 1e-6 of an integer are 0."""
    base = np.floor(np.maximum(estimate, 0) + TOLERANCE)
    fractions = estimate - base
    fractions[fractions <= TOLERANCE] = 0
    return base.astype(np.int64), fractions


def sum_by(counts: Numbers, labels: Indices, size: int | None = None) -> Numbers:
    """Answers of a query, of shape (k, size), from counts by cell, of shape (k, m); by default all that cells reach."""
    size = int(labels.max(initial=-1)) + 1 if size is None else size
    out = np.zeros((len(counts), size), dtype=counts.dtype)
    np.add.at(out.T, labels, counts.T)
    return out


def round_half_up(sums: Floats) -> Ints:
    """Targets: sums of fractional parts to the nearest integer, halves up.

    A sum less than 1e-6 below a half counts as that half, as a count within 1e-6 of an integer counts as the integer:
    the solver's last digits shall not decide.
    """
    return np.floor(sums + (0.5 + TOLERANCE)).astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class _Program:
    """Variables and the constraints that all passes share."""

    # shape (entries,): where the counts stand that have a choice; the first variables are their z
    child: Ints
    cell: Ints
    fraction: Floats  # shape (entries,)
    # shape (variables,): bounds of the variables; all are integers
    least: Floats
    most: Floats
    matrix: csr_array  # shape (rows, variables)
    # shape (rows,): bounds of the rows
    lower: Floats
    upper: Floats

    def with_rows(self, matrix: csr_array, lower: NDArray[np.generic], upper: NDArray[np.generic]) -> "_Program":
        """The same with more constraints."""
        return replace(
            self,
            matrix=vstack([self.matrix, matrix], format="csr"),
            lower=np.concatenate([self.lower, lower.astype(np.float64)]),
            upper=np.concatenate([self.upper, upper.astype(np.float64)]),
        )

    def sums(self, index: Ints, rows: int) -> csr_array:
        """The rows that sum z by ``index``, of shape (entries,); -1 for those in no sum."""
        (kept,) = np.nonzero(index >= 0)
        return coo_array((np.ones(len(kept)), (index[kept], kept)), shape=(rows, len(self.least))).tocsr()

    def holding(self, limit: Limit) -> "_Program":
        """The same with bounds on the answers of a query."""
        size = limit.lower.shape[1]
        matrix = self.sums(self.child * size + limit.labels[self.cell], limit.lower.size)
        return self.with_rows(matrix, limit.lower.reshape(-1), limit.upper.reshape(-1))

    def keeping(self, limits: Sequence[Limit], joint: Sequence[Joint], counts: Ints) -> "_Program":
        """The same with what is left of bounds and joint totals after ``counts``, of shape (k, m)."""
        program = self
        for limit in limits:
            program = program.holding(limit.less(counts))
        for members, total in joint:
            rest = np.array([total - counts[list(members)].sum()])
            among = np.where(np.isin(self.child, members), 0, -1)
            program = program.with_rows(program.sums(among, 1), rest, rest)
        return program

    def solve(self, queries: Sequence[Indices | None]) -> Ints:
        """Minimise the distance of one pass; the z of an optimum, of shape (entries,)."""
        entries = len(self.child)
        if len(self.least) == 0:  # nothing to decide, and no program for HiGHS
            if (self.lower > 0).any() or (self.upper < 0).any():
                raise cannot_round()
            return np.zeros(0, dtype=np.int64)
        cost = np.zeros(len(self.least))
        one_step = bool((self.least[:entries] >= 0).all() and (self.most[:entries] <= 1).all())
        matrices: list[csr_array] = []
        targets: list[Floats] = []
        for labels in queries:
            if labels is None and one_step:
                cost[:entries] += 1 - 2 * self.fraction
            elif labels is None:
                matrices.append(self.sums(np.arange(entries), entries))
                targets.append(self.fraction)
            else:
                key = self.child * (int(labels.max(initial=0)) + 1) + labels[self.cell]
                _, answer = np.unique(key, return_inverse=True)
                sums = np.asarray(np.bincount(answer, self.fraction), dtype=np.float64)
                matrices.append(self.sums(answer, len(sums)))
                targets.append(round_half_up(sums).astype(np.float64))
        target = np.concatenate([np.zeros(0), *targets])
        away = len(target)
        one = eye_array(away, format="csr")
        matrix = vstack([self.matrix, *matrices], format="csr")
        slack = vstack([csr_array((self.matrix.shape[0], 2 * away)), hstack([-one, one])])
        outcome = milp(
            np.concatenate([cost, np.ones(2 * away)]),
            integrality=np.concatenate([np.ones(len(cost)), np.zeros(2 * away)]),
            bounds=Bounds(
                np.concatenate([self.least, np.zeros(2 * away)]), np.concatenate([self.most, np.full(2 * away, np.inf)])
            ),
            constraints=LinearConstraint(
                hstack([matrix, slack]).tocsc(),
                np.concatenate([self.lower, target]),
                np.concatenate([self.upper, target]),
            ),
            options={"mip_rel_gap": 0.0},
        )
        if outcome.status == 2:
            raise cannot_round()
        if outcome.status != 0:
            raise RuntimeError(f"HiGHS could not round a node of {entries} fractional counts: {outcome.message}")
        return np.asarray(np.rint(outcome.x[:entries]), dtype=np.int64)

    def solve_passes(self, passes: Sequence[Sequence[Indices | None]], shape: tuple[int, int]) -> Ints:
        """Solve pass by pass, holding the answers of each in the later ones; z by child and cell."""
        program = self
        out = np.zeros(shape, dtype=np.int64)
        for queries in passes or ((),):
            out[self.child, self.cell] = program.solve(queries)
            for labels in queries:
                program = program.holding(hold(out, labels))
        return out


def hold(counts: Ints, labels: Indices | None) -> Limit:
    """The answers of a query to ``counts``, of shape (k, m), as bounds; None is the detailed query."""
    each = np.arange(counts.shape[1], dtype=np.int32) if labels is None else labels
    held = sum_by(counts, each, int(each.max(initial=0)) + 1)
    return Limit(each, held, held)


def cannot_round() -> InfeasibleNode:
    """The error of a node that has no rounding."""
    return InfeasibleNode(
        "No integer counts between the floor and the ceiling of the estimate keep the parent's counts and the "
        "constraints. Use the failsafe, or drop a constraint or a query held from an earlier pass."
    )


def round_by_program(
    estimate: Floats,
    parent: Ints,
    passes: Sequence[Sequence[Indices | None]],
    limits: Sequence[Limit],
    joint: Sequence[Joint],
) -> Ints:
    """Round pass by pass; the answers of a pass are held in the later ones.

    Parameters
    ----------
    estimate : ndarray of float64, shape (k, m)
    parent : ndarray of int64, shape (m,)
    passes : sequence of sequences of ndarray of int32, shape (m,), or None
        None is the detailed query.
    joint : sequence of (children, total)

    Returns
    -------
    ndarray of int64, shape (k, m)
    """
    counts, fractions = split(estimate)
    need = parent - counts.sum(axis=0)
    child, cell = np.nonzero(fractions)
    program = start_program(fractions, child, cell, np.zeros(len(child)), np.ones(len(child)))
    program = program.with_rows(program.sums(cell, len(need)), need, need)
    return counts + program.keeping(limits, joint, counts).solve_passes(passes, estimate.shape)


def start_program(fractions: Floats, child: Ints, cell: Ints, least: Floats, most: Floats) -> _Program:
    """A program without constraints but the bounds of its variables, z first."""
    none = np.zeros(0)
    return _Program(child, cell, fractions[child, cell], least, most, csr_array((0, len(least))), none, none)
