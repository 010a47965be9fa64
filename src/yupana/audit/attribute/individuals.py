"""The file that names individuals, their households and their secrets (docs/attribute-loss.md)."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from yupana.audit.attribute.households import Individual, Person, faults_of, reason_against, recoded, unit_record
from yupana.audit.attribute.loss import ATTRIBUTES, Secret
from yupana.files.document import check_keys, read_document, refuse

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

_SEXES: Final = {"male": 1, "female": 2}
_PERSON: Final = ("sex", "age", "race", "ethnicity", "relation")
_INDIVIDUAL: Final = (*_PERSON, "size", "household_type", "tenure", "members")

_DOMAINS: Final[Mapping[str, tuple[range, str]]] = {
    "sex": (range(1, 3), "male or female"),
    "age": (range(116), "a whole number from 0 to 115"),
    "race": (range(1, 64), "a code of CENRACE, 01 to 63"),
    "ethnicity": (range(1, 3), "a code of CENHISP: 1 for not Hispanic, 2 for Hispanic"),
    "relation": (range(20, 39), "a code of RELSHIP, 20 to 36, or a word such as 'biological child'"),
    "size": (range(1, 100_000), "a whole number above 0"),
    "household_type": (range(1, 13), "a code of HHT2, 01 to 12"),
    "tenure": (range(1, 5), "a code of TEN, 1 to 4"),
}


@dataclass(frozen=True, slots=True)
class AttributeQuestion:
    """Whose secrets are to be priced; no secrets are those of the slides."""

    individuals: tuple[Individual, ...]
    secrets: tuple[Secret, ...]


def read_individuals(path: Path) -> AttributeQuestion:
    """Read and check a file of individuals, in TOML or JSON.

    Raises
    ------
    ConfigError
        Naming the file, the individual and what is wrong, such as a household that cannot exist; all at once.
    """
    document, faults = read_document(path)
    if not isinstance(document, dict):
        raise refuse(path, [*faults, "the top level must be an object with the list 'individuals'"])
    check_keys("", document, ("individuals",), faults, optional=("secrets",))
    individuals = [
        individual
        for place, entry in _entries(document, "individuals", faults)
        if (individual := _individual(place, entry, faults))
    ]
    secrets = [
        secret for place, entry in _entries(document, "secrets", faults) if (secret := _secret(place, entry, faults))
    ]
    names = [individual.name for individual in individuals]
    faults += [f"individuals: {name!r} is named twice" for name in dict.fromkeys(names) if names.count(name) > 1]
    if faults:
        raise refuse(path, faults)
    return AttributeQuestion(tuple(individuals), tuple(secrets))


def _entries(document: Mapping[str, Any], key: str, faults: list[str]) -> list[tuple[str, dict[str, Any]]]:
    """The objects of a list, each with its place; what is no list of objects is a fault."""
    value = document.get(key, [])
    if (
        not isinstance(value, list)
        or not all(isinstance(entry, dict) for entry in value)
        or (key in document and not value)
    ):
        faults.append(f"{key}: must be a list of objects, [[{key}]] in TOML")
        return []
    found = []
    for number, entry in enumerate(value, 1):
        name = entry.get("name")
        if not isinstance(name, str) or not name.strip():
            faults.append(f"{key} number {number}: name must be a text")
        else:
            found.append((f"{key} {name!r}", entry))
    return found


def _secret(place: str, entry: dict[str, Any], faults: list[str]) -> Secret | None:
    check_keys(place, entry, ("name", "attributes"), faults)
    attributes = entry.get("attributes")
    known = ", ".join(ATTRIBUTES)
    if not isinstance(attributes, list) or not attributes or not all(a in ATTRIBUTES for a in attributes):
        faults.append(f"{place}: attributes must be a list of some of {known}")
        return None
    return Secret(entry["name"], frozenset(attributes))


def _individual(place: str, entry: dict[str, Any], faults: list[str]) -> Individual | None:
    before = len(faults)
    check_keys(place, entry, ("name", "age", "relation"), faults, optional=_INDIVIDUAL)
    told = _numbers(place, entry, _INDIVIDUAL[:-1], faults)
    members = None
    if "members" in entry:
        members = _members(place, entry["members"], faults)
        faults += [
            f"{place}: {key} is needed where members are given"
            for key in ("sex", "race", "ethnicity")
            if key not in told
        ]
        faults += [
            f"{place}: {key} follows from members; leave it out" for key in ("size", "household_type") if key in told
        ]
    else:
        faults += [
            f"{place}: {key} is missing; give size and household_type, or all members"
            for key in ("size", "household_type")
            if key not in entry
        ]
    if len(faults) > before:
        return None
    if members is None:
        individual = Individual(
            name=entry["name"],
            age=told["age"],
            relation=told["relation"],
            size=told["size"],
            type=told["household_type"],
            sex=told.get("sex"),
            race=told.get("race"),
            ethnicity=told.get("ethnicity"),
            tenure=told.get("tenure"),
        )
        reason = reason_against(individual)
    else:
        own = Person(**{key: told[key] for key in _PERSON})
        people = recoded((*members, own))
        reason = next(iter(faults_of(people)), None)
        individual = Individual(
            name=entry["name"],
            age=own.age,
            relation=people[-1].relation,
            size=len(people),
            type=0 if reason else dict(unit_record(people, 1))["HHT2"],
            sex=own.sex,
            race=own.race,
            ethnicity=own.ethnicity,
            tenure=told.get("tenure"),
            others=people[:-1],
        )
    if reason:
        faults.append(f"{place}: this household cannot exist: {reason}")
        return None
    return individual


def _members(place: str, value: object, faults: list[str]) -> tuple[Person, ...]:
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        faults.append(f"{place}: members must be a list of objects, one for every other member")
        return ()
    people = []
    for number, entry in enumerate(value, 1):
        where = f"{place}, member {number}"
        before = len(faults)
        check_keys(where, entry, _PERSON, faults)
        told = _numbers(where, entry, _PERSON, faults)
        if len(faults) == before:
            people.append(Person(**told))
    return tuple(people)


def _numbers(place: str, entry: Mapping[str, Any], keys: tuple[str, ...], faults: list[str]) -> dict[str, int]:
    """The codes among the values of an entry, as numbers."""
    words = {"sex": _SEXES, "relation": RELATIONS}
    found = {}
    for key in keys:
        if key not in entry or key == "name":
            continue
        value, (domain, saying) = entry[key], _DOMAINS[key]
        number = words.get(key, {}).get(value) if isinstance(value, str) else None
        if number is None and isinstance(value, str) and value.isdecimal():
            number = int(value)
        if number is None or number not in domain:
            faults.append(f"{place}: {key} must be {saying}")
        else:
            found[key] = number
    return found
