"""Maps: boundaries from files of the user, laid out in a plane that keeps the sizes of areas, filled by classes, named.

Files are zipped shapefiles such as TIGER/Line, GeoJSON or TopoJSON.
"""

import io
import re
import struct
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np

from yupana.arrays import Floats, Ints
from yupana.errors import InputError, needing
from yupana.files.regular import must_be_regular, read_json
from yupana.report.html import Html, fill
from yupana.report.numbers import rounded

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
    """An area as a file draws it."""

    code: str  # its GEOID or other identifier; empty if the file has none for it
    name: str  # empty if the file has none
    is_water: bool  # whether the file says that less than a hundredth of it is land
    rings: tuple[Ring, ...]  # outer lines and holes in any order; what lies in an odd number of them is the area


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
    with needing("shapefiles need the package pyshp", "report", ", or give GeoJSON"):
        import shapefile  # noqa: PLC0415 (optional)
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


_ACROSS: Final = 2400
"""Units to the longer side of a drawing: finer details are dropped."""

_EARTH: Final = 6371.0072
"""Kilometres: the radius of the sphere with as much surface as the earth."""

_WIDE: Final = (860, 760)
"""Pixels that a map may take on a wide page, across and up."""


@dataclass(frozen=True, slots=True)
class _MapLayout:
    """Areas as they are drawn, whatever fills them."""

    # in units of the drawing
    width: int
    height: int
    unit: float  # kilometres
    paths: tuple[str, ...]  # the outline of each area as SVG writes it
    spots: tuple[tuple[float, float], ...]  # where the name of each area stands

    @property
    def pixels(self) -> int:
        """How wide it is on a wide page: no taller than a screen."""
        across, up = _WIDE
        return max(1, round(min(across, up * self.width / self.height)))

    @property
    def bar(self) -> tuple[int, str]:
        """A scale: its length in units, and in words."""
        most = 0.3 * self.width * self.unit
        power = 10.0 ** np.floor(np.log10(most))
        length = max(step * power for step in (1, 2, 5) if step * power <= most)
        return round(length / self.unit), f"{rounded(length, 1)} km"


def lay_out(areas: Sequence[Sequence[Ring]]) -> _MapLayout:
    """Project areas to a plane and simplify them.

    The projection is Lambert's azimuthal equal-area one about the middle of the areas, on a sphere: areas keep their
    sizes, and north is up in the middle. Points are rounded to a grid, and those on a straight line between others left
    out; both treat a line that two areas share alike, so that no gaps open.

    Parameters
    ----------
    areas : sequence of sequences of Ring
        At least one, with at least one ring each.
    """
    points = np.radians(np.concatenate([ring for rings in areas for ring in rings]))
    flat = _project(points, _middle(points))
    low, high = flat.min(axis=0), flat.max(axis=0)
    unit = float((high - low).max()) / _ACROSS or 1.0
    grid = np.rint((flat - (low[0], high[1])) / (unit, -unit)).astype(np.int64)
    lengths = [len(ring) for rings in areas for ring in rings]
    lines = iter(np.split(grid, np.cumsum(lengths)[:-1]))
    drawn = [[_simplify(next(lines)) for _ in rings] for rings in areas]
    width, height = (max(1, round(float(side) / unit)) for side in high - low)
    return _MapLayout(width, height, unit, tuple(map(_path, drawn)), tuple(map(_spot, drawn)))


def _middle(points: Floats) -> Floats:
    """The middle of points on a sphere, longitude and latitude in radians; the date line does not matter to it."""
    east, north = points.T
    around = np.array([np.cos(north) * np.cos(east), np.cos(north) * np.sin(east), np.sin(north)])
    x, y, z = (around.min(axis=1) + around.max(axis=1)) / 2
    return np.array([np.arctan2(y, x), np.arctan2(z, np.hypot(x, y))])


def _project(points: Floats, middle: Floats) -> Floats:
    """Lambert's azimuthal equal-area projection, in kilometres east and north of the middle."""
    east, north = points[:, 0] - middle[0], points[:, 1]
    sin_0, cos_0 = np.sin(middle[1]), np.cos(middle[1])
    ahead = sin_0 * np.sin(north) + cos_0 * np.cos(north) * np.cos(east)
    stretch = np.sqrt(2 / np.maximum(1 + ahead, 1e-9))
    across = np.cos(north) * np.sin(east)
    up = cos_0 * np.sin(north) - sin_0 * np.cos(north) * np.cos(east)
    flat: Floats = _EARTH * (stretch * np.array([across, up])).T
    return flat


def _simplify(line: Ints) -> Ints:
    """A ring on the grid without points that repeat or lie on a line between their neighbours; not closed."""
    apart = (line != np.roll(line, 1, axis=0)).any(axis=1)
    line = line[apart] if apart.any() else line[:1]
    while len(line) > 2:
        before, after = line - np.roll(line, 1, axis=0), np.roll(line, -1, axis=0) - line
        straight = before[:, 0] * after[:, 1] == before[:, 1] * after[:, 0]
        if straight.all():
            return line[:1]
        # Of neighbours that both are straight the second may not be, once the first is gone.
        gone = straight & ~np.roll(straight, 1)
        if not gone.any():
            return line
        line = line[~gone]
    return line


def _path(rings: Sequence[Ints]) -> str:
    """Rings as SVG writes them, each point by its distance from the one before; an area too small to see is a dot."""
    seen = [ring for ring in rings if len(ring) > 2]
    if not seen:
        x, y = rings[0][0].tolist()
        return f"M{x} {y}h2v2h-2z"
    return "".join(map(_loop, seen))


def _loop(ring: Ints) -> str:
    x, y = ring[0].tolist()
    steps = (f"{dx}{'' if dy < 0 else ' '}{dy}" for dx, dy in np.diff(ring, axis=0).tolist())
    return f"M{x} {y}l{' '.join(steps).replace(' -', '-')}z"


def _spot(rings: Sequence[Ints]) -> tuple[float, float]:
    """Where a name fits best: the middle of a wide stretch within the area, rather at half its height."""
    lines = [np.stack([ring, np.roll(ring, -1, axis=0)], axis=1) for ring in rings if len(ring) > 2]
    if not lines:
        x, y = rings[0][0].tolist()
        return float(x), float(y)
    edges = np.concatenate(lines).astype(np.float64)
    low, high = float(edges[..., 1].min()), float(edges[..., 1].max())
    best, most = (float(edges[0, 0, 0]), low), 0.0
    # Not at a height of the grid, where lines may lie.
    for height in (np.linspace(low, high, 15)[1:-1] + 0.37).tolist():
        (x1, y1), (x2, y2) = edges[:, 0].T, edges[:, 1].T
        crossed = (y1 <= height) != (y2 <= height)
        at = x1[crossed] + (height - y1[crossed]) / (y2 - y1)[crossed] * (x2 - x1)[crossed]
        for start, stop in pairwise(np.sort(at).tolist()):
            inside = np.count_nonzero(at <= start) % 2 == 1
            worth = (stop - start) * (1.0 - abs(2 * height - low - high) / (high - low + 1))
            if inside and worth > most:
                best, most = ((start + stop) / 2, height), worth
    return best


@dataclass(frozen=True, slots=True)
class ValueClasses:
    """Values put into classes."""

    bounds: tuple[float, ...]  # the highest value of each class but the last
    words: tuple[str, ...]  # what each class is called


def draw_map(
    layout: _MapLayout, shared: str, classes: ValueClasses, values: Floats, titles: Sequence[str], label: str
) -> Html:
    """Draw areas filled by class (a choropleth).

    Parameters
    ----------
    shared : str
        The prefix that `outlines` was given.
    values : ndarray of float64, shape (areas,)
    titles : sequence of str
        What is told of each area when it is pointed at.
    label : str
        What the map shows, in a sentence.
    """
    places = np.searchsorted(classes.bounds, values, side="left").tolist()
    told = {"layout": layout, "shared": shared, "label": label, "legend": classes.words}
    return fill("map.html", {**told, "areas": list(zip(places, titles, strict=True))})


def outlines(layout: _MapLayout, shared: str) -> Html:
    """The outlines that several maps of a page share, under identifiers with a prefix."""
    return fill("outlines.html", {"layout": layout, "shared": shared})
