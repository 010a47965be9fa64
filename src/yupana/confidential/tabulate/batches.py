"""Put tables of one record file together, so that one scan counts them all by a few whole numbers of each record.

The number of a record stands for its combination of atoms (`yupana.plan.predicates`) and the value that names its area.
Tables share a number, and are a batch, where its values are few, so that the database has few groups at hand.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Final

import duckdb
import numpy as np

from yupana.arrays import Flags, Ints
from yupana.files.columns import Column, RecordFile
from yupana.plan.predicates import Classes, Where, classify, told_apart

_FEW: Final = 1 << 18
"""Values of a number that the database groups by as quickly as by less."""

_LISTED: Final = 1 << 28
"""Values of a number times cells of a batch, which its classes are found from in a second."""


@dataclass(frozen=True, slots=True)
class LinkedFile:
    """A record file in the database, and how its records are linked to those of the file above.

    Attributes
    ----------
    relation : str
    columns : tuple of Column
        By their names in SQL, keys included; no two files of a chain share one.
    key, link : str
        SQL for the key that the file below links to, and for the link to the file above; empty where there is none.
    written : tuple of str
        SQL for the fields that the hash of a limit reads.
    crowded : str
        The relation of those records alone whose parents may have more than a limit allows; empty if not known.
    """

    relation: str
    columns: tuple[Column, ...]
    key: str = ""
    link: str = ""
    written: tuple[str, ...] = ()
    crowded: str = ""

    @property
    def header(self) -> tuple[str, ...]:
        """Names of the columns in SQL."""
        return tuple(column.name for column in self.columns)


Chain = Sequence[LinkedFile]
"""A file that is counted, and those above it, from the file up."""


@dataclass(frozen=True, slots=True)
class LinkedLimit:
    """At most so many records of the universe are counted of each parent.

    Attributes
    ----------
    beneath : int
        The place in the chain of the file whose link names the parent.
    most : int
    of_ids : bool
        Whether the parents are no records but ids.
    """

    beneath: int
    most: int
    of_ids: bool = False


@dataclass(frozen=True, slots=True)
class LinkedTable:
    """A table of the records of the first file of a chain, beside those above them.

    Attributes
    ----------
    name : str
    universe : Where
        Which records a limit is about.
    cells : tuple of Where
        Which records each cell counts, the universe included.
    column : str
        Whose values name the areas; empty where there is one area.
    limit : LinkedLimit or None
    """

    name: str
    universe: Where
    cells: tuple[Where, ...]
    column: str
    limit: LinkedLimit | None


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """Numbers that records have, and how many have each: columns of one length."""

    number: Ints
    count: Ints


@dataclass(frozen=True, slots=True, eq=False)
class LinkedCounts:
    """Records counted by the value that names their area, and by class: columns of one length.

    Attributes
    ----------
    value, of_class, count : ndarray of int64
    members : ndarray of bool, shape (cells, classes)
        Which classes each cell of the table counts.
    left_out : int
        Records of the universe that the limit leaves out; the counts are without them.
    """

    value: Ints
    of_class: Ints
    count: Ints
    members: Flags
    left_out: int

    def cells(self, areas: Sequence[Sequence[int]], size: int) -> Ints:
        """Sum into areas and cells, shape (size, cells).

        Parameters
        ----------
        areas : sequence of sequence of int
            Of each value, the places of the areas it lies in.
        size : int
            How many areas there are.
        """
        key = np.repeat(np.arange(len(areas)), [len(some) for some in areas])
        of_area = _NumbersByKey(key, np.array([area for some in areas for area in some], dtype=np.int64), len(areas))
        key, cell = np.nonzero(self.members.T)
        of_cell = _NumbersByKey(key, cell, self.members.shape[1])
        out = np.zeros(size * len(self.members), dtype=np.int64)
        for begin in range(0, len(self.count), _AT_ONCE):
            some = slice(begin, begin + _AT_ONCE)
            rows, area = of_area.at(self.value[some])
            again, cell = of_cell.at(self.of_class[some][rows])
            np.add.at(out, area[again] * len(self.members) + cell, self.count[some][rows][again])
        return out.reshape(size, len(self.members))


class _NumbersByKey:
    """Lists of numbers, one for each key."""

    def __init__(self, key: Ints, number: Ints, keys: int) -> None:
        """Of keys that ascend, a number each."""
        self._number = number
        self._ends = np.cumsum(np.bincount(key, minlength=keys))

    def at(self, keys: Ints) -> tuple[Ints, Ints]:
        """Of keys all the numbers: the place of the key that each belongs to, and the number."""
        ends = self._ends[keys]
        widths = ends - np.where(keys > 0, self._ends[keys - 1], 0)
        place = np.repeat(np.arange(len(keys)), widths)
        within = np.arange(len(place)) - np.repeat(np.cumsum(widths), widths)
        return place, self._number[ends[place] + within]


_AT_ONCE: Final = 1 << 20
"""Rows that are summed at once, so that memory stays bounded."""


@dataclass(frozen=True, slots=True, eq=False)
class TableBatch:
    """Tables that are counted by one number.

    Attributes
    ----------
    tables : tuple of LinkedTable
    classes : Classes
    areas : mapping of column to int
        The columns that name areas, and how many values each has.
    """

    tables: tuple[LinkedTable, ...]
    classes: Classes
    areas: Mapping[str, int]

    @property
    def terms(self) -> dict[str, list[str]]:
        """By column, SQL for what it adds to the number of a record."""
        found = {column: [sql] for column, sql in self.classes.terms.items()}
        stride = len(self.classes.class_of)
        for column, size in self.areas.items():
            found.setdefault(column, []).append(f"{stride} * {column}::BIGINT")
            stride *= size
        return found

    def counts(self, table: LinkedTable, tally: Tally, left_out: int) -> LinkedCounts:
        """What one of the tables counts of records that were counted by the number."""
        first = sum(len(other.cells) for other in self.tables[: self.tables.index(table)])
        combinations = len(self.classes.class_of)
        of_class = self.classes.class_of[tally.number % combinations]
        value, stride = np.zeros_like(tally.number), combinations
        for column, size in self.areas.items():
            if column == table.column:
                value = tally.number // stride % size
            stride *= size
        return LinkedCounts(
            value, of_class, tally.count, self.classes.members[first : first + len(table.cells)], left_out
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Needed:
    """What some tables tell apart: values of columns, and of those that name areas."""

    tables: tuple[LinkedTable, ...]
    kinds: Mapping[str, Ints]
    areas: Mapping[str, int]

    @property
    def size(self) -> int:
        """Numbers that records may have."""
        return math.prod([*(int(kind.max()) + 1 for kind in self.kinds.values()), *self.areas.values()])

    def __add__(self, other: "_Needed") -> "_Needed":
        kinds = dict(self.kinds)
        for column, kind in other.kinds.items():
            if column in kinds:
                both = kinds[column] * (int(kind.max()) + 1) + kind
                kinds[column] = np.unique(both, return_inverse=True)[1].astype(np.int64)
            else:
                kinds[column] = kind
        return _Needed(self.tables + other.tables, kinds, {**self.areas, **other.areas})


def make_batches(chain: Chain, tables: Sequence[LinkedTable]) -> list[TableBatch]:
    """Put each table to the batch whose number gets fewest values more by it, and few or no more than both have apart.

    Raises
    ------
    TooManyClassesError
        If a table alone tells too many combinations of values apart.
    """
    columns = {column.name: column for file in chain for column in file.columns}
    file = RecordFile("", "", tuple(columns.values()))
    found: list[_Needed] = []
    for table in tables:
        areas = {table.column: columns[table.column].high + 1} if table.column else {}
        own = _Needed((table,), told_apart(file, table.cells), areas)
        grown: list[tuple[int, int, _Needed]] = []
        for place, batch in enumerate(found):
            both = batch + own
            cells = sum(len(some.cells) for some in both.tables)
            if both.size <= max(_FEW, batch.size, own.size) and both.size * cells <= _LISTED:
                grown.append((both.size - batch.size, place, both))
        if grown:
            _, place, both = min(grown, key=itemgetter(0))
            found[place] = both
        else:
            found.append(own)
    return [
        TableBatch(some.tables, classify(file, [cell for table in some.tables for cell in table.cells]), some.areas)
        for some in found
    ]


def joined(chain: Chain, shown: Sequence[Sequence[str]], first: int = 0) -> str:
    """SQL that joins the files of a chain as far up as anything is wanted of them.

    The link of the file at place i is called ``link_i``, and its key ``key_i``.

    Parameters
    ----------
    chain : sequence of LinkedFile
    shown : sequence of sequence of str
        By file, SQL for what is wanted of it, with a name each.
    first : int
        The file to begin with; above 0, what stands before has ``link_{first - 1}``.
    """
    found = []
    for place in range(first, max((place + 1 for place, some in enumerate(shown) if some), default=1)):
        file = chain[place]
        keys = [f"{file.key} AS key_{place}"] * (place > 0) + [f"{file.link} AS link_{place}"] * bool(file.link)
        rows = f"(SELECT {', '.join([*shown[place], *keys]) or '1 AS nothing'} FROM {file.relation})"
        found.append(f"JOIN {rows} ON link_{place - 1} = key_{place}" if place else rows)
    return " ".join(found)


def numbered(chain: Chain, batches: Sequence[TableBatch]) -> str:
    """SQL for all records of the first file of a chain by the numbers that they have, ``number_i`` for batch i."""
    # Each file adds its share before it is joined, which there are fewer records to do for.
    shown: list[list[str]] = [[] for _ in chain]
    sums = []
    for number, batch in enumerate(batches):
        shares = []
        for place, file in enumerate(chain):
            if own := [term for column in file.header for term in batch.terms.get(column, ())]:
                shown[place].append(f"{' + '.join(own)} AS share_{place}_{number}")
                shares.append(f"share_{place}_{number}")
        sums.append(f"{' + '.join(shares) or '0'} AS number_{number}")
    return f"(SELECT {', '.join(sums)} FROM {joined(chain, shown)})"


def numbers_of(batches: Sequence[TableBatch]) -> list[str]:
    """SQL for the numbers of a record beside all those above it, each with its name."""
    return [
        f"{' + '.join(term for of in batch.terms.values() for term in of) or '0'} AS number_{place}"
        for place, batch in enumerate(batches)
    ]


def tally(db: duckdb.DuckDBPyConnection, source: str, batches: int) -> list[Tally]:
    """Count records by each of their numbers, in one scan."""
    numbers = [f"number_{place}" for place in range(batches)]
    which = " ".join(f"WHEN {number} IS NOT NULL THEN {place}" for place, number in enumerate(numbers))
    query = (
        f"SELECT CASE {which} END, coalesce({', '.join(numbers)})::BIGINT, count(*) FROM {source} "
        f"GROUP BY GROUPING SETS ({', '.join(f'({number})' for number in numbers)})"
    )
    batch, number, count = (np.asarray(column, dtype=np.int64) for column in db.execute(query).fetchnumpy().values())
    return [Tally(number[batch == place], count[batch == place]) for place in range(batches)]
