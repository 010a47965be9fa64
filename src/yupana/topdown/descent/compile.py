"""Compile the loops of TopDown ahead of a run, and say so, or load them from where they were kept."""

import subprocess
import sys
from collections.abc import Callable
from typing import Final, Self

import numpy as np

from yupana.compiled import is_kept, on_compiling
from yupana.files.arrow_stream import TextColumn
from yupana.release.lines import texts
from yupana.topdown.descent.divide import Siblings, Terms
from yupana.topdown.descent.measurements import SiblingBatch, ask, exact_answers
from yupana.topdown.histogram import Histogram
from yupana.topdown.node.active_set import ActiveSet, solve_active_set
from yupana.topdown.node.arranged import arrange_node, shut_and_binding
from yupana.topdown.node.kernels import Conditions, Point, Squares
from yupana.topdown.node.problem import Node
from yupana.topdown.node.solve import advance, begin, solve
from yupana.topdown.posterior.kernels import wander
from yupana.topdown.posterior.learning import draw
from yupana.topdown.posterior.siblings import Places, Prior, classes, flat, pose
from yupana.topdown.queries import Attribute, Schema
from yupana.topdown.rounding.rounding import Rounding, round_counts
from yupana.topdown.text_rows import (
    NumberForm,
    lay_records,
    lay_rows,
    match_records,
    match_rows,
    parse_counts,
    variables,
)
from yupana.topdown.tree.basis import reflect

ONCE: Final = "compiling, once on this machine"
EACH_TIME: Final = "compiling, as in every run: no folder keeps it (NUMBA_CACHE_DIR names one)"


def compile_kernels(announce: Callable[[str], None]) -> None:
    """Divide a parent of three persons between two children, so that every loop is compiled.

    The two loops that take longest are compiled by processes of their own, which keep them where this one finds them.

    Parameters
    ----------
    announce : callable
        Called with what is about to be done, where something must be compiled.
    """
    cells = np.arange(2, dtype=np.int32)
    measured = np.array([[0.6, 0.2], [1.6, 0.6]])
    node = Node(np.array([2.0, 1.0]), (cells,), (measured,), np.ones((2, 1)))
    with _Beside() as beside, on_compiling(lambda: _begin(beside, announce)):
        ask(SiblingBatch(np.array([0, 2]), np.array([0, 2]), cells), cells, 2)
        none = np.zeros(1, dtype=np.int64)
        exact_answers(none, cells[:0], none[:0], none, cells[:0], none, cells[:0], 0)
        reflect(np.zeros((1, 2)), np.array([2]))
        compile_rows()
        arranged = arrange_node(node, *shut_and_binding(node))
        advance(arranged, begin(arranged), 1, 1.0)
        beside.wait_for(compile_active_set)
        solve(node)
        beside.wait_for(compile_rounding)
        compile_rounding()


def compile_rows() -> None:
    """Write one row of each kind and read it again."""
    schema = Schema((Attribute("of", ("all",)),))
    one, first = np.ones(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
    block, cell = TextColumn(texts("7"), first), TextColumn(texts(["all"]), first)
    numbers = variables(Histogram(np.array([0, 1]), np.zeros(1, dtype=np.int32), one), first.reshape(1, 1), 1)
    rows, records = lay_rows(block, cell, numbers).tobytes(), lay_records(block, cell, one, 1).tobytes()
    match_rows(np.frombuffer(rows, dtype=np.uint8), block, cell, numbers, NumberForm())
    match_records(np.frombuffer(records, dtype=np.uint8), block, cell, one, 1)
    parse_counts(np.frombuffer(rows, dtype=np.uint8), 1, 1, schema)


def compile_active_set() -> None:
    """Solve two cells of two children, of the types that `arrange_node` gives."""
    no_rows = np.zeros((0, 2))
    no_labels = np.zeros((0, 2), dtype=np.int32)
    none = np.zeros((2, 2), dtype=np.bool_)
    squares = Squares(np.ones((2, 2)), np.ones(2), np.array([0, 2]), np.ones(1), no_labels, np.zeros((1, 0, 0)))
    conditions = Conditions(np.ones(2), no_labels, no_rows, no_rows, none[:0], np.zeros(0), none)
    bound = np.zeros((0, 2), dtype=np.int8)
    point = Point(np.ones((2, 2)), np.zeros(2), no_rows.copy(), np.empty((2, 2)))
    active = ActiveSet(~none, bound)
    solve_active_set(tuple(squares), tuple(conditions), tuple(active), tuple(point), 1, 1000)


def compile_rounding() -> None:
    """Round a parent of three persons."""
    estimate = np.array([[1.2, 0.3], [0.8, 0.7]])
    round_counts(estimate, Rounding(np.array([2, 1]), ((np.arange(2, dtype=np.int32), None),)))


def compile_chain(announce: Callable[[str], None]) -> None:
    """Draw two people of two children once, so that the loops of the posterior are compiled.

    Parameters
    ----------
    announce : callable
        Called with what is about to be done, where something must be compiled.
    """
    labels = np.zeros(1, dtype=np.int32)
    terms = Terms((labels,), (np.ones((2, 1)),), np.ones((2, 1)), ())
    family = Siblings(np.array([2]), 2, ((None,),), None, None, None, None, ())
    posed = pose(family, terms, (0,), labels, Places(None, None))
    with on_compiling(lambda: announce(ONCE if is_kept(wander) else EACH_TIME)):
        draw(posed, Prior(flat(classes(1)), 1.0, 1.0), np.array([[1], [1]]), (0, 1), (0,), learning=False)


class _Beside:
    """Processes that compile beside this one."""

    def __init__(self) -> None:
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        return self

    def start(self, function: Callable[[], None]) -> None:
        """Call a function of this file in a process of its own. Should that fail, its caller compiles by itself."""
        name = function.__name__
        # -P keeps files of the folder that a user happens to be in from being imported.
        command = [sys.executable, "-P", "-c", f"from {__name__} import {name}; {name}()"]
        quiet = subprocess.DEVNULL
        try:
            self._running[name] = subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet)  # noqa: S603 (our own)
        except OSError:
            return

    def wait_for(self, function: Callable[[], None]) -> None:
        """Wait until the process that calls a function has ended, if there is one."""
        if process := self._running.get(function.__name__):
            process.wait()

    def __exit__(self, *fault: object) -> None:
        for process in self._running.values():
            process.kill()
            process.wait()


def _begin(beside: _Beside, announce: Callable[[str], None]) -> None:
    announce(ONCE if is_kept(solve_active_set) else EACH_TIME)
    if is_kept(solve_active_set):
        beside.start(compile_active_set)
        beside.start(compile_rounding)
