"""Solve one node: ADMM to find the active set, the exact solution on it, and its certificate, the KKT residual."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from yupana.arrays import Flags, Floats
from yupana.topdown.node.active_set import solve_active_set
from yupana.topdown.node.admm import Steps, solve_admm
from yupana.topdown.node.arranged import Arranged, arrange_node, shut_and_binding
from yupana.topdown.node.general import interior_point, refuse_if_infeasible
from yupana.topdown.node.kernels import Point, kkt_residual, sum_of_squares
from yupana.topdown.node.problem import Constraint, Node, NodeEstimate
from yupana.topdown.queries import margin

ROOM = 60_000_000
"""How many numbers (8 bytes each) the inverses on an active set may take; above, only ADMM is used."""

ROUNDS = 24
"""Active sets tried before more iterations of ADMM."""

FIRST = 20
"""Iterations of ADMM before the first active set; each further attempt doubles them."""

DOUBT = 300
"""Iterations of ADMM after which a linear programme is asked whether the node is feasible at all."""

LAST = 5000
"""Iterations of ADMM after which a general solver takes over."""


@dataclass(slots=True, eq=False)
class State:
    """Where ADMM is, whose arrays the kernel overwrites, and the penalty it has come to."""

    steps: Steps
    rho: float


def begin(a: Arranged) -> State:
    """Start from even shares."""
    m, k = a.squares.b.shape
    y = np.minimum(np.maximum(a.conditions.low, 0.0), a.conditions.high)
    z = np.where(a.conditions.shut, 0.0, (a.conditions.parent / k)[:, None])
    return State(Steps(z, np.zeros((m, k)), np.zeros(m), y, np.zeros_like(y)), 5.0)


def point_of(a: Arranged, state: State) -> Point:
    """Read counts and multipliers off the state of ADMM."""
    pulls = -state.rho * a.penalty.strength[:, None] * state.steps.w
    together = pulls[a.penalty.joint_row] * a.squares.scale * a.conditions.joint
    joint = together.sum(axis=1) / np.maximum(a.conditions.joint.sum(axis=1), 1)
    pulls[a.penalty.joint_row] = 0.0
    x = state.steps.z.copy()
    return Point(x, np.concatenate([-state.rho * state.steps.tau, joint]), pulls, np.empty_like(x))


def certify(a: Arranged, point: Point, iterations: int, solver: str) -> NodeEstimate:
    """Compute objective and KKT residual of counts and the multipliers that a solver found."""
    residual = kkt_residual(tuple(a.squares), tuple(a.conditions), tuple(point))
    if not np.isfinite(point.x).all():
        residual = np.inf
    objective = sum_of_squares(a.labels, a.offsets, a.targets, a.inverse, point.x)
    out = np.empty(point.x.shape[::-1])
    out[a.order] = point.x.T
    return NodeEstimate(out, objective, residual, iterations, solver)


def finish(a: Arranged, state: State, done: int) -> NodeEstimate | None:
    """Solve exactly from the active set that ADMM has reached; None where no set stands."""
    point = point_of(a, state)
    bound = np.zeros(a.conditions.low.shape, dtype=np.int8)
    if bound.size:
        bound[state.steps.y <= a.conditions.low] = -1
        bound[state.steps.y >= a.conditions.high] = 1
        bound[a.conditions.low == a.conditions.high] = 2
        point.pull[bound == 0] = 0.0
    free: Flags = state.steps.z > 0.0
    try:
        rounds, changes = solve_active_set(
            tuple(a.squares), tuple(a.conditions), (free, bound), tuple(point), ROUNDS, ROOM
        )
    except np.linalg.LinAlgError:
        return None
    if changes != 0:
        return None
    np.maximum(point.x, 0.0, out=point.x)
    return certify(a, point, done + rounds, "active-set")


def advance(a: Arranged, state: State, iterations: int, tolerance: float) -> tuple[int, float]:
    """Iterate ADMM; returns how often, and the largest residual in persons."""
    state.rho, taken, primal, dual = solve_admm(
        tuple(a.squares),
        tuple(a.conditions),
        tuple(a.penalty),
        tuple(state.steps),
        state.rho,
        iterations,
        1e-2 * tolerance,
    )
    return taken, max(primal, dual)


def better(one: NodeEstimate | None, other: NodeEstimate) -> NodeEstimate:
    """Choose the solution nearer to optimal."""
    return other if one is None or other.kkt_residual < one.kkt_residual else one


def solve(node: Node, tolerance: float = 1e-6, aim: float | None = None) -> NodeEstimate:
    """Find the counts of the children that fit their measurements best.

    Parameters
    ----------
    tolerance : float
        Bound on the KKT residual, in persons, below which a solution counts as certified.
    aim : float, optional
        A smaller residual to try for as long as the iterations last; by default the tolerance.

    Returns
    -------
    NodeEstimate
        Of the quadratic programme of `Node`; where it has many, one of them.

    Raises
    ------
    InfeasibleNode
        If no counts satisfy the parent and the constraints.
    """
    shut, binding = shut_and_binding(node)
    a = arrange_node(node, shut, binding)
    state = begin(a)
    best: NodeEstimate | None = None
    done = 0
    steps = FIRST
    sure = not binding and not node.joint
    while done < LAST:
        taken, residual = advance(a, state, steps, tolerance if aim is None else aim)
        done += taken
        found = finish(a, state, done)
        if found is None and residual < tolerance:
            found = certify(a, point_of(a, state), done, "admm")
        if found is not None:
            best = better(best, found)
        if best is not None and best.kkt_residual <= (tolerance if aim is None else aim):
            return best
        if not sure and done > DOUBT and residual > 1e3 * tolerance:
            sure = True
            refuse_if_infeasible(a)
        steps = done
    if best is not None and best.kkt_residual <= tolerance:
        return best
    point, taken, solved = interior_point(a)
    final = better(best, certify(a, point_of(a, state), done, "admm"))
    if solved:
        final = better(final, certify(a, point, taken, "clarabel"))
    if final.kkt_residual <= tolerance:
        return final
    refuse_if_infeasible(a)
    return replace(final, solver=f"{final.solver} (not certified)")


_AIM: Final = 1e-9
"""KKT residual, in persons, that small nodes are brought to: degenerate ones need more rounds, which cost little."""

_SMALL: Final = 4096
"""Children times live cells of a small node."""


def numbers(name: str, values: ArrayLike, shape: tuple[int, ...], meaning: str) -> Floats:
    """Read an argument as an array of the shape it must have."""
    array = np.asarray(values, dtype=np.float64)
    if array.shape != shape:
        raise ValueError(f"{name} has shape {array.shape}; it must have shape {shape}: {meaning}.")
    return array


def bounds_of(
    shape: Sequence[int], children: int, lower: ArrayLike | None, upper: ArrayLike | None
) -> tuple[Floats, Floats] | None:
    """Read bounds; None where there are none."""
    if lower is None and upper is None:
        return None
    first = (children, shape[0])
    meaning = "one bound for each child and level of the first attribute"
    low = np.zeros(first) if lower is None else numbers("lower", lower, first, meaning)
    high = np.full(first, np.inf) if upper is None else numbers("upper", upper, first, meaning)
    if np.isnan(low).any() or np.isnan(high).any():
        raise ValueError("lower and upper must be numbers; write -inf or inf where nothing is bounded.")
    return low, high


def estimate_node(
    parent: ArrayLike,
    shape: Sequence[int],
    queries: Sequence[Sequence[int | bool]],
    answers: ArrayLike,
    variances: ArrayLike,
    lower: ArrayLike | None = None,
    upper: ArrayLike | None = None,
) -> NodeEstimate:
    """Estimate the counts of the children of one parent from noisy answers, by non-negative least squares.

    Minimises the sum over children, queries and answers of (answer of the counts - noisy answer)^2 / variance over
    counts >= 0 that sum over the children to the parent, cell by cell.

    Parameters
    ----------
    parent : array_like, shape (cells,)
        Counts of the parent, not negative.
    shape : sequence of int
        Levels of each attribute; cells are in C order.
    queries : sequence of sequences of flags
        Each row says which attributes a query keeps; it sums over the others.
    answers : array_like, shape (children, answers)
        Those of each query side by side, in C order; not read where the variance is infinite.
    variances : array_like, shape (children, queries)
        Positive; inf where a query was not measured.
    lower, upper : array_like, shape (children, shape[0]), optional
        Bounds on each child's totals by the first attribute.

    Returns
    -------
    NodeEstimate

    Raises
    ------
    InfeasibleNode
        If no counts satisfy the parent and the bounds.
    ValueError
        If the arguments do not fit together.
    """
    cells = prod(shape)
    whole = numbers("parent", parent, (cells,), f"one count for each of the {cells} cells")
    if not (np.isfinite(whole).all() and (whole >= 0.0).all()):
        raise ValueError("parent must hold finite counts that are not negative.")
    if any(len(row) != len(shape) for row in queries):
        raise ValueError(f"each query is a row of {len(shape)} flags, one for each attribute of the shape.")
    asked = [margin(str(at), shape, row) for at, row in enumerate(queries)]
    starts = np.concatenate([[0], np.cumsum([query.size for query in asked], dtype=np.int64)])
    variance = np.asarray(variances, dtype=np.float64)
    children = len(variance) if variance.ndim else 0
    if children == 0:
        raise ValueError("variances must have shape (children, queries), with one child at least.")
    numbers("variances", variance, (children, len(asked)), "one variance for each child and query")
    if not (variance > 0.0).all():
        raise ValueError("variances must be positive; write inf where a query was not measured.")
    noisy = numbers("answers", answers, (children, int(starts[-1])), "the answers of all queries side by side")
    weights = 1.0 / variance
    parts = [noisy[:, starts[at] : starts[at + 1]] for at in range(len(asked))]
    for at, part in enumerate(parts):
        if not np.isfinite(part[weights[:, at] > 0.0]).all():
            raise ValueError(f"query {at} has an answer that is not finite; give it the variance inf, or correct it.")
    bounds = bounds_of(shape, children, lower, upper)
    live = np.flatnonzero(whole > 0.0)
    groups = (live // (cells // shape[0])).astype(np.int32)
    node = Node(
        parent=whole[live],
        queries=tuple(query.answers()[live] for query in asked),
        answers=tuple(parts),
        weights=weights,
        constraints=() if bounds is None else (Constraint(groups, *bounds),),
    )
    found = solve(node, aim=_AIM if children * len(live) <= _SMALL else None)
    counts = np.zeros((children, cells))
    counts[:, live] = found.counts
    return replace(found, counts=counts)
