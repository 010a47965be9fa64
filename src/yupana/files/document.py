"""A configuration file, read without rounding and with all its faults named at once. Public."""

import json
import tomllib
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from yupana.errors import ConfigError, nearest
from yupana.files.lines import with_lines
from yupana.files.regular import regular


class Number(str):
    """A number as the file writes it, so that a decimal stays the decimal it shows."""

    __slots__ = ()


DEEPEST: Final = 40
"""Deeper than any document of ours, and far from where a recursion ends."""


def is_deeper(value: object, most: int = DEEPEST) -> bool:
    """Whether lists and tables lie in each other more than so deep."""
    layer = [value]
    for _ in range(most):
        layer = [
            item
            for one in layer
            if isinstance(one, dict | list)
            for item in (one.values() if isinstance(one, dict) else one)
        ]
        if not layer:
            return False
    return True


def located(name: str | Path, package: str, built_in: Sequence[str]) -> Path:
    """Where a configuration lies: a file, or one that a package brings along in its folder ``builtin``.

    Raises
    ------
    ConfigError
        If there is none.
    """
    if str(name) in built_in:
        return Path(str(files(package) / "builtin" / f"{name}.toml"))
    if not Path(name).exists():
        known, meant = ", ".join(built_in), nearest(str(name), built_in)
        raise ConfigError(f"config {name}: no such file, and none of the built-in names {known}{meant}")
    return Path(name)


def read_document(path: Path) -> tuple[object, list[str]]:
    """Read TOML, or JSON with the same keys, whose numbers are `Number`; keys that JSON gives twice are first faults.

    A file is JSON if its name says so, or if it begins with a brace, as no TOML does.

    Raises
    ------
    ConfigError
        If there is no such file, or it is neither.
    """
    text = _text(path)
    if _is_json(path, text):
        return _json(path, text)
    try:
        # A digit separator is TOML's alone.
        document = tomllib.loads(text, parse_float=lambda number: Number(number.replace("_", "")))
    except RecursionError:
        raise _too_deep(path) from None
    except ValueError as error:
        raise ConfigError(f"config {path}: not TOML: {error}") from None
    if is_deeper(document):
        raise _too_deep(path)
    return _numbers(document), []


def _is_json(path: Path, text: str) -> bool:
    return path.suffix.lower() == ".json" or text.lstrip().startswith("{")


def _text(path: Path) -> str:
    try:
        with open(path, encoding="utf-8-sig", opener=regular) as file:
            return file.read()
    except FileNotFoundError:
        raise ConfigError(f"config {path}: no such file") from None
    except IsADirectoryError:
        raise ConfigError(f"config {path}: is a folder; name the configuration file itself") from None
    except UnicodeDecodeError:
        raise ConfigError(f"config {path}: not a text file") from None
    except OSError as error:
        raise ConfigError(f"config {path}: {error.strerror}") from None


def read_value(text: str, faults: list[str]) -> object:
    """A value in JSON, its numbers as written; what is none, such as ``1/2``, is a text as it stands."""
    try:
        return _loads(text, faults)
    except (ValueError, RecursionError):
        return text


def _loads(text: str, faults: list[str]) -> object:
    return json.loads(
        text,
        parse_float=Number,
        parse_int=Number,
        parse_constant=Number,
        object_pairs_hook=lambda pairs: _unique(pairs, faults),
    )


def _json(path: Path, text: str) -> tuple[object, list[str]]:
    faults: list[str] = []
    try:
        document = _loads(text, faults)
    except json.JSONDecodeError as error:
        raise ConfigError(
            f"config {path}: not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        ) from None
    except RecursionError:
        raise _too_deep(path) from None
    if is_deeper(document):
        raise _too_deep(path)
    return document, faults


def _too_deep(path: Path) -> ConfigError:
    return ConfigError(f"config {path}: not a configuration: nested too deeply")


def _numbers(value: object) -> object:
    """Make whole numbers `Number`, too, as JSON's are; true and false are no numbers."""
    if isinstance(value, dict):
        return {key: _numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_numbers(item) for item in value]
    return Number(value) if type(value) is int else value


def refuse(path: Path, faults: list[str]) -> ConfigError:
    """The error that names all faults of a document, with their lines where it has several."""
    try:
        text = _text(path)
        told = with_lines(text, faults, of_json=_is_json(path, text))
    except ConfigError:
        told = faults
    return ConfigError("\n".join([f"config {path} cannot be used:", *(f"  {fault}" for fault in told)]))


def _unique(pairs: list[tuple[str, Any]], faults: list[str]) -> dict[str, Any]:
    keys = [key for key, _ in pairs]
    faults += [f"key {key!r} is given twice" for key in dict.fromkeys(keys) if keys.count(key) > 1]
    return dict(pairs)


def check_keys(
    place: str, value: dict[str, Any], required: tuple[str, ...], faults: list[str], optional: tuple[str, ...] = ()
) -> None:
    """Name the keys that are missing, and those that are neither required nor optional."""
    faults += [f"{place}: key {key!r} is missing".lstrip(": ") for key in required if key not in value]
    known = (*required, *optional)
    faults += [
        f"{place}: key {key!r} is unknown; known are {', '.join(known)}{nearest(key, known)}".lstrip(": ")
        for key in value
        if key not in known
    ]


def is_text(value: object) -> bool:
    """Whether a value is a text of one line that is not empty; a `Number` is none."""
    return isinstance(value, str) and not isinstance(value, Number) and bool(value.strip()) and value.isprintable()
