"""Where Spark is: what `--master` names, and whether somebody answers there."""

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from yupana.errors import ConfigError, EngineError, YupanaError
from yupana.interruption import is_stopped

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
        raise ConfigError("--engine spark needs pyspark and pyarrow; install yupana[spark]")
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
        return f"the Python of a worker has no {found[1]}; install yupana[spark] there, or set PYSPARK_PYTHON"
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
