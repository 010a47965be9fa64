"""The answers of `yupana audit attribute`: by individual and secret the printed value, the rule and the search.

The printed values are those of the example of the Census Bureau's slides, whose rule of stability and whose conclusions
on classes of individuals are here, too. The conclusions are compared, not supposed.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any, Final

from yupana.audit.attribute.households import ADULT, WITH_OWN_CHILDREN, Household, Individual, Person, unit_record
from yupana.audit.attribute.loss import AttributeLoss, Change, Costs, Secret, attribute_loss
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


COLUMNS: Final[Mapping[str, tuple[str, Callable[[AttributeAnswer], object]]]] = {
    "individual": ("VARCHAR", lambda answer: answer.individual.name),
    "secret": ("VARCHAR", lambda answer: answer.secret.name),
    "printed": ("DOUBLE", lambda answer: answer.printed),
    "rule": ("DOUBLE", lambda answer: float(answer.rule)),
    "rule_without_exceptions": ("DOUBLE", lambda answer: float(answer.consistent)),
    "exact": ("DOUBLE", lambda answer: float(answer.exact.value)),
    "exact_fraction": ("VARCHAR", lambda answer: str(answer.exact.value)),
}
"""Answers as a table, in rho."""


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


def change_line(change: Change) -> str:
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


LARGE: Final = 7
"""Persons of a large household, at least: the last size that tables of households tell apart."""


@dataclass(frozen=True, slots=True)
class Division:
    """Two classes of individuals, of which the slides say that the first often loses significantly less."""

    name: str
    others: str
    belongs: Callable[[Individual], bool]


DIVISIONS: Final = (
    Division("small households", f"households of {LARGE} or more", lambda i: i.size < LARGE),
    Division("adults", "minors", lambda i: i.age >= ADULT),
    Division("non-householders", "householders", lambda i: not i.is_householder),
)

LOSSES: Final[dict[str, Callable[[AttributeAnswer], Fraction | None]]] = {
    "printed": lambda answer: None if answer.printed is None else Fraction(str(answer.printed)),
    "rule": lambda answer: answer.rule if isinstance(answer.rule, Fraction) else None,
    "exact": lambda answer: answer.exact.value,
}
"""The losses of an answer."""


@dataclass(frozen=True, slots=True)
class ClassComparison:
    """The losses of one class beside those of the others, in one column.

    A pair is a member of the class, one of the others, and a secret. What is significant is a factor of two.
    """

    division: Division
    column: str  # of `LOSSES`
    # members, others: the individuals on either side, by name
    members: tuple[str, ...]
    others: tuple[str, ...]
    means: tuple[tuple[str, Fraction, Fraction], ...]  # tuple of (secret, mean, mean of the others)
    pairs: int
    half: int  # pairs in which the member loses less, and at most half as much
    twice: int  # pairs in which the member loses more, and at least twice as much

    @property
    def less(self) -> int:
        """Secrets for which the class loses less on average."""
        return sum(mean < other for _, mean, other in self.means)

    @property
    def holds(self) -> bool:
        """Whether the class loses less for most secrets, and more often significantly less than significantly more."""
        return 2 * self.less > len(self.means) and self.half > self.twice

    def as_json(self) -> dict[str, Any]:
        """Describe the comparison, with what follows."""
        return {
            "class": self.division.name,
            "others": self.division.others,
            "column": self.column,
            "individuals": list(self.members),
            "other_individuals": list(self.others),
            "means": [
                {"secret": secret, "mean": float(mean), "mean_of_others": float(other)}
                for secret, mean, other in self.means
            ],
            "secrets_with_less": self.less,
            "pairs": self.pairs,
            "pairs_with_at_most_half": self.half,
            "pairs_with_at_least_twice": self.twice,
            "holds": self.holds,
        }


def comparisons(answers: Sequence[AttributeAnswer]) -> Iterator[ClassComparison]:
    """Compare both sides of every division, column by column; divisions with an empty side are left out."""
    for division in DIVISIONS:
        for column, value in LOSSES.items():
            losses = {(a.individual.name, a.secret.name): loss for a in answers if (loss := value(a)) is not None}
            secrets = list(dict.fromkeys(secret for _, secret in losses))
            known = {a.individual.name: division.belongs(a.individual) for a in answers}
            members, others = (
                tuple(name for name, inside in known.items() if inside is side) for side in (True, False)
            )
            if losses and members and others:
                yield _compare(division, column, members, others, secrets, losses)


def _compare(
    division: Division,
    column: str,
    members: tuple[str, ...],
    others: tuple[str, ...],
    secrets: Sequence[str],
    losses: dict[tuple[str, str], Fraction],
) -> ClassComparison:

    def mean(side: tuple[str, ...], secret: str) -> Fraction:
        return sum((losses[name, secret] for name in side), Fraction(0)) / len(side)

    means = tuple((secret, mean(members, secret), mean(others, secret)) for secret in secrets)
    pairs = [(losses[a, s], losses[b, s]) for a, b, s in product(members, others, secrets)]
    return ClassComparison(
        division,
        column,
        members,
        others,
        means,
        len(pairs),
        sum(a < b and 2 * a <= b for a, b in pairs),
        sum(a > b and a >= 2 * b for a, b in pairs),
    )
