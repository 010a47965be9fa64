"""A release is opened as one object, and checked as it is used."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from plans import made_up

from yupana.errors import OutputError
from yupana.files.database import open_database
from yupana.plan.measurement import of_own_record
from yupana.privacy.exact import INFINITE, Budget
from yupana.products import gate
from yupana.products.gate import open_table
from yupana.release.folder import new_folder, write_manifest
from yupana.release.manifest import MANIFEST
from yupana.release.release import ReleaseFolder, read_release
from yupana.release.status import CONFIDENTIAL, MEASURED, NOT_FOR_RELEASE
from yupana.release.tables import Format, ReleaseTable, describe, write_table

TABLE = ReleaseTable(
    "T1", {"ID": ["01", "02"], "TYPE": ["STATE", "STATE"], "COUNT": [3, -4], "VARIANCE": [4.5, 4.5], "MOE": [4, 4]}
)
OTHER = ReleaseTable("T2", {"ID": [], "COUNT": []})


def manifest(budget: Budget = Fraction(1), **more: object) -> dict[str, Any]:
    plan = made_up("phsafe", of_own_record, budget).as_json()
    return {"yupana": "0", "product": "phsafe", "status": MEASURED, "plan": plan, **more}


def made(folder: Path, fmt: Format = "csv", **more: Any) -> ReleaseFolder:  # noqa: ANN401
    with new_folder(folder) as draft:
        tables = {}
        for table in (TABLE, OTHER):
            path = write_table(draft, table, fmt)
            tables[path.name] = describe(table.name, path, table.rows, table.columns)
        write_manifest(draft, {**manifest(**more), "tables": tables})
    return read_release(folder, confidential=True)


@pytest.mark.parametrize("fmt", ["csv", "parquet"])
def test_a_release_says_what_it_is_and_hands_out_its_tables(tmp_path: Path, fmt: Format) -> None:
    release = made(tmp_path / "out", fmt)
    assert (release.product, release.name, release.status) == ("phsafe", "phsafe", MEASURED)
    assert release.plan is release.measured is not None
    assert release.plan.loss() == Fraction(1)
    assert (release.confidence, release.is_pure) == (Fraction(9, 10), False)
    assert list(release) == list(release.tables) == ["T1", "T2"]
    assert "T1" in release
    assert release.path("T1") == tmp_path / "out" / f"T1.{fmt}"
    assert release.columns("T1")["ID"] == ["01", "02"]
    assert release.wrong() == []
    assert release.intact() is release
    assert repr(release).startswith(f"<release of phsafe: {MEASURED}; 2 tables in ")
    with open_database() as db:
        assert db.execute(f"SELECT * FROM {release.rows('T1')}").fetchall() == [
            ("01", "STATE", 3, 4.5, 4.0),
            ("02", "STATE", -4, 4.5, 4.0),
        ]
        assert db.execute(f"SELECT * FROM {release.rows('T2')}").fetchall() == []
    with pytest.raises(KeyError, match="there is no table 'T3'; there are T1, T2"):
        release.rows("T3")


def test_a_release_of_topdown_is_of_topdown_whatever_it_is_called(tmp_path: Path) -> None:
    release = made(tmp_path / "out", system="topdown", product="example")
    assert (release.product, release.name) == ("topdown", "example")


def test_a_release_without_a_plan_says_so(tmp_path: Path) -> None:
    release = made(tmp_path / "out")
    (release.folder / MANIFEST).write_text(
        json.dumps({key: value for key, value in release.manifest.items() if key != "plan"}), encoding="utf-8"
    )
    without = read_release(release.folder)
    assert without.plan is without.confidence is None
    with pytest.raises(OutputError, match="the manifest holds no plan"):
        _ = without.measured


def test_the_status_is_that_of_the_plan(tmp_path: Path) -> None:
    release = made(tmp_path / "out", budget=INFINITE)
    with pytest.raises(OutputError, match=f"must be '{NOT_FOR_RELEASE}'"):
        _ = release.status


def test_what_is_confidential_opens_only_for_what_publishes_nothing(tmp_path: Path) -> None:
    release = made(tmp_path / "out", budget=INFINITE, status=CONFIDENTIAL)
    assert release.status == CONFIDENTIAL
    with pytest.raises(OutputError, match=CONFIDENTIAL):
        read_release(release.folder)
    with pytest.raises(OutputError, match=CONFIDENTIAL):
        release.derive(tmp_path / "new", {"T1": f"SELECT * FROM {release.rows('T1')}"}, None)
    with pytest.raises(OutputError, match=CONFIDENTIAL):
        open_table(release.folder / "T1.csv")
    assert not (tmp_path / "new").exists()


def test_a_changed_file_is_refused_when_it_is_used(tmp_path: Path) -> None:
    release = made(tmp_path / "out")
    with (release.folder / "T1.csv").open("a", encoding="utf-8") as file:
        file.write("03|STATE|1|4.5|4\n")
    (release.folder / "stranger").touch()
    for use in (release.path, release.rows, release.columns):
        with pytest.raises(OutputError, match="its checksum is not the manifest's"):
            use("T1")
    assert release.path("T2").is_file()
    changed, stranger = release.wrong()
    assert (changed.split()[0], stranger) == ("T1.csv", "stranger is not in the manifest")
    with pytest.raises(OutputError, match="is not what its manifest says"):
        release.intact()


@pytest.mark.parametrize("fmt", ["csv", "parquet"])
def test_a_release_is_derived_with_a_record_of_what_was_done(tmp_path: Path, fmt: Format) -> None:
    release = made(tmp_path / "out", fmt, reports={}, postprocessing=[{"rule": "first"}])
    rows = release.rows("T1", as_text=True)
    query = f"SELECT * REPLACE (CAST(COUNT AS BIGINT) + 1 AS COUNT) FROM {rows}"
    derived = release.derive(tmp_path / "new", {"T1": query}, {"rule": "plus one"})
    again = read_release(tmp_path / "new").intact()
    assert derived.manifest == again.manifest
    assert derived.sha256 == again.sha256
    assert again.tables == ("T1",)
    assert again.record == [{"rule": "first"}, {"rule": "plus one", "source_manifest_sha256": release.sha256}]
    assert again.columns("T1")["COUNT"] == ["4", "-3"]
    assert again.columns("T1")["MOE"] == release.columns("T1")["MOE"]
    assert "reports" not in again.manifest
    with pytest.raises(OutputError, match="which is to be read"):
        release.derive(release.folder, {"T1": query}, None, overwrite=True)
    with pytest.raises(OutputError, match="is not empty"):
        release.derive(tmp_path / "new", {"T1": query}, None)


def test_a_lone_table_is_a_release_of_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    release = made(tmp_path / "out")
    with pytest.raises(OutputError, match="configuration is missing"):
        open_table(release.folder / "T1.csv")
    monkeypatch.setattr(gate, "open_release", read_release)
    beside = open_table(release.folder / "T1.csv")
    assert (beside.tables, beside.sha256, beside.plan) == (("T1",), release.sha256, release.plan)
    alone = tmp_path / "T1.csv"
    alone.write_bytes((release.folder / "T1.csv").read_bytes())
    lone = open_table(alone)
    assert (lone.tables, lone.product, lone.status, lone.sha256) == (("T1",), "single table", "unknown", "")
    assert lone.path("T1") == alone
    derived = lone.derive(tmp_path / "new", {"T1": f"SELECT * FROM {lone.rows('T1')}"}, {"rule": "none"})
    assert derived.record == [{"rule": "none"}]
    with pytest.raises(OutputError, match="does not exist"):
        open_table(tmp_path / "T9.csv")


@pytest.mark.parametrize(
    ("content", "fault"),
    [(None, "it has no manifest.json"), ("{}", "is not the manifest"), ('{"yupana": "0"}', "it lists no tables")],
)
def test_what_is_no_release_is_refused(tmp_path: Path, content: str | None, fault: str) -> None:
    if content is not None:
        (tmp_path / MANIFEST).write_text(content, encoding="utf-8")
    with pytest.raises(OutputError, match=fault):
        read_release(tmp_path)
    with pytest.raises(OutputError, match="does not exist"):
        read_release(tmp_path / "none")


def test_a_plan_without_its_measurements_tells_its_confidence(tmp_path: Path) -> None:
    release = made(tmp_path / "out", plan={"confidence": 0.95, "mechanism": "pure"})
    assert (release.confidence, release.is_pure) == (Fraction(95, 100), True)
    with pytest.raises(OutputError, match="the manifest holds no plan"):
        _ = release.plan
    without = made(tmp_path / "other", plan={"confidence": 2})
    with pytest.raises(OutputError, match="the confidence of its margins"):
        _ = without.confidence
