"""The counts of the blocks of a spine in parts, so that who goes through them holds a part, not the country. Public."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Protocol

from yupana.topdown.histogram import Histogram, joined

BLOCKS_AT_ONCE: Final = 1 << 17


class BlockParts(Protocol):
    """Counts of the blocks of a spine in consecutive parts, such as states, in the order of the spine.

    Iterating gives for each part the place of its first block and the counts of its blocks, which are numbered from 0
    within the part. The first part begins at 0, every other where the one before it ended. They can be gone through any
    number of times and are the same each time.
    """

    @property
    def units(self) -> int:
        """How many blocks all parts have together."""
        ...

    def __iter__(self) -> Iterator[tuple[int, Histogram]]:
        """The place of the first block of each part, and the counts of the part."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class HistogramParts:
    """Parts of one histogram that is held in memory.

    Attributes
    ----------
    histogram : Histogram
        Of the blocks of the spine, in its order.
    cuts : tuple of int
        Where another part begins, ascending, each between 0 and the number of blocks; none makes one part of all.
    """

    histogram: Histogram
    cuts: tuple[int, ...] = ()

    @property
    def units(self) -> int:
        """How many blocks all parts have together."""
        return self.histogram.units

    def __iter__(self) -> Iterator[tuple[int, Histogram]]:
        """The place of the first block of each part, and the counts of the part."""
        for first, last in pairwise((0, *self.cuts, self.units)):
            yield first, self.histogram.part(first, last)


@dataclass(slots=True, eq=False)
class InTurn:
    """Consecutive units of a geolevel in parts, for who asks for one run of them after another.

    Attributes
    ----------
    parts : iterable of (int, Histogram)
        As `BlockParts` gives them.
    """

    parts: Iterable[tuple[int, Histogram]]
    _at: int = 0
    _held: Histogram | None = None
    _coming: Iterator[tuple[int, Histogram]] | None = None

    def take(self, first: int, last: int) -> Histogram:
        """Counts of the units from ``first`` up to ``last``; ``first`` never lies before that of an earlier call."""
        if self._coming is None:
            self._coming = iter(self.parts)
        while self._held is None or self._at + self._held.units < last:
            at, part = next(self._coming)
            if self._held is None or self._at + self._held.units <= first:
                self._at, self._held = at, part
            else:
                self._held = joined([self._held.part(first - self._at, self._held.units), part])
                self._at = first
        return self._held.part(first - self._at, last - self._at)


def in_parts(histogram: Histogram) -> HistogramParts:
    """A histogram in parts of so many blocks that what is made of one at a time takes little memory."""
    return HistogramParts(histogram, tuple(range(BLOCKS_AT_ONCE, histogram.units, BLOCKS_AT_ONCE)))


def whole(parts: BlockParts) -> Histogram:
    """All parts behind one another, in memory."""
    return parts.histogram if isinstance(parts, HistogramParts) else joined([counts for _, counts in parts])


def one_part(parts: BlockParts) -> HistogramParts:
    """All parts as one, in memory."""
    return HistogramParts(whole(parts))
