"""Rows of the files of a release: counts of areas, published tables, and records; as written and as checked. Public.

Records of P.L. 94-171 are those of its Microdata Detail File: one for each person, or for each housing unit and group
quarters.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np

from yupana.arrays import Integers, Ints
from yupana.files.arrow_stream import Column, TextColumn
from yupana.geography.published import Areas
from yupana.products.topdown.tables import GEOGRAPHY, PERSON_COLUMNS, UNIT_COLUMNS, RedistrictingTable, geocodes, levels
from yupana.release.lines import Texts, digits, join, texts, without_padding
from yupana.topdown.histogram import Cells, Histogram, count_entries
from yupana.topdown.queries import Schema
from yupana.topdown.text_rows import NO_NUMBER, Bytes, lay_records, lay_rows, variables

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


def count_rows(
    labels: Texts, schema: Schema, first: int, counts: Histogram, ends: Sequence[Ints]
) -> Iterator[CountRows]:
    """The rows of some consecutive areas, not too many at a time.

    Parameters
    ----------
    labels : ndarray of bytes, shape (areas,)
        Identifiers of all areas of the kind.
    first : int
        The area that is the first of the histogram.
    ends : sequence of ndarray of int64, shape (entries,)
        What stands after the counts.
    """
    for part, owners in stretches(counts):
        numbers = np.stack([counts.counts[part], *(end[part] for end in ends)], axis=1)
        yield CountRows(labels, schema, owners + first, counts.cells[part], numbers)


def stretches(counts: Histogram) -> Iterator[tuple[slice, Ints]]:
    """Stretches of entries, with the unit of each entry."""
    for start in range(0, len(counts.cells), ROWS_AT_ONCE):
        part = slice(start, min(start + ROWS_AT_ONCE, len(counts.cells)))
        first, last = (np.searchsorted(counts.starts, (part.start, part.stop - 1), side="right") - 1).tolist()
        lengths = np.diff(counts.starts[first : last + 2].clip(part.start, part.stop))
        yield part, np.repeat(np.arange(first, last + 1), lengths)


@dataclass(frozen=True, slots=True, eq=False)
class RecordForm:
    """How records of persons or units are written."""

    columns: tuple[str, ...]
    # what records of blocks begin with, as texts of shape (blocks,), from the first of these up to the last
    heads: Callable[[int, int], Texts]
    tails: Callable[[Cells], TextColumn]  # what records of cells end with, as a column of shape (cells,)
    numbered: bool = False  # whether a running number stands between


def plain_records(labels: Texts, schema: Schema) -> RecordForm:
    """Records of any schema: block and attributes; the labels are those of all blocks."""
    return RecordForm(("block", *schema.names), lambda first, last: labels[first:last], partial(cell_texts, schema))


@dataclass(frozen=True, slots=True, eq=False)
class Records:
    """Some records, in the order of blocks and cells."""

    form: RecordForm
    heads: Texts  # shape (blocks,): of the blocks of a part
    block: Ints  # shape (rows,): which of these
    cells: Cells  # shape (rows,)
    times: Ints  # shape (rows,): how many records are alike
    first: int  # how many records are before them in the file

    def text(self) -> Bytes:
        """The records as they are written."""
        number = self.first + 1 if self.form.numbered else NO_NUMBER
        return lay_records(TextColumn(self.heads, self.block), self.form.tails(self.cells), self.times, number)

    @property
    def number(self) -> int:
        """How many."""
        return int(self.times.sum())


def records_of(form: RecordForm, first: int, counts: Histogram, before: int) -> Iterator[Records]:
    """The records of some consecutive blocks, not too many at a time.

    Parameters
    ----------
    first : int
        The block that is the first of the histogram.
    before : int
        How many records the blocks before have.
    """
    heads = form.heads(first, first + counts.units)
    for part, owners in stretches(counts):
        # A few entries may stand for many records.
        ends = np.cumsum(counts.counts[part])
        cuts = np.unique(np.searchsorted(ends, np.arange(0, ends[-1], ROWS_AT_ONCE), side="right"))
        for start, stop in pairwise([*cuts.tolist(), len(ends)]):
            here = slice(part.start + start, part.start + stop)
            records = Records(form, heads, owners[start:stop], counts.cells[here], counts.counts[here], before)
            yield records
            before += records.number


_AREAS_AT_ONCE: Final = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class TableRows:
    """Rows of a published table, of consecutive areas of a kind."""

    table: RedistrictingTable
    level: str  # SUMLEV of the kind
    first: int  # the first of the areas
    codes: Texts  # shape (areas,): GEOCODE of each
    counts: Histogram  # of these areas

    def values(self) -> Ints:
        """The variables, of shape (areas, variables)."""
        return variables(self.counts, self.table.member, self.table.size)

    @property
    def heads(self) -> tuple[TextColumn, TextColumn]:
        """SUMLEV and GEOCODE of each row."""
        places = np.arange(len(self.codes), dtype=np.int64)
        return TextColumn(texts([self.level]), np.zeros_like(places)), TextColumn(self.codes, places)

    def text(self) -> Bytes:
        """The rows as they are written."""
        return self.text_of(self.values())

    def text_of(self, numbers: Ints) -> Bytes:
        """Rows of the same areas with other numbers, of shape (areas, numbers)."""
        return lay_rows(*self.heads, numbers)


def table_rows(
    table: RedistrictingTable, level: str, kind: Areas, first: int, counts: Histogram
) -> Iterator[TableRows]:
    """The rows of some consecutive areas, not too many at a time.

    Parameters
    ----------
    level : str
        SUMLEV of the kind.
    first : int
        The area that is the first of the histogram.
    """
    for start in range(0, counts.units, _AREAS_AT_ONCE):
        stop = min(start + _AREAS_AT_ONCE, counts.units)
        codes = geocodes(kind.name, kind.labels[first + start : first + stop])
        yield TableRows(table, level, first + start, codes, counts.part(start, stop))


_PERSON, _UNIT, _BUILD = "MPD", "MUD", "1.1.0"
_UNIT_STATUS: Final = texts(("2|2", "2|1", "4|0"))
"""RTYPE and HH_STATUS of a vacant unit, an occupied one, and group quarters."""


def person_records(blocks: Ints, schema: Schema) -> RecordForm:
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

    return RecordForm(
        PERSON_COLUMNS,
        lambda first, last: _heads(_PERSON, blocks[first:last]),
        lambda cells: TextColumn(tails, cells.astype(np.int64)),
        numbered=True,
    )


def unit_records(blocks: Ints) -> RecordForm:
    """How units are written, whose counts `with_quarters` made."""
    return RecordForm(
        UNIT_COLUMNS,
        lambda first, last: _heads(_UNIT, blocks[first:last]),
        lambda cells: TextColumn(_UNIT_STATUS, cells.astype(np.int64)),
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
