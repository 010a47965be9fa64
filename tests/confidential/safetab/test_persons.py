"""What SafeTab-P alone has to show, against a tabulator written from its specification (`safetab_oracle`)."""

import dataclasses
import json
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest
from safetab_oracle import (
    NATIONAL,
    T1,
    T2,
    check_p,
    check_plan,
    expected_p,
    levels_of,
    published_regions,
)
from safetab_runs import PRODUCTION, needs_public_files, publish
from safetab_worlds import (
    FORMS,
    US_TYPES,
    Block,
    Config,
    Person,
    World,
    an_iteration,
    block_id,
    random_world,
    read_world,
    seeded,
    write_data,
    write_parameters,
)

from yupana.cli.main import main

# --- the tabulator itself -------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_worlds_reach_every_table_and_kind_of_iteration() -> None:
    # Otherwise agreement below would mean little.
    rows: Counter[str] = Counter()
    kinds: Counter[tuple[bool, bool | None, bool | None, bool | None]] = Counter()
    for seed in range(len(FORMS)):
        world = random_world(seeded(seed))
        iterations = {i.code: i for i in world.iterations}
        for region_type, level in levels_of(world):
            for name, table in expected_p(world, region_type, level).items():
                rows[name] += sum(row.count > 0 for row in table.values())
                for key, row in table.items():
                    i = iterations[key[2]]
                    kinds[region_type in NATIONAL, i.alone, i.detailed_only, i.coarse_only] += row.count
    assert min(rows[name] for name in (T1, *T2)) > 100
    flags = {True: ((False, False), (True, False)), False: ((False, False), (False, True))}
    due = {(n, alone, *f) for n in (True, False) for alone in (True, False, None) for f in flags[n]}
    assert kinds.keys() == due
    assert min(kinds.values()) > 5


@pytest.mark.parametrize("seed", range(4))
def test_worlds_read_back_as_they_were_written(tmp_path: Path, seed: int) -> None:
    world = random_world(seeded(seed))
    form = FORMS[("plain", "crlf", "blank lines", "comma")[seed]]
    parameters = write_parameters(tmp_path / "p", world, dataclasses.replace(form, extra_columns=False))
    data = write_data(tmp_path / "d", world, dataclasses.replace(form, extra_columns=False))
    again = read_world(parameters, data)
    world.iterations.sort(key=lambda i: i.alone is None)
    again.config.p = {key: world.config.p[key] for key in again.config.p}  # 25.0 is read where 25 was written
    again.config.h = {key: world.config.h[key] for key in again.config.h}
    assert again == world


# --- tables without noise ---------------------------------------------------------------------------------------------


def small_world() -> World:
    """Two tracts, one a campus without housing units; one code, one iteration of each kind."""
    blocks = [
        Block("01", "001", "000100", "1000", "12345", "9999"),
        Block("01", "001", "000200", "2000", "54321", "0001"),
    ]
    iterations = [an_iteration("0011", 1, "alone"), an_iteration("0022", 2, "any")]
    config = Config(runs=("us",), states=("01",)).budgets("Infinity").thresholds((2, 3, 4), 2)
    world = World(["1000", "9950"], iterations, [("0011", "1000"), ("0022", "1000")], blocks, [], [], [], None, config)
    world.persons = [
        Person("19", sex, "False", *block[:4], "01", "1000", *["Null"] * 7, "9950")  # type: ignore[call-arg]
        for block, number in zip(blocks, (1, 3), strict=True)
        for sex in "12" * number
    ]
    return world


@pytest.mark.thorough
def test_an_area_without_housing_units_is_not_published_but_its_people_count_elsewhere(tmp_path: Path) -> None:
    world = small_world()
    world.housing_units = {block_id(world.blocks[0]): 7, block_id(world.blocks[1]): 0}
    tables = publish("safetab-p", world, tmp_path)
    check_p(world, tables)
    assert tables[T1]["COUNTY", "01001", "0022"].count == 8
    assert {key[1] for key in tables[T1] if key[0] in {"TRACT", "PLACE", "AIANNH"}} == {"01001000100", "0112345"}
    assert published_regions(world)["TRACT"] == {"01001000100"}


@pytest.mark.thorough
def test_a_block_that_the_list_of_housing_units_leaves_out_has_none(tmp_path: Path) -> None:
    world = small_world()
    world.housing_units = {block_id(world.blocks[0]): 7}
    check_p(world, publish("safetab-p", world, tmp_path))


@pytest.mark.parametrize("thresholds", [(1, 8, 8), (9, 9, 9), (0, 0, 0)])
@pytest.mark.thorough
def test_a_count_at_a_threshold_has_reached_it(tmp_path: Path, thresholds: tuple[int, ...]) -> None:
    world = small_world()
    world.config.thresholds(thresholds, 1)
    tables = publish("safetab-p", world, tmp_path)
    check_p(world, tables)
    reached = [n for n, t in enumerate(thresholds, start=1) if t <= 8]
    assert bool(reached) == any(key[:2] == ("USA", "1") for name in T2 for key in tables[name])
    if reached:
        assert ("USA", "1", "0011", "*", "*", "1") in tables[T2[max(reached) - 1]]


@pytest.mark.parametrize(("chance", "kept"), [(None, True), ("0.0", True), ("1e-9", False)])
@pytest.mark.slow
def test_zeros_below_the_state_without_noise(tmp_path: Path, chance: str | None, kept: bool) -> None:  # noqa: FBT001
    world = small_world()
    world.iterations.append(an_iteration("0033", 2, "alone"))
    world.config.zero_suppression = chance
    tables = publish("safetab-p", world, tmp_path)
    check_p(world, tables)
    zeros = {key[0] for key, row in tables[T1].items() if row.count == 0}
    assert {"USA", "STATE"} <= zeros
    assert ("TRACT" in zeros) is kept


@pytest.mark.slow
def test_thresholds_of_the_run_alone_suffice(tmp_path: Path) -> None:
    world = small_world()
    document = world.config.document("p", types=US_TYPES)
    check_p(world, publish("safetab-p", world, tmp_path, document=document))


def test_a_pass_whose_budgets_are_zero_leaves_headers_alone(tmp_path: Path) -> None:
    world = small_world()
    world.config.budgets("0")
    world.config.p["PR-STATE", 1] = "1"  # some budget must be positive, and this one is never spent
    world.config.p["AIANNH", 1] = "Infinity"
    world.blocks[1] = world.blocks[1]._replace(AIANNHCE="9999")
    assert not any(publish("safetab-p", world, tmp_path).values())


# --- plans ------------------------------------------------------------------------------------------------------------


@needs_public_files
@pytest.mark.thorough
def test_the_plan_of_2020(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["safetab-p", "plan", str(PRODUCTION["safetab-p"]), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    check_plan(read_world(PRODUCTION["safetab-p"], Path("none")), "safetab-p", answer)
    passes = answer["totals"]["passes"]
    assert Fraction(passes["us"]["rho"]) == Fraction("4.944")
    assert Fraction(passes["pr"]["rho"]) == Fraction("2.643")
    assert {m["l2_sensitivity_squared"] for m in answer["measurements"]} == {"9"}
