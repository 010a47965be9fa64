"""The engine of one machine: tasks one after the other in this process, or side by side in others."""

import multiprocessing
import os
import pickle
import signal
import sys
import tempfile
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from multiprocessing.process import BaseProcess
from pathlib import Path
from threading import Thread
from types import ModuleType
from typing import Final, TypeAlias

from yupana.engine.engine import Cut, Gather, Task, guarded, result_of
from yupana.errors import EngineError

_Sent: TypeAlias = Counter[int]
"""How many parcels each shard gets of a piece of work, or a shard of each piece of work."""


@dataclass(frozen=True, slots=True)
class LocalEngine:
    """Does one piece of work after the other in this process."""

    folder: Path  # of mode 0700 and empty, for parcels, which may be confidential; whoever gives it removes it

    @property
    def slots(self) -> int:
        """One task at a time."""
        return 1

    def map(self, task: Task, work: Iterable[bytes]) -> Iterator[bytes]:
        """See `Engine`. Work is taken when its result is asked for."""
        return map(task, work)

    def regroup(self, cut: Cut, work: Sequence[bytes], gather: Gather, shards: Sequence[int]) -> Iterator[bytes]:
        """See `Engine`. Parcels wait in the folder."""
        folder = _new(self.folder)
        sent = [_keep(folder, cut, number, one) for number, one in enumerate(work)]
        for shard in shards:
            yield _gathered(folder, gather, shard, _of_shard(sent, shard))


@dataclass(frozen=True, slots=True)
class ProcessEngine:
    """Does work in processes of this machine. Made by `open_processes`."""

    folder: Path  # as `LocalEngine` has it
    slots: int  # how many processes
    pool: ProcessPoolExecutor  # they

    def map(self, task: Task, work: Iterable[bytes]) -> Iterator[bytes]:
        """See `Engine`. A little more work is taken than there are processes."""
        with _told_if_killed():
            pending = iter(work)
            running = deque(self.pool.submit(guarded, partial(task, one)) for one in islice(pending, 2 * self.slots))
            while running:
                message = running.popleft().result()
                running.extend(self.pool.submit(guarded, partial(task, one)) for one in islice(pending, 1))
                yield result_of(message)

    def regroup(self, cut: Cut, work: Sequence[bytes], gather: Gather, shards: Sequence[int]) -> Iterator[bytes]:
        """See `Engine`. Parcels wait in the folder."""
        folder = _new(self.folder)
        with _told_if_killed():
            cut_up = self.pool.map(partial(_cut, folder, cut), range(len(work)), work)
            sent = [_Sent(pickle.loads(result_of(message))) for message in cut_up]  # noqa: S301 (of a process of ours)
            gathering = [partial(_gathered, folder, gather, shard, _of_shard(sent, shard)) for shard in shards]
            for message in self.pool.map(guarded, gathering):
                yield result_of(message)


@contextmanager
def open_processes(folder: Path, slots: int) -> Iterator[ProcessEngine]:
    """Start processes, which end with the context, or with this process.

    Parameters
    ----------
    folder : Path
        As `LocalEngine` has it.
    slots : int
        How many.
    """
    # A process that is forked from one with threads may wait for a lock that nobody holds.
    pool = ProcessPoolExecutor(slots, multiprocessing.get_context("spawn"), _begin)
    with _without_main():
        for _ in pool.map(_nothing, range(slots)):
            pass
    try:
        yield ProcessEngine(folder, slots, pool)
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _without_main() -> Iterator[None]:
    """Keep new processes from running the script that this one runs, which would do there all that it does here."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _begin() -> None:
    """Leave interruptions to the process that started this one, and end when that has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: BaseProcess) -> None:
    parent.join()
    os._exit(1)


def _nothing(_: int) -> None:
    """What starts a process."""


@contextmanager
def _told_if_killed() -> Iterator[None]:
    try:
        yield
    except BrokenProcessPool:
        raise EngineError("a process that worked for this one was killed; memory may have run out") from None


def _cut(folder: Path, cut: Cut, number: int, work: bytes) -> bytes:
    return guarded(lambda: pickle.dumps(_keep(folder, cut, number, work)))


def _new(folder: Path) -> Path:
    """A folder for the parcels of one regrouping: what another has left must not be taken for theirs."""
    with _lost_with_its_folder():
        return Path(tempfile.mkdtemp(dir=folder))


def _keep(folder: Path, cut: Cut, number: int, work: bytes) -> _Sent:
    """Write the parcels of a piece of work, by shard, and count them."""
    sent: _Sent = Counter()
    for shard, parcel in cut(work):
        of_shard = folder / str(shard)
        with _lost_with_its_folder():
            of_shard.mkdir(exist_ok=True)  # another piece of work may have made it
            (of_shard / _NAME.format(number, sent[shard])).write_bytes(parcel)
        sent[shard] += 1
    return sent


def _of_shard(sent: Iterable[_Sent], shard: int) -> _Sent:
    """How many parcels a shard must get of each piece of work, by its number."""
    return Counter({number: of[shard] for number, of in enumerate(sent) if of[shard]})


def _gathered(folder: Path, gather: Gather, shard: int, sent: _Sent) -> bytes:
    parcels = _parcels(folder / str(shard), sent)
    result = gather(shard, parcels)
    for _ in parcels:
        pass  # what nobody wanted is counted
    return result


def _parcels(folder: Path, sent: _Sent) -> Iterator[bytes]:
    """The parcels of a shard in order; each is removed when it has been read."""
    for number, parcels in sorted(sent.items()):
        for place in range(parcels):
            path = folder / _NAME.format(number, place)
            with _lost_with_its_folder():
                parcel = path.read_bytes()
                path.unlink()
            yield parcel


@contextmanager
def _lost_with_its_folder() -> Iterator[None]:
    """Refuse to go on where files are gone that were written: others have removed them."""
    try:
        yield
    except FileNotFoundError:
        raise EngineError(
            "parcels were lost on their way to a shard, as others have removed files of the temporary folder; nothing "
            "can be made of what is left"
        ) from None


_NAME: Final = "{:08d}-{:08d}"
