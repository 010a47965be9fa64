"""The network simplex against linear programs of random graphs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from yupana.arrays import Ints
from yupana.compiled import compiled
from yupana.topdown.node.problem import InfeasibleNode
from yupana.topdown.rounding.flow import Graph, improve


@compiled
def improve_alone(graph: Graph, parent: Ints, link: Ints, potential: Ints) -> int:
    """Improve a flow for a caller that is not compiled."""
    return improve(graph, parent, link, potential)


def min_cost_flow(tail: Ints, head: Ints, capacity: Ints, cost: Ints, supply: Ints) -> Ints:
    """The cheapest flow that takes every node's supply to the nodes that demand it.

    Parameters
    ----------
    tail, head : ndarray of int64, shape (arcs,)
        The nodes each arc leaves and enters; parallel arcs are allowed.
    capacity, cost : ndarray of int64, shape (arcs,)
        Capacities are not negative. The sum of the absolute costs must stay below 2^60.
    supply : ndarray of int64, shape (nodes,)
        Negative for a demand; sums to zero.

    Returns
    -------
    ndarray of int64, shape (arcs,)

    Raises
    ------
    InfeasibleNode
        Where the capacities let no such flow through.
    """
    nodes = len(supply)
    if supply.sum() != 0:
        raise ValueError(f"supply must sum to zero; it sums to {supply.sum()}.")
    ceiling = int(np.abs(cost).sum()) + 1
    if ceiling >= 1 << 60:
        raise ValueError("The sum of the absolute costs must stay below 2^60; scale them down.")
    # A root is joined to every node by an arc that costs more than any path: the first tree.
    every = np.arange(1, nodes + 1)
    gives = supply >= 0
    amount = np.abs(supply)
    real = len(tail)
    flow = np.concatenate([np.zeros(real, dtype=np.int64), amount])
    state = np.concatenate([np.where(capacity > 0, 1, 0), np.zeros(nodes)]).astype(np.int8)
    graph = Graph(
        np.concatenate([tail + 1, np.where(gives, every, 0)]),
        np.concatenate([head + 1, np.where(gives, 0, every)]),
        np.concatenate([capacity, np.full(nodes, amount.sum() + 1)]),
        np.concatenate([cost, np.full(nodes, ceiling)]),
        flow,
        state,
    )
    improve_alone(
        graph,
        np.concatenate([[-1], np.zeros(nodes, dtype=np.int64)]),
        np.concatenate([[-1], real + np.arange(nodes)]),
        np.zeros(nodes + 1, dtype=np.int64),
    )
    if flow[real:].any():
        raise InfeasibleNode("No flow fits the capacities; raise capacities or lower the supplies.")
    return flow[:real]


def incidence(tail: np.ndarray, head: np.ndarray, nodes: int) -> np.ndarray:
    matrix = np.zeros((nodes, len(tail)))
    np.add.at(matrix, (tail, np.arange(len(tail))), 1)
    np.add.at(matrix, (head, np.arange(len(tail))), -1)
    return matrix


@pytest.mark.parametrize("examples", [40, pytest.param(80, marks=pytest.mark.thorough)])
@pytest.mark.thorough
def test_a_flow_is_as_cheap_as_the_linear_program(examples: int) -> None:
    made = given(st.integers(0, 2**32 - 1), st.integers(2, 14), st.integers(0, 70), st.integers(0, 3))
    settings(max_examples=examples, deadline=None)(made(_check_flow))()


def _check_flow(seed: int, nodes: int, arcs: int, spread: int) -> None:
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


@pytest.mark.thorough
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
