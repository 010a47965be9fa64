"""What keeps draws and finished counts: in memory, or on disk, so that a killed run goes on with them."""

import hashlib
import io
import zipfile
from bisect import insort
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Integers, Ints, narrow
from yupana.files.draw_log import damaged
from yupana.files.regular import put, read_regular, replacing, take_room
from yupana.release.checkpoint import SEAL, Checkpoint
from yupana.topdown import Estimator
from yupana.topdown.histogram import Histogram, joined

_ENTRIES_AT_ONCE: Final = 1 << 20
"""Counts that are not zero: pieces are put together up to so many, so that who reads a geolevel reads no crumbs."""


Shape = tuple[int, ...]

Drawn = tuple[NDArray[np.integer], ...]
"""By query, the answers drawn."""


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """Finished children of consecutive parents."""

    counts: Histogram  # of the children, in order
    # parents (their positions in the geolevel) whose children cannot sum to them, and by how much they must differ
    failsafe: tuple[tuple[int, int], ...]
    solvers: Mapping[str, int]  # how many estimation passes were solved by what


class Keeper:
    """Keeps draws and finished work, so that a run can be resumed without drawing anything twice.

    This one keeps nothing: for an estimate that nobody resumes, and that reads every answer once.
    """

    def has(self, level: int, first: int) -> bool:
        """Whether a piece of a geolevel is kept: that of the children of the parents from ``first`` on."""
        del level, first
        return False

    def load(self, level: int, first: int) -> Piece | None:
        """The piece, if it was kept."""
        del level, first
        return None

    def save(self, level: int, first: int, piece: Piece) -> None:
        """Keep a piece; it must be on disk before anything is made of it."""

    def has_draws(self, level: int, first: int) -> bool:
        """Whether the geounits of a level from ``first`` on have been measured."""
        del level, first
        return False

    def load_draws(self, level: int, first: int, shapes: Sequence[Shape]) -> Drawn | None:
        """What was drawn for the geounits of a level from ``first`` on; None if nothing was."""
        del level, first, shapes
        return None

    def save_draws(self, level: int, first: int, shapes: Sequence[Shape], draw: Callable[[], Sequence[Ints]]) -> Drawn:
        """Draw for the geounits of a level from ``first`` on, and keep it."""
        del level, first, shapes
        return tuple(draw())


@dataclass(slots=True, eq=False)
class KeptLevel:
    """A geolevel in the pieces it was divided in: `BlockParts`, of any geolevel.

    What its keeper has is read from there each time, and the rest is held in memory.
    """

    level: int
    keeper: Keeper
    units: int = 0  # so far
    failsafe: list[tuple[int, int]] = field(default_factory=list)  # of all pieces; see `Piece`
    solvers: Counter[str] = field(default_factory=Counter)
    _firsts: list[int] = field(default_factory=list)
    _held: dict[int, Histogram] = field(default_factory=dict)

    def add(self, first: int, piece: Piece) -> None:
        """Add a piece: that of the children of the parents from ``first`` on, saved before; in any order."""
        insort(self._firsts, first)
        if not self.keeper.has(self.level, first):
            self._held[first] = piece.counts
        self.units += piece.counts.units
        self.failsafe += piece.failsafe
        self.solvers.update(piece.solvers)

    def __iter__(self) -> Iterator[tuple[int, Histogram]]:
        """The place of the first unit of each part, and the counts of the part.

        Raises
        ------
        OutputError
            If what was kept is damaged.
        """
        begin, some, entries = 0, list[Histogram](), 0
        for first in self._firsts:
            some.append(self._counts(first))
            entries += len(some[-1].cells)
            if entries >= _ENTRIES_AT_ONCE or first == self._firsts[-1]:
                part = joined(some)
                yield begin, part
                begin, some, entries = begin + part.units, [], 0

    def _counts(self, first: int) -> Histogram:
        if first in self._held:
            return self._held[first]
        piece = self.keeper.load(self.level, first)
        if piece is None:
            raise RuntimeError(f"counts of level {self.level} below unit {first} of the one above were not kept")
        return piece.counts


class DrawsInMemory(Keeper):
    """For an estimate that nobody resumes, and that reads answers more than once."""

    def __init__(self) -> None:
        self._drawn: dict[tuple[int, int], Drawn] = {}

    def has_draws(self, level: int, first: int) -> bool:
        """Whether the geounits of a level from ``first`` on have been measured."""
        return (level, first) in self._drawn

    def load_draws(self, level: int, first: int, shapes: Sequence[Shape]) -> Drawn | None:
        """What was drawn for the geounits of a level from ``first`` on; None if nothing was."""
        del shapes
        return self._drawn.get((level, first))

    def save_draws(self, level: int, first: int, shapes: Sequence[Shape], draw: Callable[[], Sequence[Ints]]) -> Drawn:
        """Draw, and keep it in as few bytes as hold it."""
        del shapes
        return self._drawn.setdefault((level, first), tuple(map(narrow, draw())))


def unkept(estimator: Estimator) -> Keeper:
    """What an estimate that nobody resumes keeps: full information reads answers on its way up and down."""
    return Keeper() if estimator == "topdown" else DrawsInMemory()


_WIDEST: Final = 8
_HEAD: Final = 1024
"""Bytes of a number that is kept, at most, and of what a file has beside its numbers, for each array and once more."""


@dataclass(frozen=True, slots=True)
class BatchCheckpoint(Checkpoint, Keeper):
    """A checkpoint with a file for what was drawn of each batch, and one for its finished counts."""

    def has(self, level: int, first: int) -> bool:
        """Whether the children of the parents from ``first`` on are kept."""
        return (self.folder / _counts(level, first)).exists()

    def load(self, level: int, first: int) -> Piece | None:
        """What was kept of them, if it was; see `load_arrays`."""
        name = _counts(level, first)
        arrays = self.load_arrays(name)
        if arrays is None:
            return None
        with self._intact(name):
            counts = Histogram(arrays["starts"], arrays["cells"], arrays["counts"])
            solvers = dict(zip(arrays["solvers"].tolist(), arrays["solved"].tolist(), strict=True))
            return Piece(counts, tuple((int(a), int(b)) for a, b in arrays["failsafe"]), solvers)

    def save(self, level: int, first: int, piece: Piece) -> None:
        """Keep them; see `save_arrays`."""
        self.save_arrays(
            _counts(level, first),
            {
                "starts": piece.counts.starts,
                "cells": piece.counts.cells,
                "counts": piece.counts.counts,
                "failsafe": np.array(piece.failsafe, dtype=np.int64).reshape(-1, 2),
                "solvers": np.array(list(piece.solvers), dtype=np.str_),
                "solved": np.array(list(piece.solvers.values()), dtype=np.int64),
            },
        )

    def has_draws(self, level: int, first: int) -> bool:
        """Whether the geounits of a level from ``first`` on have been measured."""
        return (self.folder / _draws(level, first)).exists()

    def load_draws(self, level: int, first: int, shapes: Sequence[Shape]) -> Drawn | None:
        """What was drawn for the geounits of a level from ``first`` on; None if nothing was. See `load_arrays`."""
        name = _draws(level, first)
        arrays = self.load_arrays(name)
        if arrays is None:
            return None
        expected = {str(query): shape for query, shape in enumerate(shapes)}
        with self._intact(name):
            values = unpacked(arrays)
        if {query: one.shape for query, one in values.items()} != expected:
            raise damaged(self.folder / name)
        return tuple(values[query] for query in expected)

    def save_draws(self, level: int, first: int, shapes: Sequence[Shape], draw: Callable[[], Sequence[Ints]]) -> Drawn:
        """Draw for the geounits of a level from ``first`` on, and keep it: it is on disk when this returns.

        Room for the widest numbers is taken before anything is drawn. So whether the disk has room for a draw does not
        depend on it, and a run that fails here and is resumed has not chosen among draws.

        Raises
        ------
        OutputError
            If they cannot be kept.
        """
        path = self.folder / _draws(level, first)
        partial = path.with_suffix(".partial")
        with self._writing(), partial.open("wb") as file:
            take_room(file.fileno(), 0, _WIDEST * sum(map(prod, shapes)) + _HEAD * (1 + ARRAYS * len(shapes)))
        values = tuple(narrow(one) for one in draw())
        with self._writing(), partial.open("r+b") as file:
            kept = (packed(str(query), one) for query, one in enumerate(values))
            seal, content = _sealed({name: one for arrays in kept for name, one in arrays.items()})
            file.writelines((seal, content))
            file.truncate()
            put(file, path)
        self.list_drawn(path.name, seal)
        return values

    def load_arrays(self, name: str) -> dict[str, NDArray[Any]] | None:
        """What was kept under a name, if anything was.

        Raises
        ------
        OutputError
            If its file is damaged.
        """
        try:
            content = read_regular(self.folder / name)
        except FileNotFoundError:
            return None
        except OSError:
            raise damaged(self.folder / name) from None
        digest, payload = content[:SEAL], memoryview(content)[SEAL:]
        if hashlib.sha256(payload).digest() != digest:
            raise damaged(self.folder / name)
        with self._intact(name), np.load(io.BytesIO(payload), allow_pickle=False) as arrays:
            return dict(arrays)

    def save_arrays(self, name: str, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Keep arrays; they are on disk when this returns.

        Raises
        ------
        OutputError
            If they cannot be written.
        """
        with self._writing():
            path = self.folder / name
            with replacing(path, path.with_suffix(".partial")) as file:
                file.writelines(_sealed(arrays))

    @contextmanager
    def _intact(self, name: str) -> Iterator[None]:
        """Tell of what a file should hold and does not."""
        try:
            yield
        except (ValueError, KeyError, TypeError, IndexError, AttributeError, OSError, EOFError, zipfile.BadZipFile):
            raise damaged(self.folder / name) from None


def _counts(level: int, first: int) -> str:
    return f"{level:02d}-{first:09d}.counts"


def _draws(level: int, first: int) -> str:
    return f"{level:02d}-{first:09d}.measured"


def _sealed(arrays: Mapping[str, NDArray[Any]]) -> tuple[bytes, memoryview]:
    """What a file of arrays holds: its digest, and the arrays."""
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    payload = buffer.getbuffer()
    return hashlib.sha256(payload).digest(), payload


_PLACES, _VALUES = "places", "values"
ARRAYS: Final = 3
"""How many arrays a packed one takes at most."""


def packed(name: str, values: Integers) -> dict[str, Integers]:
    """What to keep of an array: itself, or a byte for each number, and the places and values of those that are larger.

    Parameters
    ----------
    name : str
        What the first array is to be called; others are called after it.
    values : ndarray of signed integers
        In as few bytes as hold them, 2 at least (`yupana.arrays.narrow`).

    Returns
    -------
    dict of str to ndarray
        Never of more bytes than ``values``.
    """
    bytes_ = values.astype(np.int8)
    places = np.flatnonzero(bytes_ != values)
    if len(places) * (8 + values.itemsize) >= values.size * (values.itemsize - 1):
        return {name: values}
    larger = values.reshape(-1)[places]
    return {name: bytes_, f"{name} {_PLACES}": places, f"{name} {_VALUES}": larger}


def unpacked(arrays: Mapping[str, NDArray[Any]]) -> dict[str, Integers]:
    """The arrays that were packed, by name: of the same values, shapes and types.

    Raises
    ------
    ValueError
        If one is not of signed integers, or of another shape than `packed` makes.
    KeyError, IndexError
        If something of it is missing, or lies at no place of it.
    """
    found: dict[str, Integers] = {}
    for name, kept in arrays.items():
        if kept.dtype.kind != "i":
            raise ValueError(name)
        if " " in name:
            continue
        if kept.dtype == np.int8:
            places, larger = arrays[f"{name} {_PLACES}"], arrays[f"{name} {_VALUES}"]
            values = kept.astype(larger.dtype)
            np.put(values, places, larger)
            found[name] = values
        else:
            found[name] = kept
    return found
