"""`hollerith audit epl`: empirical privacy loss."""

import argparse

from hollerith.cli.arguments import Commands
from hollerith.cli.product import add_verb


def add(verbs: Commands) -> None:
    """Add the verb."""
    verb = add_verb(verbs, "epl", "empirical privacy loss of exact and noisy counts", _epl)
    verb.add_argument("--json", action="store_true")


def _epl(options: argparse.Namespace) -> None:
    raise NotImplementedError(options)
