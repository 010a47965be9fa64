"""`yupana spine build|distance|report`: hierarchies of geounits over census blocks."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yupana
from yupana.cli.options import given, tell
from yupana.cli.product import print_remarks
from yupana.errors import ConfigError, OutputError
from yupana.files.regular import FOLDER, must_be
from yupana.geography.settings import PIECES

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
    return replace(settings, **changes, **_lists(options), live=options.live)


def _is_puerto_rico(path: Path) -> bool:
    from yupana.files.code_tables import open_delimited

    with open_delimited(path, ("TABBLKST",)) as file:
        return bool((file.digits("TABBLKST", 2) == 72).all())


def _lists(options: argparse.Namespace) -> dict[str, Any]:
    """The settings that are lists of names, as a configuration of TopDown has them."""
    from yupana.topdown.reading.declaration import SPINE_LISTS

    faults: list[str] = []
    told = {name: getattr(options, name) for name in SPINE_LISTS if getattr(options, name) is not None}
    found = {
        name: SPINE_LISTS[name].read(f"--{name.replace('_', '-')}", ",".join(names), faults)
        for name, names in told.items()
    }
    if faults:
        raise ConfigError("\n".join(faults))
    return found


def build(options: argparse.Namespace) -> None:
    """Make a spine."""
    settings = _settings(options)
    asked = {name: getattr(options, name) for name in ("blocks", "overwrite", "areas", "encoding")}
    manifest = yupana.build_spine(options.reference, options.out, settings, **asked, progress=True).manifest
    print_remarks([] if options.json else manifest.get("remarks", ()))
    levels = ", ".join(f"{level['units']:,} {name}" for name, level in manifest["geolevels"].items())
    tell(options, manifest, [f"{options.out}: {settings.kind} spine of {levels}; shares sum to 1 along every path"])


def distance(options: argparse.Namespace) -> None:
    """Tell how far entities are from a spine."""
    table = yupana.spine_distances(**given(options), progress=True)
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows()]
    answer = [{name: value for name, value in row.items() if value is not None} for row in rows]
    lines = (f"{row['osed']:6}  {row['column']} {row['entity']}{_within(row['county'])}" for row in rows)
    tell(options, answer, lines)


def _within(county: str | None) -> str:
    return "" if county is None else f" in {county}"


def report(options: argparse.Namespace) -> None:
    """Write a page on a spine."""
    from yupana.geography.build import REPORT

    if options.to is None:  # the page's place is in the folder
        must_be(FOLDER, options.spine, "name a folder that spine build made", OutputError)
    page = options.to or options.spine / REPORT
    print(yupana.report(options.spine, page, **given(options, "spine", "to"), progress=True))
