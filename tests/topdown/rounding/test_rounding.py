"""The rounder against a mixed-integer program of the definition."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import LinearConstraint, milp

from yupana.topdown import InfeasibleNode, round_node
from yupana.topdown.rounding.network import round_on_network
from yupana.topdown.rounding.program import Limit
from yupana.topdown.rounding.rounding import Rounding, round_counts

LABELS = 48


@dataclass
class Node:
    """What `round_counts` takes; queries are label arrays, None is the detailed query."""

    estimate: NDArray
    parent: NDArray
    passes: tuple
    groups: NDArray | None = None
    lower: NDArray | None = None
    upper: NDArray | None = None
    fixed: tuple = ()
    joint: tuple = ()

    def round(self) -> NDArray:
        limits = [Limit(labels, values, values) for labels, values in self.fixed]
        limits += [] if self.groups is None else [Limit(self.groups, self.lower, self.upper)]
        return round_counts(self.estimate, Rounding(self.parent, self.passes, tuple(limits), self.joint))


def answers(values: NDArray, labels: NDArray, size: int = LABELS) -> NDArray:
    return values @ (labels[:, None] == np.arange(size))


def floors(node: Node) -> tuple[NDArray, NDArray]:
    near = np.rint(node.estimate)
    whole = np.where(abs(node.estimate - near) <= 1e-6, near, np.floor(node.estimate))
    return whole, np.maximum(node.estimate - whole, 0) * (abs(node.estimate - near) > 1e-6)


def distance(node: Node, counts: NDArray, queries: tuple) -> float:
    """The objective of a pass, without the detailed query's constant."""
    whole, part = floors(node)
    up = counts - whole
    out = 0.0
    for labels in queries:
        if labels is None:
            out += ((1 - 2 * part) * up).sum()
        else:
            out += abs(answers(up, labels) - np.floor(answers(part, labels) + 0.5 + 1e-6)).sum()
    return out


def indicator(shape: tuple, child: object, cells: object) -> NDArray:
    row = np.zeros(shape)
    row[child, cells] = 1
    return row


def constraints(node: Node) -> list:
    """What every pass keeps: (row over all counts, lower, upper)."""
    k, m = node.estimate.shape
    everything = slice(None)
    out = [(indicator((k, m), everything, i), node.parent[i], node.parent[i]) for i in range(m)]
    limits = [(labels, values, values) for labels, values in node.fixed]
    if node.groups is not None:
        limits.append((node.groups, node.lower, node.upper))
    for labels, lower, upper in limits:
        for c, label in product(range(k), range(lower.shape[1])):
            out.append((indicator((k, m), c, labels == label), lower[c, label], upper[c, label]))
    out += [(indicator((k, m), list(members), everything), total, total) for members, total in node.joint]
    return out


def oracle(node: Node, queries: tuple, held: list) -> float | None:
    """The optimum of one pass, None where there is none; held are (row over all counts, lower, upper)."""
    whole, part = floors(node)
    k, m = whole.shape
    kept = constraints(node) + held
    rows = [row.ravel() for row, _, _ in kept]
    lows = [low - (row * whole).sum() for row, low, _ in kept]
    highs = [high - (row * whole).sum() for row, _, high in kept]
    cost = np.zeros(k * m)
    away = []
    for labels in queries:
        if labels is None:
            cost += (1 - 2 * part).ravel()
            continue
        target = np.floor(answers(part, labels) + 0.5 + 1e-6)
        for c, label in product(range(k), np.unique(labels)):
            away.append((indicator((k, m), c, labels == label).ravel(), target[c, label]))
    extra = len(away)
    matrix = np.zeros((len(rows) + 2 * extra, k * m + extra))
    matrix[: len(rows), : k * m] = rows
    low, high = [*lows, *[-np.inf] * extra, *[-np.inf] * extra], [*highs]
    for at, (row, _) in enumerate(away):
        matrix[len(rows) + at, : k * m] = row
        matrix[len(rows) + extra + at, : k * m] = -row
        matrix[len(rows) + at, k * m + at] = matrix[len(rows) + extra + at, k * m + at] = -1
    high += [target for _, target in away] + [-target for _, target in away]
    outcome = milp(
        np.r_[cost, np.ones(extra)],
        integrality=np.r_[np.ones(k * m), np.zeros(extra)],
        bounds=(0, np.r_[(part > 0).ravel().astype(float), np.full(extra, np.inf)]),
        constraints=LinearConstraint(matrix, low, high),
        options={"mip_rel_gap": 0},
    )
    return outcome.fun if outcome.status == 0 else None


def check(node: Node) -> NDArray | None:
    """Round, and check constraints and every pass against the oracle; None where both find it infeasible."""
    first = oracle(node, node.passes[0] if node.passes else (), [])
    if first is None:
        with pytest.raises(InfeasibleNode):
            node.round()
        return None
    counts = node.round()
    whole, part = floors(node)
    assert counts.dtype == np.int64
    assert ((counts == whole) | ((counts == whole + 1) & (part > 0))).all()
    assert (counts.sum(axis=0) == node.parent).all()
    if node.groups is not None:
        assert (answers(counts, node.groups, node.lower.shape[1]) >= node.lower).all()
        assert (answers(counts, node.groups, node.lower.shape[1]) <= node.upper).all()
    for labels, values in node.fixed:
        assert (answers(counts, labels, values.shape[1]) == values).all()
    for members, total in node.joint:
        assert counts[list(members)].sum() == total
    held = []
    for queries in node.passes:
        assert distance(node, counts, queries) == pytest.approx(oracle(node, queries, held), abs=2e-6)
        for labels in queries:
            for c, row in enumerate(answers(counts, labels) if labels is not None else ()):
                held += [(indicator(counts.shape, c, labels == x), row[x], row[x]) for x in np.unique(labels)]
    return counts


def random_node(r: np.random.Generator, *, nested: bool) -> Node:
    """A node whose estimate sums to the parent, with values that are whole, nearly whole, or anything."""
    k, m = int(r.integers(1, 5)), int(r.integers(1, 11))
    parent = r.integers(0, 5, m)
    estimate = r.dirichlet(np.full(k, r.choice([0.2, 1, 5])), m).T * parent
    if r.random() < 0.3:
        estimate = np.rint(estimate * 4) / 4
        estimate[0] += parent - estimate.sum(axis=0)
        parent = np.where(estimate[0] < 0, parent - np.floor(estimate[0]).astype(int), parent)
        estimate[0] += np.where(estimate[0] < 0, -np.floor(estimate[0]), 0)
    fine = r.integers(0, 6, m)
    chain = [fine, fine // 2, fine // 4, np.zeros(m, dtype=int)]
    if not nested:
        chain = [r.integers(0, 4, m) for _ in range(4)]
    names = [r.permutation(LABELS)[labels].astype(np.int32) for labels in chain]
    passes = [tuple(names[j] for j in r.integers(0, 4, r.integers(0, 4))) for _ in range(r.integers(1, 4))]
    if r.random() < 0.8:
        passes[-1] += (None,)
    node = Node(estimate, parent, tuple(passes))
    if r.random() < 0.5:
        node.groups = names[r.integers(0, 4)]
        total = answers(estimate, node.groups)
        node.lower = np.ceil(total - r.integers(1, 3, total.shape) + 1e-6).astype(np.int64)
        node.upper = np.floor(total + r.integers(1, 3, total.shape) - 1e-6).astype(np.int64)
        if r.random() < 0.3:
            node.upper = np.maximum(node.lower, node.upper - 1)
    if k > 1 and r.random() < 0.3:
        members = tuple(int(c) for c in r.permutation(k)[: r.integers(1, k + 1)])
        node.joint = ((members, int(np.rint(estimate[list(members)].sum())) + int(r.random() < 0.2)),)
    if r.random() < 0.2:  # answers of some rounding
        try:
            counts = node.round()
        except InfeasibleNode:
            counts = np.rint(estimate).astype(np.int64)
        labels = names[r.integers(0, 4)]
        node.fixed = ((labels, answers(counts, labels).astype(np.int64)),)
    return node


def check_nodes(examples: int, *, nested: bool) -> None:
    @settings(max_examples=examples, deadline=None)
    @given(st.integers(0, 2**32 - 1))
    def check_one(seed: int) -> None:
        check(random_node(np.random.default_rng(seed), nested=nested))

    check_one()


@pytest.mark.parametrize("examples", [40, pytest.param(100, marks=pytest.mark.thorough)])
@pytest.mark.thorough
def test_nested_queries_reach_the_optimum(examples: int) -> None:
    check_nodes(examples, nested=True)


@pytest.mark.parametrize("examples", [20, pytest.param(50, marks=pytest.mark.thorough)])
@pytest.mark.thorough
def test_queries_that_cross_reach_the_optimum(examples: int) -> None:
    check_nodes(examples, nested=False)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1))
@pytest.mark.slow
def test_later_passes_choose_among_all_optima_of_nested_queries(seed: int) -> None:
    """Every rounding is tried, and none has smaller distances in the order of passes."""
    r = np.random.default_rng(seed)
    k, m = int(r.integers(2, 4)), int(r.integers(1, 6))
    parent = r.integers(1, 5, m)
    estimate = r.dirichlet(np.ones(k), m).T * parent
    often = bool(r.random() < 0.5)  # many ties, and costs so large that passes are solved one after the other
    if often:
        estimate = r.integers(0, 6, (k, m)) / 4
        parent = np.ceil(estimate.sum(axis=0)).astype(np.int64)
        estimate[-1] += parent - estimate.sum(axis=0)
    fine = r.integers(0, 4, m).astype(np.int32)
    chain = [fine, fine // 2, fine * 0]
    passes = [(*(chain[j] for j in r.permutation(3)[: r.integers(1, 3)]), *[None] * often) for _ in range(2)]
    node = Node(estimate, parent, (*passes, (None,)))
    whole, part = floors(node)
    columns = [
        [
            up
            for up in product((0, 1), repeat=k)
            if sum(up) == need and all(part[c, i] > 0 or not up[c] for c in range(k))
        ]
        for i, need in enumerate((parent - whole.sum(axis=0)).astype(int))
    ]
    best = min(
        tuple(round(distance(node, whole + np.array(ups).T, queries), 6) for queries in node.passes)
        for ups in product(*columns)
    )
    counts = node.round()
    assert tuple(distance(node, counts, queries) for queries in node.passes) == pytest.approx(best, abs=1e-5)


def production(live: NDArray, shape: tuple = (3, 2, 2, 4)) -> list:
    """The chain of 2020: total, hhgq, hhgq by hispanic, with cenrace, and all, for an (hhgq, va, hisp, race) schema."""
    hhgq, age, hisp, race = np.unravel_index(live, shape)
    chain = [hhgq * 0, hhgq, hhgq * 2 + hisp, (hhgq * 2 + hisp) * 4 + race, ((hhgq * 2 + hisp) * 4 + race) * 2 + age]
    return [labels.astype(np.int32) for labels in chain]


@pytest.mark.parametrize("two", [False, True])
def test_the_chain_of_production(two: bool) -> None:  # noqa: FBT001 - a parameter of the test
    r = np.random.default_rng(7)
    parent = r.integers(0, 12, 48) * (r.random(48) < 0.7)
    live = np.flatnonzero(parent)
    estimate = r.dirichlet(np.full(5, 0.6), len(live)).T * parent[live]
    chain = production(live)
    passes = ((chain[0],), (*chain[1:], None)) if two else ((*chain, None),)
    total = answers(estimate, chain[1], 3)
    node = Node(estimate, parent[live], passes, chain[1], np.floor(total).astype(int), np.ceil(total).astype(int))
    assert check(node) is not None


def test_production_queries_make_one_network() -> None:
    live = np.arange(48)
    chain = production(live)
    part = np.tile([[0.3], [0.7]], (1, 48))
    assert round_on_network(part, np.ones(48, dtype=np.int64), ((chain[0],), (*chain[1:], None)), [], []) is not None


def test_queries_that_cross_make_none() -> None:
    a, b = np.array([0, 0, 1, 1], dtype=np.int32), np.array([0, 1, 0, 1], dtype=np.int32)
    part = np.full((2, 4), 0.5)
    assert round_on_network(part, np.ones(4, dtype=np.int64), ((a, b),), [], []) is None


def test_integers_stay() -> None:
    counts = np.random.default_rng(3).integers(0, 9, (4, 12))
    rounded = round_node(counts.astype(float), counts.sum(axis=0), (3, 4), [[(0, 0)], [(1, 0), (1, 1)]])
    assert (rounded == counts).all()


def test_what_is_within_a_millionth_of_an_integer_is_that_integer() -> None:
    near = np.array([[0.9999995, 2.0000005, 0.5], [1e-7, 0.9999999, 0.5]])
    rounded = round_node(near, np.array([1, 3, 1]), (3,), [[(0,)], [(1,)]])
    assert rounded[:, :2].tolist() == [[1, 2], [0, 1]]
    with pytest.raises(InfeasibleNode):  # so that no other sum can be had
        round_node(near, np.array([1, 4, 1]), (3,), [[(1,)]])
    # Just outside, there is a choice.
    assert round_node(np.array([[0.999998], [0.000002]]), np.array([1]), (1,), [])[:, 0].sum() == 1


@pytest.mark.parametrize(("second", "goes_up"), [(0.2, True), (0.1999995, True), (0.19999, False)])
def test_a_target_within_a_millionth_of_a_half_rounds_up(second: float, goes_up: bool) -> None:  # noqa: FBT001
    """The first child's total is a half, less than a millionth below, or clearly less."""
    estimate = np.array([[0.3, second], [0, 0.65 - second], [0.7, 0.35]])
    rounded = round_node(estimate, np.array([1, 1]), (2,), [[(0,)], [(1,)]])
    assert rounded.tolist() == [[0, int(goes_up)], [0, int(not goes_up)], [1, 0]]


def test_one_child_is_its_parent() -> None:
    parent = np.array([4, 0, 2, 7])
    assert (round_node(parent[None] + 0.0, parent, (2, 2), [[(1, 1)]])[0] == parent).all()


def test_one_cell() -> None:
    rounded = round_node(np.array([[1.2], [0.5], [1.3]]), np.array([3]), (1,), [[(0,)], [(1,)]])
    assert rounded[:, 0].tolist() == [1, 1, 1]


def test_bounds_decide_over_fractions() -> None:
    estimate = np.array([[0.9, 0.9], [0.1, 0.1]])
    free = round_node(estimate, np.array([1, 1]), (2,), [[(1,)]])
    assert free.tolist() == [[1, 1], [0, 0]]
    bound = round_node(estimate, np.array([1, 1]), (2,), [[(1,)]], lower=np.array([[0, 0], [0, 1]]))
    assert bound.tolist() == [[1, 0], [0, 1]]
    bound = round_node(estimate, np.array([1, 1]), (2,), [[(1,)]], upper=np.array([[np.inf, 0], [np.inf, np.inf]]))
    assert bound.tolist() == [[1, 0], [0, 1]]
    with pytest.raises(InfeasibleNode, match="floor and the ceiling"):
        round_node(estimate, np.array([1, 1]), (2,), [[(1,)]], lower=np.array([[0, 0], [0, 2]]))


def test_a_bound_on_a_group_without_live_cells_counts() -> None:
    estimate = np.array([[0.5, 0], [0.5, 0]])
    with pytest.raises(InfeasibleNode):
        round_node(estimate, np.array([1, 0]), (2,), [[(1,)]], lower=np.array([[0, 1], [0, 0]]))


def test_fractions_count_to_the_last_digits() -> None:
    """2^-30 of a person decides, where a solver with a tolerance would not see it."""
    for up in (0, 1):
        estimate = np.full((2, 1), 0.5)
        estimate[up] += 2e-9
        estimate[1 - up] -= 2e-9
        assert round_node(estimate, np.array([1]), (1,), [[(1,)]])[up, 0] == 1


def test_joint_totals_that_share_a_child() -> None:
    node = Node(np.full((3, 2), 1 / 3), np.array([1, 1]), ((None,),), joint=(((0, 1), 1), ((1, 2), 2)))
    counts = check(node)
    assert counts is not None
    assert counts.sum(axis=1).tolist() == [0, 1, 1]


def test_an_empty_parent_has_empty_children() -> None:
    assert not round_node(np.zeros((3, 4)), np.zeros(4, dtype=int), (4,), [[(0,)], [(1,)]]).any()


def test_threads_do_not_disturb_each_other() -> None:
    nodes = [random_node(np.random.default_rng(seed), nested=True) for seed in range(60)]
    free = [Node(node.estimate, node.parent, node.passes) for node in nodes]
    alone = [node.round() for node in free]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(Node.round, free))
    assert all((a == b).all() for a, b in zip(alone, together, strict=True))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"estimate": np.zeros((2, 5))}, r"\(children, 4\)"),
        ({"estimate": np.full((2, 4), -1.0)}, "negative"),
        ({"estimate": np.full((2, 4), np.nan)}, "finite"),
        ({"parent": np.zeros(4)}, "integers"),
        ({"passes": [[(1, 0, 1)]]}, "pass 0 .* 2 flags"),
        ({"passes": [[], [(2, 0)]]}, "pass 1"),
        ({"lower": np.zeros((2, 4))}, r"lower .* \(2, 2\)"),
        ({"upper": np.full((2, 2), np.nan)}, "upper"),
    ],
)
def test_faults_of_the_arguments_are_told(change: dict, message: str) -> None:
    right = {"estimate": np.zeros((2, 4)), "parent": np.zeros(4, dtype=int), "shape": (2, 2), "passes": [[(1, 1)]]}
    with pytest.raises(ValueError, match=message):
        round_node(**{**right, **change})


def test_the_package_alone_loads_no_compiler() -> None:
    code = "import sys, yupana.topdown; sys.exit('numba' in sys.modules or 'scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
