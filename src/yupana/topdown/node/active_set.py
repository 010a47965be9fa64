"""The active-set method: the exact solution on an active set, and the correction of the set (compiled)."""

from typing import Final, NamedTuple

import numpy as np

from yupana.arrays import Flags, Floats, Indices
from yupana.compiled import compiled, compiled_part, compiled_step
from yupana.topdown.node.kernels import (
    Conditions,
    Fields,
    Point,
    Positions,
    Squares,
    States,
    add_up,
    apply_form,
    clear,
    joint_gap,
)

STIFF: Final = 1e3
"""How much stiffer the rows at a bound are than the children."""

REFINEMENTS: Final = 20
"""Refinements of the solution on one active set, at most."""


class ActiveSet(NamedTuple):
    """Which counts may be positive, and where rows stand: -1 at their lower bound, 1 upper, 2 both, 0 between."""

    free: Flags
    bound: States


class _Stiffness(NamedTuple):
    """How stiff what stands in for a child's missing curvature is, and its rows at a bound; shape (k,)."""

    profile: Positions  # that of each child
    # added to the diagonal of each child's form, and of its rows at a bound
    soft: Floats
    firm: Floats
    shift: float  # by how much the diagonal of the system is raised
    give: float  # how far joint totals yield


class _Inverses(NamedTuple):
    """The inverse of each child's form on its free cells, one after the other in ``store``."""

    cells: Indices  # shape (k, m): the free cells of each child
    # shape (k,): how many, the order of the inverse; where it starts, and the room it has
    order: Positions
    start: Positions
    size: Positions
    stale: Flags  # shape (k,): whether it is that of another set
    store: Floats


class Anchors(NamedTuple):
    """The multipliers of rows and of joint totals from which the method of multipliers goes on."""

    rows: Floats
    joint: Floats


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
def stiffness_of(squares: Squares, conditions: Conditions) -> _Stiffness:
    """Find how stiff the rows at a bound are to be, from the curvatures of single cells."""
    scale, starts, single = squares.scale, squares.starts, squares.single
    k = len(scale)
    shift = 1e-12 if len(conditions.low) == 0 and len(conditions.joint_total) == 0 else 1e-9
    profile = np.empty(k, np.int64)
    soft = np.empty(k)
    curved = np.empty(k)
    stiffest = 1e-3
    for p in range(len(single)):
        curve = largest_curvature(squares, p)
        for j in range(starts[p], starts[p + 1]):
            profile[j] = p
            curved[j] = curve
            stiffest = max(stiffest, curve * scale[j])
            soft[j] = 1e-9 * curve
            if single[p] <= 1e-3 * curve:
                # Single cells have no curvature of their own: a proximal term stands in.
                shift = 1e-9
                soft[j] = 1e-5 * curve if curve > 0.0 else 1e-2
    for j in range(k):
        # A row is as stiff as the child itself, and where others are stiffer, nearly as stiff as they.
        curved[j] = STIFF * max(curved[j], min(stiffest / scale[j], 100.0 * max(curved[j], 1.0)))
    return _Stiffness(profile, soft, curved, shift, 1.0 / (STIFF * stiffest))


@compiled_part
def largest_curvature(squares: Squares, p: int) -> float:
    """Find half the largest curvature of a single cell in a profile."""
    blocks, form = squares.blocks, squares.form
    curve: float = squares.single[p]
    for i in range(len(squares.b)):
        h = squares.single[p]
        for a in range(len(blocks)):
            h += form[p, blocks[a, i], blocks[a, i]]
        curve = max(curve, h)
    return curve


@compiled_part
def place(free: Flags, inverses: _Inverses, used: int) -> int:
    """Find the free cells of each child, and places for inverses that have become larger; returns the room needed.

    Inverses are kept where they are for children whose set is the same as in the round before.
    """
    cells, count, start, size, stale, _ = inverses
    for j in range(len(count)):
        n = 0
        for i in range(len(free)):
            if free[i, j]:
                stale[j] = stale[j] or n >= count[j] or cells[j, n] != i
                cells[j, n] = i
                n += 1
        stale[j] = stale[j] or n != count[j]
        count[j] = n
        if n * n > size[j]:
            start[j] = used
            size[j] = n * n
            used += n * n
    return used


@compiled_part
def lengthen(inverses: _Inverses, used: int, need: int) -> _Inverses:
    """Copy what is stored to a larger array, where it must be larger."""
    cells, order, start, size, stale, store = inverses
    if need <= len(store):
        return inverses
    longer = np.empty(need + need // 8)
    for at in range(used):
        longer[at] = store[at]
    return _Inverses(cells, order, start, size, stale, longer)


@compiled_part
def store_inverse(
    squares: Squares, row_of: Indices, bound: States, stiffness: _Stiffness, inverses: _Inverses, child: int
) -> None:
    """Invert a child's form on its free cells, with G'G for the rows at a bound, as firm as they are to be."""
    cells, blocks = inverses.cells[child], squares.blocks
    n = inverses.order[child]
    p = stiffness.profile[child]
    diagonal = squares.single[p] + stiffness.soft[child]
    form = squares.form[p]
    a = np.empty((n, n))
    clear(a)
    for s in range(n):
        row = a[s]
        for block in range(len(blocks)):
            source = form[blocks[block, cells[s]]]
            for t in range(n):
                row[t] += source[blocks[block, cells[t]]]
        row[s] += diagonal
    add_firm(row_of, bound, stiffness.firm, cells, child, a)
    invert(a)
    at = inverses.start[child]
    for s in range(n):
        for t in range(n):
            inverses.store[at + s * n + t] = a[s, t]


@compiled_part
def add_firm(row_of: Indices, bound: States, firm: Floats, cells: Indices, child: int, a: Floats) -> None:
    """Add the rows that are at a bound to a child's form on its free cells."""
    for r in range(len(row_of)):
        for s in range(len(a)):
            label = row_of[r, cells[s]]
            if bound[label, child] != 0:
                for t in range(len(a)):
                    if row_of[r, cells[t]] == label:
                        a[s, t] += firm[child]


@compiled_part
def add_child(inverses: _Inverses, child: int, share: float, joint: Flags, upper: Floats) -> None:
    """Add a child's inverse to the system of the cells and joint totals."""
    cells, store = inverses.cells[child], inverses.store
    n = inverses.order[child]
    n_joint = len(joint)
    m = len(upper) - n_joint
    for s in range(n):
        i = cells[s]
        at = inverses.start[child] + s * n
        row = store[at : at + n]
        beyond = 0.0
        for t in range(n):
            beyond += row[t]
        for t in range(s, n):
            upper[i, cells[t]] += share * row[t]
        for t in range(n_joint):
            if joint[t, child]:
                upper[i, m + t] += share * beyond
                for other in range(t, n_joint):
                    if joint[other, child]:
                        upper[m + t, m + other] += share * beyond


@compiled_part
def factor_system(
    squares: Squares, conditions: Conditions, bound: States, stiffness: _Stiffness, inverses: _Inverses, upper: Floats
) -> bool:
    """Write the upper factor of the system of the multipliers of cells and joint totals; whether there is one."""
    clear(upper)
    stale = inverses.stale
    for j in range(len(stale)):
        if inverses.order[j] == 0:
            continue
        if stale[j]:
            stale[j] = False
            store_inverse(squares, conditions.row_of, bound, stiffness, inverses, j)
        add_child(inverses, j, 1.0 / squares.scale[j], conditions.joint, upper)
    for t in range(len(conditions.parent), len(upper)):
        upper[t, t] += stiffness.give
    return triangle(upper, stiffness.shift)


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
def remember(point: Point, anchors: Anchors) -> None:
    """Write the multipliers of rows and of joint totals, from which the method of multipliers goes on."""
    pull, nu = point.pull, point.nu
    rows, joint = anchors
    for label in range(pull.shape[0]):
        for j in range(pull.shape[1]):
            rows[label, j] = pull[label, j]
    first = len(nu) - len(joint)
    for t in range(len(joint)):
        joint[t] = nu[first + t]


@compiled_step
def slope(squares: Squares, conditions: Conditions, point: Point) -> None:
    """Write half the gradient of the Lagrangian, scaled by child."""
    b, scale, row_of, joint = squares.b, squares.scale, conditions.row_of, conditions.joint
    x, nu, pull, gradient = point
    m, k = x.shape
    apply_form(squares, x, gradient)
    for i in range(m):
        for j in range(k):
            gradient[i, j] -= b[i, j] + nu[i] / scale[j]
        for r in range(len(row_of)):
            label = row_of[r, i]
            for j in range(k):
                gradient[i, j] -= pull[label, j]
    for t in range(len(joint)):
        for j in range(k):
            if joint[t, j]:
                for i in range(m):
                    gradient[i, j] -= nu[m + t] / scale[j]


@compiled_step
def miss_sums(conditions: Conditions, free: Flags, point: Point, give: float, held: Floats, flow: Floats) -> float:
    """Write what cells and joint totals miss, in persons, to ``flow``; the largest, slopes of free counts included."""
    x, nu, gradient = point.x, point.nu, point.gradient
    m, k = x.shape
    worst = 0.0
    for i in range(m):
        gap = conditions.parent[i]
        for j in range(k):
            gap -= x[i, j]
            if free[i, j]:
                worst = max(worst, abs(gradient[i, j]))
        flow[i] = gap
        worst = max(worst, abs(gap))
    for t in range(len(held)):
        gap = conditions.joint_total[t] + give * (held[t] - nu[m + t])
        gap = joint_gap(conditions, t, gap, x)
        flow[m + t] = gap
        worst = max(worst, abs(gap))
    return worst


@compiled_part
def miss_rows(conditions: Conditions, bound: States, point: Point, firm: Floats, anchor: Floats, rows: Floats) -> float:
    """Write what the rows at a bound miss, in persons, to ``rows``; the largest."""
    low, high, pull = conditions.low, conditions.high, point.pull
    add_up(conditions.row_of, point.x, rows)
    worst = 0.0
    for label in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            state = bound[label, j]
            if state != 0:
                gap = (high[label, j] if state == 1 else low[label, j]) - rows[label, j]
                gap += (anchor[label, j] - pull[label, j]) / firm[j]
                rows[label, j] = gap
                worst = max(worst, abs(gap))
    return worst


@compiled_step
def step_freely(
    conditions: Conditions,
    bound: States,
    gradient: Floats,
    firm: Floats,
    inverses: _Inverses,
    rows: Floats,
    flow: Floats,
    step: Floats,
) -> None:
    """Find the step of each child by itself, of shape (k, m), and take it out of ``flow``."""
    row_of, joint = conditions.row_of, conditions.joint
    cells, count, start, store = inverses.cells, inverses.order, inverses.start, inverses.store
    k, m = cells.shape
    vector = np.empty(m)
    for j in range(k):
        n = count[j]
        for s in range(n):
            i = cells[j, s]
            value = -gradient[i, j]
            for r in range(len(row_of)):
                label = row_of[r, i]
                if bound[label, j] != 0:
                    value += firm[j] * rows[label, j]
            vector[s] = value
        times(store, start[j], vector, step[j], n)
        for s in range(n):
            flow[cells[j, s]] -= step[j, s]
        for t in range(len(joint)):
            if joint[t, j]:
                for s in range(n):
                    flow[m + t] -= step[j, s]


@compiled_step
def step_together(scale: Floats, joint: Flags, inverses: _Inverses, flow: Floats, step: Floats, x: Floats) -> None:
    """Add what the multipliers in ``flow`` move to the step of each child, and the step to the counts."""
    cells, count, start, store = inverses.cells, inverses.order, inverses.start, inverses.store
    k, m = cells.shape
    vector = np.empty(m)
    change = np.empty(m)
    for j in range(k):
        n = count[j]
        extra = 0.0
        for t in range(len(joint)):
            if joint[t, j]:
                extra += flow[m + t]
        for s in range(n):
            vector[s] = (flow[cells[j, s]] + extra) / scale[j]
        times(store, start[j], vector, change, n)
        for s in range(n):
            step[j, s] += change[s]
            x[cells[j, s], j] += step[j, s]


@compiled_part
def pull_rows(
    row_of: Indices, bound: States, firm: Floats, inverses: _Inverses, step: Floats, rows: Floats, pull: Floats
) -> None:
    """Move the multipliers of the rows at a bound by what they still miss after the step."""
    cells, count = inverses.cells, inverses.order
    for j in range(len(count)):
        for r in range(len(row_of)):
            for s in range(count[j]):
                label = row_of[r, cells[j, s]]
                if bound[label, j] != 0:
                    rows[label, j] -= step[j, s]
        for label in range(len(rows)):
            if bound[label, j] != 0:
                pull[label, j] += firm[j] * rows[label, j]


@compiled_part
def refine(
    squares: Squares,
    conditions: Conditions,
    active: ActiveSet,
    point: Point,
    stiffness: _Stiffness,
    anchors: Anchors,
    inverses: _Inverses,
    upper: Floats,
) -> None:
    """Solve for the counts and multipliers on an active set, by steps that the factored system gives."""
    bound, firm = active.bound, stiffness.firm
    flow = np.empty(len(upper))
    rows = np.empty(bound.shape)
    step = np.empty(inverses.cells.shape)
    last = np.inf
    for refinement in range(REFINEMENTS):
        slope(squares, conditions, point)
        worst = miss_sums(conditions, active.free, point, stiffness.give, anchors.joint, flow)
        if len(rows) > 0:
            worst = max(worst, miss_rows(conditions, bound, point, firm, anchors.rows, rows))
        if refinement > 3 and worst > 0.5 * last:
            break
        last = min(last, worst)
        if worst < 1e-12:
            break
        step_freely(conditions, bound, point.gradient, firm, inverses, rows, flow, step)
        solve_triangle(upper, flow)
        step_together(squares.scale, conditions.joint, inverses, flow, step, point.x)
        if len(rows) > 0:
            pull_rows(conditions.row_of, bound, firm, inverses, step, rows, point.pull)
        for i in range(len(flow)):
            point.nu[i] += flow[i]


@compiled_part
def _correct_rows(
    conditions: Conditions, bound: States, point: Point, firm: Floats, anchor: Floats, stale: Flags, allowed: int
) -> tuple[int, float]:
    """Move rows to the bounds that they go beyond, and off those that hold them back.

    Returns
    -------
    changes : int
        How many are on the wrong side, of which no more than ``allowed`` were moved.
    violation : float
        By how much rows miss their bounds at most.
    """
    low, high, pull = conditions.low, conditions.high, point.pull
    rows = np.empty(bound.shape)
    add_up(conditions.row_of, point.x, rows)
    changes = 0
    violation = 0.0
    for label in range(bound.shape[0]):
        for j in range(bound.shape[1]):
            state = bound[label, j]
            least, most, y = low[label, j], high[label, j], rows[label, j]
            if state == 0:
                violation = max(violation, least - y, y - most)
            else:
                violation = max(violation, abs(y - (most if state == 1 else least)))
            to = side_of(y - anchor[label, j] / firm[j], least, most, 1e-10 * (1.0 + 1e-3 * abs(y)))
            wrong = state != 2 and to != state  # noqa: PLR1714  (a tuple would be made anew for every row)
            changes += wrong
            if wrong and changes <= allowed:
                bound[label, j] = to
                stale[j] = True
                if to == 0:
                    pull[label, j] = 0.0
    return changes, violation


@compiled_part
def side_of(y: float, low: float, high: float, small: float) -> int:
    """Tell on which side of its bounds a row is: -1 below, 1 above, 0 between."""
    if y < low - small:
        return -1
    return 1 if y > high + small else 0


@compiled_part
def correct_cells(conditions: Conditions, free: Flags, point: Point, changes: int, allowed: int) -> int:
    """Shut counts below 0 and free those whose slope is; returns the changes with those that were there before."""
    x, gradient, shut = point.x, point.gradient, conditions.shut
    m, k = x.shape
    for i in range(m):
        small = -1e-10 * (1.0 + 1e-3 * conditions.parent[i])
        top = -1
        for j in range(k):
            if free[i, j] and (top < 0 or x[i, j] > x[i, top]):
                top = j
        for j in range(k):
            wrong = x[i, j] < small and j != top if free[i, j] else gradient[i, j] < -1e-9 and not shut[i, j]
            changes += wrong
            if wrong and changes <= allowed:
                free[i, j] = not free[i, j]
    return changes


@compiled_part
def largest(parent: Floats) -> float:
    """Find the largest count of the parent, at least 1."""
    most = 1.0
    for i in range(len(parent)):
        most = max(most, parent[i])
    return most


@compiled_part
def joint_violation(conditions: Conditions, x: Floats) -> float:
    """Find by how much joint totals are missed at most."""
    violation = 0.0
    for t in range(len(conditions.joint_total)):
        violation = max(violation, abs(joint_gap(conditions, t, conditions.joint_total[t], x)))
    return violation


@compiled_part
def no_inverses(m: int, k: int) -> _Inverses:
    """Make places for the inverses of the children, with nothing in them."""
    count = np.empty(k, np.int64)
    start = np.empty(k, np.int64)
    size = np.empty(k, np.int64)
    stale = np.empty(k, np.bool_)
    for j in range(k):
        count[j] = 0
        start[j] = 0
        size[j] = 0
        stale[j] = True
    return _Inverses(np.empty((k, m), np.int32), count, start, size, stale, np.empty(0))


@compiled_part
def drop(free: Flags, x: Floats) -> None:
    """Set the counts that are not free to 0."""
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if not free[i, j]:
                x[i, j] = 0.0


@compiled
def solve_active_set(
    squares: Fields, conditions: Fields, active: Fields, point: Fields, rounds: int, room: int
) -> tuple[int, int]:
    """Solve exactly on an active set, correct the set by the signs of what comes out, and repeat until it stands.

    This is block principal pivoting: all counts and rows on the wrong side change it together while that makes them
    fewer; else only the first does, which cannot go in circles (Murty's least index).

    Parameters
    ----------
    squares, conditions, active, point : tuple
        The fields of `Squares`, `Conditions`, `ActiveSet` and `Point`; the latter two are overwritten.
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
    form, bounds, chosen, at = Squares(*squares), Conditions(*conditions), ActiveSet(*active), Point(*point)
    everything = chosen.free.size + chosen.bound.size
    patience = 12 if len(chosen.bound) > 0 else 5
    stiffness = stiffness_of(form, bounds)
    inverses = no_inverses(*at.x.shape)
    used = len(inverses.store)  # none; a literal would have functions compiled twice
    upper = np.empty((len(at.nu), len(at.nu)))
    anchors = Anchors(np.empty(chosen.bound.shape), np.empty(len(bounds.joint_total)))
    remember(at, anchors)
    fewest = chosen.free.size + 1
    worse = 0
    changes = 1
    violated = np.inf
    for turn in range(rounds):
        if changes > 0:
            need = place(chosen.free, inverses, used)
            if need > room:
                return turn, -1
            inverses = lengthen(inverses, used, need)
            used = need
            if not factor_system(form, bounds, chosen.bound, stiffness, inverses, upper):
                return turn, -2
        drop(chosen.free, at.x)
        refine(form, bounds, chosen, at, stiffness, anchors, inverses, upper)
        allowed = everything if worse < 3 else 1
        changes = 0
        violation = 0.0
        if len(chosen.bound) > 0:
            firm = stiffness.firm
            changes, violation = _correct_rows(bounds, chosen.bound, at, firm, anchors.rows, inverses.stale, allowed)
        changes = correct_cells(bounds, chosen.free, at, changes, allowed)
        if changes > 0:
            worse = 0 if changes < fewest else worse + 1
            fewest = min(fewest, changes)
            if worse > patience:
                return turn + 1, changes
            continue
        violation = max(violation, joint_violation(bounds, at.x))
        if violation < 1e-11 * largest(bounds.parent) or (violation > 0.5 * violated and violation < 1e-8):
            return turn + 1, 0
        # The set is right for constraints that yield: now stiffen them (the method of multipliers).
        violated = violation
        remember(at, anchors)
        fewest = chosen.free.size + 1
        worse = 0
    return rounds, -3 if changes == 0 else changes
