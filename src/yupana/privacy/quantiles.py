"""How likely each of many errors may be large, so that a quantile of them is not. Public; docs/tables-criteria.md."""

from collections.abc import Iterator
from fractions import Fraction
from typing import Final

import numpy as np

_STEPS: Final = 10_000
"""How many numbers of rows are looked at one by one; for more of them a bound is taken."""

_ROUNDED: Final = 1 - Fraction(1, 10**9)
"""Doubles are far nearer than that; chances are rounded to the safe side."""


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
    from scipy.special import betaincinv  # noqa: PLC0415 (half a second, and not every command needs it)

    rest = 1 - quantile
    steps = list(_steps(rest, fewest, most))
    allowed, numbers = (np.array(values, dtype=np.float64) for values in zip(*steps, strict=True))
    missing = float(1 - chance)
    # P(Binomial(n, r) > a) is the regularised incomplete beta function of (a + 1, n - a) at r.
    found = betaincinv(allowed + 1, numbers - allowed, missing) if independent else missing * (allowed + 1) / numbers
    least = Fraction(float(found.min()))
    if numbers[-1] < most:
        # By Markov, and by Hoeffding: what is allowed is more than (1 - quantile) n - 1, and one more is too many.
        markov, hoeffding = missing * float(rest), float(rest) - (-np.log(missing) / (2 * numbers[-1])) ** 0.5
        least = min(least, Fraction(float(max(markov, hoeffding if independent else 0))))
    return least * _ROUNDED


def _steps(rest: Fraction, fewest: int, most: int) -> Iterator[tuple[int, int]]:
    """How many of n rows may be outside, and the largest n for which it is so many, from the fewest rows on."""
    above, below = rest.numerator, rest.denominator
    allowed = above * fewest // below
    for _ in range(_STEPS + min(4 * allowed, 10 * _STEPS)):
        largest = min(most, ((allowed + 1) * below - 1) // above) if above else most
        yield allowed, largest
        if largest == most:
            return
        allowed += 1
