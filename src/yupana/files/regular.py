"""Files as the system has them: one that must be a file is opened only if it is one, and not waited for."""

import errno
import json
import os
import stat
from pathlib import Path
from typing import Any


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
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
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


def real(path: Path) -> Path:
    """Where a path leads; one that a link leads back to leads to itself."""
    return Path(os.path.realpath(path))


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
