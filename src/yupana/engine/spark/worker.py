"""What runs on a worker of Spark: work and parcels as rows of bytes. Workers of other versions do none."""

import pickle
import platform
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from itertools import groupby, islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from yupana.engine.engine import Cut, Gather, Task, guarded, is_done, result_of
from yupana.errors import EngineError
from yupana.version import __version__

if TYPE_CHECKING:
    import pyarrow as pa

RESULT_NAMES: Final = ("number", "result")
PARCEL_NAMES: Final = ("shard", "number", "parcel")
_PLACES: Final = 1 << 32
"""Parcels of one piece of work, at most."""
_LOOK_AT: Final = ("yupana", "duckdb", "numba", "numpy")


@cache
def describe_worker(_: bytes = b"") -> bytes:
    """What must be the same on all workers: versions, and what kernels are compiled for."""
    return "\n".join(
        [f"Python {platform.python_version()}", *(f"{name} {_version(name)}" for name in _LOOK_AT), platform.machine()]
    ).encode()


def _version(package: str) -> str:
    if package == "yupana":
        return __version__
    try:
        return version(package)
    except PackageNotFoundError:
        return "missing"


def _as_the_driver(driver: bytes, work: Callable[[], bytes]) -> bytes:
    """Do some work, unless this worker is not like the driver; a cluster may take in others at any time.

    Raises
    ------
    EngineError
    """
    pairs = zip(driver.decode().splitlines(), describe_worker().decode().splitlines(), strict=True)
    if unlike := [f"{there} (here {ours})" for ours, there in pairs if ours != there]:
        raise EngineError(f"a worker has {', '.join(unlike)}; all must have the same")
    return work()


def apply(task: Task, driver: bytes, batches: "Iterable[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
    """The result of each piece of work, or why it has none."""
    for number, work in _rows(batches):
        yield batch_of(RESULT_NAMES, (number, guarded(partial(_as_the_driver, driver, partial(task, work)))))


def cut_up(
    cut: Cut, driver: bytes, shards: tuple[int, ...], batches: "Iterable[pa.RecordBatch]"
) -> "Iterator[pa.RecordBatch]":
    """Parcels, and for each shard how many it got of each piece of work; or why they cannot be made, for all shards."""
    for number, work in _rows(batches):
        made, first, sent = cut(work), number * _PLACES, Counter[int]()
        while is_done(message := guarded(partial(_as_the_driver, driver, partial(_next, made)))) and len(message) > 1:
            shard, parcel = pickle.loads(message[1:])  # noqa: S301 (of this process)
            yield batch_of(PARCEL_NAMES, (shard, first + sent.total(), parcel))
            sent[shard] += 1
        last = first + _PLACES - 1
        for shard in shards:
            told = b"%d" % sent[shard] if is_done(message) else b""
            yield batch_of(PARCEL_NAMES, (shard, last, told or message))


def _next(parcels: Iterator[tuple[int, bytes]]) -> bytes:
    """The next parcel and its shard as one message; empty if there is none."""
    return b"".join(map(pickle.dumps, islice(parcels, 1)))


def gather_up(
    gather: Gather,
    driver: bytes,
    work: int,
    in_order: bool,  # noqa: FBT001 (of `partial` alone)
    batches: "Iterable[pa.RecordBatch]",
) -> "Iterator[pa.RecordBatch]":
    """The result of each shard, from parcels that `cut_up` made; all of a shard are here."""
    rows = _rows(batches) if in_order else sorted(_rows(batches), key=itemgetter(0, 1))
    for shard, of_shard in groupby(rows, key=itemgetter(0)):
        gathered = partial(_gathered, gather, shard, work, of_shard)
        yield batch_of(RESULT_NAMES, (shard, guarded(partial(_as_the_driver, driver, gathered))))


def _gathered(gather: Gather, shard: int, work: int, rows: Iterator[tuple[Any, ...]]) -> bytes:
    parcels = _Parcels(rows)
    result = gather(shard, iter(parcels))
    for _ in parcels:
        pass  # what nobody wanted is counted
    if parcels.whole != work:
        raise EngineError("Spark lost parcels on their way to a shard; nothing can be made of what is left")
    return result


@dataclass(eq=False)
class _Parcels:
    """The parcels among the rows of a shard; of how many pieces of work there were as many as were sent is counted."""

    rows: Iterator[tuple[Any, ...]]
    whole: int = 0
    _got: int = 0

    def __iter__(self) -> Iterator[bytes]:
        for _, number, parcel in self.rows:
            if number % _PLACES < _PLACES - 1:
                self._got += 1
                yield parcel
                continue
            if parcel[:1] == b"\x01":
                result_of(parcel)
            self.whole += self._got == int(parcel)
            self._got = 0


def _rows(batches: "Iterable[pa.RecordBatch]") -> Iterator[tuple[Any, ...]]:
    for batch in batches:
        columns = [batch.column(place) for place in range(batch.num_columns)]
        for row in range(batch.num_rows):
            yield tuple(column[row].as_py() for column in columns)


def batch_of(names: tuple[str, ...], row: tuple[int | bytes, ...]) -> "pa.RecordBatch":
    """One row: values of Spark's types bigint and binary."""
    import pyarrow as pa  # noqa: PLC0415

    columns = [pa.array([value], pa.binary() if isinstance(value, bytes) else pa.int64()) for value in row]
    return pa.RecordBatch.from_arrays(columns, names=list(names))
