"""A count that cannot be negative, given its noisy measurement, and a sum of such counts: truncated normals. Public.

With the measurement Z of a count Y, normal noise of variance V and the improper prior 1{Y >= 0}, the posterior of Y is
the normal of mean Z and variance V truncated to [0, infinity). Everything here stays accurate however many standard
deviations Z lies below zero; formulas and their sources are in docs/phsafe-estimates.md.

Quantiles of a sum come from inverting the Laplace transform. That of one term is
``erfcx((s S - Z) / (S sqrt 2)) / erfcx(-Z / (S sqrt 2))`` with S the standard deviation of the noise; of independent
terms it is the product. It is entire, so the integral of Bromwich may be taken along a hyperbola, where it decays so
fast that the trapezoidal rule is exact to rounding.
"""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray
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


_NORMAL_FROM: Final = 9.0
"""A term this many standard deviations above zero is normal: what truncation removes is below 2e-19."""

_SCALE: Final = 0.8
"""Of the hyperbola, over the standard deviation of the sum."""

_ANGLE: Final = math.pi / 8
"""Of the asymptotes from the imaginary axis: below 45 degrees, so that a normal's transform decays along them."""

_REACH: Final = 13.5
_NODES: Final = 240
_ROWS: Final = 256
"""Sums worked on at a time: some tens of megabytes."""

_STEPS: Final = 80


def quantiles_of_sum(measured: Floats, variances: Floats, probabilities: Sequence[float]) -> Floats:
    """Posterior quantiles of sums of independent non-negative counts.

    Parameters
    ----------
    measured, variances : float arrays, shape (sums, terms)
        Measurements of the terms and the variances of their noise, positive.
    probabilities : sequence of float
        Strictly between 0 and 1.

    Returns
    -------
    float array, shape (sums, probabilities)
        Error below 1e-8 of the posterior's standard deviation.
    """
    if measured.shape[1] == 1:
        found = [quantile(measured[:, 0], variances[:, 0], p) for p in probabilities]
        return np.stack(found, axis=1)
    total, spread = measured.sum(axis=1), np.sqrt(variances.sum(axis=1))
    normal = np.asarray(special.ndtri(np.asarray(probabilities)))
    answers: Floats = total[:, None] + spread[:, None] * normal
    rows = np.flatnonzero((measured < _NORMAL_FROM * np.sqrt(variances)).any(axis=1))
    for start in range(0, rows.size, _ROWS):
        some = rows[start : start + _ROWS]
        answers[some] = _inverted(measured[some], variances[some], probabilities)
    return answers


def _inverted(measured: Floats, variances: Floats, probabilities: Sequence[float]) -> Floats:
    truncated = measured < _NORMAL_FROM * np.sqrt(variances)
    shift = np.where(truncated, 0.0, measured).sum(axis=1)
    extra = np.where(truncated, 0.0, variances).sum(axis=1)
    means = np.where(truncated, mean(measured, variances), 0.0).sum(axis=1)
    spread = np.sqrt(np.where(truncated, deviation(measured, variances) ** 2, 0.0).sum(axis=1) + extra)
    u = np.linspace(0.0, _REACH, _NODES + 1)
    nodes = _SCALE * (1 - math.sin(_ANGLE) * np.cosh(u) + 1j * math.cos(_ANGLE) * np.sinh(u))
    slope = _SCALE * (-math.sin(_ANGLE) * np.sinh(u) + 1j * math.cos(_ANGLE) * np.cosh(u)) * (_REACH / _NODES / math.pi)
    slope[0] /= 2
    # Everything below is in units of the sum's standard deviation, with the normal terms' mean taken off.
    exponent = extra[:, None] / spread[:, None] ** 2 * nodes**2 / 2
    for term in range(measured.shape[1]):
        exponent = exponent + _log_transform(measured[:, term], variances[:, term], nodes, spread, truncated[:, term])
    answers = [
        shift + spread * _solve(exponent, nodes, slope, means / spread, probability, -8 * np.sqrt(extra) / spread)
        for probability in probabilities
    ]
    return np.stack(answers, axis=1)


def _log_transform(
    measured: Floats, variances: Floats, nodes: NDArray[np.complex128], spread: Floats, truncated: NDArray[np.bool_]
) -> NDArray[np.complex128]:
    """Logarithm of a term's transform at the nodes, up to multiples of 2 pi i; 0 for a term that counts as normal."""
    scale = np.sqrt(variances)
    at_zero = np.where(truncated, -measured / scale, 0.0) / math.sqrt(2)
    argument = at_zero[:, None] + (scale / spread)[:, None] * nodes / math.sqrt(2)
    # Far out the transform may underflow; it is negligible there, and its logarithm only has to be very negative.
    faddeeva = special.wofz(1j * argument)
    value = np.log(np.where(faddeeva == 0, 1e-300, faddeeva)) - np.log(special.erfcx(at_zero))[:, None]
    return np.where(truncated[:, None], value, 0.0)


def _solve(
    exponent: NDArray[np.complex128],
    nodes: NDArray[np.complex128],
    weights: NDArray[np.complex128],
    means: Floats,
    probability: float,
    lowest: Floats,
) -> Floats:
    """Where the distribution functions reach a probability: Newton's method, kept within brackets."""
    low, high = lowest, means + 30.0
    x = np.clip(means + float(special.ndtri(probability)), (low + means) / 2, high)
    for _ in range(_STEPS):
        terms = np.exp(exponent + nodes * x[:, None]) * weights
        distribution = (terms / nodes).imag.sum(axis=1)
        density = terms.imag.sum(axis=1)
        missing = probability - distribution
        low, high = np.where(missing >= 0, x, low), np.where(missing <= 0, x, high)
        step = np.divide(missing, density, out=np.full_like(x, np.inf), where=density > 0)
        after = np.where((x + step > low) & (x + step < high), x + step, (low + high) / 2)
        done = np.abs(after - x) <= 1e-13 * (1 + np.abs(x))
        x = after
        if done.all():
            break
    return x
