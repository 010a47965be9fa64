"""The embedded database that reads and joins record files, with its spill in a private scratch folder."""

import atexit
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count
from pathlib import Path
from typing import Final

import duckdb

from yupana.errors import InputError, OutputError
from yupana.files.database import STOPS, go_no_further_if_stopped, open_database
from yupana.files.temporary import HeldFolder, hold, sweep, temporary_folder
from yupana.interruption import whole


def _scratch() -> Path:
    return temporary_folder() / f"yupana-scratch-{os.getuid()}"


def is_scratch(folder: Path) -> bool:
    """Whether a folder is one that `scratch_folder` makes, whose content is ours."""
    return folder.parent == _scratch()


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder of mode 0700 for confidential spill, emptied at exit; what dead processes left is removed first."""
    root = _scratch()
    held: HeldFolder | None = None
    try:
        try:
            root.mkdir(mode=0o700, exist_ok=True)
            _must_be_private(root)
            sweep(root)
            # A signal waits until the folder is known here.
            with whole():
                held = hold(root)
                atexit.register(held.remove)
        except OSError as error:
            raise OutputError(
                f"the scratch folder {root} cannot be used: {error.strerror}; set TMPDIR to another"
            ) from None
        yield held.path
    finally:
        with whole():
            if held is not None:
                held.remove()
                atexit.unregister(held.remove)


_SHARE_OF_DATABASE: Final = 0.8
BESIDE_DATABASE: Final = 150_000_000
"""The rest, and so many bytes at least, are for the interpreter, numpy and what the database does not count."""


_ENOUGH: Final = 12_000_000_000
"""Bytes with which the records of a nation are counted a twentieth slower than with any amount."""


def default_memory() -> int:
    """Three quarters of the machine's memory, but no more than is of use, in bytes."""
    return min(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 3 // 4, _ENOUGH)


_threads: Final[ContextVar[int | None]] = ContextVar("threads", default=None)


@contextmanager
def threads_at_most(number: int) -> Iterator[None]:
    """Let databases that are opened within use so many threads at most, as another task has the next core."""
    before = _threads.set(number)
    try:
        yield
    finally:
        _threads.reset(before)


@contextmanager
def private_database(memory: int | None = None) -> Iterator[duckdb.DuckDBPyConnection]:
    """An in-memory database that spills to a scratch folder.

    Whatever the database says of an error may quote records, so its words are replaced by ours.

    Parameters
    ----------
    memory : int, optional
        Bytes the process should get along with; by default three quarters of the machine's, at most 12 GB.

    Raises
    ------
    InputError, OutputError
        In place of any error of the database while the context is open; or if the process may use too few addresses.
    """
    _check_addresses()
    with scratch_folder() as scratch:
        limit = _of_database(memory or default_memory())
        place = scratch.parent
        full = OutputError(
            f"memory or the scratch disk ran out; give more with --memory, free space in {place}, or set TMPDIR"
        )
        with open_database(memory=limit, spill=scratch, full=full, threads=_threads.get()) as connection:
            try:
                yield connection
            except STOPS:
                raise
            except duckdb.IOException:
                go_no_further_if_stopped()
                text = f"an input file could not be read to its end, or the disk of {place} is full"
                raise InputError(text) from None
            except duckdb.Error as error:
                go_no_further_if_stopped()
                raise InputError(f"the records could not be read ({type(error).__name__})") from None


def _of_database(memory: int) -> int:
    return max(min(int(_SHARE_OF_DATABASE * memory), memory - BESIDE_DATABASE), memory // 2)


def _of_process(limit: int) -> int:
    return max(int(limit / _SHARE_OF_DATABASE), limit + BESIDE_DATABASE)


def with_what_is_beside(memory: int) -> int:
    """Bytes to say for a database that may have its share of all of ``memory``: what is beside it is not in that."""
    return _of_process(int(_SHARE_OF_DATABASE * memory))


def memory_of_process(db: duckdb.DuckDBPyConnection) -> int:
    """How many bytes the process of a `private_database` may take, to four digits."""
    return _of_process(memory_limit(db))


_OF_THE_DATABASE: Final = 80_000_000
"""Of its limit: what a join takes on two cores of however few rows."""

_USED_OF_DATABASE: Final = 0.8
"""The part of what the database may take that it and the arrays beside it took, while records were counted."""


def require_memory(db: duckdb.DuckDBPyConnection, needed: int, what: str) -> None:
    """Refuse what takes more than a quarter above what the process of a `private_database` may.

    Parameters
    ----------
    needed : int
        Bytes that are held beside the interpreter and the database.
    what : str
        That needs them; public.

    Raises
    ------
    InputError
        With the least that suffices.
    """

    def fits(memory: int) -> bool:
        return 4 * (BESIDE_DATABASE + needed + _USED_OF_DATABASE * _of_database(memory)) <= 5 * memory

    if not fits(memory := memory_of_process(db)):
        # From a gigabyte on the database tells its limit in tenths of one, cut off.
        enough = next(more for more in count(memory, _STEP) if fits(more)) * 11 // 10
        least = -(-enough // _STEP) * _STEP
        raise InputError(f"--memory is too little for {what}; give {least // 10**6:,} MB at least")


_STEP: Final = 10_000_000


_LEAST_ADDRESSES: Final = 2 << 30
"""Bytes of addresses, used or not. Each thread sets many aside; with 1,200 MiB one may die without a word."""


def _check_addresses() -> None:
    try:
        import resource  # noqa: PLC0415 (Windows has none)
    except ImportError:
        return
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit not in {resource.RLIM_INFINITY, -1} and limit < _LEAST_ADDRESSES:
        raise OutputError(
            f"the addresses of a process are limited to {limit >> 20} MiB here (ulimit -v), and at least "
            f"{_LEAST_ADDRESSES >> 20} MiB are needed; say with --memory how much memory may be used"
        )


def numbers(db: duckdb.DuckDBPyConnection, query: str) -> tuple[int, ...]:
    """The one row of whole numbers that a query gives; a sum over nothing is 0."""
    # A result that is not read to its end keeps the connection from other work.
    (row,) = db.execute(query).fetchall()
    return tuple(int(value or 0) for value in row)


def cut_by(db: duckdb.DuckDBPyConnection, key: str, rows: int, each: int) -> list[str]:
    """Conditions on rows of which each holds of a part of them, that the database can hold; one that holds, if of all.

    Rows of one key are in one part. What is counted of the parts adds up.

    Parameters
    ----------
    key : str
        SQL.
    rows : int
        About how many keys there are.
    each : int
        Bytes that the database must hold of a key.
    """
    limit = memory_limit(db)
    parts = 1 + rows * each // max(limit - _OF_THE_DATABASE, limit // 4)
    return [f"hash({key}) % {parts} = {part}" for part in range(parts)] if parts > 1 else ["true"]


def memory_limit(db: duckdb.DuckDBPyConnection) -> int:
    """How many bytes the database may use, to four digits."""
    ((text,),) = db.execute("SELECT current_setting('memory_limit')").fetchall()
    number, unit = str(text).split()
    return int(float(number) * 1024 ** ("bytes", "KiB", "MiB", "GiB", "TiB").index(unit))


def _must_be_private(root: Path) -> None:
    status = root.lstat()
    if status.st_uid != os.getuid() or status.st_mode & 0o077 or root.is_symlink():
        raise OutputError(f"the scratch folder {root} is not private to this user (mode 0700); remove it or set TMPDIR")
