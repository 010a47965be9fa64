"""Files as the system has them: one that must be a file is opened only if it is one, and not waited for."""

import errno
import json
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Final

from yupana.errors import InputError, YupanaError
from yupana.interruption import whole


def regular(path: str | Path, flags: int) -> int:
    """Open a file for `open`'s ``opener``.

    Raises
    ------
    OSError
        If it cannot be opened, or is no regular file; it has a ``strerror``.
    """
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return descriptor
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "It is a folder, and no file", str(path))
    raise OSError(errno.EINVAL, "It is a pipe, a socket or a device, and no file", str(path))


def read_regular(path: Path) -> bytes:
    """Read a file whole.

    Raises
    ------
    OSError
        As `regular` does.
    """
    with open(path, "rb", opener=regular) as file:
        return file.read()


def must_be_regular(path: Path) -> None:
    """Refuse what is no file before a library opens it by name.

    Raises
    ------
    OSError
        As `regular` does.
    """
    os.close(regular(path, os.O_RDONLY))


def read_json(path: Path) -> Any:  # noqa: ANN401 (a document of any shape)
    """Read JSON from a file that others may have changed.

    Raises
    ------
    OSError
        As `regular` does.
    ValueError
        If it is not JSON, is nested too deeply, or is no UTF-8.
    """
    try:
        return json.loads(read_regular(path).decode("utf-8"))
    except RecursionError:
        raise ValueError("nested too deeply") from None


def kind_of(path: Path) -> str:
    """What stands under a name, where a link leads: `FOLDER`, `FILE`, `NOTHING` or, in words, something else.

    Raises
    ------
    OSError
        If the system does not tell.
    """
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return NOTHING
    return next((kind for is_one, kind in _KINDS if is_one(mode)), "a device")


NOTHING: Final = ""
FOLDER: Final = "a folder"
FILE: Final = "a file"
_KINDS: Final = (
    (stat.S_ISDIR, FOLDER),
    (stat.S_ISREG, FILE),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
)


def must_be(wanted: str, path: Path, advice: str, error: type[YupanaError] = InputError) -> None:
    """Refuse a place that a user named where something else stands, or nothing.

    Parameters
    ----------
    wanted : str
        `FOLDER` or `FILE`: what must stand there, or where a link there leads.
    path : Path
    advice : str
        What to do otherwise, such as "name the folder of a release".
    error : type
        What is raised then.
    """
    try:
        kind = kind_of(path)
    except OSError as refused:
        raise error(f"{path} cannot be read: {refused.strerror}; {advice}") from None
    if kind == NOTHING:
        raise error(f"{path} {'is a link that leads nowhere' if path.is_symlink() else 'does not exist'}; {advice}")
    if kind != wanted:
        raise error(f"{path} is {kind}; {advice}")


def real(path: Path) -> Path:
    """Where a path leads; one that a link leads back to leads to itself."""
    return Path(os.path.realpath(path))


@contextmanager
def replacing(path: Path, partial: Path | None = None, *, mode: int = 0o666) -> Iterator[BinaryIO]:
    """Write a file under another name; at the end it takes its place in one step, whole and on the disk.

    If anything goes wrong before that, what was written is removed, and what stood there is left as it was.

    Parameters
    ----------
    path : Path
        What stands there is replaced, and its mode kept.
    partial : Path, optional
        The other name, and what is left under it by a killed run; by default a new hidden one beside the file.
    mode : int
        Of a new file, before the user's mask.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    other = partial or path.with_name(f".{path.name}.{secrets.token_hex(16)}")
    if partial is not None:
        partial.unlink(missing_ok=True)
    try:
        with open(other, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            if path.exists():
                os.fchmod(file.fileno(), stat.S_IMODE(path.stat().st_mode))
            yield file
            put(file, path)
    except BaseException as error:
        with whole(), suppress(OSError):
            other.unlink()
        if isinstance(error, OSError) and error.filename in {None, str(other)}:
            error.filename = str(path)  # the name that the user knows
        raise


def take_room(descriptor: int, begin: int, size: int) -> None:
    """Take room on the disk for a part of a file, which is zeros where it is new: what is written there later finds it.

    Raises
    ------
    OSError
        If there is not so much.
    """
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, begin, size)
        return
    # Not every system takes room without writing.
    for part in range(begin, begin + size, len(_ZEROS)):
        os.pwrite(descriptor, _ZEROS[: begin + size - part], part)


_ZEROS: Final = memoryview(bytes(1 << 20))


def put(written: BinaryIO, place: Path) -> None:
    """Give an open file the name it is found by; both the content and the name are on disk then.

    Raises
    ------
    OSError
        If they cannot be brought there.
    """
    written.flush()
    os.fsync(written.fileno())
    Path(written.name).replace(place)
    # Without this a power cut could bring back what stood there before.
    sync(place.parent)


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk.

    Raises
    ------
    OSError
        If they cannot be brought there.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
