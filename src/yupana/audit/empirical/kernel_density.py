"""Empirical loss by a kernel density, as the paper publishes it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Floats
from yupana.audit.empirical.series import Residuals, checked
from yupana.errors import InputError

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


BANDWIDTH: Final = 0.1
"""Of the kernel, as a multiple of the standard deviation of the residuals."""

PERCENTILE: Final = 95.0
"""The range reaches to the larger of the 5th and the 95th percentile, without sign, on both sides of zero."""

DISTRICTS: Final = 2663
"""Enumeration districts of Washington State in 1940."""

_FARTHEST: Final = 1_000_000

REPLICATES: Final = 100
_SEED: Final = 123435
_VALUES: Final = {
    "a": (0.001, 0.005, 0.01, 0.05, 0.10, 0.15, 0.20, 0.25, 0.30, 0.35, 0.40, 0.45, 0.50),
    "b": (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0),
    "c": (75.0, 85.0, 95.0, 99.0, 99.9),
}
"""What the rows are printed for: epsilon, bandwidth, percentile."""

_ONE_EPSILON: Final = 0.25


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """EPL(x) = log p(x) - log p(x + 1) by kernel density, at midpoints one apart."""

    points: Floats  # shape (points,)
    loss: Floats  # shape (points,)
    bandwidth: float  # standard deviation of the kernel, in counts

    @property
    def largest(self) -> float:
        """The EPL: the largest loss, without sign."""
        return float(np.abs(self.loss).max())


def published_curve(residuals: Residuals, bandwidth: float = BANDWIDTH, percentile: float = PERCENTILE) -> Curve:
    """Empirical privacy loss with the conventions of the paper's code.

    Parameters
    ----------
    bandwidth, percentile : float
        A multiple of the standard deviation of the residuals; between 50 and 100.

    Raises
    ------
    InputError
        If the range is too narrow to hold two midpoints, or too wide to go through by steps of one.
    """
    width = bandwidth * residuals.deviation
    reach = max(abs(residuals.percentile(100 - percentile)), abs(residuals.percentile(percentile)))
    if reach > _FARTHEST:
        raise InputError(f"the range reaches beyond {_FARTHEST:,} for the published estimate; use --mode sound")
    edges = np.arange(-reach, reach, 1)
    points = (edges[:-1] + edges[1:]) / 2
    if points.size < 2:
        raise InputError(
            f"the range from {-reach:g} to {reach:g} is too narrow for the published estimate; use --mode sound"
        )
    logs = log_density(residuals, points, width)
    return Curve(points[:-1], logs[:-1] - logs[1:], width)


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """A row of Table SA1: the mean over replicates, and their 2.5th and 97.5th percentiles."""

    panel: str  # "a", "b" or "c"
    value: float  # the epsilon, bandwidth or percentile that the row is printed for
    mean: float
    lower: float
    upper: float

    def as_json(self) -> dict[str, Any]:
        """With four decimals, as printed."""
        mean, lower, upper = (round(number, 4) for number in (self.mean, self.lower, self.upper))
        return {"panel": self.panel, "value": self.value, "mean": mean, "lower": lower, "upper": upper}


PANELS: Final = {
    "a": "EPL of geometric noise, by epsilon",
    "b": "printed as a sensitivity to the bandwidth; it is none",
    "c": "printed as a sensitivity to the range; it is none",
}

WHAT_B_AND_C_ARE: Final = (
    "Panels (b) and (c) of the printed table are no sensitivity analysis. The function that made them ignores its "
    "arguments: every row is another 100 runs with epsilon 0.25, bandwidth 0.1 and percentile 95, so rows differ by "
    "chance alone. The generator is seeded alike before each panel: row j of (b) is row j of (c), and the last row of "
    "(b) is the row for epsilon 0.25 of (a)."
)


def reproduce(panels: str = "abc", replicates: int = REPLICATES) -> Iterator[PublishedRow]:
    """Table SA1 as printed, row by row: (b) and (c) with the value of the row ignored."""
    for panel in panels:
        # The authors' generator and seed, for made-up districts: their table is reproduced, nothing is protected.
        generator = np.random.RandomState(_SEED)
        for value in _VALUES[panel]:
            epsilon = value if panel == "a" else _ONE_EPSILON
            yield _summary(panel, value, [published_curve(draw(generator, epsilon)).largest for _ in range(replicates)])


def honour(replicates: int = REPLICATES) -> Iterator[PublishedRow]:
    """Panels (b) and (c) as they would be if their values were used, on the same draws."""
    for panel in "bc":
        for value in _VALUES[panel]:
            generator = np.random.RandomState(_SEED)
            arguments = (value, PERCENTILE) if panel == "b" else (BANDWIDTH, value)
            yield _summary(
                panel,
                value,
                [published_curve(draw(generator, _ONE_EPSILON), *arguments).largest for _ in range(replicates)],
            )


def noise(generator: np.random.RandomState, epsilon: float, number: int) -> NDArray[np.int64]:
    """The paper's noise: differences of geometric draws, whose *success probability* is epsilon / 2.

    Returns
    -------
    ndarray of int64, shape (number,)
    """
    one, other = (generator.geometric(epsilon / 2, size=number) for _ in range(2))
    return np.asarray(one - other, dtype=np.int64)


def generator_of_the_figures() -> np.random.RandomState:
    """The authors' generator at the seed of their figures."""
    return np.random.RandomState(12345)


def draw(generator: np.random.RandomState, epsilon: float) -> Residuals:
    """Noise of the districts."""
    return checked(noise(generator, epsilon, DISTRICTS).astype(np.float64))


def _summary(panel: str, value: float, losses: Sequence[float]) -> PublishedRow:
    lower, upper = np.percentile(losses, [2.5, 97.5])
    return PublishedRow(panel, value, float(np.mean(losses)), float(lower), float(upper))
