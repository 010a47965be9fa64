"""Descriptions with responses, groups by them and a file of blocks: the one that the page shows, and its faults."""

import contextlib
import copy
import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import yupana
from yupana.cli.main import main
from yupana.explore.products import Pages
from yupana.files.columns import Column
from yupana.geography.block_file import BlockAreas, BlockColumn, BlockFile
from yupana.plan.responses import ResponseGroup
from yupana.products import PRODUCTS
from yupana.products.described.description import Description
from yupana.products.described.product import described_in

TABLES = PRODUCTS["tables"]
PAGE = Path(__file__).parents[3] / "docs" / "tables.md"
DOCUMENT = re.findall(r"```toml\n(name = \"origins\".*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[0]
FILES = {
    "codes.txt": "CODE|NAME\n10|Hill\n11|Dale\n20|Fen\n30|Island\n",
    "groups.txt": "GROUP|NAME|DEPTH|ALONE\nB|Upland|1|no\nA|Upland alone|1|yes\n\nC|Hill|2|no\n",
    "members.txt": "GROUP|CODE\nA|10\nA|11\nB|10\nB|11\nC|10\nother|20\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "origins.toml").write_text(DOCUMENT, encoding="utf-8")
    return tmp_path


def read(folder: Path, document: dict[str, Any] | None = None) -> Description:
    if document is not None:
        (folder / "changed.json").write_text(json.dumps(document), encoding="utf-8")
    found: Description = TABLES.read(folder / ("origins.toml" if document is None else "changed.json"))
    return found


def test_what_it_says_is_read(folder: Path) -> None:
    found = read(folder)
    state, block, city = BlockColumn("STATE", 2), BlockColumn("BLOCK", 4), BlockColumn("CITY", 3)
    assert found.blocks == BlockFile("blocks", (state, block), (city,), frozenset({1, 2}))
    assert found.areas["nation"].of == ((0,),)
    assert found.areas["city"].blocks == BlockAreas("city", (state, city), nowhere={"CITY": 999})
    assert found.areas["city"].blocks.width == 5
    people = found.files["people"]
    assert people.blocks == (Column("STATE", range(100), 2), Column("BLOCK", range(10_000), 4))
    assert people.hashed == ("sex",)
    assert [column.words for column in people.schema.columns[-3:]] == [("-", "10", "11", "20", "30")] * 3
    origin = found.responses["people.origin"]
    assert (origin.columns, origin.most, origin.labels[1], origin.column.blank) == (("O1", "O2", "O3"), 2, "Hill", "-")
    assert found.groups == {
        "islands": ResponseGroup("people.origin", frozenset({4})),
        "A": ResponseGroup("people.origin", frozenset({1, 2}), alone=True),
        "B": ResponseGroup("people.origin", frozenset({1, 2})),
        "C": ResponseGroup("people.origin", frozenset({1})),
    }
    assert found.group_labels["A"] == "Upland alone"
    levels = {level.name: level.groups for level in found.tables[0].levels}
    assert levels["city-by-origin"] == ("A", "B")
    assert levels["state-by-origin"] == ("A", "B", "C")
    assert levels["nation-by-hand"] == ("islands", "*")
    assert found.tables[0].detail is not None
    assert found.tables[0].detail.coarsest == {"C"}
    assert found.of_record(found.tables[0]).header == ('"people.sex"',)


@pytest.mark.thorough
def test_it_comes_back_from_its_document(folder: Path) -> None:
    found = read(folder)
    told = json.loads(json.dumps(TABLES.document(found)))
    assert "group_lists" not in told
    assert "file" not in json.dumps(told["files"])
    again = described_in({"configuration": told})
    assert again == found
    assert TABLES.document(again) == told
    jsonschema.validate(told, TABLES.schema())
    jsonschema.validate(tomllib.loads(DOCUMENT), TABLES.schema())
    for wrong in ("nine columns", "a flag that is none"):
        document = tomllib.loads(DOCUMENT)
        FAULTS[wrong][0](document)
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(document, TABLES.schema())


def test_a_group_without_codes_and_a_list_of_one_column_are_read(folder: Path) -> None:
    document = tomllib.loads(DOCUMENT)
    del document["group_lists"]["origins"]["label"]
    (folder / "groups.txt").write_text(FILES["groups.txt"] + "D|Nobody|1|no\n", encoding="utf-8")
    found = read(folder, document)
    assert found.groups["D"] == ResponseGroup("people.origin", frozenset())
    assert found.group_labels["A"] == "A"


def _set(*path: Any) -> Callable[[dict[str, Any]], None]:  # noqa: ANN401 (keys, and a value)
    *keys, last, value = path

    def change(document: dict[str, Any]) -> None:
        for key in keys:
            document = document.setdefault(key, {})
        document[last] = value

    return change


RESPONSE = ("files", "people", "responses", "origin")
LIST = ("group_lists", "origins")
LEVEL = ("levels", "city-by-origin", "groups")
FAULTS: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "digits too many": (
        _set("blocks", "key", "BLOCK", 17),
        "blocks.key: must be columns with their digits, at most 18",
    ),
    "no digits": (_set("blocks", "key", "BLOCK", 0), "blocks.key.BLOCK: must be how many digits it has, 1 to 18"),
    "a column of blocks twice": (_set("blocks", "columns", "state", 2), "blocks.columns.state: must be the name of"),
    "homes as a column": (_set("blocks", "columns", "Housing_Units", 2), "is the number of homes of a block"),
    "homes without a number": (
        _set("blocks", "housing_units", {"file": "homes", "block": "b", "n": "h"}),
        "blocks.housing_units",
    ),
    "blocks that are records": (_set("blocks", "file", "People"), "blocks.file: People is a file of records"),
    "blocks in a folder": (_set("blocks", "file", "a/b"), "blocks.file: holds /; a name is without"),
    "a choice of other columns": (_set("blocks", "only", {"CITY": ["001"]}), "may choose values of STATE"),
    "a choice without zeros": (_set("blocks", "only", "STATE", ["1"]), "blocks.only.STATE: must be a text of 2 digits"),
    "a hierarchy": (_set("hierarchies", {}), "blocks: hierarchies needs areas that are known without the records"),
    "criteria": (_set("criteria", {}), "blocks: criteria needs areas"),
    "topdown": (_set("topdown", {}), "blocks: topdown needs areas"),
    "consistent counts": (_set("postprocess", {"consistent": True}), "postprocess: consistent needs areas"),
    "coterminous areas": (_set("postprocess", {"coterminous": True}), "postprocess: coterminous needs areas"),
    "areas of a column": (_set("areas", "sexes", {"column": "people.sex"}), "areas.sexes: where there is a file of"),
    "areas of others": (
        _set("areas", "side", {"from": "state", "of": {"01": "N", "02": "S"}}),
        "areas.side: where there is a file of",
    ),
    "areas of nothing": (
        _set("areas", "city", "blocks", ["CTY"]),
        "is 'CTY'; did",
    ),
    "areas of a column twice": (_set("areas", "city", "blocks", ["CITY", "CITY"]), "names a column twice"),
    "areas of blocks and more": (_set("areas", "city", "code", "1"), "areas.city: has blocks and code"),
    "nowhere of others": (_set("areas", "state", "nowhere", {"CITY": "999"}), "is none of the columns of the kind"),
    "nowhere too short": (
        _set("areas", "city", "nowhere", "CITY", "99"),
        "areas.city.nowhere.CITY: must be a text of 3",
    ),
    "nowhere of everything": (
        _set("areas", "nation", "nowhere", {}),
        "areas.nation.nowhere: is of areas that are made",
    ),
    "labels of areas": (_set("areas", "state", "labels", {"01": "North"}), "areas.state: has blocks and labels"),
    "nine columns": (_set(*RESPONSE, "columns", [f"O{i}" for i in range(9)]), "must be a list of 1 to 8 columns"),
    "a column of cells": (_set(*RESPONSE, "columns", ["Sex"]), "Sex is a column, a key or a link of the file already"),
    "a column of blocks": (_set(*RESPONSE, "columns", ["block"]), "columns: block is a column, a key or a link"),
    "an answer twice": (_set(*RESPONSE, "columns", ["O1", "o1"]), "origin.columns: o1 stands twice"),
    "a response called as a column": (
        _set("files", "people", "responses", "sex", {"columns": ["O9"], "codes": ["1"]}),
        "responses.sex: is the name of",
    ),
    "a missing code that is one": (
        _set(*RESPONSE, "missing", "10"),
        "origin.missing: must be a code that is not listed",
    ),
    "too many codes": (_set(*RESPONSE, "codes", [str(i) for i in range(16_384)]), "at most 16,383 are allowed"),
    "more than all columns": (_set(*RESPONSE, "most", 9), "origin.most: must be a whole number from 1 to"),
    "a column that is part of a block": (
        _set("files", "people", "columns", "BLOCK", {"whole": [0, 9]}),
        "or part of a",
    ),
    "a table by a response": (
        _set("tables", "sexes", "by", ["people.origin"]),
        "is neither a column nor a recode; it is a response, which makes groups",
    ),
    "a condition on answers": (
        _set("tables", "sexes", "where", {"people.O1": "10"}),
        "it holds answers of a response, which makes groups",
    ),
    "a recode of blocks": (
        _set("recodes", "half", {"column": "people.BLOCK", "classes": {"low": "0-1"}}),
        "it is of the key of blocks, which makes areas",
    ),
    "an unknown response": (_set("groups", "islands", "response", "people.orign"), "did you mean people.origin"),
    "a code of no response": (_set("groups", "islands", "codes", ["31"]), "no code of people.origin is '31'"),
    "the code for none": (_set("groups", "islands", "codes", ["-"]), "no code of people.origin is '-'"),
    "a code twice": (_set("groups", "islands", "codes", ["30", "30"]), "groups.islands.codes: names one twice"),
    "a flag that is none": (_set("groups", "islands", "alone", "yes"), "groups.islands.alone: must be true or false"),
    "a group of two": (
        _set("groups", "A", {"response": "people.origin", "codes": ["10"]}),
        "group A is in another list",
    ),
    "a list without a file": (_set(*LIST, "file", "none.txt"), "none.txt cannot be read: No such file"),
    "a list without a column": (
        _set(*LIST, "code", "GRUP"),
        "no column GRUP; it has GROUP, NAME, DEPTH, ALONE",
    ),
    "members without a column": (_set(*LIST, "members", "code", "COD"), "line 1: no column COD"),
    "flags of no column": (
        _set(*LIST, "alone", {"ALON": "yes"}),
        "'ALON' is no column of the file of origins, which has",
    ),
    "flags of no row": (_set(*LIST, "alone", {"ALONE": "True"}), "'True' is said by no row; rows say no, yes"),
    "a level of no list": (_set(*LEVEL, "from", ["origin"]), "groups.from: must be a list of some of origins"),
    "a level of no column": (_set(*LEVEL, "where", {"LEVEL": "1"}), "'LEVEL' is no column of the file of origins"),
    "a level of no row": (_set(*LEVEL, "where", {"DEPTH": "3"}), "where.DEPTH: '3' is said by no row"),
    "a level of nothing": (_set(*LEVEL, "where", {"DEPTH": "2", "ALONE": "yes"}), "chooses no group"),
    "coarsest of another level": (
        _set("tables", "sexes", "budget", {"city-by-origin": 1}),
        "coarsest: chooses no group of the levels of the table",
    ),
    "a limit": (_set("tables", "sexes", "limit", {"per": "people", "most": 1}), "limit.per: must be"),
    "conditions for a group of codes": (
        _set("tables", "sexes", "groups", {"islands": {"people.sex": "f"}}),
        "groups: islands is a group by a response, which no condition replaces",
    ),
    "a parent": (
        _set("unit", {"file": "people", "column": "id"}),
        "tables.sexes.counts: with a file of blocks, people must stand alone",
    ),
}


@pytest.mark.sampled(20)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named(fault: str, folder: Path) -> None:
    change, words = FAULTS[fault]
    document = tomllib.loads(DOCUMENT)
    change(document)
    with pytest.raises(yupana.ConfigError) as raised:
        read(folder, document)
    assert words in str(raised.value)


@pytest.mark.parametrize(
    ("file", "row", "words"),
    [
        (
            "groups.txt",
            "A|Again|1|no",
            "group_lists.origins.file: groups.txt: line 6: group A stands in line 3 already",
        ),
        ("groups.txt", "*|Everyone|1|no", "groups.txt: line 6: GROUP must be a code without |, and NAME a text"),
        ("groups.txt", "D||1|no", "groups.txt: line 6: GROUP must be a code without |, and NAME a text"),
        ("groups.txt", "D|Short", "line 6: 2 fields, but the header names 4 columns"),
        ("members.txt", "A|12", "group_lists.origins.members: members.txt: line 8: '12' is no code of people.origin"),
    ],
)
def test_a_wrong_row_is_named_with_its_line(file: str, row: str, words: str, folder: Path) -> None:
    (folder / file).write_text(FILES[file] + row + "\n", encoding="utf-8")
    with pytest.raises(yupana.ConfigError) as raised:
        read(folder)
    assert words in str(raised.value)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("value", [None, 0, "", [], {}, [[]], [{}], {"x": 1}, {"from": "origins"}, "9" * 30, 'a"b'])
@pytest.mark.slow
def test_rubbish_is_refused_in_words(value: object, folder: Path) -> None:
    places = [
        *(("blocks", key) for key in ("file", "key", "columns", "only")),
        *(("areas", "city", key) for key in ("blocks", "nowhere")),
        *((*RESPONSE, key) for key in ("columns", "codes", "missing", "most")),
        *(("groups", "islands", key) for key in ("response", "codes", "alone", "label")),
        *((*LIST, key) for key in ("response", "file", "code", "label", "members", "alone")),
        *((*LEVEL, key) for key in ("from", "where")),
        ("levels", "city-by-origin", "areas"),
        ("tables", "sexes", "counts"),
        ("tables", "sexes", "detail", "coarsest"),
        *((key,) for key in ("blocks", "group_lists", "groups", "areas", "levels", "files")),
    ]
    for place in places:
        document = tomllib.loads(DOCUMENT)
        _set(*place, value)(document)
        with contextlib.suppress(yupana.ConfigError):
            read(folder, document)


def test_every_fault_is_named_at_once(folder: Path) -> None:
    document = tomllib.loads(DOCUMENT)
    changes = ("digits too many", "nine columns", "a missing code that is one", "more than all columns", "criteria")
    for name in changes:
        FAULTS[name][0](document)
    with pytest.raises(yupana.ConfigError) as raised:
        read(folder, document)
    assert all(FAULTS[name][1] in str(raised.value) for name in changes)


@pytest.mark.parametrize(
    "fault",
    [
        *("a code of no response", "a list without a file", "a list without a column", "areas of nothing"),
        *("areas of others", "nine columns"),
    ],
)
def test_a_fault_brings_no_others_of_what_reads_it(fault: str, folder: Path) -> None:
    document = tomllib.loads(DOCUMENT)
    FAULTS[fault][0](document)
    with pytest.raises(yupana.ConfigError) as raised:
        read(folder, document)
    _, *told = str(raised.value).splitlines()
    assert len(told) == 1


@pytest.mark.thorough
def test_public_files_may_lie_in_another_folder(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    alone = tmp_path_factory.mktemp("alone") / "origins.toml"
    alone.write_text(DOCUMENT, encoding="utf-8")
    with pytest.raises(yupana.ConfigError, match=r"codes\.txt cannot be read: No such file"):
        yupana.plan("tables", alone)
    plan = yupana.plan("tables", alone, codes=folder)
    assert plan == yupana.plan("tables", folder / "origins.toml") == yupana.plan("tables", read(folder))
    assert main(["tables", "plan", str(alone), "--codes", str(folder)]) == 0
    assert main(["audit", "attribute", str(alone), "--codes", str(folder)]) == 0
    assert Pages(tables=str(alone), codes=folder)["tables-own"].config == read(folder)
    capsys.readouterr()
    assert main(["audit", "attribute", "s-dhc-2020", "--codes", str(folder)]) != 0
    assert "codes are of SafeTab and of descriptions of tables" in capsys.readouterr().err


def test_a_plan_says_in_how_many_groups_a_record_is(folder: Path) -> None:
    config = read(folder)
    told = TABLES.promises(config, TABLES.plan(config), 1e-10)["derived"]
    # One code is a member of A, B and C; at the cities' level of A and B; by hand of one group beside everyone's.
    words = "one person brings at most 1 person records, each in at most"
    assert told["sexes/state-by-origin"]["because"] == f"{words} 3 groups by origin"
    assert told["sexes/city-by-origin"]["because"] == f"{words} 2 groups by origin"
    assert told["sexes/nation-by-hand"]["because"] == f"{words} 1 group by origin"
    assert [told[f"sexes/{level}"]["unbounded"] for level in ("state-by-origin", "nation-by-hand")] == ["3", "2"]
    assert "the file of blocks, blocks, and so which areas there are and where blocks lie" in TABLES.taken_as_public(
        config
    )
    assert "which codes of people.origin are members of which groups" in TABLES.taken_as_public(config)


def test_a_built_in_description_asks_for_its_public_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(TABLES), "locate", lambda _, __: folder / "none" / ".." / "origins.toml")
    (folder / "none").mkdir()
    (folder / "codes.txt").rename(folder / "none" / "codes.txt")
    with pytest.raises(yupana.ConfigError, match=r"^people-and-homes names public files that lie elsewhere; name th"):
        yupana.plan("tables", "people-and-homes")


@pytest.mark.slow
def test_groups_by_responses_need_blocks(folder: Path) -> None:
    document = tomllib.loads(DOCUMENT)
    del document["blocks"]
    for kind in ("state", "city"):
        document["areas"][kind] = {}
    with pytest.raises(yupana.ConfigError) as raised:
        read(folder, document)
    assert "city-by-origin has groups by a response, and these need a file of blocks" in str(raised.value)
    document["areas"]["state"] = {"blocks": ["STATE"]}
    with pytest.raises(yupana.ConfigError, match=r"areas.state.blocks: needs a file of blocks"):
        read(folder, copy.deepcopy(document))


def test_groups_are_of_the_records_that_are_counted(folder: Path) -> None:
    document = tomllib.loads(DOCUMENT)
    document["files"]["others"] = {"columns": {"sex": {"codes": ["f", "m"]}}}
    document["tables"]["sexes"] |= {"counts": "others", "by": ["others.sex"]}
    document["unit"] = "others"
    with pytest.raises(yupana.ConfigError, match="has groups by a response of people, and the table counts others"):
        read(folder, document)
