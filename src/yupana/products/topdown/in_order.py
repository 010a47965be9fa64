"""Whether files of a release hold what the counts of its blocks say, in the order in which they are written. Public.

They are read side by side, part by part of the blocks, so that what is held follows a part. What is not in order is not
wrong: `yupana.products.topdown.verify` then reads it in any order and tells what is wrong with it, if something is.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, Final

import duckdb
import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Ints
from yupana.files.database import named, open_database, source_of
from yupana.files.delimited import PARQUET, column_types, parquet_rows, positions
from yupana.files.regular import must_be_regular, regular
from yupana.geography.kinds import BLOCK_WIDTH
from yupana.geography.published import Areas
from yupana.geography.spine import Geolevel, Spine
from yupana.geography.tree import Tree
from yupana.products.topdown.outputs import workers
from yupana.products.topdown.rows import (
    CountRows,
    CountSection,
    Records,
    Rows,
    RowsFile,
    Section,
    TableSection,
    count_file,
)
from yupana.products.topdown.tables import COUNTS
from yupana.products.topdown.verify import cell_of, code_of, codes_of
from yupana.topdown.histogram import (
    BlockParts,
    Entries,
    Histogram,
    Stretch,
    Summed,
    sums_in_parts,
    together,
)
from yupana.topdown.queries import Schema
from yupana.topdown.text_rows import NumberForm, match_rows, most_bytes, parse_counts
from yupana.topdown.tree.least_squares import Bounds

_BYTES_AT_ONCE: Final = 1 << 24
_ROWS_AT_ONCE: Final = 1 << 18
_LINE_AT_MOST: Final = 1 << 20
_LEVEL_AT_MOST: Final = 1 << 10
_LARGER_ENDS: Final = (2, 16)
"""How many digits more than the numbers the ends of intervals are taken to have at most, and if that does not do."""


class OutOfOrderError(Exception):
    """A file that is not what would have been written, or is in another order."""


_UNREADABLE: Final = (OutOfOrderError, OSError, ValueError, duckdb.Error)


def unlike(blocks: BlockParts, kinds: Sequence[Areas], files: Iterable[RowsFile]) -> list[RowsFile]:
    """The files that do not hold what they should, no more and no less, in this order.

    Parameters
    ----------
    kinds : sequence of Areas
        Of these blocks, each after the kind that it adds up.

    Raises
    ------
    OutOfOrderError
        If the counts of the blocks cannot be read as they stand.
    """
    with ExitStack() as stack, ThreadPoolExecutor(workers()) as pool:
        db = stack.enter_context(open_database())
        read = {file: _sections(stack, db, file) for file in files}
        running: list[Future[None]] = []
        try:
            for summed in sums_in_parts(blocks, kinds):
                # The next part is added up while this one is compared.
                _wait(running)
                running = [pool.submit(section.go_on, summed) for of_file in read.values() for section in of_file]
        except _UNREADABLE:
            raise OutOfOrderError from None
        finally:
            _wait(running)
        return [file for file, of_file in read.items() if not of_file or not all(one.holds for one in of_file)]


def _wait(running: Iterable[Future[None]]) -> None:
    for one in running:
        one.result()


@dataclass(slots=True, eq=False)
class _TextRows:
    """The rows of a file from one place to another, of which some were compared."""

    file: BinaryIO
    at: int
    end: int

    def hold(self, rows: Rows, form: NumberForm) -> bool:
        """Go on behind rows if they stand here."""
        used = -1
        if isinstance(rows, Records):
            expected = rows.text().tobytes()
            used = len(expected) if self._next(len(expected)) == expected else -1
        else:
            first, second, numbers = rows.columns
            for more in _LARGER_ENDS if form.bounded else (0,):
                text = np.frombuffer(self._next(most_bytes(first, second, numbers, form, more)), dtype=np.uint8)
                used = match_rows(text, first, second, numbers, form)
                if used >= 0:
                    break
        self.at += max(used, 0)
        return used >= 0

    def _next(self, most: int) -> bytes:
        return os.pread(self.file.fileno(), min(most, self.end - self.at), self.at)


@dataclass(slots=True, eq=False)
class _StoredRows:
    """The rows of a file of Parquet, of which some were compared."""

    db: duckdb.DuckDBPyConnection
    query: str
    labels: NDArray[Any]  # what the query says of each unit
    end: int
    at: int = 0

    def take(self, number: int) -> list[Ints]:
        """The next rows, by column, and go on behind them."""
        here = f"file_row_number >= {self.at} AND file_row_number < {self.at + number}"
        found = self.db.execute(f"{self.query} WHERE {here} ORDER BY file_row_number").fetchnumpy()
        self.at += number
        return list(found.values())

    def hold(self, rows: Rows, form: NumberForm) -> bool:
        """Go on behind rows, of counts, if they stand here."""
        if not isinstance(rows, CountRows):
            return False
        unit, cell, count, *ends = self.take(rows.number)
        expected = self.labels[rows.area], rows.cells, rows.numbers[:, 0]
        same = all(map(np.array_equal, (unit, cell, count), expected))
        if same and form.bounded:
            lower, upper, margin = ends
            same = bool(((lower >= 0) & (lower <= upper)).all())
            same = same and np.array_equal(margin, Bounds(lower, upper).margins)
        return same


def _open(stack: ExitStack, db: duckdb.DuckDBPyConnection, file: RowsFile) -> _TextRows | _StoredRows:
    """The rows of a file, which a stack closes."""
    (section, *_) = file.sections
    if isinstance(section, CountSection) and file.path.with_suffix(PARQUET).exists():
        if file.path.exists():
            raise OutOfOrderError
        return _open_counts(db.cursor(), file, section)
    text = stack.enter_context(open(file.path, "rb", opener=regular))  # noqa: SIM115 (the stack closes it)
    header = "|".join(file.columns).encode() + b"\n"
    if text.read(len(header)) != header:
        raise OutOfOrderError
    return _TextRows(text, len(header), os.fstat(text.fileno()).st_size)


def _open_counts(db: duckdb.DuckDBPyConnection, file: RowsFile, section: CountSection) -> _StoredRows:
    """The rows of a file of Parquet: units as numbers if they can be, cells, and numbers; -1 for what is none."""
    stored = file.path.with_suffix(PARQUET)
    must_be_regular(stored)
    schema, labels = section.schema, section.kind.labels
    if tuple(column_types(db, parquet_rows([stored]))) != file.columns:
        raise OutOfOrderError
    if (codes := codes_of(labels)) is not None:
        unit, known = f"coalesce({code_of(labels.itemsize)}, -1)", codes
    else:
        unit, known = "coalesce(geounit, '')", np.char.decode(labels, "utf-8").astype(object)
    cell = cell_of(schema.attributes)
    numbers = (f"coalesce(TRY_CAST({named(name)} AS BIGINT), -1)" for name in file.columns[1 + len(schema.names) :])
    columns = ", ".join(f"{sql} AS c{place}" for place, sql in enumerate((unit, f"coalesce({cell}, -1)", *numbers)))
    source = f"read_parquet({source_of(stored)}, hive_partitioning = false, file_row_number = true)"
    ((rows,),) = db.execute(f"SELECT count(*) FROM {source}").fetchall()
    return _StoredRows(db, f"SELECT {columns} FROM {source}", known, rows)


@dataclass(slots=True, eq=False)
class _SectionRead:
    """A section of a file, and the rows that should be its."""

    section: Section
    rows: _TextRows | _StoredRows
    form: NumberForm
    same: bool = True  # whether those before are

    @property
    def holds(self) -> bool:
        """Whether all rows are those of the section."""
        return self.same and self.rows.at == self.rows.end

    def go_on(self, summed: Summed) -> None:
        """Go on behind the rows that a part of the blocks adds."""
        try:
            self.same = self.same and all(self.rows.hold(rows, self.form) for rows in self.section.rows(summed))
        except _UNREADABLE:
            self.same = False


def _sections(stack: ExitStack, db: duckdb.DuckDBPyConnection, file: RowsFile) -> list[_SectionRead]:
    """The sections of a file; none if it cannot be read."""
    try:
        rows = _open(stack, db, file)
        if isinstance(rows, _StoredRows):
            return [_SectionRead(section, rows, file.form) for section in file.sections]
        cuts = _cuts(rows, [section.level if isinstance(section, TableSection) else "" for section in file.sections])
    except _UNREADABLE:
        return []
    return [
        _SectionRead(section, _TextRows(rows.file, begin, end), file.form)
        for section, (begin, end) in zip(file.sections, pairwise(cuts), strict=True)
    ]


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
            raise OutOfOrderError
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
class WrittenBlocks:
    """Counts of the blocks of a release, read part by part in the order of its spine."""

    folder: Path  # the release
    schema: Schema
    spine: Spine  # whose blocks have 16 digits

    def __iter__(self) -> Iterator[Stretch]:
        """The place of the first block of each part, and the counts of the part."""
        place = np.argsort(self.spine.blocks)
        known = self.spine.blocks[place]
        done = 0
        kept: Entries = (known[:0], known[:0], known[:0])
        for codes, cells, counts in self._rows():
            at = positions(codes.astype(np.int64), known)
            if bool((at < 0).any()) or bool((cells < 0).any()) or bool((counts <= 0).any()):
                raise OutOfOrderError
            unit, cell, count = together([kept, (place[at], cells, counts)])
            key = unit * self.schema.cells + cell
            if bool((key[1:] <= key[:-1]).any()) or int(unit[0]) < done:
                raise OutOfOrderError
            # More rows of the last block may follow.
            last = int(np.searchsorted(unit, unit[-1]))
            yield done, _part((unit[:last], cell[:last], count[:last]), done, int(unit[-1]))
            done, kept = int(unit[-1]), (unit[last:], cell[last:], count[last:])
        yield done, _part(kept, done, len(self.spine.blocks))

    def _rows(self) -> Iterator[Entries]:
        """Codes of blocks, cells and counts, some rows at a time."""
        nothing = np.zeros(0, dtype=np.int64)  # no row is compared with those of areas
        blocks = Areas(self.spine.tree.names[-1], nothing.astype(f"S{BLOCK_WIDTH}"), nothing, "")
        with ExitStack() as stack:
            db = stack.enter_context(open_database())
            rows = _open(stack, db, count_file(self.folder / COUNTS, self.schema, blocks))
            while rows.at < rows.end:
                if isinstance(rows, _StoredRows):
                    codes, cells, counts = rows.take(min(_ROWS_AT_ONCE, rows.end - rows.at))
                    yield codes, cells, counts
                    continue
                text = os.pread(rows.file.fileno(), _BYTES_AT_ONCE, rows.at)
                text = text[: text.rfind(b"\n") + 1]
                found = parse_counts(np.frombuffer(text, dtype=np.uint8), text.count(b"\n"), BLOCK_WIDTH, self.schema)
                if not text or found is None:
                    raise OutOfOrderError
                rows.at += len(text)
                yield found


def _part(entries: Entries, first: int, stop: int) -> Histogram:
    """Entries in order as counts of the units from the first on."""
    unit, cell, count = entries
    starts = np.searchsorted(unit, np.arange(first, stop + 1))
    return Histogram(starts.astype(np.int64), cell.astype(np.int32, copy=False), count.astype(np.int64, copy=False))
