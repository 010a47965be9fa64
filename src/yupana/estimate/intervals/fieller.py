"""Fieller's confidence set of a ratio of two normal estimates: exact, and unbounded where it has to be. Public."""

import math
from dataclasses import dataclass
from typing import Final

INFINITY: Final = math.inf


@dataclass(frozen=True, slots=True)
class Moments:
    """Two estimates, a numerator and a denominator, with their variances and covariance."""

    above: float
    below: float
    above_variance: float
    below_variance: float
    covariance: float


Pieces = tuple[tuple[float, float], ...]
"""Closed intervals from left to right; ends may be infinite."""


def fieller(moments: Moments, z: float) -> Pieces:
    """Which ratios the estimates do not contradict: all r with (n - r d)² at most z² Var(n - r d).

    Parameters
    ----------
    moments : Moments
        Of normal estimates n and d; the variances are true. A variance may be 0, but d and its variance not both.
    z : float
        The two-sided quantile of the confidence.

    Returns
    -------
    Pieces
        An interval where d differs from 0 by more than z standard deviations; otherwise two rays, a ray, or the whole
        line: then the measurements do not tell the denominator from 0, and no bounded set could have the confidence.

    Notes
    -----
    E. C. Fieller, Some problems in interval estimation, J. R. Stat. Soc. B 16 (1954). For the true ratio r, n - r d is
    normal with mean 0, so the set holds r with exactly the confidence, whatever d is. Errors are those of rounding:
    the roots are taken so that nothing cancels.
    """
    n, d = moments.above, moments.below
    vn, vd, c = moments.above_variance, moments.below_variance, moments.covariance
    leading, middle, last = d * d - z * z * vd, n * d - z * z * c, n * n - z * z * vn
    # middle² - leading last, without the terms that cancel in it.
    squared = z * z * (vd * n * n - 2 * c * n * d + vn * d * d - z * z * (vn * vd - c * c))
    if leading == 0:
        return _ray(middle, last)
    if squared <= 0:
        # A single point with a positive leading term: n and d are known without error.
        return ((middle / leading, middle / leading),) if leading > 0 else ((-INFINITY, INFINITY),)
    larger = middle + math.copysign(math.sqrt(squared), middle)
    low, high = sorted((larger / leading, last / larger))
    return ((low, high),) if leading > 0 else ((-INFINITY, low), (high, INFINITY))


def _ray(middle: float, last: float) -> Pieces:
    if middle > 0:
        return ((last / (2 * middle), INFINITY),)
    return ((-INFINITY, last / (2 * middle)),) if middle < 0 else ((-INFINITY, INFINITY),)
