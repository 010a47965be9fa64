"""The invented map: blocks that follow one another are neighbours, and areas are made of theirs and nothing else."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from yupana.report.maps import read_boundaries
from yupana.synthetic.files import along, outlines, rings


@pytest.mark.parametrize("side", [1, 2, 4, 16])
def test_the_curve_visits_every_square_by_steps_to_neighbours(side: int) -> None:
    way = np.array([along(place, side) for place in range(side * side)])
    assert {tuple(square) for square in way.tolist()} == {(x, y) for x in range(side) for y in range(side)}
    assert (np.abs(np.diff(way, axis=0)).sum(axis=1) == 1).all()


def surface(ring: list[tuple[int, int]]) -> int:
    return sum(a[0] * b[1] - b[0] * a[1] for a, b in pairwise(ring)) // 2


@pytest.mark.parametrize("seed", range(10))
def test_lines_go_round_as_many_squares(seed: int) -> None:
    rng = np.random.default_rng(seed)
    squares = {(int(x), int(y)) for x, y in rng.integers(0, 6, (20, 2))}
    # A hole is gone round the other way.
    assert sum(map(surface, rings(squares))) == len(squares)


def test_what_is_drawn_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "map.json").write_text(json.dumps(outlines(["a"] * 5 + ["b"] * 3 + ["c"])))
    found = read_boundaries(tmp_path / "map.json")
    assert [(area.code, len(area.rings)) for area in found] == [("a", 1), ("b", 1), ("c", 1)]
