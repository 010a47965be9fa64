"""Boundaries of areas from the files that users have, and everything else refused in one sentence."""

import contextlib
import json
import math
import os
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from boundary_files import square, write_geojson, write_shapefile, write_topojson
from places import SHARED

from yupana.errors import InputError
from yupana.report.maps import read_boundaries

TWO = {"1700100": (0.0, 0.0), "1700200": (2.0, 0.0)}


def test_a_zipped_shapefile_is_read(tmp_path: Path) -> None:
    found = read_boundaries(write_shapefile(tmp_path / "map.zip", TWO))
    assert [(area.code, area.name, area.is_water) for area in found] == [
        ("1700100", "Tract 1700100", False),
        ("1700200", "Tract 1700200", False),
    ]
    (ring,) = found[1].rings
    assert sorted(map(tuple, ring.tolist())) == sorted(map(tuple, square((2.0, 0.0))))


def test_what_is_nearly_all_water_is_known_for_it(tmp_path: Path) -> None:
    found = read_boundaries(write_shapefile(tmp_path / "map.zip", TWO, land=(0, 1)))
    assert [area.is_water for area in found] == [True, False]


def test_geojson_is_read(tmp_path: Path) -> None:
    found = read_boundaries(write_geojson(tmp_path / "map.json", TWO, ALAND=0, AWATER=5))
    assert [(area.code, area.name, area.is_water) for area in found] == [(code, f"Area <{code}>", True) for code in TWO]


@pytest.mark.parametrize("quantized", [False, True])
def test_topojson_is_read(quantized: bool, tmp_path: Path) -> None:  # noqa: FBT001
    first, second = read_boundaries(write_topojson(tmp_path / "map.json", quantized=quantized))
    assert (first.code, first.name, second.code, second.name) == ("a", "First", "b", "")
    scale, origin = (np.array([2.0, 3.0]), np.array([10.0, 20.0])) if quantized else (np.ones(2), np.zeros(2))
    for area, corner in ((first, (0.0, 0.0)), (second, (1.0, 0.0))):
        (ring,) = area.rings
        assert (ring[0] == ring[-1]).all()
        assert {tuple(p) for p in ((ring - origin) / scale).tolist()} == {tuple(p) for p in square(corner)}


def polygon(*rings: list[list[float]]) -> dict[str, object]:
    return {"type": "Polygon", "coordinates": list(rings)}


def feature(geometry: object, **more: object) -> dict[str, object]:
    return {"type": "Feature", "geometry": geometry, "properties": {"GEOID": "1"}, **more}


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "no boundaries"),
        ("nothing", "no boundaries"),
        ("[1, 2]", "no boundaries"),
        ("null", "no boundaries"),
        ("[" * 100_000, "no boundaries"),
        ('{"type": "FeatureCollection"}', "no boundaries"),
        ('{"type": "FeatureCollection", "features": []}', "no area with a boundary"),
        (feature({"type": "Point", "coordinates": [1, 2]}), "no boundaries"),
        (feature(polygon([[0, 0], [1, "north"], [1, 1], [0, 0]])), "no boundaries"),
        (feature(polygon([[0, 0], [1, 1]])), "no area with a boundary"),
        (feature(polygon(square((0, 0))), properties=None), "no area has an identifier"),
        (feature(polygon(square((500_000, 4_600_000)))), "no degrees"),
        (feature(polygon([[0, 0], [0, math.nan], [1, 1], [0, 0]])), "no degrees"),
        ({"type": "FeatureCollection", "features": [feature(polygon(square((0, 0))))] * 2}, "has 1 twice"),
        ({"type": "Topology", "objects": {"a": {"type": "Polygon", "arcs": [[7]]}}, "arcs": []}, "no boundaries"),
    ],
)
def test_rubbish_is_refused_in_one_sentence(content: object, told: str, tmp_path: Path) -> None:
    path = tmp_path / "map.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(InputError, match=told) as refused:
        read_boundaries(path)
    assert "\n" not in str(refused.value)
    assert str(path) in str(refused.value)


@pytest.mark.parametrize("end", [0, 30, 200, 400, 600, -1])
def test_a_file_cut_short_is_refused(end: int, tmp_path: Path) -> None:
    whole = write_shapefile(tmp_path / "map.zip", TWO).read_bytes()
    (tmp_path / "cut.zip").write_bytes(whole[:end])
    with pytest.raises(InputError, match=r"cut\.zip"):
        read_boundaries(tmp_path / "cut.zip")


def test_bytes_changed_are_read_or_refused(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    whole = bytearray(write_shapefile(tmp_path / "map.zip", TWO).read_bytes())
    for _ in range(300):
        changed = bytearray(whole)
        for at in rng.integers(0, len(whole), 4).tolist():
            changed[at] = int(rng.integers(256))
        (tmp_path / "changed.zip").write_bytes(changed)
        with contextlib.suppress(InputError):
            read_boundaries(tmp_path / "changed.zip")


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nowhere.zip"):
        with pytest.raises(InputError, match="cannot be read"):
            read_boundaries(path)


@pytest.mark.skipif(not SHARED.exists(), reason="the public data are not beside the checkout")
@pytest.mark.thorough
def test_sizes_are_looked_at_before_anything_is_unpacked(tmp_path: Path) -> None:
    packed, plain = tmp_path / "packed.zip", tmp_path / "plain.json"
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.shp", bytes(129_000_000))
        archive.writestr("a.dbf", b"")
    assert packed.stat().st_size < 200_000
    plain.touch()
    os.truncate(plain, 129_000_000)
    for path in (packed, plain):
        tracemalloc.start()
        with pytest.raises(InputError, match="takes 129 MB, and of boundaries 128 MB are read"):
            read_boundaries(path)
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
        tracemalloc.stop()


def test_lines_that_many_areas_share_are_counted_for_each(tmp_path: Path) -> None:
    line = [[x / 1000, 0] for x in range(1000)]
    area = {"type": "Polygon", "arcs": [[0]], "id": "1"}
    document = {"type": "Topology", "arcs": [line], "objects": {"a": {"geometries": [area] * 8_001}}}
    (tmp_path / "shared.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match="more than 8,000,000 points"):
        read_boundaries(tmp_path / "shared.json")


def test_numbers_that_are_none_are_refused_in_words(tmp_path: Path) -> None:
    path = write_topojson(tmp_path / "areas.json", quantized=True)
    document = json.loads(path.read_text())
    document["arcs"][0][0][0] = math.inf
    path.write_text(json.dumps(document))
    with pytest.raises(InputError, match="no boundaries that can be read"):
        read_boundaries(path)


@pytest.mark.skipif(not (SHARED / "data" / "us_atlas_3").is_dir(), reason="the boundaries are not in ../shared/data")
@pytest.mark.thorough
def test_published_boundaries_are_read() -> None:
    pytest.importorskip("shapefile", reason="boundaries need the extra: report")
    towns = read_boundaries(SHARED / "data" / "cook_geometry_tiger" / "tl_2020_17031_cousub10.zip")
    assert len(towns) == 32
    assert [area.code for area in towns if area.is_water] == ["1703100000"]
    states = read_boundaries(SHARED / "data" / "us_atlas_3" / "states-10m.json")
    assert {"17": "Illinois", "72": "Puerto Rico"}.items() <= {area.code: area.name for area in states}.items()
    with pytest.raises(InputError, match="no degrees"):
        read_boundaries(SHARED / "data" / "us_atlas_3" / "states-albers-10m.json")
