"""Large tables: rows gathered as numbers, piece by piece, and written once by the database, as text or Parquet."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import duckdb
import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Integers, Ints
from yupana.files.arrow_stream import ArrowParts, Column, TextColumn
from yupana.files.database import open_database, write_query
from yupana.interruption import whole
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
        return {one.name: write_parts(db, folder / f"{one.name}.{fmt}", _parts(one, fmt)) for one in tables}


def write_parts(db: duckdb.DuckDBPyConnection, path: Path, parts: Iterable[Mapping[str, Column]]) -> Path:
    """Write rows that come part after part, one part at least, as text or Parquet by the name of the file.

    Raises
    ------
    OSError
        If they cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    stream = ArrowParts(parts)
    # A signal in a call of the database into the stream would be lost there: the stream ends early where one waits.
    with whole():
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
