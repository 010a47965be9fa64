"""Bounds by group quarters through `topdown run`, whatever number of major types a schema has."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from places import ROOT
from topdown_worlds import World, configuration, make_world, write_configuration, write_world

from yupana.cli.main import main

DOCS = ROOT / "docs"
MECHANISMS = {"zcdp": {"rho": "1/3"}, "pure": {"epsilon": "1/2"}}


def world_with_types(seed: int, shape: tuple[int, ...]) -> World:
    """A world whose facilities are of the types of its first attribute."""
    world = make_world(seed, shape, quarters=True)
    for there in world.facilities.values():
        there[shape[0] :] = [0] * (8 - shape[0])
    return world


def run(tmp_path: Path, document: dict[str, Any], *options: str) -> int:
    config = write_configuration(document, tmp_path / "config.json")
    return main(["topdown", "run", str(config), str(tmp_path / "data"), str(tmp_path / "out"), "--seed", "3", *options])


@pytest.mark.sampled(1)
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("levels", range(2, 9))
@pytest.mark.slow
def test_any_number_of_types_is_bounded(tmp_path: Path, levels: int, mechanism: str) -> None:
    shape = (levels, 2)
    world = world_with_types(levels, shape)
    write_world(world, tmp_path / "data", quarters=True)
    document = configuration(shape, constraints={"group_quarters": "a0"}, mechanism=mechanism)
    del document["rho"]
    assert run(tmp_path, {**document, **MECHANISMS[mechanism]}) == 0
    found = {block: [0] * levels for block in world.blocks}
    for line in (tmp_path / "out" / "counts" / "Block.csv").read_text().splitlines()[1:]:
        block, group, _, count = line.split("|")
        found[block][int(group)] += int(count)
    for block, persons in found.items():
        listed = world.facilities[block][:levels]
        assert all((g == 0 or n >= listed[g]) and n <= 99_999 * listed[g] for g, n in enumerate(persons))
    assert main(["check", str(tmp_path / "out")]) == 0


@pytest.mark.thorough
def test_facilities_of_a_type_that_the_schema_lacks_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shape = (4, 2)
    world = world_with_types(1, shape)
    world.facilities[world.blocks[2]][6] = 1
    write_world(world, tmp_path / "data", quarters=True)
    assert run(tmp_path, configuration(shape, rho="1", constraints={"group_quarters": "a0"})) == 2
    told = capsys.readouterr().err
    assert "group_quarters.csv" in told
    assert "gq6" in told
    assert world.blocks[2] in told
    assert run(tmp_path, configuration(shape, rho="1")) == 0  # nothing is bounded, so the list says nothing


@pytest.mark.thorough
def test_the_example_of_the_page_runs_as_printed(tmp_path: Path) -> None:
    (text,) = re.findall(r"(?m)(?:^    .*\n)+", (DOCS / "topdown.md").read_text().split("reported at once.")[1])[:1]
    config = tmp_path / "example.toml"
    config.write_text("".join(line[4:] + "\n" for line in text.splitlines()))
    world = World((3, 2, 11))
    rng = np.random.default_rng(1)
    for number in range(24):
        block = f"01{number // 12:03}{number // 4 % 3:06}{number // 2 % 2}{number // 2 % 2}{number:03}"
        world.blocks.append(block)
        world.areas.append(("9999", "00001", "00001"))
        world.facilities[block] = [9, int(number % 5 == 0), int(number % 7 == 0), *[0] * 5]
        # Structural zeros: nobody in a prison is not Hispanic.
        cells = {int(c): int(rng.integers(1, 9)) for c in rng.integers(22, size=6)}
        cells |= {22 + 11 + 3: 5} if number % 5 == 0 else {}
        cells |= {44 + 7: 6} if number % 7 == 0 else {}
        world.counts |= {(block, cell): count for cell, count in cells.items()}
    data = write_world(world, tmp_path / "data", quarters=True)
    histogram = data / "histogram.csv"
    histogram.write_text(histogram.read_text().replace("a0|a1|a2", "hhgq|hispanic|race"))
    out = tmp_path / "out"
    assert main(["topdown", "plan", str(config)]) == 0
    assert main(["topdown", "run", str(config), str(data), str(out), "--seed", "1"]) == 0
    assert json.loads((out / "manifest.json").read_text())["product"] == "example"
    assert main(["check", str(out)]) == 0
