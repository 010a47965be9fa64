"""Households as attribute loss sees them, and the families of the slides."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations, product
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
WITH_RELATIVES: Final = frozenset({7, 11})
"""HHT2 of the households with relatives of a householder who has no couple and no own children under 18."""
COUPLES: Final = {1: SPOUSES, 2: SPOUSES, 3: PARTNERS, 4: PARTNERS}
"""HHT2 of the households with a couple, and how the other of the couple is related."""
ALONE: Final = frozenset({5, 9})
FEMALE_HOUSEHOLDER: Final = range(5, 9)
MALE_HOUSEHOLDER: Final = range(9, 13)

UnitRecord = tuple[tuple[str, int], ...]


class Person(NamedTuple):
    """A person of a housing unit, in the codes of the Census Edited File."""

    sex: int  # 1 male, 2 female
    # age, race, ethnicity, relation: QAGE, CENRACE, CENHISP, RELSHIP
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


AGES: Final = (2, 5, 8, 13, 16, 40)
"""One age of each class that the tables, or the rules of households, tell apart."""

RACES: Final = ((1, 1), (2, 2), (2, 1), (1, 2))
"""Race and ethnicity: White not Hispanic (iterations A, I), Black Hispanic (B, H), Black not Hispanic (B), White
Hispanic (A, H). Every pair of iterations of a level occurs."""

RELATIONS: Final = (HOUSEHOLDER, 21, 22, 25, 28, 30, 34)
"""One relation of each kind that the tables tell apart; a same-sex couple's codes follow from the sexes."""

_FREE: Final = ((25, 2), (25, 8), (25, 40), (30, 8), (30, 40), (28, 8), (28, 40), (34, 8), (34, 40))
"""Relation and age of the members that a description leaves open."""

_HEADS: Final = (16, 40)
_USUAL: Final = RACES[0]
_OTHER: Final = RACES[1]
_FEW: Final = 5
"""Up to so many other members, all orders of truncation are tried."""

Ordered = tuple[Person, ...]


@dataclass(frozen=True, slots=True)
class Individual:
    """A person in a household, as far as it is told."""

    name: str
    age: int
    relation: int
    size: int  # persons of the household
    type: int  # HHT2 of the household
    # sex, race, ethnicity, tenure: none where any may be
    sex: int | None = None
    race: int | None = None
    ethnicity: int | None = None
    tenure: int | None = None
    others: Ordered | None = None  # the other members; None where all that fit may be

    @property
    def is_householder(self) -> bool:
        """Whether this is the householder."""
        return self.relation == HOUSEHOLDER

    @property
    def is_own_child(self) -> bool:
        """Whether this is a child of the householder under age."""
        return self.relation in CHILDREN and self.age < ADULT

    @property
    def known_sex(self) -> int:
        """The sex told, or the one that the type of the household or the first code of a couple asks for."""
        if self.sex is not None:
            return self.sex
        return FEMALE if self.is_householder and self.type in FEMALE_HOUSEHOLDER else MALE


def reason_against(individual: Individual) -> str | None:
    """Why the household of a person cannot exist, in words; None if it can."""
    found = next((words for impossible, words in _contradictions(individual) if impossible), None)
    if found is not None or individual.others is None:
        return found
    people = recoded((*individual.others, person_of(individual)))
    if faults := faults_of(people):
        return faults[0]
    return None


def _contradictions(i: Individual) -> Iterator[tuple[bool, str]]:
    """Pairs of whether something is impossible, and the sentence that says so."""
    # Between the relation of a person, the age, and living alone.
    yield i.relation not in range(20, 37), "RELSHIP 20 to 36 are the relations of a household; 37 and 38 are not"
    yield i.is_householder and i.age < OF_AGE, f"a householder is at least {OF_AGE} years old"
    yield i.relation in COUPLED and i.age < OF_AGE, f"a spouse or unmarried partner is at least {OF_AGE} years old"
    yield i.size < 1, "a household has at least one member"
    yield not i.is_householder and i.size == 1, "somebody who lives alone is the householder"
    yield i.type in ALONE and i.size != 1, "a household of HHT2 05 or 09 is a householder who lives alone: size 1"
    yield i.type not in ALONE and i.size == 1, "somebody who lives alone is in a household of HHT2 05 or 09"
    # Between what a person is and the type of household that this makes.
    female, male = (i.is_householder and i.type in types for types in (FEMALE_HOUSEHOLDER, MALE_HOUSEHOLDER))
    yield female and i.sex == MALE, "HHT2 05 to 08 have a female householder"
    yield male and i.sex == FEMALE, "HHT2 09 to 12 have a male householder"
    married, partner = (i.relation in relations for relations in (SPOUSES, PARTNERS))
    yield married and i.type not in (1, 2), "a spouse of the householder makes a household HHT2 01 or 02"
    yield partner and i.type not in (3, 4), "an unmarried partner of the householder makes a household HHT2 03 or 04"
    strange = i.is_own_child and i.type not in WITH_OWN_CHILDREN
    yield strange, f"an own child under {ADULT} makes a household HHT2 01, 03, 06 or 10"
    strange = i.relation in RELATIVES and i.type in (8, 12)
    yield strange, "in a household of HHT2 08 or 12 nobody is related to the householder"
    # Between the size of a household and the members that its type needs: who is none of them, comes on top.
    parts = (
        (True, i.is_householder),
        (i.type in COUPLES, i.relation in COUPLED),
        (i.type in WITH_OWN_CHILDREN, i.is_own_child),
        (i.type in WITH_RELATIVES, i.relation in RELATIVES),
    )
    need = sum(needed for needed, _ in parts)
    enough = f"a household of HHT2 {i.type:02} needs at least {need} members"
    yield i.size < need, enough
    plays = any(needed and is_it for needed, is_it in parts)
    yield not plays and i.size < need + 1, f"{enough} besides one of RELSHIP {i.relation}"


def person_of(individual: Individual) -> Person:
    """The person, with what is not told as the search takes it."""
    race = _USUAL[0] if individual.race is None else individual.race
    ethnicity = _USUAL[1] if individual.ethnicity is None else individual.ethnicity
    return Person(individual.known_sex, individual.age, race, ethnicity, individual.relation)


def others_of(individual: Individual, person: Person, least_tau: int, *, moving: bool) -> Iterator[Ordered]:
    """The other members of the person's household, in every order and composition that is tried.

    Parameters
    ----------
    person : Person
        The individual with everything filled in.
    least_tau : int
        The smallest truncation threshold: no smaller household is truncated.
    moving : bool
        Whether the person leaves, so that race and ethnicity of a successor matter.
    """
    if individual.others is not None:
        yield from _orders(individual.others, truncated=individual.size > least_tau)
        return
    wanted = individual.type
    for needed in _needed(individual, person, moving=moving):
        free = individual.size - 1 - len(needed)
        if free >= 0:
            for others in _filled(needed, free, truncated=individual.size > least_tau, every=True):
                whole = recoded((*others, person))
                if not faults_of(whole) and dict(unit_record(whole, 1))["HHT2"] == wanted:
                    yield others


def _needed(individual: Individual, person: Person, *, moving: bool) -> Iterator[Ordered]:
    """The members a household of the type must have besides the person."""
    races = (_USUAL, _OTHER) if moving else (_USUAL,)
    wanted = individual.type
    nobody: Sequence[Person | None] = (None,)
    children = relatives = nobody
    if wanted in WITH_OWN_CHILDREN and not person.is_own_child:
        children = [Person(MALE, 8, *_USUAL, 25)]
    if wanted in WITH_RELATIVES and person.relation not in RELATIVES:
        relatives = [Person(MALE, age, *_USUAL, 28) for age in (8, 40)]
    for head in nobody if individual.is_householder else _heads(person, wanted):
        spouses = nobody
        if wanted in COUPLES and person.relation not in COUPLED:
            sex = MALE + FEMALE - (head or person).sex
            spouses = [Person(sex, age, *race, COUPLES[wanted][0]) for age in _HEADS for race in races]
        for members in product((head,), spouses, children, relatives):
            yield tuple(member for member in members if member is not None)


def _heads(person: Person, wanted: int) -> Sequence[Person]:
    """Householders a person may live with in a household of a type: of the sex that the couple or the type asks for."""
    if person.relation not in COUPLED:
        sex = MALE if wanted in MALE_HOUSEHOLDER else FEMALE
    elif person.relation in (23, 24):
        sex = person.sex
    else:
        sex = MALE + FEMALE - person.sex
    return [Person(sex, age, *_USUAL, HOUSEHOLDER) for age in _HEADS]


def _filled(needed: Ordered, free: int, *, truncated: bool, every: bool) -> Iterator[Ordered]:
    """Fill a household up: with members of one kind, and where persons are truncated, of two kinds in either order.

    Without truncation a loss is convex in how many members are of each kind, so one kind is enough.
    """
    kinds = [Person(MALE, age, *_USUAL, relation) for relation, age in _FREE]
    if not free:
        yield from {needed, needed[::-1]}
        return
    for kind in kinds:
        yield (*needed, *[kind] * free)
    if not truncated:
        return
    for kind in kinds:
        yield (*[kind] * free, *needed)
    for one, two in permutations(kinds, 2):
        for first in range(1, free) if every else (free - 1,):
            rest = [one] * first + [two] * (free - first)
            yield (*needed, *rest)
            yield (*rest, *needed)


def _orders(others: Ordered, *, truncated: bool) -> Iterator[Ordered]:
    """Orders in which given members may be kept: all of them where they are few."""
    if not truncated:
        yield others
    elif len(others) <= _FEW:
        yield from sorted(set(permutations(others)))
    else:
        # Whom truncation leaves out matters by kind: each kind goes last, each second to last.
        kinds = sorted(set(others))
        for first, last in product(kinds, repeat=2):
            yield tuple(sorted(others, key=lambda p: (p == last, p == first)))
            yield tuple(sorted(others, key=lambda p: (p != first, p == last)))


def places(others: Ordered, *, truncated: bool) -> tuple[int, ...]:
    """Where the person may stand in the order of truncation."""
    return (0, len(others)) if truncated else (len(others),)


def targets(person: Person, taus: Iterable[int]) -> Iterator[tuple[Ordered, int]]:
    """Households a person may belong to after a move, in any relation: all their people, and where the person stands.

    Parameters
    ----------
    person : Person
        Whose relation is replaced: it is to another householder.
    taus : iterable of int
        Households of one, two, the largest threshold, and one more persons are tried.
    """
    largest, least = max(taus), min(taus)
    relations = [r for r in RELATIONS if person.age >= OF_AGE or r not in (HOUSEHOLDER, *COUPLED)]
    for size, relation in product(sorted({1, 2, largest, largest + 1}), relations):
        for needed in _hosts(person, relation):
            free = size - 1 - len(needed)
            if free < 0:
                continue
            for others in _filled(needed, free, truncated=size > least, every=False):
                head = next((p for p in others if p.relation == HOUSEHOLDER), None)
                own = Person(person.sex, person.age, person.race, person.ethnicity, relation)
                joined = own if head is None else coupled(own, head)
                for place in places(others, truncated=size > least):
                    people = (*others[:place], joined, *others[place:])
                    if not faults_of(people):
                        yield people, place


def _hosts(person: Person, relation: int) -> Iterator[Ordered]:
    """Who must live where a person moves in: a householder, and a spouse or nobody."""
    if relation == HOUSEHOLDER:
        yield ()
        pairs = tuple(product((MALE, FEMALE), (_USUAL, _OTHER)))
        yield from ((Person(sex, 40, *race, 23 if sex == person.sex else 21),) for sex, race in pairs)
        # A child of age, a relative or somebody else was the householder before.
        yield from ((Person(sex, 40, *race, kind),) for sex, race in pairs for kind in (25, 28, 34))
        return
    head = Person(FEMALE, 40, *_USUAL, HOUSEHOLDER)
    yield (head,)
    if relation not in COUPLED:
        yield head, Person(MALE, 40, *_USUAL, 21)
