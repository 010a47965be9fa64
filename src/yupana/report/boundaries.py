"""Boundaries of areas from a file of the user: a zipped shapefile such as TIGER/Line, GeoJSON or TopoJSON."""

import io
import re
import struct
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from yupana.arrays import Floats
from yupana.errors import ConfigError, InputError
from yupana.files.regular import must_be_regular, read_json

Ring = Floats
"""A closed line of shape (points, 2): degrees east and north."""

_IDENTIFIER: Final = re.compile(r"GEOID\d*|code", re.IGNORECASE)
_NAME: Final = re.compile(r"NAMELSAD\d*|NAME\d*", re.IGNORECASE)
_LAND: Final = re.compile(r"ALAND\d*|land", re.IGNORECASE)
_WATER: Final = re.compile(r"AWATER\d*|water", re.IGNORECASE)

_LEAST_LAND: Final = 0.01
"""Share of land below which an area is water: those of lakes and coasts may have a rock in them."""

_MOST_BYTES: Final = 128_000_000
"""Of a file of boundaries; its numbers take some ten times as much as objects."""

_MOST_POINTS: Final = 8_000_000

_KINDS: Final = "a zipped shapefile as TIGER/Line has them, GeoJSON, or TopoJSON"


@dataclass(frozen=True, slots=True, eq=False)
class Boundary:
    """An area as a file draws it.

    Attributes
    ----------
    code : str
        Its GEOID or other identifier; empty if the file has none for it.
    name : str
        Empty if the file has none.
    is_water : bool
        Whether the file says that less than a hundredth of it is land.
    rings : tuple of Ring
        Outer lines and holes in any order; what lies in an odd number of them is the area.
    """

    code: str
    name: str
    is_water: bool
    rings: tuple[Ring, ...]


def read_boundaries(path: Path) -> tuple[Boundary, ...]:
    """Read areas with their identifiers, from columns or properties called GEOID, GEOID10, GEOID20 or code.

    GeoJSON and TopoJSON may have the identifier as the ``id`` of a feature instead.

    Raises
    ------
    InputError
        If it is no such file, its coordinates are no longitudes and latitudes, or it has two areas of one identifier.
    ConfigError
        If it is a shapefile and the extra ``report`` is not installed.
    """
    try:
        must_be_regular(path)
        found = list(_shapefile(path) if zipfile.is_zipfile(path) else _json(path))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or 'damaged'}") from None
    except (
        *(ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError),
        *(struct.error, EOFError, RuntimeError, NotImplementedError, zipfile.BadZipFile),
    ):
        raise InputError(f"{path} holds no boundaries that can be read; give {_KINDS}, whole") from None
    if not found:
        raise InputError(f"{path} has no area with a boundary; give {_KINDS}")
    if not any(area.code for area in found):
        raise InputError(
            f"{path}: no area has an identifier; it must be in a column or property GEOID or code, or an id"
        )
    points = np.concatenate([ring for area in found for ring in area.rings])
    if not (np.isfinite(points).all() and (np.abs(points) <= (360, 90)).all()):
        raise InputError(
            f"{path}: its coordinates are no degrees east and north; give boundaries that were not projected"
        )
    codes = [area.code for area in found if area.code]
    if len(codes) > len(set(codes)):
        twice = next(code for code in codes if codes.count(code) > 1)
        raise InputError(f"{path} has {twice} twice; each area must stand there once")
    return tuple(found)


def _boundary(told: Mapping[str, Any], rings: Sequence[Ring], *, code: object = "") -> Boundary | None:
    """An area by what the file tells of it; None if it has no line that goes round something."""

    def pick(pattern: re.Pattern[str]) -> str:
        names = [name for name in told if pattern.fullmatch(name) and told[name] not in {None, ""}]
        # NAMELSAD says what an area is, as in "Census Tract 8403"; NAME does not.
        return str(told[max(names, key=len)]).strip() if names else ""

    land, water = (float(pick(pattern) or "nan") for pattern in (_LAND, _WATER))
    is_water = land == 0 or land < _LEAST_LAND * (land + water)
    closed = tuple(ring for ring in rings if len(ring) > 3)
    if not closed:
        return None
    return Boundary(pick(_IDENTIFIER) or ("" if code is None else str(code)), pick(_NAME), is_water, closed)


def _shapefile(path: Path) -> Iterator[Boundary]:
    try:
        import shapefile  # noqa: PLC0415 (optional)
    except ImportError:
        raise ConfigError(
            "shapefiles need the package pyshp; install it: pip install 'yupana[report]', or give GeoJSON"
        ) from None
    with zipfile.ZipFile(path) as archive:
        parts = {}
        for suffix in ("shp", "dbf"):
            (member,) = [one for one in archive.infolist() if one.filename.lower().endswith("." + suffix)]
            _refuse_large(path, member.file_size, f"its .{suffix} unpacked")
            # No more is unpacked than the archive says.
            parts[suffix] = io.BytesIO(archive.read(member))
    try:
        with shapefile.Reader(**parts, encodingErrors="replace") as reader:
            held = 0
            for area in reader.iterShapeRecords():
                held += len(area.shape.points)
                _refuse_many(path, held)
                points = np.array(area.shape.points, dtype=np.float64).reshape(-1, 2)
                if area.shape.shapeTypeName not in {"POLYGON", "POLYGONZ", "POLYGONM"}:
                    raise ValueError("not polygons")
                found = _boundary(area.record.as_dict(), np.split(points, list(area.shape.parts)[1:]))
                if found is not None:
                    yield found
    except shapefile.ShapefileException as error:
        raise ValueError("damaged") from error


def _refuse_large(path: Path, size: int, what: str) -> None:
    if size > _MOST_BYTES:
        raise InputError(
            f"{path}: {what} takes {size / 10**6:,.0f} MB, and of boundaries {_MOST_BYTES / 10**6:,.0f} MB are read at "
            "the most; give simpler ones, such as cartographic boundary files"
        )


def _refuse_many(path: Path, points: int) -> None:
    if points > _MOST_POINTS:
        raise InputError(f"{path}: has more than {_MOST_POINTS:,} points; give simpler boundaries")


def _json(path: Path) -> Iterator[Boundary]:
    _refuse_large(path, path.stat().st_size, "it")
    document = read_json(path)
    if document["type"] == "Topology":
        lines = _arcs(document)
        held = 0
        for layer in document["objects"].values():
            for area in layer.get("geometries", [layer]):
                # Areas share lines, so that a small file can hold many points.
                held += sum(len(lines[max(arc, ~arc)]) for ring in _rings(area, "arcs") for arc in ring)
                _refuse_many(path, held)
                yield from _of_feature(area, [_joined(lines, ring) for ring in _rings(area, "arcs")])
    else:
        for feature in document["features"] if document["type"] == "FeatureCollection" else [document]:
            geometry = feature["geometry"]
            if geometry is not None:
                yield from _of_feature(feature, [_points(ring) for ring in _rings(geometry, "coordinates")])


def _of_feature(feature: Mapping[str, Any], rings: Sequence[Ring]) -> Iterator[Boundary]:
    found = _boundary(feature.get("properties") or {}, rings, code=feature.get("id", ""))
    if found is not None:
        yield found


def _rings(geometry: Mapping[str, Any], key: str) -> list[Any]:
    kind = geometry["type"]
    if kind == "Polygon":
        return list(geometry[key])
    if kind == "MultiPolygon":
        return [ring for polygon in geometry[key] for ring in polygon]
    if kind is None:
        return []
    raise ValueError("not areas")


def _points(line: Sequence[Sequence[float]]) -> Ring:
    return np.array([point[:2] for point in line], dtype=np.float64).reshape(-1, 2)


def _arcs(document: Mapping[str, Any]) -> list[Ring]:
    """The lines of a topology, which areas share; quantized ones are steps on a grid."""
    lines = [_points(line) for line in document["arcs"]]
    if "transform" not in document:
        return lines
    scale, origin = (np.array(document["transform"][key], dtype=np.float64) for key in ("scale", "translate"))
    if not all(np.isfinite(numbers).all() for numbers in (scale, origin, *lines)):
        raise ValueError("numbers that are none")
    return [line.cumsum(axis=0) * scale + origin for line in lines]


def _joined(lines: Sequence[Ring], arcs: Sequence[int]) -> Ring:
    """A ring of its lines; ~i is line i backwards, and each begins where the one before ended."""
    parts = [lines[arc] if arc >= 0 else lines[~arc][::-1] for arc in arcs]
    return np.concatenate([parts[0], *(part[1:] for part in parts[1:])])
