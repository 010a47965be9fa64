"""The embedded database: opened here and nowhere else, its errors translated, names and texts written as its SQL."""

import atexit
import contextlib
import errno
import functools
import glob
import itertools
import os
import secrets
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final, TypeAlias

import duckdb
import numpy as np
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
    opened: contextlib.AbstractContextManager[duckdb.DuckDBPyConnection]
    if memory is None and spill is None:
        opened = _tables_of_its_own(_shared(temporary_folder() if spills else None, threads))
    else:
        opened = closing(_connect(spill or (_spill(temporary_folder()) if spills else None), threads, memory))
    try:
        with opened as database:
            yield database
    except (duckdb.FatalException, duckdb.InternalException):
        _open_shared.cache_clear()  # a database that failed within answers nothing any more
        raise
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


@contextmanager
def _tables_of_its_own(shared: duckdb.DuckDBPyConnection) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection to a database of this process, with tables that no other connection sees; its cursors see none."""
    name = f"opened_{next(_NUMBERS)}"
    database = shared.cursor()
    database.execute(f"ATTACH ':memory:' AS {name}; USE {name}")
    try:
        yield database
    finally:
        with contextlib.suppress(duckdb.Error):
            database.execute(f"USE memory; DETACH {name}")
        with contextlib.suppress(duckdb.Error):
            database.close()


def _connect(spill: Path | None, threads: int | None, memory: int | None = None) -> duckdb.DuckDBPyConnection:
    config: dict[str, str | bool | int | float | list[str]] = {"temp_directory": str(spill or "")}
    if threads is not None:
        config["threads"] = threads
    if memory is not None:
        config["memory_limit"] = f"{memory // 1024}KiB"
    database = duckdb.connect(":memory:", config=config)
    # In a notebook without ipywidgets there is no bar, and no way to say so.
    with contextlib.suppress(duckdb.InvalidInputException):
        database.execute("SET enable_progress_bar = false")
    return database


def _spill(folder: Path) -> Path:
    return folder / f"yupana-{os.getpid()}-{secrets.token_hex(8)}"


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


def write_query(database: duckdb.DuckDBPyConnection, query: str, path: Path, text: str = "") -> None:
    """Write the rows of a query as Parquet if the file is called so, else as text, as SQL has it or by ``|`` unquoted.

    Raises
    ------
    OSError
        If they cannot be written.
    """
    text = text or "FORMAT csv, DELIMITER '|', HEADER true, QUOTE ''"
    options = "FORMAT parquet" if path.suffix == ".parquet" else text
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


def store_rows(
    database: duckdb.DuckDBPyConnection, table: str, kinds: Mapping[str, str], rows: Sequence[tuple[object, ...]]
) -> None:
    """Make a small table of rows, in the place of one of its name; ``kinds`` are the SQL types of its columns."""
    columns = ", ".join(f"{named(name)} {kind}" for name, kind in kinds.items())
    database.execute(f"CREATE OR REPLACE TEMP TABLE {named(table)} ({columns})")
    if rows:
        values = enumerate(zip(*rows, strict=True))
        database.register("rows_now", {f"c{i}": np.array(of, dtype=object) for i, of in values})
        database.execute(f"INSERT INTO {named(table)} SELECT * FROM rows_now")
        database.unregister("rows_now")


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
    return _shared(None, None)


def _shared(temporary: Path | None, threads: int | None) -> duckdb.DuckDBPyConnection:
    """A database that is opened once: to open one takes longer than most questions. A forked process has its own."""
    with _OPENING:
        return _open_shared(os.getpid(), temporary, threads)


@functools.cache
def _open_shared(_process: int, temporary: Path | None, threads: int | None) -> duckdb.DuckDBPyConnection:
    return _connect(temporary and _spill(temporary), threads)


atexit.register(_open_shared.cache_clear)  # what was spilled is removed as it closes
_OPENING: Final = threading.Lock()
_NUMBERS: Final = itertools.count()
