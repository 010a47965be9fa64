"""Large text files: columns as bytes of fixed width, a stretch of rows at a time, in numpy.

Each column is an array of byte strings, padded with null bytes; a row is their concatenation with ``|`` between, and
the null bytes are taken out of the file as a whole. So a long text that many rows share is made once.
"""

from collections.abc import Iterable, Sequence
from typing import BinaryIO, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Texts: TypeAlias = NDArray[np.bytes_]

_LOOKED_UP: Final = 1_000_000


def texts(values: Iterable[str]) -> Texts:
    """Texts as bytes, in UTF-8."""
    encoded = [value.encode() for value in values]
    return np.array(encoded, dtype=f"S{max(1, *map(len, encoded))}" if encoded else "S1")


def digits(values: NDArray[np.integer], width: int) -> Texts:
    """Whole numbers from 0 on as codes of so many digits, with leading zeros."""
    written = np.empty((len(values), width), dtype=np.uint8)
    rest = np.asarray(values, dtype=np.int64)
    for place in range(width - 1, -1, -1):
        rest, digit = np.divmod(rest, 10)
        written[:, place] = digit + ord("0")
    found: Texts = written.view(f"S{width}").reshape(-1)
    return found


def whole(values: NDArray[np.integer]) -> Texts:
    """Whole numbers from 0 on as text."""
    most = int(values.max(initial=0))
    kind = f"S{len(str(most))}"
    # A list of all numbers is made faster than the text of each.
    if most < _LOOKED_UP and most < 4 * len(values):
        values, known = np.asarray(values), np.arange(most + 1).astype(kind)
        return np.take(known, values)
    return np.asarray(values).astype(kind)


def join(columns: Sequence[Texts], end: bytes = b"") -> Texts:
    """Rows of several columns with ``|`` between them, of shape (rows,), still padded."""
    separators = map(np.bytes_, [b"|"] * (len(columns) - 1) + [end])
    pieces = [piece for pair in zip(columns, separators, strict=True) for piece in pair][: None if end else -1]
    rows = np.empty(len(columns[0]), dtype=[(f"p{place}", piece.dtype.str) for place, piece in enumerate(pieces)])
    for place, piece in enumerate(pieces):
        rows[f"p{place}"] = piece
    return rows.view(f"S{rows.dtype.itemsize}")


def cut(codes: Texts, first: int, last: int) -> Texts:
    """Some of the characters of each, as far as there are any."""
    letters = np.ascontiguousarray(codes).view("S1").reshape(len(codes), codes.itemsize)[:, first:last]
    return np.ascontiguousarray(letters).view(f"S{letters.shape[1]}")[:, 0]


def without_padding(rows: Texts) -> Texts:
    """Texts that `join` made, with the null bytes within them moved to their ends."""
    letters = rows.view(np.uint8).reshape(len(rows), rows.itemsize)
    some = letters != 0
    place = np.cumsum(some, axis=1) - 1
    found = np.zeros((len(rows), max(1, int(place.max(initial=0)) + 1)), dtype=np.uint8)
    row, column = np.nonzero(some)
    found[row, place[row, column]] = letters[row, column]
    moved: Texts = found.view(f"S{found.shape[1]}").reshape(-1)
    return moved


def write_lines(file: BinaryIO, columns: Sequence[Texts], end: bytes = b"\n") -> None:
    """Append rows."""
    file.write(join(columns, end).tobytes().translate(None, b"\0"))
