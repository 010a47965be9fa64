"""Names and levels of a description that would stand for two things, and levels that hold nothing, are faults."""

from copy import deepcopy
from pathlib import Path
from typing import Any

from yupana.products.described.reading.description import parse

PEOPLE: dict[str, Any] = {
    "name": "people",
    "unit": "persons",
    "files": {
        "homes": {"key": "id", "columns": {"where": {"codes": ["N", "S"], "fixed": True}}},
        "persons": {"parent": {"file": "homes", "column": "home"}, "columns": {"sex": {"codes": ["m", "f"]}}},
    },
    "areas": {"side": {"column": "homes.where"}, "all": {}},
    "groups": {"m": {"where": {"persons.sex": "m"}}},
    "levels": {"side-by-sex": {"areas": "side", "groups": ["*", "m"]}, "men": {"areas": "all", "groups": ["m"]}},
    "tables": {"sexes": {"counts": "persons", "by": ["persons.sex"], "budget": {"side": "1"}}},
}


def faults(**changes: object) -> list[str]:
    """What is wrong with the description after some changes, each of a key by the keys above it, joined by two _."""
    document = deepcopy(PEOPLE)
    for place, value in changes.items():
        *above, last = place.split("__")
        table = document
        for key in above:
            table = table[key]
        table[last] = value
    found: list[str] = []
    parse(document, Path(), found)
    return found


def test_the_description_itself_has_none() -> None:
    assert faults() == []


def test_two_levels_of_a_table_must_not_publish_one_group() -> None:
    budget = {"side": "1", "side-by-sex": "1"}
    assert faults(tables__sexes__budget=budget) == [
        "tables.sexes.budget: levels side and side-by-sex both publish group * of side; "
        "a group of areas goes with one level alone",
    ]


def test_a_level_must_hold_a_group_that_records_can_be_of() -> None:
    women = {"counts": "persons", "where": {"persons.sex": "f"}, "budget": {"men": "1"}}
    assert faults(tables__women=women) == [
        "tables.women.budget: men is a level whose groups no record of the table can be of",
    ]


def test_names_must_not_differ_by_case_alone() -> None:
    files = PEOPLE["files"]
    assert faults(files={**files, "Homes": files["homes"]}) == [
        "files: homes and Homes are names of one file; give one another name"
    ]
    persons = {**files["persons"], "key": "Home"}
    assert faults(files__persons=persons) == [
        "files.persons: key and parent.column differ by upper and lower case alone"
    ]


def test_a_key_is_the_name_of_a_column() -> None:
    for key in ('a"b', "a\nb", " "):
        assert any("files.homes" in fault for fault in faults(files__homes__key=key)), key
