"""A file takes its place in one step, or what stood there stays."""

import os
import stat
from pathlib import Path

import pytest

from yupana.files.regular import replacing, take_room


def test_a_file_is_replaced_whole_and_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with replacing(path, mode=0o600) as file:
        file.write(b"first")
        assert not path.exists()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o640)
    with replacing(path) as file:
        file.write(b"second")
        assert path.read_bytes() == b"first"
    assert path.read_bytes() == b"second"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("partial", [None, "file.partial"])
def test_what_goes_wrong_leaves_what_stood_there(tmp_path: Path, partial: str | None) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"first")
    other = tmp_path / partial if partial else None
    with pytest.raises(UnicodeEncodeError), replacing(path, other) as file:
        file.writelines([b"sec", "\udcff".encode()])
    assert path.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(FileNotFoundError), replacing(tmp_path / "none" / "file"):
        pass


def test_what_a_killed_run_left_is_written_over_and_a_link_is_not_followed(tmp_path: Path) -> None:
    path, partial, elsewhere = tmp_path / "file", tmp_path / "file.partial", tmp_path / "elsewhere"
    elsewhere.write_bytes(b"untouched")
    partial.symlink_to(elsewhere)
    with replacing(path, partial) as file:
        file.write(b"new")
    assert (path.read_bytes(), elsewhere.read_bytes()) == (b"new", b"untouched")
    assert not partial.exists()


@pytest.mark.parametrize("whole", [False, True])
def test_room_is_taken_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, whole: bool) -> None:
    """With the system's help and without: the file is longer by zeros that take blocks of the disk."""
    if not whole:
        monkeypatch.delattr(os, "posix_fallocate")
    size = (3 << 20) + 5
    with (tmp_path / "file").open("w+b") as file:
        file.write(b"first")
        file.flush()
        take_room(file.fileno(), 5, size)
        file.seek(0)
        assert file.read() == b"first" + bytes(size)
        assert os.fstat(file.fileno()).st_blocks * 512 >= size
    with (tmp_path / "file").open("rb") as file, pytest.raises(OSError, match="Bad file descriptor"):
        take_room(file.fileno(), 0, 1)
