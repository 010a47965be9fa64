"""The parts of which coverage is computed, each against its definition (docs/margins.md)."""

import math
from decimal import Decimal, getcontext, localcontext
from fractions import Fraction

import numpy as np
import pytest

from yupana.privacy import coverage
from yupana.privacy.coverage import Noise, covers, least_bound, noise_of, reach
from yupana.privacy.laws import DiscreteGaussian, Law, TwoSidedGeometric, Zero

PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798")
NARROW, WIDE = DiscreteGaussian(Fraction(3, 20)), DiscreteGaussian(Fraction(5))
JUST = DiscreteGaussian(Fraction(17, 100))
"""The least variance for which the dual sum is taken, nearly."""
STEEP, FLAT = TwoSidedGeometric(Fraction(1, 2)), TwoSidedGeometric(Fraction(4))
LAWS = [NARROW, JUST, WIDE, STEEP, FLAT]


def characteristic(law: DiscreteGaussian | TwoSidedGeometric, t: Decimal) -> Decimal:
    """E cos(t X), by its sum in 50 digits."""
    with localcontext(prec=60):
        rate = Decimal(law.exponent.numerator) / Decimal(law.exponent.denominator)
        k, weights = 1, [Decimal(1)]
        while weights[-1] > Decimal(10) ** -55:
            weights.append((-rate * k**law.curvature).exp())
            k += 1
        waves = sum(2 * w * cosine(t * k) for k, w in enumerate(weights[1:], start=1))
        return (1 + waves) / (1 + 2 * sum(weights[1:]))


def cosine(x: Decimal) -> Decimal:
    x %= 2 * PI
    term, total, n = Decimal(1), Decimal(1), 0
    while abs(term) > Decimal(10) ** -57:
        n += 2
        term *= -x * x / (n * (n - 1))
        total += term
    return total


# --- noises ---------------------------------------------------------------------------------------------------------


def test_noises_are_gathered_by_law() -> None:
    assert noise_of([(WIDE, 2), (Zero(), 3), (NARROW, 0), (WIDE, 1), (NARROW, 1)]) == ((WIDE, 3), (NARROW, 1))
    assert noise_of([]) == noise_of([(Zero(), 1)]) == ()
    with pytest.raises(ValueError, match=r"^discrete Gaussian and two-sided geometric noises are not added$"):
        noise_of([(WIDE, 1), (FLAT, 1)])


@pytest.mark.parametrize("confidence", [Fraction(0), Fraction(1), Fraction(3, 2)])
def test_a_confidence_is_a_chance(confidence: Fraction) -> None:
    with pytest.raises(ValueError, match=r"^a confidence level lies strictly between 0 and 1$"):
        least_bound(((WIDE, 1),), confidence)


def test_the_last_number_for_which_something_holds() -> None:
    for low, high in ((-1, 9), (0, 1), (3, 40)):
        for last in range(low, high):
            asked: list[int] = []

            def holds(m: int, last: int = last, asked: list[int] = asked) -> bool:
                asked.append(m)
                return m <= last

            assert coverage._last(low, high, holds) == last
            assert all(low < m < high for m in asked)
            assert len(asked) <= (high - low).bit_length()


# --- how far a sum reaches ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("surprise", [0.1, 3.0, 80.0])
def test_the_reach_of_gaussian_noise_is_that_of_the_normal_law(surprise: float) -> None:
    bound = math.sqrt(2 * (surprise + math.log(2)) * float(2 * WIDE.sigma2 + 3 * NARROW.sigma2))
    assert reach(((WIDE, 2), (NARROW, 3)), surprise) == math.ceil(1.001 * bound) + 1


@pytest.mark.parametrize("surprise", [0.1, 3.0, 80.0])
@pytest.mark.parametrize("noise", [((FLAT, 1),), ((FLAT, 10**6),), ((FLAT, 3), (STEEP, 2)), ((STEEP, 2), (FLAT, 3))])
def test_the_reach_of_geometric_noise_is_the_least_of_chernoffs_bounds(noise: Noise, surprise: float) -> None:
    least = min(float(law.exponent) for law, _ in noise)

    def bound(s: float) -> float:
        # E exp(s X) is 1 / (1 - (sinh(s / 2) / sinh(a / 2))^2).
        logs = sum(-n * math.log(1 - (math.sinh(s / 2) / math.sinh(float(law.exponent) / 2)) ** 2) for law, n in noise)
        return (surprise + math.log(2) + logs) / s

    expected = min(bound(least * j / 64) for j in range(1, 64))
    assert reach(noise, surprise) == math.ceil(1.001 * expected) + 1


def test_beyond_the_reach_a_sum_lies_seldom() -> None:
    for law in LAWS:
        for surprise in (0.5, 4.0, 20.0):
            assert 2 * law.cdf(-reach(((law, 1),), surprise)) <= math.exp(-surprise)


def test_hyperbolic_sines_and_logarithms_of_numbers_of_any_size() -> None:
    for s, a in ((0.1, 0.5), (1.0, 3.0), (20.0, 21.0)):
        assert coverage._sinh_ratio(s, a) == pytest.approx(math.sinh(s / 2) / math.sinh(a / 2), rel=1e-14)
    assert coverage._sinh_ratio(3000.0, 3002.0) == pytest.approx(math.exp(-1), rel=1e-12)
    assert coverage._log(Fraction(10**400, 3)) == pytest.approx(400 * math.log(10) - math.log(3))


@pytest.mark.parametrize(("largest", "surprise"), [(0, 30.0), (5, 30.0), (400, 30.0), (401, 2.0)])
def test_a_period_is_odd_and_keeps_repetitions_away(largest: int, surprise: float) -> None:
    noise: Noise = ((WIDE, 2),)
    period = coverage._period(noise, largest, surprise)
    far = reach(noise, surprise)
    assert period % 2 == 1
    # Twice the largest bound lies within it, and a bound less a period is beyond the reach.
    assert period == 2 * max(largest, (largest + far) // 2) + 1
    assert period - largest >= far


# --- in doubles -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", [*LAWS, DiscreteGaussian(Fraction(1))], ids=repr)
def test_the_characteristic_function_in_doubles(law: Law) -> None:
    turns = [Fraction(1, 1000), Fraction(1, 7), Fraction(1, 2), Fraction(3, 4), Fraction(999, 1000)]
    t = np.array([float(turn) * math.pi for turn in turns])
    for number in (1, 3):
        found = coverage._characteristic(((law, number),), t)  # type: ignore[arg-type]
        for value, turn in zip(found, turns, strict=True):
            exact = characteristic(law, PI * turn.numerator / turn.denominator)  # type: ignore[arg-type]
            assert value == pytest.approx(float(exact) ** number, rel=1e-13)


def test_the_characteristic_function_of_a_sum_is_the_product() -> None:
    t = np.array([0.5, 3.0])
    one, other = (coverage._characteristic(((law, 1),), t) for law in (NARROW, JUST))
    assert coverage._characteristic(((NARROW, 2), (JUST, 1)), t) == pytest.approx(one**2 * other, rel=1e-14)


def test_few_geometric_noises_and_those_of_too_many_terms_are_not_compared_in_doubles() -> None:
    half = Fraction(1, 2)
    for noise in (((FLAT, 1),), ((FLAT, 2),), ((FLAT, 1), (STEEP, 1))):
        assert coverage._in_doubles(noise, 5, half) is None
    for noise in (((FLAT, 3),), ((FLAT, 2), (STEEP, 1)), ((WIDE, 1),), ((WIDE, 10**6),)):
        assert coverage._in_doubles(noise, 5, half) is not None
    # A period of ten million points, each of which counts.
    assert coverage._in_doubles(((NARROW, 1),), 10**7, half) is None


@pytest.mark.parametrize(
    ("noise", "largest"), [(((NARROW, 1),), 3), (((NARROW, 100),), 9), (((WIDE, 4),), 30), (((FLAT, 3),), 9)]
)
def test_doubles_decide_outside_of_their_error_only(noise: Noise, largest: int) -> None:
    for m in range(largest + 1):
        least, _ = coverage.decimal_coverage(noise, coverage._period(noise, largest, 80.0), 30)(m)
        # What they may be off by is 2e-14 + 1e-12 + 1e-14 a noise; what they are off by much less.
        number = sum(n for _, n in noise)
        error = Fraction(1020 + 10 * number, 10**15)
        shifts = (
            (error * 3 / 2, False),
            (error * 2 / 3, None),
            (-error * 2 / 3, None),
            (-error * 3 / 2, True),
        )
        for shift, wanted in shifts:
            compare = coverage._in_doubles(noise, largest, least + shift)
            assert compare is not None
            assert compare(m) is wanted, (m, shift)


def test_a_wide_sum_is_compared_by_few_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    terms = []
    series = coverage._characteristic

    def counted(noise: Noise, t: np.ndarray) -> np.ndarray:
        terms.append(len(t))
        return series(noise, t)

    monkeypatch.setattr(coverage, "_characteristic", counted)
    for noise, tried in (
        (((DiscreteGaussian(Fraction(10**8)), 1),), [64]),
        (((NARROW, 1),), [5]),
        (((FLAT, 3),), [64, 87]),
    ):
        terms.clear()
        assert coverage._in_doubles(noise, 5, Fraction(1, 2)) is not None
        assert terms == tried, noise


def test_coverage_of_no_noise_and_far_bounds_needs_no_computation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coverage, "_comparisons", lambda *_: pytest.fail("computed"))
    assert covers((), 0, Fraction(99, 100))
    noise: Noise = ((WIDE, 3),)
    assert covers(noise, reach(noise, math.log(100)), Fraction(99, 100))


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_a_bound_covers_from_its_confidence_on(law: DiscreteGaussian | TwoSidedGeometric) -> None:
    for m in range(14):
        for confidence in (Fraction(1, 100), Fraction(1, 2), Fraction(9, 10), Fraction(999, 1000)):
            covered = 1 - 2 * law.cdf(-m - 1)
            assert covers(((law, 1),), m, confidence) == (covered >= confidence), (m, confidence)  # type: ignore[arg-type]


def test_comparisons_begin_in_doubles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coverage, "decimal_coverage", lambda *_: pytest.fail("in decimals"))
    assert next(coverage._comparisons(((WIDE, 1),), 9, Fraction(1, 2)))(9) is True


def test_comparisons_double_their_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def covered(noise: Noise, period: int, digits: int) -> object:
        asked.append((noise, period, digits))
        return lambda m: (Fraction(m, 10), Fraction(m + 2, 10))

    monkeypatch.setattr(coverage, "decimal_coverage", covered)
    noise: Noise = ((FLAT, 2),)
    steps = coverage._comparisons(noise, 7, Fraction(1, 2))
    for _ in range(3):
        compare = next(steps)
        # True from the lower bound on, False up to the upper one, and else undecided.
        assert [compare(m) for m in (2, 3, 4, 5)] == [False, None, None, True]
    assert [(of, digits) for of, _, digits in asked] == [(noise, 30), (noise, 60), (noise, 120)]
    assert all(period == coverage._period(noise, 7, digits * math.log(10)) for _, period, digits in asked)


# --- in decimals ----------------------------------------------------------------------------------------------------


def test_decimals_round_to_the_digits_and_forget_what_is_too_small() -> None:
    context = coverage._context(40)
    assert (context.prec, context.Emin, context.Emax) == (40, -4000, 10**17)


@pytest.mark.parametrize("digits", [10, 30, 95])
def test_pi(digits: int) -> None:
    with localcontext(prec=digits + 5):
        assert abs(coverage._pi() - PI) < Decimal(10) ** -digits


def test_sines() -> None:
    with localcontext(prec=60):
        for numerator, denominator in (
            (0, 7),
            (1, 7),
            (3, 7),
            (4, 7),
            (6, 7),
            (7, 7),
            (8, 7),
            (15, 7),
            (10**30 + 1, 7),
        ):
            turn = Decimal(numerator % (2 * denominator)) / denominator
            exact = cosine(PI * turn - PI / 2)
            assert abs(coverage._sine(numerator, denominator, PI) - exact) < Decimal(10) ** -50


@pytest.mark.parametrize("law", [NARROW, JUST, WIDE], ids=repr)
@pytest.mark.parametrize("digits", [20, 45])
def test_the_characteristic_function_in_decimals(law: DiscreteGaussian, digits: int) -> None:
    with localcontext(prec=digits):
        theta = coverage._Theta(law, +PI)
        for k, period in ((1, 101), (7, 33), (16, 33), (50, 101)):
            exact = characteristic(law, 2 * PI * k / period)
            assert abs(theta.at(k, period) - exact) < Decimal(10) ** (3 - digits), (k, period)


def chances(law: TwoSidedGeometric, number: int, most: int) -> list[Decimal]:
    """P(S = 0), P(S = 1), ... of a sum, by adding up all ways to reach each, in 50 digits."""
    with localcontext(prec=50):
        a = Decimal(law.exponent.numerator) / Decimal(law.exponent.denominator)
        q = (-a).exp()
        one = [(1 - q) / (1 + q) * q ** abs(k) for k in range(-most, most + 1)]
        found = [Decimal(1)]
        for _ in range(number):
            found = [
                sum(found[i] * one[j - i] for i in range(max(0, j - len(one) + 1), min(j + 1, len(found))))
                for j in range(len(found) + len(one) - 1)
            ]
        return found[len(found) // 2 :]


@pytest.mark.parametrize("number", [1, 2, 3])
def test_the_tail_of_geometric_noise(number: int) -> None:
    law = TwoSidedGeometric(Fraction(1, 2))
    exact = chances(law, number, 40)
    with localcontext(prec=40):
        ratios = [(Decimal(2), Decimal(-2).exp(), number)]
        for k in (1, 2, 5, 9):
            tail = coverage._upper_tail(ratios, k, sign=1)
            assert abs(tail - sum(exact[k:])) < Decimal(10) ** -30
            # Every term by its absolute value.
            assert coverage._upper_tail(ratios, k, sign=-1) >= tail


MIXED = [
    ((FLAT, 1), (STEEP, 1)),
    ((STEEP, 3), (TwoSidedGeometric(Fraction(1)), 2)),
    ((TwoSidedGeometric(Fraction(1)), 3), (STEEP, 1), (TwoSidedGeometric(Fraction(2, 3)), 2)),
]


def in_ratios(noise: tuple[tuple[TwoSidedGeometric, int], ...]) -> list[tuple[Decimal, Decimal, int]]:
    rates = [Decimal(law.exponent.numerator) / law.exponent.denominator for law, _ in noise]
    return [(rate, (-rate).exp(), number) for rate, (_, number) in zip(rates, noise, strict=True)]


@pytest.mark.parametrize("noise", MIXED[1:], ids=["two", "three"])
def test_the_tail_of_geometric_noises_of_several_laws(noise: tuple[tuple[TwoSidedGeometric, int], ...]) -> None:
    parts = [np.array(chances(law, number, 60), dtype=np.float64) for law, number in noise]
    law = np.array([1.0])
    for part in parts:
        law = np.convolve(law, np.concatenate([part[:0:-1], part]))
    with localcontext(prec=40):
        ratios = in_ratios(noise)
        for k in (1, 2, 6, 11):
            exact = law[len(law) // 2 + k :].sum()
            assert float(coverage._upper_tail(ratios, k, sign=1)) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("noise", MIXED, ids=["one each", "two", "three"])
def test_the_terms_of_the_tail_by_their_absolute_values(noise: tuple[tuple[TwoSidedGeometric, int], ...]) -> None:
    """The formulas of docs/margins.md, with a plus wherever there is a minus."""
    laws = [(math.exp(-float(law.exponent)), number) for law, number in noise]
    for k in (1, 4):
        total = 0.0
        for q, number in laws:
            others = [(p, n, p / q) for p, n in laws if p != q]
            first = math.prod((1 - p) ** (2 * n) / (1 - q * p) ** n for p, n in laws)
            series = [first / math.prod(abs(1 - ratio) ** n for _, n, ratio in others)]
            slopes = [
                sum(n * ((1 - q * p) ** -(i + 1) + 1) for p, n in laws)
                + sum(n * abs(ratio / (1 - ratio)) ** (i + 1) for _, n, ratio in others)
                for i in range(number)
            ]
            for r in range(1, number):
                series.append(sum(slopes[i] * series[r - 1 - i] for i in range(r)) / r)
            for r in range(1, number + 1):
                tail = sum(math.comb(k - 1 + x, x) * (1 - q) ** x for x in range(r)) * q**k / (1 - q) ** r
                total += series[number - r] * tail
        with localcontext(prec=40):
            assert float(coverage._upper_tail(in_ratios(noise), k, sign=-1)) == pytest.approx(total, rel=1e-12)


@pytest.mark.parametrize("digits", [20, 50])
@pytest.mark.parametrize("laws", [(NARROW,), (JUST,), (WIDE,), (WIDE, NARROW), (JUST, JUST, NARROW)])
def test_bounds_hold_the_coverage_of_gaussian_noise(laws: tuple[DiscreteGaussian, ...], digits: int) -> None:
    with localcontext(prec=80):
        found = [Decimal(1)]
        for law in laws:
            rate = -Decimal(law.exponent.numerator) / law.exponent.denominator
            weights = [(rate * k * k).exp() for k in range(-40, 41)]
            one = [w / sum(weights) for w in weights]
            found = [
                sum(found[i] * one[j - i] for i in range(max(0, j - 80), min(j + 1, len(found))))
                for j in range(len(found) + 80)
            ]
        middle = len(found) // 2
        exact = {m: Fraction(sum(found[middle - m : middle + m + 1])) for m in (0, 2, 7)}
    bounds = coverage.decimal_coverage(tuple((law, 1) for law in laws), 101, digits)
    for m, exactly in exact.items():
        least, most = bounds(m)
        assert least <= exactly <= most


def test_bounds_are_as_near_as_the_digits_say() -> None:
    for digits in (10, 30):
        least, most = coverage.decimal_coverage(((WIDE, 2),), 201, digits)(4)
        assert most - least == Fraction(6, 10**digits)
        for noise in (((FLAT, 3),), ((FLAT, 1), (STEEP, 2))):
            least, most = coverage.decimal_coverage(noise, 201, digits)(4)
            assert 0 < most - least < Fraction(1, 10**digits)


@pytest.mark.parametrize("noise", [((FLAT, 2), (STEEP, 1)), ((TwoSidedGeometric(Fraction(5)), 1), (FLAT, 3))])
@pytest.mark.parametrize("m", [0, 7])
def test_geometric_bounds_leave_room_for_what_rounding_takes(
    noise: tuple[tuple[TwoSidedGeometric, int], ...], m: int
) -> None:
    """The sum of the terms by their absolute values, as often in its last place as operations may add to it."""
    least, most = coverage.decimal_coverage(noise, 1, 20)(m)
    with localcontext(prec=32, Emin=-3200, Emax=10**17):
        rates = {Decimal(law.exponent.numerator) / law.exponent.denominator: number for law, number in noise}
        ratios = [(rate, (-rate).exp(), number) for rate, number in rates.items()]
        terms = 2 * coverage._upper_tail(ratios, m + 1, sign=-1)
        (_, one, _), (_, other, _) = ratios
        nearest = min(1 - one, 1 - other, abs(1 - one / other), abs(1 - other / one))
        number = sum(rates.values())
        times = (number + 10) ** 2 * (10 / nearest + (m + number) * max(rates))
        error = terms * times * Decimal(10) ** -32 + Decimal(10) ** -3200
    assert float((most - least) / 2 / Fraction(error)) == pytest.approx(1, rel=1e-3)


def test_a_tail_too_small_to_write_has_bounds_around_it() -> None:
    least = Fraction(1, 10**3200)
    assert coverage.decimal_coverage(((FLAT, 1),), 1, 20)(10**6) == (1 - least, 1 + least)


def test_the_context_is_as_it_was() -> None:
    before = getcontext().prec
    coverage.decimal_coverage(((WIDE, 1),), 101, 30)(3)
    coverage.decimal_coverage(((FLAT, 1),), 101, 30)(3)
    assert getcontext().prec == before
