"""Hierarchies of a description: the kinds of areas that one table of units and parents makes, and its faults."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from area_worlds import Country, make_country

from yupana.products.described.description import Description
from yupana.products.described.reading.description import parse


def document(country: Country, **hierarchy: Any) -> dict[str, Any]:  # noqa: ANN401
    told = {"column": "farms.place", "levels": country.levels, "of": dict(country.parent)} | hierarchy
    return {
        "name": "farms",
        "unit": "farms",
        "files": {"farms": {"columns": {"place": {"codes": list(country.blocks)}}}},
        "hierarchies": {"h": told},
        "tables": {"farms_total": {"counts": "farms", "budget": {country.levels[-1]: "1"}}},
    }


def read(told: dict[str, Any], folder: Path = Path()) -> tuple[Description | None, list[str]]:
    faults: list[str] = []
    return parse(told, folder, faults), faults


@pytest.mark.parametrize("seed", range(4))
def test_kinds_are_those_of_the_parents_walked_up(seed: int) -> None:
    country = make_country(seed, 2 + seed)
    found, faults = read(document(country))
    assert found is not None, faults
    assert sorted(found.areas) == sorted(country.levels)
    for steps, level in enumerate(reversed(country.levels)):
        kind = found.areas[level]
        for word, places in zip(
            country.blocks, kind.of if kind.columns else ((0,),) * len(country.blocks), strict=True
        ):
            unit = word
            for _ in range(steps):
                unit = country.parent[unit]
            assert [kind.codes[place] for place in places] == [unit]
    again, faults = read(deepcopy(dict(found.document)))
    assert again == found, faults


def test_the_codes_of_a_column_are_the_units_that_nothing_lies_in(tmp_path: Path) -> None:
    country = make_country(2, 4)
    rows = [f"{unit},{above}" for unit, above in country.parent.items()]
    (tmp_path / "units.csv").write_text("\n".join(["UNIT,PARENT", *rows, ""]), encoding="utf-8")
    told = document(country, of={"file": "units.csv", "code": "UNIT", "area": "PARENT"})
    told["files"]["farms"]["columns"]["place"]["codes"] = {"file": "units.csv", "code": "UNIT", "parent": "PARENT"}
    found, faults = read(told, tmp_path)
    assert found is not None, faults
    assert sorted(found.files["farms"].columns["place"].column.words) == sorted(country.blocks)


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"column": "farms.plaice"}, "hierarchies.h.column: 'farms.plaice' is no column"),
        ({"levels": []}, "hierarchies.h.levels: must be a list"),
        ({"levels": [["a"], 3]}, "hierarchies.h.levels: must be a list of kinds of areas"),
        ({"levels": ["a", "b"]}, "are not 1 steps below the root"),
        ({"of": {"a": "b", "b": "a"}}, "is a circle"),
        (
            {"of": "units.csv"},
            "h.of: must be a table of file, code, area, encoding, or a table of codes and areas",
        ),
        ({"of": {"x": "y"}, "levels": ["all", "one"]}, "are no unit of one, such as"),
    ],
)
def test_faults_of_a_hierarchy_are_named(changed: dict[str, Any], fault: str) -> None:
    found, faults = read(document(make_country(2, 3), **changed))
    assert found is None
    assert any(fault in one for one in faults), faults
