"""Spines of the 99,042 real blocks of Cook County, Illinois."""

import json
import subprocess
import sys
from collections import defaultdict
from math import isqrt
from pathlib import Path
from statistics import mean

import pytest
from places import ROOT, SHARED

from yupana.cli.main import main

SOURCE = SHARED / "data" / "cook_il_2010_pl_blocks" / "cook_2010_pl_block.parquet"
LEVELS = "US,State,County,Tract_Group,Tract,Block_Group,Block"

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(not SOURCE.exists(), reason="the blocks of Cook County are not beside the checkout"),
]


@pytest.fixture(scope="module")
def cook(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cook")
    script = ROOT / "examples" / "cook_county.py"
    subprocess.run([sys.executable, script, SOURCE, folder / "in"], check=True, capture_output=True)
    return folder


def far(cook: Path, kind: str, capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, list[int]]:
    out = cook / kind
    if not out.exists():
        assert (
            main(["spine", "build", str(cook / "in" / "grfc.txt"), str(out), "--kind", kind, "--levels", LEVELS]) == 0
        )
    capsys.readouterr()
    assert main(["spine", "distance", str(out), str(cook / "in" / "entities.csv"), "--json", *options]) == 0
    found: defaultdict[str, list[int]] = defaultdict(list)
    for row in json.loads(capsys.readouterr().out):
        found[row["column"]].append(row["osed"])
    return found


@pytest.mark.thorough
def test_an_optimized_spine_is_closer_to_places(cook: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, after = far(cook, "conventional", capsys), far(cook, "optimized", capsys)
    assert {kind: len(values) for kind, values in after.items()} == {"place": 136, "county_subdivision": 32}
    # There are no AIAN areas, so the AIAN spine is the conventional one.
    assert far(cook, "aian", capsys) == before
    assert mean(before["place"]) > 70
    assert mean(after["place"]) < 12
    assert max(after["place"]) < 100
    # One county: within it and within the nation distances are the same.
    assert far(cook, "optimized", capsys, "--root", "county") == after


@pytest.mark.thorough
def test_groups_keep_to_their_caps(cook: Path, capsys: pytest.CaptureFixture[str]) -> None:
    far(cook, "optimized", capsys)
    with (cook / "optimized" / "geounits.csv").open() as file:
        rows = [line.rstrip("\n").split("|") for line in file][1:]
    children = {(level, unit): int(number) for level, unit, _, number, _, _ in rows}
    tracts = sum(level == "Tract" for level, _ in children)
    assert tracts == 1319
    groups = [number for (level, _), number in children.items() if level == "Tract_Group"]
    assert sum(groups) == tracts
    assert max(groups) <= isqrt(tracts) + 13
    parents = {unit: parent for level, unit, parent, _, _, _ in rows if level == "Block_Group"}
    blocks: defaultdict[str, int] = defaultdict(int)
    for group, tract in parents.items():
        blocks[tract] += children["Block_Group", group]
    assert all(children["Block_Group", group] <= isqrt(blocks[tract]) + 13 for group, tract in parents.items())
    assert sum(blocks.values()) == 99_042
