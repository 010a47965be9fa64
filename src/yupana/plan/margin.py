"""Margins of error: by the exact law of the noise, or as the Census Bureau computes them. Public; docs/margins.md."""

import math
from fractions import Fraction
from statistics import NormalDist
from typing import Final, Literal

from yupana.plan.measurement import published_variance
from yupana.privacy.laws import Law

Margins = Literal["exact", "bureau"]
"""``exact``: the smallest whole m with P(|noise| <= m) >= confidence. ``bureau``: z times sigma."""

_AS_ROUNDED: Final = {Fraction(9, 10): 1.645, Fraction(95, 100): 1.96}
"""z as the Census Bureau rounds it (PHSafe at 90 percent, SafeTab at 95 percent)."""


def margin_of(law: Law, cells: int, confidence: Fraction, margins: Margins) -> float:
    """The margin of error of a sum of cells that each have independent noise of one law; whole if ``exact``.

    It is of the noise alone: before counts are clamped at zero, suppressed or truncated.
    """
    if margins == "exact":
        from yupana.privacy.coverage import least_bound, noise_of

        return least_bound(noise_of([(law, cells)]), confidence)
    return margin_of_error(cells * published_variance(law), confidence)


def bound_of_estimate(
    variance: float, least: float, confidence: Fraction, margins: Margins, *, is_gaussian: bool
) -> float:
    """What a weighted sum of independent noises exceeds with at most the chance that the confidence leaves.

    With ``exact`` margins it is a proven bound (docs/margins.md, "Estimates"): no law of such a sum is computed.

    Parameters
    ----------
    variance : float
        Of the sum, as tables show variances.
    least : float
        The smallest variance of a noise in it.
    confidence : Fraction
    margins : "exact" or "bureau"
    is_gaussian : bool
        Whether the noises are discrete Gaussian, or else two-sided geometric.
    """
    if margins == "bureau" or not variance:
        return margin_of_error(variance, confidence)
    left = float(1 - confidence)
    if is_gaussian:
        return math.sqrt(2 * variance * math.log(2 / left))
    return math.sqrt(variance) * math.sqrt(math.sqrt((6 + 1 / least) / left))


def margin_words(margins: Margins, confidence: Fraction) -> str:
    """How a margin of error is defined, in a sentence for reports."""
    if margins == "exact":
        return (
            f"The margin is the smallest whole number m so that the noise lies within ±m with a chance of at least "
            f"{100 * float(confidence):g}%, by the exact law of the noise"
        )
    return f"The margin is {z_value(confidence):.4g} times the standard deviation σ of the noise"


def z_value(confidence: Fraction | float) -> float:
    """Two-sided normal quantile: 1.645 at 90 percent, 1.96 at 95 percent, exact at any other confidence.

    A double is taken as its shortest decimal, so that 0.9 is 90 percent.

    Raises
    ------
    ValueError
        If the confidence does not lie strictly between 0 and 1.
    """
    if not 0 < confidence < 1:
        raise ValueError("a confidence level lies strictly between 0 and 1")
    level = Fraction(str(confidence))
    rounded = _AS_ROUNDED.get(level)
    return NormalDist().inv_cdf(float((1 + level) / 2)) if rounded is None else rounded


def margin_of_error(variance: Fraction | float, confidence: Fraction | float) -> float:
    """``z * sigma`` for a count of the given variance: the margin of the Bureau.

    Raises
    ------
    ValueError
        If the variance is negative, or the confidence does not lie strictly between 0 and 1.
    """
    if not 0 <= variance < math.inf:
        raise ValueError("a variance is a finite number, zero or more")
    return z_value(confidence) * math.sqrt(variance)


def check_margin(margin: Fraction) -> None:
    """Refuse a margin of error that is not positive."""
    if not margin > 0:
        raise ValueError("a margin of error must be positive")


def rho_for_margin(margin: Fraction, l2_sensitivity_squared: Fraction, confidence: Fraction | float) -> Fraction:
    """The rho whose ``z * sigma`` is ``margin``: ``z^2 d / (2 MOE^2)`` (PHSafe, corollary 2), with z of `z_value`.

    Raises
    ------
    ValueError
        If the margin is not positive.
    """
    check_margin(margin)
    z = Fraction(str(z_value(confidence)))
    return z * z * l2_sensitivity_squared / (2 * margin * margin)
