"""The laws of the noise: discrete Gaussian, two-sided geometric, and no noise at all.

Each is symmetric and integer-valued, and is named by one exact rational. Probabilities, quantiles and the
variance of the integer law are floats, for reports; the sampler reads only `exponent` and `curvature`:

    P(X = k) is proportional to exp(-exponent * k^2)   when curvature is 2
    P(X = k) is proportional to exp(-exponent * |k|)   when curvature is 1
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, TypeAlias

_DIRECT = 10.0
"""Up to this standard deviation the moments are summed directly; beyond, Poisson summation is exact in doubles."""

_SUMMED = 100_000.0
"""Up to this standard deviation the cdf is summed; beyond, the normal with continuity correction is within 1e-11."""


class _Symmetric(ABC):
    """A law of integers, symmetric about zero."""

    __slots__ = ()

    @property
    @abstractmethod
    def variance(self) -> float:
        """Variance of the integer law."""

    @abstractmethod
    def _tail(self, k: int) -> float:
        """P(X >= k) for k > 0."""

    def cdf(self, k: int) -> float:
        """P(X <= k)."""
        return 1 - self._tail(k + 1) if k >= 0 else self._tail(-k)

    def quantile(self, p: float) -> int:
        """Smallest k with P(X <= k) >= p: bracket by doubling from zero, then bisect."""
        if not 0 < p < 1:
            raise ValueError("a quantile needs a level strictly between 0 and 1")
        step = max(1, math.ceil(math.sqrt(self.variance)))
        low, high = -step, step
        while self.cdf(low) >= p:
            low *= 2
        while self.cdf(high) < p:
            high *= 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.cdf(middle) >= p else (middle, high)
        return high


@dataclass(frozen=True, slots=True)
class DiscreteGaussian(_Symmetric):
    """Integers with P(k) proportional to exp(-k^2 / (2 sigma2)).

    Adding one draw per cell to a count vector of squared L2 sensitivity ``d`` is ``d / (2 sigma2)``-zCDP
    (Canonne, Kamath and Steinke 2020, theorem 14; PHSafe, section 4, lemma 3).
    """

    sigma2: Fraction
    name: ClassVar[str] = "Discrete Gaussian"
    """As the Census Bureau writes it in NOISE_DISTRIBUTION."""
    curvature: ClassVar[int] = 2

    def __post_init__(self) -> None:
        if not self.sigma2 > 0:
            raise ValueError("sigma2 must be positive")

    @property
    def exponent(self) -> Fraction:
        """Exponent of the first step away from zero, 1 / (2 sigma2)."""
        return 1 / (2 * self.sigma2)

    @property
    def variance(self) -> float:
        """Variance of the integer law: slightly below sigma2 for small sigma2, equal in doubles from 1 on."""
        if self._sigma > _DIRECT:
            return float(self.sigma2)
        import numpy as np

        k = np.arange(1, self._reach + 1, dtype=np.float64)
        weights = np.exp(-k * k * float(self.exponent))
        return float(2 * (k * k * weights).sum() / self._normaliser)

    def pmf(self, k: int) -> float:
        """P(X = k)."""
        return math.exp(-float(k * k * self.exponent)) / self._normaliser

    @property
    def _sigma(self) -> float:
        return math.sqrt(self.sigma2)

    @property
    def _reach(self) -> int:
        # Beyond 40 sigma a term is below the smallest double.
        return math.ceil(40 * self._sigma) + 1

    @property
    def _normaliser(self) -> float:
        if self._sigma < 1:
            return 1 + 2 * math.fsum(math.exp(-float(k * k * self.exponent)) for k in range(1, self._reach + 1))
        correction = 2 * math.exp(-2 * math.pi**2 * float(self.sigma2))
        return self._sigma * math.sqrt(2 * math.pi) * (1 + correction)

    def _tail(self, k: int) -> float:
        """P(X >= k) for k > 0, by summation so that far tails keep their relative precision."""
        if self._sigma > _SUMMED:
            return 0.5 * math.erfc((k - 0.5) / (self._sigma * math.sqrt(2)))
        import numpy as np

        terms = np.arange(k, max(k, self._reach) + 2, dtype=np.float64)
        return float(np.exp(-terms * terms * float(self.exponent)).sum() / self._normaliser)


@dataclass(frozen=True, slots=True)
class TwoSidedGeometric(_Symmetric):
    """Integers with P(k) proportional to exp(-|k| / scale): the discrete Laplace law.

    Adding one draw per cell to a count vector of L1 sensitivity ``d`` is ``d / scale``-differentially private
    (Ghosh, Roughgarden and Sundararajan 2009).
    """

    scale: Fraction
    name: ClassVar[str] = "Two-Sided Geometric"
    curvature: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if not self.scale > 0:
            raise ValueError("scale must be positive")

    @property
    def exponent(self) -> Fraction:
        """Exponent of every step away from zero, 1 / scale."""
        return 1 / self.scale

    @property
    def variance(self) -> float:
        """Variance 2 e^(-1/b) / (1 - e^(-1/b))^2 for scale b."""
        a = float(self.exponent)
        return 2 * math.exp(-a) / math.expm1(-a) ** 2

    def pmf(self, k: int) -> float:
        """P(X = k)."""
        a = float(self.exponent)
        return math.tanh(a / 2) * math.exp(-a * abs(k))

    def _tail(self, k: int) -> float:
        """P(X >= k) for k > 0: e^(-a k) / (1 + e^(-a))."""
        a = float(self.exponent)
        return math.exp(-a * k) / (1 + math.exp(-a))


@dataclass(frozen=True, slots=True)
class Zero(_Symmetric):
    """No noise: an infinite budget, which only synthetic data may be given."""

    name: ClassVar[str] = "None"

    @property
    def variance(self) -> float:
        """Zero."""
        return 0.0

    def pmf(self, k: int) -> float:
        """1 at zero."""
        return float(k == 0)

    def _tail(self, k: int) -> float:
        """P(X >= k) for k > 0."""
        del k
        return 0.0


Law: TypeAlias = DiscreteGaussian | TwoSidedGeometric | Zero
"""A law of integer noise, symmetric about zero."""
