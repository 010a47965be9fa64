"""Bounds on the privacy loss of composed answers, against the law itself."""

import math
from fractions import Fraction

from composed_losses import composed, delta_of
from hypothesis import given, settings
from hypothesis import strategies as st

from yupana.privacy.difference import Difference, Shift
from yupana.privacy.laws import DiscreteGaussian, TwoSidedGeometric
from yupana.privacy.loss_law import WIDTH, delta_at, epsilon_at

gaussians = st.builds(
    DiscreteGaussian, st.sampled_from([Fraction(1, 5), Fraction(2, 3), Fraction(1), Fraction(7, 3), Fraction(9)])
)
geometrics = st.builds(TwoSidedGeometric, st.sampled_from([Fraction(1, 3), Fraction(1), Fraction(5, 2)]))
shifts = st.builds(Shift, gaussians | geometrics, st.integers(1, 3), st.integers(1, 2))
plans = st.lists(shifts, min_size=1, max_size=2).filter(lambda of: sum(s.times for s in of) < 4)


@settings(max_examples=30, deadline=None)
@given(plans, st.floats(0, 1.2))
def test_delta_lies_between_its_bounds(of: list[Shift], part: float) -> None:
    law = composed(of)
    epsilon = float(part * float(sum(loss * Fraction(p) for loss, p in law.items())) + 3 * part)
    difference = Difference(tuple(of)) + Difference()
    found = delta_at(difference, epsilon)
    exact = float(delta_of(law, epsilon))
    if found is None:
        assert exact < 1e-200
        return
    assert found.lower <= exact * (1 + 1e-12)
    assert exact <= found.upper * (1 + 1e-12)


@settings(max_examples=30, deadline=None)
@given(plans, st.sampled_from([0.3, 1e-2, 1e-5, 1e-10, 1e-25]))
def test_epsilon_lies_between_its_bounds_and_these_are_close(of: list[Shift], delta: float) -> None:
    law = composed(of)
    found = epsilon_at(Difference(tuple(of)) + Difference(), delta)
    assert found is not None
    assert float(delta_of(law, found.upper)) <= delta * (1 + 1e-12)
    if found.lower > 0:
        assert float(delta_of(law, found.lower)) >= delta * (1 - 1e-12)
    spread = math.sqrt(sum(s.times * s.by**2 * 2 * float(s.law.exponent) for s in of))
    assert found.upper - found.lower <= 3 * WIDTH * max(found.upper, spread)
