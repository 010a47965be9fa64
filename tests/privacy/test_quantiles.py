"""How likely each of many errors may be large: compared with exact sums of binomial probabilities."""

from decimal import Decimal, localcontext
from fractions import Fraction
from math import ceil, comb

import numpy as np
import pytest

from yupana.privacy import coverage
from yupana.privacy.coverage import share_outside


def holding(quantile: Fraction, n: int, outside: Fraction) -> Fraction:
    """P(at least ceil(quantile n) of n independent rows are inside)."""
    inside = 1 - outside
    return sum(
        (comb(n, k) * inside**k * outside ** (n - k) for k in range(ceil(quantile * n), n + 1)), start=Fraction(0)
    )


@pytest.mark.parametrize("quantile", ["1", "1/2", "9/10", "1/3", "0.37", "1/1000"])
@pytest.mark.parametrize(("fewest", "most"), [(1, 1), (1, 23), (4, 30), (30, 30)])
@pytest.mark.parametrize("chance", ["0.9", "0.5", "0.999999", "1/5"])
def test_the_criterion_holds_for_each_number_of_rows_and_for_no_larger_share(
    quantile: str, fewest: int, most: int, chance: str
) -> None:
    q, c = Fraction(quantile), Fraction(chance)
    outside = share_outside(q, c, fewest, most, independent=True)
    numbers = range(fewest, most + 1)
    assert min(holding(q, n, outside) for n in numbers) >= c
    assert min(holding(q, n, outside * (1 + Fraction(1, 10**5))) for n in numbers) < c


@pytest.mark.parametrize("quantile", ["1", "1/2", "9/10"])
def test_rows_that_go_together_are_held_to_what_holds_whatever_their_law(quantile: str) -> None:
    q, c = Fraction(quantile), Fraction(9, 10)
    outside = share_outside(q, c, 1, 40, independent=False)
    # The worst joint law: with some chance one more than is allowed are outside, all together, each equally often.
    missed = max(n * outside / (n - ceil(q * n) + 1) for n in range(1, 41))
    assert Fraction(99, 100) * (1 - c) < missed <= 1 - c


def test_beyond_many_numbers_of_rows_a_bound_is_taken_that_is_safe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coverage, "_MOST_STEPS", 2)
    for quantile in ("1/2", "4/5"):
        for chance in ("0.9", "0.3"):
            q, c = Fraction(quantile), Fraction(chance)
            for independent in (True, False):
                outside = share_outside(q, c, 1, 60, independent=independent)
                assert min(holding(q, n, outside) for n in range(1, 61)) >= c


def test_the_largest_of_many_is_that_of_independent_rows() -> None:
    outside = share_outside(Fraction(1), Fraction(9, 10), 1, 3143, independent=True)
    assert float(outside) == pytest.approx(-np.expm1(np.log(0.9) / 3143), rel=1e-6)
    assert share_outside(Fraction(1), Fraction(9, 10), 10**9, 10**9, independent=True) > Fraction(1, 10**11)


@pytest.mark.parametrize(("n", "allowed"), [(10**6, 0), (10**7, 1), (10**9, 1), (10**7, 200), (10**9, 1000)])
def test_it_is_right_for_many_rows(n: int, allowed: int) -> None:
    for chance in ("1/2", "0.9", "0.000001", "0.999999"):
        c = Fraction(chance)
        outside = share_outside(1 - Fraction(allowed, n), c, n, n, independent=True)
        # P(Binomial(n, r) <= a), term after term in 40 digits.
        with localcontext(prec=40):
            r, missing = Decimal(outside.numerator) / Decimal(outside.denominator), Decimal(float(1 - c))
            term = total = ((1 - r).ln() * n).exp()
            for k in range(allowed):
                term *= Decimal(n - k) / (k + 1) * r / (1 - r)
                total += term
            assert 0 < 1 - total <= missing
            assert 1 - total > missing * (1 - Decimal("1e-6"))
