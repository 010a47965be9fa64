"""Files made of pieces: each is made by whichever thread is free, and all are written in order. Public."""

import errno
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeVar

from yupana.errors import OutputError
from yupana.topdown.text_rows import Bytes

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class FilePiece:
    """Some rows of a file.

    Attributes
    ----------
    path : Path
        The file.
    make : callable
        Makes the text of the rows; a function of what it was made with, so that any thread may call it.
    rows : int
    section : int
        Which section of the file they belong to. Pieces of one section are there in order, sections in any.
    """

    path: Path
    make: Callable[[], Bytes | bytes]
    rows: int
    section: int = 0


def workers() -> int:
    """How many threads make pieces, or read them."""
    return os.cpu_count() or 1


def in_order(work: Iterable[Callable[[], T]], threads: int) -> Iterator[T]:
    """What each call returns, in order; some are made ahead, so that no thread waits, and not more.

    An error of one is raised in its turn, and none that had not begun is made then.
    """
    with ThreadPoolExecutor(threads) as pool:
        calls = iter(work)
        running: deque[Future[T]] = deque(pool.submit(call) for call in islice(calls, 2 * threads))
        try:
            while running:
                yield running.popleft().result()
                running.extend(pool.submit(call) for call in islice(calls, 1))
        finally:
            for call in running:
                call.cancel()


def write_in_order(pieces: Iterable[FilePiece], threads: int) -> dict[Path, int]:
    """Write files of pieces, and return the rows of each.

    Parameters
    ----------
    pieces : iterable of FilePiece
        Asked for as they can be made, so that few are in memory.
    threads : int

    Raises
    ------
    OSError
        If a file cannot be written.
    OutputError
        If others have cut one short.
    """
    rows: dict[Path, int] = {}
    sections: dict[tuple[Path, int], BinaryIO] = {}

    def texts() -> Iterator[Callable[[], tuple[FilePiece, Any]]]:
        for piece in pieces:
            yield lambda piece=piece: (piece, piece.make())  # type: ignore[misc]

    def written() -> Iterator[Callable[[], int]]:
        for piece, text in in_order(texts(), threads):
            key = piece.path, piece.section
            if key not in sections:
                # The first section of a file is the file; others stand beside it until all are there.
                name = f"{piece.path.name}.{piece.section}" if piece.section else piece.path.name
                sections[key] = stack.enter_context(piece.path.with_name(name).open("w+b"))
            yield partial(sections[key].write, text)
            rows[piece.path] = rows.get(piece.path, 0) + piece.rows

    with ExitStack() as stack:
        # One thread writes while this one goes on to the next pieces.
        deque(in_order(written(), 1), 0)
        behind: dict[Path, list[BinaryIO]] = {}
        for (path, section), file in sorted(sections.items()):
            file.flush()
            if section:
                behind.setdefault(path, []).append(file)
        appended = (partial(_append, sections[path, 0], others) for path, others in behind.items())
        deque(in_order(appended, threads), 0)
    return rows


def _append(file: BinaryIO, others: Iterable[BinaryIO]) -> None:
    """Put other files behind a file and remove them; the system copies, and holds no lock."""
    for other in others:
        begin, size = 0, os.fstat(other.fileno()).st_size
        while begin < size:
            copied = _copy(other.fileno(), file.fileno(), begin, size - begin)
            if not copied:
                raise OutputError(f"{other.name} was cut short by others while it was copied; keep them away from it")
            begin += copied
        Path(other.name).unlink()


def _copy(source: int, target: int, begin: int, left: int) -> int:
    """Copy some bytes of a file behind another, and return how many; none if the file has ended."""
    if hasattr(os, "copy_file_range"):
        try:
            # Some file systems copy nothing and tell of no error.
            if copied := os.copy_file_range(source, target, left, begin):
                return copied
        except OSError as error:
            if error.errno not in _NOT_BY_THE_SYSTEM:
                raise
    rest = memoryview(os.pread(source, min(left, _CHUNK), begin))
    read = len(rest)
    while rest:
        rest = rest[os.write(target, rest) :]
    return read


_NOT_BY_THE_SYSTEM: Final = {errno.ENOSYS, errno.EXDEV, errno.EINVAL, errno.EOPNOTSUPP, errno.EPERM}
"""Errors of a system, a file system or a container that does not copy between files."""

_CHUNK: Final = 1 << 20
