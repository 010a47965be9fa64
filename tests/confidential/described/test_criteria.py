"""Acceptance criteria on records: tested where these are synthetic, and never published where they may be real."""

import json
import re
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import yupana
from yupana.arrays import Ints
from yupana.cli.main import main
from yupana.confidential.described.counter import DescribedCounter
from yupana.plan.ledger import Meter
from yupana.privacy.entropy import Entropy
from yupana.products.described.criteria import TESTED, predictions, verdicts
from yupana.products.described.product import TABLES, described

DOCUMENT: dict[str, Any] = {
    "name": "homes",
    "unit": "homes",
    "files": {
        "homes": {"key": "id", "columns": {"side": {"codes": ["N", "S"]}}},
        "persons": {"parent": {"file": "homes", "column": "home"}, "columns": {"sex": {"codes": ["f", "m"]}}},
    },
    "areas": {"side": {"column": "homes.side"}, "land": {"code": "L"}},
    "tables": {
        "sexes": {
            "counts": "persons",
            "limit": {"per": "homes", "most": 3},
            "by": ["persons.sex"],
            "margins": {"total": []},
            "budget": {"side": 2, "land": 2},
        }
    },
    "criteria": {
        "median": {
            "table": "sexes",
            "level": "side",
            "error": "relative",
            "quantile": 0.5,
            "most": 0.1,
            "at_least": 10,
        },
        "total": {"table": "total", "level": "land", "error": "absolute", "quantile": 1, "most": 12},
        "huge": {"table": "total", "level": "land", "error": "absolute", "quantile": 1, "most": 1, "at_least": 1000},
        "women-of-n": {
            "table": "sexes",
            "level": "side",
            "rows": {"sex": "f", "REGION_ID": "N"},
            "error": "absolute",
            "quantile": 1,
            "most": 3,
            "chance": "1/2",
        },
    },
}


def write(folder: Path, homes: dict[str, int], *, synthetic: bool) -> Path:
    """Homes with so many persons each, women and men in turn, by a name that begins with its side."""
    folder.mkdir()
    persons = [f"{home}|{'fm'[n % 2]}" for home, number in homes.items() for n in range(number)]
    (folder / "homes.csv").write_text("\n".join(["id|side", *(f"{home}|{home[0]}" for home in homes)]) + "\n")
    (folder / "persons.csv").write_text("\n".join(["home|sex", *persons]) + "\n")
    if synthetic:
        (folder / "SYNTHETIC").touch()
    return folder


HOMES = {**{f"N{i}": 3 for i in range(10)}, "S": 21, **{f"S{i}": 1 for i in range(4)}}
"""True counts: N 20 f and 10 m, S 15 and 10; of the 21 persons of one home 3 are kept."""


@pytest.fixture
def description(tmp_path: Path) -> Path:
    (tmp_path / "homes.json").write_text(json.dumps(DOCUMENT), encoding="utf-8")
    return tmp_path / "homes.json"


def scripted(*noise: int) -> Callable[[Meter, int, Ints, Ints, Entropy], Ints]:
    """A door that adds one number to all counts of a trial."""
    to_come: dict[str, list[int]] = {}

    def measure(meter: Meter, first: int, cells: Ints, counts: Ints, _: Entropy) -> Ints:
        del first, cells
        return counts + to_come.setdefault(meter.measurement.name, list(noise)).pop(0)

    return measure


def test_criteria_are_tested_on_the_whole_truth(
    description: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = write(tmp_path / "data", HOMES, synthetic=True)
    monkeypatch.setattr(Meter, "measure", scripted(1, 2, -8, 4))
    told = yupana.accuracy("tables", description, data, trials=4).observed.told["criteria"]
    # The four counts are 20, 10, 15 and 10; S has lost 9 women and 9 men to the limit. Of each home those are left out
    # by hash, so the sexes that are kept vary, and the total does not: 55 true, 18 left out, twice the noise.
    assert told["total"]["tested"] == {"rows": 1, "trials": 4, "value": 34.0, "holds": False}
    assert told["women-of-n"]["tested"] == {"rows": 1, "trials": 4, "value": 2.0, "holds": True}
    assert told["huge"]["tested"] == {"rows": 0, "trials": 4, "value": None, "holds": None}
    # Of four relative errors the second: those of N are 0.05 and 0.1, 0.1 and 0.2, 0.4 and 0.8, 0.2 and 0.4.
    assert told["median"]["tested"]["rows"] == 4
    assert told["median"]["tested"]["value"] >= 0.8


def test_without_limits_the_noise_is_all(description: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Meter, "measure", scripted(1, 2, -8))
    data = write(tmp_path / "data", {home: min(n, 3) for home, n in HOMES.items()}, synthetic=True)
    told = yupana.accuracy("tables", description, data, trials=3).observed.told["criteria"]
    # 20 and 10 in N; 6 and 1 in S are too small.
    assert told["median"]["tested"] == {"rows": 2, "trials": 3, "value": 0.4, "holds": False}
    assert told["total"]["tested"] == {"rows": 1, "trials": 3, "value": 16.0, "holds": False}


def published(folder: Path) -> dict[str, str]:
    """The texts of all files of a folder, but for when they were made and, as that decides them, checksums."""
    found = {
        path.relative_to(folder).as_posix(): path.read_text("utf-8") for path in folder.rglob("*") if path.is_file()
    }
    told = re.compile(r"sha256-[\w+/]+=*|20\d\d-\d\d-\d\dT[^\"< ]*[^.\"< ]|\b[0-9a-f]{64}\b")
    return {name: told.sub("", text) for name, text in found.items()}


@pytest.mark.slow
def test_nothing_that_is_published_of_real_records_depends_on_the_truth(
    description: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two databases, of which one meets its criteria and one does not, with one noisy count of each."""

    def measure(meter: Meter, first: int, cells: Ints, counts: Ints, entropy: Entropy) -> Ints:
        del meter, first, cells, entropy
        return np.full_like(counts, 14)

    made = {}
    for name, homes in {"met": {"N": 28}, "missed": {"N": 200, "S": 1}}.items():
        place = tmp_path / name
        (place / "out").mkdir(parents=True)
        write(place / "real", homes, synthetic=False)
        with monkeypatch.context() as patched:
            patched.setattr(Meter, "measure", measure)
            patched.chdir(place)
            capsys.readouterr()
            assert main(["tables", "run", str(description), "real", "out/release", "--report", "out/page.html"]) == 0
            assert main(["audit", "certificate", "out/release", "out/certificate"]) == 0
            assert main(["check", "out/release"]) == 0
        made[name] = published(place / "out"), capsys.readouterr().out
        manifest = json.loads((place / "out" / "release" / "manifest.json").read_text("utf-8"))
        assert manifest["criteria"].keys() == DOCUMENT["criteria"].keys()
        assert not any("tested" in told for told in manifest["criteria"].values())
        assert "reasons" not in manifest
        made[name][0].pop("release.confidential.log")
    met, missed = made["met"], made["missed"]
    assert met[0].keys() == missed[0].keys()
    assert met == missed
    page = met[0]["certificate/certificate.html"]
    assert "cannot be promised" in page
    assert "Tested" not in page


@pytest.mark.thorough
def test_of_synthetic_records_release_and_certificate_tell_the_test(description: Path, tmp_path: Path) -> None:
    data = write(tmp_path / "data", HOMES, synthetic=True)
    release = yupana.run("tables", description, data, tmp_path / "out")
    assert release.manifest["status"] == "NOT FOR RELEASE"
    assert release.manifest["reasons"] == [TESTED]
    told = release.manifest["criteria"]
    shown = release.columns("total")
    off = abs(int(shown["COUNT"][shown["REGION_TYPE"].index("land")]) - 55)
    assert told["total"]["tested"] == {"rows": 1, "trials": 1, "value": off, "holds": off <= 12}
    certificate = yupana.certificate(release)
    assert certificate["criteria"] == told
    assert "Tested on synthetic records" in certificate.page
    assert not yupana.check(release).wrong


@pytest.mark.thorough
def test_a_certificate_tells_what_a_test_of_the_same_plan_found(description: Path, tmp_path: Path) -> None:
    synthetic, real = (write(tmp_path / str(made), HOMES, synthetic=made) for made in (True, False))
    asked = {"margins": "bureau", "confidence": 0.95}
    release = yupana.run("tables", description, real, tmp_path / "release", **asked)
    errors, other = tmp_path / "errors", tmp_path / "other"
    yupana.accuracy("tables", description, synthetic, trials=3, out=errors, **asked)
    certificate = yupana.certificate(errors, release)
    assert certificate["criteria"] == json.loads((errors / "manifest.json").read_text("utf-8"))["criteria"]
    assert {told["tested"]["trials"] for told in certificate["criteria"].values()} == {3}
    assert (certificate["status"], certificate["reasons"]) == ("NOT FOR RELEASE", [TESTED])
    assert "Tested on synthetic records" in certificate.page
    assert len(certificate.certifies) == 1
    # Of the release alone nothing is told but what is predicted.
    assert "Tested" not in yupana.certificate(release).page
    # Another plan, other criteria, no release at all, and what tells the truth of real records.
    yupana.accuracy("tables", description, synthetic, out=other)
    lax = json.loads((errors / "manifest.json").read_text("utf-8"))
    lax["criteria"]["total"]["says"] = "whatever"
    (tmp_path / "lax").mkdir()
    (tmp_path / "lax" / "accuracy.csv").write_bytes((errors / "accuracy.csv").read_bytes())
    (tmp_path / "lax" / "manifest.json").write_text(json.dumps(lax), encoding="utf-8")
    yupana.accuracy("tables", description, real, out=tmp_path / "truth", internal=True, **asked)
    for folders, why in (
        ((release, other), "the same plan and criteria"),
        ((release, tmp_path / "lax"), "the same plan and criteria"),
        ((errors,), "the same plan and criteria"),
        ((release, tmp_path / "truth"), "CONFIDENTIAL"),
    ):
        with pytest.raises(yupana.OutputError, match=why):
            yupana.certificate(*folders)


@pytest.mark.thorough
def test_pages_speak_of_what_a_description_protects(
    description: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    synthetic = write(tmp_path / "data", HOMES, synthetic=True)
    release = yupana.run("tables", description, synthetic, tmp_path / "release")
    page = re.sub(r"\s+", " ", yupana.certificate(release).page)
    assert "find out about one homes with all its records:" in page
    assert "one person" not in page
    assert main(["tables", "plan", str(description)]) == 0
    told = capsys.readouterr().out
    assert "the rho above is of one person only where each person has one such record" in told
    assert "one person added" not in told
    pure = tmp_path / "pure.json"
    pure.write_text(json.dumps(DOCUMENT | {"privacy_defn": "puredp"}), encoding="utf-8")
    for asked, due in ((description, ["rho", "epsilon"]), (pure, ["epsilon"])):
        assert main(["audit", "attribute", str(asked)]) == 0
        _, header, *rows = capsys.readouterr().out.splitlines()
        assert header.partition(" at delta")[0].split() == due
        assert {len(row.split()) for row in rows} == {1 + len(due)}
    yupana.accuracy("tables", description, synthetic, out=tmp_path / "errors")
    with pytest.raises(
        yupana.OutputError, match="errors holds homes accuracy, of which there is no report; name a rel"
    ):
        yupana.report(tmp_path / "errors", tmp_path / "page.html")


@pytest.mark.thorough
def test_a_joint_certificate_names_the_criteria_of_its_parts(description: Path, tmp_path: Path) -> None:
    synthetic = write(tmp_path / "data", HOMES, synthetic=True)
    one, two = (yupana.run("tables", description, synthetic, tmp_path / name) for name in ("one", "two"))
    path = tmp_path / "two" / "manifest.json"
    path.write_text(json.dumps(two.manifest | {"created": "2026-01-01T00:00:00+00:00"}), encoding="utf-8")
    yupana.accuracy("tables", description, synthetic, trials=3, out=tmp_path / "errors")
    certificate = yupana.certificate(one, tmp_path / "two")
    assert certificate["criteria"] == {"one": one.manifest["criteria"], "two": two.manifest["criteria"]}
    tested = yupana.certificate(one, tmp_path / "errors", tmp_path / "two")
    assert {told["tested"]["trials"] for of in tested["criteria"].values() for told in of.values()} == {3}
    assert tested.page.count("women-of-n") == 2
    assert tested["reasons"] == [f"{name}: {TESTED}" for name in ("one", "two")]


@pytest.mark.thorough
def test_of_tables_with_detail_the_rows_that_are_shown_are_tested(tmp_path: Path) -> None:
    data, told = write(tmp_path / "data", HOMES, synthetic=True), deepcopy(DOCUMENT)
    told["groups"] = {"f": {"where": {"persons.sex": "f"}}}
    told["levels"] = {"side-by-sex": {"areas": "side", "groups": ["*", "f"]}}
    told["tables"]["sexes"] |= {
        "budget": {"side-by-sex": 2},
        "detail": {
            "share": "1/4",
            "steps": [["total"], ["sexes", "total"]],
            "thresholds": [22],
            "coarsest": ["f"],
        },
    }
    asked = {"level": "side-by-sex", "error": "absolute", "quantile": 1, "most": 9}
    told["criteria"] = {"total": asked | {"table": "total"}, "sexes": asked | {"table": "sexes"}}
    release = yupana.run("tables", told, data, tmp_path / "out", seed=4)
    # N has 20 women and 10 men, S 15 and 10, of whom the limit leaves out 9 and 9.
    truth = {
        ("N", "*"): {"f": 20, "m": 10},
        ("S", "*"): {"f": 15, "m": 10},
        ("N", "f"): {"f": 20},
        ("S", "f"): {"f": 15},
    }
    for name in ("total", "sexes"):
        rows = release.columns(name)
        cells = rows.get("sex", [""] * len(rows["COUNT"]))
        off = []
        for area, group, cell, count in zip(
            rows["REGION_ID"], rows["ITERATION_CODE"], cells, rows["COUNT"], strict=True
        ):
            true = truth[area, group]
            off.append(abs(int(count) - (true[cell] if cell else sum(true.values()))))
        due = {"rows": len(off), "trials": 1, "value": max(off), "holds": max(off) <= 9}
        assert release.manifest["criteria"][name]["tested"] == due
        assert release.manifest["criteria"][name]["detail"] is True
    assert 0 < len(release.columns("sexes")["COUNT"]) < 4
    assert len(release.columns("total")["COUNT"]) == 4
    assert not yupana.check(release).wrong
    # The same noise at the door of accuracy tells the same.
    seen = yupana.accuracy("tables", told, data, seed=4).observed.told["criteria"]
    assert seen == release.manifest["criteria"]
    many = yupana.accuracy("tables", told, data, seed=4, trials=9).observed.told["criteria"]
    assert many["total"]["tested"]["trials"] == 9


@pytest.mark.slow
def test_what_a_manifest_says_of_criteria_is_compared(description: Path, tmp_path: Path) -> None:
    data = write(tmp_path / "data", HOMES, synthetic=False)
    yupana.run("tables", description, data, tmp_path / "out")
    path = tmp_path / "out" / "manifest.json"
    manifest = json.loads(path.read_text("utf-8"))
    told = manifest["criteria"]["median"]
    for changed in (
        {"predicted": told["predicted"] | {"holds": not told["predicted"]["holds"]}},
        {"tested": {"rows": 1, "trials": 1, "value": 0.0, "holds": True}},
    ):
        criteria = manifest["criteria"] | {"median": told | changed}
        path.write_text(json.dumps(manifest | {"criteria": criteria}), encoding="utf-8")
        assert len(yupana.check(tmp_path / "out").wrong) == 1
        with pytest.raises(yupana.YupanaError, match="criteria"):
            yupana.certificate(tmp_path / "out")


def test_the_truth_of_real_records_is_for_its_owner(
    description: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = write(tmp_path / "data", HOMES, synthetic=False)
    assert main(["tables", "accuracy", str(description), str(data)]) == 2
    assert main(["tables", "accuracy", str(description), str(data), str(tmp_path / "out"), "--internal"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("CONFIDENTIAL")
    assert "  tested: " in told
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text("utf-8"))
    assert manifest["status"] == "CONFIDENTIAL"
    assert manifest["criteria"]["total"]["tested"]["trials"] == 1
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o700


@pytest.mark.slow
def test_a_mark_that_appears_while_records_are_counted_counts_for_nothing(
    description: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was opened as real is real to the end: no test on true counts gets into its manifest."""
    data = write(tmp_path / "data", HOMES, synthetic=False)
    measure = DescribedCounter.measure

    def mark(*args: object, **named: object) -> object:
        (data / "SYNTHETIC").touch()
        return measure(*args, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(DescribedCounter, "measure", mark)
    manifest = yupana.run("tables", description, data, tmp_path / "out").manifest
    assert "reasons" not in manifest
    assert not any("tested" in told for told in manifest["criteria"].values())


def test_a_promise_of_a_table_with_a_limit_says_so() -> None:
    said = " of which the table's limit leaves none out"
    told = deepcopy(DOCUMENT)
    told["criteria"]["total"]["most"] = 1000
    assert f"holds for any records{said};" in verdict(told)
    # Without a limit nothing is left out; the unit is then what is counted.
    told["unit"] = "persons"
    told["files"]["homes"]["columns"]["side"]["fixed"] = True
    del told["tables"]["sexes"]["limit"]
    assert "holds for any records;" in verdict(told)


def verdict(told: dict[str, Any]) -> str:
    """What is predicted of the criterion ``total``."""
    config = described(told)
    found = verdicts(predictions(config, TABLES.plan(config)))
    return next(of.predicted for of in found if of.name == "total")
