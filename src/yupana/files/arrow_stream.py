"""Columns of arrays, part after part, as a stream of the Arrow C interface, which the database reads without a copy.

Every field of a structure of this interface takes eight bytes, so that a structure is an array of whole numbers here.

Source
------
https://arrow.apache.org/docs/format/CDataInterface.html and CStreamInterface.html
"""

import ctypes
import errno
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Ints
from yupana.interruption import is_waiting


@dataclass(frozen=True, slots=True, eq=False)
class TextColumn:
    """A column of texts."""

    texts: NDArray[np.bytes_]  # shape (texts,): in UTF-8
    at: Ints  # shape (rows,): which of them each row has

    def __len__(self) -> int:
        return len(self.at)

    def __getitem__(self, rows: slice) -> "TextColumn":
        return TextColumn(self.texts, self.at[rows])

    def used(self) -> "TextColumn":
        """The same column with only those of the texts that its rows have, where the texts are more than the rows."""
        if not len(self.at) or len(self.texts) < len(self.at):
            return self
        low = int(self.at.min())
        seen = np.zeros(int(self.at.max()) - low + 1, dtype=np.bool_)
        seen[self.at - low] = True
        return TextColumn(self.texts[low : low + len(seen)][seen], (np.cumsum(seen) - 1)[self.at - low])


@dataclass(frozen=True, slots=True, eq=False)
class Texts:
    """A column of texts that lie one after the other."""

    content: NDArray[np.uint8]  # in UTF-8, as whoever makes it has seen to
    ends: NDArray[np.int64]  # shape (rows + 1,): where each begins, and where the last ends

    @classmethod
    def of(cls, parts: Sequence[bytes]) -> "Texts":
        """Those of some rows."""
        ends = np.cumsum([0, *map(len, parts)], dtype=np.int64)
        return cls(np.frombuffer(b"".join(parts), dtype=np.uint8), ends)

    def __len__(self) -> int:
        return len(self.ends) - 1

    def __getitem__(self, rows: slice) -> "Texts":
        first, last, _ = rows.indices(len(self))
        return Texts(self.content, self.ends[first : last + 1])


def letters(texts: NDArray[np.bytes_]) -> NDArray[np.uint8]:
    """The bytes of each text, shorter ones padded with null bytes; of shape (texts, width)."""
    contiguous = np.ascontiguousarray(texts)
    return contiguous.view(np.uint8).reshape(len(contiguous), contiguous.itemsize)


Column: TypeAlias = TextColumn | Texts | NDArray[np.number[Any]]
"""Texts, or numbers: the database is told whole ones in eight bytes and others in double precision."""

_Lent: TypeAlias = list[Any]
"""What the database was given the address of."""

_STREAM: Final = b"arrow_array_stream"
_TELLS: Final = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
_SAYS: Final = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
_RELEASES: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p)

_END_OF_SCHEMA, _END_OF_ARRAY, _END_OF_STREAM = 7, 8, 3
"""Which field of each structure holds the call that releases it; none is there once it is released."""


class ArrowParts:
    """Rows that the database reads once.

    Parameters
    ----------
    parts : iterable of mapping of str to Column
        One or more, all of the same columns in the same order.

    Attributes
    ----------
    fault : BaseException or None
        Why a part could not be made, if one could not.
    """

    def __init__(self, parts: Iterable[Mapping[str, Column]]) -> None:
        coming = iter(parts)
        first = next(coming)
        self.fault: BaseException | None = None
        self._columns = {name: _format(column) for name, column in first.items()}
        self._parts = itertools.chain([first], coming)
        self._lent: _Lent = []
        self._lent_of_part: dict[int, _Lent] = {}
        self._end_of_schema = self._call(_RELEASES, lambda at: _clear(at, _END_OF_SCHEMA))
        self._end_of_array = self._call(_RELEASES, self._release_part)
        calls = [self._call(_TELLS, self._tell_columns), self._call(_TELLS, self._tell_part)]
        words = _lend(_of_bytes(b"a part could not be made"), self._lent)
        ends = [self._call(_SAYS, lambda _: words), self._call(_RELEASES, lambda at: _clear(at, _END_OF_STREAM))]
        self._stream = [*calls, *ends, 0]

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Hand out a capsule with the stream."""
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(_lend(self._stream, self._lent), _STREAM, None)

    def _call(self, kind: Any, function: Callable[..., Any]) -> int:  # noqa: ANN401 (a type made by ctypes)
        made = kind(function)
        self._lent.append(made)
        return ctypes.cast(made, ctypes.c_void_p).value or 0

    def _tell_columns(self, _: int, into: int) -> int:
        def field(kind: bytes, name: str = "", children: Sequence[int] = (), dictionary: int = 0) -> list[int]:
            texts = [_lend(_of_bytes(text), self._lent) for text in (kind, name.encode())]
            below = [len(children), _lend(children, self._lent), dictionary]
            return [*texts, 0, 0, *below, self._end_of_schema, 0]

        def column(kind: bytes, name: str) -> list[int]:
            texts = _lend(field(kind), self._lent) if kind == b"u" else 0
            return field(b"l" if texts else kind, name, (), texts)

        fields = [_lend(column(kind, name), self._lent) for name, kind in self._columns.items()]
        return _fill(into, field(b"+s", "", fields))

    def _tell_part(self, _: int, into: int) -> int:
        if is_waiting():
            return errno.EINTR
        try:
            part = next(self._parts, None)
            if part is None:
                _clear(into, _END_OF_ARRAY)
                return 0
            lent: _Lent = []
            columns = [_lend(self._array(column, lent), lent) for column in part.values()]
            rows = len(next(iter(part.values())))
            self._lent_of_part[id(lent)] = lent
            return _fill(into, self._struct(rows, [None], lent, columns, number=id(lent)))
        except BaseException as fault:  # noqa: BLE001 (no fault passes through the database)
            self.fault = fault
            return errno.EIO

    def _array(self, column: Column, lent: _Lent) -> list[int]:
        if isinstance(column, Texts):
            return self._struct(len(column), [None, column.ends, column.content], lent)
        if not isinstance(column, TextColumn):
            kind = np.float64 if column.dtype.kind == "f" else np.int64
            return self._struct(len(column), [None, column.astype(kind)], lent)
        used = column.used()
        shown = letters(used.texts)
        some = shown != 0
        ends = np.zeros(len(some) + 1, dtype=np.int32)
        np.cumsum(np.count_nonzero(some, axis=1), out=ends[1:])
        texts = self._struct(len(used.texts), [None, ends, shown[some]], lent)
        return self._struct(len(column), [None, used.at], lent, dictionary=_lend(texts, lent))

    def _struct(
        self,
        rows: int,
        buffers: Sequence[NDArray[Any] | None],
        lent: _Lent,
        children: Sequence[int] = (),
        *,
        dictionary: int = 0,
        number: int = 0,
    ) -> list[int]:
        """An ArrowArray without a missing value; the first of its buffers would tell which are missing."""
        at = [0 if buffer is None else _lend(np.ascontiguousarray(buffer), lent) for buffer in buffers]
        below = [_lend(at, lent), _lend(children, lent), dictionary]
        return [rows, 0, 0, len(buffers), len(children), *below, self._end_of_array, number]

    def _release_part(self, at: int) -> None:
        number = _words(at, _END_OF_ARRAY + 2)[_END_OF_ARRAY + 1]
        self._lent_of_part.pop(number, None)
        _clear(at, _END_OF_ARRAY)


NO_TYPE: Final = "n"
"""The format of a column in which nothing but missing values is."""


def stream_columns(capsule: object) -> tuple[tuple[str, str], ...]:
    """Names and formats of the columns of a stream that nobody has read yet.

    Doubled names are told as they are, where a database renames them.

    Raises
    ------
    ValueError
        If it is no stream, or the schema cannot be had.
    """
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    stream = pointer(capsule, _STREAM)
    schema = np.zeros(9, dtype=np.int64)
    if _TELLS(_words(stream, 1)[0])(stream, schema.ctypes.data):
        raise ValueError("the stream does not tell its schema")
    try:
        columns = [_words(at, 2) for at in _words(int(schema[5]), int(schema[4]))]
        return tuple((_text(name), _text(kind)) for kind, name in columns)
    finally:
        _RELEASES(int(schema[_END_OF_SCHEMA]))(schema.ctypes.data)


def _text(at: int) -> str:
    return ctypes.string_at(at).decode() if at else ""


def _of_bytes(text: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(text + b"\0", dtype=np.uint8)


def _format(column: Column) -> bytes:
    if isinstance(column, TextColumn):
        return b"u"
    if isinstance(column, Texts):
        return b"U"
    return b"g" if column.dtype.kind == "f" else b"l"


def _lend(words: Sequence[int] | NDArray[Any], lent: _Lent) -> int:
    """The address of some words, which are kept for as long as the list is."""
    array = words if isinstance(words, np.ndarray) else np.array(words, dtype=np.int64)
    lent.append(array)
    return array.ctypes.data


def _words(at: int, number: int) -> Any:  # noqa: ANN401 (an array of ctypes)
    return (ctypes.c_int64 * number).from_address(at)


def _fill(at: int, words: Sequence[int]) -> int:
    _words(at, len(words))[:] = words
    return 0


def _clear(at: int, end: int) -> None:
    _words(at, end + 1)[end] = 0
