"""`yupana demo OUT`: the main job, end to end, on a synthetic census."""

import argparse
from pathlib import Path

from yupana.cli.arguments import Commands, count

_HOUSEHOLDS = 41_000
_TRIALS = 50


def add(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "demo", help="a synthetic census through TopDown, PHSafe and SafeTab, ending in reports to open"
    )
    parser.add_argument("out", type=Path, nargs="?", default=Path("demo"), metavar="OUT")
    parser.add_argument(
        "--households",
        type=count,
        default=_HOUSEHOLDS,
        metavar="N",
        help=f"of the census (default {_HOUSEHOLDS:,}: more than 100,000 persons)",
    )
    parser.add_argument(
        "--trials", type=count, default=_TRIALS, metavar="N", help=f"to observe the errors (default {_TRIALS})"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace an earlier demo in OUT")
    parser.set_defaults(command=_demo)


def _demo(options: argparse.Namespace) -> None:
    from yupana.confidential.synthetic_demo import DemonstrationRequest, demonstrate
    from yupana.progress import announcing, listening

    request = DemonstrationRequest(options.out, options.households, options.trials, options.overwrite)
    with listening(progress=True, title="demo") as tell:
        reports = demonstrate(request, announcing(tell))
    print(f"{options.out}: a census, releases, and reports on TopDown, PHSafe and SafeTab to open in a browser:")
    for report in reports:
        print(report)
