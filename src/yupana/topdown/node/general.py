"""The node as a sparse programme: the last resort, what decides that a node is infeasible, and the failsafe.

Where a parent contradicts its children's constraints, the failsafe bends the parent, as little as possible.
"""

from dataclasses import dataclass
from typing import Any

import clarabel
import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from yupana.arrays import Flags, Floats
from yupana.topdown.node.arranged import NEAR, Arranged, arrange_node
from yupana.topdown.node.kernels import Point, Positions, sum_of_squares
from yupana.topdown.node.problem import Constraint, InfeasibleNode, Node, NodeEstimate

_Places = tuple[Positions, ...]
"""Rows of constraints, and the child of each."""


def cell_sums(a: Arranged) -> Any:  # noqa: ANN401  (a sparse matrix)
    """Add the children cell by cell: shape (m, k m), counts child by child."""
    return sparse.kron(np.ones((1, len(a.squares.scale))), sparse.eye(len(a.conditions.parent)), format="csr")


def joint_sums(a: Arranged) -> Any:  # noqa: ANN401
    """Add up the children that are held together: shape (joint totals, k m)."""
    return sparse.kron(a.conditions.joint.astype(np.float64), np.ones((1, len(a.conditions.parent))), format="csr")


def row_sums(a: Arranged, rows: Positions, children: Positions) -> Any:  # noqa: ANN401
    """Add the cells of some rows of constraints, each for one child: shape (len(rows), k m)."""
    m = len(a.conditions.parent)
    query, cell = np.divmod(np.argsort(a.conditions.row_of, axis=None, kind="stable"), m)
    starts = np.searchsorted(a.conditions.row_of[query, cell], np.arange(len(a.penalty.strength) + 1))
    counts = np.diff(starts)[rows]
    at = np.repeat(starts[rows] - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts) + np.arange(counts.sum())
    column = np.repeat(children, counts) * m + cell[at]
    shape = (len(rows), len(a.squares.scale) * m)
    return sparse.csr_matrix((np.ones(len(column)), (np.repeat(np.arange(len(rows)), counts), column)), shape=shape)


def bounded_rows(a: Arranged, chosen: Flags | bool = True) -> tuple[Any, Floats, _Places, _Places]:  # noqa: FBT001, FBT002
    """Rows of constraints, chosen by row and child, as sums that are at most some limits.

    Returns
    -------
    tuple
        Those bounded from above and, with the other sign, those bounded from below; their limits; and which both are.
    """
    low, high = a.conditions.low, a.conditions.high
    upper, lower = np.nonzero(np.isfinite(high) & chosen), np.nonzero(np.isfinite(low) & chosen)
    rows = sparse.vstack([row_sums(a, *upper), -row_sums(a, *lower)])
    return rows, np.concatenate([high[upper], -low[lower]]), upper, lower


def refuse_if_infeasible(a: Arranged) -> None:
    """Raise InfeasibleNode if every choice of counts violates some constraint by more than `NEAR` persons."""
    sums = sparse.vstack([cell_sums(a), joint_sums(a)])
    values = np.concatenate([a.conditions.parent, a.conditions.joint_total])
    rows, limits, _, _ = bounded_rows(a)
    matrix = sparse.vstack([sums, -sums, rows])
    # One elastic variable for all constraints: by how much they are violated at most.
    within = sparse.hstack([matrix, -np.ones((matrix.shape[0], 1))], format="csr")
    none = sparse.csr_matrix((0, within.shape[1]))
    found = _least(_elastic(a, none, np.zeros(0), within, np.concatenate([values, -values, limits])))
    if found.status == 0 and found.fun > NEAR * (1.0 + 1e-6 * float(a.conditions.parent.max())):
        raise InfeasibleNode(
            "no counts of the children satisfy the parent and the constraints. Use the failsafe, or correct the "
            "constraints."
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Objective:
    """Half the objective of a node, without its constant, in the variables of a general solver."""

    hessian: Any  # upper half. The counts come first, child by child, then `extra` variables.
    linear: Floats
    link: Any  # times the variables it is 0; no rows where there are no extra variables
    extra: int
    unit: float  # what the objective was divided by


def objective_of(a: Arranged) -> _Objective:
    """Write the objective of a node for a general solver."""
    m, k = a.squares.b.shape
    size = a.squares.form.shape[1]
    profile = np.repeat(np.arange(len(a.squares.form)), np.diff(a.squares.starts))
    unit = float(np.median(a.squares.scale))
    scale = a.squares.scale / unit
    blocks = sparse.csr_matrix(
        (np.ones(a.squares.blocks.size), (a.squares.blocks.ravel(), np.tile(np.arange(m), len(a.squares.blocks)))),
        shape=(size, m),
    )
    split = not a.penalty.whole and size > 0 and bool((a.inverse >= 0.0).all())
    if split:
        # The blocks of each child become variables of their own, which keeps the programme sparse.
        quadratic = [sparse.diags(np.repeat(scale * a.squares.single[profile], m))]
        quadratic += [sparse.csc_matrix(s * a.squares.form[p]) for s, p in zip(scale, profile, strict=True)]
        extra = k * size
        link = sparse.hstack([sparse.kron(sparse.eye(k), blocks), -sparse.eye(extra)], format="csr")
    else:
        dense = [
            a.squares.single[p] * sparse.eye(m) + blocks.T @ (a.squares.form[p] @ blocks.toarray())
            for p in range(len(a.squares.form))
        ]
        quadratic = [sparse.csc_matrix(s * dense[p]) for s, p in zip(scale, profile, strict=True)]
        extra = 0
        link = sparse.csr_matrix((0, k * m))
    hessian = sparse.triu(sparse.block_diag(quadratic), format="csc")
    linear = np.concatenate([-(a.squares.b * scale).T.ravel(), np.zeros(extra)])
    return _Objective(hessian, linear, link, extra, unit)


def pad(matrix: Any, columns: int) -> Any:  # noqa: ANN401
    """Append columns of zeros."""
    return sparse.hstack([matrix, sparse.csr_matrix((matrix.shape[0], columns))], format="csr")


def interior_point(a: Arranged) -> tuple[Point, int, bool]:
    """Solve the node by clarabel.

    Returns
    -------
    point : Point
    iterations : int
    solved : bool
    """
    m, k = a.squares.b.shape
    goal = objective_of(a)
    same = a.conditions.low == a.conditions.high
    fixed = np.nonzero(same)
    bounded, most, upper, lower = bounded_rows(a, ~same)
    identity = sparse.eye(k * m, format="csr")
    shut = np.flatnonzero(a.conditions.shut.T)
    open_ = np.flatnonzero(~a.conditions.shut.T)
    exact = [cell_sums(a), joint_sums(a), row_sums(a, *fixed), identity[shut]]
    values = [a.conditions.parent, a.conditions.joint_total, a.conditions.low[fixed], np.zeros(len(shut))]
    within, limits = sparse.vstack([bounded, -identity[open_]]), np.concatenate([most, np.zeros(len(open_))])
    found = minimise(goal, sparse.vstack(exact), np.concatenate(values), within, limits)
    dual = np.array(found.z)[goal.link.shape[0] :]
    sizes = [*(part.shape[0] for part in exact), len(upper[0]), len(lower[0])]
    parts = np.split(dual, np.cumsum(sizes))
    rows = np.zeros(a.conditions.low.shape)
    rows[fixed] -= parts[2]
    rows[upper] -= parts[4]
    rows[lower] += parts[5]
    cells = -np.concatenate([parts[0], parts[1]]) * goal.unit
    counts = counts_of(a, found.x)
    point = Point(counts, cells, rows * goal.unit / a.squares.scale, np.empty_like(counts))
    return point, int(found.iterations), usable(found)


def minimise(goal: _Objective, exact: Any, values: Floats, within: Any, limits: Floats) -> Any:  # noqa: ANN401
    """Run clarabel on the objective with exact @ x = values and within @ x <= limits, x without the extra variables."""
    extra = goal.hessian.shape[0] - exact.shape[1]
    matrix = sparse.vstack([pad(goal.link, 0), pad(exact, extra), pad(within, extra)], format="csc")
    start = np.zeros(goal.link.shape[0])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    cones = [clarabel.ZeroConeT(len(start) + len(values)), clarabel.NonnegativeConeT(len(limits))]
    right = np.concatenate([start, values, limits])
    return clarabel.DefaultSolver(goal.hessian, goal.linear, matrix, right, cones, settings).solve()


def usable(found: Any) -> bool:  # noqa: ANN401
    """Tell whether clarabel came to a point worth certifying."""
    return str(found.status) in {"Solved", "AlmostSolved", "InsufficientProgress", "MaxIterations"}


def counts_of(a: Arranged, variables: Any) -> Floats:  # noqa: ANN401
    """Take the counts, of shape (m, k), out of a general solver's variables."""
    m, k = a.squares.b.shape
    counts = np.ascontiguousarray(np.maximum(np.array(variables)[: k * m].reshape(k, m).T, 0.0))
    counts[a.conditions.shut] = 0.0
    return counts


ALLOWANCE = 1.0
"""Persons by which the sum of departures may exceed the least, as in the production of 2020."""


def arrange_without_parent(node: Node) -> Arranged:
    """Arrange a node whose constraints stand whatever its parent says."""
    shut = np.zeros((node.live, node.children), dtype=np.bool_)
    bounds = []
    for constraint in node.constraints:
        shut |= (constraint.high <= 0.0)[:, constraint.labels].T
        low = np.where(constraint.low > 0.0, constraint.low, -np.inf)
        bounds.append(Constraint(constraint.labels, low, np.maximum(constraint.high, 0.0)))
    return arrange_node(node, shut, bounds)


@dataclass(frozen=True, slots=True, eq=False)
class _Elastic:
    """The constraints of a node whose parent may be departed from; the variables are counts, then elastic ones."""

    # exact @ x equals the values: sums that are kept
    exact: Any
    values: Floats
    # within @ x is at most the limits
    within: Any
    limits: Floats
    top: Floats  # the largest value of each variable; the smallest is 0
    # its product with x is the sum of the elastic variables, which bound the departure from the parent cell by cell
    departure: Floats


def _elastic(a: Arranged, exact: Any, values: Floats, within: Any, limits: Floats) -> _Elastic:  # noqa: ANN401
    """Bound the counts of a node, behind which the elastic variables stand."""
    top = np.where(a.conditions.shut.T.ravel(), 0.0, np.inf)
    more = np.ones(within.shape[1] - len(top))
    return _Elastic(exact, values, within, limits, np.append(top, more * np.inf), np.append(np.zeros(len(top)), more))


def _least(elastic: _Elastic) -> Any:  # noqa: ANN401  (scipy's solution)
    """Find the least sum of the elastic variables, as a linear programme."""
    return linprog(
        elastic.departure,
        A_ub=elastic.within,
        b_ub=elastic.limits,
        A_eq=elastic.exact,
        b_eq=elastic.values,
        bounds=np.column_stack([np.zeros(len(elastic.top)), elastic.top]),
        method="highs",
    )


def relax(a: Arranged) -> _Elastic:
    """Make the parent's cells elastic; only their total is kept."""
    m, parent = len(a.conditions.parent), a.conditions.parent
    children, slack, total = cell_sums(a), sparse.eye(m), sparse.csr_matrix(np.ones((1, m)))
    rows, limits, _, _ = bounded_rows(a)
    within = [sparse.hstack([children, -slack]), sparse.hstack([-children, -slack]), pad(rows, m)]
    return _elastic(
        a,
        pad(sparse.vstack([total @ children, joint_sums(a)]), m),
        np.concatenate([total @ parent, a.conditions.joint_total]),
        sparse.vstack(within, format="csr"),
        np.concatenate([parent, -parent, limits]),
    )


def least_departure(elastic: _Elastic) -> tuple[Floats, float]:
    """Find where the parent is departed from least, and by how much."""
    found = _least(elastic)
    if found.status != 0:
        raise InfeasibleNode(
            "the constraints on the children contradict each other or the parent's total, so that even the "
            "failsafe finds no counts. Check the bounds and the joint totals of this node."
        )
    return found.x, float(found.fun)


def least_squares(a: Arranged, elastic: _Elastic, most: float) -> Any:  # noqa: ANN401  (clarabel's solution)
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
        _Objective(hessian, linear, link, goal.extra, goal.unit),
        sparse.vstack([elastic.exact, identity[shut]]),
        np.concatenate([elastic.values, np.zeros(len(shut))]),
        sparse.vstack([elastic.within, elastic.departure.reshape(1, -1), -identity[np.flatnonzero(elastic.top > 0.0)]]),
        np.concatenate([elastic.limits, [most], np.zeros(n + m - len(shut))]),
    )


def violation_of(elastic: _Elastic, parent: Floats, counts: Floats, most: float) -> float:
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
