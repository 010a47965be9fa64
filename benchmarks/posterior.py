"""The posterior of the blocks on real ones: `python benchmarks/posterior.py DATA [--replicates 4] [--config CONFIG]`.

DATA is what `examples/topdown_cook.py` makes. Everything is drawn once for each replicate, from a seed, and all three
estimators read it. Printed are mean absolute errors by area and query as ratios to those of `topdown`; errors and
biases of block totals by size and of unusual blocks; the share of true totals within intervals, by published size; what
was learned, and the seconds of CPU from least squares to counts, with the load of the machine.
"""

import argparse
import os
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Floats, Ints
from yupana.confidential.request import RunRequest
from yupana.confidential.topdown.world import World, open_world
from yupana.geography.published import indices
from yupana.plan.ledger import Ledger
from yupana.privacy.entropy import SeededEntropy
from yupana.products.topdown.product import TOPDOWN
from yupana.progress import Stopwatch, silent
from yupana.topdown import Estimator
from yupana.topdown.budget import spend
from yupana.topdown.configuration import Configuration
from yupana.topdown.constraints import known_totals
from yupana.topdown.descent.checkpoint import DrawsInMemory
from yupana.topdown.descent.descend import Descent
from yupana.topdown.descent.estimate import coins_for, estimate_counts, measured, premises_of
from yupana.topdown.descent.measurements import Door
from yupana.topdown.histogram import whole
from yupana.topdown.posterior.results import BlockPosterior
from yupana.topdown.tree.least_squares import Bounds

ESTIMATORS: Final[tuple[Estimator, ...]] = ("topdown", "full-information", "posterior")
KINDS: Final = ("block", "tract", "block_group", "place", "county_subdivision")
SIZES: Final = ((0, 0), (1, 9), (10, 49), (50, 99), (100, 249), (250, 10**9))

Errors = dict[tuple[str, str], list[float]]
Groups = dict[str, NDArray[np.bool_]]


def estimates(
    config: Configuration, world: World, replicate: int, seed: int, *, with_units: bool
) -> tuple[dict[Estimator, Ints], BlockPosterior, float]:
    """Counts of the blocks by each estimator on the same draws; and the CPU seconds of the posterior."""
    entropy = SeededEntropy(seed).branch(f"trial {replicate}")
    spending = spend(config, world.spine)
    known = {} if world.kept is None else known_totals(world.kept, world.exact.blocks)
    facilities = world.facilities if with_units else None
    premises = premises_of(config, world.spine, known, facilities)
    keeper = DrawsInMemory()
    door = Door(world.exact.levels, spending, entropy, Ledger(spending.plan))
    clock = Stopwatch(silent)
    found: dict[Estimator, Ints] = {}
    posterior = None
    seconds = 0.0
    blocks, cells = len(world.spine.blocks), config.schema.cells
    for estimator in ESTIMATORS:
        evidence = measured(premises, door, keeper, estimator, clock, silent, in_full=True)
        begin = time.process_time()
        coins = coins_for(estimator, entropy)
        descent: Descent = estimate_counts(premises, evidence, DrawsInMemory(), clock, silent, coins)
        seconds = time.process_time() - begin
        found[estimator] = whole(descent.counts[-1]).dense(0, blocks, cells)
        posterior = descent.posterior
    if posterior is None:
        raise RuntimeError("nothing was drawn")
    return found, posterior, seconds


def margin(counts: Ints, shape: tuple[int, ...], kept: tuple[bool, ...]) -> Ints:
    """Sum over the attributes that are not kept; shape (areas, answers)."""
    axes = tuple(at + 1 for at, keep in enumerate(kept) if not keep)
    return np.asarray(counts.reshape(len(counts), *shape).sum(axis=axes).reshape(len(counts), -1), dtype=np.int64)


def first_two(counts: Ints, shape: tuple[int, ...]) -> Ints:
    """The first two attributes together."""
    return margin(counts, shape, tuple(at < 2 for at in range(len(shape))))


def queries(config: Configuration) -> dict[str, tuple[bool, ...]]:
    """The total, each attribute, the first two together, and all."""
    names = config.schema.names
    each = {name: tuple(other == name for other in names) for name in names}
    both = {"*".join(names[:2]): (True, True, *(False,) * (len(names) - 2))} if len(names) > 2 else {}
    return {"total": (False,) * len(names), **each, **both, "detailed": (True,) * len(names)}


def compare(
    config: Configuration, truth: Ints, found: dict[Estimator, Ints], areas: Mapping[str, NDArray[np.integer]]
) -> Errors:
    """Mean absolute errors of each estimator, by kind of area and query."""
    errors: Errors = {}
    for kind in KINDS:
        if kind != "block" and kind not in areas:
            continue
        changes = []
        for counts in found.values():
            change = counts - truth
            if kind != "block":
                inside = areas[kind] >= 0
                of_area = np.zeros((int(areas[kind].max()) + 1, change.shape[1]), dtype=np.int64)
                np.add.at(of_area, areas[kind][inside], change[inside])
                change = of_area
            changes.append(change)
        for query, kept in queries(config).items():
            errors[kind, query] = [float(np.abs(margin(of, config.schema.shape, kept)).mean()) for of in changes]
    return errors


def unusual(truth: Ints, units: Ints, parents: NDArray[np.integer], shape: tuple[int, ...]) -> Groups:
    """Blocks that the prior does not expect."""
    people = truth.sum(axis=1)
    pairs = first_two(truth, shape)
    above = np.zeros((int(parents.max()) + 1, pairs.shape[1]))
    np.add.at(above, parents, pairs)
    shares = pairs / np.maximum(people, 1)[:, None]
    around = above[parents] / np.maximum(above[parents].sum(axis=1), 1)[:, None]
    apart = 0.5 * np.abs(shares - around).sum(axis=1)
    return {
        "people and no housing unit": (people > 0) & (units == 0),
        "20 people or more, above 8 to a housing unit": (people >= 20) & (people > 8 * units) & (units > 0),
        "10 housing units or more, nobody": (people == 0) & (units >= 10),
        "10 people or more, half of other Hispanic*race than around": (people >= 10) & (apart > 0.5),
        "all others": (people > 0) & (units > 0) & (people <= 8 * units) & (apart <= 0.5),
    }


def intervals_of_totals(posterior: BlockPosterior, counts: Ints, confidence: float) -> Bounds:
    """The whole numbers within the normal intervals of block totals; published counts are always inside."""
    size = np.log(np.maximum(posterior.mean, 1.0))
    factor = np.sqrt(1.0 + np.interp(size, np.log([30.0, 100.0, 300.0]), posterior.inflation.excess))
    reach = NormalDist().inv_cdf((1.0 + confidence) / 2.0) * factor * posterior.spread
    lower = np.maximum(np.ceil(posterior.mean - reach), 0.0).astype(np.int64)
    upper = np.floor(posterior.mean + reach).astype(np.int64)
    return Bounds(np.minimum(lower, counts), np.maximum(upper, counts))


@dataclass(slots=True)
class Tables:
    """Rows of every replicate, by what they are of."""

    by_query: defaultdict[tuple[str, str], list[list[float]]] = field(default_factory=lambda: defaultdict(list))
    by_size: defaultdict[str, list[list[float]]] = field(default_factory=lambda: defaultdict(list))
    covered: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def add(self, config: Configuration, truth: Ints, found: dict[Estimator, Ints], groups: Groups) -> None:
        """Errors of block totals, and of the first two attributes together, in groups of blocks."""
        shape = config.schema.shape
        for name, here in groups.items():
            change = [(counts - truth)[here] for counts in found.values()]
            row = []
            for of in (one.sum(axis=1) for one in change):
                row += [float(np.abs(of).mean()), float(of.mean())]
            row += [float(np.abs(first_two(of, shape)).sum(axis=1).mean()) for of in change]
            self.by_size[f"{name} ({int(here.sum())})"].append(row)

    def add_intervals(self, people: Ints, counts: Ints, posterior: BlockPosterior) -> None:
        """Shares of true totals within their intervals, by published size."""
        bounds = intervals_of_totals(posterior, counts, 0.9)
        inside = (people >= bounds.lower) & (people <= bounds.upper)
        for name, here in {**sizes(counts), "all": np.ones(len(counts), dtype=np.bool_)}.items():
            self.covered[name].append(float(inside[here].mean()))

    def show(self) -> None:
        """Print everything."""
        print("\n| areas | query | topdown MAE | full information | posterior | range |\n|---|---|---|---|---|---|")
        for (kind, query), rows in self.by_query.items():
            table: Floats = np.array(rows)
            ratios = table / table[:, :1]
            mean, low, high = ratios.mean(axis=0), ratios[:, 2].min(), ratios[:, 2].max()
            mae = table[:, 0].mean()
            three = f"{mae:.3f} | {mean[1]:.3f} | **{mean[2]:.3f}**"
            print(f"| {kind} | {query} | {three} | {low:.3f}-{high:.3f} |")
        print("\n| blocks of | topdown MAE (bias) | full information | posterior | pairs |")
        print("|---|---|---|---|---|")
        for name, rows in self.by_size.items():
            row = np.array(rows).mean(axis=0)
            three = " | ".join(f"{row[2 * at]:.2f} ({row[2 * at + 1]:+.2f})" for at in range(3))
            print(f"| {name} | {three} | {row[6]:.2f}, {row[7]:.2f}, {row[8]:.2f} |")
        print("\n| published size | within the interval, nominal 0.9 | range |\n|---|---|---|")
        for name, shares in self.covered.items():
            print(f"| {name} | {np.mean(shares):.3f} | {min(shares):.3f}-{max(shares):.3f} |")


def sizes(people: Ints) -> Groups:
    """Blocks by size."""
    return {
        f"{low} and more" if high >= 10**9 else f"{low} to {high}": (people >= low) & (people <= high)
        for low, high in SIZES
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="The posterior of the blocks on real ones.")
    parser.add_argument("data", type=Path)
    parser.add_argument("--config", default="cook-2010")
    parser.add_argument("--spine")
    parser.add_argument("--replicates", type=int, default=4)
    parser.add_argument("--first", type=int, default=0, help="the first replicate")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-units", action="store_true")
    options = parser.parse_args()
    config: Configuration = TOPDOWN.read(options.config)
    if options.spine:
        config = config.on_spine(options.spine)
    world = open_world(config, options.data, RunRequest(estimator="posterior"), Stopwatch(silent))
    blocks, shape = len(world.spine.blocks), config.schema.shape
    truth = whole(world.exact.blocks).dense(0, blocks, config.schema.cells)
    published = [] if world.published is None else world.published.areas(world.spine.blocks)
    areas = {kind: np.asarray(of) for kind, of in indices(published, blocks).items()}
    people = truth.sum(axis=1)
    groups = sizes(people)
    if world.facilities is not None:
        groups |= unusual(truth, world.facilities[:, 0].astype(np.int64), world.spine.tree.parents[-1], shape)
    tables = Tables()
    for replicate in range(options.first, options.first + options.replicates):
        found, posterior, seconds = estimates(config, world, replicate, options.seed, with_units=not options.no_units)
        load = os.getloadavg()[0]
        print(f"replicate {replicate}: {seconds:.0f} s of CPU, load {load:.1f}: {posterior.told()}", flush=True)
        for key, errors in compare(config, truth, found, areas).items():
            tables.by_query[key].append(errors)
        tables.add(config, truth, found, groups)
        tables.add_intervals(people, found["posterior"].sum(axis=1), posterior)
    tables.show()


if __name__ == "__main__":
    main()
