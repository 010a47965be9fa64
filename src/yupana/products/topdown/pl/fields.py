"""Lines of fields with ``|`` between and no header, as bytes in numpy, a column of a stretch of lines at a time.

Bytes are taken as they are, whatever their encoding, so that what is written is what was read.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Flags, Indices, Ints
from yupana.errors import InputError
from yupana.files.regular import read_regular
from yupana.release.lines import Texts

_Bytes = NDArray[np.uint8]

_BYTES_AT_ONCE: Final = 1 << 22
_STROKE, _END, _RETURN = b"|\n\r"
_MOST_DIGITS: Final = 9


@dataclass(frozen=True, slots=True, eq=False)
class Lines:
    r"""A file of lines of as many fields each.

    Attributes
    ----------
    path : Path
    content : ndarray of uint8, shape (bytes,)
    newline : ndarray of int64, shape (lines,)
        Where each line ends.
    end : bytes
        What every line ends with, ``\n`` or ``\r\n``.
    width : int
        How many fields a line has.
    """

    path: Path
    content: _Bytes
    newline: Ints
    end: bytes
    width: int

    def fault(self, line: int, text: str) -> InputError:
        """An error about a line, which counts from 0."""
        return InputError(f"{self.path}, line {line + 1}: {text}")

    def __len__(self) -> int:
        """How many lines."""
        return len(self.newline)

    def stretches(self) -> Iterator["Stretch"]:
        """Some lines at a time.

        Raises
        ------
        InputError
            If a line has another number of fields.
        """
        first = 0
        while first < len(self.newline):
            start = int(self.newline[first - 1]) + 1 if first else 0
            last = max(first + 1, int(np.searchsorted(self.newline, start + _BYTES_AT_ONCE)))
            yield self._stretch(first, last, start)
            first = last

    def _stretch(self, first: int, last: int, start: int) -> "Stretch":
        part = self.content[start : int(self.newline[last - 1]) + 1]
        separator = np.flatnonzero((part == _STROKE) | (part == _END))
        newline = self.newline[first:last] - start
        if len(separator) != (last - first) * self.width or (separator[self.width - 1 :: self.width] != newline).any():
            fields = np.diff(np.searchsorted(separator, newline, side="right"), prepend=0)
            line = int(np.argmax(fields != self.width))
            raise self.fault(first + line, f"{fields[line]} fields, where {self.width} belong")
        ends = separator.reshape(-1, self.width)
        starts = np.concatenate([[0], separator[:-1] + 1]).reshape(-1, self.width)
        ends[:, -1] -= len(self.end) - 1
        return Stretch(self, slice(first, last), part, starts, ends)


@dataclass(frozen=True, slots=True, eq=False)
class Stretch:
    """Some lines of a file, and where their fields begin and end in ``content``; arrays of shape (lines, fields)."""

    lines: Lines
    part: slice
    content: _Bytes
    starts: Ints
    ends: Ints

    def texts(self, place: int, width: int, name: str) -> Texts:
        """The fields of a column as bytes, of shape (lines,).

        Raises
        ------
        InputError
            If a field has more than so many characters.
        """
        start, length = self.starts[:, place], self.ends[:, place] - self.starts[:, place]
        most = int(length.max())
        if most > width:
            text = f"{name} has {most} characters, and at most {width} are allowed"
            raise self.lines.fault(self.part.start + int(np.argmax(length)), text)
        if not most:
            return np.zeros(len(start), dtype="S1")
        # A field at the end of the content is shorter than others perhaps; what lies beyond its end is taken out.
        at = np.minimum(start[:, None] + np.arange(most), len(self.content) - 1)
        written = self.content[at]
        if length.min() < most:
            written[np.arange(most) >= length[:, None]] = 0
        found: Texts = written.view(f"S{most}").reshape(-1)
        return found

    def texts_of(self, widths: Mapping[str, int]) -> dict[str, Texts]:
        """The first columns, by name; each with the most characters of a field."""
        return {name: self.texts(place, width, name) for place, (name, width) in enumerate(widths.items())}

    def numbers(self, first: int, names: tuple[str, ...]) -> Indices:
        """The fields from a place on, one for each name, as whole numbers of int32 from 0 on, of shape (lines, names).

        Raises
        ------
        InputError
            If a field is no such number.
        """
        starts, ends = (each[:, first : first + len(names)].reshape(-1) for each in (self.starts, self.ends))
        length = ends - starts
        wrong = (length < 1) | (length > _MOST_DIGITS)
        digit = self.content[np.maximum(ends - 1, 0)] - np.uint8(ord("0"))
        found = digit.astype(np.int32)
        # One digit after another from the right; few numbers have many.
        longer = np.flatnonzero((length > 1) & ~wrong)
        wrong |= digit > 9
        for place in range(1, _MOST_DIGITS):
            if not len(longer):
                break
            digit = self.content[ends[longer] - 1 - place] - np.uint8(ord("0"))
            wrong[longer] |= digit > 9
            found[longer] += digit.astype(np.int32) * 10**place
            longer = longer[length[longer] > place + 1]
        self._refuse(wrong, names)
        return found.reshape(-1, len(names))

    def _refuse(self, wrong: Flags, names: tuple[str, ...]) -> None:
        if wrong.any():
            line, place = divmod(int(np.argmax(wrong)), len(names))
            raise self.lines.fault(self.part.start + line, f"{names[place]} is not a whole number of at most 9 digits")


def read_lines(path: Path, width: int) -> Lines:
    """Read a file of lines of so many fields.

    Raises
    ------
    InputError
        If it cannot be read, is empty, is not text, or its last line was cut short.
    """
    try:
        content = np.frombuffer(read_regular(path), dtype=np.uint8)
    except FileNotFoundError:
        raise InputError(f"{path} is not there; header and three segments belong together") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    newline = np.flatnonzero(content == _END)
    if not len(content):
        raise InputError(f"{path} is empty")
    ends = content[np.maximum(newline - 1, 0)] == _RETURN
    lines = Lines(path, content, newline, b"\r\n" if len(ends) and ends[0] else b"\n", width)
    if content[-1] != _END:
        raise lines.fault(len(newline), "the file is cut short: its last line has no end")
    if (ends != ends[0]).any():
        raise lines.fault(int(np.argmax(ends != ends[0])), "the line ends otherwise than the first")
    if not content.all():
        raise lines.fault(int(np.searchsorted(newline, np.argmin(content))), "not text: it holds a NUL character")
    return lines
