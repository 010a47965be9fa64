"""Empirical privacy loss with its uncertainty: local log-quadratic likelihood, or ratios of neighbouring counts.

Around a point, the logarithm of the density is fitted by a parabola under a Gaussian kernel. The fit has a closed form:
with m the weighted mean of the distances from the point and v their weighted variance, the slope is m / v. It has no
bias for geometric noise away from zero (a straight line) nor for Gaussian noise (a parabola), whatever the bandwidth
(docs/audits.md). Where the kernel is narrower than the integers, the ratios of neighbouring counts are taken instead.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Floats
from yupana.audit.empirical.series import Residuals
from yupana.errors import InputError
from yupana.privacy.laws import Law

BANDWIDTH: Final = 0.5
"""Of the kernel, as a multiple of the standard deviation of the residuals."""

PERCENTILE: Final = 95.0
"""The range reaches from the 5th to the 95th percentile."""

CONFIDENCE: Final = 0.95

_NARROWEST: Final = 0.75
"""A kernel narrower than this, in counts, sees the integers one by one."""

_LATTICES: Final = 3
"""Up to so many lattices of whole steps, single values mean something."""

_POINTS: Final = 200
_PATHS: Final = 2000
_SPLITS: Final = 40
_CLEARLY: Final = 4
"""Standard errors by which an estimate differs clearly."""

_NOTABLE: Final = 0.1
"""Share of an estimate that matters."""

Method = Literal["law", "window", "neighbours"]


@dataclass(frozen=True, slots=True, eq=False)
class LossEstimate:
    """An estimate of the largest loss of one step, max |log p(x) - log p(x + 1)| over a range."""

    # neither inflated by looking for the largest: the place is sought in one half of the residuals and the loss there
    # taken from the other
    loss: float
    error: float  # standard error of the loss at the place found
    # lower, upper: simultaneous band over the range: the largest lower end, and the largest upper end
    lower: float
    upper: float
    confidence: float  # of the band
    method: Method
    bandwidth: float  # standard deviation of the kernel, in counts; zero where there is none
    # low, high: the range
    low: float
    high: float
    # points, curve, curve_low, curve_high: shape (points,): EPL(x) with its band
    points: Floats
    curve: Floats
    curve_low: Floats
    curve_high: Floats
    residuals: int  # how many; zero for a law
    warnings: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Without the curve; an end that is not finite is None."""

        def finite(value: float) -> float | None:
            return value if math.isfinite(value) else None

        return {
            "epl": finite(self.loss),
            **{name: finite(getattr(self, name)) for name in ("error", "lower", "upper")},
            **{name: getattr(self, name) for name in ("confidence", "method", "bandwidth")},
            "range": [self.low, self.high],
            "residuals": self.residuals,
            "warnings": list(self.warnings),
        }


def known_loss(law: Law, percentile: float = PERCENTILE) -> LossEstimate:
    """The loss of one step of noise whose law is known: nothing is estimated.

    Parameters
    ----------
    law : Law
        Other than no noise at all.
    percentile : float
        The range reaches from the percentile ``100 - percentile`` of the law to this one.
    """
    low, high = law.quantile(1 - percentile / 100), law.quantile(percentile / 100)
    x = np.unique(np.linspace(low, max(low, high - 1), _POINTS).round())
    curve = np.array([math.log(law.pmf(int(k)) / law.pmf(int(k) + 1)) for k in x])
    largest = float(np.abs(curve).max())
    return LossEstimate(largest, 0.0, largest, largest, 1.0, "law", 0.0, low, high, x, curve, curve, curve, 0)


def estimate_loss(
    residuals: Residuals, bandwidth: float = BANDWIDTH, percentile: float = PERCENTILE, confidence: float = CONFIDENCE
) -> LossEstimate:
    """Estimate the loss of one step from residuals, with a simultaneous band and warnings.

    Parameters
    ----------
    bandwidth : float
        Multiple of the standard deviation of the residuals.
    percentile : float
        The range reaches from the percentile ``100 - percentile`` of the residuals to this one.
    confidence : float
        Of the band; asymptotic for "window", exact for "neighbours".

    Raises
    ------
    InputError
        If no two neighbouring points lie in the range.
    """
    width = bandwidth * residuals.deviation
    low, high = residuals.percentile(100 - percentile), residuals.percentile(percentile)
    on_lattice = residuals.offsets.size <= _LATTICES
    if on_lattice and width < _NARROWEST:
        near = _neighbours(residuals, low, high, confidence)
        if near is None:
            raise InputError(
                f"the range from {low:g} to {high:g} holds no two neighbouring residuals, so no loss can be estimated; "
                "widen it with --range"
            )
        return near
    if not high > low:
        raise InputError(f"the range from {low:g} to {high:g} is empty, so no loss can be estimated; widen it")
    found = _window(residuals, width, low, high, confidence)
    certain = _neighbours(residuals, low, high, 1 - (1 - confidence) / 1000) if on_lattice else None
    near = _neighbours(residuals, low, high, confidence) if on_lattice else None
    if certain is not None and near is not None and certain.lower > found.upper:
        words = (
            "single values of the residuals are more frequent than any smooth density allows (rounding, zeros kept, "
            f"an invariant): a kernel estimate, here {found.loss:.3f}, is an artefact of its bandwidth. Neighbouring "
            "counts are compared instead"
        )
        return replace(near, warnings=(words, *near.warnings))
    return replace(found, warnings=(*found.warnings, *_doubts(residuals, found, confidence)))


def repeated_loss(residuals: Residuals, bandwidth: float = BANDWIDTH, percentile: float = PERCENTILE) -> float:
    """The loss that `estimate_loss` would give of smooth residuals, without band or warnings: for many replicates."""
    width = bandwidth * residuals.deviation
    low, high = residuals.percentile(100 - percentile), residuals.percentile(percentile)
    if residuals.offsets.size <= _LATTICES and width < _NARROWEST:
        near = _neighbours(residuals, low, high, CONFIDENCE)
        return math.nan if near is None else near.loss
    return _slopes(residuals, width, low, high)[-1](np.random.default_rng(1))


def _doubts(residuals: Residuals, found: LossEstimate, confidence: float) -> list[str]:
    """Whether the estimate is one of the bandwidth rather than of the loss."""
    doubts = []
    if found.upper > 2 * found.loss:
        doubts.append(
            f"noise dominates: the interval reaches up to {found.upper:.3g}, more than twice the estimate. The largest "
            "value of the curve is an artefact of the bandwidth; use a wider one, or more counts"
        )
    for share, which in ((2, "half"), (4, "a quarter of")):
        if found.bandwidth / share < _NARROWEST and residuals.offsets.size <= _LATTICES:
            continue
        # A narrower kernel has less bias, so where it disagrees by more than its own error, this one is too wide.
        other = _window(residuals, found.bandwidth / share, found.low, found.high, confidence)
        if abs(other.loss - found.loss) > max(_CLEARLY * other.error, _NOTABLE * found.loss):
            doubts.append(
                f"{which} the bandwidth gives {other.loss:.3g}, with a standard error of {other.error:.2g}: the "
                "estimate is an artefact of too wide a bandwidth"
            )
    return doubts


def _window(residuals: Residuals, width: float, low: float, high: float, confidence: float) -> LossEstimate:
    """Slopes of the logarithm of the density at points of the range."""
    centres, loss, influence, spread, largest = _slopes(residuals, width, low, high)
    unit = influence * np.sqrt(residuals.times) / spread[:, None]
    # Simulated paths of a band, which protect nothing; by a fixed seed the same residuals give the same band.
    generator = np.random.default_rng(1)
    paths = np.abs(unit @ generator.standard_normal((residuals.values.size, _PATHS))).max(axis=0)
    reach = float(np.quantile(paths, confidence)) * spread
    return LossEstimate(
        largest(generator),
        float(spread[np.argmax(np.abs(loss) - spread)]),
        max(0.0, float((np.abs(loss) - reach).max())),
        float((np.abs(loss) + reach).max()),
        confidence,
        "window",
        width,
        low,
        high,
        centres - 0.5,
        loss,
        loss - reach,
        loss + reach,
        residuals.number,
    )


def _slopes(
    residuals: Residuals, width: float, low: float, high: float
) -> tuple[Floats, Floats, Floats, Floats, Callable[[np.random.Generator], float]]:
    """Points of the range, the loss there, its influence and standard error, and how the largest is found."""
    centres = _centres(low, high, width)
    distance = residuals.values - centres[:, None]
    kernel = _kernel(distance, width)
    slope, influence = _fit(kernel, distance, residuals.times)
    spread = np.sqrt((influence**2) @ residuals.times)

    def largest(generator: np.random.Generator) -> float:
        return _cross_fitted(
            residuals.times, lambda times: -_fit(kernel, distance, times)[0], spread * math.sqrt(2), generator
        )

    return centres, -slope, influence, spread, largest


def _centres(low: float, high: float, width: float) -> Floats:
    """Middles of steps from x to x + 1, at most `_POINTS` of them and no closer than the kernel can tell apart."""
    steps = max(1, min(_POINTS, math.ceil((high - low) / max(1.0, width / 8))))
    x = np.linspace(low, max(low, high - 1), steps + 1)
    return np.asarray(x + 0.5, dtype=np.float64)


def _kernel(distance: Floats, width: float) -> Floats:
    exponents = -((distance / width) ** 2) / 2
    # A factor common to a row cancels; with it no row underflows.
    return np.asarray(np.exp(exponents - exponents.max(axis=1, keepdims=True)), dtype=np.float64)


def _fit(kernel: Floats, distance: Floats, times: Floats) -> tuple[Floats, Floats]:
    """Slopes m / v, of shape (points,), and how each would move with one more residual of each value."""
    weight = np.maximum(kernel @ times, np.finfo(float).tiny)
    mean = (kernel * distance) @ times / weight
    about = distance - mean[:, None]
    variance = np.maximum((kernel * about**2) @ times / weight, 1e-12)
    slope = mean / variance
    pull = about / variance[:, None] - (slope / variance)[:, None] * (about**2 - variance[:, None])
    return slope, kernel * pull / weight[:, None]


def _cross_fitted(
    times: Floats, curve: Callable[[Floats], Floats], spread: Floats, generator: np.random.Generator
) -> float:
    """Seek the largest loss in one half of the residuals and take it from the other, over random halves."""
    whole = times.astype(np.int64)
    found = []
    for _ in range(_SPLITS // 2):
        half = generator.multivariate_hypergeometric(whole, int(whole.sum()) // 2, method="marginals")
        pair = [curve(part.astype(np.float64)) for part in (half, whole - half)]
        for one, other in (pair, pair[::-1]):
            # By its lower end, so that the noisy ends of the range are not chosen for their noise.
            place = int(np.argmax(np.abs(one) - spread))
            found.append(float(np.sign(one[place]) * other[place]))
    finite = [loss for loss in found if math.isfinite(loss)]
    return max(0.0, float(np.mean(finite))) if finite else math.inf


def _neighbours(residuals: Residuals, low: float, high: float, confidence: float) -> LossEstimate | None:
    """Log ratios of the counts of x and x + 1, with exact simultaneous intervals; None where there are no two.

    Of fractional residuals, x runs over the lattices they lie on.

    Given their sum n, the count of x is binomial (n, 1 / (1 + exp(-EPL(x)))).
    """
    from scipy import stats  # noqa: PLC0415 (half a second, and not every command needs it)

    # Within 1e-6, as offsets are.
    x = np.concatenate(
        [
            np.arange(math.ceil(low - offset - 1e-6), math.floor(high - offset + 1e-6)) + offset
            for offset in residuals.offsets
        ]
    )
    pair = [_places(residuals, x + step) for step in (0, 1)]
    some = (pair[0] >= 0) | (pair[1] >= 0)
    x, pair = x[some], [place[some] for place in pair]
    if not x.size:
        return None

    def counted(times: Floats) -> list[Floats]:
        return [np.where(place >= 0, times[place], 0.0) for place in pair]

    here, there = counted(residuals.times)
    tail = (1 - confidence) / 2 / x.size
    with np.errstate(divide="ignore"):
        below = np.where(here > 0, stats.beta.ppf(tail, np.maximum(here, 1), there + 1), 0.0)
        above = np.where(there > 0, stats.beta.isf(tail, here + 1, np.maximum(there, 1)), 1.0)
        least, most = _log_odds(below), _log_odds(above)
        loss = np.log(here) - np.log(there)
        # Half a count is added where one may be missing, for the estimate alone.
        spread = np.sqrt(1 / (here + 0.5) + 1 / (there + 0.5))

    def curve(times: Floats) -> Floats:
        one, other = counted(times)
        return np.asarray(np.log((one + 0.25) / (other + 0.25)), dtype=np.float64)

    largest = _cross_fitted(residuals.times, curve, spread * math.sqrt(2), np.random.default_rng(1))
    lower, upper = float(np.maximum(least, -most).max()), float(np.maximum(most, -least).max())
    warnings = (
        ("a value of the range does not occur beside one that does, so the loss has no upper bound",)
        if math.isinf(upper)
        else ()
    )
    return LossEstimate(
        largest,
        float(spread[np.argmax(np.nan_to_num(np.abs(loss), posinf=0) - spread)]),
        max(0.0, lower),
        upper,
        confidence,
        "neighbours",
        0.0,
        low,
        high,
        x,
        loss,
        least,
        most,
        residuals.number,
        warnings,
    )


def _log_odds(share: Floats) -> Floats:
    return np.asarray(np.log(share) - np.log1p(-share), dtype=np.float64)


def _places(residuals: Residuals, x: Floats) -> NDArray[np.int64]:
    """Where values stand among the residuals, or -1, shape (values,)."""
    place = np.minimum(np.searchsorted(residuals.values, x - 1e-6), residuals.values.size - 1)
    return np.where(np.abs(residuals.values[place] - x) < 2e-6, place, -1)
