"""Write the atlas of a release as pages: what the release says of itself, and the pieces of its tables."""

import json
import math
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Final

import numpy as np

from yupana.atlas.pieces import pieces_of
from yupana.atlas.tables import AreaIndex, AtlasTable, CellColumn, ShownTable, kinds_of, read_tables, shown_tables
from yupana.audit.certificate import certificate
from yupana.errors import InputError, OutputError, YupanaError
from yupana.geography.gazetteer import NAMES, read_names
from yupana.plan.measurement import z_value
from yupana.plan.plan import Plan
from yupana.privacy.exact import read_exact
from yupana.products import PRODUCTS
from yupana.products.gate import open_release
from yupana.products.phsafe.specification import STATE_NAMES
from yupana.products.product import Product, Words
from yupana.products.topdown.product import TOPDOWN
from yupana.products.topdown.verify import MEASUREMENTS, SYSTEM
from yupana.progress import Announce, silent
from yupana.release.folder import new_folder, write_manifest
from yupana.release.manifest import MANIFEST
from yupana.release.recipe import ATLAS, leaves_out_small
from yupana.release.release import ReleaseFolder, read_release
from yupana.release.status import CONFIDENTIAL, NOT_FOR_RELEASE, refuse_confidential
from yupana.release.tables import checksum
from yupana.report.html import fill
from yupana.report.maps import Boundary, lay_out, read_boundaries
from yupana.version import __version__

STATIC: Final = Path(__file__).parent / "static"
PAGES: Final = ("index.html", "atlas.js", "atlas.css")
MOST_ROWS: Final = 20_000_000
"""Of all tables of a static site."""

_WIDE: Final = 25.0
"""Variance from which two independent draws seldom agree: in less than a tenth of rows."""

_ENOUGH: Final = 6

_VERSION: Final = 3
_DELTA: Final = 1e-10


@dataclass(frozen=True, slots=True)
class AtlasRequest:
    """What an atlas is made of."""

    release: Path
    # files of boundaries (`read_boundaries`): each becomes the map of the kind of areas most of whose codes it has
    boundaries: tuple[Path, ...] = ()
    other: Path | None = None  # a release that it is compared with
    kinds: tuple[str, ...] = ()  # of areas, as the release calls them; all if empty
    # kinds of areas that the page tells it does not hold; with no other kinds it holds no table
    left_out: tuple[str, ...] = ()
    # whether a CONFIDENTIAL release may be shown; whoever asks keeps the pages where nobody else reads them
    confidential: bool = False
    codes: Path | None = None  # the public files of codes and groups of SafeTab, for the budgets of its run of 2020
    is_one_of_several: bool = False  # whether a page in the folder above leads to it

    def command(self) -> str:
        """What writes the whole site."""
        return f"yupana atlas {shlex.quote(str(self.release))} --to FOLDER"


Put = Callable[[str, bytes], None]
"""Takes a file of the site, by its name within it."""


def pages_of(request: AtlasRequest, put: Put, most: float = math.inf) -> dict[str, Any]:
    """Make the pages of a release, one after another.

    Parameters
    ----------
    most : float
        Rows of all tables.

    Returns
    -------
    dict
        What the pages know of the releases, their tables and maps.

    Raises
    ------
    OutputError
        If one of the releases is no sound release or is CONFIDENTIAL, if they have more rows than the most, or no table
        in common.
    InputError, ConfigError
        If a file has no boundaries that can be read, or none of an area of the release; or no area is of a kind.
    """
    drawn = [(path, read_boundaries(path)) for path in request.boundaries]
    folders = [request.release, *([request.other] if request.other else [])]
    opened = [open_release(folder, confidential=True) for folder in folders]
    parts = [parts_of(one) for one in opened]
    for part in (part for of in parts for part in of.values() if not request.confidential):
        refuse_confidential(part.manifest, str(part.folder))
    shown = [{key: shown_tables(part) for key, part in of.items()} for of in parts]
    _refuse_many(request, shown, most)
    areas = AreaIndex()
    is_empty = bool(request.left_out) and not request.kinds
    tables = [] if is_empty else _put_tables(request, parts, shown, areas, put, most)
    # A release may have no row, as where all small counts are left out; what it promises is shown all the same.
    if not tables and not is_empty and (request.kinds or not any(of for one in shown for of in one.values())):
        of_kinds = f" of {', '.join(request.kinds)}" if request.kinds else ""
        held = ", ".join(sorted({kind for of in parts for part in of.values() for kind in kinds_of(part)}))
        have = f"; its tables are of {held}" if request.kinds and held else ""
        raise OutputError(f"{request.release} holds no table{of_kinds} that an atlas can show{have}")
    if request.other and tables and not any(one["side"] for one in tables):
        raise OutputError(f"{request.release} and {request.other} have no table in common; compare two of one plan")
    maps = {}
    for path, shapes in drawn:
        for kind, told_map in _maps(path, shapes, areas, request):
            maps[str(areas.kinds[kind])] = f"map-{areas.kinds[kind]}"
            put(f"data/map-{areas.kinds[kind]}.js", f"atlasMap({_as_script(told_map)});\n".encode())
    listed = {
        "kind": [areas.kinds[kind] for kind, _ in areas.places],
        "code": [code for _, code in areas.places],
        "name": [areas.names.get(place, "") for place in areas.places],
    }
    kinds = [{"name": kind, "title": areas.titles.get(kind, "")} for kind in areas.kinds]
    releases = [_of_release(one, of, request.codes) for one, of in zip(opened, parts, strict=True)]
    told = {"version": _VERSION, "releases": releases, "kinds": kinds, "tables": tables, "maps": maps}
    if request.is_one_of_several:
        told["index"] = f"../{PAGES[0]}"
    if request.left_out:
        told["partial"] = {"left": request.left_out, "command": request.command()}
    put("data/release.js", f"atlasRelease({_as_script(told)});\n".encode())
    put("data/areas.js", f"atlasAreas({_as_script(listed)});\n".encode())
    for page in PAGES:
        put(page, (STATIC / page).read_bytes())
    return told


def parts_of(release: ReleaseFolder) -> dict[str, ReleaseFolder]:
    """The parts of a release by name; one that has none is its own, without a name."""
    return dict(release.parts) or {"": release}


def _put_tables(
    request: AtlasRequest,
    parts: Sequence[Mapping[str, ReleaseFolder]],
    shown: Sequence[Mapping[str, Sequence[ShownTable]]],
    areas: AreaIndex,
    put: Put,
    most: float,
) -> list[dict[str, Any]]:
    """Make the pieces of all tables, of the other release of those that both have, and tell of the tables."""
    told: list[dict[str, Any]] = []
    first: dict[tuple[str, str], AtlasTable] = {}
    rows = 0
    for side, key, part in ((side, key, part) for side, of in enumerate(parts) for key, part in of.items()):
        _name_areas(part, areas)
        for table in read_tables(shown[side][key], areas, request.kinds):
            if side and (key, table.name) not in first:
                continue
            is_same = bool(side) and _same_noise(first[key, table.name], table)
            if request.other and not side:
                first[key, table.name] = table
            rows += len(table.value)
            if rows > most:
                raise OutputError(_too_many(request.release, most))
            name = f"{'tu'[side]}{sum(one['side'] == side for one in told)}"
            pieces = []
            for of_piece, text in pieces_of(table, name):
                put(f"data/{of_piece['id']}.js", text.encode())
                pieces.append(of_piece)
            told.append({"id": name, "side": side, "part": key, **_of_table(table), "pieces": pieces, "same": is_same})
    return told


def _same_noise(one: AtlasTable, other: AtlasTable) -> bool:
    """Whether more numbers agree than independent noise lets agree, as those of runs with one seed do."""
    if len(one.value) != len(other.value) or one.variance is None:
        return False
    drawn = np.isfinite(one.value) & np.isfinite(other.value) & (one.variance > _WIDE)
    return int(drawn.sum()) >= _ENOUGH and float(np.mean(one.value[drawn] == other.value[drawn])) > 0.5


def _refuse_many(request: AtlasRequest, shown: Sequence[Mapping[str, Sequence[ShownTable]]], most: float) -> None:
    """Refuse what is too large before its rows are read."""
    if most == math.inf or request.kinds:
        return
    rows = sum(table.rows for of in shown for tables in of.values() for table in tables)
    if rows > most:
        raise OutputError(_too_many(request.release, most))


def _too_many(release: Path, most: float) -> str:
    return (
        f"{release} has more than {most:,} rows, the most of a static site; choose kinds of areas with --kinds, or "
        f"serve it: yupana atlas {release}"
    )


def _name_areas(part: ReleaseFolder, areas: AreaIndex) -> None:
    """Take what a release of TopDown says its areas are called, and the names of the states."""
    if (path := part.folder / NAMES).is_file() and NAMES in part.manifest["tables"]:
        for (kind, code), one in read_names(path).items():
            shorter = code[:11] + code[12:] if kind == "block" and len(code) == 16 else code
            if one.name:
                areas.names.setdefault((kind, shorter), one.name)
    if part.name.startswith("safetab") or (part.product == SYSTEM and part.name in TOPDOWN.built_in):
        # Codes of the United States: others may call other areas so.
        areas.names |= {
            (kind, code): name
            for kind in ("STATE", "PR-STATE", "state")
            for code, name in STATE_NAMES.items()
            if (kind, code) not in areas.names
        }


def _maps(
    path: Path, shapes: Sequence[Boundary], areas: AreaIndex, request: AtlasRequest
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The maps of a file, by the kind of areas that it draws: tables may have several names for one kind."""
    by_code = {shape.code: shape for shape in shapes if shape.code and not shape.is_water}
    found: dict[str, dict[int, Boundary]] = {}
    number: dict[str, int] = {}
    for (kind, code), place in areas.places.items():
        number[kind] = number.get(kind, 0) + 1
        if code in by_code:
            found.setdefault(kind, {})[place] = by_code[code]
            if name := by_code[code].name:
                areas.names.setdefault((kind, code), name)
    if not found and request.left_out:
        return
    if not found:
        kinds = dict(reversed(areas.places))
        have = ", ".join(f"{code} of {kind}" for kind, code in kinds.items())
        raise InputError(
            f"{path} has no boundary of an area of the release; give boundaries of the same codes. The file has codes "
            f"such as {next(iter(by_code), 'none')}, the release {have}"
        )
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
                    "spot": [[round(x), round(y)] for x, y in layout.spots],
                    "missing": number[kind] - len(of),
                    "unused": len(by_code) - len(of),
                },
            )


def pages_of_all(
    requests: Sequence[AtlasRequest], put: Put, most: float = math.inf, announce: Announce = silent
) -> None:
    """Make the pages of one release; of several those of each in a folder of its own, and a page that leads to them.

    Raises
    ------
    OutputError, InputError, ConfigError
        As by `pages_of`.
    """
    if len(requests) == 1:
        pages_of(requests[0], put, most)
        return
    entries = []
    for folder, request in zip(_folders(requests), requests, strict=True):
        announce(f"pages of {folder}")
        put_in = partial(_put_within, put, folder)
        told = pages_of(replace(request, is_one_of_several=True), put_in, most)
        titles = list(dict.fromkeys(table["title"] for table in told["tables"]))
        entries.append({**told["releases"][0], "name": folder, "href": f"{folder}/{PAGES[0]}", "tables": titles})
    put(PAGES[0], fill("atlas_index.html", {"entries": entries, "most": _TITLES}).encode())
    put(PAGES[2], (STATIC / PAGES[2]).read_bytes())


def _put_within(put: Put, folder: str, name: str, content: bytes) -> None:
    put(f"{folder}/{name}", content)


_TITLES: Final = 4
"""Of tables that the first page names of each release."""


def _folders(requests: Sequence[AtlasRequest]) -> list[str]:
    """A name for each release: that of its folder, with a number where several have it."""
    found: list[str] = []
    for request in requests:
        name = request.release.resolve().name
        found.append(next(one for n in count(1) if (one := name if n == 1 else f"{name}-{n}") not in found))
    return found


def write_site(
    folder: Path, requests: Sequence[AtlasRequest], *, overwrite: bool = False, announce: Announce = silent
) -> Path:
    """Write the pages of releases into a folder that does not exist or is empty; return the first one.

    Raises
    ------
    OutputError
        As by `pages_of`, or if the folder cannot be used.
    """
    with new_folder(folder, overwrite=overwrite, noisy=False) as draft:
        names: list[str] = []

        def put(name: str, content: bytes) -> None:
            (draft / name).parent.mkdir(parents=True, exist_ok=True)
            (draft / name).write_bytes(content)
            names.append(name)

        pages_of_all(requests, put, MOST_ROWS, announce)
        manifests = [read_release(request.release, confidential=True).manifest for request in requests]
        marked = [manifest for manifest in manifests if manifest["status"] == NOT_FOR_RELEASE]
        checksums = [checksum(request.release / MANIFEST) for request in requests]
        write_manifest(
            draft,
            {
                "yupana": __version__,
                "product": ATLAS,
                "status": (marked or manifests)[0]["status"],
                "reasons": list(dict.fromkeys(reason for one in manifests for reason in one.get("reasons", []))),
                "of": checksums[0] if len(checksums) == 1 else checksums,
                "tables": {name: {"sha256": checksum(draft / name)} for name in names},
            },
        )
    return folder / PAGES[0]


def _as_script(value: object) -> str:
    """JSON that stands in a script as it is."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _of_table(table: AtlasTable) -> dict[str, Any]:
    return {
        "name": table.name,
        "title": table.title,
        "universe": table.universe,
        "groups": None if table.groups is None else _column(table.groups),
        "columns": [_column(column) for column in table.columns],
        "cells": table.cells.tolist(),
        "depths": list(table.depths),
        "noisy": table.variance is not None and table.measured is None,
        "choices": [{"own": choice.own, "parts": [list(p) for p in choice.parts]} for choice in table.choices],
        "alone": table.why_alone,
        "sums": [list(parts) for parts in table.sums],
        "adds": table.adds_up,
        "areas": _runs(np.unique(table.area).tolist()),
    }


def _runs(numbers: Sequence[int]) -> list[list[int]]:
    """Whole numbers in order as runs: the first and the last of each."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return found


def _column(column: CellColumn) -> dict[str, Any]:
    labels = [label if label != code else "" for code, label in zip(column.codes, column.labels, strict=True)]
    return {"name": column.name, "title": column.title, "codes": list(column.codes), "labels": labels}


def _of_release(release: ReleaseFolder, parts: Mapping[str, ReleaseFolder], codes: Path | None) -> dict[str, Any]:
    first = next(iter(parts.values()))
    confidence = _confidence(first)
    manifest = release.manifest
    return {
        "title": _title(first),
        "folder": release.folder.resolve().name,
        "product": release.name,
        "status": _status(release),
        "created": str(manifest.get("created", "")),
        "confidence": None if confidence is None else float(confidence),
        "z": None if confidence is None else z_value(confidence),
        "pure": first.is_pure,
        "sha256": release.sha256,
        "software": str(manifest.get("yupana", "")),
        "draws": [_draws(part) for part in parts.values()],
        "treated": [str(entry.get("rule")) for part in parts.values() for entry in part.record],
        "promises": [told for name, part in parts.items() if (told := _promise(name, part.manifest)) is not None],
        "leftOut": any(leaves_out_small(part.manifest) for part in parts.values()),
        "madeOf": ", ".join(told["dataset"] for part in parts.values() if (told := part.manifest.get(MEASUREMENTS))),
        "budgets": [told for name, part in parts.items() if (told := _budgets(name, part, codes)) is not None],
    }


def _confidence(part: ReleaseFolder) -> Fraction | None:
    """That of the intervals which stand in the tables: of estimates and of TopDown they have their own."""
    told = part.manifest.get("parameters", {}).get("intervals") or part.manifest
    return Fraction(str(told["confidence"])) if "confidence" in told else part.confidence


def _status(release: ReleaseFolder) -> dict[str, Any]:
    status = release.status if not release.parts else str(release.manifest["status"])
    kind = "danger" if status in {NOT_FOR_RELEASE, CONFIDENTIAL} else "public"
    return {"kind": kind, "words": status, "reasons": list(release.manifest.get("reasons", ()))}


def _draws(part: ReleaseFolder) -> str:
    """What names the draw of the noise: what was made of it later keeps the time of its run."""
    sources = part.manifest.get("sources")
    return f"{part.manifest.get('product')} {part.manifest.get('created')}" if not sources else json.dumps(sources)


def _title(release: ReleaseFolder) -> str:
    told = release.manifest.get("configuration", {})
    own = told.get("title") if isinstance(told, Mapping) else None
    title = str(own or (release.codebook or {}).get("title") or release.name)
    # The codebook of TopDown names no more than how it was made.
    return f"{title}, {release.manifest['product']}" if release.product == SYSTEM and not own else title


def _promise(part: str, manifest: Mapping[str, Any]) -> dict[str, Any] | None:
    """What a release promises, as its certificate says; None of what has no plan."""
    try:
        told = certificate(manifest, is_brief=True)
    except (OutputError, KeyError):
        return None
    symbol = "rho" if told["mechanism"] == "zcdp" else "epsilon"
    own = next(row for row in told["guarantee"] if row["neighbours"] == told["neighbours"])
    # Of pure differential privacy the loss is an epsilon already, at no delta.
    at_deltas = own["promised"]["epsilon"] if symbol == "rho" else ()
    epsilon = [row["tight"] for row in at_deltas if row["delta"] == _DELTA]
    kept = [
        {"change": curve["neighbours"], "right": math.ceil(curve["best_guess"] * 1000 - 1e-9) / 1000}
        for curve in told["attacker"]["curves"]
    ]
    return {
        "part": part,
        "unit": told["privacy_unit"],
        "symbol": symbol,
        "loss": _finite(float(read_exact(own["promised"][symbol]))),
        "change": told["neighbours"],
        "epsilon": _finite(epsilon[0]) if epsilon else None,
        "delta": _DELTA,
        "attackers": kept,
        "public": list(told["taken_as_public"]),
        "invariants": list(told["invariants"]),
        "tables": len({row["table"] for row in told["by_table"]}),
    }


def _budgets(part: str, release: ReleaseFolder, codes: Path | None) -> dict[str, Any] | None:
    """What every measurement spent and how wide its margin is, beside those of the run of 2020 where there was one."""
    if (plan := release.plan) is None:
        return None
    product: Product[Any] | None = PRODUCTS.get(release.product)
    words = Words("") if product is None else product.words
    used = None if product is None else _production(product, release, codes)
    beside = {} if used is None else {(m.table, m.level): used.margin(m) for m in used.measurements}
    return {
        "part": part,
        "symbol": plan.mechanism.symbol,
        "confidence": float(plan.confidence),
        "compared": used is not None,
        "same": used is not None and plan.is_finite and not plan.differences(used),
        "rows": [
            {
                "name": m.table,
                "table": words.tables.get(m.table, m.table),
                "level": words.levels.get(m.level, m.level),
                "answers": m.cells,
                "budget": _finite(float(m.budget)),
                "margin": _finite(float(plan.margin(m))),
                "before": _finite(float(beside.get((m.table, m.level), math.inf))),
            }
            for m in plan.measurements
        ],
    }


def _production(product: Product[Any], release: ReleaseFolder, codes: Path | None) -> Plan | None:
    """The plan of the run of 2020 for the same area; None where there was none, or its files of codes are not here."""
    read: Callable[..., Any] = product.read
    try:
        used = product.production(read(release.folder / MANIFEST, **({} if codes is None else {"codes": codes})))
    except YupanaError:
        if codes is not None:
            raise
        return None
    return None if used is None else product.plan(used)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
