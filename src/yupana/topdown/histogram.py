"""Counts of many geounits over the cells of one schema, the zeros left out."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Ints

Cells = NDArray[np.int32]

Entries = tuple[NDArray[np.integer], NDArray[np.integer], NDArray[np.integer]]
"""Units, cells and counts, each of shape (entries,)."""


@dataclass(frozen=True, slots=True, eq=False)
class Histogram:
    """Sparse counts by geounit: memory follows the cells that are not zero.

    Attributes
    ----------
    starts : ndarray of int64, shape (units + 1,)
        The entries of unit u are those from ``starts[u]`` up to ``starts[u + 1]``.
    cells : ndarray of int32, shape (entries,)
        Cell numbers, ascending within a unit, each once.
    counts : ndarray of int64, shape (entries,)
        Positive.
    """

    starts: Ints
    cells: Cells
    counts: Ints

    @property
    def units(self) -> int:
        """How many geounits are counted, empty ones included."""
        return len(self.starts) - 1

    def owners(self) -> Ints:
        """The unit of each entry, of shape (entries,)."""
        return np.repeat(np.arange(self.units), np.diff(self.starts))

    def totals(self) -> Ints:
        """The sum of each unit, of shape (units,)."""
        sums = np.concatenate([[0], np.cumsum(self.counts)])
        return np.asarray(sums[self.starts[1:]] - sums[self.starts[:-1]], dtype=np.int64)

    def part(self, first: int, last: int) -> "Histogram":
        """The units from ``first`` up to ``last``, numbered from 0."""
        begin, end = self.starts[first], self.starts[last]
        return Histogram(self.starts[first : last + 1] - begin, self.cells[begin:end], self.counts[begin:end])

    def dense(self, first: int, last: int, cells: int) -> Ints:
        """Counts of the units from ``first`` up to ``last``, zeros included, of shape (last - first, cells)."""
        out = np.zeros((last - first, cells), dtype=np.int64)
        here = slice(self.starts[first], self.starts[last])
        owner = np.repeat(np.arange(last - first), np.diff(self.starts[first : last + 1]))
        out[owner, self.cells[here]] = self.counts[here]
        return out

    def sum_to(self, parents: NDArray[np.integer], units: int) -> "Histogram":
        """Add units up to other units, such as children to parents.

        Parameters
        ----------
        parents : ndarray of int, shape (self.units,)
            For each unit the one it belongs to, or -1 for none.
        units : int
            How many there are of those.
        """
        owner = np.asarray(parents, dtype=np.int64)[self.owners()]
        kept = owner >= 0
        return count_entries(owner[kept], self.cells[kept], self.counts[kept], units)

    def counts_at(self, other: "Histogram") -> Ints:
        """Counts at the entries of another histogram of the same units, zeros included, in the order of its entries."""
        width = 1 + max(int(self.cells.max(initial=0)), int(other.cells.max(initial=0)))
        key, wanted = (one.owners() * width + one.cells for one in (self, other))
        at = np.minimum(np.searchsorted(key, wanted), max(len(key) - 1, 0))
        if not len(key):
            return np.zeros(len(wanted), dtype=np.int64)
        return np.where(key[at] == wanted, self.counts[at], 0)

    def variables(self, member: Ints, size: int, first: int, last: int) -> Ints:
        """Sums over cells, of the units from ``first`` up to ``last``, of shape (last - first, size).

        Parameters
        ----------
        member : ndarray of int64, shape (cells, k)
            The variables that each cell counts in, each once, -1 for none.
        size : int
            How many variables there are.
        first, last : int
        """
        part = slice(self.starts[first], self.starts[last])
        owner = np.repeat(np.arange(last - first), np.diff(self.starts[first : last + 1]))
        out = np.zeros((last - first) * size, dtype=np.int64)
        for variable in member[self.cells[part]].T:
            some = variable >= 0
            np.add.at(out, owner[some] * size + variable[some], self.counts[part][some])
        return out.reshape(-1, size)


def count_entries(
    unit: NDArray[np.integer], cell: NDArray[np.integer], count: NDArray[np.integer], units: int
) -> Histogram:
    """Sum entries (unit, cell, count) in any order, with repetitions and zeros, to a histogram.

    Parameters
    ----------
    unit, cell, count : ndarray of int, shape (entries,)
    units : int
    """
    owner, found, summed = add_entries(unit, cell, count)
    starts = np.searchsorted(owner, np.arange(units + 1))
    return Histogram(starts.astype(np.int64), found.astype(np.int32), np.ascontiguousarray(summed, dtype=np.int64))


def add_entries(unit: NDArray[np.integer], cell: NDArray[np.integer], count: NDArray[np.integer]) -> Entries:
    """Sum entries of one unit and cell; what is left is positive and in the order of units, then cells."""
    width = int(cell.max(initial=0)) + 1
    key = np.asarray(unit, dtype=np.int64) * width + cell
    if not bool((key[1:] > key[:-1]).all()):
        order = np.argsort(key, kind="stable")
        key, count = key[order], count[order]
        first = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]])) if len(key) else np.arange(0)
        key, count = key[first], np.add.reduceat(count, first) if len(first) else count
    positive = count > 0
    key, count = key[positive], count[positive]
    owner, found = np.divmod(key, width)
    return owner, found, count


def joined(pieces: Sequence[Histogram]) -> Histogram:
    """Put the counts of consecutive units behind one another."""
    offsets = np.cumsum([0, *(len(piece.cells) for piece in pieces)])
    starts = [piece.starts[:-1] + offset for piece, offset in zip(pieces, offsets[:-1], strict=True)]
    return Histogram(
        np.concatenate([*starts, offsets[-1:]]).astype(np.int64),
        np.concatenate([piece.cells for piece in pieces]),
        np.concatenate([piece.counts for piece in pieces]),
    )
