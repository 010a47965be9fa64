"""A workbook that follows the guidance on accessible spreadsheets of the UK Government Analysis Function.

Cover, contents and notes are made by gptables. A sheet per table is written in its theme without its frames, which
hold a mapping for every cell: 46,000 rows of six columns a second, against 13,000.
"""

import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import duckdb

from yupana.errors import ConfigError, OutputError
from yupana.files.database import named, quoted
from yupana.progress import Progress
from yupana.release.recipe import SUPPRESSED
from yupana.report.export.tables import (
    Cell,
    Export,
    ExportColumn,
    ExportTable,
    differences,
    distinct,
    library,
    one_line,
)

MOST_ROWS: Final = 1_048_576
MOST_COLUMNS: Final = 16_384
MOST_CELLS: Final = 5_000_000
"""Of one workbook: 25 seconds and 1.4 GB of memory. The others are those of the format."""

LONGEST_TEXT: Final = 32_767
LONGEST_SHEET: Final = 31

_COVER: Final = "Cover"
_CONTENTS: Final = "Contents"
_NOTES: Final = "Notes"
_NOT_AVAILABLE: Final = "[x]"
_NO_VALUE: Final = "[z]"
_LEGEND: Final = (
    f"Shorthand: {_NOT_AVAILABLE} is a number that is not available, because it was suppressed; {_NO_VALUE} is not "
    "applicable: there is no value."
)
_WIDEST: Final = 50


class _Exact(float):
    """A number that is written with the fewest digits that read back as itself."""

    def __format__(self, _: str) -> str:
        return repr(float(self))


def write_workbook(folder: Path, export: Export, database: duckdb.DuckDBPyConnection, tell: Progress) -> None:
    """Write one workbook, or one for each value of the column that splits them.

    Raises
    ------
    ConfigError
        If gptables is not installed, or no table has the column.
    OutputError
        If a table or a workbook is larger than it may be; nothing was written then.
    OSError
        If it cannot be written.
    """
    library("gptables", "a workbook")
    books = _books(export, database)
    for book in books.values():
        _refuse_large(book)
    for name, book in books.items():
        _write(folder / name, book, database, tell)


def _books(export: Export, database: duckdb.DuckDBPyConnection) -> dict[str, Export]:
    """The workbooks by the names of their files."""
    stem = export.release.name
    if not export.split:
        return {export.files([stem], ".xlsx")[0]: export}
    having = {table.name: any(one.name == export.split for one in table.columns) for table in export.tables}
    if not any(having.values()):
        known = sorted({one.name for table in export.tables for one in table.columns if not one.is_number})
        raise ConfigError(f"split: no table has the column {export.split!r}; there are {', '.join(known)}")
    column = named(export.split)
    parts: dict[str, list[ExportTable]] = {}
    for table in export.tables:
        if not having[table.name]:
            parts.setdefault("", []).append(table)
            continue
        found = database.execute(f"SELECT {column}, count(*) FROM ({table.query}) GROUP BY 1 ORDER BY 1").fetchall()
        for value, rows in found:
            query = f"SELECT * FROM ({table.query}) WHERE {column} = {quoted(value)}"
            parts.setdefault(f"{export.split}-{value}", []).append(replace(table, query=query, rows=rows))
    names = export.files((f"{stem}-{part or 'other'}" for part in parts), ".xlsx")
    return {name: replace(export, tables=tuple(tables)) for name, tables in zip(names, parts.values(), strict=True)}


def _refuse_large(book: Export) -> None:
    instead = "choose with --tables, give each value of a column its workbook with --split, or export it as labelled"
    for table in book.tables:
        columns = len(table.headers())
        if table.rows + _HEADER + 1 > MOST_ROWS or columns > MOST_COLUMNS:
            raise OutputError(
                f"{table.name} has {table.rows:,} rows and {columns:,} columns; a sheet holds {MOST_ROWS:,} rows, "
                f"{_HEADER + 1} of them above the table, and {MOST_COLUMNS:,} columns; {instead}"
            )
        for text in (table.title, *(label for column in table.columns for label in column.labels.values())):
            if len(text) > LONGEST_TEXT:
                raise OutputError(
                    f"{table.name} has a title or label of {len(text):,} characters; a cell holds {LONGEST_TEXT:,}; "
                    "export it as labelled"
                )
    cells = sum(table.rows * len(table.headers()) for table in book.tables)
    if cells > MOST_CELLS:
        raise OutputError(f"a workbook would have {cells:,} cells, and may have {MOST_CELLS:,}; {instead}")


def _write(path: Path, book: Export, database: duckdb.DuckDBPyConnection, tell: Progress) -> None:
    gptables: Any = library("gptables", "a workbook")
    wrappers: Any = library("gptables.core.wrappers", "a workbook")
    pandas: Any = library("pandas", "a workbook")
    workbook = wrappers.GPWorkbook(
        str(path), {"strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}
    )
    workbook.set_properties(_properties(book))
    title, about = _cover(book)
    cover = gptables.Cover(title=title, intro=list(about[:1]), about=list(about[1:]))
    workbook.add_worksheet(_COVER).write_cover(cover)
    sheets = sheet_names(book)
    rows = [[{name: f"internal:'{name}'!A1"}, text] for name, text in _contents(book)]
    contents = gptables.GPTable(
        pandas.DataFrame(rows, columns=["Sheet name", "Table"]), "contents_table", "Contents",
        instructions=_ONE_TABLE, index_columns={2: 0},
    )  # fmt: skip
    notes = gptables.GPTable(
        pandas.DataFrame(_notes(book), columns=["Note", "Text"]), "notes_table", "Notes",
        instructions=_ONE_TABLE, index_columns={},
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, sheet in ((_CONTENTS, contents), (_NOTES, notes)):
            worksheet = workbook.add_worksheet(name)
            worksheet.write_gptable(sheet, auto_width=False, reference_order=[])
            worksheet.set_column(0, 0, 32)
            worksheet.set_column(1, 1, 100)
    for number, (table, name) in enumerate(zip(book.tables, sheets, strict=True)):
        _write_sheet(workbook, name, number + 1, book, table, database, tell)
    tell(f"writing {path.name}: to disk")
    workbook.close()


_ONE_TABLE: Final = "This worksheet contains one table."


def _properties(book: Export) -> dict[str, object]:
    return {
        "title": _cover(book)[0][:LONGEST_SUBJECT],
        "subject": f"Release of {book.release.name}",
        "comments": f"{book.release.status}; SHA-256 of the manifest {book.release.sha256}",
        "created": book.made.replace(tzinfo=None),  # the format has no time zone
        "status": book.release.status,
    }


LONGEST_SUBJECT: Final = 255


def _plain(text: str) -> str:
    """A text that gptables takes neither for a link nor for a note, and that has a letter or digit."""
    found = text.replace("](", "] (").replace("$$", "$ $")
    return found if any(one.isalnum() for one in found) else f"untitled: {found}"


def _cover(book: Export) -> tuple[str, tuple[str, ...]]:
    """The title and the lines of the cover."""
    manifest = book.release.manifest
    package = next((table.release.codebook for table in book.tables if table.release.codebook), {})
    title = book.title(one_line(str(manifest.get("title") or (package or {}).get("title") or book.release.name)))
    lines = [
        f"{len(book.tables)} tables of a release of {book.release.name}, with margins of error beside counts, and "
        "labels beside codes. Contents lists the sheets, Notes what is to be known of the numbers.",
        f"Status: {book.release.status}",
        *(f"Reason: {one_line(str(reason))}" for reason in manifest.get("reasons", ())),
        f"Made: {manifest.get('created', 'unknown')}",
        f"SHA-256 of the manifest of the release: {book.release.sha256}",
        _LEGEND,
        "Counts may be negative, as noise was added to them and nothing was rounded up afterwards.",
    ]
    return _plain(title), tuple(map(_plain, lines))


def _contents(book: Export) -> list[tuple[str, str]]:
    texts = (_plain(book.title(f"{table.title} ({table.name})")) for table in book.tables)
    return [(_NOTES, "What is to be known of the numbers"), *zip(sheet_names(book), texts, strict=True)]


def _notes(book: Export) -> list[tuple[str, str]]:
    """The notes by their numbers: what columns hold, and how sure margins are."""
    found = dict.fromkeys(text for table in book.tables for text in _told(table))
    return [(f"[note {number}]", _plain(text)) for number, text in enumerate(found, 1)]


def _told(table: ExportTable) -> Iterator[str]:
    if table.confidence:
        yield f"Margins of error and intervals have a confidence of {table.confidence}."
    yield "No table has merged or empty cells; a number is as the release has it, to the last digit."
    for column in table.columns:
        if column.description:
            yield f"{column.title}: {column.description}"


def _references(book: Export, table: ExportTable) -> str:
    """The notes of a table."""
    numbers = {text: number for number, text in _notes(book)}
    return " ".join(numbers[_plain(text)] for text in dict.fromkeys(_told(table)))


def sheet_names(book: Export) -> list[str]:
    """The name of each table's sheet: that of the table, ``_`` for what may not stand in one, cut and made unlike."""
    plain = ("".join("_" if one in "[]:*?/\\'" else one for one in table.name) for table in book.tables)
    return distinct(plain, LONGEST_SHEET, (_COVER, _CONTENTS, _NOTES, "History"))


def _lines(book: Export, table: ExportTable) -> tuple[str, ...]:
    """What stands above a table, a line each."""
    empty = " It has no rows." if not table.rows else ""
    return (
        book.title(table.title),
        _ONE_TABLE + empty,
        _LEGEND,
        f"Universe: {table.universe}",
        f"Source: {book.source(table)}",
        f"Notes: {_references(book, table)}",
    )


_HEADER: Final = 6
"""The row of the headers, from 0."""


def _write_sheet(
    workbook: Any,  # noqa: ANN401 (of gptables)
    name: str,
    number: int,
    book: Export,
    table: ExportTable,
    database: duckdb.DuckDBPyConnection,
    tell: Progress,
) -> None:
    """Write the sheet of a table."""
    theme, sheet = workbook.theme, workbook.add_worksheet(name)
    headers, heading = table.headers(), workbook.add_format(theme.column_heading_format)
    formats = (theme.title_format, *(theme.instructions_format,) * (_HEADER - 1))
    for row, (text, form) in enumerate(zip(_lines(book, table), formats, strict=True)):
        sheet.write_string(row, 0, text[:LONGEST_TEXT], workbook.add_format(form))
    sheet.write_row(_HEADER, 0, headers, heading)
    left = workbook.add_format({**theme.data_format, "align": "left"})
    right = workbook.add_format({**theme.data_format, "align": "right"})
    whole = workbook.add_format({**theme.data_format, "align": "right", "num_format": "#,##0"})
    forms = [form for column in table.columns for form in _forms(column, left, right, whole)]
    widths = [min(len(text), 20) for text in headers]
    for row, cells in enumerate(table.cells(database), 1):
        if row % _LOOKED_AT == 0:
            tell(f"writing sheet {name}", row, table.rows)
        for place, cell in enumerate(cells):
            if isinstance(cell, str) or cell is None:
                text = _written(cell, is_number=forms[place] is not left)
                if sheet.write_string(_HEADER + row, place, text, forms[place]):
                    raise OutputError(f"{table.name}: {headers[place]}: a cell holds {LONGEST_TEXT:,} characters")
                size = len(text)
            else:
                sheet.write_number(_HEADER + row, place, _Exact(cell), forms[place])
                size = len(str(cell)) + 2
            if row < _LOOKED_AT and size > widths[place]:
                widths[place] = size
    for place, width in enumerate(widths):
        sheet.set_column(place, place, min(width, _WIDEST) + 3)
    if table.rows:
        columns = [{"header": text, "header_format": heading} for text in headers]
        told = {"autofilter": False, "style": None, "name": f"table_{number}", "columns": columns}
        sheet.add_table(_HEADER, 0, _HEADER + table.rows, len(headers) - 1, told)


_LOOKED_AT: Final = 1_000
"""Rows that a column's width is made of; after as many it is told how far the sheet is."""


def _forms(column: ExportColumn, left: object, right: object, whole: object) -> Iterator[object]:
    yield (whole if column.kind == "whole" else right) if column.is_number else left
    if column.labels:
        yield left


def _written(cell: str | None, *, is_number: bool) -> str:
    """What stands for a text, or for a number that is none."""
    if cell == SUPPRESSED and is_number:
        return _NOT_AVAILABLE
    return cell or _NO_VALUE


def workbook_faults(folder: Path, export: Export, database: duckdb.DuckDBPyConnection, tell: Progress) -> Iterator[str]:
    """Where the workbooks do not hold what the release does, in words."""
    openpyxl: Any = library("openpyxl", "reading a workbook")
    for name, book in _books(export, database).items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found = openpyxl.load_workbook(folder / name, read_only=True)
            except Exception:  # noqa: BLE001 (of a file that is no workbook the library raises anything)
                yield f"{name} is no workbook"
                continue
        sheets = sheet_names(book)
        if found.sheetnames != [_COVER, _CONTENTS, _NOTES, *sheets]:
            yield f"{name} does not have the sheets of the export"
            continue
        title, about = _cover(book)
        cover = [row[0] for row in _values(found[_COVER])]
        yield from (f"{name}: the cover does not say {text!a}" for text in (title, *about) if text not in cover)
        for sheet, due in ((_CONTENTS, _contents(book)), (_NOTES, _notes(book))):
            told = list(_values(found[sheet]))[-len(due) :]
            yield from differences(f"{name}: {sheet}", ("first column", "second column"), due, told)
        for done, (table, sheet) in enumerate(zip(book.tables, sheets, strict=True)):
            tell(f"reading {name}", done, len(sheets))
            yield from _sheet_faults(f"{name}: {sheet}", _values(found[sheet]), book, table, database)
        found.close()


def _values(sheet: Any) -> Iterator[tuple[Any, ...]]:  # noqa: ANN401 (of openpyxl)
    return iter(sheet.iter_rows(values_only=True))


def _sheet_faults(
    place: str, rows: Iterator[tuple[Any, ...]], book: Export, table: ExportTable, database: duckdb.DuckDBPyConnection
) -> Iterator[str]:
    for text in _lines(book, table):
        if (next(rows, None) or (None,))[0] != text[:LONGEST_TEXT]:
            yield f"{place}: {text[:40]!a}... is not what stands above the table"
            return
    headers = table.headers()
    if list(next(rows, ()))[: len(headers)] != headers:
        yield f"{place}: the headers are not those of the export"
        return
    numbers = [flag for column in table.columns for flag in (column.is_number, *(False,) * bool(column.labels))]
    due = (
        tuple(_shown(cell, is_number=flag) for cell, flag in zip(row, numbers, strict=True))
        for row in table.cells(database)
    )
    yield from differences(place, headers, due, rows)


def _shown(cell: Cell, *, is_number: bool) -> Cell:
    return _written(cell, is_number=is_number) if isinstance(cell, str) or cell is None else cell
