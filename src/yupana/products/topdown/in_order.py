"""Whether files of a release hold what the counts of its blocks say, in the order in which they are written. Public.

They are read side by side, part by part of the blocks, so that what is held follows a part. What is not in order is not
wrong: `yupana.products.topdown.verify` then reads it in any order and tells what is wrong with it, if something is.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeAlias

import duckdb
import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Ints
from yupana.files.arrow_stream import TextColumn
from yupana.files.database import named, open_database, source_of
from yupana.files.delimited import PARQUET, column_types, parquet_rows, positions
from yupana.files.regular import must_be_regular, regular
from yupana.geography.kinds import BLOCK_WIDTH, BLOCKS_OF_COUNTY
from yupana.geography.published import Areas, PublishedBlocks, areas_of_spine
from yupana.geography.spine import Geolevel, Spine
from yupana.geography.tree import Tree
from yupana.products.topdown.outputs import workers
from yupana.products.topdown.rows import (
    CountRows,
    RecordForm,
    count_rows,
    person_records,
    plain_records,
    records_of,
    table_rows,
)
from yupana.products.topdown.tables import (
    BOUNDS,
    COUNTS,
    INTERVALS_OF,
    MICRODATA,
    TABLES,
    TABULATION,
    RedistrictingTable,
    counts_persons,
    levels_of,
    tables_of,
)
from yupana.products.topdown.verify import cell_of, code_of, codes_of
from yupana.topdown.histogram import (
    BlockParts,
    Entries,
    Histogram,
    PartsByCounty,
    Stretch,
    Summed,
    sums_in_parts,
    together,
)
from yupana.topdown.intervals import Bounds
from yupana.topdown.queries import Schema
from yupana.topdown.text_rows import Bytes, NumberForm, match_rows, most_bytes, parse_counts

_BYTES_AT_ONCE: Final = 1 << 24
_ROWS_AT_ONCE: Final = 1 << 18
_LINE_AT_MOST: Final = 1 << 20
_LEVEL_AT_MOST: Final = 1 << 10
_LARGER_ENDS: Final = (2, 16)
"""How many digits more than the numbers the ends of intervals are taken to have at most, and if that does not do."""


class _OutOfOrderError(Exception):
    """A file that is not what would have been written."""


def counts_hold(folder: Path, schema: Schema, spine: Spine, *, records: bool) -> bool:
    """Whether the counts of all geounits, and the records if asked, are those of the blocks.

    Of units, records are not compared: group quarters stand between them, and no other file tells how many.
    """
    spine = as_written(spine)
    kinds = areas_of_spine(spine)
    files: list[_Expected] = [_CountFile(folder / COUNTS, schema, kind) for kind in kinds[1:]]
    if records:
        persons = counts_persons(schema)
        form = person_records(spine.blocks, schema) if persons else plain_records(kinds[0].labels, schema)
        files.append(_RecordFile(folder / MICRODATA, form))
    return _hold(_WrittenBlocks(folder, schema, spine), kinds, files)


def tabulation_holds(
    folder: Path, schema: Schema, spine: Spine, published: PublishedBlocks, *, intervals: bool
) -> bool:
    """Whether tabulation and tables of published areas are those of the blocks, with intervals that go with them."""
    spine = as_written(spine)
    blocks = PartsByCounty(_WrittenBlocks(folder, schema, spine), spine.blocks // BLOCKS_OF_COUNTY)
    kinds = blocks.areas(published.areas(spine.blocks))
    files: list[_Expected] = [_CountFile(folder / TABULATION, schema, kind, intervals=intervals) for kind in kinds]
    for table in tables_of(schema):
        files.append(_TableFile(folder / TABLES / f"{table.name}.csv", table, kinds, NumberForm()))
        if intervals:
            path = folder / TABLES / f"{table.name}{INTERVALS_OF}.csv"
            files.append(_TableFile(path, table, kinds, NumberForm(shown=False, bounded=True)))
    return _hold(blocks, kinds, files)


@dataclass(frozen=True, slots=True, eq=False)
class _Opening:
    """What files are opened with, and closed by."""

    stack: ExitStack
    db: duckdb.DuckDBPyConnection


def _hold(blocks: BlockParts, kinds: Sequence[Areas], files: Sequence["_Expected"]) -> bool:
    """Whether all files hold what they should, no more and no less."""
    try:
        with ExitStack() as stack, ThreadPoolExecutor(workers()) as pool:
            opening = _Opening(stack, stack.enter_context(open_database()))
            sections = [section for file in files for section in file.open(opening)]
            running: list[Future[None]] = []
            for summed in sums_in_parts(blocks, kinds):
                # The next part is added up while this one is compared.
                _wait(running)
                running = [pool.submit(section.compare, summed) for section in sections]
            _wait(running)
            return all(section.rows.at == section.rows.end for section in sections)
    except (_OutOfOrderError, OSError, ValueError, duckdb.Error):
        return False


def _wait(running: Iterable[Future[None]]) -> None:
    for one in running:
        one.result()


@dataclass(slots=True, eq=False)
class _TextRows:
    """The rows of a file from one place to another, of which some were compared."""

    file: BinaryIO
    at: int
    end: int

    def compare(self, most: int, match: Callable[[Bytes], int]) -> bool:
        """Go on behind rows that stand here and take so many bytes at most, if they do."""
        text = os.pread(self.file.fileno(), min(most, self.end - self.at), self.at)
        used = match(np.frombuffer(text, dtype=np.uint8))
        self.at += max(used, 0)
        return used >= 0


@dataclass(slots=True, eq=False)
class _StoredRows:
    """The rows of a file of Parquet, of which some were compared."""

    db: duckdb.DuckDBPyConnection
    query: str
    end: int
    at: int = 0

    def take(self, number: int) -> list[Ints]:
        """The next rows, by column, and go on behind them."""
        here = f"file_row_number >= {self.at} AND file_row_number < {self.at + number}"
        found = self.db.execute(f"{self.query} WHERE {here} ORDER BY file_row_number").fetchnumpy()
        self.at += number
        return list(found.values())


def _open(opening: _Opening, path: Path, columns: Sequence[str]) -> _TextRows:
    """The rows of a file of text with these columns."""
    file = opening.stack.enter_context(open(path, "rb", opener=regular))  # noqa: SIM115 (the stack closes it)
    header = "|".join(columns).encode() + b"\n"
    if file.read(len(header)) != header:
        raise _OutOfOrderError
    return _TextRows(file, len(header), os.fstat(file.fileno()).st_size)


def _is_stored(stem: Path) -> bool:
    """Whether a table is there as Parquet and not as text."""
    text, stored = (stem.with_name(f"{stem.name}{end}").exists() for end in (".csv", PARQUET))
    if text == stored:
        raise _OutOfOrderError
    return stored


def _open_counts(opening: _Opening, stem: Path, schema: Schema, unit: str, more: Sequence[str]) -> _StoredRows:
    """The rows of a file of Parquet: the unit as SQL has it, the cell, the count and more; -1 for what is none."""
    path = stem.with_name(f"{stem.name}{PARQUET}")
    must_be_regular(path)
    db = opening.db.cursor()
    if list(column_types(db, parquet_rows([path]))) != ["geounit", *schema.names, "count", *more]:
        raise _OutOfOrderError
    cell = cell_of(schema.attributes)
    numbers = (f"coalesce(TRY_CAST({named(name)} AS BIGINT), -1)" for name in ("count", *more))
    columns = ", ".join(f"{sql} AS c{place}" for place, sql in enumerate((unit, f"coalesce({cell}, -1)", *numbers)))
    source = f"read_parquet({source_of(path)}, hive_partitioning = false, file_row_number = true)"
    ((rows,),) = db.execute(f"SELECT count(*) FROM {source}").fetchall()
    return _StoredRows(db, f"SELECT {columns} FROM {source}", rows)


def _compare_rows(rows: _TextRows, first: TextColumn, second: TextColumn, numbers: Ints, form: NumberForm) -> None:
    for more in _LARGER_ENDS if form.bounded else (0,):
        most = most_bytes(first, second, numbers, form, more)
        if rows.compare(most, lambda text: match_rows(text, first, second, numbers, form)):
            return
    raise _OutOfOrderError


@dataclass(slots=True, eq=False)
class _CountFile:
    """A file of counts of a kind of areas."""

    folder: Path
    schema: Schema
    kind: Areas
    intervals: bool = False
    rows: _TextRows | _StoredRows = field(init=False)
    _labels: NDArray[Any] = field(init=False)

    def open(self, opening: _Opening) -> "Sequence[_Section]":
        more, stem = BOUNDS if self.intervals else (), self.folder / self.kind.name
        if not _is_stored(stem):
            path = self.folder / f"{self.kind.name}.csv"
            self.rows = _open(opening, path, ("geounit", *self.schema.names, "count", *more))
            return [self]
        if (codes := codes_of(self.kind.labels)) is not None:
            unit, self._labels = f"coalesce({code_of(self.kind.labels.itemsize)}, -1)", codes
        else:
            unit, self._labels = "coalesce(geounit, '')", np.char.decode(self.kind.labels, "utf-8").astype(object)
        self.rows = _open_counts(opening, stem, self.schema, unit, more)
        return [self]

    def compare(self, summed: Summed) -> None:
        for rows in count_rows(self.kind.labels, self.schema, *summed.areas[self.kind.name], ()):
            if isinstance(self.rows, _StoredRows):
                self._compare_stored(self.rows, rows)
            else:
                _compare_rows(self.rows, *rows.columns, NumberForm(bounded=self.intervals))

    def _compare_stored(self, stored: _StoredRows, rows: CountRows) -> None:
        unit, cell, count, *ends = stored.take(len(rows.cells))
        expected = self._labels[rows.area], rows.cells, rows.numbers[:, 0]
        same = all(map(np.array_equal, (unit, cell, count), expected))
        if same and ends:
            lower, upper, margin = ends
            same = bool(((lower >= 0) & (lower <= upper)).all())
            same = same and np.array_equal(margin, Bounds(lower, upper).margins)
        if not same:
            raise _OutOfOrderError


@dataclass(slots=True, eq=False)
class _RecordFile:
    """The records of all blocks."""

    path: Path
    form: RecordForm
    before: int = 0
    rows: _TextRows = field(init=False)

    def open(self, opening: _Opening) -> "Sequence[_Section]":
        self.rows = _open(opening, self.path, self.form.columns)
        return [self]

    def compare(self, summed: Summed) -> None:
        for records in records_of(self.form, summed.first, summed.counts, self.before):
            self.before += records.number
            expected = records.text().tobytes()
            if os.pread(self.rows.file.fileno(), len(expected), self.rows.at) != expected:
                raise _OutOfOrderError
            self.rows.at += len(expected)


@dataclass(frozen=True, slots=True, eq=False)
class _TableFile:
    """A published table, or that of its intervals."""

    path: Path
    table: RedistrictingTable
    kinds: Sequence[Areas]
    form: NumberForm

    def open(self, opening: _Opening) -> "Sequence[_Section]":
        columns = self.table.variables if self.form.shown else self.table.ends
        all_rows = _open(opening, self.path, ("SUMLEV", "GEOCODE", *columns))
        kinds = {kind.name: kind for kind in self.kinds}
        levels = levels_of(kinds)
        cuts = _cuts(all_rows, list(levels.values()))
        return [
            _OfKind(self.table, kinds[name], level, self.form, _TextRows(all_rows.file, begin, end))
            for (name, level), begin, end in zip(levels.items(), cuts, cuts[1:], strict=False)
        ]


@dataclass(slots=True, eq=False)
class _OfKind:
    """The areas of one kind in a published table."""

    table: RedistrictingTable
    kind: Areas
    level: str
    form: NumberForm
    rows: _TextRows

    def compare(self, summed: Summed) -> None:
        for rows in table_rows(self.table, self.level, self.kind, *summed.areas[self.kind.name]):
            _compare_rows(self.rows, *rows.heads, rows.values(), self.form)


_Section: TypeAlias = _CountFile | _RecordFile | _OfKind
"""Rows that parts of the blocks add to; each compares what a part adds, and goes on behind it."""

_Expected: TypeAlias = _CountFile | _RecordFile | _TableFile
"""A file, and what it should hold, in sections; each part of the blocks adds to all of them."""


def _cuts(rows: _TextRows, levels: Sequence[str]) -> list[int]:
    """Where the rows of each summary level begin, if they stand in this order; and where the last ends."""
    rank = {level.encode(): place for place, level in enumerate(levels)}
    read = rows.file.fileno()

    def next_line(at: int) -> int:
        if at == rows.at:
            return at
        # Rows are short, but for tables of thousands of variables.
        for size in (_LINE_AT_MOST >> 8, _LINE_AT_MOST):
            if (found := os.pread(read, size, at - 1).find(b"\n")) >= 0:
                return at + found
        return rows.end

    def rank_at(line: int) -> int:
        level, bar, _ = os.pread(read, _LEVEL_AT_MOST, line).partition(b"|")
        if not bar or level not in rank:
            raise _OutOfOrderError
        return rank[level]

    cuts = [rows.at]
    for place in range(1, len(levels)):
        low, high = cuts[-1], rows.end
        while low < high:
            middle = (low + high) // 2
            line = next_line(middle)
            if line >= rows.end or rank_at(line) >= place:
                high = middle
            else:
                low = line + 1
        cuts.append(next_line(low) if low < rows.end else rows.end)
    return [*cuts, rows.end]


def as_written(spine: Spine) -> Spine:
    """The same spine with the units that a bypass made of one in the order of their numbers, 10 after 9."""
    if not any("-" in label for level in spine.levels for label in level.names):
        return spine
    tree = spine.tree
    place = np.zeros(1, dtype=np.int32)
    parents, levels = [], []
    for level, parent in zip(spine.levels, tree.parents, strict=True):
        keys = level.code
        if level.names:
            parts = [label.partition("-") for label in level.labels()]
            known = {code: number for number, code in enumerate(sorted({code for code, _, _ in parts}))}
            keys = np.array([known[code] * len(parts) + int(number or 0) for code, _, number in parts])
        order = np.lexsort((keys, place[parent]))
        levels.append(Geolevel.whole(level.name, level.width, level.code[order], names=level.names))
        parents.append(place[parent[order]])
        place = np.empty(len(order), dtype=np.int32)
        place[order] = np.arange(len(order))
    return Spine(Tree(tree.names, tuple(parents)), tuple(levels))


@dataclass(frozen=True, slots=True, eq=False)
class _WrittenBlocks:
    """Counts of the blocks of a release, read part by part in the order of its spine."""

    folder: Path  # the release
    schema: Schema
    spine: Spine  # whose blocks have 16 digits

    @property
    def units(self) -> int:
        """How many blocks there are."""
        return len(self.spine.blocks)

    def __iter__(self) -> Iterator[Stretch]:
        """The place of the first block of each part, and the counts of the part."""
        place = np.argsort(self.spine.blocks)
        known = self.spine.blocks[place]
        done = 0
        kept: Entries = (known[:0], known[:0], known[:0])
        for codes, cells, counts in self._rows():
            at = positions(codes.astype(np.int64), known)
            if bool((at < 0).any()) or bool((cells < 0).any()) or bool((counts <= 0).any()):
                raise _OutOfOrderError
            unit, cell, count = together([kept, (place[at], cells, counts)])
            key = unit * self.schema.cells + cell
            if bool((key[1:] <= key[:-1]).any()) or int(unit[0]) < done:
                raise _OutOfOrderError
            # More rows of the last block may follow.
            last = int(np.searchsorted(unit, unit[-1]))
            yield done, _part((unit[:last], cell[:last], count[:last]), done, int(unit[-1]))
            done, kept = int(unit[-1]), (unit[last:], cell[last:], count[last:])
        yield done, _part(kept, done, self.units)

    def _rows(self) -> Iterator[Entries]:
        """Codes of blocks, cells and counts, some rows at a time."""
        stem = self.folder / COUNTS / self.spine.tree.names[-1]
        with ExitStack() as stack:
            opening = _Opening(stack, stack.enter_context(open_database()))
            if _is_stored(stem):
                unit = f"coalesce({code_of(BLOCK_WIDTH)}, -1)"
                stored = _open_counts(opening, stem, self.schema, unit, ())
                while stored.at < stored.end:
                    codes, cells, counts = stored.take(min(_ROWS_AT_ONCE, stored.end - stored.at))
                    yield codes, cells, counts
                return
            rows = _open(opening, stem.with_name(f"{stem.name}.csv"), ("geounit", *self.schema.names, "count"))
            while rows.at < rows.end:
                text = os.pread(rows.file.fileno(), _BYTES_AT_ONCE, rows.at)
                text = text[: text.rfind(b"\n") + 1]
                found = parse_counts(np.frombuffer(text, dtype=np.uint8), text.count(b"\n"), BLOCK_WIDTH, self.schema)
                if not text or found is None:
                    raise _OutOfOrderError
                rows.at += len(text)
                yield found


def _part(entries: Entries, first: int, stop: int) -> Histogram:
    """Entries in order as counts of the units from the first on."""
    unit, cell, count = entries
    starts = np.searchsorted(unit, np.arange(first, stop + 1))
    return Histogram(starts.astype(np.int64), cell.astype(np.int32, copy=False), count.astype(np.int64, copy=False))
