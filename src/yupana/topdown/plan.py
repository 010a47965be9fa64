"""From a configuration to the plan of a TopDown run, and what changes cost: of attributes, of places, on any spine.

On whatever spine is built for a configuration, any geounits may be bypassed: the share of what is bypassed moves up to
the geounit that stands for it, so on the path of a record geolevels fall into runs, and the highest of each run is
measured with the shares of all of it. Every way to cut the geolevels into runs is taken for the path that a record
leaves, and for that which it enters (docs/exact-accounting.md, theorems 1 and 2).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Any, Final

from yupana.plan.exact_loss import epsilon_exact, exact_of_part
from yupana.plan.measurement import (
    Margins,
    Measurement,
    Mechanism,
    PersonSensitivity,
    Sensitivity,
    of_household_record,
    of_occupancy,
    of_own_record,
)
from yupana.plan.plan import DEFAULT_DELTA, Neighbours, Plan, number
from yupana.privacy.exact import INFINITE, Budget
from yupana.privacy.laws import DiscreteGaussian, TwoSidedGeometric
from yupana.privacy.loss_law import SMALLEST_DELTA, epsilon_at
from yupana.privacy.loss_terms import Difference, Shift, ShiftChoice
from yupana.privacy.zcdp import epsilon_tight
from yupana.topdown.configuration import OF_AREAS, Configuration, Passes
from yupana.topdown.queries import Attribute, Query

DEFAULT_CONFIDENCE: Final = Fraction(9, 10)

SENSITIVITY: Final = Sensitivity(unbounded=Fraction(1), bounded=Fraction(2))
"""Of every query: a record counts in one answer, by one, so that one added or removed changes a single answer and one
changed changes two at most. Squared L2 and L1 distances are the same."""


def measurement_name(level: str, query: Query) -> str:
    """What the measurement of a query at a geolevel is called in the plan."""
    return f"{level} {query.name}"


def make_plan(
    configuration: Configuration, *, confidence: Fraction = DEFAULT_CONFIDENCE, margins: Margins = "exact"
) -> Plan:
    """Plan a run: one measurement per geolevel and query with a share, composed sequentially.

    Geounits of a geolevel hold disjoint records, and the change of a record touches two of them by one each, or one by
    two, which is the same distance. A run satisfies rho-zCDP (epsilon-DP under pure DP) against neighbours that change
    one record and have the same invariants, with rho the sum of the budgets, as along every path of the spine shares
    sum to 1. Geounits that a bypass gave another share have the noise of that share, at the same total.

    Parameters
    ----------
    confidence : Fraction
        Of the margins of error.
    margins : "exact" or "bureau"
        How margins of error are computed.
    """
    return Plan(
        product=configuration.product,
        privacy_unit=configuration.privacy_unit,
        neighbours=Neighbours.BOUNDED,
        accounting="published",
        confidence=confidence,
        mechanism=configuration.mechanism,
        measurements=tuple(
            make_measurement(configuration, level, query, configuration.shares[level], share)
            for level in configuration.levels
            if configuration.shares[level] > 0
            for query, share in configuration.measured(level)
        ),
        fixed_total=bool(configuration.invariants),
        margins=margins,
    )


def make_measurement(
    configuration: Configuration, level: str, query: Query, share: Fraction, part: Fraction
) -> Measurement:
    """Measure a query in the geounits of one share; it is named for the share where that is not the geolevel's own.

    Parameters
    ----------
    share : Fraction
        Of the geounits.
    part : Fraction
        Of the query in the budget of its geolevel.
    """
    name = measurement_name(level, query)
    told = name if configuration.shares[level] == share else f"{name} at share {share}"
    return measurement_with(configuration, level, query, told, configuration.budget * (share * part))


def measurement_with(configuration: Configuration, level: str, query: Query, name: str, budget: Budget) -> Measurement:
    """Measure a query in geounits of a geolevel with a budget."""
    return Measurement(
        name=name,
        table=query.name,
        level=level,
        cells=query.size,
        mechanism=configuration.mechanism,
        calibration=SENSITIVITY.bounded,
        sensitivity=SENSITIVITY,
        proven=SENSITIVITY,
        budget=budget,
        person=_person_sensitivity(configuration),
        by_one=True,
    )


def _person_sensitivity(configuration: Configuration) -> PersonSensitivity | None:
    """What one person can change: the person's own record, or the housing units that the person leaves and enters."""
    attributes = configuration.schema.attributes
    if configuration.privacy_unit == "housing unit":
        # ``h1 = 2`` is the attribute that says whether a unit is occupied or vacant, without labels.
        first = attributes[0]
        if len(attributes) == 1 and (
            set(first.labels) == {"vacant", "occupied"} or first == Attribute("h1", ("0", "1"))
        ):
            return of_occupancy(SENSITIVITY)
        return of_household_record(SENSITIVITY, configuration.mechanism)
    if not configuration.of_persons or any(a.name.lower() in _OF_OTHERS for a in attributes):
        return None
    own = of_own_record(SENSITIVITY)
    return replace(own, unbounded=None) if configuration.invariants else own


_OF_OTHERS: Final = frozenset({"relgq", "relship", "relationship"})
"""Attributes of a person's record that change when another person of the household does, such as its householder."""


def with_budgets(configuration: Configuration, budgets: Mapping[str, Fraction]) -> Configuration:
    """The configuration with these budgets, all finite and named as by `entries`.

    Their sum is the new budget, and shares of geolevels and queries are their parts. What has nothing leaves its
    estimation pass; what had nothing joins the last.
    """
    total = sum(budgets.values(), Fraction(0))
    shares, queries, passes = {}, {}, {}
    for level, old in configuration.queries.items():
        of_query = {query: budgets[measurement_name(level, query)] for query, _ in old}
        of_level = sum(of_query.values(), Fraction(0))
        shares[level] = of_level / total
        queries[level] = tuple((query, of_query[query] / of_level) for query, _ in old) if of_level else old
        measured = [query for query, share in queries[level] if share > 0]
        passes[level] = replace(configuration.passes[level], estimate=_estimate(configuration.passes[level], measured))
    spine = replace(configuration.spine, shares=tuple(shares[level] for level in configuration.levels))
    return replace(configuration, budget=total, queries=queries, passes=passes, spine=spine)


def _estimate(passes: Passes, measured: list[Query]) -> tuple[tuple[Query, ...], ...]:
    kept = [tuple(query for query in queries if query in measured) for queries in passes.estimate]
    new = tuple(query for query in measured if not any(query in queries for queries in kept))
    kept = [queries for queries in kept if queries]
    if not new:
        return tuple(kept)
    return (*kept[:-1], (*kept[-1], *new)) if kept else (new,)


def lost(measurements: Iterable[Measurement]) -> Budget:
    """The loss of several measurements, as in `Plan.loss`."""
    return sum((m.budget for m in measurements), Fraction(0))


def loss_as_json(loss: Budget, mechanism: Mechanism, delta: float = DEFAULT_DELTA) -> dict[str, Any]:
    """A loss in rho with its tight epsilon at ``delta``; of pure differential privacy the epsilon alone."""
    if mechanism is Mechanism.PURE:
        return {**number("rho", None), **number("epsilon", loss)}
    epsilon = epsilon_tight(loss, delta)
    return {**number("rho", loss), "epsilon": None if epsilon == INFINITE else epsilon}


def semantics_of(configuration: Configuration) -> Mapping[str, Mapping[str, tuple[Measurement, ...]]]:
    """Find what single attributes and places cost: what tells neighbours apart that are nearer than any other change.

    By attribute the queries that tell some of its levels apart, where only this attribute of one record is changed. By
    geolevel those of the geolevels below, where a record is moved to another block of the same geounit of it. As in the
    certificates of 2020, geounits are taken to have the share their geolevel starts with. Whatever a spine bypasses, no
    loss here passes that of the whole plan.
    """
    plan = make_plan(configuration)
    measured = [
        (plan[measurement_name(level, query)], depth, query)
        for depth, level in enumerate(configuration.levels)
        if configuration.shares[level] > 0
        for query, _ in configuration.measured(level)
    ]
    above_the_blocks = tuple(enumerate(configuration.levels))[:-1]
    return {
        "attributes": {
            name: tuple(m for m, _, query in measured if query.shape[axis] > 1)
            for axis, name in enumerate(configuration.schema.names)
        },
        "geolevels": {
            level: tuple(m for m, of, _ in measured if of > depth) for depth, level in reversed(above_the_blocks)
        },
    }


_NEVER_BYPASSED: Final = frozenset({"conventional", "aian", OF_AREAS})
"""Kinds of spine on which every geounit keeps the share of its geolevel."""

_WIDTH: Final = 5e-3
"""The bound from above is as good as at a smaller width, and much quicker."""

_Run = tuple[int, ...]
"""Geolevels by position, from the highest, which is measured, to the lowest, whose geounit is bypassed into it."""

_Asked = Callable[[_Run, Query], bool]
"""Whether a query of the highest geounit of a run can move."""


@dataclass(frozen=True, slots=True)
class LossOnAnySpine:
    """What neighbours lose at most, whichever geounits are bypassed."""

    # for every way in which geolevels can fall into runs, the measurements of which answers move
    paths: tuple[tuple[Measurement, ...], ...]
    # of how many paths neighbours move answers: two of each measurement of one path, or one of each of two
    records: int

    @property
    def loss(self) -> Budget:
        """rho, or epsilon under pure differential privacy."""
        return max(map(lost, self.paths))

    def epsilon(self, delta: float) -> float | None:
        """The least epsilon proven at ``delta`` by the exact law; rounded up.

        Returns
        -------
        float or None
            None without noise, below what doubles certify, or where the law gives no bound within its width.
        """
        if self.loss == INFINITE or delta < SMALLEST_DELTA:
            return None
        options = tuple(dict.fromkeys(tuple(_shift(m, 2 // self.records) for m in path) for path in self.paths))
        if not any(options):
            return 0.0
        found = epsilon_at(Difference(choices=(ShiftChoice(self.records, options),)), delta, _WIDTH)
        return None if found is None else found.upper


def epsilon_on_any_spine(configuration: Configuration, delta: float = DEFAULT_DELTA) -> float | None:
    """The least epsilon proven at ``delta`` whichever geounits a spine bypasses, by the exact law; rounded up.

    Returns
    -------
    float or None
        None as of `epsilon_exact`.
    """
    if configuration.spine_kind in _NEVER_BYPASSED:
        return epsilon_exact(make_plan(configuration), delta)
    return LossOnAnySpine(_paths(configuration, lambda _run, _query: True), 2).epsilon(delta)


def attribute_on_any_spine(configuration: Configuration, axis: int) -> LossOnAnySpine:
    """What is lost where one attribute of a record changes, whichever geounits a spine bypasses.

    Two answers of each query that tells its values apart move by one, in the geounits of one path.
    """
    return LossOnAnySpine(_paths(configuration, lambda _run, query: query.shape[axis] > 1), 1)


def move_on_any_spine(configuration: Configuration, within: int) -> LossOnAnySpine:
    """What is lost where a record moves within a geounit of the geolevel at this position, whichever are bypassed.

    The geounit is that of the spine before any was bypassed. One answer of each query moves by one in the geounits that
    are on one of the two paths only. A geounit with one child is bypassed as it is, so these lie below. Under pure
    differential privacy one with several children can be bypassed. It is then divided among them, so that the two
    paths may part as high as its run begins.
    """
    part = -1 if configuration.mechanism is Mechanism.PURE else 0
    return LossOnAnySpine(_paths(configuration, lambda run, _query: run[part] > within), 2)


def _paths(configuration: Configuration, asked: _Asked) -> tuple[tuple[Measurement, ...], ...]:
    """The measurements of every path that answer what is asked."""
    shares = list(configuration.shares.values())
    found = []
    for runs in _cuts(configuration):
        path: list[Measurement] = []
        for run in runs:
            level, share = configuration.levels[run[0]], sum((shares[i] for i in run), Fraction(0))
            queries = configuration.measured(level) if share > 0 else ()
            path += [make_measurement(configuration, level, q, share, part) for q, part in queries if asked(run, q)]
        found.append(tuple(path))
    return tuple(found)


def _cuts(configuration: Configuration) -> Iterator[tuple[_Run, ...]]:
    """Every way to cut the geolevels, by position, into runs that a bypass can join."""
    levels = configuration.levels
    kept = levels if configuration.spine_kind in _NEVER_BYPASSED else configuration.spine.unbypassed
    joined = [(False,) if level in kept else (False, True) for level in levels[:-1]]
    for choice in product(*joined):
        runs: list[_Run] = [(0,)]
        for position, join in enumerate(choice, start=1):
            runs = [*runs[:-1], (*runs[-1], position)] if join else [*runs, (position,)]
        yield tuple(runs)


def _shift(m: Measurement, times: int) -> Shift:
    law = m.law
    assert isinstance(law, DiscreteGaussian | TwoSidedGeometric)  # noqa: S101 (the budget is finite)
    return Shift(law, 1, times)


def semantics_as_json(configuration: Configuration, delta: float = DEFAULT_DELTA) -> dict[str, Any]:
    """Describe `semantics_of` with the exact epsilon of each loss beside its conversion.

    Either change moves two answers of each measurement that can tell by one: two answers of one geounit where an
    attribute changes, one answer of each of two geounits where a record moves. As there, geounits are taken to have the
    share that their geolevel starts with. Under ``any_spine`` is what is lost whichever geounits are bypassed.
    """
    plan, semantics, mechanism = make_plan(configuration), semantics_of(configuration), configuration.mechanism

    def told(chosen: tuple[Measurement, ...], anywhere: LossOnAnySpine) -> dict[str, Any]:
        on_any = loss_as_json(anywhere.loss, mechanism, delta)
        pure = mechanism is Mechanism.PURE
        on_any["epsilon_exact"] = on_any["epsilon_float"] if pure else anywhere.epsilon(delta)
        exact = exact_of_part(plan, chosen, delta)
        return loss_as_json(lost(chosen), mechanism, delta) | {"epsilon_exact": exact, "any_spine": on_any}

    return {
        "attributes": {
            name: told(chosen, attribute_on_any_spine(configuration, axis))
            for axis, (name, chosen) in enumerate(semantics["attributes"].items())
        },
        "geolevels": {
            f"Block in {level}": told(chosen, move_on_any_spine(configuration, configuration.levels.index(level)))
            for level, chosen in semantics["geolevels"].items()
        },
    }
