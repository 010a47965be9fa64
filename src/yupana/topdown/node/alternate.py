"""Alternating directions between quadratic forms and constraints (compiled)."""

import numpy as np

from yupana.arrays import Flags, Floats, Indices
from yupana.compiled import compiled, compiled_part
from yupana.topdown.node.kernels import Positions, spread_sums


@compiled_part
def factor(rho: float, whole: bool, single: Floats, form: Floats, pull: Floats, overlap: Floats, out: Floats) -> None:  # noqa: FBT001
    """Find V with (H + rho (I + G'G))^-1 = I / (d + rho) - B'VB, or B = I and -V the inverse where ``whole``."""
    size = form.shape[1]
    middle = np.empty((size, size))
    left = np.empty((size, size))
    for p in range(len(form)):
        for i in range(size):
            for j in range(size):
                middle[i, j] = form[p, i, j] + rho * pull[i, j]
        if whole:
            invert_into(middle, rho, -1.0, left)
            for i in range(size):
                for j in range(size):
                    out[p, i, j] = left[i, j]
        elif size > 0:
            a = single[p] + rho
            np.dot(middle, overlap, left)
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


@compiled
def alternate(  # noqa: C901, PLR0912, PLR0915  (loops over plain arrays)
    parent: Floats,
    b: Floats,
    scale: Floats,
    starts: Positions,
    whole: bool,  # noqa: FBT001
    single: Floats,
    blocks: Indices,
    form: Floats,
    pull: Floats,
    overlap: Floats,
    row_of: Indices,
    strength: Floats,
    low: Floats,
    high: Floats,
    joint: Flags,
    joint_row: Positions,
    joint_total: Floats,
    shut: Flags,
    z: Floats,
    u: Floats,
    tau: Floats,
    y: Floats,
    w: Floats,
    rho: float,
    iterations: int,
    tolerance: float,
) -> tuple[float, int, float, float]:
    """Alternate between the quadratic forms and the constraints (ADMM, over-relaxed), on from where z, u, y, w are.

    Parameters
    ----------
    z, u : ndarray, shape (m, k)
        Feasible counts and their scaled multipliers; overwritten, as are `tau`, of shape (m,), the multipliers of the
        cells, and y, w, of shape (rows, k), the same for the rows of constraints.
    low, high : ndarray, shape (rows, k)
    joint : ndarray of bool, shape (joint totals, k)
        Which children each holds together; ``joint_row`` says in which row their totals stand.
    shut : ndarray of bool, shape (m, k)
        Counts that must be 0.
    rho : float
        The penalty, in units of the scale.

    Returns
    -------
    rho : float
        As adapted.
    iterations : int
        As done.
    primal, dual : float
        Largest residuals, in persons.
    """
    m, k = z.shape
    n_blocks = len(blocks)
    n_rows = len(row_of)
    size = form.shape[1]
    n_profiles = len(form)
    alpha = 1.8
    share = np.empty(k)
    for j in range(k):
        share[j] = 1.0 / scale[j]
    v_form = np.empty((n_profiles, size, size))
    right = np.empty((m, k))
    sums = np.empty((size, k))
    spread = np.empty((size, k))
    rows = np.empty((len(strength), k))
    old = np.empty((len(strength), k))
    v = np.empty(k)
    x = np.empty(k)
    znew = np.empty(k)
    inverse = np.empty(k)
    done = 0
    primal = 0.0
    dual = 0.0
    next_check = 10 if iterations > 20 else 25
    fresh = False
    for _ in range(iterations):
        if not fresh:
            factor(rho, whole, single, form, pull, overlap, v_form)
            fresh = True
        done += 1
        for p in range(n_profiles):
            for j in range(starts[p], starts[p + 1]):
                inverse[j] = 0.0 if whole else 1.0 / (single[p] + rho)
        sums[:] = 0.0
        for i in range(m):
            for j in range(k):
                right[i, j] = b[i, j] + rho * (z[i, j] - u[i, j])
            for r in range(n_rows):
                row = row_of[r, i]
                pulling = rho * strength[row]
                for j in range(k):
                    right[i, j] += pulling * (y[row, j] - w[row, j])
            for a in range(n_blocks):
                label = blocks[a, i]
                for j in range(k):
                    sums[label, j] += right[i, j]
        if size > 0:
            spread_sums(v_form, starts, sums, spread)
        rows[:] = 0.0
        primal = 0.0
        dual = 0.0
        primal2 = 0.0
        dual2 = 0.0
        for i in range(m):
            for j in range(k):
                x[j] = right[i, j] * inverse[j]
            for a in range(n_blocks):
                label = blocks[a, i]
                for j in range(k):
                    x[j] -= spread[label, j]
            for r in range(n_rows):
                row = row_of[r, i]
                for j in range(k):
                    rows[row, j] += x[j]
            for j in range(k):
                v[j] = alpha * x[j] + (1.0 - alpha) * z[i, j] + u[i, j]
            tau[i] = divide(v, parent[i], share, shut[i], tau[i], znew)
            for j in range(k):
                new = znew[j]
                u[i, j] = v[j] - new
                step = abs(new - z[i, j])
                gap = abs(new - x[j])
                dual = max(dual, step)
                primal = max(primal, gap)
                dual2 += step * step
                primal2 += gap * gap
                z[i, j] = new
        for row in range(len(strength)):
            for j in range(k):
                target = alpha * rows[row, j] + (1.0 - alpha) * y[row, j] + w[row, j]
                old[row, j] = y[row, j]
                y[row, j] = min(max(target, low[row, j]), high[row, j])
                w[row, j] = target - y[row, j]
        for t in range(len(joint_total)):
            row = joint_row[t]
            gap = -joint_total[t]
            wide = 0.0
            for j in range(k):
                if joint[t, j]:
                    gap += y[row, j] + w[row, j]
                    wide += share[j]
            for j in range(k):
                if joint[t, j]:
                    target = y[row, j] + w[row, j]
                    y[row, j] = target - gap / wide * share[j]
                    w[row, j] = target - y[row, j]
        for row in range(len(strength)):
            for j in range(k):
                step = abs(y[row, j] - old[row, j]) * strength[row]
                gap = abs(y[row, j] - rows[row, j])
                dual = max(dual, step)
                primal = max(primal, gap)
        dual *= rho
        if primal < tolerance and dual < tolerance:
            break
        if done == next_check:
            next_check *= 2
            change = np.sqrt(np.sqrt(primal2 / max(dual2 * rho * rho, 1e-300)))
            change = min(max(change, 0.2), 5.0)
            if change > 3.0 or change < 0.33:
                rho *= change
                for i in range(m):
                    tau[i] /= change
                    for j in range(k):
                        u[i, j] /= change
                for row in range(len(strength)):
                    for j in range(k):
                        w[row, j] /= change
                fresh = False
    return rho, done, primal, dual
