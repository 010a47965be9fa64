"""Files of boundaries: squares of one degree, by identifier and the corner they begin at."""

import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

Corner = tuple[float, float]


def square(corner: Corner, side: float = 1.0) -> list[list[float]]:
    x, y = corner
    return [[x, y], [x, y + side], [x + side, y + side], [x + side, y], [x, y]]


def write_geojson(path: Path, squares: Mapping[str, Corner], side: float = 1.0, **properties: object) -> Path:
    features = [
        {
            "type": "Feature",
            "properties": {"GEOID": code, "NAME": f"Area <{code}>", **properties},
            "geometry": {"type": "Polygon", "coordinates": [square(corner, side)]},
        }
        for code, corner in squares.items()
    ]
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return path


def write_shapefile(path: Path, squares: Mapping[str, Corner], land: Sequence[int] = ()) -> Path:
    """A zipped shapefile as TIGER/Line has it, by the library that reads it."""
    shapefile = pytest.importorskip("shapefile", reason="boundaries need the extra: report")
    parts = {name: io.BytesIO() for name in ("shp", "shx", "dbf")}
    with shapefile.Writer(**parts, shapeType=shapefile.POLYGON) as writer:
        writer.field("STATEFP10", "C", 2)
        writer.field("GEOID10", "C", 12)
        writer.field("NAMELSAD10", "C", 20)
        writer.field("ALAND10", "N", 14)
        writer.field("AWATER10", "N", 14)
        for number, (code, corner) in enumerate(squares.items()):
            writer.poly([square(corner)])
            writer.record("17", code, f"Tract {code}", *([land[number], 100 - land[number]] if land else [1, 0]))
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(f"areas.{name}", content.getvalue())
    return path


def write_topojson(path: Path, *, quantized: bool) -> Path:
    """Two squares side by side, `a` and `b`, that share a line: `b` goes along it backwards."""
    lines = [[[1, 0], [1, 1]], [[1, 1], [0, 1], [0, 0], [1, 0]], [[1, 0], [2, 0], [2, 1], [1, 1]]]
    topology = {
        "type": "Topology",
        "objects": {
            "areas": {
                "type": "GeometryCollection",
                "geometries": [
                    {"type": "Polygon", "id": "a", "arcs": [[0, 1]], "properties": {"name": "First"}},
                    {"type": "MultiPolygon", "id": "b", "arcs": [[[~0, 2]]]},
                ],
            }
        },
        "arcs": lines,
    }
    if quantized:
        steps = [[[a[0] - b[0], a[1] - b[1]] for a, b in zip(line, [[0, 0], *line], strict=False)] for line in lines]
        topology |= {"arcs": steps, "transform": {"scale": [2.0, 3.0], "translate": [10.0, 20.0]}}
    path.write_text(json.dumps(topology))
    return path
