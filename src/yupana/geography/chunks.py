"""How many geounits a group may hold, and how a run of them is cut into groups."""

from math import isqrt

import numpy as np

from yupana.arrays import Ints
from yupana.geography.settings import Grouping


def cap(number: Ints, fanout_cutoff: int) -> Ints:
    """How many of n units one group may hold: int(sqrt(n) + F) + 1, exactly, or all; of the shape of `number`."""
    values, index = np.unique(number, return_inverse=True)
    return np.array([min(isqrt(n) + fanout_cutoff + 1, n) for n in values.tolist()], dtype=np.int64)[index]


def chunks(at: Ints, length: Ints, largest: Ints, grouping: Grouping) -> Ints:
    """In which chunk each element of a run goes, from 0; all arrays of one shape.

    Parameters
    ----------
    at : ndarray of int64
        Place in the run, from 0.
    length : ndarray of int64
        Elements of the run.
    largest : ndarray of int64
        Elements a chunk may have.
    grouping : "orig" or "even"
        Full chunks and what is left; or as many chunks of two sizes, smaller ones first, where that evens them out.
    """
    full = at // largest
    if grouping == "orig":
        return full
    number = -(-length // largest)
    low = length // number
    small = number - length % number  # chunks of the smaller size
    even = np.where(at < small * low, at // low, small + (at - small * low) // (low + 1))
    return np.where((length <= largest) | np.isin(length % largest, (0, 1)), full, even)
