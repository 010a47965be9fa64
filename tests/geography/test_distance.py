"""Algorithm 1 against exhaustive search over sums and differences of geounits, and against known values."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from spine_maker import Nested, make_tree, nested, trees

from yupana.geography.distance import distances, distances_below
from yupana.geography.tree import Members, Tree, partition


def members(entities: list[set[int]]) -> Members:
    pairs = sorted((block, entity) for entity, blocks in enumerate(entities) for block in blocks)
    block, entity = (np.array([pair[i] for pair in pairs], dtype=np.int32) for i in range(2))
    return Members(block, entity, len(entities))


def exhaustive(tree: Tree) -> dict[frozenset[int], int]:
    """The fewest units whose sum, each added, subtracted or left out, is each set of blocks."""
    plain = nested(tree)
    units = [plain.leaves(level, unit) for level in range(plain.levels) for unit in range(plain.units(level))]
    blocks = plain.units(plain.levels - 1)
    vectors = np.array([[block in unit for block in range(blocks)] for unit in units], dtype=int)
    signs = np.array(list(product((0, 1, -1), repeat=len(units))))
    sums = signs @ vectors
    cost = np.abs(signs).sum(axis=1)
    found: dict[frozenset[int], int] = {}
    for i in np.flatnonzero(((sums == 0) | (sums == 1)).all(axis=1)).tolist():
        made = frozenset(np.flatnonzero(sums[i]).tolist())
        found[made] = min(found.get(made, len(units)), int(cost[i]))
    return found


@given(trees(most_units=4, fanout=3, levels=4).filter(lambda tree: sum(map(len, tree.parents)) <= 10))
@settings(max_examples=40)
def test_distances_are_those_of_exhaustive_search(tree: Tree) -> None:
    found = exhaustive(tree)
    entities = [set(blocks) for blocks in found if blocks]
    assert len(entities) == 2 ** tree.units(len(tree.names) - 1) - 1
    assert distances(tree, members(entities)).tolist() == [found[frozenset(blocks)] for blocks in entities]


def recursive(tree: Nested, entity: set[int], level: int, unit: int) -> tuple[int, int]:
    """Algorithm 1 as it is written, for one entity; and for its complement."""
    if level == tree.levels - 1:
        return (1, 0) if unit in entity else (0, 1)
    below = [recursive(tree, entity, level + 1, child) for child in tree.children[level][unit]]
    x, y = sum(c for c, _ in below), sum(c for _, c in below)
    return min(x, y + 1), min(y, x + 1)


@given(trees(), st.data())
@pytest.mark.slow
def test_distances_are_those_of_the_algorithm_unit_by_unit(tree: Tree, data: st.DataObject) -> None:
    blocks = tree.units(len(tree.names) - 1)
    entities = data.draw(st.lists(st.sets(st.integers(0, blocks - 1)), max_size=6))
    plain = nested(tree)
    assert distances(tree, members(entities)).tolist() == [recursive(plain, e, 0, 0)[0] for e in entities]
    for level in range(len(tree.names)):
        units, numbers, found = distances_below(tree, members(entities), level)
        got = {(u, e): d for u, e, d in zip(units.tolist(), numbers.tolist(), found.tolist(), strict=True)}
        expected = {
            (unit, e): recursive(plain, entities[e], level, unit)[0]
            for unit in range(plain.units(level))
            for e in range(len(entities))
            if plain.leaves(level, unit) & entities[e]
        }
        assert got == expected


# A county of two tract groups, of one tract each, of two block groups each: abc, de; fg, h.
COUNTY = make_tree([[2], [1, 1], [2, 2], [3, 2, 2, 1]])


@pytest.mark.parametrize(
    ("entity", "distance"), [("abc", 1), ("ab", 2), ("abcd", 2), ("adf", 3), ("abcdefg", 2), ("abcdefgh", 1)]
)
def test_known_distances(entity: str, distance: int) -> None:
    index = np.array([0 if block in entity else -1 for block in "abcdefgh"], dtype=np.int32)
    assert distances(COUNTY, partition(index, 1)).tolist() == [distance]


def test_an_entity_without_blocks_is_no_distance_away() -> None:
    index = np.full(8, -1, dtype=np.int32)
    assert distances(COUNTY, partition(index, 2)).tolist() == [0, 0]
