"""What the best test of an attacker can achieve: trade-off curves of Gaussian noise, of rho-zCDP and of pure DP.

A test decides from a release which of two neighbouring databases it was made from. Its error of type I is the chance to
accuse wrongly, that of type II the chance to miss. A trade-off curve gives the least error of type II for each error of
type I. Gaussian measurements compose exactly, and to replace discrete noise by continuous noise costs an error that is
bounded in docs/certificate.md.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import Final

from yupana.privacy.zcdp import epsilon_tight, least_missed

_NORMAL: Final = NormalDist()

SMOOTHING: Final = 1.5
"""The variance s^2 given up to replace continuous noise by discrete noise."""

_SUM: Final = 2 * math.fsum(math.exp(-2 * math.pi**2 * SMOOTHING * m * m) for m in (1, 2, 3))
PER_COUNT: Final = math.log1p(_SUM) - math.log1p(-_SUM)
"""eta: by how much the logarithm of a probability may differ, for each count that neighbours differ in; 5.6e-13."""


@dataclass(frozen=True, slots=True)
class Gaussian:
    """Composed discrete Gaussian measurements, none of them chosen by the results of another."""

    mu: float  # the composition as if the noise were continuous: a shift by mu standard deviations; mu^2 = 2 rho
    # least_mu, most_mu: between these lies the mu of a continuous mechanism that the discrete one equals but for
    # `slack`; `most_mu` is the one that guarantees may use
    least_mu: float
    most_mu: float
    slack: float  # how much the logarithm of any probability may differ besides

    def delta(self, epsilon: float) -> float:
        """The least delta that is proven at an epsilon; for the discrete noise."""
        return min(1.0, math.exp(self.slack) * gaussian_delta(self.most_mu, max(0.0, epsilon - 2 * self.slack)))

    def epsilon(self, delta: float) -> float:
        """The least epsilon that is proven at a delta; for the discrete noise."""
        return gaussian_epsilon(self.most_mu, delta * math.exp(-self.slack)) + 2 * self.slack

    @property
    def guess(self) -> float:
        """How often, at most, a guess between two equally likely databases is right: (1 + delta(0)) / 2."""
        return (1 + self.delta(0.0)) / 2

    def missed(self, type_1: float) -> tuple[float, float, float]:
        """The error of type II at an error of type I: at least, as if continuous, and at most for the best test."""
        low = math.exp(-self.slack) * gaussian_missed(self.most_mu, min(1.0, math.exp(self.slack) * type_1))
        high = math.exp(self.slack) * gaussian_missed(self.least_mu, math.exp(-self.slack) * type_1)
        return low, gaussian_missed(self.mu, type_1), min(1.0, high)


def composed(rho: Fraction | float, least_variance: Fraction | float, counts: Fraction | float) -> Gaussian | None:
    """Compose discrete Gaussian measurements (docs/certificate.md, theorem 1).

    Parameters
    ----------
    rho : Fraction or float
        Their loss together.
    least_variance : Fraction or float
        The smallest sigma^2 among them.
    counts : Fraction or float
        The most counts in which neighbours can differ.

    Returns
    -------
    Gaussian or None
        None if some noise is too small (sigma^2 of 3 or less) for the bound.
    """
    variance = float(least_variance)
    if variance <= 2 * SMOOTHING:
        return None
    squared = 2 * float(rho)
    # Adding N(0, t) to discrete noise, with t such that sigma^2 t / (sigma^2 + t) = s^2, makes continuous noise.
    added = SMOOTHING / (1 - SMOOTHING / variance)
    return Gaussian(
        mu=math.sqrt(squared),
        least_mu=math.sqrt(squared / (1 + added / variance)),
        most_mu=math.sqrt(squared / (1 - SMOOTHING / variance)),
        slack=float(counts) * PER_COUNT,
    )


def gaussian_missed(mu: float, type_1: float) -> float:
    """The error of type II of the best test between N(0, 1) and N(mu, 1): Phi(Phi^-1(1 - type I) - mu)."""
    if type_1 <= 0 or type_1 >= 1:
        return 1.0 if type_1 <= 0 else 0.0
    return _NORMAL.cdf(-_NORMAL.inv_cdf(type_1) - mu)


def gaussian_delta(mu: float, epsilon: float) -> float:
    """The delta at epsilon of a shift by mu: Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu) (Balle and Wang 2018)."""
    if mu == 0:
        return 0.0
    first = 0.5 * math.erfc((epsilon / mu - mu / 2) / math.sqrt(2))
    far = (epsilon / mu + mu / 2) / math.sqrt(2)
    # e^eps alone may not fit a double where the product is tiny.
    second = math.exp(epsilon + _log_erfc(far)) / 2
    return max(0.0, first - second)


def _log_erfc(x: float) -> float:
    """The logarithm of erfc(x) for x >= 0; beyond 25 by its asymptotic series, to a relative 1e-8."""
    if x < 25:
        return math.log(math.erfc(x))
    return -x * x - math.log(x * math.sqrt(math.pi)) + math.log1p(-1 / (2 * x * x) + 3 / (4 * x**4))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """The least epsilon at which a shift by mu has at most ``delta``; by bisection, erring to the safe side."""
    low, high = 0.0, 1.0
    if gaussian_delta(mu, 0.0) <= delta:
        return 0.0
    while gaussian_delta(mu, high) > delta:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if gaussian_delta(mu, middle) > delta else (low, middle)
    return high


def variance_to_spare(
    rho: Fraction | float, least_variance: Fraction | float, counts: Fraction | float, promised: float, delta: float
) -> float:
    """Which share of all variances could be left out, and the epsilon promised at ``delta`` would still hold.

    With the discrete noise's own bound, so a little less than for continuous noise; 0 where there is nothing to spare.
    """

    def holds(share: float) -> bool:
        left = composed(float(rho) / (1 - share), float(least_variance) * (1 - share), counts)
        return left is not None and left.epsilon(delta) <= promised

    if not holds(0.0):
        return 0.0
    low, high = 0.0, 0.99
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def pure_missed(epsilon: float, type_1: float) -> float:
    """The least error of type II under epsilon-DP: the larger of 1 - e^eps a and e^-eps (1 - a), and 0."""
    return least_missed([(epsilon, 0.0)], type_1)


_GRID: Final = 160
_LARGEST: Final = 700.0
"""An exponent whose power still fits a double; epsilons beyond promise nothing that a double could tell."""


@lru_cache(maxsize=16)
def _promises(rho: Fraction | float) -> tuple[tuple[float, float], ...]:
    """Pairs of epsilon and delta that rho-zCDP promises, over a grid of deltas."""
    deltas = (10 ** (-12 * step / _GRID) for step in range(1, _GRID))
    return tuple((min(epsilon_tight(rho, delta), _LARGEST), delta) for delta in deltas)


def zcdp_missed(rho: Fraction | float, type_1: float) -> float:
    """An error of type II that no test under rho-zCDP falls below, whatever the mechanism.

    The best of what the (epsilon, delta) of the tight conversion imply, over a grid of deltas; each is valid.
    """
    return least_missed(_promises(rho), type_1)


def pure_guess(epsilon: float) -> float:
    """How often, at most, a guess between two equally likely databases is right under epsilon-DP."""
    return 1 / (1 + math.exp(-epsilon))


def zcdp_guess(rho: Fraction | float) -> float:
    """How often, at most, a guess between two equally likely databases is right under rho-zCDP.

    Under (epsilon, delta) the two errors add up to 2 (1 - delta) / (1 + e^epsilon) at least.
    """
    return 1 - max((1 - delta) / (1 + math.exp(epsilon)) for epsilon, delta in _promises(rho))
