"""The alternating direction method of multipliers (ADMM), between quadratic forms and constraints (compiled)."""

from typing import Final, NamedTuple

import numpy as np

from yupana.arrays import Flags, Floats, Indices
from yupana.compiled import compiled, compiled_part, compiled_step
from yupana.topdown.node.kernels import Conditions, Fields, Positions, Squares, add_up, clear, spread_sums

OVER: Final = 1.8
"""The over-relaxation."""


class Penalty(NamedTuple):
    """What the constraints add to the form where their rows are penalised."""

    whole: bool  # whether the cells themselves are the blocks: then d = 0, B = I
    # shape (R, R): the sum over constraints of G'G, each divided by the mean number of cells of its rows, in terms of
    # blocks
    pull: Floats
    overlap: Floats  # shape (R, R): BB'
    strength: Floats  # shape (rows,): one by the mean number of cells of the rows of the constraint
    joint_row: Positions  # shape (joint totals,): where the totals of the children that each holds together are kept


class Steps(NamedTuple):
    """Where the alternating steps are."""

    # z, u: shape (m, k): feasible counts and their scaled multipliers
    z: Floats
    u: Floats
    tau: Floats  # shape (m,): the multipliers of the cells
    # y, w: shape (rows, k): the same as z and u for the rows of constraints
    y: Floats
    w: Floats


@compiled_part
def factor(squares: Squares, penalty: Penalty, rho: float, out: Floats) -> None:
    """Find V with (H + rho (I + G'G))^-1 = I / (d + rho) - B'VB, or B = I and -V the inverse where ``whole``."""
    form, pull = squares.form, penalty.pull
    size = form.shape[1]
    middle = np.empty((size, size))
    left = np.empty((size, size))
    for p in range(len(form)):
        for i in range(size):
            for j in range(size):
                middle[i, j] = form[p, i, j] + rho * pull[i, j]
        if penalty.whole:
            invert_into(middle, rho, -1.0, out[p])
        elif size > 0:
            a = squares.single[p] + rho
            np.dot(middle, penalty.overlap, left)
            for i in range(size):
                for j in range(size):
                    left[i, j] /= a
            invert_into(left, 1.0, 1.0 / (a * a), left)
            np.dot(left, middle, out[p])


@compiled_part
def invert_into(matrix: Floats, diagonal: float, by: float, out: Floats) -> None:
    """Write the inverse of a matrix with something added to its diagonal, times a factor; ``out`` may be the matrix."""
    size = len(matrix)
    for i in range(size):
        matrix[i, i] += diagonal
    inverse = np.linalg.inv(matrix)
    for i in range(size):
        for j in range(size):
            out[i, j] = by * inverse[i, j]


@compiled_part
def divide(v: Floats, total: float, share: Floats, shut: Flags, tau: float, z: Floats) -> float:
    """Project one cell: z = max(0, v - tau share) with sum ``total``, zero where ``shut``. Newton's method on tau.

    The sum is convex and falls with tau, so that after one step from anywhere the iteration climbs to the root.
    """
    k = len(v)
    for step in range(100):
        s = 0.0
        d = 0.0
        for j in range(k):
            gap = v[j] - tau * share[j]
            open_ = gap > 0.0 and not shut[j]
            s += gap if open_ else 0.0
            d += share[j] if open_ else 0.0
        if d == 0.0:
            # Beyond the last breakpoint: start again from the left, where all children count.
            s = 0.0
            for j in range(k):
                if not shut[j]:
                    s += v[j]
                    d += share[j]
            if d == 0.0:
                break
            tau = (s - total) / d
            continue
        move = (s - total) / d
        tau += move
        if abs(move) * d <= 1e-14 * total and step > 0:
            break
    for j in range(k):
        gap = v[j] - tau * share[j]
        z[j] = gap if gap > 0.0 and not shut[j] else 0.0
    return tau


@compiled_step
def set_right_side(
    squares: Squares, row_of: Indices, strength: Floats, steps: Steps, rho: float, right: Floats
) -> None:
    """Write what the counts would be pulled to without their form."""
    b, z, u, y, w = squares.b, steps.z, steps.u, steps.y, steps.w
    m, k = z.shape
    for i in range(m):
        for j in range(k):
            right[i, j] = b[i, j] + rho * (z[i, j] - u[i, j])
        for r in range(len(row_of)):
            row = row_of[r, i]
            pulling = rho * strength[row]
            for j in range(k):
                right[i, j] += pulling * (y[row, j] - w[row, j])


@compiled_step
def _step_cells(
    blocks: Indices,
    conditions: Conditions,
    steps: Steps,
    share: Floats,
    inverse: Floats,
    right: Floats,
    spread: Floats,
    rows: Floats,
) -> tuple[float, float, float, float]:
    """Minimise the quadratic form, and bring each cell back to its parent's count; the sums by row go to ``rows``.

    Returns
    -------
    primal, dual : float
        Largest residuals, in persons; the dual one is not yet times rho.
    primal2, dual2 : float
        Sums of their squares.
    """
    z, u, tau = steps.z, steps.u, steps.tau
    row_of = conditions.row_of
    m, k = z.shape
    v = np.empty(k)
    x = np.empty(k)
    primal = 0.0
    dual = 0.0
    primal2 = 0.0
    dual2 = 0.0
    clear(rows)
    for i in range(m):
        for j in range(k):
            x[j] = right[i, j] * inverse[j]
        for a in range(len(blocks)):
            label = blocks[a, i]
            for j in range(k):
                x[j] -= spread[label, j]
        for r in range(len(row_of)):
            row = row_of[r, i]
            for j in range(k):
                rows[row, j] += x[j]
        for j in range(k):
            v[j] = OVER * x[j] + (1.0 - OVER) * z[i, j] + u[i, j]
            u[i, j] = z[i, j]
        tau[i] = divide(v, conditions.parent[i], share, conditions.shut[i], tau[i], z[i])
        for j in range(k):
            new = z[i, j]
            step = abs(new - u[i, j])
            gap = abs(new - x[j])
            u[i, j] = v[j] - new
            dual = max(dual, step)
            primal = max(primal, gap)
            dual2 += step * step
            primal2 += gap * gap
    return primal, dual, primal2, dual2


@compiled_part
def step_rows(
    conditions: Conditions, penalty: Penalty, steps: Steps, share: Floats, rows: Floats
) -> tuple[float, float]:
    """Bring each row between its bounds, and joint totals to theirs; the largest residuals, as of `_step_cells`."""
    y, w, strength = steps.y, steps.w, penalty.strength
    n_rows, k = rows.shape
    old = np.empty((n_rows, k))
    for row in range(n_rows):
        for j in range(k):
            target = OVER * rows[row, j] + (1.0 - OVER) * y[row, j] + w[row, j]
            old[row, j] = y[row, j]
            y[row, j] = min(max(target, conditions.low[row, j]), conditions.high[row, j])
            w[row, j] = target - y[row, j]
    for t in range(len(penalty.joint_row)):
        row = penalty.joint_row[t]
        share_out(conditions.joint[t], conditions.joint_total[t], share, y[row], w[row])
    primal = 0.0
    dual = 0.0
    for row in range(n_rows):
        for j in range(k):
            dual = max(dual, abs(y[row, j] - old[row, j]) * strength[row])
            primal = max(primal, abs(y[row, j] - rows[row, j]))
    return primal, dual


@compiled_part
def share_out(together: Flags, total: float, share: Floats, y: Floats, w: Floats) -> None:
    """Bring the totals of children to what they are together, each by its share."""
    gap = -total
    wide = 0.0
    for j in range(len(together)):
        if together[j]:
            gap += y[j] + w[j]
            wide += share[j]
    for j in range(len(together)):
        if together[j]:
            target = y[j] + w[j]
            y[j] = target - gap / wide * share[j]
            w[j] = target - y[j]


@compiled_part
def rescale(steps: Steps, change: float) -> None:
    """Divide the scaled multipliers by the change of the penalty."""
    u, tau, w = steps.u, steps.tau, steps.w
    for i in range(u.shape[0]):
        tau[i] /= change
        for j in range(u.shape[1]):
            u[i, j] /= change
    for row in range(w.shape[0]):
        for j in range(w.shape[1]):
            w[row, j] /= change


@compiled_part
def diagonal_inverse(squares: Squares, whole: bool, rho: float, inverse: Floats) -> None:  # noqa: FBT001
    """Write 1 / (d + rho) of each child, 0 where the cells themselves are the blocks."""
    for p in range(len(squares.single)):
        for j in range(squares.starts[p], squares.starts[p + 1]):
            inverse[j] = 0.0 if whole else 1.0 / (squares.single[p] + rho)


@compiled_step
def balance(primal2: float, dual2: float) -> float:
    """Find the change of the penalty that balances the residuals; 1 where they are near enough to each other."""
    change = np.sqrt(np.sqrt(primal2 / max(dual2, 1e-300)))
    change = min(max(change, 0.2), 5.0)
    return change if change > 3.0 or change < 0.33 else 1.0


@compiled
def solve_admm(
    squares: Fields, conditions: Fields, penalty: Fields, steps: Fields, rho: float, iterations: int, tolerance: float
) -> tuple[float, int, float, float]:
    """Iterate ADMM, over-relaxed and with residual balancing, on from where the steps are, which are overwritten.

    Parameters
    ----------
    squares, conditions, penalty, steps : tuple
        The fields of `Squares`, `Conditions`, `Penalty` and `Steps`.
    rho : float
        The penalty, in units of the scale.
    iterations : int
        At most.
    tolerance : float
        Of the largest residuals, in persons.

    Returns
    -------
    rho : float
        As adapted.
    iterations : int
        As done.
    primal, dual : float
        Largest residuals, in persons.
    """
    form, bounds, pulling, at = Squares(*squares), Conditions(*conditions), Penalty(*penalty), Steps(*steps)
    m, k = at.z.shape
    size = form.form.shape[1]
    share = np.empty(k)
    for j in range(k):
        share[j] = 1.0 / form.scale[j]
    v_form = np.empty(form.form.shape)
    inverse = np.empty(k)
    right = np.empty((m, k))
    sums = np.empty((size, k))
    spread = np.empty((size, k))
    rows = np.empty(at.y.shape)
    done = 0
    primal = 0.0
    dual = 0.0
    next_check = 10 if iterations > 20 else 25
    change = 0.0
    while done < iterations:
        if change != 1.0:
            factor(form, pulling, rho, v_form)
            diagonal_inverse(form, pulling.whole, rho, inverse)
            change = 1.0
        done += 1
        set_right_side(form, bounds.row_of, pulling.strength, at, rho, right)
        add_up(form.blocks, right, sums)
        if size > 0:
            spread_sums(v_form, form.starts, sums, spread)
        primal, dual, primal2, dual2 = _step_cells(form.blocks, bounds, at, share, inverse, right, spread, rows)
        if len(rows) > 0:
            of_rows = step_rows(bounds, pulling, at, share, rows)
            primal = max(primal, of_rows[0])
            dual = max(dual, of_rows[1])
        dual *= rho
        if primal < tolerance and dual < tolerance:
            break
        if done == next_check:
            next_check *= 2
            change = balance(primal2, dual2 * rho * rho)
            if change != 1.0:
                rho *= change
                rescale(at, change)
    return rho, done, primal, dual
