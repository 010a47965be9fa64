"""Ways to spoil a file. Each is a function of its bytes and of a generator, or of its path where it becomes no file."""

import json
import math
import os
import random
import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

CANARIES: Final = ("987654321", "SECRETX")
"""Values that stand nowhere else, so that a message that shows one shows a record."""

ODD: Final = (
    "",
    "-1",
    "0",
    "1.5",
    "1e999",
    "-0",
    "NaN",
    "Infinity",
    "9" * 30,
    "9" * 5000,
    "true",
    "null",
    "\x00",
    "\u202e",
    "\ud55c",
    "\u0967",
    "'; DROP TABLE persons; --",
    "../../etc/passwd",
    '"',
    "|",
    "{}",
    "%s",
    "X" * 100_000,
    *CANARIES,
)
_VALUES: Final[tuple[Any, ...]] = (
    *(None, True, False, 0, -1, 5, 1.5, 1e308, "", "1e999", "x", [], {}, [{}], [None], {"a": 1}),
    *(10**25, "9" * 200, "-1000", "Infinity", "\x00", "\x1b[31m", "../x", [[[[]]]]),
)

_DEEP: Final = "nested 3,000 deep"
"""Stands for lists in lists, which the library that writes JSON does not get down to."""

_EMPTY: Final[dict[type, Any]] = {str: "", list: [], dict: {}, int: 0, float: 0.0, bool: False}

Place = tuple[str | int, ...]
"""Keys and numbers of items, from the root of a document."""

Spoil = Callable[[bytes, random.Random], bytes]


def _lines(content: bytes) -> list[bytes]:
    return content.splitlines(keepends=True) or [b""]


def flip(content: bytes, rng: random.Random) -> bytes:
    """Change some bits."""
    spoiled = bytearray(content or b"\0")
    for _ in range(rng.choice((1, 1, 3, 20))):
        spoiled[rng.randrange(len(spoiled))] ^= 1 << rng.randrange(8)
    return bytes(spoiled)


def cut(content: bytes, rng: random.Random) -> bytes:
    """Lose the end."""
    return content[: rng.randrange(len(content) + 1)]


def empty(_content: bytes, _rng: random.Random) -> bytes:
    """Lose everything."""
    return b""


def insert(content: bytes, rng: random.Random) -> bytes:
    """Put odd bytes somewhere."""
    at = rng.randrange(len(content) + 1)
    odd = rng.choice(
        (b"\0", b"\r", b"\n", b"\xff\xfe", b"\xef\xbb\xbf", b'"', b"'", b"|", b",", b"\x1a", b"[" * 100_000)
    )
    return content[:at] + odd + content[at:]


def lines(content: bytes, rng: random.Random) -> bytes:
    """Lose, double or exchange lines."""
    found = _lines(content)
    at, other = rng.randrange(len(found)), rng.randrange(len(found))
    match rng.randrange(4):
        case 0:
            del found[at]
        case 1:
            found.insert(at, found[other])
        case 2:
            found[at], found[other] = found[other], found[at]
        case _:
            found *= 2
    return b"".join(found)


def columns(content: bytes, rng: random.Random) -> bytes:
    """Lose, double or exchange columns."""
    separator = b"|" if b"|" in content.partition(b"\n")[0] else b","
    rows = [line.split(separator) for line in content.splitlines()]
    width = max(map(len, rows), default=1)
    at, other, how = rng.randrange(width), rng.randrange(width), rng.randrange(3)
    for row in rows if rng.random() < 0.7 else rows[: rng.randrange(1, 3)]:
        if max(at, other) < len(row):
            match how:
                case 0:
                    del row[at]
                case 1:
                    row.insert(at, row[other])
                case _:
                    row[at], row[other] = row[other], row[at]
    return b"\n".join(map(separator.join, rows)) + b"\n"


def field(content: bytes, rng: random.Random) -> bytes:
    """Make one field odd."""
    found = _lines(content)
    at = rng.randrange(len(found))
    separator = b"|" if b"|" in found[at] else b","
    fields = found[at].rstrip(b"\r\n").split(separator)
    fields[rng.randrange(len(fields))] = rng.choice(ODD).encode()
    found[at] = separator.join(fields) + b"\n"
    return b"".join(found)


def ends(content: bytes, rng: random.Random) -> bytes:
    """End lines otherwise."""
    return content.replace(b"\n", rng.choice((b"\r", b"\r\n", b"\n\n", b"\n\r", b"")))


def encoding(content: bytes, rng: random.Random) -> bytes:
    """Write the text otherwise."""
    text = content.decode("latin-1")
    return text.encode(rng.choice(("utf-16", "utf-8-sig", "utf-32", "utf-7")))


def number(content: bytes, rng: random.Random) -> bytes:
    """Make one of the numbers in a text odd."""
    places = [at for at, byte in enumerate(content) if chr(byte).isdigit()]
    if not places:
        return flip(content, rng)
    at = rng.choice(places)
    end = at
    while end < len(content) and chr(content[end]).isdigit():
        end += 1
    return content[:at] + rng.choice(ODD).encode() + content[end:]


def places(value: Any, path: Place = ()) -> Iterator[Place]:  # noqa: ANN401 (a document)
    """Every place below the root; of a list the first and the last item."""
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = [(at, value[at]) for at in sorted({0, len(value) - 1} if value else ())]
    for key, item in items:
        yield (*path, key)
        yield from places(item, (*path, key))


def changes(value: Any) -> dict[str, Any]:  # noqa: ANN401 (a document)
    """What a value may become, by a word for it."""
    found: dict[str, Any] = {"null": None, "deep": _DEEP, "emptied": _EMPTY.get(type(value))}
    match value:
        case bool():
            found["turned"] = not value
        case int() | float():
            found |= {"/1000": value / 1000, "*1000": value * 1000, "negated": -value, "+1": value + 1}
            found |= {"infinite": math.inf, "huge": 10**25, "a text": str(value)}
        case str():
            if fraction := re.fullmatch(r"(\d+)(?:/(\d+))?", value):
                found |= {
                    "/1000": f"{fraction[1]}/{fraction[2] or 1}000",
                    "*1000": f"{fraction[1]}000/{fraction[2] or 1}",
                }
                found |= {"infinite": "Infinity", "huge": "9" * 200, "negated": f"-{value}"}
            found |= {"changed": value[:-1] + ("y" if value[-1:] == "x" else "x"), "long": value + "x" * 100_000}
            found |= {"for a terminal": f"\x1b]0;x\x07{value}\x1b[31m", "in a list": [value]}
        case list():
            found |= {"doubled": value * 2, "reversed": value[::-1], "nested": [value], "shorter": value[:-1]}
            found["nested at the end"] = [*value[:-1], value[-1:]]
        case dict():
            found |= {"nested": {"a": value}, "shorter": dict(list(value.items())[:-1])}
            found["more"] = {**value, "x": next(iter(value.values()), 1)}
    return {way: changed for way, changed in found.items() if type(changed) is not type(value) or changed != value}


def altered(document: Any, place: Place, way: str, value: Any = None) -> Any:  # noqa: ANN401 (a document)
    """The document with what stands at a place dropped, renamed or replaced."""
    found = json.loads(json.dumps(document))
    parent = found
    for key in place[:-1]:
        parent = parent[key]
    match way:
        case "dropped":
            del parent[place[-1]]
        case "renamed" if isinstance(parent, dict):
            parent[f"{place[-1]}x"] = parent.pop(place[-1])
        case _:
            parent[place[-1]] = value
    return found


def written(document: Any, *, toml: bool = False) -> bytes:  # noqa: ANN401 (a document)
    """A document as a file."""
    if toml and isinstance(document, dict):
        text = "".join(f"{json.dumps(key)} = {_inline(item)}\n" for key, item in document.items())
    else:
        text = json.dumps(document, indent=1)
    return text.replace(json.dumps(_DEEP), "[" * 3000 + "]" * 3000).encode("utf-8", "surrogatepass")


def _inline(value: Any) -> str:  # noqa: ANN401 (a document)
    match value:
        case dict():
            return "{" + ", ".join(f"{json.dumps(key)} = {_inline(item)}" for key, item in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(_inline, value)) + "]"
        case float() if math.isinf(value):
            return "inf"
        case None:
            return "{}"
    return json.dumps(value)


def value(content: bytes, rng: random.Random) -> bytes:
    """Change, lose, rename or add something in a document of JSON or TOML."""
    try:
        text = content.decode()
        toml = not text.lstrip().startswith(("{", "["))
        document: Any = tomllib.loads(text) if toml else json.loads(text)
    except (ValueError, RecursionError):  # what other mutations made of it
        return flip(content, rng)
    if not document:
        return written(rng.choice(_VALUES))
    # First a key of the root, so that a long part does not take all draws.
    first = rng.choice([place for place in places(document) if len(place) == 1])
    place = rng.choice([place for place in places(document) if place[:1] == first])
    here = document
    for key in place:
        here = here[key]
    way, becomes = rng.choice(
        [*changes(here).items(), ("dropped", None), ("renamed", None), ("odd", rng.choice(_VALUES))]
    )
    return written(altered(document, place, way, becomes), toml=toml)


def nested(content: bytes, rng: random.Random) -> bytes:
    """Nest too deeply."""
    return rng.choice((b"[", b'{"a":', b"a=[", b"[[")) * rng.choice((1_000, 100_000)) + content


CONTENT: Final[tuple[Spoil, ...]] = (
    flip,
    cut,
    empty,
    insert,
    lines,
    columns,
    field,
    ends,
    encoding,
    number,
    value,
    value,
    value,
    nested,
)


def pipe(path: Path) -> None:
    """Become a pipe that nobody writes to."""
    os.mkfifo(path)


def loop(path: Path) -> None:
    """Become a link to itself."""
    path.symlink_to(path.name)


def dangling(path: Path) -> None:
    """Become a link to nothing."""
    path.symlink_to("nowhere")


def device(path: Path) -> None:
    """Become a link to a device without end."""
    path.symlink_to("/dev/zero")


def folder(path: Path) -> None:
    """Become a folder."""
    path.mkdir()


def missing(_path: Path) -> None:
    """Become nothing."""


KIND: Final = (pipe, loop, dangling, device, folder, missing)
