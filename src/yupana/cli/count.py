"""`yupana count RECORDS --by ... --epsilon E`: one table of one record file, its cost told before it is spent."""

import argparse
import re
import sys
from typing import Any

import yupana
from yupana.cli.options import given, tell
from yupana.cli.product import print_release, resumable
from yupana.errors import ConfigError
from yupana.files.names import normal


def count(options: argparse.Namespace) -> None:
    """Tell what a table of one file costs, and make it."""
    options.domains = _domains(options.domains)
    options.others = _others(options.others)
    asked = given(options, "dry_run")
    try:
        told: Any = yupana.count(**{**asked, "dry_run": True})
    except ConfigError as error:
        raise error.reworded(_as_typed) from None
    if options.dry_run or not options.json:
        tell(options, told.as_json(), [f"{told}"])
        sys.stdout.flush()
    if not options.dry_run:
        if options.out is None:
            raise ConfigError("--out: name the folder of the release; --dry-run tells the cost without one")
        with resumable("count", options):
            release: Any = yupana.count(**asked, progress=True)
        print_release(options, release)


_DOMAIN = re.compile(r'(?:"([^"]+)"|([^"=]+))=(.+)')


def _as_typed(message: str) -> str:
    """A message about arguments of Python in the words of the command line."""
    message = re.sub(
        r"(?m)^(  )(by|unit|keys|others|separator|encoding|decimal|epsilon|rho|delta):", r"\1--\2:", message
    )
    message = message.replace("  domains:", "  --domain:").replace("domains (as ", "--domain (as ")
    return re.sub(r"(?<![\w-])keys_public", "--keys-public", message).replace("Give keys (", "Give --keys (")


def _others(told: list[str]) -> dict[str, str] | str | None:
    """What others are called: of all columns, or by column."""
    if len(told) == 1 and "=" not in told[0]:
        return told[0]
    found: dict[str, str] = {}
    for text in told:
        column, sign, label = text.partition("=")
        if not sign or column in found:
            raise ConfigError(f"--others {text}: must be LABEL once, or COLUMN=LABEL, once for a column")
        found[column] = label
    return found or None


def _domains(told: list[str]) -> dict[str, list[str]] | None:
    found: dict[str, list[str]] = {}
    for text in told:
        parts = _DOMAIN.fullmatch(text)
        column, codes = (normal(parts[1] or parts[2]), parts[3]) if parts else ("", "")
        if not column:
            raise ConfigError(f"--domain {text}: must be COLUMN=CODE,CODE, such as sex=1,2")
        if column in found:
            raise ConfigError(f"--domain {column}: is given twice; name all its codes at once")
        found[column] = [code.strip() for code in codes.split(",")]
    return found or None
