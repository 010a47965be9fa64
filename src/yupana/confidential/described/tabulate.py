"""Count every cell of the tables of a description, each record at most as often as its limit allows."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import duckdb
import numpy as np

from yupana.arrays import Flags, Ints
from yupana.confidential.described.records import keys_of_link
from yupana.confidential.records.database import memory_limit, numbers
from yupana.files.database import named, quoted
from yupana.plan.classes import Classes, classify
from yupana.plan.predicates import Where
from yupana.products.described.description import (
    DescribedFile,
    DescribedLevel,
    DescribedTable,
    Description,
    RecordLimit,
    in_join,
)

_BYTES_OF_ID: Final = 256
"""Twice what an id takes whose record is being chosen."""


@dataclass(frozen=True, slots=True)
class _Universe:
    """Records that are counted together: of a file, and under a limit those of one condition."""

    file: str
    limit: RecordLimit | None
    where: Where


@dataclass(frozen=True, slots=True, eq=False)
class _Counted:
    """Records counted by the values of the columns that name areas, and by class: columns of one length."""

    areas: Mapping[str, Ints]
    of_class: Ints
    count: Ints


@dataclass(frozen=True, slots=True)
class Tabulated:
    """Exact counts of some tables.

    Attributes
    ----------
    by_level : mapping of ``table/level`` to int64 array, shape (areas by groups of the level, cells)
    left_out : mapping of table to int
        Records of the universe that its limit left out.
    """

    by_level: Mapping[str, Ints]
    left_out: Mapping[str, int]


def tabulate(
    db: duckdb.DuckDBPyConnection,
    description: Description,
    wanted: Mapping[str, Sequence[DescribedLevel]],
    *,
    limited: bool,
) -> Tabulated:
    """Count tables over the relations of valid records; tables of one file and one limit are counted in one scan.

    Parameters
    ----------
    db : duckdb.DuckDBPyConnection
    description : Description
    wanted : mapping of table to sequence of DescribedLevel
        What is to be counted.
    limited : bool
        Keep at most as many records as the limits say, as a run does; False keeps all.
    """
    together: dict[_Universe, list[DescribedTable]] = {}
    for table in description.tables:
        if table.name in wanted:
            limit = table.limit if limited else None
            of = _Universe(table.counts, limit, table.universe if limit else Where())
            together.setdefault(of, []).append(table)
    found: dict[str, Ints] = {}
    left_out: dict[str, int] = {}
    for of, tables in together.items():
        levels = {table.name: wanted[table.name] for table in tables}
        classes, members = _classes(description, tables, levels)
        columns = {description.areas[level.areas].column for some in levels.values() for level in some} - {""}
        if of.limit is not None and not _is_one_of_each(description, of):
            left_out |= dict.fromkeys(levels, _find_crowded(db, description, of, of.limit))
        counted = _count(db, description, classes, sorted(columns), of)
        if _is_one_of_each(description, of):
            (kept,) = numbers(db, "SELECT count(*) FROM described_kept")
            left_out |= dict.fromkeys(levels, _universe_size(db, description, of) - kept)
        for name, some in levels.items():
            for level in some:
                found[f"{name}/{level.name}"] = _level(description, level, counted, members[name, level.name])
    return Tabulated(found, left_out)


def _classes(
    description: Description, tables: Sequence[DescribedTable], levels: Mapping[str, Sequence[DescribedLevel]]
) -> tuple[Classes, dict[tuple[str, str], Flags]]:
    """The classes that the cells of some tables tell apart, and which of these each cell of each level holds."""
    predicates: list[Where] = []
    places: dict[tuple[str, str], slice] = {}
    for table in tables:
        of_group = description.predicates(table)
        for level in levels[table.name]:
            first = len(predicates)
            predicates += [cell for code in level.groups for cell in of_group[code]]
            places[table.name, level.name] = slice(first, len(predicates))
    classes = classify(description.of_record(tables[0]), predicates)
    return classes, {name: classes.members[place] for name, place in places.items()}


def _count(
    db: duckdb.DuckDBPyConnection, description: Description, classes: Classes, columns: Sequence[str], of: _Universe
) -> _Counted:
    combination = np.flatnonzero(classes.class_of)
    db.register("classes_now", {"combination": combination, "class": classes.class_of[combination]})
    db.execute(
        "CREATE OR REPLACE TABLE described_classes AS "
        "SELECT combination::INTEGER AS combination, class::INTEGER AS class FROM classes_now"
    )
    db.unregister("classes_now")
    if _is_one_of_each(description, of):
        source = _one_of_each(db, description, classes, columns, of)
    else:
        picked = [f"{column} AS area_{i}" for i, column in enumerate(columns)]
        read = {name for name in description.columns if name in classes.combination}
        shown = ", ".join([f"{classes.combination} AS combination", *picked])
        source = f"(SELECT {shown} FROM {_counted(db, description, of, {*read, *columns})})"
    areas = "".join(f", area_{i}" for i in range(len(columns)))
    query = (
        f"SELECT class{areas}, count(*) AS number FROM {source} "
        f"JOIN described_classes USING (combination) GROUP BY class{areas}"
    )
    values = [np.asarray(column, dtype=np.int64) for column in db.execute(query).fetchnumpy().values()]
    return _Counted(dict(zip(columns, values[1:-1], strict=True)), values[0], values[-1])


def _is_one_of_each(description: Description, of: _Universe) -> bool:
    """Whether one record counts of each id that stands in the records themselves."""
    return of.limit is not None and of.limit.most == 1 and description.files[of.limit.per].ids_in == of.file


def _universe_size(db: duckdb.DuckDBPyConnection, description: Description, of: _Universe) -> int:
    relation = named(description.files[of.file].schema.relation)
    (size,) = numbers(db, f"SELECT count(*) FROM {relation} WHERE {as_sql(of.where)}")
    return size


def _one_of_each(
    db: duckdb.DuckDBPyConnection, description: Description, classes: Classes, columns: Sequence[str], of: _Universe
) -> str:
    """Keep one record of each id, and give SQL for their combinations of atoms and the values that name areas.

    Which record of an id is kept moves none of others, and alike ones need no order; so one pass without a sort does,
    by a hash that needs to be that of no other program. A record is one number meanwhile, as numbers are quick.
    """
    file = description.files[of.file]
    sizes = [description.columns[name].column.high + 1 for name in columns]
    kind = "BIGINT" if len(classes.class_of) * math.prod(sizes) < 1 << 62 else "HUGEINT"
    packed = f"({classes.combination})::{kind}"
    for name, size in zip(columns, sizes, strict=True):
        packed = f"({packed} * {size} + {name})"
    link = in_join(of.file, file.link)
    # One file may hold an id as a text, and another as a number.
    fields = [f"{named(field.name)}::VARCHAR" if field.key else named(field.name) for field in file.schema.columns]
    # Two records may have one hash; then their fields decide, so that the order is of the record alone.
    order = f"row(hash(hash({quoted(description.truncation_key)}, {', '.join(fields)})), {', '.join(fields)})"
    # The ids of a part are held in memory, each in about a hundred bytes.
    parts = 1 + _universe_size(db, description, of) * _BYTES_OF_ID // memory_limit(db)
    db.execute(f"CREATE OR REPLACE TABLE described_kept (kept {kind})")
    for part in range(parts):
        db.execute(
            f"INSERT INTO described_kept SELECT min_by({packed}, {order}) FROM {named(file.schema.relation)} "
            f"WHERE {as_sql(of.where)} AND hash({link}) % {parts} = {part} GROUP BY {link}"
        )
    areas = [f"kept // {math.prod(sizes[i + 1 :])} % {size} AS area_{i}" for i, size in enumerate(sizes)]
    shown = ", ".join([f"(kept // {math.prod(sizes)})::INTEGER AS combination", *areas])
    return f"(SELECT {shown} FROM described_kept)"


def _counted(db: duckdb.DuckDBPyConnection, description: Description, of: _Universe, columns: Collection[str]) -> str:
    """SQL for the records that are counted beside those above them whose columns are read."""
    chain = description.chain(of.file)
    top = _reach(description, chain, columns)
    if of.limit is None:
        return _joined(db, description, chain[: top + 1])
    # What is above the files that decide which records are kept is joined to those alone.
    last = _deciding(description, chain, of, of.limit)
    kept = {name for name in columns if description.columns[name].file in chain[: last + 1]}
    if top > last:
        kept.add(in_join(chain[last], description.files[chain[last]].link))
    return f"({_kept(db, description, of, of.limit, kept)}){_above(db, description, chain[last : top + 1])}"


def _kept(
    db: duckdb.DuckDBPyConnection, description: Description, of: _Universe, limit: RecordLimit, columns: Collection[str]
) -> str:
    """SQL for the records that a limit keeps: all of the parents that are not crowded, some of those that are."""
    chain = description.chain(of.file)
    source = _joined(db, description, chain[: _deciding(description, chain, of, limit) + 1])
    parent, condition = _parent(description, chain, limit), as_sql(of.where)
    counts = description.files[of.file]
    # The order is of the record alone, so that one which is added or removed moves no other. Two records may have one
    # hash, as where keys hold |: then their fields decide, so that none but those alike in all of them are tied.
    fields = ", ".join(map(named, counts.schema.header))
    written = ", ".join(_written(counts, name) for name in counts.hashed)
    number = f"row_number() OVER (PARTITION BY {fields})"
    hashed = f"sha256(concat_ws('|', {quoted(description.truncation_key)}, {written}, {number}))"
    shown = ", ".join(sorted(columns)) or "1 AS nothing"
    picked = ", ".join(sorted({parent, *map(named, counts.schema.header), *columns}))
    # Only the records of crowded parents are sorted.
    ranked = (
        f"SELECT {picked}, {hashed} AS the_order FROM {source} SEMI JOIN described_crowded ON {parent} = the_parent "
        f"WHERE {condition}"
    )
    return (
        f"SELECT {shown} FROM {source} ANTI JOIN described_crowded ON {parent} = the_parent WHERE {condition} "
        f"UNION ALL SELECT {shown} FROM ({ranked}) "
        f"QUALIFY row_number() OVER (PARTITION BY {parent} ORDER BY the_order, {fields}) <= {limit.most}"
    )


def _written(file: DescribedFile, name: str) -> str:
    """SQL for a field as its file writes it; codes are stored as their places in a list."""
    field = in_join(file.name, name)
    words = file.columns[name].column.words if name in file.columns else ()
    return f"([{', '.join(map(quoted, words))}])[{field} + 1]" if words else field


def _find_crowded(db: duckdb.DuckDBPyConnection, description: Description, of: _Universe, limit: RecordLimit) -> int:
    """Note the parents of more records than the limit allows; how many records are left out of the counts."""
    chain = description.chain(of.file)
    source = _joined(db, description, chain[: _deciding(description, chain, of, limit) + 1])
    db.execute(
        f"CREATE OR REPLACE TABLE described_crowded AS SELECT {_parent(description, chain, limit)} AS the_parent, "
        f"count(*) AS size FROM {source} WHERE {as_sql(of.where)} GROUP BY 1 HAVING count(*) > {limit.most}"
    )
    (lost,) = numbers(db, f"SELECT sum(size - {limit.most}) FROM described_crowded")
    return lost


def _parent(description: Description, chain: Sequence[str], limit: RecordLimit) -> str:
    """Which record of the limit's file a record belongs to: the link of the file beneath that one."""
    beneath = chain[chain.index(limit.per) - 1]
    return in_join(beneath, description.files[beneath].link)


def _deciding(description: Description, chain: Sequence[str], of: _Universe, limit: RecordLimit) -> int:
    """The place of the last file of a chain that decides which records a limit keeps."""
    return max(chain.index(limit.per) - 1, _reach(description, chain, [name for name, _ in of.where.columns]))


def _reach(description: Description, chain: Sequence[str], columns: Collection[str]) -> int:
    """The place of the last file of a chain that columns are read of."""
    return max((chain.index(description.columns[name].file) for name in columns), default=0)


def _joined(db: duckdb.DuckDBPyConnection, description: Description, chain: Sequence[str]) -> str:
    """SQL for the records of the first file of a chain beside those above them."""
    return named(description.files[chain[0]].schema.relation) + _above(db, description, chain)


def _above(db: duckdb.DuckDBPyConnection, description: Description, chain: Sequence[str]) -> str:
    """SQL that joins the records of each file of a chain but the first to those of the file before it."""
    parts = []
    for child, parent in pairwise(chain):
        link, key = keys_of_link(db, description, description.files[child])
        parts.append(f" JOIN {named(description.files[parent].schema.relation)} ON {link} = {key}")
    return "".join(parts)


def _level(description: Description, level: DescribedLevel, counted: _Counted, members: Flags) -> Ints:
    """Sum counted records into the areas, groups and cells of a level."""
    kind = description.areas[level.areas]
    cells = len(members) // len(level.groups)
    out = np.zeros((len(kind.codes), len(members)), dtype=np.int64)
    if not kind.column:
        place, rows = np.zeros(len(counted.count), dtype=np.int64), np.arange(len(counted.count))
    else:
        values = counted.areas[kind.column]
        widths = np.array([len(of) for of in kind.of], dtype=np.int64)
        flat = np.array([area for of in kind.of for area in of], dtype=np.int64)
        starts = np.cumsum(widths) - widths
        repeat = widths[values]
        rows = np.repeat(np.arange(len(values)), repeat)
        within = np.arange(len(rows)) - np.repeat(np.cumsum(repeat) - repeat, repeat)
        place = flat[starts[values][rows] + within]
    by_class = np.zeros((len(kind.codes), members.shape[1]), dtype=np.int64)
    np.add.at(by_class, (place, counted.of_class[rows]), counted.count[rows])
    for cell, of in enumerate(members):
        out[:, cell] = by_class[:, of].sum(axis=1)
    return out.reshape(len(kind.codes) * len(level.groups), cells)


def as_sql(predicate: Where) -> str:
    """A condition on columns of a join."""
    return " AND ".join(_test(column, sorted(values)) for column, values in predicate.columns) or "true"


def _test(column: str, values: Sequence[int]) -> str:
    if not values:
        return "false"
    if len(values) == values[-1] - values[0] + 1:
        return f"{column} BETWEEN {values[0]} AND {values[-1]}"
    return f"{column} IN ({', '.join(map(str, values))})"
