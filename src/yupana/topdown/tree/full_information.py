"""Evidence from the whole tree: what all measurements of a geounit and of those below it say of it. Public."""

import mmap
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np

from yupana.arrays import Ints
from yupana.errors import OutputError
from yupana.files.regular import take_room
from yupana.files.temporary import temporary_folder
from yupana.geography.tree import Tree
from yupana.topdown.descent.divide import Terms
from yupana.topdown.descent.measurements import SiblingBatch, StoredMeasurements
from yupana.topdown.histogram import Cells, runs_within
from yupana.topdown.queries import Query
from yupana.topdown.tree.basis import Basis
from yupana.topdown.tree.least_squares import Quadratic, TreeEstimate, combined, quadratic, summed
from yupana.topdown.tree.margins import MarginMeasurements


class EstimatesOnDisk:
    """Estimates of units in a scratch file of their owner's, which is gone when nobody holds it.

    Parameters
    ----------
    units : int
        So many will be added; their room on the disk is taken at once.
    cells, subsets : int
        Columns of coordinates and of precisions.

    Raises
    ------
    OutputError
        If the disk of the temporary folder is full.
    """

    def __init__(self, units: int, cells: int, subsets: int) -> None:
        try:
            with tempfile.TemporaryFile(dir=temporary_folder()) as file:
                take_room(file.fileno(), 0, 8 * units * (cells + subsets))
                self._map = mmap.mmap(file.fileno(), 8 * units * (cells + subsets))
        except OSError as error:
            text = f"{temporary_folder()} cannot hold the estimates of a geolevel: {error.strerror}; set TMPDIR"
            raise OutputError(text) from None
        coordinates, precision = np.split(np.frombuffer(self._map), [units * cells])
        self._held = TreeEstimate(coordinates.reshape(units, cells), precision.reshape(units, subsets))
        self._added = 0

    def add(self, estimate: TreeEstimate) -> None:
        """Add the estimates of the units that follow."""
        first, self._added = self._added, self._added + len(estimate.precision)
        self._held.coordinates[first : self._added] = estimate.coordinates
        self._held.precision[first : self._added] = estimate.precision
        self._map.madvise(mmap.MADV_DONTNEED)  # what is on the disk is not in the memory of this process

    def part(self, first: int, last: int) -> TreeEstimate:
        """Estimates of the units from ``first`` up to ``last``; several may read at a time."""
        found = TreeEstimate(self._held.coordinates[first:last].copy(), self._held.precision[first:last].copy())
        self._map.madvise(mmap.MADV_DONTNEED)
        return found


_VALUES_AT_ONCE: Final = 1 << 22


@dataclass(frozen=True, slots=True, eq=False)
class FullInformation:
    """The up-pass estimates of every geolevel; those of the last are made when they are asked for."""

    basis: Basis
    tree: Tree
    stored: StoredMeasurements
    detailed: MarginMeasurements  # what is stored, but for queries with recodes, and the totals that are known exactly
    upward: tuple[EstimatesOnDisk, ...]  # of each geolevel but the last; while it is made, of those below some

    def up(self, level: int, first: int, last: int) -> TreeEstimate:
        """What the measurements of the units from ``first`` up to ``last`` and of all below them say of them."""
        above_the_last = level - len(self.tree.names) + 1
        if above_the_last < 0:
            return self.upward[above_the_last].part(first, last)
        return self.detailed.own(level, first, last)

    def climb(self, level: int) -> EstimatesOnDisk:
        """The estimates of a geolevel, from those of its children; those of blocks are made and dropped in pieces."""
        basis, units, parents = self.basis, self.tree.units(level), self.tree.parents[level + 1]
        starts = np.searchsorted(parents, np.arange(units + 1))
        found = EstimatesOnDisk(units, basis.cells, len(basis.subsets))
        for first, last in runs_within(starts[1:], _VALUES_AT_ONCE // basis.cells):
            begin, end = int(starts[first]), int(starts[last])
            children = self.up(level + 1, begin, end)
            of_children = summed(children, parents[begin:end] - np.int32(first), last - first)
            found.add(combined(basis, self.detailed.own(level, first, last), of_children))
        return found

    def gather(self, level: int, families: SiblingBatch) -> "TreeFamilies":
        """Up-pass estimates of the children of families."""
        spent = self.stored.levels[level]
        target = self.up(level, families.first, families.last)
        held = [[q for q in map(spent.queries.__getitem__, of) if q.keeps_or_sums] for of in spent.passes[:-1]]
        fitted = [_fit(quadratic(self.basis, target, queries), queries) for queries in held if queries]
        return TreeFamilies(families, (*fitted, _fit(quadratic(self.basis, target), ())))


@dataclass(frozen=True, slots=True, eq=False)
class _Fit:
    """What an estimation pass fits, of the children of all families."""

    target: Quadratic
    # shape (cells,): which answer each cell counts in, of the queries of the target, and of those that later passes
    # hold
    labels: tuple[Cells, ...]
    held: tuple[Cells, ...]


def _fit(target: Quadratic, held: Sequence[Query]) -> _Fit:
    return _Fit(target, tuple(q.answers() for q in target.queries), tuple(q.answers() for q in held))


@dataclass(frozen=True, slots=True, eq=False)
class TreeFamilies:
    """Up-pass estimates of the children of some families, as targets with their precision."""

    families: SiblingBatch
    fitted: tuple[_Fit, ...]  # of each estimation pass; the last fits everything there is

    def passes(self, parent: int) -> Sequence[Callable[[], Terms]]:
        """What each estimation pass of a parent fits."""
        return [partial(self._terms, parent, fit) for fit in self.fitted]

    def _terms(self, parent: int, fit: _Fit) -> Terms:
        first, last = (self.families.children[parent : parent + 2] - self.families.first).tolist()
        live = self.families.live[slice(*self.families.starts[parent : parent + 2])]
        mine = fit.target.part(first, last)
        labels = tuple(label[live] for label in fit.labels)
        return Terms(labels, mine.answers, mine.weights, tuple(label[live] for label in fit.held))


def full_information(
    basis: Basis, tree: Tree, stored: StoredMeasurements, totals: Mapping[int, Ints]
) -> FullInformation:
    """Pass upward through the tree, from the blocks to the root.

    Parameters
    ----------
    stored : StoredMeasurements
        All drawn.
    totals : mapping of int to ndarray of int64, shape (units,)
        Totals that are known exactly, by geolevel.
    """
    detailed = MarginMeasurements(tree, stored, totals, basis.shape, (True,) * len(basis.shape))
    found = FullInformation(basis, tree, stored, detailed, ())
    for level in range(len(tree.names) - 2, -1, -1):
        found = replace(found, upward=(found.climb(level), *found.upward))
    return found
