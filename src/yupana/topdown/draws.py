"""What keeps noisy answers between drawing and use: the checkpoint of a run, or less where nobody resumes. Public."""

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Ints, narrow
from yupana.topdown.configuration import Estimator
from yupana.topdown.kept_level import Keeper, Piece

Shape = tuple[int, ...]

Drawn = tuple[NDArray[np.integer], ...]
"""By query, the answers drawn."""


class KeepsDraws(Keeper, Protocol):
    """Keeps what is drawn for the geounits of a level from one on, and finished counts."""

    def has_draws(self, level: int, first: int) -> bool:
        """Whether the geounits of a level from ``first`` on have been measured."""
        ...

    def load_draws(self, level: int, first: int, shapes: Sequence[Shape]) -> Drawn | None:
        """What was drawn for the geounits of a level from ``first`` on; None if nothing was."""
        ...

    def save_draws(self, level: int, first: int, shapes: Sequence[Shape], draw: Callable[[], Sequence[Ints]]) -> Drawn:
        """Draw for the geounits of a level from ``first`` on, and keep it."""
        ...


class KeepsNothing:
    """For an estimate that nobody resumes, and that reads every answer once."""

    def has(self, level: int, first: int) -> bool:
        """No."""
        del level, first
        return False

    def load(self, level: int, first: int) -> Piece | None:
        """Nothing."""
        del level, first
        return None

    def save(self, level: int, first: int, piece: Piece) -> None:
        """Forget it."""
        del level, first, piece

    def has_draws(self, level: int, first: int) -> bool:
        """No."""
        del level, first
        return False

    def load_draws(self, level: int, first: int, shapes: Sequence[Shape]) -> Drawn | None:
        """Nothing."""
        del level, first, shapes
        return None

    def save_draws(self, level: int, first: int, shapes: Sequence[Shape], draw: Callable[[], Sequence[Ints]]) -> Drawn:
        """Draw."""
        del level, first, shapes
        return tuple(draw())


class DrawsInMemory(KeepsNothing):
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


def unkept(estimator: Estimator) -> KeepsDraws:
    """What an estimate that nobody resumes keeps: full information reads answers on its way up and down."""
    return KeepsNothing() if estimator == "topdown" else DrawsInMemory()
