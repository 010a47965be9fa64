"""What the compiled loops of the node solver share: their form, products with it, objective and optimality.

Arrays over live cells and children have shape (m, k), children fastest: a row is what one cell of the parent is divided
into. Children are scaled: with s_c the scale of child c, its quadratic form is s_c times that of its profile, so that
children of one profile share every factor. The quadratic form of a profile is d I + B'KB, where B adds cells up to the
blocks (the finest margins, R of them, numbered through) and K is small and dense.
"""

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Flags, Floats, Indices
from yupana.compiled import compiled, compiled_part

States = NDArray[np.int8]
Positions = NDArray[np.int64]


@compiled_part
def spread_sums(form: Floats, starts: Positions, sums: Floats, spread: Floats) -> None:
    """Multiply the sums of the children of each profile, of shape (R, k), by the matrix of the profile."""
    size = len(sums)
    if len(form) == 1:
        np.dot(form[0], sums, spread)
        return
    for p in range(len(form)):
        first = starts[p]
        width = starts[p + 1] - first
        gathered = np.empty((size, width))
        product = np.empty((size, width))
        for i in range(size):
            for j in range(width):
                gathered[i, j] = sums[i, first + j]
        np.dot(form[p], gathered, product)
        for i in range(size):
            for j in range(width):
                spread[i, first + j] = product[i, j]


@compiled_part
def apply_form(
    x: Floats, starts: Positions, single: Floats, blocks: Indices, form: Floats, sums: Floats, out: Floats
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
        diagonal[starts[p] : starts[p + 1]] = single[p]
    if size > 0:
        spread_sums(form, starts, sums, spread)
    for i in range(m):
        for j in range(k):
            out[i, j] = diagonal[j] * x[i, j]
        for a in range(len(blocks)):
            label = blocks[a, i]
            for j in range(k):
                out[i, j] += spread[label, j]


@compiled
def sum_of_squares(labels: Indices, offsets: Positions, targets: Floats, inverse: Floats, x: Floats) -> float:
    """Compute the objective, the weighted sum of squared differences from all answers."""
    n_queries, m = labels.shape
    k = x.shape[1]
    total = 0.0
    for q in range(n_queries):
        first = offsets[q]
        size = offsets[q + 1] - first
        gap = np.empty((size, k))
        for a in range(size):
            for j in range(k):
                gap[a, j] = -targets[first + a, j]
        for i in range(m):
            a = labels[q, i]
            for j in range(k):
                gap[a, j] += x[i, j]
        part = 0.0
        for a in range(size):
            for j in range(k):
                part += inverse[first + a, j] * gap[a, j] * gap[a, j]
        total += part
    return total


@compiled
def optimality(  # noqa: C901  (loops over plain arrays)
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
    rows = np.empty((len(low), k))
    rows[:] = 0.0
    apply_form(x, starts, single, blocks, form, sums, gradient)
    extra = np.empty(k)
    extra[:] = 0.0
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
            worst = max(worst, abs(x[i, j]) if shut[i, j] else abs(min(x[i, j], slope)))
        worst = max(worst, abs(gap))
    for label in range(len(low)):
        for j in range(k):
            y = rows[label, j]
            near = min(max(y - pull[label, j], low[label, j]), high[label, j])
            worst = max(worst, abs(y - near))
    return worst
