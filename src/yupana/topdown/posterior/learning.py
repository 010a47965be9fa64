"""Densities of intensities, learned in rounds of sweeps over some parents."""

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np

from yupana.arrays import Ints
from yupana.topdown.posterior.draw import Draws, Sweeps, draw
from yupana.topdown.posterior.prior import Prior, smoothed
from yupana.topdown.posterior.siblings import Posed

_SWEEPS: Final[tuple[Sweeps, ...]] = ((25, 20), *((5, 20),) * 4)
"""Of each round, left out and counted; a round goes on where the one before ended."""

ROUNDS: Final = len(_SWEEPS)

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
