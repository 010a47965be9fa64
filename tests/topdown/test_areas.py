"""The table of areas of a configuration: each fault is named, and what is read is written back."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from area_worlds import country_configuration, make_country

from yupana.errors import ConfigError
from yupana.geography.hierarchy import hierarchy_of, spine_of
from yupana.geography.spine import check_spine
from yupana.topdown.configuration import Configuration
from yupana.topdown.reading.configuration import configuration_document, read_configuration

GOOD = {"LX": [], "N": "LX", "S": "LX", "n1": "N", "n2": "N", "s1": "S"}
LEVELS = ["country", "canton", "commune"]


def document(of: object, levels: object = LEVELS, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    names = [str(level) for level in levels] if isinstance(levels, list) else LEVELS
    return {
        "product": "x",
        "rho": 1,
        "areas": {"levels": levels, "of": of},
        "schema": {"sex": 2},
        "shares": dict.fromkeys(names, f"1/{len(names)}"),
        "queries": {name: {"detailed": 1} for name in names},
        **more,
    }


def read(tmp_path: Path, told: dict[str, Any]) -> Configuration:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(told))
    return read_configuration(path)


@pytest.mark.parametrize(
    ("told", "faults"),
    [
        (document(GOOD | {"n1": ["N", "S"]}), ["'n1' is in several units; a unit has one parent"]),
        (document(GOOD | {"LX": "n1"}), ["'LX > n1 > N > LX' is a circle, which no root reaches"]),
        (document(GOOD | {"a": "b", "b": "a"}), ["'a > b > a' is a circle, which no root reaches"]),
        (document(GOOD | {"z": "Q"}), ["'LX', 'Q' are each in no other unit; there is one root"]),
        (document(GOOD | {"T": "LX"}), ["1 units that hold no other are not 2 steps below the root", "'T' (1)"]),
        (document(GOOD | {"s2": "s1"}), ["'s2' (3)"]),
        (document(GOOD | {"a|b": "N"}), ["'a|b' is no code of a unit"]),
        (document({}), ["areas.of: has no unit"]),
        (document({"file": "units.csv", "code": "UNIT", "area": "UP"}), ["units.csv, line 1: no column UP"]),
        (document({"file": "nowhere.csv", "code": "UNIT", "area": "UP"}), ["No such file"]),
        (document({"file": "twice.csv", "code": "UNIT", "area": "PARENT"}), ["'n1' is in several units"]),
        (document(GOOD, ["country", "Country", "b"]), ["'Country' is named twice"]),
        (document(GOOD, ["block", "canton", "b"]), ["only the last may be called block"]),
        (document(GOOD, ["a/b", "canton", "b"]), ["'a/b' must be a word: letters"]),
        (document(GOOD, []), ["areas.levels: must be a list of geolevels"]),
        (document(GOOD, spine={"kind": "optimized"}), ["spine: is built of the Census Bureau's blocks"]),
        (
            document(GOOD, constraints={"group_quarters": "sex"}),
            ["constraints.group_quarters: reads facilities of the Census Bureau's blocks"],
        ),
        (
            document(GOOD | {"T": "LX"}, shares={"country": "1/2", "canton": "1/2", "communes": 0}),
            ["'T' (1)", "'communes' is no geolevel; there are country, canton, commune", "shares: commune is missing"],
        ),
    ],
)
def test_every_fault_of_areas_is_named(tmp_path: Path, told: dict[str, Any], faults: list[str]) -> None:
    (tmp_path / "units.csv").write_text("UNIT,PARENT\nn1,N\n")
    (tmp_path / "twice.csv").write_text("UNIT,PARENT\nN,LX\nS,LX\nn1,N\ns1,S\nn1,S\n")
    with pytest.raises(ConfigError) as error:
        read(tmp_path, told)
    for fault in faults:
        assert fault in str(error.value)


@pytest.mark.parametrize("seed", range(5))
def test_what_is_read_is_written_back(tmp_path: Path, seed: int) -> None:
    country = make_country(seed, 1 + seed)
    told = country_configuration(country)
    told["areas"]["of"] = dict(country.parent) or {country.blocks[0]: []}
    found = read(tmp_path, told)
    (tmp_path / "again").mkdir()
    assert read(tmp_path / "again", configuration_document(found)) == found
    assert found.areas is not None
    assert found.areas.blocks == tuple(sorted(country.blocks))


def test_every_table_of_four_units_is_a_tree_or_has_a_fault() -> None:
    """Of all tables of four units, those that are a tree of three levels are read, and no other."""
    units = "abcd"
    read_as_tree = 0
    for number in range(5**4):
        choice = [number // 5**i % 5 for i in range(4)]
        pairs = {unit: [units[c]] if c < 4 else [] for unit, c in zip(units, choice, strict=True)}
        faults: list[str] = []
        found = hierarchy_of("of", LEVELS, pairs, faults)
        assert (found is None) == bool(faults)
        assert (found is not None) == _is_tree(pairs)
        read_as_tree += found is not None
    # A root, and below it either a chain that forks once, or two that meet nowhere: 4 * 3 of the first.
    assert read_as_tree == 12


def _is_tree(pairs: dict[str, list[str]]) -> bool:
    """Whether one unit has no parent and every unit without children is two steps below it, by walking."""
    if sum(not of for of in pairs.values()) != 1:
        return False
    for unit in pairs:
        if any(unit in of for of in pairs.values()):
            continue
        steps, here = 0, unit
        while pairs[here] and steps < 5:
            here, steps = pairs[here][0], steps + 1
        if steps != 2:
            return False
    return all(_reaches_a_root(pairs, unit) for unit in pairs)


def _reaches_a_root(pairs: dict[str, list[str]], unit: str) -> bool:
    for _ in range(len(pairs)):
        unit = pairs[unit][0] if pairs[unit] else unit
    return not pairs[unit]


def test_the_spine_of_a_hierarchy_holds_together() -> None:
    found = hierarchy_of("of", LEVELS, {u: [of] if isinstance(of, str) else [] for u, of in GOOD.items()}, [])
    assert found is not None
    spine = spine_of(found, [Fraction(1, 3)] * 3)
    assert not check_spine(spine, np.arange(3))
    assert spine.levels[-1].labels() == ["n1", "n2", "s1"]
