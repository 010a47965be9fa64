"""A file beside a release, where its last rename fails or something takes its place."""

import errno
import os
from pathlib import Path

import pytest

from yupana.errors import OutputError
from yupana.files.regular import NewFile


def _file(place: Path, *, once: bool) -> NewFile:
    return NewFile(place / "page.html", "the report", lambda path: path.read_text().startswith("ours"), once=once)


@pytest.mark.parametrize("once", [False, True])
def test_a_rename_that_fails_leaves_only_what_cannot_be_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, once: bool
) -> None:
    def refused(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    new = _file(tmp_path, once=once)
    new.write("ours")
    monkeypatch.setattr(Path, "replace", refused)
    with pytest.raises(OutputError, match="cannot be written: Input/output error") as told:
        new.keep()
    assert [path.name for path in tmp_path.iterdir()] == (["page.html.partial"] if once else [])
    assert ("page.html.partial" in str(told.value)) == once


@pytest.mark.parametrize("once", [False, True])
def test_what_came_to_stand_there_is_not_replaced(tmp_path: Path, *, once: bool) -> None:
    new = _file(tmp_path, once=once)
    new.write("ours")
    new.path.write_text("theirs")
    with pytest.raises(OutputError, match="something else came to stand there meanwhile"):
        new.keep()
    assert new.path.read_text() == "theirs"
    assert (tmp_path / "page.html.partial").exists() == once
