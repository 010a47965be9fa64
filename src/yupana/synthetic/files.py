"""The files of a synthetic census: which columns they have, and how whole numbers become text or Parquet; and its map.

Whoever draws a census hands over arrays of whole numbers, a chunk of rows at a time, and each column knows how its
numbers are written. Both forms hold the same records in the order in which they came, in memory that does not grow.
The map shows blocks of a synthetic state as squares along Hilbert's curve, and the areas that they make up.
"""

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from yupana.files.database import open_database, quoted, source_of
from yupana.synthetic.race import MOST_CODES

Whole: TypeAlias = NDArray[np.integer] | NDArray[np.bool_]

_TEXT = "FORMAT csv, DELIMITER '|', HEADER"
_PARQUET = "FORMAT parquet, COMPRESSION zstd"
_DATABASE_MEMORY = 2_000_000_000  # bytes; it would take most of the machine for a large census


@dataclass(frozen=True, slots=True)
class WrittenColumn:
    """A column: its name, and SQL for what is written of a whole number, ``{}``."""

    name: str
    sql: str


@dataclass(frozen=True, slots=True)
class WrittenTable:
    """A file: its name, how it ends as text, its columns."""

    name: str
    ending: str
    columns: tuple[WrittenColumn, ...]


Append: TypeAlias = Callable[[WrittenTable, Sequence[Whole]], None]
"""Appends rows to a table: one array for each column, all of shape (rows,)."""


def _number(name: str) -> WrittenColumn:
    """Numbers from 0 on, integers in Parquet."""
    return WrittenColumn(name, "{}::INTEGER")


def _code(name: str, width: int) -> WrittenColumn:
    """Codes of so many digits."""
    return WrittenColumn(name, f"lpad({{}}::VARCHAR, {width}, '0')")


_BLOCK: Final = (_code("TABBLKST", 2), _code("TABBLKCOU", 3), _code("TABTRACTCE", 6), _code("TABBLK", 4))
_GROUP, _REGION, _DIVISION = (_code(name, 1) for name in ("TABBLKGRPCE", "REGIONCE", "DIVISIONCE"))
_PLACE, _TRIBAL = _code("PLACEFP", 5), _code("AIANNHCE", 4)


_MAFID: Final = _number("MAFID")
"""Every one has nine digits."""


def _answer(name: str) -> WrittenColumn:
    """Race and ethnicity codes, 0 for none."""
    return WrittenColumn(name, "CASE {0} WHEN 0 THEN 'Null' ELSE {0}::VARCHAR END")


_ANSWERS: Final = tuple(_answer(name) for name in (*(f"QRACE{number}" for number in range(1, MOST_CODES + 1)), "QSPAN"))

PERSONS: Final = WrittenTable(
    "persons",
    "csv",
    (
        *(_code("RTYPE", 1), _MAFID, _number("QAGE"), _number("CENHISP")),
        *(_code("CENRACE", 2), _code("RELSHIP", 2)),
    ),
)
UNITS: Final = WrittenTable(
    "units",
    "csv",
    (
        *(_code("RTYPE", 1), _MAFID, _number("FINAL_POP"), _number("NPF"), _number("HHSPAN")),
        *(_code("HHRACE", 2), _code("TEN", 1), _code("HHT", 1), _code("HHT2", 2), _code("CPLT", 1)),
    ),
)
GEO: Final = WrittenTable(
    "geo", "csv", (_code("RTYPE", 1), _MAFID, *_BLOCK, _GROUP, _REGION, _DIVISION, _PLACE, _TRIBAL)
)
PERSON_RECORDS: Final = WrittenTable(
    "person-records",
    "txt",
    (
        _number("QAGE"),
        _code("QSEX", 1),
        WrittenColumn("HOUSEHOLDER", "CASE WHEN {} THEN 'True' ELSE 'False' END"),
        *_BLOCK,
        _code("CENRACE", 2),
        *_ANSWERS,
    ),
)
HOUSEHOLD_RECORDS: Final = WrittenTable(
    "household-records", "txt", (*_BLOCK, _code("HHRACE", 2), *_ANSWERS, _code("HOUSEHOLD_TYPE", 1), _code("TEN", 1))
)
QUARTERS: Final = WrittenTable("quarters", "csv", (_MAFID, _code("QGQTYP", 3)))
"""The type of each group quarters, which PHSafe's units do not tell, but the CEF's."""

RECORDS: Final = (PERSONS, UNITS, GEO, PERSON_RECORDS, HOUSEHOLD_RECORDS, QUARTERS)
"""The files of records. Those of blocks, below, are public and always text."""

# SafeTab ignores what follows its six columns; the spines read them, and the CEF's units name the last.
REFERENCE: Final = WrittenTable(
    "GRF-C",
    "txt",
    (*_BLOCK, _PLACE, _TRIBAL, _GROUP, _code("COUSUBFP", 5), _REGION, _DIVISION, _code("OIDTABBLK", 22)),
)
_LONG_BLOCK: Final = _code("block", 16)
HOUSING_UNITS: Final = WrittenTable("housing-units", "txt", (_LONG_BLOCK, _number("housing_units")))
MAJOR_TYPES: Final = 7
GROUP_QUARTERS: Final = WrittenTable(
    "group_quarters",
    "csv",
    (_LONG_BLOCK, _number("housing_units"), *(_number(f"gq{major}") for major in range(1, MAJOR_TYPES + 1))),
)
BLOCKS: Final = (REFERENCE, HOUSING_UNITS, GROUP_QUARTERS)


@contextmanager
def written_files(
    folder: Path, tables: Sequence[WrittenTable], fmt: Literal["csv", "parquet"] = "csv"
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

        def append(table: WrittenTable, columns: Sequence[Whole]) -> None:
            path = parts / f"{table.name}-{len(written[table.name])}.parquet"
            names = [column.name for column in table.columns]
            db.register("rows_now", dict(zip(names, map(np.ascontiguousarray, columns), strict=True)))
            db.execute(f"COPY rows_now TO {quoted(str(path))} ({_PARQUET})")
            db.unregister("rows_now")
            written[table.name].append(path)

        yield append

        for table in tables:
            rows = ", ".join(f"{column.sql.format(column.name)} AS {column.name}" for column in table.columns)
            here = ", ".join(map(source_of, written[table.name]))
            ending, form = (table.ending, _TEXT) if fmt == "csv" else (fmt, _PARQUET)
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
