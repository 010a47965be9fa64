"""The arguments of the command line, made of the declarations, and what their texts mean.

A text that means nothing ends the program with status 2 and a sentence.
"""

import argparse
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, Final

from yupana.cli.parser import path, verbs_of
from yupana.engine.engine import LEAST_MEMORY
from yupana.files.document import keys_of
from yupana.files.store import scheme_of
from yupana.interface.commands import COMMANDS, GROUPS, VERBS, Argument, Command
from yupana.interface.options import OPTIONS, Option, has
from yupana.plan.account import OWN, RECORD
from yupana.privacy.exact import Budget, read_exact
from yupana.products import PRODUCTS

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
    found = _SETTING.fullmatch(text)
    key, value = found.groups() if found else ("", "")
    if not all(keys_of(key)):
        raise argparse.ArgumentTypeError(f"{text} is no KEY=VALUE, such as tau.PH2=10")
    return key, value


_SETTING = re.compile(r'((?:"[^"]*"|[^"=])+)=(.*)', re.DOTALL)
"""A key and its value; within quotes a key may hold the sign between them."""


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


def _whole(least: int, most: int, wrong: str) -> Callable[[str], int]:
    """What reads a whole number within bounds."""

    def read(text: str) -> int:
        if not _DIGITS.fullmatch(text) or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"{text!r} {wrong}")
        return int(text)

    return read


_DIGITS = re.compile("[0-9]{1,100}")


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


def number(text: str) -> float:
    """A double."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no number") from None


def names(text: str) -> tuple[str, ...]:
    """Names with commas between."""
    return tuple(name.strip() for name in text.split(","))


_KINDS: Final[Mapping[str, dict[str, Any]]] = {
    "path": {"type": Path},
    "paths": {"type": Path, "action": "append"},
    "place": {"type": place},
    "release": {"type": Path},
    "name": {},
    "names": {"type": names},
    "text": {},
    "texts": {"action": "append"},
    "listing": {"nargs": "?", "const": ""},
    "columns": {"type": Path},
    "level": {"type": confidence_level},
    "share": {"type": share},
    "positive": {"type": positive},
    "number": {"type": number},
    "whole": {"type": _whole(1, 10**18 - 1, "is not a whole number above 0 of at most 18 digits")},
    "natural": {"type": _whole(0, 10**100, "is not a whole number, zero or more")},
    "seed": {"type": _whole(0, 10**100, "is not a whole number of at most 100 digits")},
    "port": {"type": _whole(0, 65_535, "is no port: a whole number from 0 to 65535")},
    "size": {"type": size},
    "changes": {"type": setting, "action": "append", "default": []},
    "domains": {"action": "append", "default": []},
    "limits": {"type": limits},
    "settings": {"type": setting, "action": "append"},
}
"""How argparse reads the kinds of options; choices and switches aside."""


def _add(parser: argparse.ArgumentParser, name: str, option: Option, words: Mapping[str, object]) -> None:
    how: dict[str, Any] = {"help": option.help.format_map(words).replace("%", "%%")}
    if option.choices:
        how["choices"] = option.choices
    elif option.kind == "switch":
        how["action"] = "store_false" if option.default is True else "store_true"
        how["default"] = None
    else:
        how |= {"metavar": (option.value or name).format_map(words), **_KINDS[option.kind]}
    if isinstance(option, Argument):
        how |= {"nargs": option.many} if option.many else {}
        parser.add_argument(name, **how)
    else:
        parser.add_argument(option.written(name), dest=name, required=option.required, **how)


def add_product(commands: Commands, key: str, do: Mapping[str, Callable[[str, argparse.Namespace], None]]) -> None:
    """Add a product with its verbs, each with what does it, given the key of the product."""
    listing = PRODUCTS.listing(key)
    verbs = commands.add_parser(key, help=listing.about).add_subparsers(metavar="VERB", required=True)
    for name, verb in VERBS.items():
        if not verb.takes or verb.takes in listing.takes:
            _add_verb(verbs, name, replace(verb, product=key), partial(do[name], key))


def add_command(commands: Commands, words: str, do: Callable[[argparse.Namespace], None]) -> None:
    """Add a command, or a verb of one, with all that it takes."""
    of, _, name = words.rpartition(" ")
    if of and of not in commands.choices:
        commands.add_parser(of, help=GROUPS[of]).add_subparsers(metavar="VERB", required=True)
    _add_verb(verbs_of(commands.choices[of]) if of else commands, name, COMMANDS[words], do)


def _add_verb(verbs: Commands, name: str, declared: Command, do: Callable[[argparse.Namespace], None]) -> None:
    told = declared.more or f"{declared.about[0].upper()}{declared.about[1:]}."
    parser = verbs.add_parser(name, help=declared.about, description=told, epilog=declared.end or None)
    words, taken = {}, {**declared.arguments, **declared.options}
    if declared.product:
        listing = PRODUCTS.listing(declared.product)
        words = listing._asdict() | {"names": ", ".join(listing.built_in)}
        taken = {name: option for name, option in taken.items() if has(listing, option)}
    for option_name, option in taken.items():
        _add(parser, option_name, option, words)
    # What `set` says of an option of products holds where nothing is given.
    defaults = {name: option.default for name, option in taken.items() if option is not OPTIONS.get(name)}
    given = {name: default for name, default in defaults.items() if default not in {None, ()}}
    parser.set_defaults(command=do, **given)
    if declared.json:
        parser.add_argument("--json", action="store_true", help=declared.json)


def given(options: argparse.Namespace, *but: str) -> dict[str, Any]:
    """The options that were given, but for some that are of the command line alone."""
    left = {"command", "json", *but}
    return {name: value for name, value in vars(options).items() if name not in left and value is not None}


def tell(options: argparse.Namespace, answer: object, lines: Iterable[str]) -> None:
    """Print an answer: as JSON if that is asked for, else in lines, which are made only then."""
    for line in [json.dumps(answer, indent=1)] if options.json else lines:
        print(line)
