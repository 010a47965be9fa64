"""Averages such as people per household: the posterior of a ratio of counts, by deterministic quadrature. Public.

Numerators and the denominator are measured with normal noise and have a flat prior on a polytope: no count is negative,
the denominator is at least 1, and the whole ratio lies between two bounds. Where the ratio is held fixed, the posterior
is one integral over the denominator; that integral is of a log-concave function, and the ratio has bounded support. So
the mean and every quantile follow from two nested Gauss-Legendre rules whose panels are halved until they have
converged. Formulas and their sources are in docs/phsafe-estimates.md.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import special

from yupana.arrays import Floats

_LEAST_DENOMINATOR: Final = 1.0

_EVERYTHING: Final = 1e6
"""A window of a million standard deviations per unit of the denominator to either side."""

_OPEN: Final = 8.5
"""Standard deviations from which a window leaves everything in: the rest is below 1e-17."""

_DROP: Final = 30.0
"""Where the logarithm of a density has fallen this far, what remains is below rounding."""

_INNER, _OUTER = (np.polynomial.legendre.leggauss(nodes) for nodes in (28, 14))
_INNER_TOLERANCE: Final = 1e-6
_TOLERANCE: Final = 1e-8
"""Of a panel against the whole: the trailing Legendre coefficients, relative."""

_ROUNDING: Final = 1e-14
"""What is added to the tolerance per standard deviation that a measurement lies from zero."""

_ROUGH_PANELS: Final = 64
"""Where this many panels at once have not converged, rounding is what is seen, and halving them does not help."""

_RAYS: Final = 20_000
"""Rays worked on at a time: some tens of megabytes."""

_BRACKETINGS: Final = 40


@dataclass(frozen=True, slots=True)
class Average:
    """The posterior of one ratio for each of many population groups; arrays of shape (groups,) unless said."""

    mean: Floats  # of the ratio, not the ratio of means
    quantiles: Floats  # shape (groups, probabilities)
    # numerator, denominator: posterior means of both counts under the same posterior
    numerator: Floats
    denominator: Floats


def single(
    numerator: Floats,
    numerator_variance: Floats,
    denominator: Floats,
    denominator_variance: Floats,
    bounds: tuple[float, float],
    probabilities: Sequence[float],
) -> Average:
    """The ratio of two independently measured counts n and d, given ``d >= 1`` and the bounds of ``n / d``.

    Parameters
    ----------
    numerator, numerator_variance, denominator, denominator_variance : float arrays, shape (groups,)
    bounds : tuple of float
        Least and greatest ratio.
    probabilities : sequence of float
        Of the quantiles.
    """
    groups = numerator.shape
    line = _Line(
        numerator, numerator_variance, denominator, denominator_variance, *(np.zeros(groups) for _ in range(3))
    )

    def window(_rows: NDArray[np.intp], ratio: Floats) -> tuple[Floats, Floats]:
        return np.full(ratio.shape, -_EVERYTHING), np.full(ratio.shape, _EVERYTHING)

    return _average(line, window, bounds, (), probabilities)


def parts(
    numerators: Floats,
    covariances: Floats,
    denominator: Floats,
    denominator_variance: Floats,
    bounds: tuple[float, float],
    probabilities: Sequence[float],
) -> tuple[Average, Average, Average]:
    """The ratios of two counts x, y and of their sum to a common denominator d.

    Given are ``x >= 0``, ``y >= 0``, ``d >= 1`` and the bounds of ``(x + y) / d``.

    Parameters
    ----------
    numerators : float array, shape (groups, 2)
        Measurements of x and y.
    covariances : float array, shape (groups, 2, 2)
        Of their errors; diagonal where the measurements are independent.
    denominator, denominator_variance : float arrays, shape (groups,)
    bounds : tuple of float
        Least and greatest ``(x + y) / d``.

    Returns
    -------
    tuple of Average
        Of ``(x + y) / d``, ``x / d`` and ``y / d``; the means of the last two sum to the first.
    """
    least, greatest = bounds
    total = numerators.sum(axis=1)
    total_variance = covariances.sum(axis=(1, 2))
    share = covariances[:, 0].sum(axis=1) / total_variance
    within = covariances[:, 0, 0] - share**2 * total_variance
    line = _Line(
        total, total_variance, denominator, denominator_variance, numerators[:, 0] - share * total, share, within
    )

    def from_zero(_rows: NDArray[np.intp], ratio: Floats) -> tuple[Floats, Floats]:
        return np.zeros(ratio.shape), ratio

    def rest(_rows: NDArray[np.intp], ratio: Floats) -> tuple[Floats, Floats]:
        return np.maximum(0.0, least - ratio), greatest - ratio

    whole = _average(line, from_zero, bounds, (), probabilities)
    found = []
    for own, other in ((0, 1), (1, 0)):
        variance = covariances[:, own, own]
        slope = covariances[:, 0, 1] / variance
        line = _Line(
            numerators[:, own],
            variance,
            denominator,
            denominator_variance,
            numerators[:, other] - slope * numerators[:, own],
            slope,
            covariances[:, other, other] - slope * covariances[:, 0, 1],
        )
        found.append(_average(line, rest, (0.0, greatest), (least,), probabilities))
    return whole, found[0], found[1]


@dataclass(frozen=True, slots=True)
class _Line:
    """A numerator n, a denominator d, and a third count that is normal given n; arrays of shape (groups,).

    The third count has the mean ``third + slope * n`` and the variance ``within``; 0 where there is none.
    """

    numerator: Floats
    numerator_variance: Floats
    denominator: Floats
    denominator_variance: Floats
    third: Floats
    slope: Floats
    within: Floats

    def size(self) -> Floats:
        """The largest number of standard deviations that occurs: it sets how exact the posterior can be computed."""
        within = np.where(self.within > 0, self.within, 1.0)
        pairs = (
            (self.numerator, self.numerator_variance),
            (self.denominator, self.denominator_variance),
            (self.third, within),
        )
        sizes: Floats = np.stack([np.abs(value) / np.sqrt(variance) for value, variance in pairs]).max(axis=0)
        return sizes


_Window = Callable[[NDArray[np.intp], Floats], tuple[Floats, Floats]]
"""From groups and ratios to the least and greatest third count, over the denominator."""


@dataclass(frozen=True, slots=True)
class _Ray:
    """The posterior along the denominator t at fixed ratios: ``t exp(-p (t - t0)^2 / 2) W(t)`` from t = 1 on.

    W is the normal mass of the window that begins at ``begin + slope t`` and is ``width t`` wide. Arrays of shape
    (rays,).
    """

    precision: Floats
    centre: Floats
    begin: Floats
    slope: Floats
    width: Floats

    def take(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> "_Ray":
        return _Ray(*(getattr(self, name)[rows] for name in _Ray.__slots__))

    def log(self, t: Floats) -> Floats:
        """Logarithm of the integrand; ``t`` has the shape (rays, nodes)."""
        across = self.width[:, None] * t
        low = self.begin[:, None] + self.slope[:, None] * t
        return np.log(t) - self.precision[:, None] * (t - self.centre[:, None]) ** 2 / 2 + _log_mass(low, across)

    def slopes(self, t: Floats) -> tuple[Floats, Floats, Floats]:
        """The logarithm of the integrand and its first two derivatives, at one ``t`` per ray."""
        low, width = self.begin + self.slope * t, self.width * t
        high, middle = low + width, low + width / 2
        mass = _log_mass(low, width)
        at_low = np.exp(np.minimum(-low * low / 2 - mass, _GREATEST_LOG)) * self.slope / _ROOT_2PI
        at_high = np.exp(np.minimum(-high * high / 2 - mass, _GREATEST_LOG)) * (self.slope + self.width) / _ROOT_2PI
        # The two ends of a thin window cancel; it is its width times the density in its middle.
        thin = _is_thin(middle, width)
        drift = self.slope + self.width / 2
        first = np.where(thin, 1 / t - drift * middle, at_high - at_low)
        second = at_low * self.slope * low - at_high * (self.slope + self.width) * high - (at_high - at_low) ** 2
        second = np.where(thin, -1 / t**2 - drift**2, np.minimum(second, 0.0))
        away = t - self.centre
        return (
            np.log(t) - self.precision * away**2 / 2 + mass,
            1 / t - self.precision * away + first,
            -1 / t**2 - self.precision + second,
        )


_ROOT_2PI: Final = math.sqrt(2 * math.pi)
_ROOT_2: Final = math.sqrt(2)
_GREATEST_LOG: Final = 100.0
_LEAST_LOG: Final = -700.0


def _is_thin(middle: Floats, width: Floats) -> NDArray[np.bool_]:
    return (width < 1e-4) & (width * np.abs(middle) < 0.1)


def _log_mass(low: Floats, width: Floats) -> Floats:
    """Logarithm of the normal mass between ``low`` and ``low + width``, for far tails and for thin windows, too."""
    # By symmetry the window lies below zero or holds zero.
    low = np.where(2 * low + width > 0, -(low + width), low)
    high = low + width
    answer = np.empty(low.shape)
    thin = _is_thin(low + width / 2, width)
    # Below zero all is relative to the density at the upper end.
    tail = (high < 0) & ~thin
    nearer, across = high[tail], width[tail]
    fall = np.exp(-np.minimum(across * (across / 2 - nearer), -_LEAST_LOG))
    near, far = special.erfcx(-nearer / _ROOT_2), special.erfcx((across - nearer) / _ROOT_2)
    answer[tail] = np.log((near - fall * far) / 2) - nearer * nearer / 2
    middle = ~(tail | thin)
    answer[middle] = np.log(special.ndtr(high[middle]) - special.ndtr(low[middle]))
    if thin.any():
        across, centre = width[thin], low[thin] + width[thin] / 2
        bent = (centre * across / 2) ** 2
        series = np.log1p(bent / 6 + bent * bent / 120) - centre * centre / 2 - across * across / 24
        answer[thin] = np.log(np.maximum(across / _ROOT_2PI, 1e-300)) + series
    return answer


def _rays(line: _Line, window: _Window, rows: NDArray[np.intp], ratio: Floats) -> tuple[_Ray, Floats]:
    """The rays of some groups at some ratios, and what their integrands leave out: a constant, as a logarithm."""
    n, vn, d, vd, third, slope, within = (getattr(line, name)[rows] for name in _Line.__slots__)
    precision = 1 / vd + ratio**2 / vn
    centre = (d / vd + ratio * n / vn) / precision
    constant = -((n - ratio * d) ** 2) / (vn + ratio**2 * vd) / 2
    least, greatest = window(rows, ratio)
    scale = np.where(within > 0, within, 1.0) ** -0.5
    return _Ray(
        precision, centre, -third * scale, (least - slope * ratio) * scale, (greatest - least) * scale
    ), constant


def _integrals(ray: _Ray) -> tuple[Floats, Floats]:
    """Logarithm of the integral along each ray, and the mean of t under it."""
    spread = 1 / np.sqrt(ray.precision)
    first = np.maximum(ray.centre - _OPEN * spread, _LEAST_DENOMINATOR)
    last = np.maximum(ray.centre, _LEAST_DENOMINATOR) + _OPEN * spread
    lows = np.maximum(ray.begin + ray.slope * first, ray.begin + ray.slope * last)
    end = ray.slope + ray.width
    highs = np.minimum(ray.begin + end * first, ray.begin + end * last)
    is_open = (lows < -_OPEN) & (highs > _OPEN)
    log, mean = np.empty(is_open.shape), np.empty(is_open.shape)
    log[is_open], mean[is_open] = _without_window(ray.take(is_open))
    windowed = np.flatnonzero(~is_open)
    for start in range(0, windowed.size, _RAYS):
        some = windowed[start : start + _RAYS]
        log[some], mean[some] = _with_window(ray.take(some))
    return log, mean


def _without_window(ray: _Ray) -> tuple[Floats, Floats]:
    """`_integrals` in closed form where W is 1: partial moments of a normal above 1."""
    root = np.sqrt(ray.precision)
    start = (_LEAST_DENOMINATOR - ray.centre) * root
    # Moments of (t - 1) over the density at 1 if the centre lies below 1, and over the mode's density otherwise.
    scale = np.where(start > 0, 0.0, -start * start / 2)
    edge = np.exp(scale)
    mass = np.where(
        start > 0,
        math.sqrt(math.pi / 2) * special.erfcx(np.maximum(start, 0.0) / _ROOT_2),
        _ROOT_2PI * special.ndtr(-start),
    )
    # Integrals of x^k exp(-x^2/2) above `start`, with x = (t - centre) root and t = 1 + (x - start) / root.
    one = np.where(start > 0, _above(start, mass), edge - start * mass)
    two = np.maximum(mass - start * one, 0.0)
    zeroth = mass
    first = zeroth + one / root
    second = zeroth + 2 * one / root + two / root**2
    log = np.log(first / root) - np.where(start > 0, start * start / 2, 0.0)
    return log, second / first


def _above(start: Floats, mass: Floats) -> Floats:
    """``1 - start * mass`` of a Mills ratio ``mass``, by its series where the difference would cancel."""
    far = np.maximum(start, 50.0) ** -2
    return np.where(start > 50.0, far * (1 + far * (-3 + far * (15 - far * 105))), 1 - start * mass)


def _with_window(ray: _Ray) -> tuple[Floats, Floats]:
    """`_integrals` by quadrature between the points where the log-concave integrand has vanished."""
    mode = _mode(ray)
    top, slope, curvature = ray.slopes(mode)
    left, right = (_vanishing(ray, mode, top, slope, curvature, side) for side in (-1.0, 1.0))
    x, w = _INNER
    rows = np.repeat(np.arange(mode.size), 2)
    low = np.stack([left, mode], axis=1).ravel()
    high = np.stack([mode, right], axis=1).ravel()
    zeroth, first = np.zeros(mode.size), np.zeros(mode.size)
    # Far from the peak of the ratio's density the logarithm is a difference of huge terms; nothing there is needed.
    away = ray.precision * (mode - ray.centre) ** 2
    places = np.abs(ray.begin) + np.abs(ray.centre) * np.sqrt(ray.precision) + away + np.abs(top)
    tolerance = (right - left) * (_INNER_TOLERANCE + _ROUNDING * places)
    while rows.size:
        half = (high - low) / 2
        t = (low + high)[:, None] / 2 + half[:, None] * x
        value = np.exp(ray.take(rows).log(t) - top[rows][:, None])
        rough = np.abs(value @ _INNER_TAIL).max(axis=1) * half > tolerance[rows]
        rough &= np.bincount(rows, rough)[rows] <= _ROUGH_PANELS
        done = ~rough
        np.add.at(zeroth, rows[done], half[done] * (value[done] @ w))
        np.add.at(first, rows[done], half[done] * ((value[done] * t[done]) @ w))
        middle = (low + high)[rough] / 2
        low, high = np.concatenate([low[rough], middle]), np.concatenate([middle, high[rough]])
        rows = np.tile(rows[rough], 2)
    with np.errstate(divide="ignore"):
        return top + np.log(zeroth), np.divide(first, zeroth, out=mode.copy(), where=zeroth > 0)


def _laplace(ray: _Ray) -> Floats:
    """Logarithm of the integral along each ray by Laplace's approximation: within a few units wherever it is tried."""
    log, slope, curvature = ray.slopes(_mode(ray))
    falling = np.maximum(-slope, 0.0)
    return log - np.log((falling + np.sqrt(falling**2 - curvature * (8 / math.pi))) / 2)


def _mode(ray: _Ray) -> Floats:
    """Where the integrand is largest on [1, infinity): Newton's method within brackets."""
    spread = 1 / np.sqrt(ray.precision)
    low = np.full(spread.shape, _LEAST_DENOMINATOR)
    high = np.maximum(ray.centre, _LEAST_DENOMINATOR) + spread
    for _ in range(_BRACKETINGS):
        rising = ray.slopes(high)[1] > 0
        if not rising.any():
            break
        high = np.where(rising, high + 4 * (high - low), high)
    t = np.clip(ray.centre, low, high)
    at_edge = ray.slopes(low)[1] <= 0
    for _ in range(2 * _BRACKETINGS):
        _, first, second = ray.slopes(t)
        low, high = np.where(first > 0, t, low), np.where(first <= 0, t, high)
        after = t - first / second
        after = np.where((after > low) & (after < high), after, (low + high) / 2)
        moved = np.abs(after - t) * np.sqrt(-second)
        t = np.where(at_edge, _LEAST_DENOMINATOR, after)
        if (at_edge | (moved < 1e-3)).all():
            break
    return t


def _vanishing(ray: _Ray, mode: Floats, top: Floats, slope: Floats, curvature: Floats, side: float) -> Floats:
    """A point beyond which the integrand is negligible, on one side of the mode.

    Newton's method for a concave function approaches such a point from outside, so that it may stop at any step.
    """
    outward = np.maximum(-side * slope, 0.0)
    reach = 2 * _DROP / (outward + np.sqrt(outward**2 - 2 * _DROP * curvature))
    t = np.maximum(mode + side * reach, _LEAST_DENOMINATOR)
    for _ in range(4):
        log, first, _ = ray.slopes(t)
        missing = log - top + _DROP
        with np.errstate(divide="ignore", invalid="ignore"):
            step = missing / first
        step = np.where(np.isfinite(step) & (first * side < 0), step, 0.0)
        t = np.maximum(side * np.maximum(side * (t - step), side * mode + reach * 1e-3), _LEAST_DENOMINATOR)
    return t


def _tail(nodes: Floats, keep: int) -> Floats:
    """From values at Gauss-Legendre nodes to the last coefficients of their Legendre series."""
    whole = np.polynomial.legendre.legvander(nodes, nodes.size - 1)
    weights = np.polynomial.legendre.leggauss(nodes.size)[1]
    coefficients = weights[:, None] * whole * (np.arange(nodes.size) + 0.5)
    return coefficients[:, -keep:]


_INNER_TAIL: Final = _tail(_INNER[0], 4)
_OUTER_TAIL: Final = _tail(_OUTER[0], 3)
_OUTER_SERIES: Final = _tail(_OUTER[0], _OUTER[0].size)


def _average(
    line: _Line, window: _Window, bounds: tuple[float, float], kinks: Sequence[float], probabilities: Sequence[float]
) -> Average:
    """Mean and quantiles of a ratio with bounded support, from its density."""

    def density(rows: NDArray[np.intp], ratio: Floats) -> tuple[Floats, Floats]:
        ray, constant = _rays(line, window, rows, ratio)
        log, mean = _integrals(ray)
        return log + constant, mean

    def height(rows: NDArray[np.intp], ratio: Floats) -> Floats:
        ray, constant = _rays(line, window, rows, ratio)
        return _laplace(ray) + constant

    groups = line.numerator.size
    mode, top = _peak(height, groups, bounds)
    rows, low, high = _panels(height, mode, top, bounds, kinks)
    x, w = _OUTER
    tolerance = _TOLERANCE + _ROUNDING * line.size()
    kept: list[tuple[NDArray[np.intp], Floats, Floats, Floats, Floats]] = []
    total = np.zeros(groups)
    while rows.size:
        half = (high - low) / 2
        ratio = (low + high)[:, None] / 2 + half[:, None] * x
        log, mean = density(np.repeat(rows, x.size), ratio.ravel())
        value = np.exp(log.reshape(ratio.shape) - top[rows][:, None])
        mass = half * (value @ w)
        so_far = total + np.bincount(rows, mass, minlength=groups)
        rough = np.abs(value @ _OUTER_TAIL).max(axis=1) * half > tolerance[rows] * so_far[rows]
        rough &= np.bincount(rows, rough)[rows] <= _ROUGH_PANELS
        done = ~rough
        total += np.bincount(rows[done], mass[done], minlength=groups)
        kept.append((rows[done], low[done], high[done], value[done], mean.reshape(ratio.shape)[done]))
        middle = (low + high)[rough] / 2
        low, high = np.concatenate([low[rough], middle]), np.concatenate([middle, high[rough]])
        rows = np.tile(rows[rough], 2)
    rows, low, high, value, mean = (np.concatenate(some) for some in zip(*kept, strict=True))
    half = (high - low) / 2
    ratio = (low + high)[:, None] / 2 + half[:, None] * x

    def expected(of: Floats) -> Floats:
        return np.bincount(rows, half * ((value * of) @ w), minlength=groups) / total

    found = _quantiles(rows, low, high, value, total, probabilities)
    return Average(expected(ratio), found, expected(ratio * mean), expected(mean))


_Height = Callable[[NDArray[np.intp], Floats], Floats]
"""From groups and ratios to the logarithm of the density, nearly: good enough to find where it is."""

_GOLDEN: Final = (math.sqrt(5) - 1) / 2
_NEAR: Final = 2.7e-7
"""How near to the mode the search comes; panels are laid out from there, and halved where they must be."""


def _peak(height: _Height, groups: int, bounds: tuple[float, float]) -> tuple[Floats, Floats]:
    """The most probable ratio of each group by golden-section search, and the logarithm of the density there."""
    rows = np.arange(groups)
    low, high = (np.full(groups, bound) for bound in bounds)
    lower, upper = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_lower, at_upper = height(rows, lower), height(rows, upper)
    for _ in range(math.ceil(math.log(_NEAR / (bounds[1] - bounds[0])) / math.log(_GOLDEN))):
        left = at_lower >= at_upper
        low, high = np.where(left, low, lower), np.where(left, upper, high)
        new = np.where(left, high - _GOLDEN * (high - low), low + _GOLDEN * (high - low))
        at_new = height(rows, new)
        lower, upper, at_lower, at_upper = (
            np.where(left, new, upper),
            np.where(left, lower, new),
            np.where(left, at_new, at_upper),
            np.where(left, at_lower, at_new),
        )
    return np.where(at_lower >= at_upper, lower, upper), np.maximum(at_lower, at_upper)


def _panels(
    height: _Height, mode: Floats, top: Floats, bounds: tuple[float, float], kinks: Sequence[float]
) -> tuple[NDArray[np.intp], Floats, Floats]:
    """Panels to begin with, geometric about the mode and split at kinks: of each the group and both ends."""
    groups = mode.size
    steps = (bounds[1] - bounds[0]) * 3.0 ** np.arange(0.0, -26.0, -1.0)
    every = np.arange(groups)
    lows, highs, owners = [], [], []
    for side in (-1.0, 1.0):
        points = np.clip(mode[:, None] + side * steps, *bounds)
        # At a bound the window may have no width, and so the density no logarithm.
        inside = np.clip(points, bounds[0] + 1e-14 * steps[0], bounds[1] - 1e-14 * steps[0])
        log = height(np.repeat(every, steps.size), inside.ravel()).reshape(points.shape) - top[:, None]
        # A point where the density is almost that of the mode bounds the panel next to the mode.
        flat = log > -0.05
        nearest = np.where(flat.any(axis=1), np.argmax(flat, axis=1), steps.size)
        ends = np.concatenate([points, mode[:, None]], axis=1)
        fall = np.concatenate([log, np.zeros((groups, 1))], axis=1)
        for place in range(steps.size):
            inner = np.where(nearest == place, steps.size, place + 1)
            pair = np.sort(np.stack([ends[:, place], ends[every, inner]]), axis=0)
            some = (place <= nearest) & (fall[every, inner] > -_DROP - 10) & (pair[1] > pair[0])
            owners.append(every[some])
            lows.append(pair[0][some])
            highs.append(pair[1][some])
    rows, low, high = np.concatenate(owners), np.concatenate(lows), np.concatenate(highs)
    for kink in kinks:
        cut = (low < kink) & (high > kink)
        rows = np.concatenate([rows, rows[cut]])
        low, high = (
            np.concatenate([low, np.full(int(cut.sum()), kink)]),
            np.concatenate([np.where(cut, kink, high), high[cut]]),
        )
    return rows, low, high


def _quantiles(
    rows: NDArray[np.intp], low: Floats, high: Floats, value: Floats, total: Floats, probabilities: Sequence[float]
) -> Floats:
    """Quantiles from the values of a density at the nodes of panels: the panel first, then the place within."""
    order = np.lexsort((low, rows))
    rows, low, high, value = rows[order], low[order], high[order], value[order]
    half = (high - low) / 2
    series = value @ _OUTER_SERIES
    # The integral of P_0 is x + 1, that of P_k is (P_{k+1} - P_{k-1}) / (2k + 1).
    size = series.shape[1]
    primitive = np.zeros((rows.size, size + 1))
    primitive[:, 0] = series[:, 0]
    odd = 2 * np.arange(size) + 1
    primitive[:, 1:] += series / odd
    primitive[:, : size - 1] -= series[:, 1:] / odd[1:]
    mass = 2 * half * series[:, 0]
    starts = np.searchsorted(rows, np.arange(total.size))
    below = np.cumsum(mass) - mass
    below -= below[starts][rows]
    answers = np.empty((total.size, len(probabilities)))
    for column, probability in enumerate(probabilities):
        target = probability * total
        # Of each group the last panel that begins below the target.
        place = np.bincount(rows, below <= target[rows], minlength=total.size).astype(np.intp) - 1 + starts
        missing = (target - below[place]) / half[place]
        left, right = -np.ones(total.size), np.ones(total.size)
        chosen = primitive[place].T
        for _ in range(52):
            middle = (left + right) / 2
            short = np.polynomial.legendre.legval(middle, chosen, tensor=False) < missing
            left, right = np.where(short, middle, left), np.where(short, right, middle)
        answers[:, column] = (low + high)[place] / 2 + half[place] * (left + right) / 2
    return answers
