"""Columns of numbers from a CSV or Parquet file. Messages give places, never values: the counts may be confidential."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import duckdb
import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Floats
from yupana.confidential.records.database import private_database
from yupana.errors import InputError
from yupana.files.database import named, unreadable
from yupana.files.delimited import PARQUET, column_types, csv_rows, parquet_rows, read_header
from yupana.files.regular import FILE, must_be

_MOST: Final = 1 << 32
"""Sums of so large counts and their noise stay whole numbers in float64."""


def read_numbers(path: Path, names: Sequence[str]) -> tuple[Floats, ...]:
    """Read columns of numbers by their names.

    Parameters
    ----------
    path : Path
        Parquet by its name, otherwise CSV with a header, separated by ``|`` or ``,``.
    names : sequence of str
        As the file spells them.

    Returns
    -------
    tuple of ndarray of float64, shape (rows,)

    Raises
    ------
    InputError
        If there is no such file or column, or a field is no finite number.
    """
    with private_database() as database:
        header = _open(database, path)
        for name in names:
            if name not in header:
                raise InputError(f"{path}: no column {name!r}; it has {', '.join(header)}")
        read = [f"TRY_CAST({named(name)} AS DOUBLE) AS c{i}" for i, name in enumerate(names)]
        with unreadable(InputError(f"{path} could not be read to its end")):
            found = database.execute(f"SELECT {', '.join(read)} FROM rows ORDER BY line").fetchnumpy()
    columns = []
    for i, name in enumerate(names):
        column = np.ma.filled(np.ma.asarray(found[f"c{i}"], dtype=np.float64), np.nan)
        if (bad := np.flatnonzero(~np.isfinite(column))).size:
            raise InputError(f"{_place(path, bad[0])}, column {name}: not a finite number (empty, NaN or a text)")
        columns.append(np.asarray(column, dtype=np.float64))
    return tuple(columns)


def read_counts(path: Path, names: Sequence[str]) -> tuple[NDArray[np.int64], ...]:
    """Read columns of whole numbers of zero or more, at most 2^32; see `read_numbers`.

    Raises
    ------
    InputError
        As `read_numbers`, or if a number is not whole, negative or larger.
    """
    columns = read_numbers(path, names)
    for name, column in zip(names, columns, strict=True):
        if (bad := np.flatnonzero((column != np.floor(column)) | (column < 0) | (column > _MOST))).size:
            raise InputError(f"{_place(path, bad[0])}, column {name}: not a whole number from 0 to 2^32")
    return tuple(column.astype(np.int64) for column in columns)


def column_names(path: Path) -> list[str]:
    """The header of a file; see `read_numbers`."""
    with private_database() as database:
        return _open(database, path)


def _open(database: duckdb.DuckDBPyConnection, path: Path) -> list[str]:
    """Hold a file as the table ``rows``, with the number of each in ``line``; return its header."""
    must_be(FILE, path, "name a CSV or Parquet file")
    text = "not readable as CSV or Parquet; a CSV needs a header, and every line as many fields as it"
    with unreadable(InputError(f"{path}: {text}")):
        if path.suffix == PARQUET:
            rows = parquet_rows([path])
        else:
            header = read_header(path)
            rows = csv_rows(path, header.names, separator=header.separator, quote='"')
        database.execute(f"CREATE TABLE rows AS SELECT row_number() OVER () AS line, * FROM {rows}")
        return list(column_types(database, "rows"))[1:]


def _place(path: Path, row: int) -> str:
    return f"{path}, row {row + 1}" if path.suffix == ".parquet" else f"{path}, line {row + 2}"
