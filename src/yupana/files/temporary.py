"""Where temporary files go, and the details of a fault: where the user says, and nowhere else. Public.

Private folders for what processes spill each have a lock beside them, held while their process lives. A process number
tells nothing of another machine or container that shares the disk, nor of a number that is used again. A lock does: the
system gives it back when the process ends, however it ends.
"""

import os
import secrets
import shutil
import tempfile
import time
import traceback
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from yupana.errors import OutputError
from yupana.interruption import whole


def lock(descriptor: int, *, shared: bool = False, wait: bool = False) -> None:
    """Lock an open file until it is closed; the system gives the lock back when the process ends.

    Parameters
    ----------
    shared : bool, optional
        Others may hold it shared, too.
    wait : bool, optional
        Until others have given it back.

    Raises
    ------
    BlockingIOError
        If another process holds it, unless `wait`.
    OutputError
        On a system without locks of POSIX.
    OSError
        If the file system knows no locks.
    """
    try:
        import fcntl  # noqa: PLC0415 (Windows has none)
    except ImportError:
        raise OutputError("this system has no locks of POSIX, so nothing is written; use a container") from None
    fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))


def temporary_folder() -> Path:
    """The folder that TMPDIR names, or else that of the system.

    What is put there may be confidential, so no other takes its place where the one that was named cannot be used.
    """
    named = os.environ.get("TMPDIR")
    return Path(named).absolute() if named else Path(tempfile.gettempdir())


def keep_fault(error: BaseException) -> str:
    """Write the traceback of an error to a private file, and say where, in a sentence."""
    try:
        descriptor, name = tempfile.mkstemp(prefix="yupana-fault-", suffix=".confidential.log", dir=temporary_folder())
        with os.fdopen(descriptor, "w") as file:
            traceback.print_exception(error, file=file)
    except OSError as refused:
        return f"Details could not be written to {temporary_folder()}: {refused.strerror}."
    return f"Details are in {name}, which may hold confidential values."


class LocksUnknownError(OSError):
    """The file system knows no locks."""


def try_lock(path: Path, flags: int) -> int | None:
    """Open a file or folder and hold its lock as long as the descriptor is open.

    Parameters
    ----------
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
        lock(descriptor)
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


_LOCK: Final = ".lock"
_SETTLED: Final = 86_400.0
"""Seconds without a change after which a folder without a lock may be that of a dead process."""

_HELD: Final[set[int]] = set()
"""Descriptors of the locks of this process."""

_TRIES: Final = 10


def _let_go() -> None:
    """Close, in a process that was forked, what would hold a lock for its parent when that is dead."""
    for lock in _HELD:
        os.close(lock)
    _HELD.clear()


os.register_at_fork(after_in_child=_let_go)


@dataclass(eq=False, slots=True)
class HeldFolder:
    """A folder of mode 0700 that no other process sweeps while this one lives. Made by `hold`."""

    path: Path
    _lock: int | None
    _owner: int = field(default_factory=os.getpid)

    def remove(self) -> None:
        """Remove it with all that it holds. A process that was forked from its owner leaves it alone."""
        if self._owner != os.getpid():
            return
        with whole():
            lock, self._lock = self._lock, None
            if lock is None:
                _empty(self.path)
                return
            _HELD.discard(lock)
            _remove(self.path, lock)


def hold(root: Path) -> HeldFolder:
    """Make a folder within another, and hold its lock if the file system knows locks.

    Raises
    ------
    OSError
        If it cannot be made.
    """
    for _ in range(_TRIES):
        folder = root / f"{os.getpid()}-{secrets.token_hex(8)}"
        beside = _lock_of(folder)
        # The lock comes before the folder, so that nobody ever sees the folder without it.
        try:
            lock = try_lock(beside, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        except LocksUnknownError:
            beside.unlink(missing_ok=True)
            break
        if lock is None:
            beside.unlink(missing_ok=True)
            continue  # whoever sweeps took it for one that was left
        try:
            folder.mkdir(mode=0o700)
        except OSError:
            _remove(folder, lock)
            raise
        _HELD.add(lock)
        return HeldFolder(folder, lock)
    folder.mkdir(mode=0o700)
    return HeldFolder(folder, None)


def sweep(root: Path) -> None:
    """Remove what dead processes left: folders whose lock can be taken.

    A folder without a lock was made where the file system refuses locks, or by an earlier version. It goes if its name
    begins with the number of no process of this machine; where locks are known, so that the number may be of another
    machine, only if nothing in it was changed for a day.

    Raises
    ------
    OSError
        If the root cannot be read.
    """
    known = _knows_locks(root)
    for name in {left.name.removesuffix(_LOCK) for left in root.iterdir()}:
        folder = root / name
        try:
            lock = try_lock(_lock_of(folder), os.O_RDWR)
        except FileNotFoundError:
            if not _is_alive(name.partition("-")[0]) and (not known or _is_settled(folder)):
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            pass  # nobody can say whose it is
        else:
            if lock is not None:
                _remove(folder, lock)


def _empty(folder: Path) -> None:
    """Remove a folder, again if somebody who was about to end still wrote into it."""
    for wait in (0.0, 0.01, 0.1, 1.0):
        time.sleep(wait)
        shutil.rmtree(folder, ignore_errors=True)
        if not os.path.lexists(folder):
            return


def _lock_of(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}{_LOCK}")


def _remove(folder: Path, lock: int) -> None:
    """Remove a folder whose lock is held, and the lock; if something of it stays, whoever sweeps next tries again."""
    _empty(folder)
    if not os.path.lexists(folder):
        with suppress(OSError):
            _lock_of(folder).unlink(missing_ok=True)
    os.close(lock)


def _knows_locks(root: Path) -> bool:
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        lock(descriptor, shared=True)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def _is_settled(folder: Path) -> bool:
    try:
        last = max(path.lstat().st_mtime for path in (folder, *folder.rglob("*")))
    except OSError:
        return False
    return time.time() - last > _SETTLED


def _is_alive(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except (ValueError, ProcessLookupError):
        return False
    except PermissionError:
        return True
    return True
