"""Argument types shared by the commands; a wrong one ends the program with status 2 and a sentence."""

import argparse
import json
import re
from fractions import Fraction
from typing import Any

from hollerith.plan.unit import OWN, RECORD
from hollerith.privacy.exact import Budget, read_exact

Commands = Any
"""What ``add_subparsers`` returns; argparse keeps its type private."""


def budget(text: str) -> Budget:
    """A loss: exact, zero or more, or infinite."""
    value = _exact(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text} is negative")
    return value


def limits(text: str) -> dict[str, Budget]:
    """Limits by kind of neighbours, ``unbounded=3,bounded=6``, or one number: the plan's own loss."""
    if "=" not in text:
        return {OWN: budget(text)}
    pairs = [part.partition("=") for part in text.split(",")]
    kinds = [kind.strip() for kind, _, _ in pairs]
    for kind in kinds:
        if kind not in RECORD.columns or kinds.count(kind) > 1:
            raise argparse.ArgumentTypeError(f"{kind!r} is not one of {', '.join(RECORD.columns)}, each once")
    return {kind: budget(value) for kind, (_, _, value) in zip(kinds, pairs, strict=True)}


def positive(text: str) -> Fraction:
    """An exact number above zero."""
    value = _exact(text)
    if not isinstance(value, Fraction) or value <= 0:
        raise argparse.ArgumentTypeError(f"{text} is not a finite number above 0")
    return value


def share(text: str) -> Fraction:
    """An exact number strictly between 0 and 1, such as a confidence level; a percentage is read, too."""
    value = _exact(text.removesuffix("%"))
    value = value / 100 if text.endswith("%") else value
    if not isinstance(value, Fraction) or not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"{text} does not lie strictly between 0 and 1")
    return value


def count(text: str) -> int:
    """A whole number above zero."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def seed(text: str) -> int:
    """A whole number, zero or more."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(text)


def size(text: str) -> int:
    """An amount of memory in bytes: ``4GB``, ``512MB``, ``1.5GiB``."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?) ?([KMGT]i?)B", text, re.IGNORECASE)
    if not match:
        raise argparse.ArgumentTypeError(f"{text!r} is no amount of memory such as 4GB")
    number, unit = match.groups()
    base = 1024 if unit.lower().endswith("i") else 1000
    amount = int(Fraction(number) * base ** (1 + "kmgt".index(unit[0].lower())))
    if amount < _LEAST_MEMORY:
        raise argparse.ArgumentTypeError(f"{text} is too little: at least {_LEAST_MEMORY // 10**6} MB are needed")
    return amount


_LEAST_MEMORY = 200_000_000
"""What the interpreter and its libraries take before a record is read."""


def _exact(text: str) -> Budget:
    try:
        return read_exact(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: {error}") from None


def print_json(answer: object) -> None:
    """Print an answer as JSON."""
    print(json.dumps(answer, indent=1))
