"""The answers of `yupana audit attribute`: by individual and secret the printed value, the rule and the search."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from yupana.audit.attribute.contribution import Costs
from yupana.audit.attribute.households import Household, Individual, Person, unit_record
from yupana.audit.attribute.loss import AttributeLoss, Change, Secret, attribute_loss
from yupana.audit.attribute.published_example import PRINTED, rule, rule_of_the_slides
from yupana.privacy.exact import Budget


@dataclass(frozen=True, slots=True)
class AttributeAnswer:
    """The losses of one secret of one individual.

    Attributes
    ----------
    individual : Individual
    secret : Secret
    printed : float or None
        As the slides print it, for their example.
    rule : Fraction
        By the rule of scaled stability; for the example with the exceptions of the printed numbers.
    consistent : Fraction
        By the rule without exceptions.
    exact : AttributeLoss
        The largest found.
    """

    individual: Individual
    secret: Secret
    printed: float | None
    rule: Budget
    consistent: Budget
    exact: AttributeLoss

    @property
    def difference(self) -> Fraction | None:
        """The printed number minus the rule; None where none is printed."""
        if self.printed is None or not isinstance(self.rule, Fraction):
            return None
        return Fraction(str(self.printed)) - self.rule

    def as_json(self) -> dict[str, Any]:
        """Describe the answer; the exact loss is a float with the fraction beside it."""
        return {
            "individual": self.individual.name,
            "secret": self.secret.name,
            "attributes": sorted(self.secret.attributes),
            "printed": self.printed,
            "rule": float(self.rule),
            "difference": None if self.difference is None else float(self.difference),
            "rule_without_exceptions": float(self.consistent),
            "exact": float(self.exact.value),
            "exact_fraction": str(self.exact.value),
            "same_state": self.exact.same_state,
            "changes": [
                {"before": household_as_json(change.before), "after": household_as_json(change.after)}
                for change in self.exact.changes
            ],
            "compared": self.exact.tried,
        }


def answers(
    costs: Costs, individuals: Sequence[Individual], secrets: Sequence[Secret], *, slides: bool
) -> Iterator[AttributeAnswer]:
    """Price every secret of every individual; secrets of the same attributes are searched once.

    Raises
    ------
    InputError
        If a household cannot exist.
    """
    for individual in individuals:
        found: dict[frozenset[str], AttributeLoss] = {}
        for secret in secrets:
            attributes = secret.attributes
            if attributes not in found:
                found[attributes] = attribute_loss(costs, individual, attributes)
            consistent = rule(costs.plan, costs.taus, individual, attributes)
            yield AttributeAnswer(
                individual,
                secret,
                PRINTED.get((individual.name, secret.name)) if slides else None,
                rule_of_the_slides(costs.plan, costs.taus, individual, attributes) if slides else consistent,
                consistent,
                found[attributes],
            )


def household_as_json(household: Household) -> dict[str, Any]:
    """Describe a household by its codes, people in the order in which truncation keeps them."""
    if not household.people:
        return {"unit": None, "people": []}
    return {
        "unit": dict(unit_record(household.people, household.tenure)),
        "people": [person._asdict() for person in household.people],
    }


def in_words(change: Change) -> str:
    """A change in a line: who lives in the unit before and after."""
    return f"{_people(change.before)}  ->  {_people(change.after)}"


def _people(household: Household) -> str:
    if not household.people:
        return "nobody"
    runs: list[tuple[Person, int]] = []
    for person in household.people:
        if runs and runs[-1][0] == person:
            runs[-1] = (person, runs[-1][1] + 1)
        else:
            runs.append((person, 1))
    unit = dict(unit_record(household.people, household.tenure))
    people = ", ".join(f"{f'{n} x ' if n > 1 else ''}{_person(person)}" for person, n in runs)
    return f"[HHT2 {unit['HHT2']:02}, TEN {unit['TEN']}: {people}]"


def _person(p: Person) -> str:
    return f"{p.relation}/{'MF'[p.sex - 1]}{p.age}/{p.race:02}-{p.ethnicity}"
