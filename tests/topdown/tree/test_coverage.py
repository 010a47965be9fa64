"""Intervals of the least squares on the tree cover what they say, at every level and for sums across branches.

400 replicates of one tree of discrete Gaussian measurements. The share of counts covered is averaged within each
replicate, so that the 400 shares are independent and their standard error is seen; each mean lies within 6 standard
errors of what docs/topdown-least-squares.md states, and 0.003 for noise being whole numbers. Less than 150 numbers,
each alarming falsely with 2e-9: below 1e-6. The seed is fixed.

What is stated is the confidence, and for counts of 0 half of what is missing to 1 besides: a normal interval that lies
below 0 altogether is raised to 0, which is right where the count is 0.
"""

from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pytest

from yupana.arrays import Floats
from yupana.geography.tree import Tree, partition
from yupana.privacy.entropy import SeededEntropy
from yupana.privacy.laws import DiscreteGaussian
from yupana.privacy.sampler import add_noise
from yupana.topdown.queries import Query, margin
from yupana.topdown.tree.basis import Basis
from yupana.topdown.tree.least_squares import (
    TreeAnswers,
    TreeEstimate,
    TreeIntervals,
    combined,
    down,
    intervals,
    own,
    precisions_of_sums,
    summed,
)

pytestmark = pytest.mark.quality

REPLICATES = 400
SHAPE = (2, 2, 5)
PARENTS = (
    np.zeros(1, dtype=np.int32),
    np.zeros(5, dtype=np.int32),
    np.repeat(np.arange(5), [1, 2, 4, 5, 6]).astype(np.int32),
    np.repeat(np.arange(18), np.arange(18) % 6 + 1).astype(np.int32),
)
TREE = Tree(("State", "Tract", "Block_Group", "Block"), PARENTS)
QUERIES = tuple(margin("x", SHAPE, kept) for kept in ((0, 0, 0), (1, 0, 0), (0, 1, 1), (1, 1, 1)))
VARIANCES = (
    {QUERIES[1]: Fraction(40), QUERIES[3]: Fraction(9)},
    {QUERIES[0]: Fraction(6), QUERIES[2]: Fraction(25), QUERIES[3]: Fraction(12)},
    {QUERIES[0]: Fraction(5), QUERIES[1]: Fraction(300), QUERIES[3]: Fraction(8)},
    {QUERIES[0]: Fraction(500), QUERIES[2]: Fraction(300), QUERIES[3]: Fraction(19, 2)},
)
"""By level; one block in seven and one block group are not measured, and the total of the root is exact."""


def answers(counts: Floats, query: Query) -> Floats:
    return np.stack([counts[..., query.answers() == group].sum(axis=-1) for group in range(query.size)], axis=-1)


@pytest.fixture(scope="module")
def world() -> tuple[list[Floats], list[TreeEstimate], list[TreeEstimate]]:
    """True counts by level, of shape (replicates, units, cells), and estimates of all replicates side by side."""
    rng, entropy, basis = np.random.default_rng(21), SeededEntropy(22), Basis(SHAPE)
    blocks = rng.poisson(rng.exponential(6, (TREE.units(3), 1)) * rng.dirichlet(np.full(20, 0.3), TREE.units(3)))
    truth = [np.zeros((TREE.units(level), 20), dtype=np.int64) for level in range(4)]
    for level in range(4):
        np.add.at(truth[level], TREE.ancestors(level), blocks)
    upward: list[TreeEstimate] = []
    parents = [
        (PARENTS[level] + TREE.units(level - 1) * np.arange(REPLICATES)[:, None]).ravel() if level else PARENTS[0]
        for level in range(4)
    ]
    for level in (3, 2, 1, 0):
        units = TREE.units(level)
        measured = []
        for query, variance in VARIANCES[level].items():
            exact = np.tile(answers(truth[level], query), (REPLICATES, 1))
            noisy = add_noise(exact.ravel(), DiscreteGaussian(variance), entropy).reshape(exact.shape)
            some = np.arange(units) % 7 > 0 if level == 3 else np.arange(units) != 9
            measured.append(TreeAnswers(query, noisy, np.tile(np.where(some, 1 / float(variance), 0.0), REPLICATES)))
        if level == 0:
            total = np.tile(answers(truth[0], QUERIES[0]), (REPLICATES, 1))
            measured.append(TreeAnswers(QUERIES[0], total, np.full(REPLICATES, np.inf)))
        alone = own(basis, units * REPLICATES, measured)
        if upward:
            alone = combined(basis, alone, summed(upward[0], parents[level + 1], units * REPLICATES))
        upward.insert(0, alone)
    final = upward[:1]
    for level in (1, 2, 3):
        final.append(down(basis, upward[level], parents[level], final[-1]))
    return [np.broadcast_to(counts, (REPLICATES, *counts.shape)) for counts in truth], upward, final


def check(found: TreeIntervals, true: Floats, confidence: float) -> None:
    """Compare intervals with counts, of shape (replicates, units, answers): coverage, bias and variance."""
    value, variance, lower, upper = (
        array.reshape(true.shape) for array in (found.estimate, found.variance, found.lower, found.upper)
    )
    known = np.isfinite(variance[0])
    assert known.mean() > 0.5
    value, variance, lower, upper, true = (array[:, known] for array in (value, variance, lower, upper, true))
    sigma = np.sqrt(variance)
    reach = NormalDist().inv_cdf((1 + confidence) / 2)
    stated = confidence + (1 - confidence) / 2 * (true[0] == 0).mean()
    covered = (lower <= true) & (true <= upper)
    errors = (value - true) / sigma
    for measured, expected, tolerance in (
        (covered, stated, 0.003),
        (np.abs(errors) <= reach, confidence, 0.003),
        (errors, 0.0, 1e-9),  # the errors of parts of an exact total cancel
        (errors**2, 1.0, 0.0),
    ):
        shares = measured.mean(axis=1)
        error = shares.std(ddof=1) / REPLICATES**0.5
        assert 0 < error < 0.1
        assert abs(shares.mean() - expected) < 6 * error + tolerance


@pytest.mark.parametrize("confidence", [0.9, 0.95])
@pytest.mark.parametrize("query", range(len(QUERIES)))
@pytest.mark.parametrize("level", range(4))
def test_intervals_cover_what_they_say(
    world: tuple[list[Floats], list[TreeEstimate], list[TreeEstimate]], level: int, query: int, confidence: float
) -> None:
    truth, _, final = world
    found = intervals(Basis(SHAPE), final[level], QUERIES[query], confidence)
    true = answers(truth[level], QUERIES[query])
    if level == 0 and query == 0:
        np.testing.assert_array_equal(found.lower, true.reshape(found.lower.shape))
        np.testing.assert_array_equal(found.upper, found.lower)
    else:
        check(found, true, confidence)


@pytest.mark.parametrize("query", range(len(QUERIES)))
def test_intervals_of_sums_across_branches_cover_what_they_say(
    world: tuple[list[Floats], list[TreeEstimate], list[TreeEstimate]], query: int
) -> None:
    truth, upward, final = world
    blocks = TREE.units(3)
    entity = np.random.default_rng(23).integers(-1, 4, blocks).astype(np.int32)
    spectra = [level.precision[: TREE.units(number)] for number, level in enumerate(upward)]
    precision = precisions_of_sums(TREE, spectra, spectra[0], partition(entity, 4))
    coordinates = final[3].coordinates.reshape(REPLICATES, blocks, -1)
    inside = (np.arange(4)[:, None] == entity).astype(float)
    sums = TreeEstimate((inside @ coordinates).reshape(REPLICATES * 4, -1), np.tile(precision, (REPLICATES, 1)))
    found = intervals(Basis(SHAPE), sums, QUERIES[query])
    true = answers(inside @ truth[3], QUERIES[query])
    check(found, true, 0.9)
