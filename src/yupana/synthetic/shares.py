"""Draws by tables of shares, and the 63 codes of race: what all parts of a synthetic census draw from."""

from itertools import combinations
from typing import Final

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from yupana.arrays import Floats, Ints

RACES: Final = 6

COMBINATIONS: Final = tuple(races for size in range(1, RACES + 1) for races in combinations(range(RACES), size))
"""The races of CENRACE 1 to 63: six alone, then every pair, triple, ... of them in lexicographic order."""


def cumulative(rows: ArrayLike) -> Floats:
    """Row-wise cumulative shares, row r shifted to [r, r + 1), laid end to end: one search then serves all rows.

    Parameters
    ----------
    rows : array_like of float, shape (rows, columns)
        Weights, of any sum.

    Returns
    -------
    ndarray of float, shape (rows * columns,)
        For `draw_columns`.
    """
    shares = np.cumsum(np.asarray(rows, dtype=np.float64), axis=1)
    shares /= shares[:, -1:]
    flat: Floats = (shares + np.arange(len(shares))[:, None]).ravel()
    return flat


def draw_columns(rng: Generator, table: Floats, width: int, row: Ints) -> Ints:
    """Draw a column from each of the named rows of a `cumulative` table of so many columns.

    Parameters
    ----------
    rng : Generator
        Source of the draws.
    table : ndarray of float, shape (rows * width,)
    width : int
    row : ndarray of int, shape (n,)

    Returns
    -------
    ndarray of int, shape (n,)
        Columns, from 0.
    """
    found = np.searchsorted(table, row + rng.random(len(row)), side="right") - row * width
    # row + u rounds up to row + 1 for u next to 1
    column: Ints = np.minimum(found, width - 1)
    return column
