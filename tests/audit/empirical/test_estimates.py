"""Estimates of losses and lower bounds over many draws: no more errors than they allow. All draws are seeded."""

import math
from fractions import Fraction

import numpy as np
import pytest
from lower_bound import lower_bound
from scipy import stats

from yupana.audit.empirical.local_likelihood import estimate_loss, known_loss
from yupana.audit.empirical.series import checked
from yupana.privacy.entropy import SeededEntropy
from yupana.privacy.laws import DiscreteGaussian, TwoSidedGeometric
from yupana.privacy.sampler import sample

pytestmark = pytest.mark.quality

LAWS = [
    *(TwoSidedGeometric(Fraction(scale)) for scale in (4, 2, 1, Fraction(1, 2))),
    *(DiscreteGaussian(Fraction(sigma2)) for sigma2 in (25, 9, 4, 1)),
]
WIDER = [
    *(TwoSidedGeometric(Fraction(scale)) for scale in (1000, 100, 20, 8)),
    *(DiscreteGaussian(Fraction(sigma2)) for sigma2 in (10_000, 1000, 100)),
]
"""Laws of which a draw takes longer."""


def draws_of(law: DiscreteGaussian | TwoSidedGeometric) -> int:
    """Fewer where each takes a second."""
    return 20 if law.variance < 5000 else 12


@pytest.mark.sampled(4)
@pytest.mark.parametrize("law", [*LAWS, *(pytest.param(law, marks=pytest.mark.thorough) for law in WIDER)], ids=str)
def test_the_true_loss_is_recovered_over_a_grid_of_budgets(law: DiscreteGaussian | TwoSidedGeometric) -> None:
    true, number = known_loss(law).loss, draws_of(law)
    found = [estimate_loss(checked(sample(law, 2663, SeededEntropy(1000 + i)).astype(float))) for i in range(number)]
    mean = float(np.mean([estimate.loss for estimate in found]))
    assert mean == pytest.approx(true, rel=0.06)
    covered = sum(estimate.lower <= true <= estimate.upper for estimate in found)
    # Of intervals with 95% confidence, fewer than this many hold the truth with probability 1e-6.
    assert covered >= stats.binom.ppf(1e-6, number, 0.95)


@pytest.mark.parametrize("law", [TwoSidedGeometric(Fraction(8)), DiscreteGaussian(Fraction(100))], ids=str)
@pytest.mark.thorough
def test_too_wide_and_too_narrow_a_bandwidth_are_noticed(law: DiscreteGaussian | TwoSidedGeometric) -> None:
    drawn = [checked(sample(law, 2663, SeededEntropy(2000 + i)).astype(float)) for i in range(10)]
    narrow = [estimate_loss(residuals, 0.1).warnings for residuals in drawn]
    fitting = [estimate_loss(residuals).warnings for residuals in drawn]
    assert sum(map(bool, narrow)) >= 9
    assert sum(map(bool, fitting)) <= 2
    if isinstance(law, TwoSidedGeometric):  # a parabola is no approximation across the peak
        wide = [checked(sample(law, 20_000, SeededEntropy(3000 + i)).astype(float)) for i in range(4)]
        assert all(estimate_loss(residuals, 1.0).warnings for residuals in wide)


@pytest.mark.parametrize("audits", [25, pytest.param(150, marks=pytest.mark.thorough)])
def test_a_bound_passes_the_true_rho_no_more_often_than_it_may(audits: int) -> None:
    # At a confidence of one half, where chance would show: of all audits at most half may be wrong.
    generator = np.random.default_rng(1)
    wrong = {"rho": 0, "epsilon": 0}
    rho = 0.5
    for _ in range(audits):
        here, there = generator.normal(size=(2, 300, 6))
        here[:, :2] += math.sqrt(rho)
        wrong["rho"] += lower_bound(here, there, confidence=0.5).rho > rho
        here, there = generator.laplace(size=(2, 300, 6))
        here[:, 0] += 1
        wrong["epsilon"] += lower_bound(here, there, confidence=0.5).epsilon > 1
    assert max(wrong.values()) < audits / 2
