"""Records counted by region, by the key of what they answer and by category, with one sort."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Flags, Indices, Ints

Categories: TypeAlias = NDArray[np.uint8] | NDArray[np.uint16]

NOTHING: Final = np.zeros(0, dtype=np.int64)

_BITS: Final = 63


@dataclass(frozen=True, eq=False)
class CountedPairs:
    """Records counted by region and key, and within these by category.

    Attributes
    ----------
    region, key : numpy.ndarray of int32, shape (pairs,)
        Ascending by both as they are counted.
    starts : numpy.ndarray of int64, shape (pairs + 1,)
        Where the categories of each pair begin.
    category : numpy.ndarray of uint8 or uint16
    count : numpy.ndarray of int32
        Records of each category of each pair.
    """

    region: Indices
    key: Indices
    starts: Ints
    category: Categories
    count: Indices

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


def count_pairs(region: Indices, key: Indices, category: Categories, categories: int) -> CountedPairs:
    """Count records by region, key and category; those of region -1 are in none.

    The three are packed into one number, so that one sort finds what is equal.
    """
    if region.min(initial=0) < 0:
        inside = region >= 0
        region, key, category = region[inside], key[inside], category[inside]
    bits = _Bits.of(region, key, categories)
    packed = bits.packed(region, key, category)
    packed.sort()
    first = _firsts(packed)
    return bits.unpacked(packed[first], np.diff(np.append(first, len(packed))), category.dtype)


def merge_pairs(pairs: CountedPairs, region_of: Indices, categories: int) -> CountedPairs:
    """The same records by larger regions: each region gives the one it is in, or -1."""
    lengths = np.diff(pairs.starts)
    region, key = np.repeat(region_of[pairs.region], lengths), np.repeat(pairs.key, lengths)
    inside = region >= 0
    bits = _Bits.of(region, pairs.key, categories)
    packed = bits.packed(region[inside], key[inside], pairs.category[inside])
    order = np.argsort(packed)
    packed = packed[order]
    first = _firsts(packed)
    counts = pairs.count[inside][order]
    summed = np.add.reduceat(counts, first, dtype=np.int64) if len(first) else NOTHING
    return bits.unpacked(packed[first], summed, pairs.category.dtype)


@dataclass(frozen=True, slots=True)
class _Bits:
    """How many bits of a packed number hold the key, and how many below it the category."""

    key: int
    category: int

    @staticmethod
    def of(region: Indices, key: Indices, categories: int) -> "_Bits":
        """As many as they need.

        Raises
        ------
        ValueError
            If there is no room for the region.
        """
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
