"""From the root to the blocks: divide every parent of a geolevel among its children, many side by side. Public.

Batches of parents are solved in threads of this process, or on an engine, which is sent no record.
"""

import pickle
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, islice, pairwise, starmap
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Ints
from yupana.engine.engine import Engine
from yupana.errors import OutputError
from yupana.geography.tree import Tree
from yupana.topdown.constraints import Joint, Limits, impossible, joint_by_parent
from yupana.topdown.descent.checkpoint import Keeper, KeptLevel, Piece
from yupana.topdown.descent.divide import Divided, Siblings, divide, divide_failsafe
from yupana.topdown.descent.measurements import MeasuredFamilies, MeasuredOnDemand, SiblingBatch, StoredMeasurements
from yupana.topdown.histogram import Histogram, count_entries, joined, runs_within
from yupana.topdown.posterior.results import BlockPosterior
from yupana.topdown.queries import Query
from yupana.topdown.rounding.program import Limit
from yupana.topdown.tree.full_information import FullInformation, TreeFamilies

_VALUES_AT_ONCE: Final = 1 << 21
"""Children times live cells of the parents that are prepared together."""

_CHILDREN_AT_ONCE: Final = 1 << 13
"""Full information holds every cell of each of them."""

_PARENTS_AT_ONCE: Final = 32
"""So many small parents are divided together at most: handing them over singly costs as much as dividing them."""

_RUNS: Final = 64
"""Into as many runs a batch is cut at least, where it has as many parents, so that no thread waits for the last."""

_UNITS_OF_A_RUN: Final = 1 << 17
"""So many units of the last geolevel are below trees that are divided together at most, if there are several: each
geolevel of a run is asked of a solver at once, which on a cluster takes as long for few units as for many."""

_END: Final = object()

DivideRuns: TypeAlias = Callable[
    [Callable[[range], list[Divided]], Sequence[range]],
    Iterable[list[Divided]],
]
"""Applies a function to runs of parents, maybe to several at a time, and gives the results in their order."""


Gathered: TypeAlias = MeasuredFamilies | TreeFamilies
"""What is known of the children of some families beforehand: what each estimation pass of one of the parents fits."""

Evidence: TypeAlias = MeasuredOnDemand | StoredMeasurements | FullInformation
"""Where the estimator learns of a geolevel: noisy measurements, or what was made of them. Whatever `gather` draws is on
disk when it returns. Each child is asked about once in a run; a resumed run asks again, and learns the same."""


@dataclass(frozen=True, slots=True, eq=False)
class Rules:
    """What the counts of one geolevel must satisfy, and how they are rounded."""

    rounding: tuple[tuple[Query, ...], ...]  # queries of each rounding pass
    limits: Limits | None  # bounds by the levels of the first attribute
    totals: Ints | None  # shape (units,), or None: totals that are kept exactly
    joint: tuple[Joint, ...]  # units whose totals together are kept exactly


@dataclass(frozen=True, slots=True, eq=False)
class Descent:
    """A finished estimate."""

    counts: tuple[KeptLevel, ...]  # of the units of each geolevel, as its parents were divided
    # by geolevel: parents that needed the failsafe, by the geolevel of their children; see `Piece`
    failsafe: Mapping[str, tuple[tuple[int, int], ...]]
    solvers: Mapping[str, Mapping[str, int]]  # by geolevel: how many estimation passes were solved by what
    # what the counts of the last geolevel were made of, if they are posterior means
    posterior: BlockPosterior | None = None


@dataclass(frozen=True, slots=True, eq=False)
class DividedLevel:
    """A geolevel under way: its rules, with what they need looked up once."""

    number: int
    starts: Ints  # shape (parents + 1,): the children of parent p are those from `starts[p]` up to `starts[p + 1]`
    rules: Rules
    groups: NDArray[np.int32]  # shape (cells,): the level of the first attribute, where counts are bounded by it
    possible: NDArray[np.int32]  # cells that can hold someone
    joint: Mapping[int, tuple[Joint, ...]]  # by parent


@dataclass(frozen=True, slots=True, eq=False)
class CellLabels:
    """Which cells the rules of a geolevel put together."""

    # shape (cells,), or None: the queries of each rounding pass; None is the detailed one
    rounding: tuple[tuple[NDArray[np.int32] | None, ...], ...]
    # shape (cells,), or None: the level of the first attribute, if counts are bounded by it
    groups: NDArray[np.int32] | None


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Consecutive parents, with all that is needed to divide them but what was measured of their children. Public.

    It holds nothing of other parents and nothing as long as a histogram, so that it can be sent to another process.
    """

    first: int  # the first parent. Parents and children are numbered from 0 in what follows, but in `families`.
    parents: Histogram  # counts of the parents
    families: SiblingBatch  # what is asked of their children
    failing: frozenset[int]  # parents whose children cannot sum to them
    rules: Rules  # of the children; without joint totals, which stand by parent
    joint: Mapping[int, tuple[Joint, ...]]  # by parent

    def labels(self) -> CellLabels:
        """What the rules of the children put together."""
        rounding = tuple(tuple(None if q.is_detailed else q.answers() for q in qs) for qs in self.rules.rounding)
        return CellLabels(rounding, None if self.rules.limits is None else _groups(self.rules))


Solver: TypeAlias = Callable[[Iterable[tuple[Batch, Gathered]]], Iterator[Piece]]
"""Solves batches: what `solve` makes of each, in their order; somewhere, each at least once. Where it is tried again,
it is with what was gathered before. More may be taken of the work than has been given back."""


def descend(
    tree: Tree,
    root: Piece,
    rules: Sequence[Rules],
    possible: NDArray[np.bool_],
    evidence: Evidence,
    keeper: Keeper,
    solver: Solver,
    progress: Callable[[str, int, int], None],
    at_once: int = 1,
) -> Descent:
    """Estimate all geolevels below the root.

    Parameters
    ----------
    root : Piece
        The root.
    rules : sequence of Rules
        Of each geolevel.
    possible : ndarray of bool, shape (cells,)
        Which cells can hold someone.
    progress : callable
        Called with a geolevel, how many of its units are done, and how many there are.
    at_once : int
        How many runs of trees below the geolevel that follows the root are under way at a time. All are held; where the
        solver works elsewhere, it does one run while it waits for the end of a geolevel of another.
    """
    levels = [prepare_level(tree, number, rules[number], possible) for number in range(1, len(tree.names))]
    kept = [KeptLevel(number, keeper) for number in range(len(tree.names))]
    kept[0].add(0, root)
    done = Counter[int]()

    def divided(number: int, first: int, parents: Histogram) -> Iterator[Histogram]:
        """Divide the units of a geolevel from ``first`` on: the counts of their children, batch by batch."""
        below = number + 1
        for at, piece in _pieces(first, parents, levels[number], evidence, keeper, solver):
            kept[below].add(at, piece)
            done[below] += piece.counts.units
            progress(tree.names[below], done[below], tree.units(below))
            yield piece.counts

    def descended(first: int, end: int) -> Iterator[None]:
        """Divide units down to the last geolevel; it goes on from batch to batch."""
        counts = top.part(first, end)
        for number in range(1, len(levels)):
            below = []
            for piece in divided(number, first, counts):
                if number < len(levels) - 1:
                    below.append(piece)
                yield
            first = int(levels[number].starts[first])
            counts = joined(below) if below else counts

    # Below the geolevel that follows the root each unit is a tree of its own: the counts of few are held at a time.
    top = joined(list(divided(0, 0, root.counts))) if levels else root.counts
    trees = starmap(descended, runs_of([level.starts for level in levels[1:]], top.units))
    under_way = deque(islice(trees, at_once))
    while under_way:
        one = under_way.popleft()
        under_way.extend([one] if next(one, _END) is not _END else islice(trees, 1))
    failsafe = {
        name: tuple(sorted(one.failsafe)) for name, one in zip(tree.names[1:], kept[1:], strict=True) if one.failsafe
    }
    solvers = {name: one.solvers for name, one in zip(tree.names, kept, strict=True)}
    return Descent(tuple(kept), failsafe, solvers)


def runs_of(below: Sequence[Ints], units: int) -> Iterator[tuple[int, int]]:
    """Runs of units of the geolevel below the root that are divided together: several small ones, or a large one alone.

    They follow from the tree alone, so a run that goes on elsewhere has the same batches.

    Parameters
    ----------
    below : sequence of ndarray of int
        Of the geolevels below theirs, where the children of each parent begin.
    """
    last = np.arange(units + 1)
    for starts in below:
        last = starts[last]
    return runs_within(last[1:], _UNITS_OF_A_RUN)


def _pieces(
    first: int, parents: Histogram, level: DividedLevel, evidence: Evidence, keeper: Keeper, solver: Solver
) -> Iterator[tuple[int, Piece]]:
    """Divide the units from ``first`` on: the first parent of each batch, and its piece, kept before it is given."""
    starts = level.starts[first : first + parents.units + 1]
    spans = list(batches_of(parents, starts))
    kept = [keeper.has(level.number, first + begin) for begin, _ in spans]

    def work() -> Iterator[tuple[Batch, Gathered]]:
        for (begin, end), known in zip(spans, kept, strict=True):
            if not known:
                batch = prepare(parents.part(begin, end), level, first + begin)
                # What is drawn is kept before it is used: a run that dies in between goes on with the same noise.
                yield batch, evidence.gather(level.number, batch.families)

    solved = solver(work())
    for (begin, end), known in zip(spans, kept, strict=True):
        at = first + begin
        piece = keeper.load(level.number, at) if known else None
        if piece is not None and piece.counts.units != starts[end] - starts[begin]:
            raise OutputError("what was kept is of a run that another version began; begin anew with --overwrite")
        if piece is None:
            piece = next(solved)
            keeper.save(level.number, at, piece)
        yield at, piece


def prepare_level(tree: Tree, number: int, rules: Rules, possible: NDArray[np.bool_]) -> DividedLevel:
    """Look up once what the families of a geolevel need."""
    parents = tree.parents[number]
    starts = np.searchsorted(parents, np.arange(tree.units(number - 1) + 1)).astype(np.int64)
    joint = joint_by_parent(rules.joint, parents.astype(np.int64))
    return DividedLevel(number, starts, rules, _groups(rules), np.flatnonzero(possible).astype(np.int32), joint)


def _groups(rules: Rules) -> NDArray[np.int32]:
    """The level of the first attribute of each cell, if counts are bounded by it; else all cells are alike."""
    query = rules.rounding[0][0]
    sizes = len(query.factors[0]) if rules.limits else 1
    return np.repeat(np.arange(sizes, dtype=np.int32), query.cells // sizes)


def batches_of(parents: Histogram, starts: Ints) -> Iterator[tuple[int, int]]:
    """Cut the parents into runs that fit into memory; the same parents are always cut the same way."""
    work = np.cumsum(np.diff(starts) * (1 + np.diff(parents.starts)))
    return runs_within(work, _VALUES_AT_ONCE, (starts[1:] - starts[0], _CHILDREN_AT_ONCE))


def prepare(parents: Histogram, level: DividedLevel, first: int) -> Batch:
    """Say what the children of parents, which are those from ``first`` on, are asked; nothing is measured for that."""
    last = first + parents.units
    children = level.starts[first : last + 1]
    rules, joint = _rules_of(level, first, last)
    failing = _failing(parents, children - children[0], level.groups, rules, joint)
    families = _families(parents, children, failing, level.possible)
    return Batch(first, parents, families, failing, rules, joint)


def _rules_of(level: DividedLevel, first: int, last: int) -> tuple[Rules, dict[int, tuple[Joint, ...]]]:
    """The rules of the children of the parents from ``first`` up to ``last``, and joint totals by parent."""
    begin, end = level.starts[first], level.starts[last]
    limits, totals = level.rules.limits, level.rules.totals
    rules = Rules(
        level.rules.rounding,
        None if limits is None else limits.part(begin, end),
        None if totals is None else totals[begin:end],
        (),
    )
    joint = {
        parent - first: tuple(
            Joint(tuple(unit - int(begin) for unit in one.units), one.total) for one in level.joint[parent]
        )
        for parent in range(first, last)
        if parent in level.joint
    }
    return rules, joint


def solve(batch: Batch, gathered: Gathered, divide_runs: DivideRuns = map, part: range | None = None) -> Piece:
    """Estimate and round the children of a batch: a function of public values and of what was drawn, and no more.

    Parameters
    ----------
    gathered : Gathered
        Of the batch's families.
    divide_runs : callable
        Divides runs of parents, one after the other or side by side; the piece is the same.
    part : range, optional
        Of which parents of the batch; of all by default.
    """
    families = batch.families
    rows: list[NDArray[np.int64]] = []
    cells: list[NDArray[np.int32]] = []
    counts: list[Ints] = []
    odd: list[tuple[int, int]] = []
    solvers: Counter[str] = Counter()
    part = part or range(batch.parents.units)
    first = families.children[part.start]
    run = min(_PARENTS_AT_ONCE, max(1, len(part) // _RUNS))
    runs = [part[begin : begin + run] for begin in range(0, len(part), run)]
    labels = batch.labels()

    def divide_run(positions: range) -> list[Divided]:
        return [_divide_one(batch, labels, gathered, position) for position in positions]

    for position, divided in zip(part, chain.from_iterable(divide_runs(divide_run, runs)), strict=True):
        solvers.update(divided.solvers)
        unit, cell = np.nonzero(divided.counts)
        rows.append(unit + (families.children[position] - first))
        cells.append(families.live[families.starts[position] : families.starts[position + 1]][cell])
        counts.append(divided.counts[unit, cell])
        if divided.missed is not None:
            odd.append((batch.first + position, divided.missed))
    number = int(families.children[part.stop] - first)
    found = count_entries(np.concatenate(rows), np.concatenate(cells), np.concatenate(counts), number)
    return Piece(found, tuple(odd), solvers)


def _divide_one(batch: Batch, labels: CellLabels, gathered: Gathered, position: int) -> Divided:
    families, parents = batch.families, batch.parents
    live = families.starts[position + 1] - families.starts[position]
    number = int(families.children[position + 1] - families.children[position])
    failing = position in batch.failing
    if not failing and (number == 1 or not live):
        entries = slice(parents.starts[position], parents.starts[position + 1])
        return Divided(np.repeat(parents.counts[None, entries], number, axis=0), ())
    return (divide_failsafe if failing else divide)(siblings_of(batch, labels, position), gathered.passes(position))


def siblings_of(batch: Batch, labels: CellLabels, position: int) -> Siblings:
    """One of the parents of a batch with its children, on its live cells."""
    families, parents, rules = batch.families, batch.parents, batch.rules
    live = families.live[families.starts[position] : families.starts[position + 1]]
    begin, end = (families.children[position : position + 2] - families.first).tolist()
    entries = slice(parents.starts[position], parents.starts[position + 1])
    counts = np.zeros(len(live), dtype=np.int64)
    counts[np.searchsorted(live, parents.cells[entries])] = parents.counts[entries]
    here = slice(begin, end)
    limits: tuple[Limit, ...] = ()
    if labels.groups is not None and rules.limits is not None:
        limits = (Limit(labels.groups[live], *rules.limits.part(begin, end).wide()),)
    return Siblings(
        counts,
        end - begin,
        tuple(tuple(None if q is None else q[live] for q in queries) for queries in labels.rounding),
        limits,
        None if rules.totals is None else rules.totals[here],
        tuple((tuple(u - begin for u in one.units), one.total) for one in batch.joint.get(position, ())),
    )


def _failing(
    parents: Histogram, children: Ints, groups: NDArray[np.int32], rules: Rules, joint: Mapping[int, tuple[Joint, ...]]
) -> frozenset[int]:
    """The parents whose children cannot sum to them, known before anything is measured."""
    if rules.limits is None and rules.totals is None and not joint:
        return frozenset()
    width = int(groups[-1]) + 1
    return frozenset(
        parent
        for parent in range(parents.units)
        if impossible(
            np.bincount(
                groups[parents.cells[parents.starts[parent] : parents.starts[parent + 1]]],
                parents.counts[parents.starts[parent] : parents.starts[parent + 1]],
                width,
            ).astype(np.int64),
            slice(int(children[parent]), int(children[parent + 1])),
            rules.limits,
            rules.totals,
            joint.get(parent, ()),
        )
    )


def _families(parents: Histogram, children: Ints, failing: frozenset[int], possible: NDArray[np.int32]) -> SiblingBatch:
    """The live cells of parents: those that hold someone; under the failsafe, all that can."""
    live, starts = parents.cells, parents.starts
    if failing:
        parts = []
        for position in range(parents.units):
            part = live[starts[position] : starts[position + 1]]
            if position in failing:
                part = possible
            parts.append(part)
        live = np.concatenate(parts)
        starts = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
    return SiblingBatch(children, starts, live)


@dataclass(frozen=True, slots=True)
class ThreadSolver:
    """Solves one batch after the other, the parents of each side by side."""

    workers: int  # threads

    def __call__(self, work: Iterable[tuple[Batch, Gathered]]) -> Iterator[Piece]:
        """The piece of each batch; the next is gathered when its piece has been taken."""
        with ThreadPoolExecutor(self.workers) as pool:
            for batch, gathered in work:
                yield solve(batch, gathered, pool.map)


@dataclass(frozen=True, slots=True)
class EngineSolver:
    """Solves batches side by side on an engine, each in one task.

    A task that is lost is done again with the same draws, which are on disk before it is sent. So what makes a task
    fail does not choose among draws (docs/topdown-privacy.md).
    """

    engine: Engine
    # how many tasks share a batch, each of which gets all of it: where sending costs little, none waits for the last
    parts: int = 1

    def __call__(self, work: Iterable[tuple[Batch, Gathered]]) -> Iterator[Piece]:
        """The piece of each batch."""
        sent: deque[int] = deque()

        def messages() -> Iterator[bytes]:
            for batch, gathered in work:
                parts = _shares(batch, self.parts)
                sent.append(len(parts))
                content = pickle.dumps((batch, gathered))
                yield from (pickle.dumps((part, content)) for part in parts)

        solved = map(pickle.loads, self.engine.map(solve_message, messages()))
        for first in solved:
            yield _together([first, *islice(solved, sent.popleft() - 1)])


def solve_message(message: bytes) -> bytes:
    """What `solve` makes of some parents of a batch and what was gathered, as a message."""
    part, content = pickle.loads(message)  # noqa: S301 (of our driver)
    batch, gathered = pickle.loads(content)  # noqa: S301
    return pickle.dumps(solve(batch, gathered, part=part))


def _shares(batch: Batch, number: int) -> list[range]:
    """The parents of a batch in runs of about the same work: children times live cells."""
    families = batch.families
    work = np.cumsum(np.diff(families.children) * (1 + np.diff(families.starts)))
    ends = np.searchsorted(work, work[-1] * np.arange(1, number) / number)
    bounds = np.unique([0, *ends.tolist(), len(work)]).tolist()
    return [range(first, last) for first, last in pairwise(bounds)]


def _together(pieces: Sequence[Piece]) -> Piece:
    """The piece of a batch of those of its parents."""
    if len(pieces) == 1:
        return pieces[0]
    failsafe = tuple(odd for piece in pieces for odd in piece.failsafe)
    solvers = sum((Counter(piece.solvers) for piece in pieces), Counter[str]())
    return Piece(joined([piece.counts for piece in pieces]), failsafe, solvers)
