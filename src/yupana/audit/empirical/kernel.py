"""Gaussian kernel density of residuals, in logarithms, so that nothing underflows between them."""

from typing import Final

import numpy as np

from yupana.arrays import Floats
from yupana.audit.empirical.residuals import Residuals

_PIECE: Final = 1 << 21
"""Elements of the matrix of points by values that are held at a time."""

_MANY: Final = 1 << 22
"""From so many elements on, whole residuals are convolved instead."""

_CLEAR: Final = 1e-7
"""A convolution is exact to about 1e-16 of its peak: densities above this share of it have nine digits."""


def log_density(residuals: Residuals, points: Floats, bandwidth: float) -> Floats:
    """Logarithm of the kernel density estimate.

    Parameters
    ----------
    residuals : Residuals
    points : ndarray of float64, shape (points,)
    bandwidth : float
        Standard deviation of the kernel, above zero.

    Returns
    -------
    ndarray of float64, shape (points,)
        Within 1e-9.
    """
    constant = -np.log(residuals.number * bandwidth * np.sqrt(2 * np.pi))
    is_grid = points.size > 1 and bool(np.allclose(np.diff(points), 1, rtol=0, atol=1e-9))
    if is_grid and residuals.are_whole and points.size * residuals.values.size > _MANY:
        convolved = _convolved(residuals, points, bandwidth)
        if convolved is not None:
            return np.asarray(np.log(convolved) + constant, dtype=np.float64)
    rows = max(1, _PIECE // residuals.values.size)
    logs = np.log(residuals.times)
    parts = []
    for start in range(0, points.size, rows):
        distance = (points[start : start + rows, None] - residuals.values) / bandwidth
        exponents = logs - distance * distance / 2
        highest = exponents.max(axis=1)
        parts.append(highest + np.log(np.exp(exponents - highest[:, None]).sum(axis=1)))
    return np.asarray(np.concatenate(parts) + constant, dtype=np.float64)


def _convolved(residuals: Residuals, points: Floats, bandwidth: float) -> Floats | None:
    """Sums of the kernel at points one apart, by Fourier transform, or None where they would lose their digits."""
    first = residuals.values[0]
    counts = np.bincount((residuals.values - first).astype(np.int64), residuals.times)
    # Lag j of the kernel lies between value first + i and point points[0] + k with j = k - i + counts.size - 1.
    lags = np.arange(points.size + counts.size - 1) - (counts.size - 1) + (points[0] - first)
    kernel = np.exp(-((lags / bandwidth) ** 2) / 2)
    size = 1 << int(counts.size + kernel.size - 1).bit_length()
    product = np.fft.irfft(np.fft.rfft(counts, size) * np.fft.rfft(kernel, size), size)
    sums = product[counts.size - 1 : counts.size - 1 + points.size]
    return np.asarray(sums, dtype=np.float64) if sums.min() > _CLEAR * np.abs(product).max() else None
