"""Totals of several units together, such as the two sides of a state, as a geolevel of their own. Public.

Units of one parent whose totals add up to a known one become the children of a unit between, which has that total and
no measurement; all other units get one of their own. Least squares on that tree is least squares on the one that was
measured, with these totals used.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Floats, Indices, Ints
from yupana.geography.tree import Tree, nest
from yupana.topdown.constraints import UNKNOWN
from yupana.topdown.invariants import Known
from yupana.topdown.queries import Query
from yupana.topdown.tree.margins import MeasuredLevels


@dataclass(frozen=True, slots=True, eq=False)
class WithSets:
    """Measurements in the order of a tree with geolevels between, of which nothing was measured.

    Attributes
    ----------
    measured : MeasuredLevels
    units : tuple of (int, ndarray of int64, shape (units,)), or None
        By geolevel of the tree, that of the measurements and the place of each unit there; None for a geolevel between.
    """

    measured: MeasuredLevels
    units: tuple[tuple[int, Ints] | None, ...]

    def queries(self, level: int) -> tuple[Query, ...]:
        """What a level was measured with."""
        of = self.units[level]
        return () if of is None else self.measured.queries(of[0])

    def precisions(self, level: int, first: int, last: int) -> Floats:
        """1 / variance of the units from ``first`` up to ``last``, of shape (units, queries); 0 where not measured."""
        of = self.units[level]
        if of is None:
            return np.zeros((last - first, 0))
        runs = [self.measured.precisions(of[0], begin, end) for begin, end in _runs(of[1][first:last])]
        return np.concatenate(runs) if runs else self.measured.precisions(of[0], 0, 0)

    def answers(self, level: int, first: int, last: int) -> list[NDArray[np.integer]]:
        """Of each query the answers of these units, of shape (units, size)."""
        of = self.units[level]
        if of is None:
            return []
        runs = [self.measured.answers(of[0], begin, end) for begin, end in _runs(of[1][first:last])]
        return [np.concatenate(of_query) for of_query in zip(*runs, strict=True)]


def _runs(units: Ints) -> list[tuple[int, int]]:
    """Runs of units that follow one another: first, and one past the last. Subtrees stay whole, so there are few."""
    starts = np.flatnonzero(np.diff(units, prepend=-2) != 1)
    return [(int(units[a]), int(units[b - 1]) + 1) for a, b in zip(starts, [*starts[1:], len(units)], strict=True)]


@dataclass(frozen=True, slots=True, eq=False)
class JointTree:
    """A tree in which totals that are known jointly are those of single units.

    Attributes
    ----------
    tree : Tree
    measured : MeasuredLevels
    totals : dict of int to ndarray of int64, shape (units,)
        By geolevel, `UNKNOWN` where there is none.
    blocks : ndarray of int64, shape (blocks,), or None
        The place of each of its blocks in the tree that was measured; None where they are in the same order.
    """

    tree: Tree
    measured: MeasuredLevels
    totals: dict[int, Ints]
    blocks: Ints | None


def with_joint_totals(tree: Tree, measured: MeasuredLevels, known: Mapping[int, Known]) -> JointTree:
    """Put a unit above each set of units whose total is known.

    Parameters
    ----------
    tree : Tree
    measured : MeasuredLevels
    known : mapping of int to Known
    """
    if not any(one.joint for one in known.values()):
        return JointTree(tree, measured, {level: one.totals for level, one in known.items()}, None)
    names: list[str] = []
    keys: list[Indices] = []
    origin: list[int | None] = []
    totals: list[Ints | None] = []
    for level, name in enumerate(tree.names):
        of_block, of_level = tree.ancestors(level), known.get(level)
        if of_level is not None and of_level.joint:
            # A set is named by its first unit.
            first = np.arange(tree.units(level), dtype=np.int32)
            total = np.full(len(first), UNKNOWN, dtype=np.int64)
            for one in of_level.joint:
                first[list(one.units)] = min(one.units)
                total[min(one.units)] = one.total
            names, keys = [*names, f"sets of {name}"], [*keys, first[of_block]]
            origin, totals = [*origin, None], [*totals, total]
        names, keys = [*names, name], [*keys, of_block]
        origin, totals = [*origin, level], [*totals, None if of_level is None else of_level.totals]
    order = np.lexsort(keys[::-1])
    made, firsts = nest(tuple(names), [key[order].astype(np.int64) for key in keys])
    places = [key[order][first].astype(np.int64) for key, first in zip(keys, firsts, strict=True)]
    units = tuple(None if of is None else (of, place) for of, place in zip(origin, places, strict=True))
    found = {
        level: of_level[place]
        for level, (of_level, place) in enumerate(zip(totals, places, strict=True))
        if of_level is not None
    }
    return JointTree(made, WithSets(measured, units), found, order)
