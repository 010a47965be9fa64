"""The example of the Census Bureau's slides on attribute privacy loss: five people, eight secrets, forty numbers.

The slides do not name their budgets, and those of 2020 do not give the numbers printed. `RHO` does; how it was solved
for is told in docs/attribute-loss.md.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from yupana.audit.attribute.families import Individual
from yupana.audit.attribute.loss import Secret
from yupana.audit.attribute.stability_rule import term_of
from yupana.plan.measurement import Accounting, Mechanism
from yupana.plan.plan import Plan
from yupana.products.phsafe.plan import plan_of
from yupana.products.phsafe.production import TAUS, budgets

INDIVIDUALS: Final = (
    Individual("Alice", age=20, relation=25, size=3, type=2),
    Individual("Bob", age=16, relation=25, size=3, type=1),
    Individual("Carol", age=20, relation=20, size=1, type=5),
    Individual("Dave", age=16, relation=20, size=3, type=1),
    Individual("Elise", age=60, relation=20, size=10, type=1),
)
"""Alice lives with a married couple (no own child under 18 is told of), Carol alone."""

SECRETS: Final = (
    Secret("Sex", frozenset({"Sex", "Relation"})),
    Secret("Age", frozenset({"Age", "Relation"})),
    Secret("Race-Ethnicity", frozenset({"Race", "Ethnicity"})),
    Secret("Same-Sex Relationship", frozenset({"Sex", "Relation"})),
    Secret("Unmarried Partner", frozenset({"Relation"})),
    Secret("Multi-racial Family", frozenset({"Race", "Ethnicity", "Relation"})),
    Secret("Over Rental Capacity", frozenset({"HouseholdID", "Tenure"})),
    Secret("Exact Household", frozenset({"HouseholdID"})),
)

_PRINTED: Final = {
    "Alice": "0.055 0.558 0 0.055 0.055 0.055 1.433 1.433",
    "Bob": "0.508 0.558 0.443 0.508 0.508 0.508 2.819 2.819",
    "Carol": "0.126 0.126 0.038 0.126 0 0.039 1.067 1.067",
    "Dave": "0.508 0.558 0.633 0.508 0.508 0.647 2.819 2.819",
    "Elise": "0.404 2.156 1.395 0.404 1.79 2.819 1.433 1.433",
}

PRINTED: Final[Mapping[tuple[str, str], float]] = {
    (name, secret.name): float(value)
    for name, row in _PRINTED.items()
    for secret, value in zip(SECRETS, row.split(), strict=True)
}
"""The results as printed, by individual and secret."""

RHO: Final[Mapping[str, Fraction]] = {
    "PH1_num": Fraction("0.18197"),
    "PH1_denom": Fraction("0.00203"),
    "PH2": Fraction("0.01900"),
    "PH3": Fraction("0.00726"),
    "PH3 by race": Fraction("0.67853"),
    "PH4": Fraction("0.18197"),
    "PH5_denom": Fraction("0.00203"),
    "PH6": Fraction("0.00726"),
    "PH7": Fraction("0.33049"),
    "PH8_denom": Fraction("0.00203"),
}
"""Unbounded rho behind the slides, by table and summed over its levels: least squares over the forty numbers printed,
to five decimals."""


def slides_plan(accounting: Accounting = "published") -> Plan:
    """The plan behind the slides: the budgets of 2020, each table's scaled to its sum in `RHO`.

    The numbers printed say nothing of levels, so their shares of a table are those of 2020.
    """
    of_2020 = budgets(puerto_rico=False)
    sums = dict.fromkeys(RHO, Fraction(0))
    for place, rho in of_2020.items():
        sums[term_of(*place)] += rho
    scaled = {place: rho * RHO[term_of(*place)] / sums[term_of(*place)] for place, rho in of_2020.items()}
    return plan_of(scaled, TAUS, Mechanism.ZCDP, accounting=accounting)
