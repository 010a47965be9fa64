"""What intervals of every published count cost.

`python benchmarks/intervals.py CONFIG DATA [--spine S] [--method M] [--replicates 25]`. For least squares all
measurements are drawn first, as a run with these intervals does; for Monte Carlo replicates are made. Then the
intervals of every entry of every tabulation and of every variable of every table, of all kinds of areas: seconds,
seconds of processor, peak memory of the process so far, and the share of true counts that they hold. DATA is
SYNTHETIC; true counts stand for those published (benchmarks/calibration.py takes published ones).
"""

import argparse
import resource
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TypeVar

from yupana.arrays import Ints
from yupana.confidential.request import RunRequest
from yupana.confidential.topdown.world import World, open_world
from yupana.geography.published import Areas
from yupana.privacy.entropy import SeededEntropy
from yupana.products.topdown.product import TOPDOWN
from yupana.products.topdown.tables import RedistrictingTable, tables_of
from yupana.progress import Stopwatch, silent
from yupana.topdown.budget import spend
from yupana.topdown.configuration import Configuration
from yupana.topdown.constraints import known_totals
from yupana.topdown.descent.checkpoint import BatchCheckpoint
from yupana.topdown.descent.measurements import Door, StoredMeasurements
from yupana.topdown.histogram import Histogram, sum_to_areas, whole
from yupana.topdown.intervals import CountIntervals, MonteCarloIntervals, ReleasedCounts, replicates
from yupana.topdown.text_rows import variables
from yupana.topdown.tree.intervals import least_squares_intervals
from yupana.topdown.tree.least_squares import Bounds

AREAS_AT_ONCE = 1 << 16
CONFIDENCE = Fraction(9, 10)
T = TypeVar("T")


def told(what: str, work: Callable[[], T]) -> T:
    """Do something and print how long it took."""
    began, used = time.perf_counter(), time.process_time()
    done = work()
    spent = time.process_time() - used
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"| {what} | {time.perf_counter() - began:.1f} | {spent:.1f} | {peak:.2f} |", flush=True)
    return done


def drawn(configuration: Configuration, world: World, folder: Path) -> StoredMeasurements:
    """All measurements, on disk."""
    spending, checkpoint = spend(configuration, world.spine), BatchCheckpoint(folder)
    checkpoint.begin({})
    stored = StoredMeasurements(spending.levels, checkpoint)
    for _ in stored.draw(Door(world.exact.levels, spending, SeededEntropy(1))):
        pass
    return stored


def held(bounds: Bounds, counts: Ints) -> tuple[int, int]:
    """How many true counts lie within their bounds, and of how many."""
    return int(((bounds.lower <= counts) & (counts <= bounds.upper)).sum()), counts.size


def of_tabulations(intervals: CountIntervals, sums: list[tuple[Areas, Histogram]]) -> dict[str, tuple[int, int]]:
    """What the intervals of all entries hold, by kind of areas."""
    return {kind.name: held(intervals.of_cells(kind, counts), counts.counts) for kind, counts in sums}


def of_table(
    intervals: CountIntervals, table: RedistrictingTable, sums: list[tuple[Areas, Histogram]]
) -> dict[str, tuple[int, int]]:
    """What the intervals of all variables of a table hold, by kind of areas."""
    found = {}
    for kind, counts in sums:
        parts = []
        for first in range(0, counts.units, AREAS_AT_ONCE):
            last = min(first + AREAS_AT_ONCE, counts.units)
            bounds = intervals.of_table(kind, table.member, table.size, first, last)
            parts.append(held(bounds, variables(counts.part(first, last), table.member, table.size)))
        found[kind.name] = sum(part[0] for part in parts), sum(part[1] for part in parts)
    return found


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description="What intervals of every published count cost.")
    parser.add_argument("config")
    parser.add_argument("data", type=Path)
    parser.add_argument("--spine", choices=("conventional", "aian", "optimized"))
    parser.add_argument("--method", choices=("least-squares", "monte-carlo"), default="least-squares")
    parser.add_argument("--replicates", type=int, default=25)
    options = parser.parse_args()
    configuration = TOPDOWN.read(options.config)
    if options.spine:
        configuration = configuration.on_spine(options.spine)
    print("| step | seconds | seconds of processor | peak so far, GB |\n|---|---|---|---|")
    world = told("reading", lambda: open_world(configuration, options.data, RunRequest(), Stopwatch(silent)))
    counts = whole(world.exact.blocks)
    with tempfile.TemporaryDirectory() as folder:
        areas = [] if world.published is None else world.published.areas(world.spine.blocks)
        sums = list(zip(areas, sum_to_areas(counts, areas).values(), strict=True))
        intervals: CountIntervals
        if options.method == "least-squares":
            stored = told("drawing", lambda: drawn(configuration, world, Path(folder) / "drawn"))
            known = {} if world.kept is None else known_totals(world.kept, world.exact.blocks)
            arguments = (stored, world.spine, configuration.schema, known, areas, CONFIDENCE)
            intervals = told("precisions", lambda: least_squares_intervals(*arguments))
        else:
            published = ReleasedCounts(configuration, world.spine, world.facilities, "topdown", counts)
            made = replicates(published, options.replicates, SeededEntropy(1))
            intervals = told("replicates", lambda: MonteCarloIntervals.of(counts, made, areas, CONFIDENCE))
        found = {"cells": told("tabulations", lambda: of_tabulations(intervals, sums))}
        for table in tables_of(configuration.schema):
            found[table.name] = told(table.name, partial(of_table, intervals, table, sums))
    print("\n| kind | areas | " + " | ".join(f"{what}, number | held" for what in found) + " |")
    print("|" + "---|" * (2 * len(found) + 2))
    for kind, counts in sums:
        shares = " | ".join(f"{n:,} | {100 * k / max(n, 1):.1f}" for k, n in (by[kind.name] for by in found.values()))
        print(f"| {kind.name} | {counts.units:,} | {shares} |")


if __name__ == "__main__":
    main()
