"""Questionnaires that are made of lines: no neighbours are farther apart than derived (tables-privacy.md, lemma 8)."""

import json
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from itertools import combinations_with_replacement
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from yupana.arrays import Ints
from yupana.confidential.described.records import forms_of, open_described
from yupana.confidential.described.tabulate import tabulate
from yupana.confidential.records.foreign_files import as_parquet
from yupana.errors import ConfigError
from yupana.files.columns import ColumnMap
from yupana.files.document import read_value
from yupana.products.described.description import Description
from yupana.products.described.plan import make_plan
from yupana.products.described.reading.description import parse

World = tuple[str, ...]
"""Lines: record type, area, number of the questionnaire, and what is said of the record."""

_LAYOUT = {
    "name": "TINY",
    "type_start": 1,
    "type_length": 1,
    "levels": [
        {
            "name": "QUEST",
            "ids": {
                "AREA": {"start": 2, "length": 1, "number": True},
                "NUMBER": {"start": 3, "length": 2, "number": True},
            },
            "records": {
                "PERSON": {"code": "P", "items": {"SEX": {"start": 5, "length": 1, "number": True}}},
                "HOUSING": {"code": "H", "items": {"TENURE": {"start": 5, "length": 1, "number": True}}},
            },
        }
    ],
}
_ABOVE = {"file": "QUEST", "column": "QUESTIONNAIRE"}
_OF_QUEST = {"key": "QUESTIONNAIRE", "columns": {"AREA": {"codes": ["1", "2"], "fixed": True}}}
_BY = {"overall": "1", "area": "1"}
_TABLES: dict[str, dict[str, Any]] = {
    "people": {"counts": "PERSON", "by": ["PERSON.SEX"], "budget": _BY},
    "people_limited": {"counts": "PERSON", "by": ["PERSON.SEX"], "limit": {"per": "QUEST", "most": 1}, "budget": _BY},
    "homes": {"counts": "HOUSING", "by": ["HOUSING.TENURE"], "budget": _BY},
    "homes_limited": {"counts": "HOUSING", "limit": {"per": "QUEST", "most": 1}, "budget": _BY},
    "questionnaires": {"counts": "QUEST", "budget": _BY},
    "of_area": {"counts": "QUEST", "where": {"QUEST.AREA": ["1"]}, "budget": {"overall": "1"}},
}


def _document(unit: str, tables: Sequence[str]) -> dict[str, Any]:
    quest = deepcopy(_OF_QUEST)
    if unit == "QUEST":
        del quest["columns"]["AREA"]["fixed"]  # type: ignore[attr-defined]
    return {
        "name": "tiny",
        "unit": unit,
        "dictionary": _LAYOUT,
        "files": {
            "QUEST": quest,
            "PERSON": {"parent": _ABOVE, "columns": {"SEX": {"codes": ["1", "2"]}}},
            "HOUSING": {"parent": _ABOVE, "columns": {"TENURE": {"codes": ["1", "2"]}}},
        },
        "areas": {"overall": {"code": "all"}, "area": {"column": "QUEST.AREA"}},
        "tables": {name: _TABLES[name] for name in tables},
    }


def _described(unit: str, tables: Sequence[str], *, check: bool) -> Description:
    faults: list[str] = []
    found = parse(read_value(json.dumps(_document(unit, tables)), faults), Path(), faults, check=check)
    if found is None:
        raise ConfigError("; ".join(faults))
    return found


def _counted(description: Description, world: World) -> Mapping[str, Ints]:
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "tiny.dat").write_text("".join(f"{line}\n" for line in world))
        with (
            as_parquet(folder, forms_of(description, ColumnMap()), None) as place,
            open_described(description, place, None, ColumnMap()) as records,
        ):
            records.require_valid()
            return tabulate(records.db, description, limited=True).by_level


def _units(world: World, unit: str) -> Iterator[World]:
    """The lines of each unit."""
    if unit == "QUEST":
        for ids in sorted({line[1:4] for line in world}):
            yield tuple(line for line in world if line[1:4] == ids)
        return
    for line in sorted(set(world)):
        if line[0] == unit[0]:
            yield (line,)


def _without(world: World, lines: World) -> World:
    left = list(world)
    for line in lines:
        left.remove(line)
    return tuple(left)


def _search(lines: Sequence[str], most: int) -> dict[str, set[tuple[str, str]]]:
    """All neighbours among the files of so many lines; by unit the measurements that are as far apart as is derived."""
    worlds = [world for number in range(1, most + 1) for world in combinations_with_replacement(sorted(lines), number)]
    every = _described("PERSON", list(_TABLES), check=False)
    counts = {world: _counted(every, world) for world in worlds}
    attained: dict[str, set[tuple[str, str]]] = {}
    for unit in ("PERSON", "HOUSING", "QUEST"):
        proven = {}
        for table in _TABLES:
            try:
                plan = make_plan(_described(unit, [table], check=True))
            except ConfigError:
                continue
            proven |= {m.name: m.proven for m in plan.measurements}
        above: dict[World, list[World]] = {}
        for world in worlds:
            for gone in _units(world, unit):
                above.setdefault(_without(world, gone), []).append(world)
        attained[unit] = set()
        for less, more in above.items():
            pairs = [(less, world, "unbounded") for world in more if less in counts]
            pairs += [(one, other, "bounded") for one in more for other in more]
            for one, other, kind in pairs:
                for name, of in proven.items():
                    far = int((abs(counts[one][name] - counts[other][name]) ** 2).sum())
                    assert far <= getattr(of, kind), (unit, name, kind, one, other)
                    if far == getattr(of, kind):
                        attained[unit].add((name, kind))
    return attained


_LINES = ("P1011", "P1012", "P1021", "P2011", "H1011", "H2011")


@pytest.mark.slow
def test_no_neighbours_are_farther_apart_than_derived() -> None:
    attained = _search(_LINES[:5], 2)
    # A questionnaire comes and goes with its first and last line, whoever is protected.
    for unit in attained:
        assert ("questionnaires/overall", "unbounded") in attained[unit]
    assert ("people/overall", "bounded") in attained["PERSON"]


@pytest.mark.thorough
def test_of_more_lines_no_neighbours_are_farther_apart_than_derived() -> None:
    attained = _search(_LINES, 3)
    assert ("people_limited/area", "bounded") in attained["QUEST"]


def test_where_questionnaires_are_made_of_one_record_type_none_is_without_a_record() -> None:
    """So the bound for one replaced by another, which one without records would attain, is told as a bound alone."""
    document = _document("QUEST", ["people_limited"])
    both = parse(read_value(json.dumps(document), []), Path(), [])
    del document["dictionary"]["levels"][0]["records"]["HOUSING"], document["files"]["HOUSING"]
    alone = parse(read_value(json.dumps(document), []), Path(), [])
    assert both
    assert alone
    assert both.files["QUEST"].lines_of == ("PERSON", "HOUSING")
    assert alone.files["QUEST"].lines_of == ("PERSON",)
