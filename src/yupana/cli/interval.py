"""`yupana interval RELEASE --query ...`: intervals for published and derived cells."""

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING

import yupana
from yupana.cli.arguments import Commands, confidence_level, print_json

if TYPE_CHECKING:
    from yupana.estimate.intervals.intervals import Interval


def add(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "interval",
        help="intervals for cells of a release, and for their sums, differences, ratios and percentages",
        description="Intervals for cells of a release, and for their sums, differences, ratios and percentages.",
        epilog='A query is such as "T04002[REGION_ID=06, ITERATION_CODE=1002, T4_DATA_CELL=3] % T04002[...]"; '
        "docs/intervals.md has the language.",
    )
    parser.add_argument("release", type=Path, metavar="RELEASE", help="of PHSafe, SafeTab-P, SafeTab-H or TopDown")
    parser.add_argument(
        "--query", action="append", required=True, metavar="Q", help="what to give an interval of; may be repeated"
    )
    parser.add_argument(
        "--confidence",
        type=confidence_level,
        default=None,
        metavar="C",
        help="(that of the release's margins of error)",
    )
    parser.add_argument(
        "--noisy-measurements", type=Path, metavar="DIR", help="of a TopDown release: needed for sums and ratios"
    )
    parser.add_argument("--json", action="store_true")
    parser.set_defaults(command=_interval)


def _interval(options: argparse.Namespace) -> None:
    found = yupana.interval(
        options.release, *options.query, confidence=options.confidence, noisy=options.noisy_measurements
    )
    if options.json:
        print_json(found.as_json())
        return
    for one in found.intervals:
        print(one.query)
        estimate = "not defined: the denominator is 0" if one.estimate is None else _number(one.estimate)
        print(f"  estimate  {estimate}")
        if one.variance is not None:
            print(f"  variance  {_number(one.variance)}")
        print(f"  {float(100 * found.confidence):g} %      {_set(one)}")
        print(f"  by        {one.method} ({one.cells:,} {'cell' if one.cells == 1 else 'cells'})")
    print()
    print(f"status: {found.status}")
    for note in found.notes:
        print(f"note: {note}")


def _set(found: "Interval") -> str:
    if found.is_bounded:
        ((lower, upper),) = found.pieces
        return f"{_number(lower)} to {_number(upper)}"
    ends = " or ".join(_piece(lower, upper) for lower, upper in found.pieces)
    return f"{ends} (unbounded: the denominator is not told from 0)"


def _piece(lower: float, upper: float) -> str:
    if math.isinf(lower):
        return "any number" if math.isinf(upper) else f"at most {_number(upper)}"
    return f"at least {_number(lower)}"


def _number(value: float) -> str:
    return f"{value:,.4f}".rstrip("0").rstrip(".") if abs(value) >= _SMALL or value == 0 else f"{value:.4g}"


_SMALL = 0.01
