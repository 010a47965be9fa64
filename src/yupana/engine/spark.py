"""The engine of a cluster: Apache Spark moves parcels and starts tasks. The only module that imports pyspark.

Spark sees bytes, and nothing of what they mean. No SQL of ours runs in it, and no text of an error of ours passes it.
"""

import logging
import os
import pickle
import platform
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import yupana
from yupana.engine.engine import Cut, EngineTerms, Gather, Task
from yupana.engine.task import guarded, is_done, result_of
from yupana.errors import ConfigError, EngineError, YupanaError
from yupana.interruption import is_stopped

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.connect.client.retries import DefaultPolicy

_LEAST_JAVA: Final = 17

_SETTINGS: Final[Mapping[str, str]] = {
    "spark.eventLog.enabled": "false",
    "spark.executor.syncLogLevel.enabled": "true",
    "spark.extraListeners": "",
    "spark.io.encryption.enabled": "true",
    "spark.log.level": "OFF",
    "spark.plugins": "",
    "spark.sql.execution.pyspark.udf.faulthandler.enabled": "false",
    "spark.sql.queryExecutionListeners": "",
    "spark.ui.enabled": "false",
}
"""What every session must have, whatever the defaults of its cluster: spilled parcels are encrypted, and no log, page
or listener tells of a run."""

_OF_CLUSTERS: Final[Mapping[str, str]] = {
    "spark.authenticate": "true",
    "spark.network.crypto.enabled": "true",
}
"""What a session must have whose traffic leaves this machine."""

_TELLING: Final = r"JavaOptions|[Ll]istener|^spark\.(eventLog|metrics|plugins)"
"""Names of settings by which others may be told of a run."""

_DEFAULTS: Final[Mapping[str, str]] = {
    "spark.driver.maxResultSize": "0",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "4",
    "spark.ui.showConsoleProgress": "false",
}
"""What suits our work: results are few and large, and so are rows."""

_CONNECT: Final = "org.apache.spark.sql.connect.SparkConnectPlugin"
"""What makes a Spark a server of Spark Connect."""

_NETWORK_TIMEOUT: Final = 10.0
_WAVES: Final = 4
_TRIES: Final = 4
_LOOK_AT: Final = ("yupana", "duckdb", "numba", "numpy")


@dataclass(frozen=True, slots=True)
class SparkEngine:
    """Does work on the workers of a Spark session.

    Attributes
    ----------
    session : pyspark.sql.SparkSession
    slots : int
    sorts : bool
        Whether what was sorted comes sorted: not all that speak Spark Connect do that, and then a slot holds at once
        all parcels that it brings together.
    """

    session: "SparkSession"
    slots: int
    sorts: bool

    def map(self, task: Task, work: Iterable[bytes]) -> Iterator[bytes]:
        """See `Engine`. While one wave of work is done, the next is taken."""
        pending = iter(work)
        take = _WAVES * self.slots
        with ThreadPoolExecutor(1) as waiting:
            wave = list(islice(pending, take))
            while wave:
                running = waiting.submit(self._do, partial(_apply, task, describe_worker()), wave)
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
        cutting = partial(_cut, cut, describe_worker(), tuple(shards))
        gathering = partial(_gather, gather, describe_worker(), len(work), self.sorts)
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
        return self._table(_RESULT_NAMES, list(enumerate(work))).repartition(max(1, len(work)))

    def _table(self, names: tuple[str, ...], rows: Sequence[tuple[int | bytes, ...]]) -> "DataFrame":
        import pyarrow as pa  # noqa: PLC0415

        return self.session.createDataFrame(pa.Table.from_batches([_batch(names, row) for row in rows]))

    def _collect(self, plan: Callable[[], "DataFrame"], numbers: Sequence[int]) -> list[bytes]:
        """Results by their numbers, of a frame that is told to the session, too, where it may fail."""
        with _in_our_words(_why):
            found = [(int(row[0]), bytes(row[1])) for row in plan().collect()]
        if sorted(number for number, _ in found) != sorted(numbers):
            raise EngineError("Spark lost results, or has some twice; nothing can be made of what is left")
        of_number = dict(found)
        return [result_of(of_number[number]) for number in numbers]


@contextmanager
def _in_our_words(say: Callable[[Exception], str]) -> Iterator[None]:
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


def _why(error: Exception) -> str:
    """Why Spark gave up. What it says may be as long as a stack of Java, and might quote what it moved."""
    told = str(error)
    if found := re.search(r"No module named '([A-Za-z_.]+)'", told):
        return f"the Python of a worker has no {found[1]}; install yupana[spark] there, or set PYSPARK_PYTHON"
    if found := re.search(r"PYTHON_VERSION_MISMATCH.*?(\d+\.\d+).*?(\d+\.\d+)", told):
        return f"a worker has Python {found[1]} (here Python {found[2]}); all must have the same; set PYSPARK_PYTHON"
    if "Cannot run program" in told:
        return "a worker has no such Python as PYSPARK_PYTHON names, or none at the place that it has here"
    return f"Spark gave up ({type(error).__name__}): its workers were lost or ran out of memory, again and again"


_RESULT_NAMES: Final = ("number", "result")
_PARCEL_NAMES: Final = ("shard", "number", "parcel")
_RESULTS: Final = "number bigint, result binary"
_PARCELS: Final = "shard bigint, number bigint, parcel binary"
_PLACES: Final = 1 << 32
"""Parcels of one piece of work, at most."""


@contextmanager
def open_spark(terms: EngineTerms) -> Iterator[SparkEngine]:
    """Start or find a Spark session, and end it.

    Raises
    ------
    ConfigError
        If Spark or Java are missing, or a setting would let records out.
    EngineError
        If the master does not answer, the workers are not like this machine, or this process has a session already.
    """
    master = terms.master or "local[*]"
    _check_installed(master)
    settings = _settings(master, terms.settings)
    _check_no_other(master)
    _check_master(master)
    warnings.filterwarnings("ignore", module="pyspark")  # of what pandas it would like, which we do not use
    with _without_its_loggers(), _java_of_its_own():
        session = _session(master, settings)
        try:
            with _in_our_words(partial(_not_begun, master)):
                _require_set(session, master, settings)
                slots = session.sparkContext.defaultParallelism if not _is_connect(master) else os.cpu_count() or 1
            engine = SparkEngine(session, slots, sorts=not _is_connect(master))
            _check_alike(engine)
            yield engine
        finally:
            with suppress(Exception):
                session.stop()


@contextmanager
def _without_its_loggers() -> Iterator[None]:
    """Let Spark's libraries write no traceback of what fails: we say it."""
    loggers = [logging.getLogger(name) for name in ("py4j", "pyspark")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


@contextmanager
def _java_of_its_own() -> Iterator[None]:
    """Let pyspark start a Java machine, and end it.

    One that an earlier session left behind has the settings and the environment of that session, and holds memory.
    """
    _end_java()
    try:
        yield
    finally:
        _end_java()
        # pyspark leaves it there, and then could start no session of its own in this process.
        os.environ.pop("SPARK_CONNECT_MODE_ENABLED", None)


def _end_java() -> None:
    """End the Java machine that pyspark has started in this process, if it has."""
    from pyspark import SparkContext  # noqa: PLC0415
    from pyspark.sql import SparkSession  # noqa: PLC0415

    gateway = SparkContext._gateway  # noqa: SLF001 (there is no other way to it)
    process = getattr(gateway, "proc", None)
    if gateway is None or process is None:
        return
    SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001
    # What ended badly, or was interrupted when it began, would stand in the way of the next session.
    SparkContext._active_spark_context = None  # noqa: SLF001
    SparkSession._instantiatedSession = SparkSession._activeSession = None  # noqa: SLF001
    with suppress(Exception):
        gateway.shutdown()
    with suppress(Exception):
        process.stdin.close()  # it ends with this
        process.wait(_NETWORK_TIMEOUT)


def _tried_again(master: str) -> str:
    """A local master that tries a task again as clusters do."""
    found = re.fullmatch(r"local(?:\[(\*|\d+)\])?", master)
    return f"local[{found[1] or 1},{_TRIES}]" if found else master


def _is_connect(master: str) -> bool:
    return master.startswith("sc://")


def is_local(master: str) -> bool:
    """Whether all that Spark starts runs on this machine. A master on this machine may have workers on others."""
    return master.startswith("local")


def _is_here(master: str) -> bool:
    """Whether a server of Spark Connect is on this machine."""
    address = re.match(r"sc://(\[[^]]*\]|[^:/,;]*)", master)
    return bool(address and address[1] in {"localhost", "127.0.0.1", "[::1]"})


def _named(master: str) -> str:
    """A master without what may follow its address, such as a token."""
    return master.partition(";")[0]


def _check_installed(master: str) -> None:
    if find_spec("pyarrow") is None or find_spec("pyspark") is None:
        raise ConfigError("--engine spark needs pyspark and pyarrow; install yupana[spark]")
    if _is_connect(master):
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


def _check_no_other(master: str) -> None:
    """Refuse to take part in a session that somebody else opened: it has settings of its own, and we would end it.

    Raises
    ------
    ConfigError, EngineError
    """
    if "SPARK_REMOTE" in os.environ and not _is_connect(master):
        raise ConfigError("SPARK_REMOTE is set, so that pyspark would go there; unset it, or name it by --master")
    from pyspark import SparkContext  # noqa: PLC0415

    connected = sys.modules.get("pyspark.sql.connect.session")
    there = SparkContext._active_spark_context  # noqa: SLF001 (asking its session would not tell of every thread's)
    if there or (connected and connected.SparkSession.getActiveSession()):
        raise EngineError("this process has a Spark session already, with settings of its own; stop it first")


def _settings(master: str, given: Mapping[str, str]) -> dict[str, str]:
    """The settings of the session.

    Raises
    ------
    ConfigError
        If what is given would let records out.
    """
    needed = {**_SETTINGS, **({} if is_local(master) else _OF_CLUSTERS)}
    for name, value in given.items():
        if name in needed and value.strip().lower() != needed[name].lower():
            must = needed[name] or "empty"
            raise ConfigError(f"--spark-conf {name}={value}: must be {must}, as Spark holds confidential records")
        if name in {"spark.api.mode", "spark.master", "spark.remote"}:
            raise ConfigError(f"--spark-conf {name}: --master names where Spark is")
        if name not in needed and re.search(_TELLING, name):
            raise ConfigError(f"--spark-conf {name}: may tell others of a run, and is refused")
    return {**_DEFAULTS, **given, **needed}


def _check_master(master: str) -> None:
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
            f"--master {_named(master)}: is none; name one such as local[4], spark://HOST:7077, yarn or sc://HOST:15002"
        )
    if _is_connect(master) and not _is_here(master) and not _is_enciphered(master):
        raise ConfigError(f"--master {_named(master)}: counts would travel in the clear; add /;use_ssl=true")
    for one in address[1].split(","):
        host, _, port = one.partition(";")[0].rpartition(":")
        if not (host and port.isdecimal() and 0 < int(port) < 1 << 16):
            raise ConfigError(f"--master {_named(master)}: needs HOST:PORT")
        try:
            socket.create_connection((host.strip("[]"), int(port)), _NETWORK_TIMEOUT).close()
        except OSError as error:
            reason = error.strerror or "no answer"
            refused = f"{_named(one)}: {reason}"
        else:
            return
    raise EngineError(f"--master {_named(master)} does not answer ({refused})")


def _is_enciphered(master: str) -> bool:
    """Whether what is sent to a server of Spark Connect is; pyspark encrypts wherever it sends a token."""
    options = dict(option.partition("=")[::2] for option in master.partition(";")[2].split(";"))
    has_token = "token" in options or "SPARK_CONNECT_AUTHENTICATE_TOKEN" in os.environ
    return has_token or options.get("use_ssl", "").lower() == "true"


def _session(master: str, settings: Mapping[str, str]) -> "SparkSession":
    from pyspark.sql import SparkSession  # noqa: PLC0415

    builder = SparkSession.builder.appName("yupana")
    # Workers have this Python where they do not have one of their own.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with _in_our_words(partial(_not_begun, master)), _quiet(), _handlers_kept():
        if _is_connect(master):
            session: Any = builder.remote(master).getOrCreate()
            session.client.set_retry_policies([_few_tries()])  # a server that has gone is tried for ten minutes else
            return cast("SparkSession", session)
        classic: dict[str, Any] = {**settings, "spark.api.mode": "classic"}
        return builder.master(_tried_again(master)).config(map=classic).getOrCreate()


def _few_tries() -> "DefaultPolicy":
    from pyspark.sql.connect.client.retries import DefaultPolicy  # noqa: PLC0415

    return DefaultPolicy(max_retries=_TRIES, max_backoff=2_000)


def _not_begun(master: str, error: Exception) -> str:
    return (
        f"no Spark session could be started with --master {_named(master)} ({type(error).__name__}): nobody "
        "answers there as a master of this Spark does, or it refuses the settings"
    )


@contextmanager
def _handlers_kept() -> Iterator[None]:
    """Keep what a signal does: pyspark would let Ctrl-C break steps that must be done whole."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if before is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


def _require_set(session: "SparkSession", master: str, settings: Mapping[str, str]) -> None:
    """Require that the session has its settings; set what a server of Spark Connect lets us set.

    Raises
    ------
    EngineError
        If there are others, such as those that a server was started with.
    """
    behind = session.conf.get("spark.master", None)
    alone = is_local(master) or (_is_here(master) and (behind is None or is_local(behind)))
    for name, value in settings.items():
        if name in _DEFAULTS or name not in {**_SETTINGS, **_OF_CLUSTERS}:
            with suppress(Exception):
                session.conf.set(name, value)
            continue
        found = session.conf.get(name, None)
        if (found is None and (alone or not value)) or (_is_connect(master) and found == _CONNECT):
            continue
        if found is None or found.strip().lower() != value.lower():
            must = value or "empty"
            raise EngineError(f"--master {_named(master)}: Spark must have {name} {must}, as it holds records")


@contextmanager
def _quiet() -> Iterator[None]:
    """Java says things before it is told to be silent."""
    saved, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(null)


@cache
def describe_worker(_: bytes = b"") -> bytes:
    """What must be the same on all workers: versions, and what kernels are compiled for."""
    return "\n".join(
        [f"Python {platform.python_version()}", *(f"{name} {_version(name)}" for name in _LOOK_AT), platform.machine()]
    ).encode()


def _version(package: str) -> str:
    if package == "yupana":
        return yupana.__version__
    try:
        return version(package)
    except PackageNotFoundError:
        return "missing"


def _check_alike(engine: SparkEngine) -> None:
    """Refuse workers that would not count as this machine does, before they are given any work.

    Raises
    ------
    EngineError
    """
    for _ in engine.map(bytes, [b""] * (2 * engine.slots)):
        pass


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


def _apply(task: Task, driver: bytes, batches: "Iterable[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
    for number, work in _rows(batches):
        yield _batch(_RESULT_NAMES, (number, guarded(partial(_as_the_driver, driver, partial(task, work)))))


def _cut(
    cut: Cut, driver: bytes, shards: tuple[int, ...], batches: "Iterable[pa.RecordBatch]"
) -> "Iterator[pa.RecordBatch]":
    """Parcels, and for each shard how many it got of each piece of work; or why they cannot be made, for all shards."""
    for number, work in _rows(batches):
        made, first, sent = cut(work), number * _PLACES, Counter[int]()
        while is_done(message := guarded(partial(_as_the_driver, driver, partial(_next, made)))) and len(message) > 1:
            shard, parcel = pickle.loads(message[1:])  # noqa: S301 (of this process)
            yield _batch(_PARCEL_NAMES, (shard, first + sent.total(), parcel))
            sent[shard] += 1
        last = first + _PLACES - 1
        for shard in shards:
            told = b"%d" % sent[shard] if is_done(message) else b""
            yield _batch(_PARCEL_NAMES, (shard, last, told or message))


def _next(parcels: Iterator[tuple[int, bytes]]) -> bytes:
    """The next parcel and its shard as one message; empty if there is none."""
    return b"".join(map(pickle.dumps, islice(parcels, 1)))


def _gather(
    gather: Gather,
    driver: bytes,
    work: int,
    in_order: bool,  # noqa: FBT001 (of `partial` alone)
    batches: "Iterable[pa.RecordBatch]",
) -> "Iterator[pa.RecordBatch]":
    rows = _rows(batches) if in_order else sorted(_rows(batches), key=itemgetter(0, 1))
    for shard, of_shard in groupby(rows, key=itemgetter(0)):
        gathered = partial(_gathered, gather, shard, work, of_shard)
        yield _batch(_RESULT_NAMES, (shard, guarded(partial(_as_the_driver, driver, gathered))))


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


def _batch(names: tuple[str, ...], row: tuple[int | bytes, ...]) -> "pa.RecordBatch":
    import pyarrow as pa  # noqa: PLC0415

    columns = [pa.array([value], pa.binary() if isinstance(value, bytes) else pa.int64()) for value in row]
    return pa.RecordBatch.from_arrays(columns, names=list(names))
