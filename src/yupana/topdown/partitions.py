"""Partitions of cells by the answers they count in, for the solver and the rounding (compiled)."""

import numpy as np

from yupana.arrays import Indices, Ints
from yupana.compiled import compiled_part


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
