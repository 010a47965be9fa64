"""Argument types shared by the commands; a wrong one ends the program with status 2 and a sentence."""

import argparse
import json
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

from yupana.cli.parser import path
from yupana.engine.engine import LEAST_MEMORY
from yupana.files.store import scheme_of
from yupana.plan.account import OWN, RECORD
from yupana.privacy.exact import Budget, read_exact

Commands = Any
"""What ``add_subparsers`` returns; argparse keeps its type private."""


def budget(text: str) -> Budget:
    """A loss: exact, zero or more, or infinite."""
    value = _exact(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text} is negative")
    return value


def setting(text: str) -> tuple[str, str]:
    """A key of a configuration, dots between the tables it lies in, and its value: ``queries.County.total=1/4``."""
    key, sign, value = text.partition("=")
    if not sign or not all(key.split(".")):
        raise argparse.ArgumentTypeError(f"{text} is no KEY=VALUE, such as tau.PH2=10")
    return key, value


def limits(text: str) -> dict[str, Budget]:
    """Limits by kind of neighbours, ``unbounded=3,bounded=6``, or one number: the plan's own loss.

    A kind may be that of a part, as in ``persons=3,units.bounded=6``; which parts there are is not known here.
    """
    if "=" not in text:
        return {OWN: budget(text)}
    pairs = [part.partition("=") for part in text.split(",")]
    kinds = [kind.strip() for kind, _, _ in pairs]
    for kind in kinds:
        if not _KIND.fullmatch(kind) or kinds.count(kind) > 1:
            raise argparse.ArgumentTypeError(f"{kind!r} is not one of {', '.join(RECORD.columns)}, each once")
    return {kind: budget(value) for kind, (_, _, value) in zip(kinds, pairs, strict=True)}


_KIND = re.compile(r"[a-z][a-z0-9_]*(\.[a-z_]+)?")


def positive(text: str) -> Fraction:
    """An exact number above zero, not so small or large that results of computing with it fit no double."""
    value = _exact(text)
    if not isinstance(value, Fraction) or value <= 0:
        raise argparse.ArgumentTypeError(f"{text} is not a finite number above 0")
    if not 1 / _MOST <= value <= _MOST:
        raise argparse.ArgumentTypeError(f"{text} does not lie between 1e-30 and 1e30")
    return value


def confidence_level(text: str) -> Fraction:
    """A confidence level: 0.95, 95% or 95."""
    value = _exact(text.removesuffix("%"))
    if text.endswith("%") or (isinstance(value, Fraction) and 0 < value < 1):
        return share(text)
    if not isinstance(value, Fraction) or not 1 < value < 100:
        raise argparse.ArgumentTypeError(f"{text} is no confidence level; write 0.95, 95 or 95%")
    return share(f"{text}%")


def share(text: str) -> Fraction:
    """An exact number between 0 and 1, such as a delta; a percentage is read, too.

    Doubles must tell it, its half and its inverse from 0, from 1 and from infinity.
    """
    value = _exact(text.removesuffix("%"))
    value = value / 100 if text.endswith("%") else value
    if not isinstance(value, Fraction) or not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"{text} does not lie strictly between 0 and 1")
    if not _LEAST_SHARE <= value <= 1 - _NEAR_ONE:
        raise argparse.ArgumentTypeError(f"{text} does not lie between 1e-300 and 1 - 1e-15")
    return value


_MOST = Fraction(10) ** 30
_LEAST_SHARE = Fraction(1, 10**300)
_NEAR_ONE = Fraction(1, 10**15)


def count(text: str) -> int:
    """A whole number above zero."""
    if not _WHOLE.fullmatch(text) or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0 of at most 18 digits")
    return int(text)


_WHOLE = re.compile("[0-9]{1,18}")


def seed(text: str) -> int:
    """A whole number, zero or more."""
    if not _SEED.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at most 100 digits")
    return int(text)


_SEED = re.compile("[0-9]{1,100}")


def place(text: str) -> "str | Path":
    """A path, or a URL as it is written."""
    return text if scheme_of(text) else path(text)


def size(text: str) -> int:
    """An amount of memory in bytes: ``4GB``, ``512MB``, ``1.5GiB``."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?) ?([KMGT]i?)B", text, re.IGNORECASE | re.ASCII)
    if not match:
        raise argparse.ArgumentTypeError(f"{text!r} is no amount of memory such as 4GB")
    number, unit = match.groups()
    base = 1024 if unit.lower().endswith("i") else 1000
    amount = int(Fraction(number) * base ** (1 + "kmgt".index(unit[0].lower())))
    if amount < LEAST_MEMORY:
        raise argparse.ArgumentTypeError(f"{text} is too little: at least {LEAST_MEMORY // 10**6} MB are needed")
    return amount


def _exact(text: str) -> Budget:
    try:
        return read_exact(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: {error}") from None


def print_json(answer: object) -> None:
    """Print an answer as JSON."""
    print(json.dumps(answer, indent=1))
