"""Whether the files of a TopDown release hold together: sums, published geography, records and tables. Public."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import duckdb
import numpy as np

from hollerith.geography.write import BLOCKS
from hollerith.products.redistricting.microdata import PERSON_COLUMNS, UNIT_COLUMNS
from hollerith.products.redistricting.schema import counts_persons, counts_units
from hollerith.products.redistricting.tables import SUMMARY_LEVELS, TABLES, Table, tables_of
from hollerith.topdown.release import COUNTS, MICRODATA, TABULATION
from hollerith.topdown.schema import Schema

SYSTEM: Final = "topdown"
"""What the manifest of a release calls the system that made it; its product is called as the configuration says."""

NOISY: Final = "topdown, noisy measurements"

_NESTED: Final = {"block": 16, "block_group": 12, "tract": 11, "county": 5, "state": 2}
_OTHERS: Final = ("place", "county_subdivision", "aiannh")

_Checks = Iterator[tuple[str, str]]
"""What must hold, in words, and a query that gives rows where it does not."""


def verify_release(folder: Path, schema: Schema, levels: Sequence[str]) -> list[str]:
    """Compare the files of a release with each other.

    Parameters
    ----------
    folder : Path
    schema : Schema
    levels : sequence of str
        Geolevels from the root to the blocks.

    Returns
    -------
    list of str
        What is wrong, in words; empty if nothing is.
    """
    found = [*(f"{COUNTS}/{level}" for level in levels), *(f"{TABULATION}/{name}" for name in (*_NESTED, *_OTHERS))]
    columns = ["geounit", *schema.names, "count"]
    wrong = []
    with duckdb.connect(":memory:") as db:
        db.execute("SET enable_progress_bar = false")
        wrong += [fault for name in found if (fault := _open(db, folder, name, columns))]
        wrong += _open_others(db, folder, schema, levels)
        if wrong:
            return wrong
        checks = [*_sums(schema, levels), *_geography(schema, levels), *_records(schema, levels)]
        for table in tables_of(schema):
            _open_members(db, schema, table)
            checks += _table(schema, table)
        for saying, query in checks:
            try:
                broken = db.execute(f"SELECT * FROM ({query}) LIMIT 1").fetchall()
            except duckdb.Error:
                broken = [()]
            if broken:
                wrong.append(f"it does not hold that {saying}")
    return wrong


def _open(db: duckdb.DuckDBPyConnection, folder: Path, name: str, columns: Sequence[str]) -> str:
    """Open a table of counts under its name; return what is wrong with it."""
    paths = [path for path in (folder / f"{name}.csv", folder / f"{name}.parquet") if path.is_file()]
    if len(paths) != 1:
        return f"{name} is missing, or there both as CSV and as Parquet"
    fault = _view(db, paths[0], name, columns)
    if not fault:
        db.execute(f"""
            CREATE VIEW {_named(f"{name} counted")} AS
            SELECT * REPLACE (TRY_CAST("count" AS BIGINT) AS "count") FROM {_named(name)}""")
    return fault


def _view(db: duckdb.DuckDBPyConnection, path: Path, name: str, columns: Sequence[str]) -> str:
    """Open a file, all its values as text, under a name and the names of its columns; return what is wrong."""
    try:
        if path.suffix == ".parquet":
            source = f"read_parquet({_text(str(path))})"
            found = [str(row[0]) for row in db.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()]
        else:
            with path.open(encoding="utf-8") as file:
                found = file.readline().rstrip("\n").split("|")
            # In blocks.csv two names differ by case alone, and the second says nothing that the first does not.
            names = [
                column if place == _first(columns, column) else f"{column} again"
                for place, column in enumerate(columns)
            ]
            types = ", ".join(f"{_text(column)}: 'VARCHAR'" for column in names)
            source = (
                f"read_csv({_text(str(path))}, delim = '|', quote = '', escape = '', header = false, skip = 1, "
                f"auto_detect = false, columns = {{{types}}})"
            )
        if found != list(columns):
            return f"{path.name} must have the columns {', '.join(columns)}"
        db.execute(f"CREATE VIEW {_named(name)} AS SELECT COLUMNS(*)::VARCHAR FROM {source}")
    except (OSError, ValueError, duckdb.Error):
        return f"{path.name} is not readable as a table of a release"
    return ""


def _open_others(db: duckdb.DuckDBPyConnection, folder: Path, schema: Schema, levels: Sequence[str]) -> list[str]:
    files = {
        "spine": (folder / "spine" / BLOCKS, ["block", *levels]),
        "records": (folder / MICRODATA, [*_record_columns(schema)]),
    }
    for table in tables_of(schema):
        files[table.name] = (folder / TABLES / f"{table.name}.csv", ["SUMLEV", "GEOCODE", *table.variables])
    return [fault for name, (path, columns) in files.items() if (fault := _view(db, path, name, columns))]


def _first(columns: Sequence[str], name: str) -> int:
    return [column.lower() for column in columns].index(name.lower())


def _record_columns(schema: Schema) -> tuple[str, ...]:
    if counts_persons(schema):
        return PERSON_COLUMNS
    return UNIT_COLUMNS if counts_units(schema) else ("block", *schema.names)


def _sums(schema: Schema, levels: Sequence[str]) -> _Checks:
    blocks, attributes = _counted(COUNTS, levels[-1]), _attributes(schema)
    for level in levels:
        name = _counted(COUNTS, level)
        yield (
            f"counts of {level} are whole numbers above 0 at cells of the schema, each once",
            f"""SELECT 1 FROM {name} WHERE "count" IS NULL OR "count" <= 0 OR NOT ({_in_schema(schema)})
                UNION ALL SELECT 1 FROM {name} GROUP BY geounit, {attributes} HAVING count(*) > 1""",
        )
    yield (
        f"every geounit of {levels[-1]} is in spine/{BLOCKS}, once",
        f"SELECT 1 FROM {blocks} b ANTI JOIN spine s ON s.block = b.geounit"
        " UNION ALL SELECT 1 FROM spine GROUP BY block HAVING count(*) > 1",
    )
    for level in levels[:-1]:
        summed = f"""SELECT s.{_named(level)} AS geounit, {attributes}, sum("count")::BIGINT AS "count"
            FROM {blocks} b JOIN spine s ON s.block = b.geounit GROUP BY ALL"""
        yield f"counts of {level} are the sums of those of {levels[-1]}", _differ(_all(COUNTS, level), summed)


def _geography(schema: Schema, levels: Sequence[str]) -> _Checks:
    attributes = _attributes(schema)
    for name, width in _NESTED.items():
        summed = f"""SELECT left(geounit, {width}) AS geounit, {attributes}, sum("count")::BIGINT AS "count"
            FROM {_counted(COUNTS, levels[-1])} GROUP BY ALL"""
        yield f"tabulation/{name} has the sums of the blocks", _differ(_all(TABULATION, name), summed)
    for name in _OTHERS:
        table = _counted(TABULATION, name)
        yield (
            f"tabulation/{name} has no more of a cell than there are",
            f"""SELECT 1 FROM (SELECT {attributes}, sum("count") AS part FROM {table} GROUP BY ALL)
                LEFT JOIN (SELECT {attributes}, sum("count") AS whole FROM {_counted(COUNTS, levels[-1])} GROUP BY ALL)
                USING ({attributes}) WHERE whole IS NULL OR part > whole""",
        )
        yield (
            f"tabulation/{name} has each cell once",
            f'SELECT 1 FROM {table} WHERE "count" IS NULL OR "count" <= 0'
            f" UNION ALL SELECT 1 FROM {table} GROUP BY geounit, {attributes} HAVING count(*) > 1",
        )


def _records(schema: Schema, levels: Sequence[str]) -> _Checks:
    block = "TABBLKST || TABBLKCOU || TABTRACTCE || TABBLKGRPCE || TABBLK"
    where = ""
    if counts_persons(schema):
        codes = {
            "hhgq": "GQTYPE_PL::INTEGER",
            "votingage": "VOTING_AGE::INTEGER - 1",
            "hispanic": "CENHISP::INTEGER - 1",
            "cenrace": "CENRACE::INTEGER - 1",
        }
        yield (
            "RTYPE 5 are the persons in group quarters",
            "SELECT 1 FROM records WHERE RTYPE <> CASE GQTYPE_PL WHEN '0' THEN '3' ELSE '5' END",
        )
    elif counts_units(schema):
        codes = {"h1": "CASE HH_STATUS WHEN '2' THEN 0 WHEN '1' THEN 1 END"}
        where = "WHERE RTYPE = '2'"
    else:
        block, codes = "block", {}
    columns = (
        f"{_label(codes[a.name], a.labels)} AS {_named(a.name)}" if codes else _named(a.name) for a in schema.attributes
    )
    counted = f"""SELECT {block} AS geounit, {", ".join(columns)}, count(*)::BIGINT AS "count"
        FROM records {where} GROUP BY ALL"""
    yield (
        f"{MICRODATA} has as many records of each cell as are counted",
        _differ(_all(COUNTS, levels[-1]), counted),
    )


def _open_members(db: duckdb.DuckDBPyConnection, schema: Schema, table: Table) -> None:
    """Open which cells, by their labels, each variable of a table adds up."""
    cell, slot = np.nonzero(table.member >= 0)
    levels = np.unravel_index(cell, schema.shape)
    arrays: Mapping[str, object] = {
        **{
            f"a{i}": np.array(a.labels, dtype=object)[level]
            for i, (a, level) in enumerate(zip(schema.attributes, levels, strict=True))
        },
        "variable": np.array(table.variables, dtype=object)[table.member[cell, slot]],
    }
    db.register("members_now", arrays)
    columns = ", ".join(f"a{i} AS {_named(a.name)}" for i, a in enumerate(schema.attributes))
    db.execute(f"CREATE TABLE {_named(f'{table.name} members')} AS SELECT {columns}, variable FROM members_now")
    db.unregister("members_now")


def _table(schema: Schema, table: Table) -> _Checks:
    attributes = _attributes(schema)
    variables = ", ".join(map(_named, table.variables))
    codes = dict.fromkeys(SUMMARY_LEVELS, "geounit") | {"block": "left(geounit, 11) || right(geounit, 4)"}
    summed = " UNION ALL ".join(
        f"""SELECT '{level}' AS level, {codes[name]} AS code, {attributes}, "count" FROM {_counted(TABULATION, name)}"""
        for name, level in SUMMARY_LEVELS.items()
    )
    summed = f"""SELECT level, code, variable, sum("count")::BIGINT AS "count"
        FROM ({summed}) JOIN {_named(f"{table.name} members")} USING ({attributes}) GROUP BY ALL"""
    written = f"""SELECT SUMLEV AS level, GEOCODE AS code, variable, value::BIGINT AS "count" FROM
        (UNPIVOT {_named(table.name)} ON {variables} INTO NAME variable VALUE value) WHERE value <> '0'"""
    yield f"table {table.name} agrees with {TABULATION}", _differ(written, summed)


def _differ(one: str, other: str) -> str:
    """SQL for rows that one of two queries gives and the other does not, or not as often."""
    both = f"SELECT *, 1 AS side FROM ({one}) UNION ALL SELECT *, -1 AS side FROM ({other})"
    return f"SELECT * EXCLUDE (side) FROM ({both}) GROUP BY ALL HAVING sum(side) <> 0"


def _counted(folder: str, name: str) -> str:
    return _named(f"{folder}/{name} counted")


def _all(folder: str, name: str) -> str:
    return f"SELECT * FROM {_counted(folder, name)}"


def _attributes(schema: Schema) -> str:
    return ", ".join(map(_named, schema.names))


def _in_schema(schema: Schema) -> str:
    known = (f"{_named(a.name)} IN ({', '.join(map(_text, a.labels))})" for a in schema.attributes)
    return " AND ".join(known)


def _label(number: str, labels: Sequence[str]) -> str:
    return f"([{', '.join(map(_text, labels))}])[{number} + 1]"


def _named(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
