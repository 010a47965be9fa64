"""Zero suppression after coterminous areas were combined: all areas of a set or none, by a literal reading."""

import csv
import json
from collections import defaultdict
from pathlib import Path

import pytest
from safetab_oracle import levels_of, noise_for, stage_two
from safetab_runs import publish
from safetab_worlds import World, random_world, regions_of, seeded

from yupana.cli.main import main

CHANCE = 0.9
NEVER = {"USA", "STATE", "PR-STATE"}
Row = tuple[str, str, str]


def a_world(seed: int, chance: str | None = None) -> World:
    world = random_world(seeded(seed), persons=60, households=1, noise="some")
    world.housing_units = None
    world.config.budgets("0.5").thresholds([3, 10, 30], 10)
    world.config.zero_suppression = chance
    world.config.allow_negative = True
    return world


def rows_of(path: Path) -> dict[Row, int]:
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file, delimiter="|")
        return {(row["REGION_TYPE"], row["REGION_ID"], row["ITERATION_CODE"]): int(row["COUNT"]) for row in rows}


def sets_of(world: World, kinds: set[str]) -> list[set[tuple[str, str]]]:
    """Areas with the same blocks, among the kinds and states of the release."""
    blocks: dict[tuple[str, str], set[int]] = defaultdict(set)
    for number, block in enumerate(world.blocks):
        for kind, region in regions_of(block).items():
            if kind in kinds and (block.TABBLKST in {*world.config.states, "72"}):
                blocks[kind, region].add(number)
    by_blocks: dict[frozenset[int], set[tuple[str, str]]] = defaultdict(set)
    for area, held in blocks.items():
        by_blocks[frozenset(held)].add(area)
    return [areas for areas in by_blocks.values() if len(areas) > 1]


def cuts_of(world: World) -> dict[tuple[str, str], int]:
    """Of each region type below the state and iteration the largest total that is left out."""
    levels = {i.code: i.level for i in world.iterations}
    cuts = {}
    for kind, level in levels_of(world):
        if kind not in NEVER:
            noise = noise_for(world, kind, level, world.config.p[kind, level], stage_two(world.config))
            cut = noise.inverse_cdf(CHANCE)
            cuts |= {(kind, code): cut for code, of in levels.items() if of == level}
    return cuts


# In world 71 every area is in a set with a state, so nothing is left out.
@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", [70, 72, 73, 74, 75, 76, 77])
@pytest.mark.thorough
def test_totals_are_left_out_by_the_letter_of_the_rule(tmp_path: Path, seed: int) -> None:
    world = a_world(seed)
    publish("safetab-p", world, tmp_path, "--seed", str(seed))
    common = ["--parameters", str(tmp_path / "parameters")]
    reference = str(tmp_path / "data" / "GRF-C.txt")
    assert main(["postprocess", "coterminous", str(tmp_path / "out"), reference, str(tmp_path / "whole"), *common]) == 0
    suppressed = [*common, "--zero-suppression", str(CHANCE)]
    assert (
        main(["postprocess", "coterminous", str(tmp_path / "out"), reference, str(tmp_path / "cut"), *suppressed]) == 0
    )
    assert main(["check", str(tmp_path / "cut")]) == 0
    before, after = (rows_of(tmp_path / folder / "T01001.csv") for folder in ("whole", "cut"))
    with_ages = set().union(*(rows_of(tmp_path / "whole" / f"T0200{n}.csv") for n in (1, 2, 3)))
    cuts = cuts_of(world)
    sets = {area: areas for areas in sets_of(world, {kind for kind, _, _ in before}) for area in areas}
    expected = {}
    for (kind, region, code), count in before.items():
        members = sets.get((kind, region), {(kind, region)})
        cut = max((cuts.get((other, code), -(10**9)) for other, _ in members), default=0)
        stays = any(other in NEVER for other, _ in members) or (kind, region, code) in with_ages or count > cut
        if stays:
            expected[kind, region, code] = count
    assert after == expected
    assert len(after) < len(before)
    record = json.loads((tmp_path / "cut" / "manifest.json").read_text())["postprocessing"][-1]
    assert record["zero_suppression_chance"] == "9/10"


@pytest.mark.thorough
def test_what_was_suppressed_in_the_run_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    publish("safetab-p", a_world(70, "0.5"), tmp_path, "--seed", "1")
    command = ["postprocess", "coterminous", str(tmp_path / "out"), str(tmp_path / "data" / "GRF-C.txt")]
    options = ["--parameters", str(tmp_path / "parameters"), "--zero-suppression", "0.5"]
    capsys.readouterr()
    assert main([*command, str(tmp_path / "new"), *options]) == 2
    assert "zero_suppression_chance 0" in capsys.readouterr().err
    assert main([*command, str(tmp_path / "new"), *options[2:]]) == 2
    assert "--parameters" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
