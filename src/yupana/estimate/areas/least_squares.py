"""Intervals of queries of areas by least squares, for all of them at once. Public."""

from collections.abc import Mapping
from fractions import Fraction
from statistics import NormalDist

import numpy as np

from yupana.errors import ConfigError
from yupana.estimate.areas.estimates import AreaEstimates, estimates_of_areas, grouped
from yupana.estimate.areas.places import ReleasedAreas
from yupana.estimate.areas.queries import AskedOfArea
from yupana.estimate.intervals.fieller import Moments, fieller
from yupana.estimate.intervals.intervals import Interval
from yupana.estimate.intervals.tree import TreeMeasurements, open_tree
from yupana.geography.tree import Members
from yupana.topdown.tree.least_squares import whole_intervals

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
