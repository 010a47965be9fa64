"""The law of the draws against the exact probabilities, with OpenDP and rejection put through the same tests.

Draws from a seed give the same verdict every time, so their tests raise no false alarm; OpenDP has no seed, and its
tests alarm falsely with probability below 1e-8 each (P_UNSEEDED), 5 of them: below 1e-7 per run.
"""

from fractions import Fraction

import numpy as np
import opendp.prelude as dp
import pytest
from numpy.typing import NDArray
from probabilities import pmf_array
from scipy import stats

from yupana.privacy.entropy import SeededEntropy, SystemEntropy
from yupana.privacy.laws import DiscreteGaussian, TwoSidedGeometric
from yupana.privacy.sampler import draw_by_rejection, sample

pytestmark = pytest.mark.quality

dp.enable_features("contrib")

Law = DiscreteGaussian | TwoSidedGeometric

P_SEEDED = 1e-3
P_UNSEEDED = 1e-8

LAWS = [
    DiscreteGaussian(Fraction(1, 10)),
    DiscreteGaussian(Fraction(1, 2)),
    DiscreteGaussian(Fraction(1)),
    DiscreteGaussian(Fraction(10, 3)),
    DiscreteGaussian(Fraction(196, 2) / Fraction("0.662976")),  # PH3, states A-G
    DiscreteGaussian(Fraction(900)),
    DiscreteGaussian(Fraction(484, 2) / Fraction("0.141622")),  # PH1, states A-G
    DiscreteGaussian(Fraction(484, 2) / Fraction("0.002619")),  # PH1, nation
    DiscreteGaussian(Fraction(9_000_000)),
    TwoSidedGeometric(Fraction(1, 4)),
    TwoSidedGeometric(Fraction(1)),
    TwoSidedGeometric(Fraction(22, 3)),
    TwoSidedGeometric(Fraction(2000)),
]


def p_value(law: Law, draws: NDArray[np.int64]) -> float:
    """Chi-square of all integers, the sparse ones pooled outwards so that each class expects 20 draws."""
    reach = int(max(np.abs(draws).max(), 20 * law.variance**0.5)) + 1
    observed = np.bincount(draws + reach, minlength=2 * reach + 1)
    expected = pmf_array(law, reach) * draws.size
    # Classes grow from the far left to the far right until each expects enough.
    total = np.cumsum(expected)
    labels = np.floor(total / 20).astype(np.int64)
    labels = np.minimum(labels, labels[-1] - 1)
    seen, due = np.bincount(labels, observed), np.bincount(labels, expected)
    kept = due > 0
    return float(stats.chisquare(seen[kept], due[kept] * draws.size / due[kept].sum()).pvalue)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_draws_follow_the_exact_probabilities(law: Law) -> None:
    assert p_value(law, sample(law, 2_000_000, SeededEntropy(1))) > P_SEEDED


def test_draws_from_the_operating_system_follow_them_too() -> None:
    law = LAWS[4]
    assert p_value(law, sample(law, 2_000_000, SystemEntropy())) > P_UNSEEDED


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_far_tails_are_neither_cut_nor_fat(law: Law) -> None:
    size = 4_000_000
    draws = sample(law, size, SeededEntropy(2))
    for p in (1e-3, 1e-5):
        point = -law.quantile(p)
        beyond, expected = int((np.abs(draws) >= point).sum()), 2 * law.cdf(-point)
        assert stats.binomtest(beyond, size, expected).pvalue > P_SEEDED / 10


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_signs_are_fair_and_neighbours_independent(law: Law) -> None:
    draws = sample(law, 2_000_000, SeededEntropy(4))
    moved = draws[draws != 0]
    if moved.size:
        assert stats.binomtest(int((moved > 0).sum()), moved.size).pvalue > P_SEEDED
    for lag in (1, 2, 8, 65_536):
        product = (draws[:-lag] * draws[lag:]).astype(np.float64)
        z = product.sum() / (law.variance * product.size**0.5)
        assert 2 * stats.norm.sf(abs(z)) > P_SEEDED / 10


@pytest.mark.sampled(2)
@pytest.mark.parametrize("law", [LAWS[i] for i in (0, 3, 5, 9, 11)], ids=str)
def test_rejection_is_a_second_opinion(law: Law) -> None:
    entropy = SeededEntropy(3)
    draws = np.array([draw_by_rejection(law, entropy) for _ in range(10_000)])
    assert p_value(law, draws) > P_SEEDED


@pytest.mark.sampled(1)
@pytest.mark.parametrize("sigma2", [Fraction(1, 4), Fraction(1), Fraction(100), Fraction(90_000)])
def test_opendp_is_a_third_opinion(sigma2: Fraction) -> None:
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T=float)
    # The roots of these are exact floats, so OpenDP draws from the same law.
    measurement = dp.m.make_gaussian(*space, scale=float(sigma2) ** 0.5)
    draws = np.array(measurement([0] * 20_000))
    assert p_value(DiscreteGaussian(sigma2), draws) > P_UNSEEDED


def test_the_test_tells_a_wrong_law_from_the_right_one() -> None:
    # Half the variance, a rounded continuous normal at small sigma, and a cut tail must all be noticed.
    law = DiscreteGaussian(Fraction(1))
    assert p_value(law, sample(DiscreteGaussian(Fraction(1, 2)), 100_000, SeededEntropy(1))) < P_UNSEEDED
    rounded = np.rint(np.random.default_rng(1).normal(size=2_000_000)).astype(np.int64)
    assert p_value(law, rounded) < P_UNSEEDED
    draws = sample(law, 4_000_000, SeededEntropy(1))
    assert p_value(law, draws[np.abs(draws) < 4]) < P_UNSEEDED
