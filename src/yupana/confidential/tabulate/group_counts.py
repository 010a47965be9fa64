"""Exact counts of population groups by area: of parts of the records, in memory or on disk, and of all parts together.

Records are counted by region, by the key of what they answer and by category, with one sort. Parts wait until all
records of some areas are there.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np

from yupana.arrays import Flags, Indices, Integers, Ints, filed
from yupana.confidential.records.database import scratch_folder
from yupana.confidential.tabulate.group_tabulation import Categories, GroupAreas
from yupana.privacy.sealed import Sealed

NOTHING: Final = np.zeros(0, dtype=np.int64)

_BITS: Final = 63


@dataclass(frozen=True, eq=False)
class CountedPairs:
    """Records counted by region and key, and within these by category."""

    # region, key: shape (pairs,): ascending by both as they are counted
    region: Indices
    key: Indices
    starts: Ints  # shape (pairs + 1,): where the categories of each pair begin
    category: Categories  # numpy.ndarray of uint8 or uint16
    count: Indices  # records of each category of each pair

    @property
    def bytes(self) -> int:
        """What the arrays take."""
        return sum(a.nbytes for a in (self.region, self.key, self.starts, self.category, self.count))

    def part(self, first: int, last: int) -> "CountedPairs":
        """The pairs from one place to below another."""
        starts = self.starts[first : last + 1]
        counts = slice(int(starts[0]), int(starts[-1]))
        return CountedPairs(
            self.region[first:last], self.key[first:last], starts - starts[0], self.category[counts], self.count[counts]
        )

    @cached_property
    def all(self) -> Ints:
        """Records of each pair."""
        return self._summed(self.count)

    def totals(self, counted: Flags | None) -> Ints:
        """Records of each pair whose categories count; None for all."""
        return self.all if counted is None else self._summed(self.count * counted[self.category])

    def _summed(self, counts: Indices) -> Ints:
        return np.add.reduceat(counts, self.starts[:-1], dtype=np.int64) if len(counts) else NOTHING


def count_pairs(
    region: Indices, key: Indices, category: Categories, categories: int, count: Indices | None = None
) -> CountedPairs:
    """Count records by region, key and category, or add up counts of them; those of region -1 are in none.

    The three are packed into one number, so that one sort finds what is equal.
    """
    if region.min(initial=0) < 0:
        inside = region >= 0
        region, key, category = region[inside], key[inside], category[inside]
        count = None if count is None else count[inside]
    bits = _Bits.of(region, key, categories)
    packed = bits.packed(region, key, category)
    if count is None:
        packed.sort()
        first = _firsts(packed)
        return bits.unpacked(packed[first], np.diff(np.append(first, len(packed))), category.dtype)
    order = np.argsort(packed)
    packed = packed[order]
    first = _firsts(packed)
    summed = np.add.reduceat(count[order], first, dtype=np.int64) if len(first) else NOTHING
    return bits.unpacked(packed[first], summed, category.dtype)


def merge_pairs(pairs: CountedPairs, region_of: Indices, categories: int) -> CountedPairs:
    """The same records by larger regions: each region gives the one it is in, or -1."""
    lengths = np.diff(pairs.starts)
    region, key = np.repeat(region_of[pairs.region], lengths), np.repeat(pairs.key, lengths)
    return count_pairs(region, key, pairs.category, categories, pairs.count)


@dataclass(frozen=True, slots=True)
class _Bits:
    """How many bits of a packed number hold the key, and how many below it the category."""

    key: int
    category: int

    @staticmethod
    def of(region: Indices, key: Indices, categories: int) -> "_Bits":
        """As many as they need."""
        bits = _Bits(max(1, int(key.max(initial=0)).bit_length()), max(1, (categories - 1).bit_length()))
        if bits.key + bits.category + int(region.max(initial=0)).bit_length() > _BITS:
            raise ValueError("there are too many areas, codes and categories to be counted together")
        return bits

    def packed(self, region: Indices, key: Indices, category: Categories) -> Ints:
        """Region, key and category in one number, which ascends by these."""
        packed = region.astype(np.int64)
        packed <<= self.key
        packed |= key
        packed <<= self.category
        packed |= category
        return packed

    def unpacked(self, triple: Ints, count: Ints, dtype: np.dtype[Any]) -> CountedPairs:
        """Pairs of distinct packed numbers, ascending, and how many records each stands for."""
        category = (triple & ((1 << self.category) - 1)).astype(dtype)
        triple >>= self.category
        start = _firsts(triple)
        pair = triple[start]
        return CountedPairs(
            region=(pair >> self.key).astype(np.int32),
            key=(pair & ((1 << self.key) - 1)).astype(np.int32),
            starts=np.append(start, len(triple)),
            category=category,
            count=count.astype(np.int32),
        )


def _firsts(ascending: Ints) -> Ints:
    """Where each number of an ascending list stands first."""
    return np.flatnonzero(np.append(True, ascending[1:] != ascending[:-1])) if len(ascending) else NOTHING


@dataclass(frozen=True, eq=False)
class Lists:
    """Lists of numbers by key: those of key k stand in ``values[starts[k]:starts[k + 1]]``."""

    starts: Ints
    values: Indices

    @property
    def bytes(self) -> int:
        """What the arrays take."""
        return self.starts.nbytes + self.values.nbytes

    @staticmethod
    def of(lengths: Sequence[int] | Ints, values: Ints) -> "Lists":
        """Lists of these lengths, key after key."""
        return Lists(np.append(0, np.cumsum(lengths, dtype=np.int64)), values.astype(np.int32))

    def at(self, keys: Integers) -> tuple[Ints, Indices]:
        """The lists of some keys, one after the other: their lengths, and what stands in them."""
        starts = self.starts[keys]
        lengths = self.starts[keys + 1] - starts
        return lengths, self.values[number_ranges(starts, lengths)]

    def extended(self, *others: "Lists") -> "Lists":
        """These lists, then those."""
        lists = (self, *others)
        before = np.cumsum([0, *(len(each.values) for each in lists)])
        starts = [each.starts[:-1] + shift for each, shift in zip(lists, before, strict=False)]
        return Lists(np.concatenate([*starts, before[-1:]]), np.concatenate([each.values for each in lists]))


def number_ranges(starts: Ints, lengths: Ints) -> Ints:
    """The numbers of several ranges, one after the other."""
    if not len(lengths):
        return NOTHING
    ends: Ints = np.cumsum(lengths)
    numbers: Ints = np.arange(ends[-1])
    numbers += np.repeat(starts - (ends - lengths), lengths)
    return numbers


_PAIRS_AT_ONCE: Final = 250_000


@dataclass(frozen=True, eq=False, repr=False)
class KindCounts(Sealed):
    """Exact counts of some records by areas of a kind; the arrays may be in files (`FiledArray`)."""

    # places in `GroupAreas.ids` of the first area that may have counts, and of the one after the last. Of areas that
    # cross slices the counts are parts of sums.
    low: int
    high: int
    size: int  # how many groups the areas show
    categories: int
    lists: Lists  # the groups of each key, which kinds share that show the same
    pairs: CountedPairs  # of keys by area

    def _places(self, low: int, high: int) -> tuple[int, int]:
        """Where the pairs of areas from place ``low`` to below ``high`` begin and end."""
        # Of the type of the regions, or all of these would be copied, from disk too.
        ends = np.array([low, high], dtype=self.pairs.region.dtype)
        first, last = np.searchsorted(self.pairs.region, ends).tolist()
        return first, last

    def has(self, low: int, high: int) -> bool:
        """Whether there are counts of areas from place ``low`` to below ``high``."""
        first, last = self._places(low, high)
        return first < last

    def within(self, low: int, high: int) -> "KindCounts":
        """The counts of some areas alone, from place ``low`` to below ``high``, in memory."""
        lists, pairs = Lists(self.lists.starts[:], self.lists.values[:]), self.pairs.part(*self._places(low, high))
        return replace(self, low=low, high=high, lists=lists, pairs=pairs)

    def totals(self, counted: Flags | None = None) -> Ints:
        """Records of every group, shape (areas, groups).

        Parameters
        ----------
        counted : numpy.ndarray of bool, shape (categories,), optional
            Which categories count; all by default.
        """
        dense = np.zeros((self.high - self.low) * self.size, dtype=np.int64)
        totals = self.pairs.totals(counted)
        for some in _stretches(len(self.pairs.key)):
            pair, group = self._groups(np.arange(some.start, some.stop))
            if len(group):
                least = int(group.min())
                summed = np.bincount(group - least, weights=totals[pair])
                dense[least : least + len(summed)] += summed.astype(np.int64)
        return dense.reshape(self.high - self.low, self.size)

    def details(self, selected: Flags) -> Ints:
        """Records of selected groups by category.

        Parameters
        ----------
        selected : numpy.ndarray of bool, shape (areas, groups)

        Returns
        -------
        numpy.ndarray of int64, shape (selected groups, categories)
            In the order of ``numpy.flatnonzero(selected)``.
        """
        chosen = np.flatnonzero(selected)
        cells = np.zeros(len(chosen) * self.categories, dtype=np.int64)
        place = np.full(selected.size, -1, dtype=np.int32)
        place[chosen] = np.arange(len(chosen))
        pairs = self.pairs
        in_areas: Flags = np.asarray(selected.any(axis=1))
        near = np.flatnonzero(in_areas[pairs.region - self.low]) if len(chosen) else NOTHING
        for some in _stretches(len(near)):
            pair, group = self._groups(near[some])
            wanted = place[group] >= 0
            pair, at = pair[wanted], place[group[wanted]].astype(np.int64) * self.categories
            for part in _stretches(len(pair)):
                starts = pairs.starts[pair[part]]
                lengths = pairs.starts[pair[part] + 1] - starts
                triple = number_ranges(starts, lengths)
                cell = np.repeat(at[part], lengths) + pairs.category[triple]
                if len(cell):
                    least = int(cell.min())
                    summed = np.bincount(cell - least, weights=pairs.count[triple])
                    cells[least : least + len(summed)] += summed.astype(np.int64)
        return cells.reshape(-1, self.categories)

    def _groups(self, numbers: Ints) -> tuple[Ints, Ints]:
        """Every group that some pairs count in: numbers of the pairs and places of the groups, one entry for each."""
        lengths, of_space = self.lists.at(self.pairs.key[numbers])
        row = (self.pairs.region[numbers].astype(np.int64) - self.low) * self.size
        return np.repeat(numbers, lengths), np.repeat(row, lengths) + of_space


@dataclass(frozen=True, eq=False, repr=False)
class PartCounts(Sealed):
    """Exact counts of some records by areas of some kinds."""

    in_no_group: int  # how many of the records are in no group of any kind of areas
    kinds: Mapping[str, KindCounts]

    def of_kinds(self, kinds: Collection[str]) -> "PartCounts":
        """The same of some kinds of areas alone."""
        return replace(self, kinds={kind: of for kind, of in self.kinds.items() if kind in kinds})

    @property
    def bytes(self) -> int:
        """What the counts take."""
        lists = {id(of.lists): of.lists.bytes for of in self.kinds.values()}
        return sum(of.pairs.bytes for of in self.kinds.values()) + sum(lists.values())

    def filed(self, folder: Path) -> "PartCounts":
        """The same with its arrays in files of a folder that is made."""
        folder.mkdir()
        spaces: dict[int, Lists] = {}
        kinds = {}
        for number, (kind, of) in enumerate(self.kinds.items()):
            if id(of.lists) not in spaces:
                spaces[id(of.lists)] = filed(of.lists, folder / f"space-{number}")
            pairs = filed(of.pairs, folder / f"pairs-{number}")
            kinds[kind] = replace(of, lists=spaces[id(of.lists)], pairs=pairs)
        return replace(self, kinds=kinds)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CountedAreas(Sealed):
    """Exact counts of some areas of a kind: sums over parts of the records, which are read one at a time."""

    kind: str  # empty where there are no areas, but records are told of
    # low, high: places of the first area, and of the one after the last
    low: int
    high: int
    size: int  # how many groups the areas show
    categories: int
    parts: Sequence[KindCounts]  # no record is in two of them
    in_no_group: int = 0  # how many records are in no group of any kind of areas; told once

    def totals(self, counted: Flags | None = None) -> Ints:
        """Records of every group, shape (areas, groups): see `KindCounts.totals`."""
        summed = np.zeros((self.high - self.low, self.size), dtype=np.int64)
        for part in self.parts:
            summed += part.within(self.low, self.high).totals(counted)
        return summed

    def details(self, selected: Flags) -> Ints:
        """Records of selected groups by category: see `KindCounts.details`."""
        summed = np.zeros((int(selected.sum()), self.categories), dtype=np.int64)
        if len(summed):
            for part in self.parts:
                summed += part.within(self.low, self.high).details(selected)
        return summed


def _stretches(length: int) -> Iterator[slice]:
    """Stretches of a long list that bound what is held at a time."""
    for first in range(0, length, _PAIRS_AT_ONCE):
        yield slice(first, min(first + _PAIRS_AT_ONCE, length))


_GROUPS_AT_ONCE: Final = 1 << 19
"""So many groups of areas are given at a time."""


class GatheredCounts(Sealed, AbstractContextManager["GatheredCounts"]):
    """Parts that have no record in common: in memory while they are small, else in private files.

    A context: the files are gone at its end.
    """

    def __init__(self, memory: int) -> None:
        """Keep so many bytes of counts in memory at most."""
        self._memory, self._held = memory, 0
        self._parts: list[PartCounts] = []
        self._in_memory: list[PartCounts] = []
        self._open = ExitStack()
        self._folder: Path | None = None

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
            self._parts.append(part.filed(folder / str(len(self._parts))))
        self._in_memory, self._held = [], 0

    @property
    def parts(self) -> Sequence[PartCounts]:
        """What was taken."""
        return [*self._parts, *self._in_memory]

    def areas(self, areas: GroupAreas, first: tuple[int, int] | None = None) -> Iterator[CountedAreas]:
        """What was gathered, by area: each area of a kind once and whole; kinds that cross slices come last.

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
        yield CountedAreas("", 0, 0, 0, 0, (), sum(part.in_no_group for part in parts))
        for kind in sorted(one.kinds, key=areas.crosses):
            size, categories = one.kinds[kind].size, one.kinds[kind].categories
            for low, high in areas.stretches(kind, first, _GROUPS_AT_ONCE // max(1, size)):
                some = [part.kinds[kind] for part in parts if part.kinds[kind].has(low, high)]
                yield CountedAreas(kind, low, high, size, categories, some)


class Taker(Sealed):
    """Makes of what a shard counted what is kept of it here, as soon as it is there: this one keeps it as it is."""

    def take(self, counted: Any) -> Any:  # noqa: ANN401 (of whatever a task counts)
        """What is kept of one shard."""
        return counted

    def forget(self) -> None:
        """Drop all that was taken: the records are counted anew, in other shards."""


class GatheredShards(Taker, AbstractContextManager["GatheredShards"]):
    """What shards counted, by pass or file of which each has counted parts.

    A context: what is gathered is gone at its end.
    """

    def __init__(self, memory: int) -> None:
        """Keep so many bytes of counts in memory at most."""
        self._memory = memory
        self._open = ExitStack()
        self.each: list[GatheredCounts] = []

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
