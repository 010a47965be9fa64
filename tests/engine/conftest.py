"""The engines: each once for the tests of a file, as a process has one session of Spark at a time.

Spark itself, which takes a minute, is thorough; Sail, which speaks to the same code of ours, is in every run.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from open_engines import ENGINES, opened

from yupana.engine.engine import Engine
from yupana.engine.local import LocalEngine, ProcessEngine

_ENGINES = [pytest.param(name, marks=pytest.mark.thorough if name == "spark" else ()) for name in ENGINES]


@pytest.fixture(scope="module", params=_ENGINES)
def session(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Engine]]:
    """An engine with its name."""
    with opened(request.param, tmp_path_factory.mktemp("parcels")) as engine:
        yield request.param, engine


@pytest.fixture
def engine(session: tuple[str, Engine], tmp_path: Path) -> Engine:
    """The engine; those of one machine with a folder of their own."""
    _, engine = session
    if isinstance(engine, LocalEngine):
        return LocalEngine(tmp_path)
    return replace(engine, folder=tmp_path) if isinstance(engine, ProcessEngine) else engine
