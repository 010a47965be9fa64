"""Compile the loops of TopDown ahead of a run, and say so, or load them from where they were kept."""

from collections.abc import Callable
from typing import Final

import numpy as np

from yupana.compiled import is_kept, on_compiling
from yupana.topdown.descent.divide import Siblings, Terms
from yupana.topdown.descent.measurements import SiblingBatch, ask, exact_answers
from yupana.topdown.node.active_set import solve_active_set
from yupana.topdown.node.arranged import arrange_node, shut_and_binding
from yupana.topdown.node.problem import Node
from yupana.topdown.node.solve import advance, begin, solve
from yupana.topdown.posterior.kernels import wander
from yupana.topdown.posterior.learning import draw
from yupana.topdown.posterior.siblings import Prior, PublicLists, classes, flat, pose
from yupana.topdown.rounding.rounding import Rounding, round_counts

ONCE: Final = "compiling, once on this machine"
EACH_TIME: Final = "compiling, as in every run: no folder keeps it (NUMBA_CACHE_DIR names one)"


def compile_kernels(announce: Callable[[str], None]) -> None:
    """Divide a parent of three persons between two children, so that the loops of every run are compiled.

    All others are compiled when they are first called. One process compiles: what loops share is compiled once.

    Parameters
    ----------
    announce : callable
        Called with what is about to be done, where something must be compiled.
    """
    cells = np.arange(2, dtype=np.int32)
    measured = np.array([[0.6, 0.2], [1.6, 0.6]])
    node = Node(np.array([2.0, 1.0]), (cells,), (measured,), np.ones((2, 1)))
    with on_compiling(lambda: announce(ONCE if is_kept(solve_active_set) else EACH_TIME)):
        ask(SiblingBatch(np.array([0, 2]), np.array([0, 2]), cells), cells, 2)
        none = np.zeros(1, dtype=np.int64)
        exact_answers(none, cells[:0], none[:0], none, cells[:0], none, cells[:0], 0)
        arranged = arrange_node(node, *shut_and_binding(node))
        advance(arranged, begin(arranged), 1, 1.0)
        solve(node)
        round_counts(np.array([[1.2, 0.3], [0.8, 0.7]]), Rounding(np.array([2, 1]), ((cells, None),)))


def compile_chain(announce: Callable[[str], None]) -> None:
    """Draw two people of two children once, so that the loops of the posterior are compiled.

    Parameters
    ----------
    announce : callable
        Called with what is about to be done, where something must be compiled.
    """
    labels = np.zeros(1, dtype=np.int32)
    terms = Terms((labels,), (np.ones((2, 1)),), np.ones((2, 1)), ())
    family = Siblings(np.array([2]), 2, ((None,),), (), None, ())
    posed = pose(family, terms, (0,), labels, PublicLists(None, None))
    with on_compiling(lambda: announce(ONCE if is_kept(wander) else EACH_TIME)):
        draw(posed, Prior(flat(classes(1)), 1.0, 1.0), np.array([[1], [1]]), (0, 1), (0,), learning=False)
