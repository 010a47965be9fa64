"""Plans made up for tests."""

from collections.abc import Callable, Mapping
from fractions import Fraction

from yupana.plan.measurement import (
    Accounting,
    Margins,
    Measurement,
    Mechanism,
    PersonSensitivity,
    Sensitivity,
)
from yupana.plan.plan import Neighbours, Plan
from yupana.privacy.exact import Budget
from yupana.products.census import STATES
from yupana.products.phsafe.configuration import PhsafeConfig, production
from yupana.products.phsafe.product import PHSAFE


def made_up(
    product: str,
    person: Callable[[Sensitivity], PersonSensitivity],
    budget: Budget = Fraction(1),
    mechanism: Mechanism = Mechanism.ZCDP,
) -> Plan:
    sensitivity = Sensitivity(Fraction(9), Fraction(18))
    m = Measurement(
        "m", "T", "l", 1, mechanism, Fraction(9), sensitivity, sensitivity, budget, person=person(sensitivity)
    )
    return Plan(product, "record", Neighbours.UNBOUNDED, "published", Fraction(9, 10), mechanism, (m,))


def production_plan(*, puerto_rico: bool) -> Plan:
    """PHSafe's of the 2020 run: unbounded rho 1.257281 for the United States, 1.226649 for Puerto Rico."""
    return PHSAFE.plan(production(puerto_rico=puerto_rico))


def plan_of(
    budgets: Mapping[str, Budget],
    taus: Mapping[str, int],
    mechanism: Mechanism,
    *,
    accounting: Accounting = "published",
    confidence: Fraction | None = None,
    margins: Margins = "exact",
) -> Plan:
    """PHSafe's of a run from its numbers alone."""
    config = PhsafeConfig.of(budgets, taus, STATES, mechanism)
    return PHSAFE.plan(config, accounting=accounting, confidence=confidence, margins=margins)
