"""Replicates of a release: runs on its counts, which keep what it keeps."""

from pathlib import Path

import numpy as np
import pytest
from topdown_worlds import configuration, make_world, write_configuration, write_world

from yupana.confidential.request import RunRequest
from yupana.confidential.topdown.estimate import estimate
from yupana.confidential.topdown.world import World as Opened
from yupana.confidential.topdown.world import open_world
from yupana.plan.ledger import Ledger
from yupana.privacy.entropy import SeededEntropy, SystemEntropy
from yupana.progress import Stopwatch, silent
from yupana.topdown import Estimator
from yupana.topdown.budget import spend
from yupana.topdown.configuration import Configuration
from yupana.topdown.descent.checkpoint import unkept
from yupana.topdown.histogram import Histogram, whole
from yupana.topdown.intervals import ReleasedCounts, replicates
from yupana.topdown.reading.configuration import read_configuration

SHAPE = (8, 2)
ZERO = 7
"""The cell of a structural zero."""
ESTIMATORS: tuple[Estimator, ...] = ("topdown", "full-information")


def opened(folder: Path, rho: str) -> tuple[Configuration, Opened]:
    world = make_world(2, SHAPE, quarters=True)
    world.counts = {(block, cell): count for (block, cell), count in world.counts.items() if cell != ZERO}
    data = write_world(world, folder / "data", quarters=True)
    constraints = {"group_quarters": "a0", "structural_zeros": [{"a0": 3, "a1": 1}]}
    document = configuration(SHAPE, rho=rho, invariants={"County": ["total"]}, constraints=constraints)
    found = read_configuration(write_configuration(document, folder / "config.json"))
    return found, open_world(found, data, RunRequest(), Stopwatch(silent))


def same(one: Histogram, other: Histogram) -> bool:
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in ("starts", "cells", "counts"))


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.slow
def test_a_replicate_is_a_run_on_the_published_counts(tmp_path: Path, estimator: Estimator) -> None:
    found, world = opened(tmp_path, "1/2")
    counts = whole(world.exact.blocks)  # taken as published: what was run on is then what is run on again
    request = RunRequest(estimator=estimator, entropy=SeededEntropy(3).branch("replicate 1"))
    spending = spend(found, world.spine)
    ledger = Ledger(spending.plan)
    run = estimate(found, world, spending, ledger, unkept(estimator), request, Stopwatch(silent)).descent
    published = ReleasedCounts(found, world.spine, world.facilities, estimator, counts)
    first, second = replicates(published, 2, SeededEntropy(3))
    assert same(second, whole(run.counts[-1]))
    assert not same(first, second)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.slow
def test_replicates_keep_what_a_release_keeps(tmp_path: Path, estimator: Estimator) -> None:
    found, world = opened(tmp_path, "1/100")
    counts = whole(world.exact.blocks)
    county = world.spine.blocks // 10**11
    for replicate in replicates(
        ReleasedCounts(found, world.spine, world.facilities, estimator, counts), 3, SystemEntropy()
    ):
        assert not same(replicate, counts)
        for one in np.unique(county):
            assert replicate.totals()[county == one].sum() == counts.totals()[county == one].sum()
        dense = replicate.dense(0, replicate.units, 16)
        assert not dense[:, ZERO].any()
        assert world.facilities is not None
        groups = dense.reshape(-1, 8, 2).sum(axis=2)
        assert (groups[:, 1:] >= world.facilities[:, 1:]).all()
        assert not groups[world.facilities == 0].any()


def test_without_noise_every_replicate_is_the_release(tmp_path: Path) -> None:
    found, world = opened(tmp_path, "inf")
    published = ReleasedCounts(found, world.spine, world.facilities, "topdown", whole(world.exact.blocks))
    assert all(same(replicate, published.counts) for replicate in replicates(published, 2, SystemEntropy()))
