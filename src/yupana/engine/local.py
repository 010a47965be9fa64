"""The engine of one machine: tasks one after the other in this process, or side by side in others."""

import multiprocessing
import tempfile
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final

from yupana.engine.engine import Cut, Gather, Task
from yupana.engine.task import guarded, result_of
from yupana.errors import EngineError


@dataclass(frozen=True, slots=True)
class LocalEngine:
    """Does one piece of work after the other in this process.

    Attributes
    ----------
    folder : Path
        Of mode 0700 and empty, for parcels, which may be confidential; whoever gives it removes it.
    """

    folder: Path

    @property
    def slots(self) -> int:
        """One task at a time."""
        return 1

    def map(self, task: Task, work: Iterable[bytes]) -> Iterator[bytes]:
        """See `Engine`. Work is taken when its result is asked for."""
        return map(task, work)

    def regroup(self, cut: Cut, work: Sequence[bytes], gather: Gather, shards: Sequence[int]) -> Iterator[bytes]:
        """See `Engine`. Parcels wait in the folder."""
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        for number, one in enumerate(work):
            _keep(folder, cut, number, one)
        for shard in shards:
            yield gather(shard, _parcels(folder, shard))


@dataclass(frozen=True, slots=True)
class ProcessEngine:
    """Does work in processes of this machine.

    Attributes
    ----------
    folder : Path
        As `LocalEngine` has it.
    slots : int
        How many processes.
    """

    folder: Path
    slots: int

    def map(self, task: Task, work: Iterable[bytes]) -> Iterator[bytes]:
        """See `Engine`. A little more work is taken than there are processes."""
        with _processes(self.slots) as pool:
            pending = iter(work)
            running = deque(pool.submit(_run, task, one) for one in islice(pending, 2 * self.slots))
            while running:
                message = running.popleft().result()
                running.extend(pool.submit(_run, task, one) for one in islice(pending, 1))
                yield result_of(message)

    def regroup(self, cut: Cut, work: Sequence[bytes], gather: Gather, shards: Sequence[int]) -> Iterator[bytes]:
        """See `Engine`. Parcels wait in the folder."""
        with _processes(self.slots) as pool:
            for message in pool.map(
                _cut, *zip(*((self.folder, cut, n, one) for n, one in enumerate(work)), strict=True)
            ):
                result_of(message)
            for message in pool.map(partial(_gather, self.folder, gather), shards):
                yield result_of(message)


@contextmanager
def _processes(number: int) -> Iterator[ProcessPoolExecutor]:
    # A process that is forked from one with threads may wait for a lock that nobody holds.
    pool = ProcessPoolExecutor(number, mp_context=multiprocessing.get_context("spawn"))
    try:
        yield pool
    except BrokenProcessPool:
        raise EngineError("a process that worked for this one was killed; memory may have run out") from None
    finally:
        pool.shutdown(cancel_futures=True)


def _run(task: Task, work: bytes) -> bytes:
    return guarded(partial(task, work))


def _cut(folder: Path, cut: Cut, number: int, work: bytes) -> bytes:
    def all_of_it() -> bytes:
        _keep(folder, cut, number, work)
        return b""

    return guarded(all_of_it)


def _gather(folder: Path, gather: Gather, shard: int) -> bytes:
    return guarded(lambda: gather(shard, _parcels(folder, shard)))


def _keep(folder: Path, cut: Cut, number: int, work: bytes) -> None:
    """Write the parcels of a piece of work, by shard."""
    for place, (shard, parcel) in enumerate(cut(work)):
        of_shard = folder / str(shard)
        of_shard.mkdir(exist_ok=True)
        (of_shard / _NAME.format(number, place)).write_bytes(parcel)


def _parcels(folder: Path, shard: int) -> Iterator[bytes]:
    """The parcels of a shard in order; each is removed when it has been read."""
    for path in sorted((folder / str(shard)).glob("*")):
        yield path.read_bytes()
        path.unlink()


_NAME: Final = "{:08d}-{:08d}"
