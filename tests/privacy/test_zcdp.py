"""Conversions of rho to (epsilon, delta), against published figures and brute force."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yupana.privacy.exact import INFINITE, read_exact, show_exact
from yupana.privacy.zcdp import epsilon_bun_steinke, epsilon_tight, rho_for_epsilon

RHO, DELTA = st.floats(1e-6, 1e3), st.floats(1e-15, 0.1)


def tight_by_grid(rho: float, delta: float) -> float:
    """The same infimum over a fine grid of alpha."""
    excess = np.exp(np.linspace(-25, 25, 400_001))
    alpha = 1 + excess
    bound = alpha * rho + (math.log(1 / delta) - np.log(alpha)) / excess - np.log1p(1 / excess)
    return max(0.0, float(bound.min()))


def test_production_rho_of_the_redistricting_data_gives_its_published_epsilon() -> None:
    # DAS 2020, persons and units: epsilon as published, at delta 1e-10.
    assert epsilon_tight(Fraction(293764, 114921), 1e-10) == pytest.approx(17.14, abs=0.06)
    assert epsilon_tight(Fraction(11417641, 152349649), 1e-10) == pytest.approx(2.47, abs=0.06)


def test_simple_conversion_is_its_formula() -> None:
    assert epsilon_bun_steinke(Fraction(1), math.exp(-4)) == pytest.approx(5)
    assert epsilon_bun_steinke(Fraction(0), 1e-10) == 0


@given(RHO, DELTA)
def test_tight_is_never_above_simple(rho: float, delta: float) -> None:
    assert 0 <= epsilon_tight(rho, delta) <= epsilon_bun_steinke(rho, delta) * (1 + 1e-12)


@pytest.mark.parametrize("rho", [1e-4, 0.0073, 0.5, 1.257281, 2.63, 50])
@pytest.mark.parametrize("delta", [1e-12, 1e-10, 1e-5, 0.01])
def test_tight_reaches_the_infimum(rho: float, delta: float) -> None:
    assert epsilon_tight(rho, delta) == pytest.approx(tight_by_grid(rho, delta), rel=1e-8, abs=1e-9)


@given(st.floats(1e-3, 100), DELTA)
def test_rho_for_epsilon_inverts(epsilon: float, delta: float) -> None:
    rho = rho_for_epsilon(epsilon, delta)
    assert epsilon_tight(rho, delta) <= epsilon
    assert epsilon_tight(rho * (1 + 1e-6), delta) >= epsilon * (1 - 1e-6)


@pytest.mark.parametrize(("epsilon", "delta"), [(1e-3, 0.1), (3.0, 0.99)])
def test_rho_above_epsilon_is_found_where_delta_allows_it(epsilon: float, delta: float) -> None:
    rho = rho_for_epsilon(epsilon, delta)
    assert rho > epsilon
    assert epsilon_tight(rho, delta) == pytest.approx(epsilon, rel=1e-9)


def test_tight_where_the_search_is_centred_on_one() -> None:
    assert epsilon_tight(1.0, math.exp(-1)) == pytest.approx(tight_by_grid(1.0, math.exp(-1)), rel=1e-8)


def test_limits_and_refusals() -> None:
    assert epsilon_tight(Fraction(0), 1e-10) == 0
    assert epsilon_tight(math.inf, 1e-10) == math.inf
    for bad in (0, 1, -1e-9, math.nan):
        with pytest.raises(ValueError, match=r"^delta must lie strictly between 0 and 1$"):
            epsilon_tight(1.0, bad)
    with pytest.raises(ValueError, match=r"^rho must be zero or more$"):
        epsilon_tight(-1.0, 1e-10)
    for none in (0, -1.0, math.inf, math.nan):
        with pytest.raises(ValueError, match=r"^epsilon must be positive and finite$"):
            rho_for_epsilon(none, 1e-10)


@given(st.fractions(min_value=0))
def test_exact_numbers_read_back(number: Fraction) -> None:
    assert read_exact(show_exact(number)) == number


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.002619", Fraction(2619, 10**6)),
        ("1e-6", Fraction(1, 10**6)),
        ("5", Fraction(5)),
        ("3/8", Fraction(3, 8)),
        (".5", Fraction(1, 2)),
    ],
)
def test_decimals_are_the_decimals_they_show(text: str, value: Fraction) -> None:
    assert read_exact(text) == value


@pytest.mark.parametrize("text", ["NaN", "", "1//2", "0x10", "1e9999", "--1", "1 2", "INF"])
def test_other_texts_are_no_numbers(text: str) -> None:
    with pytest.raises(ValueError, match=r"^not an exact number such as 0.25, 1e-6, 3/8 or Infinity$"):
        read_exact(text)


def test_a_fraction_of_nothing_is_no_number() -> None:
    with pytest.raises(ValueError, match=r"^a fraction with denominator zero$"):
        read_exact("1/0")


@pytest.mark.parametrize("text", ["Infinity", "inf", "Inf"])
def test_infinity_is_a_budget(text: str) -> None:
    assert read_exact(text) == INFINITE
    assert show_exact(INFINITE) == "Infinity"
