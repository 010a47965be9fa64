"""The loop that all least squares on the tree spend their time in: reflections of histograms, one at a time."""

from math import sqrt
from typing import Final

import numpy as np

from yupana.arrays import Floats, Ints
from yupana.compiled import compiled, compiled_part

_AT_ONCE: Final = 128


@compiled
def reflect(values: Floats, sizes: Ints) -> None:
    """Reflect each row along every attribute, in place, so that its mean comes to place 0; an own inverse.

    A row stays in the processor's cache for all attributes. Sums are added up in the order of numpy's, so that results
    are the same to the last bit.

    Parameters
    ----------
    values : ndarray of float64, shape (units, cells)
    sizes : ndarray of int64, shape (attributes,)
        Levels of each attribute; cells is their product.
    """
    units, cells = values.shape
    change = np.empty(cells)
    for unit in range(units):
        row = values[unit]
        inner = cells
        for axis in range(len(sizes)):
            size = sizes[axis]
            inner //= size
            if size > 1:
                root = sqrt(float(size))
                for begin in range(0, cells, size * inner):
                    _reflect_one(row[begin : begin + size * inner], inner, root, change)


@compiled_part
def _reflect_one(values: Floats, inner: int, root: float, change: Floats) -> None:
    """Reflect along the first axis of values of shape (size, inner)."""
    if inner == 1:
        constant = _sum(values) / root
        step = (values[0] - constant) / (root - 1.0)
        for at in range(len(values)):
            values[at] += step
        values[0] = constant
        return
    for place in range(inner):
        change[place] = values[place]
    for begin in range(inner, len(values), inner):
        for place in range(inner):
            change[place] += values[begin + place]
    for place in range(inner):
        constant = change[place] / root
        change[place] = (values[place] - constant) / (root - 1.0)
        values[place] = constant
    for begin in range(inner, len(values), inner):
        for place in range(inner):
            values[begin + place] += change[place]


@compiled_part
def _sum(values: Floats) -> float:
    """Eight sums side by side, put together in pairs, of at most so many numbers; of more the sum of two halves."""
    size = len(values)
    if size < 8:
        total: float = values[0]
        for at in range(1, size):
            total += values[at]
        return total
    if size > _AT_ONCE:
        half = size // 2
        half -= half % 8
        both: float = _sum(values[:half]) + _sum(values[half:])
        return both
    a, b, c, d, e, f, g, h = (values[0], values[1], values[2], values[3], values[4], values[5], values[6], values[7])
    whole = size - size % 8
    for at in range(8, whole, 8):
        a += values[at]
        b += values[at + 1]
        c += values[at + 2]
        d += values[at + 3]
        e += values[at + 4]
        f += values[at + 5]
        g += values[at + 6]
        h += values[at + 7]
    total = ((a + b) + (c + d)) + ((e + f) + (g + h))
    for at in range(whole, size):
        total += values[at]
    return total
