"""Bring the queries and constraints of a node to their finest margins (compiled)."""

from typing import NamedTuple

import numpy as np

from yupana.arrays import Floats, Indices
from yupana.compiled import compiled, compiled_part
from yupana.topdown.node.kernels import Positions, clear, refines, renumber

SAME = 1e-12
"""Relative difference below which two weights count as equal."""


class Partitions(NamedTuple):
    """The different ways in which the queries and constraints of a node divide its cells, n of them."""

    labels: Indices  # shape (n, m): where each cell counts, numbered by first appearance
    sizes: Positions  # shape (n,): how many labels each has
    # shape (queries + constraints,): the partition of each query and then of each constraint; -1 for a query that is
    # not measured
    of: Positions


class _ConstraintRows(NamedTuple):
    """The rows of all constraints, numbered through."""

    of: Indices  # shape (constraints, m): the row that each cell counts in
    # shape (rows,): which answer of which constraint a row is
    label: Positions
    constraint: Positions
    strength: Floats  # shape (rows,): one by the mean number of cells of the rows of the constraint


class Margins(NamedTuple):
    """The finest margins: each other one lies within one of them."""

    whole: bool  # whether the cells themselves are the one margin
    blocks: Indices  # shape (margins, m): the block that each cell counts in, blocks of all margins numbered through
    start: Positions  # shape (margins + 1,): the first block of each margin, and the end
    chosen: Positions  # shape (margins,): which partition each is, where they are not the cells
    owner: Positions  # shape (partitions,): the margin that each partition lies within


@compiled_part
def scales_of(weights: Floats, detailed: Floats) -> Floats:
    """Find about the smallest curvature of each child; see `profiles`."""
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
    for c in range(k):
        if not scale[c] > 0.0:
            scale[c] = 0.1 * least
    return scale


@compiled_part
def are_proportional(weights: Floats, scale: Floats, one: int, other: int) -> bool:
    """Tell whether two children have the same weights but for their scales."""
    for q in range(weights.shape[1]):
        a = weights[one, q] / scale[one]
        b = weights[other, q] / scale[other]
        if abs(a - b) > SAME * (abs(a) + abs(b)):
            return False
    return True


@compiled_part
def profiles(weights: Floats, detailed: Floats) -> tuple[Positions, Floats, Positions]:
    """Sort children into profiles of proportional weights.

    Parameters
    ----------
    weights : ndarray, shape (k, partitions)
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
    k = len(weights)
    scale = scales_of(weights, detailed)
    first = np.empty(k, np.int64)
    member = np.empty(k, np.int64)
    count = 0
    for c in range(k):
        p = 0
        while p < count and not are_proportional(weights, scale, c, first[p]):
            p += 1
        if p == count:
            first[p] = c
            count += 1
        member[c] = p
    starts = np.empty(count + 1, np.int64)
    order = np.empty(k, np.int64)
    ordered = np.empty(k)
    at = 0
    for p in range(count):
        starts[p] = at
        for c in range(k):
            if member[c] == p:
                order[at] = c
                ordered[at] = scale[c]
                at += 1
    starts[count] = k
    return order, ordered, starts


@compiled_part
def is_measured(weights: Floats, q: int) -> bool:
    """Tell whether a query is measured in some child."""
    c = 0
    while c < len(weights) and weights[c, q] == 0.0:
        c += 1
    return c < len(weights)


@compiled_part
def are_equal(one: Indices, other: Indices) -> bool:
    """Tell whether two partitions are the same."""
    i = 0
    while i < len(one) and one[i] == other[i]:
        i += 1
    return i == len(one)


@compiled_part
def add_rows(rows: _ConstraintRows, at: np.int64, r: int, new: Indices, old: Positions) -> None:
    """Write the rows of a constraint, from ``at`` on."""
    m = len(new)
    for label in range(len(old)):
        rows.label[at + label] = old[label]
        rows.constraint[at + label] = r
        rows.strength[at + label] = len(old) / m
    for i in range(m):
        rows.of[r, i] = at + new[i]


@compiled_part
def partitions_of(labels: Indices, weights: Floats, bounded: Indices, total: int) -> tuple[Partitions, _ConstraintRows]:
    """Find the different partitions of queries and constraints, and the rows of the latter, ``total`` at most."""
    n_queries, m = labels.shape
    n = n_queries + len(bounded)
    parts = np.empty((n, m), np.int32)
    sizes = np.empty(n, np.int64)
    of = np.empty(n, np.int64)
    rows = _ConstraintRows(
        np.empty(bounded.shape, np.int32), np.empty(total, np.int64), np.empty(total, np.int64), np.empty(total)
    )
    found = 0
    at = np.int64(0)  # a literal would have `add_rows` compiled twice
    for q in range(n):
        of[q] = -1
        if q < n_queries:
            if not is_measured(weights, q):
                continue
            new, old = renumber(labels[q])
        else:
            new, old = renumber(bounded[q - n_queries])
            add_rows(rows, at, q - n_queries, new, old)
            at += len(old)
        c = 0
        while c < found and not (sizes[c] == len(old) and are_equal(parts[c], new)):
            c += 1
        if c == found:
            for i in range(m):
                parts[c, i] = new[i]
            sizes[c] = len(old)
            found += 1
        of[q] = c
    return (
        Partitions(parts[:found], sizes[:found], of),
        _ConstraintRows(rows.of, rows.label[:at], rows.constraint[:at], rows.strength[:at]),
    )


@compiled_part
def weights_of(partitions: Partitions, weights: Floats) -> Floats:
    """Add up the weights of queries of the same partition, child by child."""
    k, n_queries = weights.shape
    added = np.empty((k, max(len(partitions.sizes), 1)))
    clear(added)
    for q in range(n_queries):
        c = partitions.of[q]
        if c >= 0:
            for child in range(k):
                added[child, c] += weights[child, q]
    return added


@compiled_part
def rank(sizes: Positions) -> Positions:
    """Put partitions in order, those of most answers first; among equals the earlier one."""
    order = np.empty(len(sizes), np.int64)
    for c in range(len(sizes)):
        at = c
        while at > 0 and sizes[order[at - 1]] < sizes[c]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = c
    return order


@compiled_part
def cells_of(sizes: Positions, m: int) -> int:
    """Find the partition into single cells; -1 where there is none."""
    found = -1
    for c in range(len(sizes)):
        if sizes[c] == m:
            found = c
    return found


@compiled_part
def margins_of(partitions: Partitions, full: int, n_queries: int) -> Margins:
    """Choose the finest margins: from fine to coarse, each either lies within one already chosen or is chosen.

    ``full`` is the partition into single cells, or -1.
    """
    labels, sizes, of = partitions
    whole = False
    for r in range(n_queries, len(of)):
        whole = whole or of[r] == full
    m = labels.shape[1]
    image = np.empty(m, np.int32)
    chosen = np.empty(len(sizes), np.int64)
    owner = np.empty(len(sizes), np.int64)
    owner[:] = -1
    count = 0
    size = 0
    for c in rank(sizes):
        if c == full:
            continue
        b = 0
        while b < count and not refines(labels[chosen[b]], sizes[chosen[b]], labels[c], image):
            b += 1
        if b == count:
            chosen[b] = c
            count += 1
            size += sizes[c]
        owner[c] = b
    # A product with the whole inverse is quicker than sums to margins and back while there are few cells.
    whole = whole or (count > 0 and m <= size + 24 * count)
    if whole:
        count = 1
    blocks = np.empty((count, m), np.int32)
    start = np.empty(count + 1, np.int64)
    start[0] = 0
    for b in range(count):
        start[b + 1] = m if whole else start[b] + sizes[chosen[b]]
        for i in range(m):
            blocks[b, i] = i if whole else start[b] + labels[chosen[b], i]
    return Margins(whole, blocks, start, chosen, owner)


@compiled_part
def add_pairs(image: Indices, first: int, end: int, weight: float, out: Floats) -> None:
    """Add a weight to all pairs of blocks, from ``first`` up to ``end``, that have the same label."""
    for i in range(first, end):
        for j in range(first, end):
            if image[i - first] == image[j - first]:
                out[i, j] += weight


@compiled_part
def place(partitions: Partitions, margins: Margins, c: int, image: Indices) -> tuple[int, int]:
    """Write the label of each block of the margin that a partition lies within; the first such block, and the end."""
    labels, sizes, _ = partitions
    if margins.whole:
        for i in range(len(image)):
            image[i] = labels[c, i]
        return 0, len(image)
    b = margins.owner[c]
    finest = margins.chosen[b]
    refines(labels[finest], sizes[finest], labels[c], image)
    return margins.start[b], margins.start[b + 1]


@compiled_part
def forms_of(partitions: Partitions, margins: Margins, full: int, weights: Floats) -> tuple[Floats, Floats]:
    """Write d and K of each profile, whose weights by partition are those of a child by its scale."""
    n_profiles = len(weights)
    size = margins.start[-1]
    single = np.empty(n_profiles)
    single[:] = 0.0
    form = np.empty((n_profiles, size, size))
    form[:] = 0.0
    image = np.empty(partitions.labels.shape[1], np.int32)
    for c in range(len(partitions.sizes)):
        if c == full and not margins.whole:
            for p in range(n_profiles):
                single[p] = weights[p, c]
            continue
        first, end = place(partitions, margins, c, image)
        for p in range(n_profiles):
            if weights[p, c] != 0.0:
                add_pairs(image, first, end, weights[p, c], form[p])
    return single, form


@compiled_part
def pull_of(partitions: Partitions, margins: Margins, n_queries: int) -> Floats:
    """Write the sum over constraints of G'G, each divided by the mean number of cells of its rows."""
    size = margins.start[-1]
    m = partitions.labels.shape[1]
    pull = np.empty((size, size))
    clear(pull)
    image = np.empty(m, np.int32)
    for c in range(len(partitions.sizes)):
        strong = 0.0
        for r in range(n_queries, len(partitions.of)):
            if partitions.of[r] == c:
                strong += partitions.sizes[c] / m
        if strong > 0.0:
            first, end = place(partitions, margins, c, image)
            add_pairs(image, first, end, strong, pull)
    return pull


@compiled_part
def overlap_of(blocks: Indices, size: int) -> Floats:
    """Write BB', the number of cells that two blocks share."""
    overlap = np.empty((size, size))
    clear(overlap)
    for i in range(blocks.shape[1]):
        for a in range(len(blocks)):
            for b in range(len(blocks)):
                overlap[blocks[a, i], blocks[b, i]] += 1.0
    return overlap


@compiled
def arrange(
    labels: Indices, weights: Floats, bounded: Indices, total: int
) -> tuple[
    Positions,
    Floats,
    Positions,
    bool,
    Floats,
    Indices,
    Floats,
    Floats,
    Floats,
    Indices,
    Positions,
    Positions,
    Floats,
]:
    """Bring the quadratic forms of a node to the form d I + B'KB.

    Parameters
    ----------
    labels : ndarray, shape (queries, m)
    weights : ndarray, shape (k, queries)
    bounded : ndarray, shape (constraints, m)
        Indices of the queries that constraints bound.
    total : int
        As many rows as the constraints can have at most.

    Returns
    -------
    order, scale, starts
        Of `profiles`.
    whole, blocks
        Of `Margins`. Where the cells themselves are the blocks, d = 0 and B = I.
    single : ndarray, shape (profiles,)
        d.
    form : ndarray, shape (profiles, R, R)
        K.
    pull : ndarray, shape (R, R)
        The sum over constraints of G'G, each divided by the mean number of cells of its rows, in terms of blocks.
    overlap : ndarray, shape (R, R)
        BB'.
    row_of, row_label, row_query, strength
        Of `_ConstraintRows`.
    """
    n_queries, m = labels.shape
    partitions, rows = partitions_of(labels, weights, bounded, total)
    full = cells_of(partitions.sizes, m)
    added = weights_of(partitions, weights)
    detailed = np.empty(len(added))
    for c in range(len(added)):
        detailed[c] = added[c, full] if full >= 0 else 0.0
    order, scale, starts = profiles(added, detailed)
    of_profile = np.empty((len(starts) - 1, added.shape[1]))
    for p in range(len(of_profile)):
        for c in range(added.shape[1]):
            of_profile[p, c] = added[order[starts[p]], c] / scale[starts[p]]
    margins = margins_of(partitions, full, n_queries)
    single, form = forms_of(partitions, margins, full, of_profile)
    return (
        order,
        scale,
        starts,
        margins.whole,
        single,
        margins.blocks,
        form,
        pull_of(partitions, margins, n_queries),
        overlap_of(margins.blocks, margins.start[-1]),
        rows.of,
        rows.label,
        rows.constraint,
        rows.strength,
    )


@compiled
def linear_term(
    labels: Indices, offsets: Positions, weights: Floats, answers: Floats, order: Positions, scale: Floats
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
    targets = np.empty((total, k))
    targets[:] = 0.0
    inverse = np.empty((total, k))
    inverse[:] = 0.0
    for j in range(k):
        c = order[j]
        for q in range(n_queries):
            weight = weights[c, q]
            if weight != 0.0:
                for a in range(offsets[q], offsets[q + 1]):
                    targets[a, j] = answers[c, a]
                    inverse[a, j] = weight
    b = np.empty((m, k))
    b[:] = 0.0
    for i in range(m):
        for q in range(n_queries):
            a = offsets[q] + labels[q, i]
            for j in range(k):
                b[i, j] += targets[a, j] * inverse[a, j]
        for j in range(k):
            b[i, j] /= scale[j]
    return b, targets, inverse
