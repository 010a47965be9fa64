"""What a description of tables says, once it has been read: records, areas, groups, cells and budgets. Public.

Columns are named as SQL names them in a join, ``"persons.AGE"``; the values of a column of codes are their places in
the list of codes, those of a column of whole numbers the numbers themselves.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from yupana.files.columns import UNSAID, Column, Dialect, RecordFile
from yupana.files.database import named
from yupana.files.declaration import FLAG, TEXT, key, whole
from yupana.files.dictionaries.dictionary import Dictionary
from yupana.geography.block_file import BlockAreas, BlockFile
from yupana.plan.budgets import budgets_as_html
from yupana.plan.measurement import Mechanism, Sensitivity
from yupana.plan.plan import Neighbours
from yupana.plan.predicates import Where
from yupana.plan.responses import ResponseGroup
from yupana.privacy.exact import INFINITE, Budget

if TYPE_CHECKING:
    from yupana.products.described.criteria import Criterion


NUMBERS = ("COUNT", "NOISE_DISTRIBUTION", "VARIANCE", "MOE")
"""The columns of numbers of a published table."""


@dataclass(frozen=True, slots=True)
class DescribedColumn:
    """A column of a record file that tables may read."""

    file: str
    name: str
    column: Column  # its domain
    labels: Mapping[int, str]  # what its codes are called; empty where the description does not say
    fixed: bool  # whether no change of a unit below changes it
    # whether its codes are those that occur in the records, which the author declares to be public
    occurring: bool = False


@dataclass(frozen=True, slots=True)
class MultipleResponse:
    """A question that one record may answer with several codes, each in a column of its own, such as race."""

    file: str
    name: str
    columns: tuple[str, ...]  # as the file calls them
    # what each of them may hold; its name is that of the question. A code that stands for none is the first word.
    column: Column
    labels: Mapping[int, str]
    most: int  # how many codes of a record count: those of the first columns
    # what the records hold for each code, where they hold numbers of their own, and others for none; empty where they
    # hold the places of the codes
    numbers: tuple[int, ...] = ()


_AS_WORD: Final = {"_": "__", "-": "_h"}

ENDINGS = ("csv", "txt", "tsv", "parquet")
"""How the names of record files may end."""


@dataclass(frozen=True, slots=True)
class DescribedFile:
    """A record file."""

    name: str
    record: str  # what one record is called
    key: str  # the column that tells its records apart; empty if no file links to it
    # parent, link: the file that each record belongs to one record of, and the column that holds that one's key; empty
    # of a file at the top
    parent: str
    link: str
    columns: Mapping[str, DescribedColumn]  # by name
    # of a unit that is a column of ids: the file that has the column, whose records belong to one id each. No file of
    # records is read then; its key is the column. Empty of all others.
    ids_in: str = ""
    hashed: tuple[str, ...] = ()  # all its columns, in the order in which a limit's hash reads them
    responses: Mapping[str, MultipleResponse] = field(default_factory=dict)  # by name
    # of a description with a file of blocks: the columns that name a record's block; empty if it has none
    blocks: tuple[Column, ...] = ()
    # of a file of questionnaires: the record types whose lines make it; empty of all others
    lines_of: tuple[str, ...] = ()
    dialect: Dialect = UNSAID  # how the file is written, if it is one of text

    @property
    def block(self) -> str:
        """What the columns that name a record's block are called as one column of a join."""
        return in_join(self.name, "+".join(column.name for column in self.blocks))

    @property
    def schema(self) -> RecordFile:
        """How the file is read: its columns are called there as in a join, so that none has a name of SQL's own."""
        keys = [Column(name, range(1), key=True) for name in dict.fromkeys((self.key, self.link)) if name]
        own = [*keys, *(column.column for column in self.columns.values()), *self.blocks]
        for response in self.responses.values():
            own += [replace(response.column, name=name) for name in response.columns]
        columns = tuple(
            replace(column, name=f"{self.name}.{column.name}", free=True, decimal=self.dialect.decimal)
            for column in own
        )
        called = tuple((renamed.name, column.name) for renamed, column in zip(columns, own, strict=True))
        # No two names become one, and SQL needs no quotes.
        alias = "records_" + re.sub(r"[^A-Za-z0-9]", lambda one: _AS_WORD.get(one[0], f"_x{ord(one[0]):x}_"), self.name)
        return RecordFile(self.name, self.record, columns, ENDINGS, called=called, alias=alias, dialect=self.dialect)


@dataclass(frozen=True, slots=True)
class AreaKind:
    """A kind of areas, such as counties: each code of a column is an area, or what begins as its code does."""

    name: str  # as tables call it, in REGION_TYPE
    # the columns whose values name the areas: one, mostly; none where there is one area that holds everything
    columns: tuple[str, ...]
    codes: tuple[str, ...]  # of the areas, in order
    # of each value of the column, in order, the places of the areas it lies in; of everything, `((0,),)`. Of several
    # columns, of each combination of values, those of the last column next to each other: one area each.
    of: tuple[tuple[int, ...], ...]
    labels: Mapping[str, str]
    # of areas that are made of blocks: how. Which there are is found in the file of blocks, beside the records; `codes`
    # and `of` are empty.
    blocks: BlockAreas | None = None
    # as `BlockFile` has it, where kinds of areas are of blocks and records that others are not of. Kinds of the same
    # are a pass; passes have no block in common.
    chosen: frozenset[int] | None = None
    values: tuple[range, ...] = ()  # of each column

    @property
    def overlap(self) -> int:
        """The most areas of the kind that one record lies in."""
        return 1 if self.blocks else max(map(len, self.of), default=0)

    def over(self, other: Self) -> list[tuple[int, ...]]:
        """Of each combination of values of another kind's columns, its own among them, the areas it lies in."""
        place = np.zeros(tuple(map(len, other.values)), dtype=np.int64)
        for column, values in zip(self.columns, self.values, strict=True):
            axis = [-1 if name == column else 1 for name in other.columns]
            place = place * len(values) + np.arange(len(values)).reshape(axis)
        return [self.of[at] for at in place.ravel().tolist()]


@dataclass(frozen=True, slots=True)
class DescribedLevel:
    """A population-group level: a kind of areas by a set of groups."""

    name: str
    areas: str
    groups: tuple[str, ...]  # codes of the groups; `("*",)` for everyone


@dataclass(frozen=True, slots=True)
class RecordLimit:
    """At most so many records of a table's file are counted of each record of a file above it."""

    per: str = key(TEXT)
    most: int = key(whole(1, 999_999, "a whole number above 0"))


@dataclass(frozen=True, slots=True)
class Sums:
    """A published table whose rows add up measured cells: labels, and places of the cells, of each row."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[tuple[str, ...], tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True)
class Detail:
    """How finely a population group is counted: as finely as a first noisy total, or a published one, allows."""

    # the coarsest first: of each the tables that show a group. The first of them shows what is measured.
    steps: tuple[tuple[str, ...], ...]
    # by name of the level: a group gets the step whose threshold is the last that its total reaches
    thresholds: Mapping[str, tuple[int, ...]]
    share: Fraction  # of each budget, spent on the total; 0 where the totals are published ones
    # codes of groups that always get the first step. No total is spent on them: they have the whole budget.
    coarsest: frozenset[str] = frozenset()
    # by name: the chance with which the count of an empty group is left out after the first step; others have none
    leave_out: Mapping[str, Fraction] = field(default_factory=dict)
    # what plans call the totals, and the counts of groups that always get the first step; empty where these have the
    # name of the table in theirs
    called: tuple[str, str] = ("", "")

    @property
    def published(self) -> bool:
        """Whether totals decide that another release has published."""
        return not self.share

    def budgets(self, budget: Budget) -> tuple[Budget, Budget]:
        """What the total has of a budget, and what the cells have."""
        if not isinstance(budget, Fraction):
            return budget, budget
        return budget * self.share, budget * (1 - self.share)


@dataclass(frozen=True, slots=True)
class DescribedTable:
    """A table that is measured."""

    name: str
    title: str
    counts: str  # the file whose records are counted
    universe: Where  # which of them, by columns of the file and of those above; applied before the limit
    limit: RecordLimit | None
    columns: tuple[str, ...]  # that tell its cells apart
    labels: tuple[tuple[str, ...], ...]  # of each cell, one for each column
    cells: tuple[Where, ...]  # what each counts of the universe
    sums: tuple[Sums, ...]  # tables that are made of its cells
    levels: tuple[DescribedLevel, ...]  # those it is published for
    budgets: Mapping[str, Budget]  # by name; a level without one, or with 0, is not measured
    # by name: larger sensitivities than the derived ones, to which noise is scaled
    stated: Mapping[str, Sensitivity] = field(default_factory=dict)
    # by code: groups that have other conditions in this table than elsewhere
    groups: Mapping[str, Where] = field(default_factory=dict)
    detail: Detail | None = None  # none where every group is counted in every cell
    # columns of numbers that are published, as `yupana.products.tables.Family` has them
    numbers: tuple[str, ...] = NUMBERS
    numbered: bool = False  # whether labels are whole numbers, and are written to Parquet as such

    @property
    def published(self) -> tuple[str, ...]:
        """The names under which its cells are published: its own, and those of the tables that add them up."""
        return self.name, *(sums.name for sums in self.sums)

    @property
    def has_groups(self) -> bool:
        """Whether any level tells groups apart."""
        return any(level.groups != EVERYONE for level in self.levels)


@dataclass(frozen=True, slots=True)
class Postprocess:
    """What is done to noisy counts after the door; areas are compared in tables without detail alone."""

    non_negative: bool = key(FLAG, "whether measured counts below 0 become 0 before they are added up", default=False)
    consistent: bool = key(FLAG, "whether areas show the sums of those in them, by least squares", default=False)
    coterminous: bool = key(FLAG, "whether areas that hold the same show the same counts", default=False)
    suppress_below: int = key(
        whole(1, 999_999_999, "a whole number above 0"), "published counts below it are X; else all stay", default=0
    )

    def __bool__(self) -> bool:
        """Whether anything is done."""
        return self != Postprocess()

    @property
    def fitted(self) -> tuple[str, ...]:
        """What is asked that compares areas with each other, which takes the same cells in all."""
        return tuple(name for name in ("consistent", "coterminous") if getattr(self, name))


EVERYONE = ("*",)
"""The groups of a level that has none."""


@dataclass(frozen=True, repr=False)
class Description:
    """Records, areas and tables, as a description says them."""

    name: str
    title: str
    mechanism: Mechanism
    neighbours: Neighbours  # what budgets refer to: a unit added or removed, or replaced
    # the file whose records are protected, each with all that belongs to it; or a column of ids, which stands as a file
    # above the records that have them
    unit: str
    confidence: Fraction
    files: Mapping[str, DescribedFile]  # by name: parents before children
    areas: Mapping[str, AreaKind]  # by name
    groups: Mapping[str, Where | ResponseGroup]  # by code: population groups; they may overlap
    group_labels: Mapping[str, str]  # by code
    tables: tuple[DescribedTable, ...]
    truncation_key: str  # key of the hash that orders records before a limit
    # the description as it was read, with the lists of files it names in their place
    document: Mapping[str, Any] = field(compare=False)
    criteria: "tuple[Criterion, ...]" = ()  # how accurate some tables shall be
    postprocess: Postprocess = Postprocess()
    blocks: BlockFile | None = None  # the file of blocks beside the records that areas are made of
    # where one file of text holds the records of all files that are called as its record types and levels are
    layout: Dictionary | None = field(default=None, compare=False)
    # data, encoding: the name of that file and its encoding; empty where nothing is said
    data: str = ""
    encoding: str = ""
    # how codes of public files were changed when they were read
    notes: tuple[str, ...] = field(default=(), compare=False)

    def __repr__(self) -> str:
        measured = sum(budget != 0 for table in self.tables for budget in table.budgets.values())
        return f"<description of {self.name}: {self.mechanism.value}, {measured} budgets above 0>"

    def _repr_html_(self) -> str:
        return budgets_as_html(repr(self)[1:-1], self.budgets)

    @property
    def budgets(self) -> dict[str, Budget]:
        """Every budget by the name of its measurement."""
        return {name: table.budgets.get(level.name, Fraction(0)) for name, (table, level) in self.at_levels.items()}

    @cached_property
    def levels(self) -> Mapping[str, DescribedLevel]:
        """Every level that a table is published for, by name."""
        return {level.name: level for table in self.tables for level in table.levels}

    @cached_property
    def at_levels(self) -> Mapping[str, tuple[DescribedTable, DescribedLevel]]:
        """Every table at each of its levels, by the name of its measurement, such as ``children/county``."""
        return {f"{table.name}/{level.name}": (table, level) for table in self.tables for level in table.levels}

    @cached_property
    def measured(self) -> Mapping[str, tuple[DescribedTable, DescribedLevel]]:
        """The same of those that have a budget there."""
        return {name: at for name, at in self.at_levels.items() if at[0].budgets[at[1].name]}

    @property
    def privacy_unit(self) -> str:
        """What is protected, in words."""
        unit = self.files[self.unit]
        if unit.ids_in or any(file.parent == self.unit for file in self.files.values()):
            return f"{unit.record} with all its records"
        return " ".join(dict.fromkeys((unit.record, "record")))

    @property
    def record_files(self) -> tuple[DescribedFile, ...]:
        """The files that are read."""
        return tuple(file for file in self.files.values() if not file.ids_in)

    def with_budgets(self, budgets: Mapping[str, Budget]) -> Self:
        """The description with some budgets replaced, by the names of their measurements."""
        changed = self.budgets | dict(budgets)
        tables = tuple(
            replace(table, budgets={level.name: changed[f"{table.name}/{level.name}"] for level in table.levels})
            for table in self.tables
        )
        made = replace(self, tables=tables)
        # What is derived is the same with other budgets.
        vars(made)["derived"] = self.derived
        return made

    def without_noise(self) -> Self:
        """The description with infinite budgets for all that is measured."""
        return self.with_budgets(dict.fromkeys(self.measured, INFINITE))

    def chain(self, file: str) -> tuple[str, ...]:
        """A file and those above it, from the file up."""
        return chain_of(self.files, file)

    @cached_property
    def derived(self) -> dict[tuple[str, str], Any]:
        """What has been derived of its tables and levels, by their names; `stability.derive` keeps it here."""
        return {}

    @cached_property
    def columns(self) -> Mapping[str, DescribedColumn]:
        """Every column that tables may read, by its name in SQL."""
        return {
            column.column.name: column for file in self.files.values() for column in self.joined(file.name).values()
        }

    @cached_property
    def attributes(self) -> Mapping[str, tuple[str, str]]:
        """What a record may differ in, by its name in SQL, as file and name: columns, responses, its block as one."""
        found = {name: (column.file, column.name) for name, column in self.columns.items()}
        for file in self.files.values():
            found |= {in_join(file.name, name): (file.name, name) for name in file.responses}
            found |= {file.block: (file.name, "+".join(column.name for column in file.blocks))} if file.blocks else {}
        return found

    def joined(self, file: str) -> Mapping[str, DescribedColumn]:
        """The columns of a file by name, with the names that they have in a join."""
        return {
            name: replace(column, column=replace(column.column, name=in_join(file, name)))
            for name, column in self.files[file].columns.items()
        }

    def of_record(self, table: DescribedTable) -> RecordFile:
        """The columns of the records of a table joined with those above them, as if they were of one file."""
        chain = self.chain(table.counts)
        return RecordFile(
            table.counts,
            self.files[table.counts].record,
            tuple(column.column for name, column in self.columns.items() if column.file in chain),
        )

    def predicates(self, table: DescribedTable, codes: Iterable[str]) -> dict[str, list[Where]]:
        """By group, which records each cell of a table counts of it."""
        groups = {code: table.universe & self.group(table, code) for code in codes}
        return {code: [group & cell for cell in table.cells] for code, group in groups.items()}

    def group(self, table: DescribedTable, code: str) -> Where:
        """The records of a group in a table, as far as columns decide; a response may decide the rest."""
        found = Where() if (code,) == EVERYONE else table.groups.get(code, self.groups[code])
        return found if isinstance(found, Where) else Where()

    def by_response(self, level: DescribedLevel) -> tuple[ResponseGroup, ...]:
        """The groups of a level that responses decide."""
        return tuple(group for groups in self.of_responses(level).values() for group in groups.values())

    def of_responses(self, level: DescribedLevel) -> Mapping[str, Mapping[str, ResponseGroup]]:
        """The same by response and code."""
        found: dict[str, dict[str, ResponseGroup]] = {}
        for code in level.groups:
            if isinstance(group := self.groups.get(code), ResponseGroup):
                found.setdefault(group.response, {})[code] = group
        return found

    @property
    def responses(self) -> Mapping[str, MultipleResponse]:
        """Every multiple response, by ``file.name``."""
        return {f"{file.name}.{name}": of for file in self.files.values() for name, of in file.responses.items()}


def chain_of(files: Mapping[str, DescribedFile], file: str) -> tuple[str, ...]:
    """One of some files and those above it, from the file up."""
    found = [file]
    while parent := files[found[-1]].parent:
        found.append(parent)
    return tuple(found)


def in_join(file: str, column: str) -> str:
    """What SQL calls a column of a join."""
    return named(f"{file}.{column}")
