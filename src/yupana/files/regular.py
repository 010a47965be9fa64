"""Files as the system has them: one that must be a file is opened only if it is one, and not waited for.

A file beside a release, such as a log or a report, replaces only one of its own kind, and appears whole.
"""

import errno
import json
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

from yupana.errors import InputError, OutputError, YupanaError, system_fault
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


def read_regular(path: Path, most: int | None = None) -> bytes:
    """Read a file whole.

    Raises
    ------
    OSError
        As `regular` does.
    ValueError
        If it has more bytes than it may have.
    """
    with open(path, "rb", opener=regular) as file:
        content = file.read(-1 if most is None else most + 1)
    if most is not None and len(content) > most:
        raise ValueError(f"more than {most:,} bytes")
    return content


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


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A table of JSON, for ``object_pairs_hook``.

    Raises
    ------
    ValueError
        If a key is given twice.
    """
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is given twice")
    return found


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


@dataclass(frozen=True, slots=True)
class NewFile:
    """A file to be written under another name, then put into its place."""

    path: Path  # where it is to stand
    what: str  # as messages call it, such as "the log"
    # whether a file is an earlier one of the same kind, whole or not, and so may be replaced
    is_earlier: Callable[[Path], bool]
    mode: int = 0o600  # of the file, before the user's mask
    # whether it cannot be made again. Such a file stays under its other name where it cannot be put into its place.
    once: bool = False

    @property
    def _partial(self) -> Path:
        return self.path.parent / f"{self.path.name}.partial"

    def check(self) -> None:
        """Claim the place before the work.

        Raises
        ------
        OutputError
            If something else stands there or under the name it is written by, or the folder cannot be written to.
        """
        for path in (self.path, self._partial):
            if os.path.lexists(path) and not self._is_ours(path):
                if path.is_dir():
                    raise OutputError(f"{self.what} {self.path} cannot be written: {path} is a folder; name a file")
                raise OutputError(
                    f"{self.what} {self.path} would replace {path}, which is no earlier one of its kind; "
                    "name another place"
                )
        if not self.path.parent.is_dir():
            raise OutputError(f"{self.what} {self.path} cannot be written: its folder does not exist")
        if not os.access(self.path.parent, os.W_OK | os.X_OK):
            raise OutputError(f"{self.what} {self.path} cannot be written: its folder is not writable")
        try:
            with whole():
                os.close(self._create())
                self.discard()
        except OSError as error:
            with suppress(OSError):
                self.discard()
            raise OutputError(f"{self.what} {self.path} cannot be written: {error.strerror}") from None

    def write(self, text: str) -> None:
        """Write the file under another name, down to the disk.

        Raises
        ------
        OutputError
            If it cannot be written.
        """
        refused = system_fault(OutputError, f"{self.what} {self.path} cannot be written")
        try:
            with refused, whole(), os.fdopen(self._create(), "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
        except BaseException:
            self.discard()
            raise

    def put(self, text: str) -> None:
        """Write the file and put it into its place; errors as of `write` and `keep`."""
        with whole():
            self.write(text)
            self.keep()

    def keep(self) -> None:
        """Put what was written into its place.

        Raises
        ------
        OutputError
            If it cannot be, or something else has taken its place meanwhile.
        """
        try:
            if os.path.lexists(self.path) and not self._is_ours(self.path):
                raise self._unkept("something else came to stand there meanwhile")
            self._partial.replace(self.path)
            with suppress(OSError):
                # Some file systems know no sync of a folder; the file stands all the same.
                sync(self.path.parent)
        except OSError as error:
            raise self._unkept(str(error.strerror)) from None

    def _unkept(self, reason: str) -> OutputError:
        if self.once:
            return OutputError(f"{self.what} is in {self._partial}, for {self.path} cannot be written: {reason}")
        with suppress(OSError):
            self.discard()
        return OutputError(f"{self.what} {self.path} cannot be written: {reason}")

    def discard(self) -> None:
        """Remove what was written and not kept."""
        with whole(), suppress(FileNotFoundError):
            self._partial.unlink()

    def _create(self) -> int:
        # What a killed run left is removed; a link is never followed.
        self.discard()
        return os.open(self._partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, self.mode)

    def _is_ours(self, path: Path) -> bool:
        """Whether a file is an earlier one of ours, or the beginning of one that a killed run left."""
        status = path.lstat()
        if not path.is_file() or path.is_symlink() or status.st_uid != os.getuid():
            return False
        return (status.st_size == 0 and path == self._partial) or self.is_earlier(path)
