"""Intervals of the S-DHC cover 90 percent where the prior does not bind, fitted alone or jointly. Fixed seeds."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from plans import production_plan

from yupana.estimate.phsafe import averages, truncated_normal
from yupana.estimate.phsafe.combine import families, project
from yupana.estimate.phsafe.estimate import Measured
from yupana.privacy.entropy import SeededEntropy
from yupana.privacy.sampler import sample
from yupana.products.phsafe.configuration import TAUS
from yupana.products.phsafe.specification import LEVELS, Group, groups_of, table

pytestmark = pytest.mark.quality

Numbers = NDArray[np.float64]

RELEASES = 12_000
TAILS = (0.05, 0.95)
ONE_POINT = 0.01
SIZES = pytest.mark.parametrize("releases", [RELEASES // 8, pytest.param(RELEASES, marks=pytest.mark.thorough)])


def near(releases: int) -> float:
    """3.65 standard deviations of a share of so many that is 0.9."""
    return ONE_POINT * math.sqrt(RELEASES / releases)


def covered(low: Numbers, high: Numbers, truth: float) -> float:
    return float(((low <= truth) & (truth <= high)).mean())


@SIZES
@pytest.mark.thorough
def test_counts_and_sums_of_counts_cover(releases: int) -> None:
    plan = production_plan(puerto_rico=False)
    m = next(m for m in plan.measurements if m.name == "PH3/state_A-G")
    truth = np.array([80, 100, 150, 3_000])
    # The ends lie between whole numbers: at sigma 12.16 a count is covered if its noise is at most 19.
    exactly = m.law.cdf(19) - m.law.cdf(-20)
    assert exactly == pytest.approx(0.9, abs=ONE_POINT)
    noisy = truth + sample(m.law, 4 * releases, SeededEntropy(11)).reshape(releases, 4)
    variances = np.full((releases, 4), float(m.variance))
    for cell in range(4):
        ends = [truncated_normal.quantile(noisy[:, cell].astype(float), variances[:, cell], p) for p in TAILS]
        assert covered(*ends, truth[cell]) == pytest.approx(exactly, abs=near(releases))
    low, high = truncated_normal.quantiles_of_sum(noisy.astype(float), variances, TAILS).T
    assert covered(low, high, truth.sum()) == pytest.approx(0.9, abs=near(releases))


@SIZES
@pytest.mark.thorough
def test_averages_cover(releases: int) -> None:
    plan = production_plan(puerto_rico=False)
    top, below = (next(m for m in plan.measurements if m.name == f"PH1_{part}/state_A-G") for part in ("num", "denom"))
    truth, households = np.array([1_300, 3_700]), 2_000
    noisy = truth + sample(top.law, 2 * releases, SeededEntropy(12)).reshape(releases, 2)
    denominator = households + sample(below.law, releases, SeededEntropy(13))
    found = averages.parts(
        noisy.astype(float),
        np.broadcast_to(float(top.variance) * np.eye(2), (releases, 2, 2)),
        denominator.astype(float),
        np.full(releases, float(below.variance)),
        (1.0, 10.0),
        TAILS,
    )
    for each, people in zip(found, (truth.sum(), *truth), strict=True):
        assert covered(*each.quantiles.T, people / households) == pytest.approx(0.9, abs=near(releases))


def test_joint_estimates_cover_and_are_narrower() -> None:
    plan = production_plan(puerto_rico=False)
    states, tables = ("06", "50", "56"), ("PH1_num", "PH7", "PH2")
    rng, entropy = np.random.default_rng(14), SeededEntropy(15)
    # People by state, race, tenure and age, then by household type: all cells far above the noise.
    people = rng.integers(2_000, 9_000, size=(3, 7, 3, 2))
    types = rng.multinomial(10**9, np.full(8, 1 / 8), size=3) / 10**9
    listed: dict[str, tuple[Group, ...]] = {}
    truth, noisy, covariances = {}, {}, {}
    for name in tables:
        rows: list[Group] = []
        exact, noise, blocks = [], [], []
        for m in plan.measurements:
            if m.table != name or m.level.endswith("H,I"):
                continue
            for group in groups_of(LEVELS[m.level], states):
                some = people if group.region_type == "USA" else people[[states.index(group.region_id)]]
                some = some if group.iteration == "*" else some[:, ["ABCDEFG".index(group.iteration)]]
                if name == "PH2":
                    weight = types if group.region_type == "USA" else types[[states.index(group.region_id)]]
                    cells = (some.sum(axis=(1, 2, 3))[:, None] * weight).sum(axis=0)
                else:
                    cells = some.sum(axis=(0, 1, 2) if name == "PH1_num" else (0, 1, 3)).astype(float)
                rows.append(group)
                exact.append(cells)
                noise.append(sample(m.law, cells.size * 500, entropy).reshape(cells.size, 500))
                blocks.append(float(m.variance) * np.eye(cells.size))
        assert exact[0].size == len(table(name).cells)
        listed[name], truth[name] = tuple(rows), np.stack(exact)
        noisy[name], covariances[name] = np.stack(exact)[:, :, None] + np.stack(noise), np.stack(blocks)
    manifest = {"parameters": {"tau": dict(TAUS), "states": list(states)}}
    (family,) = families(Measured(manifest, listed, truth, covariances))[0]
    row = np.concatenate([noisy[name].reshape(-1, 500) for name in tables])
    variances = family.row({name: np.diagonal(covariances[name], axis1=1, axis2=2) for name in tables})
    found = project(row, variances, family.identities)
    gained = []
    for name in tables:
        after = np.diagonal(found.covariances(family.places[name]), axis1=1, axis2=2)
        values = found.values[family.places[name]]
        half = 1.6448536 * np.sqrt(after)[:, :, None]
        inside = np.abs(values - truth[name][:, :, None]) <= half
        assert inside.mean() == pytest.approx(0.9, abs=ONE_POINT)
        gained.append(np.sqrt(after / np.diagonal(covariances[name], axis1=1, axis2=2)).min())
    assert max(gained) < 0.98
