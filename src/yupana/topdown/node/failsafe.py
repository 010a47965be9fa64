"""What is done where a parent contradicts its children's constraints: bend the parent, as little as possible."""

from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from yupana.arrays import Indices
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
from yupana.topdown.node.problem import InfeasibleNode, Node, Solution

ALLOWANCE = 1.0
"""Persons by which the sum of departures may exceed the least, as in the production of 2020."""


def arrange_without_parent(node: Node, kept: Indices | None) -> tuple[Arranged, Any]:
    """Arrange a node whose constraints stand whatever its parent says; also the sparse sums of its cells to keep."""
    constraints = constraints_of(node)
    shut = np.zeros((node.live, node.children), dtype=np.bool_)
    bounds = []
    for constraint in constraints:
        shut |= (constraint.high <= 0.0)[:, constraint.labels].T
        low = np.where(constraint.low > 0.0, constraint.low, -np.inf)
        bounds.append(Constraint(constraint.labels, low, np.maximum(constraint.high, 0.0)))
    groups = np.zeros(node.live, dtype=np.int32) if kept is None else kept
    shape = (int(groups.max(initial=0)) + 1, node.live)
    return arrange_node(node, shut, bounds), sparse.csr_matrix(
        (np.ones(node.live), (groups, np.arange(node.live))), shape
    )


def solve_failsafe(node: Node, kept: Indices | None = None, least: float | None = None) -> tuple[Solution, float]:
    """Keep the constraints and some sums of the parent, and depart from the parent's cells as little as they allow.

    First v, the least sum over cells of |parent - sum of children| that the constraints permit, is found as a linear
    programme; then the least squares of `Node` are minimised with that sum at most v + 1.

    Parameters
    ----------
    node : Node
        As for `solve`, except that ``parent`` may have zeros: it lists every cell that the children may use.
    kept : ndarray of int32, shape (m,), or None
        Which of the parent's sums each cell counts in that the children must meet, such as its totals by group; None
        for its total alone.
    least : float, optional
        v, where an earlier pass has found it: what that pass holds must not make room for more.

    Returns
    -------
    solution : Solution
        Its ``counts`` sum over the children to the sums kept, but not to the parent in every cell. Its
        ``kkt_residual`` is the largest violation of a constraint only, in persons.
    v : float
        The least departure, in persons.

    Raises
    ------
    InfeasibleNode
        If the constraints contradict each other, or the sums kept.
    """
    a, member = arrange_without_parent(node, kept)
    m, k = a.squares.b.shape
    n = k * m
    children = cell_sums(a)
    slack = sparse.eye(m)
    lower = np.nonzero(np.isfinite(a.conditions.low))
    upper = np.nonzero(np.isfinite(a.conditions.high))
    # The variables are the counts and, for each cell, a bound on its departure from the parent.
    exact = sparse.vstack([member @ children, joint_sums(a)])
    exact = sparse.hstack([exact, sparse.csr_matrix((exact.shape[0], m))], format="csr")
    values = np.concatenate([member @ a.conditions.parent, a.conditions.joint_total])
    rows = sparse.vstack([row_sums(a, *upper), -row_sums(a, *lower)])
    within = sparse.vstack(
        [
            sparse.hstack([children, -slack]),
            sparse.hstack([-children, -slack]),
            sparse.hstack([rows, sparse.csr_matrix((rows.shape[0], m))]),
        ],
        format="csr",
    )
    limits = np.concatenate(
        [a.conditions.parent, -a.conditions.parent, a.conditions.high[upper], -a.conditions.low[lower]]
    )
    top = np.concatenate([np.where(a.conditions.shut.T.ravel(), 0.0, np.inf), np.full(m, np.inf)])
    cost = np.concatenate([np.zeros(n), np.ones(m)])
    nearest = linprog(
        cost,
        A_ub=within,
        b_ub=limits,
        A_eq=exact,
        b_eq=values,
        bounds=np.column_stack([np.zeros(n + m), top]),
        method="highs",
    )
    if nearest.status != 0:
        raise InfeasibleNode(
            "the constraints on the children contradict each other or the sums of the parent, so that even the "
            "failsafe finds no counts. Check the bounds and the joint totals of this node."
        )
    v = float(nearest.fun) if least is None else least
    most = max(v + ALLOWANCE, float(nearest.fun))
    # Counts, departures, then the extra variables of the objective.
    goal = objective_of(a)
    link = sparse.hstack([goal.link[:, :n], sparse.csr_matrix((goal.link.shape[0], m)), goal.link[:, n:]], format="csr")
    hessian = sparse.block_diag([goal.hessian[:n, :n], sparse.csc_matrix((m, m)), goal.hessian[n:, n:]], format="csc")
    linear = np.concatenate([goal.linear[:n], np.zeros(m), goal.linear[n:]])
    identity = sparse.eye(n + m, format="csr")
    shut = np.flatnonzero(top == 0.0)
    found = minimise(
        Objective(hessian, linear, link, goal.extra, goal.unit),
        sparse.vstack([exact, identity[shut]]),
        np.concatenate([values, np.zeros(len(shut))]),
        sparse.vstack([within, cost.reshape(1, -1), -identity[np.flatnonzero(top > 0.0)]]),
        np.concatenate([limits, [most], np.zeros(n + m - len(shut))]),
    )
    if usable(found):
        counts, iterations, solver = counts_of(a, found.x), int(found.iterations), "clarabel"
    else:
        counts, iterations, solver = counts_of(a, nearest.x), 0, "linear programme (not certified)"
    point = np.concatenate([counts.T.ravel(), np.abs(a.conditions.parent - counts.sum(axis=1))])
    violation = max(
        float(np.abs(exact @ point - values).max()),
        float((within @ point - limits).max(initial=0.0)),
        float(cost @ point) - most,
    )
    objective = sum_of_squares(a.labels, a.offsets, a.targets, a.inverse, counts)
    out = np.empty((k, m))
    out[a.order] = counts.T
    return Solution(out, objective, violation, iterations, solver), v
