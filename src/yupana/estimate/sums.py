"""The posterior of a sum of truncated normals: quantiles by inverting the Laplace transform. Public.

The transform of one term is ``erfcx((s S - Z) / (S sqrt 2)) / erfcx(-Z / (S sqrt 2))`` with S the standard deviation of
the noise; of independent terms it is the product. It is entire, so the integral of Bromwich may be taken along a
hyperbola, where it decays so fast that the trapezoidal rule is exact to rounding (docs/phsafe-estimates.md).
"""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import special

from yupana.arrays import Floats
from yupana.estimate import posterior

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


def quantiles(measured: Floats, variances: Floats, probabilities: Sequence[float]) -> Floats:
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
        found = [posterior.quantile(measured[:, 0], variances[:, 0], p) for p in probabilities]
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
    means = np.where(truncated, posterior.mean(measured, variances), 0.0).sum(axis=1)
    spread = np.sqrt(np.where(truncated, posterior.deviation(measured, variances) ** 2, 0.0).sum(axis=1) + extra)
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
