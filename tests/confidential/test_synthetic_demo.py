"""The demonstration, end to end at a small size: whole or not at all, again and again, and never over other work."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

import yupana
from yupana.cli.main import main
from yupana.confidential.synthetic_demo import RELEASES, demonstrate
from yupana.errors import OutputError

SMALL = ("--households", "300")
START = (sys.executable, "-c", "from yupana.cli.start import entry; entry()")


def tree(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.thorough
def test_demo_leaves_releases_and_one_atlas_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda address: not asked.append(address))
    out, seen = tmp_path / "demo", []
    for more in ((), ("--overwrite", "--open")):
        assert main(["demo", str(out), *SMALL, *more]) == 0
        said = capsys.readouterr()
        assert f"Open:  {out}/atlas/index.html\n" in said.out
        assert "demo: atlas: pages of topdown" in said.err
        assert [path.name for path in tmp_path.iterdir()] == ["demo"]
        seen.append(tree(out))
    first, second = seen
    assert asked == [(out / "atlas" / "index.html").as_uri()]
    assert first.keys() == second.keys()
    assert first["census/persons.csv"] == second["census/persons.csv"]
    assert first["phsafe/PH1_num.csv"] != second["phsafe/PH1_num.csv"]
    index = (out / "atlas" / "index.html").read_text()
    assert re.findall(r'href="(.*?)/index.html"', index) == list(RELEASES)
    for name in RELEASES:
        assert yupana.check(out / name).wrong == ()
        assert yupana.open_release(out / name).status != "NOT FOR RELEASE"
        told = (out / "atlas" / name / "data" / "release.js").read_text()
        assert '"index":"../index.html"' in told
        assert ".partial" not in told
    assert '"maps":{"1":"map-1"}' in (out / "atlas" / "topdown" / "data" / "release.js").read_text()


@pytest.mark.thorough
def test_an_interrupted_demo_leaves_nothing_and_two_at_once_are_told(tmp_path: Path) -> None:
    out = tmp_path / "demo"
    command = [*START, "demo", str(out), "--households", "4000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        while not (tmp_path / "demo.partial").exists():
            assert running.poll() is None
            time.sleep(0.05)
        other = subprocess.run(command, capture_output=True, text=True, check=False)
        assert other.returncode == 2
        assert "another run is writing" in other.stderr
        os.kill(running.pid, 2)
        told = running.communicate()[1]
    assert running.returncode != 0
    assert "interrupted" in told
    assert list(tmp_path.iterdir()) == []


def test_other_folders_are_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    before = tree(tmp_path)
    for overwrite in ([], ["--overwrite"]):
        assert main(["demo", str(tmp_path), *overwrite, *SMALL]) == 2
        assert "mine" not in capsys.readouterr().err.replace(str(tmp_path), "")
    assert tree(tmp_path) == before
    release = tmp_path / "release"
    release.mkdir()
    (release / "manifest.json").write_text(json.dumps({"yupana": "0", "product": "phsafe"}))
    before = tree(release)
    with pytest.raises(OutputError, match="no demonstration"):
        demonstrate(release, 300, lambda _: None, overwrite=True)
    assert tree(release) == before


def test_a_full_disk_is_told_and_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(folder: Path, *_: object, **__: object) -> None:
        raise OSError(28, "No space left on device", str(folder))

    monkeypatch.setattr("yupana.confidential.synthetic_demo.synthesize", full)
    assert main(["demo", str(tmp_path / "demo"), *SMALL]) == 2
    assert "the disk is full; nothing was left there" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
