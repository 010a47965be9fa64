"""Locks of files and folders. The system gives them back when the process ends, however it ends. Public."""

import fcntl
import os
from pathlib import Path


class LocksUnknownError(OSError):
    """The file system knows no locks."""


def try_lock(path: Path, flags: int) -> int | None:
    """Open a file or folder and hold its lock as long as the descriptor is open.

    Parameters
    ----------
    path : Path
    flags : int
        Of `os.open`; a link is never followed.

    Returns
    -------
    int or None
        The descriptor; None if another process holds the lock, or what was opened lost its name meanwhile.

    Raises
    ------
    LocksUnknownError
        If the file system knows no locks.
    OSError
        If it cannot be opened.
    """
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # The lock of what was removed protects nothing.
        if os.path.samestat(os.fstat(descriptor), path.stat(follow_symlinks=False)):
            return descriptor
    except (BlockingIOError, FileNotFoundError):
        pass
    except OSError as error:
        os.close(descriptor)
        raise LocksUnknownError(error.errno, error.strerror) from None
    os.close(descriptor)
    return None
