"""What SafeTab-H alone has to show, against a tabulator written from its specification (`safetab_oracle`)."""

import json
import shutil
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from safetab_oracle import (
    T1,
    T3,
    T4,
    Noise,
    Row,
    check_h,
    check_p,
    check_plan,
    counted,
    expected_h,
    expected_p,
    levels_of,
    margin,
    noise_for,
    type_and_tenure,
)
from safetab_runs import PRODUCTION, PUBLIC, needs_public_files, publish, released
from safetab_worlds import (
    FAMILIES,
    FORMS,
    NAMES,
    US_TYPES,
    Block,
    Config,
    Household,
    Total,
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


def test_the_worlds_reach_every_table_and_cell() -> None:
    # Otherwise agreement below would mean little.
    reached: Counter[tuple[str, str]] = Counter()
    for seed in range(len(FORMS)):
        world = random_world(seeded(seed))
        for region_type, level in levels_of(world):
            counts = counted(world, world.households, type_and_tenure, region_type, level)
            for family in FAMILIES:
                noise = noise_for(world, region_type, level, "Infinity")
                for name, rows in expected_h(world, region_type, level, family, counts, noise).items():
                    for key, row in rows.items():
                        reached[name, key[3]] += row.count
    due = {"T03001": "0", "T03002": "016", "T03003": "0123678", "T03004": "012345678", "T04001": "0", "T04002": "0123"}
    assert reached.keys() == {(name, cell) for name, cells in due.items() for cell in cells}
    assert min(reached.values()) > 50


# --- tables without noise ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [600, 601])
@pytest.mark.thorough
def test_the_totals_of_safetab_p_feed_safetab_h(tmp_path: Path, seed: int) -> None:
    world = random_world(seeded(seed))
    world.config.zero_suppression = "0.5"
    parameters = write_parameters(tmp_path / "parameters", world)
    data = write_data(tmp_path / "data", world, FORMS["crlf"])
    (data / NAMES["totals"]).unlink()
    first = released("safetab-p", parameters, data, tmp_path / "p")
    check_p(world, first)
    totals = tmp_path / "p" / f"{T1}.csv"
    world.totals = [Total(key[1], key[0], key[2], str(row.count)) for key, row in first[T1].items()]
    check_h(world, released("safetab-h", parameters, data, tmp_path / "h", "--totals", str(totals)))
    # And so they are what the tabulator makes of the persons.
    due: dict[tuple[str, ...], Row] = {}
    for region_type, level in levels_of(world):
        if world.config.p[region_type, level] != "0":
            due |= expected_p(world, region_type, level)[T1]
    assert {(t.REGION_TYPE, t.REGION_ID, t.ITERATION_CODE): int(t.COUNT) for t in world.totals} == {
        key: row.count for key, row in due.items()
    }


def small_world(*counts: str) -> World:
    """Eight households of one code in two tracts, and totals of one iteration in both."""
    blocks = [
        Block("01", "001", "000100", "1000", "12345", "9999"),
        Block("01", "001", "000200", "2000", "54321", "0001"),
    ]
    iterations = [
        an_iteration("0011", 1, "alone"),
        an_iteration("0022", 2, "any"),
        an_iteration("0033", 2, "ethnicity"),
    ]
    mapping = [("0011", "1000"), ("0022", "1000"), ("0033", "2000")]
    config = Config(runs=("us",), states=("01",)).budgets("Infinity").thresholds((2, 3, 4), 2)
    world = World(["1000", "2000", "9950"], iterations, mapping, blocks, [], [], [], None, config)
    world.households = [
        Household(*block[:4], "01", "1000", *["Null"] * 7, "9950", kind, tenure)  # type: ignore[call-arg]
        for block in blocks
        for kind, tenure in (("1", "1"), ("2", "2"), ("4", "3"), ("5", "4"))
    ]
    world.totals = [Total(tract, "TRACT", "0022", count) for tract, count in zip(TRACTS, counts, strict=False)]
    return world


TRACTS = ("01001000100", "01001000200")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("count", ["-5", "0", "1", "2", "3", "4", "7"])
@pytest.mark.parametrize("thresholds", [(1, 3, 4), (2, 2, 4), (3, 3, 3), (0, 0, 7), (0, 0, 0)])
@pytest.mark.slow
def test_a_count_at_a_threshold_has_reached_it(tmp_path: Path, count: str, thresholds: tuple[int, ...]) -> None:
    world = small_world(count)
    world.config.thresholds(thresholds, thresholds[1])
    tables = publish("safetab-h", world, tmp_path)
    check_h(world, tables)
    reached = sum(threshold <= int(count) for threshold in thresholds)
    assert [name for name in T3 if tables[name]] == [T3[reached]]
    assert [name for name in T4 if tables[name]] == [T4[thresholds[1] <= int(count)]]


@pytest.mark.slow
def test_groups_without_a_household_are_measured_as_zero(tmp_path: Path) -> None:
    # Nobody in any published group is no reason to publish nothing: that would tell that nobody is there.
    world = small_world()
    world.totals = [Total("01", "STATE", "0033", "9")]
    tables = publish("safetab-h", world, tmp_path)
    check_h(world, tables)
    assert tables["T03004"]["STATE", "01", "0033", "0"] == Row(0, 0.0, 0.0)
    world.config.budgets("0.5")
    noisy = publish("safetab-h", world, tmp_path / "noisy", "--seed", "1")
    check_h(world, noisy)
    assert any(row.count for row in noisy["T03004"].values())


@pytest.mark.slow
def test_an_area_without_housing_units_is_not_published(tmp_path: Path) -> None:
    world = small_world("5", "5")
    world.totals.append(Total("01001", "COUNTY", "0011", "1"))
    world.housing_units = {block_id(world.blocks[0]): 7, block_id(world.blocks[1]): 0}
    world.households = [h for h in world.households if h.TABBLK == "1000"]
    tables = publish("safetab-h", world, tmp_path)
    check_h(world, tables)
    assert {key[1] for name in tables for key in tables[name]} == {"01001000100", "01001"}


@pytest.mark.slow
def test_thresholds_of_the_run_alone_suffice(tmp_path: Path) -> None:
    world = small_world("2", "3")
    document = world.config.document("h", types=US_TYPES)
    check_h(world, publish("safetab-h", world, tmp_path, document=document))


@pytest.mark.slow
def test_totals_of_every_kind_that_is_dropped(tmp_path: Path) -> None:
    world = small_world("2", "3")
    world.iterations += [
        an_iteration("0044", 0, "alone")._replace(detailed_only=None, coarse_only=None),
        an_iteration("0055", 2, "alone", "detailed only"),
        an_iteration("0066", 2, "alone", "coarse only"),
    ]
    world.mapping += [("0044", "1000"), ("0055", "1000"), ("0066", "1000")]
    world.totals += [
        Total("02", "STATE", "0022", "5"),
        Total("02001000100", "TRACT", "0022", "5"),
        Total("72", "PR-STATE", "0022", "5"),
        Total("0700", "AIANNH", "0022", "5"),
        Total("01", "STATE", "0044", "5"),
        Total("01", "STATE", "0066", "5"),
        Total("01001", "COUNTY", "0055", "5"),
        Total("0001", "AIANNH", "0055", "5"),
    ]
    kept = publish("safetab-h", world, tmp_path)
    check_h(world, kept)
    assert {key[:3] for name in kept for key in kept[name]} == {("TRACT", tract, "0022") for tract in TRACTS}


# --- tables with noise ------------------------------------------------------------------------------------------------


@needs_public_files
@pytest.mark.thorough
def test_variances_of_2020(tmp_path: Path) -> None:
    # The toy records with the production's budgets: stability 9 comes from the toy's own, smaller, files, too.
    parameters = tmp_path / "parameters"
    shutil.copytree(PUBLIC / "toy_inputs" / "safetab_h" / "input_dir_zcdp", parameters)
    document = json.loads((PRODUCTION["safetab-h"] / "config.json").read_text())
    document |= {"reader": "csv", "run_pr": False, "state_filter_us": ["01", "02", "11"]}
    (parameters / "config.json").write_text(json.dumps(document))
    tables = released("safetab-h", parameters, PUBLIC / "toy_inputs" / "safetab_h", tmp_path / "out")
    found = {(key[0], level_of(parameters, key[2])): row for key, row in tables["T03001"].items()}
    for level, rho in (("USA", 2), "1.9208"), (("COUNTY", 2), "0.142869"), (("TRACT", 1), "0.006915"):
        noise = Noise(sigma2=9 / (2 * Fraction(rho)))
        assert found[level].variance == pytest.approx(noise.variance, rel=1e-12)
        assert found[level].moe == margin(noise, 1)
    assert found.keys() & {("AIANNH", 1), ("PR-STATE", 1)} == set()


def level_of(parameters: Path, iteration: str) -> int:
    return next(i.level for i in read_world(parameters, Path("none")).iterations if i.code == iteration)


# --- plans ------------------------------------------------------------------------------------------------------------


@needs_public_files
@pytest.mark.thorough
def test_the_plan_of_2020(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["safetab-h", "plan", str(PRODUCTION["safetab-h"]), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    check_plan(read_world(PRODUCTION["safetab-h"], Path("none")), "safetab-h", answer)
    passes = answer["totals"]["passes"]
    assert Fraction(passes["us"]["rho"]) == Fraction("8.895302")
    assert Fraction(passes["us"]["bounded_rho"]) == Fraction("17.790604")
    assert Fraction(passes["pr"]["rho"]) == Fraction("4.754134")
    assert Fraction(passes["pr"]["bounded_rho"]) == Fraction("9.508268")
    margins = {(m["level"], m["moe"]) for m in answer["measurements"]}
    assert {("USA 2", 3), ("TRACT 2", 11), ("PR-COUNTY 1", 50)} <= margins
    assert main(["safetab-h", "plan", str(PRODUCTION["safetab-h"]), "--json", "--margins", "bureau"]) == 0
    bureau = json.loads(capsys.readouterr().out)
    assert (answer["margins"], bureau["margins"]) == ("exact", "bureau")
    margins = {(m["level"], round(m["moe"], 3)) for m in bureau["measurements"]}
    assert {("USA 2", 3.0), ("TRACT 2", 11.0), ("PR-COUNTY 1", 50.0)} <= margins


TABLE_9 = {
    "USA 2": ("1.92", "3.84"),
    "STATE 2": ("1.92", "3.84"),
    **dict.fromkeys(["COUNTY 2", "TRACT 2", "PLACE 2", "AIANNH 2"], ("0.14", "0.28")),
    **dict.fromkeys(["USA 1", "STATE 1", "COUNTY 1", "TRACT 1", "PLACE 1"], ("0.0069", "0.0138")),
}
"""SafeTab-H paper, table 9: unbounded and bounded rho by level, the same for household type and tenure."""


@needs_public_files
@pytest.mark.thorough
def test_the_bounded_column_of_table_9_of_safetab_h(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["safetab-h", "plan", str(PRODUCTION["safetab-h"]), "--json"]) == 0
    described = {m["name"]: m for m in json.loads(capsys.readouterr().out)["measurements"]}
    for level, (unbounded, bounded) in TABLE_9.items():
        for table in ("T03", "T04"):
            m = described[f"{table}/{level}"]
            assert round(Decimal(m["rho_float"]), len(unbounded) - 2) == Decimal(unbounded), level
            assert Fraction(m["bounded_rho"]) == 2 * Fraction(m["rho"])
            # The paper doubles what it has rounded.
            assert Decimal(bounded) == 2 * Decimal(unbounded)
