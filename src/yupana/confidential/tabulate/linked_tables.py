"""Count tables of linked record files: one scan for all tables of a file, by a few whole numbers of each record.

The number of a record stands for its combination of atoms (`yupana.plan.predicates`) and the value that names its area.
Tables share a number, and are a batch, where its values are few, so that the database has few groups at hand. Counting
is linear: tables are counted without limits, and the few records that a limit leaves out are read again and subtracted.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Final

import duckdb
import numpy as np

from yupana.arrays import Flags, Ints
from yupana.confidential.records.database import cut_by, numbers
from yupana.confidential.tabulate.group_counts import Lists
from yupana.files.columns import Column, RecordFile
from yupana.files.database import quoted
from yupana.plan.predicates import Classes, Where, as_sql, classify, told_apart

_FEW: Final = 1 << 18
"""Values of a number that the database groups by as quickly as by less."""

_LISTED: Final = 1 << 28
"""Values of a number times cells of a batch, which its classes are found from in a second."""


@dataclass(frozen=True, slots=True)
class LinkedFile:
    """A record file in the database, and how its records are linked to those of the file above."""

    relation: str
    columns: tuple[Column, ...]  # by their names in SQL, keys included; no two files of a chain share one
    # key, link: SQL for the key that the file below links to, and for the link to the file above; empty where there is
    # none
    key: str = ""
    link: str = ""
    written: tuple[str, ...] = ()  # SQL for the fields that the hash of a limit reads
    # the relation of those records alone whose parents may have more than a limit allows; empty if not known
    crowded: str = ""

    @property
    def header(self) -> tuple[str, ...]:
        """Names of the columns in SQL."""
        return tuple(column.name for column in self.columns)


Chain = Sequence[LinkedFile]
"""A file that is counted, and those above it, from the file up."""


@dataclass(frozen=True, slots=True)
class LinkedLimit:
    """At most so many records of the universe are counted of each parent."""

    beneath: int  # the place in the chain of the file whose link names the parent
    most: int
    of_ids: bool = False  # whether the parents are no records but ids


@dataclass(frozen=True, slots=True)
class LinkedTable:
    """A table of the records of the first file of a chain, beside those above them."""

    name: str
    universe: Where  # which records a limit is about
    cells: tuple[Where, ...]  # which records each cell counts, the universe included
    # by column: the columns whose values name the areas, with these; none where there is one area
    areas: Mapping[str, range]
    limit: LinkedLimit | None


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """Numbers that records have, and how many have each: columns of one length."""

    number: Ints
    count: Ints


@dataclass(frozen=True, slots=True, eq=False)
class LinkedCounts:
    """Records counted by the value that names their area, and by class: columns of one length.

    Of several columns the value is the place of the combination of their values, the last one's next to each other.
    """

    value: Ints
    of_class: Ints
    count: Ints
    members: Flags  # shape (cells, classes): which classes each cell of the table counts
    left_out: int  # records of the universe that the limit leaves out; the counts are without them

    def cells(self, areas: Sequence[Sequence[int]], size: int) -> Ints:
        """Sum into areas and cells, shape (size, cells).

        Parameters
        ----------
        areas : sequence of sequence of int
            Of each value, the places of the areas it lies in.
        size : int
            How many areas there are.
        """
        of_area = Lists.of([len(some) for some in areas], np.array([area for some in areas for area in some]))
        of_cell = Lists.of(self.members.sum(axis=0), np.nonzero(self.members.T)[1])
        out = np.zeros(size * len(self.members), dtype=np.int64)
        for begin in range(0, len(self.count), _AT_ONCE):
            some = slice(begin, begin + _AT_ONCE)
            areas_of_row, area = of_area.at(self.value[some])
            rows = np.repeat(np.arange(len(areas_of_row)), areas_of_row)
            cells_of_row, cell = of_cell.at(self.of_class[some][rows])
            area, rows = np.repeat(area, cells_of_row), np.repeat(rows, cells_of_row)
            np.add.at(out, area.astype(np.int64) * len(self.members) + cell, self.count[some][rows])
        return out.reshape(size, len(self.members))


_AT_ONCE: Final = 1 << 20
"""Rows that are summed at once, so that memory stays bounded."""


@dataclass(frozen=True, slots=True, eq=False)
class _TableBatch:
    """Tables that are counted by one number."""

    tables: tuple[LinkedTable, ...]
    classes: Classes
    areas: Mapping[str, range]  # the columns that name areas, and their values

    @property
    def terms(self) -> dict[str, list[str]]:
        """By column, SQL for what it adds to the number of a record."""
        found = {column: [sql] for column, sql in self.classes.terms.items()}
        stride = len(self.classes.class_of)
        for column, values in self.areas.items():
            from_0 = f"({column}::BIGINT - {values.start})" if values.start else f"{column}::BIGINT"
            found.setdefault(column, []).append(f"{stride} * {from_0}")
            stride *= len(values)
        return found

    def counts(self, table: LinkedTable, tally: Tally, left_out: int) -> LinkedCounts:
        """What one of the tables counts of records that were counted by the number."""
        first = sum(len(other.cells) for other in self.tables[: self.tables.index(table)])
        combinations = len(self.classes.class_of)
        of_class = self.classes.class_of[tally.number % combinations]
        value, stride, own = np.zeros_like(tally.number), combinations, dict[str, Ints]()
        for column, values in self.areas.items():
            own[column] = tally.number // stride % len(values)
            stride *= len(values)
        for column in table.areas:
            value = value * len(self.areas[column]) + own[column]
        return LinkedCounts(
            value, of_class, tally.count, self.classes.members[first : first + len(table.cells)], left_out
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Needed:
    """What some tables tell apart: values of columns, and of those that name areas."""

    tables: tuple[LinkedTable, ...]
    kinds: Mapping[str, Ints]
    areas: Mapping[str, range]

    @property
    def size(self) -> int:
        """Numbers that records may have."""
        return math.prod([*(int(kind.max()) + 1 for kind in self.kinds.values()), *map(len, self.areas.values())])

    def __add__(self, other: "_Needed") -> "_Needed":
        kinds = dict(self.kinds)
        for column, kind in other.kinds.items():
            if column in kinds:
                both = kinds[column] * (int(kind.max()) + 1) + kind
                kinds[column] = np.unique(both, return_inverse=True)[1].astype(np.int64)
            else:
                kinds[column] = kind
        return _Needed(self.tables + other.tables, kinds, {**self.areas, **other.areas})


def make_batches(chain: Chain, tables: Sequence[LinkedTable]) -> list[_TableBatch]:
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
        own = _Needed((table,), told_apart(file, table.cells), table.areas)
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
        _TableBatch(some.tables, classify(file, [cell for table in some.tables for cell in table.cells]), some.areas)
        for some in found
    ]


def joined(chain: Chain, shown: Sequence[Sequence[str]], first: int = 0) -> str:
    """SQL that joins the files of a chain as far up as anything is wanted of them.

    The link of the file at place i is called ``link_i``, and its key ``key_i``.

    Parameters
    ----------
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


def numbered(chain: Chain, batches: Sequence[_TableBatch]) -> str:
    """SQL for all records of the first file of a chain by the numbers that they have, ``number_i`` for batch i."""
    needed = {column for batch in batches for column in batch.terms}
    shown = [[name for name in file.header if name in needed] for file in chain]
    return f"(SELECT {', '.join(numbers_of(batches))} FROM {joined(chain, shown)})"


def numbers_of(batches: Sequence[_TableBatch]) -> list[str]:
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


_BYTES_OF_ID: Final = 256
"""Twice what an id takes whose record is being chosen."""


def _count_one_of_each(
    db: duckdb.DuckDBPyConnection, file: LinkedFile, universe: Where, batches: Sequence[_TableBatch], key: str
) -> tuple[list[Tally], int]:
    """Count one record of each id by the numbers of all batches; and how many are left out.

    Which record of an id is kept moves none of others, and alike ones need no order; so one pass without a sort does,
    by a hash that needs to be that of no other program. A record is one number meanwhile, as numbers are quick.
    """
    condition = as_sql(universe)
    (size,) = numbers(db, f"SELECT count(*) FROM {file.relation} WHERE {condition}")
    # One file may hold an id as a text, and another as a number.
    fields = ", ".join(f"{column.name}::VARCHAR" if column.key else column.name for column in file.columns)
    # Two records may have one hash; then their fields decide, so that the order is of the record alone.
    order = f"row(hash(hash({quoted(key)}, {fields})), {fields})"
    every = ", ".join([*numbers_of(batches), f"{order} AS the_order", f"{file.link} AS the_id"])
    names = [f"number_{place}" for place in range(len(batches))]
    kept = names[0] if len(batches) == 1 else f"struct_pack({', '.join(names)})"
    # The ids of a part are held in memory, each in about a hundred bytes.
    for place, part in enumerate(cut_by(db, file.link, size, _BYTES_OF_ID)):
        query = (
            f"SELECT min_by({kept}, the_order) AS kept FROM (SELECT {every} FROM {file.relation} "
            f"WHERE {condition} AND {part}) GROUP BY the_id"
        )
        db.execute(f"INSERT INTO kept_records {query}" if place else f"CREATE TABLE kept_records AS {query}")
    shown = "kept AS number_0" if len(batches) == 1 else "unnest(kept)"
    found = tally(db, f"(SELECT {shown} FROM kept_records)", len(batches))
    (left,) = numbers(db, "SELECT count(*) FROM kept_records")
    db.execute("DROP TABLE kept_records")
    return found, size - left


Ranked = tuple[Where, LinkedLimit]
"""Records that a limit ranks, and the limit."""


def _count_left_out(
    db: duckdb.DuckDBPyConnection, chain: Chain, batches: Sequence[_TableBatch], key: str
) -> Mapping[Ranked, list[Tally]]:
    """Count what each limit leaves out, by the numbers of all batches.

    Parameters
    ----------
    key : str
        Of each parent those records are kept that come first by SHA-256 of this key, the fields of the record and its
        number among identical ones, joined by ``|``.
    """
    wanted: dict[int, dict[Ranked, None]] = {}
    for table in (table for batch in batches for table in batch.tables):
        if table.limit is not None:
            wanted.setdefault(table.limit.beneath, {})[table.universe, table.limit] = None
    found: dict[Ranked, list[Tally]] = {}
    for limits in wanted.values():
        _find_crowded(db, chain, batches, list(limits))
        _find_left_out(db, chain[: next(iter(limits))[1].beneath + 1], list(limits), key)
        _number(db, chain, batches, list(limits))
        for place, ranked in enumerate(limits):
            source = f"(SELECT * FROM left_out_records WHERE beyond_{place})"
            found[ranked] = tally(db, source, len(batches))
        db.execute("DROP TABLE left_out_records")
    return found


def _find_crowded(
    db: duckdb.DuckDBPyConnection, chain: Chain, batches: Sequence[_TableBatch], limits: Sequence[Ranked]
) -> None:
    """Make the table ``crowded_records``: those of parents with more than some limit allows, alike ones once."""
    beneath = limits[0][1].beneath
    below, link = [*chain[: beneath + 1]], f"link_{beneath}"
    below[0] = replace(below[0], relation=below[0].crowded or below[0].relation)
    tested = {name for universe, _ in limits for name, _ in universe.columns}
    needed = tested | {column for batch in batches for column in batch.terms}
    read = [[name for name in file.header if name in tested] for file in below]
    shown = [[name for name in file.header if not place or name in needed] for place, file in enumerate(below)]
    # The link of the last of them is wanted, whatever else is.
    read[-1].append("1 AS nothing")
    shown[-1].append("1 AS nothing")
    some = " OR ".join(f"({as_sql(universe)})" for universe in dict.fromkeys(_below(below, limits)))
    least = min(limit.most for _, limit in limits)
    # Of all universes together first, which is quicker than by universe and leaves few.
    db.execute(
        f"CREATE TABLE crowded_parents AS SELECT {link} AS the_parent FROM {joined(below, read)} WHERE {some} "
        f"GROUP BY 1 HAVING count(*) > {least}"
    )
    db.execute(
        f"CREATE TABLE crowded_records AS SELECT *, count(*) AS alike FROM {joined(below, shown)} "
        f"SEMI JOIN crowded_parents ON {link} = the_parent WHERE {some} GROUP BY ALL"
    )
    crowds = " OR ".join(
        f"sum(alike) FILTER ({as_sql(universe)}) > {limit.most}"
        for universe, (_, limit) in zip(_below(below, limits), limits, strict=True)
    )
    db.execute(
        f"CREATE OR REPLACE TABLE crowded_parents AS SELECT {link} AS the_parent FROM crowded_records "
        f"GROUP BY 1 HAVING {crowds}"
    )
    db.execute(f"DELETE FROM crowded_records WHERE {link} NOT IN (SELECT the_parent FROM crowded_parents)")
    db.execute("DROP TABLE crowded_parents")


def _below(below: Chain, limits: Sequence[Ranked]) -> list[Where]:
    """Of each universe what is about files below the parent: the rest is the same for all records of one parent."""
    columns = frozenset(name for file in below for name in file.header)
    return [universe.on(columns) for universe, _ in limits]


def _find_left_out(db: duckdb.DuckDBPyConnection, below: Chain, limits: Sequence[Ranked], key: str) -> None:
    """Make the table ``ranked_records``: of crowded ones those that come after as many as a limit allows.

    What is about files above the parent is the same for all its records, and so is asked of these few afterwards.
    """
    # The order is of the record alone, so that one which is added or removed moves no other. Two records may have one
    # hash, as where keys hold |: then their fields decide, so that none but those alike in all of them are tied.
    fields = ", ".join(below[0].header)
    hashed = f"sha256(concat_ws('|', {quoted(key)}, {', '.join(below[0].written)}, the_number))"
    beyond = [
        f"({as_sql(universe)}) AND count_if({as_sql(universe)}) OVER in_order > {limit.most} AS beyond_{place}"
        for place, (universe, (_, limit)) in enumerate(zip(_below(below, limits), limits, strict=True))
    ]
    alike = "SELECT * EXCLUDE alike, unnest(range(1, alike + 1)) AS the_number FROM crowded_records"
    some = " OR ".join(f"beyond_{place}" for place in range(len(limits)))
    db.execute(
        f"CREATE TABLE ranked_records AS SELECT * FROM (SELECT *, {', '.join(beyond)} "
        f"FROM (SELECT *, {hashed} AS the_order FROM ({alike})) WINDOW in_order AS "
        f"(PARTITION BY link_{len(below) - 1} ORDER BY the_order, {fields} ROWS UNBOUNDED PRECEDING)) WHERE {some}"
    )
    db.execute("DROP TABLE crowded_records")


def _number(
    db: duckdb.DuckDBPyConnection, chain: Chain, batches: Sequence[_TableBatch], limits: Sequence[Ranked]
) -> None:
    """Make the table ``left_out_records``: the numbers of those ranked, and which limits leave them out."""
    beneath = limits[0][1].beneath
    needed = {column for batch in batches for column in batch.terms} | {
        name for universe, _ in limits for name, _ in universe.columns
    }
    shown = [[name for name in file.header if place > beneath and name in needed] for place, file in enumerate(chain)]
    beyond = [f"beyond_{place} AND {as_sql(universe)} AS beyond_{place}" for place, (universe, _) in enumerate(limits)]
    db.execute(
        f"CREATE TABLE left_out_records AS SELECT {', '.join([*numbers_of(batches), *beyond])} "
        f"FROM ranked_records {joined(chain, shown, beneath + 1)}"
    )
    db.execute("DROP TABLE ranked_records")


CountLinked = Callable[[duckdb.DuckDBPyConnection, Chain, Sequence[LinkedTable], str], dict[str, LinkedCounts]]
"""What `count_linked` is: it counts tables of the first file of a chain, by name, with the key of limits' hashes."""


def count_linked(
    db: duckdb.DuckDBPyConnection, chain: Chain, tables: Sequence[LinkedTable], key: str
) -> dict[str, LinkedCounts]:
    """Count tables of the first file of a chain, by name.

    Parameters
    ----------
    chain : sequence of LinkedFile
        Valid: every link is to one record.
    key : str
        Of the hashes that limits order records by.

    Raises
    ------
    TooManyClassesError
        If a table tells too many combinations of values apart.
    """
    of_ids: dict[Where, list[LinkedTable]] = {}
    others: list[LinkedTable] = []
    for table in tables:
        of_each = table.limit is not None and table.limit.of_ids and table.limit.most == 1
        (of_ids.setdefault(table.universe, []) if of_each else others).append(table)
    found: dict[str, LinkedCounts] = {}
    for universe, some in of_ids.items():
        batches = make_batches(chain, some)
        kept, left_out = _count_one_of_each(db, chain[0], universe, batches, key)
        for batch, tally_of in zip(batches, kept, strict=True):
            found |= {table.name: batch.counts(table, tally_of, left_out) for table in batch.tables}
    if others:
        found |= _count_less_left_out(db, chain, others, key)
    return found


def _count_less_left_out(
    db: duckdb.DuckDBPyConnection, chain: Chain, tables: Sequence[LinkedTable], key: str
) -> dict[str, LinkedCounts]:
    batches = make_batches(chain, tables)
    every = tally(db, numbered(chain, batches), len(batches))
    lost = _count_left_out(db, chain, batches, key)
    found = {}
    for place, (batch, whole) in enumerate(zip(batches, every, strict=True)):
        for table in batch.tables:
            rest, left_out = whole, 0
            if table.limit is not None:
                beyond = lost[table.universe, table.limit][place]
                left_out = int(beyond.count.sum())
                rest = Tally(
                    np.concatenate([whole.number, beyond.number]), np.concatenate([whole.count, -beyond.count])
                )
            found[table.name] = batch.counts(table, rest, left_out)
    return found
