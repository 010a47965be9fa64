"""From a configuration to the plan of a TopDown run, and what single attributes and moves within a geounit cost."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

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
from yupana.privacy.zcdp import epsilon_tight
from yupana.topdown.configuration import Configuration, Passes
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
    configuration : Configuration
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
    configuration : Configuration
    level : str
    query : Query
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
        if len(attributes) == 1 and _is_occupancy(attributes[0]):
            return of_occupancy(SENSITIVITY)
        return of_household_record(SENSITIVITY, configuration.mechanism)
    if not configuration.of_persons or any(a.name.lower() in _OF_OTHERS for a in attributes):
        return None
    own = of_own_record(SENSITIVITY)
    return replace(own, unbounded=None) if configuration.invariants else own


def _is_occupancy(attribute: Attribute) -> bool:
    """Whether an attribute says that a unit is occupied or vacant; ``h1 = 2`` is that attribute without labels."""
    return set(attribute.labels) == {"vacant", "occupied"} or attribute == Attribute("h1", ("0", "1"))


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


@dataclass(frozen=True, slots=True)
class Semantics:
    """What a plan promises against neighbours nearer than any change of a record; losses as in `Plan.loss`.

    Attributes
    ----------
    attributes : mapping of attribute to Fraction or INFINITE
        The loss where only this attribute of one record is changed: of the queries that tell some of its levels apart.
    geolevels : mapping of geolevel to Fraction or INFINITE
        The loss where a record is moved to another block of the same geounit of the geolevel: of the geolevels below.
    """

    attributes: Mapping[str, Budget]
    geolevels: Mapping[str, Budget]

    def as_json(self, mechanism: Mechanism, delta: float = DEFAULT_DELTA) -> dict[str, Any]:
        """Describe them, with the epsilon of each: its tight conversion at ``delta`` under zCDP."""
        return {
            "attributes": {name: loss_as_json(loss, mechanism, delta) for name, loss in self.attributes.items()},
            "geolevels": {
                f"Block in {level}": loss_as_json(loss, mechanism, delta) for level, loss in self.geolevels.items()
            },
        }


def loss_as_json(loss: Budget, mechanism: Mechanism, delta: float = DEFAULT_DELTA) -> dict[str, Any]:
    """A loss in rho with its tight epsilon at ``delta``; of pure differential privacy the epsilon alone."""
    if mechanism is Mechanism.PURE:
        return {**number("rho", None), **number("epsilon", loss)}
    epsilon = epsilon_tight(loss, delta)
    return {**number("rho", loss), "epsilon": None if epsilon == INFINITE else epsilon}


def semantics_of(configuration: Configuration) -> Semantics:
    """Add up what single attributes and places cost.

    As in the certificates of 2020, geounits are taken to have the share their geolevel starts with. Whatever a spine
    bypasses, no loss here passes that of the whole plan.
    """
    plan = make_plan(configuration)
    budgets = {
        (depth, query): plan[measurement_name(level, query)].budget
        for depth, level in enumerate(configuration.levels)
        if configuration.shares[level] > 0
        for query, _ in configuration.measured(level)
    }

    def loss(chosen: Iterable[tuple[int, Query]]) -> Budget:
        return sum((budgets[measured] for measured in chosen), Fraction(0))

    above_the_blocks = tuple(enumerate(configuration.levels))[:-1]
    return Semantics(
        attributes={
            name: loss(measured for measured in budgets if measured[1].shape[axis] > 1)
            for axis, name in enumerate(configuration.schema.names)
        },
        geolevels={
            level: loss(measured for measured in budgets if measured[0] > depth)
            for depth, level in reversed(above_the_blocks)
        },
    )
