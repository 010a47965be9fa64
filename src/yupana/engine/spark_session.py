"""The session of Spark that a run has to itself. It ends with the run, and so does the Java machine behind it."""

import logging
import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final, cast

from yupana.engine.engine import EngineTerms
from yupana.engine.spark import (
    LOOPBACK,
    NETWORK_TIMEOUT,
    TRIES,
    SparkEngine,
    check_installed,
    check_master,
    in_our_words,
    is_connect,
    is_here,
    is_local,
    named,
    tried_again,
    why_not_begun,
)
from yupana.errors import ConfigError, EngineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_SILENT: Final = "-Dlog4j2.configurationFile=/dev/null -Dlog4j2.level=OFF -Dlog4j2.statusLoggerLevel=OFF"
"""Silences executors, whatever their cluster's `log4j2.properties` say: `spark.log.level` is of the driver alone, and
what `spark.executor.syncLogLevel.enabled` brings to an executor it forgets as it starts."""

_SETTINGS: Final[Mapping[str, str]] = {
    "spark.authenticate": "true",
    "spark.eventLog.enabled": "false",
    "spark.executor.defaultJavaOptions": _SILENT,
    "spark.extraListeners": "",
    "spark.io.encryption.enabled": "true",
    "spark.log.level": "OFF",
    "spark.network.crypto.enabled": "true",
    "spark.plugins": "",
    "spark.sql.execution.pyspark.udf.faulthandler.enabled": "false",
    "spark.sql.queryExecutionListeners": "",
    "spark.ui.enabled": "false",
}
"""What every session must have, whatever the defaults of its cluster: nobody else can ask for parcels, which are
encrypted where they travel and where they spill, and no log, page or listener tells of a run."""

_OF_THIS_MACHINE: Final[Mapping[str, str]] = {
    "spark.driver.bindAddress": LOOPBACK,
    "spark.driver.host": LOOPBACK,
}
"""What a session must have of which nothing leaves this machine: no other machine reaches it."""

_SECRET: Final = "spark.authenticate.secret"  # noqa: S105 (its name)

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


def settings_of(master: str, given: Mapping[str, str]) -> dict[str, str]:
    """The settings of the session.

    Raises
    ------
    ConfigError
        If what is given would let records out.
    """
    needed = {**_SETTINGS, **(_OF_THIS_MACHINE if is_local(master) else {})}
    for name, value in given.items():
        if name in needed and value.strip().lower() != needed[name].lower():
            must = needed[name] or "empty"
            raise ConfigError(f"--spark-conf {name}={value}: must be {must}, as Spark holds confidential records")
        if name in {"spark.api.mode", "spark.master", "spark.remote"}:
            raise ConfigError(f"--spark-conf {name}: --master names where Spark is")
        if name not in needed and re.search(_TELLING, name):
            raise ConfigError(f"--spark-conf {name}: may tell others of a run, and is refused")
    # Spark makes a secret of its own for `local`, for `yarn` and for `k8s`; other clusters have theirs.
    secret = {_SECRET: token_hex(32)} if master.startswith("local-cluster") else {}
    return {**_DEFAULTS, **secret, **given, **needed}


def require_set(session: "SparkSession", master: str, settings: Mapping[str, str]) -> None:
    """Require that the session has its settings; set what a server of Spark Connect lets us set.

    Raises
    ------
    EngineError
        If there are others, such as those that a server was started with.
    """
    behind = session.conf.get("spark.master", None)
    alone = is_here(master) and (behind is None or is_local(behind))
    for name, value in settings.items():
        if name in _DEFAULTS or name not in {**_SETTINGS, **_OF_THIS_MACHINE}:
            with suppress(Exception):
                session.conf.set(name, value)
            continue
        found = session.conf.get(name, None)
        if (found is None and (alone or not value)) or (is_connect(master) and found == _CONNECT):
            continue
        if found is None or found.strip().lower() != value.lower():
            must = value or "empty"
            raise EngineError(f"--master {named(master)}: Spark must have {name} {must}, as it holds records")


_LISTENS_AT: Final = "SPARK_LOCAL_IP"
"""The variable that names the address at which Java machines of Spark listen, pages included."""


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
    check_installed(master)
    settings = settings_of(master, terms.settings)
    _check_no_other(master)
    check_master(master)
    warnings.filterwarnings("ignore", module="pyspark")  # of what pandas it would like, which we do not use
    with _without_its_loggers(), _java_of_its_own():
        session = _session(master, settings)
        try:
            with in_our_words(partial(why_not_begun, master)):
                require_set(session, master, settings)
                slots = session.sparkContext.defaultParallelism if not is_connect(master) else os.cpu_count() or 1
            engine = SparkEngine(session, slots, sorts=not is_connect(master))
            _check_alike(engine)
            yield engine
        finally:
            # Of a server that has gone pyspark warns, and where warnings are errors it would keep the session.
            with suppress(Exception), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                session.stop()


def _check_no_other(master: str) -> None:
    """Refuse to take part in a session that somebody else opened: it has settings of its own, and we would end it."""
    if "SPARK_REMOTE" in os.environ and not is_connect(master):
        raise ConfigError("SPARK_REMOTE is set, so that pyspark would go there; unset it, or name it by --master")
    from pyspark import SparkContext  # noqa: PLC0415

    connected = sys.modules.get("pyspark.sql.connect.session")
    there = SparkContext._active_spark_context  # noqa: SLF001 (asking its session would not tell of every thread's)
    if there or (connected and connected.SparkSession.getActiveSession()):
        raise EngineError("this process has a Spark session already, with settings of its own; stop it first")


def _session(master: str, settings: Mapping[str, str]) -> "SparkSession":
    from pyspark.sql import SparkSession  # noqa: PLC0415

    builder = SparkSession.builder.appName("yupana")
    # Workers have this Python where they do not have one of their own.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with in_our_words(partial(why_not_begun, master)), _quiet(), _handlers_kept(), _reached_from_here(master):
        if is_connect(master):
            session: Any = builder.remote(master).getOrCreate()
            from pyspark.sql.connect.client.retries import DefaultPolicy  # noqa: PLC0415

            # A server that has gone is tried for ten minutes else.
            session.client.set_retry_policies([DefaultPolicy(max_retries=TRIES, max_backoff=2_000)])
            return cast("SparkSession", session)
        classic: dict[str, Any] = {**settings, "spark.api.mode": "classic"}
        return builder.master(tried_again(master)).config(map=classic).getOrCreate()


def _check_alike(engine: SparkEngine) -> None:
    """Refuse workers that would not count as this machine does, before they are given any work."""
    for _ in engine.map(bytes, [b""] * (2 * engine.slots)):
        pass


@contextmanager
def _without_its_loggers() -> Iterator[None]:
    """Let Spark's libraries write no traceback of what fails, or is interrupted: we say it."""
    loggers = [logging.getLogger(name) for name in ("py4j", "pyspark")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    # Of what Ctrl-C breaks off, py4j tells the root, which is not ours to silence, and gets a handler by that.
    root, handler = logging.getLogger(), logging.NullHandler()
    root.addHandler(handler)
    root.addFilter(_is_not_of_py4j)
    try:
        yield
    finally:
        root.removeFilter(_is_not_of_py4j)
        root.removeHandler(handler)
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    return "py4j" not in Path(record.pathname).parts


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
        process.wait(NETWORK_TIMEOUT)


@contextmanager
def _reached_from_here(master: str) -> Iterator[None]:
    """Let the Java machine of a local master, and what it starts, listen to this machine alone."""
    before = os.environ.get(_LISTENS_AT)
    if is_local(master):
        os.environ[_LISTENS_AT] = LOOPBACK
    try:
        yield
    finally:
        os.environ.pop(_LISTENS_AT, None)
        if before is not None:
            os.environ[_LISTENS_AT] = before


@contextmanager
def _handlers_kept() -> Iterator[None]:
    """Keep what a signal does: pyspark would let Ctrl-C break steps that must be done whole."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if before is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


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
