"""A run of full information that the disk has no room for ends before anything is drawn."""

import shutil
from pathlib import Path
from typing import NamedTuple

import pytest
from topdown_worlds import configuration, make_world, write_configuration, write_world

from yupana.cli.main import main
from yupana.confidential.topdown.resources import DiskNeed, needs_of_full_information, require_disk
from yupana.errors import OutputError


class Usage(NamedTuple):
    free: int


def leave(free: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(free))


def test_what_goes_to_one_disk_is_added_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs = [DiskNeed(tmp_path / "a" / "b", 60, "one"), DiskNeed(tmp_path / "c", 40, "other")]
    leave(100, monkeypatch)
    require_disk(needs)
    leave(99, monkeypatch)
    with pytest.raises(OutputError, match="one; other"):
        require_disk(needs)


def test_what_was_drawn_before_is_not_needed_again(tmp_path: Path) -> None:
    """It is used, or removed before other noise is drawn."""
    kept = tmp_path / "out.checkpoint"
    drawn, known = needs_of_full_information(1000, 5, 7, kept, tmp_path)
    assert (drawn.size, known.size) == (1000, 8 * 5 * 7)
    (kept / "draws").mkdir(parents=True)
    (kept / "draws" / "0").write_bytes(bytes(300))
    assert needs_of_full_information(1000, 5, 7, kept, tmp_path)[0].size == 700


@pytest.mark.parametrize("estimator", ["topdown", "full-information"])
@pytest.mark.slow
def test_a_full_disk_is_told_before_anything_is_drawn(
    estimator: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_world(make_world(1, (2, 2)), tmp_path / "data")
    config = write_configuration(configuration((2, 2), rho="2"), tmp_path / "config.json")
    leave(10, monkeypatch)
    run = ["topdown", "run", str(config), str(tmp_path / "data"), str(tmp_path / "out"), "--estimator", estimator]
    status = main([*run, "--seed", "1", "--intervals", "none"])
    if estimator == "topdown":
        assert status == 0
        return
    told = capsys.readouterr().err
    assert status == 2
    assert "but 0.0 GB are free there; free some, or write to another disk; free some, or set TMPDIR" in told
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "out.checkpoint").exists()
