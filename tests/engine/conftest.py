"""The engines: each once for all tests of this folder."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from yupana.engine.engine import Engine, EngineTerms
from yupana.engine.local import LocalEngine, ProcessEngine
from yupana.engine.spark import open_spark

ENGINES = ("local", "processes", "spark", "sail")


@contextmanager
def opened(name: str, folder: Path) -> Iterator[Engine]:
    """An engine by the name it has in the tests."""
    if name == "local":
        yield LocalEngine(folder)
    elif name == "processes":
        yield ProcessEngine(folder, 2)
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
        with open_spark(EngineTerms("spark", "local[2]")) as engine:
            yield engine


@pytest.fixture(scope="session", params=ENGINES)
def session(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Engine]]:
    """An engine with its name; workers find the modules that tests share."""
    folders = [str(Path(__file__).parents[1] / name) for name in ("worlds", "oracles")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(folders))
        with opened(request.param, tmp_path_factory.mktemp("parcels")) as engine:
            yield request.param, engine


@pytest.fixture
def engine(session: tuple[str, Engine], tmp_path: Path) -> Engine:
    """The engine; those of one machine with a folder of their own."""
    _, engine = session
    if isinstance(engine, LocalEngine):
        return LocalEngine(tmp_path)
    return ProcessEngine(tmp_path, engine.slots) if isinstance(engine, ProcessEngine) else engine
