"""The terms of the privacy loss: what noisy answers of neighbours differ in, and the loss of each answer that moves.

The loss of an answer that neighbours move by s is s^2 / (2 sigma2) + X s / sigma2 for discrete Gaussian noise X, and
one of a (s - 2 k), k = 0..s, for two-sided geometric noise (docs/exact-accounting.md, lemma 1). Its moment generating
function M is taken on a vertical line of the complex plane: M(c + iu) / M(c) is the characteristic function of the loss
tilted by exp(c loss); the noise then has the same shape about c s.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from yupana.privacy.laws import DiscreteGaussian, TwoSidedGeometric

_SLACK: Final = 1e-6
"""What is allowed, of the logarithm of a probability, for replacing the noise of a measurement."""

_UP: Final = 1 + 2.0**-49
"""Rounds a few operations upward."""


@dataclass(frozen=True, slots=True)
class Shift:
    """Answers with independent noise of one law, each of which neighbours move by the same whole number."""

    law: DiscreteGaussian | TwoSidedGeometric
    by: int = 1  # how far an answer moves, up or down; positive
    times: int = 1  # how many answers move so far; positive

    def __post_init__(self) -> None:
        if self.by < 1 or self.times < 1:
            raise ValueError("an answer moves by a whole number of 1 or more, and so does the number of answers")

    @property
    def most(self) -> float:
        """The largest loss, rounded up; infinite for Gaussian noise."""
        if isinstance(self.law, DiscreteGaussian):
            return math.inf
        return float(self.by * self.times * self.law.exponent) * _UP


@dataclass(frozen=True, slots=True)
class ShiftChoice:
    """So many records or parts of them, each of which moves the answers of one of several options."""

    times: int  # each of them may take another option
    options: tuple[tuple[Shift, ...], ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """What the noisy answers of neighbours differ in, where the choices may fall in any way."""

    shifts: tuple[Shift, ...] = ()
    choices: tuple[ShiftChoice, ...] = ()
    # beside them a shift of continuous Gaussian noise by so many standard deviations, squared: mu^2
    squared: float = 0.0
    slack: float = 0.0  # how much the logarithm of any probability may differ besides

    @classmethod
    def of_distance(cls, law: DiscreteGaussian, distance: Fraction) -> "Difference":
        """Counts that move by any whole numbers with a sum of squares of at most ``distance``.

        Discrete noise of parameter sigma2 is made of continuous noise of variance sigma2 - s2, but for a slack for each
        count that moves, of which there are at most ``distance`` (docs/exact-accounting.md, theorem 3). s2 is about 1.

        Raises
        ------
        ValueError
            If sigma2 is less than twice s2, so that the bound would be worth little.
        """
        counts = math.floor(distance)
        if not counts:
            return cls()
        given_up = Fraction(math.ceil(1000 * math.log(8 * counts / _SLACK) / (2 * math.pi**2)), 1000)
        if law.sigma2 < 2 * given_up:
            raise ValueError("the noise is too small to be replaced by continuous noise")
        # kappa; the second of its terms is below 1e-20 of the first.
        wave = 2 * math.exp(-2 * math.pi**2 * float(given_up)) * _UP
        return cls(
            squared=float(distance / (law.sigma2 - given_up)) * _UP,
            slack=counts * (math.log1p(wave) - math.log1p(-wave)) * (1 + 1e-9),
        )

    def __add__(self, other: "Difference") -> "Difference":
        """What differs in the answers of both."""
        shifts: dict[tuple[DiscreteGaussian | TwoSidedGeometric, int], int] = {}
        for shift in (*self.shifts, *other.shifts):
            shifts[shift.law, shift.by] = shifts.get((shift.law, shift.by), 0) + shift.times
        choices: dict[tuple[tuple[Shift, ...], ...], int] = {}
        for choice in (*self.choices, *other.choices):
            choices[choice.options] = choices.get(choice.options, 0) + choice.times
        return Difference(
            tuple(Shift(law, by, times) for (law, by), times in shifts.items()),
            tuple(ShiftChoice(times, options) for options, times in choices.items()),
            (self.squared + other.squared) * _UP,
            (self.slack + other.slack) * _UP,
        )

    @property
    def in_order(self) -> "Difference":
        """The same, said in one order, so that numbers that follow do not depend on the order of a plan."""
        choices = (
            ShiftChoice(choice.times, tuple(sorted(map(_in_order, choice.options), key=_keys)))
            for choice in self.choices
        )
        ordered = sorted(choices, key=lambda choice: (choice.times, [_keys(option) for option in choice.options]))
        return replace(self, shifts=_in_order(self.shifts), choices=tuple(ordered))

    @property
    def most(self) -> float:
        """The largest loss, rounded up; infinite for Gaussian noise."""
        if self.squared or self.slack:
            return math.inf
        chosen = sum(c.times * max(sum(s.most for s in option) for option in c.options) for c in self.choices)
        return (math.fsum(shift.most for shift in self.shifts) + chosen) * _UP

    def least_epsilon(self, delta: float) -> float:
        """An epsilon that is not kept at ``delta``, by the chance of the largest loss alone; 0 if that tells nothing.

        Of geometric noise delta is at least p (1 - e^(epsilon - most)), p the chance of the largest loss.
        """
        if math.isinf(self.most) or self.choices:
            return 0.0
        chance = math.exp(-math.fsum(s.times * math.log1p(math.exp(-float(s.law.exponent))) for s in self.shifts))
        return max(0.0, (self.most + math.log1p(-delta / chance)) * (1 - 1e-13)) if delta < chance / 2 else 0.0

    @property
    def moves(self) -> bool:
        """Whether anything differs."""
        return bool(self.shifts) or bool(self.choices) or self.squared > 0 or self.slack > 0

    @property
    def mixtures(self) -> int:
        """In how many ways the choices can fall, up to order."""
        return math.prod(math.comb(c.times + len(c.options) - 1, len(c.options) - 1) for c in self.choices)


def _in_order(shifts: Sequence[Shift]) -> tuple[Shift, ...]:
    return tuple(sorted(shifts, key=lambda shift: _keys((shift,))))


def _keys(shifts: Sequence[Shift]) -> list[tuple[str, Fraction, int, int]]:
    return [(type(shift.law).__name__, shift.law.exponent, shift.by, shift.times) for shift in shifts]


Floats = NDArray[np.float64]

ULP: Final = 2.0**-52

NEGLIGIBLE: Final = 46.0
"""Moduli below exp(-46) = 1e-20 are left out, and bounded."""

_TWO_PI: Final = 2 * math.pi

_DIRECT: Final = 1.0
"""Up to this sigma2 a theta function is summed over the noise, beyond over its frequencies, of which three matter."""

_SINGLE: Final = 9.0
"""From this sigma2 on one frequency matters: the others are below exp(-sigma2 pi^2 / 2) = 6e-20."""


@dataclass(frozen=True, slots=True)
class _Turned:
    """M(c + iu) / M(c) = exp(-decay + i phase) at some u, and how far that may be from the truth."""

    decay: Floats
    phase: Floats
    # the error is at most the first, and u times the second
    error: float
    error_by_u: float


@dataclass(frozen=True, slots=True)
class _GaussianLoss:
    """Of answers with discrete Gaussian noise."""

    sigma2: float
    # as in `Shift`
    by: int
    times: int

    @property
    def precision(self) -> float:
        """Twice rho: times by^2 / sigma2."""
        return self.times * self.by**2 / self.sigma2

    def log(self, c: float) -> float:
        """The log of M(c), for c > 0; wrong by `rounding` at most."""
        main = c * (c + 1) * self.precision / 2
        if self.sigma2 > _SINGLE:
            return main  # the rest is below zero, and above -1e-76
        return main + self.times * (_log_theta(self.sigma2, c * self.by) - _log_theta(self.sigma2, 0.0))

    def rounding(self, c: float) -> float:
        """A bound on the error of `log`."""
        of_shift = 0.0 if self.sigma2 > _SINGLE else self.times * (64 + 16 * (self.by * c + 2) * (1 + 1 / self.sigma2))
        return ULP * (16 * c * (c + 1) * self.precision + of_shift)

    def turned(self, c: float, u: Floats) -> _Turned:
        """M(c + iu) / M(c) at frequencies u, not negative."""
        if self.sigma2 <= _SINGLE:
            return _Lattice.of_gaussian(self.sigma2, self.by, c).turned(self.times, u)
        by, times, slope, drift = self.by, self.times, self.by / self.sigma2, self.by**2 / (2 * self.sigma2)
        rest = reduced(slope * u)
        steepest = 0.61 * math.sqrt(self.sigma2) + c * by
        return _Turned(
            (times * self.sigma2 / 2) * rest * rest,
            (times * c * by) * rest + (times * drift) * u,
            times * (2.01 * math.exp(-self.sigma2 * math.pi**2 / 2) + ULP * (8 * steepest + 64)),
            times * ULP * (2 * steepest * slope + 8 * drift + 4 * c * by * slope),
        )


@dataclass(frozen=True, slots=True)
class _GeometricLoss:
    """Of answers with two-sided geometric noise exp(-a |k|)."""

    a: float
    # as in `Shift`
    by: int
    times: int

    @property
    def precision(self) -> float:
        """The loss squared, or twice the loss if that is less: about twice rho."""
        loss = self.a * self.by
        return self.times * min(loss * loss, 2 * loss)

    def log(self, c: float) -> float:
        """The log of M(c), for c > 0; wrong by `rounding` at most."""
        a, by, top = self.a, self.by, c * self.a * self.by
        # Losses a by, a (by - 2), ..., -a by; the first and the last gather all noise beyond.
        inner = math.fsum(math.exp(a * (c * (by - 2 * k) - k) - top) for k in range(1, by))
        total = 1 + math.exp(-(2 * c + 1) * a * by) - math.expm1(-a) * inner
        return self.times * (top + math.log(total) - math.log1p(math.exp(-a)))

    def rounding(self, c: float) -> float:
        """A bound on the error of `log`."""
        return ULP * self.times * (64 + 16 * self.by * (c + 1) * self.a)

    def turned(self, c: float, u: Floats) -> _Turned:
        """M(c + iu) / M(c) at frequencies u, not negative."""
        return _Lattice.of_geometric(self.a, self.by, c).turned(self.times, u)


Loss: TypeAlias = _GaussianLoss | _GeometricLoss
"""The loss of answers that are moved alike."""


def losses(shifts: Iterable[Shift]) -> tuple[Loss, ...]:
    """The losses of shifts; those first that make most frequencies negligible."""
    found: list[Loss] = [
        _GaussianLoss(float(s.law.sigma2), s.by, s.times)
        if isinstance(s.law, DiscreteGaussian)
        else _GeometricLoss(float(s.law.exponent), s.by, s.times)
        for s in shifts
    ]
    return tuple(sorted(found, key=lambda loss: -loss.precision))


def _log_theta(sigma2: float, shift: float) -> float:
    """Log of the sum over integers k of exp(-(k - shift)^2 / (2 sigma2)), up to what shift does not change."""
    fraction = shift - math.floor(shift)
    if sigma2 > _DIRECT:
        # The next frequency is below 1e-34.
        return math.log1p(2 * (math.exp(-2 * math.pi**2 * sigma2) * math.cos(_TWO_PI * fraction)))
    squares = [(k - fraction) ** 2 / (2 * sigma2) for k in range(-10, 12)]
    least = min(squares)
    return math.log(math.fsum(math.exp(least - square) for square in squares)) - least


def reduced(angle: Floats) -> Floats:
    """The remainder of angles by 2 pi, between -pi and pi; wrong by at most 2^-51 (1 + angle)."""
    return np.asarray(angle - _TWO_PI * np.rint(angle / _TWO_PI))


@dataclass(frozen=True, slots=True, eq=False)
class _Lattice:
    """The tilted law of a loss ``drift + sign * slope k`` over few integers k."""

    # not negative
    slope: float
    drift: float
    lost: float  # what is left out
    spread: float  # a bound on the mean of abs(k)
    sign: int = 1
    weights: Floats | None = None  # of the integers from `first` on; None for noise that is summed over frequencies
    first: int = 0
    # of noise that is summed over frequencies
    centre: float = 0.0
    sigma2: float = 0.0

    @classmethod
    def of_gaussian(cls, sigma2: float, by: int, c: float) -> "_Lattice":
        nearest = round(c * by)
        centre, sigma = c * by - nearest, math.sqrt(sigma2)
        slope, drift = by / sigma2, by * by / (2 * sigma2) + nearest * by / sigma2
        if sigma2 > _DIRECT:
            lost = 2.01 * math.exp(-4.5 * math.pi**2 * sigma2)
            return cls(slope, drift, lost, sigma + 1, centre=centre, sigma2=sigma2)
        most = math.ceil(9.5 * sigma) + 2
        squares = (np.arange(-most, most + 1) - centre) ** 2 / (2 * sigma2)
        weights = np.exp(squares.min() - squares)
        lost = 4 * math.exp(-(9.5**2) / 2)
        return cls(slope, drift, lost, sigma + 1, weights=weights / weights.sum(), first=-most)

    @classmethod
    def of_geometric(cls, a: float, by: int, c: float) -> "_Lattice":
        """Count steps of 2 a down from the largest loss, a by."""
        logs = np.array([-2 * c * a * k - a * k for k in range(by + 1)])
        weights = np.exp(logs)
        weights[1:-1] *= -math.expm1(-a)
        return cls(2 * a, a * by, 8 * ULP * by, by, sign=-1, weights=weights / weights.sum())

    def turned(self, times: int, u: Floats) -> _Turned:
        """M(c + iu) / M(c) of so many answers."""
        found = self.factor(reduced(self.slope * u))
        # A modulus of zero is negligible, whatever its logarithm is taken to be.
        decay = -times * np.log(np.maximum(np.abs(found), 1e-30))
        phase = times * (np.angle(found) + self.drift * u)
        by_u = times * ULP * (2 * self.spread * self.slope + 8 * self.drift)
        return _Turned(decay, phase, times * (self.lost + ULP * (2 * self.spread + 128)), by_u)

    def factor(self, rest: Floats) -> NDArray[np.complex128]:
        """M(c + iu) / M(c) without the drift, where slope u is ``rest`` modulo 2 pi."""
        if self.weights is None:
            return self._by_frequency(rest)
        turn = np.exp(self.sign * 1j * rest)
        total = np.full(len(rest), self.weights[-1], dtype=np.complex128)
        for weight in self.weights[-2::-1]:
            total = total * turn + weight
        return total * np.exp(1j * self.first * rest) if self.first else total

    def _by_frequency(self, rest: Floats) -> NDArray[np.complex128]:
        half, whole = self.sigma2 / 2, _TWO_PI * self.centre
        middle, up, down = (np.exp(-half * (rest - _TWO_PI * m) ** 2) for m in (0, 1, -1))
        real, imaginary = middle + (up + down) * math.cos(whole), (down - up) * math.sin(whole)
        scale = 1 + 2 * (math.exp(-2 * math.pi**2 * self.sigma2) * math.cos(whole))
        return np.asarray((real + 1j * imaginary) * np.exp(1j * self.centre * rest) / scale)
