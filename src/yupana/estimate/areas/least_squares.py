"""Counts of many areas at once by least squares: intervals of queries, and how areas err together. Public.

Areas such as districts are sums of weight 1, whose slopes are alike for all coordinates of a part S: so their
covariance takes one number for each unit and area that meet, whatever the schema.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import prod
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from yupana.arrays import Floats
from yupana.errors import ConfigError
from yupana.estimate.areas.queries import AskedOfArea, Kept, WeightedCells
from yupana.estimate.areas.released import ReleasedAreas
from yupana.estimate.intervals.intervals import Interval, interval_of, interval_of_multiple
from yupana.estimate.intervals.selections import Levels, weights_on
from yupana.estimate.intervals.tree import TreeMeasurements
from yupana.geography.tree import Members
from yupana.topdown.tree.basis import Basis
from yupana.topdown.tree.least_squares import covariance_of_sums, precisions_of_sums, whole_intervals

VALUES_AT_ONCE: Final = 1 << 24
"""Numbers of all blocks up to which the attributes of several queries are kept at once."""

_ROUNDING: Final = 1e-12
"""A part with less of a sum than this share has none of it."""


@dataclass(frozen=True, slots=True, eq=False)
class _AreaEstimates:
    """Estimates of some areas from all measurements, on the attributes that some queries name."""

    kept: Kept  # the attributes
    shape: tuple[int, ...]  # levels of all attributes of the schema
    coordinates: Floats  # shape (areas, cells of the attributes kept)
    precision: Floats  # shape (areas, 2^attributes): as of `precisions_of_sums`
    _rows: dict[tuple[Kept, bytes], Floats] = field(default_factory=dict, init=False)

    def moments(self, area: int, sums: Sequence[WeightedCells]) -> tuple[Floats, Floats]:
        """Estimates of weighted sums of the cells of an area, by its place, and their covariance."""
        rows = np.stack([self._row(one) for one in sums])
        values = rows @ self.coordinates[area] + [one.constant for one in sums]
        part, precision = basis_of(self.kept, self.shape).part_of, self.precision[area]
        loading = np.array([np.bincount(part, row**2, len(precision)) for row in rows])
        if ((precision == 0) & (loading > _ROUNDING * loading.sum(axis=1, keepdims=True))).any():
            raise ConfigError("the measurements do not determine it; no estimate is possible")
        with np.errstate(divide="ignore"):
            variance = np.where(precision == 0, 0.0, 1.0 / precision)
        return values, (rows * variance[part]) @ rows.T

    def _row(self, one: WeightedCells) -> Floats:
        if one.key not in self._rows:
            basis = basis_of(self.kept, self.shape)
            weights = one.on(self.kept, self.shape)[None]
            self._rows[one.key] = basis.coordinates(weights, (True,) * len(basis.sizes)).reshape(-1)
        return self._rows[one.key]


def basis_of(kept: Kept, shape: tuple[int, ...]) -> Basis:
    """The basis of the attributes kept."""
    return Basis(tuple(shape[i] for i in kept) or (1,))


def _estimates_of_areas(measurements: TreeMeasurements, members: Members, kept: Kept) -> _AreaEstimates:
    """Estimate the histograms of areas, on the attributes kept, in one pass through the tree."""
    shape = measurements.schema.shape
    basis = basis_of(kept, shape)
    last = len(measurements.levels) - 1
    upward, known = measurements.solve(kept, basis, last)
    inside = _inside(members, measurements.spine.tree.units(last))
    precisions = [estimate.precision for estimate in upward]
    precision = precisions_of_sums(measurements.spine.tree, precisions, precisions[0], members)
    return _AreaEstimates(kept, shape, np.asarray(inside @ known[last].coordinates), precision)


def _inside(members: Members, blocks: int) -> sparse.csr_array:
    """Which blocks lie in each area, as 1: of shape (areas, blocks)."""
    ones = np.ones(len(members.block))
    return sparse.csr_array((ones, (members.entity, members.block)), shape=(members.number, blocks))


def _grouped(wanted: Iterable[Kept], shape: tuple[int, ...], blocks: int) -> dict[Kept, Kept]:
    """Which attributes to keep for sums that need some: sets that hold them, so that measurements are seldom read."""
    groups: list[Kept] = []
    for kept in sorted(set(wanted), key=lambda one: -prod(shape[i] for i in one)):
        unions = [tuple(sorted({*group, *kept})) for group in groups]
        values = [blocks * prod(shape[i] for i in union) for union in unions]
        fits = [u == g or held <= VALUES_AT_ONCE for u, g, held in zip(unions, groups, values, strict=True)]
        if True in fits:
            groups[fits.index(True)] = unions[fits.index(True)]
        else:
            groups.append(kept)
    return {kept: next(group for group in groups if set(kept) <= set(group)) for kept in wanted}


_RULE = "covariance of least squares on the tree"


def intervals_by_least_squares(
    asked: Mapping[int, AskedOfArea],
    measurements: TreeMeasurements,
    areas: ReleasedAreas,
    codes: Mapping[str, Mapping[str, int]],
    level: Fraction,
) -> dict[int, Interval]:
    """Intervals from all measurements, by the number of the question."""
    shape, blocks = measurements.schema.shape, len(measurements.spine.blocks)
    entities: dict[tuple[str, int], int] = {}
    for one in asked.values():
        entities.setdefault((one.area.kind, one.place), len(entities))
    members = _members(entities, areas, codes)
    group_of = _grouped([one.form.kept for one in asked.values()], shape, blocks)
    found: dict[int, Interval] = {}
    for group in dict.fromkeys(group_of.values()):
        estimates = _estimates_of_areas(measurements, members, group)
        for number, one in asked.items():
            if group_of[one.form.kept] == group:
                try:
                    found[number] = _estimated(one, estimates, entities[one.area.kind, one.place], level)
                except ConfigError as error:
                    raise ConfigError(f"{one.said}: {error}") from None
    return found


def _members(
    entities: Mapping[tuple[str, int], int], areas: ReleasedAreas, codes: Mapping[str, Mapping[str, int]]
) -> Members:
    """The blocks of the areas that are asked for."""
    blocks, numbers = [], []
    for kind in dict.fromkeys(kind for kind, _ in entities):
        all_codes = areas.gazetteer.codes[kind]
        place = {code: at for at, code in enumerate(all_codes)}
        number = np.full(len(all_codes) + 1, -1, dtype=np.int32)
        for code, at in codes[kind].items():
            if (kind, at) in entities:
                number[place[code]] = entities[kind, at]
        inside = number[areas.of_block[kind]]
        blocks.append(np.flatnonzero(inside >= 0).astype(np.int32))
        numbers.append(inside[inside >= 0])
    return Members(np.concatenate(blocks), np.concatenate(numbers), len(entities))


def _estimated(asked: AskedOfArea, estimates: _AreaEstimates, entity: int, level: Fraction) -> Interval:
    query, form = asked.question.query, asked.form
    z = NormalDist().inv_cdf(float((1 + level) / 2))
    if form.factor is not None:
        return interval_of_multiple(query, form.factor)
    values, covariance = estimates.moments(entity, form.sums)
    found = interval_of(query, values, covariance, z, form.cells, _RULE)
    if form.below is None and form.above.is_count:
        whole = whole_intervals(values, covariance[0], float(level))
        return replace(found, pieces=((float(whole.lower[0]), float(whole.upper[0])),))
    return found


@dataclass(frozen=True, slots=True, eq=False)
class AreaLaw:
    """A count of each of some areas."""

    published: Floats  # shape (areas,): of the release: whole where the count has whole weights
    estimate: Floats  # shape (areas,): by least squares from all measurements
    covariance: Floats  # shape (areas, areas): of the estimates; singular where a sum of areas is known


def law_of_areas(measurements: TreeMeasurements, members: Members, counted: Mapping[Levels, Fraction]) -> AreaLaw:
    """Find the joint law of a count of areas.

    Parameters
    ----------
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
    basis = basis_of(kept, measurements.schema.shape)
    last = len(measurements.levels) - 1
    upward, known = measurements.solve(kept, basis, last)
    row = basis.coordinates(weights[None], (True,) * len(basis.sizes))
    (loading,) = basis.loadings_of(weights[None])
    inside = {last: _inside(members, measurements.spine.tree.units(last)).T.tocsr()}
    covariance = np.zeros((members.number, members.number))
    for part in np.flatnonzero(loading):
        precisions = [estimate.precision[:, part] for estimate in upward]
        covariance += loading[part] * covariance_of_sums(measurements.spine.tree, precisions, inside, members.number)
    if not np.isfinite(covariance).all():
        raise ConfigError("the measurements do not determine this count of every area; no estimate is possible")
    of_blocks = known[last].coordinates @ row.reshape(-1)
    unit, cell, count = measurements.released(last, kept)
    released = np.bincount(unit, weights=weights[cell] * count, minlength=len(of_blocks))
    return AreaLaw(_summed(released, members), _summed(of_blocks, members), covariance)


def _summed(values: NDArray[np.generic], members: Members) -> Floats:
    return np.asarray(np.bincount(members.entity, values[members.block], members.number), dtype=np.float64)
