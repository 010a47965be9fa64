"""A configuration file, read without rounding and with all its faults named at once, each with its line. Public.

Values given beside the file, such as ``rho=1/2``, take the place of the file's.
"""

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from yupana.errors import ConfigError, is_line, nearest
from yupana.files.names import normal
from yupana.files.regular import regular, replacing

_HEAD: Final = re.compile(r"\s*(\[{1,2})([^\[\]]+)\]{1,2}\s*(?:#.*)?$")
_KEY: Final = re.compile(
    r"""\s*((?:"[^"]*"|'[^']*'|[A-Za-z0-9_-]+)(?:\s*\.\s*(?:"[^"]*"|'[^']*'|[A-Za-z0-9_-]+))*)\s*="""
)
_JSON: Final = re.compile(r'"((?:[^"\\]|\\.)*)"\s*(:?)|([{}\[\],\n])|[^\s"{}\[\],]+')
_UNKNOWN: Final = re.compile(r"(?:([^:]*): )?key '([^']*)' is unknown")


def with_lines(text: str, faults: Iterable[str], *, of_json: bool) -> list[str]:
    """Put before each fault the line that its place is defined on, or the nearest thing above it; none of one line."""
    lines: dict[str, int] = {}
    for place, number in _json_lines(text) if of_json else _toml_lines(text):
        lines.setdefault(place, number)
    # The places of a configuration in a manifest are not those of the file.
    if "\n" not in text.strip() or "yupana" in lines:
        return list(faults)
    found = []
    for fault in faults:
        unknown = _UNKNOWN.match(fault)
        place = ".".join(filter(None, unknown.groups())) if unknown else fault.partition(": ")[0]
        found.append(with_line(fault, place, lines))
    return found


def with_line(fault: str, place: str, lines: Mapping[str, int]) -> str:
    """A fault with the line that its place stands on, or the nearest one above."""
    while place and place not in lines:
        place = place[: max(place.rfind("."), place.rfind("["), 0)]
    return f"line {lines[place]}: {fault}" if place else fault


def _toml_lines(text: str) -> Iterator[tuple[str, int]]:
    """The line of every key of TOML, by its whole path."""
    head, heads = "", dict[str, int]()
    for number, line in enumerate(text.splitlines(), 1):
        if match := _HEAD.match(line):
            head = _key_path(match[2])
            yield head, number
            if len(match[1]) > 1:
                heads[head] = heads.get(head, -1) + 1
                head = f"{head}[{heads[head]}]"
                yield head, number
        elif match := _KEY.match(line):
            yield f"{head}.{_key_path(match[1])}".lstrip("."), number


def _key_path(text: str) -> str:
    return ".".join(part.strip().strip("\"'") for part in re.findall(r"\"[^\"]*\"|'[^']*'|[^.]+", text))


def _json_lines(text: str) -> Iterator[tuple[str, int]]:
    """The line of every key and item of JSON, by its whole path."""
    number, within, here = 1, list[tuple[str, int]](), ""
    for word, colon, sign in _JSON.findall(text):
        if sign == "\n":
            number += 1
        elif colon:
            here = f"{within[-1][0]}.{word}".lstrip(".")
            yield here, number
        elif sign in {"}", "]"}:
            here, _ = within.pop()
        elif sign == ",":
            above, items = within.pop()
            within.append((above, items + 1))
            here = f"{above}[{items + 1}]"
        else:
            yield here, number
            within += [(here, 0)] if sign else []
            here = f"{here}[0]" if sign == "[" else here


class Number(str):
    """A number as the file writes it, so that a decimal stays the decimal it shows."""

    __slots__ = ()


DEEPEST: Final = 40
"""Deeper than any document of ours, and far from where a recursion ends."""


def is_deeper(value: object) -> bool:
    """Whether lists and tables lie in each other more than `DEEPEST`."""
    layer = [value]
    for _ in range(DEEPEST):
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
        raise ConfigError(
            f"config {name}: no such file, and none of the built-in names {known}{meant or '; init writes one'}"
        )
    return Path(name)


def read_document(path: Path) -> tuple[object, list[str]]:
    """Read TOML, or JSON with the same keys, whose numbers are `Number`; keys that are given twice are first faults.

    A file is JSON if its name says so, or if it begins with a brace, as no TOML does. Texts are in normal form C.

    Raises
    ------
    ConfigError
        If there is no such file, or it is neither.
    """
    text, faults, too_deep = _text(path), list[str](), f"{path}: not a configuration: nested too deeply"
    try:
        # A digit separator is TOML's alone.
        document = (
            _loads(text, faults)
            if _is_json(path, text)
            else tomllib.loads(text, parse_float=lambda number: Number(number.replace("_", "")))
        )
    except RecursionError:
        raise ConfigError(too_deep) from None
    except json.JSONDecodeError as error:
        raise ConfigError(f"{path}: not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from None
    except ValueError as error:
        raise ConfigError(f"{path}: not TOML: {error}{_unquoted(text, str(error))}") from None
    if is_deeper(document):
        raise ConfigError(too_deep)
    return _settled("", document, faults), faults


def _unquoted(text: str, error: str) -> str:
    """What to do, where the line that is no TOML may have a key that must stand in quotes."""
    at, lines = re.search(r"at line (\d+)", error), text.splitlines()
    if at is None or int(at[1]) > len(lines):
        return ""
    bare = re.sub(r""""[^"]*"|'[^']*'|#.*""", "", lines[int(at[1]) - 1])
    if bare.isascii() and "Expected '='" not in error:
        return "; a text stands in quotes" if error.startswith("Invalid value") else ""
    return '; a key with a space or other letters than A to Z stands in quotes, such as "région" = ...'


def _is_json(path: Path, text: str) -> bool:
    return path.suffix.lower() == ".json" or text.lstrip().startswith("{")


def _text(path: Path) -> str:
    try:
        with open(path, encoding="utf-8-sig", opener=regular) as file:
            return file.read()
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise ConfigError(f"{path}: is a folder; name a file, such as a release's manifest.json") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: not a text file") from None
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None


def read_value(text: str, faults: list[str]) -> object:
    """A value in JSON, its numbers as written; what is none, such as ``1/2``, is a text as it stands.

    Texts are in normal form C.
    """
    try:
        return _settled("", _loads(text, faults), faults)
    except (ValueError, RecursionError):
        return normal(text)


def _loads(text: str, faults: list[str]) -> object:
    return json.loads(
        text,
        parse_float=Number,
        parse_int=Number,
        parse_constant=Number,
        object_pairs_hook=lambda pairs: _unique(pairs, faults),
    )


def _settled(place: str, value: object, faults: list[str]) -> object:
    """Make texts those of normal form C, and whole numbers `Number`, as JSON's are; true and false are no numbers."""
    if isinstance(value, dict):
        found: dict[str, object] = {}
        for key, item in value.items():
            own = normal(key)
            if own in found:
                faults.append(f"{place}: key {own!r} is given twice, in two spellings of one text".lstrip(": "))
            found[own] = _settled(f"{place}.{own}".lstrip("."), item, faults)
        return found
    if isinstance(value, list):
        return [_settled(place, item, faults) for item in value]
    if type(value) is str:
        return normal(value)
    return Number(value) if type(value) is int else value


def refuse(path: Path, faults: list[str]) -> ConfigError:
    """The error that names all faults of a document, with their lines where it has several."""
    try:
        text = normal(_text(path))
        told = with_lines(text, faults, of_json=_is_json(path, text))
    except ConfigError:
        told = faults
    return ConfigError("\n".join([f"{path} cannot be used:", *(f"  {fault}" for fault in told)]))


def _unique(pairs: list[tuple[str, Any]], faults: list[str]) -> dict[str, Any]:
    keys = [key for key, _ in pairs]
    faults += [f"key {key!r} is given twice" for key in dict.fromkeys(keys) if keys.count(key) > 1]
    return dict(pairs)


def write_document(path: Path, text: str) -> None:
    """Write a document that is told in TOML; as JSON, without its comments, where the name says so."""
    if path.suffix.lower() == ".json":
        text = json.dumps(tomllib.loads(text), indent=1) + "\n"
    with replacing(path) as file:
        file.write(text.encode())


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
    return isinstance(value, str) and not isinstance(value, Number) and bool(value.strip()) and is_line(value)


@dataclass(frozen=True, slots=True)
class Changes:
    """What is changed in a document before its reader checks it."""

    # keys with dots between the tables they lie in (`keys_of`), and values as JSON, or texts as they are
    values: tuple[tuple[str, str], ...] = ()
    # the keys of the table that is meant, where a document holds several; empty for the document itself
    within: tuple[str, ...] = ()

    def applied(self, document: object, faults: list[str]) -> object:
        """The document, or the table meant in it, with these values; a key that there is not yet is added.

        Whether it may have such a key is for the reader to say.
        """
        for key in self.within:
            document = document.get(key) if isinstance(document, dict) else None
        if not isinstance(document, dict):
            return document
        places = [place for place, _ in self.values]
        faults += [f"{place}: is set twice" for place in dict.fromkeys(places) if places.count(place) > 1]
        for place, text in self.values:
            document = _with(document, place, keys_of(place), read_value(text, faults), faults)
        return document


def keys_of(place: str) -> list[str]:
    """The keys of a place such as ``tables.T1.budget``; one with a dot in it stands in quotes, as in TOML.

    A key is empty where there is none, or quotes do not end.
    """
    keys: list[str] = []
    at = 0
    while found := _IN_PLACE.match(place, at):
        keys.append(normal(found[1] or found[2] or ""))
        at = found.end() + 1
        if at > len(place):
            return keys
        if place[at - 1] != ".":
            break
    return [*keys, ""]


_IN_PLACE: Final = re.compile(r'"([^"]*)"|([^."]+)')


UNCHANGED: Final = Changes()


def _with(table: dict[str, Any], place: str, keys: list[str], value: object, faults: list[str]) -> dict[str, Any]:
    """A table with a value at a place in it or in its tables."""
    if len(keys) > 1:
        inner = table.get(keys[0], {})
        if not isinstance(inner, dict):
            faults.append(f"{place}: {keys[0]!r} is no table of keys and values")
            return table
        value = _with(inner, place, keys[1:], value, faults)
    return {**table, keys[0]: value}
