"""Zero-concentrated differential privacy: what a rho means as (epsilon, delta).

Composition needs no function of its own: the losses of measurements on the same records add, and of
measurements on disjoint records the largest counts (Bun and Steinke 2016, lemmas 7 and 8); both are
exact on fractions, and `yupana.plan` does them.
"""

import math
from collections.abc import Callable, Iterable
from fractions import Fraction


def _check(rho: float, delta: float) -> None:
    if not rho >= 0:
        raise ValueError("rho must be zero or more")
    if not 0 < delta < 1:
        raise ValueError("delta must lie strictly between 0 and 1")


def epsilon_bun_steinke(rho: Fraction | float, delta: float) -> float:
    """Epsilon of rho-zCDP at ``delta`` by the simple conversion ``rho + 2 sqrt(rho ln(1/delta))``.

    Source: Bun and Steinke 2016, proposition 3 (PHSafe, section 4).
    """
    r = float(rho)
    _check(r, delta)
    return r + 2 * math.sqrt(r * math.log(1 / delta))


def epsilon_tight(rho: Fraction | float, delta: float) -> float:
    """Epsilon of rho-zCDP at ``delta`` by the tight conversion of Canonne, Kamath and Steinke 2020.

    The infimum over ``alpha > 1`` of
    ``alpha rho + ln(1 - 1/alpha) + (ln(1/delta) - ln(alpha)) / (alpha - 1)``
    (corollary 13 there; every alpha gives a valid bound, so a search that stops early errs to the safe side).
    """
    r = float(rho)
    _check(r, delta)
    if r == 0:
        return 0.0
    if math.isinf(r):
        return math.inf

    def bound(log_excess: float) -> float:
        excess = math.exp(log_excess)  # alpha - 1
        alpha = 1 + excess
        return alpha * r + (math.log(1 / delta) - math.log(alpha)) / excess - math.log1p(1 / excess)

    # The unconstrained optimum of the Bun-Steinke form, sqrt(ln(1/delta)/rho), lies within a few units of ours.
    centre = 0.5 * (math.log(math.log(1 / delta)) - math.log(r))
    return max(0.0, bound(argmin(bound, centre - 12, centre + 12, 100)))


def rho_for_epsilon(epsilon: float, delta: float) -> float:
    """Largest rho whose tight conversion at ``delta`` does not pass ``epsilon`` (bisection, 1e-15 relative)."""
    _check(0, delta)
    if not 0 < epsilon < math.inf:
        raise ValueError("epsilon must be positive and finite")
    low, high = 0.0, epsilon
    while epsilon_tight(high, delta) < epsilon:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if epsilon_tight(middle, delta) <= epsilon else (low, middle)
    return low


def least_missed(promises: Iterable[tuple[float, float]], type_1: float) -> float:
    """The least error of type II of a test with this error of type I, by pairs of epsilon and delta that are kept."""
    errors = (
        max(1 - delta - math.exp(min(epsilon, 700.0)) * type_1, math.exp(-epsilon) * (1 - delta - type_1))
        for epsilon, delta in promises
    )
    return max(0.0, *errors)


def argmin(f: Callable[[float], float], low: float, high: float, steps: int) -> float:
    """Minimise a unimodal function by golden sections."""
    ratio = (math.sqrt(5) - 1) / 2
    a, b = high - ratio * (high - low), low + ratio * (high - low)
    fa, fb = f(a), f(b)
    for _ in range(steps):
        if fa < fb:
            high, b, fb = b, a, fa
            a = high - ratio * (high - low)
            fa = f(a)
        else:
            low, a, fa = a, b, fb
            b = low + ratio * (high - low)
            fb = f(b)
    return (low + high) / 2
