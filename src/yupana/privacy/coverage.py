"""How surely noise lies within a bound: decided for certain, not to a tolerance.

The method for a sum of independent noises and its proofs are in docs/margins.md. Every comparison of a coverage with a
confidence is made with a proven bound on its error: first in doubles, and where these cannot decide in decimals of more
and more digits. Of the quantile of many errors, docs/tables-criteria.md tells how likely each may be large.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Context, Decimal, getcontext, localcontext
from fractions import Fraction
from functools import lru_cache
from itertools import count
from typing import Final, cast

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Floats
from yupana.privacy.laws import DiscreteGaussian, Law, TwoSidedGeometric, Zero

Bounds = Callable[[int], tuple[Fraction, Fraction]]
"""From m to numbers that P(|S| <= m) lies between."""

_GUARD: Final = 12
"""Digits beyond those wanted: rounding takes fewer than this many (docs/margins.md)."""


def decimal_coverage(
    noise: Sequence[tuple[DiscreteGaussian | TwoSidedGeometric, int]], period: int, digits: int
) -> Bounds:
    """Coverage of a sum of discrete Gaussian noises, or of geometric ones.

    Parameters
    ----------
    noise : sequence of (law, number), of one kind
    period : int
        Odd; a sum of discrete Gaussian noises is farther from every m asked for than that with a chance below
        ``10**-digits``.
    """
    if isinstance(noise[0][0], DiscreteGaussian):
        gaussians = [(cast("DiscreteGaussian", law), number) for law, number in noise]
        return _gaussian(gaussians, period, digits)
    geometrics = [(cast("TwoSidedGeometric", law), number) for law, number in noise]
    return lambda m: _geometric(geometrics, m, digits)


def _context(digits: int) -> Context:
    # What is smaller becomes 0, for a fraction of it would fill the memory.
    return Context(prec=digits, Emin=-100 * digits, Emax=10**17)


def _decimal(number: Fraction) -> Decimal:
    return Decimal(number.numerator) / Decimal(number.denominator)


def _gaussian(noise: Sequence[tuple[DiscreteGaussian, int]], period: int, digits: int) -> Bounds:
    """By the Fourier series of the law on a circle of ``period`` points."""
    context = _context(digits + _GUARD)
    weights: list[Decimal] = []
    with localcontext(context):
        pi, small = _pi(), Decimal(10) ** -digits
        laws = [(_Theta(law, pi), number) for law, number in noise]
        for k in range(1, period // 2 + 1):
            phi = Decimal(1)
            for theta, number in laws:
                phi *= theta.at(k, period) ** number
            weights.append(2 * phi / (period * _sine(k, period, pi)))
            if phi * (1 + (Decimal(period) / (2 * k)).ln()) <= small:
                break

    def bounds(m: int) -> tuple[Fraction, Fraction]:
        with localcontext(context):
            found = Decimal(2 * m + 1) / period
            for k, weight in enumerate(weights, start=1):
                found += weight * _sine(k * (2 * m + 1), period, pi)
        error = Fraction(3, 10**digits)
        return Fraction(found) - error, Fraction(found) + error

    return bounds


class _Theta:
    """The characteristic function of a discrete Gaussian law at 2 pi k / period, in the decimals of the context."""

    def __init__(self, law: DiscreteGaussian, pi: Decimal) -> None:
        self._sigma2, self._pi = _decimal(law.sigma2), pi
        self._is_narrow = float(law.sigma2) < 1 / (2 * math.pi)
        self._weights = self._terms()
        self._at_zero = 1 + sum(self._weights)

    def _terms(self) -> list[Decimal]:
        """The terms of the sum at 0: over the integers for a narrow law, else over their dual, each with its mirror."""
        rate = -1 / (2 * self._sigma2) if self._is_narrow else -2 * self._pi**2 * self._sigma2
        least = Decimal(10) ** -getcontext().prec
        terms: list[Decimal] = []
        while (term := 2 * (rate * (len(terms) + 1) ** 2).exp()) > least:
            terms.append(term)
        return terms

    def at(self, k: int, period: int) -> Decimal:
        if self._is_narrow:
            total = Decimal(1)
            for j, weight in enumerate(self._weights, start=1):
                total += weight * (1 - 2 * _sine(j * k, period, self._pi) ** 2)
            return total / self._at_zero
        rate = -2 * self._pi**2 * self._sigma2 / period**2
        # The nearest repetition may be as large as the term itself; the others are smaller than those at 0.
        total = (rate * k * k).exp()
        for j in range(1, len(self._weights) + 2):
            total += (rate * (j * period - k) ** 2).exp() + (rate * (j * period + k) ** 2).exp()
        return total / self._at_zero


def _sine(numerator: int, denominator: int, pi: Decimal) -> Decimal:
    """Sin(pi numerator / denominator), the multiples of pi taken off exactly."""
    turns, rest = divmod(numerator, denominator)
    rest = min(rest, denominator - rest)
    x = pi * rest / denominator
    term, total, n = x, x, 1
    while total + term != total or n == 1:
        term *= -x * x / ((n + 1) * (n + 2))
        total += term
        n += 2
    return -total if turns % 2 else total


def _pi() -> Decimal:
    """The number pi in the context's decimals, by Machin's formula."""

    def arctangent(inverse: int) -> Decimal:
        power, total, n = Decimal(1) / inverse, Decimal(0), 1
        while total + power / n != total:
            total += power / n
            power /= -inverse * inverse
            n += 2
        return total

    return 16 * arctangent(5) - 4 * arctangent(239)


def _geometric(noise: Sequence[tuple[TwoSidedGeometric, int]], m: int, digits: int) -> tuple[Fraction, Fraction]:
    """By the closed form of the tail."""
    with localcontext(_context(digits + _GUARD)) as context:
        rates = [(_decimal(law.exponent), number) for law, number in noise]
        ratios = [(rate, (-rate).exp(), number) for rate, number in rates]
        tail = 2 * _upper_tail(ratios, m + 1, sign=1)
        majorant = 2 * _upper_tail(ratios, m + 1, sign=-1)
        # By how much more than a unit in the last place differences of ratios, and powers of them, may be off.
        gaps = [abs(1 - p / q) for _, q, _ in ratios for _, p, _ in ratios if p != q]
        nearest = min([1 - q for _, q, _ in ratios] + gaps)
        number = sum(number for _, number in noise)
        strain = (number + 10) ** 2 * (10 / nearest + (m + number) * max(rate for rate, _ in rates))
        error = majorant * strain * Decimal(10) ** -context.prec + Decimal(10) ** context.Emin
        return 1 - Fraction(tail + error), 1 - Fraction(tail - error)


def _upper_tail(ratios: Sequence[tuple[Decimal, Decimal, int]], k: int, *, sign: int) -> Decimal:
    """P(S >= k) for k > 0, S a sum of geometric noises of these rates, ratios and numbers; see docs/margins.md.

    With ``sign`` -1 every term is taken by its absolute value, for a bound on rounding.
    """
    scale = Decimal(1)
    for _, p, number in ratios:
        scale *= (1 - p) ** (2 * number)
    total = Decimal(0)
    for rate, q, number in ratios:
        # The Taylor series at the pole 1 / q of what remains of the generating function, by its logarithm's derivative.
        first, slopes = scale, [Decimal(0)] * number
        for _, p, other in ratios:
            s = 1 - q * p
            first /= s**other
            for i in range(number):
                slopes[i] += other * (s ** -(i + 1) - sign)
            if p != q:
                kappa = (p / q) / (1 - p / q)
                first /= (1 - p / q) ** other if sign == 1 else abs(1 - p / q) ** other
                for i in range(number):
                    slopes[i] -= other * kappa * (-kappa) ** i if sign == 1 else -other * abs(kappa) ** (i + 1)
        series = [first]
        for r in range(1, number):
            series.append(sum((slopes[i] * series[r - 1 - i] for i in range(r)), Decimal(0)) / r)
        # The upper tails of the negative binomial laws of ratio q, of 1, 2, ... successes.
        term, tail = (-rate * k).exp(), Decimal(0)
        for r in range(1, number + 1):
            tail += term
            total += series[number - r] * tail / (1 - q) ** r
            term *= (1 - q) * (k - 1 + r) / r
    return total


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


_MOST_STEPS: Final = 10_000
"""How many numbers of rows are looked at one by one; for more of them a bound is taken."""

_SAFE: Final = 1 - 1e-7
"""What doubles are off is less; chances are rounded to the safe side by so much."""

_HALVINGS: Final = 80


def share_outside(quantile: Fraction, chance: Fraction, fewest: int, most: int, *, independent: bool) -> Fraction:
    """How likely each row's error may pass a bound, so that the quantile of n does not with the chance, for any n.

    Parameters
    ----------
    quantile : Fraction
        Above 0, at most 1.
    chance : Fraction
        Above 0, below 1.
    fewest, most : int
        The least and the largest n.
    independent : bool
        Whether the errors of different rows are; otherwise nothing is assumed of their joint law.

    Returns
    -------
    Fraction
        Above 0. If rows are outside with at most that probability, then for each n in the range at most
        (1 - quantile) n of them are, with at least the chance.

    Source
    ------
    docs/tables-criteria.md, lemma 1
    """
    rest = 1 - quantile
    steps = list(_steps(rest, fewest, most))
    allowed, numbers = (np.array(values, dtype=np.float64) for values in zip(*steps, strict=True))
    missing = float(1 - chance) * _SAFE
    by_markov = float((missing * (allowed + 1) / numbers).min())
    least = _by_binomial(allowed, numbers, missing, by_markov) if independent else by_markov
    if numbers[-1] < most:
        # By Markov, and by Hoeffding: what is allowed is more than (1 - quantile) n - 1, and one more is too many.
        markov, hoeffding = missing * float(rest), float(rest) - math.sqrt(-math.log(missing) / (2 * numbers[-1]))
        least = min(least, max(markov, hoeffding) if independent else markov)
    return Fraction(least)


def _by_binomial(allowed: Floats, numbers: Floats, missing: float, enough: float) -> float:
    """The largest r for which P(Binomial(n, r) > a) is at most some chance, for each n and a; ``enough`` is below it.

    That probability is the regularised incomplete beta function of (a + 1, n - a) at r, which grows with r. SciPy's
    inverse of it is wrong for n of a billion; the function itself is right to 1e-7 there, and to 1e-9 for ten million.
    """
    from scipy.special import betainc  # noqa: PLC0415 (half a second, and not every command needs it)

    least = 1.0
    while (chances := betainc(allowed + 1, numbers - allowed, least)).max() > missing:
        a, n = (values[chances.argmax()] for values in (allowed, numbers))
        low, high = enough, least
        for _ in range(_HALVINGS):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if betainc(a + 1, n - a, middle) <= missing else (low, middle)
        if low == least:
            break
        least = low
    return least


def _steps(rest: Fraction, fewest: int, most: int) -> Iterator[tuple[int, int]]:
    """How many of n rows may be outside, and the largest n for which it is so many, from the fewest rows on."""
    above, below = rest.numerator, rest.denominator
    allowed = above * fewest // below
    for _ in range(_MOST_STEPS + min(4 * allowed, 2 * _MOST_STEPS)):
        largest = min(most, ((allowed + 1) * below - 1) // above) if above else most
        yield allowed, largest
        if largest == most:
            return
        allowed += 1
