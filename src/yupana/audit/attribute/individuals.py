"""The file that names individuals, their households and their secrets (docs/attribute-loss.md)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from yupana.audit.attribute.households import Individual, Person, faults_of, reason_against, recoded, unit_record
from yupana.audit.attribute.loss import ATTRIBUTES, Secret
from yupana.files.declaration import TEXT, Expected, choice, declared, key, list_of, read_as, scalar

RELATIONS: Final = {
    "householder": 20,
    "spouse": 21,
    "unmarried partner": 22,
    "biological child": 25,
    "adopted child": 26,
    "stepchild": 27,
    "sibling": 28,
    "parent": 29,
    "grandchild": 30,
    "parent-in-law": 31,
    "child-in-law": 32,
    "other relative": 33,
    "roommate": 34,
    "foster child": 35,
    "other nonrelative": 36,
}
"""RELSHIP in words; the codes may be written, too. Whether a couple is of one sex follows from the sexes."""


def _code(words: str, codes: range, by_word: Mapping[str, int] | None = None) -> Expected[int]:
    """A code as a number or a text, or a word for it."""

    def take(told: object) -> int | None:
        number = (by_word or {}).get(str(told), int(told) if isinstance(told, str) and told.isdecimal() else None)
        return number if number in codes else None

    return scalar(words, take, {"type": ["integer", "string"]})


_SEX: Final = _code("male or female", range(1, 3), {"male": 1, "female": 2})
_AGE: Final = _code("a whole number from 0 to 115", range(116))
_RACE: Final = _code("a code of CENRACE, 01 to 63", range(1, 64))
_ETHNICITY: Final = _code("a code of CENHISP: 1 for not Hispanic, 2 for Hispanic", range(1, 3))
_RELATION: Final = _code("a code of RELSHIP, 20 to 36, or a word such as 'biological child'", range(20, 39), RELATIONS)


@dataclass(frozen=True, kw_only=True)
class DeclaredMember:
    """Another member of the household."""

    sex: int = key(_SEX)
    age: int = key(_AGE)
    race: int = key(_RACE)
    ethnicity: int = key(_ETHNICITY)
    relation: int = key(_RELATION)


@dataclass(frozen=True, kw_only=True)
class DeclaredIndividual:
    """Whose secrets are priced, with their household: size and type, or all other members."""

    name: str = key(TEXT)
    age: int = key(_AGE)
    relation: int = key(_RELATION)
    sex: int | None = key(_SEX, default=None)
    race: int | None = key(_RACE, default=None)
    ethnicity: int | None = key(_ETHNICITY, default=None)
    size: int | None = key(_code("a whole number above 0", range(1, 100_000)), default=None)
    household_type: int | None = key(_code("a code of HHT2, 01 to 12", range(1, 13)), default=None)
    tenure: int | None = key(_code("a code of TEN, 1 to 4", range(1, 5)), default=None)
    members: tuple[DeclaredMember, ...] | None = key(
        list_of(declared(DeclaredMember), "a list of objects, one for every other member", each=True, least=0),
        default=None,
    )


@dataclass(frozen=True, kw_only=True)
class DeclaredSecret:
    """Attributes that are secret together."""

    name: str = key(TEXT)
    attributes: tuple[str, ...] = key(list_of(choice(*ATTRIBUTES), f"a list of some of {', '.join(ATTRIBUTES)}"))


def _individual(place: str, told: DeclaredIndividual, faults: list[str]) -> Individual | None:
    before, missing = len(faults), {name for name, of in vars(told).items() if of is None}
    if told.members is None:
        faults += [
            f"{place}: {name} is missing; give size and household_type, or all members"
            for name in ("size", "household_type")
            if name in missing
        ]
    else:
        faults += [
            f"{place}: {name} is needed where members are given"
            for name in ("sex", "race", "ethnicity")
            if name in missing
        ]
        faults += [
            f"{place}: {name} follows from members; leave it out"
            for name in ("size", "household_type")
            if name not in missing
        ]
    if len(faults) > before:
        return None
    same = {n: getattr(told, n) for n in ("name", "age", "relation", "sex", "race", "ethnicity", "tenure")}
    individual = Individual(**same, size=told.size or 0, type=told.household_type or 0)
    if told.members is None:
        reason = reason_against(individual)
    else:
        own = Person(told.sex or 0, told.age, told.race or 0, told.ethnicity or 0, told.relation)
        people = recoded((*(Person(**vars(member)) for member in told.members), own))
        reason = next(iter(faults_of(people)), None)
        individual = replace(
            individual,
            relation=people[-1].relation,
            size=len(people),
            type=0 if reason else dict(unit_record(people, 1))["HHT2"],
            others=people[:-1],
        )
    if reason:
        faults.append(f"{place} ({told.name}): this household cannot exist: {reason}")
    return None if reason else individual


def _check_distinct(place: str, individuals: Sequence[Individual], faults: list[str]) -> None:
    names = [individual.name for individual in individuals]
    faults += [f"{place}: {name!r} is named twice" for name in dict.fromkeys(names) if names.count(name) > 1]


@dataclass(frozen=True, slots=True)
class AttributeQuestion:
    """Whose secrets are to be priced; no secrets are those of the slides."""

    individuals: tuple[Individual, ...] = key(
        list_of(
            declared(DeclaredIndividual).made(_individual), "a list of objects, [[individuals]] in TOML", each=True
        ).checked(_check_distinct)
    )
    secrets: tuple[Secret, ...] = key(
        list_of(
            declared(DeclaredSecret).made(lambda _, told, __: Secret(told.name, frozenset(told.attributes))),
            "a list of objects, [[secrets]] in TOML",
            each=True,
        ),
        default=(),
    )


def read_individuals(path: Path) -> AttributeQuestion:
    """Read and check a file of individuals, in TOML or JSON.

    Raises
    ------
    ConfigError
        Naming the file, the individual and what is wrong, such as a household that cannot exist; all at once.
    """
    return read_as(path, declared(AttributeQuestion))
