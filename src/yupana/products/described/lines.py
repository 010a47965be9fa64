"""On which line of a description in TOML a fault stands. Public."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

_HEAD: Final = re.compile(r"\s*\[{1,2}([^\[\]]+)\]{1,2}\s*(?:#.*)?$")
_KEY: Final = re.compile(
    r"""\s*((?:"[^"]*"|'[^']*'|[A-Za-z0-9_-]+)(?:\s*\.\s*(?:"[^"]*"|'[^']*'|[A-Za-z0-9_-]+))*)\s*="""
)
_UNKNOWN: Final = re.compile(r"key '([^']*)' is unknown")


def with_lines(path: Path, faults: Iterable[str]) -> list[str]:
    """Put before each fault the line that its place is defined on, or the nearest thing above it; none for JSON."""
    if path.suffix.lower() != ".toml":
        return list(faults)
    lines = _lines(path.read_text(encoding="utf-8-sig"))
    found = []
    for fault in faults:
        place = fault.partition(":")[0].strip()
        if at_top := _UNKNOWN.match(fault):
            place = at_top[1]
        while place and place not in lines:
            place = place.rpartition(".")[0]
        found.append(f"line {lines[place]}: {fault}" if place in lines else fault)
    return found


def _lines(text: str) -> dict[str, int]:
    """The line of every key, by its whole path."""
    lines: dict[str, int] = {}
    head = ""
    for number, line in enumerate(text.splitlines(), 1):
        if match := _HEAD.match(line):
            head = _path(match[1])
            lines.setdefault(head, number)
        elif match := _KEY.match(line):
            lines.setdefault(f"{head}.{_path(match[1])}".lstrip("."), number)
    return lines


def _path(text: str) -> str:
    return ".".join(part.strip().strip("\"'") for part in re.findall(r"\"[^\"]*\"|'[^']*'|[^.]+", text))
