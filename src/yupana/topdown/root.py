"""The counts of the root: it has no parent to sum to, only its measurements and constraints. Public."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from yupana.topdown.divide import Siblings, Terms, divide
from yupana.topdown.families import SiblingBatch
from yupana.topdown.histogram import count_entries
from yupana.topdown.kept_level import Piece

_SPARE: Final = 1000
"""Persons a cell may exceed what was measured by, before a bound is felt."""


def root_families(live: NDArray[np.bool_]) -> SiblingBatch:
    """The root as the only child of nobody; ``live``, of shape (cells,), are the cells that can hold someone."""
    cells = np.flatnonzero(live).astype(np.int32)
    return SiblingBatch(np.array([0, 1]), np.array([0, len(cells)]), cells)


def estimate_root(family: Siblings, cells: NDArray[np.int32], passes: Sequence[Callable[[], Terms]]) -> Piece:
    """Estimate and round the root.

    It is divided like any other parent's child: beside a sibling that nobody measured, which takes what is left of a
    parent too large to bind.

    Parameters
    ----------
    family : Siblings
        The root as an only child, its parent's counts ignored.
    cells : ndarray of int32, shape (m,)
        The live cells.
    passes : sequence of callable
        The terms of each estimation pass, for one child.
    """
    most = _most(family, passes)
    parent = np.full(len(cells), most, dtype=np.int64)
    free = np.full_like(family.upper, most * max(1, len(cells))) if family.upper is not None else None
    joint = () if family.totals is None else (((0,), int(family.totals[0])),)
    beside = replace(
        family,
        parent=parent,
        children=2,
        lower=None if family.lower is None else np.concatenate([family.lower, np.zeros_like(family.lower)]),
        upper=None if family.upper is None or free is None else np.concatenate([family.upper, free]),
        totals=None,
        joint=joint,
    )
    divided = divide(beside, [partial(_with_sibling, make) for make in passes])
    counts = count_entries(np.zeros(len(cells), dtype=np.int64), cells, divided.counts[0], 1)
    return Piece(counts, (), Counter(divided.solvers))


def _with_sibling(make: Callable[[], Terms]) -> Terms:
    terms = make()
    return Terms(
        terms.queries,
        tuple(np.concatenate([one, np.zeros_like(one)]) for one in terms.answers),
        np.concatenate([terms.weights, np.zeros_like(terms.weights)]),
        terms.held,
    )


def _most(family: Siblings, passes: Sequence[Callable[[], Terms]]) -> int:
    """More than any cell of the root will be given."""
    if family.totals is not None:
        return int(family.totals[0]) + 1
    sums = [float(np.clip(one, 0, None).sum()) for make in passes for one in make().answers]
    return int(2 * max(sums, default=0.0)) + _SPARE
