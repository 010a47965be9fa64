"""How likely each of many errors may be large, so that a quantile of them is not. Public; docs/tables-criteria.md."""

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Final

import numpy as np

from yupana.arrays import Floats

_STEPS: Final = 10_000
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
    for _ in range(_STEPS + min(4 * allowed, 2 * _STEPS)):
        largest = min(most, ((allowed + 1) * below - 1) // above) if above else most
        yield allowed, largest
        if largest == most:
            return
        allowed += 1
