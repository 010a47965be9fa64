"""`hollerith check RELEASE`: checksums, columns, plan against tables."""

import argparse
from pathlib import Path
from typing import Any

from hollerith.cli.arguments import Commands, print_json
from hollerith.errors import OutputError


def add(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser("check", help="check a release against its manifest and plan")
    parser.add_argument("release", type=Path, metavar="RELEASE")
    parser.add_argument("--json", action="store_true")
    parser.set_defaults(command=_check)


def _check(options: argparse.Namespace) -> None:
    from hollerith.release.folder import read_manifest

    head = read_manifest(options.release, confidential=True) if options.release.is_dir() else {}
    product = head.get("product")
    agreeing, unchecked = "the manifest and its plan", list[str]()
    if head.get("system") is not None:
        manifest, tables, wrong = _topdown(options.release)
        agreeing = "the manifest and each other"
    elif product == "spine":
        manifest, tables, wrong = _spine(options.release)
        agreeing = "the manifest and each other, and shares sum to 1 along every path"
    elif product in {"safetab-p", "safetab-h", "tables"}:
        # A table that was postprocessed without its manifest is of the product "tables".
        manifest, tables, wrong, unchecked = _safetab(options.release)
        agreeing = agreeing if "plan" in manifest else "the manifest"
    elif product == "phsafe estimates" or str(product).endswith(" accuracy"):
        manifest, tables, wrong = _estimates(options.release)
        agreeing = "the manifest"
    else:
        manifest, tables, wrong = _phsafe(options.release)
    status = manifest.get("status")
    answer = {"release": str(options.release), "status": status, "tables": tables, "wrong": wrong}
    if options.json:
        print_json({**answer, "unchecked": unchecked})
    if wrong:
        raise OutputError("\n".join([f"{options.release} does not hold together:", *(f"  {fault}" for fault in wrong)]))
    if not options.json:
        number = f"{tables} table{'s' * (tables > 1)} agree{'s' * (tables == 1)}"
        print(f"{options.release}: {number} with {agreeing}; status: {status}")
        for note in unchecked:
            print(f"not checked: {note}")


def _spine(folder: Path) -> tuple[dict[str, Any], int, list[str]]:
    from hollerith.geography.check import check_folder
    from hollerith.release.folder import read_manifest

    manifest = read_manifest(folder, confidential=True)
    return manifest, len(manifest.get("tables", ())), check_folder(folder)


def _topdown(release: Path) -> tuple[dict[str, Any], int, list[str]]:
    from hollerith.products.topdown.verify import NOISY, SYSTEM, verify_release
    from hollerith.release.check import check_checksums
    from hollerith.topdown.schema import Attribute, Schema

    manifest, wrong = check_checksums(release, confidential=True)
    if manifest.get("system") not in {SYSTEM, NOISY}:
        raise OutputError(f"{release} was made by an unknown system, {manifest.get('system')!r}")
    try:
        if not wrong and manifest["system"] == SYSTEM:
            attributes = manifest["parameters"]["schema"].items()
            schema = Schema(tuple(Attribute(name, tuple(labels)) for name, labels in attributes))
            wrong = verify_release(release, schema, manifest["parameters"]["geolevels"])
    except (KeyError, TypeError, ValueError, AttributeError):
        wrong.append("the manifest does not hold the schema and geolevels of TopDown")
    return manifest, len(manifest["tables"]), wrong


def _estimates(release: Path) -> tuple[dict[str, Any], int, list[str]]:
    from hollerith.release.check import check_files

    manifest, tables, wrong = check_files(release, confidential=True)
    return manifest, len(tables), wrong


def _phsafe(release: Path) -> tuple[dict[str, Any], int, list[str]]:
    from hollerith.products.phsafe.verify import verify_tables
    from hollerith.release.check import check_files

    manifest, tables, wrong = check_files(release, confidential=True)
    if manifest.get("product") != "phsafe":
        raise OutputError(f"{release} is a release of an unknown product, {manifest.get('product')!r}")
    try:
        wrong += verify_tables(manifest["plan"], tuple(manifest["parameters"]["states"]), tables)
    except (KeyError, TypeError, ValueError):
        wrong.append("the manifest does not hold a plan of PHSafe")
    return manifest, len(tables), wrong


def _safetab(release: Path) -> tuple[dict[str, Any], int, list[str], list[str]]:
    from hollerith.products.safetab.verify import verify_release
    from hollerith.release.check import check_checksums

    manifest, wrong = check_checksums(release, confidential=True)
    unchecked: list[str] = []
    try:
        # A table that is missing or was changed is told once.
        if not wrong:
            wrong, unchecked = verify_release(release, manifest)
    except (KeyError, TypeError, ValueError, AttributeError):
        wrong.append("the manifest does not hold a plan of SafeTab")
    return manifest, len(manifest["tables"]), wrong, unchecked
