"""One count of some areas: published, estimated from all measurements, and how estimates err together. Public."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Floats
from yupana.errors import ConfigError
from yupana.estimate.intervals.area_covariance import covariance_of_areas
from yupana.estimate.intervals.counted import Levels, weights_on
from yupana.estimate.intervals.tree import TreeMeasurements
from yupana.geography.tree import Members
from yupana.topdown.tree.basis import Basis


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
