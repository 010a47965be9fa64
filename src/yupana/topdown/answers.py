"""Exact answers to queries, from the counts of geounits that are not zero."""

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Ints
from yupana.compiled import compiled

Cells = NDArray[np.int32]


@compiled
def exact_answers(
    starts: Ints,
    cells: Cells,
    counts: Ints,
    children: Ints,
    label: Cells,
    asked_starts: Ints,
    asked: Cells,
    size: int,
) -> Ints:
    """Sum the counts of units into the answers that are asked of them; all others are left out.

    Parameters
    ----------
    starts, cells, counts : ndarray
        Sparse counts of all units of a geolevel: entries of unit u from ``starts[u]`` up to ``starts[u + 1]``.
    children : ndarray of int64, shape (parents + 1,)
        The units from ``children[p]`` up to ``children[p + 1]`` are asked the same answers.
    label : ndarray of int32, shape (cells,)
        For each cell the answer it counts in.
    asked_starts, asked : ndarray
        The answers asked of the units of p, from ``asked_starts[p]`` up to ``asked_starts[p + 1]``.
    size : int
        How many answers the query has.

    Returns
    -------
    ndarray of int64
        Unit after unit, the answers in the order asked.
    """
    values = 0
    for p in range(len(children) - 1):
        values += (children[p + 1] - children[p]) * (asked_starts[p + 1] - asked_starts[p])
    out = np.empty(values, dtype=np.int64)
    out[:] = 0
    at = np.empty(size, dtype=np.int32)
    at[:] = -1
    base = 0
    for p in range(len(children) - 1):
        begin, end = asked_starts[p], asked_starts[p + 1]
        for j in range(begin, end):
            at[asked[j]] = j - begin
        for unit in range(children[p], children[p + 1]):
            for e in range(starts[unit], starts[unit + 1]):
                position = at[label[cells[e]]]
                if position >= 0:
                    out[base + position] += counts[e]
            base += end - begin
        for j in range(begin, end):
            at[asked[j]] = -1
    return out
