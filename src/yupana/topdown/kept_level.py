"""Finished children of consecutive parents, what keeps them, and a geolevel that is made of them. Public."""

from bisect import insort
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from yupana.topdown.histogram import Histogram, joined

_ENTRIES_AT_ONCE: Final = 1 << 20
"""Counts that are not zero: pieces are put together up to so many, so that who reads a geolevel reads no crumbs."""


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


class Keeper(Protocol):
    """Keeps finished work, so that a run can be resumed without drawing anything twice."""

    def has(self, level: int, first: int) -> bool:
        """Whether a piece of a geolevel is kept: that of the children of the parents from ``first`` on."""
        ...

    def load(self, level: int, first: int) -> Piece | None:
        """The piece, if it was kept."""
        ...

    def save(self, level: int, first: int, piece: Piece) -> None:
        """Keep a piece; it must be on disk before anything is made of it."""
        ...


@dataclass(slots=True, eq=False)
class KeptLevel:
    """A geolevel in the pieces it was divided in: `BlockParts`, of any geolevel.

    What its keeper has is read from there each time, and the rest is held in memory.

    Attributes
    ----------
    level : int
    keeper : Keeper
    units : int
        So far.
    failsafe : list of (int, int)
        Of all pieces; see `Piece`.
    solvers : Counter of str
    """

    level: int
    keeper: Keeper
    units: int = 0
    failsafe: list[tuple[int, int]] = field(default_factory=list)
    solvers: Counter[str] = field(default_factory=Counter)
    _firsts: list[int] = field(default_factory=list)
    _held: dict[int, Histogram] = field(default_factory=dict)

    def add(self, first: int, piece: Piece) -> None:
        """Add a piece: that of the children of the parents from ``first`` on, saved before; in any order."""
        insort(self._firsts, first)
        if not self.keeper.has(self.level, first):
            self._held[first] = piece.counts
        self.units += piece.counts.units
        self.failsafe += piece.failsafe
        self.solvers.update(piece.solvers)

    def __iter__(self) -> Iterator[tuple[int, Histogram]]:
        """The place of the first unit of each part, and the counts of the part.

        Raises
        ------
        OutputError
            If what was kept is damaged.
        """
        begin, some, entries = 0, list[Histogram](), 0
        for first in self._firsts:
            some.append(self._counts(first))
            entries += len(some[-1].cells)
            if entries >= _ENTRIES_AT_ONCE or first == self._firsts[-1]:
                part = joined(some)
                yield begin, part
                begin, some, entries = begin + part.units, [], 0

    def _counts(self, first: int) -> Histogram:
        if first in self._held:
            return self._held[first]
        piece = self.keeper.load(self.level, first)
        if piece is None:
            raise RuntimeError(f"counts of level {self.level} below unit {first} of the one above were not kept")
        return piece.counts
