"""Runs on synthetic data compared with the truth: how accurate a configuration is. Confidential by construction."""

import tempfile
from collections.abc import Callable
from pathlib import Path

import yupana
from yupana.confidential.request import check_accuracy_allowed
from yupana.confidential.topdown.accuracy import AccuracyRow, accuracy, area_sets, write_accuracy
from yupana.confidential.topdown.estimate import Options, Progress, check_run, estimate
from yupana.confidential.topdown.world import open_world
from yupana.privacy.entropy import Entropy
from yupana.products.topdown.outputs import describe_files
from yupana.progress import Stopwatch
from yupana.release.folder import new_folder, write_manifest
from yupana.release.status import CONFIDENTIAL, NOT_FOR_RELEASE
from yupana.topdown.checkpoint import Checkpoint
from yupana.topdown.configuration import Configuration
from yupana.topdown.disk import published_areas
from yupana.topdown.plan import make_plan
from yupana.topdown.queries import Query
from yupana.topdown.query_names import TOTAL, query_named


def trials(
    configuration: Configuration,
    data: Path,
    options: Options,
    number: int,
    memory: int | None,
    entropy: Entropy,
    announce: Callable[[str], None],
    progress: Progress,
    *,
    internal: bool = False,
) -> list[AccuracyRow]:
    """Make ``number`` runs on synthetic data, or for ``internal`` use on any, and compare them with the truth.

    Raises
    ------
    ConfigError
        If `check_accuracy_allowed` refuses: errors tell the truth, and repeated runs spend the budget each time.
    InputError
        If the records break a rule.
    """
    check_accuracy_allowed(make_plan(configuration), entropy, data, internal=internal)
    clock = Stopwatch(announce)
    world = open_world(configuration, data, memory, clock, options.estimator, options.spine)
    check_run(configuration, world, options)
    released = []
    for trial in range(number):
        with tempfile.TemporaryDirectory(prefix="yupana-") as folder:
            checkpoint = Checkpoint(Path(folder) / "trial")
            checkpoint.begin({})
            source = entropy.branch(f"trial {trial}")
            clock.start(f"trial {trial + 1} of {number}")
            found = estimate(configuration, world, options, checkpoint, source, clock, progress)
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


def write(
    out: Path,
    rows: list[AccuracyRow],
    configuration: Configuration,
    number: int,
    *,
    overwrite: bool,
    internal: bool = False,
) -> None:
    """Write accuracy.csv into a new folder, marked as not for release, or as confidential after ``internal`` use."""
    with new_folder(out, overwrite=overwrite, noisy=False, private=internal) as partial:
        path = write_accuracy(partial, rows)
        manifest = {
            "yupana": yupana.__version__,
            "product": f"{configuration.product} accuracy",
            "status": CONFIDENTIAL if internal else NOT_FOR_RELEASE,
            "reasons": ["it compares with the truth"],
            "trials": number,
            "tables": describe_files(partial, {path.name: len(rows)}),
        }
        write_manifest(partial, manifest)
