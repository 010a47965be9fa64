"""`yupana synth OUT --households N`: a synthetic census."""

import argparse
from pathlib import Path

import yupana
from yupana.cli.arguments import Commands, count, print_json, seed
from yupana.cli.product import given


def add(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser("synth", help="write a synthetic census in the Bureau's input formats")
    parser.add_argument("out", type=Path, metavar="OUT", help="a folder that does not exist or is empty")
    parser.add_argument("--households", type=count, required=True, metavar="N", help="occupied housing units")
    parser.add_argument("--states", type=_codes, metavar="06,17", help="state codes (default: the 50 states and DC)")
    parser.add_argument("--seed", type=seed, metavar="S", help="makes the census reproducible")
    parser.add_argument("--format", choices=("csv", "parquet"), default="csv")
    parser.add_argument("--json", action="store_true", help="print what was made as JSON")
    parser.set_defaults(command=_synth)


def _codes(text: str) -> list[str]:
    return text.split(",")


def _synth(options: argparse.Namespace) -> None:
    from dataclasses import asdict

    made = yupana.synthesize(**given(yupana.synthesize, options), progress=True)
    if options.json:
        print_json(asdict(made))
    else:
        print(
            f"{options.out}: {made.persons:,} persons in {made.households:,} households and {made.group_quarters:,} "
            f"group quarters; {made.vacant:,} housing units are vacant. Nobody in it exists."
        )
