"""TopDown's counts on disk: by the geounits of the spine, by published geography, and as records."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np

from yupana.arrays import Ints
from yupana.geography.published import Areas
from yupana.geography.spine import Geolevel, Spine
from yupana.release.lines import ROWS_AT_ONCE, Texts, digits, join, texts, whole, write_header, write_lines
from yupana.release.rows import Coded, RowTable, write_rows
from yupana.release.tables import Format
from yupana.topdown.count_intervals import Bounds, CountIntervals
from yupana.topdown.histogram import Cells, Histogram
from yupana.topdown.queries import Schema

COUNTS: Final = "counts"
TABULATION: Final = "tabulation"
MICRODATA: Final = "microdata.csv"

BOUNDS: Final = ("LOWER", "UPPER", "MOE")
"""What stands after a count that has an interval."""


def sum_to_areas(histogram: Histogram, areas: list[Areas]) -> Iterator[tuple[Areas, Histogram]]:
    """Add block counts up to published geography.

    Parameters
    ----------
    histogram : Histogram
        Of the blocks of the spine, in its order.
    areas : list of Areas
        As `PublishedBlocks.areas` gives them.
    """
    sums = {"": histogram}
    for kind in areas:
        summed = sums[kind.below].sum_to(kind.index, kind.number)
        sums[kind.name] = summed
        yield kind, summed


def sum_to_levels(histogram: Histogram, spine: Spine) -> Iterator[tuple[int, Histogram]]:
    """Add block counts up the spine: each geolevel's number with its counts, from the blocks to the root."""
    last = len(spine.levels) - 1
    yield last, histogram
    for level in range(last, 0, -1):
        histogram = histogram.sum_to(spine.tree.parents[level], spine.tree.units(level - 1))
        yield level - 1, histogram


def write_counts(folder: Path, spine: Spine, schema: Schema, histogram: Histogram, fmt: Format) -> dict[str, int]:
    """Write counts/<geolevel> for every geolevel; zeros are left out.

    Parameters
    ----------
    folder : Path
        Where the release is made.
    spine : Spine
    schema : Schema
    histogram : Histogram
        Final counts of the blocks of the spine, in its order.
    fmt : "csv" or "parquet"

    Returns
    -------
    dict of str to int
        Rows, by the file's path within the folder.
    """
    (folder / COUNTS).mkdir()
    rows: dict[str, int] = {}
    for number, counts in sum_to_levels(histogram, spine):
        level = spine.levels[number]
        labels = _labels(level)
        rows |= _write_histogram(folder, f"{COUNTS}/{level.name}", labels, schema, counts, fmt)
    return rows


def _labels(level: Geolevel) -> Texts:
    """The identifiers of a geolevel's units."""
    return texts(level.labels()) if level.part.any() or not level.width else digits(level.code, level.width)


def write_tabulation(
    folder: Path,
    schema: Schema,
    histogram: Histogram,
    areas: list[Areas],
    fmt: Format,
    intervals: CountIntervals | None = None,
) -> dict[str, int]:
    """Write tabulation/<name> for published geography, as `write_counts` does; areas in order.

    With intervals each count is followed by LOWER, UPPER and MOE.
    """
    (folder / TABULATION).mkdir()
    rows: dict[str, int] = {}
    for kind, counts in sum_to_areas(histogram, areas):
        bounds = None if intervals is None else intervals.of_cells(kind, counts)
        rows |= _write_histogram(folder, f"{TABULATION}/{kind.name}", kind.labels, schema, counts, fmt, bounds)
    return rows


def _write_histogram(
    folder: Path,
    name: str,
    labels: Texts,
    schema: Schema,
    counts: Histogram,
    fmt: Format,
    bounds: Bounds | None = None,
) -> dict[str, int]:
    ends = {} if bounds is None else columns_of(bounds, counts.counts)
    columns = ("geounit", *schema.names, "count", *ends)
    path = folder / f"{name}.{fmt}"
    if fmt == "parquet":
        owners = counts.owners()
        levels = np.unravel_index(counts.cells, schema.shape)
        coded = {a.name: Coded(a.labels, level) for a, level in zip(schema.attributes, levels, strict=True)}
        geounits = Coded([label.decode() for label in labels.tolist()], owners)
        table = RowTable(
            path.stem,
            {"geounit": geounits, **coded, "count": counts.counts, **ends},
            np.arange(len(owners), dtype=np.int64),
        )
        write_rows(path.parent, table, fmt)
    else:
        written, which = cell_texts(schema, counts.cells)
        with path.open("wb") as file:
            write_header(file, columns)
            for part, owners in _stretches(counts):
                numbers = [whole(values[part]) for values in (counts.counts, *ends.values())]
                write_lines(file, [labels[owners], written[which[part]], *numbers])
    return {path.relative_to(folder).as_posix(): len(counts.counts)}


def columns_of(bounds: Bounds, counts: Ints) -> dict[str, Ints]:
    """LOWER, UPPER and MOE of published counts, by name."""
    return dict(zip(BOUNDS, (bounds.lower, bounds.upper, bounds.margins(counts)), strict=True))


def cell_texts(schema: Schema, cells: Cells) -> tuple[Texts, Ints]:
    """The labels of cells, ``|`` between: the different texts, and which of them each cell has, of shape (cells,)."""
    seen = np.zeros(schema.cells, dtype=np.bool_)
    seen[cells] = True
    present = np.flatnonzero(seen)
    levels = np.unravel_index(present, schema.shape)
    written = join([texts(a.labels)[level] for a, level in zip(schema.attributes, levels, strict=True)])
    return written, (np.cumsum(seen) - 1)[cells]


def _stretches(counts: Histogram) -> Iterator[tuple[slice, Ints]]:
    """Stretches of entries, with the unit of each entry."""
    for start in range(0, len(counts.cells), ROWS_AT_ONCE):
        part = slice(start, min(start + ROWS_AT_ONCE, len(counts.cells)))
        yield part, np.searchsorted(counts.starts, np.arange(part.start, part.stop), side="right") - 1


Records = Callable[[Ints, Cells, int], list[Texts]]
"""Columns of records: the position of the block of each, its cell, and the number of the first record, from 0."""


def plain_records(spine: Spine, schema: Schema) -> tuple[tuple[str, ...], Records]:
    """The columns of records of any schema, block and attributes, and what writes them."""
    labels = _labels(spine.levels[-1])

    def columns(block: Ints, cells: Cells, _first: int) -> list[Texts]:
        written, which = cell_texts(schema, cells)
        return [labels[block], written[which]]

    return ("block", *schema.names), columns


def write_microdata(folder: Path, histogram: Histogram, header: tuple[str, ...], records: Records) -> dict[str, int]:
    """Write one record for each person or unit counted, in the order of blocks and cells.

    Returns
    -------
    dict of str to int
        Rows, by the file's path within the folder.
    """
    first = 0
    with (folder / MICRODATA).open("wb") as file:
        write_header(file, header)
        for part, owners in _stretches(histogram):
            # A few entries may stand for many records.
            ends = np.cumsum(histogram.counts[part])
            cuts = np.unique(np.searchsorted(ends, np.arange(0, ends[-1], ROWS_AT_ONCE), side="right"))
            for start, stop in pairwise([*cuts.tolist(), len(ends)]):
                here = slice(part.start + start, part.start + stop)
                times = histogram.counts[here]
                block = np.repeat(owners[start:stop], times)
                write_lines(file, records(block, np.repeat(histogram.cells[here], times), first))
                first += len(block)
    return {MICRODATA: first}
