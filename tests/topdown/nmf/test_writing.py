"""What a run writes as noisy measurement files, against its own tables and the lists it was given."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from area_worlds import country_configuration, make_country, write_country
from measurement_files import rows_of
from topdown_worlds import LEVELS, World, configuration, make_world, write_configuration, write_world

from yupana.cli.main import main

SHAPE = (8, 2, 3)
GROUPS = [[0], [1, 2, 3, 4], [5, 6, 7]]
QUERIES = {"total": "1/4", "three*a2": "1/4", "detailed": "1/2"}
WIDTHS = {"State": 3, "County": 9, "Tract": 13, "Block_Group": 15, "Block": 31}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, World]:
    """A run on an optimized spine with AIAN areas, its measurements in both layouts."""
    place = tmp_path_factory.mktemp("written")
    world = make_world(3, SHAPE, quarters=True)
    write_world(world, place / "data", quarters=True)
    document = configuration(
        SHAPE,
        rho="2",
        recodes={"three": {"of": "a0", "groups": GROUPS}},
        constraints={"group_quarters": "a0"},
        queries=dict.fromkeys(LEVELS, QUERIES),
        invariants={"US": ["total"], "State": ["total"]},
        spine={"kind": "optimized"},
    )
    config = write_configuration(document, place / "config.json")
    tables, files = ["--noisy-measurements", str(place / "tables")], ["--nmf", str(place / "nmf")]
    run = ["topdown", "run", str(config), str(place / "data"), str(place / "out"), "--seed", "3"]
    assert main([*run, *tables, *files]) == 0
    assert main(["check", str(place / "nmf")]) == 0
    return place, world


def _table(path: Path) -> list[list[str]]:
    with path.open() as file:
        return list(csv.reader(file, delimiter="|"))[1:]


@pytest.mark.thorough
def test_rows_are_the_measurements_of_the_run(written: tuple[Path, World]) -> None:
    place, _ = written
    names = {"total_dpq": "total", "three * a2_dpq": "three.a2", "detailed_dpq": "detailed"}
    axes = {
        "total": (["*", "*", "*"], [1, 1, 1]),
        "three.a2": (["three", "*", "a2"], [3, 1, 3]),
        "detailed": (["detailed"] * 3, [8, 2, 3]),
    }
    for level in LEVELS:
        found: dict[str, list[Any]] = {name: [] for name in names.values()}
        for row in rows_of(place / "nmf" / "US_example", level, "DPQuery"):
            name = names[row["query_name"]]
            assert ([row["a0"], row["a1"], row["a2"]], row["query_shape"]) == axes[name]
            assert row["State"] == (row["geocode"][:3] if level != "US" else "")
            assert "sign" not in row
            found[name] += [(value, row["variance"]) for value in row["value"]]
        for name, values in found.items():
            # Both lie in the order of the spine; what a bypass gave up is in neither.
            told = [(int(value), np.float32(v)) for *_, value, v in _table(place / "tables" / level / f"{name}.csv")]
            assert values == told


@pytest.mark.slow
def test_geocodes_nest_and_end_with_their_blocks(written: tuple[Path, World]) -> None:
    place, world = written
    units = {
        level: {row["geocode"] for row in rows_of(place / "nmf" / "US_example", level, "Constraint")}
        for level in WIDTHS
    }
    for level, width in WIDTHS.items():
        assert {len(code) for code in units[level]} == {width}
        assert {code[:width] for code in units["Block"]} == units[level]
    assert sorted(code[-16:] for code in units["Block"]) == sorted(world.blocks)
    side = {block: area[0] != "9999" for block, area in zip(world.blocks, world.areas, strict=True)}
    for code in units["Block"]:
        block = code[-16:]
        assert code[:3] == f"{int(side[block])}{block[:2]}"
        assert code[3:8] == f"10{block[2:5]}"
    measured = {row["geocode"] for row in rows_of(place / "nmf" / "US_example", "Block", "DPQuery")}
    assert measured < units["Block"]  # some were bypassed


@pytest.mark.slow
def test_constraints_are_of_every_geounit(written: tuple[Path, World]) -> None:
    place, world = written
    totals = sum(world.counts.values())
    for level in LEVELS:
        rows = {(r["geocode"], r["query_name"]): r for r in rows_of(place / "nmf" / "US_example", level, "Constraint")}
        units = {code for code, _ in rows}
        expected = ["hhgq_total_lb_con", "hhgq_total_ub_con", *(["total_con"] if level == "US" else [])]
        assert set(rows) == {(code, name) for code in units for name in expected}
        for code in units:
            block_codes = {r["geocode"] for r in rows_of(place / "nmf" / "US_example", "Block", "Constraint")}
            inside = [b[-16:] for b in block_codes if level == "US" or b.startswith(code)]
            there = np.array([world.facilities[block] for block in inside]).sum(axis=0)
            low, high = (rows[code, name] for name in expected[:2])
            assert low["value"] == [0, *there[1:]]
            assert high["value"] == list(there * 99_999)
            assert (low["sign"], high["sign"], low["variance"]) == (">=", "<=", 0)
            assert (low["a0"], low["a1"], low["a2"], low["query_shape"]) == ("a0", "*", "*", [8, 1, 1])
    (nation,) = [r for r in rows_of(place / "nmf" / "US_example", "US", "Constraint") if r["query_name"] == "total_con"]
    assert (nation["sign"], nation["value"]) == ("=", [totals])


def test_areas_of_any_codes_have_no_geocodes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    country = make_country(1, 2)
    write_country(country, tmp_path)
    config = write_configuration(country_configuration(country, rho="1"), tmp_path / "config.json")
    run = ["topdown", "run", str(config), str(tmp_path / "data"), str(tmp_path / "out"), "--seed", "1"]
    assert main([*run, "--nmf", str(tmp_path / "nmf")]) == 2
    assert "areas of its own" in capsys.readouterr().err
    assert not (tmp_path / "nmf").exists()
