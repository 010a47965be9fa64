"""Tasks that workers of any engine can import."""

import os
import signal
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from yupana.engine.engine import Cut, Engine, Gather, Task
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


def removing(folder: Path, which: str, shard: int, parcels: Iterator[bytes]) -> bytes:
    """Remove parcels of all shards in place of others, when the first of the first shard has been read."""
    first = next(parcels, b"")
    if not shard:
        for path in folder.rglob("*-*"):
            if path.match(which):
                path.unlink(missing_ok=True)  # another process may have read it
    return first + b"".join(parcels)


def emptied(folder: Path, _shard: int, parcels: Iterator[bytes]) -> bytes:
    """Read one parcel, and remove what nobody has read."""
    first = next(parcels)
    for path in folder.rglob("*-*"):
        path.unlink()
    return first


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


def kill_executor_once(mark: Path) -> None:
    """Kill the executor that this runs in, at the first attempt of all, of which a file tells."""
    try:
        mark.touch(exist_ok=False)
    except FileExistsError:
        return
    daemon = os.getppid()
    executor = int(Path(f"/proc/{daemon}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(executor, signal.SIGKILL)
    time.sleep(60)


def gather_once_killed(mark: Path, gather: Gather, shard: int, parcels: Iterator[bytes]) -> bytes:
    kill_executor_once(mark)
    return gather(shard, parcels)


def cut_once_killed(mark: Path, cut: Cut, work: bytes) -> Iterator[tuple[int, bytes]]:
    kill_executor_once(mark)
    yield from cut(work)


def task_once_killed(mark: Path, task: Task, work: bytes) -> bytes:
    kill_executor_once(mark)
    return task(work)


@dataclass(frozen=True)
class KillingEngine:
    """An engine that loses an executor at the beginning of a stage: cut, gather or map."""

    engine: Engine
    stage: str
    mark: Path

    @property
    def slots(self) -> int:
        return self.engine.slots

    def map(self, task: Task, work: Iterable[bytes]) -> Iterator[bytes]:
        return self.engine.map(partial(task_once_killed, self.mark, task) if self.stage == "map" else task, work)

    def regroup(self, cut: Cut, work: Sequence[bytes], gather: Gather, shards: Sequence[int]) -> Iterator[bytes]:
        if self.stage == "cut":
            cut = partial(cut_once_killed, self.mark, cut)
        if self.stage == "gather":
            gather = partial(gather_once_killed, self.mark, gather)
        return self.engine.regroup(cut, work, gather, shards)


@dataclass(frozen=True)
class DoublingEngine:
    """An engine that does all work twice, and takes what came last."""

    engine: Engine

    @property
    def slots(self) -> int:
        return self.engine.slots

    def map(self, task: Task, work: Iterable[bytes]) -> Iterator[bytes]:
        for one in work:
            _, last = self.engine.map(task, [one, one])
            yield last

    def regroup(self, cut: Cut, work: Sequence[bytes], gather: Gather, shards: Sequence[int]) -> Iterator[bytes]:
        list(self.engine.regroup(cut, work, gather, shards))
        return self.engine.regroup(cut, work, gather, shards)
