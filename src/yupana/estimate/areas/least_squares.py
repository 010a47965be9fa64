"""Counts of many areas at once by least squares: intervals of queries, and how areas err together. Public.

The covariance of areas such as districts follows the recursion of docs/intervals.md for sums of weight 1, whose slopes
are alike for all coordinates of a part S: so a part is one number for each unit and area that meet, whatever the
schema. Slopes are sparse, as an area meets few units.
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

from yupana.arrays import Flags, Floats, Indices, Ints
from yupana.errors import ConfigError
from yupana.estimate.areas.queries import AskedOfArea, Kept, WeightedCells
from yupana.estimate.areas.released import ReleasedAreas
from yupana.estimate.intervals.intervals import Interval, interval_of, interval_of_multiple
from yupana.estimate.intervals.selections import Levels, weights_on
from yupana.estimate.intervals.tree import TreeMeasurements
from yupana.geography.tree import Members, Tree
from yupana.topdown.tree.basis import Basis
from yupana.topdown.tree.least_squares import precisions_of_sums, whole_intervals

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
    blocks = measurements.spine.tree.units(last)
    ones = np.ones(len(members.block))
    inside = sparse.csr_array((ones, (members.entity, members.block)), shape=(members.number, blocks))
    precisions = [estimate.precision for estimate in upward]
    precision = precisions_of_sums(measurements.spine.tree, precisions, precisions[0], members)
    return _AreaEstimates(kept, shape, np.asarray(inside @ known[last].coordinates), precision)


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


_EXACT: Final = 1e-12
"""A variance below this share of what its blocks would have by themselves is a rounding error of 0."""

_ALIKE: Final = 1e-9
"""Slopes that differ by less differ by rounding."""


def covariance_of_areas(tree: Tree, upward: Sequence[Floats], members: Members, parts: Sequence[int]) -> list[Floats]:
    """Covariance of the estimates of areas in each part S, given all measurements of the tree.

    Parameters
    ----------
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
    seen = np.flatnonzero(loading)
    of_parts = covariance_of_areas(measurements.spine.tree, [e.precision for e in upward], members, seen.tolist())
    none = np.zeros((members.number, members.number))
    covariance = sum((loading[part] * found for part, found in zip(seen, of_parts, strict=True)), none)
    if not np.isfinite(covariance).all():
        raise ConfigError("the measurements do not determine this count of every area; no estimate is possible")
    of_blocks = known[last].coordinates @ row.reshape(-1)
    unit, cell, count = measurements.released(last, kept)
    released = np.bincount(unit, weights=weights[cell] * count, minlength=len(of_blocks))
    return AreaLaw(_summed(released, members), _summed(of_blocks, members), covariance)


def _summed(values: NDArray[np.generic], members: Members) -> Floats:
    return np.asarray(np.bincount(members.entity, values[members.block], members.number), dtype=np.float64)
