"""Large tables: rows gathered as numbers, piece by piece, and written once by the database, as text or Parquet."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import duckdb
import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Ints
from yupana.files.arrow_stream import ArrowParts, Column, TextColumn
from yupana.files.database import open_database, write_query
from yupana.release.check import describe
from yupana.release.lines import texts
from yupana.release.tables import Format, Value, written


@dataclass(frozen=True, eq=False)
class Coded:
    """A column whose few values are listed once.

    Attributes
    ----------
    values : sequence of str or float
    places : numpy.ndarray of integers, shape (rows,)
        Where the value of each row stands in the list.
    """

    values: Sequence[str] | Sequence[float]
    places: NDArray[np.integer]


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
    paths = write_all(folder, tables, fmt)
    return {
        paths[table.name].relative_to(folder).as_posix(): describe(
            table.name, paths[table.name], table.rows, table.columns
        )
        for table in tables
    }


def write_all(folder: Path, tables: Iterable[RowTable], fmt: Format) -> dict[str, Path]:
    """Write tables, as `yupana.release.tables.write_table` would; their files by name.

    Raises
    ------
    OSError
        If they cannot be written.
    """
    with open_database() as db:
        return {one.name: write_parts(db, folder / f"{one.name}.{fmt}", parts_of(_columns(one, fmt))) for one in tables}


def write_parts(db: duckdb.DuckDBPyConnection, path: Path, parts: Iterable[Mapping[str, Column]]) -> Path:
    """Write rows that come part after part, one part at least, as text or Parquet by the name of the file.

    Raises
    ------
    OSError
        If they cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    stream = ArrowParts(parts)
    db.register("parts", stream)
    try:
        write_query(db, "SELECT * FROM parts", path)
    except BaseException:
        if stream.fault is not None:
            raise stream.fault from None
        raise
    finally:
        db.unregister("parts")
    return path


_ROWS_AT_ONCE: Final = 1 << 17


def parts_of(columns: Mapping[str, Column]) -> Iterator[dict[str, Column]]:
    """Columns as parts of some rows, one at least."""
    rows = len(next(iter(columns.values())))
    for first in range(0, max(rows, 1), _ROWS_AT_ONCE):
        yield {name: column[first : first + _ROWS_AT_ONCE] for name, column in columns.items()}


def _columns(table: RowTable, fmt: Format) -> dict[str, Column]:
    return {name: _column(column, fmt) for name, column in table.columns.items()}


def _column(column: Coded | Ints, fmt: Format) -> Column:
    if not isinstance(column, Coded):
        return column
    if fmt == "parquet" and _is_number(column.values):
        return np.take(np.array(column.values, dtype=np.float64), column.places)
    return TextColumn(texts(map(written, column.values)), column.places.astype(np.int64, copy=False))


def _is_number(values: Sequence[Value]) -> bool:
    return bool(values) and not isinstance(values[0], str)
