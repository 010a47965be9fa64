"""The page that a run writes on request: public as the release is, and never in it."""

import base64
import hashlib
import json
import re
from pathlib import Path

import pytest
from topdown_worlds import configuration, make_world, write_configuration, write_world

import yupana
from yupana.atlas import one_file
from yupana.cli.main import main
from yupana.products.phsafe.configuration import production_config


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    assert main(["synth", str(folder / "census"), "--households", "400", "--seed", "1"]) == 0
    (folder / "config.json").write_text(json.dumps(production_config()))
    return folder


@pytest.mark.slow
def test_a_run_of_phsafe_writes_a_page_beside_its_release(place: Path) -> None:
    out, report = place / "release", place / "release.html"
    command = ["phsafe", "run", str(place / "config.json"), str(place / "census"), str(out), "--report", str(report)]
    assert main(command) == 0
    page = report.read_text()
    told = json.loads(page.partition("atlasRelease(")[2].partition(");\n")[0])
    assert {table["name"] for table in told["tables"]} == set(yupana.open_release(out))
    assert "partial" not in told
    (budgets,) = told["releases"][0]["budgets"]
    plan = yupana.open_release(out).plan
    assert [row["budget"] for row in budgets["rows"]] == [float(m.budget) for m in plan.measurements]
    assert [row["margin"] for row in budgets["rows"]] == [plan.margin(m) for m in plan.measurements]
    assert budgets["same"]
    assert str(place) not in page
    assert not re.findall(r"""\b(src|href)=["']""", page.partition("<script>")[0])
    policy = page.partition('Policy" content="')[2].partition('"')[0]
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert len(scripts) == policy.partition("style-src")[0].count("sha256-") == 2
    for text in scripts:
        assert base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() in policy
    assert main(["check", str(out)]) == 0


@pytest.mark.thorough
def test_a_page_holds_the_coarsest_areas_that_fit_and_says_what_it_leaves_out(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    release = yupana.run("phsafe", place / "config.json", place / "census", place / "all", seed=1)
    files = site_of(release, place / "site")
    for room, kinds, left in ((files - 1, ["USA"], ["STATE"]), (100_000, [], ["USA", "STATE"])):
        monkeypatch.setattr(one_file, "ONE_FILE_BYTES", room)
        assert main(["report", str(place / "all"), str(place / "part.html")]) == 0
        assert f"kinds, as it would be too large: {', '.join(left)}. All: yupana atlas" in capsys.readouterr().err
        told = json.loads((place / "part.html").read_text().partition("atlasRelease(")[2].partition(");\n")[0])
        assert [kind["name"] for kind in told["kinds"]] == kinds
        assert told["partial"] == {"left": left, "command": f"yupana atlas {place / 'all'} --to FOLDER"}
        assert bool(told["tables"]) is bool(kinds)
        assert told["releases"][0]["promises"]


def site_of(release: yupana.Release, folder: Path) -> int:
    """How many bytes its pages have."""
    release.atlas(folder)
    return sum(path.stat().st_size for path in folder.rglob("*") if path.name != "manifest.json" and path.is_file())


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


@pytest.mark.slow
def test_the_truth_of_real_records_stays_with_its_owner(tmp_path: Path) -> None:
    data = write_world(make_world(4, (2, 3)), tmp_path / "data")
    (data / "SYNTHETIC").unlink()
    config, truth = write_configuration(configuration((2, 3), rho="1"), tmp_path / "config.json"), tmp_path / "truth"
    assert main(["topdown", "exact", str(config), str(data), str(truth), "--internal"]) == 0
    assert main(["report", str(truth), str(tmp_path / "page.html")]) == 0
    assert (tmp_path / "page.html").stat().st_mode & 0o077 == 0
    assert '"words":"CONFIDENTIAL"' in (tmp_path / "page.html").read_text()
    assert main(["atlas", str(truth), "--to", str(tmp_path / "site")]) == 2


@pytest.mark.thorough
def test_a_run_of_parts_writes_one_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, sizes, rho, unit in (("persons", (3, 2), "1/2", "person record"), ("units", (2,), "1/3", "housing unit")):
        write_world(make_world(6, sizes), tmp_path / "data" / name)
        write_configuration(configuration(sizes, rho=rho, privacy_unit=unit), tmp_path / f"{name}.json")
    parts = {name: f"{name}.json" for name in ("persons", "units")}
    write_configuration({"product": "<both>", "parts": parts}, tmp_path / "both.json")
    assert main(["topdown", "run", "both.json", "data", "out", "--seed", "1", "--report", "page.html"]) == 0
    assert [path.name for path in tmp_path.glob("*.html")] == ["page.html"]
    page = Path("page.html").read_text()
    told = json.loads(page.partition("atlasRelease(")[2].partition(");\n")[0])
    assert {table["part"] for table in told["tables"]} == set(parts)
    assert [(one["part"], one["loss"]) for one in told["releases"][0]["promises"]] == [
        ("persons", 0.5),
        ("units", 1 / 3),
    ]
    assert told["releases"][0]["status"]["words"] == "NOT FOR RELEASE"
    assert main(["report", "out", "again.html"]) == 0
    assert Path("again.html").read_text() == page
    assert main(["report", "out", "out/again.html"]) == 2
    Path("mine.html").write_text("somebody's own")
    assert main(["report", "out", "mine.html"]) == 2
    assert Path("mine.html").read_text() == "somebody's own"
