"""All public files of a release but the spine and the manifest, from the final counts of blocks.

Files are made of pieces: each is made by whichever thread is free, and all are written in order.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from shutil import copyfileobj
from typing import Any, BinaryIO, Final, TypeVar

import duckdb

from yupana.arrays import Integers
from yupana.errors import ConfigError, OutputError
from yupana.files.database import open_database
from yupana.files.delimited import PARQUET
from yupana.geography.blocks import FACILITIES, write_facilities
from yupana.geography.gazetteer import AreaNames, write_names
from yupana.geography.kinds import BLOCKS_OF_COUNTY
from yupana.geography.published import Areas, PublishedBlocks, areas_of_spine, write_published
from yupana.geography.spine import Spine
from yupana.geography.spine_files import BLOCKS, GEOUNITS, write_blocks, write_geounits
from yupana.products.topdown.rows import (
    CountRows,
    CountSection,
    RowsFile,
    count_file,
    record_file,
    tabulated_files,
    unpack,
)
from yupana.products.topdown.tables import (
    BOUNDS,
    COUNTS,
    MICRODATA,
    SPINE,
    TABLES,
    RedistrictingTable,
    tables_of,
)
from yupana.release.tables import Format, describe, table_columns, write_parts
from yupana.topdown.histogram import BlockParts, PartsByCounty, sums_in_parts, whole
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


def write_spine(folder: Path, spine: Spine, facilities: Integers | None = None) -> dict[str, int]:
    """Write a spine and, if counts were made of them, the facilities of its blocks; return the rows of each file."""
    (folder / SPINE).mkdir()
    rows = {
        f"{SPINE}/{BLOCKS}": write_blocks(folder / SPINE, spine),
        f"{SPINE}/{GEOUNITS}": write_geounits(folder / SPINE, spine),
    }
    if facilities is not None:
        path = f"{SPINE}/{FACILITIES}"
        rows[path] = write_facilities(folder / path, spine.blocks, facilities)
    return rows


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
    units = areas_of_spine(spine)
    files = [count_file(folder / COUNTS, schema, kind) for kind in units]
    files += [record_file(folder, schema, spine, facilities, any_codes=published is None)] if microdata else []
    rows = _write(folder, files, units, parts, fmt, None)
    records = {MICRODATA: rows.pop(MICRODATA)} if microdata else {}
    if published is None:
        if intervals is not None:
            rows |= write_tabulation(folder, schema, units, parts, fmt, intervals(units))
        return rows | records
    areas = published.areas(spine.blocks)
    rows |= write_published(folder, published, fmt)
    if names is not None:
        rows |= write_names(folder, names, {kind.name: map(bytes.decode, kind.labels.tolist()) for kind in areas})
    by_county = PartsByCounty(parts, spine.blocks // BLOCKS_OF_COUNTY)
    found = None if intervals is None else intervals(areas)
    kinds = by_county.areas(areas)
    tabulated = write_tabulation(folder, schema, kinds, by_county, fmt, found, tables=tables_of(schema))
    tables = {path: number for path, number in tabulated.items() if path.startswith(TABLES)}
    return rows | {path: tabulated[path] for path in tabulated if path not in tables} | records | tables


def write_tabulation(
    folder: Path,
    schema: Schema,
    kinds: Sequence[Areas],
    parts: BlockParts,
    fmt: Format,
    intervals: CountIntervals | None = None,
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
    kinds : sequence of Areas
        Of the blocks of the parts, each kind after the one that it adds up.
    parts : BlockParts
        Final counts of the blocks that the areas are of.
    fmt : "csv" or "parquet"
        Of the tabulation; tables are text.

    Returns
    -------
    dict of str to int
        Rows, by the file's path within the folder.
    """
    bounded = intervals is not None
    files = tabulated_files(folder, schema, kinds, tables, bounded=bounded)
    # Intervals are found of all areas of a kind at once.
    return _write(folder, files, kinds, [(0, whole(parts))] if bounded else parts, fmt, intervals)


def _write(
    folder: Path,
    files: Sequence[RowsFile],
    kinds: Sequence[Areas],
    parts: BlockParts,
    fmt: Format,
    intervals: CountIntervals | None,
) -> dict[str, int]:
    """Write files that are made of the same parts of the blocks.

    Counts in Parquet are made when all are there: their rows are numbers before.
    """
    for place in {file.path.parent for file in files}:
        place.mkdir(exist_ok=True)
    packed = {
        file: (file.path.with_suffix(_PACKED), section)
        for file in files
        for section in file.sections
        if fmt == "parquet" and isinstance(section, CountSection)
    }

    def pieces() -> Iterator[FilePiece]:
        for file in files:
            yield FilePiece(packed[file][0], bytes, 0) if file in packed else header(file.path, file.columns)
        for summed in sums_in_parts(parts, kinds):
            for file in files:
                for number, section in enumerate(file.sections):
                    for rows in section.rows(summed, intervals if file.ends else None):
                        if file in packed and isinstance(rows, CountRows):
                            yield FilePiece(packed[file][0], rows.packed, rows.number)
                        else:
                            yield FilePiece(file.path, rows.text, rows.number, number)

    rows = write_in_order(pieces(), workers())
    with open_database(threads=1) as db:
        made = (partial(_store, file, *of, db.cursor()) for file, of in packed.items())
        stored = dict(zip((path for path, _ in packed.values()), in_order(made, workers()), strict=True))
    return {stored.get(path, path).relative_to(folder).as_posix(): number for path, number in rows.items()}


_PACKED: Final = ".packed"


def _store(file: RowsFile, packed: Path, section: CountSection, db: duckdb.DuckDBPyConnection) -> Path:
    """Make Parquet of the numbers of a kind of areas, and remove these."""
    parts = unpack(packed, section.kind.labels, section.schema, file.columns[1 + len(section.schema.names) :])
    made = write_parts(db, file.path.with_suffix(PARQUET), parts)
    packed.unlink()
    return made


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
