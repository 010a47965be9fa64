"""The page that a run writes on request: public as the release is, and never in it."""

import json
from pathlib import Path

import pytest
from topdown_worlds import configuration, make_world, write_configuration, write_world

from yupana.cli.main import main
from yupana.products.phsafe.configuration import production_config
from yupana.products.safetab.demonstration_parameters import write_parameters

pytest.importorskip("vl_convert", reason="the charts of reports need the extra: report")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    assert main(["synth", str(folder / "census"), "--households", "400", "--seed", "1"]) == 0
    (folder / "config.json").write_text(json.dumps(production_config()))
    write_parameters(folder / "parameters")
    return folder


def test_a_run_of_phsafe_writes_a_page_beside_its_release(place: Path) -> None:
    out, report = place / "release", place / "release.html"
    command = ["phsafe", "run", str(place / "config.json"), str(place / "census"), str(out), "--report", str(report)]
    assert main(command) == 0
    page = report.read_text()
    for words in ("1.257281", "Relative error by state and iteration", "Against the run of 2020", "PH1_num.csv"):
        assert words in page
    assert "confidential" not in page
    assert "<script" not in page
    assert main(["check", str(out)]) == 0


@pytest.mark.thorough
def test_runs_of_safetab_write_pages_too(place: Path) -> None:
    for product, more in (("p", []), ("h", ["--totals", str(place / "p" / "T01001.csv")])):
        report = place / f"{product}.html"
        arguments = [
            f"safetab-{product}",
            "run",
            str(place / "parameters"),
            str(place / "census"),
            str(place / product),
        ]
        assert main([*arguments, *more, "--report", str(report)]) == 0
        assert "Margin of error by level" in report.read_text()


@pytest.mark.parametrize(
    ("name", "told"), [("refused/page.html", "would lie in"), ("nowhere/page.html", "its folder does not exist")]
)
def test_a_place_that_cannot_be_is_refused_before_the_work(
    place: Path, name: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "refused").mkdir(exist_ok=True)
    command = ["phsafe", "run", str(place / "config.json"), str(place / "census"), str(place / "refused")]
    assert main([*command, "--report", str(place / name)]) == 2
    assert told in capsys.readouterr().err
    assert list((place / "refused").iterdir()) == []


@pytest.mark.thorough
def test_a_run_of_topdown_writes_the_page_of_its_release(tmp_path: Path) -> None:
    out, report = tmp_path / "release", tmp_path / "release.html"
    assert main(["synth", str(tmp_path / "census"), "--households", "60", "--states", "44", "--seed", "1"]) == 0
    asked = ["topdown", "run", "h1-2020-us", str(tmp_path / "census"), str(out), "--seed", "1", "--report", str(report)]
    assert main(asked) == 0
    assert main(["report", str(out), str(tmp_path / "again.html")]) == 0
    assert report.read_bytes() == (tmp_path / "again.html").read_bytes()


def test_a_run_of_parts_writes_the_page_of_the_whole_and_of_each_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, sizes, rho, unit in (("persons", (3, 2), "1/2", "person record"), ("units", (2,), "1/3", "housing unit")):
        write_world(make_world(6, sizes), tmp_path / "data" / name)
        write_configuration(configuration(sizes, rho=rho, privacy_unit=unit), tmp_path / f"{name}.json")
    parts = {name: f"{name}.json" for name in ("persons", "units")}
    write_configuration({"product": "<both>", "parts": parts}, tmp_path / "both.json")
    names = ["the page-persons.html", "the page-units.html", "the page.html"]
    (tmp_path / names[1]).write_text("somebody's own")
    command = ["topdown", "run", "both.json", "data", "out", "--seed", "1", "--report", "the page.html"]
    assert main(command) == 2
    assert names[1] in capsys.readouterr().err
    assert not Path("out").exists()
    Path(names[1]).unlink()
    assert main(command) == 0
    assert sorted(path.name for path in tmp_path.glob("*.html")) == names
    page = Path(names[2]).read_text()
    for words in (
        "&lt;both&gt;",
        "0.500000",
        "0.333333",
        'href="the%20page-units.html"',
        "not added",
        "NOT FOR RELEASE",
    ):
        assert words in page
    for part in ("persons", "units"):
        assert main(["report", f"out/{part}", f"{part}.html"]) == 0
        assert Path(f"{part}.html").read_bytes() == Path(f"the page-{part}.html").read_bytes()
    assert main(["report", "out", "again.html"]) == 0
    assert Path("again.html").read_text() == page.replace("the%20page", "again")
    assert Path("again-units.html").read_bytes() == Path(names[1]).read_bytes()
    assert main(["report", "out", "out/again.html"]) == 2
