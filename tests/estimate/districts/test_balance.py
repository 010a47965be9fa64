"""Chances of balance against formulas, quadrature and draws; what a tightened rule promises, by simulation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from yupana.arrays import Floats
from yupana.estimate.districts import DRAWS, Rule, chance_broken, chance_of, departure, forms_of, tightened

RULES: tuple[Rule, ...] = ("range", "deviation")


def law(seed: int, districts: int, noise: float, *, known: bool) -> tuple[Floats, Floats]:
    """Populations about 1,000 and a covariance; with a known total the errors sum to 0."""
    rng = np.random.default_rng(seed)
    root = rng.normal(0, noise, (districts, districts)) / np.sqrt(districts)
    if known:
        root -= root.mean(axis=0)
    return 1000 + rng.normal(0, noise, districts), root @ root.T


def drawn(seed: int, mean: Floats, covariance: Floats, number: int) -> Floats:
    values, vectors = np.linalg.eigh(covariance)
    normal = np.random.default_rng(seed).standard_normal((number, len(mean)))
    return np.asarray(mean + normal @ (vectors * np.sqrt(np.maximum(values, 0))).T)


@given(st.sampled_from(RULES), st.integers(2, 6), st.integers(0, 2**32))
@settings(max_examples=200, deadline=None)
@pytest.mark.thorough
def test_a_rule_is_met_where_all_its_forms_are_within_their_bounds(rule: Rule, districts: int, seed: int) -> None:
    populations = np.random.default_rng(seed).uniform(500, 1500, districts)
    forms = forms_of(rule, populations, np.zeros((districts, districts)))
    share = float(departure(rule, populations))
    ideal = populations.sum() / districts
    sizes = {"range": max(populations) - min(populations), "deviation": max(abs(populations - ideal))}
    assert share == pytest.approx(sizes[rule] / ideal)
    assert np.abs(forms.value).max() / ideal == pytest.approx(share)
    assert len(forms.value) == {"range": districts * (districts - 1) // 2, "deviation": districts}[rule] or (
        districts == 2 and len(forms.value) == 1
    )


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("known", [True, False])
def test_variances_of_forms_are_those_of_draws(rule: Rule, *, known: bool) -> None:
    mean, covariance = law(3, 4, 20.0, known=known)
    forms = forms_of(rule, mean, covariance)
    rows = (
        np.eye(4) - 0.25
        if rule == "deviation"
        else np.array([np.eye(4)[i] - np.eye(4)[j] for i in range(4) for j in range(i + 1, 4)])
    )
    above, below = forms.deviations(0.1)
    for found, sign in ((above, 1), (below, -1)):
        exact = sign * rows - 0.1 / 4
        np.testing.assert_allclose(found**2, np.einsum("ij,jk,ik->i", exact, covariance, exact), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("rule", RULES)
def test_two_districts_of_a_known_sum_have_an_exact_chance(rule: Rule) -> None:
    estimate, sigma, tolerance = np.array([1010.0, 990.0]), 12.0, 0.03
    covariance = sigma**2 * np.array([[1.0, -1.0], [-1.0, 1.0]])
    found = chance_of(rule, tolerance, estimate, covariance)
    reach = tolerance * 1000 / (2 if rule == "range" else 1)
    exact = stats.norm.cdf((reach - 10) / sigma) - stats.norm.cdf((-reach - 10) / sigma)
    assert found.value == pytest.approx(exact, abs=1e-12)
    assert (found.standard_error, found.lower) == (0.0, found.value)


def test_two_districts_of_an_unknown_sum_have_the_chance_of_a_cone() -> None:
    estimate, covariance, tolerance = np.array([300.0, 280.0]), np.array([[900.0, 200.0], [200.0, 400.0]]), 0.1

    def given_first(first: float) -> float:
        """Within 10 percent of the mean of both: second from (1-t)/(1+t) to (1+t)/(1-t) of the first."""
        mean = 280 + 200 / 900 * (first - 300)
        deviation = np.sqrt(400 - 200**2 / 900)
        ends = (stats.norm.cdf((first * end - mean) / deviation) for end in (1.1 / 0.9, 0.9 / 1.1))
        high, low = ends
        return float((high - low) * stats.norm.pdf(first, 300, 30))

    exact, _ = integrate.quad(given_first, 100, 500, epsabs=1e-10)
    # The cone has two sides, whose far one differs from one inequality by what lies beyond the origin: nothing.
    assert chance_of("deviation", tolerance, estimate, covariance).value == pytest.approx(exact, abs=1e-6)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.slow
def test_draws_agree_with_other_draws_and_with_what_is_certain(rule: Rule, seed: int) -> None:
    estimate, covariance = law(seed, 3 + seed, 15.0, known=seed % 2 == 0)
    tolerance = float(departure(rule, estimate)) * 1.2
    found = chance_of(rule, tolerance, estimate, covariance)
    assert found == chance_of(rule, tolerance, estimate, covariance)
    share = (departure(rule, drawn(seed, estimate, covariance, 100_000)) <= tolerance).mean()
    assert 0 < found.standard_error < 2 / np.sqrt(DRAWS)
    assert abs(share - found.value) < 6 * np.hypot(found.standard_error, np.sqrt(0.25 / 100_000))
    assert found.lower <= found.value <= found.upper
    assert found.lower - 0.01 <= share <= found.upper + 0.01


@pytest.mark.parametrize("rule", RULES)
def test_what_is_known_meets_a_rule_or_does_not(rule: Rule) -> None:
    known = np.zeros((3, 3))
    for tolerance, value in ((0.1, 1.0), (0.0499, 0.0), (1 / 6 if rule == "range" else 0.1, 1.0)):
        populations = np.array([950.0, 1000.0, 1050.0])
        assert chance_of(rule, tolerance, populations, known).value == value
    assert tightened(rule, 0.1, 0.95, populations, populations, known) == pytest.approx(0.1)


def corners(rule: Rule, districts: int, share: float, rng: np.random.Generator) -> Floats:
    """Populations of mean 1,000 that just meet a rule: half of them high and half low, shuffled."""
    side = np.where(np.arange(districts) < districts // 2, 1.0, -1.0)
    if districts % 2:
        side[-1] = 0.0
    return np.asarray(1000 * (1 + rng.permutation(side) * share / (2 if rule == "range" else 1)))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("districts", [2, 3, 4, 8])
@pytest.mark.parametrize("shift", [0.0, 8.0])
def test_published_populations_that_meet_the_tightened_rule_keep_the_chance(
    rule: Rule, districts: int, shift: float
) -> None:
    """Given the measurements, under a flat prior, wherever the published populations lie: here at the worst corners."""
    rng = np.random.default_rng(districts)
    _, covariance = law(districts, districts, 12.0, known=True)
    apart = rng.normal(0, shift, districts)
    apart -= apart.mean()
    found = tightened(rule, 0.2, 0.9, np.full(districts, 1000.0) + apart, np.full(districts, 1000.0), covariance)
    assert found is not None
    assert 0 < found < 0.2
    worst = 1.0
    for _ in range(6):
        published = corners(rule, districts, found, rng)
        truth = drawn(5, published - apart, covariance, 20_000)
        worst = min(worst, (departure(rule, truth) <= 0.2).mean())
    assert worst > 0.9 - 4 * np.sqrt(0.09 / 20_000)
    if districts == 2:
        # One form: the largest tolerance there is.
        half = found * 1000 / 2 * (1 if rule == "range" else 2)
        ends = [np.array([1000 + s * half, 1000 - s * half]) - apart for s in (1, -1)]
        chances = [chance_of(rule, 0.2, end, covariance).value for end in ends]
        assert min(chances) == pytest.approx(0.9, abs=1e-6)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("known", [True, False])
def test_whatever_the_truth_is_a_plan_that_breaks_the_rule_seldom_passes_the_tightened_one(
    rule: Rule, *, known: bool
) -> None:
    """Over the noise: 500 estimates of each of some true populations, fixed seed; at most 5 percent, and 6 errors."""
    _, covariance = law(1, 5, 12.0, known=known)
    rng = np.random.default_rng(2)
    for trial in range(5):
        truth = corners(rule, 5, 0.1, rng) if trial else 1000 + np.array([100.0, -100, 0, 0, 0])
        truth = 1000 + (truth - 1000) * 0.1001 / departure(rule, truth)
        assert departure(rule, truth) > 0.1
        estimates = drawn(10 + trial, truth, covariance, 500)
        # Published otherwise than estimated, by what depends on the noise.
        published = estimates + 5 * np.sin(estimates)
        if known:
            published -= (published - estimates).mean(axis=1, keepdims=True)
        passed = []
        for one, two in zip(estimates, published, strict=True):
            share = float(departure(rule, two))
            passed.append(share <= 0.1 and chance_broken(rule, 0.1, share, two, one, covariance) <= 0.05)
        limit = tightened(rule, 0.1, 0.95, published[0], estimates[0], covariance)
        assert passed[0] == (limit is not None and departure(rule, published[0]) <= limit)
        assert np.mean(passed) <= 0.05 + 6 * np.sqrt(0.05 * 0.95 / 500)


def test_nothing_is_promised_where_noise_is_as_large_as_the_tolerance() -> None:
    _, covariance = law(4, 4, 300.0, known=True)
    even = np.full(4, 1000.0)
    assert tightened("range", 0.1, 0.95, even, even, covariance) is None
