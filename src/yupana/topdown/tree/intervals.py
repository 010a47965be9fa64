"""Intervals about least-squares estimates from all measurements of the tree, by geolevel and query. Public."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import numpy as np

from yupana.geography.spine import Spine
from yupana.topdown.answers_file import AnswerFile, kept_columns, write_answers
from yupana.topdown.queries import TOTAL, Query, Recode, Schema, margin
from yupana.topdown.tree.full_information import EstimatesOnDisk, FullInformation
from yupana.topdown.tree.least_squares import TreeEstimate, down, intervals

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
        measured = evidence.stored.spending.levels[number].queries
        queries = [total, *(q for q in measured if q.keeps_or_sums and q.name != TOTAL)]
        above, known = known, None if number == last else _known(spine, evidence, number, known)
        labels = level.labels()
        for query in queries[:1] if number == last else queries:
            pieces = _pieces(spine, evidence, number, query, above, known)
            path = folder / INTERVALS / level.name / f"{query.name.replace('*', '.')}.csv"
            written = write_answers(path, labels, kept_columns(query, schema, recodes), pieces)
            rows[path.relative_to(folder).as_posix()] = written
    return rows


def _known(spine: Spine, evidence: FullInformation, number: int, above: EstimatesOnDisk | None) -> EstimatesOnDisk:
    """What all measurements of the tree say of the units of a geolevel."""
    found = EstimatesOnDisk(spine.tree.units(number), evidence.basis.cells, len(evidence.basis.subsets))
    for first, last in _parts(spine, number, evidence.basis.cells):
        found.add(_children(spine, evidence, number, first, last, above))
    return found


def _pieces(
    spine: Spine,
    evidence: FullInformation,
    number: int,
    query: Query,
    above: EstimatesOnDisk | None,
    known: EstimatesOnDisk | None,
) -> Iterator[AnswerFile]:
    for first, last in _parts(spine, number, evidence.basis.cells):
        if known is not None:
            estimate = known.part(first, last)
        else:
            estimate = _children(spine, evidence, number, first, last, above)
        found = intervals(evidence.basis, estimate, query, CONFIDENCE)
        numbers = {
            "estimate": np.round(found.estimate, _DECIMALS),
            "variance": found.variance,
            "lower": found.lower,
            "upper": found.upper,
        }
        yield AnswerFile(np.arange(first, last), numbers)


def _children(
    spine: Spine, evidence: FullInformation, number: int, first: int, last: int, above: EstimatesOnDisk | None
) -> TreeEstimate:
    """All children of some parents; the last geolevel is held in no other way."""
    here = evidence.up(number, first, last)
    if above is None:
        return here
    parents = spine.tree.parents[number][first:last]
    begin, end = int(parents[0]), int(parents[-1]) + 1
    return down(evidence.basis, here, parents - np.int32(begin), above.part(begin, end))


def _parts(spine: Spine, number: int, cells: int) -> Iterator[tuple[int, int]]:
    """Runs of units that hold all children of their parents."""
    parents = spine.tree.parents[number]
    starts = np.flatnonzero(np.diff(parents, prepend=-1, append=parents[-1] + 1))
    first = 0
    while first < len(parents):
        reach = first + max(1, _VALUES_AT_ONCE // cells)
        at = int(np.searchsorted(starts, reach, side="right")) - 1
        last = int(starts[at]) if starts[at] > first else int(starts[at + 1])
        yield first, last
        first = last
