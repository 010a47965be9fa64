"""Written measurements of TopDown less exact answers follow the law their variance states.

By geolevel, query and share the noise of all units and answers is pooled over seeded runs and compared with the
exact probabilities of the discrete Gaussian by a chi-square test. About 60 tests, each alarming falsely with 1e-9:
below 1e-6. The seeds are fixed. Every test takes a part of the runs, and all of them where it is
thorough.
"""

from collections import defaultdict
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chi2
from topdown_worlds import LEVELS, configuration, make_world, write_configuration, write_world

from yupana.confidential.request import RunRequest
from yupana.confidential.topdown.world import open_world
from yupana.privacy.entropy import SeededEntropy
from yupana.privacy.laws import DiscreteGaussian
from yupana.progress import Stopwatch
from yupana.topdown.budget import spend
from yupana.topdown.descent.measurements import Door
from yupana.topdown.reading.configuration import read_configuration

pytestmark = pytest.mark.quality

FALSE_ALARM = 1e-9


@pytest.mark.parametrize(
    ("kind", "runs"),
    [("conventional", 100), ("optimized", 50)]
    + [pytest.param(kind, 200, marks=pytest.mark.thorough) for kind in ("conventional", "optimized")],
)
def test_the_noise_has_the_law_of_its_share(tmp_path: Path, kind: str, runs: int) -> None:
    shape = (3, 2)
    world = write_world(make_world(2, shape), tmp_path / "data")
    document = configuration(shape, rho="3", spine={"kind": kind})
    found = read_configuration(write_configuration(document, tmp_path / "config.json"))
    opened = open_world(found, world, RunRequest(), Stopwatch(lambda _: None))
    spending = spend(found, opened.spine)
    noise: dict[tuple[int, int, int], list[np.ndarray]] = defaultdict(list)
    for run in range(runs):
        door = Door(opened.exact.levels, spending, SeededEntropy(run))
        for level, spent in enumerate(spending.levels):
            units = len(spent.share_of)
            dense = opened.exact.levels[level].part(0, units).dense(0, units, found.schema.cells)
            for q, (query, values) in enumerate(zip(spent.queries, door.measure_all(level, 0, units), strict=True)):
                exact = np.stack([dense[:, query.answers() == a].sum(axis=1) for a in range(query.size)], axis=1)
                for share in spent.measurements:
                    noise[level, q, share].append((values - exact)[spent.share_of == share].ravel())
    shares = {(level, share) for level, _, share in noise}
    assert len(shares) > len(LEVELS) if kind == "optimized" else len(shares) == len(LEVELS)
    for (level, q, share), drawn in noise.items():
        part = found.measured(LEVELS[level])[q][1]
        sigma2 = 1 / (Fraction(3) * opened.spine.shares[share] * part)
        follows(np.concatenate(drawn), sigma2)


def follows(drawn: np.ndarray, sigma2: Fraction) -> None:
    reach = int(3 * float(sigma2) ** 0.5) + 1
    k = np.arange(-60 * reach, 60 * reach + 1)
    weight = np.exp(-(k.astype(float) ** 2) / (2 * float(sigma2)))
    weight /= weight.sum()
    inner = np.abs(k) < reach
    expected = np.concatenate([[weight[k <= -reach].sum()], weight[inner], [weight[k >= reach].sum()]]) * len(drawn)
    clipped = np.clip(drawn, -reach, reach) + reach
    observed = np.bincount(clipped, minlength=2 * reach + 1).astype(float)
    # Cells with few expected are joined to their neighbour towards the middle.
    keep = expected >= 5
    observed = np.append(observed[keep], observed[~keep].sum())
    expected = np.append(expected[keep], expected[~keep].sum())
    if expected[-1] < 5:
        observed = np.append(observed[:-2], observed[-2:].sum())
        expected = np.append(expected[:-2], expected[-2:].sum())
    statistic = float(((observed - expected) ** 2 / expected).sum())
    assert chi2.sf(statistic, len(expected) - 1) > FALSE_ALARM
    assert DiscreteGaussian(sigma2).sigma2 == sigma2
