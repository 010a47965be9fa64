"""The demonstration, end to end at a small size: whole or not at all, again and again, and never over other work."""

import json
import re
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import pytest
from plans import production_plan
from read_tables import read_tables

from yupana.cli.main import main
from yupana.confidential.synthetic_demo import DemonstrationRequest, demonstrate
from yupana.errors import OutputError
from yupana.products.phsafe.configuration import production_config, read_config
from yupana.products.phsafe.product import PHSAFE

pytestmark = pytest.mark.thorough

SMALL = ("--households", "300", "--trials", "2")


class Made(NamedTuple):
    """A demonstration and what was said while it was made."""

    out: Path
    stdout: str
    stderr: str


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    out = tmp_path_factory.mktemp("made") / "demo"
    with redirect_stdout(StringIO()) as stdout, redirect_stderr(StringIO()) as stderr:
        assert main(["demo", str(out), "--households", "3000", "--trials", "2"]) == 0
    return Made(out, stdout.getvalue(), stderr.getvalue())


def tree(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_demo_works_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "demo"
    seen = []
    for _ in range(2):
        assert main(["demo", str(out), "--overwrite", *SMALL]) == 0
        last = capsys.readouterr().out.splitlines()[-1]
        assert last == str(out / "safetab.html")
        assert (out / "topdown.html").is_file()
        assert Path(last).is_absolute()
        assert (out / "report.html").is_file()
        seen.append(tree(out))
        assert [path.name for path in tmp_path.iterdir()] == ["demo"]
    first, second = seen
    assert first.keys() == second.keys()
    assert first["census/persons.csv"] == second["census/persons.csv"]
    assert first["release/PH1_num.csv"] != second["release/PH1_num.csv"]


def test_the_page_on_topdown_compares_a_state_with_its_truth(made: Made) -> None:
    page = (made.out / "topdown.html").read_text(encoding="utf-8")
    assert "://" not in page
    assert "<strong>NOT FOR RELEASE</strong>" in page
    total = {}
    for name in ("topdown", "topdown-exact"):
        lines = (made.out / name / "tables" / "P1.csv").read_text().splitlines()[1:]
        total[name] = {
            code: int(count) for level, code, count, *_ in (line.split("|") for line in lines) if level == "750"
        }
    errors = [abs(total["topdown"][code] - true) for code, true in total["topdown-exact"].items()]
    assert re.search(rf"<td>blocks</td><td class=\"number\">{len(errors)}</td>", page)
    assert re.search(
        rf">{max(errors)}</td><td class=\"number\">{100 * errors.count(0) / len(errors):.0f}%</td></tr>", page
    )
    areas = json.loads((made.out / "block-groups.json").read_text())["features"]
    assert page.count("<path id=") == len(areas)
    assert page.count("<use ") == 2 * len(areas)


def test_demo_leaves_census_release_and_report(made: Made) -> None:
    out = made.out
    assert "inventing a census" in made.stderr
    assert str(out / "safetab.html") in made.stdout
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["status"] == "NOT FOR RELEASE"
    assert "yupana" in manifest
    assert (out / "census" / "SYNTHETIC").is_file()
    release, tables, wrong = read_tables(out / "release")
    assert wrong == []
    assert len(tables) == 11
    assert release["status"] != "NOT FOR RELEASE"
    report = (out / "report.html").read_text(encoding="utf-8")
    persons = (out / "census" / "persons.csv").read_text().count("\n") - 1
    assert f"{persons:,}" in report
    assert "1.257281" in report
    assert "://" not in report
    assert ".partial" not in report


def test_demo_leads_from_persons_to_households(made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = made.out
    releases = {}
    for name in ("safetab-p", "safetab-h", "safetab-p-exact"):
        manifest, tables, wrong = read_tables(out / name)
        assert wrong == []
        assert (manifest["status"] == "NOT FOR RELEASE") is (name == "safetab-p-exact")
        releases[name] = tables

    def groups(columns: dict[str, list[str]]) -> set[tuple[str, ...]]:
        return set(zip(columns["REGION_TYPE"], columns["REGION_ID"], columns["ITERATION_CODE"], strict=True))

    persons, households = releases["safetab-p"], releases["safetab-h"]
    assert groups(persons["T01001"]) == set().union(*(groups(households[f"T0300{k}"]) for k in range(1, 5)))
    assert groups(persons["T02001"])
    assert groups(households["T03002"])
    report = (out / "safetab.html").read_text(encoding="utf-8")
    assert "4.944000" in report
    assert "8.895302" in report
    assert "one person record" in report
    assert "one household record" in report
    assert f"{len(persons['T01001']['COUNT']):,}" in report
    assert "://" not in report
    assert ".partial" not in report
    assert "NaN" not in report
    drawings = re.findall(r'<svg role="img".*?</svg>', report, re.DOTALL)
    assert len(drawings) == 26
    assert all(re.search(r'class="mark-(rect|symbol) role-mark[^>]*><path', drawing) for drawing in drawings)
    parameters, totals = str(out / "parameters"), str(out / "safetab-p" / "T01001.csv")
    for product in ("safetab-p", "safetab-h"):
        assert main([product, "plan", parameters, "--diff", "production"]) == 0
        assert "No difference" in capsys.readouterr().out
    again = ["safetab-h", "run", parameters, str(out / "census"), str(tmp_path / "again"), "--totals", totals]
    assert main(again) == 0


def test_commands_of_the_report_work(made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = made.out
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
    (tmp_path / "manifest.json").write_text(json.dumps({"yupana": "0", "product": "phsafe"}))
    before = tree(tmp_path)
    with pytest.raises(OutputError, match="no demonstration"):
        demonstrate(DemonstrationRequest(tmp_path, 300, 2, overwrite=True), lambda _: None)
    assert tree(tmp_path) == before


def test_failure_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("yupana.confidential.synthetic_demo.render", broken)
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
    assert PHSAFE.plan(read_config(path)) == production_plan(puerto_rico=False)
