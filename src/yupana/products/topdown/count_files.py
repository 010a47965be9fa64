"""Counts of a TopDown release read back from its files, each row checked as it is read. Public."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import duckdb
import numpy as np

from yupana.arrays import Ints
from yupana.files.database import named, quoted, unreadable
from yupana.files.delimited import column_types, csv_rows, parquet_rows, positions, read_header
from yupana.release.lines import Texts
from yupana.topdown.histogram import Histogram, count_entries
from yupana.topdown.queries import Schema


class CountFileError(Exception):
    """A file that does not hold what it should; the text says so."""


def counts_by_label(
    db: duckdb.DuckDBPyConnection,
    folder: Path,
    name: str,
    schema: Schema,
    labels: Sequence[str],
    more: Sequence[str] = (),
) -> Histogram:
    """Counts of units that are named by texts, in the order of these."""
    source = f"{source_of(db, folder, name, schema, more)} {join_labels(db, labels, 'geounit')}"
    return _histogram(db, name, source, PLACE, schema, len(labels))


PLACE: Final = '"its place"'


def join_labels(db: duckdb.DuckDBPyConnection, labels: Sequence[str], column: str) -> str:
    """SQL that joins the place of each text of a column among labels; no attribute has a name with a space."""
    db.register("labels_now", {"a label": np.array(labels, dtype=object), "its place": np.arange(len(labels))})
    db.execute("CREATE OR REPLACE TABLE labels AS SELECT * FROM labels_now")
    db.unregister("labels_now")
    return f'LEFT JOIN labels ON "a label" = {column}'


def counts_by_code(
    db: duckdb.DuckDBPyConnection,
    folder: Path,
    name: str,
    schema: Schema,
    codes: Ints,
    width: int,
    more: Sequence[str] = (),
) -> Histogram:
    """Counts of areas that are named by digits; `codes` are in order."""
    source = source_of(db, folder, name, schema, more)
    return _histogram(db, name, source, code_of(width), schema, len(codes), codes)


def code_of(width: int) -> str:
    """SQL for a geounit of so many digits as a number; NULL where it is none."""
    return f"CASE WHEN length(geounit) = {width} THEN TRY_CAST(geounit AS BIGINT) END"


def _histogram(
    db: duckdb.DuckDBPyConnection,
    name: str,
    source: str,
    unit: str,
    schema: Schema,
    units: int,
    codes: Ints | None = None,
) -> Histogram:
    cell = cell_of(schema, levels_in(schema))
    with unreadable(CountFileError(f"{name} is not readable as a table of a release")):
        found = db.execute(f"""SELECT coalesce({unit}, -1) AS unit, coalesce({cell}, -1) AS cell,
            coalesce(TRY_CAST("count" AS BIGINT), -1) AS "count" FROM {source}""").fetchnumpy()
    place, cells, count = (np.asarray(found[column], dtype=np.int64) for column in ("unit", "cell", "count"))
    if codes is not None:
        place = positions(place, codes)
    if bool((place < 0).any()):
        raise CountFileError(f"{name} has a geounit that the blocks of the spine do not have")
    if bool((cells < 0).any()) or bool((count <= 0).any()):
        raise CountFileError(f"{name} has a row outside the schema, or a count that is no whole number above 0")
    counts = count_entries(place, cells.astype(np.int32), count, units)
    if len(counts.counts) < len(count):
        raise CountFileError(f"{name} has a cell of a geounit twice")
    return counts


def source_of(db: duckdb.DuckDBPyConnection, folder: Path, name: str, schema: Schema, more: Sequence[str] = ()) -> str:
    """SQL for a table of counts with more columns, all columns text."""
    columns = ("geounit", *schema.names, "count", *more)
    paths = [path for path in (folder / f"{name}.csv", folder / f"{name}.parquet") if path.is_file()]
    if len(paths) != 1:
        raise CountFileError(f"{name} is missing, or there both as CSV and as Parquet")
    if paths[0].suffix == ".csv":
        return open_text(paths[0], columns)
    rows = parquet_rows(paths)
    with unreadable(CountFileError(f"{name} is not readable as a table of a release")):
        found = list(column_types(db, rows))
    if found != list(columns):
        raise CountFileError(f"{name} must have the columns {', '.join(columns)}")
    return f"(SELECT COLUMNS(*)::VARCHAR FROM {rows})"


def codes_of(labels: Texts) -> Ints | None:
    """Identifiers as numbers, if all are digits and equally many."""
    lengths = np.char.str_len(labels)
    if not np.char.isdigit(labels).all() or bool((lengths != lengths[:1]).any()):
        return None
    return np.asarray(labels.astype(np.int64))


def open_text(path: Path, columns: Sequence[str]) -> str:
    """SQL for a text file with these columns, all text."""
    try:
        header = read_header(path, separators="|", quote="").names
    except (OSError, ValueError):
        raise CountFileError(f"{path.name} is missing or not readable") from None
    if header != tuple(columns):
        raise CountFileError(f"{path.name} must have the columns {', '.join(columns)}")
    return csv_rows(path, columns)


def levels_in(schema: Schema) -> dict[str, str]:
    """SQL for the number of each attribute's level, from its label; NULL for no label of the schema."""
    found = {}
    for attribute in schema.attributes:
        name = named(attribute.name)
        if attribute.labels == tuple(map(str, range(attribute.size))):
            number = f"TRY_CAST({name} AS INTEGER)"
            found[attribute.name] = f"CASE WHEN {number} BETWEEN 0 AND {attribute.size - 1} THEN {number} END"
        else:
            found[attribute.name] = f"(list_position([{', '.join(map(quoted, attribute.labels))}], {name}) - 1)"
    return found


def cell_of(schema: Schema, levels: Mapping[str, str]) -> str:
    """SQL for the number of a cell, from that of each attribute's level."""
    cell = "0"
    for attribute in schema.attributes:
        cell = f"({cell} * {attribute.size} + {levels[attribute.name]})"
    return cell
