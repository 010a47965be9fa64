"""The demonstration, end to end at a small size: whole or not at all, again and again, and never over other work."""

import json
import sys
from pathlib import Path

import pytest

from hollerith.cli.main import main
from hollerith.errors import OutputError
from hollerith.products.phsafe.config import read_config
from hollerith.products.phsafe.demonstration import DemonstrationRequest, demonstrate
from hollerith.products.phsafe.plan import make_plan
from hollerith.products.phsafe.production import production_config, production_plan
from hollerith.release.check import check_files

SMALL = ("--households", "300", "--trials", "2")


def tree(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_demo_works_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "demo"
    seen = []
    for _ in range(2):
        assert main(["demo", str(out), "--overwrite", *SMALL]) == 0
        last = capsys.readouterr().out.splitlines()[-1]
        assert last == str(out / "report.html")
        assert Path(last).is_absolute()
        seen.append(tree(out))
        assert [path.name for path in tmp_path.iterdir()] == ["demo"]
    first, second = seen
    assert first.keys() == second.keys()
    assert first["census/persons.csv"] == second["census/persons.csv"]
    assert first["release/PH1_num.csv"] != second["release/PH1_num.csv"]


def test_demo_leaves_census_release_and_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "demo"
    assert main(["demo", str(out), *SMALL]) == 0
    captured = capsys.readouterr()
    assert "inventing a census" in captured.err
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["status"] == "NOT FOR RELEASE"
    assert "hollerith" in manifest
    assert (out / "census" / "SYNTHETIC").is_file()
    release, tables, wrong = check_files(out / "release")
    assert wrong == []
    assert len(tables) == 11
    assert release["status"] != "NOT FOR RELEASE"
    report = (out / "report.html").read_text(encoding="utf-8")
    persons = (out / "census" / "persons.csv").read_text().count("\n") - 1
    assert f"{persons:,}" in report
    assert "1.257281" in report
    assert "://" not in report
    assert ".partial" not in report


def test_commands_of_the_report_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "demo"
    assert main(["demo", str(out), *SMALL]) == 0
    config, census = str(out / "config.json"), str(out / "census")
    assert main(["check", str(out / "release")]) == 0
    assert main(["phsafe", "plan", config, "--diff", "production"]) == 0
    assert "No difference" in capsys.readouterr().out
    assert main(["phsafe", "run", config, census, str(tmp_path / "again")]) == 0


def test_full_folder_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    before = tree(tmp_path)
    for overwrite in ([], ["--overwrite"]):
        assert main(["demo", str(tmp_path), *overwrite, *SMALL]) == 2
        assert "mine" not in capsys.readouterr().err.replace(str(tmp_path), "")
    assert tree(tmp_path) == before
    assert not tmp_path.with_name(tmp_path.name + ".partial").exists()


def test_release_is_not_taken_for_a_demonstration(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps({"hollerith": "0", "product": "phsafe"}))
    before = tree(tmp_path)
    with pytest.raises(OutputError, match="no demonstration"):
        demonstrate(DemonstrationRequest(tmp_path, 300, 2, overwrite=True), lambda _: None)
    assert tree(tmp_path) == before


def test_failure_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("hollerith.products.phsafe.demonstration.render", broken)
    with pytest.raises(KeyboardInterrupt):
        demonstrate(DemonstrationRequest(tmp_path / "demo", 300, 2), lambda _: None)
    assert list(tmp_path.iterdir()) == []


def test_missing_renderer_is_told_before_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    assert main(["demo", str(tmp_path / "demo"), *SMALL]) == 2
    assert list(tmp_path.iterdir()) == []


def test_production_configuration_is_read_back_exactly(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(production_config()))
    assert make_plan(read_config(path)) == production_plan(puerto_rico=False)
