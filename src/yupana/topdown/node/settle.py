"""The exact solution on an active set, and the correction of the set (compiled)."""

import numpy as np

from yupana.arrays import Flags, Floats, Indices
from yupana.compiled import compiled, compiled_part
from yupana.topdown.node.kernels import Positions, States, apply_form


@compiled_part
def invert(a: Floats) -> None:
    """Invert a symmetric positive definite matrix in place."""
    n = len(a)
    if n > 40:
        inverse = np.linalg.inv(a)
        for i in range(n):
            for j in range(n):
                a[i, j] = inverse[j, i]
        return
    for p in range(n):
        pivot = 1.0 / a[p, p]
        a[p, p] = 1.0
        for j in range(n):
            a[p, j] *= pivot
        for i in range(n):
            if i != p:
                f = a[i, p]
                if f != 0.0:
                    a[i, p] = 0.0
                    for j in range(n):
                        a[i, j] -= f * a[p, j]


@compiled_part
def triangle(a: Floats, shift: float) -> bool:
    """Put the upper factor U of a = U'U, of which only the upper half is read, in its place; whether there is one.

    The diagonal is raised by the factor 1 + shift, so that redundant constraints do not matter.
    """
    n = len(a)
    for i in range(n):
        a[i, i] *= 1.0 + shift
    if n > 96:
        large_triangle(a)
        return True
    for p in range(n):
        if not a[p, p] > 0.0:
            return False
        pivot = np.sqrt(a[p, p])
        for j in range(p, n):
            a[p, j] /= pivot
        for i in range(p + 1, n):
            f = a[p, i]
            if f != 0.0:
                for j in range(i, n):
                    a[i, j] -= f * a[p, j]
    return True


@compiled_part
def large_triangle(a: Floats) -> None:
    """Do what `triangle` does by LAPACK, which is quicker for large matrices."""
    n = len(a)
    for i in range(n):
        for j in range(i):
            a[i, j] = a[j, i]
    lower = np.linalg.cholesky(a)
    for i in range(n):
        for j in range(i, n):
            a[i, j] = lower[j, i]


@compiled_part
def solve_triangle(upper: Floats, x: Floats) -> None:
    """Solve U'U x = x in place."""
    n = len(x)
    for i in range(n):
        x[i] /= upper[i, i]
        f = x[i]
        for j in range(i + 1, n):
            x[j] -= f * upper[i, j]
    for i in range(n - 1, -1, -1):
        s = x[i]
        for j in range(i + 1, n):
            s -= upper[i, j] * x[j]
        x[i] = s / upper[i, i]


@compiled_part
def inverse_on_set(
    cells: Indices,
    blocks: Indices,
    form: Floats,
    diagonal: float,
    row_of: Indices,
    bound: States,
    child: int,
    stiff: float,
) -> Floats:
    """Invert a child's quadratic form on its free cells, with ``stiff`` times G'G for the rows at a bound."""
    n = len(cells)
    a = np.empty((n, n))
    a[:] = 0.0
    for s in range(n):
        row = a[s]
        for block in range(len(blocks)):
            source = form[blocks[block, cells[s]]]
            for t in range(n):
                row[t] += source[blocks[block, cells[t]]]
        row[s] += diagonal
    for r in range(len(row_of)):
        for s in range(n):
            label = row_of[r, cells[s]]
            if bound[label, child] != 0:
                for t in range(n):
                    if row_of[r, cells[t]] == label:
                        a[s, t] += stiff
    invert(a)
    return a


@compiled_part
def times(store: Floats, at: int, x: Floats, out: Floats, n: int) -> None:
    """Multiply the symmetric matrix of order n that is stored from ``at`` on by x."""
    for s in range(n):
        out[s] = 0.0
    for s in range(n):
        f = x[s]
        row = store[at + s * n : at + (s + 1) * n]
        for t in range(n):
            out[t] += f * row[t]


@compiled_part
def remember(pull: Floats, nu: Floats, anchor: Floats, held: Floats) -> None:
    """Write the multipliers of rows and of joint totals, from which the method of multipliers goes on."""
    for label in range(len(pull)):
        for j in range(pull.shape[1]):
            anchor[label, j] = pull[label, j]
    first = len(nu) - len(held)
    for t in range(len(held)):
        held[t] = nu[first + t]


@compiled
def settle(  # noqa: C901, PLR0912, PLR0915  (loops over plain arrays)
    parent: Floats,
    b: Floats,
    scale: Floats,
    starts: Positions,
    single: Floats,
    blocks: Indices,
    form: Floats,
    row_of: Indices,
    low: Floats,
    high: Floats,
    joint: Flags,
    joint_total: Floats,
    shut: Flags,
    free: Flags,
    bound: States,
    x: Floats,
    nu: Floats,
    pull: Floats,
    gradient: Floats,
    rounds: int,
    room: int,
) -> tuple[int, int]:
    """Solve exactly on an active set, correct the set by the signs of what comes out, and repeat until it stands.

    Parameters
    ----------
    free : ndarray of bool, shape (m, k)
        Which counts may be positive; overwritten.
    bound : ndarray of int8, shape (rows, k)
        -1 where a row stands at its lower bound, 1 at its upper, 2 where both are the same, 0 between; overwritten.
    x, nu, pull : ndarray, shapes (m, k), (m + joint totals,) and (rows, k)
        Written: counts, multipliers of the cells and joint totals, and of the rows (scaled by child).
    gradient : ndarray, shape (m, k)
        Written: half the gradient of the Lagrangian, scaled by child.
    rounds : int
        How many sets to try.
    room : int
        How many numbers the inverses may take.

    Returns
    -------
    rounds : int
        As done.
    changes : int
        In the last round: 0 where the set stands, -1 where there was no room, -2 where the system broke down.
    """
    m, k = x.shape
    n_rows = len(row_of)
    total_rows = len(low)
    n_joint = len(joint_total)
    n_blocks = len(blocks)
    size = form.shape[1]
    stiff = 1e3
    shift = 1e-12 if total_rows == 0 and n_joint == 0 else 1e-9
    profile = np.empty(k, np.int64)
    soft = np.empty(k)
    curved = np.empty(k)
    stiffest = 1e-3
    for p in range(len(form)):
        # Half the curvature of a cell; where single cells have none of their own, a proximal term stands in.
        curve = single[p]
        least = np.inf
        for i in range(m):
            h = single[p]
            for a in range(n_blocks):
                h += form[p, blocks[a, i], blocks[a, i]]
            curve = max(curve, h)
            least = min(least, h)
        for j in range(starts[p], starts[p + 1]):
            profile[j] = p
            curved[j] = curve
            stiffest = max(stiffest, curve * scale[j])
            soft[j] = 1e-9 * curve
            if single[p] <= 1e-3 * curve:
                shift = 1e-9
                soft[j] = 1e-5 * curve if curve > 0.0 else 1e-2
    for j in range(k):
        # A row is as stiff as the child itself, and where others are stiffer, nearly as stiff as they.
        curved[j] = max(curved[j], min(stiffest / scale[j], 100.0 * max(curved[j], 1.0)))
    sums = np.empty((size, k))
    rows = np.empty((total_rows, k))
    vector = np.empty(m)
    change = np.empty(m)
    n_free = np.empty(k, np.int64)
    n_free[:] = 0
    position = np.empty((k, m), np.int32)
    start = np.empty(2 * k, np.int64)
    start[:] = 0
    stale = np.empty(k, np.bool_)
    stale[:] = True
    store = np.empty(0)
    tail = 0
    changes = 0
    best = m * k + 1
    worse = 0
    patience = 12 if total_rows > 0 else 5
    step = np.empty((k, m))
    anchor = np.empty((total_rows, k))
    held = np.empty(n_joint)
    remember(pull, nu, anchor, held)
    give = 1.0 / (stiff * stiffest)
    fresh = True
    violated = np.inf
    whole = np.empty((m + n_joint, m + n_joint))
    size_of = 1.0
    for i in range(m):
        size_of = max(size_of, parent[i])
    for turn in range(rounds):
        if fresh:
            # Inverses are kept where they are for children whose set is the same as in the round before.
            need = tail
            for j in range(k):
                n = 0
                for i in range(m):
                    if free[i, j]:
                        stale[j] = stale[j] or n >= n_free[j] or position[j, n] != i
                        position[j, n] = i
                        n += 1
                stale[j] = stale[j] or n != n_free[j]
                n_free[j] = n
                if n * n > start[j + k]:
                    start[j] = need
                    start[j + k] = n * n
                    need += n * n
            if need > room:
                return turn, -1
            if need > len(store):
                longer = np.empty(need + need // 8)
                for at in range(tail):
                    longer[at] = store[at]
                store = longer
            tail = need
            whole[:] = 0.0
            for j in range(k):
                n = n_free[j]
                if n == 0:
                    continue
                p = profile[j]
                if stale[j]:
                    stale[j] = False
                    inverse = inverse_on_set(
                        position[j, :n], blocks, form[p], single[p] + soft[j], row_of, bound, j, stiff * curved[j]
                    )
                    for s in range(n):
                        for t in range(n):
                            store[start[j] + s * n + t] = inverse[s, t]
                share = 1.0 / scale[j]
                at = start[j]
                for s in range(n):
                    i = position[j, s]
                    beyond = 0.0
                    row = store[at + s * n : at + (s + 1) * n]
                    for t in range(n):
                        beyond += row[t]
                    for t in range(s, n):
                        whole[i, position[j, t]] += share * row[t]
                    for t in range(n_joint):
                        if joint[t, j]:
                            whole[i, m + t] += share * beyond
                            for other in range(t, n_joint):
                                if joint[other, j]:
                                    whole[m + t, m + other] += share * beyond
            for t in range(m, m + n_joint):
                whole[t, t] += give
            if not triangle(whole, shift):
                return turn, -2
        for i in range(m):
            for j in range(k):
                if not free[i, j]:
                    x[i, j] = 0.0
        last = np.inf
        flow = np.empty(m + n_joint)
        for refinement in range(20):
            # What is still missing from each condition ...
            apply_form(x, starts, single, blocks, form, sums, gradient)
            rows[:] = 0.0
            for i in range(m):
                for j in range(k):
                    gradient[i, j] -= b[i, j] + nu[i] / scale[j]
                for r in range(n_rows):
                    label = row_of[r, i]
                    for j in range(k):
                        gradient[i, j] -= pull[label, j]
                        rows[label, j] += x[i, j]
            for t in range(n_joint):
                for j in range(k):
                    if joint[t, j]:
                        for i in range(m):
                            gradient[i, j] -= nu[m + t] / scale[j]
            worst = 0.0
            for i in range(m):
                gap = parent[i]
                for j in range(k):
                    gap -= x[i, j]
                    if free[i, j]:
                        worst = max(worst, abs(gradient[i, j]))
                flow[i] = gap
                worst = max(worst, abs(gap))
            for t in range(n_joint):
                gap = joint_total[t] + give * (held[t] - nu[m + t])
                for j in range(k):
                    if joint[t, j]:
                        for i in range(m):
                            gap -= x[i, j]
                flow[m + t] = gap
                worst = max(worst, abs(gap))
            for label in range(total_rows):
                for j in range(k):
                    state = bound[label, j]
                    if state != 0:
                        gap = (high[label, j] if state == 1 else low[label, j]) - rows[label, j]
                        gap += (anchor[label, j] - pull[label, j]) / (stiff * curved[j])
                        rows[label, j] = gap
                        worst = max(worst, abs(gap))
            if refinement > 3 and worst > 0.5 * last:
                break
            last = min(last, worst)
            if worst < 1e-12:
                break
            # ... and the step that supplies it.
            for j in range(k):
                n = n_free[j]
                for s in range(n):
                    i = position[j, s]
                    value = -gradient[i, j]
                    for r in range(n_rows):
                        label = row_of[r, i]
                        if bound[label, j] != 0:
                            value += stiff * curved[j] * rows[label, j]
                    vector[s] = value
                times(store, start[j], vector, step[j], n)
                for s in range(n):
                    flow[position[j, s]] -= step[j, s]
                for t in range(n_joint):
                    if joint[t, j]:
                        for s in range(n):
                            flow[m + t] -= step[j, s]
            solve_triangle(whole, flow)
            for j in range(k):
                n = n_free[j]
                extra = 0.0
                for t in range(n_joint):
                    if joint[t, j]:
                        extra += flow[m + t]
                for s in range(n):
                    vector[s] = (flow[position[j, s]] + extra) / scale[j]
                times(store, start[j], vector, change, n)
                for s in range(n):
                    change[s] += step[j, s]
                    x[position[j, s], j] += change[s]
                for r in range(n_rows):
                    for s in range(n):
                        label = row_of[r, position[j, s]]
                        if bound[label, j] != 0:
                            rows[label, j] -= change[s]
                for label in range(total_rows):
                    if bound[label, j] != 0:
                        pull[label, j] += stiff * curved[j] * rows[label, j]
            for i in range(m + n_joint):
                nu[i] += flow[i]
        # The signs tell which counts and rows are on the wrong side. All change sides together while that makes them
        # fewer; else only the first does, which cannot go in circles (Murty's least index).
        changes = 0
        allowed = m * k + total_rows * k if worse < 3 else 1
        violation = 0.0
        rows[:] = 0.0
        for r in range(n_rows):
            for i in range(m):
                label = row_of[r, i]
                for j in range(k):
                    rows[label, j] += x[i, j]
        for label in range(total_rows):
            for j in range(k):
                state = bound[label, j]
                y = rows[label, j]
                if state == 0:
                    violation = max(violation, low[label, j] - y, y - high[label, j])
                else:
                    violation = max(violation, abs(y - (high[label, j] if state == 1 else low[label, j])))
                if state == 2:
                    continue
                reached = y - anchor[label, j] / (stiff * curved[j])
                small = 1e-10 * (1.0 + 1e-3 * abs(y))
                to = 0
                if reached < low[label, j] - small:
                    to = -1
                elif reached > high[label, j] + small:
                    to = 1
                if to != state:
                    changes += 1
                    if changes <= allowed:
                        bound[label, j] = to
                        stale[j] = True
                        if to == 0:
                            pull[label, j] = 0.0
        for i in range(m):
            small = -1e-10 * (1.0 + 1e-3 * parent[i])
            top = -1
            for j in range(k):
                if free[i, j] and (top < 0 or x[i, j] > x[i, top]):
                    top = j
            for j in range(k):
                wrong = x[i, j] < small and j != top if free[i, j] else gradient[i, j] < -1e-9 and not shut[i, j]
                if wrong:
                    changes += 1
                    if changes <= allowed:
                        free[i, j] = not free[i, j]
        fresh = changes > 0
        if changes == 0:
            for t in range(n_joint):
                gap = joint_total[t]
                for j in range(k):
                    if joint[t, j]:
                        for i in range(m):
                            gap -= x[i, j]
                violation = max(violation, abs(gap))
            if violation < 1e-11 * size_of or (violation > 0.5 * violated and violation < 1e-8):
                return turn + 1, 0
            # The set is right for constraints that yield: now stiffen them (the method of multipliers).
            violated = violation
            remember(pull, nu, anchor, held)
            best = m * k + 1
            worse = 0
        elif changes < best:
            best = changes
            worse = 0
        else:
            worse += 1
            if worse > patience:
                return turn + 1, changes
    return rounds, -3 if changes == 0 else changes
