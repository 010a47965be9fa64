"""What is done where a parent contradicts its children's constraints: bend the parent, as little as possible."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from yupana.arrays import Floats
from yupana.topdown.node.arranged import Arranged, Constraint, arrange_node, constraints_of
from yupana.topdown.node.general import (
    Objective,
    cell_sums,
    counts_of,
    joint_sums,
    minimise,
    objective_of,
    row_sums,
    usable,
)
from yupana.topdown.node.kernels import sum_of_squares
from yupana.topdown.node.problem import InfeasibleNode, Node, NodeEstimate

ALLOWANCE = 1.0
"""Persons by which the sum of departures may exceed the least, as in the production of 2020."""


def arrange_without_parent(node: Node) -> Arranged:
    """Arrange a node whose constraints stand whatever its parent says."""
    shut = np.zeros((node.live, node.children), dtype=np.bool_)
    bounds = []
    for constraint in constraints_of(node):
        shut |= (constraint.high <= 0.0)[:, constraint.labels].T
        low = np.where(constraint.low > 0.0, constraint.low, -np.inf)
        bounds.append(Constraint(constraint.labels, low, np.maximum(constraint.high, 0.0)))
    return arrange_node(node, shut, bounds)


@dataclass(frozen=True, slots=True, eq=False)
class Elastic:
    """The constraints of a node whose parent may be departed from; the variables are counts, then elastic ones.

    Attributes
    ----------
    exact, values : sparse matrix and ndarray
        Sums that are kept: exact @ x = values.
    within, limits : sparse matrix and ndarray
        Bounds: within @ x <= limits.
    top : ndarray
        The largest value of each variable; the smallest is 0.
    departure : ndarray
        Its product with x is the sum of the elastic variables, which bound the departure from the parent cell by cell.
    """

    exact: Any
    values: Floats
    within: Any
    limits: Floats
    top: Floats
    departure: Floats


def relax(a: Arranged) -> Elastic:
    """Make the parent's cells elastic; only their total is kept."""
    m, k = a.squares.b.shape
    children = cell_sums(a)
    slack = sparse.eye(m)
    lower = np.nonzero(np.isfinite(a.conditions.low))
    upper = np.nonzero(np.isfinite(a.conditions.high))
    total = sparse.csr_matrix(np.ones((1, m)))
    exact = sparse.vstack([total @ children, joint_sums(a)])
    rows = sparse.vstack([row_sums(a, *upper), -row_sums(a, *lower)])
    within = [
        sparse.hstack([children, -slack]),
        sparse.hstack([-children, -slack]),
        sparse.hstack([rows, sparse.csr_matrix((rows.shape[0], m))]),
    ]
    parent, high, low = a.conditions.parent, a.conditions.high[upper], a.conditions.low[lower]
    return Elastic(
        exact=sparse.hstack([exact, sparse.csr_matrix((exact.shape[0], m))], format="csr"),
        values=np.concatenate([total @ parent, a.conditions.joint_total]),
        within=sparse.vstack(within, format="csr"),
        limits=np.concatenate([parent, -parent, high, -low]),
        top=np.concatenate([np.where(a.conditions.shut.T.ravel(), 0.0, np.inf), np.full(m, np.inf)]),
        departure=np.concatenate([np.zeros(k * m), np.ones(m)]),
    )


def least_departure(elastic: Elastic) -> tuple[Floats, float]:
    """Find where the parent is departed from least, and by how much, as a linear programme."""
    found = linprog(
        elastic.departure,
        A_ub=elastic.within,
        b_ub=elastic.limits,
        A_eq=elastic.exact,
        b_eq=elastic.values,
        bounds=np.column_stack([np.zeros(len(elastic.top)), elastic.top]),
        method="highs",
    )
    if found.status != 0:
        raise InfeasibleNode(
            "the constraints on the children contradict each other or the parent's total, so that even the "
            "failsafe finds no counts. Check the bounds and the joint totals of this node."
        )
    return found.x, float(found.fun)


def least_squares(a: Arranged, elastic: Elastic, most: float) -> Any:  # noqa: ANN401  (clarabel's solution)
    """Minimise the objective of the node where the departure is at most ``most``."""
    m, k = a.squares.b.shape
    n = k * m
    # Counts, departures, then the extra variables of the objective.
    goal = objective_of(a)
    link = sparse.hstack([goal.link[:, :n], sparse.csr_matrix((goal.link.shape[0], m)), goal.link[:, n:]], format="csr")
    hessian = sparse.block_diag([goal.hessian[:n, :n], sparse.csc_matrix((m, m)), goal.hessian[n:, n:]], format="csc")
    linear = np.concatenate([goal.linear[:n], np.zeros(m), goal.linear[n:]])
    identity = sparse.eye(n + m, format="csr")
    shut = np.flatnonzero(elastic.top == 0.0)
    return minimise(
        Objective(hessian, linear, link, goal.extra, goal.unit),
        sparse.vstack([elastic.exact, identity[shut]]),
        np.concatenate([elastic.values, np.zeros(len(shut))]),
        sparse.vstack([elastic.within, elastic.departure.reshape(1, -1), -identity[np.flatnonzero(elastic.top > 0.0)]]),
        np.concatenate([elastic.limits, [most], np.zeros(n + m - len(shut))]),
    )


def violation_of(elastic: Elastic, parent: Floats, counts: Floats, most: float) -> float:
    """Find the largest violation of a constraint, in persons."""
    point = np.concatenate([counts.T.ravel(), np.abs(parent - counts.sum(axis=1))])
    return max(
        float(np.abs(elastic.exact @ point - elastic.values).max()),
        float((elastic.within @ point - elastic.limits).max(initial=0.0)),
        float(elastic.departure @ point) - most,
    )


def solve_failsafe(node: Node, least: float | None = None) -> tuple[NodeEstimate, float]:
    """Keep the constraints and the parent's total, and depart from the parent's cells as little as they allow.

    First v, the least sum over cells of |parent - sum of children| that the constraints permit, is found as a linear
    programme; then the least squares of `Node` are minimised with that sum at most v + 1.

    Parameters
    ----------
    node : Node
        As for `solve`, except that ``parent`` may have zeros: it lists every cell that the children may use.
    least : float, optional
        v, where an earlier pass has found it: what that pass holds must not make room for more.

    Returns
    -------
    solution : NodeEstimate
        Its ``counts`` sum to the parent's total, but not to the parent in every cell. Its
        ``kkt_residual`` is the largest violation of a constraint only, in persons.
    v : float
        The least departure, in persons.

    Raises
    ------
    InfeasibleNode
        If the constraints contradict each other, or the parent's total.
    """
    a = arrange_without_parent(node)
    elastic = relax(a)
    nearest, departure = least_departure(elastic)
    v = departure if least is None else least
    most = max(v + ALLOWANCE, departure)
    found = least_squares(a, elastic, most)
    if usable(found):
        counts, iterations, solver = counts_of(a, found.x), int(found.iterations), "clarabel"
    else:
        counts, iterations, solver = counts_of(a, nearest), 0, "linear programme (not certified)"
    violation = violation_of(elastic, a.conditions.parent, counts, most)
    objective = sum_of_squares(a.labels, a.offsets, a.targets, a.inverse, counts)
    out = np.empty(counts.shape[::-1])
    out[a.order] = counts.T
    return NodeEstimate(out, objective, violation, iterations, solver), v
