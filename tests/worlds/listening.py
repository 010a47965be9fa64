"""Where a process and what it has started listen."""

import ipaddress
import sys
from itertools import chain
from pathlib import Path

_LISTENS = "0A"


def addresses(process: int) -> set[str]:
    """The addresses at which a process, or one that it or its children have started, listens over TCP."""
    sockets = set[str]()
    for number in _family(process):
        for entry in Path(f"/proc/{number}/fd").iterdir():
            try:
                sockets.add(str(entry.readlink()))
            except FileNotFoundError:
                continue
    rows = chain.from_iterable(Path(f"/proc/net/{name}").read_text().splitlines()[1:] for name in ("tcp", "tcp6"))
    listening = [fields for fields in map(str.split, rows) if fields[3] == _LISTENS]
    return {_address(fields[1].partition(":")[0]) for fields in listening if f"socket:[{fields[9]}]" in sockets}


def _family(process: int) -> list[int]:
    below = Path(f"/proc/{process}/task").glob("*/children")
    return [process, *chain.from_iterable(_family(int(child)) for file in below for child in file.read_text().split())]


def _address(told: str) -> str:
    words = [told[place : place + 8] for place in range(0, len(told), 8)]
    found = ipaddress.ip_address(b"".join(int(word, 16).to_bytes(4, sys.byteorder) for word in words))
    mapped = getattr(found, "ipv4_mapped", None)
    return str(mapped or found)
