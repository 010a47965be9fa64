"""Times of the TopDown node solver beside general QP solvers, on synthetic nodes of 2,016 cells.

    OPENBLAS_NUM_THREADS=1 python benchmarks/nodes.py [children ...]

Every solver gets the same node, without the cells that the parent's zeros fix, in one thread; building the sparse
programme of the general solvers is not counted. The peers solve to 1e-6 or better. Objectives include the constant.
"""

import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import clarabel
import numpy as np
import osqp
import piqp
from numpy.typing import NDArray
from scipy import sparse

from yupana.topdown.node.problem import Constraint, Node
from yupana.topdown.node.solve import solve
from yupana.topdown.queries import margin

Floats = NDArray[np.float64]
SHAPE = (8, 2, 2, 63)
ALIKE: dict[str, float] = {
    "": 100,
    "3": 400,
    "2": 400,
    "1": 400,
    "0": 400,
    "23": 225,
    "13": 400,
    "12": 400,
    "123": 144,
    "0123": 81,
}
"""Variances by attributes kept."""

TRACT = {
    "": 6.11,
    "3": 1196.82,
    "2": 1914.91,
    "1": 1914.91,
    "0": 1914.91,
    "23": 4.95,
    "13": 478.73,
    "12": 1914.91,
    "123": 142.9,
    "0123": 19.86,
}
"""Those of the tracts of the Redistricting Data of 2020."""


@dataclass(frozen=True)
class Peer:
    """What a general solver took and found."""

    seconds: float
    objective: float
    violation: float


def measure(truth: Floats, variances: dict[str, float], r: np.random.Generator) -> Node:
    """Take noisy measurements of children and keep the live cells."""
    live = np.flatnonzero(truth.sum(axis=0) > 0)
    queries, answers = [], []
    for kept, variance in variances.items():
        query = margin(kept, SHAPE, [str(axis) in kept for axis in range(4)])
        labels = query.answers()
        exact = np.array([np.bincount(labels, row, query.size) for row in truth])
        queries.append(labels[live])
        answers.append(exact + np.rint(r.normal(0, variance**0.5, exact.shape)))
    weights = np.tile([1 / variance for variance in variances.values()], (len(truth), 1))
    return Node(truth.sum(axis=0)[live], tuple(queries), tuple(answers), weights)


def draw(children: int, people: float, seed: int = 0, spread: float = 0.02, *, tract: bool = False) -> Node:
    """Draw children with populations over few cells, one more alike than the other."""
    r = np.random.default_rng(seed)
    base = r.dirichlet(np.full(2016, spread)) * 0.7
    race = r.dirichlet(np.full(63, 0.05 if not tract else 0.3))
    smooth = np.einsum("h,v,r->hvr", [0.97] + [0.03 / 7] * 7, [0.2, 0.05, 0.6, 0.15], race).ravel()
    base += 0.3 * smooth
    truth = np.array(
        [r.multinomial(int(people * r.lognormal(0, 0.7)), r.dirichlet(base * 200 + 1e-6)) for _ in range(children)]
    )
    return measure(truth.astype(np.float64), TRACT if tract else ALIKE, r)


def programme(node: Node) -> tuple[Any, Floats, Any, Floats]:
    """Write the node in sparse form: counts child by child, then the answers to every query but the detailed."""
    k, m = node.children, node.live
    coarse = range(len(node.queries) - 1)
    asks = [
        sparse.csr_matrix((np.ones(m), (node.queries[q], np.arange(m))), shape=(node.answers[q].shape[1], m))
        for q in coarse
    ]
    ask = sparse.vstack(asks)
    size = ask.shape[0]
    weights = np.concatenate([np.full(node.answers[q].shape[1], node.weights[0, q]) for q in coarse])
    fine = node.weights[0, -1]
    hessian = sparse.diags(np.concatenate([np.full(k * m, 2 * fine), np.tile(2 * weights, k)])).tocsc()
    detailed = node.answers[-1][:, node.queries[-1]]
    linear = np.concatenate([(-2 * fine * detailed).ravel(), np.zeros(k * size)])
    link = sparse.hstack([sparse.kron(sparse.eye(k), ask), -sparse.eye(k * size)])
    total = sparse.hstack([sparse.kron(np.ones((1, k)), sparse.eye(m)), sparse.csr_matrix((m, k * size))])
    value = np.concatenate([np.hstack(node.answers[:-1]).ravel(), node.parent])
    return hessian, linear, sparse.vstack([link, total]).tocsc(), value


def run_piqp(hessian: Any, linear: Floats, matrix: Any, value: Floats, counts: int) -> Floats:  # noqa: ANN401
    """Solve by PIQP."""
    n = len(linear)
    solver = piqp.SparseSolver()
    solver.settings.eps_abs = 1e-7
    low = np.concatenate([np.zeros(counts), np.full(n - counts, -np.inf)])
    solver.setup(hessian, linear, matrix, value, sparse.csc_matrix((0, n)), None, None, low, np.full(n, np.inf))
    solver.solve()
    return np.array(solver.result.x)


def run_clarabel(hessian: Any, linear: Floats, matrix: Any, value: Floats, counts: int) -> Floats:  # noqa: ANN401
    """Solve by Clarabel."""
    positive = sparse.hstack([-sparse.eye(counts), sparse.csr_matrix((counts, len(linear) - counts))])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    cones = [clarabel.ZeroConeT(len(value)), clarabel.NonnegativeConeT(counts)]
    limits = np.concatenate([value, np.zeros(counts)])
    stacked = sparse.vstack([matrix, positive]).tocsc()
    return np.array(clarabel.DefaultSolver(hessian, linear, stacked, limits, cones, settings).solve().x)


def run_osqp(hessian: Any, linear: Floats, matrix: Any, value: Floats, counts: int) -> Floats:  # noqa: ANN401
    """Solve by OSQP, for 100 seconds at most."""
    identity = sparse.eye(len(linear), format="csc")[:counts]
    solver = osqp.OSQP()
    solver.setup(
        hessian,
        linear,
        sparse.vstack([matrix, identity]).tocsc(),
        np.concatenate([value, np.zeros(counts)]),
        np.concatenate([value, np.full(counts, np.inf)]),
        verbose=False,
        eps_abs=1e-6,
        eps_rel=1e-6,
        max_iter=20000,
        time_limit=100.0,
    )
    return np.array(solver.solve().x)


def objective(node: Node, counts: Floats) -> float:
    """Sum the weighted squares over all answers."""
    total = 0.0
    for q, answers in enumerate(node.answers):
        found = np.array([np.bincount(node.queries[q], row, answers.shape[1]) for row in counts])
        total += float((node.weights[:, q, None] * (found - answers) ** 2).sum())
    return total


def ask_peer(node: Node, run: Callable[..., Floats]) -> Peer:
    """Time a general solver."""
    hessian, linear, matrix, value = programme(node)
    size = node.children * node.live
    start = time.perf_counter()
    found = run(hessian, linear, matrix, value, size)
    seconds = time.perf_counter() - start
    counts = found[:size].reshape(node.children, node.live)
    violation = max(-float(counts.min()), float(np.abs(counts.sum(axis=0) - node.parent).max()))
    return Peer(seconds, objective(node, counts), violation)


def report(name: str, node: Node, repeats: int) -> float:
    """Print the median time of the own solver; returns it in seconds."""
    solve(node)
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        found = solve(node)
        times.append(time.perf_counter() - start)
    median = float(np.median(times))
    print(
        f"{name:34s} {node.children:4d} children {node.live:5d} cells {median * 1e3:9.2f} ms  {found.solver}"
        f"  KKT {found.kkt_residual:.0e}  objective {found.objective:.8f}",
        flush=True,
    )
    return median


def main(sizes: list[int]) -> None:
    """Print the table."""
    for children in sizes:
        node = draw(children, 4000)
        own = report("own", node, 9)
        best = solve(node).objective
        for name, run in (("PIQP", run_piqp), ("Clarabel", run_clarabel), ("OSQP", run_osqp)):
            if name == "OSQP" and children > 10:
                continue  # it takes minutes, and is not the fastest
            peer = ask_peer(node, run)
            gap = abs(peer.objective - best) / best
            print(
                f"  {name:32s} {peer.seconds * 1e3:9.0f} ms, {peer.seconds / own:6.1f} times ours, objective off by"
                f" {gap:.0e}, violation {peer.violation:.0e}",
                flush=True,
            )
    for children, people in ((5, 20), (15, 30), (40, 40), (60, 15)):
        report("block group to blocks", draw(children, people), 15)
    node = draw(30, 40)
    totals = np.maximum(node.answers[0], 0)
    totals *= node.parent.sum() / totals.sum()
    whole = np.zeros(node.live, dtype=np.int32)
    for slack in (0.0, 0.1):
        report(f"  totals held within {slack}", replace(node, constraints=(Constraint.near(whole, totals, slack),)), 5)
    report("county to tracts, 1.3 M", draw(300, 3400, tract=True), 3)
    report("county to tracts, 5 M, dense", draw(300, 13000, spread=0.3, tract=True), 1)
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GB (peers included)")


if __name__ == "__main__":
    main([int(size) for size in sys.argv[1:]] or [10, 30, 100])
