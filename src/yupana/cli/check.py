"""`yupana check RELEASE`: checksums, columns, status, plan against tables and configuration."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from yupana.cli.arguments import Commands, print_json
from yupana.errors import OutputError


def add(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser("check", help="check a release against its manifest, plan and configuration")
    parser.add_argument("release", type=Path, metavar="RELEASE")
    parser.add_argument("--inputs", type=Path, metavar="FOLDER", help="public files of the run, to compare with")
    parser.add_argument("--json", action="store_true")
    parser.set_defaults(command=_check)


def _check(options: argparse.Namespace) -> None:
    from yupana.products.repeated import check_recipe
    from yupana.release.check import check_checksums
    from yupana.release.status import status_of

    release: Path = options.release
    if options.inputs is not None and not options.inputs.is_dir():
        raise OutputError(f"{options.inputs} is no folder; name one with public files of the run")
    manifest, wrong = check_checksums(release, confidential=True)
    try:
        status_of(manifest)
    except OutputError as error:
        wrong.append(str(error))
    product = manifest.get("product")
    agreeing, unchecked = "the manifest and its plan", list[str]()
    if manifest.get("system") is not None:
        agreeing = "the manifest and each other"
        wrong += [] if wrong else _topdown(release, manifest)
    elif product == "spine":
        agreeing = "the manifest and each other, and shares sum to 1 along every path"
        wrong += _spine(release)
    elif product in {"safetab-p", "safetab-h", "tables"}:
        # A table that was postprocessed without its manifest is of the product "tables".
        agreeing = agreeing if "plan" in manifest else "the manifest"
        found, unchecked = ([], []) if wrong else _safetab(release, manifest)
        wrong += found
    elif product == "phsafe":
        wrong += _phsafe(release, manifest)
    elif product == "phsafe estimates" or str(product).endswith(" accuracy"):
        agreeing = "the manifest"
        wrong += _files(release)
    else:
        raise OutputError(f"{release} is a release of an unknown product, {product!r}")
    # Some of these compare checksums once more.
    wrong = list(dict.fromkeys(wrong))
    if not wrong and product != "spine":
        found, left = check_recipe(release, manifest, options.inputs)
        wrong, unchecked = found, unchecked + left
    _tell(options, manifest, wrong, unchecked, agreeing)


def _tell(
    options: argparse.Namespace, manifest: Mapping[str, Any], wrong: list[str], unchecked: list[str], agreeing: str
) -> None:
    tables, status = len(manifest["tables"]), manifest.get("status")
    answer = {"release": str(options.release), "status": status, "tables": tables, "wrong": wrong}
    if options.json:
        print_json({**answer, "unchecked": unchecked})
    if wrong:
        raise OutputError("\n".join([f"{options.release} does not hold together:", *(f"  {fault}" for fault in wrong)]))
    if not options.json:
        number = f"{tables} table{'s' * (tables != 1)} agree{'s' * (tables == 1)}"
        print(f"{options.release}: {number} with {agreeing}; status: {status}")
        for note in unchecked:
            print(f"not checked: {note}")


def _spine(folder: Path) -> list[str]:
    from yupana.geography.disk import check_folder

    return check_folder(folder)


def _topdown(release: Path, manifest: Mapping[str, Any]) -> list[str]:
    from yupana.products.topdown.verify import NOISY, SYSTEM, verify_release
    from yupana.topdown.schema import Attribute, Schema

    if manifest["system"] not in {SYSTEM, NOISY}:
        raise OutputError(f"{release} was made by an unknown system, {manifest['system']!r}")
    if manifest["system"] == NOISY:
        return []
    try:
        attributes = manifest["parameters"]["schema"].items()
        schema = Schema(tuple(Attribute(name, tuple(labels)) for name, labels in attributes))
        return verify_release(release, schema, manifest["parameters"]["geolevels"])
    except (KeyError, ValueError, IndexError):
        return ["the manifest does not hold the schema and geolevels of TopDown"]


def _files(release: Path) -> list[str]:
    from yupana.release.check import check_files

    return check_files(release, confidential=True)[2]


def _phsafe(release: Path, manifest: Mapping[str, Any]) -> list[str]:
    from yupana.products.phsafe.verify import verify_tables
    from yupana.release.check import check_files

    _, tables, wrong = check_files(release, confidential=True)
    try:
        return wrong + verify_tables(manifest["plan"], tuple(manifest["parameters"]["states"]), tables)
    except (KeyError, ValueError):
        return [*wrong, "the manifest does not hold a plan of PHSafe"]


def _safetab(release: Path, manifest: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    from yupana.products.safetab.verify import verify_release

    try:
        return verify_release(release, manifest)
    except (KeyError, ValueError):
        return ["the manifest does not hold a plan of SafeTab"], []
