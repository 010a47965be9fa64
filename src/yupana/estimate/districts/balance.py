"""Rules on the balance of districts, the chance that uncertain populations meet one, and how to tighten it. Public.

A rule of tolerance t says |f(x)| <= t S / k for some linear forms f of the populations x of k districts, S their sum.
With normal populations each of these is an inequality of one normal number. docs/districts.md has the proofs.
"""

from dataclasses import dataclass
from math import sqrt
from typing import Final, Literal

import numpy as np
from scipy import special

from yupana.arrays import Floats

Rule = Literal["range", "deviation"]
"""The largest district less the smallest, or the largest difference from the ideal; in shares of the ideal."""

DRAWS: Final = 100_000
_SEED: Final = 2409
_AT_ONCE: Final = 1 << 22
_CERTAIN: Final = 1e-6
"""Bounds that are as near to each other need no draws."""

_STEPS: Final = 40
_ROUNDING: Final = 1e-9
"""Of the sum of all districts: a form that is larger by less has the value of its bound."""


@dataclass(frozen=True, slots=True)
class Chance:
    """The chance that a rule is met.

    Attributes
    ----------
    value : float
    standard_error : float
        Of the draws it was found by; 0 if by formula.
    lower, upper : float
        What is certain without a draw.
    """

    value: float
    standard_error: float
    lower: float
    upper: float


def departure(rule: Rule, populations: Floats) -> Floats:
    """How far populations depart from balance, in shares of the ideal: what a rule holds against its tolerance.

    Parameters
    ----------
    rule : Rule
    populations : ndarray of float64, shape (..., districts)
        Their sum is above 0.

    Returns
    -------
    ndarray of float64, shape (...)
    """
    ideal = populations.mean(axis=-1)
    largest, smallest = populations.max(axis=-1), populations.min(axis=-1)
    if rule == "range":
        return np.asarray((largest - smallest) / ideal)
    return np.asarray(np.maximum(largest - ideal, ideal - smallest) / ideal)


@dataclass(frozen=True, slots=True, eq=False)
class Forms:
    """The linear forms that a rule bounds: what they are worth, and how they and the sum of all districts err.

    Attributes
    ----------
    value, variance, with_total : ndarray of float64, shape (forms,)
        The last is the covariance with the sum.
    total, total_variance : float
    districts : int
    """

    value: Floats
    variance: Floats
    with_total: Floats
    total: float
    total_variance: float
    districts: int

    def deviations(self, tolerance: float) -> tuple[Floats, Floats]:
        """Standard deviations of f - t S / k and of -f - t S / k."""
        share = tolerance / self.districts
        both = self.variance + share**2 * self.total_variance
        above, below = (np.sqrt(np.maximum(both + sign * 2 * share * self.with_total, 0.0)) for sign in (-1, 1))
        return above, below


def forms_of(rule: Rule, estimate: Floats, covariance: Floats) -> Forms:
    """The forms of a rule; of two districts there is one, for both rules bound their difference.

    Parameters
    ----------
    rule : Rule
    estimate : ndarray of float64, shape (districts,)
    covariance : ndarray of float64, shape (districts, districts)
    """
    districts, own, with_total = len(estimate), np.diag(covariance), covariance.sum(axis=1)
    total, total_variance = float(estimate.sum()), max(float(covariance.sum()), 0.0)
    if total_variance <= _ROUNDING * float(own.sum()):
        with_total, total_variance = np.zeros(districts), 0.0
    if rule == "range":
        first, second = np.triu_indices(districts, 1)
        value = estimate[first] - estimate[second]
        variance = own[first] + own[second] - 2 * covariance[first, second]
        along = with_total[first] - with_total[second]
    else:
        some = slice(1) if districts == 2 else slice(None)
        value = (estimate - total / districts)[some]
        variance = (own - 2 * with_total / districts + total_variance / districts**2)[some]
        along = (with_total - total_variance / districts)[some]
    return Forms(value, np.maximum(variance, 0.0), along, total, total_variance, districts)


def chance_of(rule: Rule, tolerance: float, estimate: Floats, covariance: Floats) -> Chance:
    """The chance that normal populations meet a rule.

    By one normal number if the rule has one form; otherwise by draws of a fixed seed, within what single inequalities
    make certain: at most the smallest of their chances, and at least 1 less the chances that each is broken.

    Parameters
    ----------
    rule : Rule
    tolerance : float
        Above 0.
    estimate : ndarray of float64, shape (districts,)
    covariance : ndarray of float64, shape (districts, districts)
        Symmetric, no eigenvalue below 0 but for rounding; may be singular.
    """
    forms = forms_of(rule, estimate, covariance)
    bound, (above, below) = tolerance / forms.districts * forms.total, forms.deviations(tolerance)
    slack = _ROUNDING * abs(forms.total)
    broken = _beyond(forms.value - bound, above, slack) + _beyond(-forms.value - bound, below, slack)
    lower, upper = max(0.0, 1.0 - float(broken.sum())), max(0.0, 1.0 - float(broken.max()))
    if upper - lower <= _CERTAIN:
        return Chance(lower, 0.0, lower, upper)
    met = _met(rule, tolerance, estimate, covariance)
    # Never 0: that no draw broke the rule does not make it certain.
    share = (met + 1) / (DRAWS + 2)
    return Chance(min(max(met / DRAWS, lower), upper), sqrt(share * (1 - share) / DRAWS), lower, upper)


def _met(rule: Rule, tolerance: float, estimate: Floats, covariance: Floats) -> int:
    """How many of the draws meet the rule."""
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    rng = np.random.default_rng(_SEED)
    met, left = 0, DRAWS
    while left:
        some = min(left, max(1, _AT_ONCE // len(estimate)))
        drawn = estimate + rng.standard_normal((some, len(estimate))) @ root.T
        met += int(((drawn.sum(axis=1) > 0) & (departure(rule, drawn) <= tolerance)).sum())
        left -= some
    return met


def tightened(
    rule: Rule, tolerance: float, chance: float, published: Floats, estimate: Floats, covariance: Floats
) -> float | None:
    """The tolerance for published populations that keeps the chance for the true ones.

    If populations whose least-squares estimate differs from what was published as here are published and meet it, then
    the true ones meet `tolerance` with at least the chance, given all measurements. And whatever the true populations
    are: if they break `tolerance`, published ones meet this with a chance of at most 1 - `chance`, over the noise.

    Parameters
    ----------
    rule : Rule
    tolerance : float
        For the true populations.
    chance : float
        Above 1/2.
    published, estimate : ndarray of float64, shape (districts,)
    covariance : ndarray of float64, shape (districts, districts)
        Of the estimate.

    Returns
    -------
    float or None
        At most `tolerance`; the largest if the rule has one form, else the largest by the sum of the chances that each
        inequality is broken. None if populations that are all alike could break the rule, too.
    """

    def is_kept(share: float) -> bool:
        return chance_broken(rule, tolerance, share, published, estimate, covariance) <= 1 - chance

    if not is_kept(0.0):
        return None
    low, high = 0.0, tolerance
    if is_kept(high):
        return high
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if is_kept(middle) else (low, middle)
    return low


def chance_broken(
    rule: Rule, tolerance: float, share: float, published: Floats, estimate: Floats, covariance: Floats
) -> float:
    """How likely it is at most that the true populations break a rule, if published ones depart by a share.

    The sum of the chances that each inequality is broken, each form of the published populations being at the end of
    its bound that is worse. Parameters as of `tightened`; of what is published its difference from the estimate counts.
    """
    forms = forms_of(rule, estimate, covariance)
    apart = forms_of(rule, published - estimate, np.zeros_like(covariance)).value
    above, below = forms.deviations(tolerance)
    bound, end = tolerance / forms.districts * forms.total, share * float(published.sum()) / forms.districts
    slack = _ROUNDING * abs(forms.total)
    high, low = (
        _beyond(value - bound, above, slack) + _beyond(-value - bound, below, slack)
        for value in (end - apart, -end - apart)
    )
    return float(np.maximum(high, low).sum())


def _beyond(mean: Floats, deviation: Floats, slack: float) -> Floats:
    """The chance that a normal number is above 0; one without a deviation is if it is by more than a rounding error."""
    known = deviation == 0
    return np.where(known, mean > slack, special.ndtr(mean / np.where(known, 1.0, deviation)))
