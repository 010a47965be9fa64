"""Bring the queries and constraints of a node to their finest margins (compiled)."""

import numpy as np

from yupana.arrays import Floats, Indices
from yupana.compiled import compiled, compiled_part
from yupana.topdown.node.kernels import Positions

SAME = 1e-12
"""Relative difference below which two weights count as equal."""


@compiled_part
def renumber(labels: Indices, size: int) -> tuple[Indices, int, Positions]:
    """Number the labels that occur by first appearance, so that equal partitions get equal labels.

    Returns
    -------
    tuple
        The new labels, how many there are, and the old label of each.
    """
    m = len(labels)
    new = np.empty(size, np.int32)
    new[:] = -1
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


@compiled_part
def refines(fine: Indices, fine_size: int, coarse: Indices, image: Indices) -> bool:
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


@compiled_part
def profiles(  # noqa: C901, PLR0912  (loops over plain arrays)
    weights: Floats, detailed: Floats
) -> tuple[Positions, Floats, Positions]:
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
def rank(counts: Positions, n: int) -> Positions:
    """Put the first n partitions in order, those of most answers first; among equals the earlier one."""
    order = np.empty(n, np.int64)
    for c in range(n):
        at = c
        while at > 0 and counts[order[at - 1]] < counts[c]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = c
    return order


@compiled
def arrange(  # noqa: C901, PLR0912, PLR0915  (loops over plain arrays)
    labels: Indices, sizes: Positions, weights: Floats, rows: Indices, row_sizes: Positions
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
    sizes : ndarray, shape (queries,)
    weights : ndarray, shape (k, queries)
    rows : ndarray, shape (constraints, m)
        Indices of the queries that constraints bound.
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
            for i in range(m):
                parts[n_classes, i] = new[i]
            counts[n_classes] = count
            classes[q] = n_classes
            n_classes += 1
        used += 1
    by_class = np.empty((k, max(n_classes, 1)))
    by_class[:] = 0.0
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
    detailed = np.empty(k)
    for c in range(k):
        detailed[c] = by_class[c, full] if full >= 0 else 0.0
    order, scale, starts = profiles(by_class, detailed)
    n_profiles = len(starts) - 1
    # The finest margins: from fine to coarse, each either lies within one already chosen or is chosen.
    image = np.empty(m, np.int32)
    chosen = np.empty(n_classes, np.int64)
    owner = np.empty(n_classes, np.int64)
    owner[:] = -1
    n_chosen = 0
    size = 0
    for c in rank(counts, n_classes):
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
    blocks = np.empty((n_chosen, m), np.int32)
    offset = np.empty(n_chosen + 1, np.int64)
    offset[0] = 0
    for b in range(n_chosen):
        offset[b + 1] = m if whole else offset[b] + counts[chosen[b]]
        for i in range(m):
            blocks[b, i] = i if whole else offset[b] + parts[chosen[b], i]
    single = np.empty(n_profiles)
    single[:] = 0.0
    form = np.empty((n_profiles, size, size))
    form[:] = 0.0
    pull = np.empty((size, size))
    pull[:] = 0.0
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
    overlap = np.empty((size, size))
    overlap[:] = 0.0
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
