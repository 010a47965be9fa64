"""How surely a sum of independent noises lies within a bound: decided for certain, not to a tolerance.

The method and its proofs are in docs/margins.md. Every comparison of a coverage with a confidence is made with a proven
bound on its error: first in doubles, and where these cannot decide in decimals of more and more digits.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from functools import lru_cache
from itertools import count
from typing import Final, cast

import numpy as np
from numpy.typing import NDArray

from yupana.privacy.coverage_decimal import decimal_coverage
from yupana.privacy.laws import DiscreteGaussian, Law, TwoSidedGeometric, Zero

Noise = tuple[tuple[DiscreteGaussian, int], ...] | tuple[tuple[TwoSidedGeometric, int], ...]
"""A sum of independent draws: how many of each law. The laws are of one kind; no law at all is no noise."""

Compare = Callable[[int], bool | None]
"""Whether P(|S| <= m) reaches the confidence; None where that cannot be told."""

_SMALL: Final = 1e-14
"""What is left out on either side: of the sum by its period, and of its Fourier series by its end."""

_MOST_TERMS: Final = 2**20

_FEWEST_DIGITS: Final = 30

_FEW_GEOMETRIC: Final = 2
"""The Fourier series of no more than so many geometric noises is long; their closed form is faster."""


def noise_of(parts: Iterable[tuple[Law, int]]) -> Noise:
    """The sum of some numbers of draws of some laws, all of one kind where they have noise.

    Raises
    ------
    ValueError
        If discrete Gaussian and geometric noises are to be added.
    """
    numbers: dict[Law, int] = {}
    for law, number in parts:
        if not isinstance(law, Zero) and number:
            numbers[law] = numbers.get(law, 0) + number
    if len({type(law) for law in numbers}) > 1:
        raise ValueError("discrete Gaussian and two-sided geometric noises are not added")
    return cast("Noise", tuple(numbers.items()))


@lru_cache(maxsize=2**14)
def least_bound(noise: Noise, confidence: Fraction) -> int:
    """The smallest whole m with P(|S| <= m) >= confidence, for the sum S of the noises.

    Raises
    ------
    ValueError
        If the confidence does not lie strictly between 0 and 1.
    """
    if not 0 < confidence < 1:
        raise ValueError("a confidence level lies strictly between 0 and 1")
    if not noise:
        return 0
    low, high = -1, reach(noise, _log(1 / (1 - confidence)))
    comparisons = _comparisons(noise, high, confidence)
    while True:
        compare = next(comparisons)
        low = _last(low, high, lambda m, compare=compare: compare(m) is False)  # type: ignore[misc]
        if high - low == 1 or compare(low + 1):
            return low + 1
        high = 1 + _last(low, high, lambda m, compare=compare: not compare(m))  # type: ignore[misc]


def _last(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """The last number for which something holds, that holds at ``low`` and fails from somewhere before ``high`` on."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def covers(noise: Noise, bound: int, confidence: Fraction) -> bool:
    """Whether P(|S| <= bound) >= confidence, for the sum S of the noises."""
    if not noise or bound >= reach(noise, _log(1 / (1 - confidence))):
        return True
    found = (compare(bound) for compare in _comparisons(noise, bound, confidence))
    return next(reached for reached in found if reached is not None)


def reach(noise: Noise, surprise: float) -> int:
    """A whole x with P(|S| >= x) <= exp(-surprise), by Chernoff's bound with the moment generating functions."""
    wanted = surprise + math.log(2)
    sigma2 = sum((number * law.sigma2 for law, number in noise if isinstance(law, DiscreteGaussian)), Fraction(0))
    if sigma2:
        # E exp(s X) <= exp(s^2 sigma2 / 2), as for the normal law.
        found = math.sqrt(2 * wanted * float(sigma2))
    else:
        rates = [(float(law.exponent), number) for law, number in noise]
        least = min(rate for rate, _ in rates)
        found = min(
            (wanted - sum(n * math.log1p(-(_sinh_ratio(least * j / 64, rate) ** 2)) for rate, n in rates))
            / (least * j / 64)
            for j in range(1, 64)
        )
    return math.ceil(1.001 * found) + 1


def _sinh_ratio(s: float, a: float) -> float:
    """Sinh(s / 2) / sinh(a / 2) for 0 < s < a, without overflow."""
    return math.exp((s - a) / 2) * math.expm1(-s) / math.expm1(-a)


def _log(number: Fraction) -> float:
    return math.log(number.numerator) - math.log(number.denominator)


def _comparisons(noise: Noise, largest: int, confidence: Fraction) -> Iterator[Compare]:
    """Comparisons for bounds up to ``largest``, of more and more precision."""
    in_doubles = _in_doubles(noise, largest, confidence)
    if in_doubles is not None:
        yield in_doubles
    for doubled in count():
        digits = _FEWEST_DIGITS * 2**doubled
        period = _period(noise, largest, digits * math.log(10))
        coverage = decimal_coverage(noise, period, digits)

        def compare(bound: int, coverage: Callable[[int], tuple[Fraction, Fraction]] = coverage) -> bool | None:
            least, most = coverage(bound)
            return True if least >= confidence else False if most < confidence else None

        yield compare


def _period(noise: Noise, largest: int, surprise: float) -> int:
    """An odd period beyond which a sum is unlikely to lie, and so far that bounds do not meet their repetitions."""
    return max(largest, (largest + reach(noise, surprise)) // 2) * 2 + 1


def _in_doubles(noise: Noise, largest: int, confidence: Fraction) -> Compare | None:
    """Compare by the Fourier series of the law on a circle, in doubles; None where it takes too many terms."""
    if isinstance(noise[0][0], TwoSidedGeometric) and sum(number for _, number in noise) <= _FEW_GEOMETRIC:
        return None
    period = _period(noise, largest, -math.log(_SMALL))
    terms = min(64, period // 2)
    while (phi := _characteristic(noise, 2 * math.pi * np.arange(1, terms + 1, dtype=np.float64) / period))[-1] * (
        1 + math.log(period / 2 / terms)
    ) > _SMALL and terms < period // 2:
        terms = min(2 * terms, period // 2)
        if terms > _MOST_TERMS:
            return None
    k = np.arange(1, terms + 1)
    weights = 2 * phi / (period * np.sin(math.pi * k / period))
    level = float(confidence)
    error = 2 * _SMALL + 1e-12 + 1e-14 * sum(number for _, number in noise)

    def compare(bound: int) -> bool | None:
        # Multiples of 2 pi are taken off exactly, in whole numbers of any size.
        angles = math.pi * np.array([n * (2 * bound + 1) % (2 * period) / period for n in range(1, terms + 1)])
        coverage = (2 * bound + 1) / period + float((weights * np.sin(angles)).sum())
        return None if abs(coverage - level) <= error else coverage > level

    return compare


def _characteristic(noise: Noise, t: NDArray[np.float64]) -> NDArray[np.float64]:
    """E exp(i t S) for 0 < t < pi: positive, and falling in t."""
    logs = np.zeros_like(t)
    for law, number in noise:
        logs += number * (_log_gaussian(law, t) if isinstance(law, DiscreteGaussian) else _log_geometric(law, t))
    found: NDArray[np.float64] = np.exp(logs)
    return found


def _log_gaussian(law: DiscreteGaussian, t: NDArray[np.float64]) -> NDArray[np.float64]:
    """By the sum over the integers where sigma is small, else by that of Poisson; both have positive values."""
    sigma2 = float(law.sigma2)
    if sigma2 < 1 / (2 * math.pi):
        weights = [2 * math.exp(-k * k * float(law.exponent)) for k in range(1, 6)]
        waves = sum(-2 * weight * np.sin(k * t / 2) ** 2 for k, weight in enumerate(weights, start=1))
        found: NDArray[np.float64] = np.log1p(waves / (1 + sum(weights)))
        return found
    repeated = sum(
        np.exp(-2 * math.pi * j * sigma2 * (math.pi * j - t)) + np.exp(-2 * math.pi * j * sigma2 * (math.pi * j + t))
        for j in range(1, 6)
    )
    at_zero = 2 * sum(math.exp(-2 * (math.pi * j) ** 2 * sigma2) for j in range(1, 6))
    return -sigma2 * t * t / 2 + np.log1p(repeated) - math.log1p(at_zero)


def _log_geometric(law: TwoSidedGeometric, t: NDArray[np.float64]) -> NDArray[np.float64]:
    a = float(law.exponent)
    found: NDArray[np.float64] = -np.log1p(4 * math.exp(-a) / math.expm1(-a) ** 2 * np.sin(t / 2) ** 2)
    return found
