"""The node as a sparse programme for general solvers: the last resort, and what decides that a node is infeasible."""

from typing import Any

import clarabel
import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from hollerith.topdown.arranged import NEAR, Arranged
from hollerith.topdown.certificate import Multipliers
from hollerith.topdown.node_kernels import Positions
from hollerith.topdown.problem import Floats


def cell_sums(a: Arranged) -> Any:  # noqa: ANN401  (a sparse matrix)
    """Add the children cell by cell: shape (m, k m), counts child by child."""
    return sparse.kron(np.ones((1, len(a.scale))), sparse.eye(len(a.parent)), format="csr")


def joint_sums(a: Arranged) -> Any:  # noqa: ANN401
    """Add up the children that are held together: shape (joint totals, k m)."""
    return sparse.kron(a.joint.astype(np.float64), np.ones((1, len(a.parent))), format="csr")


def row_sums(a: Arranged, rows: Positions, children: Positions) -> Any:  # noqa: ANN401
    """Add the cells of some rows of constraints, each for one child: shape (len(rows), k m)."""
    m = len(a.parent)
    query, cell = np.divmod(np.argsort(a.row_of, axis=None, kind="stable"), m)
    starts = np.searchsorted(a.row_of[query, cell], np.arange(len(a.strength) + 1))
    counts = np.diff(starts)[rows]
    at = np.repeat(starts[rows] - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts) + np.arange(counts.sum())
    column = np.repeat(children, counts) * m + cell[at]
    shape = (len(rows), len(a.scale) * m)
    return sparse.csr_matrix((np.ones(len(column)), (np.repeat(np.arange(len(rows)), counts), column)), shape=shape)


def least_violation(a: Arranged) -> float:
    """Find the least t such that some counts >= 0 violate no constraint by more than t, in persons.

    Returns
    -------
    float
        About 0 where the node is feasible; nan where the linear programme was not solved.
    """
    lower = np.nonzero(np.isfinite(a.low))
    upper = np.nonzero(np.isfinite(a.high))
    exact = sparse.vstack([cell_sums(a), joint_sums(a)])
    value = np.concatenate([a.parent, a.joint_total])
    matrix = sparse.vstack([exact, -exact, -row_sums(a, *lower), row_sums(a, *upper)])
    matrix = sparse.hstack([matrix, -np.ones((matrix.shape[0], 1))], format="csc")
    limits = np.concatenate([value, -value, -a.low[lower], a.high[upper]])
    cost = np.zeros(matrix.shape[1])
    cost[-1] = 1.0
    top = np.append(np.where(a.shut.T.ravel(), 0.0, np.inf), np.inf)
    found = linprog(cost, A_ub=matrix, b_ub=limits, bounds=np.column_stack([np.zeros(len(top)), top]), method="highs")
    return float(found.fun) if found.status == 0 else float("nan")


def is_infeasible(a: Arranged) -> bool:
    """Tell whether every choice of counts violates some constraint by more than `NEAR` persons."""
    return least_violation(a) > NEAR * (1.0 + 1e-6 * float(a.parent.max()))


def interior_point(a: Arranged) -> tuple[Floats, Multipliers, int, bool]:
    """Solve the node by clarabel.

    Returns
    -------
    counts : ndarray, shape (m, k)
    multipliers : Multipliers
    iterations : int
    solved : bool
    """
    m, k = a.b.shape
    size = a.form.shape[1]
    profile = np.repeat(np.arange(len(a.form)), np.diff(a.starts))
    unit = float(np.median(a.scale))
    scale = a.scale / unit
    blocks = sparse.csr_matrix(
        (np.ones(a.blocks.size), (a.blocks.ravel(), np.tile(np.arange(m), len(a.blocks)))), shape=(size, m)
    )
    split = not a.whole and bool((a.inverse >= 0.0).all())
    if split:
        # The blocks of each child become variables of their own, which keeps the programme sparse.
        quadratic = [sparse.diags(np.repeat(scale * a.single[profile], m))]
        quadratic += [sparse.csc_matrix(s * a.form[p]) for s, p in zip(scale, profile, strict=True)]
        extra = k * size
    else:
        dense = [a.single[p] * sparse.eye(m) + blocks.T @ (a.form[p] @ blocks.toarray()) for p in range(len(a.form))]
        quadratic = [sparse.csc_matrix(s * dense[p]) for s, p in zip(scale, profile, strict=True)]
        extra = 0
    hessian = sparse.triu(sparse.block_diag(quadratic), format="csc")
    linear = np.concatenate([-(a.b * scale).T.ravel(), np.zeros(extra)])
    same = a.low == a.high
    fixed = np.nonzero(same)
    lower = np.nonzero(np.isfinite(a.low) & ~same)
    upper = np.nonzero(np.isfinite(a.high) & ~same)
    shut = np.flatnonzero(a.shut.T)
    open_ = np.flatnonzero(~a.shut.T)
    identity = sparse.eye(k * m, format="csr")
    exact = [cell_sums(a), joint_sums(a), row_sums(a, *fixed), identity[shut]]
    within = [row_sums(a, *upper), -row_sums(a, *lower), -identity[open_]]
    matrix = sparse.vstack(exact + within)
    values = [a.parent, a.joint_total, a.low[fixed], np.zeros(len(shut)), a.high[upper], -a.low[lower]]
    limits = np.concatenate([*values, np.zeros(len(open_))])
    n_exact = sum(part.shape[0] for part in exact)
    n_within = len(limits) - n_exact
    if split:
        link = sparse.hstack([sparse.kron(sparse.eye(k), blocks), -sparse.eye(extra)])
        padded = sparse.hstack([matrix, sparse.csr_matrix((len(limits), extra))])
        matrix = sparse.vstack([link, padded])
        limits = np.concatenate([np.zeros(extra), limits])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    cones = [clarabel.ZeroConeT(extra + n_exact), clarabel.NonnegativeConeT(n_within)]
    found = clarabel.DefaultSolver(hessian, linear, sparse.csc_matrix(matrix), limits, cones, settings).solve()
    counts = np.ascontiguousarray(np.maximum(np.array(found.x)[: k * m].reshape(k, m).T, 0.0))
    counts[a.shut] = 0.0
    dual = np.array(found.z)[extra:]
    parts = np.split(dual, np.cumsum([part.shape[0] for part in exact + within])[:-1])
    rows = np.zeros(a.low.shape)
    rows[fixed] -= parts[2]
    rows[upper] -= parts[4]
    rows[lower] += parts[5]
    cells = -np.concatenate([parts[0], parts[1]]) * unit
    solved = str(found.status) in {"Solved", "AlmostSolved", "InsufficientProgress", "MaxIterations"}
    return counts, Multipliers(cells, rows / scale), int(found.iterations), solved
