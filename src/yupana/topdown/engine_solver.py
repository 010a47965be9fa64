"""Solve batches on an engine: what is sent are public values and what was drawn, and no record. Public."""

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from yupana.engine.engine import Engine
from yupana.topdown.descend import Batch, Gathered, solve
from yupana.topdown.kept_level import Piece


@dataclass(frozen=True, slots=True)
class EngineSolver:
    """Solves batches side by side on an engine, each in one task.

    A task that is lost is done again with the same draws, which are on disk before it is sent. So what makes a task
    fail does not choose among draws (docs/topdown-privacy.md).

    Attributes
    ----------
    engine : Engine
    """

    engine: Engine

    def __call__(self, work: Iterable[tuple[Batch, Gathered]]) -> Iterator[Piece]:
        """The piece of each batch."""
        return map(pickle.loads, self.engine.map(solve_message, map(pickle.dumps, work)))


def solve_message(message: bytes) -> bytes:
    """What `solve` makes of a batch and what was gathered, as a message."""
    batch, gathered = pickle.loads(message)  # noqa: S301 (of our driver)
    return pickle.dumps(solve(batch, gathered))
