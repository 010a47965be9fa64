"""`yupana report RELEASE OUT.html`: a page on a release."""

import argparse
from pathlib import Path

import yupana
from yupana.cli.arguments import Commands
from yupana.cli.product import given


def add(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "report",
        help="write an HTML page on a release: its loss, margins and tables, with maps; no truth",
        description="Write an HTML page on a release: its loss, margins and tables, of TopDown with maps; no truth.",
    )
    parser.add_argument("release", type=Path, metavar="RELEASE")
    parser.add_argument("to", type=Path, metavar="OUT.html")
    text = "of SafeTab: the files of codes and groups"
    parser.add_argument("--codes", type=Path, metavar="FOLDER", help=text)
    text = (
        "of TopDown: boundaries of areas for a map, as a zipped shapefile, GeoJSON or TopoJSON; again for another map"
    )
    parser.add_argument("--boundaries", type=Path, action="append", metavar="FILE", help=text)
    parser.set_defaults(command=_report)


def _report(options: argparse.Namespace) -> None:
    print(yupana.report(**given(yupana.report, options), progress=True))
