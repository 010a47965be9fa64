"""Runs on synthetic data compared with the truth: how accurate a configuration is. Confidential by construction."""

import tempfile
from dataclasses import replace
from pathlib import Path

from yupana.confidential.request import RunRequest
from yupana.confidential.topdown.accuracy import AccuracyRow, accuracy, area_sets
from yupana.confidential.topdown.estimate import check_run, estimate
from yupana.confidential.topdown.world import open_world
from yupana.plan.ledger import Ledger
from yupana.progress import Stopwatch
from yupana.topdown.budget import spend
from yupana.topdown.checkpoint import Checkpoint
from yupana.topdown.configuration import Configuration
from yupana.topdown.disk import published_areas
from yupana.topdown.queries import Query
from yupana.topdown.query_names import TOTAL, query_named


def trials(configuration: Configuration, data: Path, number: int, request: RunRequest) -> list[AccuracyRow]:
    """Make ``number`` runs and compare them with the truth; whether that is allowed was asked before.

    Raises
    ------
    InputError
        If the records break a rule.
    """
    clock = Stopwatch(request.announce)
    world = open_world(configuration, data, request, clock)
    check_run(configuration, world, request)
    spending = spend(configuration, world.spine)
    released = []
    for trial in range(number):
        with tempfile.TemporaryDirectory(prefix="yupana-") as folder:
            checkpoint = Checkpoint(Path(folder) / "trial")
            checkpoint.begin({})
            of_trial = replace(request, entropy=request.entropy.branch(f"trial {trial}"))
            clock.start(f"trial {trial + 1} of {number}")
            found = estimate(configuration, world, spending, Ledger(spending.plan), checkpoint, of_trial, clock)
        released.append(found.descent.counts[-1])
    clock.start("comparing")
    areas = area_sets(world.spine, published_areas(world.reference, world.spine.blocks))
    rows = accuracy(world.exact[-1], released, _queries(configuration), areas)
    clock.stop()
    return rows


def _queries(configuration: Configuration) -> list[Query]:
    """The total, and what is measured anywhere, once each; by geolevel from the root down."""
    total = query_named(TOTAL, configuration.schema, configuration.recodes)
    named = {query.factors: query for level in configuration.levels for query, _ in configuration.measured(level)}
    return list({total.factors: total, **named}.values())
