"""Solve batches of parents: in threads of this process, or on an engine, which is sent no record. Public."""

import pickle
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice, pairwise

import numpy as np

from yupana.engine.engine import Engine
from yupana.topdown.descend import Batch, Gathered, solve
from yupana.topdown.histogram import joined
from yupana.topdown.kept_level import Piece


@dataclass(frozen=True, slots=True)
class ThreadSolver:
    """Solves one batch after the other, the parents of each side by side.

    Attributes
    ----------
    workers : int
        Threads.
    """

    workers: int

    def __call__(self, work: Iterable[tuple[Batch, Gathered]]) -> Iterator[Piece]:
        """The piece of each batch; the next is gathered when its piece has been taken."""
        with ThreadPoolExecutor(self.workers) as pool:
            for batch, gathered in work:
                yield solve(batch, gathered, pool.map)


@dataclass(frozen=True, slots=True)
class EngineSolver:
    """Solves batches side by side on an engine, each in one task.

    A task that is lost is done again with the same draws, which are on disk before it is sent. So what makes a task
    fail does not choose among draws (docs/topdown-privacy.md).

    Attributes
    ----------
    engine : Engine
    parts : int
        How many tasks share a batch, each of which gets all of it: where sending costs little, none waits for the last.
    """

    engine: Engine
    parts: int = 1

    def __call__(self, work: Iterable[tuple[Batch, Gathered]]) -> Iterator[Piece]:
        """The piece of each batch."""
        sent: deque[int] = deque()

        def messages() -> Iterator[bytes]:
            for batch, gathered in work:
                parts = _shares(batch, self.parts)
                sent.append(len(parts))
                content = pickle.dumps((batch, gathered))
                yield from (pickle.dumps((part, content)) for part in parts)

        solved = map(pickle.loads, self.engine.map(solve_message, messages()))
        for first in solved:
            yield _together([first, *islice(solved, sent.popleft() - 1)])


def solve_message(message: bytes) -> bytes:
    """What `solve` makes of some parents of a batch and what was gathered, as a message."""
    part, content = pickle.loads(message)  # noqa: S301 (of our driver)
    batch, gathered = pickle.loads(content)  # noqa: S301
    return pickle.dumps(solve(batch, gathered, part=part))


def _shares(batch: Batch, number: int) -> list[range]:
    """The parents of a batch in runs of about the same work: children times live cells."""
    families = batch.families
    work = np.cumsum(np.diff(families.children) * (1 + np.diff(families.starts)))
    ends = np.searchsorted(work, work[-1] * np.arange(1, number) / number)
    bounds = np.unique([0, *ends.tolist(), len(work)]).tolist()
    return [range(first, last) for first, last in pairwise(bounds)]


def _together(pieces: Sequence[Piece]) -> Piece:
    """The piece of a batch of those of its parents."""
    if len(pieces) == 1:
        return pieces[0]
    failsafe = tuple(odd for piece in pieces for odd in piece.failsafe)
    solvers = sum((Counter(piece.solvers) for piece in pieces), Counter[str]())
    return Piece(joined([piece.counts for piece in pieces]), failsafe, solvers)
