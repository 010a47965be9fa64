"""LossBounds on the privacy loss of composed answers, against the law itself and against closed forms."""

import math
from fractions import Fraction
from itertools import combinations_with_replacement
from random import Random

import numpy as np
import pytest
from composed_losses import Losses, composed, delta_of
from hypothesis import example, given, settings
from hypothesis import strategies as st

from yupana.audit.tradeoff import gaussian_epsilon
from yupana.privacy.laws import DiscreteGaussian, TwoSidedGeometric
from yupana.privacy.loss_law import SMALLEST_DELTA, WIDTH, LossBounds, delta_at, deltas_at, epsilon_at
from yupana.privacy.loss_terms import Difference, Shift, ShiftChoice, losses

SIGMA2 = [Fraction(1, 5), Fraction(2, 3), Fraction(1), Fraction(7, 3), Fraction(9), Fraction(10)]
gaussians = st.builds(DiscreteGaussian, st.sampled_from(SIGMA2))
geometrics = st.builds(TwoSidedGeometric, st.sampled_from([Fraction(1, 3), Fraction(1), Fraction(5, 2)]))
shifts = st.builds(Shift, gaussians | geometrics, st.integers(1, 3), st.integers(1, 2))
plans = st.lists(shifts, min_size=1, max_size=2).filter(lambda of: sum(s.times for s in of) < 4)


def together(*of: Shift) -> Difference:
    return Difference(of) + Difference()


def lies_between(found: LossBounds | None, exact: float) -> bool:
    return found is not None and found.lower <= exact * (1 + 1e-12) and exact <= found.upper * (1 + 1e-12)


@settings(max_examples=4, deadline=None)
@given(plans, st.floats(0, 1.2))
def test_delta_lies_between_its_bounds(of: list[Shift], part: float) -> None:
    law = composed(of)
    epsilon = float(part * float(sum(loss * Fraction(p) for loss, p in law.items())) + 3 * part)
    exact = float(delta_of(law, epsilon))
    found = delta_at(together(*of), epsilon)
    assert exact < 1e-200 if found is None else lies_between(found, exact)


@settings(max_examples=6, deadline=None)
@given(plans, st.sampled_from([0.3, 1e-2, 1e-5, 1e-10, 1e-25]))
def test_epsilon_lies_between_its_bounds_and_these_are_close(of: list[Shift], delta: float) -> None:
    law = composed(of)
    found = epsilon_at(together(*of), delta)
    assert found is not None
    assert float(delta_of(law, found.upper)) <= delta * (1 + 1e-12)
    if found.lower > 0:
        assert float(delta_of(law, found.lower)) >= delta * (1 - 1e-12)
    spread = math.sqrt(sum(s.times * s.by**2 * 2 * float(s.law.exponent) for s in of))
    assert found.upper - found.lower <= 3 * WIDTH * max(found.upper, spread)


@settings(max_examples=3, deadline=None)
@given(plans, st.floats(-25, -0.5))
@example([Shift(DiscreteGaussian(Fraction(1, 5)), 2, 1), Shift(DiscreteGaussian(Fraction(1, 5)), 2, 2)], -1.87890625)
@example([Shift(DiscreteGaussian(Fraction(1, 5)), 1, 1)], -9.75)
def test_some_epsilons_lie_between_their_bounds(of: list[Shift], log_delta: float) -> None:
    lie_between(of, log_delta)


@pytest.mark.thorough
@settings(max_examples=25, deadline=None)
@given(plans, st.floats(-25, -0.5))
def test_many_epsilons_lie_between_their_bounds(of: list[Shift], log_delta: float) -> None:
    lie_between(of, log_delta)


def lie_between(of: list[Shift], log_delta: float) -> None:
    """Require the bounds on epsilon at a delta of any size to hold, and to be missing only where the law is coarse."""
    law, delta = composed(of), 10**log_delta
    found = epsilon_at(together(*of), delta)
    if found is None:
        assert is_coarse(law, delta)
    else:
        assert float(delta_of(law, found.upper)) <= delta * (1 + 1e-12)
        assert found.lower == 0 or float(delta_of(law, found.lower)) >= delta * (1 - 1e-12)


def is_coarse(law: Losses, delta: float) -> bool:
    """Whether delta is a step where the law has it: within the width it hardly changes, or drops to a tenth."""
    low, high = 0.0, float(max(law))
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if float(delta_of(law, middle)) <= delta else (middle, high)
    before, after = (float(delta_of(law, high * (1 + side * WIDTH))) for side in (-1, 1))
    return before <= delta * (1 + 1e-4) or after <= before / 10


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(1), Fraction(7)])
@pytest.mark.parametrize("delta", [1e-3, 1e-10, 1e-100])
def test_one_geometric_answer_has_the_closed_form(scale: Fraction, delta: float) -> None:
    """Delta is P(loss = a) (1 - e^(x - a)) with P = 1 / (1 + e^-a)."""
    a = 1 / float(scale)
    exact = max(0.0, a + math.log1p(-delta * (1 + math.exp(-a))))
    found = epsilon_at(together(Shift(TwoSidedGeometric(scale))), delta)
    assert found is not None
    assert exact <= found.upper * (1 + 1e-13) <= a * (1 + 1e-12)
    assert found.upper - exact <= 1e-3 * a
    assert delta_at(together(Shift(TwoSidedGeometric(scale))), a * (1 + 1e-12)) == LossBounds(0.0, 0.0)


@pytest.mark.parametrize("squared", [1e-6, 0.3, 5.1, 40.0])
@pytest.mark.parametrize("delta", [0.2, 1e-6, 1e-10, 1e-30, 1e-200])
def test_continuous_gaussian_noise_has_the_closed_form(squared: float, delta: float) -> None:
    found = epsilon_at(Difference(squared=squared), delta)
    assert found is not None
    exact = gaussian_epsilon(math.sqrt(squared), delta)
    assert found.lower <= exact * (1 + 1e-7) + 1e-12
    assert exact <= found.upper * (1 + 1e-7) + 1e-12
    assert found.upper <= exact * (1 + 1e-6) + 1e-6 * math.sqrt(squared)


def test_randomised_response_composed_often_is_the_binomial_sum() -> None:
    a, times = 0.1, 400
    p = 1 / (1 + math.exp(-a))
    losses_of = a * (2 * np.arange(times + 1) - times)
    logs = [math.lgamma(times + 1) - math.lgamma(k + 1) - math.lgamma(times - k + 1) for k in range(times + 1)]
    chances = np.exp(np.array(logs) + np.arange(times + 1) * math.log(p) + np.arange(times, -1, -1) * math.log(1 - p))
    for epsilon in (0.0, 2.5, 10.0, 14.95, 25.0):
        exact = float((chances * np.maximum(0, -np.expm1(epsilon - losses_of))).sum())
        found = delta_at(together(Shift(TwoSidedGeometric(Fraction(10)), 1, times)), epsilon)
        assert found is not None
        assert found.lower <= exact * (1 + 1e-9)
        assert exact * (1 - 1e-9) <= found.upper <= exact * 1.02


@pytest.mark.parametrize("delta", [1e-50, 1e-150, 1e-250])
def test_many_answers_of_wide_noise_are_near_the_normal_law_however_small_delta_is(delta: float) -> None:
    wide = epsilon_at(together(Shift(DiscreteGaussian(Fraction(400)), 1, 800)), delta)
    normal = epsilon_at(Difference(squared=2.0), delta)
    assert wide is not None
    assert normal is not None
    assert wide.upper == pytest.approx(normal.upper, rel=1e-6)


@pytest.mark.parametrize(("sigma2", "worse"), [(Fraction(1, 2), False), (Fraction(9, 20), True)])
def test_discrete_noise_may_be_better_or_worse_than_continuous_noise(sigma2: Fraction, *, worse: bool) -> None:
    discrete = epsilon_at(together(Shift(DiscreteGaussian(sigma2), 1, 2)), 1e-10)
    continuous = epsilon_at(Difference(squared=float(2 / sigma2)), 1e-10)
    assert discrete is not None
    assert continuous is not None
    assert discrete.lower > continuous.upper if worse else discrete.upper < continuous.lower


@settings(max_examples=40, deadline=None)
@given(st.sampled_from([*SIGMA2, Fraction(300)]), st.integers(1, 4), st.floats(0.05, 12), st.floats(0.01, 300))
def test_a_factor_is_the_sum_that_it_stands_for(sigma2: Fraction, by: int, c: float, u: float) -> None:
    (loss,) = losses([Shift(DiscreteGaussian(sigma2), by)])
    found = loss.turned(c, np.array([u]))
    s2, centre = float(sigma2), round(c * by)
    k = np.arange(centre - 60 - 12 * int(s2**0.5), centre + 61 + 12 * int(s2**0.5)).astype(float)
    weights = np.exp(-((k - c * by) ** 2) / (2 * s2))
    exact = (weights * np.exp(1j * u * (by**2 / (2 * s2) + by * k / s2))).sum() / weights.sum()
    here = np.exp(-found.decay[0] + 1j * found.phase[0])
    assert abs(here - exact) <= found.error + u * found.error_by_u + 1e-11
    j = np.arange(-400, 401).astype(float)
    exponents = (c * (by**2 - 2 * j * by) - j**2) / (2 * s2)
    log = exponents.max() + math.log(np.exp(exponents - exponents.max()).sum())
    assert loss.log(c) == pytest.approx(log - math.log(np.exp(-(j**2) / (2 * s2)).sum()), rel=1e-12, abs=1e-9)


@settings(max_examples=30, deadline=None)
@given(
    st.sampled_from([Fraction(1, 3), Fraction(2), Fraction(50)]),
    st.integers(1, 5),
    st.floats(0.05, 8),
    st.floats(0, 99),
)
def test_a_factor_of_geometric_noise_is_the_sum_that_it_stands_for(
    scale: Fraction, by: int, c: float, u: float
) -> None:
    (loss,) = losses([Shift(TwoSidedGeometric(scale), by)])
    a, k = 1 / float(scale), np.arange(-6000, 6001)
    chances = np.tanh(a / 2) * np.exp(-a * np.abs(k))
    lost = a * (np.abs(k - by) - np.abs(k))
    moment = (chances * np.exp(c * lost)).sum()
    exact = (chances * np.exp((c + 1j * u) * lost)).sum() / moment
    found = loss.turned(c, np.array([u]))
    assert abs(np.exp(-found.decay[0] + 1j * found.phase[0]) - exact) <= 1e-9
    assert loss.log(c) == pytest.approx(math.log(moment), abs=1e-9)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("delta", [1e-3, 1e-10])
def test_a_choice_is_the_worst_of_what_it_can_be(delta: float) -> None:
    one, other = Shift(DiscreteGaussian(Fraction(1, 2))), Shift(DiscreteGaussian(Fraction(4, 5)))
    third = Shift(DiscreteGaussian(Fraction(7, 5)))
    fixed = Difference((Shift(TwoSidedGeometric(Fraction(2))),))
    options = ((one,), (other, third))
    found = epsilon_at(fixed + Difference(choices=(ShiftChoice(3, options),)), delta)
    each = [
        epsilon_at(sum((Difference(option) for option in chosen), fixed), delta)
        for chosen in combinations_with_replacement(options, 3)
    ]
    assert found is not None
    assert found.upper == pytest.approx(max(bounds.upper for bounds in each if bounds is not None), rel=3 * WIDTH)
    assert found.upper >= max(bounds.lower for bounds in each if bounds is not None)


@settings(max_examples=4, deadline=None)
@given(
    st.sampled_from([Fraction(3), Fraction(5), Fraction(40)]), st.integers(1, 3), st.integers(0, 2), st.integers(0, 2)
)
def test_no_vector_within_a_distance_is_told_better_than_the_bound(sigma2: Fraction, a: int, b: int, c: int) -> None:
    moved = [Shift(DiscreteGaussian(sigma2), by) for by in (a, b, c) if by]
    bound = epsilon_at(Difference.of_distance(DiscreteGaussian(sigma2), Fraction(a * a + b * b + c * c)), 1e-8)
    exact = epsilon_at(sum((Difference((one,)) for one in moved), Difference()), 1e-8)
    assert bound is not None
    assert exact is not None
    assert exact.lower <= bound.upper


DP_ACCOUNTING = [
    ([(1.5, 2), (100.0, 1), (0.5, 3)], 20.3560867),
    ([(3.0, 3)], 6.49554685),
    ([(20.0, 1)], 1.32350649),
    ([(0.5, 2)], 13.9849255),
    ([(0.5, 1), (0.5, 3), (7.0, 1), (20.0, 1)], 21.9088028),
    ([(100.0, 3), (20.0, 1)], 1.69810877),
]
"""Parameters sigma2 with numbers of answers, and epsilon at delta 1e-10 by dp-accounting 0.6.0.

`from_discrete_gaussian_mechanism(sqrt(sigma2), value_discretization_interval=1e-4, use_connect_dots=True,
truncation_bound=12 sigma + 3)`, self_compose, compose, get_epsilon_for_delta: a bound from above, too.
"""


@pytest.mark.parametrize(("of", "epsilon"), DP_ACCOUNTING)
def test_another_implementation_finds_the_same(of: list[tuple[float, int]], epsilon: float) -> None:
    shifts = (Shift(DiscreteGaussian(Fraction(sigma2)), 1, times) for sigma2, times in of)
    found = epsilon_at(together(*shifts), 1e-10)
    assert found is not None
    assert found.lower <= epsilon
    assert found.upper == pytest.approx(epsilon, rel=1e-5)


def test_more_and_farther_is_worse() -> None:
    law = DiscreteGaussian(Fraction(3))
    found = [epsilon_at(together(Shift(law, by, times)), 1e-9) for by, times in ((1, 1), (1, 2), (1, 5), (3, 5))]
    uppers = [bounds.upper for bounds in found if bounds is not None]
    assert uppers == sorted(uppers)
    assert len(set(uppers)) == 4


def test_what_is_refused() -> None:
    one = together(Shift(DiscreteGaussian(Fraction(1))))
    for delta in (0.0, 1.0, -1.0, 2.0, math.nan, SMALLEST_DELTA / 2):
        with pytest.raises(ValueError, match="delta must lie below 1"):
            epsilon_at(one, delta)
    for epsilon in (-1.0, math.inf, math.nan):
        with pytest.raises(ValueError, match="zero or more, and finite"):
            delta_at(one, epsilon)
    with pytest.raises(ValueError, match="too small"):
        Difference.of_distance(DiscreteGaussian(Fraction(1)), Fraction(2))
    for by, times in ((0, 1), (1, 0)):
        with pytest.raises(ValueError, match="whole number"):
            Shift(DiscreteGaussian(Fraction(1)), by, times)


def test_nothing_that_differs_costs_nothing() -> None:
    assert epsilon_at(Difference(), 1e-10) == delta_at(Difference(), 0.0) == LossBounds(0.0, 0.0)
    assert Difference.of_distance(DiscreteGaussian(Fraction(9)), Fraction(0)) == Difference()


def test_a_delta_that_no_double_holds_has_no_bound() -> None:
    assert delta_at(together(Shift(DiscreteGaussian(Fraction(100)))), 50.0) is None


def test_more_noise_of_one_answer_is_not_always_told_worse() -> None:
    """docs/exact-accounting.md, section 5: why nothing rests on the noise of a plan growing with its budgets."""
    less, more = (composed([Shift(DiscreteGaussian(Fraction(sigma2)))]) for sigma2 in ("1", "1.2"))
    assert float(delta_of(less, 3.5)) == pytest.approx(8.59e-5, rel=1e-3)
    assert float(delta_of(more, 3.5)) == pytest.approx(1.098e-4, rel=1e-3)


def test_many_deltas_are_those_of_single_epsilons_but_a_little_above() -> None:
    shifts = (Shift(DiscreteGaussian(Fraction(3)), 1, 4), Shift(TwoSidedGeometric(Fraction(5)), 2, 3))
    mixed = Difference(shifts, (ShiftChoice(2, (shifts[:1], shifts[1:])),), slack=1e-7)
    for difference in (Difference(shifts), mixed):
        epsilons = [0.0, 1.0, 1.01, 4.0]
        found = deltas_at(difference, epsilons, 1e-3)
        assert found is not None
        for epsilon, delta in zip(epsilons, found, strict=True):
            one = delta_at(difference, epsilon, 1e-3)
            assert one is not None
            assert one.lower <= delta <= one.upper * (1 + 1e-2)
    assert deltas_at(Difference(), [0.0, 1.0]) == (0.0, 0.0)


@pytest.mark.thorough
@settings(max_examples=4, deadline=None)
@given(plans, plans, st.randoms(use_true_random=False))
def test_the_order_in_which_a_plan_is_said_changes_no_bit(one: list[Shift], other: list[Shift], random: Random) -> None:
    def said(first: list[Shift], second: list[Shift]) -> Difference:
        return Difference(tuple(first), (ShiftChoice(2, (tuple(first), tuple(second))),))

    shuffled = random.sample(one, len(one))
    again = Difference(tuple(shuffled), (ShiftChoice(2, (tuple(other[::-1]), tuple(shuffled))),))
    assert epsilon_at(said(one, other), 1e-8) == epsilon_at(again, 1e-8)
    assert delta_at(said(one, other), 1.5) == delta_at(again, 1.5)
