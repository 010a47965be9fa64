"""`yupana count RECORDS --by ... --epsilon E`: one table of one record file, its cost told before it is spent."""

import argparse
import re
from typing import Any

import yupana
from yupana.cli.options import given, print_json
from yupana.cli.product import print_release, resumable
from yupana.errors import ConfigError
from yupana.files.names import normal


def count(options: argparse.Namespace) -> None:
    """Tell what a table of one file costs, and make it."""
    options.domains = _domains(options.domains)
    asked = given(options, "dry_run")
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


_DOMAIN = re.compile(r'(?:"([^"]+)"|([^"=]+))=(.+)')


def _as_typed(message: str) -> str:
    """A message about arguments of Python in the words of the command line."""
    message = re.sub(r"(?m)^(  )(by|unit|keys|epsilon|rho|delta):", r"\1--\2:", message)
    message = message.replace("  domains:", "  --domain:").replace("domains (as ", "--domain (as ")
    return re.sub(r"(?<![\w-])keys_public", "--keys-public", message).replace("Give keys (", "Give --keys (")


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
