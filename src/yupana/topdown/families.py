"""What a run of parents is asked: which cells are live, and which answers of each query they reach. Public."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Ints
from yupana.compiled import compiled
from yupana.topdown.histogram import Cells
from yupana.topdown.queries import Query


@dataclass(frozen=True, slots=True, eq=False)
class SiblingBatch:
    """Consecutive parents of one geolevel with their children, who lie side by side in the geolevel below.

    Attributes
    ----------
    children : ndarray of int64, shape (parents + 1,)
        The children of parent p are the units from ``children[p]`` up to ``children[p + 1]``.
    starts : ndarray of int64, shape (parents + 1,)
        The live cells of parent p are those from ``starts[p]`` up to ``starts[p + 1]``.
    live : ndarray of int32
        Cells that may hold someone, ascending within a parent.
    """

    children: Ints
    starts: Ints
    live: Cells

    @property
    def first(self) -> int:
        """The first child of all."""
        return int(self.children[0])

    @property
    def last(self) -> int:
        """One past the last child."""
        return int(self.children[-1])


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """The answers of one query that the live cells of families reach. No other answer need ever be drawn.

    Attributes
    ----------
    local : ndarray of int32
        For each live cell the answer it counts in, numbered within its parent from 0.
    starts : ndarray of int64, shape (parents + 1,)
    answers : ndarray of int32
        The answers asked of the children of parent p, as the query numbers them, from ``starts[p]`` up to
        ``starts[p + 1]``.
    """

    local: Cells
    starts: Ints
    answers: Cells

    def places(self, children: Ints) -> Ints:
        """Where the values of each parent's children begin if they stand one after the other, (parents + 1,).

        Within a parent, child after child, each with its answers in the order of `answers`.
        """
        sizes = np.diff(children) * np.diff(self.starts)
        return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes)])


def ask(families: SiblingBatch, label: NDArray[np.int32], size: int) -> Asked:
    """Find the answers of a query that the live cells of each parent reach.

    Parameters
    ----------
    families : SiblingBatch
    label : ndarray of int32, shape (cells,)
        For each cell the answer it counts in.
    size : int
        How many answers the query has.
    """
    local, starts, answers = _ask(families.starts, families.live, label, np.full(size, -1, dtype=np.int32))
    return Asked(local, starts, answers)


def ask_all(families: SiblingBatch, queries: Sequence[Query]) -> tuple[Asked, ...]:
    """Find the answers of several queries that the live cells of each parent reach."""
    return tuple(ask(families, query.answers(), query.size) for query in queries)


@compiled
def _ask(starts: Ints, live: Cells, label: Cells, seen: Cells) -> tuple[Cells, Ints, Cells]:
    parents = len(starts) - 1
    local = np.empty(len(live), dtype=np.int32)
    answers = np.empty(len(live), dtype=np.int32)
    begins = np.empty(parents + 1, dtype=np.int64)
    begins[0] = 0
    found = 0
    for p in range(parents):
        begin = found
        for i in range(starts[p], starts[p + 1]):
            answer = label[live[i]]
            if seen[answer] < 0:
                seen[answer] = found - begin
                answers[found] = answer
                found += 1
            local[i] = seen[answer]
        for j in range(begin, found):
            seen[answers[j]] = -1
        begins[p + 1] = found
    return local, begins, answers[:found].copy()


@compiled
def exact_answers(
    starts: Ints,
    cells: Cells,
    counts: Ints,
    children: Ints,
    label: Cells,
    asked_starts: Ints,
    asked: Cells,
    size: int,
) -> Ints:
    """Sum the counts of units into the answers that are asked of them; all others are left out.

    Parameters
    ----------
    starts, cells, counts : ndarray
        Sparse counts of all units of a geolevel: entries of unit u from ``starts[u]`` up to ``starts[u + 1]``.
    children : ndarray of int64, shape (parents + 1,)
        The units from ``children[p]`` up to ``children[p + 1]`` are asked the same answers.
    label : ndarray of int32, shape (cells,)
        For each cell the answer it counts in.
    asked_starts, asked : ndarray
        The answers asked of the units of p, from ``asked_starts[p]`` up to ``asked_starts[p + 1]``.
    size : int
        How many answers the query has.

    Returns
    -------
    ndarray of int64
        Unit after unit, the answers in the order asked.
    """
    values = 0
    for p in range(len(children) - 1):
        values += (children[p + 1] - children[p]) * (asked_starts[p + 1] - asked_starts[p])
    out = np.empty(values, dtype=np.int64)
    out[:] = 0
    at = np.empty(size, dtype=np.int32)
    at[:] = -1
    base = 0
    for p in range(len(children) - 1):
        begin, end = asked_starts[p], asked_starts[p + 1]
        for j in range(begin, end):
            at[asked[j]] = j - begin
        for unit in range(children[p], children[p + 1]):
            for e in range(starts[unit], starts[unit + 1]):
                position = at[label[cells[e]]]
                if position >= 0:
                    out[base + position] += counts[e]
            base += end - begin
        for j in range(begin, end):
            at[asked[j]] = -1
    return out
