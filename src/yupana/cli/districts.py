"""`yupana districts RELEASE PLAN --noisy-measurements DIR`: a district plan under noise."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import yupana
from yupana.cli.arguments import Commands, confidence_level, print_json, share

if TYPE_CHECKING:
    from yupana.estimate.results import DistrictEstimates


def add(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "districts",
        help="populations of the districts of a plan, and the chance that the true ones are balanced",
        description="Populations of the districts of a plan with their joint law, the chance that the true ones meet "
        "a rule on balance, and how to tighten the rule for published ones so that they do. docs/districts.md explains "
        "the numbers.",
    )
    parser.add_argument("release", type=Path, metavar="RELEASE", help="of TopDown")
    parser.add_argument("plan", type=Path, metavar="PLAN", help="a table of every block and its district")
    parser.add_argument(
        "--noisy-measurements", type=Path, required=True, metavar="DIR", help="those of the run that made the release"
    )
    parser.add_argument(
        "--rule",
        choices=("range", "deviation"),
        default="range",
        help="largest less smallest district, or the largest difference from the ideal (range)",
    )
    parser.add_argument(
        "--tolerance", type=share, metavar="T", help="in shares of the ideal (10%% for a range, 5%% for a deviation)"
    )
    parser.add_argument(
        "--chance", type=confidence_level, default="95%", metavar="C", help="that a tightened rule keeps (95%%)"
    )
    parser.add_argument("--query", default="total", metavar="Q", help="what is counted, such as P0030001 (total)")
    parser.add_argument(
        "--confidence", type=confidence_level, metavar="C", help="of intervals (that of the release's margins)"
    )
    parser.add_argument("--json", action="store_true", help="with the covariance of all districts")
    parser.set_defaults(command=_districts)


def _districts(options: argparse.Namespace) -> None:
    found = yupana.districts(
        options.release,
        options.plan,
        options.noisy_measurements,
        rule=options.rule,
        tolerance=options.tolerance,
        chance=options.chance,
        query=options.query,
        confidence=options.confidence,
    )
    if options.json:
        print_json(found.as_json())
        return
    _print(found)


def _print(found: "DistrictEstimates") -> None:
    columns = found.columns()
    width = max(len("district"), *(len(name) for name in found.districts))
    ends = f"{float(100 * found.confidence):g} % interval"
    print(f"{found.query} by district, of {len(found)}")
    print(f"{'district':<{width}}  published     estimate  std. dev.  {ends:>25}  from ideal")
    for name, published, estimate, deviation, lower, upper, from_ideal in zip(*columns.values(), strict=True):
        interval = f"{lower:,.1f} to {upper:,.1f}"
        print(
            f"{name:<{width}}  {published:>9,.10g} {estimate:>12,.1f} {deviation:>10,.1f}  {interval:>25}  "
            f"{from_ideal:>+9.3%}"
        )
    chance, what = found.chance, {"range": "largest less smallest", "deviation": "largest difference from the ideal"}
    print()
    print(f"rule       {what[found.rule]} at most {_percent(float(found.tolerance))} of the ideal")
    print(f"           published {_percent(found.departures['published'])}, ", end="")
    print(f"estimated {_percent(found.departures['estimated'])}")
    how = f"standard error {chance.standard_error:.2g}" if chance.standard_error else "by formula"
    print(f"chance     {chance.value:.6g} that the true populations meet it ({how}; ", end="")
    print(f"certainly {chance.lower:.6g} to {chance.upper:.6g})")
    level = _percent(float(found.level))
    if found.tightened is None:
        print(f"tightened  no tolerance of published populations keeps the chance at {level}")
    else:
        print(f"tightened  published populations within {_percent(found.tightened)} keep the chance at {level}")
    print(f"status: {found.status}")
    for note in found.notes:
        print(f"note: {note}")


def _percent(value: float) -> str:
    return f"{100 * value:.4f}".rstrip("0").rstrip(".") + " %"
