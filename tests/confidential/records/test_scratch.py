"""A scratch folder is its process's while that lives, wherever it lives; what a dead one left is removed."""

import errno
import fcntl
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from yupana.confidential.records.database import scratch_folder

DAY = 86_400
HOLDER = """
import os, time
from yupana.confidential.records.database import scratch_folder
with scratch_folder() as folder:
    (folder / "spill").write_text("")
    {then}
    print(folder, flush=True)
    time.sleep(60)
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the scratch folders lie, which is there already."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with scratch_folder() as folder:
        return folder.parent


@contextmanager
def elsewhere(then: str = "pass") -> Iterator[tuple[Path, "subprocess.Popen[str]"]]:
    """A scratch folder that another process has; it is killed in the end."""
    with subprocess.Popen([sys.executable, "-c", HOLDER.format(then=then)], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        try:
            yield Path(other.stdout.readline().strip()), other
        finally:
            other.kill()


def dead(*_: object) -> None:
    raise ProcessLookupError


def sweep() -> None:
    with scratch_folder():
        pass


def test_nothing_stays_of_a_folder_and_its_mode_is_private(root: Path) -> None:
    with scratch_folder() as folder:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert list(folder.iterdir()) == []
        assert {stat.S_IMODE(path.stat().st_mode) & 0o077 for path in root.iterdir()} == {0}
    assert list(root.iterdir()) == []


@pytest.mark.slow
def test_a_process_that_cannot_be_seen_from_here_keeps_its_folder(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its number means nothing in another container, and on another machine."""
    with elsewhere() as (folder, _), scratch_folder() as ours:
        with monkeypatch.context() as patch:
            patch.setattr(os, "kill", dead)
            sweep()
        assert (folder / "spill").exists()
        assert ours.is_dir()
    sweep()
    assert list(root.iterdir()) == []


@pytest.mark.slow
def test_what_a_killed_process_left_is_removed_though_its_number_is_used_again(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with elsewhere() as (folder, _):
        pass
    assert (folder / "spill").exists()
    monkeypatch.setattr(os, "kill", lambda *_: None)
    sweep()
    assert list(root.iterdir()) == []


@pytest.mark.slow
def test_a_forked_process_neither_holds_nor_removes_the_folder_of_its_parent(root: Path) -> None:
    # The child says that it has begun, and so has let go of the lock, before its parent tells of it.
    begun = "begun, begin = os.pipe(); child = os.fork(); "
    then = "(os.read(begun, 1), print(child, flush=True)) if child else (os.write(begin, b'1'), time.sleep(60))"
    with elsewhere(begun + then) as (first, other):
        assert other.stdout is not None
        child, folder = int(str(first)), Path(other.stdout.readline().strip())
        other.kill()
        other.wait()
        os.kill(child, 0)
        sweep()
        assert list(root.iterdir()) == []
        os.kill(child, signal.SIGKILL)
    with scratch_folder() as folder:
        child = os.fork()
        if not child:
            with pytest.raises(SystemExit), scratch_folder():
                sys.exit()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert folder.is_dir()
        sweep()
        assert folder.is_dir()


@pytest.mark.slow
def test_a_folder_is_never_seen_without_its_lock(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process sweeps in the moment when a lock is there and not taken."""
    real, swept = fcntl.flock, []

    def late(descriptor: int, operation: int) -> None:
        if operation & fcntl.LOCK_EX and not swept:
            swept.append(True)
            subprocess.run(
                [
                    sys.executable,
                    "-c",
                    "from yupana.confidential.records.database import scratch_folder as s\nwith s(): 0",
                ],
                check=True,
            )
        real(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", late)
    with scratch_folder() as folder:
        assert swept
        monkeypatch.setattr(os, "kill", dead)
        sweep()
        assert folder.is_dir()
    assert list(root.iterdir()) == []


@pytest.mark.parametrize("locks", [True, False])
@pytest.mark.parametrize("age", [0, 2 * DAY])
def test_a_folder_without_a_lock(root: Path, monkeypatch: pytest.MonkeyPatch, age: int, *, locks: bool) -> None:
    """Of an earlier version, or of a file system without locks: there its process is looked for as ever."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    folders = {pid: root / f"{pid}-abcdefgh" for pid in (os.getpid(), ended.pid)}
    when = time.time() - age
    for folder in folders.values():
        folder.mkdir()
        (folder / "spill").write_text("")
        for path in (folder / "spill", folder):
            os.utime(path, (when, when))

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    if not locks:
        monkeypatch.setattr(fcntl, "flock", refuse)
    with scratch_folder() as own:
        assert own.is_dir()
    left = {folders[os.getpid()]} if age or not locks else set(folders.values())
    assert set(root.iterdir()) == left
