"""Finished work on disk, so that a killed run can go on without drawing anything twice. It holds noisy counts only."""

import hashlib
import io
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hollerith.errors import OutputError
from hollerith.topdown.descend import Piece
from hollerith.topdown.histogram import Histogram

_STATE: Final = "run.json"
_DIGEST: Final = 32


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The folder of one run's finished work, readable by its owner alone."""

    folder: Path

    @property
    def exists(self) -> bool:
        """Whether a run has begun here."""
        return (self.folder / _STATE).exists()

    def begin(self, state: Mapping[str, Any]) -> None:
        """Begin a run: whatever was here is removed.

        Raises
        ------
        OutputError
            If the folder cannot be made.
        """
        try:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.mkdir(mode=0o700, parents=True)
            _write(self.folder / _STATE, json.dumps(state, indent=1).encode())
        except OSError as error:
            raise OutputError(f"{self.folder} cannot be written: {error.strerror}") from None

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on with a run that began with the same state.

        Raises
        ------
        OutputError
            If there is none, it cannot be read, or anything differs; named.
        """
        try:
            before = json.loads((self.folder / _STATE).read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise OutputError(f"{self.folder}: there is no interrupted run to resume") from None
        except (OSError, ValueError):
            raise OutputError(self._corrupt(self.folder / _STATE)) from None
        now = json.loads(json.dumps(state))
        if not isinstance(before, dict):
            raise OutputError(self._corrupt(self.folder / _STATE))
        changed = [name for name in now if before.get(name) != now[name]]
        if changed:
            raise OutputError(
                f"{self.folder} was begun with other input; changed: {', '.join(changed)}. Put it back, or run anew "
                "with --overwrite if nobody has seen what is there"
            )

    def remove(self) -> None:
        """Remove everything: the run is complete."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def load(self, level: int, batch: int) -> Piece | None:
        """What was kept of a batch, if it was; see `load_arrays`."""
        arrays = self.load_arrays(_counts(level, batch))
        if arrays is None:
            return None
        counts = Histogram(arrays["starts"], arrays["cells"], arrays["counts"])
        solvers = dict(zip(arrays["solvers"].tolist(), arrays["solved"].tolist(), strict=True))
        return Piece(counts, tuple((int(a), int(b)) for a, b in arrays["failsafe"]), solvers)

    def save(self, level: int, batch: int, piece: Piece) -> None:
        """Keep a batch; see `save_arrays`."""
        self.save_arrays(
            _counts(level, batch),
            {
                "starts": piece.counts.starts,
                "cells": piece.counts.cells,
                "counts": piece.counts.counts,
                "failsafe": np.array(piece.failsafe, dtype=np.int64).reshape(-1, 2),
                "solvers": np.array(list(piece.solvers), dtype=np.str_),
                "solved": np.array(list(piece.solvers.values()), dtype=np.int64),
            },
        )

    def has(self, name: str) -> bool:
        """Whether something was kept under a name."""
        return (self.folder / name).exists()

    def load_arrays(self, name: str) -> dict[str, NDArray[Any]] | None:
        """What was kept under a name, if anything was.

        Raises
        ------
        OutputError
            If its file is damaged.
        """
        path = self.folder / name
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        digest, payload = content[:_DIGEST], content[_DIGEST:]
        if hashlib.sha256(payload).digest() != digest:
            raise OutputError(self._corrupt(path))
        with np.load(io.BytesIO(payload), allow_pickle=False) as arrays:
            return dict(arrays)

    def save_arrays(self, name: str, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Keep arrays; they are on disk when this returns.

        Raises
        ------
        OutputError
            If they cannot be written.
        """
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **arrays)
        payload = buffer.getvalue()
        try:
            _write(self.folder / name, hashlib.sha256(payload).digest() + payload)
        except OSError as error:
            raise OutputError(f"{self.folder} cannot be written: {error.strerror}; nothing was released") from None

    def _corrupt(self, path: Path) -> str:
        return (
            f"{path} is damaged, so the run cannot be resumed. Nothing was changed. Put the file back, or run anew "
            "with --overwrite if nobody has seen what is there"
        )


def _counts(level: int, batch: int) -> str:
    return f"{level:02d}-{batch:06d}.counts"


def _write(path: Path, content: bytes) -> None:
    """Write a file that appears whole or not at all."""
    partial = path.with_suffix(".partial")
    with partial.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    partial.rename(path)
