"""Draws of noise on disk: one file of a run, to which each draw is added before anything is made of it. Public.

A draw counts from the moment its seal is on disk, which is written after everything else of it is. What a killed run
left unsealed at the end of the file was used by nobody, and is removed unread (docs/interrupted-runs.md).
"""

import hashlib
import os
import struct
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Ints, narrow
from yupana.errors import OutputError, system_fault
from yupana.files.regular import regular, replacing, take_room

_MAGIC: Final = b"noisy values of one run: yupana 1\n".ljust(64, b"\0")
_SEAL: Final = hashlib.sha256().digest_size
"""Bytes of a seal, and what all draws are a multiple of: so a seal lies in one page, and is written whole or not."""
_UNSEALED: Final = bytes(_SEAL)
"""Where the next draw will have its seal; a whole file ends so."""
_HEAD: Final = struct.Struct("<HH4xqqq")
"""Bytes of the name, bytes of a number, and the numbers of a `DrawnStretch`."""
_WIDEST: Final = 8


class DrawnStretch(NamedTuple):
    """Population groups that are drawn for at once."""

    measurement: str  # name
    # first, groups: the number of the first of them, and how many follow one another
    first: int
    groups: int
    values: int  # noisy counts of all of them

    def meets(self, other: "DrawnStretch") -> bool:
        """Whether some group is drawn for in both."""
        apart = self.first + self.groups <= other.first or other.first + other.groups <= self.first
        return self.measurement == other.measurement and not apart


class _Place(NamedTuple):
    """Where the numbers of a draw stand in the file, and how many bytes each has."""

    stretch: DrawnStretch
    start: int
    width: int


class DrawLog(AbstractContextManager["DrawLog"]):
    """The draws of one run: each stretch is drawn for once, whichever attempt of the run asks for it.

    Parameters
    ----------
    path : Path
        A file that `create` made.
    repeatable : bool
        Whether noise is made from a seed. Then a draw that was kept is made again, as the stream must go on from where
        it was, and has to be what was kept.

    Raises
    ------
    OutputError
        If the file is damaged or cannot be read.
    """

    def __init__(self, path: Path, *, repeatable: bool = False) -> None:
        self._path, self._repeatable = path, repeatable
        self._places: dict[tuple[str, int], _Place] = {}
        self._end = len(_MAGIC)
        try:
            self._file = regular(path, os.O_RDWR | os.O_NOFOLLOW)
        except OSError:
            raise damaged(path) from None
        try:
            self._read_places()
        except BaseException:
            os.close(self._file)
            raise

    @staticmethod
    def create(path: Path) -> None:
        """Begin a file without draws; it is on disk when this returns.

        Raises
        ------
        OSError
            If it cannot be written.
        """
        with replacing(path, path.with_suffix(".partial"), mode=0o600) as file:
            file.write(_MAGIC + _UNSEALED)

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        os.close(self._file)

    @property
    def stretches(self) -> tuple[DrawnStretch, ...]:
        """What has been drawn, in order."""
        return tuple(place.stretch for place in self._places.values())

    def take(self, stretch: DrawnStretch, draw: Callable[[], Ints]) -> Ints:
        """The draw of a stretch: the one that was kept, or a new one, which is on disk when this returns.

        Room for the widest numbers is taken before anything is drawn. So whether the disk has room for a draw does not
        depend on it, and a run that fails here and is resumed has not chosen among draws.

        Parameters
        ----------
        draw : callable
            Gives int64 of shape (values,).

        Raises
        ------
        OutputError
            If it cannot be kept, or the file holds something else.
        """
        if not stretch.values:
            return draw()
        place = self._places.get((stretch.measurement, stretch.first))
        if place is None:
            if any(stretch.meets(other) for other in self.stretches):
                raise damaged(self._path)
            return self._keep(stretch, draw)
        if place.stretch != stretch:
            raise damaged(self._path)
        kept = self._values(place).astype(np.int64)
        if self._repeatable and not np.array_equal(draw(), kept):
            raise damaged(self._path)
        return kept

    def _keep(self, stretch: DrawnStretch, draw: Callable[[], Ints]) -> Ints:
        name, start = stretch.measurement.encode(), self._end + _SEAL
        with system_fault(OutputError, f"{self._path} cannot be written", "; nothing was released"):
            take_room(self._file, self._end, _HEAD.size + len(name) + _WIDEST * stretch.values + 3 * _SEAL)
            values = draw()
            kept = narrow(values)
            head = _HEAD.pack(len(name), kept.itemsize, *stretch[1:]) + name
            content = head + kept.tobytes()
            content = content.ljust(_whole(len(content)), b"\0")
            self._write(start, content)
            os.ftruncate(self._file, start + len(content) + _SEAL)
            os.fsync(self._file)
            self._write(self._end, hashlib.sha256(content).digest())
            os.fsync(self._file)
        self._end = start + len(content)
        self._places[stretch.measurement, stretch.first] = _Place(stretch, start + len(head), kept.itemsize)
        return values

    def _read_places(self) -> None:
        """Find all draws that are sealed, each of them whole; what follows them is removed."""
        if self._bytes(0, len(_MAGIC)) != _MAGIC:
            raise damaged(self._path)
        while (seal := self._bytes(self._end, _SEAL)) != _UNSEALED:
            start = self._end + _SEAL
            length, width, first, groups, values = _HEAD.unpack(self._bytes(start, _HEAD.size))
            before = _HEAD.size + length
            content = self._bytes(start, _whole(before + width * max(values, 0)))
            if hashlib.sha256(content).digest() != seal:
                raise damaged(self._path)
            stretch = DrawnStretch(content[_HEAD.size : before].decode(), first, groups, values)
            self._places[stretch.measurement, first] = _Place(stretch, start + before, width)
            self._end = start + len(content)
        with system_fault(OutputError, f"{self._path} cannot be written", "; nothing was released"):
            os.ftruncate(self._file, self._end + _SEAL)

    def _values(self, place: _Place) -> NDArray[np.integer]:
        numbers = self._bytes(place.start, place.width * place.stretch.values)
        found: NDArray[np.integer] = np.frombuffer(numbers, dtype=f"i{place.width}")
        return found

    def _bytes(self, start: int, size: int) -> bytes:
        """Bytes of the file, all of which must be there."""
        try:
            found = os.pread(self._file, size, start) if start + size <= os.fstat(self._file).st_size else b""
        except OSError:
            found = b""
        if len(found) != size:
            raise damaged(self._path)
        return found

    def _write(self, start: int, content: bytes) -> None:
        """Write all of some bytes."""
        rest = memoryview(content)
        while rest:
            written = os.pwrite(self._file, rest, start)
            start, rest = start + written, rest[written:]


def damaged(path: Path) -> OutputError:
    """What to say of a file that a run had kept."""
    return OutputError(
        f"{path} is damaged, so the run cannot be resumed. Nothing was changed. Put the file back, or run anew "
        "with --overwrite if nobody has seen what is there"
    )


def _whole(size: int) -> int:
    """The least multiple of a seal's bytes that is no less."""
    return size + -size % _SEAL
