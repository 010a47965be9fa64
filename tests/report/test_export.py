"""What is exported is the release, number by number and label by label; a change of one of each is found."""

import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import duckdb
import openpyxl
import pytest
from pysdmx.io import get_datasets

import yupana
from yupana.cli.main import main
from yupana.errors import ConfigError, OutputError
from yupana.release.tables import checksum
from yupana.report.export import tables, workbook
from yupana.report.export.sdmx import code_ids
from yupana.report.export.tables import distinct, one_line

FORMS = ("workbook", "sdmx", "labelled")
LONG = "x" * 5_000
LABELS = {
    "1": "=cmd()",
    "2": "<b>&amp; [a](http://b) $$c$$",
    "3": "\u0645\u0631\u062d\u0628\u0627 b",
    "4": LONG,
    "6": "{=1+1}",
    "5": "_x0041_ and 'quotes', \"too\"",
    "a b": "@sum",
    "a/b": "Total",
}
SAME = "t" + "e" * 35


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release of strange labels, NOT FOR RELEASE, and an export in each form."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "d").mkdir()
    (folder / "d" / "SYNTHETIC").touch()
    rows = [f"{1 + n % 3}|{list(LABELS)[n % len(LABELS)]}" for n in range(60)]
    (folder / "d" / "people.csv").write_text("\n".join(["area|kind", *rows]) + "\n")
    table = {"counts": "people", "by": ["people.kind"], "budget": {"area": "1/2", "nation": "1/2"}, "title": "=1+1 <i>"}
    description = {
        "name": "strange",
        "unit": "people",
        "files": {"people": {"columns": {"area": {"codes": ["1", "2", "3"]}, "kind": {"codes": LABELS}}}},
        "areas": {"nation": {"code": "US"}, "area": {"column": "people.area"}},
        "tables": {f"{SAME}1": table, f"{SAME}2": table, "where": {**table, "where": {"people.area": ["1", "2"]}}},
    }
    (folder / "strange.json").write_text(json.dumps(description))
    yupana.run("tables", folder / "strange.json", folder / "d", folder / "release", seed=1)
    for form in FORMS:
        yupana.export(folder / "release", folder / form, to=form)
    return folder


def resealed(folder: Path) -> None:
    """The manifest says of every file what it holds now, as a forger would write it."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    for name, told in manifest["tables"].items():
        told["sha256"] = checksum(folder / name)
    path.write_text(json.dumps(manifest))


def faults(made: Path, tmp_path: Path, form: str, change: Callable[[Path], None]) -> tuple[str, ...]:
    out = tmp_path / "changed"
    shutil.copytree(made / form, out)
    change(out)
    resealed(out)
    wrong = yupana.check(out, source=made / "release").wrong
    shutil.rmtree(out)
    return wrong


def only(folder: Path, pattern: str) -> Path:
    return next(iter(sorted(folder.glob(pattern))))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.slow
def test_an_export_is_the_release_and_the_same_bytes_again(made: Path, tmp_path: Path, form: str) -> None:
    checked = yupana.check(made / form)
    assert (checked.wrong, checked.unchecked) == ((), ())
    assert "every number" in checked.against
    yupana.export(made / "release", tmp_path / "again", to=form)
    files = {path.name for path in (made / form).iterdir()}
    assert all((tmp_path / "again" / name).read_bytes() == (made / form / name).read_bytes() for name in files)
    manifest = json.loads((made / form / "manifest.json").read_text())
    assert manifest["status"] == "NOT FOR RELEASE"
    assert manifest["export"]["release_manifest_sha256"] == checksum(made / "release" / "manifest.json")
    assert all("not-for-release" in name for name in files - {"manifest.json", "structure.xml"})


@pytest.mark.slow
def test_an_export_without_its_release_says_what_was_not_checked(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made / "labelled", tmp_path / "alone")
    checked = yupana.check(tmp_path / "alone")
    assert not checked.wrong
    assert "--release" in checked.unchecked[0]
    shutil.copytree(made / "release", tmp_path / "other")
    path = tmp_path / "other" / "manifest.json"
    path.write_text(path.read_text() + "\n")
    assert "another release" in yupana.check(tmp_path / "alone", source=tmp_path / "other").wrong[0]
    with pytest.raises(ConfigError, match="is for exports"):
        yupana.check(made / "release", source=made / "release")


def edited(pattern: str, edit: Callable[[list[list[str]]], Any]) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = only(folder, pattern)
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.reader(file))
        edit(rows)
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(rows)

    return change


def number_of(rows: list[list[str]], header: str) -> None:
    place = rows[0].index(header)
    rows[3][place] = str(int(rows[3][place]) + 1)


@pytest.mark.slow
def test_one_change_of_a_labelled_csv_or_parquet_is_found(made: Path, tmp_path: Path) -> None:
    for edit, said in (
        (lambda rows: number_of(rows, "Count"), "row 3: Count"),
        (lambda rows: rows.append(rows[-1]), "no more rows"),
        (lambda rows: rows[1].__setitem__(rows[0].index("Cell"), "another"), "row 1: Cell"),
    ):
        assert said in faults(made, tmp_path, "labelled", edited("*.csv", edit))[0]

    def changed(folder: Path) -> None:
        path = only(folder, "*.parquet")
        rows = f'SELECT * REPLACE ("Count" + 1 AS "Count") FROM \'{path}\''
        duckdb.execute(f"COPY ({rows}) TO '{path}.new' (FORMAT parquet)")
        Path(f"{path}.new").rename(path)

    assert "row 1: Count" in faults(made, tmp_path, "labelled", changed)[0]


@pytest.mark.slow
def test_one_change_of_an_sdmx_file_is_found(made: Path, tmp_path: Path) -> None:
    for edit, said in (
        (lambda rows: number_of(rows, "MOE"), "row 3: Margin of error"),
        (lambda rows: rows.pop(), "missing"),
        (lambda rows: rows[1].__setitem__(rows[0].index("RELEASE_STATUS"), "good"), "row 1"),
    ):
        assert said in faults(made, tmp_path, "sdmx", edited("*.csv", edit))[0]

    def exchanged(folder: Path) -> None:
        path = folder / "structure.xml"
        text = path.read_text()
        path.write_text(text.replace("=cmd()", "\0").replace("@sum", "=cmd()").replace("\0", "@sum"))

    assert "row 1: Cell" in faults(made, tmp_path, "sdmx", exchanged)[0]
    assert faults(made, tmp_path, "sdmx", lambda folder: (folder / "structure.xml").write_text("<a/>") and None)


@pytest.mark.slow
def test_one_change_of_a_workbook_is_found(made: Path, tmp_path: Path) -> None:
    def opened(change: Callable[[Any], object]) -> Callable[[Path], None]:
        def edit(folder: Path) -> None:
            path = only(folder, "*.xlsx")
            book = openpyxl.load_workbook(path)
            change(book)
            book.save(path)

        return edit

    def cell(row: int, column: int, value: object, sheet: int = 3) -> Callable[[Any], object]:
        return lambda book: setattr(book.worksheets[sheet].cell(row, column), "value", value)

    for change, said in (
        (cell(9, 7, 77), "row 2: Count"),
        (cell(1, 1, "A better title"), "above the table"),
        (lambda book: book.worksheets[3].delete_rows(29), "row "),
        (cell(1, 1, "Good", 0), "the cover does not say"),
        (lambda book: book.remove(book.worksheets[4]), "the sheets"),
    ):
        wrong = faults(made, tmp_path, "workbook", opened(change))
        assert any(said in one for one in wrong), (said, wrong)


def test_a_workbook_keeps_to_the_guidance_on_accessible_spreadsheets(made: Path) -> None:
    book = openpyxl.load_workbook(only(made / "workbook", "*.xlsx"))
    assert book.sheetnames[:3] == ["Cover", "Contents", "Notes"]
    assert len({name.lower() for name in book.sheetnames}) == len(book.sheetnames)
    assert all(len(name) <= 31 for name in book.sheetnames)
    assert "NOT FOR RELEASE" in (book.properties.title or "")
    for sheet in book.worksheets:
        assert not sheet.merged_cells.ranges
        assert sheet["A1"].value
        assert not any(cell.data_type == "f" for row in sheet.iter_rows() for cell in row)
        if sheet.title == "Cover":
            continue
        (table,) = sheet.tables.values()
        assert not table.autoFilter
        cells = sheet[table.ref]
        assert all(cell.value is not None for row in cells for cell in row)
        assert len({cell.value for cell in cells[0]}) == len(cells[0])
        assert max(size.width for size in sheet.column_dimensions.values()) > 8
        if sheet.title not in {"Contents", "Notes"}:
            assert sheet["A1"].value == "NOT FOR RELEASE: =1+1 <i>"
            assert [sheet.cell(row, 1).value.split(":")[0] for row in range(3, 7)] == [
                "Shorthand", "Universe", "Source", "Notes",
            ]  # fmt: skip
            headers = [cell.value for cell in cells[0]]
            assert headers.index("Margin of error") == headers.index("Count") + 1
    texts = {cell.value for row in book.worksheets[3].iter_rows() for cell in row}
    assert {"=cmd()", "{=1+1}", LONG, "@sum"} <= texts
    assert book["where"]["A4"].value == "Universe: Records of people whose area is 1, 2"


def test_sdmx_is_read_by_pysdmx_and_codes_follow_the_rule(made: Path) -> None:
    data = only(made / "sdmx", "where*.csv")
    (found,) = get_datasets(data, made / "sdmx" / "structure.xml")
    release = yupana.open_release(made / "release")["where"]
    assert [int(value) for value in found.data["OBS_VALUE"]] == release["COUNT"]
    assert found.attributes["RELEASE_STATUS"] == "NOT FOR RELEASE"
    assert code_ids({"a b": "", "a/b": "", "a_b": "", "*": "all", "": "", "01": "One", "\u65e5": "", "_T": ""}) == {
        "a b": "a_b_2", "a/b": "a_b_3", "a_b": "a_b", "*": "_T", "": "_Z", "01": "01", "\u65e5": "_", "_T": "_T_2",
    }  # fmt: skip
    assert code_ids({"1": "Male", "0": "Total"}) == {"1": "1", "0": "_T"}
    tree = ET.parse(made / "sdmx" / "structure.xml")  # noqa: S314 (our own)
    assert "=cmd()" in {one.text for one in tree.iter() if one.tag.endswith("Name")}


def test_text_that_a_spreadsheet_would_run_is_text_in_csv(made: Path) -> None:
    with only(made / "labelled", "*.csv").open(newline="", encoding="utf-8") as file:
        cells = {cell for row in csv.reader(file) for cell in row}
    assert {"'=cmd()", "'@sum"} <= cells
    assert not [one for one in cells if one[:1] in {"=", "@", "+"}]


@pytest.mark.slow
def test_too_large_for_a_workbook_is_refused_by_name_and_split_by_a_column(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workbook, "MOST_CELLS", 500)
    with pytest.raises(OutputError, match=r"may have 500; choose with --tables.*--split"):
        yupana.export(made / "release", tmp_path / "out", to="workbook")
    yupana.export(made / "release", tmp_path / "out", to="workbook", tables=["where"], split="REGION_ID")
    assert len(list((tmp_path / "out").glob("*.xlsx"))) == 4
    assert not yupana.check(tmp_path / "out", source=made / "release").wrong
    monkeypatch.setattr(workbook, "MOST_ROWS", 12)
    with pytest.raises(OutputError, match="a sheet holds 12 rows"):
        yupana.export(made / "release", tmp_path / "more", to="workbook", tables=["where"])
    assert not (tmp_path / "more").exists()


@pytest.mark.slow
def test_what_is_asked_wrongly_is_refused_and_leaves_nothing(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    release, out = str(made / "release"), str(tmp_path / "out")
    for line, said in (
        (["--to", "sdmx", "--tables", "wher"], "did you mean where?"),
        (["--to", "sdmx", "--split", "REGION_ID"], "split is for --to workbook"),
        (["--to", "sdmx", "--agency", "1"], "is no id of SDMX"),
        (["--to", "workbook", "--split", "NO"], "no table has the column 'NO'"),
    ):
        assert main(["export", release, out, *line]) == 2
        assert said in capsys.readouterr().err
    assert main(["export", str(made / "sdmx"), out, "--to", "sdmx"]) == 2
    assert main(["export", release, str(made / "labelled"), "--to", "sdmx"]) == 2
    assert "--overwrite" in capsys.readouterr().err
    spoiled = tmp_path / "spoiled"
    shutil.copytree(made / "release", spoiled)
    only(spoiled, "*.csv").write_text("a|b\n")
    assert main(["export", str(spoiled), out, "--to", "labelled"]) == 2
    assert "does not hold together" in capsys.readouterr().err

    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(tables, "import_module", missing)
    for form in ("workbook", "sdmx"):
        assert main(["export", release, out, "--to", form]) == 2
        assert "install Yupana's extra publish (docs/README.md)" in capsys.readouterr().err
    assert not Path(out).exists()
    assert not Path(f"{out}.partial").exists()


def test_names_are_cut_and_told_apart() -> None:
    assert distinct([f"{SAME}1", f"{SAME}2", "notes"], 31, ("Notes",)) == [SAME[:31], f"{SAME[:29]}_2", "notes_2"]
    assert one_line("a\x00b\ud800\n\tc\u200f") == "a\ufffdb\ufffd c\u200f"
