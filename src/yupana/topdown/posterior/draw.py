"""Draws of the children of one parent, by a random stream of the parent's own."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Floats, Ints
from yupana.topdown.posterior.kernels import wander
from yupana.topdown.posterior.prior import Prior
from yupana.topdown.posterior.siblings import Posed

Sweeps = tuple[int, int]
"""How many are left out, and how many count."""


@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """Draws of the children of one parent.

    Attributes
    ----------
    sums : ndarray of int64, shape (k, m)
        Of the draws that count.
    totals : ndarray of int32, shape (draws, k)
        Of each child in each of them.
    last : ndarray of int64, shape (k, m)
    held : ndarray of float64, shape (classes, intervals)
        How many rows were in each interval of intensity, in all draws that count.
    moves : ndarray of int64, shape (2,)
        Made, and people asked.
    """

    sums: Ints
    totals: NDArray[np.int32]
    last: Ints
    held: Floats
    moves: Ints

    @property
    def means(self) -> Floats:
        """Means of the draws; the children sum to the parent exactly, but for the rounding of a double."""
        return np.asarray(self.sums / len(self.totals))


def draw(posed: Posed, prior: Prior, start: Ints, sweeps: Sweeps, seed: tuple[int, ...], *, learning: bool) -> Draws:
    """Draw the children of one parent.

    Parameters
    ----------
    posed : Posed
    prior : Prior
    start : ndarray of int64, shape (k, m)
        Counts that sum to the parent and meet every bound.
    sweeps : tuple of (int, int)
    seed : tuple of int
        Of the stream: nothing else is drawn from it, so that threads do not matter.
    learning : bool
        Whether `Draws.held` is told; zeros if not.
    """
    random = np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed)))
    last = np.array(start, dtype=np.int64, order="C")
    believed, residual = posed.believed(prior), posed.residual(last)
    sums, totals, held, moves = wander(last, posed.asked, believed, residual, posed.swaps, sweeps, learning, random)
    return Draws(sums, totals, last, held, moves)
