"""Rows of the files of a release: counts of areas, published tables, and records; as written and as checked. Public.

Records of P.L. 94-171 are those of its Microdata Detail File: one for each person, or for each housing unit and group
quarters.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np

from yupana.arrays import Integers, Ints
from yupana.files.arrow_stream import Column, TextColumn
from yupana.geography.published import Areas
from yupana.geography.spine import Spine
from yupana.products.topdown.tables import (
    AREA_COLUMNS,
    BOUNDS,
    GEOGRAPHY,
    INTERVALS_OF,
    MICRODATA,
    PERSON_COLUMNS,
    TABLES,
    TABULATION,
    UNIT_COLUMNS,
    RedistrictingTable,
    counts_persons,
    counts_units,
    geocodes,
    levels,
    levels_of,
)
from yupana.release.lines import Texts, digits, join, texts, without_padding
from yupana.topdown.histogram import Cells, Histogram, Summed, count_entries
from yupana.topdown.intervals import CountIntervals
from yupana.topdown.queries import Schema
from yupana.topdown.text_rows import NO_NUMBER, Bytes, NumberForm, lay_records, lay_rows, variables

ROWS_AT_ONCE: Final = 1 << 18


def cell_texts(schema: Schema, cells: Cells) -> TextColumn:
    """The labels of cells, ``|`` between, as a column of shape (cells,)."""
    seen = np.zeros(schema.cells, dtype=np.bool_)
    seen[cells] = True
    present = np.flatnonzero(seen)
    levels = np.unravel_index(present, schema.shape)
    written = join([texts(a.labels)[level] for a, level in zip(schema.attributes, levels, strict=True)])
    return TextColumn(without_padding(written), (np.cumsum(seen) - 1)[cells])


@dataclass(frozen=True, slots=True, eq=False)
class CountRows:
    """Some rows of a file of counts: entries of a histogram of areas."""

    labels: Texts  # shape (areas,): identifiers of all areas of the kind
    schema: Schema
    area: Ints  # shape (rows,): the area of each row
    cells: Cells  # shape (rows,)
    numbers: Ints  # shape (rows, 1) or (rows, 4): the count, and the ends and margin of its interval where there is one

    @property
    def number(self) -> int:
        """How many."""
        return len(self.cells)

    @property
    def columns(self) -> tuple[TextColumn, TextColumn, Ints]:
        """The identifiers, the labels of the cells, and the numbers."""
        return TextColumn(self.labels, self.area), cell_texts(self.schema, self.cells), self.numbers

    def text(self) -> Bytes:
        """The rows as they are written."""
        return lay_rows(*self.columns)

    def packed(self) -> bytes:
        """The area, the cell and the numbers of each row, of eight bytes each."""
        return np.column_stack([self.area, self.cells, self.numbers]).tobytes()


def unpack(path: Path, labels: Texts, schema: Schema, numbers: Sequence[str]) -> Iterator[dict[str, Column]]:
    """The columns of a file of counts from its rows as `CountRows.packed` wrote them, part after part.

    Parameters
    ----------
    labels : ndarray of bytes, shape (areas,)
        Identifiers of all areas of the kind.
    numbers : sequence of str
        What the columns of the numbers are called.
    """
    known = [texts(attribute.labels) for attribute in schema.attributes]
    width = 2 + len(numbers)
    more = True
    with path.open("rb") as file:
        while more:
            area, cells, *values = np.fromfile(file, np.int64, width * ROWS_AT_ONCE).reshape(-1, width).T
            more = len(area) == ROWS_AT_ONCE
            levels = map(TextColumn, known, np.unravel_index(cells, schema.shape))
            columns = zip(schema.names, levels, strict=True)
            yield {"geounit": TextColumn(labels, area), **dict(columns), **dict(zip(numbers, values, strict=True))}


@dataclass(frozen=True, slots=True, eq=False)
class CountSection:
    """All counts of a kind of areas."""

    schema: Schema
    kind: Areas

    def rows(self, summed: Summed, intervals: CountIntervals | None = None) -> Iterator[CountRows]:
        """The rows of the areas that are whole with a part of the blocks, not too many at a time."""
        first, counts = summed.areas[self.kind.name]
        ends = () if intervals is None else intervals.of_cells(self.kind, counts).ends
        for part, owners in stretches(counts):
            numbers = np.stack([counts.counts[part], *(end[part] for end in ends)], axis=1)
            yield CountRows(self.kind.labels, self.schema, owners + first, counts.cells[part], numbers)


def stretches(counts: Histogram) -> Iterator[tuple[slice, Ints]]:
    """Stretches of entries, with the unit of each entry."""
    for start in range(0, len(counts.cells), ROWS_AT_ONCE):
        part = slice(start, min(start + ROWS_AT_ONCE, len(counts.cells)))
        first, last = (np.searchsorted(counts.starts, (part.start, part.stop - 1), side="right") - 1).tolist()
        lengths = np.diff(counts.starts[first : last + 2].clip(part.start, part.stop))
        yield part, np.repeat(np.arange(first, last + 1), lengths)


@dataclass(frozen=True, slots=True, eq=False)
class Records:
    """Some records, in the order of blocks and cells."""

    section: "RecordSection"
    heads: Texts  # shape (blocks,): of the blocks of a part
    block: Ints  # shape (rows,): which of these
    cells: Cells  # shape (rows,)
    times: Ints  # shape (rows,): how many records are alike
    first: int  # how many records are before them in the file

    def text(self) -> Bytes:
        """The records as they are written."""
        number = self.first + 1 if self.section.numbered else NO_NUMBER
        return lay_records(TextColumn(self.heads, self.block), self.section.tails(self.cells), self.times, number)

    @property
    def number(self) -> int:
        """How many."""
        return int(self.times.sum())


@dataclass(slots=True, eq=False)
class RecordSection:
    """The records of all blocks, in the order of blocks and cells."""

    columns: tuple[str, ...]
    # what records of blocks begin with, as texts of shape (blocks,), from the first of these up to the last
    heads: Callable[[int, int], Texts]
    tails: Callable[[Cells], TextColumn]  # what records of cells end with, as a column of shape (cells,)
    numbered: bool = False  # whether a running number stands between
    facilities: Integers | None = None  # shape (blocks, 8): with them, group quarters stand beside the housing units
    before: int = 0  # how many records the blocks before have

    def rows(self, summed: Summed, intervals: CountIntervals | None = None) -> Iterator[Records]:
        """The records of a part of the blocks, not too many at a time."""
        del intervals
        if summed.first == 0:
            self.before = 0
        counts, last = summed.counts, summed.first + summed.counts.units
        if self.facilities is not None:
            counts = with_quarters(counts, self.facilities[summed.first : last])
        heads = self.heads(summed.first, last)
        for part, owners in stretches(counts):
            # A few entries may stand for many records.
            ends = np.cumsum(counts.counts[part])
            cuts = np.unique(np.searchsorted(ends, np.arange(0, ends[-1], ROWS_AT_ONCE), side="right"))
            for start, stop in pairwise([*cuts.tolist(), len(ends)]):
                here = slice(part.start + start, part.start + stop)
                cells, times = counts.cells[here], counts.counts[here]
                records = Records(self, heads, owners[start:stop], cells, times, self.before)
                yield records
                self.before += records.number


_AREAS_AT_ONCE: Final = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class TableRows:
    """Rows of a published table, of consecutive areas of a kind."""

    table: RedistrictingTable
    level: str  # SUMLEV of the kind
    codes: Texts  # shape (areas,): GEOCODE of each
    counts: Histogram  # of these areas
    ends: Ints | None  # shape (areas, numbers): what stands in place of the variables

    @property
    def number(self) -> int:
        """How many."""
        return len(self.codes)

    @property
    def columns(self) -> tuple[TextColumn, TextColumn, Ints]:
        """SUMLEV and GEOCODE of each row, and the numbers."""
        places = np.arange(len(self.codes), dtype=np.int64)
        numbers = variables(self.counts, self.table.member, self.table.size) if self.ends is None else self.ends
        return TextColumn(texts([self.level]), np.zeros_like(places)), TextColumn(self.codes, places), numbers

    def text(self) -> Bytes:
        """The rows as they are written."""
        return lay_rows(*self.columns)


@dataclass(frozen=True, slots=True, eq=False)
class TableSection:
    """The areas of one kind in a published table, or in that of its intervals."""

    table: RedistrictingTable
    level: str  # SUMLEV of the kind
    kind: Areas

    def rows(self, summed: Summed, intervals: CountIntervals | None = None) -> Iterator[TableRows]:
        """The rows of the areas that are whole with a part of the blocks, not too many at a time."""
        before, counts = summed.areas[self.kind.name]
        for start in range(0, counts.units, _AREAS_AT_ONCE):
            stop = min(start + _AREAS_AT_ONCE, counts.units)
            first, last = before + start, before + stop
            ends = None
            if intervals is not None:
                found = intervals.of_table(self.kind, self.table.member, self.table.size, first, last).ends
                ends = np.stack(found, axis=2).reshape(last - first, -1)
            codes = geocodes(self.kind.name, self.kind.labels[first:last])
            yield TableRows(self.table, self.level, codes, counts.part(start, stop), ends)


Rows: TypeAlias = CountRows | Records | TableRows
Section: TypeAlias = CountSection | RecordSection | TableSection
"""Rows of a file that parts of the blocks add to, each behind those of the part before."""


@dataclass(frozen=True, slots=True, eq=False)
class RowsFile:
    """A file of text with its sections, one behind the other; of counts there may be one of Parquet in its place."""

    path: Path
    counted: tuple[str, ...]  # the columns that the counts of the blocks decide
    sections: Sequence[Section]
    ends: tuple[str, ...] = ()  # those of intervals behind them, `BOUNDS` of each number

    @property
    def columns(self) -> tuple[str, ...]:
        """All its columns."""
        return self.counted + self.ends

    @property
    def form(self) -> NumberForm:
        """What stands for each number of a row: a table of intervals has its ends alone."""
        return NumberForm(shown=self.counted != AREA_COLUMNS, bounded=bool(self.ends))


def count_file(folder: Path, schema: Schema, kind: Areas, *, bounded: bool = False) -> RowsFile:
    """The counts of a kind of areas; if bounded each with an interval."""
    counted, ends = ("geounit", *schema.names, "count"), BOUNDS if bounded else ()
    return RowsFile(folder / f"{kind.name}.csv", counted, [CountSection(schema, kind)], ends)


def record_file(
    folder: Path, schema: Schema, spine: Spine, facilities: Integers | None, *, any_codes: bool
) -> RowsFile:
    """The records of all blocks: in the layout of P.L. 94-171 if the schema is one of these.

    Parameters
    ----------
    facilities : ndarray of integers, shape (blocks, 8), optional
        Of the blocks of the spine; group quarters are then listed beside housing units.
    any_codes : bool
        Whether blocks have codes of any form, for which that layout has no place.
    """
    if counts_persons(schema) and not any_codes:
        section = _person_records(spine.blocks, schema)
    elif counts_units(schema) and not any_codes:
        section = _unit_records(spine.blocks, facilities)
    else:
        section = _plain_records(spine.levels[-1].texts(), schema)
    return RowsFile(folder / MICRODATA, section.columns, [section])


def tabulated_files(
    folder: Path, schema: Schema, kinds: Sequence[Areas], tables: Sequence[RedistrictingTable], *, bounded: bool
) -> list[RowsFile]:
    """The counts of published areas, and published tables of all of them; if bounded, with their intervals.

    A table has a row for every area, with SUMLEV, GEOCODE and the variables.
    """
    files = [count_file(folder / TABULATION, schema, kind, bounded=bounded) for kind in kinds]
    named = {kind.name: kind for kind in kinds}
    for table in tables:
        sections = [TableSection(table, level, named[name]) for name, level in levels_of(named).items()]
        path, beside = (folder / TABLES / f"{table.name}{end}.csv" for end in ("", INTERVALS_OF))
        files.append(RowsFile(path, (*AREA_COLUMNS, *table.variables), sections))
        if bounded:
            files.append(RowsFile(beside, AREA_COLUMNS, sections, table.ends))
    return files


_PERSON, _UNIT, _BUILD = "MPD", "MUD", "1.1.0"
_UNIT_STATUS: Final = texts(("2|2", "2|1", "4|0"))
"""RTYPE and HH_STATUS of a vacant unit, an occupied one, and group quarters."""


def _plain_records(labels: Texts, schema: Schema) -> RecordSection:
    """Records of any schema: block and attributes; the labels are those of all blocks."""
    columns = ("block", *schema.names)
    return RecordSection(columns, lambda first, last: labels[first:last], partial(cell_texts, schema))


def _person_records(blocks: Ints, schema: Schema) -> RecordSection:
    """How persons are written. EPNUM numbers the records of the file, from 1.

    Parameters
    ----------
    blocks : ndarray of int64, shape (blocks,)
        16 digits of each as a number.
    schema : Schema
        With the attributes of persons.
    """
    level = levels(schema, np.arange(schema.cells, dtype=np.int32))
    quarters = level["hhgq"]
    rtype = texts("35")[(quarters > 0).astype(np.int64)]
    codes = [digits(level[name] + 1, 1) for name in ("votingage", "hispanic")]
    tails = join([rtype, digits(quarters, 1), *codes, digits(level["cenrace"] + 1, 2)])

    return RecordSection(
        PERSON_COLUMNS,
        lambda first, last: _heads(_PERSON, blocks[first:last]),
        lambda cells: TextColumn(tails, cells.astype(np.int64)),
        numbered=True,
    )


def _unit_records(blocks: Ints, facilities: Integers | None) -> RecordSection:
    """How units are written; with facilities, group quarters beside them."""
    return RecordSection(
        UNIT_COLUMNS,
        lambda first, last: _heads(_UNIT, blocks[first:last]),
        lambda cells: TextColumn(_UNIT_STATUS, cells.astype(np.int64)),
        facilities=facilities,
    )


def with_quarters(histogram: Histogram, facilities: Integers) -> Histogram:
    """Append the public numbers of group quarters to counts of housing units, as a third cell.

    Parameters
    ----------
    histogram : Histogram
        Vacant and occupied units of each block.
    facilities : ndarray of integers, shape (blocks, 8)
        Housing units and facilities by major type; the first column is not used.
    """
    units = np.arange(histogram.units)
    return count_entries(
        np.concatenate([histogram.owners(), units]),
        np.concatenate([histogram.cells, np.full(histogram.units, 2, dtype=np.int32)]),
        np.concatenate([histogram.counts, facilities[:, 1:].sum(axis=1)]),
        histogram.units,
    )


def _heads(kind: str, blocks: Ints) -> Texts:
    constant = np.full(len(blocks), f"{kind}|{_BUILD}".encode())
    parts, rest = [], 16
    for width in GEOGRAPHY.values():
        rest -= width
        parts.append(digits(blocks // 10**rest % 10**width, width))
    return join([constant, *parts])
