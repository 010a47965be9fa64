"""The sum that bounds delta, piece by piece: what it is of, where it ends, and what is added for each error."""

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

from yupana.audit.tradeoff import gaussian_epsilon
from yupana.privacy import loss_law
from yupana.privacy.laws import DiscreteGaussian, TwoSidedGeometric
from yupana.privacy.loss_law import (
    SMALLEST_DELTA,
    LossBounds,
    _beyond,
    _Frequencies,
    _least,
    _log_peak,
    _LossFamily,
    _passed,
    _short,
    _steepest,
    _Sum,
    _tiny,
    delta_at,
    deltas_at,
    epsilon_at,
)
from yupana.privacy.loss_terms import Difference, Shift, ShiftChoice, losses

E = 2.0**-52


def near(number: object, rel: float = 1e-12) -> object:
    return pytest.approx(number, rel=rel, abs=0)


def g(sigma2: int, by: int = 1, times: int = 1) -> Shift:
    return Shift(DiscreteGaussian(Fraction(sigma2)), by, times)


def t(scale: int, by: int = 1, times: int = 1) -> Shift:
    return Shift(TwoSidedGeometric(Fraction(scale)), by, times)


FIXED = (g(12, 2, 3), t(5, 1, 2))
OPTIONS = ((g(3),), (t(4), g(20)))
MIXED = Difference(FIXED, (ShiftChoice(2, OPTIONS),), squared=0.1)
"""A choice of two options, twice: three mixtures."""


def family(difference: Difference = MIXED) -> _LossFamily:
    return _LossFamily.of(difference)


def test_a_family_counts_its_mixtures_and_takes_the_worst() -> None:
    choices = (ShiftChoice(2, ((g(3),), (g(4),), (g(5),))), ShiftChoice(1, ((g(6),), (g(7),))))
    found = family(Difference((), choices))
    counts = found.counts()
    assert (counts.shape, found.mixtures, counts.dtype) == ((12, 5), 12, np.float64)
    assert (counts[:, :3].sum(axis=1) == 2).all()
    assert (counts[:, 3:].sum(axis=1) == 1).all()
    assert len({tuple(row) for row in counts.tolist()}) == 12
    assert family(Difference(FIXED)).counts().shape == (1, 0)
    # 3 * 4 / 12 + 2 / 25, and twice the larger of 1/3 and 1/16 + 1/20.
    assert family().precision == near(0.1 + 1 + 0.08 + 2 / 3)
    c = 1.7
    log = {shift: losses([shift])[0].log(c) for shift in (*FIXED, *OPTIONS[0], *OPTIONS[1])}
    rounding = {shift: losses([shift])[0].rounding(c) for shift in log}
    worst = max(log[g(3)], log[t(4)] + log[g(20)])
    moment = c * (c + 1) * 0.1 / 2 + log[FIXED[0]] + log[FIXED[1]] + 2 * worst
    assert family().log_moment(c) == near(moment)
    # Two fixed answers, and twice one and two of the options.
    of_sum = E * (16 * c * (c + 1) * 0.1 + 64 + 8 * abs(moment))
    of_answers = rounding[FIXED[0]] + rounding[FIXED[1]] + 2 * max(rounding[g(3)], rounding[t(4)] + rounding[g(20)])
    assert family().rounding(c) == near(of_sum + of_answers)


def test_frequencies_have_the_decay_and_phase_of_all_answers_and_the_sum_of_their_errors() -> None:
    """docs/exact-accounting.md, section 4: errors of factors add; each addition of phases is wrong by a unit."""
    c, tau, u = 1.3, 0.01, np.array([0.25, 0.5, 1.0])
    found = _Frequencies.among(family(), c, tau, u)
    terms = {shift: losses([shift])[0].turned(c, u) for shift in (*FIXED, *OPTIONS[0], *OPTIONS[1])}
    smooth = 0.1 + tau**2
    decay, phase = smooth / 2 * u**2, smooth * (c + 0.5) * u
    error, by_u = 1e-19 + 64 * E, 8 * E * smooth * (c + 0.5)
    for shift in FIXED:
        decay, phase = decay + terms[shift].decay, phase + terms[shift].phase
        error += terms[shift].error
        by_u += terms[shift].error_by_u + E * np.max(np.abs(phase) / u)
    of = [terms[g(3)].decay, terms[t(4)].decay + terms[g(20)].decay]
    turned = np.array([terms[g(3)].phase, terms[t(4)].phase + terms[g(20)].phase])
    least = np.minimum(*of)
    assert found.u.tolist() == u.tolist()
    assert found.decay == near(decay + 2 * least)
    assert found.phase == near(phase)
    assert found.option_decay == pytest.approx(np.array([of[0] - least, of[1] - least]), rel=1e-12, abs=1e-15)
    assert found.option_phase == near(turned)
    assert found.error == near(error + 2 * max(terms[g(3)].error, terms[t(4)].error + terms[g(20)].error))
    by_u += 2 * max(terms[g(3)].error_by_u, terms[t(4)].error_by_u + terms[g(20)].error_by_u)
    # Two options, of two answers at most, each twice.
    by_u += 2 * (2 + 2) * E * np.max(np.abs(turned) / u)
    assert found.error_by_u == near(by_u)
    # An option may move nothing.
    still = _Frequencies.among(family(Difference((), (ShiftChoice(1, ((), OPTIONS[0])),))), c, tau, u)
    assert still.option_phase == near(np.array([np.zeros(3), terms[g(3)].phase]))
    assert still.option_decay == near(np.array([np.zeros(3), terms[g(3)].decay]))


def test_frequencies_at_which_nothing_is_left_are_dropped_and_pieces_are_joined() -> None:
    """A modulus is exp(-decay): below exp(-46) = 1e-20 it is dropped."""
    decay = np.array([45.0, 46.0, 45.999, 47.0])
    rows = np.arange(8.0).reshape(2, 4)
    whole = _Frequencies(np.arange(1.0, 5.0), decay, -decay, rows, rows + 10, 0.5, 0.25)
    kept = whole.kept()
    assert (kept.u.tolist(), kept.decay.tolist(), kept.phase.tolist()) == ([1, 3], [45, 45.999], [-45, -45.999])
    assert kept.option_decay.tolist() == [[0, 2], [4, 6]]
    assert kept.option_phase.tolist() == [[10, 12], [14, 16]]
    assert (kept.error, kept.error_by_u) == (0.5, 0.25)
    joined = _Frequencies.joined([kept, replace(whole, error=0.75, error_by_u=0.125)])
    assert (joined.u.tolist(), joined.decay.tolist()) == ([1, 3, 1, 2, 3, 4], [45, 45.999, *decay])
    assert joined.phase.tolist() == [-45, -45.999, *(-decay)]
    assert joined.option_decay.tolist() == [[0, 2, 0, 1, 2, 3], [4, 6, 4, 5, 6, 7]]
    assert (joined.option_phase - joined.option_decay == 10).all()
    assert (joined.error, joined.error_by_u) == (0.75, 0.25)
    # What is dropped counts as what is fixed alone: a choice may add no decay to it.
    far = _Frequencies.among(
        family(Difference((), (ShiftChoice(1, ((g(2),), (g(3),))),), 1.0)), 1.0, 0.1, np.arange(1.0, 20)
    )
    assert far.u.tolist() == list(range(1, 10))


@pytest.mark.parametrize(("delta", "width"), [(1e-8, 1e-3), (1e-3, 5e-3)])
def test_a_sum_is_what_theorem_4_says_and_its_error_is_that_of_section_4(delta: float, width: float) -> None:
    of = family()
    found = _Sum.for_delta(of, delta, width)
    assert found is not None
    c, h, tau = found.c, found.step, found.tau

    def chernoff(tilt: float) -> float:
        peak = tilt * math.log(tilt) - (tilt + 1) * math.log(tilt + 1)
        return (of.log_moment(tilt) - math.log(delta) + peak) / tilt

    assert chernoff(c) <= min(chernoff(c * 1.01), chernoff(c / 1.01))
    x = chernoff(c)
    digits, _ = math.frexp(h)
    assert digits * 32 == int(digits * 32)
    assert _beyond(of, c, x, 2 * math.pi / h) <= 1e-7 * delta
    # The step is no shorter than a quarter and a rounding to five digits make it.
    assert 2 * math.pi / h <= max(
        (18 - math.log(delta)) / c * (1 + 1 / 16), 1e9 * (_beyond(of, c, x, 0.75 * 2 * math.pi / h) > 1e-7 * delta)
    )
    spread = math.sqrt(of.precision)
    assert found.reach == near(0.3 * width * max(x, spread), 1e-6)
    assert tau == near(found.reach / math.sqrt(2 * math.log(1e4 / delta)))
    number = math.ceil(6 / (tau * h))
    terms = _Frequencies.among(of, c, tau, np.arange(1, number + 1) * h)
    assert found.u.tolist() == terms.u.tolist()
    counts = of.counts()
    z = c + 1j * found.u
    modulus = np.exp(-(terms.decay + counts @ terms.option_decay))
    phase = terms.phase + counts @ terms.option_phase
    summands = modulus * np.exp(1j * phase) / (z * (z + 1))
    assert np.abs(found.weight * np.exp(1j * found.phase) - summands).max() <= 1e-12 * np.abs(summands).max()
    logs = {loss: loss.log(c) for loss in losses((*FIXED, *OPTIONS[0], *OPTIONS[1]))}
    fixed = sum(logs[loss] for loss in losses(FIXED)) + c * (c + 1) * (0.1 + tau**2) / 2
    one, other = (sum(logs[loss] for loss in losses(option)) for option in OPTIONS)
    assert sorted(found.log_moments) == near(sorted([fixed + 2 * one, fixed + one + other, fixed + 2 * other]))
    assert found.rounding == near(of.rounding(c) + 8 * E * c * (c + 1) * tau**2)
    at = 0.9 * x
    whole = (summands * np.exp(-1j * found.u * at)).real.sum(axis=1) + 0.5 / (c * (c + 1))
    assert found._summed(at) == near(h / math.pi * whole, 1e-9)
    # Sums of h / (c^2 + u^2) and of h u / (c^2 + u^2) up to U, and the tail beyond.
    last = number * h
    flat = math.pi / (2 * c) + h / (c * (c + 1))
    rising = math.log(1 + (last / c) ** 2) / 2 + h / (2 * c)
    tail = math.exp(-((tau * last) ** 2) / 2) / (tau**2 * last**3)
    by_u = terms.error_by_u + (8 + 2) * E * np.max(np.abs(found.phase) / found.u)
    constant = terms.error + len(found.u) * E
    assert found.error == near(1.01 / math.pi * (constant * flat + by_u * rising + tail), 1e-9)
    assert found.error_by_x == near(1.01 / math.pi * 16 * E * rising)


def test_where_nothing_decays_all_frequencies_up_to_six_deviations_are_summed(monkeypatch: pytest.MonkeyPatch) -> None:
    found = _Sum.for_delta(family(Difference((t(5),))), 1e-3, 1e-3)
    assert found is not None
    assert len(found.u) == math.ceil(6 / (found.tau * found.step))
    # At the smallest tilt c (c + 1) is 16 by twice rho, which is 1/25.
    assert found.c >= (math.sqrt(1 + 64 * 25) - 1) / 2
    # Where epsilon is small, so is what the lower bound gives up.
    assert found.reach <= 0.3e-3 * 0.21
    # The last one stands alone in its piece.
    monkeypatch.setattr(loss_law, "_AT_ONCE", len(found.u) - 1)
    pieces = _Sum.for_delta(family(Difference((t(5),))), 1e-3, 1e-3)
    assert pieces is not None
    assert pieces.u.tolist() == found.u.tolist()


def test_a_sum_for_an_epsilon_is_of_the_tilt_that_bounds_delta_there_best() -> None:
    of, epsilon = family(), 9.0
    found, nearer = _Sum.for_epsilon(of, epsilon, 1e-3), _Sum.for_epsilon(of, 4.0, 1e-3)
    assert found is not None
    assert nearer is not None
    # The tilt is no smaller than makes c (c + 1) twice rho 16.
    assert nearer.c * (nearer.c + 1) * of.precision == near(16)

    def chernoff(tilt: float) -> float:
        return of.log_moment(tilt) - tilt * epsilon + tilt * math.log(tilt) - (tilt + 1) * math.log(tilt + 1)

    assert chernoff(found.c) <= min(chernoff(found.c * 1.01), chernoff(found.c / 1.01))
    assert found.reach == near(0.3e-3 * epsilon)
    assert found.tau == near(found.reach / math.sqrt(2 * (math.log(1e6) - chernoff(found.c))), 1e-6)
    assert _Sum.for_epsilon(family(Difference((g(100),))), 30.0, 1e-3) is None


def test_sums_that_are_too_long_are_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    def made() -> _Sum | None:
        return _Sum.for_delta(family(), 1e-3, 5e-3)

    found = made()
    assert found is not None
    for limit, most in (("_MOST_MIXTURES", 3), ("_MOST_CELLS", 3 * len(found.u))):
        with monkeypatch.context() as patch:
            patch.setattr(loss_law, limit, most)
            assert made() is not None
            patch.setattr(loss_law, limit, most - 1)
            assert made() is None
    # With half the terms the lower bound gives up more; with a quarter more than the width.
    number = math.ceil(6 / (found.tau * found.step))
    with monkeypatch.context() as patch:
        patch.setattr(loss_law, "_MOST_TERMS", number // 2)
        fewer = made()
        assert fewer is not None
        assert fewer.reach == near(2 * found.reach, 1e-3)
        patch.setattr(loss_law, "_MOST_TERMS", number // 4)
        assert made() is None
    with monkeypatch.context() as patch:
        patch.setattr(loss_law, "_AT_ONCE", 1000)
        pieces = made()
        assert pieces is not None
        assert pieces.u.tolist() == found.u.tolist()
        assert pieces.weight.tolist() == found.weight.tolist()


def crafted(**terms: object) -> _Sum:
    """One frequency, at c = 1 and step pi: `_summed` is weight times cosine, and 0.25."""
    given: dict[str, Any] = {
        "family": family(Difference(squared=1.0)), "c": 1.0, "step": math.pi, "tau": 0.01, "reach": 0.125,
        "log_moments": np.array([0.0]), "rounding": 0.0, "u": np.array([1.0]), "weight": np.array([[0.0]]),
        "phase": np.array([[0.0]]), "error": 0.0, "error_by_x": 0.0,
    }  # fmt: skip
    return _Sum(**(given | terms))


def test_delta_is_the_moment_times_the_sum_with_all_errors_against_it() -> None:
    plain = crafted()
    assert plain.deltas(0.0) == near([0.25])
    assert plain.delta(2.0) == near(0.25 * math.exp(-2))
    wave = crafted(weight=np.array([[0.1], [0.2]]), phase=np.array([[1.0], [3.0]]), log_moments=np.array([0.0, -1.0]))
    expected = [0.25 + 0.1 * math.cos(0.5), math.exp(-1) * (0.25 + 0.2 * math.cos(2.5))]
    assert wave.deltas(0.5) == near([expected[0] * math.exp(-0.5), expected[1] * math.exp(-0.5)])
    assert wave.delta(0.5) == near(expected[0] * math.exp(-0.5))
    assert wave.only(np.array([1])).deltas(0.5) == near([expected[1] * math.exp(-0.5)])
    with_errors = crafted(error=0.5, error_by_x=0.125, rounding=0.01)
    assert with_errors.delta(2.0) == near((0.75 + 0.25) * math.exp(-2 + 0.01))
    # No bound is above 1, nor below 0 where rounding would make it so.
    assert crafted(log_moments=np.array([3.0])).delta(0.0) == 1.0
    assert crafted(error=-0.5).delta(0.0) == 0.0
    assert crafted()._scale(0.0, 1) <= crafted(rounding=1e-9)._scale(0.0, 1)


def test_the_scale_is_rounded_by_eight_units_of_each_term() -> None:
    far = crafted(log_moments=np.array([100.0]))
    for sign in (1, -1):
        assert (far._scale(100.0, sign)[0] - 1) / E == pytest.approx(sign * 8 * (1 + 100 + 100), abs=3)
    assert crafted(log_moments=np.array([-100.0]))._scale(0.0, 1)[0] == near(math.exp(-100 + 8 * 101 * E), 3e-16)
    assert crafted(log_moments=np.array([1000.0]))._scale(0.0, 1)[0] == math.exp(600)
    # And delta by 16 more.
    one = crafted(log_moments=np.array([math.log(2)]))
    assert one.delta(0.0) / (0.25 * one._scale(0.0, 1)[0]) == 1 + 16 * E


def test_the_bound_from_below_gives_up_the_reach_and_what_may_not_be_of_the_plan() -> None:
    """Theorem 5: the sum at x + w less the terms of other j and the chance that the tiny loss is above w."""
    family_of = family(Difference(squared=1.0))
    at = 0.5 + 0.125
    given_up = 1.01 * (_beyond(family_of, 1.0, at, 16.0) + _tiny(0.125, 0.1))
    one = crafted(step=2 * math.pi / 16, weight=np.array([[16.0]]), error=0.5, error_by_x=0.25, rounding=0.01, tau=0.1)
    whole = (2 / 16) * (16 * math.cos(at) + 0.25) - 0.5 - 0.25 * at
    assert one.least_delta(0.5) == near(whole * math.exp(-at - 0.01) - given_up)
    assert replace(one, error=50.0).least_delta(0.5) == 0.0
    tight = crafted(step=2 * math.pi / 100, weight=np.array([[100.0]]), tau=1e-3)
    whole = (2 / 100) * (100 * math.cos(at) + 0.25) * math.exp(-at)
    assert tight.least_delta(0.5) / (whole * (1 - 8 * E * (1 + at))) - 1 == pytest.approx(-16 * E, abs=4 * E)


def test_bounds_of_a_mixture_are_those_of_its_worst() -> None:
    found = _Sum.for_delta(family(), 1e-6, 1e-3)
    assert found is not None
    lower, upper = found.bounds(1e-6)
    step = max(1e-10 * upper, 1e-3 * found.reach)
    assert found._near(upper) == step
    assert found._near(1e9 * found.reach) == near(0.1 * found.reach)
    assert found.delta(upper) <= 1e-6 < found.delta(upper - 1.01 * step)
    assert found.least_delta(lower) > 1e-6
    assert lower <= upper <= lower + 2 * found.reach
    assert found.least_epsilon(1e-6, upper) == pytest.approx(lower, abs=step)
    assert found.least_delta(lower + 1.01 * step) <= 1e-6
    # Of any mixture, whichever is tried first.
    turned = found.only(np.array([2, 0, 1]))
    assert turned.bounds(1e-6) == pytest.approx((lower, upper), abs=2 * step)
    # Nothing is told below twice the reach, nor where the bound from below is not above delta.
    assert found.least_epsilon(1e-6, 2 * found.reach) == found.least_epsilon(1e-6, found.reach) == 0.0
    assert found.least_epsilon(1e-6, lower + 2.5 * found.reach) == 0.0
    assert found.least_epsilon(0.999, upper) == 0.0
    assert found.epsilon(1.0) == found.epsilon(found.delta(0.0)) == 0.0
    assert found.epsilon(found.delta(0.0) * 0.99) > 0


def test_mixtures_that_pass_delta_where_the_first_does_not_join_it() -> None:
    """Of exp(L - x) (1/4 + w cos x): the largest L, which comes first, is not the worst."""
    three = crafted(
        log_moments=np.array([0.0, -0.1, -0.2]), weight=np.array([[0.0], [0.5], [1.5]]), phase=np.zeros((3, 1))
    )
    alone = [three.only(np.array([m])).epsilon(0.2) for m in range(3)]
    assert alone[0] == pytest.approx(math.log(0.25 / 0.2), abs=1e-3)
    assert alone[0] < alone[1] < alone[2]
    assert three.bounds(0.2)[1] == pytest.approx(alone[2], abs=1e-3)


def test_a_step_that_never_suffices_is_looked_for_no_longer_than_a_million(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def made(beyond: float) -> bool:
        def answered(_of: _LossFamily, _c: float, _x: float, period: float) -> float:
            asked.append(period)
            return beyond

        monkeypatch.setattr(loss_law, "_beyond", answered)
        return _Sum._make(family(), 4.0, 3.0, 1e-3, 5e-3) is not None

    assert made(0.99e-7 * 1e-3)
    assert asked == near([(18 - math.log(1e-3)) / 4])
    asked.clear()
    assert not made(1.01e-7 * 1e-3)
    assert asked[1] == near(1.25 * asked[0])
    most = 1e6 * (math.sqrt(family().precision) + 3.0 + 1 / 4)
    assert asked[-1] <= most < asked[-1] * 1.25


@pytest.mark.parametrize("power", [1.0, 0.5, 3.0])
def test_where_a_function_passes_a_value_is_found_in_a_few_steps(power: float) -> None:
    asked = []

    def falling(x: float) -> float:
        asked.append(x)
        return math.exp(-2 * x**power)

    for value in (0.5, 1e-5, 1e-200):
        at = (-math.log(value) / 2) ** (1 / power)
        for high in (at * 1.001, at * 2):
            asked.clear()
            low, end = _passed(falling, value, 0.0, high, 1e-9 * at, 2.0)
            assert falling(low) > value >= falling(end)
            assert end - low <= 1e-9 * at
            # Of an exponential the first step is right: both ends, it, one beside it, and these two.
            assert len(asked) <= (6 if power == 1 and value > 1e-6 else 40)


def test_a_step_is_bracketed_as_well() -> None:
    low, high = _passed(lambda x: 1.0 if x < 0.3 else 0.0, 0.5, 0.0, 1.0, 1e-6, 1.0)
    assert low < 0.3 <= high <= low + 1e-6


def test_the_steepest_phase_is_that_by_frequency() -> None:
    u = np.array([1.0, 2.0, 4.0])
    assert _steepest(np.array([[1.0, -5.0, 8.0], [0.0, 0.0, -9.0]]), u) == 2.5
    assert _steepest(np.zeros((2, 0)), np.zeros(0)) == 0.0


def test_numbers_are_cut_to_five_binary_digits() -> None:
    for number, cut in ((1.0, 1.0), (1.99, 31 / 16), (2.0, 2.0), (0.3, 19 / 64), (1000.0, 992.0), (31 / 32, 31 / 32)):
        assert _short(number) == cut


def test_the_peak_of_chernoffs_bound() -> None:
    """(1 - e^-t) e^(-ct) is largest at e^-t = c / (c + 1)."""
    for c, peak in ((1.0, 1 / 4), (2.0, 4 / 27), (3.0, 27 / 256), (0.5, 2 / 3**1.5)):
        assert _log_peak(c) == near(math.log(peak))


@pytest.mark.parametrize("precision", [1e-4, 1.0, 25.0])
def test_tilts_are_looked_for_in_a_wide_range(precision: float) -> None:
    """From a thousandth of 1 / (spread + spread^2) to ten thousand and ten thousand by the spread, up to 1."""
    spread = math.sqrt(precision)
    low, high = 1e-3 / (spread + precision), 1e4 / min(spread, 1.0) + 1e4
    assert math.exp(_least(lambda log_c: log_c, precision)) == near(low, 1e-6)
    assert math.exp(_least(lambda log_c: -log_c, precision)) == near(high, 1e-6)
    assert _least(lambda log_c: (log_c - 0.7) ** 2, precision) == pytest.approx(0.7, abs=1e-6)


def test_what_other_terms_add_is_bounded_by_tilts_up_to_three_times() -> None:
    """Theorem 5: sums over j < 0 of e^(cjP), and over j > 0 by the Chernoff bound at a steeper tilt."""
    of, mu2 = family(Difference(squared=0.5)), 0.5
    # The best tilt is c times 3, 2, 1.5, 1.25 and 1.1.
    for c, x, period in ((4.0, 3.0, 3.25), (4.0, 3.0, 1.25), (4.0, 3.0, 0.25), (8.0, 3.0, 2.25), (8.0, 3.0, 1.65)):
        below = math.fsum(math.exp(-c * period * j) for j in range(1, 200))
        above = math.inf
        for tilt in (1.1 * c, 1.25 * c, 1.5 * c, 2 * c, 3 * c):
            log = tilt * (tilt + 1) * mu2 / 2 - tilt * x + tilt * math.log(tilt) - (tilt + 1) * math.log(tilt + 1)
            above = min(above, math.fsum(math.exp(log - (tilt - c) * j * period) for j in range(1, 2000)))
        assert _beyond(of, c, x, period) == near(below + above, 1e-9)
    # None of the tilts tells anything.
    assert _beyond(of, 1e-3, 1.0, 0.01) == math.inf
    assert _beyond(family(Difference(squared=1e6)), 1.0, 0.0, 1.0) == math.inf


def test_the_tiny_loss_is_above_the_reach_with_the_chance_of_the_normal_law() -> None:
    for reach, tau in ((0.3, 0.1), (0.05, 0.02), (1.0, 1.0)):
        exact = 1 - NormalDist(tau**2 / 2, tau).cdf(reach)
        assert _tiny(reach, tau) == near(exact, 1e-9)


def test_where_the_largest_loss_is_within_the_width_it_is_the_answer() -> None:
    """Of one answer with noise exp(-|k| / 5) delta falls from the largest loss, 1/5, on, at a slope of 0.55."""
    one = Difference((t(5),))
    chance = 1 / (1 + math.exp(-0.2))
    for part, certain in ((0.25, True), (0.35, False)):
        delta = -chance * math.expm1(-part * 1e-4 * 0.2)
        found = epsilon_at(one, delta)
        assert found is not None
        assert (found == LossBounds(one.least_epsilon(delta), one.most)) is certain
    assert epsilon_at(one, 0.0001, 1.0) == LossBounds(one.least_epsilon(0.0001), one.most)


def test_a_slack_moves_delta_and_epsilon_as_theorem_3_says() -> None:
    """delta(x) <= e^eta delta'(x - 2 eta)."""
    eta, normal = 0.01, NormalDist()
    one = Difference(squared=1.0, slack=eta)
    for delta in (1e-3, 1e-9):
        found = epsilon_at(one, delta)
        assert found is not None
        assert found.upper == near(gaussian_epsilon(1.0, delta * math.exp(-eta)) + 2 * eta, 1e-6)
        assert (
            found.upper - 2.5e-4 * found.upper - 2 * eta < found.lower <= gaussian_epsilon(1.0, delta * math.exp(-eta))
        )
    for epsilon in (0.015, 1.0, 3.0):
        inner = max(0.0, epsilon - 2 * eta)
        exact = normal.cdf(0.5 - inner) - math.exp(inner) * normal.cdf(-0.5 - inner)
        at = delta_at(one, epsilon)
        assert at is not None
        assert at.upper == near(exact * math.exp(eta), 1e-6)
        assert at.lower <= normal.cdf(0.5 - epsilon) - math.exp(epsilon) * normal.cdf(-0.5 - epsilon)
    # A slack beyond all bounds tells nothing, and no delta is above 1.
    assert epsilon_at(Difference(squared=1.0, slack=1e4), 1e-3) is None
    most = delta_at(Difference(squared=1.0, slack=5.0), 0.0)
    assert most is not None
    assert most.upper == 1.0
    assert deltas_at(Difference(squared=1.0, slack=5.0), [0.0]) == (1.0,)


@pytest.mark.parametrize("difference", [MIXED, Difference(squared=0.5, slack=1e-3), Difference((t(5, 1, 9),))], ids=str)
def test_one_sum_serves_epsilons_within_a_deviation(difference: Difference) -> None:
    spread = math.sqrt(family(difference).precision)

    def single(epsilon: float) -> float:
        found = delta_at(difference, epsilon, 1e-3)
        assert found is not None
        return found.upper

    apart = [0.3, 0.3 + 1.01 * spread, 0.3 + 2.5 * spread]
    assert deltas_at(difference, apart, 1e-3) == tuple(map(single, apart))
    together = deltas_at(difference, [0.3, 0.3 + 0.5 * spread], 1e-3)
    assert together is not None
    assert together[0] == single(0.3)
    assert together[1] != single(0.3 + 0.5 * spread)
    assert together[1] == near(single(0.3 + 0.5 * spread), 1e-3)


def test_beyond_the_largest_loss_delta_is_0_and_below_what_a_double_holds_it_is_not_told() -> None:
    one = Difference((t(5),))
    assert deltas_at(one, [0.1, one.most, 7.0], 1e-3)[1:] == (0.0, 0.0)  # type: ignore[index]
    assert delta_at(one, one.most) == LossBounds(0.0, 0.0)
    assert deltas_at(Difference((g(100),)), [0.1, 50.0]) is None


@pytest.mark.parametrize("ask", [lambda d: epsilon_at(Difference((g(1),)), d)])
def test_the_smallest_delta_is_allowed(ask: Callable[[float], LossBounds | None]) -> None:
    assert epsilon_at(Difference(), SMALLEST_DELTA) == LossBounds(0.0, 0.0)
    for delta in (SMALLEST_DELTA / 2, 1.0):
        with pytest.raises(ValueError, match=r"^delta must lie below 1, and be at least 1e-290 for an exact epsilon$"):
            ask(delta)
    assert delta_at(Difference(), 0.0) == LossBounds(0.0, 0.0)
    with pytest.raises(ValueError, match=r"^epsilon must be zero or more, and finite$"):
        delta_at(Difference(), math.inf)


def test_where_delta_hardly_falls_no_epsilon_is_told_whatever_the_slack() -> None:
    """One answer of sigma2 = 1/5 has losses 2.5 + 5 k: between two of them delta is nearly flat.

    Delta at 8 is about P(X >= 2) = 3.9e-5, the chance of losses of 12.5 and more.
    """
    coarse = Difference((Shift(DiscreteGaussian(Fraction(1, 5))),))
    weights = [math.exp(-2.5 * k * k) for k in range(-9, 10)]
    delta = weights[11] / sum(weights) * -math.expm1(8 - 12.5)
    assert epsilon_at(coarse, delta, 1e-3) is None
    for slack in (1.0, 9.9):
        assert epsilon_at(replace(coarse, slack=slack), delta * math.exp(slack), 1e-3) is None


def test_a_slack_is_rounded_against_the_bounds() -> None:
    """By two units of epsilon, and eight of delta."""
    eta = 1e-3
    one = Difference(squared=1.0, slack=eta)
    for delta in (0.2, 1e-3, 1e-7):
        aim = delta * math.exp(-eta) * (1 - 8 * E)
        found = _Sum.for_delta(family(one), aim, 1e-2)
        assert found is not None
        lower, inner = found.bounds(aim)
        assert epsilon_at(one, delta, 1e-2) == LossBounds(lower, inner + 2 * eta)
    for epsilon in (0.001, 0.3, 2.0, 3.1, 5.7, 9.0):
        inner = max(0.0, epsilon - 2 * eta) * (1 - 2 * E)
        made = _Sum.for_epsilon(family(one), inner, 1e-2)
        assert made is not None
        upper = made.delta(inner) * math.exp(eta) * (1 + 8 * E)
        assert delta_at(one, epsilon, 1e-2) == LossBounds(made.least_delta(epsilon), upper)
        assert deltas_at(one, [epsilon], 1e-2) == (upper,)
