"""Count every cell of the tables of a description, each record at most as often as its limit allows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import duckdb
import numpy as np

from yupana.arrays import Flags, Ints
from yupana.confidential.described.records import as_key
from yupana.files.database import named, quoted
from yupana.plan.classes import Classes, classify
from yupana.plan.predicates import Where
from yupana.products.described.description import DescribedTable, Description, Level, Limit


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
    by_measurement : mapping of name to int64 array, shape (areas by groups of the level, cells)
    left_out : mapping of table to int
        Records of the universe that its limit left out.
    """

    by_measurement: Mapping[str, Ints]
    left_out: Mapping[str, int]


def tabulate(
    db: duckdb.DuckDBPyConnection, description: Description, wanted: Mapping[str, Sequence[Level]], *, limited: bool
) -> Tabulated:
    """Count tables over the relations of valid records; tables of one file and one limit are counted in one scan.

    Parameters
    ----------
    db : duckdb.DuckDBPyConnection
    description : Description
    wanted : mapping of table to sequence of Level
        What is to be counted.
    limited : bool
        Keep at most as many records as the limits say, as a run does; False keeps all.
    """
    together: dict[tuple[str, Limit | None, Where | None], list[DescribedTable]] = {}
    for table in description.tables:
        if table.name in wanted:
            limit = table.limit if limited else None
            together.setdefault((table.counts, limit, table.universe if limit else None), []).append(table)
    found: dict[str, Ints] = {}
    left_out: dict[str, int] = {}
    for (file, limit, universe), tables in together.items():
        levels = {table.name: wanted[table.name] for table in tables}
        classes, members = _classes(description, tables, levels)
        columns = {description.areas[level.areas].column for of in levels.values() for level in of} - {""}
        counted = _count(db, description, file, classes, sorted(columns), limit, universe)
        for name, of in levels.items():
            for level in of:
                found[f"{name}/{level.name}"] = _level(description, level, counted, members[name, level.name])
        if limit is not None and universe is not None:
            lost = _left_out(db, description, file, limit, universe)
            left_out |= dict.fromkeys(levels, lost)
    return Tabulated(found, left_out)


def _classes(
    description: Description, tables: Sequence[DescribedTable], levels: Mapping[str, Sequence[Level]]
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
    db: duckdb.DuckDBPyConnection,
    description: Description,
    file: str,
    classes: Classes,
    columns: Sequence[str],
    limit: Limit | None,
    universe: Where | None,
) -> _Counted:
    combination = np.flatnonzero(classes.class_of)
    db.register("classes_now", {"combination": combination, "class": classes.class_of[combination]})
    db.execute(
        "CREATE OR REPLACE TABLE described_classes AS "
        "SELECT combination::INTEGER AS combination, class::INTEGER AS class FROM classes_now"
    )
    db.unregister("classes_now")
    picked = [f"{column} AS area_{i}" for i, column in enumerate(columns)]
    read = {name for name, column in description.columns.items() if column.column.name in classes.combination}
    source = _joined(description, file, {*read, *columns}, limit, universe)
    areas = "".join(f", area_{i}" for i in range(len(columns)))
    query = (
        f"SELECT class{areas}, count(*) AS number FROM "
        f"(SELECT {', '.join([f'{classes.combination} AS combination', *picked])} FROM {source}) "
        f"JOIN described_classes USING (combination) GROUP BY class{areas}"
    )
    values = [np.asarray(column, dtype=np.int64) for column in db.execute(query).fetchnumpy().values()]
    return _Counted(dict(zip(columns, values[1:-1], strict=True)), values[0], values[-1])


def _joined(description: Description, file: str, columns: set[str], limit: Limit | None, universe: Where | None) -> str:
    """SQL for the records of a file beside those above them whose columns are read, the limit applied."""
    needed = {description.columns[name].file for name in columns} | {file}
    if universe is not None:
        needed |= {description.columns[name].file for name, _ in universe.columns}
    if limit is None or universe is None:
        return _join(description, file, needed)
    condition, (above, per) = as_sql(universe), _parent(description, limit)
    source = _join(description, file, {*needed, above})
    # The hash is of the record alone, so that a record which is added or removed moves no other.
    schema = description.files[file].schema
    fields = ", '|', ".join(f"{named(file)}.{named(name)}" for name in schema.header)
    same = ", ".join(f"{named(file)}.{named(name)}" for name in schema.header)
    key = quoted(description.truncation_key)
    order = f"sha256(concat({key}, '|', {fields}, '|', row_number() OVER (PARTITION BY {same})))"
    shown = ", ".join(f"{named(name)} AS {named(name)}" for name in sorted(needed)) or named(file)
    # Only the records of crowded parents are sorted; structs keep the names of a join.
    crowded = f"SELECT {per} FROM {source} WHERE {condition} GROUP BY ALL HAVING count(*) > {limit.most}"
    few = f"SELECT {shown} FROM {source} WHERE {condition} AND {per} NOT IN ({crowded})"
    ranked = (
        f"SELECT {shown}, {per} AS the_parent, {order} AS the_order FROM {source} "
        f"WHERE {condition} AND {per} IN ({crowded})"
    )
    kept = (
        f"SELECT * EXCLUDE (the_parent, the_order) FROM ({ranked}) "
        f"QUALIFY row_number() OVER (PARTITION BY the_parent ORDER BY the_order) <= {limit.most}"
    )
    return f"({few} UNION ALL {kept})"


def _parent(description: Description, limit: Limit) -> tuple[str, str]:
    """The file that tells whose records a limit is of, and SQL for that one's key."""
    of = description.files[limit.per]
    return (of.ids_in, f"{named(of.ids_in)}.{named(of.key)}") if of.ids_in else (of.name, as_key(of.key, of.name))


def _join(description: Description, file: str, needed: set[str]) -> str:
    chain = description.chain(file)
    last = max(i for i, name in enumerate(chain) if name in needed)
    parts = [f"{named(description.files[file].schema.relation)} AS {named(file)}"]
    for child, parent in pairwise(chain[: last + 1]):
        relation = named(description.files[parent].schema.relation)
        link, key = as_key(description.files[child].link, child), as_key(description.files[parent].key, parent)
        parts.append(f"JOIN {relation} AS {named(parent)} ON {link} = {key}")
    return " ".join(parts)


def _left_out(db: duckdb.DuckDBPyConnection, description: Description, file: str, limit: Limit, universe: Where) -> int:
    above, per = _parent(description, limit)
    needed = {description.columns[name].file for name, _ in universe.columns} | {file, above}
    sizes = f"SELECT count(*) AS size FROM {_join(description, file, needed)} WHERE {as_sql(universe)} GROUP BY {per}"
    query = f"SELECT coalesce(sum(size - {limit.most}), 0) FROM ({sizes}) WHERE size > {limit.most}"
    ((lost,),) = db.execute(query).fetchall()
    return int(lost)


def _level(description: Description, level: Level, counted: _Counted, members: Flags) -> Ints:
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
