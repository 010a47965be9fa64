"""The law of the privacy loss of several noisy answers together: epsilon at a delta, and delta at an epsilon.

The loss, the logarithm of how much likelier the noisy answers are under one of two neighbours than under the other, is
a sum of independent terms, one for each answer that moves, and the moment generating function M of each is known
(`yupana.privacy.loss_terms`). For every c > 0

    delta(x) = 1 / (2 pi) * integral over u of  M(c + iu) exp(-(c + iu) x) / ((c + iu) (c + iu + 1))  du.

The integral is summed at steps of h. Its terms fall off because a tiny Gaussian mechanism is composed with the plan,
which raises delta; summing in steps raises it, too; so does all that is added for what is left out and for rounding.
The result is an upper bound. docs/exact-accounting.md proves it.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement, product
from typing import Any, Final

import numpy as np

from yupana.arrays import Ints
from yupana.privacy.loss_terms import NEGLIGIBLE, ULP, Difference, Floats, Loss, losses, reduced
from yupana.privacy.zcdp import argmin

SMALLEST_DELTA: Final = 1e-290
"""Below this a double does not hold delta with the margins that are added to it."""

WIDTH: Final = 1e-4
"""How far apart bounds of an epsilon are at most, as a part of it (or of the standard deviation of the loss)."""

_ASPIRED: Final = 0.3
"""The part of the width that is used where the sum stays short."""

_MOST_TERMS: Final = 1 << 21
"""Sums longer than this are not made."""

_AT_ONCE: Final = 1 << 17
"""Frequencies looked at together, so that they stay in the cache."""

_MOST_MIXTURES: Final = 20_000
_MOST_CELLS: Final = 1 << 23
"""More ways in which choices can fall, and times their frequencies, are not gone through."""


@dataclass(frozen=True, slots=True)
class LossBounds:
    """A number known to lie between two."""

    # lower, upper: `lower` is a bound for neighbours that differ exactly as said, without the slack
    lower: float
    upper: float


def epsilon_at(difference: Difference, delta: float, width: float = WIDTH) -> LossBounds | None:
    """The least epsilon of a difference at ``delta``, from above and from below.

    Parameters
    ----------
    delta : float
        Between `SMALLEST_DELTA` and 1.
    width : float
        How far apart the bounds may be, as a part of the larger of epsilon and the standard deviation of the loss.

    Returns
    -------
    LossBounds or None
        None if no bounds so close can be certified in double precision.

    Raises
    ------
    ValueError
        If delta is not in that range.
    """
    if not SMALLEST_DELTA <= delta < 1:
        raise ValueError(f"delta must lie below 1, and be at least {SMALLEST_DELTA:g} for an exact epsilon")
    if not difference.moves:
        return LossBounds(0.0, 0.0)
    floor = difference.least_epsilon(delta)
    if difference.most - floor <= _ASPIRED * width * difference.most < math.inf:
        return LossBounds(floor, difference.most)
    aim = delta * math.exp(-difference.slack) * (1 - 8 * ULP)
    found = _Sum.for_delta(_LossFamily.of(difference.in_order), aim, width) if aim > 0 else None
    if found is None:
        return None
    lower, inner = found.bounds(aim)
    upper = min(difference.most, inner + 2 * difference.slack)
    return None if upper - lower > 2 * found.reach + 2 * difference.slack else LossBounds(min(lower, upper), upper)


def delta_at(difference: Difference, epsilon: float, width: float = WIDTH) -> LossBounds | None:
    """The least delta of a difference at ``epsilon``, from above and from below.

    Parameters
    ----------
    epsilon : float
        Zero or more, finite.
    width : float
        The lower bound is that of an epsilon larger by this part.

    Returns
    -------
    LossBounds or None
        None if no bound can be certified in double precision.

    Raises
    ------
    ValueError
        If epsilon is negative or not finite.
    """
    if not 0 <= epsilon < math.inf:
        raise ValueError("epsilon must be zero or more, and finite")
    if not difference.moves or epsilon >= difference.most:
        return LossBounds(0.0, 0.0)
    inner = max(0.0, epsilon - 2 * difference.slack) * (1 - 2 * ULP)
    found = _Sum.for_epsilon(_LossFamily.of(difference.in_order), inner, width)
    if found is None:
        return None
    upper = min(1.0, found.delta(inner) * math.exp(difference.slack) * (1 + 8 * ULP))
    return LossBounds(min(upper, found.least_delta(epsilon)), upper)


def deltas_at(difference: Difference, epsilons: Sequence[float], width: float = WIDTH) -> tuple[float, ...] | None:
    """Bounds from above on the least deltas of a difference at rising epsilons, as of `delta_at` and quicker for many.

    A sum is a bound wherever it is taken, so one serves all epsilons within a standard deviation of the loss.

    Parameters
    ----------
    epsilons : sequence of float
        Zero or more, finite, rising.
    width : float
        As of `delta_at`.

    Returns
    -------
    tuple of float, or None
        None if one of them cannot be certified in double precision.
    """
    family = _LossFamily.of(difference.in_order)
    near, found = math.sqrt(family.precision), list[float]()
    at: tuple[float, _Sum] | None = None
    for epsilon in epsilons:
        if not difference.moves or epsilon >= difference.most:
            found.append(0.0)
            continue
        inner = max(0.0, epsilon - 2 * difference.slack) * (1 - 2 * ULP)
        if at is None or inner > at[0] + near:
            made = _Sum.for_epsilon(family, inner, width)
            if made is None:
                return None
            at = inner, made
        found.append(min(1.0, at[1].delta(inner) * math.exp(difference.slack) * (1 + 8 * ULP)))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _LossFamily:
    """The losses of a difference, for every way in which its choices can fall."""

    fixed: tuple[Loss, ...]
    chosen: tuple[Loss, ...]  # each of those in an option, once
    choices: tuple[tuple[int, tuple[tuple[int, ...], ...]], ...]  # how many choose, and the options by these positions
    squared: float  # mu^2 of continuous Gaussian noise
    mixtures: int

    @classmethod
    def of(cls, difference: Difference) -> "_LossFamily":
        of_all = [(c.times, list(map(losses, c.options))) for c in difference.choices]
        chosen = tuple(dict.fromkeys(loss for _, options in of_all for option in options for loss in option))
        choices = tuple((times, tuple(tuple(map(chosen.index, o)) for o in options)) for times, options in of_all)
        return cls(losses(difference.shifts), chosen, choices, difference.squared, difference.mixtures)

    @property
    def precision(self) -> float:
        """Twice rho of the mixture that has most."""
        return self.squared + self._most(lambda loss: loss.precision)

    def log_moment(self, c: float) -> float:
        """The log of M(c) of the mixture that has most."""
        return c * (c + 1) * self.squared / 2 + self._most(lambda loss: loss.log(c))

    def rounding(self, c: float) -> float:
        """A bound on the error of the log of M(c), of any mixture."""
        terms = len(self.fixed) + sum(times * len(option) for times, options in self.choices for option in options)
        rest = 16 * c * (c + 1) * self.squared + 64 + terms * abs(self.log_moment(c))
        return ULP * rest + self._most(lambda loss: loss.rounding(c))

    def _most(self, of: Callable[[Loss], float]) -> float:
        known = list(map(of, self.chosen))
        chosen = (times * max(math.fsum(known[i] for i in o) for o in options) for times, options in self.choices)
        return math.fsum(map(of, self.fixed)) + math.fsum(chosen)

    def counts(self) -> Floats:
        """How many choose each option, of shape (mixtures, options of all choices)."""

        def ways(times: int, options: int) -> Iterator[list[int]]:
            for chosen in combinations_with_replacement(range(options), times):
                yield [chosen.count(option) for option in range(options)]

        rows = product(*(ways(times, len(options)) for times, options in self.choices))
        return np.array([[n for part in row for n in part] for row in rows], dtype=np.float64)


_BY_FREQUENCY: Final = ("u", "decay", "phase", "option_decay", "option_phase")
"""The arrays of `_Frequencies`, whose last axis is that of the frequencies."""


@dataclass(frozen=True, slots=True, eq=False)
class _Frequencies:
    """Those frequencies that matter, with the decay and phase of what is fixed and of each option there."""

    u: Floats  # these three have shape (frequencies,)
    decay: Floats
    phase: Floats
    # shape (options of all choices, frequencies)
    option_decay: Floats
    option_phase: Floats
    # of the modulus of any mixture: at most the first, and u times the second
    error: float
    error_by_u: float

    @classmethod
    def among(cls, family: _LossFamily, c: float, tau: float, u: Floats) -> "_Frequencies":
        """Those of some frequencies."""
        smooth = family.squared + tau * tau
        linear, none = smooth * (c + 0.5), np.zeros((0, len(u)))
        found = cls(u, smooth / 2 * u * u, linear * u, none, none, 1e-19 + 64 * ULP, 8 * ULP * linear).kept()
        for loss in family.fixed:
            found = found.with_fixed(loss, c)
        for place in range(len(family.choices)):
            found = found.with_choice(family, place, c)
        return found

    @classmethod
    def joined(cls, pieces: "list[_Frequencies]") -> "_Frequencies":
        """Those of all pieces."""
        of: dict[str, Any] = {
            name: np.concatenate([getattr(one, name) for one in pieces], axis=-1) for name in _BY_FREQUENCY
        }
        return cls(**of, error=max(one.error for one in pieces), error_by_u=max(one.error_by_u for one in pieces))

    def with_fixed(self, loss: Loss, c: float) -> "_Frequencies":
        """With what is in every mixture."""
        turned = loss.turned(c, self.u)
        decay, phase = self.decay + turned.decay, self.phase + turned.phase
        by_u = self.error_by_u + turned.error_by_u + ULP * _steepest(phase, self.u)
        return replace(self, decay=decay, phase=phase, error=self.error + turned.error, error_by_u=by_u).kept()

    def with_choice(self, family: _LossFamily, place: int, c: float) -> "_Frequencies":
        """With one more choice of a family."""
        times, options = family.choices[place]
        known = {i: family.chosen[i].turned(c, self.u) for i in {i for option in options for i in option}}
        turned = [[known[i] for i in option] for option in options]
        decays = np.array([sum((t.decay for t in of), np.zeros(len(self.u))) for of in turned])
        phases = np.array([sum((t.phase for t in of), np.zeros(len(self.u))) for of in turned])
        error = self.error + times * max(sum(t.error for t in of) for of in turned)
        by_u = self.error_by_u + times * max(sum(t.error_by_u for t in of) for of in turned)
        by_u += times * (len(options) + max(map(len, options))) * ULP * _steepest(phases, self.u)
        least = np.min(decays, axis=0)
        return replace(
            self,
            decay=self.decay + times * least,
            option_decay=np.concatenate([self.option_decay, decays - least]),
            option_phase=np.concatenate([self.option_phase, phases]),
            error=error,
            error_by_u=by_u,
        ).kept()

    def kept(self) -> "_Frequencies":
        """Without those that are negligible, whatever else decays."""
        keep = self.decay < NEGLIGIBLE
        return self if keep.all() else replace(self, **{name: getattr(self, name)[..., keep] for name in _BY_FREQUENCY})


@dataclass(frozen=True, slots=True, eq=False)
class _Sum:
    """The integral as a sum, at one c: see the head of this file."""

    family: _LossFamily
    c: float  # the tilt. Any positive one gives a bound; a good one keeps the terms near what they sum to.
    step: float  # h, of so few binary digits that its multiples are exact
    tau: float  # the standard deviation of the loss of the tiny Gaussian mechanism
    reach: float  # how much epsilon the lower bound gives up for it
    log_moments: Floats  # shape (mixtures,): log of M(c) of each mixture and the tiny mechanism
    rounding: float  # a bound on the error of these
    u: Floats  # shape (frequencies,)
    # shape (mixtures, frequencies): moduli of M(c + iu) / (M(c) (c + iu) (c + iu + 1)), and their arguments
    weight: Floats
    phase: Floats
    error: float  # what rounding, and what is left out, can add to the sum, but for the error by x
    error_by_x: float  # the same for each unit of x

    @classmethod
    def for_delta(cls, family: _LossFamily, delta: float, width: float) -> "_Sum | None":
        """A sum to find the epsilon at ``delta``."""

        def chernoff(log_c: float) -> float:
            c = math.exp(log_c)
            value = (family.log_moment(c) - math.log(delta) + _log_peak(c)) / c
            return value if math.isfinite(value) else math.inf  # what is not known bounds nothing

        log_c = _least(chernoff, family.precision)
        return cls._make(family, math.exp(log_c), max(0.0, chernoff(log_c)), delta, width)

    @classmethod
    def for_epsilon(cls, family: _LossFamily, epsilon: float, width: float) -> "_Sum | None":
        """A sum to find the delta at ``epsilon``."""

        def chernoff(log_c: float) -> float:
            c = math.exp(log_c)
            value = family.log_moment(c) - c * epsilon + _log_peak(c)
            return value if math.isfinite(value) else math.inf

        log_c = _least(chernoff, family.precision)
        log_delta = min(0.0, chernoff(log_c))
        if log_delta < math.log(SMALLEST_DELTA):
            return None
        # The truth is below Chernoff's bound, by less than this factor where the sum is of use.
        return cls._make(family, math.exp(log_c), epsilon, math.exp(log_delta) / 100, width)

    @classmethod
    def _make(cls, family: _LossFamily, c: float, x: float, delta: float, width: float) -> "_Sum | None":
        if family.mixtures > _MOST_MIXTURES:
            return None
        # At the smallest tilt that is used M is about e^8, so that rounding still costs less than 1e-9 of delta.
        c = max(c, (math.sqrt(1 + 64 / family.precision) - 1) / 2)
        spread = math.sqrt(family.precision)
        # The sums at x + jP, P = 2 pi / h, are added to that at x; P is such that they do not matter.
        period = (18 - math.log(delta)) / c
        while _beyond(family, c, x, period) > 1e-7 * delta:
            period *= 1.25
            if period > 1e6 * (spread + x + 1 / c):
                return None
        step = _short(2 * math.pi / period)
        # The lower bound gives up `reach`, which the tiny mechanism passes with a chance below 1e-4 of delta.
        deviations = math.sqrt(2 * math.log(1e4 / delta))
        reach = max(_ASPIRED * width * max(x, spread), 6 * deviations / (_MOST_TERMS * step))
        if reach > width * max(x, spread):
            return None
        tau = reach / deviations
        number = math.ceil(6 / (tau * step))
        found = _Frequencies.joined(
            [
                _Frequencies.among(
                    family, c, tau, np.arange(first, min(first + _AT_ONCE, number + 1), dtype=np.float64) * step
                )
                for first in range(1, number + 1, _AT_ONCE)
            ]
        )
        u = found.u
        if family.mixtures * len(u) > _MOST_CELLS:
            return None
        counts = family.counts()
        decay = found.decay + counts @ found.option_decay
        phase = found.phase + counts @ found.option_phase - np.arctan2(u, c) - np.arctan2(u, c + 1)
        logs = [loss.log(c) for loss in family.chosen]
        of_options = np.array([math.fsum(logs[i] for i in o) for _, options in family.choices for o in options])
        of_fixed = c * (c + 1) * (family.squared + tau * tau) / 2 + math.fsum(loss.log(c) for loss in family.fixed)
        # Sums of 1 / (c^2 + u^2) and u / (c^2 + u^2) over the positive frequencies, times the step.
        last = number * step
        flat = math.pi / (2 * c) + step / (c * (c + 1))
        rising = 0.5 * math.log1p((last / c) ** 2) + step / (2 * c)
        left_out = math.exp(-((tau * last) ** 2) / 2) / (tau * tau * last**3)
        most = found.error + len(u) * ULP
        by_u = found.error_by_u + (8 + counts.shape[1]) * ULP * _steepest(phase, u)
        return cls(
            family=family,
            c=c,
            step=step,
            tau=tau,
            reach=reach,
            log_moments=of_fixed + counts @ of_options,
            rounding=family.rounding(c) + 8 * ULP * c * (c + 1) * tau * tau,
            u=u,
            weight=np.exp(-decay) / (np.hypot(c, u) * np.hypot(c + 1, u)),
            phase=phase,
            error=1.01 * (most * flat + by_u * rising + left_out) / math.pi,
            error_by_x=1.01 * 16 * ULP * rising / math.pi,
        )

    def _summed(self, x: float) -> Floats:
        total = np.einsum("mu,mu->m", self.weight, np.cos(reduced(self.phase - self.u * x)))
        return np.asarray((self.step / math.pi) * (total + 0.5 / (self.c * (self.c + 1))))

    def _scale(self, x: float, sign: int) -> Floats:
        """M(c) exp(-c x) of each mixture, rounded up or down; at most e^600, which no error of a sum takes below 1."""
        error = self.rounding + 8 * ULP * (1 + np.abs(self.log_moments) + self.c * x)
        return np.asarray(np.exp(np.minimum(600.0, self.log_moments - self.c * x + sign * error)))

    def deltas(self, x: float) -> Floats:
        """A bound on delta at x from above, of each mixture."""
        found = self._scale(x, 1) * np.maximum(0.0, self._summed(x) + self.error + self.error_by_x * x)
        return np.asarray(np.minimum(1.0, found * (1 + 16 * ULP)))

    def delta(self, x: float) -> float:
        """A bound on delta at x from above."""
        return float(self.deltas(x).max())

    def only(self, mixtures: Ints) -> "_Sum":
        """That of some mixtures alone."""
        weight, phase = self.weight[mixtures], self.phase[mixtures]
        return replace(self, log_moments=self.log_moments[mixtures], weight=weight, phase=phase)

    def least_delta(self, x: float) -> float:
        """A bound from below on delta at x, of the plan without the tiny mechanism."""
        at = x + self.reach
        found = self._scale(at, -1) * np.maximum(0.0, self._summed(at) - self.error - self.error_by_x * at)
        added = _beyond(self.family, self.c, at, 2 * math.pi / self.step) + _tiny(self.reach, self.tau)
        return max(0.0, float(found.max()) * (1 - 16 * ULP) - 1.01 * added)

    def bounds(self, delta: float) -> tuple[float, float]:
        """Bounds on epsilon at ``delta`` from below and from above.

        They are found of the mixtures that are worst. That from above is then asked of all, and the worst that passes
        ``delta`` there joins them; that from below may be of any.
        """
        worst = np.array([int(np.argmax(self.log_moments))])
        while True:
            few = self.only(worst)
            upper = few.epsilon(delta)
            here = self.deltas(upper)
            here[worst] = 0.0
            if here.max() <= delta:
                return few.least_epsilon(delta, upper), upper
            worst = np.append(worst, np.argmax(here))

    def epsilon(self, delta: float) -> float:
        """The least x at which `delta` is not passed, to a relative 1e-10 or a thousandth of the width."""
        low, high = 0.0, max(self.reach, float(self.log_moments.max()) / self.c)
        if self.delta(low) <= delta:
            return 0.0
        while self.delta(high) > delta:
            high *= 1.5
        return _passed(self.delta, delta, low, high, self._near(high), self.c)[1]

    def least_epsilon(self, delta: float, epsilon: float) -> float:
        """A bound from below on epsilon, close to one from above; 0 if there is none."""
        low = epsilon - 2 * self.reach
        if low <= 0 or self.least_delta(low) <= delta:
            return 0.0
        return _passed(self.least_delta, delta, low, epsilon, self._near(epsilon), self.c)[0]

    def _near(self, x: float) -> float:
        return max(1e-10 * x, 1e-3 * self.reach)


def _passed(
    function: Callable[[float], float], value: float, low: float, high: float, near: float, slope: float
) -> tuple[float, float]:
    """Narrow down where a falling function passes a positive value: above it at the first place, not at the second.

    The first step is that of a logarithm which falls by ``slope``; then its secant, as Illinois has it: the end that
    stays twice counts half.
    """

    def above(x: float) -> float:
        return math.log(max(function(x), 1e-6 * value) / value)

    at_low, at_high = above(low), above(high)
    middle = high + at_high / slope
    while high - low > near:
        middle = min(max(middle, low + 0.4 * near), high - 0.4 * near)
        here = above(middle)
        if here > 0:
            low, at_low, at_high = middle, here, at_high / 2
        else:
            high, at_high, at_low = middle, here, at_low / 2
        middle = low + (high - low) * at_low / (at_low - at_high)
    return low, high


def _steepest(phase: Floats, u: Floats) -> float:
    """The largest phase by frequency: a sum of phases is wrong by so many units in its last place, times u."""
    return float(np.max(np.abs(phase) / u, initial=0.0))


def _short(number: float) -> float:
    """The largest number of five binary digits that is not larger."""
    unit = 2.0 ** (math.floor(math.log2(number)) - 4)
    return math.floor(number / unit) * unit


def _log_peak(c: float) -> float:
    """Log of the largest of (1 - exp(x - l)) exp(-c (l - x)) over l: c^c / (c + 1)^(c + 1)."""
    return -c * math.log1p(1 / c) - math.log1p(c)


def _least(function: Callable[[float], float], precision: float) -> float:
    """The log of the tilt at which a function that falls and then rises is least; any answer gives a bound."""
    spread = math.sqrt(precision)
    low, high = math.log(1e-3 / (spread + precision)), math.log(1e4 / min(spread, 1.0) + 1e4)
    return argmin(function, low, high, 40)


def _beyond(family: _LossFamily, c: float, x: float, period: float) -> float:
    """What summing in steps adds to delta at x at most: delta at x + jP times exp(c j P), for every j but 0."""
    below = math.exp(-c * period) / -math.expm1(-c * period)
    above = math.inf
    for factor in (1.1, 1.25, 1.5, 2.0, 3.0):
        steeper = factor * c
        exponent = family.log_moment(steeper) - steeper * x + _log_peak(steeper) - (steeper - c) * period
        if exponent < 600 and (steeper - c) * period > 1e-3:
            above = min(above, math.exp(exponent) / -math.expm1(-(steeper - c) * period))
    return below + above


def _tiny(reach: float, tau: float) -> float:
    """A bound on delta at ``reach`` of the tiny mechanism: the chance that its loss is larger."""
    return 0.5 * math.erfc((reach / tau - tau / 2) / math.sqrt(2))
