"""A machine that fails: full or read-only disks, little memory, other users, two runs at once, odd clocks."""

import ctypes
import json
import os
import resource
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from attack_worlds import build_records

from yupana.cli.main import main
from yupana.confidential import run as machine
from yupana.plan import account

PROGRAM = Path(sys.executable).with_name("yupana")
IS_ROOT = os.getuid() == 0
NEEDS_ROOT = pytest.mark.skipif(not IS_ROOT, reason="mounting, and files of other users, need root")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Records and a configuration, without the releases that attacks spoil."""
    folder = tmp_path_factory.mktemp("world")
    build_records(folder)
    return folder


def command(world: Path, out: Path, *more: str) -> list[str]:
    return ["phsafe", "run", str(world / "config.json"), str(world / "d"), str(out), *more]


def start(
    arguments: list[str], *, before: Callable[[], None] | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PROGRAM, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=os.environ | environment,
        preexec_fn=before,
    )


def is_refused(done: subprocess.CompletedProcess[str]) -> bool:
    return done.returncode == 2 and "Traceback" not in done.stderr and bool(done.stderr.strip())


@contextmanager
def mounted(place: Path, options: str) -> Iterator[Path]:
    """A small file system of its own; skipped where the machine forbids it even to root."""
    place.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", place], capture_output=True, check=False)
    if done.returncode:
        pytest.skip("this machine lets nobody mount a file system")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)


# --- disks -----------------------------------------------------------------------------------------------------------


@NEEDS_ROOT
@pytest.mark.parametrize("kilobytes", [4, 24])
@pytest.mark.slow
def test_a_full_disk_leaves_nothing(world: Path, tmp_path: Path, kilobytes: int) -> None:
    with mounted(tmp_path / "disk", f"size={kilobytes}k") as disk:
        done = main(command(world, disk / "out"))
        assert done in {0, 2}
        # What was drawn before the disk was full is kept for --resume.
        assert {path.name for path in disk.iterdir()} <= (
            {"out", "out.confidential.log"} if done == 0 else {"out.checkpoint"}
        )


@NEEDS_ROOT
def test_a_full_scratch_disk_is_told(world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with mounted(tmp_path / "disk", "size=4k,nr_inodes=1") as disk:
        monkeypatch.setenv("TMPDIR", str(disk))
        assert main(command(world, tmp_path / "out")) == 2
    assert not (tmp_path / "out").exists()


@NEEDS_ROOT
def test_a_disk_that_is_read_only_is_told_before_the_work(
    world: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with mounted(tmp_path / "disk", "size=1m,ro") as disk:
        ledger = ["--ledger", str(tmp_path / "ledger.json"), "--dataset", "D"]
        for more in ([str(disk / "out")], [str(tmp_path / "out"), "--report", str(disk / "page.html")]):
            assert main([*command(world, Path(more[0]))[:4], *more, *ledger]) == 2
            assert "is not writable" in capsys.readouterr().err
        assert main([*command(world, tmp_path / "out"), "--log", str(disk / "log"), *ledger]) == 2
    # Nothing was charged for a run that could not have ended well.
    assert not (tmp_path / "ledger.json").exists()
    assert not (tmp_path / "out").exists()


# --- limits of the process -------------------------------------------------------------------------------------------


@pytest.mark.sampled(1)
@pytest.mark.parametrize("megabytes", [500, 1200])
@pytest.mark.slow
def test_little_memory_is_told_in_words(world: Path, tmp_path: Path, megabytes: int) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))

    done = start(command(world, tmp_path / "out"), before=limit)
    assert done.returncode == 0 or is_refused(done), done.stderr
    assert (tmp_path / "out").exists() is (done.returncode == 0)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("files", [8, 40])
@pytest.mark.slow
def test_few_files_are_enough_or_told(world: Path, tmp_path: Path, files: int) -> None:
    done = start(
        command(world, tmp_path / "out"), before=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    )
    assert done.returncode == 0 or is_refused(done), done.stderr
    assert (tmp_path / "out").exists() is (done.returncode == 0)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("size", [100, 3000])
@pytest.mark.slow
def test_a_limit_on_the_size_of_files_is_told(world: Path, tmp_path: Path, size: int) -> None:
    done = start(
        command(world, tmp_path / "out"), before=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    )
    assert is_refused(done), done.stderr
    assert {path.name for path in tmp_path.iterdir() if path.name.startswith("out")} <= {"out.checkpoint"}


# --- other users -----------------------------------------------------------------------------------------------------


def _without_capabilities() -> None:
    """Make root what any user is, from the next program on: files of others are closed to it."""
    for capability in range(64):
        ctypes.CDLL(None).prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)


_PR_CAPBSET_DROP = 24
_NOBODY = 65534


@pytest.mark.sampled(2)
@NEEDS_ROOT
@pytest.mark.parametrize("where", ["data", "out", "log", "scratch"])
@pytest.mark.slow
def test_folders_of_another_user_are_told_by_name(world: Path, tmp_path: Path, where: str) -> None:
    shutil.copytree(world / "d", tmp_path / "data" / "d")
    for name in ("config", "out", "log"):
        (tmp_path / name).mkdir()
    shutil.copy(world / "config.json", tmp_path / "config")
    (tmp_path / where).chmod(0o700)
    os.chown(tmp_path / where, _NOBODY, _NOBODY)
    arguments = ["phsafe", "run", f"{tmp_path}/config/config.json", f"{tmp_path}/data/d", f"{tmp_path}/out/out"]
    done = start([*arguments, "--log", f"{tmp_path}/log/log"], before=_without_capabilities)
    assert is_refused(done), done.stderr
    assert str(tmp_path / where) in done.stderr
    assert not (tmp_path / "out" / "out").exists()
    assert not (tmp_path / "log" / "log").exists()


# --- two at once -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_two_runs_into_one_folder_and_one_ledger(world: Path, tmp_path: Path) -> None:
    ended: list[subprocess.CompletedProcess[str]] = []
    ledger = ["--ledger", str(tmp_path / "ledger.json"), "--dataset", "D"]

    def one() -> None:
        ended.append(start(command(world, tmp_path / "out", *ledger)))

    threads = [threading.Thread(target=one) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(done.returncode for done in ended) == [0, 2], [done.stderr for done in ended]
    assert main(["check", str(tmp_path / "out")]) == 0
    runs = json.loads((tmp_path / "ledger.json").read_text())["data"]["D"]["runs"]
    assert len(runs) == 1
    assert (tmp_path / "out.confidential.log").exists()


# --- clocks ----------------------------------------------------------------------------------------------------------


@pytest.mark.sampled(1)
@pytest.mark.parametrize("year", [1, 9999])
def test_an_odd_clock_changes_no_outcome(
    world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, year: int
) -> None:
    class Clock(datetime):
        @classmethod
        def now(cls, tz: object = None) -> "datetime":  # type: ignore[override]
            del tz
            return datetime(year, 1, 1, tzinfo=UTC)

    monkeypatch.setattr(machine, "datetime", Clock)
    monkeypatch.setattr(account, "datetime", Clock)
    ledger = ["--ledger", str(tmp_path / "ledger.json"), "--dataset", "D"]
    for _ in range(2):
        assert main(command(world, tmp_path / "out", "--overwrite", *ledger)) == 0
    assert main(["check", str(tmp_path / "out")]) == 0
    assert len(json.loads((tmp_path / "ledger.json").read_text())["data"]["D"]["runs"]) == 2
