"""The moment generating function of the privacy loss of noisy answers, on a vertical line of the complex plane.

The loss of an answer that neighbours move by s is s^2 / (2 sigma2) + X s / sigma2 for discrete Gaussian noise X, and
one of a (s - 2 k), k = 0..s, for two-sided geometric noise (docs/exact-accounting.md, lemma 1). M(c + iu) / M(c) is the
characteristic function of the loss tilted by exp(c loss); the noise then has the same shape about c s.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from yupana.privacy.difference import Shift
from yupana.privacy.laws import DiscreteGaussian

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
class Turned:
    """M(c + iu) / M(c) = exp(-decay + i phase) at some u, and how far that may be from the truth.

    Attributes
    ----------
    decay, phase : ndarray of float64
    error, error_by_u : float
        The error is at most the first, and u times the second.
    """

    decay: Floats
    phase: Floats
    error: float
    error_by_u: float


class Loss(Protocol):
    """The loss of answers that are moved alike."""

    @property
    def precision(self) -> float:
        """Twice rho: times by^2 / sigma2; of geometric noise the loss squared, or twice the loss if that is less."""
        ...

    def log(self, c: float) -> float:
        """The log of M(c), for c > 0; wrong by `rounding` at most."""
        ...

    def rounding(self, c: float) -> float:
        """A bound on the error of `log`."""
        ...

    def turned(self, c: float, u: Floats) -> Turned:
        """M(c + iu) / M(c) at frequencies u, not negative."""
        ...


def losses(shifts: Iterable[Shift]) -> tuple[Loss, ...]:
    """The losses of shifts; those first that make most frequencies negligible."""
    found: list[Loss] = [
        GaussianLoss(float(s.law.sigma2), s.by, s.times)
        if isinstance(s.law, DiscreteGaussian)
        else GeometricLoss(float(s.law.exponent), s.by, s.times)
        for s in shifts
    ]
    return tuple(sorted(found, key=lambda loss: -loss.precision))


@dataclass(frozen=True, slots=True)
class GaussianLoss:
    """Of answers with discrete Gaussian noise.

    Attributes
    ----------
    sigma2 : float
    by, times : int
        As in `Shift`.
    """

    sigma2: float
    by: int
    times: int

    @property
    def precision(self) -> float:
        """Twice rho."""
        return self.times * self.by**2 / self.sigma2

    def log(self, c: float) -> float:
        """The log of M(c)."""
        main = c * (c + 1) * self.precision / 2
        if self.sigma2 > _SINGLE:
            return main  # the rest is below zero, and above -1e-76
        return main + self.times * (_log_theta(self.sigma2, c * self.by) - _log_theta(self.sigma2, 0.0))

    def rounding(self, c: float) -> float:
        """A bound on the error of `log`."""
        of_shift = 0.0 if self.sigma2 > _SINGLE else self.times * (64 + 16 * (self.by * c + 2) * (1 + 1 / self.sigma2))
        return ULP * (16 * c * (c + 1) * self.precision + of_shift)

    def turned(self, c: float, u: Floats) -> Turned:
        """M(c + iu) / M(c)."""
        if self.sigma2 <= _SINGLE:
            return _Lattice.of_gaussian(self.sigma2, self.by, c).turned(self.times, u)
        by, times, slope, drift = self.by, self.times, self.by / self.sigma2, self.by**2 / (2 * self.sigma2)
        rest = reduced(slope * u)
        steepest = 0.61 * math.sqrt(self.sigma2) + c * by
        return Turned(
            (times * self.sigma2 / 2) * rest * rest,
            (times * c * by) * rest + (times * drift) * u,
            times * (2.01 * math.exp(-self.sigma2 * math.pi**2 / 2) + ULP * (8 * steepest + 64)),
            times * ULP * (2 * steepest * slope + 8 * drift + 4 * c * by * slope),
        )


@dataclass(frozen=True, slots=True)
class GeometricLoss:
    """Of answers with two-sided geometric noise exp(-a |k|).

    Attributes
    ----------
    a : float
    by, times : int
        As in `Shift`.
    """

    a: float
    by: int
    times: int

    @property
    def precision(self) -> float:
        """About twice rho."""
        loss = self.a * self.by
        return self.times * min(loss * loss, 2 * loss)

    def log(self, c: float) -> float:
        """The log of M(c)."""
        a, by, top = self.a, self.by, c * self.a * self.by
        # Losses a by, a (by - 2), ..., -a by; the first and the last gather all noise beyond.
        inner = math.fsum(math.exp(a * (c * (by - 2 * k) - k) - top) for k in range(1, by))
        total = 1 + math.exp(-(2 * c + 1) * a * by) - math.expm1(-a) * inner
        return self.times * (top + math.log(total) - math.log1p(math.exp(-a)))

    def rounding(self, c: float) -> float:
        """A bound on the error of `log`."""
        return ULP * self.times * (64 + 16 * self.by * (c + 1) * self.a)

    def turned(self, c: float, u: Floats) -> Turned:
        """M(c + iu) / M(c)."""
        return _Lattice.of_geometric(self.a, self.by, c).turned(self.times, u)


def _log_theta(sigma2: float, shift: float) -> float:
    """Log of the sum over integers k of exp(-(k - shift)^2 / (2 sigma2)), up to what shift does not change."""
    fraction = shift - math.floor(shift)
    if sigma2 > _DIRECT:
        waves = (math.exp(-2 * math.pi**2 * sigma2 * m * m) * math.cos(_TWO_PI * m * fraction) for m in (1, 2))
        return math.log1p(2 * math.fsum(waves))
    squares = [(k - fraction) ** 2 / (2 * sigma2) for k in range(-10, 12)]
    least = min(squares)
    return math.log(math.fsum(math.exp(least - square) for square in squares)) - least


def reduced(angle: Floats) -> Floats:
    """The remainder of angles by 2 pi, between -pi and pi; wrong by at most 2^-51 (1 + angle)."""
    return np.asarray(angle - _TWO_PI * np.rint(angle / _TWO_PI))


@dataclass(frozen=True, slots=True, eq=False)
class _Lattice:
    """The tilted law of a loss ``drift + sign * slope k`` over few integers k.

    Attributes
    ----------
    slope, drift : float
        Not negative.
    sign : 1 or -1
    weights : ndarray of float64
        Of the integers from ``first`` on; empty for noise that is summed over frequencies.
    first : int
    centre, sigma2 : float
        Of noise that is summed over frequencies.
    lost : float
        What is left out.
    spread : float
        A bound on the mean of abs(k).
    """

    slope: float
    drift: float
    sign: int
    weights: Floats
    first: int
    centre: float
    sigma2: float
    lost: float
    spread: float

    @classmethod
    def of_gaussian(cls, sigma2: float, by: int, c: float) -> "_Lattice":
        nearest = round(c * by)
        centre, sigma = c * by - nearest, math.sqrt(sigma2)
        slope, drift = by / sigma2, by * by / (2 * sigma2) + nearest * by / sigma2
        if sigma2 > _DIRECT:
            lost = 2.01 * math.exp(-4.5 * math.pi**2 * sigma2)
            return cls(slope, drift, 1, np.zeros(0), 0, centre, sigma2, lost, sigma + 1)
        most = math.ceil(9.5 * sigma) + 2
        squares = (np.arange(-most, most + 1) - centre) ** 2 / (2 * sigma2)
        weights = np.exp(squares.min() - squares)
        lost = 4 * math.exp(-(9.5**2) / 2)
        return cls(slope, drift, 1, weights / weights.sum(), -most, centre, sigma2, lost, sigma + 1)

    @classmethod
    def of_geometric(cls, a: float, by: int, c: float) -> "_Lattice":
        """Count steps of 2 a down from the largest loss, a by."""
        logs = np.array([-2 * c * a * k - a * k for k in range(by + 1)])
        weights = np.exp(logs)
        weights[1:-1] *= -math.expm1(-a)
        return cls(2 * a, a * by, -1, weights / weights.sum(), 0, 0.0, 0.0, 8 * ULP * by, by)

    def turned(self, times: int, u: Floats) -> Turned:
        """M(c + iu) / M(c) of so many answers."""
        found = self.factor(reduced(self.slope * u))
        # A modulus of zero is negligible, whatever its logarithm is taken to be.
        decay = -times * np.log(np.maximum(np.abs(found), 1e-30))
        phase = times * (np.angle(found) + self.drift * u)
        by_u = times * ULP * (2 * self.spread * self.slope + 8 * self.drift)
        return Turned(decay, phase, times * (self.lost + ULP * (2 * self.spread + 128)), by_u)

    def factor(self, rest: Floats) -> NDArray[np.complex128]:
        """M(c + iu) / M(c) without the drift, where slope u is ``rest`` modulo 2 pi."""
        if not len(self.weights):
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
        waves = (math.exp(-2 * math.pi**2 * self.sigma2 * m * m) * math.cos(whole * m) for m in (1, 2))
        scale = 1 + 2 * math.fsum(waves)
        return np.asarray((real + 1j * imaginary) * np.exp(1j * self.centre * rest) / scale)
