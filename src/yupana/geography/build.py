"""Spines of every kind built, from files to a folder."""

import platform
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from yupana.arrays import Indices
from yupana.errors import ConfigError, InputError
from yupana.geography.assignments import read_with_areas
from yupana.geography.blocks import Reference, check_counties, quarters_in, read_facilities, write_labels
from yupana.geography.entities import listed, targets
from yupana.geography.optimized import cut_pieces, optimized_spine
from yupana.geography.settings import PIECES, QUARTERS, REMADE, SCHOOLS, SpineSettings
from yupana.geography.spine import Spine, aian_spine, check_spine, conventional_spine
from yupana.geography.spine_files import (
    BLOCKS,
    ENTITIES,
    GEOUNITS,
    write_blocks,
    write_geounits,
)
from yupana.progress import Announce, Stopwatch
from yupana.release.folder import new_folder, write_manifest
from yupana.release.recipe import SPINE
from yupana.release.status import PUBLIC_SPINE
from yupana.release.tables import checksum, table_columns
from yupana.version import __version__

REPORT = "report.html"
"""What `yupana spine report` adds to the folder."""


@dataclass(frozen=True, slots=True)
class SpineRequest:
    """Where a spine comes from and goes to."""

    reference: Path
    blocks: Path | None  # block attributes
    out: Path
    overwrite: bool = False
    areas: tuple[Path, ...] = ()  # tables of the areas that blocks lie in, beside the reference file
    encoding: str | None = None  # of their text, if that is not UTF-8


def build(settings: SpineSettings, request: SpineRequest, announce: Announce) -> dict[str, Any]:
    """Build a spine of public lists alone, never of counts of persons, and return its manifest."""
    clock = Stopwatch(announce)
    needs_blocks = [*(["--live"] if settings.live else []), *(["the class gq"] if QUARTERS in settings.classes else [])]
    if needs_blocks and request.blocks is None:
        raise ConfigError(f"{' and '.join(needs_blocks)} need --blocks FILE, with housing units and group quarters")
    with new_folder(request.out, overwrite=request.overwrite, noisy=False) as partial:
        clock.start("reading the reference file")
        reference, quarters = read_blocks(settings, request, announce)
        spine = make(settings, reference, quarters, clock)
        remarks = remarks_on(settings, reference, quarters)
        clock.start("checking")
        if spine.tree.units(0) != 1:
            raise ConfigError(
                f"--levels: without US the spine has {spine.tree.units(0)} units at {settings.levels[0]} and no root; "
                "keep US, or begin lower for a file of one state or county and one side of AIAN areas"
            )
        if wrong := check_spine(spine, reference.block):
            raise RuntimeError(f"the spine does not hold together: {'; '.join(wrong)}")
        clock.start("writing")
        rows = {
            BLOCKS: write_blocks(partial, spine),
            GEOUNITS: write_geounits(partial, spine),
            ENTITIES: write_labels(partial / ENTITIES, reference.block, listed(reference, quarters, settings)),
        }
        manifest: dict[str, Any] = {
            "yupana": __version__,
            "product": SPINE,
            "status": PUBLIC_SPINE,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "settings": settings.as_json(),
            **({"remarks": list(remarks)} if remarks else {}),
            "geolevels": {
                level.name: {"units": len(level.code), "bypassed": int(level.bypassed.sum())} for level in spine.levels
            },
            "path_sum": "1",
            "inputs": {
                what: {"file": path.name, "sha256": checksum(path)}
                for what, path in (
                    ("reference", request.reference),
                    ("blocks", request.blocks),
                    *((f"areas {path.name}", path) for path in request.areas),
                )
                if path is not None
            },
            "versions": {"python": platform.python_version(), "numpy": np.__version__, "duckdb": duckdb.__version__},
            "tables": {
                name: {"sha256": checksum(partial / name), "rows": number, "columns": table_columns(partial / name)}
                for name, number in rows.items()
            },
            "seconds": clock.stop(),
        }
        write_manifest(partial, manifest)
    return manifest


def read_blocks(settings: SpineSettings, request: SpineRequest, announce: Announce) -> tuple[Reference, Indices | None]:
    """Read the reference file and block attributes; with ``live``, keep the blocks where something stands."""
    schools = SCHOOLS in settings.classes
    reference, assignments = read_with_areas(
        request.reference, settings.classes, request.areas, schools=schools, encoding=request.encoding
    )
    for one in assignments:
        if one.remark:
            announce(one.remark)
    if request.blocks is None:
        return reference, None
    facilities = read_facilities(request.blocks, reference.block, every=True)
    quarters, live = quarters_in(facilities), np.asarray((facilities > 0).any(axis=1))
    if not settings.live:
        return reference, quarters
    if not live.any():
        raise InputError(
            f"{request.blocks}: no block has a housing unit or group quarters; nothing is left of the spine"
        )
    check_counties(reference, live, request.blocks)
    return reference.keep(live), quarters[live]


def make(settings: SpineSettings, reference: Reference, quarters: Indices | None, clock: Stopwatch) -> Spine:
    """Make a spine of any kind."""
    if settings.kind in REMADE:
        return optimized_spine(reference, targets(reference, quarters, settings), settings, clock)
    clock.start("making the spine")
    return (conventional_spine if settings.kind == "conventional" else aian_spine)(reference, settings)


def remarks_on(settings: SpineSettings, reference: Reference, quarters: Indices | None) -> tuple[str, ...]:
    """What whoever builds a spine should know of it: that a cut-off cuts pieces, if it does."""
    if not settings.may_cut_pieces:
        return ()
    cut, pieces = cut_pieces(reference, targets(reference, quarters, settings), settings)
    if not cut:
        return ()
    advice = (
        "leave the cut-off out"
        if settings.kind == PIECES
        else "use the kind pieces, which has no cut-off unless one is given, or a larger one"
    )
    return (
        f"the fan-out cut-off {settings.fanout_cutoff} cuts {cut:,} of {pieces:,} pieces of block groups into several "
        f"geounits, so that block groups, places and tracts are sums of more noisy counts; {advice}",
    )
