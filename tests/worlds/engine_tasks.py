"""Tasks that workers of any engine can import."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

from yupana.errors import InputError

PLANTED = "QZXPLANTED7311"
"""A value of a record that no message, log or stream may show."""


def twice(work: bytes) -> bytes:
    return work * 2


def fails(work: bytes) -> bytes:
    raise ValueError(PLANTED + work.decode())


def refuses(work: bytes) -> bytes:
    raise InputError(f"{len(work)} records break a rule")


def by_letter(work: bytes) -> Iterator[tuple[int, bytes]]:
    """A parcel for each letter, to the shard of its place in the alphabet."""
    for letter in work:
        yield letter - ord("a"), bytes([letter])


def fails_later(work: bytes) -> Iterator[tuple[int, bytes]]:
    yield 0, b"a"
    raise ValueError(PLANTED + work.decode())


def large(work: bytes) -> Iterator[tuple[int, bytes]]:
    for place in range(3):
        yield place, work * (1 << 20)


def joined(shard: int, parcels: Iterator[bytes]) -> bytes:
    return b"%d:" % shard + b"".join(parcels)


def first_alone(_shard: int, parcels: Iterator[bytes]) -> bytes:
    return next(parcels, b"none")


def size(_shard: int, parcels: Iterator[bytes]) -> bytes:
    return b"%d" % sum(map(len, parcels))


def killed_once(work: bytes) -> bytes:
    """Kill the process at the first attempt, of which a file tells."""
    mark = Path(work.decode())
    try:
        mark.touch(exist_ok=False)
    except FileExistsError:
        return work
    os.kill(os.getpid(), signal.SIGKILL)
    return b""
