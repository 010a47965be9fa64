"""Measure population groups as their areas are counted, slice after slice of the country.

Areas that may lie in more than one slice, and groups that published totals list, are added up and come last; all others
are measured before the next slice is read, so that the counts of a nation are never held at once.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from yupana.arrays import Flags, Ints
from yupana.confidential.choices import (
    ChosenCounts,
    GroupCounts,
    LevelGroups,
    LevelMeasurer,
    measure_chosen,
    needs_cells,
    stretches,
)
from yupana.confidential.tabulate.group_counts import CountedAreas, SummedCounts
from yupana.confidential.tabulate.group_tabulation import GroupAreas, GroupTabulation
from yupana.plan.ledger import Ledger
from yupana.privacy.entropy import Entropy
from yupana.privacy.sealed import Sealed
from yupana.products.tables import Groups


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
    """A table at a level whose groups are measured as they are counted.

    Attributes
    ----------
    kind : str
        Of the areas, as they are counted by.
    columns : slice
        Of the level's groups among all that areas of its kind show.
    cells : CellSums
    groups : LevelGroups
    """

    kind: str
    columns: slice
    cells: CellSums
    groups: LevelGroups


@dataclass(eq=False, repr=False)
class ListedLevel(Sealed):
    """The groups of a level that published totals list, and what has been counted of them.

    Attributes
    ----------
    kind : str
        Of the areas.
    columns : slice
        As `SlicedLevel` has it.
    area, group : ndarray of int64, shape (groups,)
        Places of the areas and of the groups within the level, ascending.
    published : ndarray of int64, shape (groups,)
        Their totals, as published.
    wanted : ndarray of bool, shape (groups,)
        Which are counted by category.
    tables : mapping of str to CellSums
        The tables that are measured of them.
    categories : int
    """

    kind: str
    columns: slice
    area: Ints
    group: Ints
    published: Ints
    wanted: Flags
    tables: Mapping[str, CellSums]
    categories: int
    totals: dict[str, Ints] = field(init=False)
    by_category: Ints = field(init=False)
    not_listed: int = field(default=0, init=False)
    """How often records of the areas count in a group of the level that is not listed."""

    def __post_init__(self) -> None:
        self.totals = {table: np.zeros(len(self.area), dtype=np.int64) for table in self.tables}
        self.by_category = np.zeros((int(self.wanted.sum()), self.categories), dtype=np.int64)

    def add(self, low: int, high: int, counts: "AreaCounts") -> None:
        """Add what was counted of the areas from place ``low`` up to ``high``."""
        begin, end = np.searchsorted(self.area, [low, high])
        row, column = self.area[begin:end] - low, self.columns.start + self.group[begin:end]
        every = counts.of(None)
        self.not_listed += int(every[:, self.columns].sum()) - int(every[row, column].sum())
        for table, cells in self.tables.items():
            self.totals[table][begin:end] += counts.of(cells.counted)[row, column]
        wanted = self.wanted[begin:end]
        if wanted.any():
            selected = np.zeros(every.shape, dtype=bool)
            selected[row[wanted], column[wanted]] = True
            # Groups ascend by area and place, as selected ones do.
            first = int(self.wanted[:begin].sum())
            self.by_category[first : first + int(wanted.sum())] += counts.details(selected)

    def measure(self, table: str, groups: LevelGroups, ledger: Ledger, entropy: Entropy) -> Iterator[Groups]:
        """Measure the groups in the cells of a table that their published totals allow."""
        choice = groups.choosing.choice(self.published)
        rows = np.flatnonzero(needs_cells(groups.family, choice))
        # Other tables may need more groups by category.
        finest = self.tables[table].of(self.by_category[(np.cumsum(self.wanted) - 1)[rows]])
        places = self.area * len(groups.groups) + self.group
        exact = ChosenCounts(0, choice, self.totals[table], rows, finest)
        return measure_listed(groups, places, exact, ledger, entropy)


@dataclass(frozen=True, eq=False, repr=False)
class AreaCounts(Sealed):
    """Exact counts of the groups of some areas of a kind: totals, and counts by category.

    Attributes
    ----------
    first : int
        Place of the first area.
    totals : callable
        Of the categories that count, or None for all, the totals, shape (areas, groups).
    details : callable
        Of the groups selected, counts by category.
    """

    first: int
    totals: Callable[[Flags | None], Ints]
    details: Callable[[Flags], Ints]
    _found: dict[bytes, Ints] = field(default_factory=dict, init=False)

    def of(self, counted: Flags | None) -> Ints:
        """Totals, which several tables may ask for."""
        key = b"" if counted is None else counted.tobytes()
        if key not in self._found:
            self._found[key] = self.totals(counted)
        return self._found[key]

    def in_cells(self, cells: CellSums, columns: slice, chosen: Flags) -> Ints:
        """Counts of the chosen groups of a level in the cells of a table."""
        selected = np.zeros(self.of(cells.counted).shape, dtype=bool)
        selected[:, columns] = chosen
        return cells.of(self.details(selected))


def counts_in(found: CountedAreas) -> AreaCounts:
    """What was counted of some areas."""
    return AreaCounts(found.low, found.totals, found.details)


def add_up(found: CountedAreas, listed: Sequence[ListedLevel]) -> None:
    """Add what was counted of some areas to levels of groups that totals list."""
    counts = counts_in(found)
    for one in listed:
        if one.kind == found.kind:
            one.add(found.low, found.high, counts)


def measure_slices(
    counted: Iterable[CountedAreas],
    areas: GroupAreas,
    tabulation: GroupTabulation,
    levels: Sequence[SlicedLevel],
    listed: Sequence[ListedLevel],
    ledger: Ledger,
    entropy: Entropy,
) -> Iterator[Groups]:
    """Measure levels as their areas are counted; those that may lie in more than one slice come last.

    Parameters
    ----------
    counted : iterable of CountedAreas
    areas : GroupAreas
    tabulation : GroupTabulation
        By which they were counted.
    levels : sequence of SlicedLevel
        Those of a kind of areas together, in the order in which they are measured.
    listed : sequence of ListedLevel
        Others that are added up, not measured.
    ledger : Ledger
    entropy : Entropy
    """
    open_levels = [(level, LevelMeasurer(level.groups, ledger, entropy)) for level in levels]
    kinds = dict.fromkeys(level.kind for level in levels)

    def measure(kind: str, counts: AreaCounts) -> Iterator[Groups]:
        for level, measurer in open_levels:
            if level.kind == kind:
                totals = counts.of(level.cells.counted)[:, level.columns]
                details = partial(counts.in_cells, level.cells, level.columns)
                yield from measurer.measure(GroupCounts(counts.first, totals, details))

    sums = {
        kind: SummedCounts(len(areas.ids[kind]), len(tabulation.spaces[kind]), tabulation.categories)
        for kind in kinds
        if areas.crosses(kind)
    }
    for found in counted:
        if found.kind in sums:
            sums[found.kind].add(found)
        elif found.kind in kinds:
            yield from measure(found.kind, counts_in(found))
        add_up(found, listed)
    for kind, summed in sums.items():
        yield from measure(kind, AreaCounts(0, summed.totals, summed.details))


def measure_listed(
    groups: LevelGroups, listed: Ints, counts: ChosenCounts, ledger: Ledger, entropy: Entropy
) -> Iterator[Groups]:
    """Measure the groups of a level that published totals list, whose choices these decide.

    Parameters
    ----------
    groups : LevelGroups
    listed : ndarray of int64
        Places of the groups, area after area.
    counts : ChosenCounts
    ledger : Ledger
    entropy : Entropy
    """
    if groups.measured is None or not len(listed):
        return
    meter = ledger.open(groups.measured, len(listed))
    for some in stretches(len(listed), 1):
        for number, found, noisy in measure_chosen(groups.family, counts, some, meter, entropy):
            yield groups.shown(groups.family, number, listed[found], noisy, meter.measurement)
