"""The least squares on the tree: `python benchmarks/least_squares.py`.

Two made-up trees: a county of 76,751 blocks at 44 cells, as large as Cook County, Illinois, and 2,000 blocks at the
2,016 cells of the redistricting data, each with the total, all attributes alone, the last two together and all at
every level. Each row is a process of its own; the peak is its resident memory less that before the passes, with all
levels held.
"""

import argparse
import os
import resource
import subprocess
import sys
import time
from itertools import pairwise

import numpy as np

from yupana.topdown.queries import margin
from yupana.topdown.tree.basis import Basis
from yupana.topdown.tree.least_squares import TreeAnswers, combined, down, intervals, own, quadratic, summed

_ROWS = {
    44: ((2, 2, 11), (1, 1315, 3985, 76_751)),
    2016: ((8, 2, 2, 63), (1, 25, 75, 2000)),
}


def peak() -> float:
    """Gigabytes of resident memory at most so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def measure(shape: tuple[int, ...], units: tuple[int, ...]) -> str:
    """One row of the table."""
    rng, basis = np.random.default_rng(1), Basis(shape)
    kept = [(0,) * len(shape), *np.eye(len(shape), dtype=int).tolist(), (0,) * (len(shape) - 2) + (1, 1)]
    queries = [margin("x", shape, flags) for flags in [*kept, (1,) * len(shape)]]
    parents = [np.sort(np.arange(below) % above).astype(np.int32) for above, below in pairwise(units)]
    levels = [
        [
            TreeAnswers(query, rng.integers(-9, 9, (number, query.size)), np.full(number, float(rng.uniform(0.01, 1))))
            for query in queries
        ]
        for number in units
    ]
    before, began = peak(), time.perf_counter()
    upward = [own(basis, units[-1], levels[-1])]
    for level in range(len(units) - 2, -1, -1):
        below = summed(upward[0], parents[level], units[level])
        upward.insert(0, combined(basis, own(basis, units[level], levels[level]), below))
    up, began = time.perf_counter() - began, time.perf_counter()
    estimate = upward[0]
    for children, parent in zip(upward[1:], parents, strict=True):
        estimate = down(basis, children, parent, estimate)
    downward, most = time.perf_counter() - began, peak() - before
    began = time.perf_counter()
    for query in queries:
        intervals(basis, estimate, query)
    published, began = time.perf_counter() - began, time.perf_counter()
    for estimate in upward[1:]:
        quadratic(basis, estimate)
    targets = time.perf_counter() - began
    whole = sum(units)
    return (
        f"| {basis.cells:,} | {whole:,} | {up:.2f} | {downward:.2f} | {whole / (up + downward):,.0f} | {most:.2f} | "
        f"{8 * whole * basis.cells / 2**30:.2f} | {published:.2f} | {targets:.2f} |"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, choices=tuple(_ROWS))
    options = parser.parse_args()
    if options.cells:
        print(measure(*_ROWS[options.cells]))
        return
    columns = ("cells", "units", "up, s", "down, s", "units/s", "peak, GB", "one number per cell, GB", "intervals, s")
    print(f"| {' | '.join(columns)} | targets, s |\n|{'---|' * (len(columns) + 1)}", flush=True)
    for cells in _ROWS:
        environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
        subprocess.run([sys.executable, __file__, "--cells", str(cells)], check=True, env=environment)


if __name__ == "__main__":
    main()
