"""`yupana check RELEASE`: checksums, columns, status, plan against tables and configuration."""

import argparse
from pathlib import Path

import yupana
from yupana.cli.arguments import Commands, print_json
from yupana.cli.product import given
from yupana.errors import OutputError


def add(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser("check", help="check a release against its manifest, plan and configuration")
    parser.add_argument("release", type=Path, metavar="RELEASE")
    parser.add_argument("--inputs", type=Path, metavar="FOLDER", help="public files of the run, to compare with")
    parser.add_argument("--json", action="store_true")
    parser.set_defaults(command=_check)


def _check(options: argparse.Namespace) -> None:
    from yupana.release.release import read_release

    checked = yupana.check(**given(yupana.check, options))
    manifest = read_release(options.release, confidential=True).manifest
    tables, status = len(manifest["tables"]), manifest.get("status")
    if options.json:
        answer = {"release": str(options.release), "status": status, "tables": tables, "wrong": list(checked.wrong)}
        print_json({**answer, "unchecked": list(checked.unchecked)})
    if checked.wrong:
        faults = [f"  {fault}" for fault in checked.wrong]
        raise OutputError("\n".join([f"{options.release} does not hold together:", *faults]))
    if not options.json:
        number = f"{tables} table{'s' * (tables != 1)} agree{'s' * (tables == 1)}"
        print(f"{options.release}: {number} with {checked.against}; status: {status}")
        for note in checked.unchecked:
            print(f"not checked: {note}")
