"""Dictionaries of every kind, read as what they say."""

import codecs
import json
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from dictionaries import CODES, CSPRO_TEXT, DDI, cspro_json, mutations, write_all

from yupana.errors import ConfigError
from yupana.files.dictionaries.dictionary import Dictionary, DictionaryItem, ValueRange
from yupana.files.dictionaries.reading import read_dictionary
from yupana.files.dictionaries.told import MOST_BYTES


def read(tmp_path: Path, data: str | bytes, name: str = "dictionary") -> Dictionary:
    path = tmp_path / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return read_dictionary(path)


def items(dictionary: Dictionary) -> dict[str, DictionaryItem]:
    level = dictionary.levels[0]
    return {item.name: item for some in (level.ids, *(of.items for of in level.records)) for item in some}


def refused(tmp_path: Path, data: str | bytes) -> str:
    with pytest.raises(ConfigError) as raised:
        read(tmp_path, data)
    return str(raised.value)


def ranges(item: DictionaryItem) -> list[tuple[str, str, str, bool]]:
    return [(of.first, of.last, of.label, of.missing) for of in item.values]


def test_both_forms_of_cspro_say_the_same(tmp_path: Path) -> None:
    text, other = read(tmp_path, CSPRO_TEXT), read(tmp_path, json.dumps(cspro_json()))
    assert text == other
    assert (text.name, text.label, text.type_start, text.type_length, text.kind) == (
        "ISLE", "Isle census", 1, 1, "CSPro",
    )  # fmt: skip
    dwelling, person = text.levels[0].records
    assert (dwelling.code, dwelling.most, dwelling.length) == ("D", 1, 14)
    assert (person.code, person.most, person.length) == ("P", 30, 24)
    found = items(text)
    assert [(of.name, of.start, of.length) for of in text.levels[0].ids] == [
        ("PROVINCE", 2, 2), ("DISTRICT", 4, 2), ("HH", 6, 3),
    ]  # fmt: skip
    assert [(of.name, of.start, of.length) for of in person.items] == [
        ("SEX", 9, 1), ("AGE", 10, 2), ("OCC", 12, 3), ("OCC_MAJOR", 12, 1), ("PHONE_1", 15, 2), ("PHONE_2", 17, 2),
        ("PHONE_3", 19, 2), ("LETTER", 21, 1), ("NAME", 22, 3),
    ]  # fmt: skip
    assert ranges(found["PROVINCE"]) == [("1", "1", "North", False), ("12", "12", "South; and east", False)]
    assert ranges(found["OCC"]) == [
        ("100", "100", "Farm", False), ("110", "112", "Farm", False), ("200", "200", "Trade", False),
        ("", "", "Not applicable", True),
    ]  # fmt: skip
    assert ranges(found["AGE"]) == [
        ("0", "98", "", False), ("99", "99", "Not stated", True), ("", "", "not applicable", True),
    ]  # fmt: skip
    assert [of.name for of in found["AGE"].sets] == ["AGE_VS1", "AGE_VS2"]
    assert (found["AREA"].decimals, found["AREA"].is_fraction) == (0, True)
    assert (found["PHONE_2"].source, found["PHONE_2"].occurrence) == ("PHONE", 2)
    assert not found["LETTER"].is_number


@pytest.mark.parametrize(
    "made",
    [
        lambda text: codecs.BOM_UTF8 + text.encode(),
        lambda text: text.replace("\n", "\r\n").encode(),
        lambda text: text.encode("utf-16"),
        lambda text: text.encode("cp1252"),
    ],
)
def test_a_dictionary_may_have_marks_line_ends_and_encodings_of_windows(tmp_path: Path, made) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    text = CSPRO_TEXT.replace("Isle census", "Île census")
    assert read(tmp_path, made(text)).label == "Île census"


def test_implied_decimals_and_positions_that_are_told(tmp_path: Path) -> None:
    document = cspro_json()
    area = document["levels"][0]["records"][0]["items"][1]
    area |= {"decimalMark": False, "start": 30}
    document["relativePositions"] = False
    found = items(read(tmp_path, json.dumps(document)))["AREA"]
    assert (found.start, found.decimals, found.is_fraction) == (30, 1, False)


def test_levels_have_ids_of_their_own_before_all_items(tmp_path: Path) -> None:
    document = cspro_json()
    below = {
        "name": "VISIT",
        "ids": {"items": [{"name": "VISIT_NO", "length": 2, "start": 9}]},
        "records": [{"name": "VISITOR", "recordType": "V", "items": [{"name": "V1", "length": 1}]}],
    }
    document["levels"].append(below)
    found = read(tmp_path, json.dumps(document))
    assert [of.name for of in found.levels] == ["QUEST", "VISIT"]
    assert found.levels[1].ids[0].start == 9
    assert found.levels[1].records[0].items[0].start == 11 == found.levels[0].records[0].items[0].start


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("Len=2\nZeroFill", "Len=x\nZeroFill", "line 25: levels[0].ids.items[0].length: must be a whole number"),
        ("Name=SEX\n", "Name=AGE\n", "age is the name of two items of PERSON"),
        ("RecordTypeValue='P'", "RecordTypeValue='D'", "'D' is the record type of two records"),
        ("Value=0:20", "Value=20:0", "must be a number, or a range of numbers from the least to the largest"),
        ("Start=12\nLen=1", "Start=17\nLen=1", "OCC_MAJOR does not lie within OCC"),
        ("[IdItems]", "[Nothing]", "stands before any"),
        ("Occurrences=3", "Occurrences=900000", "must be a whole number from 1 to"),
        ("RecordTypeStart=1\n", "", "must say where a line holds its record type"),
        ("[Level]", "here", "must be a section such as [Item]"),
    ],
)
def test_faults_of_a_dictionary_are_named_by_line(tmp_path: Path, old: str, new: str, words: str) -> None:
    assert old in CSPRO_TEXT
    assert words in refused(tmp_path, CSPRO_TEXT.replace(old, new, 1))


def test_all_faults_are_named(tmp_path: Path) -> None:
    told = refused(tmp_path, CSPRO_TEXT.replace("Len=1\n", "Len=0\n"))
    assert told.count("must be a whole number") == 3
    document = cspro_json()
    document["levels"][0]["records"][1]["items"][0]["length"] = -1
    assert "line " in refused(tmp_path, json.dumps(document, indent=1))


def test_a_hierarchical_codebook_of_ipums(tmp_path: Path) -> None:
    found = read(tmp_path, DDI)
    assert (found.name, found.label, found.type_start, found.type_length, found.encoding) == (
        "isle", "Isle census", 1, 1, "iso8859-1",
    )  # fmt: skip
    household, person = found.levels[0].records
    assert (household.name, household.code, household.key) == ("HOUSEHOLD", "H", "SERIAL")
    assert (person.name, person.code, person.parent, person.link) == ("PERSON", "P", "HOUSEHOLD", "SERIAL")
    of = {item.name: item for item in (*household.items, *person.items)}
    assert (of["REGION"].start, of["REGION"].length, ranges(of["REGION"])) == (
        7, 2, [("1", "1", "North", False), ("12", "12", "South", False)],
    )  # fmt: skip
    assert ranges(of["SEX"])[2] == ("9", "9", "Unknown", True)
    assert ranges(of["AGE"]) == [("0", "115", "", False)]
    assert (of["WEIGHT"].start, of["WEIGHT"].length, of["WEIGHT"].decimals, ranges(of["WEIGHT"])) == (11, 6, 2, [])


def test_a_codebook_of_one_kind_of_records_with_or_without_a_namespace(tmp_path: Path) -> None:
    start = DDI.index("<fileStrc")
    flat = DDI[:start] + DDI[DDI.index("</fileStrc>") + len("</fileStrc>") :]
    bare = flat.replace(' xmlns="ddi:codebook:2_5"', "")
    prefixed = bare.replace("<", "<ddi:").replace("<ddi:/", "</ddi:").replace("<ddi:?", "<?")
    read_as = [read(tmp_path, text) for text in (flat, bare, prefixed)]
    assert read_as[0] == read_as[1] == read_as[2]
    (record,) = read_as[0].levels[0].records
    assert (record.name, record.code, len(record.items)) == ("isle", "", 6)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('<!DOCTYPE x [<!ENTITY a "aa"><!ENTITY b "&a;&a;">]><codeBook>&b;</codeBook>', "document type or entities"),
        ('<!DOCTYPE x SYSTEM "http://example.org/x.dtd"><codeBook/>', "document type or entities"),
        ("<codeBook>&nothing;</codeBook>", "undefined entity"),
        ("<codeBook>" + "<a>" * 500, "nested too deeply"),
        ("<codeBook/>", "describes no variables"),
        ("<html/>", "no DDI-Codebook"),
        ("<codeBook><var", "not XML"),
        (DDI.replace('width="5"', 'width="4"'), "line 12: SERIAL from 2 to 6 has another width than 4"),
        (DDI.replace('StartPos="7" EndPos="8"', 'StartPos="x"'), "line 14: REGION.StartPos: must be a whole number"),
        ('<?xml version="1.0" encoding="nothing"?><codeBook/>', "not XML"),
    ],
)
def test_xml_that_expands_or_is_none_is_refused(tmp_path: Path, text: str, words: str) -> None:
    assert words in refused(tmp_path, text)


def test_packages_and_csvw_link_their_tables(tmp_path: Path) -> None:
    paths = write_all(tmp_path)
    package, csvw = (read_dictionary(paths[name]) for name in ("datapackage.json", "csvw.json"))
    for found in (package, csvw):
        households, persons = found.levels[0].records
        assert (households.name, households.key) == ("households", "hid")
        assert (persons.name, persons.parent, persons.link) == ("persons", "households", "hid")
        assert not found.is_fixed_width
    of = items(package)
    assert ranges(of["region"]) == [("N", "N", "North", False), ("S", "S", "South", False)]
    assert ranges(of["age"]) == [("0", "115", "", False), ("", "", "", True), ("NA", "NA", "", True)]
    assert [one.first for one in of["grade"].values] == ["A", "B", "C", "", "NA"]
    assert of["sex"].required
    assert [one.first for one in items(csvw)["alive"].values] == ["Y", "N", "NA", ""]
    assert [one.first for one in items(csvw)["Region"].values] == ["01", "02"]


def test_the_schema_of_a_resource_may_lie_beside_the_package_and_nowhere_else(tmp_path: Path) -> None:
    (tmp_path / "schema.json").write_text('{"fields": [{"name": "a", "type": "boolean"}]}', encoding="utf-8")
    told = '{"resources": [{"name": "x", "path": "x.csv", "schema": "%s"}]}'
    assert [one.first for one in items(read(tmp_path, told % "schema.json"))["a"].values] == ["true", "false", ""]
    assert [of.name for of in read_dictionary(tmp_path / "schema.json").levels[0].records] == ["schema"]
    for place in ("../schema.json", "/etc/passwd", "http://example.org/s.json", "a\\\\b"):
        assert "must be a file beside the package" in refused(tmp_path, told % place)
    assert "no such file" in refused(tmp_path, told % "none.json")


def test_a_list_of_codes_is_found_by_its_header(tmp_path: Path) -> None:
    found = items(read(tmp_path, CODES))
    assert ranges(found["SEX"]) == [("1", "1", "Male", False), ("2", "2", "Female", False)]
    assert ranges(found["AGE"]) == [("0", "14", "Child", False), ("15", "98", "Grown", False)]
    assert (found["AGE"].label, found["AGE"].is_number, found["REGION"].is_number) == ("Age", True, False)
    by_file = read(tmp_path, "file,column,code\npersons,sex,f\npersons,sex,m\nhomes,kind,a\n")
    assert [of.name for of in by_file.levels[0].records] == ["persons", "homes"]
    assert "line 3: the code stands twice for sex" in refused(tmp_path, "var,code\nsex,f\nsex,f\n")


@pytest.mark.parametrize("data", ["", "a,b\n1,2\n", "{}", "[1]", '{"a": 1}', bytes(range(256)), "name = 'x'\n"])
def test_what_is_no_dictionary_is_refused_with_what_is(tmp_path: Path, data: str | bytes) -> None:
    told = refused(tmp_path, data)
    assert "is no dictionary; it may be a dictionary of CSPro (.dcf)" in told


def test_what_is_too_deep_or_too_large_is_refused(tmp_path: Path) -> None:
    for text in ('{"levels": ' + "[" * 100_000, '{"levels": ' + "[" * 60 + "]" * 60 + "}"):
        assert "nested too deeply" in refused(tmp_path, text)
    with (tmp_path / "dictionary").open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    with pytest.raises(ConfigError, match="larger than"):
        read_dictionary(tmp_path / "dictionary")
    with pytest.raises(ConfigError, match="name the dictionary itself"):
        read_dictionary(tmp_path)


@pytest.mark.slow
def test_labels_of_statistics_files_are_read_and_no_record(tmp_path: Path) -> None:
    pyreadstat = pytest.importorskip("pyreadstat")
    pandas = pytest.importorskip("pandas")
    labels = {"sex": {1.0: "Male", 2.0: "Female", 9.0: "No answer"}, "age": {98.0: "98+"}, "region": {"N": "North"}}
    said = []
    for number in (1, 3):
        frame = pandas.DataFrame({"sex": [1.0, 2.0, 1.0], "age": [20.0, 3.0, 98.0], "region": ["N", "S", "N"]})[:number]
        path = tmp_path / "people.sav"
        pyreadstat.write_sav(
            frame, str(path), column_labels=["Sex", "Age", "Region"], variable_value_labels=labels,
            missing_ranges={"sex": [9.0]}, variable_measure={"sex": "nominal", "age": "scale"}, file_label="People",
        )  # fmt: skip
        said.append(read_dictionary(path))
        pyreadstat.write_dta(frame, str(tmp_path / "people.dta"), column_labels=["Sex", "Age", "Region"],
                             variable_value_labels={"sex": {1: "Male", 2: "Female"}})  # fmt: skip
        of_stata = items(read_dictionary(tmp_path / "people.dta"))
        assert ranges(of_stata["sex"])[:2] == [("1", "1", "Male", False), ("2", "2", "Female", False)]
    assert said[0] == said[1]
    found = items(said[0])
    assert (said[0].name, said[0].label, said[0].kind) == ("people", "People", "SPSS")
    assert ranges(found["sex"]) == [
        ("1", "1", "Male", False), ("2", "2", "Female", False), ("", "", "No answer", True),
    ]  # fmt: skip
    assert ranges(found["age"]) == []
    assert found["region"].values[0] == ValueRange("N", "N", "North")
    (tmp_path / "people.sav").write_bytes((tmp_path / "people.sav").read_bytes()[:300])
    with pytest.raises(ConfigError, match="damaged, or no file of SPSS"):
        read_dictionary(tmp_path / "people.sav")


@pytest.mark.parametrize("number", [40, pytest.param(300, marks=pytest.mark.thorough)])
def test_a_broken_dictionary_is_read_or_refused_in_words(tmp_path: Path, number: int) -> None:
    outcomes = {True: 0, False: 0}
    for place, path in enumerate(write_all(tmp_path).values()):
        for data in mutations(path.read_bytes(), Random(place), number):  # noqa: S311 (a test)
            try:
                found = read(tmp_path, data)
            except ConfigError as error:
                outcomes[False] += bool(str(error))
            else:
                assert replace(found, path=Path()).levels
                outcomes[True] += 1
    assert min(outcomes.values()) > number // 8
