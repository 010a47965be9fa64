"""`hollerith check RELEASE`: checksums, columns, plan against tables."""

import argparse
from pathlib import Path

from hollerith.cli.arguments import Commands, print_json
from hollerith.errors import OutputError


def add(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser("check", help="check a release against its manifest and plan")
    parser.add_argument("release", type=Path, metavar="RELEASE")
    parser.add_argument("--json", action="store_true")
    parser.set_defaults(command=_check)


def _check(options: argparse.Namespace) -> None:
    from hollerith.products.phsafe.verify import verify_tables
    from hollerith.release.check import check_files

    manifest, tables, wrong = check_files(options.release)
    if manifest.get("product") != "phsafe":
        raise OutputError(f"{options.release} is a release of an unknown product, {manifest.get('product')!r}")
    try:
        wrong += verify_tables(manifest["plan"], tuple(manifest["parameters"]["states"]), tables)
    except (KeyError, TypeError, ValueError):
        wrong.append("the manifest does not hold a plan of PHSafe")
    answer = {"release": str(options.release), "status": manifest.get("status"), "tables": len(tables), "wrong": wrong}
    if options.json:
        print_json(answer)
    if wrong:
        raise OutputError("\n".join([f"{options.release} does not hold together:", *(f"  {fault}" for fault in wrong)]))
    if not options.json:
        agree = f"{len(tables)} tables agree with the manifest and its plan"
        print(f"{options.release}: {agree}; status: {answer['status']}")
