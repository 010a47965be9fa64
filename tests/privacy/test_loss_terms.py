"""The terms of the privacy loss: each against decimals of 60 digits, and each bound on rounding as the proof has it."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest

from yupana.privacy.laws import DiscreteGaussian, TwoSidedGeometric
from yupana.privacy.loss_terms import Difference, Shift, ShiftChoice, _Lattice, losses, reduced

E = 2.0**-52
UP = Fraction(2) ** -47
"""More than a few roundings upward change, relative to the number."""

PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899")


def g(sigma2: str | int, by: int = 1, times: int = 1) -> Shift:
    return Shift(DiscreteGaussian(Fraction(sigma2)), by, times)


def t(scale: str | int, by: int = 1, times: int = 1) -> Shift:
    return Shift(TwoSidedGeometric(Fraction(scale)), by, times)


def a_little_above(found: float, exact: Fraction) -> bool:
    return exact <= Fraction(found) <= exact * (1 + UP)


def near(number: float) -> object:
    return pytest.approx(number, rel=1e-12, abs=0)


def decimal(number: Fraction | float) -> Decimal:
    return Decimal(Fraction(number).numerator) / Decimal(Fraction(number).denominator)


def turn(angle: Decimal) -> tuple[Decimal, Decimal]:
    """Cosine and sine, by their series."""
    angle -= 2 * PI * (angle / (2 * PI)).to_integral_value()
    cosine, sine, term = Decimal(0), Decimal(0), Decimal(1)
    for n in range(60):
        if n % 2:
            sine += term * (-1) ** (n // 2)
        else:
            cosine += term * (-1) ** (n // 2)
        term *= angle / (n + 1)
    return cosine, sine


def moments(shift: Shift, c: float, u: float) -> tuple[Decimal, Decimal, Decimal]:
    """Log M(c), and M(c + iu) / M(c) as real and imaginary part: the sum over all values of the noise."""
    law, by = shift.law, shift.by
    centre = round(c * by) if law.curvature == 2 else 0
    reach = math.ceil(14 * float(law.exponent) ** -0.5 if law.curvature == 2 else 70 / float(law.exponent)) + by
    exponents = {k: law.exponent * abs(k) ** law.curvature for k in range(-reach, centre + reach + 1)}
    plain = sum((-decimal(of)).exp() for of in exponents.values())
    total = real = imaginary = Decimal(0)
    for k, exponent in exponents.items():
        loss = decimal(law.exponent * abs(k - by) ** law.curvature - exponent)
        weight = (decimal(c) * loss - decimal(exponent)).exp()
        cosine, sine = turn(decimal(u) * loss)
        total, real, imaginary = total + weight, real + weight * cosine, imaginary + weight * sine
    real, imaginary = real / total, imaginary / total
    power = Decimal(1), Decimal(0)
    for _ in range(shift.times):
        power = power[0] * real - power[1] * imaginary, power[0] * imaginary + power[1] * real
    return shift.times * (total / plain).ln(), *power


@pytest.mark.parametrize("shift", [g("1/5", 2), g(1, 3, 2), g("5/4"), g(9, 2, 3), g("91/10", 2, 3), g(30), t("1/3"),
                                   t(2, 3, 2), t(5, 2)], ids=str)  # fmt: skip
@pytest.mark.parametrize(("c", "u"), [(0.3, 0.7), (2.6, 31.0), (1.0, 4001.5)])
def test_a_term_is_wrong_by_no_more_than_it_says(shift: Shift, c: float, u: float) -> None:
    (loss,) = losses([shift])
    found = loss.turned(c, np.array([0.0, u]))
    with localcontext() as context:
        context.prec = 60
        log, real, imaginary = moments(shift, c, u)
        assert abs(decimal(loss.log(c)) - log) <= decimal(loss.rounding(c))
        modulus = (-decimal(float(found.decay[1]))).exp()
        cosine, sine = turn(decimal(float(found.phase[1])))
        off = ((modulus * cosine - real) ** 2 + (modulus * sine - imaginary) ** 2).sqrt()
        assert off <= decimal(found.error + u * found.error_by_u)
    # At u = 0 it is 1.
    assert abs(found.decay[0]) + abs(found.phase[0]) <= found.error


def test_the_bounds_on_rounding_are_those_of_the_proof() -> None:
    """docs/exact-accounting.md, section 4, the table of terms; e = 2^-52."""
    for sigma2, by, times, c in ((0.25, 3, 2, 0.7), (1.0, 1, 1, 2.5), (2.25, 2, 5, 0.3), (9.0, 1, 2, 4.0)):
        (loss,) = losses([g(str(sigma2), by, times)])
        found = loss.turned(c, np.array([1.0]))
        precision, nearest = times * by**2 / sigma2, round(c * by)
        of_theta = times * (64 + 16 * (by * c + 2) * (1 + 1 / sigma2))
        assert loss.rounding(c) == near(E * (16 * c * (c + 1) * precision + of_theta))
        left_out = 2.01 * math.exp(-4.5 * math.pi**2 * sigma2) if sigma2 > 1 else 4 * math.exp(-45.125)
        spread, step, drift = math.sqrt(sigma2) + 1, by / sigma2, (by / 2 + nearest) * by / sigma2
        assert found.error == near(times * (left_out + E * (2 * spread + 128)))
        assert found.error_by_u == near(times * E * (2 * spread * step + 8 * drift))
    for sigma2, by, times, c in ((9.25, 3, 2, 0.7), (400.0, 1, 7, 2.5)):
        (loss,) = losses([g(str(sigma2), by, times)])
        found = loss.turned(c, np.array([1.0]))
        assert loss.rounding(c) == near(E * 16 * c * (c + 1) * times * by**2 / sigma2)
        steepest, step = 0.61 * math.sqrt(sigma2) + c * by, by / sigma2
        left_out = 2.01 * math.exp(-sigma2 * math.pi**2 / 2)
        assert found.error == near(times * (left_out + E * (8 * steepest + 64)))
        by_u = times * E * step * (2 * steepest + 4 * by + 4 * c * by)
        assert found.error_by_u == near(by_u)
    for a, by, times, c in ((0.5, 3, 2, 0.7), (2.0, 1, 5, 3.0)):
        (loss,) = losses([t(str(1 / a), by, times)])
        found = loss.turned(c, np.array([1.0]))
        assert loss.rounding(c) == near(E * times * (64 + 16 * by * (c + 1) * a))
        assert found.error == near(times * E * (10 * by + 128))
        assert found.error_by_u == near(times * E * 12 * by * a)


def test_the_noise_is_summed_within_nine_and_a_half_deviations_and_two_more() -> None:
    """And from sigma2 = 1 on over its frequencies."""
    few = _Lattice.of_gaussian(0.25, 3, 0.7)
    assert few.weights is not None
    assert (few.first, len(few.weights)) == (-7, 15)
    assert few.lost == near(4 * math.exp(-45.125))
    assert few.weights.sum() == pytest.approx(1, rel=1e-15)
    # The tilted noise has its centre at c by = 2.1, of which the lattice begins at 2.
    ratio = math.exp(((1 - 0.1) ** 2 - 0.1**2) / (2 * 0.25))
    assert few.weights[7] / few.weights[8] == near(ratio)
    assert _Lattice.of_gaussian(1.0, 1, 0.7).first == -12
    wider = _Lattice.of_gaussian(1.25, 1, 0.7)
    assert wider.weights is None
    assert wider.lost == near(2.01 * math.exp(-5.625 * math.pi**2))


def test_terms_that_weigh_most_come_first() -> None:
    """Twice rho of a Gaussian answer; of a geometric one its loss squared, or twice the loss if that is less."""
    found = losses([g(8, 2, 3), t(4, 2, 2), t("1/2", 2, 3), g(8)])
    assert [loss.precision for loss in found] == [24.0, 1.5, 0.5, 0.125]


def test_angles_are_reduced_to_half_a_turn() -> None:
    angles = np.array([0.0, 3.0, 4.0, -4.0, 100.0, 1e9])
    found = reduced(angles)
    assert np.abs(found).max() <= math.pi
    with localcontext() as context:
        context.prec = 60
        for angle, rest in zip(angles.tolist(), found.tolist(), strict=True):
            turns = (decimal(angle) - decimal(rest)) / (2 * PI)
            off = abs(turns - turns.to_integral_value()) * 2 * PI
            assert off <= Decimal(2) ** -51 * (1 + decimal(abs(angle)))


def test_the_largest_loss_is_that_of_all_answers_and_the_worst_choice() -> None:
    fixed = (t(3, 2, 5), t("1/7"))
    choice = ShiftChoice(2, ((t(2), t(5, 3)), (t("3/2"),)))
    other = ShiftChoice(1, ((t(11),), (t(13),)))
    assert a_little_above(fixed[0].most, Fraction(10, 3))
    # 10/3 + 7, twice the larger of 1/2 + 3/5 and 2/3, and 1/11.
    assert a_little_above(Difference(fixed).most, Fraction(31, 3))
    whole = Difference(fixed, (choice, other))
    assert a_little_above(whole.most, Fraction(31, 3) + 2 * Fraction(11, 10) + Fraction(1, 11))
    assert g(3).most == Difference((t(3), g(3))).most == math.inf
    assert Difference(fixed, squared=0.1).most == Difference(fixed, slack=0.1).most == math.inf
    assert Difference().most == 0


def test_the_chance_of_the_largest_loss_tells_an_epsilon_that_is_not_kept() -> None:
    """Of n answers with noise exp(-a |k|) it is (1 + e^-a)^-n; y below the largest loss delta is that (1 - e^-y)."""
    shifts, most = (t(2, 3, 4), t("1/3", 1, 2)), 12.0
    chance = math.exp(-4 * math.log1p(math.exp(-0.5)) - 2 * math.log1p(math.exp(-3)))
    for y in (1e-6, 0.1, 0.69):
        delta = -chance * math.expm1(-y)
        found = Difference(shifts).least_epsilon(delta)
        assert most - y - 1e-11 <= found < most - y
    assert Difference(shifts).least_epsilon(chance / 2) == 0
    assert Difference(shifts).least_epsilon(chance * 0.4999) > 11
    # Where the largest loss is below what delta allows for, nothing is told; no epsilon is below 0.
    assert Difference((t(100),)).least_epsilon(0.2) == 0
    choice = Difference(shifts, (ShiftChoice(1, ((t(2),), (t(3),))),))
    assert choice.least_epsilon(1e-9) == Difference((*shifts, g(3))).least_epsilon(1e-9) == 0


def test_ways_to_choose_are_counted_up_to_order() -> None:
    one, other, third = (t(2),), (t(3),), (t(4),)
    assert Difference().mixtures == Difference((t(2),)).mixtures == 1
    assert Difference(choices=(ShiftChoice(3, (one, other, third)),)).mixtures == 10
    assert Difference(choices=(ShiftChoice(3, (one, other, third)), ShiftChoice(4, (one, other)))).mixtures == 50


def test_whether_anything_differs() -> None:
    choice = ShiftChoice(1, ((t(2),),))
    moving = [Difference((t(2),)), Difference(choices=(choice,)), Difference(squared=1e-9), Difference(slack=1e-9)]
    assert all(of.moves for of in moving)
    assert not Difference().moves


def test_answers_alike_are_counted_together_and_what_is_added_is_rounded_up() -> None:
    options = ((t(2),), (t(3),))
    one = Difference((g(3), g(3, 2), t(3)), (ShiftChoice(2, options),), 0.1, 0.3)
    other = Difference((g(3, 1, 4), g(4)), (ShiftChoice(3, options), ShiftChoice(1, options[:1])), 0.2, 0.7)
    both = one + other
    assert both.shifts == (g(3, 1, 5), g(3, 2), t(3), g(4))
    assert both.choices == (ShiftChoice(5, options), ShiftChoice(1, options[:1]))
    assert a_little_above(both.squared, Fraction(0.1) + Fraction(0.2))
    assert a_little_above(both.slack, Fraction(0.3) + Fraction(0.7))
    assert (Difference(squared=5.0) + Difference(slack=3.0)).squared >= 5.0


def test_one_order_whatever_the_plan_says_first() -> None:
    # Alike but for one thing each: the law (both have exponent 1/2), its parameter, how far, how many.
    shifts = (g(1), t(2), g(2), g(1, 2), g(1, 1, 2))
    assert len({Difference(tuple(said)).in_order for said in permutations(shifts)}) == 1
    assert set(Difference(shifts).in_order.shifts) == set(shifts)
    choices = (ShiftChoice(1, ((g(1),), (t(2), g(2)))), ShiftChoice(2, ((g(1),), (t(2), g(2)))),
               ShiftChoice(1, ((g(1),), (t(2),))))  # fmt: skip
    turned = (ShiftChoice(c.times, tuple(option[::-1] for option in c.options[::-1])) for c in choices)
    said = [*permutations(choices), *permutations(turned)]
    found = {Difference(choices=order, squared=2.0, slack=3.0).in_order for order in said}
    (one,) = found
    assert (one.squared, one.slack) == (2.0, 3.0)
    assert [(c.times, sorted(map(len, c.options))) for c in one.choices].count((1, [1, 2])) == 1
    assert sorted(c.times for c in one.choices) == [1, 1, 2]


@pytest.mark.parametrize(("sigma2", "distance"), [("5", "1"), ("5", "3"), ("50", "17/2"), ("403/250", "1")])
def test_a_distance_is_bounded_as_theorem_3_has_it(sigma2: str, distance: str) -> None:
    """s2 is log(8 n / 10^-6) / (2 pi^2), rounded up to thousandths: 0.806 for n = 1, 0.861 for 3 and 0.911 for 8."""
    n, s2 = {"1": (1, Fraction("0.806")), "3": (3, Fraction("0.861")), "17/2": (8, Fraction("0.911"))}[distance]
    found = Difference.of_distance(DiscreteGaussian(Fraction(sigma2)), Fraction(distance))
    assert (found.shifts, found.choices) == ((), ())
    assert a_little_above(found.squared, Fraction(distance) / (Fraction(sigma2) - s2))
    with localcontext() as context:
        context.prec = 60
        kappa = 2 * sum((-2 * PI**2 * decimal(s2) * m * m).exp() for m in range(1, 9))
        eta = n * ((1 + kappa) / (1 - kappa)).ln()
        assert eta <= decimal(found.slack) <= eta * (1 + Decimal("3e-9"))
        assert eta < 1e-6


def test_noise_below_twice_what_is_given_up_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^the noise is too small to be replaced by continuous noise$"):
        Difference.of_distance(DiscreteGaussian(Fraction("1.6119")), Fraction(1))
    assert Difference.of_distance(DiscreteGaussian(Fraction(1)), Fraction(9, 10)) == Difference()


def test_moves_are_whole_numbers_of_one_or_more() -> None:
    for by, times in ((0, 1), (1, 0), (-1, 2)):
        with pytest.raises(
            ValueError, match=r"^an answer moves by a whole number of 1 or more, and so does the number of answers$"
        ):
            g(3, by, times)
