"""`hollerith audit certificate`: what a release promises, on one page."""

import argparse

from hollerith.cli.arguments import Commands
from hollerith.cli.product import add_verb


def add(verbs: Commands) -> None:
    """Add the verb."""
    add_verb(verbs, "certificate", "what a release promises, on one page (HTML) and in JSON", _certificate)


def _certificate(options: argparse.Namespace) -> None:
    raise NotImplementedError(options)
