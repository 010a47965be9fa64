"""Noisy measurements: what is asked of families, the door through which it is measured, and what an estimate reads.

Exact answers go into the door and noisy answers come out, each once: when the estimate asks for them, or all of them
before.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Floats, Ints
from yupana.compiled import compiled
from yupana.plan.ledger import Ledger, Meter
from yupana.privacy.entropy import Entropy
from yupana.topdown.budget import LevelSpending, Spending
from yupana.topdown.descent.checkpoint import Drawn, Keeper
from yupana.topdown.descent.divide import Terms
from yupana.topdown.histogram import Cells, Histogram
from yupana.topdown.queries import Query


@dataclass(frozen=True, slots=True, eq=False)
class SiblingBatch:
    """Consecutive parents of one geolevel with their children, who lie side by side in the geolevel below."""

    # shape (parents + 1,): the children of parent p are the units from `children[p]` up to `children[p + 1]`
    children: Ints
    starts: Ints  # shape (parents + 1,): the live cells of parent p are those from `starts[p]` up to `starts[p + 1]`
    live: Cells  # cells that may hold someone, ascending within a parent

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
    """The answers of one query that the live cells of families reach. No other answer need ever be drawn."""

    local: Cells  # for each live cell the answer it counts in, numbered within its parent from 0
    starts: Ints  # shape (parents + 1,)
    # the answers asked of the children of parent p, as the query numbers them, from `starts[p]` up to `starts[p + 1]`
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
    starts: Ints, cells: Cells, counts: Ints, children: Ints, label: Cells, asked_starts: Ints, asked: Cells, size: int
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


class CountsOfUnits(Protocol):
    """Counts of the units of one geolevel, of which parts are read; `Histogram` is one."""

    @property
    def units(self) -> int:
        """How many units are counted."""
        ...

    def part(self, first: int, last: int) -> Histogram:
        """The units from ``first`` up to ``last``, numbered from 0."""
        ...


class Door:
    """Measures geounits through the ledger, drawing only the answers that are asked.

    The counts are those of the records, or, of a replicate, those of a release (`replicates`): the noise has one law.
    What is released has the law it would have had if every answer of the plan had been drawn: the estimate never reads
    the others (docs/topdown-privacy.md). The ledger is charged with the whole plan.

    Parameters
    ----------
    exact : sequence of CountsOfUnits
        Counts of each geolevel; of a batch, those of its geounits are read.
    spending : Spending
    entropy : Entropy
    ledger : Ledger, optional
        Of the plan of ``spending``; a new one if none is given.
    """

    def __init__(
        self, exact: Sequence[CountsOfUnits], spending: Spending, entropy: Entropy, ledger: Ledger | None = None
    ) -> None:
        self._exact = exact
        self.spending = spending
        self._entropy = entropy
        self.ledger = ledger or Ledger(spending.plan)
        self._rank = [_rank(level.share_of) for level in spending.levels]
        self._labels: dict[Query, NDArray[np.int32]] = {}
        self._meters: Mapping[str, Meter] = {
            measurement.name: self.ledger.open(measurement, int((level.share_of == share).sum()))
            for level in spending.levels
            for share, row in level.measurements.items()
            for measurement in row
        }

    def measure(self, level: int, families: SiblingBatch, asked: Sequence[Asked]) -> tuple[Ints, ...]:
        """Measure the children of families: of each query the answers asked, placed as `Asked.places` says."""
        return tuple(self._measure(level, q, families, one) for q, one in enumerate(asked))

    def measure_all(self, level: int, first: int, last: int) -> tuple[Ints, ...]:
        """Measure everything of the geounits from ``first`` up to ``last``: of each query an array (units, size)."""
        units = SiblingBatch(np.array([first, last]), np.zeros(2, dtype=np.int64), np.zeros(0, dtype=np.int32))
        found = []
        for q, query in enumerate(self.spending.levels[level].queries):
            answers = np.arange(query.size, dtype=np.int32)
            everything = Asked(answers[:0], np.array([0, query.size]), answers)
            values = self._measure(level, q, units, everything)
            found.append(values.reshape(last - first, query.size))
        return tuple(found)

    def _measure(self, level: int, q: int, families: SiblingBatch, asked: Asked) -> Ints:
        exact = self._exact[level].part(families.first, families.last)
        spent = self.spending.levels[level]
        query = spent.queries[q]
        values = exact_answers(
            exact.starts,
            exact.cells,
            exact.counts,
            families.children - families.first,
            self._label(query),
            asked.starts,
            asked.answers,
            query.size,
        )
        share = spent.share_of[families.first : families.last]
        cells = np.repeat(np.diff(asked.starts), np.diff(families.children))
        noisy = np.zeros_like(values)
        for position in np.unique(share).tolist():
            if position not in spent.measurements:
                continue  # no share, no measurement: the zeros stay
            units = share == position
            entries = slice(None) if units.all() else np.repeat(units, cells)
            meter = self._meters[spent.measurements[position][q].name]
            first = int(self._rank[level][families.first + int(np.argmax(units))])
            source = self._entropy.branch(f"{level} {q} {position} {families.first}")
            noisy[entries] = meter.measure(first, cells[units], values[entries], source)
        return noisy

    def _label(self, query: Query) -> NDArray[np.int32]:
        if query not in self._labels:
            self._labels[query] = query.answers()
        return self._labels[query]


def _rank(share: NDArray[np.int32]) -> Ints:
    """Number the units of each share from 0."""
    rank = np.empty(len(share), dtype=np.int64)
    for position in np.unique(share).tolist():
        mine = share == position
        rank[mine] = np.arange(int(mine.sum()))
    return rank


_VALUES_AT_ONCE: Final = 1 << 22


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredFamilies:
    """What was measured of the children of some families."""

    families: SiblingBatch
    asked: tuple[Asked, ...]  # by query: which answers were asked
    values: Drawn  # by query the noisy answers, in as few bytes as they were kept
    places: tuple[Ints, ...]  # by query where the answers of each parent begin: see `Asked.places`
    weights: Floats  # shape (children of all, queries): inverse variances; 0 where a child was not measured
    chosen: tuple[tuple[int, ...], ...]  # queries of each estimation pass, by position

    @classmethod
    def of(
        cls, spent: LevelSpending, families: SiblingBatch, asked: tuple[Asked, ...], values: Drawn
    ) -> "MeasuredFamilies":
        """What was measured of families under a plan."""
        places = tuple(one.places(families.children) for one in asked)
        weights = spent.weights[spent.share_of[families.first : families.last]]
        return cls(families, asked, values, places, weights, spent.passes)

    def passes(self, parent: int) -> Sequence[Callable[[], Terms]]:
        """What each estimation pass of a parent fits; what a pass answers, later passes hold."""
        last = len(self.chosen) - 1
        return [partial(self._terms, parent, queries, holds=i < last) for i, queries in enumerate(self.chosen)]

    def _terms(self, parent: int, queries: tuple[int, ...], *, holds: bool) -> Terms:
        children = slice(*(self.families.children[parent : parent + 2] - self.families.first))
        live = slice(*self.families.starts[parent : parent + 2])
        labels = tuple(self.asked[q].local[live] for q in queries)
        number = children.stop - children.start
        answers = tuple(
            self.values[q][slice(*self.places[q][parent : parent + 2])].reshape(number, -1).astype(np.float64)
            for q in queries
        )
        weights = np.ascontiguousarray(self.weights[children][:, list(queries)])
        return Terms(labels, answers, weights, labels if holds else ())


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredOnDemand:
    """Noisy answers as far as they are asked for; what has been drawn before is read from the keeper.

    An answer is on disk before anything is made of it. So a run that dies of its own noise goes on with that noise, and
    what is released in the end has the law of one draw (docs/interrupted-runs.md).
    """

    keeper: Keeper
    door: Door

    def gather(self, level: int, families: SiblingBatch) -> MeasuredFamilies:
        """Read or draw, and keep, what the estimator reads of the children of families.

        Raises
        ------
        OutputError
            If the draws cannot be kept, or those that were kept are damaged.
        """
        spent = self.door.spending.levels[level]
        asked = ask_all(families, spent.queries)
        shapes = [(int(one.places(families.children)[-1]),) for one in asked]
        values = self.keeper.load_draws(level, families.first, shapes)
        if values is None:
            draw = partial(self.door.measure, level, families, asked)
            values = self.keeper.save_draws(level, families.first, shapes, draw)
        return MeasuredFamilies.of(spent, families, asked, values)


@dataclass(frozen=True, slots=True, eq=False)
class StoredMeasurements:
    """Every noisy answer of a plan, in pieces of consecutive geounits."""

    # what every geolevel was measured with, from the root down: by a plan on a spine, or as files tell of one
    levels: tuple[LevelSpending, ...]
    keeper: Keeper  # where they are kept
    _last: dict[int, tuple[int, tuple[NDArray[np.integer], ...]]] = field(default_factory=dict, init=False)
    """By geolevel, the piece read last, for who goes through the tree reads many parts of one in turn."""

    def draw(self, door: Door) -> Iterator[tuple[int, int, int]]:
        """Draw what is not there yet; yields geolevel, geounits done and geounits in all after every piece."""
        for level, spent in enumerate(self.levels):
            units = len(spent.share_of)
            for first, last in self._pieces(level):
                if not self.keeper.has_draws(level, first):
                    draw = partial(door.measure_all, level, first, last)
                    self.keeper.save_draws(level, first, self._shapes(level, first, last), draw)
                yield level, last, units

    def pieces(self, level: int, first: int, last: int) -> Iterator[tuple[int, int, tuple[NDArray[np.integer], ...]]]:
        """The answers of each query for the units from ``first`` up to ``last``, piece by piece.

        Yields
        ------
        tuple
            First unit, one past the last, and by query the answers, of shape (units of the piece, size).
        """
        for start, stop in self._pieces(level):
            if stop <= first or start >= last:
                continue
            drawn = self._read(level, start, stop)
            begin, end = max(first, start), min(last, stop)
            yield begin, end, tuple(of_query[begin - start : end - start] for of_query in drawn)

    def _read(self, level: int, start: int, stop: int) -> tuple[NDArray[np.integer], ...]:
        first, drawn = self._last.get(level, (None, None))
        if drawn is None or first != start:
            drawn = self.keeper.load_draws(level, start, self._shapes(level, start, stop))
            if drawn is None:
                raise RuntimeError(f"measurements of level {level} from unit {start} on were not drawn")
            self._last[level] = start, drawn
        return drawn

    def queries(self, level: int) -> tuple[Query, ...]:
        """What a geolevel was measured with."""
        return self.levels[level].queries

    def precisions(self, level: int, first: int, last: int) -> Floats:
        """1 / variance of the units from ``first`` up to ``last``, of shape (units, queries); 0 where not measured."""
        spent = self.levels[level]
        return spent.weights[spent.share_of[first:last]]

    def answers(self, level: int, first: int, last: int) -> list[NDArray[np.integer]]:
        """The answers of each query for the units from ``first`` up to ``last``, of shape (units, size)."""
        found = [piece for _, _, piece in self.pieces(level, first, last)]
        return [np.concatenate(of_query) for of_query in zip(*found, strict=True)]

    def gather(self, level: int, families: SiblingBatch) -> MeasuredFamilies:
        """Read what was measured of the children of families, where their live cells reach."""
        spent = self.levels[level]
        asked = ask_all(families, spent.queries)
        stored = self.answers(level, families.first, families.last)
        values: list[NDArray[np.integer]] = []
        for one, of_query in zip(asked, stored, strict=True):
            # For every child the answers its parent's live cells reach, child after child.
            widths = np.repeat(np.diff(one.starts), np.diff(families.children))
            rows = np.repeat(np.arange(families.last - families.first), widths)
            columns = [
                np.tile(one.answers[one.starts[p] : one.starts[p + 1]], families.children[p + 1] - families.children[p])
                for p in range(len(one.starts) - 1)
            ]
            values.append(of_query[rows, np.concatenate(columns)])
        return MeasuredFamilies.of(spent, families, asked, tuple(values))

    def _pieces(self, level: int) -> list[tuple[int, int]]:
        spent = self.levels[level]
        at_once = max(1, _VALUES_AT_ONCE // max(1, sum(query.size for query in spent.queries)))
        units = len(spent.share_of)
        return [(first, min(first + at_once, units)) for first in range(0, units, at_once)]

    def _shapes(self, level: int, first: int, last: int) -> list[tuple[int, int]]:
        return [(last - first, query.size) for query in self.levels[level].queries]
