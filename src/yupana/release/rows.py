"""Large tables: rows gathered as numbers, piece by piece, and written once by the database."""

import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import duckdb
import numpy as np
from numpy.typing import NDArray

from yupana.files.database import named, open_database, source_of, write_query
from yupana.files.delimited import PARQUET
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
    columns: Mapping[str, Coded | NDArray[np.int64]]

    @property
    def rows(self) -> int:
        """How many rows."""
        column = next(iter(self.columns.values()))
        return len(column.places if isinstance(column, Coded) else column)


def write_rows(folder: Path, table: RowTable, fmt: Format) -> Path:
    """Write a table, as `yupana.release.tables.write_table` would.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    (path,) = write_all(folder, [table], fmt).values()
    return path


def write_all(folder: Path, tables: Iterable[RowTable], fmt: Format) -> dict[str, Path]:
    """Write tables as `write_rows` does, with one database for all; their files by name."""
    with open_database() as db:
        return {table.name: _write(db, folder / f"{table.name}.{fmt}", table, fmt) for table in tables}


_ROWS_AT_ONCE: Final = 1 << 16
"""The database holds texts of so many rows; of a large table they take a gigabyte."""


def _write(db: duckdb.DuckDBPyConnection, path: Path, table: RowTable, fmt: Format) -> Path:
    path.parent.mkdir(exist_ok=True)
    lists: dict[str, dict[int, Sequence[Value]]] = {"texts": {}, "numbers": {}}
    arrays: dict[str, NDArray[np.integer]] = {}
    joins, columns = [], []
    for number, (name, column) in enumerate(table.columns.items()):
        if not isinstance(column, Coded):
            arrays[f"c{number}"] = column
            columns.append(f"c{number} AS {named(name)}")
            continue
        arrays[f"c{number}"] = column.places
        kind = "texts" if fmt == "csv" or not _is_number(column.values) else "numbers"
        lists[kind][number] = column.values
        joins.append(f"JOIN {kind} d{number} ON d{number}.place = c{number} AND d{number}.of = {number}")
        columns.append(f"d{number}.value AS {named(name)}")
    _list_values(db, "texts", "VARCHAR", {n: [written(value) for value in of] for n, of in lists["texts"].items()})
    _list_values(db, "numbers", "DOUBLE", lists["numbers"])
    query = f'SELECT {", ".join(columns)} FROM rows {" ".join(joins)} ORDER BY rows."row"'
    parts: list[Path] = []
    for first in range(0, max(table.rows, 1), _ROWS_AT_ONCE):
        some = slice(first, min(first + _ROWS_AT_ONCE, table.rows))
        row = np.arange(some.stop - some.start)
        db.register("rows", {"row": row, **{name: array[some] for name, array in arrays.items()}})
        parts.append(path.with_name(f"{path.stem}.{len(parts)}{path.suffix}"))
        write_query(db, query, parts[-1], header=not first)
        db.unregister("rows")
    _join(db, parts, path)
    return path


def _join(db: duckdb.DuckDBPyConnection, parts: Sequence[Path], path: Path) -> None:
    """Make one file of several, whose rows follow one another, and remove these."""
    first, *others = parts
    if not others:
        first.rename(path)
        return
    if path.suffix == PARQUET:
        files = ", ".join(map(source_of, parts))
        write_query(db, f"SELECT * FROM read_parquet([{files}])", path)
    else:
        with path.open("wb") as whole:
            for part in parts:
                with part.open("rb") as file:
                    shutil.copyfileobj(file, whole)
    for part in parts:
        part.unlink()


def _list_values(db: duckdb.DuckDBPyConnection, name: str, kind: str, lists: Mapping[int, Sequence[Value]]) -> None:
    """List the values of all columns of one kind, by the number of the column and the place in its list."""
    if not lists:
        return
    listed = {
        "of": np.repeat([*lists], [len(values) for values in lists.values()]),
        "place": np.concatenate([np.arange(len(values), dtype=np.int32) for values in lists.values()]),
        "value": np.array([value for values in lists.values() for value in values], dtype=object),
    }
    db.register("listed", listed)
    db.execute(f"CREATE OR REPLACE TABLE {name} AS SELECT of, place, CAST(value AS {kind}) AS value FROM listed")
    db.unregister("listed")


def _is_number(values: Sequence[Value]) -> bool:
    return bool(values) and not isinstance(values[0], str)
