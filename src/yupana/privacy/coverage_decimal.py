"""Coverage of a sum of noises to any number of digits, with bounds that hold for certain (docs/margins.md)."""

import math
from collections.abc import Callable, Sequence
from decimal import Context, Decimal, getcontext, localcontext
from fractions import Fraction
from typing import Final, cast

from yupana.privacy.laws import DiscreteGaussian, TwoSidedGeometric

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
    digits : int
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
