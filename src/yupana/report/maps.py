"""Boundaries of areas from the shapefiles that the Census Bureau publishes as TIGER/Line, zipped."""

import struct
import zipfile
from dataclasses import dataclass
from math import cos, radians
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from yupana.errors import InputError

_POLYGONS: Final = (5, 15, 25)
_IDENTIFIERS: Final = ("GEOID", "GEOID10", "GEOID20")
_FINEST: Final = 1200
"""Points to the width of a map: finer details are dropped."""

Ring = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Boundary:
    """An area on a map.

    Attributes
    ----------
    name : str
        Its GEOID.
    rings : tuple of ndarray of float
        Closed lines of shape (points, 2), east and north, in units of degrees of latitude.
    """

    name: str
    rings: tuple[Ring, ...]


def read_boundaries(path: Path) -> tuple[Boundary, ...]:
    """Read a zipped shapefile of polygons whose table has a column GEOID, GEOID10 or GEOID20.

    Raises
    ------
    InputError
        If it is no such file.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            shapes, rows = (_member(archive, suffix) for suffix in (".shp", ".dbf"))
        names = _identifiers(rows)
        polygons = _polygons(shapes)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or 'damaged'}") from None
    except (zipfile.BadZipFile, KeyError, ValueError, IndexError, struct.error, UnicodeDecodeError):
        raise InputError(
            f"{path} is no zipped shapefile of areas with a column GEOID; give TIGER/Line boundaries as published"
        ) from None
    if not polygons or len(names) != len(polygons):
        raise InputError(f"{path}: the shapefile holds {len(polygons)} areas and its table names {len(names)}")
    points = np.concatenate([ring for rings in polygons for ring in rings])
    # Degrees of longitude are shorter than those of latitude; in one map the same factor serves.
    scale = np.array([cos(radians(float(points[:, 1].mean()))), 1.0])
    step = float(((points.max(axis=0) - points.min(axis=0)) * scale).max()) / _FINEST or 1.0
    return tuple(
        Boundary(name, tuple(_simplify(ring * scale, step) for ring in rings))
        for name, rings in zip(names, polygons, strict=True)
    )


def _member(archive: zipfile.ZipFile, suffix: str) -> bytes:
    return archive.read(next(iter([n for n in archive.namelist() if n.lower().endswith(suffix)]), suffix))


def _identifiers(table: bytes) -> list[str]:
    """The GEOIDs of a dBase table."""
    number, header, width = struct.unpack("<4xIHH", table[:12])
    at = 1  # the first byte of a row marks deletions
    for field in range(32, header - 1, 32):
        name = table[field : field + 11].split(b"\0")[0].decode()
        length = table[field + 16]
        if name in _IDENTIFIERS:
            rows = (table[header + width * i :][:width] for i in range(number))
            return [row[at : at + length].decode().strip() for row in rows]
        at += length
    raise ValueError("no column of identifiers")


def _polygons(shapes: bytes) -> list[list[Ring]]:
    """The rings of each polygon of a shapefile."""
    found = []
    at = 100
    while at < len(shapes):
        (words,) = struct.unpack(">4xI", shapes[at : at + 8])
        record = shapes[at + 8 : at + 8 + 2 * words]
        (kind,) = struct.unpack("<I", record[:4])
        if kind not in _POLYGONS:
            raise ValueError("not polygons")
        parts, points = struct.unpack("<2I", record[36:44])
        starts = np.frombuffer(record, "<i4", parts, 44).tolist()
        line = np.frombuffer(record, "<f8", 2 * points, 44 + 4 * parts).reshape(-1, 2)
        found.append([line[a:b] for a, b in zip(starts, [*starts[1:], points], strict=True)])
        at += 8 + 2 * words
    return found


def _simplify(ring: Ring, step: float) -> Ring:
    """Leave out points that fall on the one before in a grid of the step."""
    grid = np.round(ring / step)
    kept: NDArray[np.bool_] = np.append(np.any(grid[1:] != grid[:-1], axis=1), True)
    kept[0] = True
    simple: Ring = ring[kept]
    return simple
