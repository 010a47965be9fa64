"""`yupana count RECORDS --by ... --epsilon E`: one table of one record file, its cost told before it is spent."""

import argparse
import re
from pathlib import Path
from typing import Any

import yupana
from yupana.cli.arguments import Commands, place, print_json
from yupana.cli.options import add_declared
from yupana.cli.product import print_release, resumable
from yupana.errors import ConfigError
from yupana.interface.configured import Configured
from yupana.interface.options import OF_ACCOUNT, OF_EXECUTION, OPTIONS, CountTerms, declared
from yupana.products import PRODUCTS


def add(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "count",
        help="one table of one record file, with noise, and what it costs",
        description="Count the records of one file by some of its columns, with noise. What it costs and how accurate "
        "it will be is told before any record is read; docs/count.md tells more.",
    )
    parser.add_argument("data", type=place, metavar="RECORDS", help="a file of records: .csv or .parquet")
    text = "columns of codes, or whole numbers in classes as COLUMN:WIDTH:LOW-HIGH, such as region,age:5:0-115,sex"
    parser.add_argument("--by", required=True, metavar="COLUMNS", help=text)
    add_declared(parser, declared(CountTerms))
    parser.add_argument("--out", type=Path, metavar="OUT", help="a folder that does not exist or is empty")
    text = "tell what it would cost, and read no record"
    parser.add_argument("--dry-run", action="store_true", help=text)
    add_declared(parser, {name: OPTIONS[name] for name in ("confidence", "format")}, PRODUCTS.listing("tables"))
    add_declared(parser, declared(Configured.run))
    add_declared(parser, OF_ACCOUNT, without=("unit", "household_cap"))
    add_declared(parser, {"memory": OF_EXECUTION["memory"]})
    parser.add_argument("--json", action="store_true", help="print the manifest, or with --dry-run the plan")
    parser.set_defaults(command=_count)


def _count(options: argparse.Namespace) -> None:
    options.domains = _domains(options.domains)
    given = {name: value for name, value in vars(options).items() if name not in {"command", "json", "dry_run"}}
    asked = {name: value for name, value in given.items() if value is not None}
    try:
        told: Any = yupana.count(**{**asked, "dry_run": True})
    except ConfigError as error:
        raise error.reworded(_as_typed) from None
    if options.dry_run and options.json:
        print_json(told.as_json())
    elif not options.json:
        print(told, flush=True)
    if not options.dry_run:
        if options.out is None:
            raise ConfigError("--out: name the folder of the release; --dry-run tells the cost without one")
        with resumable("count", options):
            release: Any = yupana.count(**asked, progress=True)
        print_release(options, release)


def _as_typed(message: str) -> str:
    """A message about arguments of Python in the words of the command line."""
    message = re.sub(r"(?m)^(  )(by|unit|keys|epsilon|rho|delta):", r"\1--\2:", message)
    message = message.replace("  domains:", "  --domain:").replace("domains (as ", "--domain (as ")
    return re.sub(r"(?<![\w-])keys_public", "--keys-public", message).replace("Give keys (", "Give --keys (")


def _domains(told: list[str]) -> dict[str, list[str]] | None:
    found: dict[str, list[str]] = {}
    for text in told:
        column, sign, codes = text.partition("=")
        if not sign or not column or not codes:
            raise ConfigError(f"--domain {text}: must be COLUMN=CODE,CODE, such as sex=1,2")
        if column in found:
            raise ConfigError(f"--domain {column}: is given twice; name all its codes at once")
        found[column] = [code.strip() for code in codes.split(",")]
    return found or None
