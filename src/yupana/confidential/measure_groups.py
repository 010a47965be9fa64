"""Measure population groups in the cells of the choice that each of them gets: all, or as a first total allows.

The counts of a group are those of its choice, whichever it is, so that every cell has the noise of one measurement
(docs/tables-privacy.md, theorem 4; docs/safetab-privacy.md).

Groups are measured as their areas are counted, slice after slice of the country, so that the counts of a nation are
never held at once. Groups that published totals list are added up and come last.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Flags, Ints
from yupana.confidential.tabulate.group_counts import CountedAreas
from yupana.plan.ledger import Ledger, Meter
from yupana.plan.measurement import Measurement
from yupana.privacy.entropy import Entropy
from yupana.privacy.sealed import Sealed
from yupana.products.described.published import PublishedGroups
from yupana.products.tables import Family, Groups
from yupana.release.tables import Coded

_GROUPS_AT_ONCE: Final = 1 << 20

Details = Callable[[Flags], Ints]
"""Counts in the finest cells of the groups chosen, shape (areas, groups) to (chosen groups, cells), in order."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class GroupCounts(Sealed):
    """Exact counts of the groups of some areas, area after area."""

    first: int  # place of the first of the areas
    totals: Ints  # shape (areas, groups)
    details: Details  # gives the counts in the finest cells of those groups that are counted so


@dataclass(frozen=True, slots=True)
class Choosing:
    """What decides which choice of a family a group gets."""

    total: Measurement | None = None  # of the noisy total, which is not published; None where there is none
    thresholds: tuple[int, ...] = ()  # a group gets the second choice from the first number on, and so on
    # the largest noisy count of the first choice, a total, that is left out; None where none is
    left_out_up_to: int | None = None

    def choice(self, totals: Ints) -> NDArray[np.int8]:
        """Which choice each group gets by its total: as many thresholds as it reaches."""
        return np.searchsorted(np.array(self.thresholds, dtype=np.int64), totals, side="right").astype(np.int8)


@dataclass(frozen=True, slots=True)
class LevelGroups:
    """The population groups of a level that have one measurement, and what of them is published."""

    kind: str  # of the areas, as they are counted by and tables write it
    # areas, groups: codes
    areas: Sequence[str]
    groups: Sequence[str]
    places: Ints  # which of the groups these are
    measured: Measurement
    family: Family  # whose choices they are counted in
    published: Family  # the same, or that of its first choice alone
    choosing: Choosing

    def shown(self, choice: int, places: Ints, counts: Ints) -> Groups:
        """Groups by their places, area after area, as they are published: without what is left out."""
        if choice == 0 and (most := self.choosing.left_out_up_to) is not None:
            kept = counts[:, 0] > most
            places, counts = places[kept], counts[kept]
        area, group = np.divmod(places, len(self.groups))
        codes = Coded(self.areas, area), Coded(self.groups, group)
        return Groups(self.published, choice, self.kind, *codes, counts, self.measured)


@dataclass(slots=True)
class LevelMeasurer:
    """Passes the counts of a level through the door, some areas at a time; each area once."""

    level: LevelGroups
    ledger: Ledger
    entropy: Entropy
    _total: Meter | None = field(default=None, init=False)
    _cells: Meter = field(init=False)

    def __post_init__(self) -> None:
        level, groups = self.level, len(self.level.areas) * len(self.level.places)
        if level.choosing.total is not None:
            self._total = self.ledger.open(level.choosing.total, groups)
        self._cells = self.ledger.open(level.measured, groups)

    def measure(self, exact: GroupCounts) -> Iterator[Groups]:
        """Measure the groups of some areas."""
        level, width = self.level, len(self.level.places)
        totals, first = exact.totals[:, level.places].ravel(), exact.first * width
        choice = np.zeros(len(totals), dtype=np.int8)
        if self._total is not None:
            for some in stretches(len(totals), width):
                begin, ones = first + some.start, np.ones(some.stop - some.start, dtype=np.int64)
                noisy = self._total.measure(begin, ones, totals[some], self._total.stream(begin, self.entropy))
                choice[some] = level.choosing.choice(noisy)
        rows = np.flatnonzero(needs_cells(level.family, choice))
        chosen = np.zeros(exact.totals.shape, dtype=bool)
        chosen[rows // width, level.places[rows % width]] = True
        finest = exact.details(chosen) if len(rows) else np.zeros((0, level.family.measured), dtype=np.int64)
        places = (exact.first + np.arange(len(exact.totals)))[:, None] * len(level.groups) + level.places
        counted = ChosenCounts(first, places.ravel(), choice, totals, rows, finest)
        for some in stretches(len(totals), width):
            yield from _measure_chosen(level, counted, some, self._cells, self.entropy)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ChosenCounts(Sealed):
    """Exact counts of some groups, and which choice each of them gets."""

    first: int  # number of the first group in its measurement
    places: Ints  # shape (groups,): where they stand among those of all areas
    choice: NDArray[np.int8]  # shape (groups,)
    totals: Ints  # shape (groups,)
    rows: Ints  # the groups that are counted in cells, ascending
    finest: Ints  # shape (these groups, cells of the finest choice)


def needs_cells(family: Family, choice: NDArray[np.int8]) -> Flags:
    """Which groups are counted in more cells than their total."""
    return np.array([of.measured > 1 for of in family.choices])[choice]


def _measure_chosen(
    level: LevelGroups, counts: ChosenCounts, some: slice, meter: Meter, entropy: Entropy
) -> Iterator[Groups]:
    """Measure some groups, each in the cells of its choice: the groups of every choice that may be published."""
    choice, family = counts.choice[some], level.family
    width = np.array([of.measured for of in family.choices])[choice]
    starts = np.cumsum(width) - width
    exact = np.zeros(int(width.sum()), dtype=np.int64)
    of_choice = [np.flatnonzero(choice == number) for number in range(len(family.choices))]
    for of, groups in zip(family.choices, of_choice, strict=True):
        if of.measured == 1:
            exact[starts[groups]] = counts.totals[some][groups]
            continue
        finest = counts.finest[np.searchsorted(counts.rows, groups + some.start)]
        for cell, holds in enumerate(of.finest):
            exact[starts[groups] + holds] += finest[:, cell]
    first = counts.first + some.start
    noisy = meter.measure(first, width, exact, meter.stream(first, entropy))
    for number, of in enumerate(level.published.choices):
        groups = of_choice[number]
        yield level.shown(
            number, counts.places[groups + some.start], noisy[starts[groups, None] + np.arange(of.measured)]
        )


def stretches(groups: int, width: int) -> Iterable[slice]:
    """Whole areas of ``width`` groups, so many at a time that what is held stays small."""
    step = max(1, _GROUPS_AT_ONCE // max(width, 1)) * width
    for start in range(0, groups, max(step, 1)):
        yield slice(start, min(start + step, groups))


class CellSums:
    """Adds up categories into the cells of a table.

    Attributes
    ----------
    counted : ndarray of bool, shape (categories,), or None
        The categories that some cell counts; None for all.
    """

    def __init__(self, members: Flags) -> None:
        """Of each cell, shape (cells, categories), the categories that it counts: one at least."""
        some: Flags = np.asarray(members.any(axis=0))
        self.counted = None if some.all() else some
        of_cell = [np.flatnonzero(row) for row in members]
        self._order = np.concatenate(of_cell)
        self._starts = np.cumsum([0, *map(len, of_cell[:-1])])
        self._alone = len(self._order) == len(of_cell)

    def of(self, by_category: Ints) -> Ints:
        """Counts by cell, from counts by category."""
        found: Ints = by_category[:, self._order]
        return found if self._alone else np.add.reduceat(found, self._starts, axis=1)


@dataclass(frozen=True, slots=True)
class SlicedLevel:
    """A table at a level whose groups are measured as they are counted."""

    columns: slice  # of the level's groups among all that areas of its kind show
    cells: CellSums
    groups: LevelGroups


@dataclass(eq=False, repr=False)
class ListedLevel(Sealed):
    """The groups of a level that published totals list, and what has been counted of them."""

    kind: str  # of the areas
    columns: slice  # as `SlicedLevel` has it
    listed: PublishedGroups  # by the places of the areas, and of the groups within the level
    wanted: Flags  # shape (groups,): which are counted by category
    tables: Mapping[str, CellSums]  # the tables that are measured of them
    categories: int
    totals: dict[str, Ints] = field(init=False)
    by_category: Ints = field(init=False)
    not_listed: int = field(default=0, init=False)
    """How often records of the areas count in a group of the level that is not listed."""

    def __post_init__(self) -> None:
        self.totals = {table: np.zeros(len(self.wanted), dtype=np.int64) for table in self.tables}
        self.by_category = np.zeros((int(self.wanted.sum()), self.categories), dtype=np.int64)

    def add(self, counts: "AreaCounts") -> None:
        """Add what was counted of some areas."""
        found = counts.counted
        begin, end = np.searchsorted(self.listed.area, [found.low, found.high])
        row = self.listed.area[begin:end] - found.low
        column = self.columns.start + self.listed.group[begin:end]
        every = counts.totals(None)
        self.not_listed += int(every[:, self.columns].sum()) - int(every[row, column].sum())
        for table, cells in self.tables.items():
            self.totals[table][begin:end] += counts.totals(cells.counted)[row, column]
        wanted = self.wanted[begin:end]
        if wanted.any():
            selected = np.zeros(every.shape, dtype=bool)
            selected[row[wanted], column[wanted]] = True
            # Groups ascend by area and place, as selected ones do.
            first = int(self.wanted[:begin].sum())
            self.by_category[first : first + int(wanted.sum())] += found.details(selected)

    def measure(self, table: str, groups: LevelGroups, ledger: Ledger, entropy: Entropy) -> Iterator[Groups]:
        """Measure the groups in the cells of a table that their published totals allow."""
        # Other tables may need more groups by category.
        cells, row = self.tables[table], np.cumsum(self.wanted) - 1

        def finest(rows: Ints) -> Ints:
            return cells.of(self.by_category[row[rows]])

        return measure_listed(groups, self.listed, self.totals[table], finest, ledger, entropy)


@dataclass(frozen=True, eq=False, repr=False)
class AreaCounts(Sealed):
    """Exact counts of some areas, with the totals that some table has asked for."""

    counted: CountedAreas
    _found: dict[bytes, Ints] = field(default_factory=dict, init=False)

    def totals(self, counted: Flags | None) -> Ints:
        """Records of every group, shape (areas, groups), which several tables may ask for."""
        key = b"" if counted is None else counted.tobytes()
        if key not in self._found:
            self._found[key] = self.counted.totals(counted)
        return self._found[key]

    def in_cells(self, cells: CellSums, columns: slice, chosen: Flags) -> Ints:
        """Counts of the chosen groups of a level in the cells of a table."""
        selected = np.zeros((len(chosen), self.counted.size), dtype=bool)
        selected[:, columns] = chosen
        return cells.of(self.counted.details(selected))


def measure_slices(
    counted: Iterable[CountedAreas],
    levels: Sequence[SlicedLevel],
    listed: Sequence[ListedLevel],
    ledger: Ledger,
    entropy: Entropy,
) -> Iterator[Groups]:
    """Measure levels as their areas are counted.

    Parameters
    ----------
    levels : sequence of SlicedLevel
        Those of a kind of areas together, in the order in which they are measured.
    listed : sequence of ListedLevel
        Others that are added up, not measured.
    """
    open_levels = [(level, LevelMeasurer(level.groups, ledger, entropy)) for level in levels]
    for found in counted:
        counts = AreaCounts(found)
        for level, measurer in open_levels:
            if level.groups.kind == found.kind:
                totals = counts.totals(level.cells.counted)[:, level.columns]
                details = partial(counts.in_cells, level.cells, level.columns)
                yield from measurer.measure(GroupCounts(found.low, totals, details))
        for one in listed:
            if one.kind == found.kind:
                one.add(counts)


def measure_listed(
    groups: LevelGroups,
    listed: PublishedGroups,
    totals: Ints,
    finest: Callable[[Ints], Ints],
    ledger: Ledger,
    entropy: Entropy,
) -> Iterator[Groups]:
    """Measure the groups of a level that published totals list, whose choices these decide.

    Parameters
    ----------
    listed : PublishedGroups
        By their places.
    totals : ndarray of int64, shape (groups,)
    finest : callable
        Gives the counts of some of them in the finest cells.
    """
    if not len(listed.area):
        return
    choice = groups.choosing.choice(listed.total)
    rows = np.flatnonzero(needs_cells(groups.family, choice))
    places = listed.area * len(groups.groups) + listed.group
    counts = ChosenCounts(0, places, choice, totals, rows, finest(rows))
    meter = ledger.open(groups.measured, len(places))
    for some in stretches(len(places), 1):
        yield from _measure_chosen(groups, counts, some, meter, entropy)
