"""`hollerith demo OUT`: the main job, end to end, on a synthetic census."""

import argparse
from pathlib import Path

from hollerith.cli.arguments import Commands


def add(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser("demo", help="a synthetic census through PHSafe, ending in a report to open")
    parser.add_argument("out", type=Path, nargs="?", default=Path("demo"), metavar="OUT")
    parser.add_argument("--overwrite", action="store_true", help="replace an earlier demo in OUT")
    parser.set_defaults(command=_demo)


def _demo(options: argparse.Namespace) -> None:
    raise SystemExit("not yet")
