"""Covariances of sums of blocks, such as districts and places, under least squares on the tree. Public.

The recursion of docs/intervals.md for sums of weight 1, whose slopes are alike for all coordinates of a part S: so a
part is one number for each unit and area that meet, whatever the schema. Slopes are sparse, as an area meets few units.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from yupana.arrays import Flags, Floats, Indices, Ints
from yupana.geography.tree import Members, Tree

_EXACT: Final = 1e-12
"""A variance below this share of what its blocks would have by themselves is a rounding error of 0."""

_ALIKE: Final = 1e-9
"""Slopes that differ by less differ by rounding."""


def covariance_of_areas(tree: Tree, upward: Sequence[Floats], members: Members, parts: Sequence[int]) -> list[Floats]:
    """Covariance of the estimates of areas in each part S, given all measurements of the tree.

    Parameters
    ----------
    tree : Tree
    upward : sequence of ndarray of float64, shape (units of the level, 2^attributes) each
        Precisions of what the measurements of a unit and of all below it say of it, from the root to the blocks.
    members : Members
        The blocks of each area; one block may be in many.
    parts : sequence of int
        The numbers of the parts S that are asked for.

    Returns
    -------
    list of ndarray of float64, shape (areas, areas) each
        One for each part. The variance is infinity, and covariances are 0, where the measurements do not determine the
        area; what they know exactly has 0.
    """
    blocks, areas = tree.units(len(tree.names) - 1), members.number
    ones = np.ones(len(members.block))
    inside = sparse.csr_array((ones, (members.block, members.entity)), shape=(blocks, areas))
    return [_of_part(tree, [precision[:, part] for precision in upward], inside) for part in parts]


def _of_part(tree: Tree, precisions: Sequence[Floats], inside: sparse.csr_array) -> Floats:
    slope = inside
    found = np.zeros((inside.shape[1], inside.shape[1]))
    open_ = np.zeros(inside.shape[1], dtype=np.bool_)
    for level in range(len(tree.names) - 1, 0, -1):
        parents, units = tree.parents[level], tree.units(level - 1)
        variance, unknown = _variance(precisions[level])
        share = _share(variance, unknown, parents, units)
        ones, children = np.ones(len(parents)), np.arange(len(parents))
        child = sparse.csr_array((ones, (children, parents)), shape=(len(parents), units))
        mean = child.T @ _scaled(share, slope)
        # Of all children of the parents that an area meets: siblings outside it have slope 0 and vary against it.
        away = (slope - child @ mean).tocsr()
        found += (away.T @ _scaled(variance, away)).toarray()
        open_ |= _reached(away, unknown)
        slope = mean.tocsr()
    variance, unknown = _variance(precisions[0])
    found += (slope.T @ _scaled(variance, slope)).toarray()
    open_ |= _reached(slope, unknown)
    alone, _ = _variance(precisions[-1])
    exact = (np.diag(found) <= _EXACT * (inside.T @ alone)) | open_
    found[exact] = 0.0
    found[:, exact] = 0.0
    found[open_, open_] = np.inf
    return found


def _variance(precision: Floats) -> tuple[Floats, Flags]:
    """Variances, 0 where they are not determined; and where that is."""
    unknown = precision == 0
    return np.where(unknown, 0.0, 1.0 / np.where(unknown, 1.0, precision)), unknown


def _share(variance: Floats, unknown: Flags, parents: Indices, units: int) -> Floats:
    """What part of a change of its parent each child takes; several that are not determined take it evenly."""
    total = np.bincount(parents, weights=variance, minlength=units)[parents]
    missing = np.bincount(parents, weights=unknown, minlength=units)[parents]
    share = np.divide(variance, total, out=np.zeros_like(variance), where=(missing == 0) & (total > 0))
    return np.divide(1.0, missing, out=share, where=unknown)


def _scaled(factor: Floats, rows: sparse.csr_array) -> sparse.csr_array:
    """Rows times a number each."""
    out = rows.tocsr(copy=True)
    out.data *= np.repeat(factor, np.diff(out.indptr))
    return out


def _reached(slope: sparse.csr_array, unknown: Flags) -> Flags:
    """Which areas change with a unit that is not determined."""
    rows: NDArray[np.intp] = np.flatnonzero(unknown)
    some = slope[rows].tocoo()
    areas: Ints = np.unique(some.coords[1][np.abs(some.data) > _ALIKE]).astype(np.int64)
    reached = np.zeros(slope.shape[1], dtype=np.bool_)
    reached[areas] = True
    return reached
