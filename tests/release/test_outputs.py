"""What a command writes replaces nothing of others, appears whole, and waits for no pipe."""

import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from yupana import interruption
from yupana.cli import main as start
from yupana.cli.main import main
from yupana.confidential.records.database import scratch_folder
from yupana.confidential.request import RunRequest, confidential_log
from yupana.errors import OutputError, YupanaError
from yupana.files.regular import NewFile, read_json, read_regular
from yupana.plan.plan import Plan
from yupana.products.phsafe.configuration import production_config
from yupana.release import folder as folders
from yupana.release.folder import new_folder, write_manifest

HANGS = 20
"""Seconds after which a command that waits for a pipe is taken to wait for ever."""


@pytest.fixture(autouse=True)
def _signals() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture(scope="module")
def census(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("census")
    assert main(["synth", str(folder / "data"), "--households", "60", "--states", "44", "--seed", "1"]) == 0
    (folder / "config.json").write_text(
        json.dumps(
            {
                **(whole := production_config()),
                "state_filter": ["10", "44"],
                "privacy_budget": {
                    table: levels if table == "PH2" else dict.fromkeys(levels, 0)
                    for table, levels in whole["privacy_budget"].items()
                },
            }
        )
    )
    return folder


@pytest.fixture
def place(census: Path, tmp_path: Path) -> Path:
    shutil.copytree(census, tmp_path / "w")
    return tmp_path / "w"


def run(place: Path, *more: str, out: str = "out") -> int:
    return main(["phsafe", "run", str(place / "config.json"), str(place / "data"), str(place / out), *more])


# --- reports ---------------------------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_a_report_never_replaces_what_is_no_report(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("vl_convert", reason="the charts of reports need the extra: report")
    (place / "mine.html").write_text("<!DOCTYPE html><p>mine")
    (place / "link.html").symlink_to(place / "data" / "persons.csv")
    os.mkfifo(place / "pipe.html")
    before = {path: path.read_bytes() for path in (place / "data").iterdir()}
    for target in ("data/persons.csv", "data/new.html", "mine.html", "link.html", "pipe.html", "config.json"):
        assert run(place, "--report", str(place / target)) == 2, target
        assert str(place / target) in capsys.readouterr().err
        assert not (place / "out").exists()
    command = ["audit", "epl", "--mechanism", "geometric", "--epsilon", "1", "--counts", "50", "--seed", "1"]
    for target in ("data/persons.csv", "mine.html", "link.html"):
        assert main([*command, "--report", str(place / target)]) == 2
    assert {path: path.read_bytes() for path in (place / "data").iterdir()} == before
    assert (place / "mine.html").read_text() == "<!DOCTYPE html><p>mine"
    for _ in range(2):
        # A page of ours may be replaced.
        assert main([*command, "--report", str(place / "epl.html")]) == 0
    assert (place / "epl.html").stat().st_mode & 0o777 == 0o600


def test_the_report_of_a_spine_never_replaces_what_is_no_report(place: Path) -> None:
    pytest.importorskip("vl_convert", reason="the charts of reports need the extra: report")
    build = ["spine", "build", str(place / "data" / "GRF-C.txt"), str(place / "spine"), "--kind", "conventional"]
    assert main(build) == 0
    before = (place / "data" / "persons.csv").read_bytes()
    assert main(["spine", "report", str(place / "spine"), "--to", str(place / "data" / "persons.csv")]) == 2
    assert (place / "data" / "persons.csv").read_bytes() == before


# --- the confidential log --------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_log_replaces_only_a_log(place: Path) -> None:
    (place / "mine.json").write_text("{}")
    (place / "link").symlink_to(place / "mine.json")
    os.mkfifo(place / "pipe")
    (place / "deep").write_text("[" * 100_000)
    for target in ("mine.json", "link", "pipe", "deep"):
        assert run(place, "--log", str(place / target)) == 2, target
    assert (place / "mine.json").read_text() == "{}"
    assert run(place) == 0
    log = place / "out.confidential.log"
    log.chmod(0o666)
    assert run(place, "--overwrite") == 0
    assert log.stat().st_mode & 0o777 == 0o600


@pytest.mark.slow
def test_a_log_never_stands_without_its_release(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(folders, "_publish", refuse)
    assert run(place) == 2
    # What was drawn is kept for --resume.
    assert {path.name for path in place.iterdir()} == {"config.json", "data", "out.checkpoint"}


@pytest.mark.slow
def test_a_failed_run_leaves_the_log_of_the_run_before(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(place) == 0
    before = (place / "out.confidential.log").read_bytes()

    def refuse(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(folders, "_publish", refuse)
    assert run(place, "--overwrite") == 2
    assert (place / "out.confidential.log").read_bytes() == before
    assert main(["check", str(place / "out")]) == 0


def test_a_log_appears_with_the_release(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "out"
    with confidential_log([tmp_path / "data"], out, RunRequest()) as write, new_folder(out) as partial:
        write({"records": 3})
        write_manifest(partial, {"yupana": "1"})
        assert not (tmp_path / "deep" / "out.confidential.log").exists()
    assert read_json(tmp_path / "deep" / "out.confidential.log")["records"] == 3
    assert sorted(path.name for path in (tmp_path / "deep").iterdir()) == ["out", "out.confidential.log"]


# --- publishing ------------------------------------------------------------------------------------------------------


def old_and_new(tmp_path: Path, *, exchange: bool, monkeypatch: pytest.MonkeyPatch) -> Path:
    out = tmp_path / "out"
    with new_folder(out) as partial:
        write_manifest(partial, {"yupana": "old"})
    if not exchange:
        monkeypatch.setattr(folders.ctypes, "CDLL", lambda *_, **__: object())
    return out


@pytest.mark.parametrize("exchange", [True, False])
def test_publishing_puts_the_new_in_the_place_of_the_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, exchange: bool
) -> None:
    out = old_and_new(tmp_path, exchange=exchange, monkeypatch=monkeypatch)
    (tmp_path / "out.replaced").mkdir()
    (tmp_path / "out.replaced" / "precious").write_text("mine")
    with new_folder(out, overwrite=True) as partial:
        write_manifest(partial, {"yupana": "new"})
    assert read_json(out / "manifest.json") == {"yupana": "new"}
    assert (tmp_path / "out.replaced" / "precious").read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "out.replaced"]


@pytest.mark.parametrize("exchange", [True, False])
@pytest.mark.parametrize("step", range(8))
def test_a_signal_while_publishing_leaves_the_old_or_the_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int, *, exchange: bool
) -> None:
    out = old_and_new(tmp_path, exchange=exchange, monkeypatch=monkeypatch)
    signal.signal(signal.SIGTERM, interruption.stop)
    interruption.begin()
    calls = iter(range(100))

    def disturbed(name: str) -> None:
        real = getattr(Path, name)

        def rename(self: Path, target: Path) -> Path:
            if next(calls) == step:
                signal.raise_signal(signal.SIGTERM)
            found: Path = real(self, target)
            if next(calls) == step:
                signal.raise_signal(signal.SIGTERM)
            return found

        monkeypatch.setattr(Path, name, rename)

    disturbed("rename")
    sync = folders.sync

    def synced(path: Path) -> None:
        sync(path)
        if next(calls) == step:
            signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(folders, "sync", synced)
    stopped = False
    try:
        with new_folder(out, overwrite=True) as partial:
            write_manifest(partial, {"yupana": "new"})
    except KeyboardInterrupt:
        stopped = True
    assert read_json(out / "manifest.json") == {"yupana": "new"}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert not stopped or "had been written" in interruption.words()


def test_a_rename_that_fails_puts_the_old_release_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = old_and_new(tmp_path, exchange=False, monkeypatch=monkeypatch)
    real = Path.rename

    def rename(self: Path, target: Path) -> Path:
        if self.name == "out.partial":
            raise OSError(5, "Input/output error")
        return real(self, target)

    with pytest.raises(OutputError, match="nothing was left"), new_folder(out, overwrite=True) as partial:  # noqa: PT012
        write_manifest(partial, {"yupana": "new"})
        monkeypatch.setattr(Path, "rename", rename)
    assert read_json(out / "manifest.json") == {"yupana": "old"}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_second_signal_leaves_no_noise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    signal.signal(signal.SIGTERM, interruption.stop)
    interruption.begin()
    real = shutil.rmtree

    def again(path: Path, **more: bool) -> None:
        signal.raise_signal(signal.SIGTERM)
        real(path, **more)

    monkeypatch.setattr(shutil, "rmtree", again)
    with pytest.raises(KeyboardInterrupt), new_folder(tmp_path / "out") as partial:  # noqa: PT012
        (partial / "noisy").write_text("7")
        signal.raise_signal(signal.SIGTERM)
    assert list(tmp_path.iterdir()) == []
    assert interruption.words() == "interrupted; nothing was released"


def test_what_came_to_stand_in_out_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(OutputError), new_folder(out) as partial:  # noqa: PT012
        write_manifest(partial, {"yupana": "1"})
        out.mkdir()
        (out / "precious").write_text("mine")
    assert (out / "precious").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


# --- two writers -----------------------------------------------------------------------------------------------------


def test_a_lock_on_a_folder_that_was_replaced_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = fcntl.flock

    def late(descriptor: int, operation: int) -> None:
        # Another run sees the folder without a lock, removes it, and begins.
        partial = tmp_path / "out.partial"
        partial.rmdir()
        partial.mkdir()
        (partial / "theirs").write_text("")
        real(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", late)
    with pytest.raises(OutputError, match="another run"), new_folder(tmp_path / "out"):
        pytest.fail("two runs write one folder")
    assert [path.name for path in (tmp_path / "out.partial").iterdir()] == ["theirs"]


@pytest.mark.parametrize("kind", ["link", "dangling", "file", "pipe"])
def test_what_stands_in_the_place_of_the_work_is_told(tmp_path: Path, kind: str) -> None:
    partial = tmp_path / "out.partial"
    (tmp_path / "else").mkdir()
    match kind:
        case "link":
            partial.symlink_to(tmp_path / "else")
        case "dangling":
            partial.symlink_to(tmp_path / "nowhere")
        case "file":
            partial.write_text("")
        case "pipe":
            os.mkfifo(partial)
    with pytest.raises(OutputError, match="is no folder"), new_folder(tmp_path / "out", overwrite=True):
        pytest.fail("it was taken for a folder of ours")
    assert os.path.lexists(partial)


# --- what is no file -------------------------------------------------------------------------------------------------


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for place, kind in ((tmp_path / "pipe", OSError), (tmp_path, IsADirectoryError), (Path("/dev/zero"), OSError)):
        with pytest.raises(kind) as told:
            read_regular(place)
        assert told.value.strerror
    (tmp_path / "deep").write_text("[" * 100_000)
    with pytest.raises(ValueError, match="nested"):
        read_json(tmp_path / "deep")


# --- where confidential spill goes -----------------------------------------------------------------------------------


def test_a_scratch_disk_that_was_named_has_no_stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "nowhere"))
    with pytest.raises(OutputError, match="nowhere"), scratch_folder():
        pytest.fail("it spilled elsewhere")


def test_a_fault_is_told_where_it_cannot_be_written_down(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fault(_: Plan) -> None:
        raise ValueError("117999")

    monkeypatch.setattr(Plan, "loss", fault)
    monkeypatch.setenv("TMPDIR", str(place / "nowhere"))
    assert main(["phsafe", "plan", str(place / "config.json")]) == 1
    told = capsys.readouterr().err
    assert "a fault of the program" in told
    assert "could not be written" in told
    assert "117999" not in told


# --- streams ---------------------------------------------------------------------------------------------------------


def started(command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.thorough
def test_closed_streams_are_nobody_to_tell(place: Path) -> None:
    program = f"{Path(sys.executable).parent}/yupana"
    done = started(f"{program} phsafe run {place}/config.json {place}/data {place}/out <&- >&- 2>&-")
    assert done.returncode == 0
    assert main(["check", str(place / "out")]) == 0
    assert started(f"{program} phsafe plan {place}/config.json > /dev/full").returncode == 2
    assert started(f"{program} phsafe run {place}/config.json {place}/data {place}/out2 2> /dev/full").returncode == 0


def test_data_that_cannot_be_read_is_not_told_as_output(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="Permission denied") as told, new_folder(tmp_path / "out"):
        raise PermissionError(13, "Permission denied", str(tmp_path / "data" / "persons.csv"))
    assert not isinstance(told.value, YupanaError)
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_claimed_without_being_touched(tmp_path: Path) -> None:
    page = NewFile(tmp_path / "page", "the page", lambda _: False)
    page.check()
    assert list(tmp_path.iterdir()) == []
    page.write("whole")
    assert (tmp_path / "page.partial").stat().st_mode & 0o777 == 0o600
    with contextlib.suppress(OutputError):
        NewFile(tmp_path / "page", "the page", lambda _: False).check()
    page.keep()
    assert (tmp_path / "page").read_text() == "whole"
    with pytest.raises(OutputError, match="would replace"):
        page.check()


@pytest.mark.parametrize("where", ["out", "--log", "--report", "out.partial"])
def test_a_link_to_itself_is_no_fault_of_the_program(place: Path, where: str) -> None:
    target = place / ("loop" if where.startswith("--") else where)
    target.symlink_to(target.name)
    assert run(place, *([where, str(target)] if where.startswith("--") else [])) == 2
    assert target.is_symlink()


@pytest.mark.slow
def test_a_signal_while_a_charge_is_written_leaves_no_half_of_it(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.fsync

    def disturbed(descriptor: int) -> None:
        real(descriptor)
        if "ledger" in Path(f"/proc/self/fd/{descriptor}").readlink().name:
            signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(os, "fsync", disturbed)
    assert run(place, "--ledger", str(place / "ledger.json"), "--dataset", "D") == 2
    left = {path.name for path in place.iterdir()}
    assert left == {"config.json", "data", "ledger.json", "ledger.json.lock", "out.checkpoint"}


def test_a_second_signal_does_not_come_between_what_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def twice(message: str) -> str:
        os.kill(os.getpid(), signal.SIGTERM)
        return message

    monkeypatch.setattr(start, "visible", twice)
    monkeypatch.setattr(folders, "check_out", lambda *_, **__: os.kill(os.getpid(), signal.SIGTERM))
    assert main(["synth", str(tmp_path / "out"), "--households", "40", "--states", "44", "--seed", "1"]) == 2
    assert capsys.readouterr().err == "yupana: interrupted; nothing was released\n"
