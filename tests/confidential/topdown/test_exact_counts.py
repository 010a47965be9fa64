"""Exact counts on scratch are those that are added up in memory, whatever is read of them."""

import tempfile
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yupana.confidential.topdown import exact_counts
from yupana.confidential.topdown.exact_counts import CountsInParts, add_up
from yupana.geography.tree import Tree
from yupana.topdown.histogram import Histogram, count_entries, whole

NAMES = ("US", "State", "County", "Tract", "Block")


def same(one: Histogram, other: Histogram) -> bool:
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in ("starts", "cells", "counts"))


def random_tree(random: np.random.Generator, levels: int) -> Tree:
    parents = [np.zeros(1, dtype=np.int32)]
    for _ in range(levels - 1):
        children = random.integers(1, 4, len(parents[-1]))
        parents.append(np.repeat(np.arange(len(children)), children).astype(np.int32))
    return Tree(NAMES[:levels], tuple(parents))


@given(st.integers(0, 2**32), st.integers(1, 5), st.integers(1, 9), st.booleans())
@pytest.mark.thorough
def test_every_geolevel_adds_up(seed: int, levels: int, at_once: int, filed: bool) -> None:  # noqa: FBT001
    random = np.random.default_rng(seed)
    tree = random_tree(random, levels)
    blocks = tree.units(levels - 1)
    entries = random.integers(0, 30)
    counts = count_entries(
        random.integers(0, blocks, entries), random.integers(0, 5, entries), random.integers(0, 9, entries), blocks
    )
    asked: list[tuple[int, int]] = []

    def part(first: int, last: int) -> Histogram:
        asked.append((first, last))
        return counts.part(first, last)

    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact_counts, "_BLOCKS_AT_ONCE", at_once)
        found = add_up(tree, part, Path(folder) if filed else None)
        assert [first for first, _ in asked] == [0, *(last for _, last in asked[:-1])]
        assert asked[-1][1] == blocks
        assert found.records == counts.counts.sum()
        assert same(whole(found.blocks), counts)
        for level, counted in enumerate(found.levels):
            expected = counts.sum_to(tree.ancestors(level), tree.units(level))
            assert counted.units == expected.units
            cuts = sorted({0, expected.units, *random.integers(0, expected.units + 1, 3).tolist()})
            for first, last in pairwise(cuts):
                assert same(counted.part(first, last), expected.part(first, last))


def test_a_count_that_four_bytes_do_not_hold_is_kept(tmp_path: Path) -> None:
    large = count_entries(np.array([0]), np.array([0]), np.array([1 << 31]), 1)
    counts = CountsInParts(tmp_path, "wide")
    counts.add(large)
    assert counts.part(0, 1).counts.tolist() == [1 << 31]


def test_more_records_than_four_bytes_count_are_added_up(tmp_path: Path) -> None:
    tree = Tree(("US", "State"), (np.zeros(1, dtype=np.int32), np.zeros(4, dtype=np.int32)))
    counts = count_entries(np.arange(4), np.zeros(4, dtype=np.int32), np.full(4, 999_999_999), 4)
    found = add_up(tree, counts.part, tmp_path)
    assert found.records == 4 * 999_999_999
    assert same(whole(found.blocks), counts)
