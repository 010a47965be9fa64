"""The engine of a cluster: Apache Spark moves parcels and starts tasks. Workers of other versions do none.

Spark sees bytes, and nothing of what they mean. No SQL of ours runs in it, and no text of an error of ours passes it.
"""

import os
import pickle
import platform
import re
import shutil
import socket
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from yupana.engine.engine import Cut, Gather, Task, guarded, is_done, result_of
from yupana.errors import ConfigError, EngineError, YupanaError
from yupana.interruption import is_stopped
from yupana.version import __version__

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


_LEAST_JAVA: Final = 17
NETWORK_TIMEOUT: Final = 10.0
TRIES: Final = 4
LOOPBACK: Final = "127.0.0.1"


def is_local(master: str) -> bool:
    """Whether all that Spark starts runs on this machine. A master on this machine may have workers on others."""
    return master.startswith("local")


def is_connect(master: str) -> bool:
    """Whether a server of Spark Connect is meant."""
    return master.startswith("sc://")


def is_here(master: str) -> bool:
    """Whether a server of Spark Connect is on this machine."""
    address = re.match(r"sc://(\[[^]]*\]|[^:/,;]*)", master)
    return bool(address and address[1] in {"localhost", "127.0.0.1", "[::1]"})


def named(master: str) -> str:
    """A master without what may follow its address, such as a token."""
    return master.partition(";")[0]


def tried_again(master: str) -> str:
    """A local master that tries a task again as clusters do."""
    found = re.fullmatch(r"local(?:\[(\*|\d+)\])?", master)
    return f"local[{found[1] or 1},{TRIES}]" if found else master


def check_installed(master: str) -> None:
    """Require what must be on this machine: pyspark and pyarrow, and Java, unless it is the server's.

    Raises
    ------
    ConfigError
    """
    if find_spec("pyarrow") is None or find_spec("pyspark") is None:
        raise ConfigError("--engine spark needs pyspark and pyarrow; install Yupana's extra spark (docs/README.md)")
    if is_connect(master):
        return
    submit = Path(os.environ.get("SPARK_HOME", ""), "bin", "spark-submit")
    if "SPARK_HOME" in os.environ and not submit.exists():
        raise ConfigError(f"SPARK_HOME is set, and there is no {submit}; unset it, or let it name a Spark")
    if master == "yarn" and not {"HADOOP_CONF_DIR", "YARN_CONF_DIR"} & os.environ.keys():
        raise ConfigError("--master yarn needs HADOOP_CONF_DIR or YARN_CONF_DIR, which name the cluster's settings")
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")  # noqa: PTH118
    try:
        told = subprocess.run([java or "java", "-version"], capture_output=True, text=True, check=True).stderr  # noqa: S603
    except (OSError, subprocess.CalledProcessError):
        raise ConfigError(
            f"--engine spark needs Java {_LEAST_JAVA} or newer, and none was found; install it, or set JAVA_HOME"
        ) from None
    found = re.search(r'version "(\d+)', told)
    if found is None or int(found[1]) < _LEAST_JAVA:
        number = found[1] if found else "of an unknown number"
        raise ConfigError(f"--engine spark needs Java {_LEAST_JAVA} or newer, and this is Java {number}; set JAVA_HOME")


def check_master(master: str) -> None:
    """Ask whether somebody answers, as Spark would ask for minutes.

    Raises
    ------
    ConfigError, EngineError
    """
    if re.fullmatch(r"local(\[(\*|[1-9]\d*)\])?|local-cluster\[[1-9]\d*,[1-9]\d*,\d+\]|yarn|k8s://.+", master):
        return
    address = re.fullmatch(r"(?:spark|sc)://(.+?)(?:/.*)?", master)
    if address is None:
        raise ConfigError(
            f"--master {named(master)}: is none; name one such as local[4], spark://HOST:7077, yarn or sc://HOST:15002"
        )
    if is_connect(master) and not is_here(master) and not _is_enciphered(master):
        raise ConfigError(f"--master {named(master)}: counts would travel in the clear; add /;use_ssl=true")
    for one in address[1].split(","):
        host, _, port = one.partition(";")[0].rpartition(":")
        if not (host and port.isdecimal() and 0 < int(port) < 1 << 16):
            raise ConfigError(f"--master {named(master)}: needs HOST:PORT")
        try:
            socket.create_connection((host.strip("[]"), int(port)), NETWORK_TIMEOUT).close()
        except OSError as error:
            reason = error.strerror or "no answer"
            refused = f"{named(one)}: {reason}"
        else:
            return
    raise EngineError(f"--master {named(master)} does not answer ({refused})")


def _is_enciphered(master: str) -> bool:
    """Whether what is sent to a server of Spark Connect is; pyspark encrypts wherever it sends a token."""
    options = dict(option.partition("=")[::2] for option in master.partition(";")[2].split(";"))
    has_token = "token" in options or "SPARK_CONNECT_AUTHENTICATE_TOKEN" in os.environ
    return has_token or options.get("use_ssl", "").lower() == "true"


@contextmanager
def in_our_words(say: Callable[[Exception], str]) -> Iterator[None]:
    """Say in words of ours why Java, the network or Python failed.

    Raises
    ------
    EngineError
    """
    try:
        yield
    except YupanaError:
        raise
    except Exception as error:  # noqa: BLE001 (they raise what they like)
        if is_stopped():
            raise KeyboardInterrupt from None  # what broke off broke off by that
        raise EngineError(say(error)) from None


def why_it_gave_up(error: Exception) -> str:
    """Why Spark gave up. What it says may be as long as a stack of Java, and might quote what it moved."""
    told = str(error)
    if found := re.search(r"No module named '([A-Za-z_.]+)'", told):
        way_out = "install Yupana's extra spark there (docs/README.md), or set PYSPARK_PYTHON"
        return f"the Python of a worker has no {found[1]}; {way_out}"
    if found := re.search(r"PYTHON_VERSION_MISMATCH.*?(\d+\.\d+).*?(\d+\.\d+)", told):
        return f"a worker has Python {found[1]} (here Python {found[2]}); all must have the same; set PYSPARK_PYTHON"
    if "Cannot run program" in told:
        return "a worker has no such Python as PYSPARK_PYTHON names, or none at the place that it has here"
    return f"Spark gave up ({type(error).__name__}): its workers were lost or ran out of memory, again and again"


def why_not_begun(master: str, error: Exception) -> str:
    """Why there is no session."""
    return (
        f"no Spark session could be started with --master {named(master)} ({type(error).__name__}): nobody "
        "answers there as a master of this Spark does, or it refuses the settings"
    )


RESULT_NAMES: Final = ("number", "result")
PARCEL_NAMES: Final = ("shard", "number", "parcel")
_PLACES: Final = 1 << 32
"""Parcels of one piece of work, at most."""
_LOOK_AT: Final = ("yupana", "duckdb", "numba", "numpy")


@cache
def describe_worker(_: bytes = b"") -> bytes:
    """What must be the same on all workers: versions, and what kernels are compiled for."""
    return "\n".join(
        [
            f"Python {platform.python_version()}",
            *(f"{name} {_version(name)}" for name in _LOOK_AT),
            platform.machine(),
        ]
    ).encode()


def _version(package: str) -> str:
    if package == "yupana":
        return __version__
    try:
        return version(package)
    except PackageNotFoundError:
        return "missing"


def _as_the_driver(driver: bytes, work: Callable[[], bytes]) -> bytes:
    """Do some work, unless this worker is not like the driver; a cluster may take in others at any time."""
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


_RESULTS: Final = "number bigint, result binary"
_PARCELS: Final = "shard bigint, number bigint, parcel binary"
_WAVES: Final = 4


@dataclass(frozen=True, slots=True)
class SparkEngine:
    """Does work on the workers of a Spark session."""

    session: "SparkSession"  # pyspark.sql.SparkSession
    slots: int
    # whether what was sorted comes sorted: not all that speak Spark Connect do that, and then a slot holds at once all
    # parcels that it brings together
    sorts: bool

    def map(self, task: Task, work: Iterable[bytes]) -> Iterator[bytes]:
        """See `Engine`. While one wave of work is done, the next is taken."""
        pending = iter(work)
        take = _WAVES * self.slots
        with ThreadPoolExecutor(1) as waiting:
            wave = list(islice(pending, take))
            while wave:
                running = waiting.submit(self._do, partial(apply, task, describe_worker()), wave)
                try:
                    following = list(islice(pending, take))
                    results = running.result()
                except BaseException:
                    self._cancel()  # nobody waits for them
                    raise
                yield from results
                wave = following

    def regroup(self, cut: Cut, work: Sequence[bytes], gather: Gather, shards: Sequence[int]) -> Iterator[bytes]:
        """See `Engine`. One shuffle brings the parcels of a shard together; each shard knows how many it must get."""
        cutting = partial(cut_up, cut, describe_worker(), tuple(shards))
        gathering = partial(gather_up, gather, describe_worker(), len(work), self.sorts)
        parts = max(1, min(len(shards), _WAVES * self.slots))

        def plan() -> "DataFrame":
            cut_up = self._frame(work).mapInArrow(cutting, _PARCELS)
            together = cut_up.repartition(parts, "shard").sortWithinPartitions("shard", "number")
            return together.mapInArrow(gathering, _RESULTS)

        yield from self._collect(plan, shards)

    def _do(self, function: Callable[..., Any], work: Sequence[bytes]) -> list[bytes]:
        """Results of a function of Arrow batches, which come back in any order."""
        return self._collect(lambda: self._frame(work).mapInArrow(function, _RESULTS), range(len(work)))

    def _cancel(self) -> None:
        """End the tasks under way."""
        with suppress(Exception):
            (self.session.sparkContext.cancelAllJobs if self.sorts else self.session.interruptAll)()

    def _frame(self, work: Sequence[bytes]) -> "DataFrame":
        """The work, each piece in a partition of its own."""
        import pyarrow as pa  # noqa: PLC0415

        rows = pa.Table.from_batches([batch_of(RESULT_NAMES, row) for row in enumerate(work)])
        return self.session.createDataFrame(rows).repartition(max(1, len(work)))

    def _collect(self, plan: Callable[[], "DataFrame"], numbers: Sequence[int]) -> list[bytes]:
        """Results by their numbers, of a frame that is told to the session, too, where it may fail."""
        with in_our_words(why_it_gave_up):
            found = [(int(row[0]), bytes(row[1])) for row in plan().collect()]
        if sorted(number for number, _ in found) != sorted(numbers):
            raise EngineError("Spark lost results, or has some twice; nothing can be made of what is left")
        of_number = dict(found)
        return [result_of(of_number[number]) for number in numbers]
