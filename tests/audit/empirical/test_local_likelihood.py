"""Losses estimated with their uncertainty, against the laws they come from."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from probabilities import pmf_array
from scipy import stats

from yupana.audit.empirical.local_likelihood import estimate_loss, known_loss, repeated_loss
from yupana.audit.empirical.loss import LossRequest, examine, examine_mechanism, follows
from yupana.audit.empirical.series import Residuals, Series, checked, residuals_of
from yupana.errors import ConfigError, InputError
from yupana.privacy.entropy import SeededEntropy
from yupana.privacy.laws import DiscreteGaussian, TwoSidedGeometric
from yupana.privacy.sampler import sample

Law = DiscreteGaussian | TwoSidedGeometric


def drawn(law: Law, number: int = 3000, seed: int = 1) -> Residuals:
    return checked(sample(law, number, SeededEntropy(seed)).astype(float))


def in_due_shares(law: Law, reach: int, number: float = 1e8) -> Residuals:
    """Residuals exactly as often as they are due."""
    return Residuals(np.arange(-reach, reach + 1.0), np.rint(pmf_array(law, reach) * number) + 1e-9)


@given(st.fractions(Fraction(1, 3), 2000, max_denominator=50))
@pytest.mark.slow
def test_the_law_of_a_geometric_mechanism_tells_its_loss(scale: Fraction) -> None:
    assert known_loss(TwoSidedGeometric(scale), 99).loss == pytest.approx(1 / float(scale))


@given(st.fractions(2, 10_000, max_denominator=50))
@pytest.mark.slow
def test_the_law_of_a_gaussian_mechanism_tells_the_loss_at_the_end_of_the_range(sigma2: Fraction) -> None:
    found = known_loss(DiscreteGaussian(sigma2))
    x = max(abs(found.low), abs(found.high - 1))
    assert found.loss == pytest.approx((2 * x + 1) / (2 * float(sigma2)), rel=1e-6) or found.loss == pytest.approx(
        (2 * x - 1) / (2 * float(sigma2)), rel=1e-6
    )


@pytest.mark.parametrize("factor", [0.25, 0.5, 1.0])
def test_a_parabola_is_fitted_without_bias_at_any_bandwidth(factor: float) -> None:
    law = DiscreteGaussian(Fraction(100))
    found = estimate_loss(in_due_shares(law, 60), factor)
    assert found.method == "window"
    due = (2 * found.points + 1) / 200
    assert np.abs(found.curve - due).max() < 2e-4


@pytest.mark.thorough
def test_a_straight_line_is_fitted_without_bias_away_from_its_end() -> None:
    found = estimate_loss(in_due_shares(TwoSidedGeometric(Fraction(20)), 400), 0.25)
    far = np.abs(found.points + 0.5) > 3 * found.bandwidth
    assert far.any()
    assert np.abs(np.abs(found.curve[far]) - 0.05).max() < 5e-4


@pytest.mark.parametrize(
    "law",
    [*(TwoSidedGeometric(Fraction(s)) for s in (100, 8, 1)), *(DiscreteGaussian(Fraction(s)) for s in (1000, 25, 1))],
    ids=str,
)
def test_the_true_loss_lies_in_the_interval_and_near_the_estimate(law: Law) -> None:
    true = known_loss(law).loss
    found = estimate_loss(drawn(law))
    assert found.lower <= true <= found.upper
    assert found.loss == pytest.approx(true, rel=0.25)
    assert found.warnings == ()
    assert repeated_loss(drawn(law)) == pytest.approx(found.loss, rel=0.1)


def test_an_estimate_that_is_noise_or_smoothing_is_called_an_artefact() -> None:
    residuals = drawn(TwoSidedGeometric(Fraction(8)), 20_000)
    assert any(
        "noise dominates" in words for words in estimate_loss(drawn(TwoSidedGeometric(Fraction(8))), 0.1).warnings
    )
    assert any("too wide" in words for words in estimate_loss(residuals, 2).warnings)
    assert estimate_loss(residuals).warnings == ()


def test_single_values_that_stand_out_are_compared_with_their_neighbours() -> None:
    noise = sample(DiscreteGaussian(Fraction(100)), 5000, SeededEntropy(1)).astype(float)
    noise[:1000] = 0
    found = estimate_loss(checked(noise))
    assert found.method == "neighbours"
    assert "artefact of its bandwidth" in found.warnings[0]
    assert found.lower > 1
    # The same on a lattice that is shifted, as unrounded optima are.
    shifted = estimate_loss(checked(noise + 0.3))
    assert (shifted.method, shifted.lower) == ("neighbours", pytest.approx(found.lower))


def test_neighbouring_counts_have_the_interval_of_a_binomial_share() -> None:
    residuals = Residuals(np.array([-1.0, 0.0, 1.0]), np.array([50.0, 900.0, 50.0]))
    found = estimate_loss(residuals, percentile=99, confidence=0.9)
    ends = stats.binomtest(900, 950).proportion_ci(0.95, method="exact")
    assert found.upper == pytest.approx(math.log(ends.high / (1 - ends.high)))
    assert found.lower == pytest.approx(math.log(ends.low / (1 - ends.low)))
    assert found.loss == pytest.approx(math.log(18), rel=0.05)


def test_a_value_without_a_neighbour_has_no_upper_bound() -> None:
    found = estimate_loss(Residuals(np.array([-1.0, 0.0, 2.0]), np.array([400.0, 400.0, 400.0])), bandwidth=0.1)
    assert math.isinf(found.upper)
    assert "no upper bound" in found.warnings[0]


def test_residuals_are_held_against_the_law_they_are_said_to_follow() -> None:
    law = DiscreteGaussian(Fraction(50))
    assert follows(drawn(law), law) > 1e-3
    assert follows(drawn(DiscreteGaussian(Fraction(25))), law) < 1e-20
    noise = sample(DiscreteGaussian(Fraction(25)), 3000, SeededEntropy(1)).astype(float)
    finding = examine(Series("x", np.zeros(3000), noise, law), LossRequest())
    assert any("do not follow the law" in words for words in finding.warnings)
    assert finding.loss == known_loss(law).loss


def test_replicates_surround_the_loss_of_the_mechanism() -> None:
    law = TwoSidedGeometric(Fraction(4))
    finding = examine_mechanism(law, LossRequest(replicates=30), SeededEntropy(1))
    assert finding.replicates is not None
    assert finding.replicates.number == 30
    assert finding.replicates.lower < 0.25 < finding.replicates.upper
    assert finding.loss == pytest.approx(0.25)


def test_the_published_mode_resamples_counts() -> None:
    noise = sample(TwoSidedGeometric(Fraction(8)), 2663, SeededEntropy(1)).astype(float)
    finding = examine(Series("x", np.zeros(2663), noise), LossRequest("published", replicates=20))
    assert finding.curve is not None
    assert finding.replicates is not None
    assert finding.loss == finding.curve.largest
    assert finding.replicates.what == "resampled counts"
    assert any("noisy curve" in words for words in finding.warnings)


def test_unchanged_counts_are_residuals_of_zero() -> None:
    one = residuals_of(np.arange(40.0), np.arange(40.0) + np.arange(40) % 3, unchanged=5)
    other = residuals_of(np.arange(45.0), np.arange(45.0) + np.r_[np.arange(40) % 3, np.zeros(5)])
    assert (one.values == other.values).all()
    assert (one.times == other.times).all()
    assert residuals_of(np.zeros(40), np.ones(40), unchanged=3).times.tolist() == [3, 40]


@pytest.mark.parametrize(
    ("exact", "noisy", "words"),
    [
        (np.zeros(40), np.zeros(41), "do not match"),
        (np.zeros(29), np.arange(29), "29 residuals are too few"),
        (np.arange(40), np.arange(40) + 3, "all residuals are the same"),
        (np.r_[np.zeros(40), np.nan], np.arange(41), "exact count at position 41 is not a finite number"),
        (np.zeros(40), np.r_[np.arange(39), np.inf], "noisy count at position 40 is not a finite number"),
    ],
)
def test_counts_that_have_no_density_are_refused(exact: np.ndarray, noisy: np.ndarray, words: str) -> None:
    with pytest.raises(InputError, match=words):
        residuals_of(exact, noisy)


@pytest.mark.parametrize("width", [0.0, -1.0, math.nan, math.inf])
def test_a_bandwidth_must_be_above_zero(width: float) -> None:
    with pytest.raises(ConfigError, match="bandwidth"):
        LossRequest(bandwidth=width)


@pytest.mark.parametrize("level", [50.0, 100.0, math.nan, 5.0])
def test_a_range_must_hold_something(level: float) -> None:
    with pytest.raises(ConfigError, match="percentile"):
        LossRequest(percentile=level)


def test_residuals_of_billions_stay_whole() -> None:
    law = TwoSidedGeometric(Fraction(10**9))
    residuals = checked(sample(law, 2663, SeededEntropy(1)).astype(float))
    assert residuals.are_whole
    assert follows(residuals, law) > 1e-6
