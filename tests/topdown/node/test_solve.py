"""The node solver against a general solver, on small nodes of every kind."""

import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import clarabel
import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse

from yupana.arrays import Floats
from yupana.topdown import InfeasibleNode, NodeEstimate, estimate_node
from yupana.topdown.node.general import solve_failsafe
from yupana.topdown.node.problem import Constraint, Node
from yupana.topdown.node.solve import solve


def labels_of(shape: Sequence[int], kept: Sequence[bool | int]) -> NDArray[np.int32]:
    index = np.indices(shape).reshape(len(shape), -1)
    out = np.zeros(index.shape[1], dtype=np.int32)
    for axis, keep in enumerate(kept):
        if keep:
            out = out * shape[axis] + index[axis]
    return out.astype(np.int32)


def sums(counts: Floats, labels: NDArray[np.int32], size: int) -> Floats:
    return counts @ np.eye(size)[labels]


def random_node(seed: int) -> Node:
    """Make a feasible node: sparse or dense, with bypassed and unmeasured children, held queries, bounds, joints."""
    r = np.random.default_rng(seed)
    axes = int(r.integers(1, 4))
    shape = tuple(int(size) for size in r.integers(1, 4, axes))
    k = int(r.integers(1, 7))
    cells = r.gamma(0.3, 1, int(np.prod(shape))) * r.choice([1.0, 5.0, 50.0, 1000.0])
    truth = r.poisson(cells * r.gamma(1, 1, (k, 1))).astype(float)
    truth[0, 0] += 1
    live = np.flatnonzero(truth.sum(axis=0) > 0)
    truth = truth[:, live]
    every = list(product([False, True], repeat=axes))
    share = np.where(r.random(k) < 0.3, r.choice([2.0, 3.0, 0.5], k), 1.0)
    if r.random() < 0.2:
        share[r.random(k) < 0.4] = 0.0
    alike = r.random() < 0.6
    queries, answers, weights = [], [], []
    for kept in every:
        if r.random() < 0.4:
            continue
        labels = labels_of(shape, kept)
        size = int(labels.max()) + 1
        if r.random() < 0.2 and size > 2:  # a recode
            labels, size = np.minimum(labels, 1).astype(np.int32), 2
        variance = float(r.choice([0.5, 5.0, 50.0]))
        weight = share / variance if alike else r.choice([0.0, 1.0, 1.0, 0.2], k) / variance
        noisy = sums(truth, labels[live], size) + np.rint(r.normal(0, variance**0.5, (k, size)))
        noisy[weight == 0] = np.nan
        queries.append(labels[live])
        answers.append(noisy)
        weights.append(weight)
    held = []
    if r.random() < 0.4:
        labels = labels_of(shape, every[int(r.integers(len(every)))])
        size = int(labels.max()) + 1
        held.append(Constraint.near(labels[live], sums(truth, labels[live], size), float(r.choice([0.0, 0.1]))))
    if r.random() < 0.4:
        groups = labels_of(shape, (True,) + (False,) * (axes - 1))[live]
        totals = sums(truth, groups, shape[0])
        lower = np.maximum(0, totals - r.integers(0, 4, totals.shape))
        held.append(Constraint(groups, lower, totals + r.integers(0, 4, totals.shape)))
    joint = []
    if r.random() < 0.3 and k > 1:
        some = r.permutation(k)[: int(r.integers(1, k))]
        joint.append((tuple(int(c) for c in some), float(truth[some].sum())))
    return Node(
        truth.sum(axis=0),
        tuple(queries),
        tuple(answers),
        np.array(weights).reshape(len(queries), k).T.copy(),
        tuple(held),
        tuple(joint),
    )


def constraints(node: Node) -> list[Any]:
    return [(constraint.labels, constraint.low, constraint.high) for constraint in node.constraints]


def exact(node: Node) -> tuple[Callable[[Floats], float], float, str]:
    """Solve the dense programme in the counts alone, with clarabel; also the objective of any counts."""
    k, m = node.children, node.live
    hessian, linear, constant = np.zeros((k * m, k * m)), np.zeros(k * m), 0.0
    for q, (labels, noisy) in enumerate(zip(node.queries, node.answers, strict=True)):
        ask = np.eye(noisy.shape[1])[:, labels]
        for c in range(k):
            w, here = node.weights[c, q], slice(c * m, (c + 1) * m)
            if w != 0:
                hessian[here, here] += w * ask.T @ ask
                linear[here] += w * ask.T @ noisy[c]
                constant += w * noisy[c] @ noisy[c]
    equal, value = [np.tile(np.eye(m), (1, k))], [node.parent]
    within, limit = [-np.eye(k * m)], [np.zeros(k * m)]
    for labels, low, high in constraints(node):
        ask = np.kron(np.eye(k), np.eye(low.shape[1])[:, labels])
        if (low == high).all():
            equal.append(ask)
            value.append(low.ravel())
        else:
            within += [ask, -ask]
            limit += [high.ravel(), -low.ravel()]
    for children, total in node.joint:
        row = np.zeros((k, m))
        row[list(children)] = 1
        equal.append(row.reshape(1, -1))
        value.append([total])
    equal, value = np.vstack(equal), np.concatenate(value)
    _, upper, order = scipy.linalg.qr(equal.T, mode="economic", pivoting=True)
    chosen = order[: int((np.abs(np.diag(upper)) > 1e-9 * abs(upper[0, 0])).sum())]
    unit = max(hessian.max(), 1e-9)
    options = clarabel.DefaultSettings()
    options.verbose = False
    options.tol_gap_abs = options.tol_gap_rel = options.tol_feas = 1e-12
    limit = np.concatenate(limit)
    found = clarabel.DefaultSolver(
        sparse.csc_matrix(np.triu(hessian / unit)),
        -linear / unit,
        sparse.csc_matrix(np.vstack([equal[chosen], *within])),
        np.concatenate([value[chosen], limit]),
        [clarabel.ZeroConeT(len(chosen)), clarabel.NonnegativeConeT(len(limit))],
        options,
    ).solve()

    def objective(x: Floats) -> float:
        return float(x @ hessian @ x - 2 * linear @ x + constant)

    return objective, objective(np.array(found.x)), str(found.status)


def assert_feasible(node: Node, counts: Floats, near: float = 1e-6) -> None:
    assert counts.min() >= 0
    assert np.abs(counts.sum(axis=0) - node.parent).max() <= near * (1 + 1e-6 * node.parent.max())
    for labels, low, high in constraints(node):
        answers = sums(counts, labels, low.shape[1])
        assert (answers >= low - near).all()
        assert (answers <= high + near).all()
    for children, total in node.joint:
        assert abs(counts[list(children)].sum() - total) <= near


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32))
@pytest.mark.thorough
def test_random_nodes_reach_the_optimum_of_a_general_solver(seed: int) -> None:
    node = random_node(seed)
    found = solve(node)
    objective, least, status = exact(node)
    certified = found.kkt_residual <= 1e-6
    assert certified != found.solver.endswith("(not certified)")
    assert_feasible(node, found.counts, 1e-6 if certified else 2 * found.kkt_residual)
    at = objective(found.counts.ravel())
    # The oracle takes the objective as a difference of numbers as large as that of nobody at all.
    rounding = 1e-14 * objective(np.zeros(found.counts.size))
    assert found.objective == pytest.approx(at, rel=1e-9, abs=1e-6 + rounding)
    if status == "Solved":
        assert at <= least + (1e-6 if certified else 1e-2) * max(1.0, abs(least))


@pytest.mark.slow
def test_hardly_any_node_is_left_without_a_certificate() -> None:
    # Degenerate on purpose: bounds and held answers that meet the truth exactly, and imply each other.
    left = [seed for seed in range(300) if solve(random_node(seed)).kkt_residual > 1e-6]
    assert len(left) <= 3


def pl_node(k: int = 6, seed: int = 3) -> tuple[tuple[int, ...], Floats, Node]:
    r = np.random.default_rng(seed)
    shape = (3, 2, 4)
    truth = r.poisson(r.gamma(0.4, 6, 24) * r.gamma(1, 1, (k, 1))).astype(float)
    truth[0] += 1
    kinds = [((0, 0, 0), 2.0), ((0, 1, 1), 5.0), ((1, 0, 0), 20.0), ((1, 1, 1), 10.0)]
    queries = tuple(labels_of(shape, kept) for kept, _ in kinds)
    answers = tuple(
        (t := sums(truth, q, int(q.max()) + 1)) + np.rint(r.normal(0, v**0.5, t.shape))
        for q, (_, v) in zip(queries, kinds, strict=True)
    )
    weights = np.tile([1 / v for _, v in kinds], (k, 1))
    return shape, truth, Node(truth.sum(axis=0), queries, answers, weights)


def test_signed_sums_of_margins_stand_for_their_precision_matrix() -> None:
    _, _, node = pl_node()
    # 3 |x|^2 - |Qx|^2 with Q pairing two cells each: eigenvalues 1 and 3.
    pairs = (np.arange(24) // 2).astype(np.int32)
    answers = (node.answers[3], sums(node.answers[3], pairs, 12))
    signed = Node(node.parent, (node.queries[3], pairs), answers, np.tile([3.0, -1.0], (6, 1)))
    found = solve(signed)
    objective, least, _ = exact(signed)
    assert found.kkt_residual <= 1e-6
    assert objective(found.counts.ravel()) == pytest.approx(least, rel=1e-8)


def test_recodes_given_as_labels_are_the_margins_they_equal() -> None:
    _, _, node = pl_node()
    renamed = replace(node, queries=(*node.queries[:3], node.queries[3][::-1].copy()), answers=(
        *node.answers[:3], node.answers[3][:, ::-1].copy()))  # fmt: skip
    assert solve(renamed).counts == pytest.approx(solve(node).counts, abs=1e-8)


def test_order_of_children_does_not_matter() -> None:
    _, _, node = pl_node()
    weights = node.weights * np.array([1, 3, 1, 2, 3, 1])[:, None]
    order = np.array([4, 0, 5, 2, 1, 3])
    one = solve(replace(node, weights=weights))
    other = solve(replace(node, weights=weights[order], answers=tuple(a[order] for a in node.answers)))
    assert other.counts == pytest.approx(one.counts[order], abs=1e-8)


def test_one_child_is_its_parent() -> None:
    _, _, node = pl_node(k=1)
    assert solve(node).counts[0] == pytest.approx(node.parent, abs=1e-9)


def test_exact_measurements_of_the_truth_are_returned() -> None:
    shape, truth, _ = pl_node()
    found = estimate_node(truth.sum(axis=0), shape, [[1, 1, 1]], truth, np.ones((6, 1)))
    assert found.counts == pytest.approx(truth, abs=1e-9)
    assert found.objective == pytest.approx(0, abs=1e-12)


def test_estimate_node_matches_the_inner_solver_and_counts_dead_cells_in_the_objective() -> None:
    shape, truth, node = pl_node()
    kinds = [[0, 0, 0], [0, 1, 1], [1, 0, 0], [1, 1, 1]]
    parent = truth.sum(axis=0)
    truth[:, 5] = 0
    parent[5] = 0
    found = estimate_node(parent, shape, kinds, np.hstack(node.answers), 1 / node.weights)
    assert isinstance(found, NodeEstimate)
    assert (found.counts[:, 5] == 0).all()
    total = sum(
        (w * ((sums(found.counts, q, a.shape[1]) - a) ** 2).sum(axis=1)).sum()
        for q, a, w in zip(node.queries, node.answers, node.weights.T, strict=True)
    )
    assert found.objective == pytest.approx(total, rel=1e-12)
    assert found.kkt_residual < 1e-8


def test_unmeasured_queries_may_hold_nan() -> None:
    shape, truth, node = pl_node()
    variances = 1 / node.weights
    variances[2] = np.inf
    answers = np.hstack(node.answers)
    answers[2] = np.nan
    found = estimate_node(truth.sum(axis=0), shape, [[0, 0, 0], [0, 1, 1], [1, 0, 0], [1, 1, 1]], answers, variances)
    assert np.isfinite(found.counts).all()
    assert np.isfinite(found.objective)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"parent": [1.0]}, "parent has shape"),
        ({"parent": [-1.0, 1.0]}, "not negative"),
        ({"queries": [[1, 1]]}, "1 flags"),
        ({"answers": [[1.0]]}, "answers has shape"),
        ({"answers": [[1.0, np.nan], [1.0, 1.0]]}, "not finite"),
        ({"variances": [[0.0], [1.0]]}, "positive"),
        ({"lower": [[1.0]]}, "lower has shape"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(change: dict[str, Any], says: str) -> None:
    good: dict[str, Any] = {
        "parent": [1.0, 2.0],
        "shape": (2,),
        "queries": [[1]],
        "answers": np.ones((2, 2)),
        "variances": [[1.0]] * 2,
    }
    estimate_node(**good)
    with pytest.raises(ValueError, match=says):
        estimate_node(**(good | change))


@pytest.mark.parametrize(
    ("lower", "upper"),
    [
        ([[2.0, 0.0], [2.0, 0.0]], None),
        (None, [[1.0, 9.0], [1.0, 9.0]]),
        (None, [[0.0, 9.0], [0.0, 9.0]]),
        ([[0.0, 2.0], [0.0, 0.0]], [[9.0, 1.0], [9.0, 9.0]]),
    ],
)
def test_bounds_that_exclude_the_parent_are_infeasible(lower: Any, upper: Any) -> None:  # noqa: ANN401
    with pytest.raises(InfeasibleNode):
        estimate_node([3.0, 2.0], (2,), [[1]], np.ones((2, 2)), np.ones((2, 1)), lower, upper)


def test_contradictions_that_no_single_sum_shows_are_infeasible() -> None:
    # Both margins of the first child are held at 2, one cell of it must be 2 at most, and a bound asks for more.
    r, c = np.array([0, 0, 1, 1], np.int32), np.array([0, 1, 0, 1], np.int32)
    held = (
        Constraint.near(r, np.array([[2.0, 0.1], [3.0, 4.9]])),
        Constraint.near(c, np.array([[0.0, 2.1], [4.0, 3.9]])),
    )
    node = Node(
        np.array([4.0, 1.0, 1.0, 4.0]), (np.arange(4, dtype=np.int32),), (np.ones((2, 4)),), np.ones((2, 1)), held
    )
    with pytest.raises(InfeasibleNode):
        solve(node)


def test_failsafe_departs_from_the_parent_no_more_than_needed() -> None:
    groups = np.array([0, 0, 1, 1], np.int32)
    held = Constraint.near(np.array([0, 1, 0, 1], np.int32), np.array([[3.0, 2.0], [5.0, 0.0]]), 0.0)
    upper = np.array([[9.0, 0.0], [9.0, 9.0]])
    node = Node(
        np.array([5.0, 0.0, 3.0, 2.0]),
        (np.arange(4, dtype=np.int32),),
        (np.array([[3.0, 1, 2, 1], [2, 0, 1, 1]]),),
        np.ones((2, 1)),
        (held, Constraint(groups, np.zeros((2, 2)), upper)),
    )
    with pytest.raises(InfeasibleNode):
        solve(node)
    found, v = solve_failsafe(node)
    assert v == pytest.approx(4)
    assert found.counts == pytest.approx(np.array([[3.0, 2, 0, 0], [2.5, 0, 2.5, 0]]), abs=1e-6)
    assert found.kkt_residual <= 1e-6


def test_failsafe_keeps_a_feasible_parent_within_its_allowance() -> None:
    _, _, node = pl_node()
    found, v = solve_failsafe(node)
    assert v == pytest.approx(0, abs=1e-9)
    assert np.abs(found.counts.sum(axis=0) - node.parent).sum() <= 1 + 1e-6
    assert found.counts.sum() == pytest.approx(node.parent.sum())
    assert found.objective <= solve(node).objective + 1e-9


def test_failsafe_refuses_constraints_that_contradict_each_other() -> None:
    whole = np.zeros(2, np.int32)
    node = Node(np.array([1.0, 1.0]), (), (), np.zeros((2, 0)), (Constraint.near(whole, np.array([[2.0], [2.0]])),))
    with pytest.raises(InfeasibleNode):
        solve_failsafe(node)


def test_starting_the_program_does_not_load_the_compiler() -> None:
    code = "import sys, yupana, yupana.topdown, yupana.cli.start; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
