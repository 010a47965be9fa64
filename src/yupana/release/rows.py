"""Large tables: rows gathered as numbers, piece by piece, and written once by the database."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
from numpy.typing import NDArray

from yupana.files.database import named, open_database, write_query
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
    """A table to publish: columns of codes or of whole numbers, all of one length, and what orders its rows."""

    name: str
    columns: Mapping[str, Coded | NDArray[np.int64]]
    order: NDArray[np.int64]

    @property
    def rows(self) -> int:
        """How many rows."""
        return len(self.order)


def write_rows(folder: Path, table: RowTable, fmt: Format) -> Path:
    """Write a table in its order, as `yupana.release.tables.write_table` would.

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


def _write(db: duckdb.DuckDBPyConnection, path: Path, table: RowTable, fmt: Format) -> Path:
    arrays: dict[str, NDArray[np.integer]] = {"order": table.order}
    joins, columns = [], []
    for number, (name, column) in enumerate(table.columns.items()):
        if not isinstance(column, Coded):
            arrays[f"c{number}"] = column
            columns.append(f"c{number} AS {named(name)}")
            continue
        arrays[f"c{number}"] = column.places.astype(np.int32)
        as_text = fmt == "csv" or not _is_number(column.values)
        values = [written(value) for value in column.values] if as_text else list(column.values)
        kind = "VARCHAR" if as_text else "DOUBLE"
        db.execute(f"CREATE OR REPLACE TABLE d{number} (place INTEGER, value {kind})")
        listed = {"place": np.arange(len(values), dtype=np.int32), "value": np.array(values, dtype=object)}
        if values:
            db.register("listed", listed if as_text else {**listed, "value": np.array(values, dtype=float)})
            db.execute(f"INSERT INTO d{number} SELECT * FROM listed")
            db.unregister("listed")
        joins.append(f"JOIN d{number} ON d{number}.place = c{number}")
        columns.append(f"d{number}.value AS {named(name)}")
    db.register("numbers", arrays)
    query = f'SELECT {", ".join(columns)} FROM numbers {" ".join(joins)} ORDER BY numbers."order"'
    write_query(db, query, path)
    db.unregister("numbers")
    return path


def _is_number(values: Sequence[Value]) -> bool:
    return bool(values) and not isinstance(values[0], str)
