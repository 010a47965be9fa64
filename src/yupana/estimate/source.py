"""SafeTab tables opened in the database to be postprocessed."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb

from yupana.errors import OutputError
from yupana.estimate.coterminous.nested import COLUMNS
from yupana.files.database import open_database, unreadable
from yupana.files.delimited import PARQUET, column_types
from yupana.products.check import open_checked
from yupana.products.gate import open_table
from yupana.products.safetab.specification import KEYS
from yupana.release.release import ReleaseFolder
from yupana.release.status import refuse_confidential
from yupana.release.tables import table_rows


@dataclass(frozen=True, slots=True)
class TableSource:
    """Tables of a release, each a table of its name in the database, with the columns of the file.

    A column is text if the file is CSV, and of the type that Parquet gives it otherwise.

    Attributes
    ----------
    release : ReleaseFolder
        Of a lone table, a release of it alone (`open_table`).
    db : duckdb.DuckDBPyConnection
    tables : mapping of table name to column names and types
    """

    release: ReleaseFolder
    db: duckdb.DuckDBPyConnection
    tables: Mapping[str, Mapping[str, str]]

    def rows(self, table: str) -> int:
        """How many rows a table has."""
        return int(self.db.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0])


@contextmanager
def open_source(path: Path) -> Iterator[TableSource]:
    """Open the SafeTab tables of a release folder, or one table by its file, with or without a manifest.

    Raises
    ------
    OutputError
        If there are no such tables, or one is unreadable, was changed after its manifest, lacks the columns of its
        name, or holds something other than whole counts and variances.
    """
    release = open_checked(path) if path.is_dir() else open_table(path)
    names = ", ".join(COLUMNS)
    wanted = [table for table in release if table in COLUMNS]
    if not wanted and not release.sha256:
        raise OutputError(f"{path} is no table of SafeTab: its name must be one of {names}")
    if not wanted:
        raise OutputError(f"{path} holds none of the tables {names}")
    refuse_confidential(release.manifest, str(path))
    paths = {table: release.path(table) for table in wanted}
    with open_database() as db:
        yield TableSource(release, db, {table: _load(db, table, file) for table, file in paths.items()})


def _load(db: duckdb.DuckDBPyConnection, name: str, path: Path) -> dict[str, str]:
    expected = list(COLUMNS[name])
    with unreadable(OutputError(f"{path} is not readable as a table of a release")):
        rows = table_rows(path)
        header = list(column_types(db, rows))
        is_empty = path.suffix == PARQUET and not db.execute(f"SELECT 1 FROM {rows} LIMIT 1").fetchall()
        if header == expected:
            typed = _typed(header, is_empty=is_empty) if path.suffix == PARQUET else "*"
            db.execute(f"CREATE TABLE {name} AS SELECT {typed} FROM {rows}")
    if "REASON" in header:
        raise OutputError(f"{path} has a column REASON: it was suppressed, which comes last; use the release before it")
    if header != expected:
        raise OutputError(f"{path} must have the columns {'|'.join(expected)}")
    first = db.execute(
        f"SELECT min(rowid) FROM {name} WHERE ITERATION_CODE IS NULL OR REGION_ID IS NULL OR REGION_TYPE IS NULL OR"
        " NOT coalesce(regexp_full_match(CAST(COUNT AS VARCHAR), '-?[0-9]{1,15}'), false) OR"
        " NOT coalesce(TRY_CAST(VARIANCE AS DOUBLE) >= 0 AND isfinite(TRY_CAST(VARIANCE AS DOUBLE)), false)"
    ).fetchall()[0][0]
    if first is not None:
        rule = "COUNT is a whole number and VARIANCE a number, not negative"
        raise OutputError(f"{path}, line {int(first) + 2}: {rule}; a suppressed count cannot be postprocessed")
    return column_types(db, name)


def _typed(header: list[str], *, is_empty: bool) -> str:
    """Region and iteration as text; in an empty table, whose types mean nothing, every column by what it is."""
    types = dict.fromkeys(KEYS, "VARCHAR")
    if is_empty:
        types |= {**dict.fromkeys(header, "VARCHAR"), "COUNT": "BIGINT", "VARIANCE": "DOUBLE", "MOE": "DOUBLE"}
    return ", ".join(
        f'CAST("{column}" AS {types[column]}) AS "{column}"' if column in types else f'"{column}"' for column in header
    )
