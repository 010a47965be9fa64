"""What is said of a Spark that fails: its own words may quote what it moved."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from yupana.engine.spark.master import named
from yupana.errors import EngineError, YupanaError
from yupana.interruption import is_stopped


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
