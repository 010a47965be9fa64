"""Lets the attacks import the modules that lie beside them, and builds the small worlds that they spoil."""

import fcntl
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parents[1] / folder) for folder in ("attack", "worlds", "oracles")]

from attack_worlds import build  # noqa: E402 (it lies in the folder just named)


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every kind of input and release; attacks put back what they spoil, or work on a copy.

    The first worker of a run that asks for it builds it, and each has a copy.
    """
    base = tmp_path_factory.getbasetemp()
    whole = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "attack-world"
    with whole.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (done := whole.with_suffix(".done")).exists():
            shutil.rmtree(whole, ignore_errors=True)
            whole.mkdir()
            build(whole)
            done.touch()
    return Path(shutil.copytree(whole, tmp_path_factory.mktemp("attacks") / "world"))


@pytest.fixture(autouse=True)
def _signals(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Commands that run in this process set handlers; spill and reports of faults go to a folder of the test."""
    (tmp_path / "scratch").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "scratch"))
    kept = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)}
    yield
    for number, handler in kept.items():
        signal.signal(number, handler)
