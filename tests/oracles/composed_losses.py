"""An oracle: the law of the privacy loss of a few answers, atom by atom, in decimals of 60 digits."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from decimal import Decimal, localcontext
from fractions import Fraction
from math import ceil, isqrt

from yupana.privacy.laws import DiscreteGaussian, TwoSidedGeometric
from yupana.privacy.loss_terms import Shift

_FAR = 15
"""Standard deviations beyond which no atom of Gaussian noise is kept: chance below 1e-48."""

_LEAST = Decimal("1e-50")
"""Atoms below are left out."""

Losses = Mapping[Fraction, Decimal]


def composed(shifts: Iterable[Shift]) -> Losses:
    """The chance of each loss, under the first of two neighbours."""
    law: Losses = {Fraction(0): Decimal(1)}
    with localcontext() as context:
        context.prec = 60
        for shift in shifts:
            for _ in range(shift.times):
                law = _convolved(law, _of_one(shift.law, shift.by))
    return law


def delta_of(law: Losses, epsilon: float) -> Decimal:
    """The sum of p (1 - e^(epsilon - loss)) over losses above epsilon."""
    with localcontext() as context:
        context.prec = 60
        at = Fraction(epsilon)
        return sum((p * (1 - _decimal(at - loss).exp()) for loss, p in law.items() if loss > at), Decimal(0))


def _of_one(noise: DiscreteGaussian | TwoSidedGeometric, by: int) -> Losses:
    """By definition: the log of the ratio of two probabilities, at every value of the noise."""
    if isinstance(noise, DiscreteGaussian):
        reach = _FAR * (isqrt(ceil(noise.sigma2)) + 1) + by
    else:
        reach = by + ceil(110 * noise.scale) + 1
    power = noise.curvature

    def exponent(k: int) -> Fraction:
        return noise.exponent * abs(k) ** power

    weights = {k: _decimal(-exponent(k)).exp() for k in range(-reach, reach + 1)}
    total = sum(weights.values())
    law: dict[Fraction, Decimal] = defaultdict(Decimal)
    for k, weight in weights.items():
        law[exponent(k - by) - exponent(k)] += weight / total
    return law


def _convolved(one: Losses, other: Losses) -> Losses:
    law: dict[Fraction, Decimal] = defaultdict(Decimal)
    for here, p in one.items():
        for there, q in other.items():
            law[here + there] += p * q
    return {loss: p for loss, p in law.items() if p > _LEAST}


def _decimal(number: Fraction) -> Decimal:
    return Decimal(number.numerator) / Decimal(number.denominator)
