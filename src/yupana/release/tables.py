"""Published tables as columns, written as `|`-separated CSV or as Parquet, and read back as they were written.

Large ones are rows gathered as numbers, piece by piece, and written once by the database. Files are compared with what
a manifest says of them, and nothing may lie beside them.
"""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal

import duckdb
import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Integers, Ints
from yupana.errors import OutputError, is_line
from yupana.files.arrow_stream import ArrowParts, Column, TextColumn
from yupana.files.database import open_database, write_query
from yupana.files.delimited import PARQUET, apart, column_types, csv_rows, parquet_rows, read_header
from yupana.files.names import file_of
from yupana.files.regular import must_be_regular, read_regular, regular
from yupana.interruption import whole
from yupana.release.lines import texts
from yupana.release.manifest import MANIFEST, SIGNATURES

Value = str | int | float
Format = Literal["csv", "parquet"]

_BLOCK: Final = 1 << 20
"""Bytes that are read at once."""


@dataclass(frozen=True, slots=True)
class ReleaseTable:
    """A table to publish: its name and its columns, all of one length, in order."""

    name: str
    columns: Mapping[str, Sequence[Value]]

    @property
    def rows(self) -> int:
        """How many rows."""
        return len(next(iter(self.columns.values()), ()))


def table_of(
    name: str, rows: Sequence[object], columns: Sequence[str], fields: Mapping[str, str] = MappingProxyType({})
) -> ReleaseTable:
    """Lay out rows as a table: a column is the field of its name in lower case, or the one that ``fields`` names.

    None is left empty, and a flag is written as True or False.
    """

    def of(column: str) -> list[Value]:
        values = [getattr(row, fields.get(column, column.lower())) for row in rows]
        return ["" if value is None else str(value) if isinstance(value, bool) else value for value in values]

    return ReleaseTable(name, {column: of(column) for column in columns})


def write_table(folder: Path, table: ReleaseTable, fmt: Format) -> Path:
    """Write a table; a float is written with the fewest digits that read back as itself.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    path = folder / f"{file_of(table.name)}.{fmt}"
    if fmt == "csv":
        rows = zip(*table.columns.values(), strict=True)
        lines = ["|".join(table.columns), *("|".join(map(written, row)) for row in rows)]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path
    arrays = {
        name: np.array(values, dtype=object if values and isinstance(values[0], str) else None)
        for name, values in table.columns.items()
    }
    with open_database() as db:
        db.register("rows", arrays)
        write_query(db, "SELECT * FROM rows", path)
    return path


def read_table(path: Path) -> dict[str, list[str]]:
    """Read a table written by `write_table` as text, by column.

    Raises
    ------
    OutputError
        If the file is no such table.
    """
    try:
        if path.suffix == PARQUET:
            with open_database() as db:
                arrays = db.execute(f"SELECT * FROM {table_rows(path)}").fetchnumpy()
            # The database stores a float that is no number as NULL.
            return {
                name: ["nan" if value is None else written(value) for value in values.tolist()]
                for name, values in arrays.items()
            }
        lines = read_regular(path).decode().splitlines()
        rows = [line.split("|") for line in lines[1:]]
        header = lines[0].split("|")
        return (
            dict(zip(header, map(list, zip(*rows, strict=True)), strict=True))
            if rows
            else {name: [] for name in header}
        )
    except (OSError, ValueError, IndexError, duckdb.Error):
        raise OutputError(f"{path} is not readable as a table of a release") from None


def table_rows(path: Path, kinds: Mapping[str, str] | None = None) -> str:
    """SQL for the rows of a table of a release, written by `write_table`, `write_parts` or `write_query`.

    Parameters
    ----------
    kinds : mapping of str to str, optional
        SQL types of columns of text files that are not to be text; Parquet has its own.

    Raises
    ------
    OSError
        If it is no file or cannot be read.
    UnicodeDecodeError
        If it is no text.
    """
    if path.suffix == PARQUET:
        must_be_regular(path)
        return parquet_rows([path])
    return csv_rows(path, apart(table_columns(path)), kinds=kinds)


def table_columns(path: Path) -> list[str]:
    """The columns of a table of a release, as the file names them.

    Raises
    ------
    OSError, UnicodeDecodeError
        As by `table_rows`.
    """
    if path.suffix != PARQUET:
        return list(read_header(path, separators="|", quote="").names)
    with open_database() as db:
        return list(column_types(db, table_rows(path)))


def checksum(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with open(path, "rb", opener=regular) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def checksum_and_lines(path: Path) -> tuple[str, int]:
    """SHA-256 of a file, in hexadecimal, and how many line ends it has."""
    digest, lines = hashlib.sha256(), 0
    with open(path, "rb", opener=regular) as file:
        while block := file.read(_BLOCK):
            digest.update(block)
            lines += block.count(b"\n")
    return digest.hexdigest(), lines


def parquet_row_count(path: Path) -> int:
    """How many rows a Parquet file has, as its metadata tell."""
    with open_database() as db:
        ((rows,),) = db.execute(f"SELECT count(*) FROM {table_rows(path)}").fetchall()
    return int(rows)


def checksums_by_name(paths: Iterable[Path], below: str = "") -> dict[str, str]:
    """SHA-256 of files by name, wherever they lie; of another file of the same name by the name and a number.

    Parameters
    ----------
    paths : iterable of Path
        In the order that they are given in, which tells them apart.
    below : str
        What the names begin with.
    """
    found: dict[str, str] = {}
    for path in paths:
        digest = checksum(path)
        names = chain((f"{below}{path.name}",), (f"{below}{path.name} ({number})" for number in count(2)))
        found[next(name for name in names if found.get(name, digest) == digest)] = digest
    return found


def written(value: Value) -> str:
    """A value as CSV writes it: a float with the fewest digits that read back as itself."""
    if isinstance(value, float):
        return repr(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    return str(value)


def describe_tables(
    folder: Path, paths: Mapping[str, Path], tables: "Sequence[ReleaseTable | RowTable]"
) -> dict[str, Any]:
    """What a manifest says of tables: by the path of each within the folder, checksum, rows and columns."""
    return {
        paths[one.name].relative_to(folder).as_posix(): describe(one.name, paths[one.name], one.rows, one.columns)
        for one in tables
    }


def describe(name: str, path: Path, rows: int, columns: Iterable[str]) -> dict[str, Any]:
    """What a manifest says of one table."""
    return {"table": name, "sha256": checksum(path), "rows": rows, "columns": list(columns)}


def describe_reports(folder: Path, names: Iterable[str]) -> dict[str, Any]:
    """What a manifest says of the pages beside its tables."""
    return {name: {"sha256": checksum(folder / name)} for name in names}


def file_fault(folder: Path, name: str, described: Mapping[str, Any]) -> str | None:
    """What is wrong with a file that a manifest lists, in words; None if its bytes are the manifest's."""
    path = folder / name
    if any((folder / part).is_symlink() for part in (name, *map(str, Path(name).parents[:-1]))):
        return f"{name} is a link; a release holds files"
    if not path.is_file():
        return f"{name} is missing"
    digest, lines = checksum_and_lines(path)
    if digest != described["sha256"]:
        return f"{name} was changed after it was written: its checksum is not the manifest's"
    return _shape_fault(name, path, described, lines) if "rows" in described else None


def _shape_fault(name: str, path: Path, described: Mapping[str, Any], lines: int) -> str | None:
    """What is wrong with the rows and columns that a manifest tells of a table."""
    if path.suffix not in {".csv", PARQUET}:
        return None
    try:
        columns = table_columns(path)
        rows = parquet_row_count(path) if path.suffix == PARQUET else lines - 1
    except (OSError, ValueError, duckdb.Error):
        return f"{name} is not readable as a table of a release"
    if columns != described.get("columns"):
        return f"{name} does not have the columns of the manifest"
    return None if rows == described["rows"] else f"{name} does not have the rows of the manifest"


def checked_file(folder: Path, manifest: Mapping[str, Any], name: str, listed: str = "tables") -> Path:
    """The path of a file that the manifest of a folder lists, under "tables" or "reports", if it has the same bytes.

    Raises
    ------
    OutputError
        If it is missing, a link, or was changed.
    """
    if wrong := file_fault(folder, name, manifest[listed][name]):
        raise OutputError(f"{folder}: {wrong}")
    return folder / name


def folder_faults(release: Path, manifest: Mapping[str, Any]) -> list[str]:
    """What is wrong with the files of a release, in words: missing, changed or not listed, links and empty folders."""
    listed = manifest["tables"] | manifest.get("reports", {})
    wrong = [fault for name, described in listed.items() if (fault := file_fault(release, name, described))]
    signed = {name for name in SIGNATURES if not (release / name).is_symlink()}
    return wrong + _beside(release, {MANIFEST, *listed, *signed})


def _beside(release: Path, listed: set[str]) -> list[str]:
    """What lies in a release and is not in its manifest."""
    wrong = []
    for folder, below, files in os.walk(release):
        within = Path(folder).relative_to(release)
        if not below and not files:
            wrong.append(f"{within.as_posix()} is an empty folder")
        linked = [name for name in below if (Path(folder) / name).is_symlink()]
        strangers = [*linked, *(name for name in files if (within / name).as_posix() not in listed)]
        wrong += [f"{(within / name).as_posix()} is not in the manifest" for name in strangers]
    return sorted(ascii(text)[1:-1] if not is_line(text) else text for text in wrong)


@dataclass(frozen=True, eq=False)
class Coded:
    """A column whose few values are listed once."""

    values: Sequence[str] | Sequence[float]
    places: NDArray[np.integer]  # shape (rows,): where the value of each row stands in the list


@dataclass(frozen=True, eq=False)
class RowTable:
    """A table to publish: columns of codes or of whole numbers, all of one length, in the order of its rows."""

    name: str
    columns: Mapping[str, Coded | Ints]

    @property
    def rows(self) -> int:
        """How many rows."""
        column = next(iter(self.columns.values()))
        return len(column.places if isinstance(column, Coded) else column)


def write_described(folder: Path, tables: Sequence[RowTable], fmt: Format) -> dict[str, dict[str, Any]]:
    """Write tables, and return what a manifest says of each, by its path within the folder."""
    return describe_tables(folder, write_all(folder, tables, fmt), tables)


def write_all(folder: Path, tables: Iterable[RowTable], fmt: Format) -> dict[str, Path]:
    """Write tables, as `yupana.release.tables.write_table` would; their files by name.

    Raises
    ------
    OSError
        If they cannot be written.
    """
    with open_database() as db:
        return {one.name: write_parts(db, folder / f"{file_of(one.name)}.{fmt}", _parts(one, fmt)) for one in tables}


def write_parts(db: duckdb.DuckDBPyConnection, path: Path, parts: Iterable[Mapping[str, Column]]) -> Path:
    """Write rows that come part after part, one part at least, as text or Parquet by the name of the file.

    Raises
    ------
    OSError
        If they cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with streamed(db, "parts", parts):
        write_query(db, "SELECT * FROM parts", path)
    return path


@contextmanager
def streamed(db: duckdb.DuckDBPyConnection, name: str, parts: Iterable[Mapping[str, Column]]) -> Iterator[None]:
    """Let one query read rows that come part after part, one part at least; what fails in a part is raised."""
    stream = ArrowParts(parts)
    # A signal in a call of the database into the stream would be lost there: the stream ends early where one waits.
    with whole():
        db.register(name, stream)
        try:
            yield
        except BaseException:
            if stream.fault is not None:
                raise stream.fault from None
            raise
        finally:
            db.unregister(name)


_ROWS_AT_ONCE: Final = 1 << 17


def parts_of(columns: Mapping[str, Column]) -> Iterator[dict[str, Column]]:
    """Columns as parts of some rows, one at least."""
    rows = len(next(iter(columns.values())))
    for first in range(0, max(rows, 1), _ROWS_AT_ONCE):
        yield {name: column[first : first + _ROWS_AT_ONCE] for name, column in columns.items()}


def _parts(table: RowTable, fmt: Format) -> Iterator[dict[str, Column]]:
    """The rows of a table in parts; what few values stand for is looked up part by part, as it takes more bytes."""
    coded = {name: _coded(column.values, fmt) for name, column in table.columns.items() if isinstance(column, Coded)}
    for first in range(0, max(table.rows, 1), _ROWS_AT_ONCE):
        here = slice(first, first + _ROWS_AT_ONCE)
        yield {
            name: coded[name](column.places[here]) if isinstance(column, Coded) else column[here]
            for name, column in table.columns.items()
        }


def _coded(values: Sequence[Value], fmt: Format) -> Callable[[Integers], Column]:
    if fmt == "parquet" and values and not isinstance(values[0], str):
        numbers = np.array(values, dtype=np.float64)
        return lambda places: np.take(numbers, places)
    known = texts(map(written, values))
    return lambda places: TextColumn(known, places.astype(np.int64))
