"""Parts of the blocks are those of the whole, however it is cut, and areas that are added up are sums over all."""

from collections.abc import Iterable
from itertools import pairwise
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yupana.arrays import Ints
from yupana.geography.published import Areas
from yupana.release.lines import texts
from yupana.topdown import histogram
from yupana.topdown.histogram import (
    AreaSums,
    Histogram,
    InTurn,
    PartsByCounty,
    Stretch,
    count_entries,
    sums_in_parts,
)

ENTRIES = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 4), st.integers(1, 9)), max_size=30)


def cut(whole: Histogram, cuts: Iterable[int]) -> list[Stretch]:
    return [(first, whole.part(first, last)) for first, last in pairwise([0, *sorted(cuts), whole.units])]


@given(ENTRIES, st.integers(1, 9))
@pytest.mark.slow
def test_parts_are_consecutive_and_hold_every_count(entries: list[tuple[int, int, int]], at_once: int) -> None:
    unit, cell, count = np.array(entries, dtype=np.int64).reshape(-1, 3).T
    whole = count_entries(unit, cell.astype(np.int32), count, 9)
    for _ in range(2):  # as often as one likes
        at = 0
        with patch.object(histogram, "UNITS_AT_ONCE", at_once):
            parts = list(whole)
        for first, part in parts:
            assert first == at
            assert part.units <= at_once
            assert np.array_equal(part.dense(0, part.units, 5), whole.dense(first, first + part.units, 5))
            at += part.units
        assert at == whole.units == 9


@given(ENTRIES, st.sets(st.integers(1, 8)), st.lists(st.integers(0, 9), max_size=8).map(sorted))
@pytest.mark.slow
def test_runs_that_are_asked_for_in_turn_are_those_of_the_whole(
    entries: list[tuple[int, int, int]], cuts: set[int], ends: list[int]
) -> None:
    unit, cell, count = np.array(entries, dtype=np.int64).reshape(-1, 3).T
    whole = count_entries(unit, cell.astype(np.int32), count, 9)
    turn = InTurn(cut(whole, cuts))
    for first, last in pairwise([0, *ends, 9]):
        found = turn.take(first, last)
        assert found.units == last - first
        assert np.array_equal(found.dense(0, found.units, 5), whole.dense(first, last, 5))


BLOCKS, CELLS = 12, 5
COUNTS = st.lists(st.tuples(st.integers(0, BLOCKS - 1), st.integers(0, CELLS - 1), st.integers(1, 9)), max_size=40)
CUTS = st.lists(st.integers(0, BLOCKS), max_size=5).map(sorted).map(tuple)
"""Where parts begin; two in one place make an empty part."""


def counted(entries: list[tuple[int, int, int]]) -> Histogram:
    unit, cell, count = np.array(entries, dtype=np.int64).reshape(-1, 3).T
    return count_entries(unit, cell.astype(np.int32), count, BLOCKS)


def areas(name: str, index: list[int], number: int, below: str = "") -> Areas:
    return Areas(name, texts(str(one) for one in range(number)), np.array(index, dtype=np.int64), below)


def dense(histogram: Histogram) -> Ints:
    return histogram.dense(0, histogram.units, CELLS)


@given(COUNTS, CUTS, st.lists(st.integers(-1, 3), min_size=BLOCKS, max_size=BLOCKS), st.data())
@pytest.mark.slow
def test_every_area_is_given_once_in_order_and_holds_what_it_should(
    entries: list[tuple[int, int, int]], cuts: tuple[int, ...], index: list[int], data: st.DataObject
) -> None:
    whole = counted(entries)
    above = data.draw(st.lists(st.integers(-1, 1), min_size=4, max_size=4))
    kinds = [areas("ward", index, 4), areas("city", above, 2, "ward")]
    expected = {"ward": np.zeros((4, CELLS), dtype=np.int64), "city": np.zeros((2, CELLS), dtype=np.int64)}
    for block, row in enumerate(whole.dense(0, BLOCKS, CELLS)):
        if index[block] >= 0:
            expected["ward"][index[block]] += row
            if above[index[block]] >= 0:
                expected["city"][above[index[block]]] += row
    at = dict.fromkeys(expected, 0)
    for summed in sums_in_parts(cut(whole, cuts), kinds):
        for name, (first, counts) in summed.areas.items():
            assert first == at[name]
            assert np.array_equal(dense(counts), expected[name][first : first + counts.units])
            at[name] += counts.units
    assert at == {"ward": 4, "city": 2}


def test_an_area_waits_for_no_unit_of_a_later_one() -> None:
    """So what is held is small where areas lie in the order of their units."""
    sums = AreaSums(np.array([0, 0, 1, 1, 2]), 4)
    whole = count_entries(np.arange(5), np.zeros(5, dtype=np.int32), np.ones(5, dtype=np.int64), 5)
    given_out = [sums.add(first, whole.part(first, first + 1))[1].totals().tolist() for first in range(5)]
    assert given_out == [[], [2], [], [2], [1, 0]]


@given(COUNTS, CUTS, st.lists(st.integers(0, 3), min_size=BLOCKS, max_size=BLOCKS))
@pytest.mark.thorough
def test_blocks_of_a_county_come_side_by_side(
    entries: list[tuple[int, int, int]], cuts: tuple[int, ...], county: list[int]
) -> None:
    whole = counted(entries)
    parts = PartsByCounty(cut(whole, cuts), np.array(county))
    assert np.array(county)[parts.order].tolist() == sorted(county)
    expected = whole.dense(0, BLOCKS, CELLS)[parts.order]
    for _ in range(2):
        at = 0
        for first, part in parts:
            assert first == at
            assert np.array_equal(dense(part), expected[first : first + part.units])
            at += part.units
        assert at == BLOCKS


def test_areas_of_a_state_of_two_sides_are_given_out_as_their_counties_come() -> None:
    """A spine has the blocks of AIAN areas behind all others of the state; no area waits for the state's last."""
    counties = 50
    county = np.concatenate([np.repeat(np.arange(counties), 9), np.arange(counties)])  # one of ten lies in such an area
    blocks = len(county)
    whole = count_entries(np.arange(blocks), np.zeros(blocks, dtype=np.int32), np.ones(blocks, dtype=np.int64), blocks)
    parts = cut(whole, range(9, blocks, 9))
    published = areas("block", np.argsort(np.argsort(county, kind="stable")).tolist(), blocks)
    by_county = PartsByCounty(parts, county)
    come = given_out = waiting = 0
    for summed in sums_in_parts(by_county, by_county.areas([published])):
        come += summed.counts.units
        given_out += summed.areas["block"][1].units
        waiting = max(waiting, come - given_out)
    assert given_out == blocks
    assert waiting <= 10
