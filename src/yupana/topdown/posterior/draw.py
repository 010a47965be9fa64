"""Draws of the children of one parent, by a random stream of its own, and the densities learned from them."""

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Floats, Ints
from yupana.topdown.posterior.kernels import wander
from yupana.topdown.posterior.prior import Prior, smoothed
from yupana.topdown.posterior.siblings import Posed

Sweeps = tuple[int, int]
"""How many are left out, and how many count."""

_SWEEPS: Final[tuple[Sweeps, ...]] = ((25, 20), *((5, 20),) * 4)
"""Of each round, left out and counted; a round goes on where the one before ended."""

ROUNDS: Final = len(_SWEEPS)


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


Learner = tuple[int, Posed, Ints]
"""The number of a parent, its question, and counts of its children."""


def learn_densities(parents: Sequence[Learner], prior: Prior, seed: int, pool: Executor) -> tuple[Prior, list[Ints]]:
    """Learn how the intensities of rows lie about their bases.

    In each round the density of a class becomes that of the intensities its rows had, given their people in each draw:
    the steps of an expectation-maximisation by draws.

    Parameters
    ----------
    parents : sequence of (int, Posed, ndarray of int64 of shape (k, m))
    prior : Prior
        To begin with; its concentrations are kept.
    seed : int
        Each round of each parent has a stream of its own.
    pool : Executor

    Returns
    -------
    tuple
        The prior, and the last draw of each parent.
    """
    numbers, posed = [number for number, _, _ in parents], [of for _, of, _ in parents]
    last = [start for _, _, start in parents]
    for stage, sweeps in enumerate(_SWEEPS):
        held = np.zeros(prior.density.shape)
        found = []
        # In the order of the parents, so that sums do not depend on threads.
        for draws in pool.map(partial(_draw, prior, sweeps, seed, stage), numbers, posed, last):
            held += draws.held / sweeps[1]
            found.append(draws.last)
        last, prior = found, replace(prior, density=smoothed(held))
    return prior, last


def _draw(prior: Prior, sweeps: Sweeps, seed: int, stage: int, number: int, posed: Posed, start: Ints) -> Draws:
    return draw(posed, prior, start, sweeps, (seed, stage, number), learning=True)
