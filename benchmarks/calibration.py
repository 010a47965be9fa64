"""How often intervals of published counts hold the truth, and how wide they are.

`python benchmarks/calibration.py CONFIG DATA [--estimator E] [--replicates 25] [--trials 1] [--seed 1]`. DATA is
SYNTHETIC: its counts are the truth. Each trial draws all measurements, estimates, and makes the intervals of least
squares and of approximate Monte Carlo. Of each kind of areas and size of the true and of the published count it tells,
for either, the share of true counts within their interval, the mean width (UPPER less LOWER) and the mean MOE, then
seconds, seconds of processor and the peak of memory. Counts are the variables of the published tables, or where there
are none the total, every level of every attribute and every cell; zeros are among them.
"""

import argparse
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

import numpy as np

from yupana.arrays import Flags, Ints
from yupana.confidential.request import RunRequest
from yupana.confidential.topdown.estimate import estimate
from yupana.confidential.topdown.world import World, open_world
from yupana.geography.published import Areas, areas_of_spine
from yupana.plan.ledger import Ledger
from yupana.privacy.entropy import SeededEntropy
from yupana.products.topdown.product import TOPDOWN
from yupana.products.topdown.tables import tables_of
from yupana.progress import Stopwatch, silent
from yupana.topdown import Estimator
from yupana.topdown.budget import spend
from yupana.topdown.configuration import Configuration
from yupana.topdown.descent.checkpoint import BatchCheckpoint
from yupana.topdown.descent.measurements import StoredMeasurements
from yupana.topdown.histogram import Histogram, sum_to_areas, whole
from yupana.topdown.intervals import CountIntervals, MonteCarloIntervals, ReleasedCounts, replicates
from yupana.topdown.queries import Schema
from yupana.topdown.text_rows import variables
from yupana.topdown.tree.intervals import least_squares_intervals
from yupana.topdown.tree.least_squares import Bounds

SIZES = (0, 1, 5, 25, 100, 1000)
"""The least published count of each class."""
CONFIDENCE = Fraction(9, 10)
AREAS_AT_ONCE = 1 << 14
T = TypeVar("T")


@dataclass(slots=True)
class Tally:
    """Sums over intervals of one kind of areas and method, by size of the published count."""

    held: Ints = field(default_factory=lambda: np.zeros(len(SIZES), dtype=np.int64))
    number: Ints = field(default_factory=lambda: np.zeros(len(SIZES), dtype=np.int64))
    width: Ints = field(default_factory=lambda: np.zeros(len(SIZES), dtype=np.int64))

    def add(self, counts: Ints, held: Flags, bounds: Bounds) -> None:
        """Count intervals by the size of some counts."""
        size = np.searchsorted(SIZES, counts.ravel(), side="right") - 1
        for total, values in (
            (self.held, held),
            (self.number, np.ones_like(counts)),
            (self.width, bounds.upper - bounds.lower),
        ):
            total[:] += np.bincount(size, values.ravel(), len(SIZES)).astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Variables:
    """Which variables each cell counts in, of shape (cells, k), -1 for none, and how many there are."""

    member: Ints
    size: int


def tally(
    tallies: dict[str, tuple[Tally, Tally]],
    intervals: CountIntervals,
    kind: Areas,
    published: Histogram,
    truth: Histogram,
    of: Variables,
) -> None:
    """Count the intervals of all areas of a kind, by the size of the true and of the published count."""
    by_truth, by_published = tallies.setdefault(kind.name, (Tally(), Tally()))
    for first in range(0, published.units, AREAS_AT_ONCE):
        last = min(first + AREAS_AT_ONCE, published.units)
        bounds = intervals.of_table(kind, of.member, of.size, first, last)
        counts, true = (variables(one.part(first, last), of.member, of.size) for one in (published, truth))
        held = np.asarray((bounds.lower <= true) & (true <= bounds.upper))
        by_truth.add(true, held, bounds)
        by_published.add(counts, held, bounds)


def variables_of(schema: Schema) -> list[Variables]:
    """Those of the published tables; else the total, all levels and all cells."""
    if tables := tables_of(schema):
        return [Variables(table.member, table.size) for table in tables]
    cells = np.arange(schema.cells)
    columns, size = [np.zeros_like(cells)], 1
    for places, levels in zip(np.unravel_index(cells, schema.shape), schema.shape, strict=True):
        columns.append(size + places)
        size += levels
    return [Variables(np.stack([*columns, size + cells], axis=1), size + schema.cells)]


def told(what: str, work: Callable[[], T]) -> T:
    """Do something and print what it took."""
    began, used = time.perf_counter(), time.process_time()
    done = work()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    spent = f"{time.perf_counter() - began:.1f} | {time.process_time() - used:.1f}"
    print(f"| {what} | {spent} | {peak:.2f} |", flush=True)
    return done


def trial(
    config: Configuration, world: World, estimator: Estimator, number: int, seed: int, folder: Path
) -> Iterator[tuple[str, list[Areas], Histogram, CountIntervals]]:
    """Draw, estimate, and make both kinds of intervals: method, areas, published counts, intervals."""
    spending, checkpoint = spend(config, world.spine), BatchCheckpoint(folder)
    checkpoint.begin({})
    request = RunRequest(estimator=estimator, entropy=SeededEntropy(seed))
    arguments = (config, world, spending, Ledger(spending.plan), checkpoint, request, Stopwatch(silent))
    found = told("drawing and estimating", lambda: estimate(*arguments, in_full=True))
    counts = whole(found.descent.counts[-1])
    areas = areas_of_spine(world.spine) if world.published is None else world.published.areas(world.spine.blocks)
    stored, known = StoredMeasurements(spending.levels, checkpoint), found.premises.known
    least = least_squares_intervals(stored, world.spine, config.schema, known, areas, CONFIDENCE)
    yield "least squares", areas, counts, least
    if not number:
        return
    published = ReleasedCounts(config, world.spine, world.facilities, estimator, counts)
    made = replicates(published, number, SeededEntropy(seed).branch("replicates"))
    yield (
        "Monte Carlo",
        areas,
        counts,
        told(f"{number} replicates", lambda: MonteCarloIntervals.of(counts, made, areas, CONFIDENCE)),
    )


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description="Coverage and width of intervals of published counts.")
    parser.add_argument("config")
    parser.add_argument("data", type=Path)
    parser.add_argument("--spine", choices=("conventional", "aian", "optimized"))
    parser.add_argument("--estimator", choices=("topdown", "full-information"), default="topdown")
    parser.add_argument("--replicates", type=int, default=25, help="0 for least squares alone")
    parser.add_argument("--trials", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    config = TOPDOWN.read(options.config)
    if options.spine:
        config = config.on_spine(options.spine)
    print("| step | seconds | seconds of processor | peak so far, GB |\n|---|---|---|---|")
    asked = RunRequest(estimator=options.estimator)
    world = told("reading", lambda: open_world(config, options.data, asked, Stopwatch(silent)))
    tallies: dict[str, dict[str, tuple[Tally, Tally]]] = {}
    for number in range(options.trials):
        with tempfile.TemporaryDirectory() as folder:
            place, seed = Path(folder) / "drawn", options.seed + number
            found = trial(config, world, options.estimator, options.replicates, seed, place)
            for method, areas, counts, intervals in found:
                work = partial(count_all, tallies.setdefault(method, {}), config, world, areas, counts, intervals)
                told(f"{method}: intervals of all variables", work)
    for method, of_method in tallies.items():
        for at, by in enumerate(("true", "published")):
            write(f"{method}, by {by} count", {kind: pair[at] for kind, pair in of_method.items()})


def count_all(
    tallies: dict[str, tuple[Tally, Tally]],
    config: Configuration,
    world: World,
    areas: list[Areas],
    counts: Histogram,
    intervals: CountIntervals,
) -> None:
    """Count the intervals of all variables of all areas."""
    published, truth = (sum_to_areas(of, areas) for of in (counts, whole(world.exact.blocks)))
    for kind in areas:
        for of in variables_of(config.schema) if kind.number else ():
            tally(tallies, intervals, kind, published[kind.name], truth[kind.name], of)


def write(what: str, tallies: dict[str, Tally]) -> None:
    """Print the share held and the mean width, by kind of areas and size."""
    names = [f"{low:,} to {high - 1:,}" for low, high in pairwise(SIZES)]
    names = ["0", *names[1:], f"{SIZES[-1]:,} or more"]
    print(f"\n{what}: percent held / mean width (number)\n")
    print("| areas | all | " + " | ".join(names) + " |")
    print("|" + "---|" * (len(names) + 2))
    for kind, one in tallies.items():
        cells = [told_of(*(int(values.sum()) for values in columns(one)))]
        cells += [told_of(*(int(values[place]) for values in columns(one))) for place in range(len(SIZES))]
        print(f"| {kind} | " + " | ".join(cells) + " |")


def columns(tally: Tally) -> tuple[Ints, Ints, Ints]:
    """The sums of a tally."""
    return tally.held, tally.number, tally.width


def told_of(held: int, number: int, width: int) -> str:
    """A cell of the table."""
    return f"{100 * held / number:.1f} / {width / number:.1f} ({number:,})" if number else ""


if __name__ == "__main__":
    main()
