"""Counts of many geounits over the cells of one schema, zeros left out: held, in parts, and added up to areas."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Flags, Ints
from yupana.geography.published import Areas

Cells = NDArray[np.int32]

UNITS_AT_ONCE: Final = 1 << 17

Entries = tuple[NDArray[np.integer], NDArray[np.integer], NDArray[np.integer]]
"""Units, cells and counts, each of shape (entries,)."""


@dataclass(frozen=True, slots=True, eq=False)
class Histogram:
    """Sparse counts by geounit: memory follows the cells that are not zero."""

    starts: Ints  # shape (units + 1,): the entries of unit u are those from `starts[u]` up to `starts[u + 1]`
    cells: Cells  # shape (entries,): cell numbers, ascending within a unit, each once
    counts: Ints  # shape (entries,): positive

    @property
    def units(self) -> int:
        """How many geounits are counted, empty ones included."""
        return len(self.starts) - 1

    def owners(self) -> Ints:
        """The unit of each entry, of shape (entries,)."""
        return np.repeat(np.arange(self.units), np.diff(self.starts))

    def totals(self) -> Ints:
        """The sum of each unit, of shape (units,)."""
        sums = np.concatenate([[0], np.cumsum(self.counts)])
        return np.asarray(sums[self.starts[1:]] - sums[self.starts[:-1]], dtype=np.int64)

    def part(self, first: int, last: int) -> "Histogram":
        """The units from ``first`` up to ``last``, numbered from 0."""
        begin, end = self.starts[first], self.starts[last]
        return Histogram(self.starts[first : last + 1] - begin, self.cells[begin:end], self.counts[begin:end])

    def __iter__(self) -> Iterator[tuple[int, "Histogram"]]:
        """Parts of so many units that what is made of one at a time takes little memory; see `BlockParts`."""
        for first in range(0, self.units, UNITS_AT_ONCE):
            yield first, self.part(first, min(first + UNITS_AT_ONCE, self.units))

    def dense(self, first: int, last: int, cells: int) -> Ints:
        """Counts of the units from ``first`` up to ``last``, zeros included, of shape (last - first, cells)."""
        out = np.zeros((last - first, cells), dtype=np.int64)
        here = slice(self.starts[first], self.starts[last])
        owner = np.repeat(np.arange(last - first), np.diff(self.starts[first : last + 1]))
        out[owner, self.cells[here]] = self.counts[here]
        return out

    def sum_to(self, parents: NDArray[np.integer], units: int) -> "Histogram":
        """Add units up to other units, such as children to parents.

        Parameters
        ----------
        parents : ndarray of int, shape (self.units,)
            For each unit the one it belongs to, or -1 for none.
        units : int
            How many there are of those.
        """
        owner = np.asarray(parents, dtype=np.int64)[self.owners()]
        kept = owner >= 0
        return count_entries(owner[kept], self.cells[kept], self.counts[kept], units)

    def counts_at(self, other: "Histogram") -> Ints:
        """Counts at the entries of another histogram of the same units, zeros included, in the order of its entries."""
        width = 1 + max(int(self.cells.max(initial=0)), int(other.cells.max(initial=0)))
        key, wanted = (one.owners() * width + one.cells for one in (self, other))
        at = np.minimum(np.searchsorted(key, wanted), max(len(key) - 1, 0))
        if not len(key):
            return np.zeros(len(wanted), dtype=np.int64)
        return np.where(key[at] == wanted, self.counts[at], 0)


def runs_within(ends: Ints, most: int, *others: tuple[Ints, int]) -> Iterator[tuple[int, int]]:
    """Cut consecutive units into runs that hold at most so much together, or are one unit alone.

    Parameters
    ----------
    ends : ndarray of int64, shape (units,)
        Running sums of what the units hold.
    others : tuple of (ndarray, int)
        The same of something else that they hold.
    """
    first = 0
    while first < len(ends):
        reach = len(ends)
        for of, limit in ((ends, most), *others):
            before = int(of[first - 1]) if first else 0
            reach = min(reach, int(np.searchsorted(of, before + limit, side="right")))
        last = max(first + 1, reach)
        yield first, last
        first = last


def count_entries(
    unit: NDArray[np.integer], cell: NDArray[np.integer], count: NDArray[np.integer], units: int
) -> Histogram:
    """Sum entries (unit, cell, count) in any order, with repetitions and zeros, to a histogram.

    Parameters
    ----------
    unit, cell, count : ndarray of int, shape (entries,)
    """
    owner, found, summed = add_entries(unit, cell, count)
    starts = np.searchsorted(owner, np.arange(units + 1))
    return Histogram(starts.astype(np.int64), found.astype(np.int32), np.ascontiguousarray(summed, dtype=np.int64))


def add_entries(unit: NDArray[np.integer], cell: NDArray[np.integer], count: NDArray[np.integer]) -> Entries:
    """Sum entries of one unit and cell; what is left is positive and in the order of units, then cells."""
    width = int(cell.max(initial=0)) + 1
    key = np.asarray(unit, dtype=np.int64) * width + cell
    if not bool((key[1:] > key[:-1]).all()):
        order = np.argsort(key, kind="stable")
        key, count = key[order], count[order]
        first = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]])) if len(key) else np.arange(0)
        key, count = key[first], np.add.reduceat(count, first) if len(first) else count
    positive = count > 0
    key, count = key[positive], count[positive]
    owner, found = np.divmod(key, width)
    return owner, found, count


def joined(pieces: Sequence[Histogram]) -> Histogram:
    """Put the counts of consecutive units behind one another."""
    offsets = np.cumsum([0, *(len(piece.cells) for piece in pieces)])
    starts = [piece.starts[:-1] + offset for piece, offset in zip(pieces, offsets[:-1], strict=True)]
    return Histogram(
        np.concatenate([*starts, offsets[-1:]]).astype(np.int64),
        np.concatenate([piece.cells for piece in pieces]),
        np.concatenate([piece.counts for piece in pieces]),
    )


Stretch: TypeAlias = tuple[int, Histogram]
"""The number of the first of some consecutive units, and their counts."""

BlockParts: TypeAlias = Iterable[Stretch]
"""Counts of the blocks of a spine in consecutive parts, such as states, in the order of the spine.

Each part is the place of its first block and the counts of its blocks, which are numbered from 0 within the part. The
first begins at 0, every other where the one before it ended. They can be gone through any number of times and are the
same each time. A `Histogram` is one.
"""


@dataclass(slots=True, eq=False)
class InTurn:
    """Consecutive units of a geolevel in parts, for who asks for one run of them after another."""

    parts: BlockParts
    _at: int = 0
    _held: Histogram | None = None
    _coming: Iterator[Stretch] | None = None

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


def whole(parts: BlockParts) -> Histogram:
    """All parts behind one another, in memory."""
    return parts if isinstance(parts, Histogram) else joined([counts for _, counts in parts])


class AreaSums:
    """Adds consecutive units up to areas. An area is given out, in the order of areas, once all its units have come.

    What is held are the counts of areas that wait for a unit, or for an area before them.

    Parameters
    ----------
    index : ndarray of int64, shape (units,)
        The area of each unit, or -1 for none.
    areas : int
        How many there are.
    """

    def __init__(self, index: Ints, areas: int) -> None:
        last = np.zeros(areas, dtype=np.int64)
        known = np.flatnonzero(index >= 0)
        last[index[known]] = known + 1
        self._index = index
        # How many units must have come before an area can be given out; those before it are then out.
        self._needed = np.maximum.accumulate(last)
        self._given = 0
        self._waiting: Entries = (known[:0], known[:0], known[:0])

    def add(self, first: int, units: Histogram) -> Stretch:
        """Add the next units, and return the areas that are whole now; perhaps none."""
        stop = first + units.units
        area = self._index[first:stop][units.owners()]
        entries = _chosen((area, units.cells, units.counts), area >= 0)
        if len(self._waiting[0]):
            entries = together([self._waiting, entries])
        given, upto = self._given, int(np.searchsorted(self._needed, stop, side="right"))
        whole = entries[0] < upto
        self._waiting = add_entries(*_chosen(entries, ~whole))
        out, cells, counts = _chosen(entries, whole)
        self._given = upto
        return given, count_entries(out - given, cells, counts, upto - given)


@dataclass(frozen=True, slots=True, eq=False)
class Summed:
    """A part of the blocks, and the areas of all kinds that are whole with it."""

    first: int  # the place of the first block of the part
    counts: Histogram  # of its blocks
    areas: Mapping[str, Stretch]  # by kind; stretches of a kind follow each other from part to part


def sums_in_parts(parts: BlockParts, kinds: Sequence[Areas]) -> Iterator[Summed]:
    """Add blocks up to areas, part by part.

    Parameters
    ----------
    kinds : sequence of Areas
        Of these blocks, each after the kind that it adds up.
    """
    sums = {kind.name: AreaSums(kind.index, kind.number) for kind in kinds}
    for first, counts in parts:
        found = {"": (first, counts)}
        for kind in kinds:
            found[kind.name] = sums[kind.name].add(*found[kind.below])
        del found[""]
        yield Summed(first, counts, found)


def sum_to_areas(histogram: Histogram, areas: Sequence[Areas]) -> dict[str, Histogram]:
    """Counts of areas of every kind, from those of all blocks; parameters are those of `sums_in_parts`."""
    (summed,) = sums_in_parts([(0, histogram)], areas)
    return {kind: counts for kind, (_, counts) in summed.areas.items()}


@dataclass(frozen=True, slots=True, eq=False)
class PartsByCounty:
    """The same blocks, those of a county side by side: on a spine the two sides of a state can lie far apart.

    Blocks that come after those of a later county are read first and held; on a spine these lie in AIAN areas. Else an
    area of the first county could not be given out before the last part of its state has come, or of the country.
    """

    parts: BlockParts
    county: Ints  # shape (blocks,): that of each block, as a number

    @property
    def order(self) -> Ints:
        """The places in the parts of the blocks that are given here, of shape (blocks,)."""
        return np.argsort(self.county, kind="stable")

    def areas(self, areas: Sequence[Areas]) -> list[Areas]:
        """The areas of the blocks of the parts as those of the blocks that are given here."""
        order = self.order
        return [kind if kind.below else replace(kind, index=kind.index[order]) for kind in areas]

    def __iter__(self) -> Iterator[Stretch]:
        """The place of the first block of each part, and the counts of the part."""
        late: Flags = self.county < np.maximum.accumulate(self.county)
        if not late.any():
            yield from self.parts
            return
        place = np.empty(len(late), dtype=np.int64)
        place[self.order] = np.arange(len(late))
        held = [_placed(place, late, *part) for part in self.parts]
        unit, cell, count = add_entries(*together(held))
        in_time = np.flatnonzero(~late)
        done = 0
        for first, counts in self.parts:
            following = int(np.searchsorted(in_time, first + counts.units))
            stop = len(late) if following == len(in_time) else int(place[in_time[following]])
            mine = slice(*np.searchsorted(unit, (done, stop)).tolist())
            units, cells, numbers = together(
                [_placed(place, ~late, first, counts), (unit[mine], cell[mine], count[mine])]
            )
            yield done, count_entries(units - done, cells, numbers, stop - done)
            done = stop


def _placed(place: Ints, chosen: Flags, first: int, counts: Histogram) -> Entries:
    """The counts of the chosen blocks of a part, each at its place."""
    block = counts.owners() + first
    return _chosen((place[block], counts.cells, counts.counts), chosen[block])


def _chosen(entries: Entries, some: Flags) -> Entries:
    unit, cell, count = entries
    return entries if some.all() else (unit[some], cell[some], count[some])


def together(several: Sequence[Entries]) -> Entries:
    """All entries of several, one after the other."""
    unit, cell, count = map(np.concatenate, zip(*several, strict=True))
    return unit, cell, count
