"""Estimates that were written are read as they were, whatever part is asked for."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from yupana.errors import OutputError
from yupana.topdown.tree.full_information import EstimatesOnDisk
from yupana.topdown.tree.least_squares import TreeEstimate


@pytest.mark.parametrize("seed", range(5))
def test_any_part_is_what_was_added(seed: int) -> None:
    random = np.random.default_rng(seed)
    coordinates, precision = random.normal(size=(40, 6)), random.choice([0.0, 1.5, np.inf], (40, 4))
    kept = EstimatesOnDisk(40, 6, 4)
    for first, last in pairwise(sorted({0, 40, *random.integers(0, 41, 3).tolist()})):
        kept.add(TreeEstimate(coordinates[first:last], precision[first:last]))
    for first, last in ((0, 40), (0, 0), (40, 40), (7, 8), *np.sort(random.integers(0, 41, (9, 2))).tolist()):
        part = kept.part(first, last)
        assert np.array_equal(part.coordinates, coordinates[first:last])
        assert np.array_equal(part.precision, precision[first:last])


def test_a_disk_that_cannot_hold_them_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "nowhere"))
    with pytest.raises(OutputError, match="cannot hold the estimates of a geolevel"):
        EstimatesOnDisk(1, 1, 1)
