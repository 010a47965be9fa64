"""Files of pieces are whole on any file system, or the writing ends."""

import errno
import os
from functools import partial
from pathlib import Path

import pytest

from yupana.errors import OutputError
from yupana.products.topdown.outputs import FilePiece, write_in_order
from yupana.topdown.nmf import measured

NONE = (errno.ENOSYS, errno.EXDEV, errno.EINVAL, errno.EOPNOTSUPP, errno.EPERM, 0, None)


def refusing(number: int, *_: int) -> int:
    """What a system does that does not copy between files: it raises an error, or copies nothing."""
    if number:
        raise OSError(number, os.strerror(number))
    return 0


def pieces(path: Path, sections: int) -> list[FilePiece]:
    return [FilePiece(path, partial(text, section), 1, section) for section in range(sections)]


def text(section: int) -> bytes:
    return b"%d," % section * (section << 19)


@pytest.mark.parametrize("number", NONE)
def test_sections_come_together_where_the_system_does_not_copy(
    number: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if number is None:
        monkeypatch.delattr(os, "copy_file_range")
    else:
        monkeypatch.setattr(os, "copy_file_range", partial(refusing, number))
    write, path = os.write, tmp_path / "file"
    monkeypatch.setattr(os, "write", lambda file, some: write(file, some[:700_001]))
    assert write_in_order(pieces(path, 4), 2) == {path: 4}
    assert path.read_bytes() == b"".join(map(text, range(4)))
    assert list(tmp_path.iterdir()) == [path]


def test_what_else_goes_wrong_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "copy_file_range", partial(refusing, errno.ENOSPC))
    with pytest.raises(OSError, match="No space"):
        write_in_order(pieces(tmp_path / "file", 2), 1)


def test_a_file_that_is_cut_short_ends_the_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, path = os.copy_file_range, tmp_path / "file"

    def cut(source: int, target: int, left: int, begin: int) -> int:
        path.with_name("file.1").write_bytes(b"1")
        return real(source, target, left, begin)

    monkeypatch.setattr(os, "copy_file_range", cut)
    with pytest.raises(OutputError, match=r"file\.1 was cut short"):
        write_in_order(pieces(path, 2), 1)


def test_room_for_answers_is_taken_on_any_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "posix_fallocate")
    assert not measured._scratch(1000, 7).any()
