"""The laws of the noise against sums in high precision and against each other."""

import decimal
import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yupana.privacy.laws import DiscreteGaussian, TwoSidedGeometric, Zero

SIGMA2 = [
    Fraction(1, 100),
    Fraction(1, 3),
    Fraction(1),
    Fraction(10, 3),
    Fraction(147818322, 10**6),
    Fraction(9_000_000),
]
SCALES = [Fraction(1, 50), Fraction(1, 3), Fraction(1), Fraction(22)]


def exact(law: DiscreteGaussian | TwoSidedGeometric) -> dict[int, Decimal]:
    """The whole law at 60 digits."""
    a = Decimal(law.exponent.numerator) / Decimal(law.exponent.denominator)
    weights: dict[int, Decimal] = {}
    k = 0
    while (w := (-a * k**law.curvature).exp()) > Decimal(10) ** -60:
        weights[k] = weights[-k] = w
        k += 1
    total = sum(weights.values())
    return {k: w / total for k, w in weights.items()}


@pytest.mark.parametrize("law", [*map(DiscreteGaussian, SIGMA2[:5]), *map(TwoSidedGeometric, SCALES)], ids=str)
def test_probabilities_variance_and_cdf_match_sums_at_60_digits(law: DiscreteGaussian | TwoSidedGeometric) -> None:
    with decimal.localcontext(prec=60):
        probabilities = exact(law)
        variance = sum(p * k * k for k, p in probabilities.items())
    for k in (0, 1, 2, 5, 17, 60):
        if k in probabilities:
            assert law.pmf(k) == pytest.approx(float(probabilities[k]), rel=1e-12)
            tail = float(sum(p for j, p in probabilities.items() if j <= -k))
            assert law.cdf(-k) == pytest.approx(tail, rel=1e-11)
            assert law.cdf(k) == pytest.approx(float(sum(p for j, p in probabilities.items() if j <= k)), rel=1e-12)
    assert law.variance == pytest.approx(float(variance), rel=1e-11)


@given(
    st.one_of(
        st.builds(DiscreteGaussian, st.fractions(Fraction(1, 50), 10**7, max_denominator=10**6)),
        st.builds(TwoSidedGeometric, st.fractions(Fraction(1, 20), 10**4, max_denominator=10**6)),
    ),
    st.floats(1e-6, 1 - 1e-6),
)
def test_quantile_is_the_smallest_point_that_reaches_its_level(
    law: DiscreteGaussian | TwoSidedGeometric, p: float
) -> None:
    q = law.quantile(p)
    assert law.cdf(q) >= p
    assert law.cdf(q - 1) < p


def test_wide_gaussians_switch_to_the_normal_without_a_step() -> None:
    narrow, wide = DiscreteGaussian(Fraction(10**10)), DiscreteGaussian(Fraction(10**10 + 10**6))
    for k in (-250_000, -1, 0, 99_999, 300_000):
        assert narrow.cdf(k) == pytest.approx(wide.cdf(k), abs=2e-5)
    assert wide.cdf(196_000) == pytest.approx(0.5 * math.erfc(-196_000.5 / math.sqrt(2 * (10**10 + 10**6))), rel=1e-9)


def test_a_variance_that_is_not_positive_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^sigma2 must be positive$"):
        DiscreteGaussian(Fraction(0))
    with pytest.raises(ValueError, match=r"^scale must be positive$"):
        TwoSidedGeometric(Fraction(0))
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        DiscreteGaussian(Fraction(1)).quantile(1.0)


@pytest.mark.parametrize("law", [DiscreteGaussian(Fraction(1)), TwoSidedGeometric(Fraction(3, 2)), Zero()], ids=str)
@pytest.mark.parametrize("level", [0, 1, 1.5, -0.5, math.nan])
def test_levels_that_are_none_are_refused(law: DiscreteGaussian | TwoSidedGeometric | Zero, level: float) -> None:
    with pytest.raises(ValueError, match=r"^a quantile needs a level strictly between 0 and 1$"):
        law.quantile(level)


@pytest.mark.parametrize("law", [DiscreteGaussian(Fraction(1)), TwoSidedGeometric(Fraction(2))], ids=str)
def test_a_level_that_is_reached_exactly_has_the_point_that_reaches_it(
    law: DiscreteGaussian | TwoSidedGeometric,
) -> None:
    for k in range(-4, 5):
        assert law.quantile(law.cdf(k)) == k


def test_zero_is_certain() -> None:
    assert (Zero().pmf(0), Zero().cdf(-1), Zero().cdf(0), Zero().quantile(0.3), Zero().variance) == (1, 0, 1, 0, 0)
