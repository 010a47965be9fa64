"""The embedded database: opened here and nowhere else, its errors translated, names and texts written as its SQL."""

import contextlib
import errno
import functools
import glob
import os
import secrets
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeAlias

import duckdb
from numpy.typing import NDArray

from yupana import interruption
from yupana.errors import OutputError, YupanaError
from yupana.files.temporary import temporary_folder

Column: TypeAlias = NDArray[Any]
"""Numbers, or texts as objects."""

STOPS: Final = (duckdb.OutOfMemoryException, duckdb.InterruptException)
"""Errors of the database that say nothing about the file being read."""


@contextmanager
def open_database(
    *,
    memory: int | None = None,
    spill: Path | None = None,
    spills: bool = True,
    full: YupanaError | None = None,
    threads: int | None = None,
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open an in-memory database.

    Parameters
    ----------
    memory : int, optional
        Bytes it may take; by default most of the machine's.
    spill : Path, optional
        A folder for what does not fit into memory. By default one within that of temporary files, made when it is
        needed and open to others, so not for records.
    spills : bool
        Whether anything may be put there.
    full : YupanaError, optional
        What to raise when neither memory nor disk is left.
    threads : int, optional
        How many it may use; by default all cores. One is quickest where much is asked of few rows.

    Raises
    ------
    KeyboardInterrupt
        If a signal arrives within a query.
    YupanaError
        If memory or the disk runs out.
    """
    config: dict[str, str | bool | int | float | list[str]] = {"temp_directory": ""}
    if spills:
        config["temp_directory"] = str(spill or temporary_folder() / f"yupana-{os.getpid()}-{secrets.token_hex(8)}")
    if threads is not None:
        config["threads"] = threads
    if memory is not None:
        config["memory_limit"] = f"{memory // 1024}KiB"
    database = duckdb.connect(":memory:", config=config)
    try:
        # In a notebook without ipywidgets there is no bar, and no way to say so.
        with contextlib.suppress(duckdb.InvalidInputException):
            database.execute("SET enable_progress_bar = false")
        yield database
    except duckdb.InterruptException:
        raise KeyboardInterrupt from None
    except duckdb.OutOfMemoryException:
        text = "memory or the disk of the temporary folder ran out; free some, or set TMPDIR"
        raise full or OutputError(text) from None
    except RuntimeError as error:
        # A signal that arrives within a query comes out as this.
        if "interrupt" in str(error).lower():
            raise KeyboardInterrupt from None
        raise
    finally:
        with contextlib.suppress(duckdb.Error):
            database.close()


@contextmanager
def unreadable(fault: Exception) -> Iterator[None]:
    """Raise a fault in place of any error of the system or the database by which a file cannot be read.

    What stops the run, such as a signal, is no fault of the file and goes on.
    """
    try:
        yield
    except STOPS:
        raise
    except (OSError, UnicodeDecodeError, duckdb.Error) as error:
        go_no_further_if_stopped()
        if isinstance(error, OSError) and error.errno in _OF_THE_MACHINE:
            raise
        raise fault from None


_OF_THE_MACHINE: Final = {errno.EMFILE, errno.ENFILE, errno.ENOMEM}
"""Errors that say nothing of the file."""


def go_no_further_if_stopped() -> None:
    """Where the database fails: raise that a signal came, if one did, as it has no class of error of its own for that.

    Raises
    ------
    KeyboardInterrupt
        If one did.
    """
    if interruption.is_stopped():
        raise KeyboardInterrupt from None


def write_query(database: duckdb.DuckDBPyConnection, query: str, path: Path) -> None:
    """Write the rows of a query as Parquet if the file is called so, else as text separated by ``|`` without quotes.

    Raises
    ------
    OSError
        If they cannot be written.
    """
    options = "FORMAT parquet" if path.suffix == ".parquet" else "FORMAT csv, DELIMITER '|', HEADER true, QUOTE ''"
    try:
        database.execute(f"COPY ({query}) TO {quoted(str(path))} ({options})")
    except duckdb.IOException:
        # The words of the database do not say more than this.
        raise OSError(errno.EIO, "its disk may be full") from None


def store_arrays(database: duckdb.DuckDBPyConnection, table: str, columns: Mapping[str, Column]) -> None:
    """Make a table of columns, in the place of one of its name."""
    database.register("arrays_now", dict(columns))
    database.execute(f"CREATE OR REPLACE TABLE {table} AS SELECT * FROM arrays_now")
    database.unregister("arrays_now")


def source_of(path: Path) -> str:
    """A path as the database reads it, which takes ``*`` and ``[`` for patterns."""
    return quoted(glob.escape(str(path)))


def quoted(text: str) -> str:
    """A text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"


def named(name: str) -> str:
    """A name, such as that of a column, as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


def shared_database() -> duckdb.DuckDBPyConnection:
    """The database of the tables that this process hands out, which are public; each use takes a cursor of its own."""
    with _OPENING:
        return _open_shared()


@functools.cache
def _open_shared() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(":memory:", config={"temp_directory": ""})


_OPENING: Final = threading.Lock()
