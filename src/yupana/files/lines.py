"""On which line of a document a fault stands. Public."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

_HEAD: Final = re.compile(r"\s*(\[{1,2})([^\[\]]+)\]{1,2}\s*(?:#.*)?$")
_KEY: Final = re.compile(
    r"""\s*((?:"[^"]*"|'[^']*'|[A-Za-z0-9_-]+)(?:\s*\.\s*(?:"[^"]*"|'[^']*'|[A-Za-z0-9_-]+))*)\s*="""
)
_JSON: Final = re.compile(r'"((?:[^"\\]|\\.)*)"\s*(:?)|([{}\[\],\n])|[^\s"{}\[\],]+')
_UNKNOWN: Final = re.compile(r"(?:([^:]*): )?key '([^']*)' is unknown")


def with_lines(text: str, faults: Iterable[str], *, of_json: bool) -> list[str]:
    """Put before each fault the line that its place is defined on, or the nearest thing above it; none of one line."""
    lines: dict[str, int] = {}
    for place, number in _json(text) if of_json else _toml(text):
        lines.setdefault(place, number)
    # The places of a configuration in a manifest are not those of the file.
    if "\n" not in text.strip() or "yupana" in lines:
        return list(faults)
    found = []
    for fault in faults:
        unknown = _UNKNOWN.match(fault)
        place = ".".join(filter(None, unknown.groups())) if unknown else fault.partition(": ")[0]
        while place and place not in lines:
            place = place[: max(place.rfind("."), place.rfind("["), 0)]
        found.append(f"line {lines[place]}: {fault}" if place else fault)
    return found


def _toml(text: str) -> Iterator[tuple[str, int]]:
    """The line of every key of TOML, by its whole path."""
    head, heads = "", dict[str, int]()
    for number, line in enumerate(text.splitlines(), 1):
        if match := _HEAD.match(line):
            head = _path(match[2])
            yield head, number
            if len(match[1]) > 1:
                heads[head] = heads.get(head, -1) + 1
                head = f"{head}[{heads[head]}]"
                yield head, number
        elif match := _KEY.match(line):
            yield f"{head}.{_path(match[1])}".lstrip("."), number


def _path(text: str) -> str:
    return ".".join(part.strip().strip("\"'") for part in re.findall(r"\"[^\"]*\"|'[^']*'|[^.]+", text))


def _json(text: str) -> Iterator[tuple[str, int]]:
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
