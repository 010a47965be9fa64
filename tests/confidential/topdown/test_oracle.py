"""TopDown judged from outside: its releases against a second, plain TopDown made of general solvers.

From the written noisy measurements each node is estimated anew, given its released parent, by a general interior-point
solver; the released integers must be an optimum of every rounding pass, found by a general integer programme.
"""

import csv
import json
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise, product
from math import prod
from pathlib import Path
from typing import Any

import clarabel
import duckdb
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import LinearConstraint, milp
from topdown_worlds import LEVELS, World, configuration, make_world, write_configuration, write_world

from yupana.cli.main import main
from yupana.topdown import InfeasibleNode, estimate_node, round_node

Array = NDArray[Any]
MOST = 99_999
SLACK = 1e-7
"""Persons by which the general solver may miss a bound: what it held in earlier passes is no more exact than that."""


def least_squares(
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
    exact = sparse.bmat(
        [
            [sparse.csr_matrix(d), -sparse.eye(k)],
            [sparse.csr_matrix(equal[independent]), sparse.csr_matrix((len(independent), k))],
        ]
    )
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
                here[row["geounit"]][np.ravel_multi_index([int(row[a]) for a in self.schema], shape)] = int(
                    row["count"]
                )
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


def check_node(  # noqa: C901, PLR0912, PLR0915  (the whole stated problem, read from top to bottom)
    release: Release, level: str, parent: Array | None, children: list[str]
) -> int:
    """Compare the children of one parent (None for the root) with independent optima; returns how many were."""
    k = len(children)
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
            np.vstack(design),
            np.concatenate(target),
            np.concatenate(weight),
            held_rows,
            held_values,
            low,
            high,
            bounded,
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
            LinearConstraint(
                np.hstack([bounded, np.zeros((len(bounded), q))]), low - bounded @ floor, high - bounded @ floor
            ),
            LinearConstraint(np.hstack([g, -np.eye(q)]), -np.inf, t),
            LinearConstraint(np.hstack([-g, -np.eye(q)]), -np.inf, -t),
        ]
        best = milp(
            np.concatenate([cost, np.ones(q)]),
            constraints=[one for one in constraints if one.A.shape[0]],
            integrality=np.concatenate([np.ones(n), np.zeros(q)]),
            bounds=(0, np.concatenate([(fraction > 0) | (z > 0), np.full(q, np.inf)])),
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
    for upper, lower in pairwise(LEVELS):
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


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", ["conventional", "aian", "optimized"])
@pytest.mark.parametrize("rho", ["1/4", "6"])
@pytest.mark.slow
def test_every_node_is_an_optimum_of_the_stated_problem(tmp_path: Path, kind: str, rho: str) -> None:
    made = document(quarters=False, rho=rho)
    world = make_world(21, tuple(SHAPES.values()))
    release = release_of(tmp_path, world, made, "--spine", kind, quarters=False)
    compared, units = check_release(release)
    assert compared >= 0.6 * units


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", ["conventional", "aian", "optimized"])
@pytest.mark.parametrize("seed", [31, 32])
@pytest.mark.thorough
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


def toml(made: dict[str, Any]) -> str:
    """The same configuration in TOML; inline tables all the way."""

    def value(one: Any) -> str:  # noqa: ANN401
        if isinstance(one, dict):
            return "{ " + ", ".join(f'"{k}" = {value(v)}' for k, v in one.items()) + " }"
        if isinstance(one, list):
            return "[" + ", ".join(map(value, one)) + "]"
        return "inf" if one == float("inf") else json.dumps(one)

    return "\n".join(f"{key} = {value(one)}" for key, one in made.items()) + "\n"


def written(path: Path, labels: dict[str, list[str]]) -> dict[tuple[str, ...], int]:
    rows = table(path)
    found = {tuple(row[c] for c in ("geounit", *labels)): int(row["count"]) for row in rows}
    assert len(found) == len(rows)
    assert all(count > 0 for count in found.values())
    return found


def check_identity(  # noqa: C901  (one branch for each kind of area)
    world: World, out: Path, labels: dict[str, list[str]], shape: tuple[int, ...]
) -> None:
    """The release of a run without noise says of every area what is true."""
    widths = {"US": 0, "state": 2, "county": 5, "tract": 11, "block_group": 12, "block": 16}
    area = dict(zip(world.blocks, world.areas, strict=True))
    spine = {row["block"]: row for row in table(out / "spine" / "blocks.csv")}
    assert set(spine) == set(world.blocks)

    def area_of(name: str, block: str) -> str | None:
        aian, cousub, place = area[block]
        if name in widths:
            return block[: widths[name]] or "US"
        if name == "place":
            return None if place == "99999" else block[:2] + place
        if name == "county_subdivision":
            return None if cousub == "99999" else block[:5] + cousub
        return None if aian == "9999" else aian

    def expected(unit_of: Any) -> dict[tuple[str, ...], int]:  # noqa: ANN401
        sums: dict[tuple[str, ...], int] = {}
        for (block, cell), count in world.counts.items():
            if (unit := unit_of(block)) is not None:
                levels = [labels[a][i] for a, i in zip(labels, np.unravel_index(cell, shape), strict=True)]
                sums[unit, *levels] = sums.get((unit, *levels), 0) + count
        return sums

    tabulated = ("state", "county", "tract", "block_group", "block", "place", "county_subdivision", "aiannh")
    for name in tabulated:
        found = written(out / "tabulation" / f"{name}.csv", labels)
        assert found == expected(lambda block, name=name: area_of(name, block)), name
    for level in LEVELS:
        found = written(out / "counts" / f"{level}.csv", labels)
        assert found == expected(lambda block, level=level: spine[block][level]), level
    persons: dict[tuple[str, ...], int] = {}
    for row in table(out / "microdata.csv"):
        one = tuple(row[c] for c in ("block", *labels))
        persons[one] = persons.get(one, 0) + 1
    assert persons == expected(lambda block: block)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("kind", "estimator", "mechanism", "form", "quarters"),
    [
        ("conventional", "topdown", "zcdp", "toml", True),
        ("aian", "full-information", "pure", "json", True),
        ("optimized", "topdown", "pure", "toml", True),
        ("optimized", "full-information", "zcdp", "json", True),
        ("conventional", "full-information", "pure", "toml", False),
        ("optimized", "topdown", "pure", "json", False),
    ],
)
@pytest.mark.slow
def test_without_noise_the_release_is_the_data(
    tmp_path: Path, kind: str, estimator: str, mechanism: str, form: str, *, quarters: bool
) -> None:
    made = document(quarters=quarters, rho="inf")
    made["queries"] = dict(made["queries"])
    if estimator == "full-information":
        made["queries"]["County"] = {"total": "1/2", "detailed": "1/2"}
        made["passes"].pop("County")
    shape = (8, 2) if quarters else tuple(SHAPES.values())
    if quarters:
        made["constraints"] = {"group_quarters": "a0"}
    made["mechanism"] = mechanism
    if mechanism == "pure":
        del made["rho"]
        made["epsilon"] = float("inf") if form == "json" else "inf"
    else:
        made["rho"] = float("inf")
    labels = {f"a{i}": [str(j) for j in range(n)] for i, n in enumerate(shape)}
    # The second attribute has labels, and the data name its levels by them.
    labels["a1"] = ["under", "over"]
    made["schema"] = {**made["schema"], "a1": labels["a1"]}
    world = make_world(41, shape, quarters=quarters)
    data = write_world(world, tmp_path / "data", quarters=quarters)
    histogram = data / "histogram.csv"
    lines = [line.split("|") for line in histogram.read_text().splitlines()]
    for line in lines[1:]:
        line[2] = labels["a1"][int(line[2])]
    histogram.write_text("\n".join(("," if form == "toml" else "|").join(line) for line in lines) + "\n")
    if form == "toml":
        geography = data / "geography.txt"
        geography.write_text(geography.read_text().replace("|", ","))
    if kind == "optimized":
        pandas_free_parquet(histogram, "," if form == "toml" else "|")
    config = tmp_path / f"config.{form}"
    config.write_text(toml(made) if form == "toml" else json.dumps(made))
    out = tmp_path / "out"
    command = [
        "topdown",
        "run",
        str(config),
        str(data),
        str(out),
        "--spine",
        kind,
        "--estimator",
        estimator,
        "--intervals",
        "none",
    ]
    assert main(command) == 0
    check_identity(world, out, labels, shape)
    assert main(["check", str(out)]) == 0
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["status"] == "NOT FOR RELEASE"
    assert manifest["failsafe"] == []


def pandas_free_parquet(path: Path, separator: str) -> None:
    """Put Parquet in place of CSV."""
    duckdb.execute(
        f"COPY (SELECT * REPLACE (CAST(count AS BIGINT) AS count) FROM "
        f"read_csv('{path}', delim = '{separator}', header = true, all_varchar = true)) "
        f"TO '{path.with_suffix('.parquet')}' (FORMAT parquet)"
    )
    path.unlink()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", ["conventional", "optimized"])
@pytest.mark.parametrize("rho", ["inf", "1/10"])
@pytest.mark.slow
def test_totals_of_blocks_are_kept(tmp_path: Path, kind: str, rho: str) -> None:
    made = configuration((2,), rho=rho, invariants={"Block": ["total"]}, privacy_unit="housing unit")
    made["schema"] = {"occupancy": ["vacant", "occupied"]}
    made["queries"] = {level: {"detailed": 1} for level in LEVELS}
    world = make_world(51, (2,))
    data = write_world(world, tmp_path / "data")
    histogram = data / "histogram.csv"
    histogram.write_text(histogram.read_text().replace("a0", "occupancy", 1))
    config, out = write_configuration(made, tmp_path / "config.json"), tmp_path / "out"
    assert (
        main(
            ["topdown", "run", str(config), str(data), str(out), "--spine", kind, "--seed", "1", "--intervals", "none"]
        )
        == 0
    )
    totals: dict[str, int] = {}
    for row in table(out / "counts" / "Block.csv"):
        totals[row["geounit"]] = totals.get(row["geounit"], 0) + int(row["count"])
    true: dict[str, int] = {}
    for (block, _), count in world.counts.items():
        true[block] = true.get(block, 0) + count
    assert totals == true
    if rho == "inf":
        check_identity(world, out, {"occupancy": ["vacant", "occupied"]}, (2,))
    assert json.loads((out / "manifest.json").read_text())["failsafe"] == []
    assert main(["check", str(out)]) == 0


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", ["conventional", "aian", "optimized"])
@pytest.mark.slow
def test_joint_totals_of_states_bound_the_nation(tmp_path: Path, kind: str) -> None:
    # The first state has households only, the second prisons only, and their totals are known: so are the nation's
    # bounds, although each state is two units of the spine.
    world = World((8, 2))
    rng = np.random.default_rng(0)
    for number, (state, first) in enumerate(product(("01", "02", "03"), (1, 2))):
        for block in range(3):
            name = f"{state}001{first:06}11{block:03}"
            world.blocks.append(name)
            world.areas.append(("0100" if block else "9999", "99999", "99999"))
            kinds = [[9, 0, 0], [0, 1, 0], [3, 0, 1]][number // 2]
            world.facilities[name] = [*kinds, 0, 0, 0, 0, 0]
            for va in (0, 1):
                world.counts[name, 2 * (number // 2) + va] = int(rng.integers(1, 9))
    made = configuration((8, 2), rho="1/10", invariants={"State": ["total"]}, constraints={"group_quarters": "a0"})
    data = write_world(world, tmp_path / "data", quarters=True)
    config, out = write_configuration(made, tmp_path / "config.json"), tmp_path / "out"
    assert (
        main(
            ["topdown", "run", str(config), str(data), str(out), "--seed", "1", "--spine", kind, "--intervals", "none"]
        )
        == 0
    )
    assert json.loads((out / "manifest.json").read_text())["failsafe"] == []
    totals: dict[str, int] = {}
    for row in table(out / "tabulation" / "state.csv"):
        totals[row["geounit"]] = totals.get(row["geounit"], 0) + int(row["count"])
    for state in ("01", "02", "03"):
        assert totals[state] == sum(n for (block, _), n in world.counts.items() if block[:2] == state)


def test_records_in_a_structural_zero_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world = World((3, 2), ["0100100000111000"], [("9999", "00001", "00002")], {("0100100000111000", 3): 424_242})
    data = write_world(world, tmp_path / "data")
    made = configuration((3, 2), rho="1", constraints={"structural_zeros": [{"a0": 1, "a1": 1}]})
    config, out = write_configuration(made, tmp_path / "config.json"), tmp_path / "out"
    assert main(["topdown", "run", str(config), str(data), str(out), "--seed", "1"]) == 2
    told = capsys.readouterr().err
    assert "structural_zeros" in told
    assert "such as 0100100000111000" in told
    assert "424242" not in told
    assert "424,242" not in told
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.json", "data"]


@pytest.mark.thorough
def test_a_detailed_query_is_held_in_later_passes() -> None:
    # The later pass asks crossing queries, which no network can answer, and has other optima than the earlier one.
    shape = (2, 2)
    rng = np.random.default_rng(3)
    held = 0
    for _ in range(30):
        parent = rng.integers(1, 9, size=4)
        shares = rng.dirichlet(np.ones(3), size=4).T
        estimate = shares * parent
        first = round_node(estimate, parent, shape, [[(1, 1)]])
        both = round_node(estimate, parent, shape, [[(1, 1)], [(0, 1), (1, 0)]])
        alone = round_node(estimate, parent, shape, [[(0, 1), (1, 0)], [(1, 1)]])
        assert (both == first).all()
        held += bool((alone != first).any())
    assert held


@pytest.mark.parametrize("seed", range(6))
def test_random_nodes_against_general_solvers(seed: int) -> None:
    rng = np.random.default_rng(seed)
    compared = infeasible = 0
    for _ in range(25):
        shape = tuple(int(n) for n in rng.integers(1, 4, size=int(rng.integers(1, 4))))
        k, cells = int(rng.integers(1, 6)), prod(shape)
        truth = rng.poisson(rng.choice([2, 40]) * rng.random((k, cells))) * (
            rng.random((k, cells)) < rng.choice([0.3, 1])
        )
        parent = truth.sum(axis=0)
        queries = [q for q in product((0, 1), repeat=len(shape)) if rng.random() < 0.6] or [(1,) * len(shape)]
        matrices = [node_matrix(shape, q) for q in queries]
        variances = 10.0 ** rng.uniform(-0.5, 2, size=(k, len(queries)))
        variances[rng.random(variances.shape) < rng.choice([0, 0.3])] = np.inf
        answers = np.hstack([np.rint(truth @ m.T + 3 * rng.normal(size=(k, len(m)))) for m in matrices])
        totals = truth @ node_matrix(shape, (1, *(0,) * (len(shape) - 1))).T
        slack = rng.integers(0, 4, size=(2, *totals.shape))
        lower, upper = [(None, None), (totals - slack[0], totals + slack[1]), (totals + slack[0] // 3, None)][
            rng.integers(3)
        ]
        low = np.zeros(totals.shape) if lower is None else np.maximum(lower, 0).astype(float)
        high = np.full(totals.shape, np.inf) if upper is None else upper.astype(float)
        if (low.sum(axis=0) > totals.sum(axis=0)).any():
            infeasible += 1
            with pytest.raises(InfeasibleNode):
                estimate_node(parent, shape, queries, answers, variances, lower, upper)
            continue
        found = estimate_node(parent, shape, queries, answers, variances, lower, upper)
        weights = np.hstack([np.repeat(1 / variances[:, [i]], len(m), axis=1) for i, m in enumerate(matrices)])
        stacked = np.vstack(matrices)
        whole = np.kron(np.eye(k), stacked)
        first = np.kron(np.eye(k), node_matrix(shape, (1, *(0,) * (len(shape) - 1))))
        live = np.tile(parent > 0, k)
        other = np.zeros(k * cells)
        sums = np.kron(np.ones((1, k)), np.eye(cells))
        if live.any():
            other[live] = least_squares(
                whole[:, live],
                answers.ravel(),
                weights.ravel(),
                sums[parent > 0][:, live],
                parent[parent > 0].astype(float),
                low.ravel(),
                high.ravel(),
                first[:, live],
            )
        objectives = [
            float((weights.ravel() * (whole @ x - answers.ravel()) ** 2).sum()) for x in (found.counts.ravel(), other)
        ]
        assert found.objective == pytest.approx(objectives[0], rel=1e-9, abs=1e-9)
        assert objectives[0] <= objectives[1] * (1 + 1e-6) + 1e-5
        assert (found.counts >= 0).all()
        assert found.counts.sum(axis=0) == pytest.approx(parent, abs=1e-6)
        assert (first @ found.counts.ravel() >= low.ravel() - 1e-6).all()
        assert (first @ found.counts.ravel() <= high.ravel() + 1e-6).all()
        compared += 1
    assert compared
    assert infeasible or seed


def node_matrix(shape: tuple[int, ...], kept: tuple[int, ...]) -> Array:
    out = np.ones((1, 1))
    for size, flag in zip(shape, kept, strict=True):
        out = np.kron(out, np.eye(size) if flag else np.ones((1, size)))
    return out


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("mechanism", "budget"), [("zcdp", "2"), ("pure", "40")])
@pytest.mark.slow
def test_variances_are_those_of_the_noise_and_units_without_a_share_have_no_rows(
    tmp_path: Path, mechanism: str, budget: str
) -> None:
    made = document(quarters=False, rho=budget)
    made["mechanism"] = mechanism
    if mechanism == "pure":
        made["epsilon"] = made.pop("rho")
    world = make_world(61, tuple(SHAPES.values()))
    release = release_of(tmp_path, world, made, "--spine", "optimized", quarters=False)
    without = 0
    for level in LEVELS:
        units = {
            row["geounit"]: Fraction(row["share"])
            for row in table(release.out / "spine" / "geounits.csv")
            if row["geolevel"] == level
        }
        without += sum(share == 0 for share in units.values())
        for name, part in made["queries"][level].items():
            found = release.measured(level, name)
            assert set(found) == {unit for unit, share in units.items() if share > 0}
            for unit, (answers, variance) in found.items():
                spent = Fraction(budget) * units[unit] * Fraction(part)
                n = np.arange(-400, 401, dtype=float)
                power = -(n**2) * float(spent) / 2 if mechanism == "zcdp" else -np.abs(n) * float(spent) / 2
                law = np.exp(power) / np.exp(power).sum()
                assert variance == pytest.approx(float(law @ n**2), rel=1e-6, abs=1e-12)
                cells = {c: k for (b, c), k in world.counts.items() if b == unit} if level == "Block" else {}
                assert len(answers) == len(matrix(name, release.schema, made["recodes"]))
                if level == "Block":
                    true = matrix(name, release.schema, made["recodes"]) @ [cells.get(c, 0) for c in range(12)]
                    assert np.abs(answers - true).max() <= 12 * np.sqrt(variance) + 6
    assert without
