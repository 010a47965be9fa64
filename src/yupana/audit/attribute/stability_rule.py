"""The rule behind the numbers of the slides: the stability of a table scaled to the size of the household.

The rule is a reading of the printed numbers, not the authors' own words (docs/attribute-loss.md): a table whose counts
a secret can change costs its bounded loss times ((2 min(k, tau) + 2) / (2 tau + 2))^2 for a household of k.
"""

from collections.abc import Collection, Mapping
from fractions import Fraction
from typing import Final

from yupana.audit.attribute.families import Individual
from yupana.audit.attribute.households import ADULT, WITH_OWN_CHILDREN
from yupana.plan.measurement import Measurement
from yupana.plan.plan import Plan
from yupana.privacy.exact import Budget

_DENOMINATORS: Final = ("PH1_denom", "PH5_denom", "PH8_denom")
_CHILDREN: Final = ("PH3", "PH3 by race", "PH6")
_ALL: Final = ("PH1_num", "PH2", "PH4", "PH7", *_CHILDREN, *_DENOMINATORS)
_UNION: Final = {"Race", "Ethnicity", "Relation"}


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
