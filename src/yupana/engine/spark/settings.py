"""What a session of Spark must have, so that nobody is told of a run and nothing travels in the clear."""

import re
from collections.abc import Mapping
from contextlib import suppress
from secrets import token_hex
from typing import TYPE_CHECKING, Final

from yupana.engine.spark.master import LOOPBACK, is_connect, is_here, is_local, named
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
