"""Blocks in water: their counts go where the Census Bureau put them, and nobody is lost."""

from fractions import Fraction

import numpy as np
import pytest

from yupana.geography.spine import Spine, check_spine, make_spine
from yupana.topdown.histogram import Histogram, count_entries
from yupana.topdown.nmf.reading import MOVED, tabulated

SOURCE, TARGET = 100399000000001, 100301080022009
"""The first pair, as 16 digits without leading zeros."""
OTHER = 100301080022010


def spine_of(blocks: list[int]) -> Spine:
    """Tracts and blocks below one state."""
    found = np.array(blocks, dtype=np.int64)
    keys = [found // 10**14, found // 10**5, found]
    return make_spine(("State", "Tract", "Block"), keys, (2, 11, 16), (Fraction(1, 3),) * 3)


def counted(spine: Spine) -> Histogram:
    """Each block holds a number of its own in two cells."""
    units = np.repeat(np.arange(len(spine.blocks)), 2)
    return count_entries(units, np.tile([0, 3], len(spine.blocks)), 1 + np.arange(len(units)), len(spine.blocks))


@pytest.mark.parametrize("blocks", [[TARGET, OTHER, SOURCE], [OTHER, SOURCE], [OTHER, TARGET]])
def test_counts_are_those_of_the_target(blocks: list[int]) -> None:
    spine = spine_of(sorted(blocks))
    counts = counted(spine)
    after, found, moved = tabulated(spine, counts)
    assert check_spine(after, np.sort(after.blocks)) == []
    before = dict(zip(spine.blocks.tolist(), counts.dense(0, counts.units, 4).tolist(), strict=True))
    here = dict(zip(after.blocks.tolist(), found.dense(0, found.units, 4).tolist(), strict=True))
    expected: dict[int, list[int]] = {}
    for block, cells in before.items():
        goes = TARGET if block == SOURCE else block
        expected[goes] = [a + b for a, b in zip(expected.get(goes, [0] * 4), cells, strict=True)]
    assert here == expected
    assert moved == ({"010039900000001": "010030108002009"} if SOURCE in blocks else {})


def test_every_block_is_called_by_fifteen_digits() -> None:
    assert len(MOVED) == 15
    assert {len(code) for pair in MOVED.items() for code in pair} == {15}
    assert not set(MOVED) & set(MOVED.values())
    assert all(source[:5] == target[:5] for source, target in MOVED.items())
