"""Intervals of published counts: estimates and variances against one dense system over all blocks, and what is exact or
unknown."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from measured_trees import Dense, World, worlds
from numpy.typing import NDArray

from yupana.arrays import Floats, Ints
from yupana.geography.published import Areas
from yupana.geography.spine import Geolevel, Spine
from yupana.geography.tree import Tree
from yupana.release.lines import digits
from yupana.topdown.constraints import UNKNOWN, Known
from yupana.topdown.histogram import count_entries
from yupana.topdown.queries import Attribute, Query, Schema, margin
from yupana.topdown.tree import intervals
from yupana.topdown.tree import margins as module
from yupana.topdown.tree.intervals import least_squares_intervals
from yupana.topdown.tree.least_squares import TreeAnswers


@dataclass(frozen=True)
class Measured:
    """The measurements of a world, as files of measurements have them: a variance for each unit and query."""

    world: World

    def queries(self, level: int) -> tuple[Query, ...]:
        return tuple(measured.query for measured in self.world.levels[level])

    def precisions(self, level: int, first: int, last: int) -> Floats:
        rows = [measured.precision[first:last] for measured in self.world.levels[level]]
        return np.array(rows).reshape(len(rows), last - first).T

    def answers(self, level: int, first: int, last: int) -> list[NDArray[np.generic]]:
        return [measured.answers[first:last] for measured in self.world.levels[level]]


def make_schema(shape: tuple[int, ...]) -> Schema:
    return Schema(tuple(Attribute(f"a{i}", tuple(map(str, range(n)))) for i, n in enumerate(shape)))


def spine_of(world: World) -> Spine:
    none = np.zeros(0, dtype=np.int64)
    levels = tuple(Geolevel(name, 1, none, none, none, none > 0) for name in world.tree.names)
    return Spine(world.tree, levels, (Fraction(1),))


def kinds_of(data: st.DataObject, blocks: int) -> list[Areas]:
    """Areas of blocks wherever they lie, some in none, and others that add these up."""
    index = np.array(data.draw(st.lists(st.integers(-1, 2), min_size=blocks, max_size=blocks)), dtype=np.int64)
    above = np.array(data.draw(st.lists(st.integers(-1, 1), min_size=4, max_size=4)), dtype=np.int64)
    code = np.arange(4)
    return [
        Areas("block", digits(np.arange(blocks), 4), np.arange(blocks), ""),
        Areas("place", digits(code, 1), index, ""),
        Areas("region", digits(code[:2], 1), above, "place"),
    ]


def blocks_in(kinds: list[Areas]) -> Iterator[tuple[Areas, Ints]]:
    """Which blocks lie in each area, of shape (areas, blocks)."""
    for kind in kinds:
        index = kind.index if not kind.below else np.where(kinds[1].index < 0, -1, kind.index[kinds[1].index])
        yield kind, (np.arange(kind.number)[:, None] == index).astype(np.int64)


@settings(max_examples=60, deadline=None)
@given(worlds(), st.data())
@pytest.mark.thorough
def test_sums_of_cells_in_areas_are_those_of_the_dense_least_squares(world: World, data: st.DataObject) -> None:
    """However few blocks and areas are held at once, and whichever margins were estimated before."""
    cells = int(np.prod(world.shape))
    kinds = kinds_of(data, world.tree.units(len(world.tree.names) - 1))
    rows = np.array(
        data.draw(st.lists(st.lists(st.integers(0, 1), min_size=cells, max_size=cells), min_size=1, max_size=3))
    ).astype(float)
    dense = Dense(world)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_VALUES_AT_ONCE", data.draw(st.sampled_from((1, 2 * cells, 1 << 22))))
        patch.setattr(intervals, "_VALUES_HELD", data.draw(st.sampled_from((0, 4 * cells, 1 << 22))))
        found = least_squares_intervals(
            Measured(world), spine_of(world), make_schema(world.shape), {}, kinds, Fraction(9, 10)
        )
        if data.draw(st.booleans()):  # then coarser margins are summed from the finest
            found.sums_of_cells("place", np.eye(cells), 0, 1)
        for kind, inside in blocks_in(kinds):
            first = data.draw(st.integers(0, len(inside) - 1))
            last = data.draw(st.integers(first, len(inside)))
            mine = found.sums_of_cells(kind.name, rows, first, last)
            assert mine.estimate.shape == (last - first, len(rows))
            for area in range(first, last):
                value, variance = dense.of(np.kron(inside[area], rows))
                np.testing.assert_array_equal(np.isinf(mine.variance[area - first]), np.isinf(variance))
                finite = np.isfinite(variance)
                near = {"rtol": 1e-6, "atol": 1e-6}
                np.testing.assert_allclose(mine.variance[area - first][finite], variance[finite], **near)
                np.testing.assert_allclose(mine.estimate[area - first][finite], value[finite], **near)


@settings(max_examples=30, deadline=None)
@given(worlds(), st.data())
@pytest.mark.thorough
def test_entries_of_a_histogram_are_sums_of_one_cell(world: World, data: st.DataObject) -> None:
    cells = int(np.prod(world.shape))
    kinds = kinds_of(data, world.tree.units(len(world.tree.names) - 1))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_VALUES_AT_ONCE", data.draw(st.sampled_from((1, 1 << 22))))
        patch.setattr(intervals, "_VALUES_HELD", data.draw(st.sampled_from((0, 1 << 22))))
        found = least_squares_intervals(
            Measured(world), spine_of(world), make_schema(world.shape), {}, kinds, Fraction(9, 10)
        )
        for kind in kinds:
            areas = kind.number
            unit, cell = np.divmod(np.flatnonzero(rng.random(areas * cells) < 0.6), cells)
            counts = count_entries(unit, cell, np.ones(len(unit), dtype=np.int64), areas)
            every = found.sums_of_cells(kind.name, np.eye(cells), 0, areas)
            mine = found.of_cells(kind, counts)
            np.testing.assert_allclose(mine.estimate, every.estimate[unit, cell], atol=1e-7)
            np.testing.assert_allclose(mine.variance, every.variance[unit, cell], rtol=1e-7, atol=1e-9)


def test_table_variables_and_exact_totals() -> None:
    """A total that is kept has no width; of units whose total is not known nothing is said."""
    shape = (2, 3)
    parents = (np.zeros(1, np.int32), np.zeros(3, np.int32), np.array([0, 0, 1, 2, 2], np.int32))
    tree = Tree(("State", "County", "Block"), parents)
    truth = np.random.default_rng(3).integers(0, 40, (5, 6))
    detailed = margin("detailed", shape, (1, 1))
    rng = np.random.default_rng(4)
    counts = [
        np.array([truth[tree.ancestors(level) == u].sum(axis=0) for u in range(tree.units(level))])
        for level in range(3)
    ]
    levels = tuple(
        (TreeAnswers(detailed, exact + rng.integers(-5, 6, exact.shape), np.full(len(exact), 0.1)),) for exact in counts
    )
    totals = counts[1].sum(axis=1).astype(np.int64)
    known = {1: Known(np.where([True, False, True], totals, UNKNOWN), ())}
    world = World(shape, tree, levels)
    kinds = [
        Areas("block", digits(np.arange(5), 1), np.arange(5), ""),
        Areas("county", digits(np.arange(3), 1), tree.ancestors(1).astype(np.int64), "block"),
        Areas("empty", digits(np.arange(2), 1), np.full(5, -1), ""),
    ]
    found = least_squares_intervals(Measured(world), spine_of(world), make_schema(shape), known, kinds, Fraction(9, 10))
    # Variables: all, level 1 of the first attribute, the first and last cell together; the second cell is in none.
    member = np.array([[0, 2], [-1, -1], [0, -1], [0, 1], [0, 1], [1, 2]])
    bounds = found.of_table(kinds[1], member, 3, 0, 3)
    rows = np.array([[1, 0, 1, 1, 1, 0], [0, 0, 0, 1, 1, 1], [1, 0, 0, 0, 0, 1]])
    mine = found.sums_of_cells("county", rows.astype(float), 0, 3)
    np.testing.assert_array_equal(bounds.lower, mine.lower)
    np.testing.assert_array_equal(bounds.upper, mine.upper)
    everything = np.array([[0]] * 6)
    whole = found.of_table(kinds[1], everything, 1, 0, 3)
    np.testing.assert_array_equal(whole.lower[[0, 2], 0], totals[[0, 2]])
    np.testing.assert_array_equal(whole.upper[[0, 2], 0], totals[[0, 2]])
    assert whole.lower[1, 0] < whole.upper[1, 0]
    # A county of one block: its block is the county.
    blocks = found.of_table(kinds[0], everything, 1, 2, 3)
    assert (blocks.lower[0, 0], blocks.upper[0, 0]) == (whole.lower[1, 0], whole.upper[1, 0])
    # An area without a block counts nobody.
    nobody = found.of_table(kinds[2], member, 3, 0, 2)
    assert nobody.lower.shape == (2, 3)
    assert not nobody.lower.any()
    assert not nobody.upper.any()
    no_areas = found.of_table(kinds[0], member, 3, 2, 2)
    assert no_areas.lower.shape == (0, 3)


def test_what_is_not_measured_is_bounded_by_nothing() -> None:
    """A level without a share, queries that group levels, and answers that no measurement tells of."""
    shape = (2, 3)
    tree = Tree(("State", "Block"), (np.zeros(1, np.int32), np.zeros(2, np.int32)))
    total, race = margin("total", shape, (0, 0)), margin("race", shape, (0, 1))
    grouped = Query("grouped", ((0, 1), (0, 1, 1)))
    of_blocks = (
        TreeAnswers(total, np.array([[30], [50]]), np.array([0.5, 0.5])),
        TreeAnswers(race, np.array([[10, 9, 8], [7, 6, 5]]), np.array([0.0, 0.5])),
        TreeAnswers(grouped, np.full((2, 4), 1000), np.array([9.0, 9.0])),
    )
    world = World(shape, tree, ((), of_blocks))
    kinds = [
        Areas("block", digits(np.arange(2), 1), np.arange(2), ""),
        Areas("all", digits(np.arange(1), 1), np.zeros(2, np.int64), ""),
    ]
    found = least_squares_intervals(Measured(world), spine_of(world), make_schema(shape), {}, kinds, Fraction(9, 10))
    rows = np.array([[1] * 6, [1, 0, 0, 1, 0, 0], [1, 0, 0, 0, 0, 0]], dtype=float)
    blocks = found.sums_of_cells("block", rows, 0, 2)
    assert blocks.estimate[0, 0] == pytest.approx(30)
    assert np.isinf(blocks.variance).tolist() == [[False, True, True], [False, False, True]]
    assert blocks.lower[0].tolist() == [28, 0, 0]
    assert blocks.upper[0].tolist() == [32, np.iinfo(np.int64).max, np.iinfo(np.int64).max]
    assert np.isinf(found.sums_of_cells("all", rows, 0, 1).variance).tolist() == [[False, True, True]]
