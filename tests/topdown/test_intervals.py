"""Intervals from replicates: those of the Census Bureau on its own output, their rules, and sums one by one."""

from fractions import Fraction
from math import atan, ceil, floor, pi, sqrt
from statistics import mean, stdev

import numpy as np
import pytest

from yupana.geography.published import Areas
from yupana.release.lines import digits
from yupana.topdown.histogram import Histogram, count_entries
from yupana.topdown.intervals import MonteCarloIntervals, ReplicateErrors, critical_value

NINETY = Fraction(9, 10)

SAMPLE = """
H0040001 1379 1371 1387 3 -4 3 -6 3 10 -3 1 0 -3 6 -1 1 0 -3 -1 -2 3 7 -5 1 3 1 -2 5
H0040002 106 101 111 1 -1 2 -3 2 0 0 -3 -1 -2 4 -3 -2 -1 0 -1 3 5 -1 -3 3 1 2 3 2
H0040003 17 10 29 0 -3 -4 -6 1 -3 -4 -2 1 6 2 -3 -3 -6 -4 0 -2 -1 -9 -4 -9 -7 -8 -2 0
H0040004 383 373 393 2 -1 11 3 10 4 4 -1 3 -8 2 4 5 -2 0 2 4 -5 1 0 0 4 -1 8 -2
PCT0080001 665025 664985 665065 -14 -9 -2 12 3 -5 43 -51 -11 20 -15 10 5 -45 -17 15 -14 4 -5 2 17 24 0 -4 0
PCT0080002 663773 663722 663824 -36 -2 -52 -7 -11 -7 25 -38 -5 -31 -22 24 8 -65 -29 10 -3 1 -28 -1 -7 1 20 -24 2
PCT0080003 744 577 807 51 75 -15 41 45 55 60 31 82 23 50 80 31 33 65 80 43 46 48 63 86 61 15 72 73
PCT0080021 13 1 25 -8 -1 -6 2 0 1 0 3 3 2 -11 -12 -3 -4 -2 -6 13 3 -9 1 3 -7 1 5 0
PCT0080029 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
H0010001 1313 1313 1313 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
H0010002 1220 1209 1231 5 10 -5 4 1 0 -5 0 0 -3 1 3 -9 -8 -6 -8 -10 3 8 -8 4 -2 4 0 1
H0010003 93 82 104 -5 -10 5 -4 -1 0 5 0 0 3 -1 -3 9 8 6 8 10 -3 -8 8 -4 2 -4 0 -1
P0010003 3536 3513 3559 22 -16 6 -1 -15 9 2 10 0 -8 -4 20 -2 8 -1 1 -17 4 8 -7 1 15 -24 -7 -4
P0010004 187 174 200 0 1 4 4 9 -2 13 13 -2 0 2 7 2 7 -7 -3 -2 11 13 -2 -7 -2 -4 1 3
P0010005 8 1 15 -4 2 1 -3 -1 -3 8 -7 -6 0 4 -1 0 2 -3 -3 1 1 0 -1 1 0 -3 1 0
"""
"""Output of TopDown on the 2010 Census: a query, its published count, the interval that the Bureau gives, and by
how much each of 25 replicates differs (github.com/uscensusbureau/AMC_Confidence_Intervals, CC0)."""

PUBLISHED = (
    (4, -0.68, 3.45, 0, 11),
    (831, 2.96, 6.85, 817, 845),
    (16_895, -1.44, 13.72, 16_867, 16_923),
    (107, -2.20, 6.26, 94, 120),
    (2_923, 4.04, 6.19, 2_906, 2_932),
    (4, -2.88, 3.02, 0, 11),
)
"""Count, bias and root mean squared error of 25 replicates, and interval: tables 4 and 5 of the Bureau's paper."""


def summed(replicates: np.ndarray) -> ReplicateErrors:
    found = ReplicateErrors.none(replicates.shape[1:])
    for errors in replicates:
        found.add(errors)
    return found


def test_the_fifteen_intervals_of_the_census_bureau() -> None:
    rows = np.array([line.split()[1:] for line in SAMPLE.split("\n") if line], dtype=np.int64)
    bounds = summed(rows[:, 3:].T).bounds(rows[:, 0], NINETY)
    assert len(rows) == 15
    assert bounds.lower.tolist() == rows[:, 1].tolist()
    assert bounds.upper.tolist() == rows[:, 2].tolist()


@pytest.mark.parametrize(("count", "bias", "rmse", "lower", "upper"), PUBLISHED)
def test_examples_of_the_paper(count: int, bias: float, rmse: float, lower: int, upper: int) -> None:
    errors = ReplicateErrors(25, np.array([round(25 * bias)]), np.array([round(25 * rmse**2)]))
    bounds = errors.bounds(np.array([count]), NINETY)
    assert (bounds.lower[0], bounds.upper[0]) == (lower, upper)


def test_every_rule_as_it_is_written() -> None:
    draw = np.random.default_rng(1)
    counts = draw.choice([0, 4, 5, 6, 24, 25, 26, 4000], size=3000)
    spread, shift = draw.integers(0, 9, size=(2, 3000))
    replicates = np.maximum(
        counts + draw.integers(-1, 2, 3000) * shift + draw.integers(-spread, spread + 1, (7, 3000)), 0
    )
    bounds = summed(replicates - counts).bounds(counts, Fraction(4, 5))
    corrected = 0
    for x0, xs, lower, upper in zip(counts.tolist(), replicates.T.tolist(), bounds.lower, bounds.upper, strict=True):
        bias, deviation = mean(xs) - x0, stdev(xs)
        correct = deviation > 0 and x0 > 5 and abs(bias) / deviation >= 0.5 and (bias < 0 or x0 >= 25)
        corrected += correct
        centre = x0 - bias if correct else x0
        reach = critical_value(Fraction(4, 5)) * sqrt(mean([(x - x0) ** 2 for x in xs]))
        assert (lower, upper) == (max(floor(centre - reach), 0), max(ceil(centre + reach), 0))
    assert 500 < corrected < 2500


@pytest.mark.parametrize("confidence", [Fraction(1, 2), NINETY, Fraction(99, 100), 1 - Fraction(1, 10**15)])
def test_critical_value_of_any_confidence(confidence: Fraction) -> None:
    # The tail of Student's distribution with 5 degrees of freedom has a closed form; beyond 1e3 its series.
    angle = atan(sqrt(5) / critical_value(confidence))
    tail = (angle - np.sin(angle) * np.cos(angle) * (1 + 2 / 3 * np.sin(angle) ** 2)) / pi
    if angle < 1e-2:
        tail = 8 * angle**5 / 15 / pi
    assert tail == pytest.approx(float((1 - confidence) / 2), rel=1e-3 if angle < 1e-2 else 1e-9)
    assert critical_value(NINETY) == pytest.approx(2.015048, abs=1e-6)


def test_counts_that_never_change_have_no_margin() -> None:
    counts = np.array([0, 7, 10**9])
    bounds = summed(np.zeros((25, 3), dtype=np.int64)).bounds(counts, NINETY)
    assert bounds.lower.tolist() == bounds.upper.tolist() == counts.tolist()
    assert not bounds.margins.any()


def test_one_replicate_is_not_enough() -> None:
    with pytest.raises(ValueError, match="two replicates"):
        summed(np.zeros((1, 3), dtype=np.int64)).bounds(np.zeros(3, dtype=np.int64), NINETY)


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
