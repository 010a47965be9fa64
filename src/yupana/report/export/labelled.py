"""Tables with codes and labels side by side, as CSV for spreadsheets and as Parquet for programs."""

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import duckdb

from yupana.errors import OutputError
from yupana.files.database import named, open_database, quoted, unreadable, write_query
from yupana.files.delimited import parquet_rows
from yupana.progress import Progress
from yupana.release.codebook import REASON
from yupana.report.export.tables import Cell, Export, ExportColumn, ExportTable, Row, differences, listed

_FORMULA: Final = r"^[=+\-@]"
_NUMBER: Final = r"^[+\-]?[0-9]+([.,][0-9]+)?$"


def write_labelled(folder: Path, export: Export, database: duckdb.DuckDBPyConnection, tell: Progress) -> None:
    """Write each table twice.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    for done, (table, name) in enumerate(zip(export.tables, export.names(""), strict=True)):
        tell("writing tables", done, len(export.tables))
        write_query(database, _query(table, database, typed=False), folder / f"{name}.csv", "FORMAT csv, HEADER true")
        write_query(database, _query(table, database, typed=True), folder / f"{name}.parquet")


def _query(table: ExportTable, database: duckdb.DuckDBPyConnection, *, typed: bool) -> str:
    """SQL of a table as it is written: with types for Parquet, else as text that no spreadsheet takes for a formula."""
    headers = table.headers()
    values = (value for column in table.columns for value in _values(table, column, database, typed=typed))
    selected = [f"{value} AS {named(header)}" for value, header in zip(values, headers, strict=True)]
    return f"SELECT {', '.join(selected)} FROM ({table.query})"


def _values(
    table: ExportTable, column: ExportColumn, database: duckdb.DuckDBPyConnection, *, typed: bool
) -> Iterator[str]:
    name = named(column.name)
    if column.is_number:
        is_suppressed = any(column.name == REASON for column in table.columns)
        kind = "VARCHAR" if is_suppressed else "BIGINT" if column.kind == "whole" else "DOUBLE"
        yield f"CAST(nullif({name}, '') AS {kind})" if typed else f"nullif({name}, '')"
        return
    for text in (name, listed(database, name, column.labels, "''")) if column.labels else (name,):
        test = f"regexp_matches({text}, {quoted(_FORMULA)}) AND NOT regexp_matches({text}, {quoted(_NUMBER)})"
        yield text if typed else f"CASE WHEN {test} THEN '''' || {text} ELSE {text} END"


def labelled_faults(folder: Path, export: Export, database: duckdb.DuckDBPyConnection, tell: Progress) -> Iterator[str]:
    """Where the files do not hold what the release does, in words."""
    for done, (table, name) in enumerate(zip(export.tables, export.names(""), strict=True)):
        tell("reading tables", done, len(export.tables))
        headers = table.headers()
        guarded = (tuple(map(_guarded, row)) for row in table.cells(database))
        yield from differences(f"{name}.csv", headers, guarded, _rows_of_text(folder / f"{name}.csv", table))
        yield from differences(
            f"{name}.parquet", headers, table.cells(database), _rows_of_parquet(folder / f"{name}.parquet", table)
        )


def _guarded(cell: Cell) -> Cell:
    """A text as it stands in CSV: with an apostrophe before what a spreadsheet would take for a formula."""
    if not isinstance(cell, str) or not cell or cell[0] not in "=+-@":
        return cell
    return cell if re.fullmatch(_NUMBER, cell) else f"'{cell}"


def _rows_of_text(path: Path, table: ExportTable) -> Iterator[Row]:
    with unreadable(OutputError(f"{path} is not readable as CSV")), path.open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file)
        if next(rows, None) != table.headers():
            raise OutputError(f"{path} does not have the columns of the export")
        yield from (tuple(_read(table, row)) for row in rows)


def _rows_of_parquet(path: Path, table: ExportTable) -> Iterator[Row]:
    with unreadable(OutputError(f"{path} is not readable as Parquet")), open_database() as database:
        found = database.execute(f"SELECT * FROM {parquet_rows([path])}")
        if [one[0] for one in found.description or ()] != table.headers():
            raise OutputError(f"{path} does not have the columns of the export")
        while part := found.fetchmany(10_000):
            yield from (tuple(_read(table, row)) for row in part)


def _read(table: ExportTable, row: Row) -> Iterator[Cell]:
    """The cells of a row of a file."""
    values = iter(row)
    for column in table.columns:
        yield column.read(next(values, None))
        if column.labels:
            yield str(next(values, None) or "")
    yield from values
