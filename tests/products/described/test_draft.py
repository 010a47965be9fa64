"""Descriptions drafted from dictionaries: what they say, and that a plan follows from each at once."""

import json
import tomllib
from pathlib import Path
from random import Random
from typing import Any

import pytest
from dictionaries import CSPRO_TEXT, cspro_json, mutations, write_all

import yupana
from yupana.cli.main import main
from yupana.files.dictionaries.reading import read_dictionary
from yupana.products import PRODUCTS
from yupana.products.described.draft import draft

TABLES = PRODUCTS["tables"]


def drafted(path: Path) -> dict[str, Any]:
    """A draft, read and planned."""
    text = draft(read_dictionary(path), path.name)
    out = path.with_name("drafted.toml")
    out.write_text(text, encoding="utf-8")
    TABLES.plan(TABLES.read(out))
    return tomllib.loads(text)


def test_a_plan_follows_from_every_kind_at_once(tmp_path: Path) -> None:
    for path in write_all(tmp_path).values():
        assert drafted(path)["tables"]["first"]["budget"]


def test_a_census_of_cspro_becomes_files_areas_codes_and_recodes(tmp_path: Path) -> None:
    told = drafted(write_all(tmp_path)["text.dcf"])
    assert (told["name"], told["title"], told["unit"], told["dictionary"]) == (
        "ISLE", "Isle census", "PERSON", "text.dcf",
    )  # fmt: skip
    quest, dwelling, person = (told["files"][name] for name in ("QUEST", "DWELLING", "PERSON"))
    assert quest["key"] == "QUESTIONNAIRE"
    assert dwelling["parent"] == person["parent"] == {"file": "QUEST", "column": "QUESTIONNAIRE"}
    assert quest["columns"] == {
        "PROVINCE": {"fixed": True, "codes": {"01": "North", "12": "South; and east"}},
        "DISTRICT": {"fixed": True, "codes": ["01", "02", "03"]},
    }
    assert dwelling["columns"] == {"ROOMS": {"whole": [0, 20], "missing": "not applicable"}}
    assert person["columns"]["SEX"] == {"codes": {"1": "Male", "2": "Female"}, "missing": "not applicable"}
    assert person["columns"]["AGE"] == {"whole": [0, 99], "missing": "not applicable"}
    assert person["columns"]["OCC"] == {
        "codes": {"100": "Farm", "110": "Farm, 110", "111": "Farm, 111", "112": "Farm, 112", "200": "Trade"},
        "missing": "Not applicable",
    }
    assert {"PHONE_1", "PHONE_3", "OCC_MAJOR", "LETTER"} < person["columns"].keys()
    assert told["recodes"]["AGE_VS2"] == {
        "column": "PERSON.AGE",
        "incomplete": True,
        "classes": {"Child": "0-14", "Adult": "15-64", "Old": "65-98", "not applicable": "not applicable"},
    }
    assert told["recodes"]["OCC_VS1"]["classes"]["Farm"] == ["100", "110", "111", "112"]
    assert told["areas"] == {
        "country": {"code": "country", "labels": {"country": "Isle census"}},
        "PROVINCE": {"column": "QUEST.PROVINCE"},
        "DISTRICT": {"columns": ["QUEST.PROVINCE", "QUEST.DISTRICT"]},
    }
    assert told["tables"]["first"] == {
        "title": "PERSON by Sex",
        "counts": "PERSON",
        "by": ["PERSON.SEX"],
        "margins": {"first_total": []},
        "budget": {"country": "1/10", "PROVINCE": "1/10"},
    }
    kind = TABLES.read(tmp_path / "drafted.toml").areas["DISTRICT"]
    assert kind.codes == ("0101", "0102", "0103", "1201", "1202", "1203")
    assert kind.labels["1202"] == "South; and east, 02"


def test_what_has_no_codes_is_a_comment_that_says_what_is_missing(tmp_path: Path) -> None:
    text = draft(read_dictionary(write_all(tmp_path)["text.dcf"]), "text.dcf")
    for line in (
        "#   HH  Household number: a number without values or a range; say whole = [0, 999], or less, to read it",
        "#   AREA  Area: a number with decimals and without values",
        "#   NAME  Name: a text of 3 characters without codes",
    ):
        assert line in text.splitlines()


def test_names_of_any_script_are_taken_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "isle.dcf").write_text(CSPRO_TEXT.replace("Name=SEX", "Name=Géne\u0301ro"), encoding="utf-8")
    drafted(tmp_path / "isle.dcf")
    columns = TABLES.read(tmp_path / "drafted.toml").files["PERSON"].columns
    assert "Généro" in columns


def test_both_forms_of_a_dictionary_draft_the_same_bytes_whatever_the_records(tmp_path: Path) -> None:
    said = set()
    for name, data in (("a.dcf", CSPRO_TEXT), ("b.dcf", json.dumps(cspro_json())), ("c.dcf", CSPRO_TEXT)):
        (tmp_path / name).write_text(data, encoding="utf-8")
        (tmp_path / "isle.dat").write_text(f"P{name}" * len(said), encoding="utf-8")
        said.add(draft(read_dictionary(tmp_path / name), "isle.dcf"))
    assert len(said) == 1


def test_packages_lists_and_codebooks_name_their_files(tmp_path: Path) -> None:
    paths = write_all(tmp_path)
    package = drafted(paths["datapackage.json"])
    assert package["unit"] == "persons"
    assert package["files"]["persons"]["parent"] == {"file": "households", "column": "hid"}
    assert package["files"]["persons"]["columns"]["age"] == {"whole": [0, 115], "missing": "NA"}
    assert package["files"]["households"]["columns"]["region"]["fixed"] is True
    assert package["areas"]["region"] == {"column": "households.region"}
    assert "dictionary" not in package
    ddi = drafted(paths["ddi.xml"])
    assert (ddi["unit"], ddi["dictionary"], ddi["files"]["HOUSEHOLD"]["key"]) == ("PERSON", "ddi.xml", "SERIAL")
    assert ddi["tables"]["first"]["budget"] == {"country": "1/10", "REGION": "1/10"}
    codes = drafted(paths["codes.csv"])
    assert codes["recodes"]["AGE_groups"]["classes"] == {"Child": "0-14", "Grown": "15-98"}
    assert codes["files"]["records"]["columns"]["REGION"] == {"codes": {"01": "North", "02": "South"}}


@pytest.mark.parametrize(
    ("old", "new", "columns"),
    [
        # Codes and labels as TOML, a hash and a table could not bear them.
        ("Value=1;Male", 'Value=1;A "b"\x07\\ c', {"SEX": {"1": "A 'b' \\ c", "2": "Female"}}),
        ("Value='a';Lower", "Value='a|b';Lower", {}),
        ("Value='a';Lower", "Value='file';Lower", {"LETTER": ["file", "B"]}),
        ("Value=1;Male", "Value=-1;Male", {"SEX": {"-1": "Male", "2": "Female"}}),
        ("Value=0:9", "Value=0:99999999", {}),
    ],
)
def test_odd_labels_and_codes_are_written_so_that_they_are_read(
    tmp_path: Path, old: str, new: str, columns: dict[str, Any]
) -> None:
    assert old in CSPRO_TEXT
    (tmp_path / "odd.dcf").write_text(CSPRO_TEXT.replace(old, new), encoding="utf-8")
    found = drafted(tmp_path / "odd.dcf")["files"]["PERSON"]["columns"]
    for name, codes in columns.items():
        assert found[name]["codes"] == codes
    if not columns:
        assert ("LETTER" in found) != ("PHONE_1" in found)


def test_levels_below_have_keys_of_their_own(tmp_path: Path) -> None:
    document = cspro_json()
    document["levels"][0]["ids"]["items"][2]["name"] = "Questionnaire"
    visit = {"name": "V1", "length": 1, "valueSets": [{"values": [{"pairs": [{"range": ["1", "2"]}]}]}]}
    ids = {"items": [{"name": "VISIT_NO", "length": 2, "start": 9}]}
    records = [{"name": "VISITOR", "recordType": "V", "items": [visit]}]
    document["levels"].append({"name": "VISIT", "ids": ids, "records": records})
    (tmp_path / "two.dcf").write_text(json.dumps(document), encoding="utf-8")
    files = drafted(tmp_path / "two.dcf")["files"]
    assert files["QUEST"]["key"] == "QUESTIONNAIRE_"
    assert files["VISIT"]["parent"] == {"file": "QUEST", "column": "QUESTIONNAIRE_"}
    assert files["VISITOR"]["parent"] == {"file": "VISIT", "column": files["VISIT"]["key"]}
    assert files["VISIT"]["key"] == "QUESTIONNAIRE_2"


@pytest.mark.slow
def test_init_writes_it_and_plan_reads_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "public").mkdir()
    write_all(tmp_path / "public")
    assert main(["tables", "init", "isle.toml", "--from", "public/json.dcf"]) == 0
    told = tomllib.loads((tmp_path / "isle.toml").read_text(encoding="utf-8"))
    assert told["dictionary"] == "public/json.dcf"
    assert main(["tables", "plan", "isle.toml"]) == 0
    assert main(["tables", "init", "isle.json", "--from", "public/json.dcf"]) == 0
    assert json.loads((tmp_path / "isle.json").read_text(encoding="utf-8")) == told
    capsys.readouterr()
    assert main(["tables", "init", "--from", "public/json.dcf"]) == 0
    assert capsys.readouterr().out == yupana.draft("public/json.dcf")
    assert yupana.draft("public/json.dcf", "other.toml") == (tmp_path / "other.toml").read_text(encoding="utf-8")
    assert main(["tables", "init", "isle.toml", "--from", "public/json.dcf"]) == 2
    assert main(["tables", "init", "x.toml", "--from", "public/json.dcf", "--like", "people-and-homes"]) == 2
    assert main(["tables", "init", "x.toml", "--from", "isle.toml"]) == 2
    assert "is no dictionary; it may be" in capsys.readouterr().err
    assert not (tmp_path / "x.toml").exists()
    with pytest.raises(yupana.OutputError, match="exists"):
        yupana.draft("public/json.dcf", "isle.toml")


@pytest.mark.parametrize("number", [8, pytest.param(60, marks=pytest.mark.thorough)])
def test_whatever_a_dictionary_says_a_plan_follows(tmp_path: Path, number: int) -> None:
    made = 0
    for place, path in enumerate(write_all(tmp_path).values()):
        for data in mutations(path.read_bytes(), Random(place), number):  # noqa: S311 (a test)
            (tmp_path / "broken").write_bytes(data)
            try:
                read_dictionary(tmp_path / "broken")
            except yupana.ConfigError:
                continue
            drafted(tmp_path / "broken")
            made += 1
    assert made > number
