"""The posteriors of counts, sums and averages against integration written here, and against the reference's values."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import integrate, special

from yupana.estimate.phsafe import averages, truncated_normal

Numbers = NDArray[np.float64]

# Section 5.2 of the reference: variance, measurement, mean and the ends of the 90 percent interval.
CHECKED = [
    (147.818322, -64, 2.167, 0.1145, 6.3925),
    (147.818322, 0, 9.7007, 0.7624, 23.8294),
    (147.818322, 5, 11.7577, 1.0753, 27.3553),
    (147.818322, 100, 100.0000, 80.0018, 119.9982),
    (1708.774061, -38, 22.3882, 1.4379, 59.8754),
]


def one(value: float) -> Numbers:
    return np.array([value], dtype=np.float64)


@pytest.mark.parametrize(("variance", "measured", "mean", "low", "high"), CHECKED)
def test_checked_values(variance: float, measured: float, mean: float, low: float, high: float) -> None:
    z, v = one(measured), one(variance)
    assert truncated_normal.mean(z, v)[0] == pytest.approx(mean, abs=6e-4)
    assert truncated_normal.quantile(z, v, 0.05)[0] == pytest.approx(low, abs=6e-5)
    assert truncated_normal.quantile(z, v, 0.95)[0] == pytest.approx(high, abs=6e-5)
    assert truncated_normal.quantiles_of_sum(one(measured)[None], one(variance)[None], [0.05, 0.95])[
        0
    ] == pytest.approx([low, high], abs=6e-5)


def log_density(y: Numbers, z: float, s: float) -> Numbers:
    """Relative to the density at the mode of the truncated normal, so that nothing underflows."""
    top = max(z, 0.0)
    return -((y - z) ** 2 - (top - z) ** 2) / (2 * s * s)


def panels(low: float, high: float, edges: list[float], order: int = 20) -> tuple[Numbers, Numbers]:
    """Nodes and weights of Gauss-Legendre panels between sorted edges within an interval."""
    inner = [e for e in edges if low < e < high]
    cuts = np.unique(np.array([low, *inner, high]))
    x, w = np.polynomial.legendre.leggauss(order)
    half = np.diff(cuts) / 2
    return ((cuts[1:] + cuts[:-1])[:, None] / 2 + half[:, None] * x).ravel(), (half[:, None] * w).ravel()


def graded(low: float, high: float, centre: float, spread: float) -> list[float]:
    """Edges that grow geometrically from both ends and linearly about a centre."""
    steps = (high - low) * np.geomspace(1e-10, 1, 34)
    near = centre + spread * np.linspace(-14, 14, 29)
    return [*(low + steps), *(high - steps), *near]


@settings(max_examples=60)
@given(st.floats(-2000, 50), st.floats(-2, 4), st.sampled_from([0.005, 0.05, 0.5, 0.95, 0.999]))
@pytest.mark.slow
def test_one_count_against_integration(deviations: float, log_scale: float, probability: float) -> None:
    s = 10**log_scale
    z = deviations * s
    width = s / max(1.0, -deviations)
    high = max(z, 0.0) + 40 * (s if deviations > -1 else width)
    y, w = panels(0.0, high, graded(0.0, high, max(z, 0.0), width))
    mass = w * np.exp(log_density(y, z, s))
    mean = (mass * y).sum() / mass.sum()
    spread = math.sqrt((mass * (y - mean) ** 2).sum() / mass.sum())
    assert truncated_normal.mean(one(z), one(s * s))[0] == pytest.approx(mean, rel=1e-9)
    assert truncated_normal.deviation(one(z), one(s * s))[0] == pytest.approx(spread, rel=1e-6)
    q = truncated_normal.quantile(one(z), one(s * s), probability)[0]
    y, w = panels(0.0, q, graded(0.0, q, max(z, 0.0), width))
    assert (w * np.exp(log_density(y, z, s))).sum() / mass.sum() == pytest.approx(probability, abs=1e-9)


@pytest.mark.parametrize("deviations", [1e3, 1e5, 1e8])
def test_far_below_zero_the_posterior_is_exponential(deviations: float) -> None:
    # The original divides by a probability that underflows below -8.3 standard deviations.
    z, v = one(-40 * deviations), one(1600)
    scale = 40 / deviations
    assert truncated_normal.mean(z, v)[0] == pytest.approx(scale, rel=3 / deviations**2 + 1e-12)
    for p in (0.05, 0.95):
        assert truncated_normal.quantile(z, v, p)[0] == pytest.approx(
            -scale * math.log1p(-p), rel=10 / deviations**2 + 1e-12
        )


def test_far_above_zero_the_posterior_is_the_normal() -> None:
    z, v = one(3e8), one(1600)
    assert truncated_normal.mean(z, v)[0] == 3e8
    assert truncated_normal.quantile(z, v, 0.95)[0] == pytest.approx(3e8 + 40 * special.ndtri(0.95), rel=1e-15)


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.floats(-60, 14), st.floats(-0.5, 1.5)), min_size=2, max_size=2),
    st.sampled_from([0.001, 0.05, 0.5, 0.95]),
)
@pytest.mark.slow
def test_a_sum_of_two_counts_against_integration(terms: list[tuple[float, float]], probability: float) -> None:
    (d1, l1), (d2, l2) = terms
    s1, s2 = 10**l1, 10**l2
    z1, z2 = d1 * s1, d2 * s2
    q = truncated_normal.quantiles_of_sum(np.array([[z1, z2]]), np.array([[s1**2, s2**2]]), [probability])[0, 0]
    spread = s1 / max(1.0, -d1)
    edges = [*graded(0.0, q, max(z1, 0.0), spread), *(q - np.array(graded(0.0, q, max(z2, 0), s2 / max(1.0, -d2))))]
    y, w = panels(0.0, q, sorted(edges))
    survival = special.log_ndtr((z2 - (q - y)) / s2) - special.log_ndtr(z2 / s2)
    log = log_density(y, z1, s1) - math.log(s1 * math.sqrt(2 * math.pi)) - special.log_ndtr(d1)
    log -= (max(z1, 0.0) - z1) ** 2 / (2 * s1 * s1)
    # P(sum <= q) is the integral of the first density times the second distribution function.
    assert (w * np.exp(log) * -np.expm1(survival)).sum() == pytest.approx(probability, abs=1e-8)


def test_sums_of_many_counts_against_a_convolution_on_a_grid() -> None:
    rng = np.random.default_rng(7)
    step, size = 0.05, 2**16
    y = step * (np.arange(size) + 0.5)
    for terms in (3, 7, 16):
        z, s = rng.uniform(-60, 200, terms), rng.uniform(20, 60, terms)
        spectrum = np.ones(size + 1, dtype=complex)
        for a, b in zip(z, s, strict=True):
            mass = np.exp(log_density(y, a, b))
            spectrum *= np.fft.rfft(mass / mass.sum(), 2 * size)
        # The sum of cell midpoints lies `terms` half steps up.
        law = np.fft.irfft(spectrum, 2 * size)
        for probability in (0.05, 0.95):
            q = truncated_normal.quantiles_of_sum(z[None], s[None] ** 2, [probability])[0, 0]
            edges = step * (np.arange(2 * size) + terms / 2 + 0.5)
            assert np.interp(q, edges, np.cumsum(law)) == pytest.approx(probability, abs=1e-6)


def test_a_sum_of_normals_and_one_count_near_zero() -> None:
    z, v = np.array([[1e7, 2e7, -30.0]]), np.array([[400.0, 900.0, 100.0]])
    low, high = truncated_normal.quantiles_of_sum(z, v, [0.05, 0.95])[0] - 3e7
    y, w = panels(0.0, 90.0, graded(0.0, 90.0, 0.0, 3.0))
    mass = w * np.exp(log_density(y, -30.0, 10.0))
    for q, probability in ((low, 0.05), (high, 0.95)):
        assert (mass * special.ndtr((q - y) / math.sqrt(1300))).sum() / mass.sum() == pytest.approx(
            probability, abs=1e-7
        )


class Brute:
    """The posterior of (x + y) / d on a grid of panels in d and the ratio, written in the counts themselves."""

    def __init__(self, z: Numbers, covariance: Numbers, variance: float, bounds: tuple[float, float]) -> None:
        self.z, self.c, self.v, self.bounds = z, covariance, variance, bounds
        sd = math.sqrt(variance)
        high = max(1.0, z[2]) + 14 * sd
        self.d, self.wd = panels(1.0, high, graded(1.0, high, z[2], sd), 12)
        ratio, weights = self.nodes(*bounds)
        log = self.log(ratio)
        self.top = log.max()
        self.mass = np.exp(log - self.top) * self.wd[:, None] * weights
        self.total = self.mass.sum()
        self.mean = (self.mass * ratio).sum() / self.total
        self.denominator = (self.mass * self.d[:, None]).sum() / self.total
        # Given the sum and d, the mean of x is that of a normal truncated to [0, sum].
        n = self.d[:, None] * ratio
        m, s = self.given(n)
        low, high_ = -m / s, (n - m) / s
        shift = (np.exp(-low * low / 2) - np.exp(-high_ * high_ / 2)) / math.sqrt(2 * math.pi)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            x = m + s * shift / (special.ndtr(high_) - special.ndtr(low))
        usable = np.isfinite(x) & (x >= 0) & (x <= n)
        x = np.where(usable, x, 0.0)
        self.first = (self.mass * x / self.d[:, None]).sum() / self.total
        self.is_exact = self.mass[~usable].sum() < 1e-9 * self.total

    def nodes(self, low: float, high: float) -> tuple[Numbers, Numbers]:
        centre = max(self.z[0] + self.z[1], 0.0) / max(self.z[2], 1.0)
        spread = math.sqrt(self.c.sum() + centre**2 * self.v) / max(self.z[2], math.sqrt(self.v))
        return panels(low, high, graded(low, high, centre, spread), 12)

    def given(self, n: Numbers) -> tuple[Numbers, float]:
        share = self.c[0].sum() / self.c.sum()
        within = self.c[0, 0] - share**2 * self.c.sum()
        return self.z[0] + share * (n - self.z[0] - self.z[1]), math.sqrt(within)

    def log(self, ratio: Numbers) -> Numbers:
        n = self.d[:, None] * ratio
        m, s = self.given(n)
        low, high = -m / s, (n - m) / s
        flip = low > 0
        low, high = np.where(flip, -high, low), np.where(flip, -low, high)
        ends = special.log_ndtr(low), special.log_ndtr(high)
        mass = ends[1] + np.log1p(-np.exp(np.minimum(ends[0] - ends[1], -1e-300)))
        away = (n - self.z[0] - self.z[1]) ** 2 / self.c.sum() + (self.d[:, None] - self.z[2]) ** 2 / self.v
        return np.log(self.d)[:, None] - away / 2 + mass

    def below(self, q: float) -> float:
        ratio, weights = self.nodes(self.bounds[0], q)
        return float((np.exp(self.log(ratio) - self.top) * self.wd[:, None] * weights).sum() / self.total)


AVERAGES = [
    (1000.0, 3000.0, 1600.0),
    (30.0, 60.0, 40.0),
    (-100.0, 60.0, 40.0),
    (-400.0, -300.0, -500.0),
    (5000.0, -400.0, 1500.0),
    (10.0, -20.0, 200.0),
    (2000.0, 300.0, 200.0),
    (500.0, 100.0, 400.0),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("correlation", [0.0, -0.3])
@pytest.mark.parametrize("least", [1.0, 2.0])
@pytest.mark.parametrize("z", AVERAGES)
@pytest.mark.slow
def test_averages_against_integration(z: tuple[float, float, float], least: float, correlation: float) -> None:
    v = 1708.774061
    covariance = v * np.array([[1, correlation], [correlation, 1]])
    brute = Brute(np.array(z), covariance, 1709.4, (least, 10.0))
    whole, first, second = averages.parts(
        np.array([z[:2]]), covariance[None], one(z[2]), one(1709.4), (least, 10.0), (0.05, 0.95)
    )
    assert whole.mean[0] == pytest.approx(brute.mean, rel=1e-8)
    assert whole.denominator[0] == pytest.approx(brute.denominator, rel=1e-8)
    for q, probability in zip(whole.quantiles[0], (0.05, 0.95), strict=True):
        assert brute.below(q) == pytest.approx(probability, abs=1e-7)
    assert first.mean[0] + second.mean[0] == pytest.approx(whole.mean[0], rel=1e-7)
    assert first.numerator[0] + second.numerator[0] == pytest.approx(whole.numerator[0], rel=1e-7)
    if brute.is_exact:
        assert first.mean[0] == pytest.approx(brute.first, rel=1e-6)


def part_below(z: Numbers, v: Numbers, q: float, least: float, most: float, d: float) -> float:
    """Density of d, times the mass of x <= q d, y >= 0 and the bounds, by a rule for x given d."""
    s = np.sqrt(v)
    high = q * d
    x, w = panels(0.0, high, [*graded(0.0, high, max(z[0], 0.0), s[0]), least * d], 16)
    low_y, high_y = np.maximum(0.0, least * d - x), np.maximum(most * d - x, 0.0)
    mass = special.ndtr((high_y - z[1]) / s[1]) - special.ndtr((low_y - z[1]) / s[1])
    return float((w * np.exp(-((x - z[0]) ** 2) / (2 * v[0])) * mass).sum() * math.exp(-((d - z[2]) ** 2) / (2 * v[2])))


@pytest.mark.parametrize("z", [(-30.0, 90.0, 60.0), (200.0, 100.0, 150.0)])
@pytest.mark.thorough
def test_the_interval_of_a_part_against_integration(z: tuple[float, float, float]) -> None:
    v = np.array([1708.774061, 1708.774061, 1709.4])
    _, first, second = averages.parts(
        np.array([z[:2]]), np.diag(v[:2])[None], one(z[2]), one(v[2]), (1.0, 10.0), (0.05, 0.95)
    )
    for found, order in ((first, [0, 1, 2]), (second, [1, 0, 2])):
        there = np.array(z)[order]

        def mass(q: float, there: Numbers = there) -> float:
            return float(
                integrate.quad(
                    lambda d: part_below(there, v, q, 1.0, 10.0, d), 1, there[2] + 400, limit=200, epsrel=1e-9
                )[0]
            )

        whole = mass(10.0)
        assert mass(found.quantiles[0, 0]) / whole == pytest.approx(0.05, abs=1e-6)
        assert mass(found.quantiles[0, 1]) / whole == pytest.approx(0.95, abs=1e-6)


@settings(max_examples=10)
@given(st.floats(-30, 60), st.floats(-30, 60), st.floats(0, 3))
@pytest.mark.thorough
def test_a_single_ratio_against_integration(top: float, below: float, log_scale: float) -> None:
    s = 10**log_scale
    n, d, vn, vd = top * s, below * s, 2 * s * s, s * s
    found = averages.single(one(n), one(vn), one(d), one(vd), (1.0, 10.0), (0.05, 0.95))
    centre = max(n, 0.0) / max(d, 1.0)
    spread = math.sqrt(vn + centre**2 * vd) / max(d, s)
    high = max(d, n / 10 * 3, 1.0) + 40 * s
    # Uniform panels everywhere: the bounds of the ratio may pull d far away from its measurement.
    t, wt = panels(1.0, high, [*graded(1.0, high, max(d, 1.0), s), *np.arange(1.0, high, 2 * s)], 12)

    def mass(q: float) -> tuple[float, float]:
        r, w = panels(1.0, q, graded(1.0, 10.0, centre, spread), 12)
        log = np.log(t)[:, None] - (t[:, None] * r - n) ** 2 / (2 * vn) - (t[:, None] - d) ** 2 / (2 * vd)
        value = np.exp(log - reference) * wt[:, None] * w
        return float(value.sum()), float((value * r).sum())

    r, _ = panels(1.0, 10.0, graded(1.0, 10.0, centre, spread), 12)
    reference = (np.log(t)[:, None] - (t[:, None] * r - n) ** 2 / (2 * vn) - (t[:, None] - d) ** 2 / (2 * vd)).max()
    whole, first = mass(10.0)
    assert found.mean[0] == pytest.approx(first / whole, rel=1e-7)
    for q, probability in zip(found.quantiles[0], (0.05, 0.95), strict=True):
        assert mass(q)[0] / whole == pytest.approx(probability, abs=1e-6)


@pytest.mark.parametrize("examples", [6, pytest.param(40, marks=pytest.mark.thorough)])
@pytest.mark.slow
def test_averages_never_leave_their_bounds(examples: int) -> None:
    made = given(
        st.lists(st.floats(-1e4, 1e4) | st.floats(-20, 50), min_size=3, max_size=3),
        st.lists(st.floats(0, 3), min_size=3, max_size=3),
        st.sampled_from([1.0, 2.0]),
    )
    settings(max_examples=examples)(made(_check_bounds))()


def _check_bounds(z: list[float], logs: list[float], least: float) -> None:
    v = 10 ** (2 * np.array(logs))
    z = [each * float(scale) for each, scale in zip(z, np.sqrt(v), strict=True)]
    found = averages.parts(np.array([z[:2]]), np.diag(v[:2])[None], one(z[2]), one(v[2]), (least, 10.0), (0.05, 0.95))
    for each, low in zip(found, (least, 0.0, 0.0), strict=True):
        lower, upper = each.quantiles[0]
        assert low <= lower <= upper <= 10
        assert low <= each.mean[0] <= 10
        assert each.numerator[0] >= 0
        assert each.denominator[0] >= 1
    # Rounding sets the limit where measurements lie millions of standard deviations from what the bounds allow.
    assert found[1].mean[0] + found[2].mean[0] == pytest.approx(found[0].mean[0], rel=1e-3, abs=1e-6)
