"""Files of pieces are whole on any file system, or the writing ends."""

import errno
import os
from functools import partial
from pathlib import Path
from typing import BinaryIO

import pytest

from yupana.errors import OutputError
from yupana.products.topdown import outputs
from yupana.products.topdown.outputs import FilePiece, write_in_order
from yupana.topdown.nmf import measured


def pieces(path: Path, sections: int) -> list[FilePiece]:
    return [FilePiece(path, partial(text, section), 1, section) for section in range(sections)]


def text(section: int) -> bytes:
    return b"%d," % section * (section << 19)


def test_sections_come_together(tmp_path: Path) -> None:
    path = tmp_path / "file"
    assert write_in_order(pieces(path, 4), 2) == {path: 4}
    assert path.read_bytes() == b"".join(map(text, range(4)))
    assert list(tmp_path.iterdir()) == [path]


def test_what_else_goes_wrong_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(outputs, "copyfileobj", refuse)
    with pytest.raises(OSError, match="No space"):
        write_in_order(pieces(tmp_path / "file", 2), 1)


def test_a_file_that_is_cut_short_ends_the_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, path = outputs.copyfileobj, tmp_path / "file"

    def cut(source: BinaryIO, target: BinaryIO, size: int) -> None:
        path.with_name("file.1").write_bytes(b"1")
        real(source, target, size)

    monkeypatch.setattr(outputs, "copyfileobj", cut)
    with pytest.raises(OutputError, match=r"file\.1 was cut short"):
        write_in_order(pieces(path, 2), 1)


def test_room_for_answers_is_taken_on_any_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "posix_fallocate")
    assert not measured._scratch(1000, 7).any()
