"""Write the atlas of a release as static pages: what the release says of itself, and the pieces of its tables."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from yupana.atlas.pieces import pieces_of
from yupana.atlas.tables import AreaIndex, AtlasTable, CellColumn, read_tables
from yupana.errors import InputError, OutputError
from yupana.plan.measurement import z_value
from yupana.products.gate import open_release
from yupana.release.folder import new_folder, write_manifest
from yupana.release.manifest import MANIFEST
from yupana.release.recipe import ATLAS
from yupana.release.release import ReleaseFolder, read_release
from yupana.release.status import CONFIDENTIAL, NOT_FOR_RELEASE, refuse_confidential
from yupana.release.tables import checksum
from yupana.report.maps import Boundary, lay_out, read_boundaries
from yupana.version import __version__

STATIC: Final = Path(__file__).parent / "static"
PAGES: Final = ("index.html", "atlas.js", "atlas.css")
MOST_ROWS: Final = 20_000_000
"""Of all tables: they are kept in memory."""

_KINDS: Final = {
    "010": "Nation", "020": "Region", "030": "Division", "040": "State", "050": "County", "060": "County subdivision",
    "140": "Census tract", "150": "Block group", "155": "Place within a county", "160": "Place",
    "250": "American Indian area", "280": "American Indian area within a state", "750": "Block",
}  # fmt: skip


def site_of(release: Path, boundaries: Sequence[Path] = ()) -> dict[str, bytes]:
    """The pages of a release, by their names within the site.

    Parameters
    ----------
    release : Path
    boundaries : sequence of Path
        Files of boundaries (`read_boundaries`): each becomes the map of the kind of areas most of whose codes it has.

    Raises
    ------
    OutputError
        If it is no sound release, is CONFIDENTIAL, or has more rows than a site may.
    InputError, ConfigError
        If a file has no boundaries that can be read, or none of an area of the release.
    """
    drawn = [(path, read_boundaries(path)) for path in boundaries]
    opened = open_release(release, confidential=True)
    parts = dict(opened.parts) or {"": opened}
    for part in parts.values():
        refuse_confidential(part.manifest, str(part.folder))
    areas, rows = AreaIndex(), 0
    tables: list[dict[str, Any]] = []
    files: dict[str, bytes] = {}
    for key, part in parts.items():
        for table in read_tables(part, areas):
            rows += len(table.value)
            if rows > MOST_ROWS:
                raise OutputError(f"{release} has more than {MOST_ROWS:,} rows, the most of an atlas")
            name = f"t{len(tables)}"
            pieces = list(pieces_of(table, name))
            files |= {f"data/{told['id']}.js": text.encode() for told, text in pieces}
            tables.append({"id": name, "part": key, **_of_table(table), "pieces": [told for told, _ in pieces]})
    if not tables:
        raise OutputError(f"{release} holds no table that an atlas can show")
    kinds = [{"name": kind, "title": _KINDS.get(kind, kind.replace("_", " ").capitalize())} for kind in areas.kinds]
    maps: dict[str, str] = {}
    for path, shapes in drawn:
        for kind, told_map in _maps(path, shapes, areas):
            maps[str(areas.kinds[kind])] = f"map-{areas.kinds[kind]}"
            files[f"data/map-{areas.kinds[kind]}.js"] = f"atlasMap({_as_script(told_map)});\n".encode()
    listed = {
        "kind": [areas.kinds[kind] for kind, _ in areas.places],
        "code": [code for _, code in areas.places],
        "name": [areas.names.get(place, "") for place in areas.places],
    }
    told = {**_of_release(opened, parts), "kinds": kinds, "tables": tables, "maps": maps}
    files["data/release.js"] = f"atlasRelease({_as_script(told)});\n".encode()
    files["data/areas.js"] = f"atlasAreas({_as_script(listed)});\n".encode()
    return files | {name: (STATIC / name).read_bytes() for name in PAGES}


def _maps(path: Path, shapes: Sequence[Boundary], areas: AreaIndex) -> Iterator[tuple[str, dict[str, Any]]]:
    """The maps of a file, by the kind of areas that it draws: tables may have several names for one kind."""
    by_code = {shape.code: shape for shape in shapes if shape.code and not shape.is_water}
    found: dict[str, dict[int, Boundary]] = {}
    for (kind, code), place in areas.places.items():
        if code in by_code:
            found.setdefault(kind, {})[place] = by_code[code]
            if name := by_code[code].name:
                areas.names.setdefault((kind, code), name)
    if not found:
        raise InputError(f"{path} has no boundary of an area of the release; give boundaries of the same codes")
    most = max(map(len, found.values()))
    for kind, of in found.items():
        if 2 * len(of) >= most:
            layout = lay_out([shape.rings for shape in of.values()])
            yield (
                kind,
                {
                    "width": layout.width,
                    "height": layout.height,
                    "area": list(of),
                    "path": list(layout.paths),
                },
            )


def write_site(folder: Path, release: Path, boundaries: Sequence[Path] = (), *, overwrite: bool = False) -> Path:
    """Write the pages of a release into a folder that does not exist or is empty; return the first one.

    Raises
    ------
    OutputError
        As by `site_of`, or if the folder cannot be used.
    """
    with new_folder(folder, overwrite=overwrite, noisy=False) as partial:
        files = site_of(release, boundaries)
        (partial / "data").mkdir()
        for name, content in files.items():
            (partial / name).write_bytes(content)
        manifest = read_release(release, confidential=True).manifest
        write_manifest(
            partial,
            {
                "yupana": __version__,
                "product": ATLAS,
                "status": manifest["status"],
                "reasons": manifest.get("reasons", []),
                "of": checksum(release / MANIFEST),
                "tables": {name: {"sha256": checksum(partial / name)} for name in files},
            },
        )
    return folder / PAGES[0]


def _as_script(value: object) -> str:
    """JSON that stands in a script as it is."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("</", "<\\/").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _of_table(table: AtlasTable) -> dict[str, Any]:
    return {
        "name": table.name,
        "title": table.title,
        "groups": None if table.groups is None else _column(table.groups),
        "columns": [_column(column) for column in table.columns],
        "cells": table.cells.tolist(),
        "depths": list(table.depths),
        "noisy": table.variance is not None,
        "choices": [{"own": choice.own, "parts": [list(p) for p in choice.parts]} for choice in table.choices],
        "alone": table.why_alone,
        "areas": np.unique(table.area).tolist() if len(table.area) < 200_000 else [],
    }


def _column(column: CellColumn) -> dict[str, Any]:
    labels = [label if label != code else "" for code, label in zip(column.codes, column.labels, strict=True)]
    return {"name": column.name, "title": column.title, "codes": list(column.codes), "labels": labels}


def _of_release(release: ReleaseFolder, parts: Mapping[str, ReleaseFolder]) -> dict[str, Any]:
    first = next(iter(parts.values()))
    confidence = first.confidence
    status = release.status if not release.parts else str(release.manifest["status"])
    kind = "danger" if status in {NOT_FOR_RELEASE, CONFIDENTIAL} else "public"
    return {
        "version": 1,
        "title": _title(first),
        "product": release.name,
        "status": {"kind": kind, "words": status, "reasons": list(release.manifest.get("reasons", ()))},
        "created": str(release.manifest.get("created", ""))[:10],
        "confidence": None if confidence is None else float(confidence),
        "z": None if confidence is None else z_value(confidence),
        "pure": first.is_pure,
        "sha256": release.sha256,
        "software": str(release.manifest.get("yupana", "")),
        "losses": list(_losses(parts)),
    }


def _title(release: ReleaseFolder) -> str:
    told = release.manifest.get("configuration", {})
    own = told.get("title") if isinstance(told, Mapping) else None
    return str(own or (release.codebook or {}).get("title") or release.name)


def _losses(parts: Mapping[str, ReleaseFolder]) -> Iterator[dict[str, Any]]:
    for name, part in parts.items():
        if (plan := part.plan) is not None and plan.is_finite:
            yield {
                "part": name,
                "symbol": plan.mechanism.symbol,
                "loss": float(plan.loss()),
                "epsilon": plan.mechanism.epsilon(plan.loss(), 1e-10),
            }
