"""Compile the loops of TopDown ahead of a run, and say so, or load them from where they were kept."""

from collections.abc import Callable
from typing import Final

import numpy as np

from yupana.compiled import is_kept, on_compiling
from yupana.topdown.families import SiblingBatch, ask
from yupana.topdown.node.problem import Node
from yupana.topdown.node.settle import settle
from yupana.topdown.node.solve import solve
from yupana.topdown.rounding.rounding import Rounding, round_counts

ONCE: Final = "compiling, once on this machine"
EACH_TIME: Final = "compiling, as in every run: no folder keeps it (NUMBA_CACHE_DIR names one)"


def compile_kernels(announce: Callable[[str], None]) -> None:
    """Divide a parent of three persons between two children, so that every loop is compiled.

    Parameters
    ----------
    announce : callable
        Called with what is about to be done, where something must be compiled.
    """
    with on_compiling(lambda: announce(ONCE if is_kept(settle) else EACH_TIME)):
        cells = np.arange(2, dtype=np.int32)
        ask(SiblingBatch(np.array([0, 2]), np.array([0, 2]), cells), cells, 2)
        parent = np.array([2, 1])
        node = Node(parent.astype(np.float64), (cells,), (np.array([[0.6, 0.2], [1.6, 0.6]]),), np.ones((2, 1)))
        round_counts(solve(node).counts, Rounding(parent, ((cells, None),)))
