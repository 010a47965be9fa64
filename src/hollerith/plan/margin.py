"""Margins of error: the half-width of a confidence interval, and the budget that buys one."""

import math
from fractions import Fraction
from statistics import NormalDist
from typing import Final

_AS_ROUNDED: Final = {Fraction(9, 10): 1.645, Fraction(95, 100): 1.96}
"""z as the Census Bureau rounds it (PHSafe at 90 percent, SafeTab at 95 percent)."""


def z_value(confidence: Fraction) -> float:
    """Two-sided normal quantile: 1.645 at 90 percent, 1.96 at 95 percent, exact at any other confidence.

    Raises
    ------
    ValueError
        If the confidence does not lie strictly between 0 and 1.
    """
    if not 0 < confidence < 1:
        raise ValueError("a confidence level lies strictly between 0 and 1")
    rounded = _AS_ROUNDED.get(confidence)
    return NormalDist().inv_cdf(float((1 + confidence) / 2)) if rounded is None else rounded


def margin_of_error(variance: Fraction | float, confidence: Fraction) -> float:
    """``z * sigma`` for a count of the given variance."""
    return z_value(confidence) * math.sqrt(variance)


def rho_for_margin(margin: Fraction, l2_sensitivity_squared: Fraction, confidence: Fraction) -> Fraction:
    """The rho whose margin of error is ``margin``: ``z^2 d / (2 MOE^2)`` (PHSafe, corollary 2), with z of `z_value`.

    Raises
    ------
    ValueError
        If the margin is not positive.
    """
    if not margin > 0:
        raise ValueError("a margin of error must be positive")
    z = Fraction(str(z_value(confidence)))
    return z * z * l2_sensitivity_squared / (2 * margin * margin)
