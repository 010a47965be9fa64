"""Least squares on the tree for one margin of the histogram: all measurements are summed to it first. Public.

Nothing is lost by that (docs/topdown-least-squares.md, section 7). The tree is worked in runs of units side by side,
each with all units below it, so that the coordinates of all blocks are never held at once.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Flags, Floats, Indices, Ints
from yupana.geography.tree import Tree, nest
from yupana.topdown.constraints import UNKNOWN, Known
from yupana.topdown.histogram import runs_within
from yupana.topdown.queries import TOTAL, Query, margin
from yupana.topdown.tree.basis import Basis, Kept
from yupana.topdown.tree.least_squares import TreeAnswers, TreeEstimate, combined, down, own, own_precision, summed

_VALUES_AT_ONCE: Final = 1 << 22


class MeasuredLevels(Protocol):
    """Noisy measurements of all units of a tree; variances may differ by unit and query."""

    def queries(self, level: int) -> tuple[Query, ...]:
        """What a level was measured with. Queries that group levels of an attribute are not used."""
        ...

    def precisions(self, level: int, first: int, last: int) -> Floats:
        """1 / variance of the units from ``first`` up to ``last``, of shape (units, queries); 0 where not measured."""
        ...

    def answers(self, level: int, first: int, last: int) -> list[NDArray[np.integer]]:
        """Of each query the answers of these units, of shape (units, size)."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class MarginMeasurements:
    """The measurements of a tree, summed to one margin."""

    tree: Tree
    measured: MeasuredLevels
    # shape (units,): totals that are known exactly, by level; `UNKNOWN` for units whose total is not
    totals: Mapping[int, Ints]
    shape: tuple[int, ...]  # levels of each attribute of the schema
    kept: Kept  # which attributes the margin keeps

    @property
    def basis(self) -> Basis:
        """That of the margin, in which an attribute that is summed over has one level."""
        return Basis(tuple(size if keep else 1 for size, keep in zip(self.shape, self.kept, strict=True)))

    def inside(self, kept: Kept) -> Kept:
        """Which attributes of the basis a margin of this one keeps."""
        return tuple(keep for keep, size in zip(kept, self.basis.shape, strict=True) if size > 1)

    def own(self, level: int, first: int, last: int) -> TreeEstimate:
        """Estimate units from their own measurements alone, some at a time."""
        at_once = max(1, _VALUES_AT_ONCE // prod(self.shape))
        begins = range(first, max(first + 1, last), at_once)
        parts = [self._own(level, begin, min(begin + at_once, last)) for begin in begins]
        if len(parts) == 1:
            return parts[0]
        return TreeEstimate(
            np.concatenate([part.coordinates for part in parts]), np.concatenate([part.precision for part in parts])
        )

    def _own(self, level: int, first: int, last: int) -> TreeEstimate:
        queries, answers = self.measured.queries(level), self.measured.answers(level, first, last)
        found = []
        for q, asked, precision in self._asked(level, first, last):
            told = self.totals[level][first:last, None] if q is None else self._sum(queries[q], answers[q])
            found.append(TreeAnswers(asked, told, precision))
        return own(self.basis, last - first, found)

    def precision(self, level: int) -> Floats:
        """Precision of these estimates of all units of a level, of shape (units, 2^attributes)."""
        units = self.tree.units(level)
        found = [(query, precision) for _, query, precision in self._asked(level, 0, units)]
        return own_precision(self.basis, units, found)

    def _asked(self, level: int, first: int, last: int) -> list[tuple[int | None, Query, Floats]]:
        """The queries used: number, None of the total that is known; as summed; and precision of the sums."""
        precisions = self.measured.precisions(level, first, last)
        found: list[tuple[int | None, Query, Floats]] = []
        for q, query in enumerate(self.measured.queries(level)):
            if query.keeps_or_sums:
                keeps = [keep and size > 1 for keep, size in zip(self.kept, query.shape, strict=True)]
                cells = prod(size for keep, size in zip(self.kept, query.shape, strict=True) if not keep)
                found.append((q, margin(query.name, self.basis.shape, keeps), precisions[:, q] / cells))
        if level in self.totals:
            known = self.totals[level][first:last] != UNKNOWN
            total = margin(TOTAL, self.basis.shape, [False] * len(self.shape))
            found.append((None, total, np.where(known, np.inf, 0.0)))
        return found

    def _sum(self, query: Query, answers: NDArray[np.integer]) -> NDArray[np.generic]:
        axes = tuple(i for i, keep in enumerate(self.kept, start=1) if not keep and query.shape[i - 1] > 1)
        if not axes:
            return answers
        of_cells = answers.reshape(len(answers), *query.shape)
        return np.asarray(of_cells.sum(axis=axes).reshape(len(answers), -1))

    def climb(self, level: int, first: int, last: int) -> list[TreeEstimate]:
        """What the measurements of units and of all below them say of them: the level, and all levels below it."""
        spans = [span.tolist() for span in self.tree.below(level, (first, last))]
        found: list[TreeEstimate] = []
        for at, (begin, end) in reversed(list(enumerate(spans, start=level))):
            here = self.own(at, begin, end)
            if found:
                below = slice(*spans[at + 1 - level])
                parents = self.tree.parents[at + 1][below] - np.int32(begin)
                here = combined(self.basis, here, summed(found[-1], parents, end - begin))
            found.append(here)
        return found[::-1]


@dataclass(frozen=True, slots=True, eq=False)
class MarginEstimate:
    """What all measurements of a tree say of one margin, at the level where runs begin."""

    measured: MarginMeasurements
    level: int
    runs: tuple[tuple[int, int], ...]  # first unit and one past the last of each run of this level
    known: TreeEstimate  # of the units of this level

    def of(self, kept: Kept) -> "MarginEstimate":
        """That of a margin of this one."""
        basis, inside = self.measured.basis, self.measured.inside(kept)
        known = TreeEstimate(
            basis.marginal(self.known.coordinates, inside),
            self.known.precision[:, basis.within(inside)] / basis.summed(inside),
        )
        measured = replace(self.measured, kept=kept)
        return MarginEstimate(measured, self.level, _runs(measured.tree, self.level, measured.basis.cells), known)

    def blocks(self, wanted: Flags | None = None) -> Iterator[tuple[int, Floats]]:
        """Estimates of the blocks, run by run: the first block and the coordinates of the margin, (blocks, cells).

        Parameters
        ----------
        wanted : ndarray of bool, shape (blocks,), optional
            Runs without a block that is wanted are left out.
        """
        tree, bottom = self.measured.tree, len(self.measured.tree.names) - 1
        for first, last in self.runs:
            begins, ends = np.array(tree.below(self.level, (first, last))).T.tolist()
            if wanted is not None and not wanted[begins[-1] : ends[-1]].any():
                continue
            known = self.known.part(first, last)
            for at, here in enumerate(self.measured.climb(self.level, first, last)[1:], start=self.level + 1):
                begin = begins[at - self.level]
                parents = tree.parents[at][begin : begin + len(here.precision)]
                known = down(self.measured.basis, here, parents - np.int32(begins[at - self.level - 1]), known)
            yield begins[bottom - self.level], known.coordinates


def estimate_margin(measured: MarginMeasurements) -> MarginEstimate:
    """Pass upward through the tree, and down again to the level where runs begin."""
    tree, basis = measured.tree, measured.basis
    level = _level_of_runs(tree, basis.cells)
    runs = _runs(tree, level, basis.cells)
    units = tree.units(level)
    coordinates, precision = np.empty((units, basis.cells)), np.empty((units, len(basis.subsets)))
    for first, last in runs:
        top = measured.climb(level, first, last)[0]
        coordinates[first:last], precision[first:last] = top.coordinates, top.precision
    upward = [TreeEstimate(coordinates, precision)]
    for at in range(level - 1, -1, -1):
        below = summed(upward[0], tree.parents[at + 1], tree.units(at))
        upward.insert(0, combined(basis, measured.own(at, 0, tree.units(at)), below))
    known = upward[0]
    for at in range(1, level + 1):
        known = down(basis, upward[at], tree.parents[at], known)
    return MarginEstimate(measured, level, runs, known)


def _level_of_runs(tree: Tree, cells: int) -> int:
    """The highest level of which each unit with all its blocks can be held at once, if there is one above them."""
    bottom = len(tree.names) - 1
    for level in range(bottom - 1):
        if int(np.bincount(tree.ancestors(level)).max()) * cells <= _VALUES_AT_ONCE:
            return level
    return max(0, bottom - 1)


def _runs(tree: Tree, level: int, cells: int) -> tuple[tuple[int, int], ...]:
    """Runs of units of a level that can be held at once, with all their blocks."""
    blocks = np.bincount(tree.ancestors(level), minlength=tree.units(level))
    return tuple(runs_within(np.cumsum(blocks), _VALUES_AT_ONCE // cells))


@dataclass(frozen=True, slots=True, eq=False)
class _WithSets:
    """Measurements in the order of a tree with geolevels between, of which nothing was measured."""

    measured: MeasuredLevels
    # by geolevel of the tree, that of the measurements and the place of each unit there; None
    # for a geolevel between
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
        runs = [self.measured.precisions(of[0], begin, end) for begin, end in _consecutive(of[1][first:last])]
        return np.concatenate(runs) if runs else self.measured.precisions(of[0], 0, 0)

    def answers(self, level: int, first: int, last: int) -> list[NDArray[np.integer]]:
        """Of each query the answers of these units, of shape (units, size)."""
        of = self.units[level]
        if of is None:
            return []
        runs = [self.measured.answers(of[0], begin, end) for begin, end in _consecutive(of[1][first:last])]
        return [np.concatenate(of_query) for of_query in zip(*runs, strict=True)]


def _consecutive(units: Ints) -> list[tuple[int, int]]:
    """Runs of units that follow one another: first, and one past the last. Subtrees stay whole, so there are few."""
    starts = np.flatnonzero(np.diff(units, prepend=-2) != 1)
    return [(int(units[a]), int(units[b - 1]) + 1) for a, b in zip(starts, [*starts[1:], len(units)], strict=True)]


@dataclass(frozen=True, slots=True, eq=False)
class _JointTree:
    """A tree in which totals that are known jointly are those of single units."""

    tree: Tree
    measured: MeasuredLevels
    totals: dict[int, Ints]  # shape (units,): by geolevel, `UNKNOWN` where there is none
    # shape (blocks,), or None: the place of each of its blocks in the tree that was measured; None where they are in
    # the same order
    blocks: Ints | None


def with_joint_totals(tree: Tree, measured: MeasuredLevels, known: Mapping[int, Known]) -> _JointTree:
    """Put a unit above each set of units whose total is known.

    Units of one parent whose totals add up to a known one become the children of a unit between, which has that total
    and no measurement; all other units get one of their own. Least squares on that tree is least squares on the one
    that was measured, with these totals used.
    """
    if not any(one.joint for one in known.values()):
        return _JointTree(tree, measured, {level: one.totals for level, one in known.items()}, None)
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
    return _JointTree(made, _WithSets(measured, units), found, order)
