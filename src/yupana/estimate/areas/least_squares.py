"""Intervals of queries of many areas at once by least squares, and how the sums of each err together. Public."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import prod
from statistics import NormalDist
from typing import Final

import numpy as np
from scipy import sparse

from yupana.arrays import Floats, Ints
from yupana.errors import ConfigError
from yupana.estimate.areas.queries import AskedOfArea, Kept, WeightedCells
from yupana.estimate.areas.released_areas import ReleasedAreas
from yupana.estimate.intervals.intervals import Interval, Moments, fieller
from yupana.estimate.intervals.tree import TreeMeasurements, open_tree
from yupana.geography.tree import Members
from yupana.topdown.tree.basis import Basis
from yupana.topdown.tree.least_squares import precisions_of_sums, whole_intervals

VALUES_AT_ONCE: Final = 1 << 24
"""Numbers of all blocks up to which the attributes of several queries are kept at once."""

_ROUNDING: Final = 1e-12
"""A part with less of a sum than this share has none of it."""


@dataclass(frozen=True, slots=True, eq=False)
class AreaEstimates:
    """Estimates of some areas from all measurements, on the attributes that some queries name.

    Attributes
    ----------
    kept : tuple of int
        The attributes.
    shape : tuple of int
        Levels of all attributes of the schema.
    coordinates : ndarray of float64, shape (areas, cells of the attributes kept)
    precision : ndarray of float64, shape (areas, 2^attributes)
        As of `precisions_of_sums`.
    """

    kept: Kept
    shape: tuple[int, ...]
    coordinates: Floats
    precision: Floats
    _rows: dict[tuple[Kept, bytes], Floats] = field(default_factory=dict, init=False)

    def moments(self, area: int, sums: Sequence[WeightedCells]) -> tuple[Floats, Floats]:
        """Estimates of weighted sums of the cells of an area, and their covariance.

        Parameters
        ----------
        area : int
            By its place.
        sums : sequence of WeightedCells

        Returns
        -------
        tuple of ndarray of float64, shapes (sums,) and (sums, sums)

        Raises
        ------
        ConfigError
            If the measurements do not determine one.
        """
        rows = np.stack([self._row(one) for one in sums])
        values = rows @ self.coordinates[area] + [one.constant for one in sums]
        part, precision = self._parts(), self.precision[area]
        loading = np.array([np.bincount(part, row**2, len(precision)) for row in rows])
        if ((precision == 0) & (loading > _ROUNDING * loading.sum(axis=1, keepdims=True))).any():
            raise ConfigError("the measurements do not determine it; no estimate is possible")
        with np.errstate(divide="ignore"):
            variance = np.where(precision == 0, 0.0, 1.0 / precision)
        return values, (rows * variance[part]) @ rows.T

    def _row(self, one: WeightedCells) -> Floats:
        if one.key not in self._rows:
            basis = self._basis
            weights = one.on(self.kept, self.shape)[None]
            self._rows[one.key] = basis.coordinates(weights, (True,) * len(basis.sizes)).reshape(-1)
        return self._rows[one.key]

    @property
    def _basis(self) -> Basis:
        return basis_of(self.kept, self.shape)

    def _parts(self) -> Ints:
        """The number of the part that each coordinate lies in, of shape (cells,)."""
        basis = self._basis
        part = np.zeros((1, *basis.sizes), dtype=np.int64)
        for number, block in basis.blocks():
            part[block] = number
        return part.reshape(-1)


def basis_of(kept: Kept, shape: tuple[int, ...]) -> Basis:
    """The basis of the attributes kept."""
    return Basis(tuple(shape[i] for i in kept) or (1,))


def estimates_of_areas(measurements: TreeMeasurements, members: Members, kept: Kept) -> AreaEstimates:
    """Estimate the histograms of areas in one pass through the tree.

    Parameters
    ----------
    measurements : TreeMeasurements
    members : Members
        The blocks of each area; one block may be in many.
    kept : tuple of int
        Attributes; over the others is summed.
    """
    shape = measurements.schema.shape
    basis = basis_of(kept, shape)
    last = len(measurements.levels) - 1
    upward, known = measurements.solve(kept, basis, last)
    blocks = measurements.spine.tree.units(last)
    ones = np.ones(len(members.block))
    inside = sparse.csr_array((ones, (members.entity, members.block)), shape=(members.number, blocks))
    precisions = [estimate.precision for estimate in upward]
    precision = precisions_of_sums(measurements.spine.tree, precisions, precisions[0], members)
    return AreaEstimates(kept, shape, np.asarray(inside @ known[last].coordinates), precision)


def grouped(wanted: Iterable[Kept], shape: tuple[int, ...], blocks: int) -> dict[Kept, Kept]:
    """Which attributes to keep for the sums that need some, so that the measurements are read as seldom as possible.

    Parameters
    ----------
    wanted : iterable of tuple of int
        The attributes that each sum needs.
    shape : tuple of int
    blocks : int
        Of the spine: what is held at once is bounded by `VALUES_AT_ONCE`, unless one sum alone needs more.

    Returns
    -------
    dict
        Of each of ``wanted`` a set that has it.
    """
    groups: list[Kept] = []
    for kept in sorted(set(wanted), key=lambda one: -prod(shape[i] for i in one)):
        unions = [tuple(sorted({*group, *kept})) for group in groups]
        fits = [union == group or _fits(union, shape, blocks) for union, group in zip(unions, groups, strict=True)]
        if True in fits:
            groups[fits.index(True)] = unions[fits.index(True)]
        else:
            groups.append(kept)
    return {kept: next(group for group in groups if set(kept) <= set(group)) for kept in wanted}


def _fits(kept: Kept, shape: tuple[int, ...], blocks: int) -> bool:
    return blocks * prod(shape[i] for i in kept) <= VALUES_AT_ONCE


__all__ = ["intervals_by_least_squares", "open_tree"]

_RULE = "covariance of least squares on the tree"


def intervals_by_least_squares(
    asked: Mapping[int, AskedOfArea],
    measurements: TreeMeasurements,
    areas: ReleasedAreas,
    codes: Mapping[str, Mapping[str, int]],
    level: Fraction,
) -> dict[int, Interval]:
    """Intervals from all measurements, by the number of the question."""
    shape, blocks = measurements.schema.shape, len(measurements.spine.block)
    entities: dict[tuple[str, int], int] = {}
    for one in asked.values():
        entities.setdefault((one.area.kind, one.place), len(entities))
    members = _members(entities, areas, codes)
    group_of = grouped([one.form.kept for one in asked.values()], shape, blocks)
    found: dict[int, Interval] = {}
    for group in dict.fromkeys(group_of.values()):
        estimates = estimates_of_areas(measurements, members, group)
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


def _estimated(asked: AskedOfArea, estimates: AreaEstimates, entity: int, level: Fraction) -> Interval:
    query, form = asked.question.query, asked.form
    z = NormalDist().inv_cdf(float((1 + level) / 2))
    if form.factor is not None:
        return Interval(query, form.factor, 0.0, ((form.factor,) * 2,), 0, "numerator and denominator are multiples")
    values, covariance = estimates.moments(entity, form.sums)
    if form.below is not None:
        moments = Moments(*map(float, (*values, covariance[0, 0], covariance[1, 1], covariance[0, 1])))
        if moments.below == 0 and moments.below_variance == 0:
            raise ConfigError("the denominator is known to be 0")
        ratio = moments.above / moments.below if moments.below else None
        return Interval(query, ratio, None, fieller(moments, z), form.cells, f"Fieller's confidence set; {_RULE}")
    value, variance = float(values[0]), float(covariance[0, 0])
    if form.above.is_count:
        whole = whole_intervals(values, covariance[0], float(level))
        pieces = ((float(whole.lower[0]), float(whole.upper[0])),)
    else:
        reach = z * variance**0.5
        pieces = ((value - reach, value + reach),)
    return Interval(query, value, variance, pieces, form.cells, _RULE)
