"""Sums of blocks over areas, made as parts of the blocks come and given out as soon as they are whole. Public."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from yupana.arrays import Flags, Ints
from yupana.geography.published import Areas
from yupana.topdown.block_parts import BlockParts
from yupana.topdown.histogram import Entries, Histogram, add_entries, count_entries

Stretch = tuple[int, Histogram]
"""The number of the first of some consecutive units, and their counts."""


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
    """A part of the blocks, and the areas of all kinds that are whole with it.

    Attributes
    ----------
    first : int
        The place of the first block of the part.
    counts : Histogram
        Of its blocks.
    areas : mapping of str to Stretch
        By kind; stretches of a kind follow each other from part to part.
    """

    first: int
    counts: Histogram
    areas: Mapping[str, Stretch]


def sums_in_parts(parts: BlockParts, kinds: Sequence[Areas]) -> Iterator[Summed]:
    """Add blocks up to areas, part by part.

    Parameters
    ----------
    parts : BlockParts
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


@dataclass(frozen=True, slots=True, eq=False)
class PartsByCounty:
    """The same blocks, those of a county side by side: on a spine the two sides of a state can lie far apart.

    Blocks that come after those of a later county are read first and held; on a spine these lie in AIAN areas. Else an
    area of the first county could not be given out before the last part of its state has come, or of the country.

    Attributes
    ----------
    parts : BlockParts
    county : ndarray of int64, shape (blocks,)
        That of each block, as a number.
    """

    parts: BlockParts
    county: Ints

    @property
    def units(self) -> int:
        """How many blocks all parts have together."""
        return self.parts.units

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
