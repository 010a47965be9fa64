"""Ways to spoil a file. Each is a function of its bytes and of a generator, or of its path where it becomes no file."""

import json
import os
import random
from collections.abc import Callable
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


def value(content: bytes, rng: random.Random) -> bytes:
    """Change, lose or add something in a document of JSON."""
    try:
        document = json.loads(content)
    except ValueError:
        return flip(content, rng)
    here: Any = document
    while True:
        keys = list(here) if isinstance(here, dict) else list(range(len(here))) if isinstance(here, list) else []
        if not keys:
            return json.dumps(rng.choice(_VALUES)).encode()
        key = rng.choice(keys)
        if isinstance(here[key], dict | list) and here[key] and rng.random() < 0.8:
            here = here[key]
            continue
        match rng.randrange(4) if isinstance(here, dict) else 3:
            case 0:
                del here[key]
            case 1:
                here[rng.choice(ODD[:20])] = here.pop(key)
            case _:
                here[key] = rng.choice(_VALUES)
        return json.dumps(document).encode()


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
