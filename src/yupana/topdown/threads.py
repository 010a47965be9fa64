"""Solve batches in threads of this process. Public."""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from yupana.topdown.descend import Batch, Gathered, solve
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
