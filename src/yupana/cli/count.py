"""`yupana count RECORDS --by ... --epsilon E`: one table of one record file, its cost told before it is spent."""

import argparse
import re
from pathlib import Path
from typing import Any

import yupana
from yupana.cli.arguments import Commands, confidence_level, limits, place, print_json, seed
from yupana.cli.product import add_memory, add_resume_argument, given, print_release, resumable
from yupana.errors import ConfigError


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
    text = "the column that says whose each record is (default: each record is a unit)"
    parser.add_argument("--unit", metavar="COLUMN", help=text)
    text = "how many records of one unit count; of those with more, some are chosen by a hash (1)"
    parser.add_argument("--max-per-unit", type=int, default=1, metavar="N", help=text)
    _add_codes(parser)
    _add_loss(parser)
    parser.add_argument("--out", type=Path, metavar="OUT", help="a folder that does not exist or is empty")
    text = "tell what it would cost, and read no record"
    parser.add_argument("--dry-run", action="store_true", help=text)
    text = "tables of each column alone and the total, too, as sums of the noisy cells"
    parser.add_argument("--totals", action="store_true", help=text)
    parser.add_argument("--format", choices=("csv", "parquet"), help="(csv)")
    parser.add_argument("--overwrite", action="store_true", help="replace an earlier release in OUT")
    add_resume_argument(parser)
    parser.add_argument("--log", type=Path, metavar="FILE", help="the confidential log (default: beside OUT)")
    parser.add_argument("--confidence", type=confidence_level, metavar="C", help="of the margins (0.9)")
    text = "reproducible noise, for synthetic data only (a file SYNTHETIC lies beside RECORDS); NOT FOR RELEASE"
    parser.add_argument("--seed", type=seed, metavar="S", help=text)
    text = "add this loss to what was spent on the same data"
    parser.add_argument("--ledger", type=Path, metavar="FILE", help=text)
    parser.add_argument("--dataset", metavar="NAME", help="your name for the data in the ledger")
    text = "largest loss the ledger may reach for the data"
    parser.add_argument("--limit", type=limits, metavar="L", help=text)
    add_memory(parser)
    parser.add_argument("--json", action="store_true", help="print the manifest, or with --dry-run the plan")
    parser.set_defaults(command=_count)


def _add_codes(parser: argparse.ArgumentParser) -> None:
    text = "a public CSV file with the codes of the columns of the same name; may be repeated"
    parser.add_argument("--keys", type=Path, action="append", metavar="FILE", help=text)
    text = "the codes of a column, such as sex=1,2; may be repeated"
    parser.add_argument("--domain", action="append", default=[], metavar="COLUMN=CODES", help=text)
    text = "you declare that the values that occur are public, of columns without codes; the manifest says so"
    parser.add_argument("--keys-public", action="store_true", help=text)


def _add_loss(parser: argparse.ArgumentParser) -> None:
    text = "loss of one unit: pure differential privacy, or with --delta zCDP that keeps within it"
    parser.add_argument("--epsilon", metavar="E", help=text)
    parser.add_argument("--delta", metavar="D", help="with --epsilon, such as 1e-9")
    parser.add_argument("--rho", metavar="R", help="loss of one unit under zCDP, in place of epsilon")


def _count(options: argparse.Namespace) -> None:
    options.domains = _domains(options.domain)
    asked = given(yupana.count, options)
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
