"""An executor that is killed, and work that is done twice: the release is that of one machine, and charged once."""

import json
import os
from collections.abc import Iterator
from importlib import util
from pathlib import Path
from typing import TypeAlias

import engine_tasks as tasks
import pytest
from census_maker import write_csv
from crowded_census import STATES, crowded
from engine_tasks import DoublingEngine, KillingEngine
from listening import addresses
from open_engines import CLUSTER, opened
from phsafe_oracle import Config

import yupana
from yupana.confidential.request import LedgerAccount, RunRequest
from yupana.confidential.run import run
from yupana.engine.engine import Engine
from yupana.engine.local import LocalEngine
from yupana.errors import EngineError
from yupana.interface.configured import Configured, setup
from yupana.privacy.entropy import SeededEntropy

pytestmark = pytest.mark.thorough

Files: TypeAlias = dict[str, bytes]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with opened(CLUSTER, tmp_path_factory.mktemp("parcels")) as engine:
        yield engine


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Configured, Path]]:
    folder = tmp_path_factory.mktemp("worlds")
    write_csv(folder / "census", crowded(3, 40))
    yupana.synthesize(folder / "synthetic", households=60, states=["10", "44"], seed=1)
    return {
        "phsafe": (setup("phsafe", Config(STATES).write(folder / "config.json")), folder / "census"),
        "topdown": (setup("topdown", "pl94-2020-us"), folder / "synthetic"),
    }


def made(of: tuple[Configured, Path], folder: Path, engine: Engine | None) -> Files:
    """What a seeded release holds, charged to a ledger of its own."""
    case, data = of
    folder.mkdir()
    charged = LedgerAccount(folder / "ledger.json", "census", {})
    request = RunRequest(entropy=SeededEntropy(11), engine=engine, shards=3, account=charged)
    run(case.product, case.config, data, folder / "out", request)
    assert len(json.loads((folder / "ledger.json").read_text())["data"]["census"]["runs"]) == 1
    files = (path for path in (folder / "out").rglob("*") if path.is_file() and path.suffix != ".json")
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def test_nobody_elsewhere_reaches_what_runs_on_this_machine(cluster: Engine) -> None:
    """Neither the driver, nor a master or an executor, nor a page of theirs."""
    gateway = cluster.session.sparkContext._gateway  # type: ignore[attr-defined]
    assert addresses(gateway.proc.pid) == {"127.0.0.1"}


def test_executors_write_no_log(cluster: Engine) -> None:
    """Nothing of what a task is given or raises, nor that there was one."""
    for _ in range(2):
        with pytest.raises(EngineError, match="ValueError"):
            list(cluster.map(tasks.fails, [b"5", b"6"]))
        with pytest.raises(EngineError, match="ValueError"):
            list(cluster.regroup(tasks.fails_later, [b"ab", b"c"], tasks.joined, range(3)))
    context = cluster.session.sparkContext  # type: ignore[attr-defined]
    home = Path(os.environ.get("SPARK_HOME") or Path(util.find_spec("pyspark").origin or "").parent)  # type: ignore[union-attr]
    logs = [path.read_text() for path in (home / "work" / context.applicationId).rglob("std*")]
    assert len(logs) >= 4
    assert not any(word in log for log in logs for word in (tasks.PLANTED, "TID", "INFO", "Traceback"))


@pytest.fixture(scope="module")
def whole(worlds: dict[str, tuple[Configured, Path]], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Files]:
    """What one machine makes in one piece."""
    folder = tmp_path_factory.mktemp("whole")
    return {product: made(world, folder / product, None) for product, world in worlds.items()}


@pytest.mark.parametrize(
    ("product", "stage"),
    [
        ("phsafe", "gather"),
        pytest.param("topdown", "map", marks=pytest.mark.slow),
    ],
)
def test_a_killed_executor(
    product: str,
    stage: str,
    cluster: Engine,
    worlds: dict[str, tuple[Configured, Path]],
    whole: dict[str, Files],
    tmp_path: Path,
) -> None:
    """While shards are counted, and between draw and solve."""
    mark = tmp_path / "killed"
    found = made(worlds[product], tmp_path / "killed_run", KillingEngine(cluster, stage, mark))
    assert mark.exists(), "nothing was killed"
    assert found == whole[product]


@pytest.mark.parametrize("product", ["phsafe", "topdown"])
def test_work_that_is_done_twice(
    product: str, worlds: dict[str, tuple[Configured, Path]], whole: dict[str, Files], tmp_path: Path
) -> None:
    parcels = tmp_path / "parcels"
    parcels.mkdir()
    twice = made(worlds[product], tmp_path / "twice", DoublingEngine(LocalEngine(parcels)))
    assert twice == whole[product]
