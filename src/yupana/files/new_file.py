"""A file beside a release, such as a log or a report: it replaces only one of its own kind, and appears whole."""

import contextlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from yupana.errors import OutputError
from yupana.files.regular import sync
from yupana.interruption import whole


@dataclass(frozen=True, slots=True)
class NewFile:
    """A file to be written under another name, then put into its place.

    Attributes
    ----------
    path : Path
        Where it is to stand.
    what : str
        As messages call it, such as "the log".
    is_earlier : callable
        Whether a file is an earlier one of the same kind, whole or not, and so may be replaced.
    mode : int
        Of the file, before the user's mask.
    once : bool
        Whether it cannot be made again. Such a file stays under its other name where it cannot be put into its place.
    """

    path: Path
    what: str
    is_earlier: Callable[[Path], bool]
    mode: int = 0o600
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
            with contextlib.suppress(OSError):
                self.discard()
            raise OutputError(f"{self.what} {self.path} cannot be written: {error.strerror}") from None

    def write(self, text: str) -> None:
        """Write the file under another name, down to the disk.

        Raises
        ------
        OutputError
            If it cannot be written.
        """
        try:
            with whole(), os.fdopen(self._create(), "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            self.discard()
            raise OutputError(f"{self.what} {self.path} cannot be written: {error.strerror}") from None
        except BaseException:
            self.discard()
            raise

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
            with contextlib.suppress(OSError):
                # Some file systems know no sync of a folder; the file stands all the same.
                sync(self.path.parent)
        except OSError as error:
            raise self._unkept(str(error.strerror)) from None

    def _unkept(self, reason: str) -> OutputError:
        if self.once:
            return OutputError(f"{self.what} is in {self._partial}, for {self.path} cannot be written: {reason}")
        with contextlib.suppress(OSError):
            self.discard()
        return OutputError(f"{self.what} {self.path} cannot be written: {reason}")

    def discard(self) -> None:
        """Remove what was written and not kept."""
        with whole(), contextlib.suppress(FileNotFoundError):
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
