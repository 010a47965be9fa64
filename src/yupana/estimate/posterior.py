"""A count that cannot be negative, given its noisy measurement: mean and quantiles of the truncated normal. Public.

With the measurement Z of a count Y, normal noise of variance V and the improper prior 1{Y >= 0}, the posterior of Y is
the normal of mean Z and variance V truncated to [0, infinity). Everything here stays accurate however many standard
deviations Z lies below zero; formulas and their sources are in docs/phsafe-estimates.md.
"""

import math
from typing import Final

import numpy as np
from scipy import special

from yupana.arrays import Floats

_ROOT_2: Final = math.sqrt(2)
_SERIES_FROM: Final = 50.0
"""Standard deviations below zero from where differences of nearly equal numbers give way to asymptotic series."""

_LOG_FORM_TO: Final = 4.0
"""Standard deviations below zero up to where the normal quantile function is used, and beyond which Newton's method."""

_NEWTON_STEPS: Final = 12


def mean(measured: Floats, variance: Floats) -> Floats:
    """Posterior mean, ``Z + s phi(a) / (1 - Phi(a))`` with ``s = sqrt(V)`` and ``a = -Z / s``.

    Parameters
    ----------
    measured, variance : float arrays of one shape
        Variances are positive.

    Returns
    -------
    float array of that shape
        Positive; relative error below 1e-12.
    """
    scale = np.sqrt(variance)
    below = -measured / scale
    far = np.maximum(below, _SERIES_FROM) ** -2
    # (lambda - a) a = 1 - 2 a^-2 + 10 a^-4 - 74 a^-6 + ..., for the hazard lambda of the normal.
    series = np.sqrt(far) * (1 + far * (-2 + far * (10 + far * (-74 + far * 706))))
    return np.where(below > _SERIES_FROM, scale * series, measured + scale * _hazard(np.minimum(below, _SERIES_FROM)))


def deviation(measured: Floats, variance: Floats) -> Floats:
    """Posterior standard deviation; see `mean`. Relative error below 1e-8."""
    scale = np.sqrt(variance)
    below = -measured / scale
    hazard = _hazard(np.minimum(below, _SERIES_FROM))
    far = np.maximum(below, _SERIES_FROM) ** -2
    near = np.sqrt(np.maximum(1 - hazard * (hazard - np.minimum(below, _SERIES_FROM)), 0.0))
    series = np.sqrt(far * (1 + far * (-6 + far * (50 - far * 518))))
    return np.where(below > _SERIES_FROM, scale * series, scale * near)


def quantile(measured: Floats, variance: Floats, probability: float) -> Floats:
    """Posterior quantile: the y with ``1 - Phi(a + y / s) = (1 - p) (1 - Phi(a))``; see `mean`.

    Parameters
    ----------
    measured, variance : float arrays of one shape
    probability : float
        Strictly between 0 and 1.

    Returns
    -------
    float array of that shape
        Not negative; error below 1e-9 of the posterior's standard deviation.
    """
    scale = np.sqrt(variance)
    below = -measured / scale
    survival = math.log1p(-probability)
    near = np.minimum(below, _LOG_FORM_TO)
    normal = -special.ndtri_exp(survival + special.log_ndtr(-near))
    far = np.maximum(below, _LOG_FORM_TO)
    # Newton's method for y / s; the logarithm of the survival function is concave and the start is beyond the root, so
    # that it never leaves that side.
    step = -2 * survival / (far + np.sqrt(far * far - 2 * survival))
    at_zero = special.erfcx(far / _ROOT_2)
    for _ in range(_NEWTON_STEPS):
        here = special.erfcx((far + step) / _ROOT_2)
        excess = np.log(here / at_zero) - step * (far + step / 2) - survival
        step = step + excess * here * math.sqrt(math.pi / 2)
    return np.maximum(np.where(below > _LOG_FORM_TO, scale * step, measured + scale * normal), 0.0)


def _hazard(below: Floats) -> Floats:
    """``phi(a) / (1 - Phi(a))``, without overflow far above zero, where it vanishes."""
    return math.sqrt(2 / math.pi) / np.asarray(special.erfcx(np.maximum(below, -37.0) / _ROOT_2))
