"""Full information reads the answers of only children: no share is moved to other queries than those it paid for."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from topdown_worlds import LEVELS, configuration, make_world, write_configuration, write_world

from yupana.cli.main import main
from yupana.confidential.request import RunRequest
from yupana.confidential.topdown.world import open_world
from yupana.progress import Stopwatch
from yupana.topdown.reading.configuration import read_configuration

QUERIES: dict[str, dict[str, str]] = {
    "US": {"detailed": "1"},
    "State": {"total": "9/10", "detailed": "1/10"},
    "County": {"total": "1/10", "detailed": "9/10"},
    "Tract": {"total": "1/2", "detailed": "1/2"},
    "Block_Group": {"total": "1/2", "detailed": "1/2"},
    "Block": {"detailed": "1"},
}
ALIKE = {level: {"total": "1/4", "detailed": "3/4"} for level in LEVELS}
SHARES = {"US": "1/10", "State": "4/10", "County": "4/10", "Tract": "1/20", "Block_Group": "1/40", "Block": "1/40"}


def one_county(folder: Path) -> Path:
    """One county of a few tracts, so that nation, state and county are the same blocks."""
    world = make_world(11, (2, 2), states=1)
    world.blocks = [block for block in world.blocks if block[2:5] == "001"]
    world.areas = [("9999", "00001", "00001")] * len(world.blocks)
    world.counts = {key: count for key, count in world.counts.items() if key[0] in world.blocks}
    return write_world(world, folder)


def document(queries: dict[str, dict[str, str]]) -> dict[str, Any]:
    return configuration((2, 2), rho="1", shares=SHARES, queries=queries, invariants={}, spine={"kind": "optimized"})


def variances(out: Path, level: str, query: str) -> list[float]:
    header, *lines = (out / f"intervals/{level}/{query}.csv").read_text().splitlines()
    at = header.split("|").index("variance")
    return [float(line.split("|")[at]) for line in lines]


@pytest.mark.thorough
def test_no_variance_of_a_release_is_above_that_without_a_bypass(tmp_path: Path) -> None:
    data = one_county(tmp_path / "data")
    config = write_configuration(document(QUERIES), tmp_path / "config.json")
    found = {}
    for kind in ("aian", "optimized"):
        out = tmp_path / kind
        options = ["--seed", "1", "--spine", kind, "--estimator", "full-information"]
        assert main(["topdown", "run", str(config), str(data), str(out), "--intervals", "none", *options]) == 0
        found[kind] = {
            (level, query): variances(out, level, query)[0]
            for level in ("US", "State", "County")
            for query in ("total", "detailed")
            if (out / f"intervals/{level}/{query}.csv").exists()
        }
    assert len(found["aian"]) == 6
    # The block groups differ, and say next to nothing of the county: 1/40 of the budget in each of many answers.
    for name, variance in found["optimized"].items():
        assert variance <= found["aian"][name] * 1.05, name


@pytest.mark.parametrize("alike", [False, True])
def test_units_are_bypassed_under_full_information_where_the_geolevel_below_asks_the_same(
    tmp_path: Path, *, alike: bool
) -> None:
    data = one_county(tmp_path / "data")
    queries = ALIKE if alike else QUERIES
    read = read_configuration(write_configuration(document(queries), tmp_path / "config.json"))
    clock = Stopwatch(lambda _: None)
    for estimator, expected in (("topdown", True), ("full-information", alike)):
        spine = open_world(read, data, RunRequest(estimator=estimator), clock).spine
        assert spine.levels[1].bypassed.all() == expected
        assert (spine.shares[spine.levels[0].share[0]] > Fraction(1, 10)) == expected


def test_queries_in_another_order_are_alike(tmp_path: Path) -> None:
    queries = ALIKE | {"State": {"detailed": "3/4", "a0": 0, "total": "1/4"}}
    read = read_configuration(write_configuration(document(queries), tmp_path / "config.json"))
    assert read.spine_for("full-information").unbypassed == ()
    assert read.asks_alike("US", "State")
    other = read_configuration(write_configuration(document(QUERIES), tmp_path / "other.json"))
    assert other.spine_for("full-information").unbypassed == ("US", "State", "County", "Block_Group")
    assert other.spine_for("topdown") == other.spine
