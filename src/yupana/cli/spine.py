"""`yupana spine build|distance|report`: hierarchies of geounits over census blocks."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yupana
from yupana.cli.options import given, print_json
from yupana.errors import ConfigError, OutputError
from yupana.files.regular import FOLDER, must_be
from yupana.geography.settings import AREA_TYPES, AREAS, PIECES, PLACES, QUARTERS, SCHOOLS

if TYPE_CHECKING:
    from yupana.geography.settings import SpineSettings


def _settings(options: argparse.Namespace) -> "SpineSettings":
    from dataclasses import replace

    from yupana.geography.settings import SpineSettings, equal_shares, production_settings, read_levels, read_shares

    if options.kind is None and options.production is None:
        raise ConfigError("--kind is missing: conventional, aian, optimized or pieces")
    settings = SpineSettings(options.kind or "optimized")
    if options.production is not None:
        settings = production_settings(puerto_rico=_is_puerto_rico(options.reference))
    changes: dict[str, Any] = {
        name: getattr(options, name)
        for name in ("kind", "mechanism", "fanout_cutoff", "entity_threshold", "bypass_cutoff", "grouping")
        if getattr(options, name) is not None
    }
    if options.kind == PIECES:
        changes.setdefault("fanout_cutoff", None)
    if options.levels is not None:
        changes["levels"] = read_levels(options.levels)
        if changes["levels"] != settings.levels:
            changes["shares"] = equal_shares(changes["levels"])
    if options.shares is not None:
        changes["shares"] = read_shares(options.shares, changes.get("levels", settings.levels))
    for name, read in (("classes", _classes), ("aian_areas", _aian_areas), ("strong_mcd_states", _states)):
        if (told := getattr(options, name)) is not None:
            changes[name] = read(() if told == ("none",) else told)
    return replace(settings, **changes, live=options.live)


def _is_puerto_rico(path: Path) -> bool:
    from yupana.files.delimited import open_delimited

    with open_delimited(path, ("TABBLKST",)) as file:
        return bool((file.digits("TABBLKST", 2) == 72).all())


def _classes(names: tuple[str, ...]) -> tuple[str, ...]:
    known = {name.lower(): name for name in (PLACES, AREAS, QUARTERS, SCHOOLS)}
    classes = tuple(known.get(name.lower(), name) for name in names)
    for i, name in enumerate(classes):
        if not name:
            raise ConfigError("--classes: an empty name; name classes, or none")
        if name.lower() in [other.lower() for other in classes[:i]]:
            raise ConfigError(f"--classes: {name} is named twice")
    return classes


def _aian_areas(told: tuple[str, ...]) -> tuple[str, ...]:
    names = tuple(name.lower() for name in told)
    for i, name in enumerate(names):
        if name not in AREA_TYPES:
            raise ConfigError(f"--aian-areas: {name!r} is no type of area; there are {', '.join(AREA_TYPES)}")
        if name in names[:i]:
            raise ConfigError(f"--aian-areas: {name} is named twice")
    return names


def _states(names: tuple[str, ...]) -> tuple[int, ...]:
    for i, name in enumerate(names):
        if not (name.isascii() and name.isdecimal() and len(name) == 2):
            raise ConfigError(f"--strong-mcd-states: {name!r} is no FIPS code of two digits")
        if name in names[:i]:
            raise ConfigError(f"--strong-mcd-states: {name} is named twice")
    return tuple(map(int, names))


def build(options: argparse.Namespace) -> None:
    """Make a spine."""
    settings = _settings(options)
    asked = {name: getattr(options, name) for name in ("blocks", "overwrite", "areas", "encoding")}
    manifest = yupana.build_spine(options.reference, options.out, settings, **asked, progress=True).manifest
    if options.json:
        print_json(manifest)
        return
    for remark in manifest.get("remarks", ()):
        print(f"remark: {remark}", file=sys.stderr)
    levels = ", ".join(f"{level['units']:,} {name}" for name, level in manifest["geolevels"].items())
    print(f"{options.out}: {settings.kind} spine of {levels}; shares sum to 1 along every path")


def distance(options: argparse.Namespace) -> None:
    """Tell how far entities are from a spine."""
    table = yupana.spine_distances(**given(options), progress=True)
    if options.json:
        rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows()]
        print_json([{name: value for name, value in row.items() if value is not None} for row in rows])
        return
    for column, entity, county, osed in table.rows():
        within = f" in {county}" if county is not None else ""
        print(f"{osed:6}  {column} {entity}{within}")


def report(options: argparse.Namespace) -> None:
    """Write a page on a spine."""
    from yupana.geography.build import REPORT

    if options.to is None:  # the page's place is in the folder
        must_be(FOLDER, options.spine, "name a folder that spine build made", OutputError)
    page = options.to or options.spine / REPORT
    print(yupana.report(options.spine, page, **given(options, "spine", "to"), progress=True))
