"""The rounder of TopDown beside a mixed-integer program: `python benchmarks/rounding.py [--children 10 30 100]`.

Nodes are made up: persons of a place in few of the 2,016 cells of PL 94-171, spread over its children, with noise of
standard deviation 6 on every count and each cell projected back to its parent. Both round in one pass for total,
hhgq, with hispanic, with race, with voting age and in detail, as the Census Bureau did for the nation; HiGHS gets the
definition, with two variables for every answer's distance, and one minute. Then small nodes as of block groups, one
after the other in one thread, in two passes: how many a second, all of the rounder's Python included.
"""

import argparse
import time

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array

from yupana.topdown.queries import margin
from yupana.topdown.rounding.program import split
from yupana.topdown.rounding.rounding import Rounding, round_counts

SHAPE = (8, 2, 2, 63)
CHAIN = ((0, 0, 0, 0), (1, 0, 0, 0), (1, 0, 1, 0), (1, 0, 1, 1), (1, 1, 1, 1))
SECONDS = 60.0

Node = tuple[NDArray[np.float64], NDArray[np.int64], list[NDArray[np.int32]]]


def make(children: int, persons: int, seed: int) -> Node:
    """Make a node: an estimate of shape (children, live cells), the parent, and the chain's labels."""
    rng = np.random.default_rng(seed)
    races = rng.dirichlet(np.full(63, 0.05))
    home = np.multiply.outer(np.array([0.97, *[0.03 / 7] * 7]), np.array([[0.2, 0.05], [0.6, 0.15]]))
    typical = np.multiply.outer(home, races).ravel()
    share = 0.3 * typical + 0.7 * rng.dirichlet(np.full(typical.size, 0.02))
    counts = np.stack(
        [
            rng.multinomial(int(persons * rng.lognormal(0, 0.7)), rng.dirichlet(share * 200 + 1e-6))
            for _ in range(children)
        ]
    )
    parent = counts.sum(axis=0)
    live = np.flatnonzero(parent)
    estimate = project(counts[:, live] + rng.normal(0, 6, (children, len(live))), parent[live])
    return estimate, parent[live], [margin("", SHAPE, kept).answers()[live] for kept in CHAIN]


def project(values: NDArray[np.float64], sums: NDArray[np.int64]) -> NDArray[np.float64]:
    """The nearest non-negative values with given sums of columns."""
    ordered = -np.sort(-values, axis=0)
    cut = (np.cumsum(ordered, axis=0) - sums) / np.arange(1, len(values) + 1)[:, None]
    last = (ordered > cut).sum(axis=0) - 1
    return np.asarray(np.maximum(values - cut[last, np.arange(values.shape[1])], 0))


def ask_highs(node: Node) -> tuple[float, str]:
    """Solve the definition as a mixed-integer program; the distance reached and how it ended."""
    estimate, parent, chain = node
    counts, fraction = split(estimate)
    child, cell = np.nonzero(fraction)
    part = fraction[child, cell]
    entries = len(part)
    rows, columns, values = [cell], [np.arange(entries)], [np.ones(entries)]
    sides = [parent - counts.sum(axis=0)]
    height, width = len(parent), entries
    for labels in chain:
        _, answer = np.unique(child * 2016 + labels[cell], return_inverse=True)
        target = np.floor(np.bincount(answer, part) + 0.5 + 1e-6)
        size = np.arange(len(target))
        rows += [height + answer, height + size, height + size]
        columns += [np.arange(entries), width + size, width + len(target) + size]
        values += [np.ones(entries), -np.ones(len(target)), np.ones(len(target))]
        sides.append(target)
        height += len(target)
        width += 2 * len(target)
    matrix = coo_array((np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), shape=(height, width))
    side = np.concatenate(sides)
    outcome = milp(
        np.concatenate([1 - 2 * part, np.ones(width - entries)]),
        integrality=np.concatenate([np.ones(entries), np.zeros(width - entries)]),
        bounds=Bounds(np.zeros(width), np.concatenate([np.ones(entries), np.full(width - entries, np.inf)])),
        constraints=LinearConstraint(matrix.tocsc(), side, side),
        options={"mip_rel_gap": 0.0, "time_limit": SECONDS},
    )
    ending = {0: "optimal", 1: "stopped"}.get(outcome.status, "failed")
    return (float(outcome.fun) if outcome.x is not None else np.inf), ending


def distance(node: Node, counts: NDArray[np.int64]) -> float:
    """The same objective of a rounding."""
    estimate, _, chain = node
    base, fraction = split(estimate)
    up = counts - base
    out = float(((1 - 2 * fraction) * up).sum())
    for labels in chain:
        to = labels[:, None] == np.arange(2016)
        out += float(np.abs(up @ to - np.floor(fraction @ to + 0.5 + 1e-6)).sum())
    return out


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--children", type=int, nargs="*", default=[10, 30])
    parser.add_argument("--small", type=int, default=500, help="how many small nodes")
    options = parser.parse_args()
    print("| children | live cells | fractional | flow, ms | HiGHS, s | ratio | distance by flow | by HiGHS |")
    print(f"|{'---|' * 8}")
    for children in options.children:
        node = make(children, 4000, children)
        estimate, parent, chain = node
        rounding = Rounding(parent, ((*chain, None),))
        counts = round_counts(estimate, rounding)
        took = []
        for _ in range(5):
            began = time.perf_counter()
            round_counts(estimate, rounding)
            took.append(time.perf_counter() - began)
        ours = float(np.median(took))
        began = time.perf_counter()
        best, ending = ask_highs(node)
        theirs = time.perf_counter() - began
        fractional = int((split(estimate)[1] > 0).sum())
        told = f"{children} | {len(parent)} | {fractional:,} | {ours * 1e3:.2f} | {theirs:.2f} | {theirs / ours:,.0f}"
        print(f"| {told} | {distance(node, counts):.5f} | {best:.5f}, {ending} |", flush=True)
    rng = np.random.default_rng(0)
    nodes = [make(int(rng.integers(2, 61)), int(rng.integers(15, 61)), seed) for seed in range(options.small)]
    began = time.perf_counter()
    for estimate, parent, chain in nodes:
        round_counts(estimate, Rounding(parent, ((chain[0],), (*chain[1:], None))))
    seconds = time.perf_counter() - began
    cells = np.median([len(parent) for _, parent, _ in nodes])
    fractional = np.median([(split(estimate)[1] > 0).sum() for estimate, _, _ in nodes])
    print(
        f"\n{len(nodes)} small nodes (median {cells:.0f} live cells, {fractional:.0f} fractional counts): "
        f"{len(nodes) / seconds:,.0f} a second, {seconds / len(nodes) * 1e3:.2f} ms each"
    )


if __name__ == "__main__":
    main()
