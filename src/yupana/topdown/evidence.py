"""Noisy measurements as the estimator reads them: drawn when it asks for them, or all of them before. Public."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Floats, Ints
from yupana.topdown.budget import LevelSpending, Spending
from yupana.topdown.divide import Terms
from yupana.topdown.draws import Drawn, KeepsDraws
from yupana.topdown.families import Asked, SiblingBatch, ask_all
from yupana.topdown.queries import Query

_VALUES_AT_ONCE: Final = 1 << 22


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredFamilies:
    """What was measured of the children of some families.

    Attributes
    ----------
    families : SiblingBatch
    asked : tuple of Asked
        By query: which answers were asked.
    values : tuple of ndarray of integers
        By query the noisy answers, in as few bytes as they were kept.
    places : tuple of ndarray of int64
        By query where the answers of each parent begin: see `Asked.places`.
    weights : ndarray of float64, shape (children of all, queries)
        Inverse variances; 0 where a child was not measured.
    chosen : tuple of tuple of int
        Queries of each estimation pass, by position.
    """

    families: SiblingBatch
    asked: tuple[Asked, ...]
    values: Drawn
    places: tuple[Ints, ...]
    weights: Floats
    chosen: tuple[tuple[int, ...], ...]

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


class MeasuresAsked(Protocol):
    """Measures what is asked of geounits; the door of a run."""

    def measure(self, level: int, families: SiblingBatch, asked: Sequence[Asked]) -> tuple[Ints, ...]:
        """Noisy answers of each query of a geolevel, for the children of families."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredOnDemand:
    """Noisy answers as far as they are asked for; what has been drawn before is read from the keeper.

    An answer is on disk before anything is made of it. So a run that dies of its own noise goes on with that noise, and
    what is released in the end has the law of one draw (docs/interrupted-runs.md).

    Attributes
    ----------
    spending : Spending
    keeper : KeepsDraws
    door : MeasuresAsked
    """

    spending: Spending
    keeper: KeepsDraws
    door: MeasuresAsked

    def gather(self, level: int, families: SiblingBatch) -> MeasuredFamilies:
        """Read or draw, and keep, what the estimator reads of the children of families.

        Raises
        ------
        OutputError
            If the draws cannot be kept, or those that were kept are damaged.
        """
        spent = self.spending.levels[level]
        asked = ask_all(families, spent.queries)
        shapes = [(int(one.places(families.children)[-1]),) for one in asked]
        values = self.keeper.load_draws(level, families.first, shapes)
        if values is None:
            draw = partial(self.door.measure, level, families, asked)
            values = self.keeper.save_draws(level, families.first, shapes, draw)
        return MeasuredFamilies.of(spent, families, asked, values)


class MeasuresInFull(Protocol):
    """Measures geounits in full; the door of a run."""

    def measure_all(self, level: int, first: int, last: int) -> tuple[Ints, ...]:
        """Noisy answers of each query of a geolevel, for the units from ``first`` up to ``last``: (units, size)."""
        ...


class SpentLevels(Protocol):
    """What every geolevel was measured with: a plan on a spine, or what files tell of one."""

    @property
    def levels(self) -> tuple[LevelSpending, ...]:
        """By geolevel, from the root down."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class StoredMeasurements:
    """Every noisy answer of a plan, in pieces of consecutive geounits.

    Attributes
    ----------
    spending : SpentLevels
    keeper : KeepsDraws
        Where they are kept.
    """

    spending: SpentLevels
    keeper: KeepsDraws
    _last: dict[int, tuple[int, tuple[NDArray[np.integer], ...]]] = field(default_factory=dict, init=False)
    """By geolevel, the piece read last, for who goes through the tree reads many parts of one in turn."""

    def draw(self, door: MeasuresInFull) -> Iterator[tuple[int, int, int]]:
        """Draw what is not there yet; yields geolevel, geounits done and geounits in all after every piece."""
        for level, spent in enumerate(self.spending.levels):
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
        return self.spending.levels[level].queries

    def precisions(self, level: int, first: int, last: int) -> Floats:
        """1 / variance of the units from ``first`` up to ``last``, of shape (units, queries); 0 where not measured."""
        spent = self.spending.levels[level]
        return spent.weights[spent.share_of[first:last]]

    def answers(self, level: int, first: int, last: int) -> list[NDArray[np.integer]]:
        """The answers of each query for the units from ``first`` up to ``last``, of shape (units, size)."""
        found = [piece for _, _, piece in self.pieces(level, first, last)]
        return [np.concatenate(of_query) for of_query in zip(*found, strict=True)]

    def gather(self, level: int, families: SiblingBatch) -> MeasuredFamilies:
        """Read what was measured of the children of families, where their live cells reach."""
        spent = self.spending.levels[level]
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
        spent = self.spending.levels[level]
        at_once = max(1, _VALUES_AT_ONCE // max(1, sum(query.size for query in spent.queries)))
        units = len(spent.share_of)
        return [(first, min(first + at_once, units)) for first in range(0, units, at_once)]

    def _shapes(self, level: int, first: int, last: int) -> list[tuple[int, int]]:
        return [(last - first, query.size) for query in self.spending.levels[level].queries]
