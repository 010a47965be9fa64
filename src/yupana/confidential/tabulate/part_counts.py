"""Exact counts of population groups: of some records, by areas of some kinds."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

import numpy as np

from yupana.arrays import Flags, Indices, Ints
from yupana.confidential.tabulate.lists import Lists, number_ranges
from yupana.confidential.tabulate.pairs import NOTHING, CountedPairs
from yupana.privacy.sealed import Sealed

_PAIRS_AT_ONCE: Final = 250_000
_CELLS_AT_ONCE: Final = 1 << 22


@dataclass(frozen=True, eq=False, repr=False)
class PartCounts(Sealed):
    """Exact counts of some records by areas of some kinds.

    Attributes
    ----------
    records : int
    in_no_group : int
        Of these, how many are in no group of any kind of areas.
    categories : int
    ranges : mapping of kind to tuple of int and int
        Places in `GroupAreas.ids` of the first area that may have counts, and of the one after the last. Of areas that
        cross slices the counts are parts of sums.
    sizes : mapping of kind to int
        How many groups areas of the kind show.
    singles : int
        How many keys are single codes. Larger ones are sets of several, numbered as they were found.
    spaces : tuple of Lists
        The groups of each key; areas of several kinds may show the same.
    space_of : mapping of kind to int
        Its place in `spaces`.
    pairs : mapping of kind to CountedPairs
        Of keys by area.
    """

    records: int
    in_no_group: int
    categories: int
    ranges: Mapping[str, tuple[int, int]]
    sizes: Mapping[str, int]
    singles: int
    spaces: tuple[Lists, ...]
    space_of: Mapping[str, int]
    pairs: Mapping[str, CountedPairs]

    @property
    def bytes(self) -> int:
        """What the counts take."""
        return sum(pairs.bytes for pairs in self.pairs.values()) + sum(lists.bytes for lists in self.spaces)

    def has(self, kind: str, low: int, high: int) -> bool:
        """Whether there are counts of areas of a kind from place ``low`` to below ``high``."""
        first, last = places_of(self.pairs[kind].region, low, high)
        return first < last

    def within(self, kind: str, low: int, high: int) -> "PartCounts":
        """The counts of some areas of a kind alone, from place ``low`` to below ``high``; of no records."""
        pairs = self.pairs[kind]
        first, last = places_of(pairs.region, low, high)
        return self.of_kind(kind, low, high, self.spaces[self.space_of[kind]], pairs.part(first, last))

    def of_kind(self, kind: str, low: int, high: int, lists: Lists, pairs: CountedPairs) -> "PartCounts":
        """Some areas of a kind, with these arrays."""
        return replace(
            self,
            records=0,
            in_no_group=0,
            ranges={kind: (low, high)},
            spaces=(lists,),
            space_of={kind: 0},
            pairs={kind: pairs},
        )

    def totals(self, kind: str, counted: Flags | None = None) -> Ints:
        """Records of every group, shape (areas, groups).

        Parameters
        ----------
        kind : str
        counted : numpy.ndarray of bool, shape (categories,), optional
            Which categories count; all by default.
        """
        low, high = self.ranges[kind]
        size = self.sizes[kind]
        dense = np.zeros((high - low) * size, dtype=np.int64)
        pairs = self.pairs[kind]
        totals = pairs.totals(counted)
        for some in _stretches(len(pairs.key)):
            pair, group = self._groups(kind, np.arange(some.start, some.stop), low)
            if len(group):
                least = int(group.min())
                summed = np.bincount(group - least, weights=totals[pair])
                dense[least : least + len(summed)] += summed.astype(np.int64)
        return dense.reshape(high - low, size)

    def details(self, kind: str, selected: Flags) -> Ints:
        """Records of selected groups by category.

        Parameters
        ----------
        kind : str
        selected : numpy.ndarray of bool, shape (areas, groups)

        Returns
        -------
        numpy.ndarray of int64, shape (selected groups, categories)
            In the order of ``numpy.flatnonzero(selected)``.
        """
        low, _ = self.ranges[kind]
        chosen = np.flatnonzero(selected)
        cells = np.zeros(len(chosen) * self.categories, dtype=np.int64)
        place = np.full(selected.size, -1, dtype=np.int32)
        place[chosen] = np.arange(len(chosen))
        pairs = self.pairs[kind]
        in_areas: Flags = np.asarray(selected.any(axis=1))
        near = np.flatnonzero(in_areas[pairs.region - low]) if len(chosen) else NOTHING
        for some in _stretches(len(near)):
            pair, group = self._groups(kind, near[some], low)
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

    def _groups(self, kind: str, numbers: Ints, low: int) -> tuple[Ints, Ints]:
        """Every group that some pairs count in: numbers of the pairs and places of the groups, one entry for each."""
        pairs, lists = self.pairs[kind], self.spaces[self.space_of[kind]]
        key = pairs.key[numbers]
        starts = lists.starts[key]
        lengths = lists.starts[key + 1] - starts
        of_space = lists.values[number_ranges(starts, lengths)]
        row = (pairs.region[numbers].astype(np.int64) - low) * self.sizes[kind]
        return np.repeat(numbers, lengths), np.repeat(row, lengths) + of_space


def places_of(region: Indices, low: int, high: int) -> tuple[int, int]:
    """Where the pairs of regions from ``low`` to below ``high`` begin and end, where they ascend by region."""
    # Of the type of the regions, or all of these would be copied, from disk too.
    first, last = np.searchsorted(region, np.array([low, high], dtype=region.dtype)).tolist()
    return first, last


class CountedPart(Protocol):
    """What `PartCounts` tells, wherever its arrays are."""

    @property
    def records(self) -> int:
        """How many are counted."""
        ...

    @property
    def in_no_group(self) -> int:
        """How many of these are in no group of any kind of areas."""
        ...

    @property
    def categories(self) -> int:
        """How many there are."""
        ...

    @property
    def ranges(self) -> Mapping[str, tuple[int, int]]:
        """The areas that may have counts, by kind."""
        ...

    @property
    def sizes(self) -> Mapping[str, int]:
        """How many groups areas of each kind show."""
        ...

    def has(self, kind: str, low: int, high: int) -> bool:
        """Whether there are counts of areas of a kind from place ``low`` to below ``high``."""
        ...

    def within(self, kind: str, low: int, high: int) -> PartCounts:
        """The counts of some areas of a kind alone, from place ``low`` to below ``high``; of no records."""
        ...


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CountedAreas(Sealed):
    """Exact counts of some areas of a kind: sums over parts of the records, which are read one at a time.

    Attributes
    ----------
    kind : str
        Empty where there are no areas, but records are told of.
    low, high : int
        Places of the first area, and of the one after the last.
    size : int
        How many groups the areas show.
    categories : int
    parts : sequence of CountedPart
        No record is in two of them.
    records, in_no_group : int
        How many records were counted before this, and how many of them are in no group of any kind of areas; told once.
    """

    kind: str
    low: int
    high: int
    size: int
    categories: int
    parts: Sequence[CountedPart]
    records: int = 0
    in_no_group: int = 0

    def totals(self, counted: Flags | None = None) -> Ints:
        """Records of every group, shape (areas, groups): see `PartCounts.totals`."""
        summed = np.zeros((self.high - self.low, self.size), dtype=np.int64)
        for part in self.parts:
            summed += part.within(self.kind, self.low, self.high).totals(self.kind, counted)
        return summed

    def details(self, selected: Flags) -> Ints:
        """Records of selected groups by category: see `PartCounts.details`."""
        summed = np.zeros((int(selected.sum()), self.categories), dtype=np.int64)
        if len(summed):
            for part in self.parts:
                summed += part.within(self.kind, self.low, self.high).details(self.kind, selected)
        return summed


@dataclass(eq=False)
class SummedCounts:
    """Exact counts of areas of a kind that cross slices, added up slice by slice; only cells that are not empty."""

    areas: int
    groups: int
    categories: int
    _cells: list[tuple[Ints, Ints]] = field(default_factory=list)
    _added: int = 0
    """How many cells were noted since they were last added up."""

    def add(self, found: CountedAreas) -> None:
        """Add the counts of a slice."""
        occupied = found.totals() > 0
        numbers = np.flatnonzero(occupied)
        step = max(1, _CELLS_AT_ONCE // self.categories)
        for first in range(0, len(numbers), step):
            some = numbers[first : first + step]
            selected = np.zeros(occupied.size, dtype=bool)
            selected[some] = True
            cells = found.details(selected.reshape(occupied.shape))
            present = cells > 0
            self._cells.append(
                ((some[:, None] * self.categories + np.arange(self.categories))[present], cells[present])
            )
            self._added += int(present.sum())
        if self._added > max(_CELLS_AT_ONCE, sum(len(numbers) for numbers, _ in self._cells) // 2):
            self._add_up()

    def _add_up(self) -> None:
        """Note each cell once; slice after slice, the same ones come again."""
        numbers = np.concatenate([numbers for numbers, _ in self._cells])
        order = np.argsort(numbers, kind="stable")
        numbers = numbers[order]
        counts = np.concatenate([counts for _, counts in self._cells])[order]
        first = np.flatnonzero(np.append(True, numbers[1:] != numbers[:-1]))
        self._cells = [(numbers[first], np.add.reduceat(counts, first))]
        self._added = 0

    def totals(self, counted: Flags | None = None) -> Ints:
        """Records of every group, shape (areas, groups): see `PartCounts.totals`."""
        summed = np.zeros(self.areas * self.groups, dtype=np.int64)
        for numbers, counts in self._cells:
            group, category = np.divmod(numbers, self.categories)
            weights = counts if counted is None else counts * counted[category]
            summed += np.bincount(group, weights=weights, minlength=len(summed)).astype(np.int64)
        return summed.reshape(self.areas, self.groups)

    def details(self, selected: Flags) -> Ints:
        """Records of selected groups by category: see `PartCounts.details`."""
        chosen = np.flatnonzero(selected)
        place = np.full(selected.size, -1, dtype=np.int64)
        place[chosen] = np.arange(len(chosen))
        cells = np.zeros(len(chosen) * self.categories, dtype=np.int64)
        for numbers, counts in self._cells:
            group, category = np.divmod(numbers, self.categories)
            wanted = place[group] >= 0
            at = place[group[wanted]] * self.categories + category[wanted]
            cells += np.bincount(at, weights=counts[wanted], minlength=len(cells)).astype(np.int64)
        return cells.reshape(-1, self.categories)


def _stretches(length: int) -> Iterator[slice]:
    """Stretches of a long list that bound what is held at a time."""
    for first in range(0, length, _PAIRS_AT_ONCE):
        yield slice(first, min(first + _PAIRS_AT_ONCE, length))
