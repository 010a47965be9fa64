"""Descriptions of tables: what the page shows is one, and every fault is named with its line."""

import copy
import json
import random
import re
import tomllib
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from described_worlds import make_world

import yupana
from yupana.errors import ConfigError
from yupana.files.document import read_value
from yupana.products import PRODUCTS
from yupana.products.described.description import Description
from yupana.products.described.product import described
from yupana.products.described.reading.description import parse
from yupana.products.described.stability import derive
from yupana.products.safetab.demonstration_parameters import write_parameters

PAGE = Path(__file__).parents[2] / "docs" / "tables.md"
HEAD = 'name = "farms"\nunit = "animals"\n'
TABLES = PRODUCTS["tables"]


@pytest.fixture
def farms(tmp_path: Path) -> Path:
    """The description that the page shows, piece by piece, with the public files it names."""
    blocks = re.findall(r"(?:^    .*\n|^\n(?=    ))+", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    text = "\n".join(
        line[4:] for block in blocks for line in block.splitlines() if "young" not in line or "classes" in line
    )
    (tmp_path / "farms.toml").write_text(HEAD + text + "\n", encoding="utf-8")
    (tmp_path / "districts.csv").write_text("ID,NAME\n0101,Hill\n0102,Dale\n0201,Fen\n", encoding="utf-8")
    (tmp_path / "basins.csv").write_text("DISTRICT,BASIN\n0101,A\n0102,A\n0102,B\n0201,B\n", encoding="utf-8")
    units = "0101,N\n0102,N\n0201,S\nN,ALL\nS,ALL\n"
    (tmp_path / "units.csv").write_text(f"UNIT,PARENT\n{units}", encoding="utf-8")
    return tmp_path / "farms.toml"


def document(farms: Path) -> dict[str, Any]:
    found: dict[str, Any] = TABLES.document(TABLES.read(farms))
    return found


def test_what_the_page_shows_is_a_description(farms: Path) -> None:
    plan = yupana.plan("tables", farms)
    assert {m.name for m in plan.measurements} == {
        *(f"stock/{level}" for level in ("country", "district", "district-by-kind")),
        "farms_kept/district",
        *(f"{what}herds/{level}" for what in ("", "totals of ") for level in ("district", "region")),
    }
    # One more animal displaces one; at the level of groups all of a farm move, as its kind may change.
    assert plan["stock/district"].proven.unbounded == 2
    assert plan["stock/district-by-kind"].proven.unbounded == 2 * 200**2 * 2
    assert plan["farms_kept/district"].proven.unbounded == 2


def test_areas_are_made_of_areas(farms: Path) -> None:
    areas = TABLES.read(farms).areas
    assert (areas["province"].codes, areas["province"].of) == (("N", "S"), ((0,), (0,), (1,)))
    assert (areas["region"].codes, areas["region"].of) == (("01", "02"), ((0,), (0,), (1,)))
    assert (areas["zone"].codes, areas["zone"].of) == (("lowland", "upland"), ((1,), (1,), (0,)))
    assert areas["basin"].of == ((0,), (0, 1), (1,))
    changed = document(farms)
    farms.with_name("tree.csv").write_text("UNIT,PARENT\n0101,X\n0102,X\n0201,Y\nX,top\nY,top\n", encoding="utf-8")
    tree = {"file": str(farms.with_name("tree.csv")), "code": "UNIT", "area": "PARENT"}
    changed["areas"] |= {"mid": {"column": "farms.district", "of": tree}, "top": {"from": "mid", "of": dict(tree)}}
    farms.with_name("tree.json").write_text(json.dumps(changed), encoding="utf-8")
    found = TABLES.read(farms.with_name("tree.json")).areas
    assert (found["mid"].of, found["top"].of) == (((0,), (0,), (1,)), ((0,), (0,), (0,)))


def test_a_file_of_areas_may_have_no_header_and_lost_its_zeros(farms: Path) -> None:
    changed, path = document(farms), farms.with_name("mid.csv")
    changed["areas"]["mid"] = {"column": "farms.district", "of": {"file": str(path), "code": "CODE", "area": "AREA"}}

    def made(text: str) -> Description:
        path.write_text(text, encoding="utf-8")
        farms.with_name("mid.json").write_text(json.dumps(changed), encoding="utf-8")
        return TABLES.read(farms.with_name("mid.json"))

    found = made("0101;X\n0102;X\n0201;Y\n")
    assert (found.areas["mid"].of, found.notes) == (((0,), (0,), (1,)), ())
    found = made("CODE;AREA\n101;X\n102;X\n201;Y\n")
    assert found.areas["mid"].of == ((0,), (0,), (1,))
    assert found.notes == (
        f"areas.mid.of: 3 codes of {path} had lost the leading zero, as in a spreadsheet, and got it back, such as "
        "'0101', written '101'",
    )
    assert found.document["areas"]["mid"]["of"] == {"0101": ["X"], "0102": ["X"], "0201": ["Y"]}
    for text, said in (
        ("0101;X\n102;X\n201;Y\n", "2 codes below lie in no area, such as '0102'"),  # 102 may be of another level
        ("0101;1\n0102;1\n0201;2\n", "line 1: no column CODE; it has 0101, 1"),
    ):
        with pytest.raises(ConfigError, match=said):
            made(text)


@pytest.mark.slow
def test_every_example_of_a_key_is_read(farms: Path) -> None:
    keys = re.findall(r"^\| `(\w+)` \|.*\| `(.*)` \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(keys) == 8
    for key, example in keys:
        text = re.sub(rf"^{key} = .*\n", "", farms.read_text(encoding="utf-8"), flags=re.MULTILINE)
        farms.with_name("other.toml").write_text(f"{example}\n{text}", encoding="utf-8")
        told = tomllib.loads(example)
        assert list(told) == [key]
        if key != "unit":
            yupana.plan("tables", farms.with_name("other.toml"))


@pytest.mark.thorough
def test_a_description_comes_back_from_its_document(farms: Path) -> None:
    read = TABLES.read(farms)
    told = json.loads(json.dumps(TABLES.document(read)))
    assert yupana.plan("tables", told) == yupana.plan("tables", farms)
    assert TABLES.read(farms) == read
    jsonschema.validate(told, TABLES.schema())
    jsonschema.validate(tomllib.loads(farms.read_text(encoding="utf-8")), TABLES.schema())


@pytest.mark.thorough
def test_whoever_reads_a_document_again_reads_the_same(farms: Path) -> None:
    # A release is checked by the description that is in use, not by that which its manifest would give.
    examples = (PAGE.parents[1] / "examples" / f"{name}.toml" for name in ("country", "health", "oregon", "town"))
    write_parameters(farms.parent / "codes")
    built_in = [TABLES.read(name, codes=farms.parent / "codes") for name in TABLES.built_in]
    for name in TABLES.built_in:
        jsonschema.validate(tomllib.loads(TABLES.locate(name).read_text(encoding="utf-8")), TABLES.schema())
    worlds = [make_world(seed).document for seed in range(1)]
    for config in [*map(TABLES.read, [farms, *examples]), *built_in, *map(described, worlds)]:
        for changed in (config, config.without_noise()):
            faults: list[str] = []
            text = json.dumps(TABLES.document(changed))
            assert parse(read_value(text, faults), Path(), faults) == changed
            assert described(json.loads(text)) is changed


def test_other_budgets_derive_nothing_anew(farms: Path) -> None:
    config = TABLES.read(farms)
    changed = config.without_noise()
    for table, again in zip(config.tables, changed.tables, strict=True):
        for level in table.levels:
            assert derive(changed, again, level) is derive(config, table, level)


FAULTS: dict[str, tuple[tuple[str, ...], Any, str]] = {
    "an unknown key": (("unti",), "x", "key 'unti' is unknown"),
    "an unknown unit": (("unit",), "animls", "unit: 'animls' is none of the files; did you mean animals"),
    "an unknown unit that is like none": (
        ("unit",),
        "people",
        "unit: 'people' is none of the files; a column of ids is {",
    ),
    "a fixed column of the unit": (
        ("files", "animals", "columns", "species", "fixed"),
        True,
        "files.animals.columns.species: fixed is for files above the unit",
    ),
    "a circle": (("files", "farms", "parent"), {"file": "animals", "column": "x"}, "links go in a circle"),
    "no key to link to": (("files", "farms", "key"), "", "files.farms.key: must be a text of one line"),
    "a code twice": (("files", "farms", "columns", "kind", "codes"), ["1", "2", "3", "1"], "a code stands twice"),
    # Fields of a hash stand between bars, and one with a bar could make two records' hashes equal.
    "a missing code with a bar": (("files", "farms", "columns", "kind", "missing"), "x|x", "without | and quotes"),
    **{
        f"{word!r} for whole numbers that are missing": (
            ("files", "animals", "columns", "age", "missing"),
            word,
            "age.missing: must be a text that is no number from 0 to 40 and no range, such as 'unknown' or '999', "
            "without | and quotes; an empty field says the same",
        )
        for word in ("", "7", "07", "50-60", "a|b", 99)
    },
    "a column with a bar": (
        ("files", "farms", "columns", "legal|form"),
        {"codes": ["1"]},
        'legal|form: holds |; a name is without | " \\ and what is not seen or no plain space; what the file calls it '
        "otherwise, --columns tells a run",
    ),
    "two domains": (("files", "farms", "columns", "kind", "whole"), [0, 1], "must have either codes or whole"),
    "a domain too wide": (("files", "animals", "columns", "age", "whole"), [0, 10**9], "at most a million"),
    "a value outside": (
        ("recodes", "age_group", "classes", "old"),
        "16-41",
        "recodes.age_group.classes.old: '16-41' is no",
    ),
    "an unknown code": (("groups", "big", "where"), {"farms.kind": "4"}, "groups.big.where.farms.kind: '4' is no code"),
    "an unknown column": (("groups", "big", "where"), {"farms.knd": "1"}, "'farms.knd' is no column"),
    "an unknown area": (
        ("levels", "district-by-kind", "areas"),
        "distrct",
        "is no kind of areas; did you mean district",
    ),
    "an unknown group": (("levels", "district-by-kind", "groups"), ["small"], "'small' is no group"),
    "a column of a file below": (
        ("tables", "farms_kept", "where"),
        {"animals.species": "pig"},
        "tables.farms_kept.where: reads a column of animals, which is not above farms",
    ),
    "an unknown level": (("tables", "stock", "budget", "distric"), "1", "budget: 'distric' is no level; did you mean"),
    "a negative budget": (
        ("tables", "stock", "budget", "district"),
        "-1",
        "tables.stock.budget.district: must not be neg",
    ),
    "a limit per a file below": (("tables", "stock", "limit", "per"), "animals", "limit.per: must be one of farms"),
    "no limit": (("tables", "stock", "limit", "most"), "0", "limit.most: must be a whole number above 0"),
    "overlapping cells": (
        ("tables", "farms_kept", "cells", "mixed"),
        {"farms.kind": ["2", "3"]},
        "tables.farms_kept: some of its cells overlap; say overlapping = true",
    ),
    "a cell that nothing reaches": (
        ("tables", "farms_kept", "cells", "livestock"),
        {"farms.kind": "1"},
        "tables.farms_kept: no record can count in cell livestock",
    ),
    "a margin of a stranger": (
        ("tables", "stock", "margins", "stock_total"),
        ["kind"],
        "'kind' is none of species, age_group",
    ),
    "a sum of nothing": (("tables", "farms_kept", "sums", "farms_all"), {}, "has no rows"),
    "a recode without classes": (("recodes", "age_group", "classes"), {}, "has none"),
    "a sum of a stranger": (("tables", "farms_kept", "sums", "farms_all", "all"), ["x"], "must be a list of labels"),
    "a name twice": (("tables", "stock", "margins", "farms_kept"), [], "farms_kept is the name of two tables"),
    "a file that is not there": (
        ("areas", "basin", "of"),
        {"file": "none.csv", "code": "DISTRICT", "area": "BASIN"},
        "areas.basin.of",
    ),
    "codes without an area": (("areas", "basin", "of"), {"0101": "A"}, "2 codes below lie in no area"),
    "areas of nothing": (
        ("areas", "zone", "from"),
        "zone",
        "areas.zone.from: must be a kind of areas that stands before",
    ),
    "too many first characters": (
        ("areas", "region", "first"),
        5,
        "areas.region.first: must be a number of characters",
    ),
    "a scale that is too small": (
        ("tables", "stock", "stated"),
        {"unbounded": 1, "bounded": 1},
        "tables.stock.stated: must be at least what is derived",
    ),
}


@pytest.mark.sampled(15)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named(fault: str, farms: Path) -> None:
    place, value, words = FAULTS[fault]
    changed = copy.deepcopy(document(farms))
    at = changed
    for key in place[:-1]:
        at = at[key]
    at[place[-1]] = value
    with pytest.raises(yupana.ConfigError) as raised:
        yupana.plan("tables", changed)
    assert words in str(raised.value)


def faults_of(farms: Path, *which: str) -> set[str]:
    """What is said of the description of the page with some faults in it."""
    changed = copy.deepcopy(document(farms))
    for fault in which:
        place, value, _ = FAULTS[fault]
        at = changed
        for key in place[:-1]:
            at = at[key]
        at[place[-1]] = value
    with pytest.raises(yupana.ConfigError) as raised:
        yupana.plan("tables", changed)
    return set(re.sub(r"\S*/none.csv", "none.csv", str(raised.value)).splitlines()[1:])


class Alone(dict[str, set[str]]):
    """What is said of each fault by itself, found when it is first asked for."""

    def __init__(self, farms: Path) -> None:
        super().__init__()
        self.farms = farms

    def __missing__(self, fault: str) -> set[str]:
        self[fault] = faults_of(self.farms, fault)
        return self[fault]


@pytest.mark.parametrize("pairs", [6, pytest.param(50, marks=pytest.mark.thorough)])
@pytest.mark.slow
def test_of_two_faults_both_are_named_and_nothing_that_follows_from_them(farms: Path, pairs: int) -> None:
    rng = random.Random(1)  # noqa: S311 (no noise)
    alone = Alone(farms)
    both = 0
    for _ in range(pairs):
        one, other = rng.sample([*FAULTS], 2)
        if FAULTS[one][0][:2] != FAULTS[other][0][:2]:
            told = faults_of(farms, one, other)
            assert told <= alone[one] | alone[other], (one, other, told - alone[one] - alone[other])
            both += told == alone[one] | alone[other]
    # Of the others one is of a part that the other one reads.
    assert both > pairs * 5 // 12


@pytest.mark.slow
def test_all_faults_are_named_with_their_lines(farms: Path) -> None:
    text = farms.read_text(encoding="utf-8")
    text = text.replace("first = 2", "first = 9").replace('label = "Livestock', 'lable = "Livestock')
    farms.write_text(text, encoding="utf-8")
    lines = {line: number for number, line in enumerate(text.splitlines(), 1)}
    with pytest.raises(yupana.ConfigError) as raised:
        yupana.plan("tables", farms)
    assert f"line {lines['first = 9']}: areas.region.first: " in str(raised.value)
    assert f"line {lines['[groups.big]'] + 1}: groups.big: key 'lable' is unknown" in str(raised.value)


@pytest.mark.parametrize(
    "text", ["", "x = ", "[]", "files = 3", "name = 5\nunit = 5\nfiles = 5\nareas = 5\ntables = 5"]
)
def test_rubbish_is_refused_in_words(text: str, tmp_path: Path) -> None:
    (tmp_path / "rubbish.toml").write_text(text, encoding="utf-8")
    with pytest.raises(yupana.ConfigError):
        yupana.plan("tables", tmp_path / "rubbish.toml")


def test_a_table_that_nothing_protected_moves_is_refused(farms: Path) -> None:
    changed = document(farms)
    changed["files"]["farms"]["columns"]["kind"]["fixed"] = True
    changed["tables"]["farms_kept"]["counts"] = "farms"
    changed["files"]["wells"] = {"columns": {"depth": {"whole": [0, 9]}}, "record": "well"}
    changed["tables"]["wells"] = {"counts": "wells", "budget": {"country": "1"}}
    with pytest.raises(yupana.ConfigError, match="no link joins wells with animals"):
        yupana.plan("tables", changed)


def test_a_budget_may_be_a_margin_of_error(farms: Path) -> None:
    asked = document(farms)
    wanted = {"stock": {"country": 4000, "district": 10}, "farms_kept": {"district": 2}, "herds": {"district": 9}}
    for table, levels in wanted.items():
        asked["tables"][table]["budget"] = {level: {"moe": margin} for level, margin in levels.items()}
    asked["tables"]["herds"]["detail"] |= {"thresholds": [50, 500], "leave_out": {}}
    asked.pop("criteria", None)
    farms.with_name("by-margin.json").write_text(json.dumps(asked), encoding="utf-8")
    config = TABLES.read(farms.with_name("by-margin.json"))
    plan = TABLES.plan(config)
    for table, levels in wanted.items():
        for level, margin in levels.items():
            measured = plan[f"{table}/{level}"]
            assert plan.margin(measured) <= margin
            # The least: by a hundred-millionth less it would not hold.
            less = replace(measured, budget=Fraction(measured.budget) * (1 - Fraction(1, 10**8)))
            assert plan.margin(less) > margin
    # What is told of it has the budgets, and makes the same plan.
    told = TABLES.document(config)
    assert not any(isinstance(of, dict) for table in told["tables"].values() for of in table["budget"].values())
    farms.with_name("told.json").write_text(json.dumps(told), encoding="utf-8")
    assert TABLES.plan(TABLES.read(farms.with_name("told.json"))) == plan


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        ({"moe": 0}, "tables.stock.budget.district.moe: must be a number above 0"),
        ({}, "moe"),
        ({"moe": 5, "rho": 1}, "rho"),
        ({"moe": "five"}, "tables.stock.budget.district.moe: not an exact number"),
    ],
)
def test_a_margin_that_is_none_is_a_fault(farms: Path, budget: dict[str, Any], said: str) -> None:
    asked = document(farms)
    asked["tables"]["stock"]["budget"]["district"] = budget
    farms.with_name("bad.json").write_text(json.dumps(asked), encoding="utf-8")
    with pytest.raises(yupana.ConfigError, match=said):
        TABLES.read(farms.with_name("bad.json"))


def test_findings_name_their_file_whatever_the_folder_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder called by a dot is no part of the names of its files."""
    (tmp_path / "staff.csv").write_text("age\n7\n70\n", encoding="utf-8")
    told = {
        "name": "w",
        "unit": "staff",
        "files": {"staff": {"columns": {"age": {"whole": [0, 60]}}}},
        "areas": {"all": {}},
        "tables": {"t": {"counts": "staff", "budget": {"all": 1}}},
    }
    monkeypatch.chdir(tmp_path)
    (finding,) = yupana.validate("tables", told, ".")
    assert finding.file == "staff.csv"
    (finding,) = yupana.validate("tables", told, {"staff": Path("staff.csv")})
    assert finding.file == "staff.csv"
