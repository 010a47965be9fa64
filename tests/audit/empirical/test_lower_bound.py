"""The lower bounds on a loss: their parts against definitions, and pairs whose loss is known."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lower_bound import FEWEST, LowerBound, _ends, _epsilon, _lower_mean, _rho, lower_bound
from scipy import stats

from yupana.errors import InputError

probabilities = st.floats(0.001, 0.999)


def normal_pair(rho: float, runs: int = 4000, numbers: int = 12, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Outputs of a Gaussian mechanism on neighbours: exactly rho-zCDP, spread over a third of the numbers."""
    generator = np.random.default_rng(seed)
    here, there = generator.normal(size=(2, runs, numbers))
    here[:, : numbers // 3] += math.sqrt(2 * rho / (numbers // 3))
    return here, there


@given(st.integers(0, 50), st.integers(0, 50), st.floats(1e-7, 0.2))
@pytest.mark.slow
def test_ends_of_probabilities_are_those_of_clopper_and_pearson(hits: int, other: int, tail: float) -> None:
    low, high = _ends([hits, other], [50, 50], tail)
    due = [stats.binomtest(n, 50).proportion_ci(1 - 2 * tail, method="exact") for n in (hits, other)]
    assert low == pytest.approx(due[0].low, abs=1e-9)
    assert high == pytest.approx(due[1].high, abs=1e-9)


@given(probabilities, probabilities, st.floats(1.02, 50))
def test_no_renyi_divergence_of_an_event_passes_rho_times_its_order(p: float, q: float, order: float) -> None:
    if p <= q:
        assert _rho(p, q) == 0
        return
    divergence = math.log(p**order * q ** (1 - order) + (1 - p) ** order * (1 - q) ** (1 - order)) / (order - 1)
    # The search over orders is a grid.
    assert _rho(p, q) >= divergence / order * 0.99 - 1e-9
    kl = p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))
    assert _rho(p, q) <= max(kl, math.log(p / q)) + 1e-9


@given(probabilities, probabilities, st.floats(0, 0.5))
def test_epsilon_of_an_event_is_the_least_that_allows_it(p: float, q: float, delta: float) -> None:
    epsilon = _epsilon(p, q, delta)
    assert p <= math.exp(epsilon) * q + delta + 1e-12
    assert epsilon == 0 or p == pytest.approx(math.exp(epsilon) * q + delta)


@given(st.floats(0.05, 0.95))
@pytest.mark.slow
def test_a_lower_end_of_a_mean_is_seldom_above_it(share: float) -> None:
    generator = np.random.default_rng(round(share * 1e6))
    missed = sum(
        _lower_mean((generator.random(200) < share).astype(float), 1.0, 0.05, None) > share for _ in range(100)
    )
    assert missed <= 5


@pytest.mark.parametrize("rho", [0.25, 1.0, 2.5])
def test_a_sound_gaussian_is_not_accused_and_not_by_far(rho: float) -> None:
    bound = lower_bound(*normal_pair(rho))
    assert 0.2 * rho < bound.rho < rho
    assert bound.confidence == 1 - 1e-6
    assert bound.runs < 4000


def test_the_order_of_the_inputs_does_not_matter() -> None:
    here, there = normal_pair(1.0)
    one, other = lower_bound(here, there), lower_bound(there, here)
    assert one.rho == pytest.approx(other.rho, rel=0.2)


def test_too_little_noise_is_caught() -> None:
    assert lower_bound(*normal_pair(2.0, 8000)).rho > 1.0
    assert lower_bound(*normal_pair(1.0 * 22**2 / 10**2)).rho > 1.0


def test_a_number_without_noise_tells_all() -> None:
    here, there = normal_pair(0.01, 600)
    here[:, -1], there[:, -1] = 7, 6
    bound = lower_bound(here, there)
    # Nothing was seen to contradict, so chance alone limits the bound.
    assert bound.rho > 2.5
    assert bound.epsilon > 2.5


def test_an_epsilon_of_a_pure_mechanism_stays_below_its_promise() -> None:
    generator = np.random.default_rng(1)
    here, there = generator.laplace(0, 1 / 1.5, (2, 6000, 1))
    bound = lower_bound(here + 1, there)
    assert 0.8 < bound.epsilon < 1.5
    # An approximate promise allows a little more.
    assert lower_bound(here + 1, there, delta=0.1).epsilon < bound.epsilon


def test_equal_inputs_prove_nothing() -> None:
    here, there = normal_pair(0.0)
    bound = lower_bound(here, there)
    assert (bound.rho, bound.epsilon) == (0, 0)
    assert lower_bound(np.ones((100, 2)), np.ones((100, 2))).rho == 0


def test_the_bound_has_a_form_for_files() -> None:
    bound = LowerBound(1.0, 0.2, 0.3, 0.0, 0.99, 50)
    assert bound.rho == 0.3


@pytest.mark.parametrize(
    ("here", "there", "words"),
    [
        (np.zeros((100, 2)), np.zeros((100, 3)), "do not match"),
        (np.zeros((FEWEST - 1, 2)), np.zeros((100, 2)), "too few"),
        (np.zeros((100, 2)), np.full((100, 2), np.nan), "second input holds a number that is not finite"),
        (np.zeros(100), np.zeros(100), "do not match"),
    ],
)
def test_runs_that_are_none_are_refused(here: np.ndarray, there: np.ndarray, words: str) -> None:
    with pytest.raises(InputError, match=words):
        lower_bound(here, there)
