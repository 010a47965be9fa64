"""How often intervals hold, over draws of the noise: at the stated confidence, with a false alarm below 1e-6 in all."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom
from topdown_worlds import configuration, make_world, write_configuration, write_world

from yupana.confidential.request import RunRequest
from yupana.confidential.topdown.world import open_world
from yupana.privacy.entropy import SeededEntropy
from yupana.progress import Stopwatch, silent
from yupana.topdown.budget import spend
from yupana.topdown.constraints import known_totals
from yupana.topdown.descent.checkpoint import DrawsInMemory
from yupana.topdown.descent.measurements import Door, StoredMeasurements
from yupana.topdown.histogram import sum_to_areas, whole
from yupana.topdown.intervals import ReplicateErrors
from yupana.topdown.reading.configuration import read_configuration
from yupana.topdown.text_rows import variables
from yupana.topdown.tree.intervals import least_squares_intervals

SHAPE = (3, 2)
NINETY = Fraction(9, 10)
ALARM = 1e-6


def check_share(held: int, number: int, low: float, high: float, tests: int) -> None:
    """Refuse a share that a chance between two numbers would give with less than the alarm, over all tests."""
    assert binom.sf(held - 1, number, high) > ALARM / tests / 2
    assert binom.cdf(held, number, low) > ALARM / tests / 2


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", ["conventional", "aian"])
@pytest.mark.slow
def test_least_squares_hold_as_often_as_stated(tmp_path: Path, kind: str) -> None:
    """Of totals and cells of areas that are units of the spine or not; a true 0 is held more often."""
    data = write_world(make_world(6, SHAPE), tmp_path / "data")
    read = read_configuration(write_configuration(configuration(SHAPE, rho="1/5"), tmp_path / "config.json"))
    config = read.on_spine(kind)
    world = open_world(config, data, RunRequest(), Stopwatch(silent))
    spending = spend(config, world.spine)
    assert world.published is not None
    assert world.kept is not None
    areas = world.published.areas(world.spine.blocks)
    sums = sum_to_areas(whole(world.exact.blocks), areas)
    truth = {of.name: (of, sums[of.name]) for of in areas}
    known = known_totals(world.kept, world.exact.blocks)
    member = np.stack([np.zeros(6, dtype=np.int64), 1 + np.arange(6)], axis=1)
    asked = [(name, area, variable) for name in ("county", "place", "block") for area in (0, 1) for variable in (0, 3)]
    values = {name: variables(truth[name][1].part(0, 2), member, 7) for name, *_ in asked}
    held = np.zeros(len(asked), dtype=np.int64)
    draws = 150
    for draw in range(draws):
        stored = StoredMeasurements(spending.levels, DrawsInMemory())
        for _ in stored.draw(Door(world.exact.levels, spending, SeededEntropy(draw))):
            pass
        found = least_squares_intervals(stored, world.spine, config.schema, known, areas, NINETY)
        bounds = {name: found.of_table(truth[name][0], member, 7, 0, 2) for name in values}
        for place, (name, area, variable) in enumerate(asked):
            true = values[name][area, variable]
            held[place] += bounds[name].lower[area, variable] <= true <= bounds[name].upper[area, variable]
    for times, (name, area, variable) in zip(held.tolist(), asked, strict=True):
        is_zero = values[name][area, variable] == 0
        # Noise is whole numbers, so the chance of a lone block is not exactly that of the normal law.
        check_share(times, draws, 0.93 if is_zero else 0.87, 0.97 if is_zero else 0.93, 2 * len(asked))


def test_monte_carlo_holds_at_least_as_often_where_replicates_err_as_the_release_does() -> None:
    draw = np.random.default_rng(7)
    number, truth = 20_000, 400
    published = truth + np.round(draw.normal(0, 6, number)).astype(np.int64)
    errors = ReplicateErrors.none((number,))
    for _ in range(25):
        errors.add(np.round(draw.normal(0, 6, number)).astype(np.int64))
    bounds = errors.bounds(published, NINETY)
    held = int(((bounds.lower <= truth) & (truth <= bounds.upper)).sum())
    check_share(held, number, 0.94, 0.98, 1)
