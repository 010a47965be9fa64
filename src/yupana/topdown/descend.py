"""From the root to the blocks: divide every parent of a geolevel among its children, many side by side. Public."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Ints
from yupana.geography.tree import Tree
from yupana.topdown.constraints import Joint, Limits, joint_by_parent
from yupana.topdown.divide import Divided, Siblings, Terms, divide, divide_failsafe
from yupana.topdown.families import SiblingBatch
from yupana.topdown.feasible import impossible
from yupana.topdown.histogram import Histogram, count_entries
from yupana.topdown.posterior.found import BlockPosterior
from yupana.topdown.queries import Query

_VALUES_AT_ONCE: Final = 1 << 21
"""Children times live cells of the parents that are prepared together."""

_CHILDREN_AT_ONCE: Final = 1 << 13
"""Full information holds every cell of each of them."""

_PARENTS_AT_ONCE: Final = 32
"""A thread takes up to so many small parents together: handing them over singly costs as much as dividing them."""

_RUNS: Final = 64
"""Into as many runs a batch is cut at least, where it has as many parents, so that no thread waits for the last."""


class Gathered(Protocol):
    """What is known of the children of some families beforehand."""

    def passes(self, parent: int) -> Sequence[Callable[[], Terms]]:
        """What each estimation pass of one of the parents fits."""
        ...


class Evidence(Protocol):
    """Where the estimator learns of a geolevel: noisy measurements, or what was made of them."""

    def gather(self, level: int, families: SiblingBatch) -> Gathered:
        """Learn of the children of families; whatever is drawn for that is on disk when this returns.

        Each child is asked about once in a run. A resumed run asks again, and learns the same.
        """
        ...


class Keeper(Protocol):
    """Keeps finished work, so that a run can be resumed without drawing anything twice."""

    def load(self, level: int, batch: int) -> "Piece | None":
        """What was kept of a batch, if it was."""
        ...

    def save(self, level: int, batch: int, piece: "Piece") -> None:
        """Keep a batch; it must be on disk before anything is made of it."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """Finished children of consecutive parents.

    Attributes
    ----------
    counts : Histogram
        Of the children, in order.
    failsafe : tuple of (int, int)
        Parents (their positions in the geolevel) whose children cannot sum to them, and by how much they must differ.
    solvers : mapping of str to int
        How many estimation passes were solved by what.
    """

    counts: Histogram
    failsafe: tuple[tuple[int, int], ...]
    solvers: Mapping[str, int]


@dataclass(frozen=True, slots=True, eq=False)
class Rules:
    """What the counts of one geolevel must satisfy, and how they are rounded.

    Attributes
    ----------
    rounding : tuple of tuple of Query
        Queries of each rounding pass.
    limits : Limits or None
        Bounds by the levels of the first attribute.
    totals : ndarray of int64, shape (units,), or None
        Totals that are kept exactly.
    joint : tuple of Joint
        Units whose totals together are kept exactly.
    """

    rounding: tuple[tuple[Query, ...], ...]
    limits: Limits | None
    totals: Ints | None
    joint: tuple[Joint, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Descent:
    """A finished estimate.

    Attributes
    ----------
    counts : tuple of Histogram
        Of each geolevel, as its parents were divided.
    failsafe : mapping of geolevel to tuple of (int, int)
        Parents that needed the failsafe, by the geolevel of their children; see `Piece`.
    solvers : mapping of geolevel to mapping of str to int
        How many estimation passes were solved by what.
    posterior : BlockPosterior or None
        What the counts of the last geolevel were made of, if they are posterior means.
    """

    counts: tuple[Histogram, ...]
    failsafe: Mapping[str, tuple[tuple[int, int], ...]]
    solvers: Mapping[str, Mapping[str, int]]
    posterior: BlockPosterior | None = None


@dataclass(frozen=True, slots=True, eq=False)
class DividedLevel:
    """A geolevel under way: its rules, with what they need looked up once.

    Attributes
    ----------
    number : int
    starts : ndarray of int64, shape (parents + 1,)
        The children of parent p are those from ``starts[p]`` up to ``starts[p + 1]``.
    rules : Rules
    rounding : tuple of tuple of (ndarray of int32, shape (cells,), or None)
        The queries of each rounding pass; None is the detailed one.
    groups : ndarray of int32, shape (cells,)
        The level of the first attribute, where counts are bounded by it.
    possible : ndarray of int32
        Cells that can hold someone.
    joint : mapping of int to tuple of Joint
        By parent.
    """

    number: int
    starts: Ints
    rules: Rules
    rounding: tuple[tuple[NDArray[np.int32] | None, ...], ...]
    groups: NDArray[np.int32]
    possible: NDArray[np.int32]
    joint: Mapping[int, tuple[Joint, ...]]


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Consecutive parents, with all that is needed to divide them but what was measured of their children. Public.

    Attributes
    ----------
    level : DividedLevel
        Of the children.
    first : int
        The first parent.
    parents : Histogram
        Counts of the parents, numbered from 0.
    families : SiblingBatch
        What is asked of their children.
    failing : frozenset of int
        Those whose children cannot sum to them.
    """

    level: DividedLevel
    first: int
    parents: Histogram
    families: SiblingBatch
    failing: frozenset[int]


def descend(
    tree: Tree,
    root: Piece,
    rules: Sequence[Rules],
    possible: NDArray[np.bool_],
    evidence: Evidence,
    keeper: Keeper,
    workers: int,
    progress: Callable[[str, int, int], None],
) -> Descent:
    """Estimate all geolevels below the root.

    Parameters
    ----------
    tree : Tree
    root : Piece
        The root.
    rules : sequence of Rules
        Of each geolevel.
    possible : ndarray of bool, shape (cells,)
        Which cells can hold someone.
    evidence : Evidence
    keeper : Keeper
    workers : int
        Threads.
    progress : callable
        Called with a geolevel, how many of its units are done, and how many there are.
    """
    found = [root.counts]
    failsafe: dict[str, tuple[tuple[int, int], ...]] = {}
    solvers = [root.solvers]
    with ThreadPoolExecutor(workers) as pool:
        for number in range(1, len(tree.names)):
            level = prepare_level(tree, number, rules[number], possible)
            pieces: list[Piece] = []
            done = 0
            for batch, (first, last) in enumerate(batches_of(found[-1], level.starts)):
                piece = keeper.load(number, batch)
                if piece is None:
                    work = prepare(found[-1], level, first, last)
                    # What is drawn is kept before it is used: a run that dies in between goes on with the same noise.
                    piece = solve(work, evidence.gather(number, work.families), pool)
                    keeper.save(number, batch, piece)
                pieces.append(piece)
                done += piece.counts.units
                progress(tree.names[number], done, tree.units(number))
            found.append(joined([piece.counts for piece in pieces]))
            solvers.append(sum((Counter(piece.solvers) for piece in pieces), Counter()))
            if odd := tuple(one for piece in pieces for one in piece.failsafe):
                failsafe[tree.names[number]] = odd
    return Descent(tuple(found), failsafe, dict(zip(tree.names, solvers, strict=True)))


def prepare_level(tree: Tree, number: int, rules: Rules, possible: NDArray[np.bool_]) -> DividedLevel:
    """Look up once what the families of a geolevel need."""
    parents = tree.parents[number]
    starts = np.searchsorted(parents, np.arange(tree.units(number - 1) + 1)).astype(np.int64)
    rounding = tuple(
        tuple(None if query.is_detailed else query.answers() for query in queries) for queries in rules.rounding
    )
    query = rules.rounding[0][0]
    sizes = len(query.factors[0]) if rules.limits else 1
    groups = np.repeat(np.arange(sizes, dtype=np.int32), query.cells // sizes)
    joint = joint_by_parent(rules.joint, parents.astype(np.int64))
    return DividedLevel(number, starts, rules, rounding, groups, np.flatnonzero(possible).astype(np.int32), joint)


def batches_of(parents: Histogram, starts: Ints) -> Iterator[tuple[int, int]]:
    """Cut the parents into runs that fit into memory; the same parents are always cut the same way."""
    work = np.cumsum(np.diff(starts) * (1 + np.diff(parents.starts)))
    first = 0
    while first < parents.units:
        before = int(work[first - 1]) if first else 0
        last = int(np.searchsorted(work, before + _VALUES_AT_ONCE, side="right"))
        most = int(np.searchsorted(starts, starts[first] + _CHILDREN_AT_ONCE, side="right")) - 1
        last = min(max(min(last, most), first + 1), parents.units)
        yield first, last
        first = last


def prepare(parents: Histogram, level: DividedLevel, first: int, last: int) -> Batch:
    """Say what the children of the parents from ``first`` up to ``last`` are asked; nothing is measured for that."""
    failing = _failing(parents, level, first, last)
    families = _families(parents, level, first, last, failing)
    return Batch(level, first, parents.part(first, last), families, failing)


def solve(batch: Batch, gathered: Gathered, pool: Executor) -> Piece:
    """Estimate and round the children of a batch: a function of public values and of what was drawn, and no more.

    Parameters
    ----------
    batch : Batch
    gathered : Gathered
        Of the batch's families.
    pool : Executor
        Divides parents side by side.
    """
    families = batch.families
    rows: list[NDArray[np.int64]] = []
    cells: list[NDArray[np.int32]] = []
    counts: list[Ints] = []
    odd: list[tuple[int, int]] = []
    solvers: Counter[str] = Counter()
    parents = batch.parents.units
    run = min(_PARENTS_AT_ONCE, max(1, parents // _RUNS))
    runs = [range(first, min(first + run, parents)) for first in range(0, parents, run)]
    for position, divided in enumerate(chain.from_iterable(pool.map(partial(_divide_run, batch, gathered), runs))):
        solvers.update(divided.solvers)
        unit, cell = np.nonzero(divided.counts)
        rows.append(unit + (families.children[position] - families.first))
        cells.append(families.live[families.starts[position] : families.starts[position + 1]][cell])
        counts.append(divided.counts[unit, cell])
        if divided.missed is not None:
            odd.append((batch.first + position, divided.missed))
    number = families.last - families.first
    found = count_entries(np.concatenate(rows), np.concatenate(cells), np.concatenate(counts), number)
    return Piece(found, tuple(odd), solvers)


def _divide_run(batch: Batch, gathered: Gathered, positions: range) -> list[Divided]:
    return [_divide_one(batch, gathered, position) for position in positions]


def _divide_one(batch: Batch, gathered: Gathered, position: int) -> Divided:
    families, parents = batch.families, batch.parents
    live = families.starts[position + 1] - families.starts[position]
    number = int(families.children[position + 1] - families.children[position])
    failing = position in batch.failing
    if not failing and (number == 1 or not live):
        entries = slice(parents.starts[position], parents.starts[position + 1])
        return Divided(np.repeat(parents.counts[None, entries], number, axis=0), ())
    return (divide_failsafe if failing else divide)(siblings_of(batch, position), gathered.passes(position))


def siblings_of(batch: Batch, position: int) -> Siblings:
    """One of the parents of a batch with its children, on its live cells."""
    level, families, parents = batch.level, batch.families, batch.parents
    live = families.live[families.starts[position] : families.starts[position + 1]]
    begin, end = families.children[position : position + 2].tolist()
    entries = slice(parents.starts[position], parents.starts[position + 1])
    counts = np.zeros(len(live), dtype=np.int64)
    counts[np.searchsorted(live, parents.cells[entries])] = parents.counts[entries]
    rules, here = level.rules, slice(begin, end)
    bounded = rules.limits is not None
    joint = level.joint.get(batch.first + position, ())
    return Siblings(
        counts,
        end - begin,
        tuple(tuple(None if q is None else q[live] for q in queries) for queries in level.rounding),
        level.groups[live] if bounded else None,
        rules.limits.lower[here] if rules.limits else None,
        rules.limits.upper[here] if rules.limits else None,
        None if rules.totals is None else rules.totals[here],
        tuple((tuple(u - begin for u in one.units), one.total) for one in joint),
    )


def _failing(parents: Histogram, level: DividedLevel, first: int, last: int) -> frozenset[int]:
    """Positions of the parents whose children cannot sum to them, known before anything is measured."""
    rules = level.rules
    if rules.limits is None and rules.totals is None and not level.joint:
        return frozenset()
    width = int(level.groups[-1]) + 1
    return frozenset(
        position
        for position in range(last - first)
        if impossible(
            np.bincount(
                level.groups[parents.cells[parents.starts[first + position] : parents.starts[first + position + 1]]],
                parents.counts[parents.starts[first + position] : parents.starts[first + position + 1]],
                width,
            ).astype(np.int64),
            slice(int(level.starts[first + position]), int(level.starts[first + position + 1])),
            rules.limits,
            rules.totals,
            level.joint.get(first + position, ()),
        )
    )


def _families(parents: Histogram, level: DividedLevel, first: int, last: int, failing: frozenset[int]) -> SiblingBatch:
    """The live cells of parents: those that hold someone; under the failsafe, all that can."""
    begin, end = parents.starts[first], parents.starts[last]
    live, starts = parents.cells[begin:end], parents.starts[first : last + 1] - begin
    if failing:
        parts = []
        for position in range(last - first):
            part = live[starts[position] : starts[position + 1]]
            if position in failing:
                part = level.possible
            parts.append(part)
        live = np.concatenate(parts)
        starts = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
    return SiblingBatch(level.starts[first : last + 1], starts, live)


def joined(pieces: Sequence[Histogram]) -> Histogram:
    """Put the counts of consecutive units behind one another."""
    offsets = np.cumsum([0, *(len(piece.cells) for piece in pieces)])
    starts = [piece.starts[:-1] + offset for piece, offset in zip(pieces, offsets[:-1], strict=True)]
    return Histogram(
        np.concatenate([*starts, offsets[-1:]]).astype(np.int64),
        np.concatenate([piece.cells for piece in pieces]),
        np.concatenate([piece.counts for piece in pieces]),
    )
