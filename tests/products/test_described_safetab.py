"""The Detailed DHC of 2020 as descriptions: the same tables as SafeTab's parameter folders make, byte by byte."""

import json
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from safetab_worlds import Config, World, random_world, seeded, write_data, write_parameters

import yupana
from yupana.confidential.tabulate import count_groups
from yupana.products.described.stability import sorting_columns
from yupana.products.safetab.product import HOUSEHOLDS, PERSONS, SafetabProduct

STATES = ("11", "48", "56")
PRODUCTS = {"safetab-p": "ddhc-a-2020-us", "safetab-h": "ddhc-b-2020-us"}


def config() -> Config:
    """Budgets of 2020, and thresholds that groups of a small world reach."""
    found = Config(runs=("us",), states=STATES, zero_suppression="0.9")
    found.budgets("0.3").thresholds([4, 9, 15], 6)
    return found


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    found: World = random_world(seeded(38), persons=900, households=700)
    # Areas are left out by a list of housing units, and there are others than those counted.
    assert found.housing_units
    assert 0 in found.housing_units.values()
    assert {block.TABBLKST for block in found.blocks} > {*STATES}
    found.config = config()
    write_parameters(folder / "parameters", found)
    write_data(folder / "data", found)
    return folder


def described(name: str, parameters: Path) -> Path:
    """The built-in with the budgets and thresholds of a small world, beside the files of codes."""
    text = files("yupana.products.described").joinpath(f"builtin/{name}.toml").read_text("utf-8")
    found: dict[str, Any] = tomllib.loads(text)
    found["blocks"]["only"] = {"TABBLKST": [*STATES]}
    for table in found["tables"].values():
        table["budget"] = dict.fromkeys(table["budget"], 0.3)
        steps = len(table["detail"]["steps"])
        levels = table["detail"]["thresholds"]
        table["detail"]["thresholds"] = dict.fromkeys(levels, [4, 9, 15] if steps > 2 else [6])
        if "leave_out" in table["detail"]:
            table["detail"]["leave_out"] = dict.fromkeys(table["detail"]["leave_out"], 0.9)
    path = parameters / f"{name}.json"
    path.write_text(json.dumps(found), encoding="utf-8")
    return path


@pytest.mark.thorough
def test_the_tables_are_those_of_safetab(world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Few enough that there are several slices, and parts of them.
    monkeypatch.setattr(count_groups, "_ROWS_AT_ONCE", 200)
    parameters, totals = world / "parameters", None
    for product, name in PRODUCTS.items():
        taken = {"totals": totals} if product == "safetab-h" else {}
        own = yupana.run(product, parameters, world / "data", tmp_path / product, seed=11, **taken)
        again = yupana.run("tables", described(name, parameters), world / "data", tmp_path / name, seed=11, **taken)
        assert set(own.tables) == set(again.tables)
        for table in own.tables:
            assert again.path(table).read_bytes() == own.path(table).read_bytes(), table
            assert own.path(table).read_text("utf-8").count("\n") > 10
        assert yupana.check(again).wrong == ()
        totals = tmp_path / product / "T01001.csv" if product == "safetab-p" else totals


@pytest.mark.parametrize("product", [PERSONS, HOUSEHOLDS])
def test_who_moves_to_the_other_pass_is_no_longer_of_the_nation(product: SafetabProduct, tmp_path: Path) -> None:
    world = random_world(seeded(38), persons=1, households=1)
    world.config = config()
    world.config.runs = ("us", "pr")
    parameters = write_parameters(tmp_path / "parameters", world)
    description = product.read(parameters).description
    (file,) = description.files.values()
    for table in description.tables:
        assert {level.areas for level in table.levels} > {"USA", "PR-STATE"}
        for level in table.levels:
            assert file.block in sorting_columns(description, table, level)
