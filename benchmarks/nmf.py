"""How fast noisy measurement files are read and estimated from, beside a bare scan of the database.

    python benchmarks/nmf.py FILES CONFIG [--estimator full-information]

FILES is the folder of a dataset, such as one that ``topdown run ... --nmf`` writes. The scan adds up every number.
"""

import argparse
import resource
import time
from pathlib import Path

import duckdb

from yupana.products.topdown.product import TOPDOWN
from yupana.progress import Stopwatch, silent
from yupana.topdown.descent.checkpoint import Keeper
from yupana.topdown.descent.estimate import estimate_counts, informed
from yupana.topdown.descent.measurements import StoredMeasurements
from yupana.topdown.nmf.layout import find_files
from yupana.topdown.nmf.reading import read_measurements


def main() -> None:
    """Print seconds, and gigabytes of files per minute."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path)
    parser.add_argument("config")
    parser.add_argument("--estimator", default="topdown", choices=("topdown", "full-information"))
    options = parser.parse_args()
    found = find_files(options.files, None)
    size = sum(path.stat().st_size for path in found.files())
    start = time.perf_counter()
    listed = ", ".join(f"'{path}'" for path in found.files() if "DPQuery" in path.parts)
    (numbers,) = duckdb.execute(
        f"SELECT sum(list_sum(value)), sum(len(value)) FROM read_parquet([{listed}], union_by_name = true)"
    ).fetchall()
    scanned = time.perf_counter() - start
    clock = Stopwatch(lambda *_: None)
    start = time.perf_counter()
    config = TOPDOWN.read(options.config)
    read = read_measurements(found, config, options.estimator, None, clock, silent)
    reading = time.perf_counter() - start
    start = time.perf_counter()
    evidence = informed(read.premises, StoredMeasurements(read.spent.levels, read.draws), options.estimator, clock)
    estimate_counts(read.premises, evidence, Keeper(), clock, silent)
    estimating = time.perf_counter() - start
    print(f"{size / 1e9:.3f} GB of files, {numbers[1]:,} noisy answers, {len(read.premises.spine.blocks):,} blocks")

    def per_minute(seconds: float) -> float:
        return float(4 * numbers[1] / 1e9 / seconds * 60)

    for name, seconds in (("scan", scanned), ("read", reading), ("estimate", estimating)):
        print(f"{name:9}{seconds:8.1f} s {size / 1e9 / seconds * 60:8.2f} GB/min {per_minute(seconds):8.1f}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"peak {peak:.2f} GB; the last column is of answers at 4 bytes")


if __name__ == "__main__":
    main()
