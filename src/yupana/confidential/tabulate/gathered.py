"""Counts of parts of the records, kept until all records of some areas are there, and given by area."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from yupana.confidential.records.database import scratch_folder
from yupana.confidential.tabulate.lists import Lists
from yupana.confidential.tabulate.pairs import CountedPairs
from yupana.confidential.tabulate.part_counts import CountedAreas, CountedPart, PartCounts, places_of
from yupana.confidential.tabulate.pieces import GroupAreas
from yupana.privacy.sealed import Sealed

_AT_ONCE: Final = 1 << 19
"""So many groups of areas are given at a time."""


class GatheredCounts(Sealed):
    """Parts that have no record in common: in memory while they are small, else in private files.

    A context: the files are gone at its end.
    """

    def __init__(self, memory: int) -> None:
        """Keep so many bytes of counts in memory at most."""
        self._memory, self._held = memory, 0
        self._parts: list[CountedPart] = []
        self._in_memory: list[PartCounts] = []
        self._open = ExitStack()
        self._folder: Path | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def add(self, part: PartCounts) -> None:
        """Take the counts of some records."""
        self._in_memory.append(part)
        self._held += part.bytes
        # The one part of a slice is there anyway.
        if self._held > self._memory and (self._parts or len(self._in_memory) > 1):
            self._put_down()

    def _put_down(self) -> None:
        folder = self._folder = self._folder or self._open.enter_context(scratch_folder())
        for part in self._in_memory:
            self._parts.append(_OnDisk.of(part, folder / str(len(self._parts))))
        self._in_memory, self._held = [], 0

    @property
    def parts(self) -> Sequence[CountedPart]:
        """What was taken."""
        return [*self._parts, *self._in_memory]

    def areas(self, areas: GroupAreas, first: tuple[int, int] | None = None) -> Iterator[CountedAreas]:
        """What was gathered, by area: each area of a kind once and whole; those that cross slices part by part.

        Areas are given together as `GroupAreas.stretches` has them, whatever the parts: noise is drawn for them so.

        Parameters
        ----------
        areas : GroupAreas
            By which all parts were counted.
        first : tuple of int and int, optional
            The least and the greatest value of the first column of the key that parts are of; by default all.
        """
        if not (parts := self.parts):
            return
        one = parts[0]
        records, lost = sum(part.records for part in parts), sum(part.in_no_group for part in parts)
        yield CountedAreas("", 0, 0, 0, one.categories, (), records, lost)
        for kind, size in one.sizes.items():
            if areas.crosses(kind):
                for part in parts:
                    yield CountedAreas(kind, *part.ranges[kind], size, one.categories, [part])
                continue
            for low, high in areas.stretches(kind, first, _AT_ONCE // max(1, size)):
                some = [part for part in parts if part.has(kind, low, high)]
                yield CountedAreas(kind, low, high, size, one.categories, some)


class GatheredShards(Sealed):
    """What shards counted, by pass or file of which each has counted parts.

    A context: what is gathered is gone at its end.
    """

    def __init__(self, memory: int) -> None:
        """Keep so many bytes of counts in memory at most."""
        self._memory = memory
        self._open = ExitStack()
        self.each: list[GatheredCounts] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def forget(self) -> None:
        """Drop all that was taken."""
        self._open.close()
        self.each = []

    def take(self, counted: Sequence[Sequence[PartCounts]]) -> None:
        """Take what one shard counted."""
        if not self.each:
            self.each = [self._open.enter_context(GatheredCounts(self._memory // len(counted))) for _ in counted]
        for gathered, parts in zip(self.each, counted, strict=True):
            for part in parts:
                gathered.add(part)


@dataclass(frozen=True, slots=True)
class _Stored:
    """An array of one dimension in a file of several."""

    path: Path
    offset: int
    length: int
    dtype: np.dtype[Any]

    @staticmethod
    def of(arrays: Sequence[NDArray[Any]], path: Path) -> "tuple[_Stored, ...]":
        """Write arrays one after the other."""
        ends = np.cumsum([0, *(array.nbytes for array in arrays)]).tolist()
        with path.open("wb") as file:
            for array in arrays:
                file.write(np.ascontiguousarray(array).data)
        return tuple(_Stored(path, end, len(array), array.dtype) for end, array in zip(ends, arrays, strict=False))

    def read(self, first: int, last: int) -> NDArray[Any]:
        """The numbers from one place to below another."""
        offset = self.offset + first * self.dtype.itemsize
        return np.fromfile(self.path, self.dtype, count=last - first, offset=offset)

    @property
    def mapped(self) -> NDArray[Any]:
        """The numbers, read where they are looked at."""
        if not self.length:
            return np.empty(0, self.dtype)
        return np.memmap(self.path, self.dtype, mode="r", offset=self.offset, shape=(self.length,))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _OnDisk(Sealed):
    """A part whose arrays are in files.

    Attributes
    ----------
    counts : PartCounts
        The part, without its arrays.
    pairs : mapping of kind to tuple of _Stored
        The fields of `CountedPairs`, in their order.
    spaces : tuple of tuple of _Stored
        Those of `Lists`.
    """

    counts: PartCounts
    pairs: Mapping[str, tuple[_Stored, ...]]
    spaces: Sequence[tuple[_Stored, ...]]

    @staticmethod
    def of(part: PartCounts, folder: Path) -> "_OnDisk":
        folder.mkdir()
        pairs = {
            kind: _Stored.of((of.region, of.key, of.starts, of.category, of.count), folder / f"pairs-{number}")
            for number, (kind, of) in enumerate(part.pairs.items())
        }
        spaces = [
            _Stored.of((lists.starts, lists.values), folder / f"space-{number}")
            for number, lists in enumerate(part.spaces)
        ]
        return _OnDisk(replace(part, pairs={}, spaces=()), pairs, spaces)

    @property
    def records(self) -> int:
        return self.counts.records

    @property
    def in_no_group(self) -> int:
        return self.counts.in_no_group

    @property
    def categories(self) -> int:
        return self.counts.categories

    @property
    def ranges(self) -> Mapping[str, tuple[int, int]]:
        return self.counts.ranges

    @property
    def sizes(self) -> Mapping[str, int]:
        return self.counts.sizes

    def has(self, kind: str, low: int, high: int) -> bool:
        first, last = places_of(self.pairs[kind][0].mapped, low, high)
        return first < last

    def within(self, kind: str, low: int, high: int) -> PartCounts:
        region, key, starts, category, count = self.pairs[kind]
        first, last = places_of(region.mapped, low, high)
        begins = starts.read(first, last + 1)
        pairs = CountedPairs(
            region.read(first, last),
            key.read(first, last),
            begins - begins[0],
            category.read(int(begins[0]), int(begins[-1])),
            count.read(int(begins[0]), int(begins[-1])),
        )
        lists = Lists(*(array.read(0, array.length) for array in self.spaces[self.counts.space_of[kind]]))
        return self.counts.of_kind(kind, low, high, lists, pairs)
