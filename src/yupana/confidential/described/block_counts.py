"""Count and measure the tables of a description whose areas are made of blocks, slice after slice of the country."""

from collections import Counter as Numbers
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import duckdb
import numpy as np

from yupana.arrays import Flags, Ints
from yupana.confidential.described.records import key_of
from yupana.confidential.described.tabulate import groups_of_level, measure_tables
from yupana.confidential.measure_groups import (
    CellSums,
    LevelGroups,
    ListedLevel,
    SlicedLevel,
    measure_slices,
    needs_cells,
)
from yupana.confidential.tabulate.count_groups import count_groups, count_shard
from yupana.confidential.tabulate.group_counts import CountedAreas, GatheredCounts, PartCounts
from yupana.confidential.tabulate.group_tabulation import GroupAreas, GroupTabulation, ResponseColumns, find_areas
from yupana.errors import ConfigError
from yupana.files.database import named
from yupana.files.delimited import positions
from yupana.geography.block_file import BlockAreas, BlockFile
from yupana.plan.ledger import Ledger
from yupana.plan.predicates import Classes, TooManyClassesError, Where, classify
from yupana.plan.responses import ResponseGroup
from yupana.privacy.entropy import Entropy
from yupana.privacy.sealed import Sealed
from yupana.products.described.description import AreaKind, DescribedLevel, DescribedTable, Description, in_join
from yupana.products.described.plan import families_of
from yupana.products.described.published import PublishedGroups
from yupana.products.tables import Family, Groups

_CONDITIONS = ""
"""The response of groups that columns decide: one code for each class of their conditions."""

_MOST_CATEGORIES = 1 << 12
_MOST_ANSWERS = 1 << 14


@dataclass(frozen=True)
class BlockLevels:
    """What is counted of one file in one pass: tables and their levels, and what tells cells and groups apart.

    Attributes
    ----------
    description : Description
    file : str
    blocks : BlockFile
        As the pass has it.
    wanted : sequence of (DescribedTable, DescribedLevel)
    """

    description: Description
    file: str
    blocks: BlockFile
    wanted: Sequence[tuple[DescribedTable, DescribedLevel]]

    @cached_property
    def tables(self) -> tuple[DescribedTable, ...]:
        """In the order of the description."""
        return tuple({table.name: table for table, _ in self.wanted}.values())

    @cached_property
    def families(self) -> Mapping[str, tuple[Family, ...]]:
        """By table."""
        return {table.name: families_of(table) for table in self.tables}

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

    def areas(self, db: duckdb.DuckDBPyConnection) -> GroupAreas:
        """Find the areas; the database holds those that were found last."""
        return find_areas(db, self.blocks, self.kinds)

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
        found: dict[str, dict[tuple[ResponseGroup, ...], None]] = {}
        for table, level in self._grouped:
            found.setdefault(level.areas, {}).setdefault(self.groups(table, level))
        return {kind: tuple(spaces) for kind, spaces in found.items()}

    @property
    def _grouped(self) -> Iterator[tuple[DescribedTable, DescribedLevel]]:
        """Levels that are measured, and others that responses decide: who is in a group of theirs is in some group.

        So areas of several kinds show the same groups, and are counted by the same, where they have the same levels.
        """
        wanted = {(table.name, level.name) for table, level in self.wanted}
        own = {self.description.areas[level.areas].chosen for _, level in self.wanted}
        for table in self.tables:
            for level in table.levels:
                by_response = len(self.description.by_response(level)) == len(level.groups)
                in_pass = self.description.areas[level.areas].chosen in own
                if (table.name, level.name) in wanted or (by_response and in_pass):
                    yield table, level

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
            numbers = response.numbers or tuple(range(codes))
            place = np.full(max(numbers) + 1, -1)
            place[list(numbers)] = np.arange(codes)
            if response.column.blank:
                place[numbers[0]] = -1
            columns = response.columns[: response.most if bounded else None]
            responses[name] = ResponseColumns(tuple(in_join(self.file, c) for c in columns), place, codes)
        if self.conditions:
            found = self.of_conditions
            responses[_CONDITIONS] = ResponseColumns((found.combination,), found.class_of, found.count)
        of = self.cells.class_of
        return GroupTabulation(
            relation=named(file.schema.relation),
            key=key_of(self.description, self.file),
            where="true",
            responses=responses,
            spaces={
                kind: tuple(group for groups in spaces for group in groups) for kind, spaces in self.spaces.items()
            },
            attribute=self.cells.combination,
            category=of.astype(np.uint8) if self.cells.count <= 1 << 8 else of.astype(np.uint16),
        )


@dataclass(frozen=True, slots=True, repr=False)
class UncountedRecords(Sealed):
    """How many records are in no group of any level, by file; and how often one is in a group that totals do not list.

    The last is by level.
    """

    in_no_group: Numbers[str] = field(default_factory=Numbers)
    not_listed: Numbers[str] = field(default_factory=Numbers)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FileCounts(Sealed):
    """Exact counts of one file in one pass.

    Attributes
    ----------
    of : BlockLevels
    areas : GroupAreas
    tabulation : GroupTabulation
    counted : iterable of CountedAreas
        Counted as they are asked for, unless they are kept.
    published : mapping of ``table/level`` to PublishedGroups
    uncounted : UncountedRecords
        Told by what was counted.
    """

    of: BlockLevels
    areas: GroupAreas
    tabulation: GroupTabulation
    counted: Iterable[CountedAreas]
    published: Mapping[str, PublishedGroups]
    uncounted: UncountedRecords

    def areas_counted(self) -> Iterator[CountedAreas]:
        """What was counted; how many of the records are in no group is noted."""
        for found in self.counted:
            self.uncounted.in_no_group[self.of.file] += found.in_no_group
            yield found


@dataclass(frozen=True, slots=True, repr=False)
class DescribedCounts(Sealed):
    """Exact counts by ``table/level``, how many records limits left out by table, and the totals that decide detail.

    Of a description with a file of blocks the counts by file and pass, each of which may be a stream, and what they do
    not hold. Of kinds of areas of which fewer are published than the description has: those.
    """

    by_level: Mapping[str, Ints]
    left_out: Mapping[str, int]
    sizes: Mapping[str, PublishedGroups]
    blocks: Iterable[FileCounts] = ()
    uncounted: UncountedRecords = field(default_factory=UncountedRecords)
    shown: Mapping[str, AreaKind] = field(default_factory=dict)

    def measured(
        self, config: Description, ledger: Ledger, entropy: Entropy, *, leave_out: bool = True
    ) -> Iterator[Groups]:
        """Pass every measurement through the door; ``leave_out`` as `measure_tables` has it."""
        shown = replace(config, areas={**config.areas, **self.shown})
        yield from measure_tables(self.by_level, shown, ledger, entropy, self.sizes, leave_out=leave_out)
        for of_file in self.blocks:
            yield from measure_blocks(of_file, ledger, entropy, leave_out=leave_out)


def count_streams(
    db: duckdb.DuckDBPyConnection,
    description: Description,
    published: Mapping[str, PublishedGroups],
    counted: Sequence[GatheredCounts] | None,
    *,
    bounded: bool,
    keep: bool,
) -> DescribedCounts:
    """Count the tables of each file with its blocks, pass after pass, as areas are asked for; each record is read once.

    Parameters
    ----------
    db : duckdb.DuckDBPyConnection
        With the relation ``blocks``.
    published : mapping of ``table/level`` to PublishedGroups
    counted : sequence of GatheredCounts or None
        What shards have counted, by file and pass; nothing is counted then.
    bounded : bool
        Count so many codes of each response as the description says; False counts all.
    keep : bool
        Count at once, and keep all counts in memory.
    """
    uncounted = UncountedRecords()

    def files() -> Iterator[FileCounts]:
        for place, of in enumerate(passes(description)):
            areas = of.areas(db)
            tabulation = of.tabulation(bounded=bounded)
            if counted is not None:
                found = counted[place].areas(areas)
            else:
                found = count_groups(db, tabulation, of.blocks, areas, keep=keep)
            yield FileCounts(of, areas, tabulation, list(found) if keep else found, published, uncounted)

    return DescribedCounts({}, {}, published, list(files()) if keep else files(), uncounted)


def count_shard_of_blocks(db: duckdb.DuckDBPyConnection, description: Description) -> list[list[PartCounts]]:
    """Count a shard of the records, as `count_streams` does: of each pass the parts that `GatheredCounts` takes."""
    return [count_shard(db, of.tabulation(bounded=True), of.blocks, of.areas(db)) for of in passes(description)]


def passes(description: Description) -> list[BlockLevels]:
    """What is counted together of a description with a file of blocks, file after file and pass after pass."""
    found: dict[tuple[str, frozenset[int] | None], list[tuple[DescribedTable, DescribedLevel]]] = {}
    for table, level in description.measured.values():
        found.setdefault((table.counts, description.areas[level.areas].chosen), []).append((table, level))
    blocks = description.blocks
    assert blocks is not None  # noqa: S101 (whoever asks has looked)
    return [
        BlockLevels(description, file, blocks if chosen is None else replace(blocks, chosen=chosen), levels)
        for (file, chosen), levels in found.items()
    ]


def measure_blocks(exact: FileCounts, ledger: Ledger, entropy: Entropy, *, leave_out: bool = True) -> Iterator[Groups]:
    """Measure every table of a file: by kind of areas, level and table, and what published totals decide at the end."""
    of, areas = exact.of, exact.areas
    cells = {table.name: CellSums(of.members(table)) for table in of.tables}
    codes = {kind: areas.written(kind) for kind in of.levels}

    def groups(table: DescribedTable, level: DescribedLevel) -> list[LevelGroups]:
        families = of.families[table.name]
        return groups_of_level(table, families, level, codes[level.areas], ledger.plan, leave_out=leave_out)

    levels = [level for some in of.levels.values() for level in some]
    sliced = [
        SlicedLevel(of.columns(table, level), cells[table.name], one)
        for level in levels
        for table in of.measured_at(level, published=False)
        for one in groups(table, level)
    ]
    by_totals = [
        (table.name, level, of.columns(table, level).start, one)
        for level in levels
        for table in of.measured_at(level, published=True)
        for one in groups(table, level)
    ]
    alike: dict[tuple[DescribedLevel, int], dict[str, LevelGroups]] = {}
    for table, level, first, one in by_totals:
        alike.setdefault((level, first), {})[table] = one
    listed = {(level, first): _listed(exact, level, first, tables, cells) for (level, first), tables in alike.items()}
    yield from measure_slices(exact.areas_counted(), sliced, [*listed.values()], ledger, entropy)
    exact.uncounted.not_listed.update({level.name: of.not_listed for (level, _), of in listed.items()})
    for table, level, first, one in by_totals:
        yield from listed[level, first].measure(table, one, ledger, entropy)


def _listed(
    exact: FileCounts,
    level: DescribedLevel,
    first: int,
    tables: Mapping[str, LevelGroups],
    cells: Mapping[str, CellSums],
) -> ListedLevel:
    """The groups of a level, which stand from ``first`` on, that totals list in areas that there are."""
    published = exact.published[f"{next(iter(tables))}/{level.name}"]
    ids = exact.areas.ids[level.areas]
    # The one area of everything is left out, too, where no housing unit stands.
    at, here = published.area, np.full(len(published.area), len(ids) > 0)
    if exact.of.description.areas[level.areas].blocks:
        at = positions(published.area, ids)
        here = at >= 0
    total = published.total[here]
    wanted: Flags = np.zeros(len(total), dtype=bool)
    for groups in tables.values():
        wanted |= needs_cells(groups.family, groups.choosing.choice(total))
    return ListedLevel(
        kind=level.areas,
        columns=slice(first, first + len(level.groups)),
        listed=PublishedGroups(at[here], published.group[here], total),
        wanted=wanted,
        tables={name: cells[name] for name in tables},
        categories=exact.tabulation.categories,
    )
