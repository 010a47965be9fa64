"""The exact law of the loss of a plan: epsilon at a delta and delta at an epsilon, for all that neighbours can do.

docs/exact-accounting.md says how far neighbours move which answers, and proves it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import combinations_with_replacement, product
from typing import Any, Final, Literal

from yupana.plan.measurement import Measurement, Mechanism, Sensitivity
from yupana.plan.plan import DEFAULT_DELTA, Neighbours, Place, Plan, place_in
from yupana.privacy.laws import DiscreteGaussian, Law, TwoSidedGeometric
from yupana.privacy.loss_law import SMALLEST_DELTA, WIDTH, LossBounds, delta_at, deltas_at, epsilon_at
from yupana.privacy.loss_terms import Difference, Shift, ShiftChoice
from yupana.privacy.zcdp import epsilon_tight, least_missed

Change = Literal["unbounded", "bounded", "same_household"]

EXACT: Final = ("epsilon_exact", "bounded_epsilon_exact", "exact_at_delta")
"""The keys of `exact_totals`."""

CURVE_POINTS: Final = 40
"""Epsilons from which a trade-off curve is made, beside 0."""

_SMALLEST_ERROR: Final = 1e-6
"""The delta at the largest of these epsilons."""

_WIDTH_OF_CURVE: Final = 0.01
"""Where many bounds are asked for and only the upper ones matter."""

_WIDTH_OF_MANY: Final = 5e-3
"""Where records can lie in so many ways that closer bounds would take too long."""

_MOST_DIFFERENCES: Final = 400
"""More ways in which the records of neighbours can lie are not gone through."""


@dataclass(frozen=True, slots=True)
class Untold(Exception):  # noqa: N818 (it never leaves this file)
    """Why there is no exact law."""

    reason: str


def own_change(plan: Plan) -> Change:
    """The neighbours that a plan's own loss compares."""
    return "unbounded" if plan.neighbours is Neighbours.UNBOUNDED else "bounded"


def epsilon_exact(
    plan: "Plan | Sequence[Plan]", delta: float = DEFAULT_DELTA, change: Change | None = None
) -> float | None:
    """The least epsilon proven at ``delta``, from the exact law of the loss; rounded up.

    Parameters
    ----------
    plan : Plan or sequence of Plan
        Several plans are composed: they must protect the same records.
    delta : float
        Strictly between 0 and 1; or 0 under pure differential privacy.
    change : "unbounded", "bounded" or "same_household", optional
        The neighbours, as of `Sensitivity`; those of the (first) plan if not given.

    Returns
    -------
    float or None
        None where there are no such neighbours, noise is missing, delta is below 1e-290, which double precision cannot
        certify, or the law gives no bound within its width: then the conversion of the loss is what is proven.

    Raises
    ------
    ValueError
        If delta is not in that range, there is no plan, or the plans protect different records.

    Source
    ------
    docs/exact-accounting.md.
    """
    plans, change = _together(plan, change)
    losses = [_proven_loss(one, change) for one in plans]
    known = [loss for loss in losses if loss is not None]
    loss = sum(known, Fraction(0)) if len(known) == len(losses) else None
    mechanisms = {one.mechanism for one in plans}
    if delta == 0 and mechanisms == {Mechanism.PURE}:
        return None if loss is None else float(loss)
    if not 0 < delta < 1:
        raise ValueError("delta must lie strictly between 0 and 1")
    found = _epsilon(plans, delta, change) if delta >= SMALLEST_DELTA else None
    if found is None:
        return None
    if mechanisms == {Mechanism.ZCDP} and loss is not None:
        return min(found.upper, epsilon_tight(loss, delta))
    return found.upper


def delta_exact(plan: "Plan | Sequence[Plan]", epsilon: float, change: Change | None = None) -> float | None:
    """The least delta proven at ``epsilon``, from the exact law of the loss; rounded up.

    Parameters
    ----------
    plan : Plan or sequence of Plan
        Several plans are composed: they must protect the same records.
    epsilon : float
        Zero or more, finite.
    change : "unbounded", "bounded" or "same_household", optional
        The neighbours, as of `Sensitivity`; those of the (first) plan if not given.

    Returns
    -------
    float or None
        None as of `epsilon_exact`, and where delta is below what a double holds.

    Raises
    ------
    ValueError
        If epsilon is not in that range, there is no plan, or the plans protect different records.
    """
    return _delta(*_together(plan, change), epsilon)


def missed_exact(
    plan: "Plan | Sequence[Plan]", type_1: Sequence[float], change: Change | None = None
) -> tuple[float, ...] | None:
    """The trade-off curve: the least errors of type II proven for tests with these errors of type I.

    A test decides from the noisy answers which of two neighbours they are of. Each (epsilon, delta) implies that the
    errors a and b satisfy b >= 1 - delta - e^epsilon a and b >= e^-epsilon (1 - delta - a); the best of `CURVE_POINTS`
    is taken.

    Parameters
    ----------
    plan, change
        As of `epsilon_exact`.
    type_1 : sequence of float
        Each from 0 to 1.

    Returns
    -------
    tuple of float, or None
        None as of `delta_exact`.
    """
    plans, change = _together(plan, change)
    highest = epsilon_exact(plans, _SMALLEST_ERROR, change)
    if highest is None:
        return None
    points = _curve(plans, change, highest)
    return None if points is None else tuple(least_missed(points, a) for a in type_1)


def exact_totals(plan: Plan, delta: float = DEFAULT_DELTA) -> dict[str, Any]:
    """Describe the exact epsilons of a plan for its totals; under pure differential privacy at delta 0."""
    at = 0.0 if plan.mechanism is Mechanism.PURE else delta
    told: dict[str, Any] = {"epsilon_exact": epsilon_exact(plan, at)}
    told["bounded_epsilon_exact"] = epsilon_exact(plan, at, "bounded")
    if plan.mechanism is Mechanism.PURE:
        told["exact_at_delta"] = {
            "delta": delta,
            "epsilon_exact": epsilon_exact(plan, delta),
            "bounded_epsilon_exact": epsilon_exact(plan, delta, "bounded"),
        }
    return told


def plan_as_json(plan: Plan, delta: float = DEFAULT_DELTA) -> dict[str, Any]:
    """Describe a plan as `Plan.as_json`, with the exact epsilons in its totals."""
    told = plan.as_json(delta)
    return told | {"totals": told["totals"] | exact_totals(plan, delta)}


def exact_of_part(plan: Plan, part: tuple[Measurement, ...], delta: float = DEFAULT_DELTA) -> float | None:
    """The exact epsilon of some measurements of a plan alone, under its own neighbours and without its paths."""
    if not part:
        return 0.0
    return epsilon_exact(replace(plan, measurements=part, paths=()), 0.0 if plan.mechanism is Mechanism.PURE else delta)


def exact_where(plan: Plan, moved: Mapping[str, Fraction], delta: float = DEFAULT_DELTA) -> float | None:
    """The exact epsilon at ``delta`` of neighbours that move some measurements so far, and no others; rounded up.

    They are of one path of the plan. Of `Measurement.by_one` a distance counts answers that move by one.

    Parameters
    ----------
    moved : mapping of measurement to Fraction
        Squared L2 distances (L1 under pure differential privacy).

    Returns
    -------
    float or None
        None as of `epsilon_exact`, and where a plan has several passes, whose records such neighbours may exchange.
    """
    if len(plan.passes) > 1:
        return None
    kept = [number for number, m in enumerate(plan.measurements) if moved.get(m.name)]
    paths = dict.fromkeys(tuple(kept.index(i) for i in path if i in kept) for path in plan.paths)
    measurements = tuple(
        replace(m, proven=Sensitivity(moved[m.name], 2 * moved[m.name]))
        for m in map(plan.measurements.__getitem__, kept)
    )
    # Neighbours as of one record more: their distances are those that are given.
    part = replace(plan, measurements=measurements, paths=tuple(filter(None, paths)), fixed_total=False)
    return epsilon_exact(part, delta, "unbounded") if kept else 0.0


def differences(plan: Plan, change: Change) -> tuple[Difference, ...]:
    """What the answers of neighbours may differ in: no neighbours are easier to tell apart than by one of these.

    Raises
    ------
    Untold
        If that is not known.
    """
    if not plan.is_finite:
        raise Untold("a budget is infinite")
    if change == "unbounded" and plan.fixed_total:
        raise Untold("invariants leave no neighbours that differ by a record more")
    ways = _ways(plan)
    if change != "bounded":
        # A person who stays in the household stays on its path.
        return tuple(_of_way(way, change) for way in ways)
    if len(ways) * (len(ways) + 1) // 2 > _MOST_DIFFERENCES:
        raise Untold("records can lie in too many ways")
    # A record that changes leaves one way and enters another, or the same.
    one = {way: _of_way(way, "unbounded") for way in ways}
    return tuple(
        _of_way(way, "bounded") if way is other else one[way] + one[other]
        for way, other in combinations_with_replacement(ways, 2)
    )


def _as_choices(plan: Plan, change: Change) -> Difference | None:
    """All `differences` of a plan as one, in which each record chooses its way; None where ways hold more than shifts.

    Its delta at any epsilon is the largest of theirs.
    """
    if not plan.is_finite or change == "same_household" or (change == "unbounded" and plan.fixed_total):
        return None
    ways = [_of_way(way, "unbounded") for way in _ways(plan)]
    if len(ways) < 2 or any(way != Difference(way.shifts) for way in ways):
        return None
    options = tuple(dict.fromkeys(way.shifts for way in ways))
    return Difference(choices=(ShiftChoice(1 if change == "unbounded" else 2, options),))


Placed = tuple[tuple[Measurement, Place], ...]
"""Measurements that count one record together, each with the groups and branches it stands in."""


def _ways(plan: Plan) -> tuple[Placed, ...]:
    """The paths of a plan, or its passes over disjoint populations, or all of it."""
    if plan.paths:
        return tuple(_placed(tuple(plan.measurements[i] for i in path)) for path in plan.paths)
    if passes := plan.passes:
        if sum(map(len, passes.values())) != len(plan.measurements):
            raise Untold("some measurements are of a pass, and others are not")
        return tuple(tuple((m, place[1:]) for m, place in _placed(of)) for of in passes.values())
    return (_placed(plan.measurements),)


def _placed(measurements: tuple[Measurement, ...]) -> Placed:
    return tuple((m, place_in(m, number)) for number, m in enumerate(measurements))


def _of_way(way: Placed, change: Change) -> Difference:
    """What one record (unbounded), or two (bounded), can move in the measurements of a way."""
    total = Difference()
    groups: dict[str, dict[str, list[Measurement]]] = {}
    for m, place in way:
        if not place:
            total += _of_measurement(m, _moved(m, change))
            continue
        (group, branch), *deeper = place
        if deeper:
            raise Untold("groups of parallel composition stand within each other")
        groups.setdefault(group, {}).setdefault(branch, []).append(m)
    for branches in groups.values():
        total += _of_group(tuple(map(tuple, branches.values())), change)
    return total


def _moved(m: Measurement, change: Change) -> Fraction:
    distance = getattr(m.proven, change)
    if distance is None:
        raise Untold(f"of {m.name} no such neighbours are known")
    return Fraction(distance)


def _of_measurement(m: Measurement, distance: Fraction) -> Difference:
    law = m.law
    if not distance:
        return Difference()
    if isinstance(law, TwoSidedGeometric):
        if m.by_one:
            return Difference((Shift(law, 1, _whole(m, distance)),))
        # Whatever moves, it is differentially private at this loss, and nothing is worse than randomised response.
        return Difference((Shift(TwoSidedGeometric(law.scale / distance)),))
    if m.by_one:
        return Difference((Shift(_gaussian(law), 1, _whole(m, distance)),))
    try:
        return Difference.of_distance(_gaussian(law), distance)
    except ValueError:
        raise Untold(f"the noise of {m.name} is small, and which neighbours are worst is not known") from None


def _of_group(branches: tuple[tuple[Measurement, ...], ...], change: Change) -> Difference:
    """Of a group of parallel composition: each part of a record that counts is in one of the branches."""
    members = [m for branch in branches for m in branch]
    distances = {_moved(m, change) for m in members}
    if len(distances) > 1:
        raise Untold("the branches of a group move by distances of their own")
    (distance,) = distances
    if all(m.by_one for m in members):
        options = tuple(
            tuple(Shift(m.law if isinstance(m.law, TwoSidedGeometric) else _gaussian(m.law)) for m in branch)
            for branch in branches
        )
        return Difference(choices=(ShiftChoice(_whole(members[0], distance), options),))
    if any(isinstance(m.law, TwoSidedGeometric) for m in members):
        loss = max(sum((Fraction(m.loss(distance)) for m in branch), Fraction(0)) for branch in branches)
        return Difference((Shift(TwoSidedGeometric(1 / loss)),))
    sums = [sum((_of_measurement(m, distance) for m in branch), Difference()) for branch in branches]
    return Difference(squared=max(of.squared for of in sums), slack=max(of.slack for of in sums))


def _gaussian(law: Law) -> DiscreteGaussian:
    if not isinstance(law, DiscreteGaussian):
        raise Untold("noise is missing")
    return law


def _whole(m: Measurement, distance: Fraction) -> int:
    if distance.denominator != 1:
        raise Untold(f"{m.name} moves by no whole number of counts")
    return int(distance)


def _together(plan: "Plan | Sequence[Plan]", change: Change | None) -> tuple[tuple[Plan, ...], Change]:
    plans = (plan,) if isinstance(plan, Plan) else tuple(plan)
    if not plans:
        raise ValueError("there is no plan")
    if len({(one.privacy_unit, one.neighbours) for one in plans}) > 1:
        raise ValueError("the plans protect different records, or against other neighbours, and do not compose")
    return plans, change or own_change(plans[0])


def _differences_of_all(plans: tuple[Plan, ...], change: Change, *, joined: bool) -> tuple[Difference, ...]:
    """The differences of plans together; ways are ``joined`` into one difference each where they can be."""
    of_each = [
        differences(plan, change) if not joined or (choices := _as_choices(plan, change)) is None else (choices,)
        for plan in plans
    ]
    if math.prod(map(len, of_each)) > _MOST_DIFFERENCES:
        raise Untold("records can lie in too many ways")
    return tuple(sum(chosen, Difference()) for chosen in product(*of_each))


@lru_cache(maxsize=256)
def _epsilon(plans: tuple[Plan, ...], delta: float, change: Change) -> LossBounds | None:
    try:
        joined = _differences_of_all(plans, change, joined=True)
        for width in (WIDTH, _WIDTH_OF_MANY) if len(joined) == 1 else ():
            if (bounds := epsilon_at(joined[0], delta, width)) is not None:
                return bounds
        found = _differences_of_all(plans, change, joined=False)
    except Untold:
        return None
    if len(found) == 1:
        return epsilon_at(found[0], delta)
    # Wide bounds are quick, and tell which differences cannot be the worst.
    wide = [(epsilon_at(difference, delta, _WIDTH_OF_CURVE), difference) for difference in found]
    at_most = [(math.inf if bounds is None else bounds.upper, difference) for bounds, difference in wide]
    worst = LossBounds(0.0, 0.0)
    for upper, difference in sorted(at_most, key=lambda one: -one[0]):
        if upper <= worst.upper:
            break
        bounds = epsilon_at(difference, delta)
        if bounds is None:
            return None
        worst = LossBounds(max(worst.lower, bounds.lower), max(worst.upper, min(upper, bounds.upper)))
    return worst


# A certificate, a report and an atlas ask the same of one plan, and each answer takes seconds.
@lru_cache(maxsize=256)
def _delta(plans: tuple[Plan, ...], change: Change, epsilon: float) -> float | None:
    try:
        found = [delta_at(joined, epsilon) for joined in _differences_of_all(plans, change, joined=True)]
    except Untold:
        return None
    known = [bounds.upper for bounds in found if bounds is not None]
    return max(known) if len(known) == len(found) else None


@lru_cache(maxsize=256)
def _curve(plans: tuple[Plan, ...], change: Change, highest: float) -> tuple[tuple[float, float], ...] | None:
    """Epsilons from 0 up to the highest, each with its delta."""
    epsilons = [highest * part / CURVE_POINTS for part in range(CURVE_POINTS + 1)]
    # a bound is a bound at any width, and this is much quicker.
    deltas = [
        deltas_at(difference, epsilons, _WIDTH_OF_CURVE)
        for difference in _differences_of_all(plans, change, joined=True)
    ]
    known = [of for of in deltas if of is not None]
    if len(known) < len(deltas):
        return None
    return tuple(zip(epsilons, map(max, zip(*known, strict=True)), strict=True))


def _proven_loss(plan: Plan, change: Change) -> Fraction | None:
    """The loss by the smallest distances that are proven; None where there are no such neighbours or no noise."""
    if change == "unbounded" and plan.fixed_total:
        return None
    loss = plan.loss_against(lambda m: m.proven, change)
    return loss if isinstance(loss, Fraction) else None
