"""`yupana spine build|distance|report`: hierarchies of geounits over census blocks."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yupana
from yupana.cli.arguments import Commands, print_json
from yupana.errors import ConfigError, OutputError
from yupana.files.regular import FOLDER, must_be
from yupana.geography.settings import AREA_TYPES, AREAS, PIECES, PLACES, PRODUCTIONS, QUARTERS, SCHOOLS

if TYPE_CHECKING:
    from yupana.geography.settings import SpineSettings


def add(commands: Commands) -> None:
    """Add the command and its verbs."""
    parser = commands.add_parser("spine", help="geographic spines: build one, and ask how far areas are from it")
    verbs = parser.add_subparsers(metavar="VERB", required=True)

    build = verbs.add_parser("build", help="make a spine of a reference file of blocks")
    build.set_defaults(command=_build)
    build.add_argument("grfc", type=Path, metavar="GRFC", help="the reference file, separated by | or ,")
    build.add_argument("out", type=Path, metavar="OUT", help="a folder that does not exist or is empty")
    build.add_argument("--kind", choices=("conventional", "aian", "optimized", "pieces"))
    build.add_argument("--production", choices=PRODUCTIONS, help="settings of 2020; an option beside it goes before")
    build.add_argument("--mechanism", choices=("zcdp", "pure"), help="decides what is bypassed (zcdp)")
    build.add_argument("--levels", metavar="US,State,...", help="geolevels from the root down (all but Tract_Group)")
    build.add_argument("--shares", metavar="us=1/10,...", help="starting shares, one for each geolevel (equal)")
    build.add_argument(
        "--fanout-cutoff",
        type=_whole,
        metavar="F",
        help="groups hold int(sqrt(n) + F) + 1 at most (12; pieces are whole)",
    )
    build.add_argument("--entity-threshold", type=_whole, metavar="T", help="farther entities shape tract groups (9)")
    build.add_argument("--bypass-cutoff", type=_whole, metavar="C", help="most children after a bypass, pure DP (150)")
    build.add_argument("--grouping", choices=("orig", "even"), help="full chunks, or chunks of even size (orig)")
    build.add_argument(
        "--classes", metavar="pme,aian,...", help="entities that count: pme, aian, gq, school, or columns of GRFC"
    )
    build.add_argument(
        "--aian-areas", metavar="TYPE,...", help=f"area types on the spine: {', '.join(AREA_TYPES)}; or none"
    )
    build.add_argument("--strong-mcd-states", metavar="09,23,...", help="where county subdivisions count, not places")
    build.add_argument(
        "--blocks", type=Path, metavar="FILE", help="block, housing_units, gq1 .. gq7: facilities by major type"
    )
    build.add_argument(
        "--areas",
        type=Path,
        action="append",
        metavar="FILE",
        help="of (block, area), each kind a class; may be repeated",
    )
    build.add_argument("--live", action="store_true", help="only blocks with a housing unit or group quarters")
    build.add_argument("--overwrite", action="store_true", help="replace an earlier spine in OUT")
    build.add_argument("--json", action="store_true", help="print the manifest")

    distance = verbs.add_parser("distance", help="how many geounits make up each entity")
    distance.set_defaults(command=_distance)
    distance.add_argument("out", type=Path, metavar="OUT", help="a folder that spine build made")
    distance.add_argument("entities", type=Path, metavar="ENTITIES", help="block and a column for each kind of entity")
    distance.add_argument("--root", choices=("nation", "county"), default="nation", help="of the spine (nation)")
    distance.add_argument("--json", action="store_true")

    report = verbs.add_parser("report", help="an HTML page that compares the spine with those of tabulation geography")
    report.set_defaults(command=_report)
    report.add_argument("out", type=Path, metavar="OUT", help="a folder that spine build made")
    text = "boundaries of areas for the map: a zipped shapefile such as TIGER/Line, GeoJSON or TopoJSON"
    report.add_argument("--boundaries", type=Path, metavar="FILE", help=text)
    report.add_argument("--to", type=Path, metavar="FILE", help="where to write it (default OUT/report.html)")


def _whole(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number, zero or more")
    return int(text)


def _names(text: str) -> tuple[str, ...]:
    """A list of names, or none."""
    names = tuple(name.strip() for name in text.split(","))
    return () if names == ("none",) else names


def _settings(options: argparse.Namespace) -> "SpineSettings":
    from dataclasses import replace

    from yupana.geography.settings import SpineSettings, equal_shares, production_settings, read_levels, read_shares

    if options.kind is None and options.production is None:
        raise ConfigError("--kind is missing: conventional, aian, optimized or pieces")
    settings = SpineSettings(options.kind or "optimized")
    if options.production is not None:
        settings = production_settings(puerto_rico=_is_puerto_rico(options.grfc))
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
    if options.classes is not None:
        changes["classes"] = _classes(options.classes)
    if options.aian_areas is not None:
        changes["aian_areas"] = _aian_areas(options.aian_areas)
    if options.strong_mcd_states is not None:
        changes["strong_mcd_states"] = _states(options.strong_mcd_states)
    return replace(settings, **changes, live=options.live)


def _is_puerto_rico(path: Path) -> bool:
    from yupana.files.delimited import open_delimited

    with open_delimited(path, ("TABBLKST",)) as file:
        return bool((file.digits("TABBLKST", 2) == 72).all())


def _classes(text: str) -> tuple[str, ...]:
    names = _names(text)
    known = {name.lower(): name for name in (PLACES, AREAS, QUARTERS, SCHOOLS)}
    classes = tuple(known.get(name.lower(), name) for name in names)
    for i, name in enumerate(classes):
        if not name:
            raise ConfigError("--classes: an empty name; name classes, or none")
        if name.lower() in [other.lower() for other in classes[:i]]:
            raise ConfigError(f"--classes: {name} is named twice")
    return classes


def _aian_areas(text: str) -> tuple[str, ...]:
    names = tuple(name.lower() for name in _names(text))
    for i, name in enumerate(names):
        if name not in AREA_TYPES:
            raise ConfigError(f"--aian-areas: {name!r} is no type of area; there are {', '.join(AREA_TYPES)}")
        if name in names[:i]:
            raise ConfigError(f"--aian-areas: {name} is named twice")
    return names


def _states(text: str) -> tuple[int, ...]:
    names = _names(text)
    for i, name in enumerate(names):
        if not (name.isascii() and name.isdecimal() and len(name) == 2):
            raise ConfigError(f"--strong-mcd-states: {name!r} is no FIPS code of two digits")
        if name in names[:i]:
            raise ConfigError(f"--strong-mcd-states: {name} is named twice")
    return tuple(map(int, names))


def _build(options: argparse.Namespace) -> None:
    settings = _settings(options)
    asked = {"blocks": options.blocks, "overwrite": options.overwrite, "areas": options.areas}
    manifest = yupana.build_spine(options.grfc, options.out, settings, **asked, progress=True).manifest
    if options.json:
        print_json(manifest)
        return
    for remark in manifest.get("remarks", ()):
        print(f"remark: {remark}", file=sys.stderr)
    levels = ", ".join(f"{level['units']:,} {name}" for name, level in manifest["geolevels"].items())
    print(f"{options.out}: {settings.kind} spine of {levels}; shares sum to 1 along every path")


def _distance(options: argparse.Namespace) -> None:
    table = yupana.spine_distances(options.out, options.entities, root=options.root, progress=True)
    if options.json:
        rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows()]
        print_json([{name: value for name, value in row.items() if value is not None} for row in rows])
        return
    for column, entity, county, osed in table.rows():
        within = f" in {county}" if county is not None else ""
        print(f"{osed:6}  {column} {entity}{within}")


def _report(options: argparse.Namespace) -> None:
    from yupana.geography.build import REPORT

    if options.to is None:  # the page's place is in the folder
        must_be(FOLDER, options.out, "name a folder that spine build made", OutputError)
    print(yupana.report(options.out, options.to or options.out / REPORT, boundaries=options.boundaries, progress=True))
