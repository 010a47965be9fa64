"""Coterminous areas of a real state: Rhode Island by the block assignment files of the 2018 test of the census.

By all blocks the nation is the state, and no other areas agree. With housing units in one tract of each place only, as
if all the rest were water, tracts agree with places, too.
"""

import gzip
import math
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from places import SHARED
from release_maker import World, read_rows

from yupana.cli.main import main

FILES = SHARED / "data" / "ri_2018_e2e_pl_and_baf" / "baf_ri"

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(not FILES.is_dir(), reason="the block assignment files are not here"),
]


def _assigned(kind: str) -> dict[str, str]:
    with gzip.open(FILES / f"BlockAssign_ST44_RI_{kind}.txt.gz", "rt") as file:
        return dict(line.rstrip("\r\n").split("|")[:2] for line in file if line[0].isdigit())


@pytest.mark.slow
def test_areas_of_rhode_island_agree(tmp_path: Path) -> None:
    places, aiannh = _assigned("INCPLACE_CDP"), _assigned("AIANNH")
    blocks = [(b[:2], b[2:5], b[5:11], b[11:], places[b] or "99999", aiannh.get(b) or "9999") for b in sorted(places)]
    first = {block[4]: block[2] for block in reversed(blocks)}
    live = frozenset("".join(block[:4]) for block in blocks if block[2] == first[block[4]] and block[4] != "99999")
    world = World(blocks, dict.fromkeys(live, 3))
    areas = world.areas()
    assert [area for area, own in areas.items() if own == areas["USA", "1"]] == [("STATE", "44"), ("USA", "1")]
    alike = defaultdict(list)
    for area, own in areas.items():
        alike[own & live or own].append(area)
    assert len([members for members in alike.values() if len(members) > 1]) > 10
    rng = np.random.default_rng(44)
    sigma2 = {"USA": 2.25, "STATE": 2.25}
    rows = {}
    truth = {key: 500 + 7 * i for i, key in enumerate(alike)}
    for (kind, region), own in areas.items():
        variance = sigma2.get(kind, 31.5)
        count = truth[own & live or own] + round(rng.normal(0, math.sqrt(variance)))
        rows[kind, region, "1002", ()] = (count, variance)
    world.tables = {"T01001": rows}
    release = world.write(tmp_path / "release")
    grfc = world.write_reference(tmp_path / "GRF-C.txt")
    units = world.write_units(tmp_path / "housing-units.txt")
    options = ["--housing-units", str(units)]
    assert main(["postprocess", "coterminous", str(release), str(grfc), str(tmp_path / "out"), *options]) == 0
    after = read_rows(tmp_path / "out" / "T01001.csv")
    assert after.keys() == rows.keys()
    for members in alike.values():
        before = [rows[(*area, "1002", ())] for area in members]
        numbers = {after[(*area, "1002", ())][:2] for area in members}
        assert len(numbers) == 1
        count, variance = next(iter(numbers))
        precision = sum(1 / v for _, v in before)
        assert math.isclose(float(variance), 1 / precision)
        assert abs(int(count) - sum(c / v for c, v in before) / precision) <= 0.5 + 1e-9
