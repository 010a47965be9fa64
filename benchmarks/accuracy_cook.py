"""Estimators, spines and strategies at the same loss on real blocks: `make accuracy COOK=SOURCE_PARQUET`.

    python examples/topdown_cook.py SOURCE_PARQUET DATA
    python benchmarks/accuracy_cook.py DATA FIGURES.json [--replicates 4] [--only CASE ...]

Every case is run with the seeds 1, 2, ...: cases of one spine and strategy are estimated from the same noisy answers.
Errors are mean absolute ones over all areas of a kind and all answers of a query, told as ratios to those of
production's queries, spine and estimator with the same seed: the mean over replicates, and its standard error. What was
measured is kept in FIGURES, run by run, so that work that was interrupted goes on, and cases can be added.
docs/accuracy.md has the tables.
"""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import duckdb
import numpy as np
from numpy.typing import NDArray

import yupana
from yupana.products import PRODUCTS

Ints = NDArray[np.int64]
Key = tuple[str, str]
"""A kind of areas and a query."""

SHAPE: Final = (2, 11, 2)
QUERIES: Final = {
    "total": (),
    "votingage": (2,),
    "hispanic": (0,),
    "race": (1,),
    "hispanic*race": (0, 1),
    "detailed": (0, 1, 2),
}
"""By name, the attributes kept, of Hispanic origin, race and voting age."""

KINDS: Final = ("tract", "block_group", "block", "place", "county_subdivision")
SIZES: Final = ((0, 0), (1, 9), (10, 49), (50, 99), (100, 249), (250, None))
"""Classes of blocks by their true population."""

EXAMPLES: Final = Path(__file__).parents[1] / "examples"


@dataclass(frozen=True)
class Case:
    """A way to spend the loss and to estimate, and what its ratios may be at most.

    Attributes
    ----------
    configuration, spine, estimator
        As of `yupana.run`.
    bars : mapping of (kind, query) to float
    bias : mapping of smallest population to float
        Of the blocks of a size class, the mean error that is farthest from 0 and allowed.
    """

    configuration: str
    spine: str
    estimator: str
    bars: dict[Key, float] = field(default_factory=dict)
    bias: dict[int, float] = field(default_factory=dict)


PRODUCTION: Final = "production"
BIAS: Final = {1: 1.5, 250: -5.0}
CASES: Final = {
    PRODUCTION: Case("cook-2010", "conventional", "topdown"),
    "full information": Case("cook-2010", "conventional", "full-information"),
    "optimized": Case("cook-2010", "optimized", "topdown"),
    "optimized, full information": Case("cook-2010", "optimized", "full-information"),
    "pieces": Case("cook-2010", "pieces", "topdown"),
    "pieces, full information": Case(
        "cook-2010",
        "pieces",
        "full-information",
        {
            ("place", "total"): 0.13,
            ("block_group", "total"): 1.00,
            ("block_group", "detailed"): 0.92,
            ("tract", "total"): 0.80,
            ("tract", "votingage"): 0.78,
        },
    ),
    "block total, full information": Case(
        "cook-2010-block-total",
        "pieces",
        "full-information",
        {
            ("block", "total"): 0.80,
            ("block", "hispanic"): 0.93,
            ("block", "votingage"): 0.94,
            ("block", "race"): 0.99,
            ("block", "detailed"): 1.03,
        },
    ),
    "posterior": Case(
        "cook-2010",
        "conventional",
        "posterior",
        {
            ("block", "total"): 0.90,
            ("block", "votingage"): 0.87,
            ("block", "hispanic"): 0.94,
            ("block", "race"): 0.99,
            ("block", "detailed"): 0.95,
            ("place", "race"): 1.08,
        },
        BIAS,
    ),
    "block total, posterior": Case(
        "cook-2010-block-total",
        "pieces",
        "posterior",
        {("block", query): 0.70 if query == "total" else 1.00 for query in QUERIES},
        BIAS,
    ),
    "moved budget, full information": Case(
        str(EXAMPLES / "moved_budget.toml"), "pieces", "full-information", {("block", "total"): 0.42}
    ),
}
"""The first is what all others are compared with."""


@dataclass(frozen=True)
class County:
    """The truth, which is published, and the areas of its blocks.

    Attributes
    ----------
    block : ndarray, shape (blocks,)
        16 digits, in order.
    counts : ndarray, shape (blocks, cells)
    areas : mapping of kind to ndarray, shape (blocks,)
        The area of each block, numbered from 0; -1 for none.
    """

    block: Ints
    counts: Ints
    areas: dict[str, Ints]


def read_county(data: Path) -> County:
    """Read what `examples/topdown_cook.py` wrote."""
    with duckdb.connect() as db:
        columns = "TABBLKST || TABBLKCOU || TABTRACTCE || TABBLKGRPCE || TABBLK"
        codes = db.execute(
            f"SELECT ({columns})::BIGINT AS block, COUSUBFP::BIGINT AS cousub, PLACEFP::BIGINT AS place "
            "FROM read_csv(?, all_varchar = true) ORDER BY 1",
            [str(data / "geography.txt")],
        ).fetchnumpy()
    block = np.asarray(codes["block"], dtype=np.int64)
    place = np.where(codes["place"] == 99999, -1, codes["place"])
    areas = {
        "tract": block // 10**5,
        "block_group": block // 10**4,
        "block": block,
        "place": place,
        "county_subdivision": block // 10**11 * 10**5 + codes["cousub"],
    }
    return County(
        block, read_counts(data / "histogram.csv", "block", block), {k: _numbered(a) for k, a in areas.items()}
    )


def _numbered(area: Ints) -> Ints:
    known, number = np.unique(area, return_inverse=True)
    return (number - 1 if known[0] == -1 else number).astype(np.int64)


def read_counts(path: Path, key: str, block: Ints) -> Ints:
    """Counts of a table of non-zero cells, of shape (blocks, cells)."""
    with duckdb.connect() as db:
        rows = db.execute(
            f"SELECT {key}::BIGINT AS block, hispanic::BIGINT AS h, race::BIGINT AS r, votingage::BIGINT AS v, "
            '"count"::BIGINT AS n FROM read_csv(?, all_varchar = true)',
            [str(path)],
        ).fetchnumpy()
    counts = np.zeros((len(block), *SHAPE), dtype=np.int64)
    np.add.at(counts, (np.searchsorted(block, rows["block"]), rows["h"], rows["r"], rows["v"]), rows["n"])
    return counts.reshape(len(block), -1)


def figures(county: County, released: Ints) -> dict[str, Any]:
    """Mean absolute errors by kind of areas and query, and of totals of blocks by size class."""
    error = released - county.counts
    mae = {}
    for kind in KINDS:
        area = county.areas[kind]
        summed = np.zeros((int(area.max()) + 1, error.shape[1]), dtype=np.int64)
        np.add.at(summed, area[area >= 0], error[area >= 0])
        cube = summed.reshape(-1, *SHAPE)
        for query, kept in QUERIES.items():
            others = tuple(axis + 1 for axis in range(len(SHAPE)) if axis not in kept)
            mae[f"{kind} {query}"] = float(np.abs(cube.sum(axis=others)).mean())
    people, wrong = county.counts.sum(axis=1), error.sum(axis=1)
    sizes = {}
    for low, high in SIZES:
        inside = (people >= low) & (people <= (people.max() if high is None else high))
        sizes[str(low)] = {
            "blocks": int(inside.sum()),
            "mae": float(np.abs(wrong[inside]).mean()),
            "bias": float(wrong[inside].mean()),
        }
    return {"mae": mae, "sizes": sizes}


def measure(case: Case, data: Path, county: County, seed: int) -> dict[str, Any]:
    """Make one release and compare it with the truth."""
    with tempfile.TemporaryDirectory() as folder:
        out, began = Path(folder) / "out", time.perf_counter()
        yupana.run(
            "topdown",
            case.configuration,
            data,
            out,
            seed=seed,
            spine=case.spine,
            estimator=case.estimator,  # type: ignore[arg-type]
            microdata=False,
        )
        seconds = time.perf_counter() - began
        released = read_counts(out / "counts" / "Block.csv", "geounit", county.block)
    return {**figures(county, released), "seconds": round(seconds, 1), "load": round(os.getloadavg()[0], 1)}


def cases(only: list[str] | None) -> dict[str, Case]:
    """Those asked for whose estimator there is."""
    there = PRODUCTS.listing("topdown").estimators
    return {name: case for name, case in CASES.items() if case.estimator in there and (not only or name in only)}


def ratios(done: dict[str, Any], name: str, pick: Callable[[dict[str, Any]], float]) -> tuple[float, float]:
    """The mean ratio to production over replicates, and its standard error (not a number for one replicate)."""
    seeds = [seed for seed in done[name] if seed in done[PRODUCTION]]
    found = np.array([pick(done[name][seed]) / pick(done[PRODUCTION][seed]) for seed in seeds])
    return float(found.mean()), float(found.std(ddof=1) / np.sqrt(len(found))) if len(found) > 1 else float("nan")


def tables(done: dict[str, Any]) -> Iterator[str]:
    """All figures as three tables."""
    there = [name for name in CASES if name in done]
    yield "| areas | query | production, MAE | " + " | ".join(there[1:]) + " |"
    yield "|---" * (2 + len(there)) + "|"
    for kind in KINDS:
        for query in QUERIES:
            key = f"{kind} {query}"
            base = np.mean([of["mae"][key] for of in done[PRODUCTION].values()])
            cells = [_ratio(done, name, (kind, query)) for name in there[1:]]
            yield f"| {kind.replace('_', ' ')} | {query} | {base:.3f} | " + " | ".join(cells) + " |"
    yield ""
    yield "| blocks of | number | " + " | ".join(there) + " |"
    yield "|---" * (2 + len(there)) + "|"
    for low, high in SIZES:
        of = [[run["sizes"][str(low)] for run in done[name].values()] for name in there]
        words = f"{low} and more" if high is None else str(low) if low == high else f"{low} to {high}"
        cells = [f"{np.mean([r['mae'] for r in runs]):.2f} ({np.mean([r['bias'] for r in runs]):+.2f})" for runs in of]
        yield f"| {words} | {of[0][0]['blocks']:,} | " + " | ".join(cells) + " |"
    yield ""
    yield "| case | replicates | what | measured | bar | |"
    yield "|---" * 6 + "|"
    for name in there:
        case, runs = CASES[name], list(done[name].values())
        for (kind, query), bar in case.bars.items():
            mean, error = ratios(done, name, lambda of, key=f"{kind} {query}": of["mae"][key])  # type: ignore[misc]
            met = "met" if mean <= bar else "missed"
            yield f"| {name} | {len(runs)} | {kind} {query} | {mean:.3f} ± {error:.3f} | {bar:.2f} | {met} |"
        for low, bar in case.bias.items():
            bias = np.mean([run["sizes"][str(low)]["bias"] for run in runs])
            met = "met" if abs(bias) <= abs(bar) else "missed"
            yield f"| {name} | {len(runs)} | bias, blocks from {low} | {bias:+.2f} | {bar:+.2f} | {met} |"
    yield ""
    for name in there:
        runs = list(done[name].values())
        seconds, load = (np.mean([run[what] for run in runs]) for what in ("seconds", "load"))
        yield f"{name}: {len(runs)} replicates, {seconds:.0f} s a run at a load of {load:.1f} on {os.cpu_count()} cores"


def _ratio(done: dict[str, Any], name: str, key: Key) -> str:
    mean, error = ratios(done, name, lambda of: of["mae"][" ".join(key)])
    return f"{mean:.3f}" if np.isnan(error) else f"{mean:.3f} ± {error:.3f}"


def main() -> None:
    """Measure what is not in the figures yet, and print all tables."""
    parser = argparse.ArgumentParser(description="Estimators, spines and strategies at the same loss.")
    parser.add_argument("data", type=Path, metavar="DATA", help="what examples/topdown_cook.py made")
    parser.add_argument("figures", type=Path, metavar="FIGURES", help="a JSON file of what was measured")
    parser.add_argument("--replicates", type=int, default=4)
    parser.add_argument("--only", nargs="*", choices=tuple(CASES), metavar="CASE", help=f"of {', '.join(CASES)}")
    options = parser.parse_args()
    done = json.loads(options.figures.read_text()) if options.figures.exists() else {}
    county = read_county(options.data)
    for seed in range(1, options.replicates + 1):
        for name, case in cases(options.only).items():
            if str(seed) not in done.setdefault(name, {}):
                done[name][str(seed)] = measure(case, options.data, county, seed)
                options.figures.write_text(json.dumps(done, indent=1) + "\n")
    print("\n".join(tables({name: runs for name, runs in done.items() if runs})))


if __name__ == "__main__":
    main()
