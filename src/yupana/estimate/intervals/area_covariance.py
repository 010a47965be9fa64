"""Covariances of sums of blocks, such as districts and places, under least squares on the tree. Public.

The recursion of docs/intervals.md for sums of weight 1, whose slopes are alike for all coordinates of a part S: so a
part is one number for each unit and area that meet, whatever the schema. Slopes are sparse, as an area meets few units.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from yupana.arrays import Flags, Floats, Indices, Ints
from yupana.errors import ConfigError
from yupana.estimate.intervals.counted import Levels, weights_on
from yupana.estimate.intervals.tree import TreeMeasurements
from yupana.geography.tree import Members, Tree
from yupana.topdown.tree.basis import Basis

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


@dataclass(frozen=True, slots=True, eq=False)
class AreaLaw:
    """A count of each of some areas.

    Attributes
    ----------
    published : ndarray of float64, shape (areas,)
        Of the release: whole where the count has whole weights.
    estimate : ndarray of float64, shape (areas,)
        By least squares from all measurements.
    covariance : ndarray of float64, shape (areas, areas)
        Of the estimates; singular where a sum of areas is known.
    """

    published: Floats
    estimate: Floats
    covariance: Floats


def law_of_areas(measurements: TreeMeasurements, members: Members, counted: Mapping[Levels, Fraction]) -> AreaLaw:
    """Find the joint law of a count of areas.

    Parameters
    ----------
    measurements : TreeMeasurements
    members : Members
        Which blocks of the spine lie in which area.
    counted : mapping of Levels to Fraction
        What is counted: answers with their weights.

    Raises
    ------
    ConfigError
        If the measurements do not determine the count of an area.
    OutputError
        If a file is not what it should be.
    """
    kept, weights = weights_on(counted, measurements.schema)
    basis = Basis(tuple(measurements.schema.shape[i] for i in kept) or (1,))
    last = len(measurements.levels) - 1
    upward, known = measurements.solve(kept, basis, last)
    row = basis.coordinates(weights[None], (True,) * len(basis.sizes))
    loading = np.array([float((row[block] ** 2).sum()) for _, block in basis.blocks()])
    seen = np.flatnonzero(loading > _ROUNDING * loading.sum())
    of_parts = covariance_of_areas(measurements.spine.tree, [e.precision for e in upward], members, seen.tolist())
    covariance = sum((loading[part] * found for part, found in zip(seen, of_parts, strict=True)), _none(members.number))
    if not np.isfinite(covariance).all():
        raise ConfigError("the measurements do not determine this count of every area; no estimate is possible")
    of_blocks = known[last].coordinates @ row.reshape(-1)
    unit, cell, count = measurements.released(last, kept)
    released = np.bincount(unit, weights=weights[cell] * count, minlength=len(of_blocks))
    return AreaLaw(_summed(released, members), _summed(of_blocks, members), covariance)


def _summed(values: NDArray[np.generic], members: Members) -> Floats:
    return np.asarray(np.bincount(members.entity, values[members.block], members.number), dtype=np.float64)


def _none(areas: int) -> Floats:
    return np.zeros((areas, areas))


_ROUNDING = 1e-12
"""A part with less of a count than this share has none of it."""
