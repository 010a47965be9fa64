"""Households by the rules of the Census Edited File: which can exist, and what their unit record then says.

The rules are those of docs/attribute-loss.md; they hold for made-up households only, no record is read.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

HOUSEHOLDER: Final = 20
SPOUSES: Final = (21, 23)
"""Of the opposite sex, of the same sex."""
PARTNERS: Final = (22, 24)
CHILDREN: Final = range(25, 28)
RELATIVES: Final = range(25, 34)
NONRELATIVES: Final = range(34, 37)
COUPLED: Final = (*SPOUSES, *PARTNERS)
MALE: Final = 1
FEMALE: Final = 2
OF_AGE: Final = 15
"""The least age of a householder, a spouse and an unmarried partner."""
ADULT: Final = 18

WITH_OWN_CHILDREN: Final = frozenset({1, 3, 6, 10})
"""HHT2 of the households with own children under 18."""
COUPLES: Final = {1: SPOUSES, 2: SPOUSES, 3: PARTNERS, 4: PARTNERS}
"""HHT2 of the households with a couple, and how the other of the couple is related."""
ALONE: Final = frozenset({5, 9})
FEMALE_HOUSEHOLDER: Final = range(5, 9)
MALE_HOUSEHOLDER: Final = range(9, 13)

UnitRecord = tuple[tuple[str, int], ...]


class Person(NamedTuple):
    """A person of a housing unit, in the codes of the Census Edited File.

    Attributes
    ----------
    sex : int
        1 male, 2 female.
    age, race, ethnicity, relation : int
        QAGE, CENRACE, CENHISP, RELSHIP.
    """

    sex: int
    age: int
    race: int
    ethnicity: int
    relation: int

    @property
    def is_own_child(self) -> bool:
        """Whether this is an own child under 18 of the householder."""
        return self.relation in CHILDREN and self.age < ADULT


@dataclass(frozen=True, slots=True)
class Household:
    """The people of an occupied housing unit, in the order in which truncation keeps them, and the tenure TEN."""

    people: tuple[Person, ...]
    tenure: int

    @property
    def householder(self) -> Person:
        """The householder; there must be one."""
        return next(person for person in self.people if person.relation == HOUSEHOLDER)

    @property
    def type(self) -> int:
        """HHT2."""
        return dict(unit_record(self.people, self.tenure))["HHT2"]


def faults_of(people: Sequence[Person]) -> list[str]:
    """Why people cannot live as a household, in words; empty if they can."""
    heads = [person for person in people if person.relation == HOUSEHOLDER]
    if len(heads) != 1:
        return [f"a household has exactly one householder (RELSHIP 20), and this one has {len(heads)}"]
    faults = []
    (head,) = heads
    others = [person for person in people if person.relation in COUPLED]
    if len(others) > 1:
        faults.append("a householder has at most one spouse or unmarried partner")
    for other in others:
        if coupled(other, head).relation != other.relation:
            words = "the same sex" if head.sex == other.sex else "opposite sexes"
            faults.append(f"RELSHIP {other.relation} does not fit a couple of {words}")
    if any(person.age < OF_AGE for person in (head, *others)):
        faults.append(f"householder, spouse and unmarried partner are at least {OF_AGE} years old")
    if any(person.relation not in range(HOUSEHOLDER, NONRELATIVES.stop) for person in people):
        faults.append("RELSHIP 37 and 38 are for group quarters, and 20 to 36 for households")
    return faults


def coupled(person: Person, head: Person) -> Person:
    """A spouse or partner with the code that fits the sexes of the couple; anybody else unchanged."""
    for codes in (SPOUSES, PARTNERS):
        if person.relation in codes:
            return person._replace(relation=codes[person.sex == head.sex])
    return person


def recoded(people: Sequence[Person]) -> tuple[Person, ...]:
    """The same people, with the code of a spouse or partner that follows from the sexes."""
    head = next((person for person in people if person.relation == HOUSEHOLDER), None)
    return tuple(people) if head is None else tuple(coupled(person, head) for person in people)


def unit_record(people: Sequence[Person], tenure: int) -> UnitRecord:
    """The unit record of a household: every column but tenure follows from the people.

    Parameters
    ----------
    people : sequence of Person
        Without faults (`faults_of`).
    tenure : int

    Returns
    -------
    tuple of (column, code)
    """
    head = next(person for person in people if person.relation == HOUSEHOLDER)
    other = next((person.relation for person in people if person.relation in COUPLED), None)
    children = any(person.is_own_child for person in people)
    relatives = any(person.relation in RELATIVES for person in people)
    alone = len(people) == 1
    first = FEMALE_HOUSEHOLDER.start if head.sex == FEMALE else MALE_HOUSEHOLDER.start
    if other is not None:
        kind = (1 if other in SPOUSES else 3) + (not children)
    else:
        kind = first + (0 if alone else 1 if children else 2 if relatives else 3)
    # Unmarried couples are a family where a relative of the householder lives with them (HHT).
    if other in SPOUSES:
        family = 1
    elif relatives:
        family = 3 if head.sex == FEMALE else 2
    else:
        family = (6 if head.sex == FEMALE else 4) + (not alone)
    couple = {21: 1, 23: 2, 22: 3, 24: 4, None: 5}[other]
    return (
        ("RTYPE", 2),
        ("HHRACE", head.race),
        ("HHSPAN", head.ethnicity),
        ("TEN", tenure),
        ("HHT", family),
        ("HHT2", kind),
        ("CPLT", couple),
    )


def without(people: Sequence[Person], leaving: int) -> Iterator[tuple[Person, ...]]:
    """Who lives in a unit after one person has left: all ways in which the household goes on.

    If the householder leaves, a spouse, partner or other member of age becomes householder, and the others are
    related to the new one: `_seen_by`. Nothing is yielded if nobody is left of age; an empty unit is ``()``.
    """
    left = (*people[:leaving], *people[leaving + 1 :])
    if not left or people[leaving].relation != HOUSEHOLDER:
        yield left
        return
    for place, successor in enumerate(left):
        if successor.age >= OF_AGE and successor not in left[:place]:
            head = successor._replace(relation=HOUSEHOLDER)
            yield tuple(
                head if i == place else person._replace(relation=_seen_by(successor.relation, person.relation))
                for i, person in enumerate(left)
            )


def _seen_by(successor: int, person: int) -> int:
    """The relation of a person to a new householder, from the relations of both to the one who left."""
    if person in NONRELATIVES or successor in NONRELATIVES:
        return NONRELATIVES.start
    if successor in COUPLED:
        # The children of a couple are taken to be children of both.
        return person
    if person in COUPLED:
        return 29
    return 28 if person in CHILDREN and successor in CHILDREN else 33
