"""The example of the slides, and its rule of stability."""

from collections.abc import Collection, Mapping
from fractions import Fraction
from typing import Final

from yupana.audit.attribute.households import ADULT, WITH_OWN_CHILDREN, Individual
from yupana.audit.attribute.loss import Secret
from yupana.plan.measurement import Accounting, Measurement, Mechanism
from yupana.plan.plan import Plan
from yupana.privacy.exact import Budget
from yupana.products.census import STATES
from yupana.products.phsafe.configuration import TAUS, PhsafeConfig, budgets, production
from yupana.products.phsafe.product import PHSAFE

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
    sums: dict[str, Budget] = dict.fromkeys(RHO, Fraction(0))
    terms = {name: term_of(*name.split("/")) for name in of_2020}
    for name, rho in of_2020.items():
        sums[terms[name]] += rho
    scaled = {name: rho * RHO[terms[name]] / sums[terms[name]] for name, rho in of_2020.items()}
    return PHSAFE.plan(PhsafeConfig.of(scaled, TAUS, STATES, Mechanism.ZCDP), accounting=accounting)


_DENOMINATORS: Final = ("PH1_denom", "PH5_denom", "PH8_denom")
_CHILDREN: Final = ("PH3", "PH3 by race", "PH6")
_ALL: Final = ("PH1_num", "PH2", "PH4", "PH7", *_CHILDREN, *_DENOMINATORS)
_UNION: Final = {"Race", "Ethnicity", "Relation"}


def planned(config: str, accounting: Accounting = "published") -> tuple[Mapping[str, int], Plan] | None:
    """The thresholds and the plan of 2020, or those behind the slides, by the names of the two; None of other names."""
    if config == "s-dhc-2020":
        return TAUS, PHSAFE.plan(production(puerto_rico=False), accounting=accounting)
    return (TAUS, slides_plan(accounting)) if config == "s-dhc-slides" else None


def rule(plan: Plan, taus: Mapping[str, int], individual: Individual, attributes: Collection[str]) -> Budget:
    """The loss by the rule; it grows with the attributes, and never passes the bounded loss of the plan.

    A table counts once however many attributes can change it. A household that moves may be of any size, before or
    after, and one unit table changes in two places: a move costs the bounded loss of the plan.
    """
    terms: set[str] = set()
    for attribute in attributes:
        terms.update(_terms(individual, attribute))
    if "HouseholdID" in attributes:
        return plan.loss(lambda m: m.sensitivity.bounded)
    return _sum(plan, taus, terms, individual.size)


def rule_of_the_slides(
    plan: Plan, taus: Mapping[str, int], individual: Individual, attributes: Collection[str]
) -> Budget:
    """The loss as the printed numbers have it: the rule with four exceptions that it does not justify.

    They are: the sex of an adult who does not live alone leaves out PH3 and PH6, which the relation alone does not;
    the sex of who lives alone costs what the age does; a move leaves PH3 and PH6 out for everybody of age; and who
    lives alone has PH2 in the secret of a multiracial family.
    """
    if "HouseholdID" in attributes:
        terms = {"PH1_num", "PH2", "PH7", "PH1_denom", "PH8_denom"}
        if individual.size > 1:
            terms |= {"PH4", "PH5_denom"}
        if individual.age < ADULT:
            terms |= set(_CHILDREN)
        return _sum(plan, taus, terms, None)
    alone = individual.size == 1
    terms = set[str]().union(*(_terms(individual, "Age" if alone and a == "Sex" else a) for a in attributes))
    if "Sex" in attributes and individual.age >= ADULT and not alone:
        terms -= set(_CHILDREN)
    if alone and set(attributes) >= _UNION:
        terms.add("PH2")
    return _sum(plan, taus, terms, individual.size)


def _terms(i: Individual, attribute: str) -> tuple[str, ...]:
    """The tables that an attribute can change."""
    alone, minor = i.size == 1, i.age < ADULT
    family = () if alone or i.type in (8, 12) else ("PH4", "PH5_denom")
    children = _CHILDREN if minor or i.type in WITH_OWN_CHILDREN else ()
    if attribute == "Relation":
        return () if alone else ("PH2", "PH4", "PH5_denom", *children)
    if attribute == "Sex":
        return ("PH2", *(children if not alone else ()))
    if attribute == "Age":
        more = () if alone else ("PH2", "PH4", "PH5_denom", "PH6")
        return ("PH1_num", "PH1_denom", "PH3", "PH3 by race", *more)
    if attribute in {"Race", "Ethnicity"}:
        own = ("PH3 by race",) if minor else ()
        return (*own, "PH1_num", "PH7", "PH1_denom", "PH8_denom", *family) if i.is_householder else own
    return ("PH7", "PH8_denom") if attribute == "Tenure" else _ALL


def _sum(plan: Plan, taus: Mapping[str, int], terms: Collection[str], size: int | None) -> Budget:
    """Bounded losses of the tables, scaled to a household of ``size``; for None they stand as they are."""
    chosen = [m for m in plan.measurements if term_of(m.table, m.level) in terms]
    total: Budget = Fraction(0)
    for m in chosen:
        # One household changes, not two: a denominator costs its unbounded loss.
        distance = m.sensitivity.unbounded if m.table in _DENOMINATORS else m.sensitivity.bounded
        total += m.loss(distance * _scale(m, taus, size))
    return total


def term_of(table: str, level: str) -> str:
    """What the rule counts a table at a level as: PH3 by race is apart from PH3."""
    return "PH3 by race" if table == "PH3" and not level.endswith("*") else table


def _scale(m: Measurement, taus: Mapping[str, int], size: int | None) -> Fraction:
    if size is None or m.table not in taus:
        return Fraction(1)
    tau = taus[m.table]
    share = Fraction(2 * min(size, tau) + 2, 2 * tau + 2)
    return share**m.mechanism.power
