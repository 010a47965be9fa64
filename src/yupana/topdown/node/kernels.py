"""What the compiled loops of the node solver share: their values, products with the form, optimality, partitions.

Arrays over live cells and children have shape (m, k), children fastest: a row is what one cell of the parent is divided
into. Children are scaled: with s_c the scale of child c, its quadratic form is s_c times that of its profile, so that
children of one profile share every factor. The quadratic form of a profile is d I + B'KB, where B adds cells up to the
blocks (the finest margins, R of them, numbered through) and K is small and dense.
"""

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Flags, Floats, Indices, Ints
from yupana.compiled import compiled, compiled_part, compiled_step

States = NDArray[np.int8]
Positions = NDArray[np.int64]

Fields: TypeAlias = tuple[Any, ...]
"""A named tuple as Python hands it over: plain, for numba takes eight times as long to tell the type of a named one."""


class Squares(NamedTuple):
    """Half the objective without its constant: for child j, scale[j] times x'Hx / 2 - b'x."""

    b: Floats  # shape (m, k)
    scale: Floats  # shape (k,)
    # shape (profiles + 1,): the children of profile p are those from `starts[p]` up to `starts[p + 1]`
    starts: Positions
    single: Floats  # shape (profiles,): d
    blocks: Indices  # shape (B's finest margins, m): the rows of B that each cell counts in
    form: Floats  # shape (profiles, R, R): K


class Conditions(NamedTuple):
    """What counts >= 0 must meet."""

    parent: Floats  # shape (m,)
    row_of: Indices  # shape (constraints, m): the row that each cell counts in, rows numbered through
    low: Floats  # shape (rows, k)
    high: Floats  # shape (rows, k)
    joint: Flags  # shape (joint totals, k): which children each holds together
    joint_total: Floats  # shape (joint totals,)
    shut: Flags  # shape (m, k): counts that must be 0


class Point(NamedTuple):
    """Counts, shape (m, k); multipliers of cells and joint totals; those of rows, scaled by child; and the gradient.

    The gradient is half that of the Lagrangian, scaled by child, of shape (m, k).
    """

    x: Floats
    nu: Floats
    pull: Floats
    gradient: Floats


@compiled_part
def clear(values: Floats) -> None:
    """Set all entries of a matrix to 0."""
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            values[i, j] = 0.0


@compiled_step
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


@compiled_step
def add_up(labels: Indices, x: Floats, sums: Floats) -> None:
    """Write the sums of the cells in each block, or in each row of constraints, to ``sums``."""
    clear(sums)
    for i in range(len(x)):
        for a in range(len(labels)):
            label = labels[a, i]
            for j in range(x.shape[1]):
                sums[label, j] += x[i, j]


@compiled_part
def apply_form(squares: Squares, x: Floats, out: Floats) -> None:
    """Write H x, scaled by child, to ``out``."""
    starts, single, blocks, form = squares.starts, squares.single, squares.blocks, squares.form
    m, k = x.shape
    size = form.shape[1]
    sums = np.empty((size, k))
    add_up(blocks, x, sums)
    spread = np.empty((size, k))
    diagonal = np.empty(k)
    for p in range(len(form)):
        for j in range(starts[p], starts[p + 1]):
            diagonal[j] = single[p]
    if size > 0:
        spread_sums(form, starts, sums, spread)
    for i in range(m):
        for j in range(k):
            out[i, j] = diagonal[j] * x[i, j]
        for a in range(len(blocks)):
            label = blocks[a, i]
            for j in range(k):
                out[i, j] += spread[label, j]


@compiled_part
def joint_gap(conditions: Conditions, t: int, gap: float, x: Floats) -> float:
    """Subtract the counts that a joint total holds together."""
    for j in range(x.shape[1]):
        if conditions.joint[t, j]:
            for i in range(len(x)):
                gap -= x[i, j]
    return gap


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
def kkt_residual(squares: Fields, conditions: Fields, point: Fields) -> float:
    """Compute the KKT residual in persons: the largest entry of the natural map and of what the sums miss.

    For a count it is min(x, half the gradient of the Lagrangian by the scale of the child), which is 0 exactly where
    one of the two is 0 and the other not negative; for a row y of constraints with multiplier p it is the distance of
    y from the nearest point between the bounds to y - p. The arguments are the fields of `Squares`, `Conditions` and
    `Point`, whose gradient is overwritten.
    """
    form, bounds, at = Squares(*squares), Conditions(*conditions), Point(*point)
    apply_form(form, at.x, at.gradient)
    return max(residual_of_cells(form, bounds, at), residual_of_rows(bounds, at))


@compiled_part
def residual_of_cells(squares: Squares, conditions: Conditions, point: Point) -> float:
    """Find the largest residual of a cell; takes H x for the gradient, and overwrites it."""
    b, scale, shut, row_of = squares.b, squares.scale, conditions.shut, conditions.row_of
    x, nu, pull, gradient = point
    m, k = x.shape
    extra = np.empty(k)
    for j in range(k):
        extra[j] = 0.0
        for t in range(len(conditions.joint)):
            if conditions.joint[t, j]:
                extra[j] += nu[m + t]
    worst = 0.0
    for i in range(m):
        gap = conditions.parent[i]
        for r in range(len(row_of)):
            label = row_of[r, i]
            for j in range(k):
                gradient[i, j] -= pull[label, j]
        for j in range(k):
            gap -= x[i, j]
            slope = gradient[i, j] - b[i, j] - (nu[i] + extra[j]) / scale[j]
            worst = max(worst, abs(x[i, j]) if shut[i, j] else abs(min(x[i, j], slope)))
        worst = max(worst, abs(gap))
    return worst


@compiled_part
def residual_of_rows(conditions: Conditions, point: Point) -> float:
    """Find the largest residual of a row of constraints or joint total."""
    low, high, pull = conditions.low, conditions.high, point.pull
    worst = 0.0
    for t in range(len(conditions.joint_total)):
        worst = max(worst, abs(joint_gap(conditions, t, conditions.joint_total[t], point.x)))
    rows = np.empty(low.shape)
    add_up(conditions.row_of, point.x, rows)
    for label in range(low.shape[0]):
        for j in range(low.shape[1]):
            y = rows[label, j]
            near = min(max(y - pull[label, j], low[label, j]), high[label, j])
            worst = max(worst, abs(y - near))
    return worst


@compiled_part
def renumber(labels: Indices) -> tuple[Indices, Ints]:
    """Number the labels that occur by first appearance, so that equal partitions get equal labels.

    Returns
    -------
    tuple
        The new labels, and the old one of each.
    """
    m = len(labels)
    most = -1
    for i in range(m):
        most = max(most, labels[i])
    new = np.empty(most + 1, np.int32)
    new[:] = -1
    old = np.empty(min(most + 1, m), np.int64)
    out = np.empty(m, np.int32)
    count = 0
    for i in range(m):
        label = labels[i]
        if new[label] < 0:
            new[label] = count
            old[count] = label
            count += 1
        out[i] = new[label]
    return out, old[:count]


@compiled_part
def refines(fine: Indices, size: int, coarse: Indices, image: Indices) -> bool:
    """Tell whether each of the fine labels lies within one coarse label, which is then written to ``image``."""
    for label in range(size):
        image[label] = -1
    for i in range(len(fine)):
        label = fine[i]
        if image[label] < 0:
            image[label] = coarse[i]
        elif image[label] != coarse[i]:
            return False
    return True
