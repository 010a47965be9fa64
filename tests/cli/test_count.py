"""`yupana count`: its options, and that the cost is told before it is spent."""

import json
from pathlib import Path

import pytest

from yupana.cli.main import main

LINE = ["--by", "region,age:5:0-9", "--unit", "person", "--epsilon", "1"]


@pytest.fixture
def people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    lines = ["person,region,age", *(f"p{i % 7},{'NS'[i % 2]},{i % 10}" for i in range(40))]
    Path("people.csv").write_text("\n".join(lines) + "\n")
    Path("regions.csv").write_text("region\nN\nS\n")
    Path("SYNTHETIC").touch()
    return tmp_path


def test_a_dry_run_prints_the_plan_and_reads_no_records(people: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["count", "there-is-none.csv", *LINE, "--keys", "regions.csv", "--dry-run"]) == 0
    told = capsys.readouterr().out
    assert "records by region (2) and age (2): 4 cells" in told
    assert "it does not protect" in told
    assert main(["count", "there-is-none.csv", *LINE, "--domain", "region=N,S", "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cells"] == 4
    assert main(["count", "there-is-none.csv", *LINE, "--keys-public", "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cells"] is None
    assert {path.name for path in people.iterdir()} == {"people.csv", "regions.csv", "SYNTHETIC"}


@pytest.mark.thorough
def test_a_run_tells_its_cost_first_and_what_it_wrote(people: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--keys", "regions.csv", "--totals", "--max-per-unit", "3", "--seed", "1", "--confidence", "95%"]
    assert main(["count", "people.csv", *LINE, *options, "--out", "out"]) == 0
    told = capsys.readouterr().out
    assert told.index("at most 3 records of it count") < told.index("out: 4 tables and manifest.json; NOT FOR RELEASE")
    assert "with a probability of 95%" in told
    assert main(["count", "people.csv", *LINE, *options, "--out", "parquet", "--format", "parquet", "--json"]) == 0
    manifest = json.loads(capsys.readouterr().out)
    assert manifest["parameters"]["limits"] == {"counts": {"per": "person", "most": 3}}
    assert set(manifest["tables"]) == {f"{name}.parquet" for name in ("counts", "by_region", "by_age", "total")}
    assert main(["check", "out"]) == 0
    assert main(["report", "out", "out.html"]) == 0
    assert main(["audit", "certificate", "out", "certificate"]) == 0
    assert (people / "out.html").exists()


def test_a_ledger_refuses_what_is_too_much(people: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ledger = ["--ledger", "ledger.json", "--dataset", "people", "--limit", "1", "--keys", "regions.csv"]
    assert main(["count", "people.csv", *LINE, *ledger, "--out", "one"]) == 0
    assert main(["count", "people.csv", *LINE, *ledger, "--out", "two"]) == 2
    assert "people" in capsys.readouterr().err
    assert not (people / "two").exists()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ([*LINE], "region has no list of codes"),
        ([*LINE, "--keys", "regions.csv"], "out: name the folder of the release"),
        ([*LINE, "--domain", "region"], "--domain region: must be COLUMN=CODE,CODE"),
        ([*LINE, "--domain", "region=N", "--domain", "region=S"], "--domain region: is given twice"),
        (["--by", "age:5", "--epsilon", "1"], "age:5 has a width without bounds"),
        (["--by", "age:5:0-9"], "give either epsilon or rho"),
        (["--by", "age:5:0-9", "--epsilon", "-1"], "epsilon: must be a number above 0"),
        (["--by", "age:5:0-9", "--epsilon", "one"], "epsilon: must be a number above 0"),
        (["--by", "age:5:0-9", "--rho", "1", "--delta", "1e-9"], "delta: goes with epsilon"),
        (["--by", "age:5:0-4", "--epsilon", "1", "--out", "out"], "people.csv: domain: age must be 0, 1, 2, 3, 4"),
        (["--by", "gae:5:0-9", "--epsilon", "1", "--out", "out"], "people.csv: columns_present: missing column gae"),
    ],
)
@pytest.mark.usefixtures("people")
def test_what_is_asked_wrongly_is_refused(options: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["count", "people.csv", *options]) == 2
    told = capsys.readouterr().err
    assert text in told
    assert "p3" not in told
    assert not Path("out").exists()


@pytest.mark.usefixtures("people")
def test_columns_to_count_by_are_needed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["count", "people.csv", "--epsilon", "1"])
    assert "--by" in capsys.readouterr().err
