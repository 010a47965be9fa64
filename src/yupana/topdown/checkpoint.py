"""What a run has drawn and made, on disk, so that a killed run goes on with it.

It holds noisy values, and checksums of the records, so it is for its owner alone.
"""

import hashlib
import io
import json
import os
import re
import shutil
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Ints, narrow
from yupana.errors import OutputError
from yupana.files.regular import put, read_json, read_regular, replacing
from yupana.topdown.draws import Drawn, Shape
from yupana.topdown.histogram import Histogram
from yupana.topdown.kept_level import Piece

_STATE: Final = "run.json"
_ACCOUNT: Final = "account"
_DIGEST: Final = 32
_OURS: Final = re.compile(r"(run|[0-9]{2}-[0-9]+)\.(json|counts|measured|partial)")
_WIDEST: Final = 8
_HEAD: Final = 1024
"""Bytes of a number that is kept, at most, and of what a file has beside its numbers, for each array and once more."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The folder of one run's finished work, readable by its owner alone."""

    folder: Path

    @property
    def exists(self) -> bool:
        """Whether a run has begun here."""
        return (self.folder / _STATE).exists()

    def begin(self, state: Mapping[str, Any], account: Mapping[str, Any] | None = None) -> None:
        """Begin a run: what an earlier one left here is removed.

        Parameters
        ----------
        state : mapping
            What must be the same when the run is resumed; it can be written as JSON.
        account : mapping or None
            What the run has been charged to.

        Raises
        ------
        OutputError
            If the folder cannot be made, or holds what no run has left.
        """
        self.check_ours()
        try:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.mkdir(mode=0o700, parents=True)
        except OSError as error:
            raise OutputError(f"{self.folder} cannot be written: {error.strerror}") from None
        self.charged(state, account)

    def check_ours(self) -> None:
        """Refuse a folder that holds anything but what a run leaves: it would be removed.

        Raises
        ------
        OutputError
        """
        if not os.path.lexists(self.folder):
            return
        is_folder = self.folder.is_dir() and not self.folder.is_symlink()
        try:
            if is_folder and all(_OURS.fullmatch(path.name) for path in self.folder.iterdir()):
                return
        except OSError as error:
            raise OutputError(f"{self.folder} cannot be read: {error.strerror}") from None
        raise OutputError(
            f"{self.folder}, where measurements are kept, holds what no run of topdown has left there; "
            "move it, or name another output folder"
        )

    def charged(self, state: Mapping[str, Any], account: Mapping[str, Any] | None) -> None:
        """Note what a run has been charged to.

        Raises
        ------
        OutputError
            If it cannot be written.
        """
        with self._writing():
            _write(self.folder / _STATE, json.dumps({**state, _ACCOUNT: account}, indent=1).encode())

    def resume(self, state: Mapping[str, Any]) -> dict[str, Any] | None:
        """Go on with a run that began with the same state; returns what it has been charged to, if to anything.

        Raises
        ------
        OutputError
            If there is none, it cannot be read, or anything differs; named.
        """
        try:
            before = read_json(self.folder / _STATE)
        except FileNotFoundError:
            raise OutputError(f"{self.folder}: there is no interrupted run to resume") from None
        except (OSError, ValueError):
            raise OutputError(self._corrupt(self.folder / _STATE)) from None
        now = json.loads(json.dumps(state))
        if not isinstance(before, dict) or not isinstance(before.get(_ACCOUNT), dict | None):
            raise OutputError(self._corrupt(self.folder / _STATE))
        changed = [name for name in now if before.get(name) != now[name]]
        if changed:
            raise OutputError(
                f"{self.folder} was begun with other input; changed: {', '.join(changed)}. Put it back, or run anew "
                "with --overwrite if nobody has seen what is there"
            )
        account: dict[str, Any] | None = before.get(_ACCOUNT)
        return account

    def remove(self) -> None:
        """Remove everything: the run is complete."""
        shutil.rmtree(self.folder, ignore_errors=True)

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
        """What was drawn for the geounits of a level from ``first`` on; None if nothing was.

        Parameters
        ----------
        level, first : int
        shapes : sequence of tuple of int
            Of the answers to each query.

        Raises
        ------
        OutputError
            If the file is damaged.
        """
        name = _draws(level, first)
        arrays = self.load_arrays(name)
        if arrays is None:
            return None
        expected = {str(query): shape for query, shape in enumerate(shapes)}
        whole = all(one.dtype.kind == "i" for one in arrays.values())
        if not whole or {query: one.shape for query, one in arrays.items()} != expected:
            raise OutputError(self._corrupt(self.folder / name))
        return tuple(arrays[query] for query in expected)

    def save_draws(self, level: int, first: int, shapes: Sequence[Shape], draw: Callable[[], Sequence[Ints]]) -> Drawn:
        """Draw for the geounits of a level from ``first`` on, and keep it: it is on disk when this returns.

        Room for the widest numbers is taken before anything is drawn. So whether the disk has room for a draw does not
        depend on it, and a run that fails here and is resumed has not chosen among draws.

        Parameters
        ----------
        level, first : int
        shapes : sequence of tuple of int
            Of the answers to each query.
        draw : callable

        Raises
        ------
        OutputError
            If they cannot be kept.
        """
        path = self.folder / _draws(level, first)
        partial = path.with_suffix(".partial")
        with self._writing():
            room = bytes(_WIDEST * sum(map(prod, shapes)) + _HEAD * (1 + len(shapes)))
            with partial.open("wb") as file:
                file.write(room)
        del room
        values = tuple(narrow(one) for one in draw())
        with self._writing(), partial.open("r+b") as file:
            file.writelines(_sealed({str(query): one for query, one in enumerate(values)}))
            file.truncate()
            put(file, path)
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
            raise OutputError(self._corrupt(self.folder / name)) from None
        digest, payload = content[:_DIGEST], memoryview(content)[_DIGEST:]
        if hashlib.sha256(payload).digest() != digest:
            raise OutputError(self._corrupt(self.folder / name))
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
            _write(self.folder / name, *_sealed(arrays))

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise OutputError(f"{self.folder} cannot be written: {error.strerror}; nothing was released") from None

    @contextmanager
    def _intact(self, name: str) -> Iterator[None]:
        """Tell of what a file should hold and does not."""
        try:
            yield
        except (ValueError, KeyError, TypeError, IndexError, AttributeError, OSError, EOFError, zipfile.BadZipFile):
            raise OutputError(self._corrupt(self.folder / name)) from None

    def _corrupt(self, path: Path) -> str:
        return (
            f"{path} is damaged, so the run cannot be resumed. Nothing was changed. Put the file back, or run anew "
            "with --overwrite if nobody has seen what is there"
        )


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


def _write(path: Path, *parts: bytes | memoryview) -> None:
    """Write a file that appears whole or not at all; it is on disk when this returns."""
    with replacing(path, path.with_suffix(".partial")) as file:
        file.writelines(parts)
