"""Intervals from least squares on the tree: of every published count, and of measured queries by geolevel. Public."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Final

import numpy as np

from yupana.arrays import Flags, Floats, Ints
from yupana.geography.published import Areas
from yupana.geography.spine import Spine
from yupana.geography.tree import partition
from yupana.topdown.constraints import Known
from yupana.topdown.histogram import Histogram, runs_within
from yupana.topdown.nmf.writing import AnswerFile, write_answers
from yupana.topdown.queries import TOTAL, Query, Recode, Schema, kept_columns, margin, told_apart
from yupana.topdown.tree.basis import Kept
from yupana.topdown.tree.full_information import EstimatesOnDisk, FullInformation
from yupana.topdown.tree.least_squares import (
    TreeEstimate,
    TreeIntervals,
    down,
    intervals,
    precisions_of_sums,
    upward_precisions,
    variances_by,
    whole_intervals,
)
from yupana.topdown.tree.margins import (
    MarginEstimate,
    MarginMeasurements,
    MeasuredLevels,
    estimate_margin,
    with_joint_totals,
)

_VALUES_HELD: Final = 1 << 26
"""Numbers of the sums that are held for one margin: those of the kinds with few areas."""


@dataclass(frozen=True, slots=True, eq=False)
class _LeastSquaresIntervals:
    """Finds intervals of what is published, from all measurements of the tree."""

    detailed: MarginMeasurements  # the measurements, summed over nothing
    # shape (blocks,): by kind of areas, the area that each block of the tree lies in, -1 for none
    of_block: Mapping[str, Ints]
    areas: Mapping[str, int]  # how many areas each kind has
    upward: tuple[Floats, ...]  # shape (units, 2^attributes): `upward_precisions`
    confidence: float  # the chance of each interval to hold the true count, before noise is drawn
    _margins: dict[Kept, MarginEstimate] = field(default_factory=dict, init=False)
    _sums: dict[Kept, dict[str, Floats]] = field(default_factory=dict, init=False)
    _precisions: dict[str, Floats] = field(default_factory=dict, init=False)

    def of_cells(self, kind: Areas, counts: Histogram) -> TreeIntervals:
        """Of each entry of the published counts of the areas, in their order."""
        kept = self.detailed.kept
        basis = self._margin(kept).measured.basis
        value = np.zeros(len(counts.cells))
        for areas, coordinates in self._pieces(kind.name, kept, 0, self.areas[kind.name]):
            lengths = np.diff(counts.starts)[areas]
            row = np.repeat(np.arange(len(areas)), lengths)
            entry = np.arange(len(row)) + (counts.starts[areas] - (np.cumsum(lengths) - lengths))[row]
            value[entry] += basis.histograms(coordinates)[row, counts.cells[entry]]
        # All cells of an area have one variance, whichever they are.
        one = np.zeros((1, basis.cells))
        one[0, 0] = 1.0
        variance = variances_by(self._precision(kind.name), basis.loadings_of(one))[:, 0]
        return whole_intervals(value, np.repeat(variance, np.diff(counts.starts)), self.confidence)

    def of_table(self, kind: Areas, member: Ints, size: int, first: int, last: int) -> TreeIntervals:
        """Of the variables of a table, of the areas from ``first`` up to ``last``; shape (last - first, size)."""
        rows = np.zeros((size, self.detailed.basis.cells))
        for variable in member.T:
            some = np.flatnonzero(variable >= 0)
            rows[variable[some], some] = 1.0
        return self.sums_of_cells(kind.name, rows, first, last)

    def sums_of_cells(self, kind: str, rows: Floats, first: int, last: int) -> TreeIntervals:
        """Of weighted sums of cells, of shape (sums, cells), of the areas from ``first`` up to ``last``; as `of_table`.

        Intervals are of whole numbers at least 0, so of sums with weights 0 and 1.
        """
        kept, of_margin = told_apart(rows, self.detailed.shape)
        basis = self._margin(kept).measured.basis
        weights = basis.coordinates(of_margin, (True,) * len(basis.sizes)).reshape(len(rows), -1).T
        value = np.zeros((last - first, len(rows)))
        for areas, coordinates in self._pieces(kind, kept, first, last):
            value[areas - first] += coordinates @ weights
        variance = variances_by(self._precision(kind)[first:last], self.detailed.basis.loadings_of(rows))
        return whole_intervals(value, variance, self.confidence)

    def _margin(self, kept: Kept) -> MarginEstimate:
        if kept not in self._margins:
            finer = self._finer(kept, self._margins)
            self._margins[kept] = (
                estimate_margin(replace(self.detailed, kept=kept)) if finer is None else self._margins[finer].of(kept)
            )
        return self._margins[kept]

    def _finer(self, kept: Kept, margins: Collection[Kept]) -> Kept | None:
        """One of some margins that a margin can be summed from, with as few cells as possible."""
        found = [one for one in margins if all(has or not needs for has, needs in zip(one, kept, strict=True))]
        return min(found, key=lambda one: self._margins[one].measured.basis.cells, default=None)

    def _precision(self, kind: str) -> Floats:
        """Precision of the sums of all areas of a kind, of shape (areas, 2^attributes)."""
        if kind not in self._precisions:
            members = partition(self.of_block[kind].astype(np.int32), self.areas[kind])
            self._precisions[kind] = precisions_of_sums(self.detailed.tree, self.upward, self.upward[0], members)
        return self._precisions[kind]

    def _pieces(self, kind: str, kept: Kept, first: int, last: int) -> Iterator[tuple[Ints, Floats]]:
        """Coordinates that add up to those of the areas from ``first`` up to ``last``, of some of them at a time."""
        held = self._held(kept)
        if kind in held:
            yield np.arange(first, last), held[kind][first:last]
            return
        of_block = self.of_block[kind]
        wanted = (of_block >= first) & (of_block < last)
        for begin, coordinates in self._margin(kept).blocks(wanted):
            mine = slice(begin, begin + len(coordinates))
            yield _summed(np.where(wanted[mine], of_block[mine], -1), coordinates)

    def _held(self, kept: Kept) -> Mapping[str, Floats]:
        """Sums of the kinds with few areas."""
        if kept not in self._sums:
            finer = self._finer(kept, self._sums)
            if finer is None:
                self._sums[kept] = self._hold(self._margin(kept))
            else:
                of = self._margin(finer).measured
                self._sums[kept] = {
                    kind: of.basis.marginal(sums, of.inside(kept)) for kind, sums in self._sums[finer].items()
                }
        return self._sums[kept]

    def _hold(self, margin: MarginEstimate) -> dict[str, Floats]:
        """Sums of the kinds with few areas, all made in one pass over the blocks."""
        cells = margin.measured.basis.cells
        held = {kind: np.zeros((self.areas[kind], cells)) for kind in held_kinds(self.areas, cells)}
        for begin, coordinates in margin.blocks():
            for kind, sums in held.items():
                mine, part = _summed(self.of_block[kind][begin : begin + len(coordinates)], coordinates)
                sums[mine] += part
        return held


def held_kinds(areas: Mapping[str, int], cells: int) -> list[str]:
    """The kinds whose sums are held: those of the fewest areas, as long as there is room."""
    by_size = sorted(areas, key=areas.__getitem__)
    room = np.cumsum([areas[kind] * cells for kind in by_size])
    return by_size[: int(np.searchsorted(room, _VALUES_HELD, side="right"))]


def _summed(area: Ints, coordinates: Floats) -> tuple[Ints, Floats]:
    """Sums by area, those of area -1 left out: the areas, ascending, and their coordinates."""
    order = np.argsort(area, kind="stable")
    order = order[np.searchsorted(area[order], 0) :]
    starts = np.flatnonzero(np.diff(area[order], prepend=-1))
    if not len(starts):
        return np.zeros(0, dtype=np.int64), coordinates[:0]
    in_order = np.array_equal(order, np.arange(len(coordinates)))
    sums = np.add.reduceat(coordinates if in_order else coordinates[order], starts, axis=0)
    return area[order[starts]], sums


def least_squares_intervals(
    measured: MeasuredLevels,
    spine: Spine,
    schema: Schema,
    known: Mapping[int, Known],
    areas: Sequence[Areas],
    confidence: Fraction,
) -> _LeastSquaresIntervals:
    """Prepare intervals of all published areas.

    Parameters
    ----------
    measured : MeasuredLevels
        All measurements of the spine. Queries with recodes are left out.
    known : mapping of int to Known
        Totals that are kept exactly, by geolevel, of one unit or of several together.
    areas : sequence of Areas
        Those that add up others after them.
    """
    of_block: dict[str, Ints] = {}
    for kind in areas:
        of_block[kind.name] = _above(kind.index, of_block[kind.below]) if kind.below else kind.index
    joint = with_joint_totals(spine.tree, measured, known)
    if joint.blocks is not None:
        of_block = {name: index[joint.blocks] for name, index in of_block.items()}
    whole = (True,) * len(schema.shape)
    detailed = MarginMeasurements(joint.tree, joint.measured, joint.totals, schema.shape, whole)
    sizes = {kind.name: len(kind.labels) for kind in areas}
    upward = upward_precisions(joint.tree, map(detailed.precision, reversed(range(len(joint.tree.names)))))
    return _LeastSquaresIntervals(detailed, of_block, sizes, tuple(upward), float(confidence))


def _above(index: Ints, below: Ints) -> Ints:
    found: Flags = below >= 0
    return np.where(found, index[np.where(found, below, 0)], -1)


INTERVALS: Final = "intervals"

CONFIDENCE: Final = 0.9

_DECIMALS: Final = 4
"""Of estimates, in persons."""

_VALUES_AT_ONCE: Final = 1 << 22


def write_intervals(
    folder: Path, spine: Spine, schema: Schema, recodes: Mapping[str, Recode], evidence: FullInformation
) -> dict[str, int]:
    """Write intervals/<geolevel>/<query>.csv: estimate, variance and a 90 percent interval of whole numbers.

    Of every measured query that keeps or sums whole attributes, and of the total; of blocks the total alone. They
    are those of docs/topdown-least-squares.md: of the measurements, before non-negativity and rounding.

    Returns
    -------
    dict of str to int
        Rows, by the file's path within the folder.
    """
    rows: dict[str, int] = {}
    total = margin(TOTAL, schema.shape, [False] * len(schema.shape))
    known: EstimatesOnDisk | None = None
    last = len(spine.levels) - 1
    for number, level in enumerate(spine.levels):
        measured = evidence.stored.levels[number].queries
        queries = [total, *(q for q in measured if q.keeps_or_sums and q.name != TOTAL)]
        above, known = known, None if number == last else _known(evidence, number, known)
        labels = level.labels()
        for query in queries[:1] if number == last else queries:
            pieces = _pieces(evidence, number, query, above, known)
            path = folder / INTERVALS / level.name / f"{query.name.replace('*', '.')}.csv"
            written = write_answers(path, labels, kept_columns(query, schema, recodes), pieces)
            rows[path.relative_to(folder).as_posix()] = written
    return rows


def _known(evidence: FullInformation, number: int, above: EstimatesOnDisk | None) -> EstimatesOnDisk:
    """What all measurements of the tree say of the units of a geolevel."""
    found = EstimatesOnDisk(evidence.tree.units(number), evidence.basis.cells, len(evidence.basis.subsets))
    for first, last in _parts(evidence, number):
        found.add(_children(evidence, number, first, last, above))
    return found


def _pieces(
    evidence: FullInformation, number: int, query: Query, above: EstimatesOnDisk | None, known: EstimatesOnDisk | None
) -> Iterator[AnswerFile]:
    for first, last in _parts(evidence, number):
        estimate = known.part(first, last) if known is not None else _children(evidence, number, first, last, above)
        found = intervals(evidence.basis, estimate, query, CONFIDENCE)
        numbers = {
            "estimate": np.round(found.estimate, _DECIMALS),
            "variance": found.variance,
            "lower": found.lower,
            "upper": found.upper,
        }
        yield AnswerFile(np.arange(first, last), numbers)


def _children(
    evidence: FullInformation, number: int, first: int, last: int, above: EstimatesOnDisk | None
) -> TreeEstimate:
    """All children of some parents; the last geolevel is held in no other way."""
    here = evidence.up(number, first, last)
    if above is None:
        return here
    parents = evidence.tree.parents[number][first:last]
    begin, end = int(parents[0]), int(parents[-1]) + 1
    return down(evidence.basis, here, parents - np.int32(begin), above.part(begin, end))


def _parts(evidence: FullInformation, number: int) -> Iterator[tuple[int, int]]:
    """Runs of units that hold all children of their parents."""
    parents = evidence.tree.parents[number]
    starts = np.flatnonzero(np.diff(parents, prepend=-1, append=parents[-1] + 1))
    for first, last in runs_within(starts[1:], max(1, _VALUES_AT_ONCE // evidence.basis.cells)):
        yield int(starts[first]), int(starts[last])
