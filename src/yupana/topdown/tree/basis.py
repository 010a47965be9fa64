"""The basis in which every covariance of the least squares on the tree is diagonal.

For a set S of attributes let P_S be the Kronecker product of I - J/n over the attributes in S and J/n over the others
(n the number of levels, J all ones): the part of a histogram that interacts in S. A query Q that keeps the attributes
T and sums over the others has Q'Q = N sum of P_S over the S within T, with N the product of the numbers of levels of
the others. So all such Q'Q commute, and a precision or a variance is one number for each of the 2^attributes sets S.

*Coordinates* are taken along each attribute by the reflection that carries the first unit vector to the constant one.
It is symmetric and its own inverse, costs one sum, and leaves the mean in place 0 and the rest in the others; so the
coordinates of a histogram have its own shape, and one belongs to S if its places are 0 exactly outside S. Proofs are in
docs/topdown-least-squares.md.

A *part* is a set S at a geolevel of a tree: number k * 2^attributes + S (`LevelParts`). Where each geolevel is
estimated by itself it is P_S of its units. On a regular tree under full information it is P_S of what units of geolevel
k differ by among the children of one parent (of the root: of what it holds). Both make the precision of every part a
sum of budgets, and the variance of every answer a sum over parts (docs/strategies.md).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod, sqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Flags, Floats, Ints
from yupana.compiled import compiled, compiled_part
from yupana.topdown.queries import Query, margin

Kept = tuple[bool, ...]
"""Which of the attributes of a basis a margin keeps."""


@dataclass(frozen=True, slots=True)
class Basis:
    """The basis of one schema. An attribute of one level has no part in it: kept or summed over, it is the same."""

    shape: tuple[int, ...]  # levels of each attribute of the schema

    @property
    def sizes(self) -> tuple[int, ...]:
        """Levels of each attribute that has more than one: the attributes of the basis."""
        return tuple(size for size in self.shape if size > 1)

    @property
    def cells(self) -> int:
        """How many cells a histogram has, and as many coordinates."""
        return prod(self.shape)

    @property
    def subsets(self) -> tuple[Kept, ...]:
        """The sets S in the order of all spectra: as binary numbers, the first attribute the highest digit."""
        return tuple(product((False, True), repeat=len(self.sizes)))

    def kept(self, query: Query) -> Kept:
        """Which attributes of the basis a query keeps.

        Raises
        ------
        ValueError
            If it groups levels: such a query is not diagonal in this basis.
        """
        if not query.keeps_or_sums:
            raise ValueError(f"{query.name} groups levels; the least squares take queries that keep or sum attributes.")
        return tuple(size > 1 for size, levels in zip(query.shape, self.shape, strict=True) if levels > 1)

    def margin(self, kept: Kept) -> Query:
        """Make the query that keeps these attributes; it is named by their positions in the schema."""
        keeps = iter(kept)
        flags = [levels > 1 and next(keeps) for levels in self.shape]
        return margin("*".join(str(i) for i, flag in enumerate(flags) if flag) or "total", self.shape, flags)

    def within(self, kept: Kept) -> Flags:
        """Which sets S lie within T = `kept`, of shape (2^attributes,): what a margin sees."""
        return np.array([all(k or not s for s, k in zip(subset, kept, strict=True)) for subset in self.subsets])

    def summed(self, kept: Kept) -> int:
        """N: how many cells each answer of a margin sums."""
        return prod(size for size, keep in zip(self.sizes, kept, strict=True) if not keep)

    def coordinates(self, answers: NDArray[np.generic], kept: Kept) -> Floats:
        """Coordinates of the answers of a margin, taken as a histogram of its own attributes.

        Those of a histogram x are sqrt(N) times smaller than those of its margin Q x, place by place (see `box`).

        Parameters
        ----------
        answers : ndarray, shape (units, answers of the margin)

        Returns
        -------
        ndarray of float64, shape (units, sizes of the attributes kept, 1 for the others)
        """
        shape = tuple(size if keep else 1 for size, keep in zip(self.sizes, kept, strict=True))
        return _reflected(np.array(answers, dtype=np.float64, order="C").reshape(len(answers), *shape))

    def answers(self, coordinates: Floats, query: Query) -> Floats:
        """Answers of any query, with groupings too, from the coordinates of histograms.

        Parameters
        ----------
        coordinates : ndarray of float64, shape (units, cells)

        Returns
        -------
        ndarray of float64, shape (units, query.size)
        """
        kept = tuple(size > 1 for size, levels in zip(query.shape, self.shape, strict=True) if levels > 1)
        part = coordinates.reshape(-1, *self.sizes)[box(kept)]
        out = _reflected(np.multiply(part, sqrt(self.summed(kept)), order="C"))
        factors = [factor for factor in query.factors if len(factor) > 1]
        for axis, (factor, keep) in enumerate(zip(factors, kept, strict=True), start=1):
            if keep and max(factor) + 1 < len(factor):
                groups = np.arange(max(factor) + 1) == np.asarray(factor)[:, None]
                out = np.moveaxis(np.moveaxis(out, axis, -1) @ groups, -1, axis)
        return np.ascontiguousarray(out.reshape(len(coordinates), query.size))

    def histograms(self, coordinates: Floats) -> Floats:
        """Histograms from their coordinates, both of shape (units, cells)."""
        return self.answers(coordinates, self.margin((True,) * len(self.sizes)))

    def blocks(self) -> Iterator[tuple[int, tuple[slice, ...]]]:
        """Each set S with the place of its coordinates in an array of shape (units, sizes of the attributes)."""
        for number, subset in enumerate(self.subsets):
            yield number, (slice(None), *(slice(1, None) if inside else slice(0, 1) for inside in subset))

    @property
    def part_of(self) -> Ints:
        """The number of the set S that each coordinate belongs to, of shape (cells,)."""
        part = np.zeros((1, *self.sizes), dtype=np.int64)
        for number, block in self.blocks():
            part[block] = number
        return part.reshape(-1)

    def marginal(self, coordinates: Floats, kept: Kept) -> Floats:
        """Coordinates of a margin from those of the histograms it is of, in the basis of its own attributes.

        Parameters
        ----------
        coordinates : ndarray of float64, shape (units, cells)

        Returns
        -------
        ndarray of float64, shape (units, answers of the margin)
            In each S within the margin the variance is `summed` times that of the histogram.
        """
        part = coordinates.reshape(-1, *self.sizes)[box(kept)] * sqrt(self.summed(kept))
        return part.reshape(len(coordinates), prod(part.shape[1:]))

    def scaled(self, coordinates: Floats, spectrum: Floats) -> Floats:
        """Apply the matrices sum of spectrum_S P_S, one per unit.

        Parameters
        ----------
        coordinates : ndarray of float64, shape (units, cells)
        spectrum : ndarray of float64, shape (units, 2^attributes)

        Returns
        -------
        ndarray of float64, shape (units, cells)
        """
        out = np.empty((len(coordinates), *self.sizes))
        source = coordinates.reshape(out.shape)
        for number, block in self.blocks():
            factor = spectrum[:, number].reshape(-1, *(1 for _ in self.sizes))
            np.multiply(source[block], factor, out=out[block])
        return out.reshape(coordinates.shape)

    def loadings(self, query: Query) -> Floats:
        """What part of each answer lies in each S: squared lengths of P_S q, q the row of 0 and 1 of an answer.

        Parameters
        ----------
        query : Query
            Groupings are allowed.

        Returns
        -------
        ndarray of float64, shape (query.size, 2^attributes)
            The variance of an answer is their sum, weighted by the variances of the S. Rows are equal where the query
            keeps or sums whole attributes.
        """
        out: Floats = np.ones((1, 1))
        for factor in query.factors:
            if len(factor) > 1:
                counted = np.bincount(factor).astype(np.float64)
                mean = counted**2 / len(factor)
                out = np.asarray(np.kron(out, np.stack([mean, counted - mean], axis=1)), dtype=np.float64)
        return out

    def loadings_of(self, rows: Floats) -> Floats:
        """What part of any weighted sums of cells lies in each S, as `loadings`; exactly 0 where it is rounding error.

        Parameters
        ----------
        rows : ndarray of float64, shape (sums, cells)
            Weights of the cells.

        Returns
        -------
        ndarray of float64, shape (sums, 2^attributes)
        """
        squares = self.coordinates(rows, (True,) * len(self.sizes)) ** 2
        parts = [squares[block].reshape(len(rows), -1).sum(axis=1) for _, block in self.blocks()]
        out = np.stack(parts, axis=1)
        out[out <= 1e-12 * out.sum(axis=1, keepdims=True)] = 0.0
        return out

    def weights(self, precision: Floats) -> Floats:
        """Write sum of precision_S P_S as a signed sum over margins, sum of weight_T Q_T'Q_T.

        Parameters
        ----------
        precision : ndarray of float64, shape (units, 2^attributes)

        Returns
        -------
        ndarray of float64, shape (units, 2^attributes)
            Weight of the margin that keeps T, some of them negative. What is rounding error alone is exactly 0.
        """
        out = precision.reshape(-1, *(2 for _ in self.sizes)).copy()
        scale = np.abs(out)
        for axis in range(1, out.ndim):
            # T without the attribute: less what the margin with it holds already, over the levels it sums.
            for array, sign in ((out, -1.0), (scale, 1.0)):
                less, more = (array[(slice(None),) * axis + (place,)] for place in (0, 1))
                less += sign * more
                less /= self.sizes[axis - 1]
        out[np.abs(out) <= 1e-12 * scale] = 0.0
        return out.reshape(precision.shape)

    def precision(self, weights: Floats) -> Floats:
        """Sum weight_T Q_T'Q_T to its spectrum: the inverse of `weights`, of the same shapes; infinity is allowed."""
        out = weights.reshape(-1, *(2 for _ in self.sizes)).copy()
        for axis in range(1, out.ndim):
            less, more = (out[(slice(None),) * axis + (place,)] for place in (0, 1))
            less *= self.sizes[axis - 1]
            less += more
        return out.reshape(weights.shape)


def box(kept: Sequence[bool]) -> tuple[slice, ...]:
    """The place of the coordinates of a margin in an array of shape (units, sizes of the attributes)."""
    return (slice(None), *(slice(None) if keep else slice(0, 1) for keep in kept))


def _reflected(values: Floats) -> Floats:
    """Reflect along every attribute, in place, so that its mean comes to place 0; an own inverse."""
    reflect(values.reshape(len(values), prod(values.shape[1:])), np.array(values.shape[1:], dtype=np.int64))
    return values


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


@dataclass(frozen=True, slots=True)
class LevelParts:
    """The parts of the geolevels of a tree."""

    basis: Basis
    levels: int  # how many geolevels are estimated
    # how many children each unit has, from the root down, of all geolevels but the last; None where each geolevel is
    # estimated from its own answers alone
    children: tuple[float, ...] | None
    exact: tuple[bool, ...]  # of each geolevel, whether the total of its units is known exactly

    @property
    def size(self) -> int:
        """How many parts there are."""
        return self.levels * len(self.basis.subsets)

    def told(self, level: int, query: Query) -> Floats:
        """The precision of each part from a unit of budget of a query in every unit of a geolevel, of shape (size,).

        Of a query that groups levels it is more than it tells: that of the query which keeps these attributes whole,
        times the largest groups. So its variances are bounds from below.
        """
        kept = margin(query.name, self.basis.shape, [groups > 1 for groups in query.shape])
        grouped = prod(
            int(np.bincount(factor).max())
            for factor, groups in zip(query.factors, query.shape, strict=True)
            if groups > 1
        )
        sets = self.basis.kept(kept)
        alone = self.basis.within(sets) * float(self.basis.summed(sets) * grouped)
        told = np.zeros((self.levels, len(alone)))
        if self.children is None:
            told[level] = alone
        else:
            told[: level + 1] = alone * self._leaves(level)
        return told.reshape(-1)

    def needed(self, level: int, loadings: Floats) -> Floats:
        """What the variance of answers counts of each part, of shape (answers, size).

        Parameters
        ----------
        loadings : ndarray of float64, shape (answers, 2^attributes)
            Of the answers in a unit, as of `Basis.loadings`.
        """
        needed = np.zeros((len(loadings), self.levels, loadings.shape[1]))
        if self.children is None:
            needed[:, level] = loadings
        else:
            inverse = [1 / self._leaves(k) for k in range(level + 1)]
            for k, (own, above) in enumerate(zip(inverse, [0.0, *inverse], strict=False)):
                needed[:, k] = loadings * self._leaves(level) ** 2 * (own - above)
        needed[:, [*self.exact], 0] = 0
        return needed.reshape(len(loadings), -1)

    def precisions(self, measured: Sequence[tuple[int, Query]]) -> Floats:
        """`told` of queries of geolevels, of shape (size, queries)."""
        return np.stack([self.told(level, query) for level, query in measured], axis=1)

    def _leaves(self, level: int) -> float:
        """How many units of the last geolevel a unit holds."""
        return prod(() if self.children is None else self.children[level:])
