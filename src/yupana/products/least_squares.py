"""Generalised least squares on a tree of sums, and its rounding to whole numbers that still add up. Public.

Proofs of what is said here are in docs/coterminous.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Floats

Parents = tuple[NDArray[np.intp], ...]
"""By depth from 1 on, the parent of each node: an index into the depth above. Children of a node are neighbours."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What the measurements of many alike trees say of their nodes."""

    # values, variances: shape (trees, nodes of the depth): the estimates and their variances
    values: tuple[Floats, ...]
    variances: tuple[Floats, ...]
    # variance of the estimate of a node from the measurements of itself and its descendants alone
    below: tuple[Floats, ...]


def average(values: Floats, variances: Floats, group: NDArray[np.intp], groups: int) -> tuple[Floats, Floats]:
    """Average the measurements of each group, cell by cell, by inverse variance.

    Parameters
    ----------
    values, variances : float arrays, shape (measurements, cells)
        A variance may be 0; then only measurements of variance 0 count.
    group : int array, shape (measurements,)
        Groups without a measurement get the variance infinity.

    Returns
    -------
    tuple of float arrays, shape (groups, cells)
        Averages and their variances, never above the smallest that went in.
    """
    shape = (groups, values.shape[1])
    least = np.full(shape, np.inf)
    np.minimum.at(least, group, variances)
    # Weights relative to the best measurement leave a lone one exactly as it is.
    weights = np.divide(least[group], variances, out=np.ones_like(variances), where=variances != least[group])
    weight, total = np.zeros(shape), np.zeros(shape)
    np.add.at(weight, group, weights)
    np.add.at(total, group, weights * values)
    return (
        np.divide(total, weight, out=np.zeros(shape), where=weight > 0),
        np.divide(least, weight, out=least.copy(), where=weight > 0),
    )


def estimate(parents: Parents, values: Sequence[Floats], variances: Sequence[Floats]) -> Estimate:
    """Best linear unbiased estimates of all nodes, each node being the sum of its children.

    Parameters
    ----------
    parents : Parents
        Of the depths from 1 to the last.
    values, variances : sequences of float arrays, by depth, shape (trees, nodes of the depth)
        Independent measurements; infinity is the variance of a node that was not measured. The last depth is measured.

    Returns
    -------
    Estimate
        Exact up to floating-point rounding, variances included; no variance is above that of the node's measurement.
    """
    upward, below = [values[-1]], [variances[-1]]
    sums: list[Floats] = []
    of_sums: list[Floats] = []
    for parent, own, variance in zip(parents[::-1], values[-2::-1], variances[-2::-1], strict=True):
        summed, of_sum = sums_of_children(upward[0], parent), sums_of_children(below[0], parent)
        measured = np.isfinite(variance)
        share = np.divide(of_sum, variance + of_sum, out=np.ones_like(own), where=measured & (variance + of_sum > 0))
        upward.insert(0, np.where(measured, summed + share * (own - summed), summed))
        shrunk = np.divide(variance, variance + of_sum, out=np.zeros_like(own), where=measured & (variance > 0))
        below.insert(0, np.where(measured, np.minimum(variance, shrunk * of_sum), of_sum))
        sums.insert(0, summed)
        of_sums.insert(0, of_sum)
    down, known = [upward[0]], [below[0]]
    for depth, parent in enumerate(parents, start=1):
        of_sum = of_sums[depth - 1][:, parent]
        share = np.divide(below[depth], of_sum, out=np.zeros_like(of_sum), where=of_sum > 0)
        down.append(upward[depth] + share * (down[-1] - sums[depth - 1])[:, parent])
        known.append(below[depth] - share**2 * (of_sum - known[-1][:, parent]))
    return Estimate(tuple(down), tuple(known), tuple(below))


def non_negative(parents: Parents, found: Estimate) -> tuple[Floats, ...]:
    """The nearest estimates without a negative value that still add up, fitted from the total downward.

    At each node the children minimise the sum of their squared changes over `Estimate.below`, given their sum.
    """
    values = [np.maximum(found.values[0], 0.0)]
    for depth, parent in enumerate(parents, start=1):
        before, weight = found.values[depth], found.below[depth]
        positive = np.ones(before.shape, dtype=bool)
        while True:
            missing = values[-1] - sums_of_children(np.where(positive, before, 0.0), parent)
            weights = sums_of_children(np.where(positive, weight, 0.0), parent)
            step = np.divide(missing, weights, out=np.zeros_like(missing), where=weights > 0)
            after = np.where(positive, before + weight * step[:, parent], 0.0)
            negative = after < 0
            if not negative.any():
                break
            positive &= ~negative
        values.append(after)
    return tuple(values)


def whole(parents: Parents, values: Sequence[Floats]) -> tuple[NDArray[np.int64], ...]:
    """Round the total to the nearest integer (half to even) and every other node down or up, so that all still adds up.

    Of the children of a node those with the largest fractional parts are rounded up, the first among equals.
    """
    rounded = [np.rint(values[0]).astype(np.int64)]
    for depth, parent in enumerate(parents, start=1):
        down = np.floor(values[depth])
        children = np.bincount(parent)
        starts = np.cumsum(children) - children
        up = rounded[-1] - sums_of_children(down, parent).astype(np.int64)
        # By parent, and among siblings by fractional part, largest first.
        order = np.argsort(2.0 * parent + 1.0 - (values[depth] - down), axis=1, kind="stable")
        rank = np.empty_like(order)
        np.put_along_axis(rank, order, np.arange(parent.size) - starts[parent], axis=1)
        # The quotient is 0 or 1; written so that the sum holds whatever floating point did.
        each, left = np.divmod(up, children)
        rounded.append(down.astype(np.int64) + each[:, parent] + (rank < left[:, parent]))
    return tuple(rounded)


def sums_of_children(values: Floats, parent: NDArray[np.intp]) -> Floats:
    """Sums over the children of each node: they are neighbours, and no node is childless."""
    starts = np.flatnonzero(np.diff(parent, prepend=-1))
    return np.add.reduceat(values, starts, axis=1)
