"""Intervals of cells and of tables from replicates, beside sums over all cells of all areas one by one."""

from fractions import Fraction

import numpy as np
import pytest

from yupana.geography.published import Areas
from yupana.release.lines import digits
from yupana.topdown.histogram import Histogram, count_entries
from yupana.topdown.monte_carlo.errors import ReplicateErrors
from yupana.topdown.monte_carlo.intervals import MonteCarloIntervals

BLOCKS, CELLS, NUMBER = 30, 7, 6
LEVEL = Fraction(4, 5)

AREAS = [
    Areas("block", digits(np.arange(BLOCKS), 2), np.random.default_rng(3).permutation(BLOCKS), ""),
    Areas("group", digits(np.arange(9), 1), np.arange(BLOCKS) * 9 // BLOCKS, "block"),
    Areas("place", digits(np.arange(4), 1), np.random.default_rng(4).integers(-1, 4, BLOCKS), ""),
]


def sparse(dense: np.ndarray) -> Histogram:
    unit, cell = np.nonzero(dense)
    return count_entries(unit, cell.astype(np.int32), dense[unit, cell], len(dense))


def dense_sums(counts: np.ndarray) -> dict[str, np.ndarray]:
    block = np.zeros_like(counts)
    block[AREAS[0].index] = counts
    group = np.array([block[AREAS[1].index == area].sum(axis=0) for area in range(9)])
    place = np.array([counts[AREAS[2].index == area].sum(axis=0) for area in range(4)])
    return {"block": block, "group": group, "place": place}


@pytest.fixture
def drawn() -> tuple[list[np.ndarray], MonteCarloIntervals]:
    draw = np.random.default_rng(5)
    true = draw.integers(0, 12, (BLOCKS, CELLS)) * (draw.random((BLOCKS, CELLS)) < 0.5)
    about = [np.maximum(true + draw.integers(-3, 4, true.shape), 0) for _ in range(NUMBER)]
    found = MonteCarloIntervals.of(sparse(true), map(sparse, about), AREAS, LEVEL)
    return [true, *about], found


def expected(counts: np.ndarray, replicates: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    errors = ReplicateErrors.none(counts.shape)
    for replicate in replicates:
        errors.add(replicate - counts)
    bounds = errors.bounds(counts, LEVEL)
    return bounds.lower, bounds.upper


@pytest.mark.parametrize("kind", AREAS, ids=lambda kind: kind.name)
def test_cells(drawn: tuple[list[np.ndarray], MonteCarloIntervals], kind: Areas) -> None:
    counts, *others = [dense_sums(one)[kind.name] for one in drawn[0]]
    lower, upper = expected(counts, others)
    bounds = drawn[1].of_cells(kind, sparse(counts))
    assert bounds.lower.tolist() == lower[counts > 0].tolist()
    assert bounds.upper.tolist() == upper[counts > 0].tolist()


@pytest.mark.parametrize("kind", AREAS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("part", [(0, 4), (2, 3), (1, 1)])
def test_variables_of_tables_zeros_included(
    drawn: tuple[list[np.ndarray], MonteCarloIntervals], kind: Areas, part: tuple[int, int]
) -> None:
    # Each cell counts in up to two of five variables; the last variable has no cell.
    member = np.array([[0, 1], [0, 1], [0, 2], [-1, 2], [3, -1], [0, 3], [-1, -1]])
    sums = np.zeros((CELLS, 5), dtype=np.int64)
    for cell, variables in enumerate(member):
        for variable in variables[variables >= 0]:
            sums[cell, variable] = 1
    counts, *others = [dense_sums(one)[kind.name] @ sums for one in drawn[0]]
    lower, upper = expected(counts, others)
    bounds = drawn[1].of_table(kind, member, 5, *part)
    assert np.array_equal(bounds.lower, lower[slice(*part)])
    assert np.array_equal(bounds.upper, upper[slice(*part)])
    assert (lower <= upper).all()


def test_nothing_anywhere() -> None:
    nothing = sparse(np.zeros((BLOCKS, CELLS), dtype=np.int64))
    some = sparse(np.eye(BLOCKS, CELLS, dtype=np.int64))
    found = MonteCarloIntervals.of(nothing, [nothing, some], AREAS, LEVEL)
    assert not len(found.of_cells(AREAS[0], nothing).lower)
    bounds = found.of_table(AREAS[0], np.zeros((CELLS, 1), dtype=np.int64), 1, 0, BLOCKS)
    assert (bounds.upper > 0).sum() == CELLS
