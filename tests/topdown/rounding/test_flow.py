"""The network simplex against linear programs of random graphs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from yupana.topdown.node.problem import InfeasibleNode
from yupana.topdown.rounding.flow import min_cost_flow


def incidence(tail: np.ndarray, head: np.ndarray, nodes: int) -> np.ndarray:
    matrix = np.zeros((nodes, len(tail)))
    np.add.at(matrix, (tail, np.arange(len(tail))), 1)
    np.add.at(matrix, (head, np.arange(len(tail))), -1)
    return matrix


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 14), st.integers(0, 70), st.integers(0, 3))
def test_a_flow_is_as_cheap_as_the_linear_program(seed: int, nodes: int, arcs: int, spread: int) -> None:
    r = np.random.default_rng(seed)
    tail = r.integers(0, nodes, arcs)
    head = (tail + r.integers(1, nodes, arcs)) % nodes
    capacity = r.integers(0, 2 + 3 * spread, arcs)
    cost = r.integers(-(10**spread), 10**spread + 1, arcs)
    matrix = incidence(tail, head, nodes)
    supply = (matrix @ r.integers(0, capacity + 1)).astype(np.int64)
    if r.random() < 0.2:  # perhaps infeasible
        supply += r.permutation(np.r_[1, -1, np.zeros(nodes - 2, dtype=np.int64)])
    if arcs:
        oracle = linprog(cost, A_eq=matrix, b_eq=supply, bounds=np.c_[np.zeros(arcs), capacity])
        best = oracle.fun if oracle.status == 0 else None
    else:
        best = None if supply.any() else 0.0
    if best is None:
        with pytest.raises(InfeasibleNode):
            min_cost_flow(tail, head, capacity, cost, supply)
        return
    flow = min_cost_flow(tail, head, capacity, cost, supply)
    assert (flow >= 0).all()
    assert (flow <= capacity).all()
    assert (matrix @ flow == supply).all()
    assert cost @ flow == pytest.approx(best, abs=1e-6)


def test_a_degenerate_assignment_ends() -> None:
    """Every basis of an assignment problem is degenerate, where a simplex method without care can cycle."""
    size = 40
    r = np.random.default_rng(1)
    tail, head = (index.ravel() for index in np.indices((size, size)))
    cost = r.integers(0, 3, size * size)
    flow = min_cost_flow(tail, head + size, np.ones(size**2, dtype=np.int64), cost, np.repeat([1, -1], size))
    oracle = linprog(cost, A_eq=incidence(tail, head + size, 2 * size), b_eq=np.repeat([1, -1], size), bounds=(0, 1))
    assert cost @ flow == pytest.approx(oracle.fun)


def test_supplies_that_do_not_balance_are_refused() -> None:
    zero = np.zeros(1, dtype=np.int64)
    with pytest.raises(ValueError, match="sum to zero"):
        min_cost_flow(zero, zero + 1, zero, zero, np.array([1, 0]))
    with pytest.raises(ValueError, match="2\\^60"):
        min_cost_flow(zero, zero + 1, zero, zero + (1 << 60), np.array([0, 0]))
