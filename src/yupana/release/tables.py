"""Published tables as columns, written as `|`-separated CSV or as Parquet, and read back as they were written."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal

import duckdb
import numpy as np

from yupana.errors import OutputError
from yupana.files.database import open_database, write_query
from yupana.files.delimited import PARQUET, apart, column_types, csv_rows, parquet_rows, read_header
from yupana.files.regular import must_be_regular, read_regular, regular

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
    path = folder / f"{table.name}.{fmt}"
    if fmt == "csv":
        rows = zip(*table.columns.values(), strict=True)
        lines = ["|".join(table.columns), *("|".join(map(written, row)) for row in rows)]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path
    arrays = {
        name: np.array(values, dtype=object if _is_text(values) else None) for name, values in table.columns.items()
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
    path : Path
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


def _is_text(values: Sequence[Value]) -> bool:
    return bool(values) and isinstance(values[0], str)


def written(value: Value) -> str:
    """A value as CSV writes it: a float with the fewest digits that read back as itself."""
    if isinstance(value, float):
        return repr(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    return str(value)
