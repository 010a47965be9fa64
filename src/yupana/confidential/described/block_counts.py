"""Count and measure the tables of a description whose areas are made of blocks, slice after slice of the country."""

from collections import Counter as Numbers
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import duckdb
import numpy as np

from yupana.arrays import Flags
from yupana.confidential.choices import LevelGroups, needs_cells
from yupana.confidential.described.blocks import key_of
from yupana.confidential.described.measure import groups_of_level
from yupana.confidential.slices import CellSums, ListedLevel, SlicedLevel, measure_slices
from yupana.confidential.tabulate.gathered import GatheredCounts
from yupana.confidential.tabulate.groups import count_groups, count_shard
from yupana.confidential.tabulate.part_counts import CountedAreas, PartCounts
from yupana.confidential.tabulate.pieces import GroupAreas, find_areas
from yupana.confidential.tabulate.tabulation import GroupTabulation, ResponseColumns
from yupana.errors import ConfigError
from yupana.files.database import named
from yupana.geography.block_file import BlockAreas, BlockFile
from yupana.plan.ledger import Ledger
from yupana.plan.predicates import Classes, TooManyClassesError, Where, classify
from yupana.plan.responses import ResponseGroup
from yupana.privacy.entropy import Entropy
from yupana.privacy.sealed import Sealed
from yupana.products.described.description import DescribedLevel, DescribedTable, Description, in_join
from yupana.products.described.published import PublishedGroups
from yupana.products.tables import Groups

_CONDITIONS = ""
"""The response of groups that columns decide: one code for each class of their conditions."""

_MOST_CATEGORIES = 1 << 12
_MOST_ANSWERS = 1 << 14


@dataclass(frozen=True)
class _BlockLevels:
    """What is counted of one file: its tables and their levels, and what tells cells and groups apart.

    Attributes
    ----------
    description : Description
    file : str
    wanted : sequence of (DescribedTable, DescribedLevel)
    """

    description: Description
    file: str
    wanted: Sequence[tuple[DescribedTable, DescribedLevel]]

    @cached_property
    def tables(self) -> tuple[DescribedTable, ...]:
        """In the order of the description."""
        return tuple({table.name: table for table, _ in self.wanted}.values())

    @cached_property
    def levels(self) -> Mapping[str, tuple[DescribedLevel, ...]]:
        """By kind of areas, in the order of the description's."""
        found = list(dict.fromkeys(level for _, level in self.wanted))
        kinds = {kind: tuple(level for level in found if level.areas == kind) for kind in self.description.areas}
        return {kind: levels for kind, levels in kinds.items() if levels}

    @cached_property
    def kinds(self) -> tuple[BlockAreas, ...]:
        """The kinds of areas, as blocks make them."""
        areas = (self.description.areas[kind] for kind in self.levels)
        return tuple(kind.blocks or BlockAreas(kind.name, (), kind.codes[0]) for kind in areas)

    @cached_property
    def cells(self) -> Classes:
        """The classes of records that no cell of any table tells apart: the categories that are counted."""
        found = self._classes([table.universe & cell for table in self.tables for cell in table.cells])
        if found.count > _MOST_CATEGORIES:
            raise self._too_many("cells of the tables")
        return found

    @cached_property
    def conditions(self) -> tuple[Where, ...]:
        """The groups that columns decide; a table may have conditions of its own for a code."""
        groups = [(table, code) for table, level in self.wanted for code in level.groups]
        return tuple(
            dict.fromkeys(
                self.description.group(table, code)
                for table, code in groups
                if not isinstance(self.description.groups.get(code), ResponseGroup)
            )
        )

    @cached_property
    def of_conditions(self) -> Classes:
        """Their classes."""
        found = self._classes(self.conditions)
        if len(found.class_of) > _MOST_ANSWERS:
            raise self._too_many("groups")
        return found

    def _classes(self, predicates: Sequence[Where]) -> Classes:
        try:
            return classify(self.description.of_record(self.tables[0]), predicates)
        except TooManyClassesError:
            raise self._too_many("cells and groups of the tables") from None

    def _too_many(self, what: str) -> ConfigError:
        return ConfigError(f"tables: the {what} of {self.file} tell too many kinds of records apart; recode columns")

    def members(self, table: DescribedTable) -> Flags:
        """Which categories each cell of a table counts, shape (cells, categories)."""
        first = 0
        for other in self.tables:
            if other is table:
                break
            first += len(other.cells)
        return self.cells.members[first : first + len(table.cells)]

    def groups(self, table: DescribedTable, level: DescribedLevel) -> tuple[ResponseGroup, ...]:
        """The groups of a level as the engine has them, as a table defines them."""
        return tuple(self._group(table, code) for code in level.groups)

    def _group(self, table: DescribedTable, code: str) -> ResponseGroup:
        found = self.description.groups.get(code)
        if isinstance(found, ResponseGroup):
            return found
        place = self.conditions.index(self.description.group(table, code))
        return ResponseGroup(_CONDITIONS, frozenset(np.flatnonzero(self.of_conditions.members[place]).tolist()))

    @cached_property
    def spaces(self) -> Mapping[str, tuple[tuple[ResponseGroup, ...], ...]]:
        """By kind of areas the groups of its levels; of one level more than once if tables define them differently."""
        found: dict[str, dict[tuple[ResponseGroup, ...], None]] = {kind: {} for kind in self.levels}
        for table, level in self.wanted:
            found[level.areas].setdefault(self.groups(table, level))
        return {kind: tuple(spaces) for kind, spaces in found.items()}

    def columns(self, table: DescribedTable, level: DescribedLevel) -> slice:
        """Where the groups of a level, as a table defines them, stand among those of its kind of areas."""
        spaces, groups = self.spaces[level.areas], self.groups(table, level)
        first = sum(map(len, spaces[: spaces.index(groups)]))
        return slice(first, first + len(groups))

    def measured_at(self, level: DescribedLevel, *, published: bool) -> list[DescribedTable]:
        """The tables of a level, of which published totals decide the detail, or not."""
        of_level = [table for table, of in self.wanted if of == level]
        return [table for table in of_level if bool(table.detail and table.detail.published) == published]

    def tabulation(self, *, bounded: bool) -> GroupTabulation:
        """What is to be counted."""
        file = self.description.files[self.file]
        responses = {}
        for name, response in self.description.responses.items():
            if response.file != self.file:
                continue
            codes = len(response.column.words)
            place = np.arange(codes)
            if response.column.blank:
                place[0] = -1
            columns = response.columns[: response.most if bounded else None]
            responses[name] = ResponseColumns(tuple(in_join(self.file, c) for c in columns), place, codes)
        if self.conditions:
            found = self.of_conditions
            responses[_CONDITIONS] = ResponseColumns((found.combination,), found.class_of, found.count)
        return GroupTabulation(
            relation=named(file.schema.relation),
            key=key_of(self.description, self.file),
            where="true",
            responses=responses,
            spaces={
                kind: tuple(group for groups in spaces for group in groups) for kind, spaces in self.spaces.items()
            },
            attribute=self.cells.combination,
            category=self.cells.class_of.astype(np.uint16),
        )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FileCounts(Sealed):
    """Exact counts of one file.

    Attributes
    ----------
    of : _BlockLevels
    areas : GroupAreas
    tabulation : GroupTabulation
    counted : iterable of CountedAreas
        Counted as they are asked for, unless they are kept.
    published : mapping of ``table/level`` to PublishedGroups
    in_no_group : Counter
        How many records are in no group of any level, by file; told by what was counted.
    """

    of: _BlockLevels
    areas: GroupAreas
    tabulation: GroupTabulation
    counted: Iterable[CountedAreas]
    published: Mapping[str, PublishedGroups]
    in_no_group: Numbers[str]

    def areas_counted(self) -> Iterator[CountedAreas]:
        """What was counted; how many of the records are in no group is noted."""
        for found in self.counted:
            self.in_no_group[self.of.file] += found.in_no_group
            yield found


def count_blocks(
    db: duckdb.DuckDBPyConnection,
    description: Description,
    blocks: BlockFile,
    wanted: Mapping[str, Sequence[DescribedLevel]],
    published: Mapping[str, PublishedGroups],
    in_no_group: Numbers[str],
    *,
    bounded: bool,
    keep: bool = False,
    counted: Sequence[GatheredCounts] | None = None,
) -> Iterator[FileCounts]:
    """Count the tables of each file; every record is read once.

    Parameters
    ----------
    db : duckdb.DuckDBPyConnection
        With the relation ``blocks``.
    description : Description
    blocks : BlockFile
    wanted : mapping of table to sequence of DescribedLevel
    published : mapping of ``table/level`` to PublishedGroups
    in_no_group : Counter
        As `FileCounts` has it.
    bounded : bool
        Count so many codes of each response as the description says; False counts all.
    keep : bool
        Count at once, and keep all counts in memory.
    counted : sequence of GatheredCounts, optional
        What shards have counted, by file; nothing is counted then.
    """
    for place, of in enumerate(_levels_by_file(description, wanted)):
        areas = find_areas(db, blocks, of.kinds)
        tabulation = of.tabulation(bounded=bounded)
        if counted is not None:
            found = counted[place].areas(areas)
        else:
            found = count_groups(db, tabulation, blocks, areas, keep=keep)
        yield FileCounts(of, areas, tabulation, list(found) if keep else found, published, in_no_group)


def count_shard_of_blocks(
    db: duckdb.DuckDBPyConnection,
    description: Description,
    blocks: BlockFile,
    wanted: Mapping[str, Sequence[DescribedLevel]],
) -> list[list[PartCounts]]:
    """Count a shard of the records, as `count_blocks` does: of each file the parts that `GatheredCounts` takes."""
    return [
        count_shard(db, of.tabulation(bounded=True), blocks, find_areas(db, blocks, of.kinds))
        for of in _levels_by_file(description, wanted)
    ]


def _levels_by_file(description: Description, wanted: Mapping[str, Sequence[DescribedLevel]]) -> list[_BlockLevels]:
    files = dict.fromkeys(table.counts for table in description.tables if table.name in wanted)
    return [
        _BlockLevels(
            description,
            file,
            [(t, level) for t in description.tables if t.counts == file for level in wanted.get(t.name, ())],
        )
        for file in files
    ]


def measure_blocks(exact: FileCounts, ledger: Ledger, entropy: Entropy, *, leave_out: bool = True) -> Iterator[Groups]:
    """Measure every table of a file: by kind of areas, level and table, and what published totals decide at the end."""
    of, areas = exact.of, exact.areas
    cells = {table.name: CellSums(of.members(table)) for table in of.tables}
    codes = {kind: areas.written(kind) for kind in of.levels}

    def groups(table: DescribedTable, level: DescribedLevel) -> LevelGroups:
        return groups_of_level(table, level, codes[level.areas], ledger.plan, leave_out=leave_out)

    levels = [level for some in of.levels.values() for level in some]
    sliced = [
        SlicedLevel(level.areas, of.columns(table, level), cells[table.name], groups(table, level))
        for level in levels
        for table in of.measured_at(level, published=False)
    ]
    by_totals = [(table, level) for level in levels for table in of.measured_at(level, published=True)]
    alike: dict[tuple[DescribedLevel, int], list[DescribedTable]] = {}
    for table, level in by_totals:
        alike.setdefault((level, of.columns(table, level).start), []).append(table)
    listed = {
        (level, first): _listed(
            exact, level, {table.name: groups(table, level) for table in tables}, cells, of.columns(tables[0], level)
        )
        for (level, first), tables in alike.items()
    }
    yield from measure_slices(
        exact.areas_counted(), areas, exact.tabulation, sliced, [*listed.values()], ledger, entropy
    )
    for table, level in by_totals:
        counts = listed[level, of.columns(table, level).start]
        yield from counts.measure(table.name, groups(table, level), ledger, entropy)


def _listed(
    exact: FileCounts,
    level: DescribedLevel,
    tables: Mapping[str, LevelGroups],
    cells: Mapping[str, CellSums],
    columns: slice,
) -> ListedLevel:
    """The groups of a level that totals list, in areas that there are."""
    published = exact.published[f"{next(iter(tables))}/{level.name}"]
    ids = exact.areas.ids[level.areas]
    # The one area of everything is left out, too, where no housing unit stands.
    at, here = published.area, np.full(len(published.area), len(ids) > 0)
    if exact.of.description.areas[level.areas].blocks:
        at, here = np.searchsorted(ids, published.area), np.isin(published.area, ids)
    total = published.total[here]
    wanted: Flags = np.zeros(len(total), dtype=bool)
    for groups in tables.values():
        wanted |= needs_cells(groups.family, groups.choosing.choice(total))
    return ListedLevel(
        kind=level.areas,
        columns=columns,
        area=at[here],
        group=published.group[here],
        published=total,
        wanted=wanted,
        tables={name: cells[name] for name in tables},
        categories=exact.tabulation.categories,
    )
