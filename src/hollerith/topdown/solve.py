"""Solve one node: alternating directions to find the active set, then the exact solution on it."""

from dataclasses import dataclass

import numpy as np

from hollerith.topdown.arranged import Arranged, arrange_node, shut_and_binding
from hollerith.topdown.certificate import Multipliers, certify
from hollerith.topdown.general import interior_point, is_infeasible
from hollerith.topdown.node_kernels import Flags, alternate, settle
from hollerith.topdown.problem import Floats, InfeasibleNode, Node, Solution

ROOM = 60_000_000
"""How many numbers (8 bytes each) the inverses on an active set may take; above, only alternating steps are made."""

ROUNDS = 24
"""Active sets tried before more alternating steps are made."""

FIRST = 20
"""Alternating steps before the first active set; each further attempt doubles the steps."""

LAST = 5000
"""Alternating steps after which a general solver takes over."""


@dataclass(slots=True, eq=False)
class State:
    """Where the alternating steps are; the kernel overwrites the arrays. See `alternate`."""

    z: Floats
    u: Floats
    tau: Floats
    y: Floats
    w: Floats
    rho: float


def begin(a: Arranged) -> State:
    """Start from even shares."""
    m, k = a.b.shape
    y = np.minimum(np.maximum(a.low, 0.0), a.high)
    z = np.where(a.shut, 0.0, (a.parent / k)[:, None])
    return State(z, np.zeros((m, k)), np.zeros(m), y, np.zeros_like(y), 5.0)


def multipliers_of(a: Arranged, state: State) -> Multipliers:
    """Read multipliers off the alternating steps."""
    pulls = -state.rho * a.strength[:, None] * state.w
    together = pulls[a.joint_row] * a.scale * a.joint
    joint = together.sum(axis=1) / np.maximum(a.joint.sum(axis=1), 1)
    pulls[a.joint_row] = 0.0
    return Multipliers(np.concatenate([-state.rho * state.tau, joint]), pulls)


def finish(a: Arranged, state: State, done: int) -> Solution | None:
    """Solve exactly from the active set that the alternating steps have reached; None where no set stands."""
    start = multipliers_of(a, state)
    free: Flags = state.z > 0.0
    bound = np.zeros(a.low.shape, dtype=np.int8)
    if bound.size:
        bound[state.y <= a.low] = -1
        bound[state.y >= a.high] = 1
        bound[a.low == a.high] = 2
        start.rows[bound == 0] = 0.0
    x = state.z.copy()
    try:
        rounds, changes = settle(
            a.parent,
            a.b,
            a.scale,
            a.starts,
            a.single,
            a.blocks,
            a.form,
            a.row_of,
            a.low,
            a.high,
            a.joint,
            a.joint_total,
            a.shut,
            free,
            bound,
            x,
            start.cells,
            start.rows,
            np.empty_like(x),
            ROUNDS,
            ROOM,
        )
    except np.linalg.LinAlgError:
        return None
    if changes != 0:
        return None
    np.maximum(x, 0.0, out=x)
    return certify(a, x, start, done + rounds, "active-set")


def solve(node: Node, tolerance: float = 1e-6) -> Solution:
    """Find the counts of the children that fit their measurements best.

    Parameters
    ----------
    node : Node
    tolerance : float
        Bound on the KKT residual, in persons, below which a solution counts as certified.

    Returns
    -------
    Solution
        Of the quadratic programme of `Node`; where it has many, one of them.

    Raises
    ------
    InfeasibleNode
        If no counts satisfy the parent and the constraints.
    """
    shut, binding = shut_and_binding(node)
    a = arrange_node(node, shut, binding)
    state = begin(a)
    best: Solution | None = None
    done = 0
    steps = FIRST
    asked = not binding and not node.joint
    while done < LAST:
        state.rho, taken, primal, dual = alternate(
            a.parent,
            a.b,
            a.scale,
            a.starts,
            a.whole,
            a.single,
            a.blocks,
            a.form,
            a.pull,
            a.overlap,
            a.row_of,
            a.strength,
            a.low,
            a.high,
            a.joint,
            a.joint_row,
            a.joint_total,
            a.shut,
            state.z,
            state.u,
            state.tau,
            state.y,
            state.w,
            state.rho,
            steps,
            1e-2 * tolerance,
        )
        done += taken
        found = finish(a, state, done)
        if found is None and max(primal, dual) < tolerance:
            found = certify(a, state.z.copy(), multipliers_of(a, state), done, "admm")
        if found is not None and (best is None or found.kkt_residual < best.kkt_residual):
            best = found
        if best is not None and best.kkt_residual <= tolerance:
            return best
        if not asked and done > 300 and primal > 1e3 * tolerance:
            asked = True
            if is_infeasible(a):
                raise InfeasibleNode(
                    "no counts of the children satisfy the parent and the constraints. Use the failsafe, or correct "
                    "the constraints."
                )
        steps = done
    counts, multipliers, taken, solved = interior_point(a)
    if solved:
        found = certify(a, counts, multipliers, taken, "clarabel")
        if best is None or found.kkt_residual < best.kkt_residual:
            best = found
    if best is None:
        best = certify(a, state.z, multipliers_of(a, state), done, "admm")
    if best.kkt_residual <= tolerance:
        return best
    if is_infeasible(a):
        raise InfeasibleNode("no counts of the children satisfy the parent and the constraints.")
    return Solution(best.counts, best.objective, best.kkt_residual, best.iterations, f"{best.solver} (not certified)")
