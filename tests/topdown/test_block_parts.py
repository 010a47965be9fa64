"""Parts of the blocks are those of the whole, however it is cut."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from yupana.topdown.block_parts import HistogramParts, InTurn
from yupana.topdown.histogram import count_entries

ENTRIES = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 4), st.integers(1, 9)), max_size=30)


@given(ENTRIES, st.sets(st.integers(1, 8)))
def test_parts_are_consecutive_and_hold_every_count(entries: list[tuple[int, int, int]], cuts: set[int]) -> None:
    unit, cell, count = np.array(entries, dtype=np.int64).reshape(-1, 3).T
    whole = count_entries(unit, cell.astype(np.int32), count, 9)
    parts = HistogramParts(whole, tuple(sorted(cuts)))
    for _ in range(2):  # as often as one likes
        at = 0
        for first, part in parts:
            assert first == at
            assert np.array_equal(part.dense(0, part.units, 5), whole.dense(first, first + part.units, 5))
            at += part.units
        assert at == parts.units == 9


@given(ENTRIES, st.sets(st.integers(1, 8)), st.lists(st.integers(0, 9), max_size=8).map(sorted))
def test_runs_that_are_asked_for_in_turn_are_those_of_the_whole(
    entries: list[tuple[int, int, int]], cuts: set[int], ends: list[int]
) -> None:
    unit, cell, count = np.array(entries, dtype=np.int64).reshape(-1, 3).T
    whole = count_entries(unit, cell.astype(np.int32), count, 9)
    turn = InTurn(HistogramParts(whole, tuple(sorted(cuts))))
    for first, last in pairwise([0, *ends, 9]):
        found = turn.take(first, last)
        assert found.units == last - first
        assert np.array_equal(found.dense(0, found.units, 5), whole.dense(first, last, 5))
