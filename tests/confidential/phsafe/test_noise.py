"""The noise of PHSafe, table by table: its law is the plan's, and broken mechanisms are noticed.

All noise is seeded, so the verdict is the same every time. The bounds are those of a test that would alarm falsely with
probability 1e-6 per measurement if it were not.
"""

import operator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from yupana.arrays import Ints
from yupana.confidential.described.phsafe import PhsafeCounter
from yupana.confidential.request import RunRequest
from yupana.plan.measurement import Measurement, Mechanism
from yupana.plan.plan import Plan
from yupana.privacy.entropy import SeededEntropy
from yupana.privacy.laws import Zero
from yupana.products.census import observed_margin
from yupana.products.described.criteria import MeasurementErrors
from yupana.products.phsafe.configuration import TAUS, PhsafeConfig, budgets
from yupana.products.phsafe.errors import summarize
from yupana.products.phsafe.product import PHSAFE
from yupana.products.phsafe.specification import LEVELS
from yupana.synthetic.census import synthesize

pytestmark = pytest.mark.quality

P = 1e-6
TRIALS = 100
FEWER = 50
"""Trials where a case needs no more."""


@pytest.fixture(scope="module")
def census(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("census") / "data"
    synthesize(out, households=300, states=("02", "56"), seed=5)
    return out


@pytest.fixture(scope="module")
def sound(census: Path) -> list[MeasurementErrors]:
    return errors(census, PHSAFE.plan(config(Mechanism.ZCDP)), Mechanism.ZCDP)


def config(mechanism: Mechanism, factor: Fraction = Fraction(1)) -> PhsafeConfig:
    rho = {key: budget * factor for key, budget in budgets(puerto_rico=False).items()}
    return PhsafeConfig.of(rho, TAUS, ("02", "56"), mechanism)


def errors(
    census: Path, plan: Plan, mechanism: Mechanism, factor: Fraction = Fraction(1), *, trials: int = TRIALS
) -> list[MeasurementErrors]:
    request = RunRequest(entropy=SeededEntropy(8))
    return list(PhsafeCounter(config(mechanism, factor), request).observe(plan, census, trials).errors)


def test_every_measurement_has_the_variance_of_its_plan(sound: list[MeasurementErrors]) -> None:
    assert_variances(PHSAFE.plan(config(Mechanism.ZCDP)), sound)


@pytest.mark.parametrize(
    ("mechanism", "accounting", "factor", "trials"),
    [
        pytest.param(Mechanism.ZCDP, "tight", Fraction(1), TRIALS, marks=pytest.mark.thorough),
        # 60 times the budgets, so that the noise is neither all zero nor very wide.
        (Mechanism.PURE, "tight", Fraction(60), FEWER),
    ],
)
def test_every_measurement_has_the_variance_of_another_plan(
    census: Path, mechanism: Mechanism, accounting: str, factor: Fraction, trials: int
) -> None:
    plan = PHSAFE.plan(config(mechanism, factor), accounting=accounting)
    assert_variances(plan, errors(census, plan, mechanism, factor, trials=trials))


def noise_of(m: Measurement, seen: list[MeasurementErrors]) -> Ints:
    return np.concatenate([e.noise.ravel() for e in seen if e.measurement.name == m.name])


def assert_variances(plan: Plan, seen: list[MeasurementErrors]) -> None:
    squares, spreads = [], []
    for m in plan.measurements:
        noise = noise_of(m, seen)
        assert abs(noise.mean()) < -stats.norm.ppf(P / 2) * m.sigma / noise.size**0.5
        ratios = noise.astype(float) ** 2 / float(m.variance)
        spread = kurtosis(m) - 1
        assert abs(ratios.mean() - 1) < -stats.norm.ppf(P / 2) * (spread / noise.size) ** 0.5 * 1.3, m.name
        squares.append(ratios)
        spreads.append(spread * noise.size)
    # Of one cell there are few draws; all together tell a fault that every measurement has.
    size = sum(map(len, squares))
    assert abs(np.concatenate(squares).mean() - 1) < -stats.norm.ppf(P / 2) * sum(spreads) ** 0.5 / size * 1.3


def kurtosis(m: Measurement) -> float:
    assert not isinstance(m.law, Zero)
    k = np.arange(-int(25 * m.sigma) - 60, int(25 * m.sigma) + 61.0)  # beyond there is less than 1e-10 of it
    weights = np.exp(-float(m.law.exponent) * np.abs(k) ** m.law.curvature)
    return float((k**4 * weights).sum() / weights.sum() / float(m.variance) ** 2)


def test_noise_follows_the_exact_probabilities_of_each_law(sound: list[MeasurementErrors]) -> None:
    plan = PHSAFE.plan(config(Mechanism.ZCDP))
    for m in plan.measurements:
        noise = noise_of(m, sound)
        edges = [m.law.quantile(p) for p in np.linspace(0.1, 0.9, 9)]
        due = np.diff([0.0, *(m.law.cdf(edge) for edge in edges), 1.0]) * noise.size
        seen = np.bincount(np.searchsorted(edges, noise, side="left"), minlength=10)
        assert stats.chisquare(seen, due).pvalue > P, m.name


def test_noise_of_different_cells_is_independent(sound: list[MeasurementErrors]) -> None:
    columns = np.concatenate([e.noise.reshape(TRIALS, -1) / e.measurement.sigma for e in sound], axis=1)
    correlation = np.corrcoef(columns.T)[np.triu_indices(columns.shape[1], 1)] * TRIALS**0.5
    assert np.abs(correlation).max() < -stats.norm.ppf(P / correlation.size / 2) * 1.2


def test_derived_tables_repeat_the_noise_of_their_source(sound: list[MeasurementErrors]) -> None:
    plan = PHSAFE.plan(config(Mechanism.ZCDP))
    rows = {(row.table, row.level, row.iteration, row.cell): row for row in summarize(plan, sound)}
    numbers = operator.attrgetter("count", "expected_moe", "experimental_moe", "bias_from_truncation", "coverage")
    by_name = {e.measurement.name: e for e in sound}
    for level, code in (("usa_*", "*"), ("state_A-G", "C")):
        assert numbers(rows["PH5_num", level, code, 2]) == numbers(rows["PH4", level, code, 2])
        of = by_name[f"PH7/{level}"]
        noise = of.noise[of.group == LEVELS[level].groups.index(code)]
        cells = [place for place, label in enumerate(of.labels) if label in {"2", "3"}]
        both = noise[:, cells].sum(axis=1)
        assert rows["PH8_num", level, code, 2].experimental_moe == observed_margin(both, 0.9)


def test_experimental_margins_agree_with_expected_ones(sound: list[MeasurementErrors]) -> None:
    for row in summarize(PHSAFE.plan(config(Mechanism.ZCDP)), sound):
        # A sample quantile of the absolute normal: density 0.206 at 1.645 sigma.
        spread = (0.1 * 0.9 / row.count) ** 0.5 / 0.206 / 1.645
        far = -stats.norm.ppf(P / 2)
        # Both are whole numbers.
        assert abs(row.experimental_moe - row.expected_moe) < 1 + far * spread * row.expected_moe
        assert row.coverage > 0.9 - far * (0.1 * 0.9 / row.count) ** 0.5


@pytest.mark.parametrize(
    "scale",
    [
        pytest.param(Fraction(10**2, 22**2), id="tau in place of 2 tau + 2"),
        pytest.param(Fraction(1, 2), id="half the variance"),
        pytest.param(Fraction(1, 10**9), id="noise forgotten", marks=pytest.mark.thorough),
    ],
)
def test_too_little_noise_on_one_level_is_noticed(census: Path, scale: Fraction) -> None:
    of_2020 = budgets(puerto_rico=False)
    alone = {key: budget if key == "PH7/state_*" else Fraction(0) for key, budget in of_2020.items()}
    only = PhsafeConfig.of(alone, TAUS, ("02", "56"), Mechanism.ZCDP)
    plan = PHSAFE.plan(only)
    (level,) = plan.measurements
    broken = replace(plan, measurements=(replace(level, calibration=level.calibration * scale),))
    counter = PhsafeCounter(only, RunRequest(entropy=SeededEntropy(8)))
    noise = noise_of(level, list(counter.observe(broken, census, TRIALS).errors))
    ratio = float((noise.astype(float) ** 2).mean() / level.variance)
    assert abs(ratio - 1) > -stats.norm.ppf(P / 2) * (2 / noise.size) ** 0.5 * 1.3
