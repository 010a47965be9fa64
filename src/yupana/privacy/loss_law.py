"""The law of the privacy loss of several noisy answers together: epsilon at a delta, and delta at an epsilon.

Neighbours that move answers by whole numbers are told apart by the privacy loss, the logarithm of how much likelier the
noisy answers are under the one than under the other. It is a sum of independent terms, one for each answer that moves,
and the moment generating function M of each term is known in closed form. For every c > 0

    delta(x) = 1 / (2 pi) * integral over u of  M(c + iu) exp(-(c + iu) x) / ((c + iu) (c + iu + 1))  du.

The integral is summed at steps of h. Its terms fall off because a tiny Gaussian mechanism is composed with the plan,
which raises delta; summing in steps raises it, too; so does all that is added for what is left out and for rounding.
The result is an upper bound. docs/exact-accounting.md proves it.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from yupana.privacy.laws import DiscreteGaussian, TwoSidedGeometric

Floats = NDArray[np.float64]

SMALLEST_DELTA: Final = 1e-290
"""Below this a double does not hold delta with the margins that are added to it."""

WIDTH: Final = 1e-4
"""How far apart bounds of an epsilon are at most, as a part of it."""

_ASPIRED: Final = 0.1
"""The part of the width that is used where the sum stays short."""

SMOOTHING: Final = 1.5
"""The variance given up to replace discrete noise by continuous noise (`Difference.of_distance`)."""

_SUM: Final = 2 * math.fsum(math.exp(-2 * math.pi**2 * SMOOTHING * m * m) for m in (1, 2, 3))
_PER_COUNT: Final = (math.log1p(_SUM) - math.log1p(-_SUM)) * (1 + 1e-9)
"""By how much the logarithm of a probability may differ then, for each count that neighbours differ in; 5.6e-13."""

_TWO_PI: Final = 2 * math.pi
_ULP: Final = 2.0**-52
_NEGLIGIBLE: Final = 46.0
"""Terms below exp(-46) = 1e-20 of the largest are left out, and bounded."""

_DIRECT: Final = 1.0
"""Up to this sigma^2 a theta function is summed over the noise, beyond over its frequencies, of which three matter."""

_SINGLE: Final = 9.0
"""From this sigma^2 on one frequency matters: the others are below exp(-sigma^2 pi^2 / 2) = 6e-20."""

_MOST_TERMS: Final = 1 << 21
"""Sums longer than this are not made."""

_AT_ONCE: Final = 1 << 17
"""Frequencies looked at together, so that they stay in the cache."""


@dataclass(frozen=True, slots=True)
class Shift:
    """Answers with independent noise of one law, each of which neighbours move by the same whole number.

    Attributes
    ----------
    law : DiscreteGaussian or TwoSidedGeometric
    by : int
        How far an answer moves, up or down; positive.
    times : int
        How many answers move so far; positive.
    """

    law: DiscreteGaussian | TwoSidedGeometric
    by: int = 1
    times: int = 1

    def __post_init__(self) -> None:
        if self.by < 1 or self.times < 1:
            raise ValueError("an answer moves by a whole number of 1 or more, and so does the number of answers")

    @property
    def most(self) -> float:
        """The largest loss: infinite for Gaussian noise."""
        return math.inf if isinstance(self.law, DiscreteGaussian) else float(self.by * self.times * self.law.exponent)


@dataclass(frozen=True, slots=True)
class Difference:
    """What the noisy answers of two neighbours differ in.

    Attributes
    ----------
    shifts : tuple of Shift
    squared : float
        Beside them a shift of continuous Gaussian noise by so many standard deviations, squared: mu^2.
    slack : float
        How much the logarithm of any probability may differ besides.
    """

    shifts: tuple[Shift, ...] = ()
    squared: float = 0.0
    slack: float = 0.0

    @classmethod
    def of_distance(cls, law: DiscreteGaussian, distance: Fraction) -> "Difference":
        """Counts that move by any whole numbers with a sum of squares of at most ``distance``.

        Discrete noise of parameter sigma2 is made of continuous noise of variance sigma2 - 3/2, but for a slack for
        each count that moves, of which there are at most ``distance`` (docs/exact-accounting.md, theorem 4).

        Raises
        ------
        ValueError
            If sigma2 is 2 or less, so that the bound would be worth nothing.
        """
        if law.sigma2 <= 2:
            raise ValueError("the noise is too small to be replaced by continuous noise")
        squared = float(distance / (law.sigma2 - Fraction(SMOOTHING))) * (1 + 4 * _ULP)
        return cls(squared=squared, slack=math.floor(distance) * _PER_COUNT)

    def __add__(self, other: "Difference") -> "Difference":
        times: dict[tuple[DiscreteGaussian | TwoSidedGeometric, int], int] = {}
        for shift in (*self.shifts, *other.shifts):
            times[shift.law, shift.by] = times.get((shift.law, shift.by), 0) + shift.times
        shifts = tuple(Shift(law, by, number) for (law, by), number in times.items())
        return Difference(shifts, (self.squared + other.squared) * (1 + _ULP), (self.slack + other.slack) * (1 + _ULP))

    @property
    def most(self) -> float:
        """The largest loss, rounded up; infinite for Gaussian noise."""
        if self.squared or self.slack:
            return math.inf
        return math.fsum(shift.most for shift in self.shifts) * (1 + 4 * _ULP)

    @property
    def moves(self) -> bool:
        """Whether anything differs."""
        return bool(self.shifts) or self.squared > 0 or self.slack > 0


@dataclass(frozen=True, slots=True)
class Bounds:
    """A number known to lie between two.

    Attributes
    ----------
    lower, upper : float
        ``lower`` is a bound for neighbours that differ exactly as said, without the slack.
    """

    lower: float
    upper: float


def epsilon_at(difference: Difference, delta: float, width: float = WIDTH) -> Bounds | None:
    """The least epsilon of a difference at ``delta``, from above and from below.

    Parameters
    ----------
    difference : Difference
    delta : float
        Between `SMALLEST_DELTA` and 1.
    width : float
        How far apart the bounds may be, as a part of the upper one.

    Returns
    -------
    Bounds or None
        None if no bounds so close can be certified in double precision.

    Raises
    ------
    ValueError
        If delta is not in that range.
    """
    check_delta(delta)
    if not difference.moves:
        return Bounds(0.0, 0.0)
    aim = delta * math.exp(-difference.slack) * (1 - 8 * _ULP)
    if not aim > 0:
        return None
    found = _Sum.for_delta(difference, aim, width)
    inner = found.epsilon(aim) if found else math.inf
    upper = min(difference.most, inner + 2 * difference.slack)
    if math.isinf(upper):
        return None
    lower = found.least_epsilon(aim, inner) if found else 0.0
    if upper - lower > 2 * (found.reach if found else width * upper) + 2 * difference.slack:
        return None
    return Bounds(min(lower, upper), upper)


def delta_at(difference: Difference, epsilon: float, width: float = WIDTH) -> Bounds | None:
    """The least delta of a difference at ``epsilon``, from above and from below.

    Parameters
    ----------
    difference : Difference
    epsilon : float
        Zero or more, finite.
    width : float
        The lower bound is that of an epsilon larger by this part.

    Returns
    -------
    Bounds or None
        None if no bound can be certified in double precision.

    Raises
    ------
    ValueError
        If epsilon is negative or not finite.
    """
    if not 0 <= epsilon < math.inf:
        raise ValueError("epsilon must be zero or more, and finite")
    if not difference.moves or epsilon >= difference.most:
        return Bounds(0.0, 0.0)
    inner = max(0.0, epsilon - 2 * difference.slack) * (1 - 2 * _ULP)
    found = _Sum.for_epsilon(difference, inner, width)
    if found is None:
        return None
    upper = min(1.0, found.delta(inner) * math.exp(difference.slack) * (1 + 8 * _ULP))
    return Bounds(min(upper, found.least_delta(inner)), upper)


def check_delta(delta: float) -> None:
    """Refuse a delta at which no epsilon is certified.

    Raises
    ------
    ValueError
        If it is not below 1, or below `SMALLEST_DELTA`.
    """
    if not SMALLEST_DELTA <= delta < 1:
        raise ValueError(f"delta must lie below 1, and be at least {SMALLEST_DELTA:g} for an exact epsilon")


@dataclass(frozen=True, slots=True)
class _Gaussians:
    """Shifts of discrete Gaussian noise, as arrays."""

    sigma2: Floats
    by: Floats
    times: Floats

    @classmethod
    def of(cls, shifts: Iterable[Shift], *, small: bool) -> "_Gaussians":
        found = sorted(
            (float(s.law.sigma2), float(s.by), float(s.times))
            for s in shifts
            if isinstance(s.law, DiscreteGaussian) and (float(s.law.sigma2) < _SINGLE) is small
        )
        columns = np.array(found, dtype=np.float64).reshape(len(found), 3).T
        return cls(*columns)

    @property
    def precision(self) -> Floats:
        """How much each set adds to twice rho: times * by^2 / sigma^2."""
        return np.asarray(self.times * self.by * self.by / self.sigma2)


@dataclass(frozen=True, slots=True)
class _Terms:
    """The terms of the loss, sorted by how they are computed.

    Attributes
    ----------
    wide, narrow : _Gaussians
        Discrete Gaussian noise of sigma^2 from `_SINGLE` on, and below.
    geometric : tuple of (scale of the loss, shift, times)
        Two-sided geometric noise.
    squared : float
        mu^2 of continuous Gaussian noise.
    """

    wide: _Gaussians
    narrow: _Gaussians
    geometric: tuple[tuple[float, int, int], ...]
    squared: float

    @classmethod
    def of(cls, difference: Difference) -> "_Terms":
        geometric = tuple(
            (float(s.law.exponent), s.by, s.times) for s in difference.shifts if isinstance(s.law, TwoSidedGeometric)
        )
        of = difference.shifts
        return cls(_Gaussians.of(of, small=False), _Gaussians.of(of, small=True), geometric, difference.squared)

    @property
    def doubled_rho(self) -> float:
        """The sum of by^2 / sigma^2 over all answers, and mu^2; for geometric noise at most the square of the loss."""
        pure = math.fsum(times * min((a * by) ** 2, 2 * a * by) for a, by, times in self.geometric)
        return float(self.wide.precision.sum() + self.narrow.precision.sum()) + pure + self.squared

    def log_moment(self, c: float) -> float:
        """The log of M(c), to a few units in the last place of c (c + 1) rho: see `rounding`."""
        parts = [c * (c + 1) * self.squared / 2]
        for of in (self.wide, self.narrow):
            parts += (c * (c + 1) * of.precision / 2).tolist()
        for sigma2, by, times in zip(self.narrow.sigma2, self.narrow.by, self.narrow.times, strict=True):
            parts.append(float(times) * (_log_theta(sigma2, c * by) - _log_theta(sigma2, 0.0)))
        parts += [times * _log_geometric(a, by, c) for a, by, times in self.geometric]
        return math.fsum(parts)

    def rounding(self, c: float) -> float:
        """A bound on the error of `log_moment`."""
        pure = math.fsum(times * a * by for a, by, times in self.geometric) * (c + 1)
        small = float((self.narrow.times * (self.narrow.by * c + 2) * (1 + 1 / self.narrow.sigma2)).sum())
        number = float(self.narrow.times.sum() + self.wide.times.sum()) + sum(times for *_, times in self.geometric)
        return _ULP * (16 * c * (c + 1) * self.doubled_rho + 16 * pure + 16 * small + 64 * number + 64)


def _log_theta(sigma2: float, shift: float) -> float:
    """Log of the sum over integers k of exp(-(k - shift)^2 / (2 sigma2)), up to what shift does not change."""
    fraction = shift - math.floor(shift)
    if sigma2 > _DIRECT:
        return math.log1p(
            2 * math.fsum(math.exp(-2 * math.pi**2 * sigma2 * m * m) * math.cos(_TWO_PI * m * fraction) for m in (1, 2))
        )
    squares = [(k - fraction) ** 2 / (2 * sigma2) for k in range(-10, 12)]
    least = min(squares)
    return math.log(math.fsum(math.exp(least - square) for square in squares)) - least


def _log_geometric(a: float, by: int, c: float) -> float:
    """Log of E exp(c loss) of two-sided geometric noise exp(-a |k|) that moves by ``by``."""
    top = c * a * by
    # Losses a * by, a (by - 2), ..., -a * by; the first and the last gather all noise beyond.
    inner = [a * (c * (by - 2 * x) - x) - top for x in range(1, by)]
    total = 1 + math.exp(-(2 * c + 1) * a * by) - math.expm1(-a) * math.fsum(math.exp(e) for e in inner)
    return top + math.log(total) - math.log1p(math.exp(-a))


@dataclass(frozen=True, slots=True, eq=False)
class _Sum:
    """The integral as a sum, at one c: see the head of this file.

    Attributes
    ----------
    terms : _Terms
    c : float
        The tilt. Any positive one gives a bound; a good one keeps the terms near what they sum to.
    step : float
        h, of so few binary digits that its multiples are exact.
    tau : float
        The standard deviation of the loss of the tiny Gaussian mechanism.
    reach : float
        How much epsilon the lower bound gives up for it.
    log_moment : float
        Log of M(c) of the plan and the tiny mechanism, rounded up.
    u, weight, phase : ndarray of float64
        Frequencies, moduli of M(c + iu) / (M(c) (c + iu) (c + iu + 1)) and their arguments at x = 0; those below
        1e-20 are left out.
    error : float
        What rounding, and what is left out, can add to the sum, but for the error by x.
    error_by_x : float
        The same for each unit of x.
    """

    terms: _Terms
    c: float
    step: float
    tau: float
    reach: float
    log_moment: float
    u: Floats
    weight: Floats
    phase: Floats
    error: float
    error_by_x: float

    @classmethod
    def for_delta(cls, difference: Difference, delta: float, width: float) -> "_Sum | None":
        """A sum to find the epsilon at ``delta``."""
        terms = _Terms.of(difference)

        def chernoff(log_c: float) -> float:
            c = math.exp(log_c)
            value = (terms.log_moment(c) - math.log(delta) + _log_peak(c)) / c
            return value if math.isfinite(value) else math.inf

        log_c = _least(chernoff, *_bracket(terms))
        x = max(0.0, chernoff(log_c))
        return cls._make(terms, max(math.exp(log_c), _flattest(terms)), x, delta, width)

    @classmethod
    def for_epsilon(cls, difference: Difference, epsilon: float, width: float) -> "_Sum | None":
        """A sum to find the delta at ``epsilon``."""
        terms = _Terms.of(difference)

        def chernoff(log_c: float) -> float:
            c = math.exp(log_c)
            value = terms.log_moment(c) - c * epsilon + _log_peak(c)
            return value if math.isfinite(value) else math.inf

        log_c = _least(chernoff, *_bracket(terms))
        log_delta = min(0.0, chernoff(log_c))
        if log_delta < math.log(SMALLEST_DELTA):
            return None
        # The truth is below Chernoff's bound, by less than this factor where the sum is of use.
        return cls._make(terms, max(math.exp(log_c), _flattest(terms)), epsilon, math.exp(log_delta) / 100, width)

    @classmethod
    def _make(cls, terms: _Terms, c: float, x: float, delta: float, width: float) -> "_Sum | None":
        spread = math.sqrt(terms.doubled_rho)
        # The sums at x + jP, P = 2 pi / h, are added to that at x; P is such that they do not matter.
        period = (18 - math.log(delta)) / c
        while _beyond(terms, c, x, period) > 1e-7 * delta:
            period *= 1.5
            if period > 1e6 * (spread + x + 1 / c):
                return None
        step = _short(_TWO_PI / period)
        # The lower bound gives up `reach`, which the tiny mechanism passes with a chance below 1e-4 of delta.
        deviations = math.sqrt(2 * math.log(1e4 / delta))
        shortest = 6 * deviations / (_MOST_TERMS * step)
        reach = max(_ASPIRED * width * max(x, spread), shortest)
        if reach > width * max(x, spread):
            return None
        tau = reach / deviations
        number = math.ceil(6 / (tau * step))
        pieces = [
            _frequencies(terms, c, tau, np.arange(first, min(first + _AT_ONCE, number + 1), dtype=np.float64) * step)
            for first in range(1, number + 1, _AT_ONCE)
        ]
        u, modulus, phase = (np.concatenate([piece[i] for piece in pieces]) for i in range(3))
        most = max(piece[3] for piece in pieces) + len(u) * _ULP
        by_u = max(piece[4] for piece in pieces)
        weight = modulus / (np.hypot(c, u) * np.hypot(c + 1, u))
        phase = phase - np.arctan2(u, c) - np.arctan2(u, c + 1)
        log_moment = terms.log_moment(c) + c * (c + 1) * tau * tau / 2
        rounding = terms.rounding(c) + 4 * _ULP * (c + 1) * c * tau * tau
        last = number * step
        # Sums of 1 / (c^2 + u^2) and u / (c^2 + u^2) over the positive frequencies, times the step.
        flat, rising = math.pi / (2 * c), 0.5 * math.log1p((last / c) ** 2) + step / (2 * c)
        left_out = math.exp(-((tau * last) ** 2) / 2) / (tau * tau * last**3)
        error = 1.01 * (most * (flat + step / (c * (c + 1))) + by_u * rising + left_out) / math.pi
        return cls(
            terms=terms,
            c=c,
            step=step,
            tau=tau,
            reach=reach,
            log_moment=log_moment + rounding,
            u=u,
            weight=weight,
            phase=phase,
            error=error,
            error_by_x=1.01 * 4 * _ULP * rising / math.pi,
        )

    def _summed(self, x: float) -> float:
        angles = self.phase - self.u * x
        total = float(np.dot(self.weight, np.cos(angles)))
        return (self.step / math.pi) * (total + 0.5 / (self.c * (self.c + 1)))

    def _scale(self, x: float) -> float:
        exponent = self.log_moment - self.c * x
        return math.exp(min(700.0, exponent + 8 * _ULP * (abs(self.log_moment) + self.c * x)))

    def delta(self, x: float) -> float:
        """A bound on delta at x from above."""
        return min(1.0, self._scale(x) * max(0.0, self._summed(x) + self.error + self.error_by_x * x))

    def least_delta(self, x: float) -> float:
        """A bound from below on delta at x, of the plan without the tiny mechanism."""
        at = x + self.reach
        scale = self._scale(at) * math.exp(-2 * self.terms.rounding(self.c) - 32 * _ULP * (1 + self.c * at))
        smoothed = scale * max(0.0, self._summed(at) - self.error - self.error_by_x * at)
        return max(0.0, smoothed - _beyond(self.terms, self.c, at, _TWO_PI / self.step) - _tiny(self.reach, self.tau))

    def epsilon(self, delta: float) -> float:
        """The least x at which `delta` is not passed, to a relative 1e-10 or a thousandth of the width."""
        low, high = 0.0, max(self.reach, self.log_moment / self.c)
        if self.delta(low) <= delta:
            return 0.0
        while self.delta(high) > delta:
            high *= 1.5
        return _passed(self.delta, delta, low, high, self._near(high))[1]

    def least_epsilon(self, delta: float, epsilon: float) -> float:
        """A bound from below on epsilon, close to one from above; 0 if there is none."""
        low = epsilon - 2 * self.reach
        if low <= 0 or self.least_delta(low) <= delta:
            return 0.0
        return _passed(self.least_delta, delta, low, epsilon, self._near(epsilon))[0]

    def _near(self, x: float) -> float:
        return max(1e-10 * x, 1e-3 * self.reach)


def _passed(
    function: Callable[[float], float], value: float, low: float, high: float, near: float
) -> tuple[float, float]:
    """Narrow down where a falling function passes a positive value: above it at the first place, not at the second.

    The secant of the logarithm, as Illinois has it: the end that stays twice counts half.
    """

    def above(x: float) -> float:
        return math.log(max(function(x), 1e-6 * value) / value)

    at_low, at_high = above(low), above(high)
    while high - low > near:
        middle = low + (high - low) * min(0.99, max(0.01, at_low / (at_low - at_high)))
        # A step towards the other end, so that both come near.
        here = above(middle)
        if here > 0:
            low, at_low, at_high = middle, here, at_high / 2
        else:
            high, at_high, at_low = middle, here, at_low / 2
    return low, high


def _short(number: float) -> float:
    """The largest number of five binary digits that is not larger."""
    unit = 2.0 ** (math.floor(math.log2(number)) - 4)
    return math.floor(number / unit) * unit


def _log_peak(c: float) -> float:
    """Log of the largest of (1 - exp(x - l)) exp(-c (l - x)) over l: c^c / (c + 1)^(c + 1)."""
    return -c * math.log1p(1 / c) - math.log1p(c)


def _flattest(terms: _Terms) -> float:
    """The smallest tilt that is used: M is about e^8 there, so that rounding still costs less than 1e-9 of delta."""
    return (math.sqrt(1 + 64 / max(terms.doubled_rho, 1e-300)) - 1) / 2


def _bracket(terms: _Terms) -> tuple[float, float]:
    """Where the log of the best tilt is looked for."""
    spread = math.sqrt(terms.doubled_rho)
    return math.log(1e-3 / (spread + spread**2)), math.log(1e4 / min(spread, 1.0) + 1e4)


def _least(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a function that falls and then rises is least, by golden sections; any answer gives a bound."""
    ratio = (math.sqrt(5) - 1) / 2
    a, b = high - ratio * (high - low), low + ratio * (high - low)
    fa, fb = function(a), function(b)
    for _ in range(60):
        if fa < fb:
            high, b, fb = b, a, fa
            a = high - ratio * (high - low)
            fa = function(a)
        else:
            low, a, fa = a, b, fb
            b = low + ratio * (high - low)
            fb = function(b)
    return (low + high) / 2


def _beyond(terms: _Terms, c: float, x: float, period: float) -> float:
    """What summing in steps adds to delta at x at most: delta at x + jP times exp(c j P), for every j but 0."""
    below = math.exp(-c * period) / -math.expm1(-c * period)
    above = math.inf
    for factor in (1.1, 1.25, 1.5, 2.0, 3.0):
        steeper = factor * c
        exponent = terms.log_moment(steeper) - steeper * x + _log_peak(steeper) - (steeper - c) * period
        if exponent < 600 and (steeper - c) * period > 1e-3:
            above = min(above, math.exp(exponent) / -math.expm1(-(steeper - c) * period))
    return below + above


def _tiny(reach: float, tau: float) -> float:
    """A bound on delta at ``reach`` of the tiny mechanism: the chance that its loss is larger."""
    return 0.5 * math.erfc((reach / tau - tau / 2) / math.sqrt(2))


def _frequencies(terms: _Terms, c: float, tau: float, u: Floats) -> tuple[Floats, Floats, Floats, float, float]:
    """Some of the frequencies u; modulus and argument of M(c + iu) / M(c) there; two bounds on errors.

    The modulus and argument belong to a number that differs from the true one by at most the first bound and u times
    the second. Frequencies at which the modulus is below 1e-20 are left out.
    """
    decay = (terms.squared + tau * tau) / 2 * u * u
    linear = (terms.squared + tau * tau) * (c + 0.5)
    keep = decay < _NEGLIGIBLE
    u, decay = u[keep], decay[keep]
    phase = np.zeros(len(u))
    most, by_u = 1e-19 + 64 * _ULP, 8 * _ULP * linear
    wide = terms.wide
    for position in np.argsort(-wide.precision, kind="stable"):
        sigma2, by, times = (float(column[position]) for column in (wide.sigma2, wide.by, wide.times))
        rest = _reduced(u, by / sigma2)
        decay += (times * sigma2 / 2) * rest * rest
        phase += (times * c * by) * rest
        linear += times * by * by / (2 * sigma2)
        slope = times * (0.61 * math.sqrt(sigma2) + c * by)
        most += times * 2.01 * math.exp(-sigma2 * math.pi**2 / 2) + 2 * _ULP * slope + 64 * _ULP
        by_u += 2 * _ULP * slope * by / sigma2 + 4 * _ULP * times * by * by / sigma2
        keep = decay < _NEGLIGIBLE
        if not keep.all():
            u, decay, phase = u[keep], decay[keep], phase[keep]
    factor = np.ones(len(u), dtype=np.complex128)
    for lattice in _lattices(terms, c):
        factor *= lattice.factor(_reduced(u, lattice.slope)) ** lattice.times
        linear += lattice.times * lattice.drift
        most += lattice.times * (lattice.lost + 2 * _ULP * lattice.spread + 128 * _ULP)
        by_u += lattice.times * 2 * _ULP * lattice.spread * lattice.slope
        keep = np.exp(-decay) * np.abs(factor) > math.exp(-_NEGLIGIBLE)
        if not keep.all():
            u, decay, phase, factor = u[keep], decay[keep], phase[keep], factor[keep]
    by_u += 8 * _ULP * linear
    modulus = np.exp(-decay) * np.abs(factor)
    return u, modulus, phase + np.angle(factor) + linear * u, most, by_u


@dataclass(frozen=True, slots=True, eq=False)
class _Lattice:
    """The tilted law of a loss ``drift + slope k`` over few integers k, for ``times`` answers.

    Attributes
    ----------
    slope, drift : float
        Positive; ``slope`` may stand for a loss that falls with k if ``falls``.
    times : int
    weights : ndarray of float64
        Of the integers from ``first`` on; of noise that is summed over frequencies instead, empty.
    first : int
    centre, sigma2 : float
        Of the tilted noise, where it is summed over frequencies.
    lost : float
        What is left out.
    spread : float
        A bound on the mean of abs(k).
    """

    slope: float
    drift: float
    times: int
    weights: Floats
    first: int
    centre: float
    sigma2: float
    lost: float
    spread: float

    @classmethod
    def of_gaussian(cls, sigma2: float, by: float, times: int, c: float) -> "_Lattice":
        nearest = round(c * by)
        centre, sigma = c * by - nearest, math.sqrt(sigma2)
        drift = by * by / (2 * sigma2) + nearest * by / sigma2
        if sigma2 > _DIRECT:
            lost = 2.01 * math.exp(-4.5 * math.pi**2 * sigma2)
            return cls(by / sigma2, drift, times, np.zeros(0), 0, centre, sigma2, lost, sigma + 1)
        most = math.ceil(9.5 * sigma) + 2
        squares = (np.arange(-most, most + 1) - centre) ** 2 / (2 * sigma2)
        weights = np.exp(squares.min() - squares)
        lost = 4 * math.exp(-(9.5**2) / 2)
        return cls(by / sigma2, drift, times, weights / weights.sum(), -most, centre, sigma2, lost, sigma + 1)

    @classmethod
    def of_geometric(cls, a: float, by: int, times: int, c: float) -> "_Lattice":
        """Of k steps of 2 a up from the smallest loss, -a * by."""
        logs = np.array([2 * c * a * k - a * (by - k) for k in range(by + 1)])
        weights = np.exp(logs - logs.max())
        weights[1:-1] *= -math.expm1(-a)
        # The loss is a (2 k - by) in all; its lowest value makes the drift negative, so count from the highest.
        return cls(2 * a, a * by, times, (weights / weights.sum())[::-1].copy(), 0, 0.0, -1.0, 8 * _ULP * by, by)

    def factor(self, rest: Floats) -> NDArray[np.complex128]:
        """M(c + iu) / M(c) without the drift, at slope u = rest modulo 2 pi."""
        if not len(self.weights):
            return self._by_frequency(rest)
        turn = np.exp((1j if self.sigma2 > 0 else -1j) * rest)
        total = np.full(len(rest), self.weights[-1], dtype=np.complex128)
        for weight in self.weights[-2::-1]:
            total = total * turn + weight
        return total * np.exp(1j * self.first * rest) if self.first else total

    def _by_frequency(self, rest: Floats) -> NDArray[np.complex128]:
        half, whole = self.sigma2 / 2, _TWO_PI * self.centre
        middle, up, down = (np.exp(-half * (rest - _TWO_PI * m) ** 2) for m in (0, 1, -1))
        real, imaginary = middle + (up + down) * math.cos(whole), (down - up) * math.sin(whole)
        scale = 1 + 2 * math.fsum(math.exp(-2 * math.pi**2 * self.sigma2 * m * m) * math.cos(whole * m) for m in (1, 2))
        return np.asarray((real + 1j * imaginary) * np.exp(1j * self.centre * rest) / scale)


def _lattices(terms: _Terms, c: float) -> list[_Lattice]:
    """The lattices of small Gaussian and of geometric noise, those first that make most terms negligible."""
    narrow = zip(terms.narrow.sigma2, terms.narrow.by, terms.narrow.times, strict=True)
    found = [_Lattice.of_gaussian(float(sigma2), float(by), int(times), c) for sigma2, by, times in narrow]
    found += [_Lattice.of_geometric(a, by, times, c) for a, by, times in terms.geometric]
    return sorted(found, key=lambda of: -of.times * of.slope)


def _reduced(u: Floats, slope: float) -> Floats:
    """The remainder of slope * u by 2 pi, between -pi and pi; wrong by at most 2^-51 (1 + slope u)."""
    angle = slope * u
    return np.asarray(angle - _TWO_PI * np.rint(angle / _TWO_PI))
