"""TopDown judged from outside: its releases against a second, plain TopDown made of general solvers.

From the written noisy measurements each node is estimated anew, given its released parent, by a general interior-point
solver; the released integers must be an optimum of every rounding pass, found by a general integer programme.
"""

import csv
import json
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import clarabel
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import LinearConstraint, linprog, milp
from topdown_worlds import LEVELS, World, configuration, make_world, write_configuration, write_world

from hollerith.cli.main import main
from hollerith.topdown import InfeasibleNode, estimate_node, round_node

Array = NDArray[Any]
MOST = 99_999
SLACK = 1e-7
"""Persons by which the general solver may miss a bound: what it held in earlier passes is no more exact than that."""


def least_squares(  # noqa: PLR0913
    design: Array, target: Array, weight: Array, equal: Array, value: Array, low: Array, high: Array, rows: Array
) -> Array:
    """Minimise sum weight (design x - target)^2 over x >= 0 with equal x = value and low <= rows x <= high."""
    n = design.shape[1]
    keep = weight > 0
    scale = float(weight[keep].max()) if keep.any() else 1.0
    d, t, w = design[keep], target[keep], weight[keep] / scale
    # Residuals are variables, so that the Hessian stays diagonal and well scaled.
    k = len(t)
    hessian = sparse.diags(np.concatenate([np.full(n, 0.0), 2 * w])).tocsc()
    independent = _independent(equal)
    upper, lower = np.flatnonzero(np.isfinite(high)), np.flatnonzero(np.isfinite(low))
    exact = sparse.bmat([
        [sparse.csr_matrix(d), -sparse.eye(k)],
        [sparse.csr_matrix(equal[independent]), sparse.csr_matrix((len(independent), k))],
    ])
    bounds = sparse.vstack([-sparse.eye(n), sparse.csr_matrix(rows[upper]), -sparse.csr_matrix(rows[lower])])
    bounds = sparse.hstack([bounds, sparse.csr_matrix((bounds.shape[0], k))])
    a = sparse.vstack([exact, bounds]).tocsc()
    b = np.concatenate([t, value[independent], np.full(n, SLACK), high[upper] + SLACK, SLACK - low[lower]])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    settings.max_threads = 1
    cones = [clarabel.ZeroConeT(exact.shape[0]), clarabel.NonnegativeConeT(bounds.shape[0])]
    found = clarabel.DefaultSolver(hessian, np.zeros(n + k), a, b, cones, settings).solve()
    # Where the feasible set is a sliver, the last digit is not reached; the point is good all the same.
    stalled = str(found.status) == "InsufficientProgress" and max(found.r_prim, found.r_dual) < 1e-8
    assert stalled or str(found.status) in {"Solved", "AlmostSolved"}, found.status
    return np.asarray(found.x)[:n]


def _independent(rows: Array) -> Array:
    """A largest set of independent rows, by elimination."""
    chosen: list[int] = []
    basis: list[Array] = []
    for at, row in enumerate(rows):
        rest = row.astype(float)
        for one in basis:
            rest = rest - one * (one @ rest)
        rest = rest - sum((one * (one @ rest) for one in basis), np.zeros_like(rest))
        if (size := np.linalg.norm(rest)) > 1e-7:
            basis.append(rest / size)
            chosen.append(at)
    return np.array(chosen, dtype=int)


def matrix(name: str, schema: dict[str, int], recodes: dict[str, Any]) -> Array:
    """A query as rows of 0 and 1 over the cells, from its name alone."""
    parts = list(schema) if name == "detailed" else [] if name == "total" else name.split("*")
    out = np.ones((1, 1))
    for attribute, size in schema.items():
        factor = np.ones((1, size))
        if attribute in parts:
            factor = np.eye(size)
        for recode, what in recodes.items():
            if recode in parts and what["of"] == attribute:
                factor = np.array([[float(i in group) for i in range(size)] for group in what["groups"]])
        out = np.kron(out, factor)
    return out


@dataclass
class Release:
    """What a reader of a release, its noisy measurements and its configuration knows."""

    document: dict[str, Any]
    out: Path
    noisy: Path
    world: World
    schema: dict[str, int] = field(init=False)
    spine: list[dict[str, str]] = field(init=False)
    counts: dict[str, dict[str, Array]] = field(init=False)
    parent: dict[str, dict[str, str]] = field(init=False)

    def __post_init__(self) -> None:
        self.schema = self.document["schema"]
        shape = tuple(self.schema.values())
        self.spine = table(self.out / "spine" / "blocks.csv")
        self.parent = {level: {} for level in LEVELS}
        for row in table(self.out / "spine" / "geounits.csv"):
            self.parent[row["geolevel"]][row["geounit"]] = row["parent"]
        self.counts = {}
        for level in LEVELS:
            here = {unit: np.zeros(prod(shape), dtype=np.int64) for unit in self.parent[level]}
            for row in table(self.out / "counts" / f"{level}.csv"):
                assert int(row["count"]) > 0
                here[row["geounit"]][np.ravel_multi_index([int(row[a]) for a in self.schema], shape)] = int(row["count"])
            self.counts[level] = here

    def measured(self, level: str, name: str) -> dict[str, tuple[Array, float]]:
        """Noisy answers of one query, and their variance, by geounit; absent rows are no measurement."""
        answers: dict[str, list[int]] = {}
        variance: dict[str, float] = {}
        for row in table(self.noisy / level / f"{name.replace('*', '.')}.csv"):
            answers.setdefault(row["geounit"], []).append(int(row["value"]))
            assert variance.setdefault(row["geounit"], float(row["variance"])) == float(row["variance"])
        return {unit: (np.array(a, dtype=float), variance[unit]) for unit, a in answers.items()}

    def passes(self, level: str, what: str) -> list[list[str]]:
        """The passes of the configuration, or the documented ones."""
        given = self.document.get("passes", {}).get(level, {}).get(what)
        if given is not None:
            return [list(one) for one in given]
        if what == "estimate":
            return [list(self.document["queries"][level])]
        names = list(self.schema)
        return [["total", *("*".join(names[:i]) for i in range(1, len(names))), "detailed"]]

    def blocks_of(self, level: str, unit: str) -> list[str]:
        return [row["block"] for row in self.spine if row[level] == unit]

    def true_total(self, blocks: list[str]) -> int:
        there = set(blocks)
        return sum(n for (block, _), n in self.world.counts.items() if block in there)

    def bounds(self, level: str, unit: str) -> tuple[Array, Array]:
        """Bounds by the first attribute from the public list, without the consequences of totals."""
        listed = np.array([self.world.facilities[b] for b in self.blocks_of(level, unit)]).sum(axis=0)
        return np.concatenate([[0], listed[1:]]), MOST * listed

    def zeros(self) -> Array:
        """Cells that can hold nobody."""
        shut = np.zeros(tuple(self.schema.values()), dtype=bool)
        for combination in self.document.get("constraints", {}).get("structural_zeros", []):
            shut[tuple(combination.get(a, slice(None)) for a in self.schema)] = True
        return shut.ravel()


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file, delimiter="|"))


def published(level: str, block: str) -> str:
    return block[: {"State": 2, "County": 5, "Tract": 11, "Block_Group": 12, "Block": 16}[level]]


def check_node(release: Release, level: str, parent: Array | None, children: list[str]) -> int:
    """Compare the children of one parent (None for the root) with independent optima; returns how many were."""
    k, cells = len(children), prod(release.schema.values())
    found = np.stack([release.counts[level][c] for c in children])
    recodes = release.document.get("recodes", {})
    shut = release.zeros() if parent is None else parent == 0
    live = np.flatnonzero(~shut)
    assert not found[:, shut].any()
    if not len(live):
        return 0
    m = len(live)

    def rows(name: str) -> Array:
        whole = matrix(name, release.schema, recodes)[:, live]
        return np.asarray(whole[whole.any(axis=1)])

    def each(block: Array) -> Array:
        return np.kron(np.eye(k), block)

    # What always holds: the parent, the invariants, the bounds.
    equal, value = [], []
    if parent is not None:
        equal.append(np.kron(np.ones((1, k)), np.eye(m)))
        value.append(parent[live].astype(float))
    # Totals kept below add up to the root's.
    if level == "US" and release.document["invariants"]:
        equal.append(np.ones((1, m)))
        value.append(np.array([float(sum(release.world.counts.values()))]))
    for name in release.document["invariants"]:
        if name == level != "US":
            areas: dict[str, list[int]] = {}
            for at, child in enumerate(children):
                areas.setdefault(published(level, release.blocks_of(level, child)[0]), []).append(at)
            for area, members in areas.items():
                row = np.zeros((1, k * m))
                for at in members:
                    row[0, at * m : (at + 1) * m] = 1
                equal.append(row)
                blocks = [b for b in release.world.blocks if published(level, b) == area]
                value.append(np.array([float(release.true_total(blocks))]))
    low, high, bounded = np.zeros(0), np.zeros(0), np.zeros((0, k * m))
    if release.document.get("constraints", {}).get("group_quarters"):
        first = matrix(next(iter(release.schema)), release.schema, {})[:, live]
        bounded = each(first)
        both = [release.bounds(level, child) for child in children]
        low = np.concatenate([lower for lower, _ in both]).astype(float)
        high = np.concatenate([upper for _, upper in both]).astype(float)
    exact, right = np.vstack([np.zeros((0, k * m)), *equal]), np.concatenate([np.zeros(0), *value])
    assert exact @ found[:, live].ravel() == pytest.approx(right, abs=1e-9)
    assert (bounded @ found[:, live].ravel() >= low).all()
    assert (bounded @ found[:, live].ravel() <= high).all()

    # The estimate, pass by pass.
    held_rows, held_values = exact, right
    estimate = np.zeros(k * m)
    detailed = False
    for names in release.passes(level, "estimate"):
        design, target, weight = [np.zeros((0, k * m))], [np.zeros(0)], [np.zeros(0)]
        for name in names:
            answers = release.measured(level, name)
            whole = matrix(name, release.schema, recodes)[:, live]
            some = whole.any(axis=1)
            for at, child in enumerate(children):
                if child not in answers:
                    continue
                block = np.zeros((int(some.sum()), k * m))
                block[:, at * m : (at + 1) * m] = whole[some]
                design.append(block)
                target.append(answers[child][0][some])
                weight.append(np.full(len(block), 1 / answers[child][1]))
                detailed |= name == "detailed"
        estimate = least_squares(
            np.vstack(design), np.concatenate(target), np.concatenate(weight), held_rows, held_values, low, high, bounded
        )
        for name in names:
            held_rows = np.vstack([held_rows, each(rows(name))])
            held_values = np.concatenate([held_values, each(rows(name)) @ estimate])
    missing = sum(child not in release.measured(level, "detailed") for child in children)
    if not detailed or missing > 1:
        return 0  # the optimum is not unique, so its rounding is not either

    # The rounding, pass by pass: the released integers against an integer programme on this estimate.
    whole_numbers = np.where(np.abs(estimate - np.rint(estimate)) < 2e-5, np.rint(estimate), estimate)
    floor = np.floor(whole_numbers)
    fraction = whole_numbers - floor
    z = found[:, live].ravel() - floor
    assert ((z == 0) | (z == 1)).all(), (level, children, z[(z != 0) & (z != 1)])
    held_rows, held_values = exact, right - exact @ floor
    for names in release.passes(level, "round"):
        goal_rows, goal = [np.zeros((0, k * m))], [np.zeros(0)]
        cost, constant = np.zeros(k * m), 0.0
        for name in names:
            if name == "detailed":
                cost, constant = 1 - 2 * fraction, float(fraction.sum())
                continue
            answer = each(rows(name)) @ fraction
            if (np.abs(answer % 1 - 0.5) < 1e-5).any():
                return 0  # the target would hang on the last digit of the estimate
            goal_rows.append(each(rows(name)))
            goal.append(np.floor(answer + 0.5))
        g, t = np.vstack(goal_rows), np.concatenate(goal)
        n, q = k * m, len(t)
        constraints = [
            LinearConstraint(np.hstack([held_rows, np.zeros((len(held_rows), q))]), held_values, held_values),
            LinearConstraint(np.hstack([bounded, np.zeros((len(bounded), q))]), low - bounded @ floor, high - bounded @ floor),
            LinearConstraint(np.hstack([g, -np.eye(q)]), -np.inf, t),
            LinearConstraint(np.hstack([-g, -np.eye(q)]), -np.inf, -t),
        ]
        best = milp(
            np.concatenate([cost, np.ones(q)]),
            constraints=[one for one in constraints if one.A.shape[0]],
            integrality=np.concatenate([np.ones(n), np.zeros(q)]),
            bounds=(0, np.concatenate([np.ones(n), np.full(q, np.inf)])),
        )
        assert best.status == 0, (level, children, best.message)
        here = float(cost @ z + np.abs(g @ z - t).sum())
        assert here == pytest.approx(best.fun, abs=2e-4), (level, children, names, constant)
        for name in names:
            held_rows = np.vstack([held_rows, each(rows(name))])
            held_values = np.concatenate([held_values, each(rows(name)) @ z])
    return k


def check_release(release: Release) -> tuple[int, int]:
    """Compare every node; returns how many geounits were compared with an optimum, and how many there are."""
    compared = check_node(release, "US", None, ["US"])
    units = 1
    for upper, lower in zip(LEVELS, LEVELS[1:], strict=False):
        families: dict[str, list[str]] = {}
        for child, parent in release.parent[lower].items():
            families.setdefault(parent, []).append(child)
        for parent, children in families.items():
            units += len(children)
            if len(children) == 1:
                assert (release.counts[lower][children[0]] == release.counts[upper][parent]).all()
                compared += 1
            else:
                compared += check_node(release, lower, release.counts[upper][parent], children)
    return compared, units


SHAPES = {"a0": 3, "a1": 2, "a2": 2}
GROUPED = {"inst": {"of": "a0", "groups": [[0], [1, 2]]}}
PRODUCTION_ORDER = {
    "estimate": [["total"], ["a0", "inst*a2", "a1*a2", "detailed"]],
    "round": [["total"], ["a0", "a0*a1", "detailed"]],
}
ALL = {"total": "2/5", "a0": "1/10", "inst*a2": "1/10", "a1*a2": "1/10", "detailed": "3/10"}


def document(*, quarters: bool, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    """A configuration with passes as in the production of 2020: at the ends all at once, the total first between."""
    shape = (8, 2) if quarters else tuple(SHAPES.values())
    made = configuration(shape, **more)
    if quarters:
        made["recodes"] = {"inst": {"of": "a0", "groups": [[0], [1, 2, 3, 4], [5, 6, 7]]}}
        queries = {"total": "2/5", "inst": "1/5", "a1": "1/10", "detailed": "3/10"}
        passes = {
            "estimate": [["total"], ["inst", "a1", "detailed"]],
            "round": [["total"], ["a0", "detailed"]],
        }
    else:
        made["recodes"], queries, passes = GROUPED, ALL, PRODUCTION_ORDER
    made["queries"] = dict.fromkeys(LEVELS, queries)
    made["passes"] = {level: passes for level in LEVELS if level not in {"US", "Block"}}
    return made


def release_of(tmp_path: Path, world: World, made: dict[str, Any], *options: str, quarters: bool) -> Release:
    data = write_world(world, tmp_path / "data", quarters=quarters)
    config = write_configuration(made, tmp_path / "config.json")
    out, noisy = tmp_path / "out", tmp_path / "noisy"
    command = ["topdown", "run", str(config), str(data), str(out), "--seed", "7", "--noisy-measurements", str(noisy)]
    assert main([*command, *options]) == 0
    assert main(["check", str(out)]) == 0
    assert main(["check", str(noisy)]) == 0
    return Release(made, out, noisy, world)


@pytest.mark.parametrize("kind", ["conventional", "aian", "optimized"])
@pytest.mark.parametrize("rho", ["1/4", "6"])
def test_every_node_is_an_optimum_of_the_stated_problem(tmp_path: Path, kind: str, rho: str) -> None:
    made = document(quarters=False, rho=rho)
    world = make_world(21, tuple(SHAPES.values()))
    release = release_of(tmp_path, world, made, "--spine", kind, quarters=False)
    compared, units = check_release(release)
    assert compared >= 0.6 * units


@pytest.mark.parametrize("kind", ["conventional", "aian", "optimized"])
@pytest.mark.parametrize("seed", [31, 32])
def test_every_node_is_an_optimum_under_constraints(tmp_path: Path, kind: str, seed: int) -> None:
    zeros = [{"a0": 3, "a1": 0}]
    made = document(
        quarters=True,
        rho="1",
        invariants={"US": ["total"], "State": ["total"]},
        constraints={"group_quarters": "a0", "structural_zeros": zeros},
    )
    world = make_world(seed, (8, 2), quarters=True)
    for block, cell in [key for key in world.counts if key[1] == 6]:
        world.counts[block, 7] = world.counts.get((block, 7), 0) + world.counts.pop((block, cell))
    release = release_of(tmp_path, world, made, "--spine", kind, quarters=True)
    compared, units = check_release(release)
    assert json.loads((release.out / "manifest.json").read_text())["failsafe"] == []
    assert compared >= 0.6 * units
