"""What the compiled loops of the node solver share: their form, products with it, objective and optimality.

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

from yupana.arrays import Flags, Floats, Indices

States = NDArray[np.int8]
Positions = NDArray[np.int64]
P = ParamSpec("P")
R = TypeVar("R")


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile as `yupana.compiled.compiled` does, but let a division by zero give infinity instead of an error."""
    compiled: Any = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    return compiled  # type: ignore[no-any-return]


@kernel
def apply_form(  # noqa: C901  (loops over plain arrays)
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
def sum_of_squares(labels: Indices, offsets: Positions, targets: Floats, inverse: Floats, x: Floats) -> float:
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
            worst = max(worst, abs(x[i, j]) if shut[i, j] else abs(min(x[i, j], slope)))
        worst = max(worst, abs(gap))
    for label in range(len(low)):
        for j in range(k):
            y = rows[label, j]
            near = min(max(y - pull[label, j], low[label, j]), high[label, j])
            worst = max(worst, abs(y - near))
    return worst
