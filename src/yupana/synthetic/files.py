"""The files of a synthetic census: which columns they have, and how whole numbers become text or Parquet; and its map.

Whoever draws a census hands over arrays of whole numbers, a chunk of rows at a time, and each column knows how its
numbers are written. Both forms hold the same records in the order in which they came, in memory that does not grow.
The map shows blocks of a synthetic state as squares along Hilbert's curve, and the areas that they make up.
"""

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from yupana.files import columns
from yupana.files.columns import (
    GEO,
    HOUSEHOLD_RECORDS,
    MAFID,
    PERSON_RECORDS,
    PERSONS,
    UNITS,
    Column,
    RecordFile,
)
from yupana.files.database import open_database, quoted, source_of

Whole: TypeAlias = NDArray[np.integer] | NDArray[np.bool_]

_TEXT = "FORMAT csv, DELIMITER '|', HEADER"
_PARQUET = "FORMAT parquet, COMPRESSION zstd"
_DATABASE_MEMORY = 2_000_000_000  # bytes; it would take most of the machine for a large census


Append: TypeAlias = Callable[[RecordFile, Sequence[Whole]], None]
"""Appends rows to a file: one array for each column, all of shape (rows,)."""

QUARTERS: Final = RecordFile("quarters", "group quarters", (MAFID, Column("QGQTYP", range(1000), 3)))
"""The type of each group quarters, which PHSafe's units do not tell, but the CEF's."""

RECORDS: Final = (PERSONS, UNITS, GEO, PERSON_RECORDS, HOUSEHOLD_RECORDS, QUARTERS)
"""The files of records. Those of blocks, below, are public and always text."""

# SafeTab ignores what follows its six columns; the spines read them, and the CEF's units name the last.
REFERENCE: Final = replace(
    columns.REFERENCE,
    columns=(
        *columns.REFERENCE.columns,
        *(GEO["TABBLKGRPCE"], Column("COUSUBFP", range(100_000), 5)),
        *(GEO["REGIONCE"], GEO["DIVISIONCE"], Column("OIDTABBLK", range(10**16), 22)),
    ),
)
_STANDING: Final = (Column("block", range(10**16), 16), columns.HOUSING_UNITS["housing_units"])
HOUSING_UNITS: Final = replace(columns.HOUSING_UNITS, columns=_STANDING)
MAJOR_TYPES: Final = 7
GROUP_QUARTERS: Final = RecordFile(
    "group_quarters",
    "block",
    (*_STANDING, *(Column(f"gq{major}", range(1 << 31)) for major in range(1, MAJOR_TYPES + 1))),
)
BLOCKS: Final = (REFERENCE, HOUSING_UNITS, GROUP_QUARTERS)


def _written(column: Column) -> str:
    """SQL for what is written of a column of whole numbers: words, digits, or in Parquet integers."""
    number = f"{column.name}::INTEGER"
    if column.words:
        return f"CASE {number} {' '.join(f'WHEN {at} THEN {quoted(of)}' for at, of in enumerate(column.words))} END"
    digits = f"lpad({column.name}::VARCHAR, {column.width}, '0')"
    if column.blank:
        return f"CASE {column.name} WHEN 0 THEN {quoted(column.blank)} ELSE {digits} END"
    return number if column.width is None else digits


@contextmanager
def written_files(
    folder: Path, tables: Sequence[RecordFile], fmt: Literal["csv", "parquet"] = "csv"
) -> Iterator[Append]:
    """Open files for appending, one for each table, which are complete when the context ends.

    Text has a header and ``|`` between columns; in Parquet codes are text. Numbers are kept in small files meanwhile,
    compressed: 13 bytes for a person with all that belongs to it. They become text on the way into the one file,
    because rows of text would be far more work to write twice.
    """
    parts = folder / "parts"
    parts.mkdir()
    written: dict[str, list[Path]] = {table.name: [] for table in tables}
    with open_database(memory=_DATABASE_MEMORY, spill=parts / "spill") as db:

        def append(table: RecordFile, values: Sequence[Whole]) -> None:
            path = parts / f"{table.name}-{len(written[table.name])}.parquet"
            db.register("rows_now", dict(zip(table.header, map(np.ascontiguousarray, values), strict=True)))
            db.execute(f"COPY rows_now TO {quoted(str(path))} ({_PARQUET})")
            db.unregister("rows_now")
            written[table.name].append(path)

        yield append

        for table in tables:
            rows = ", ".join(f"{_written(column)} AS {column.name}" for column in table.columns)
            here = ", ".join(map(source_of, written[table.name]))
            ending, form = (table.endings[0], _TEXT) if fmt == "csv" else (fmt, _PARQUET)
            place = quoted(str(folder / f"{table.name}.{ending}"))
            db.execute(f"COPY (SELECT {rows} FROM read_parquet([{here}])) TO {place} ({form})")
            for path in written[table.name]:
                path.unlink()
    shutil.rmtree(parts)


Point = tuple[int, int]

_SOUTH_WEST: Final = (-71.9, 41.3)
_SIDE: Final = 0.01
"""Degrees; of a block."""


def outlines(areas: Sequence[str]) -> dict[str, Any]:
    """Draw areas as GeoJSON, each where its blocks come on the curve: a stretch of blocks hangs together.

    Parameters
    ----------
    areas : sequence of str
        The area of each block, in the order of the blocks.
    """
    squares: dict[str, list[Point]] = {}
    side = 1
    while side * side < len(areas):
        side *= 2
    for place, area in enumerate(areas):
        squares.setdefault(area, []).append(along(place, side))
    features = [
        {
            "type": "Feature",
            "properties": {"GEOID": area},
            "geometry": {"type": "MultiPolygon", "coordinates": [[list(map(_degrees, ring))] for ring in rings(of)]},
        }
        for area, of in squares.items()
    ]
    return {"type": "FeatureCollection", "features": features}


def along(place: int, side: int) -> Point:
    """The square at a place of Hilbert's curve through a field of side * side squares, a power of two."""
    x = y = 0
    step = 1
    while step < side:
        right = 1 & (place // 2)
        up = 1 & (place ^ right)
        if not up:
            if right:
                x, y = step - 1 - x, step - 1 - y
            x, y = y, x
        x, y = x + step * right, y + step * up
        place //= 4
        step *= 2
    return x, y


def rings(squares: Iterable[Point]) -> list[list[Point]]:
    """The closed lines about unit squares, told by their lower left corners."""
    edges: set[tuple[Point, Point]] = set()
    for x, y in squares:
        corners = [(x, y), (x + 1, y), (x + 1, y + 1), (x, y + 1)]
        for edge in zip(corners, [*corners[1:], corners[0]], strict=True):
            # What two squares share is gone along twice, once in each direction.
            if edge[::-1] in edges:
                edges.remove(edge[::-1])
            else:
                edges.add(edge)
    onward: dict[Point, list[Point]] = {}
    for start, stop in sorted(edges):
        onward.setdefault(start, []).append(stop)
    found = []
    while onward:
        ring = [next(iter(onward))]
        while len(ring) == 1 or ring[-1] != ring[0]:
            stops = onward[ring[-1]]
            following = stops.pop()
            if not stops:
                del onward[ring[-1]]
            ring.append(following)
        found.append(ring)
    return found


def _degrees(point: Point) -> list[float]:
    return [round(corner + _SIDE * number, 6) for corner, number in zip(_SOUTH_WEST, point, strict=True)]
