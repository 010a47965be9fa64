"""All public files of a release but the spine and the manifest, from the final counts of blocks.

Files are made of pieces: each is made by whichever thread is free, and all are written in order.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from shutil import copyfileobj
from typing import Any, BinaryIO, Final, TypeAlias, TypeVar

import duckdb
import numpy as np

from yupana.arrays import Integers, Ints
from yupana.errors import ConfigError, OutputError
from yupana.files.database import open_database
from yupana.files.delimited import PARQUET
from yupana.geography.gazetteer import AreaNames, write_names
from yupana.geography.kinds import BLOCKS_OF_COUNTY
from yupana.geography.published import Areas, PublishedBlocks, areas_of_spine, write_published
from yupana.geography.spine import Spine
from yupana.products.topdown.rows import (
    RecordForm,
    TableRows,
    count_rows,
    person_records,
    plain_records,
    records_of,
    table_rows,
    unit_records,
    unpack,
    with_quarters,
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
    counts_units,
    levels_of,
    tables_of,
)
from yupana.release.tables import Format, describe, table_columns, write_parts
from yupana.topdown.histogram import BlockParts, Histogram, PartsByCounty, Summed, one_part, sums_in_parts
from yupana.topdown.intervals import CountIntervals, FindsIntervals
from yupana.topdown.queries import Schema
from yupana.topdown.text_rows import Bytes

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class FilePiece:
    """Some rows of a file."""

    path: Path  # the file
    # makes the text of the rows; a function of what it was made with, so that any thread may call it
    make: Callable[[], Bytes | bytes]
    rows: int
    # which section of the file they belong to. Pieces of one section are there in order, sections in any.
    section: int = 0


def header(path: Path, columns: Sequence[str]) -> FilePiece:
    """The line that names the columns of a file."""
    return FilePiece(path, partial(bytes, "|".join(columns).encode() + b"\n"), 0)


def workers() -> int:
    """How many threads make pieces, or read them."""
    return os.cpu_count() or 1


def in_order(work: Iterable[Callable[[], T]], threads: int) -> Iterator[T]:
    """What each call returns, in order; some are made ahead, so that no thread waits, and not more.

    An error of one is raised in its turn, and none that had not begun is made then.
    """
    with ThreadPoolExecutor(threads) as pool:
        calls = iter(work)
        running: deque[Future[T]] = deque(pool.submit(call) for call in islice(calls, 2 * threads))
        try:
            while running:
                yield running.popleft().result()
                running.extend(pool.submit(call) for call in islice(calls, 1))
        finally:
            for call in running:
                call.cancel()


def write_in_order(pieces: Iterable[FilePiece], threads: int) -> dict[Path, int]:
    """Write files of pieces, and return the rows of each.

    Parameters
    ----------
    pieces : iterable of FilePiece
        Asked for as they can be made, so that few are in memory.

    Raises
    ------
    OSError
        If a file cannot be written.
    OutputError
        If others have cut one short.
    """
    rows: dict[Path, int] = {}
    sections: dict[tuple[Path, int], BinaryIO] = {}

    def texts() -> Iterator[Callable[[], tuple[FilePiece, Any]]]:
        for piece in pieces:
            yield lambda piece=piece: (piece, piece.make())  # type: ignore[misc]

    def written() -> Iterator[Callable[[], int]]:
        for piece, text in in_order(texts(), threads):
            key = piece.path, piece.section
            if key not in sections:
                # The first section of a file is the file; others stand beside it until all are there.
                name = f"{piece.path.name}.{piece.section}" if piece.section else piece.path.name
                sections[key] = stack.enter_context(piece.path.with_name(name).open("w+b"))
            yield partial(sections[key].write, text)
            rows[piece.path] = rows.get(piece.path, 0) + piece.rows

    with ExitStack() as stack:
        # One thread writes while this one goes on to the next pieces.
        deque(in_order(written(), 1), 0)
        behind: dict[Path, list[BinaryIO]] = {}
        for (path, section), file in sorted(sections.items()):
            file.flush()
            if section:
                behind.setdefault(path, []).append(file)
        appended = (partial(_append, sections[path, 0], others) for path, others in behind.items())
        deque(in_order(appended, threads), 0)
    return rows


def _append(file: BinaryIO, others: Iterable[BinaryIO]) -> None:
    """Put other files behind a file and remove them; what reads and writes holds no lock."""
    for other in others:
        end = file.tell() + os.fstat(other.fileno()).st_size
        other.seek(0)
        copyfileobj(other, file, _CHUNK)
        if file.tell() != end:
            raise OutputError(f"{other.name} was cut short by others while it was copied; keep them away from it")
        Path(other.name).unlink()
    file.flush()


_CHUNK: Final = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class TabulatedAreas:
    """What is tabulated."""

    schema: Schema
    areas: list[Areas]  # of the blocks of the parts, each kind after the one that it adds up
    intervals: CountIntervals | None = None  # of all counts

    @property
    def ends(self) -> tuple[str, ...]:
        """The columns after each count."""
        return () if self.intervals is None else BOUNDS

    def ends_of_cells(self, kind: Areas, counts: Histogram) -> Sequence[Ints]:
        """What stands in these, of all counts of a kind of areas."""
        if self.intervals is None:
            return ()
        bounds = self.intervals.of_cells(kind, counts)
        return bounds.lower, bounds.upper, bounds.margins

    def ends_of_table(self, kind: Areas, rows: TableRows) -> Ints:
        """LOWER, UPPER and MOE of the variables of some rows, of shape (rows, 3 variables)."""
        if self.intervals is None:
            raise RuntimeError("there are no intervals")
        table = rows.table
        bounds = self.intervals.of_table(kind, table.member, table.size, rows.first, rows.first + len(rows.codes))
        return np.stack([bounds.lower, bounds.upper, bounds.margins], axis=2).reshape(len(rows.codes), -1)


def write_outputs(
    folder: Path,
    spine: Spine,
    published: PublishedBlocks | None,
    schema: Schema,
    parts: BlockParts,
    *,
    facilities: Integers | None = None,
    names: AreaNames | None = None,
    microdata: bool = True,
    fmt: Format = "csv",
    intervals: FindsIntervals | None = None,
) -> dict[str, int]:
    """Write counts, tabulation, microdata and, of the schemas of P.L. 94-171, the published tables.

    All is written part by part, and what is held follows the part and the number of areas. Intervals are made of all
    counts at once.

    Parameters
    ----------
    folder : Path
        Where the release is made.
    published : PublishedBlocks or None
        The blocks of the spine, and others perhaps, with the areas they lie in; None where the units of the spine are
        what is published.
    parts : BlockParts
        Final counts of the blocks of the spine, in its order.
    facilities : ndarray of integers, shape (blocks, 8), optional
        In the same order; housing units are listed with the group quarters beside them.
    names : mapping, optional
        Of areas.
    microdata : bool
        Whether records are written, too.
    fmt : "csv" or "parquet"
        Of counts, tabulation and areas; records and tables are text.
    intervals : callable, optional
        Makes ready what finds intervals of tabulation and tables. Where the units of the spine are what is published,
        their counts are then tabulated, too, with their intervals.

    Returns
    -------
    dict of str to int
        Rows, by the file's path within the folder.
    """
    units = TabulatedAreas(schema, areas_of_spine(spine))
    form = _RecordLayer(folder / MICRODATA, record_form(spine, schema), facilities if counts_units(schema) else None)
    rows = _write(folder, COUNTS, units, parts, fmt, [form] if microdata else [])
    records = {MICRODATA: rows.pop(MICRODATA)} if microdata else {}
    if published is None:
        if intervals is not None:
            rows |= write_tabulation(folder, replace(units, intervals=intervals(units.areas)), parts, fmt)
        return rows | records
    areas = published.areas(spine.blocks)
    rows |= write_published(folder, published, fmt)
    if names is not None:
        rows |= write_names(folder, names, {kind.name: map(bytes.decode, kind.labels.tolist()) for kind in areas})
    by_county = PartsByCounty(parts, spine.blocks // BLOCKS_OF_COUNTY)
    found = None if intervals is None else intervals(areas)
    tabulated = write_tabulation(
        folder, TabulatedAreas(schema, by_county.areas(areas), found), by_county, fmt, tables=tables_of(schema)
    )
    tables = {path: number for path, number in tabulated.items() if path.startswith(TABLES)}
    return rows | {path: tabulated[path] for path in tabulated if path not in tables} | records | tables


def write_tabulation(
    folder: Path,
    tabulated: TabulatedAreas,
    parts: BlockParts,
    fmt: Format,
    *,
    tables: Sequence[RedistrictingTable] = (),
) -> dict[str, int]:
    """Write tabulation/<kind> for all kinds of areas, without zeros, and published tables of all areas.

    With intervals each count is followed by LOWER, UPPER and MOE, and beside a table P1.csv stands P1_intervals.csv
    with those of each variable.

    Parameters
    ----------
    folder : Path
        Where the release is made.
    parts : BlockParts
        Final counts of the blocks that its areas are of.
    fmt : "csv" or "parquet"
        Of the tabulation; tables are text.

    Returns
    -------
    dict of str to int
        Rows, by the file's path within the folder.
    """
    layers = [_TableLayer(folder / TABLES, tabulated, tables)] if tables else []
    if tables:
        (folder / TABLES).mkdir()
    # Intervals are found of all areas of a kind at once.
    return _write(folder, TABULATION, tabulated, parts if tabulated.intervals is None else one_part(parts), fmt, layers)


def _write(
    folder: Path, name: str, tabulated: TabulatedAreas, parts: BlockParts, fmt: Format, others: Sequence["_Layer"]
) -> dict[str, int]:
    """Write a folder of counts, and other files that are made of the same parts of the blocks."""
    (folder / name).mkdir()
    counts = _CountLayer(folder / name, tabulated, fmt)
    layers: list[_Layer] = [counts, *others]

    def pieces() -> Iterator[FilePiece]:
        for layer in layers:
            yield from layer.headers()
        for summed in sums_in_parts(parts, tabulated.areas):
            for layer in layers:
                yield from layer.pieces(summed)

    rows = write_in_order(pieces(), workers())
    if fmt == "parquet":
        packed = [counts.path(kind) for kind in tabulated.areas]
        with open_database(threads=1) as db:
            stored = in_order((partial(counts.store, kind, db.cursor()) for kind in tabulated.areas), workers())
            made = dict(zip(packed, stored, strict=True))
        rows = {made.get(path, path): number for path, number in rows.items()}
    return {path.relative_to(folder).as_posix(): number for path, number in rows.items()}


@dataclass(frozen=True, slots=True, eq=False)
class _CountLayer:
    """A file of counts for each kind of areas: text, or numbers of which Parquet is made when all are there."""

    folder: Path
    tabulated: TabulatedAreas
    fmt: Format

    def headers(self) -> Iterator[FilePiece]:
        columns = ("geounit", *self.tabulated.schema.names, *self.numbers)
        for kind in self.tabulated.areas:
            path = self.path(kind)
            yield header(path, columns) if self.fmt == "csv" else FilePiece(path, bytes, 0)

    def pieces(self, summed: Summed) -> Iterator[FilePiece]:
        for kind in self.tabulated.areas:
            first, counts = summed.areas[kind.name]
            ends = self.tabulated.ends_of_cells(kind, counts)
            for rows in count_rows(kind.labels, self.tabulated.schema, first, counts, ends):
                yield FilePiece(self.path(kind), rows.text if self.fmt == "csv" else rows.packed, len(rows.cells))

    def store(self, kind: Areas, db: duckdb.DuckDBPyConnection) -> Path:
        """Make Parquet of the numbers of a kind of areas, and remove these."""
        packed = self.path(kind)
        parts = unpack(packed, kind.labels, self.tabulated.schema, self.numbers)
        made = write_parts(db, packed.with_suffix(PARQUET), parts)
        packed.unlink()
        return made

    @property
    def numbers(self) -> tuple[str, ...]:
        """The columns of whole numbers; the others are text."""
        return ("count", *self.tabulated.ends)

    def path(self, kind: Areas) -> Path:
        """Where the rows of a kind of areas are written as they come."""
        return self.folder / f"{kind.name}.{'csv' if self.fmt == 'csv' else 'packed'}"


@dataclass(slots=True, eq=False)
class _RecordLayer:
    """One record for each person or unit counted, in the order of blocks and cells."""

    path: Path
    form: RecordForm
    facilities: Integers | None
    before: int = 0

    def headers(self) -> Iterator[FilePiece]:
        yield header(self.path, self.form.columns)

    def pieces(self, summed: Summed) -> Iterator[FilePiece]:
        first, counts = summed.first, summed.counts
        if self.facilities is not None:
            counts = with_quarters(counts, self.facilities[first : first + counts.units])
        for records in records_of(self.form, first, counts, self.before):
            yield FilePiece(self.path, records.text, records.number)
            self.before += records.number


@dataclass(frozen=True, slots=True, eq=False)
class _TableLayer:
    """Published tables: a row for every area, with SUMLEV, GEOCODE and the variables."""

    folder: Path
    tabulated: TabulatedAreas
    tables: Sequence[RedistrictingTable]

    def headers(self) -> Iterator[FilePiece]:
        for table in self.tables:
            yield header(self._path(table), ("SUMLEV", "GEOCODE", *table.variables))
            if self.tabulated.intervals is not None:
                yield header(self._path(table, INTERVALS_OF), ("SUMLEV", "GEOCODE", *table.ends))

    def pieces(self, summed: Summed) -> Iterator[FilePiece]:
        kinds = {kind.name: kind for kind in self.tabulated.areas}
        levels = [(section, kinds[name], level) for section, (name, level) in enumerate(levels_of(kinds).items())]
        for table in self.tables:
            for section, kind, level in levels:
                for rows in table_rows(table, level, kind, *summed.areas[kind.name]):
                    yield FilePiece(self._path(table), rows.text, len(rows.codes), section)
            for section, kind, level in levels if self.tabulated.intervals is not None else ():
                for rows in table_rows(table, level, kind, *summed.areas[kind.name]):
                    text = partial(rows.text_of, self.tabulated.ends_of_table(kind, rows))
                    yield FilePiece(self._path(table, INTERVALS_OF), text, len(rows.codes), section)

    def _path(self, table: RedistrictingTable, more: str = "") -> Path:
        return self.folder / f"{table.name}{more}.csv"


_Layer: TypeAlias = _CountLayer | _RecordLayer | _TableLayer
"""Files of a release: their first lines, and what a part of the blocks adds to them."""


def record_form(spine: Spine, schema: Schema) -> RecordForm:
    """How the records of a schema are written."""
    if counts_persons(schema):
        return person_records(spine.blocks, schema)
    return unit_records(spine.blocks) if counts_units(schema) else plain_records(spine.levels[-1].texts(), schema)


def check_labels(schema: Schema) -> None:
    """Refuse names and labels that a table separated by ``|`` could not hold.

    Raises
    ------
    ConfigError
    """
    for attribute in schema.attributes:
        for text in (attribute.name, *attribute.labels):
            if not text or any(character in text for character in '|"\n\r\0'):
                raise ConfigError(
                    f"[schema] {attribute.name!r}: {text!r} cannot be written; a name or label must not be empty or "
                    'hold a line break, | or "'
                )
    # The database does not tell names apart that differ by case alone.
    names = ["block", "geounit", "count", *(end.lower() for end in BOUNDS), *(name.lower() for name in schema.names)]
    if len(set(names)) < len(names):
        raise ConfigError(
            f"[schema] {', '.join(schema.names)}: names must differ from each other and from block, geounit, count, "
            "lower, upper and moe"
        )


def describe_files(folder: Path, rows: dict[str, int]) -> dict[str, dict[str, Any]]:
    """What the manifest says of the files: by path, checksum, rows and columns."""

    def told(name: str) -> dict[str, Any]:
        path = folder / name
        table = path.with_suffix("").relative_to(folder).as_posix()
        return describe(table, path, rows[name], table_columns(path))

    # Checksums hold no lock.
    return dict(zip(rows, in_order((partial(told, name) for name in rows), workers()), strict=True))
