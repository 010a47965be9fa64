"""Solve one node: ADMM to find the active set, the exact solution on it, and its certificate, the KKT residual."""

from dataclasses import dataclass, replace

import numpy as np

from yupana.arrays import Flags
from yupana.topdown.node.active_set import solve_active_set
from yupana.topdown.node.admm import Steps, solve_admm
from yupana.topdown.node.arranged import Arranged, arrange_node, shut_and_binding
from yupana.topdown.node.general import interior_point, is_infeasible
from yupana.topdown.node.kernels import Point, kkt_residual, sum_of_squares
from yupana.topdown.node.problem import InfeasibleNode, Node, NodeEstimate

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


def refuse_if_infeasible(a: Arranged) -> None:
    """Raise InfeasibleNode if every choice of counts violates a constraint."""
    if is_infeasible(a):
        raise InfeasibleNode(
            "no counts of the children satisfy the parent and the constraints. Use the failsafe, or correct the "
            "constraints."
        )


def solve(node: Node, tolerance: float = 1e-6, aim: float | None = None) -> NodeEstimate:
    """Find the counts of the children that fit their measurements best.

    Parameters
    ----------
    node : Node
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
