"""Covariances of weighted sums of answers over any geounits of a tree, under least squares. Public.

It is the recursion of `precisions_of_sums` with weights of any kind at any geolevel: coordinates of one part S are
alike and independent, so each is a tree of numbers of its own. Proof: docs/intervals.md.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from yupana.arrays import Floats, Indices, Ints
from yupana.geography.tree import Tree
from yupana.topdown.tree.basis import Basis
from yupana.topdown.tree.least_squares import TreeEstimate

_ROUNDING = 1e-12
_TOLERANCE = 1e-9
"""Slopes that differ by less, in units of the largest weight, differ by rounding."""


def covariance_of_sums(
    tree: Tree, basis: Basis, upward: Sequence[TreeEstimate], weights: Mapping[tuple[int, int], Floats], sums: int
) -> Floats | None:
    """Covariance of sums of answers, given all measurements of the tree.

    Parameters
    ----------
    tree : Tree
    basis : Basis
    upward : sequence of TreeEstimate
        By geolevel, what the measurements of a unit and of all below it say of it.
    weights : mapping of (geolevel, unit) to ndarray of float64, shape (sums, cells)
        Of the histogram of a unit, in the coordinates of the basis.
    sums : int
        How many sums there are.

    Returns
    -------
    ndarray of float64, shape (sums, sums), or None
        None where the measurements do not determine a sum.
    """
    part = _part_of_place(basis)
    tolerance = _TOLERANCE * max((float(np.abs(row).max()) for row in weights.values()), default=0.0)
    found = np.zeros((sums, sums))
    units, slopes = _direct(weights, max((level for level, _ in weights), default=0), sums, basis.cells)
    for level in range(max((level for level, _ in weights), default=0), 0, -1):
        parents = tree.parents[level]
        variance, unknown = _variances(upward[level])
        above, up = np.unique(parents[units], return_inverse=True)
        determined, missing = (_by_parent(values, parents, above)[:, part] for values in (variance, unknown))
        mine, open_ = variance[units][:, part], unknown[units][:, part] > 0
        share = np.divide(
            mine, determined[up], out=np.zeros_like(mine), where=(missing[up] == 0) & (determined[up] > 0)
        )
        share = np.divide(1.0, missing[up], out=share, where=open_)
        mean = _added(slopes * share, up, len(above))
        away = slopes - mean[:, up]
        found += _product(away, mine)
        # Children that are in no sum have slope 0 and enter by the sums of their family.
        rest = np.maximum(determined - _added(mine[None], up, len(above))[0], 0.0)
        found += _product(mean, rest)
        others = missing - _added(open_[None].astype(np.float64), up, len(above))[0] > 0
        if (open_ & (np.abs(away) > tolerance)).any() or (others & (np.abs(mean) > tolerance)).any():
            return None
        direct, rows = _direct(weights, level - 1, sums, basis.cells)
        units = np.union1d(above, direct)
        slopes = np.zeros((sums, len(units), basis.cells))
        slopes[:, np.searchsorted(units, above)] += mean
        slopes[:, np.searchsorted(units, direct)] += rows
    variance, unknown = _variances(upward[0])
    if ((unknown[units][:, part] > 0) & (np.abs(slopes) > tolerance)).any():
        return None
    return _exact_as_zero(found + _product(slopes, variance[units][:, part]), upward, weights, part)


def _product(slopes: Floats, variance: Floats) -> Floats:
    """Covariance of sums of independent values with these slopes on them."""
    return np.asarray((slopes * variance).reshape(len(slopes), -1) @ slopes.reshape(len(slopes), -1).T)


def _exact_as_zero(
    covariance: Floats, upward: Sequence[TreeEstimate], weights: Mapping[tuple[int, int], Floats], part: Ints
) -> Floats:
    """Set variances to 0 that are rounding errors, against what they were if nothing cancelled."""
    gross = np.zeros(len(covariance))
    for (level, unit), row in weights.items():
        variance, _ = _variances(upward[level].part(unit, unit + 1))
        gross += row**2 @ variance[0, part]
    exact = np.diag(covariance) <= _ROUNDING * gross
    covariance[exact] = 0.0
    covariance[:, exact] = 0.0
    return covariance


def _part_of_place(basis: Basis) -> Ints:
    """The number of the set S that each coordinate belongs to, of shape (cells,)."""
    part = np.zeros((1, *basis.sizes), dtype=np.int64)
    for number, block in basis.blocks():
        part[block] = number
    return part.reshape(-1)


def _direct(weights: Mapping[tuple[int, int], Floats], level: int, sums: int, cells: int) -> tuple[Ints, Floats]:
    """The units of a geolevel that have weights of their own, in order, and those: (sums, units, cells)."""
    units = sorted(unit for at, unit in weights if at == level)
    rows = np.zeros((sums, len(units), cells))
    for place, unit in enumerate(units):
        rows[:, place] = weights[level, unit]
    return np.array(units, dtype=np.int64), rows


def _variances(estimate: TreeEstimate) -> tuple[Floats, Floats]:
    """Variances of each part, 0 where it is not determined; and 1.0 where it is not."""
    unknown = estimate.precision == 0
    with np.errstate(divide="ignore"):
        return np.where(unknown, 0.0, 1.0 / estimate.precision), unknown.astype(np.float64)


def _by_parent(values: Floats, parents: Indices, above: Indices) -> Floats:
    """Sums over all children of some parents."""
    first, last = np.searchsorted(parents, above), np.searchsorted(parents, above, side="right")
    return np.array([values[a:b].sum(axis=0) for a, b in zip(first.tolist(), last.tolist(), strict=True)]).reshape(
        len(above), values.shape[1]
    )


def _added(values: Floats, up: Ints, number: int) -> Floats:
    """Sums over the units of each parent, of shape (sums, parents, cells)."""
    out = np.zeros((number, values.shape[0], values.shape[2]))
    np.add.at(out, up, values.swapaxes(0, 1))
    return out.swapaxes(0, 1)
