"""Engines of the tests, by name, and for how long they are open."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from yupana.engine.engine import Engine, EngineTerms
from yupana.engine.local import LocalEngine, open_processes
from yupana.engine.spark_session import open_spark

ENGINES = ("local", "processes", "spark", "sail")


CLUSTER = "local-cluster[2,1,1024]"
"""Two executors, each a process with one core."""


@contextmanager
def opened(name: str, folder: Path) -> Iterator[Engine]:
    """An engine by the name it has in the tests; its workers find the modules that tests share."""
    folders = [str(Path(__file__).parents[1] / name) for name in ("worlds", "oracles")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(folders))
        with _opened(name, folder) as engine:
            yield engine


@contextmanager
def _opened(name: str, folder: Path) -> Iterator[Engine]:
    if name == "local":
        yield LocalEngine(folder)
    elif name == "processes":
        with open_processes(folder, 2) as engine:
            yield engine
    elif name == "sail":
        server = pytest.importorskip("pysail.spark").SparkConnectServer(port=0)
        server.start(background=True)
        try:
            with open_spark(EngineTerms("spark", f"sc://localhost:{server.listening_address[1]}")) as engine:
                yield engine
        finally:
            server.stop()
    else:
        if shutil.which("java") is None:
            pytest.skip("Java is not installed")
        with open_spark(EngineTerms("spark", {"spark": "local[2]"}.get(name, name))) as engine:
            yield engine
