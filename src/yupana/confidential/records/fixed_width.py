"""Lines of fixed width: from bytes to whole numbers, a stretch of lines at a time, in numpy.

A database would make a text of every field first; with lines that are all alike, a column is a stride through bytes.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from yupana.confidential.records.validation import MOST_LINES, Finding
from yupana.files.columns import Column, RecordFile
from yupana.files.regular import regular

Bytes: TypeAlias = NDArray[np.uint8]
Ints: TypeAlias = NDArray[np.int32]

NONE: Final = -1
"""What stands for a value outside its column's domain."""

_LINES_AT_ONCE: Final = 1 << 19
_LONGEST: Final = 1 << 16
_LOOKED_UP: Final = 5  # digits


@dataclass(frozen=True, slots=True)
class Layout:
    """A line of fixed width: where the columns of a record file stand in it, counted from 0, ends excluded."""

    schema: RecordFile
    width: int
    fields: dict[str, tuple[int, int]]
    blank_is_zero: frozenset[str] = frozenset()


class ShapeError(Exception):
    """A file is not made of lines of one width."""


def read_lines(path: Path, width: int) -> Iterator[Bytes]:
    """The lines of a file, in order.

    Lines end in LF or all in CRLF; the last may lack its end.

    Yields
    ------
    ndarray of uint8, shape (lines, width)

    Raises
    ------
    ShapeError
        If a line has another width, another end or bytes that are not ASCII.
    """
    with open(path, "rb", opener=regular) as file:
        end = b"\r\n" if file.read(width + 2)[width:] == b"\r\n" else b"\n"
        file.seek(0)
        row = width + len(end)
        while data := file.read(_LINES_AT_ONCE * row):
            if len(data) % row == width:
                data += end
            if len(data) % row:
                raise ShapeError
            content = np.frombuffer(data, dtype=np.uint8)
            lines = content.reshape(-1, row)
            ended = bool((lines[:, width:] == np.frombuffer(end, dtype=np.uint8)).all())
            breaks = sum(np.count_nonzero(content == byte) for byte in b"\r\n")
            if not ended or breaks != len(lines) * len(end) or content.max() > 127:
                raise ShapeError
            yield lines[:, :width]


def read_columns(
    path: Path, layout: Layout, findings: list[Finding]
) -> Iterator[tuple[Bytes, dict[str, Ints], NDArray[np.int64]]]:
    """The lines of a file, some at a time, with their columns (`numbers`) and their own numbers, from 1.

    What keeps lines from being read is added to the findings.
    """
    count = 0
    try:
        for lines in read_lines(path, layout.width):
            yield lines, numbers(lines, layout), np.arange(count + 1, count + 1 + len(lines))
            count += len(lines)
    except ShapeError:
        findings += misshapen(path, layout.width)


def misshapen(path: Path, width: int) -> list[Finding]:
    """Say which lines are not ASCII, too short or too long, after a `ShapeError`."""
    texts = {
        "is_text": "is not ASCII text",
        "short": f"is too short: a line has {width} characters",
        "long": f"is too long: a line has {width} characters",
    }
    lines: dict[str, list[int]] = {kind: [] for kind in texts}
    counts = dict.fromkeys(texts, 0)
    number = 0
    with open(path, "rb", opener=regular) as file:
        while line := file.readline(_LONGEST):
            number += 1
            text = line.removesuffix(b"\n").removesuffix(b"\r")
            while len(line) == _LONGEST and not line.endswith(b"\n"):
                line = file.readline(_LONGEST)
            if not text.isascii():
                kind = "is_text"
            elif len(text) != width:
                kind = "short" if len(text) < width else "long"
            else:
                continue
            counts[kind] += 1
            lines[kind] += [number] * (len(lines[kind]) < MOST_LINES)
    return [
        Finding("is_text" if kind == "is_text" else "row_shape", path.name, text, counts[kind], tuple(lines[kind]))
        for kind, text in texts.items()
        if counts[kind]
    ] or [Finding("is_text", path.name, "not readable as lines of text throughout: line ends of more than one kind")]


def numbers(lines: Bytes, layout: Layout) -> dict[str, Ints]:
    """The columns of a record file out of lines.

    Returns
    -------
    dict of str to ndarray of int32, shape (lines,)
        By column, in the order of the schema; `NONE` for what is outside the domain. Blanks are 0 in a column that has
        a word for no value (`Column.blank`). A column that the lines do not have is 0: no table needs it and no rule
        speaks of it.
    """
    zero = np.zeros(len(lines), dtype=np.int32)
    return {
        column.name: _column(lines, layout, column) if column.name in layout.fields else zero
        for column in layout.schema.columns
    }


def _column(lines: Bytes, layout: Layout, column: Column) -> Ints:
    start, end = layout.fields[column.name]
    width = end - start
    digits = lines[:, start:end].T.copy()
    blank = None
    if column.name in layout.blank_is_zero:
        digits[:, (digits == ord(" ")).all(axis=0)] = ord("0")
    elif column.blank:
        blank = (digits == ord(" ")).all(axis=0)
    elif column.width is None:
        # Numbers may be filled up with blanks in place of zeros, but not all with blanks.
        leading = np.ones(len(lines), dtype=np.bool_)
        for place in digits[:-1]:
            leading &= place == ord(" ")
            place[leading] = ord("0")
    digits -= ord("0")
    value = np.zeros(len(lines), dtype=np.int32)
    for place in digits:
        value = value * 10 + place
    # Bytes below the digit 0 have wrapped round to more than 9.
    wrong = digits.max(axis=0) > 9
    if width > _LOOKED_UP:
        return np.where(wrong | (value < column.low) | (value > column.high), np.int32(NONE), value)
    value[wrong] = 0
    found: Ints = _domain(column, width)[value]
    found[wrong] = NONE
    if blank is not None:
        # The digit 0 itself may be outside the domain.
        found[blank] = 0
    return found


@cache
def _domain(column: Column, width: int) -> Ints:
    """A list of all numbers of so many digits: itself where it is allowed, and `NONE`."""
    known = np.full(10**width, NONE, dtype=np.int32)
    allowed = [value for value in column.domain if value < len(known)]
    known[allowed] = allowed
    return known


def distinct_fields(lines: Bytes, field: tuple[int, int]) -> tuple[list[str], NDArray[np.int64]]:
    """The different texts of a field.

    Returns
    -------
    list of str
        Each once.
    ndarray of int, shape (lines,)
        Which of them a line has.
    """
    start, end = field
    words = -(-(end - start) // 8)
    padded = np.zeros((len(lines), words * 8), dtype=np.uint8)
    padded[:, : end - start] = lines[:, start:end]
    keys = padded.view(np.uint64)
    # One word mixed from all sorts far faster than text; that no two texts have the same is checked.
    mixed = np.zeros(len(lines), dtype=np.uint64)
    for word in keys.T:
        mixed = (mixed ^ word) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    _, first, which = np.unique(mixed, return_index=True, return_inverse=True)
    if not np.array_equal(keys[first][which], keys):
        _, first, which = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    texts = [lines[line, start:end].tobytes().decode("ascii") for line in first]
    return texts, which.ravel()
