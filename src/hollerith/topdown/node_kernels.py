"""The compiled inner loops of the node solver.

Arrays over live cells and children have shape (m, k), children fastest: a row is what one cell of the parent is divided
into. Children are scaled: with s_c the scale of child c, its quadratic form is s_c times that of its profile, so that
children of one profile share every factor. The quadratic form of a profile is d I + B'KB, where B adds cells up to the
blocks (the finest margins, R of them, numbered through) and K is small and dense.
"""

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numba
import numpy as np
from numpy.typing import NDArray

from hollerith.topdown.problem import Floats, Labels

Flags = NDArray[np.bool_]
States = NDArray[np.int8]
Positions = NDArray[np.int64]
P = ParamSpec("P")
R = TypeVar("R")

SAME = 1e-12
"""Relative difference below which two weights count as equal."""


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function, keep the result on disk, and let other threads run during a call."""
    compiled: Any = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    return compiled  # type: ignore[no-any-return]


@kernel
def renumber(labels: Labels, size: int) -> tuple[Labels, int, Positions]:
    """Number the labels that occur by first appearance, so that equal partitions get equal labels.

    Returns
    -------
    tuple
        The new labels, how many there are, and the old label of each.
    """
    m = len(labels)
    new = np.full(size, -1, np.int32)
    old = np.empty(min(size, m), np.int64)
    out = np.empty(m, np.int32)
    count = 0
    for i in range(m):
        label = labels[i]
        if new[label] < 0:
            new[label] = count
            old[count] = label
            count += 1
        out[i] = new[label]
    return out, count, old[:count]


@kernel
def refines(fine: Labels, fine_size: int, coarse: Labels, image: Labels) -> bool:
    """Tell whether each fine label lies within one coarse label, which is then written to ``image``."""
    for label in range(fine_size):
        image[label] = -1
    for i in range(len(fine)):
        label = fine[i]
        if image[label] < 0:
            image[label] = coarse[i]
        elif image[label] != coarse[i]:
            return False
    return True


@kernel
def profiles(weights: Floats, detailed: Floats) -> tuple[Positions, Floats, Positions]:
    """Sort children into profiles of proportional weights.

    Parameters
    ----------
    weights : ndarray, shape (k, classes)
        By distinct partition.
    detailed : ndarray, shape (k,)
        The weight of single cells, contained in ``weights``.

    Returns
    -------
    order : ndarray, shape (k,)
        Children side by side by profile.
    scale : ndarray, shape (k,)
        s_c, in that order: about the smallest curvature.
    starts : ndarray, shape (profiles + 1,)
    """
    k, n = weights.shape
    scale = np.empty(k)
    least = np.inf
    for c in range(k):
        total = 0.0
        for q in range(n):
            total += weights[c, q]
        scale[c] = max(detailed[c], 1e-2 * total)
        if scale[c] > 0.0:
            least = min(least, scale[c])
    if least == np.inf:
        least = 10.0
    first = np.empty(k, np.int64)
    member = np.empty(k, np.int64)
    count = 0
    for c in range(k):
        if not scale[c] > 0.0:
            scale[c] = 0.1 * least
        found = -1
        for p in range(count):
            other = first[p]
            same = True
            for q in range(n):
                a = weights[c, q] / scale[c]
                b = weights[other, q] / scale[other]
                if abs(a - b) > SAME * (abs(a) + abs(b)):
                    same = False
                    break
            if same:
                found = p
                break
        if found < 0:
            found = count
            first[count] = c
            count += 1
        member[c] = found
    starts = np.zeros(count + 1, np.int64)
    for c in range(k):
        starts[member[c] + 1] += 1
    for p in range(count):
        starts[p + 1] += starts[p]
    order = np.empty(k, np.int64)
    place = starts.copy()
    for c in range(k):
        order[place[member[c]]] = c
        place[member[c]] += 1
    return order, scale[order], starts


@kernel
def arrange(
    labels: Labels, sizes: Positions, weights: Floats, rows: Labels, row_sizes: Positions
) -> tuple[
    Positions,
    Floats,
    Positions,
    bool,
    Floats,
    Labels,
    Floats,
    Floats,
    Floats,
    Labels,
    Positions,
    Positions,
    Floats,
]:
    """Bring the quadratic forms of a node to the form d I + B'KB.

    Parameters
    ----------
    labels : ndarray, shape (queries, m)
    sizes : ndarray, shape (queries,)
    weights : ndarray, shape (k, queries)
    rows : ndarray, shape (constraints, m)
        Labels of the queries that constraints bound.
    row_sizes : ndarray, shape (constraints,)

    Returns
    -------
    order, scale, starts
        Of `profiles`.
    whole : bool
        Whether the cells themselves are the blocks: then d = 0, B = I.
    single : ndarray, shape (profiles,)
        d.
    blocks : ndarray, shape (B's finest margins, m)
        The rows of B that each cell counts in.
    form : ndarray, shape (profiles, R, R)
        K.
    pull : ndarray, shape (R, R)
        The sum over constraints of G'G, each divided by the mean number of cells of its rows, in terms of blocks.
    overlap : ndarray, shape (R, R)
        BB'.
    row_of : ndarray, shape (constraints, m)
        The constraint row that each cell counts in, rows numbered through.
    row_label, row_query : ndarray, shape (rows,)
        The label and the constraint of each row.
    strength : ndarray, shape (rows,)
        One by the mean number of cells of the rows of the constraint.
    """
    n_queries, m = labels.shape
    n_rows = len(rows)
    k = len(weights)
    parts = np.empty((n_queries + n_rows, m), np.int32)
    counts = np.empty(n_queries + n_rows, np.int64)
    classes = np.empty(n_queries + n_rows, np.int64)
    n_classes = 0
    total_rows = 0
    for r in range(n_rows):
        total_rows += min(row_sizes[r], m)
    row_of = np.empty((n_rows, m), np.int32)
    row_label = np.empty(total_rows, np.int64)
    row_query = np.empty(total_rows, np.int64)
    strength = np.empty(total_rows)
    at = 0
    used = 0
    for q in range(n_queries + n_rows):
        if q < n_queries:
            new, count, _ = renumber(labels[q], sizes[q])
            measured = False
            for c in range(k):
                if weights[c, q] != 0.0:
                    measured = True
                    break
        else:
            measured = True
            new, count, old = renumber(rows[q - n_queries], row_sizes[q - n_queries])
            for label in range(count):
                row_label[at + label] = old[label]
                row_query[at + label] = q - n_queries
                strength[at + label] = count / m
            for i in range(m):
                row_of[q - n_queries, i] = at + new[i]
            at += count
        classes[q] = -1
        if not measured:
            continue
        for c in range(n_classes):
            if counts[c] == count:
                same = True
                for i in range(m):
                    if parts[c, i] != new[i]:
                        same = False
                        break
                if same:
                    classes[q] = c
                    break
        if classes[q] < 0:
            parts[n_classes] = new
            counts[n_classes] = count
            classes[q] = n_classes
            n_classes += 1
        used += 1
    by_class = np.zeros((k, max(n_classes, 1)))
    for q in range(n_queries):
        if classes[q] >= 0:
            for c in range(k):
                by_class[c, classes[q]] += weights[c, q]
    full = -1
    bounded = False
    for c in range(n_classes):
        if counts[c] == m:
            full = c
    for r in range(n_rows):
        bounded = bounded or classes[n_queries + r] == full
    detailed = by_class[:, full].copy() if full >= 0 else np.zeros(k)
    order, scale, starts = profiles(by_class, detailed)
    n_profiles = len(starts) - 1
    # The finest margins: from fine to coarse, each either lies within one already chosen or is chosen.
    ranked = np.argsort(-counts[:n_classes])
    image = np.empty(m, np.int32)
    chosen = np.empty(n_classes, np.int64)
    owner = np.full(n_classes, -1, np.int64)
    n_chosen = 0
    size = 0
    for c in ranked:
        if c == full:
            continue
        for b in range(n_chosen):
            if refines(parts[chosen[b]], counts[chosen[b]], parts[c], image):
                owner[c] = b
                break
        if owner[c] < 0:
            owner[c] = n_chosen
            chosen[n_chosen] = c
            n_chosen += 1
            size += counts[c]
    # A product with the whole inverse is quicker than sums to margins and back while there are few cells.
    whole = bounded or (n_chosen > 0 and m <= size + 24 * n_chosen)
    if whole:
        n_chosen = 1
        size = m
        blocks = np.empty((1, m), np.int32)
        for i in range(m):
            blocks[0, i] = i
    else:
        blocks = np.empty((n_chosen, m), np.int32)
    offset = np.zeros(n_chosen + 1, np.int64)
    if whole:
        offset[1] = m
    else:
        for b in range(n_chosen):
            offset[b + 1] = offset[b] + counts[chosen[b]]
            for i in range(m):
                blocks[b, i] = offset[b] + parts[chosen[b], i]
    single = np.zeros(n_profiles)
    form = np.zeros((n_profiles, size, size))
    pull = np.zeros((size, size))
    for c in range(n_classes):
        strong = 0.0
        for r in range(n_rows):
            if classes[n_queries + r] == c:
                strong += counts[c] / m
        if c == full and not whole:
            for p in range(n_profiles):
                child = order[starts[p]]
                single[p] = by_class[child, c] / scale[starts[p]]
            continue
        if whole:
            low = 0
            high = m
            for i in range(m):
                image[i] = parts[c, i]
        else:
            b = owner[c]
            low = offset[b]
            high = offset[b + 1]
            refines(parts[chosen[b]], counts[chosen[b]], parts[c], image)
        for p in range(n_profiles):
            weight = by_class[order[starts[p]], c] / scale[starts[p]]
            if weight == 0.0:
                continue
            for i in range(low, high):
                for j in range(low, high):
                    if image[i - low] == image[j - low]:
                        form[p, i, j] += weight
        if strong > 0.0:
            for i in range(low, high):
                for j in range(low, high):
                    if image[i - low] == image[j - low]:
                        pull[i, j] += strong
    overlap = np.zeros((size, size))
    for i in range(m):
        for a in range(n_chosen):
            for b in range(n_chosen):
                overlap[blocks[a, i], blocks[b, i]] += 1.0
    return (
        order,
        scale,
        starts,
        whole,
        single,
        blocks,
        form,
        pull,
        overlap,
        row_of,
        row_label[:at],
        row_query[:at],
        strength[:at],
    )


@kernel
def linear_term(
    labels: Labels, offsets: Positions, weights: Floats, answers: Floats, order: Positions, scale: Floats
) -> tuple[Floats, Floats, Floats]:
    """Compute b, minus half the gradient at zero, scaled by child.

    Returns
    -------
    b : ndarray, shape (m, k)
    targets : ndarray, shape (all answers, k)
        The answers, in the order of the children in ``order``; 0 where not measured.
    inverse : ndarray, shape (all answers, k)
        Their weights.
    """
    n_queries, m = labels.shape
    k = len(order)
    total = answers.shape[1]
    targets = np.zeros((total, k))
    inverse = np.zeros((total, k))
    for j in range(k):
        c = order[j]
        for q in range(n_queries):
            weight = weights[c, q]
            if weight != 0.0:
                for a in range(offsets[q], offsets[q + 1]):
                    targets[a, j] = answers[c, a]
                    inverse[a, j] = weight
    b = np.zeros((m, k))
    for i in range(m):
        for q in range(n_queries):
            a = offsets[q] + labels[q, i]
            for j in range(k):
                b[i, j] += targets[a, j] * inverse[a, j]
        for j in range(k):
            b[i, j] /= scale[j]
    return b, targets, inverse


@kernel
def sum_of_squares(labels: Labels, offsets: Positions, targets: Floats, inverse: Floats, x: Floats) -> float:
    """Compute the objective, the weighted sum of squared differences from all answers."""
    n_queries, m = labels.shape
    k = x.shape[1]
    total = 0.0
    for q in range(n_queries):
        gap = -targets[offsets[q] : offsets[q + 1]]
        for i in range(m):
            a = labels[q, i]
            for j in range(k):
                gap[a, j] += x[i, j]
        part = 0.0
        for a in range(len(gap)):
            for j in range(k):
                part += inverse[offsets[q] + a, j] * gap[a, j] * gap[a, j]
        total += part
    return total


@kernel
def factor(rho: float, whole: bool, single: Floats, form: Floats, pull: Floats, overlap: Floats) -> Floats:  # noqa: FBT001
    """Find V with (H + rho (I + G'G))^-1 = I / (d + rho) - B'VB, or B = I and -V the inverse where ``whole``."""
    out = np.empty_like(form)
    size = form.shape[1]
    for p in range(len(form)):
        middle = form[p] + rho * pull
        if whole:
            for i in range(size):
                middle[i, i] += rho
            out[p] = -np.linalg.inv(middle)
        elif size > 0:
            a = single[p] + rho
            left = np.dot(middle, overlap) / a
            for i in range(size):
                left[i, i] += 1.0
            out[p] = np.linalg.solve(left, middle) / (a * a)
    return out


@kernel
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


@kernel
def alternate(
    parent: Floats,
    b: Floats,
    scale: Floats,
    starts: Positions,
    whole: bool,  # noqa: FBT001
    single: Floats,
    blocks: Labels,
    form: Floats,
    pull: Floats,
    overlap: Floats,
    row_of: Labels,
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
    share = 1.0 / scale
    v_form = factor(rho, whole, single, form, pull, overlap)
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
    next_check = 10
    for _ in range(iterations):
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
            if n_profiles == 1:
                np.dot(v_form[0], sums, spread)
            else:
                for p in range(n_profiles):
                    spread[:, starts[p] : starts[p + 1]] = np.dot(
                        v_form[p], np.ascontiguousarray(sums[:, starts[p] : starts[p + 1]])
                    )
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
            if change > 1.7 or change < 0.6:
                rho *= change
                for i in range(m):
                    tau[i] /= change
                    for j in range(k):
                        u[i, j] /= change
                w /= change
                v_form = factor(rho, whole, single, form, pull, overlap)
    return rho, done, primal, dual


@kernel
def apply_form(
    x: Floats, starts: Positions, single: Floats, blocks: Labels, form: Floats, sums: Floats, out: Floats
) -> None:
    """Write H x, scaled by child, to ``out``."""
    m, k = x.shape
    size = form.shape[1]
    sums[:] = 0.0
    for i in range(m):
        for a in range(len(blocks)):
            label = blocks[a, i]
            for j in range(k):
                sums[label, j] += x[i, j]
    spread = np.empty((size, k))
    diagonal = np.empty(k)
    for p in range(len(form)):
        first = starts[p]
        last = starts[p + 1]
        diagonal[first:last] = single[p]
        if len(form) == 1:
            np.dot(form[0], sums, spread)
        elif size > 0:
            spread[:, first:last] = np.dot(form[p], np.ascontiguousarray(sums[:, first:last]))
    for i in range(m):
        for j in range(k):
            out[i, j] = diagonal[j] * x[i, j]
        for a in range(len(blocks)):
            label = blocks[a, i]
            for j in range(k):
                out[i, j] += spread[label, j]


@kernel
def invert(a: Floats) -> Floats:
    """Invert a symmetric positive definite matrix."""
    n = len(a)
    if n > 40:
        return np.ascontiguousarray(np.linalg.inv(a).T)
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
    return a


@kernel
def triangle(a: Floats, shift: float) -> tuple[Floats, bool]:
    """Find the upper factor U of a = U'U, of which only the upper half is read, and whether there is one.

    The diagonal is raised by the factor 1 + shift, so that redundant constraints do not matter.
    """
    n = len(a)
    for i in range(n):
        a[i, i] *= 1.0 + shift
    if n > 96:
        whole = a + a.T
        for i in range(n):
            whole[i, i] = a[i, i]
        return np.ascontiguousarray(np.linalg.cholesky(whole).T), True
    for p in range(n):
        if not a[p, p] > 0.0:
            return a, False
        pivot = np.sqrt(a[p, p])
        for j in range(p, n):
            a[p, j] /= pivot
        for i in range(p + 1, n):
            f = a[p, i]
            if f != 0.0:
                for j in range(i, n):
                    a[i, j] -= f * a[p, j]
    return a, True


@kernel
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


@kernel
def inverse_on_set(
    cells: Labels, blocks: Labels, form: Floats, diagonal: float, row_of: Labels, bound: States, stiff: float
) -> Floats:
    """Invert a child's quadratic form on its free cells, with ``stiff`` times G'G for the rows at a bound; flat."""
    n = len(cells)
    a = np.zeros((n, n))
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
            if bound[label] != 0:
                for t in range(n):
                    if row_of[r, cells[t]] == label:
                        a[s, t] += stiff
    return invert(a).reshape(n * n)


@kernel
def times(store: Floats, at: int, x: Floats, out: Floats, n: int) -> None:
    """Multiply the symmetric matrix of order n that is stored from ``at`` on by x."""
    for s in range(n):
        out[s] = 0.0
    for s in range(n):
        f = x[s]
        row = store[at + s * n : at + (s + 1) * n]
        for t in range(n):
            out[t] += f * row[t]


@kernel
def settle(
    parent: Floats,
    b: Floats,
    scale: Floats,
    starts: Positions,
    single: Floats,
    blocks: Labels,
    form: Floats,
    row_of: Labels,
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
    n_free = np.zeros(k, np.int64)
    position = np.empty((k, m), np.int32)
    start = np.zeros(2 * k, np.int64)
    stale = np.ones(k, np.bool_)
    store = np.empty(0)
    tail = 0
    changes = 0
    best = m * k + 1
    worse = 0
    patience = 12 if total_rows > 0 else 5
    step = np.empty((k, m))
    anchor = pull.copy()
    held = nu[m:].copy()
    give = 1.0 / (stiff * stiffest)
    fresh = True
    violated = np.inf
    upper = np.empty((0, 0))
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
                longer[:tail] = store[:tail]
                store = longer
            tail = need
            whole = np.zeros((m + n_joint, m + n_joint))
            for j in range(k):
                n = n_free[j]
                if n == 0:
                    continue
                p = profile[j]
                if stale[j]:
                    stale[j] = False
                    store[start[j] : start[j] + n * n] = inverse_on_set(
                        position[j, :n], blocks, form[p], single[p] + soft[j], row_of, bound[:, j], stiff * curved[j]
                    )
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
            upper, found = triangle(whole, shift)
            if not found:
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
            solve_triangle(upper, flow)
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
                violation = max(violation, low[label, j] - y, y - high[label, j])
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
                if free[i, j]:
                    wrong = x[i, j] < small and j != top
                else:
                    wrong = gradient[i, j] < -1e-9 and not shut[i, j]
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
            if violation < 1e-10 * size_of or (violation > 0.9 * violated and violation < 1e-7):
                return turn + 1, 0
            # The set is right for constraints that yield: now stiffen them (the method of multipliers).
            violated = violation
            anchor[:] = pull
            for t in range(n_joint):
                held[t] = nu[m + t]
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


@kernel
def optimality(
    parent: Floats,
    b: Floats,
    scale: Floats,
    starts: Positions,
    single: Floats,
    blocks: Labels,
    form: Floats,
    row_of: Labels,
    low: Floats,
    high: Floats,
    joint: Flags,
    joint_total: Floats,
    shut: Flags,
    x: Floats,
    nu: Floats,
    pull: Floats,
) -> float:
    """Compute the KKT residual in persons: the largest entry of the natural map and of what the sums miss.

    For a count it is min(x, half the gradient of the Lagrangian by the scale of the child), which is 0 exactly where
    one of the two is 0 and the other not negative; for a row y of constraints with multiplier p it is the distance of
    y from the nearest point between the bounds to y - p.
    """
    m, k = x.shape
    sums = np.empty((form.shape[1], k))
    gradient = np.empty((m, k))
    rows = np.zeros((len(low), k))
    apply_form(x, starts, single, blocks, form, sums, gradient)
    extra = np.zeros(k)
    worst = 0.0
    for t in range(len(joint_total)):
        gap = joint_total[t]
        for j in range(k):
            if joint[t, j]:
                extra[j] += nu[m + t]
                for i in range(m):
                    gap -= x[i, j]
        worst = max(worst, abs(gap))
    for i in range(m):
        gap = parent[i]
        for r in range(len(row_of)):
            label = row_of[r, i]
            for j in range(k):
                gradient[i, j] -= pull[label, j]
                rows[label, j] += x[i, j]
        for j in range(k):
            gap -= x[i, j]
            slope = gradient[i, j] - b[i, j] - (nu[i] + extra[j]) / scale[j]
            if shut[i, j]:
                worst = max(worst, abs(x[i, j]))
            else:
                worst = max(worst, abs(min(x[i, j], slope)))
        worst = max(worst, abs(gap))
    for label in range(len(low)):
        for j in range(k):
            y = rows[label, j]
            near = min(max(y - pull[label, j], low[label, j]), high[label, j])
            worst = max(worst, abs(y - near))
    return worst
