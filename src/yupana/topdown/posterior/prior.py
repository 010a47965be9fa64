"""The prior of the children of a parent, and what of it is learned: concentrations and densities of intensities."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from yupana.arrays import Floats, Ints

_STEP: Final = 0.03
_LOWEST, _HIGHEST = 0.01, 3000.0

THETA: Final[Floats] = np.exp(np.arange(np.log(_LOWEST), np.log(_HIGHEST), _STEP))
"""Midpoints of the intervals of an intensity over its base: coarser ones make a comb of large blocks."""

UNITS: Final[Ints] = np.array([1, 2, 4, 8, 16, 32, 64, 128, 256])
"""Classes of housing units begin here; those without one are a class before."""

QUARTERS: Final[Ints] = np.array([2, 4])
"""Classes of facilities of one type begin here; one facility is a class before."""

_WIDTH: Final = 2.0
"""Of the kernel that smooths densities, in intervals: a wider one widens the density at every round."""

_EVEN: Final = 0.01
"""Share of a density that is spread over all intervals, so that none is impossible."""

_SHARED: Final = 20.0
"""Rows for which the density of all classes together stands in that of each."""


@dataclass(frozen=True, slots=True, eq=False)
class Prior:
    """What is believed of the children of any parent before their own answers are read.

    Attributes
    ----------
    density : ndarray of float64, shape (classes, intervals)
        Of the logarithm of an intensity over its base, by the class of the row; rows sum to 1.
    between : float
        How alike the groups of children are: the concentration of their shares about the parent's.
    within : float
        The same of the cells within a group.
    """

    density: Floats
    between: float
    within: float


def flat(classes: int) -> Floats:
    """A wide density to begin with."""
    wide = np.exp(-0.5 * (np.log(THETA) / 0.7) ** 2) + 0.01
    return np.repeat((wide / wide.sum())[None], classes, axis=0)


def smoothed(held: Floats) -> Floats:
    """Densities from how often rows of each class were in each interval; a row cannot hold on to one of its own.

    Parameters
    ----------
    held : ndarray of float64, shape (classes, intervals)
        In rows.
    """
    at = np.arange(len(THETA))
    kernel = np.exp(-0.5 * ((at[:, None] - at) / _WIDTH) ** 2)
    counted = held @ (kernel / kernel.sum(axis=0)).T
    everything = counted.sum(axis=0)
    whole = everything.sum()
    if whole <= 0:
        return flat(len(held))
    density = counted + _SHARED * everything / whole
    density /= density.sum(axis=1, keepdims=True)
    return np.asarray((1.0 - _EVEN) * density + _EVEN / len(THETA))
