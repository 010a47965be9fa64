"""Margins of error hold what they state: exact coverage by summed probabilities, and least budgets that reach it."""

import json
import math
from collections.abc import Iterator
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest

from yupana.cli.main import main
from yupana.plan.budgets import budget_for_margin
from yupana.plan.measurement import Mechanism, bound_of_estimate, margin_of, margin_of_error
from yupana.privacy.coverage import _comparisons, _in_doubles, covers, decimal_coverage, least_bound, noise_of
from yupana.privacy.laws import DiscreteGaussian, Law, TwoSidedGeometric, Zero

CONFIDENCES = [Fraction(c) for c in ("1/10", "1/2", "2/3", "9/10", "95/100", "99/100", "999999/1000000")]
SIGMAS = ["0.05", "0.2", "0.39", "0.41", "0.7", "1", "1.6", "4.5"]
SCALES = ["0.03", "0.2", "0.5", "1", "2.3", "6"]
GAUSSIANS = [DiscreteGaussian(Fraction(sigma) ** 2) for sigma in SIGMAS]
GEOMETRICS = [TwoSidedGeometric(Fraction(scale)) for scale in SCALES]
DIGITS = 60


def probabilities(law: Law) -> list[Decimal]:
    """P(X = 0), P(X = 1), ... by the definition of the law, down to 1e-60; sums to at most 1 with both signs."""
    weights = []
    with localcontext(prec=DIGITS + 20):
        assert isinstance(law, DiscreteGaussian | TwoSidedGeometric)
        rate = -Decimal(law.exponent.numerator) / Decimal(law.exponent.denominator)
        while not weights or weights[-1] > Decimal(10) ** -DIGITS:
            weights.append((rate * len(weights) ** law.curvature).exp())
        total = 2 * sum(weights) - weights[0]
        return [weight / total for weight in weights]


def convolved(laws: list[Law]) -> list[Decimal]:
    """P(S = 0), P(S = 1), ... of a sum of draws, by adding up all ways to reach each sum."""
    found = [Decimal(1)]
    with localcontext(prec=DIGITS + 20):
        for law in laws:
            one = probabilities(law)
            both = one[:0:-1] + one
            sums = [Decimal(0)] * (len(found) + len(both) - 1)
            for i, p in enumerate(found):
                for j, q in enumerate(both):
                    sums[i + j] += p * q
            found = sums
    return found[len(found) // 2 :]


def coverages(laws: list[Law]) -> Iterator[Fraction]:
    """P(|S| <= 0), P(|S| <= 1), ... to 1e-50."""
    total = Fraction(0)
    for k, p in enumerate(convolved(laws)):
        total += Fraction(p) * (2 if k else 1)
        yield total


def assert_least(laws: list[Law], confidences: list[Fraction] = CONFIDENCES) -> None:
    found = list(coverages(laws))
    noise = noise_of([(law, 1) for law in laws])
    for confidence in confidences:
        m = least_bound(noise, confidence)
        assert found[m] >= confidence, (laws, confidence, m)
        assert m == 0 or found[m - 1] < confidence, (laws, confidence, m)


@pytest.mark.parametrize("law", [*GAUSSIANS, *GEOMETRICS], ids=repr)
def test_the_margin_of_a_cell_is_the_smallest_that_covers(law: Law) -> None:
    assert_least([law])


@pytest.mark.parametrize("number", [2, 3, 5])
@pytest.mark.parametrize("law", [*GAUSSIANS[:5], *GEOMETRICS[:3]], ids=repr)
def test_the_margin_of_a_sum_of_cells_is_the_smallest_that_covers(law: Law, number: int) -> None:
    assert_least([law] * number)


@pytest.mark.parametrize(
    "laws",
    [
        [GAUSSIANS[0], GAUSSIANS[2], GAUSSIANS[5]],
        [GAUSSIANS[2], GAUSSIANS[3], GAUSSIANS[3]],
        [GEOMETRICS[1], GEOMETRICS[2], GEOMETRICS[2]],
        [GEOMETRICS[0], GEOMETRICS[2], GEOMETRICS[3]],
    ],
    ids=repr,
)
def test_the_margin_of_a_sum_of_different_laws_is_the_smallest_that_covers(laws: list[Law]) -> None:
    assert_least(laws)


def test_noise_that_is_almost_surely_zero_has_no_margin() -> None:
    law = DiscreteGaussian(Fraction("0.05") ** 2)
    assert next(coverages([law])) > Fraction(999_999, 10**6)
    assert [margin_of(law, n, c, "exact") for n in (1, 200) for c in CONFIDENCES] == [0] * 2 * len(CONFIDENCES)
    assert margin_of(Zero(), 40, Fraction(9, 10), "exact") == 0


@pytest.mark.parametrize(
    "law", [DiscreteGaussian(Fraction(1, 10**16)), TwoSidedGeometric(Fraction(1, 10**16))], ids=repr
)
def test_almost_no_noise_has_no_margin(law: Law) -> None:
    for number in (1, 2, 50):
        assert least_bound(noise_of([(law, number)]), 1 - Fraction(1, 10**300)) == 0


def test_margins_are_whole_numbers_or_z_sigma() -> None:
    law = DiscreteGaussian(Fraction(9))
    assert type(margin_of(law, 2, Fraction(9, 10), "exact")) is int
    assert margin_of(law, 2, Fraction(9, 10), "bureau") == pytest.approx(1.645 * math.sqrt(18))


@pytest.mark.parametrize("laws", [GAUSSIANS[4:7], [GAUSSIANS[5]] * 5, GEOMETRICS[2:5], [GEOMETRICS[3]] * 4])
def test_the_margin_of_an_estimate_is_exceeded_no_more_often_than_said(laws: list[Law]) -> None:
    is_gaussian = isinstance(laws[0], DiscreteGaussian)
    variances = [float(law.exponent**-1 / 2) if is_gaussian else float(law.variance) for law in laws]  # type: ignore[union-attr]
    found = list(coverages(laws))
    for confidence in CONFIDENCES[1:]:
        left = float(1 - confidence)
        bound = bound_of_estimate(sum(variances), min(variances), confidence, "exact", is_gaussian=is_gaussian)
        assert found[math.floor(bound)] >= confidence
        squares = math.log(2 / left) * 2 if is_gaussian else math.sqrt((6 + 1 / min(variances)) / left)
        assert bound == pytest.approx(math.sqrt(sum(variances) * squares), rel=1e-12)
        by_bureau = bound_of_estimate(9.0, 1.0, confidence, "bureau", is_gaussian=is_gaussian)
        assert by_bureau == margin_of_error(9.0, confidence)
        assert bound_of_estimate(0.0, 0.0, confidence, "exact", is_gaussian=is_gaussian) == 0


def geometric_coverage(rate: Decimal, m: int) -> Decimal:
    """Of one cell: 1 - 2 e^(-a (m + 1)) / (1 + e^(-a))."""
    return 1 - 2 * (-rate * (m + 1)).exp() / (1 + (-rate).exp())


@pytest.mark.parametrize("scale", ["1/7", "3", "1000", "10000000", "1e12", "1e15"])
@pytest.mark.parametrize("confidence", CONFIDENCES)
def test_margins_of_geometric_noise_of_any_scale(scale: str, confidence: Fraction) -> None:
    law = TwoSidedGeometric(Fraction(scale))
    m = least_bound(noise_of([(law, 1)]), confidence)
    with localcontext(prec=80):
        rate = Decimal(law.exponent.numerator) / law.exponent.denominator
        assert Fraction(geometric_coverage(rate, m)) >= confidence
        assert m == 0 or Fraction(geometric_coverage(rate, m - 1)) < confidence


def normal_within(x: Decimal) -> Decimal:
    """P(|Z| <= x), by the power series of the error function."""
    term = total = x
    n = 0
    while abs(term) > Decimal(10) ** -75:
        n += 1
        term *= -x * x / (2 * n)
        total += term / (2 * n + 1)
    pi = Decimal(
        "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798"
    )
    return total * (2 / pi).sqrt()


@pytest.mark.parametrize("sigma", ["1000", "10000000", "1e11", "1e15"])
@pytest.mark.parametrize("number", [1, 7, 300])
@pytest.mark.parametrize("confidence", ["9/10", "95/100", "99/100"])
def test_margins_of_wide_gaussian_noise(sigma: str, number: int, confidence: str) -> None:
    """By Euler and Maclaurin the sum of f(k), |k| <= m, is the integral to m + 1/2 less f'(m + 1/2) / 12.

    What that leaves out is of the order of sigma^-4, and the sum of draws is a discrete Gaussian to exp(-sigma^2).
    """
    law, level = DiscreteGaussian(Fraction(sigma) ** 2), Fraction(confidence)
    m = least_bound(noise_of([(law, number)]), level)
    with localcontext(prec=90):
        s = (Decimal(number) * Decimal(sigma) ** 2).sqrt()

        def coverage(bound: int) -> Fraction:
            x = (Decimal(bound) + Decimal("0.5")) / s
            density = (-x * x / 2).exp() / Decimal("2.506628274631000502415765284811")
            return Fraction(normal_within(x) + density * x / (12 * s * s))

        error = Fraction(1) / Fraction(sigma) ** 4
        assert coverage(m) - error >= level
        assert coverage(m - 1) + error < level


def test_doubles_and_decimals_agree_within_what_is_proven() -> None:
    """At a confidence that is the coverage itself doubles must not decide; a little off they must, and rightly."""
    for law, number in (
        (GAUSSIANS[6], 1),
        (GAUSSIANS[6], 40),
        (GAUSSIANS[2], 9),
        (GEOMETRICS[5], 3),
        (GEOMETRICS[5], 46),
    ):
        noise = noise_of([(law, number)])
        for m in (0, 5, 20):
            least, most = decimal_coverage(noise, 1001, 40)(m)
            assert 0 < most - least < Fraction(1, 10**38)
            for shift, wanted in ((Fraction(1, 10**10), False), (-Fraction(1, 10**10), True), (Fraction(0), None)):
                compare = _in_doubles(noise, 20, least + shift)
                assert compare is not None
                assert compare(m) is wanted


@pytest.mark.parametrize(
    "laws",
    [
        [GAUSSIANS[1], GAUSSIANS[3], GAUSSIANS[4]],
        [GEOMETRICS[1], GEOMETRICS[2], GEOMETRICS[2]],
        [GEOMETRICS[0], GEOMETRICS[3], GEOMETRICS[2]],
        [GEOMETRICS[2], TwoSidedGeometric(Fraction("0.500001")), TwoSidedGeometric(Fraction("0.499999"))],
    ],
    ids=repr,
)
def test_decimals_enclose_the_coverage_of_different_laws(laws: list[Law]) -> None:
    bounds = decimal_coverage(noise_of([(law, 1) for law in laws]), 201, 40)
    for m, exact in enumerate(coverages(laws)):
        least, most = bounds(m)
        assert least <= exact + Fraction(1, 10**48)
        assert exact - Fraction(1, 10**48) <= most
        assert most - least < Fraction(1, 10**25)
        if m == 6:
            break


@pytest.mark.parametrize("law", [GAUSSIANS[3], GAUSSIANS[7], GEOMETRICS[4]], ids=repr)
def test_a_confidence_a_hair_from_a_coverage_is_decided_for_certain(law: Law) -> None:
    exact = list(coverages([law]))[3]
    hair = Fraction(1, 10**40)
    noise = noise_of([(law, 1)])
    assert not covers(noise, 3, exact + hair)
    assert covers(noise, 3, exact - hair)
    assert least_bound(noise, exact - hair) == 3
    assert least_bound(noise, exact + hair) == 4


def test_a_confidence_very_near_to_one_is_reached() -> None:
    level = 1 - Fraction(1, 10**45)
    for law in (GAUSSIANS[5], GEOMETRICS[2]):
        assert_least([law], [level])
        assert_least([law, law], [level, Fraction(1, 10**30)])


def test_comparisons_get_ever_more_precise() -> None:
    steps = _comparisons(noise_of([(GAUSSIANS[5], 2)]), 4, Fraction(9, 10))
    assert all(next(steps)(4) is not None for _ in range(4))


def test_noises_of_two_mechanisms_are_not_added() -> None:
    with pytest.raises(ValueError, match="not added"):
        noise_of([(GAUSSIANS[0], 1), (GEOMETRICS[0], 1)])
    assert noise_of([(Zero(), 5), (GAUSSIANS[0], 2), (GAUSSIANS[0], 1)]) == ((GAUSSIANS[0], 3),)
    with pytest.raises(ValueError, match="confidence"):
        least_bound(noise_of([(GAUSSIANS[0], 1)]), Fraction(1))


@pytest.mark.parametrize("mechanism", list(Mechanism))
@pytest.mark.parametrize("bound", [0, 1, 2, 7, 60])
@pytest.mark.parametrize("confidence", ["9/10", "99/100"])
def test_the_least_budget_reaches_the_margin_and_a_little_less_does_not(
    mechanism: Mechanism, bound: int, confidence: str
) -> None:
    level, sensitivity = Fraction(confidence), Fraction(9)
    margin = bound + Fraction(1, 2)
    budget = budget_for_margin(margin, sensitivity, level, mechanism)

    def coverage(spent: Fraction) -> Fraction:
        of_zcdp = mechanism is Mechanism.ZCDP
        law = DiscreteGaussian(sensitivity / (2 * spent)) if of_zcdp else TwoSidedGeometric(sensitivity / spent)
        found = probabilities(law)[: bound + 1]
        return Fraction(2 * sum(found) - found[0])

    assert coverage(budget) >= level
    assert coverage(budget * (1 - Fraction(1, 10**11))) < level
    assert budget_for_margin(Fraction(bound) if bound else margin, sensitivity, level, mechanism) == budget


def test_coverage_grows_with_the_budget() -> None:
    """What bisection for a budget rests on (docs/targets.md)."""
    for laws in (GAUSSIANS, GEOMETRICS):
        chances = [list(coverages([law]))[:3] for law in laws]
        assert all(more >= less for wide, narrow in pairwise(chances) for more, less in zip(wide, narrow, strict=False))


def answered(capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, Any]:
    assert main(["account", "--json", *options]) == 0
    return dict(json.loads(capsys.readouterr().out))


def test_account_solves_by_the_choice_of_margins(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("--moe", "500", "--sensitivity", "484")
    bureau = answered(capsys, *asked, "--margins", "bureau")
    assert Fraction(bureau["rho"]) == Fraction("1.645") ** 2 * 484 / (2 * 500**2)
    assert bureau["moe"] == pytest.approx(500)
    exact = answered(capsys, *asked)
    assert (exact["margins"], exact["moe"]) == ("exact", 500)
    assert Fraction(exact["rho"]) == budget_for_margin(Fraction(500), Fraction(484), Fraction(9, 10), Mechanism.ZCDP)
    less = Fraction(exact["rho"]) * Fraction(999_999, 10**6)
    assert answered(capsys, "--rho", str(less), "--sensitivity", "484")["moe"] == 501


def test_account_of_pure_dp(capsys: pytest.CaptureFixture[str]) -> None:
    pure = ("--mechanism", "pure", "--sensitivity", "9", "--confidence", "0.99")
    found = answered(capsys, *pure, "--moe", "11")
    # The closed form of one cell: 2 e^(-12 a) / (1 + e^(-a)) is at most 1 percent.
    a = found["epsilon_float"] / 9
    assert 2 * math.exp(-12 * a) / (1 + math.exp(-a)) == pytest.approx(0.01, abs=1e-11)
    assert answered(capsys, *pure, "--epsilon", found["epsilon"])["moe"] == 11
    for wrong in (["--rho", "1"], ["--epsilon", "1"], []):
        assert main(["account", "--mechanism", "pure", *wrong]) == 2
