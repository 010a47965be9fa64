"""Exact counts of descriptions by blocks and responses, and what is said of their records, beside plain Python."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pytest

import yupana
from yupana.confidential.tabulate import count_groups as engine
from yupana.errors import ConfigError, InputError

CODES = ("10", "20", "30", "40")
GROUPS: dict[str, dict[str, Any]] = {
    "some": {"response": "people.origin", "codes": ["10", "20"]},
    "only": {"response": "people.origin", "codes": ["20", "30"], "alone": True},
    "told": {"response": "people.tongue", "codes": ["b"]},
    "old": {"where": {"people.age": "2-3"}},
}
LEVELS: dict[str, list[str]] = {"by-all": ["some", "only", "told", "old", "*"], "by-some": ["only", "old"]}
DOCUMENT: dict[str, Any] = {
    "name": "world",
    "unit": "people",
    "files": {
        "people": {
            "record": "person",
            "columns": {"age": {"whole": [0, 3]}, "sex": {"codes": ["f", "m"]}},
            "responses": {
                "origin": {"columns": ["o1", "o2", "o3"], "codes": [*CODES], "missing": "no", "most": 2},
                "tongue": {"columns": ["tongue"], "codes": ["a", "b"]},
            },
        }
    },
    "blocks": {
        "file": "places",
        "key": {"ST": 1, "BLK": 3},
        "columns": {"TOWN": 2},
        "only": {"ST": ["1", "2", "3"]},
        "housing_units": {"file": "homes", "block": "place", "number": "n"},
    },
    "areas": {
        "all": {"code": "XX"},
        "state": {"blocks": ["ST"]},
        "block": {"blocks": ["ST", "BLK"]},
        "town": {"blocks": ["TOWN"], "nowhere": {"TOWN": "99"}},
    },
    "groups": GROUPS,
    "levels": {
        f"{kind}-{name}": {"areas": kind, "groups": codes}
        for kind, name, codes in (
            ("all", "by-all", LEVELS["by-all"]),
            ("state", "by-some", LEVELS["by-some"]),
            ("town", "by-all", LEVELS["by-all"]),
        )
    },
    "tables": {
        "ages": {
            "counts": "people",
            "where": {"people.age": "1-3"},
            "cells": {"one": {"people.age": 1}, "up": {"people.age": "1-2"}, "women": {"people.sex": "f"}},
            "overlapping": True,
            "budget": {"all-by-all": 1, "state-by-some": 1, "town-by-all": 1},
        },
        "sexes": {"counts": "people", "by": ["people.sex"], "margins": {"everyone": []}, "budget": {"block": 1}},
    },
}
Person = dict[str, str]


def a_world(random: Random) -> tuple[list[Person], dict[str, str], dict[str, int]]:
    """Persons, the town of each place, and how many homes stand there; some places are of a state that is left out."""
    places = {f"{random.randint(1, 4)}{number:03}": random.choice(["01", "02", "99"]) for number in range(1, 9)}
    persons = [
        {
            "ST": (place := random.choice([*places]))[0],
            "BLK": place[1:],
            "age": str(random.randint(0, 3)),
            "sex": random.choice("fm"),
            "tongue": random.choice("ab"),
            **{f"o{n}": random.choice([*CODES, "", "no"]) for n in (1, 2, 3)},
        }
        for _ in range(60)
    ]
    return persons, places, {place: random.randint(0, 2) for place in random.sample([*places], 6)}


def write(folder: Path, persons: list[Person], places: dict[str, str], homes: dict[str, int]) -> Path:
    folder.mkdir()
    (folder / "SYNTHETIC").touch()
    lines = [",".join(persons[0]), *(",".join(person.values()) for person in persons)]
    (folder / "people.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    rows = [f"{town}|{place[1:]}|{place[0]}" for place, town in places.items()]
    (folder / "places.txt").write_text("\n".join(["TOWN|BLK|ST", *rows]) + "\n", encoding="utf-8")
    rows = [f"{place},{n}" for place, n in homes.items()]
    (folder / "homes.csv").write_text("\n".join(["place,n", *rows]) + "\n", encoding="utf-8")
    return folder


def groups_of(person: Person) -> Iterator[str]:
    """By the first two codes of origin, as `most` says."""
    origin = {person["o1"], person["o2"]} - {"", "no"}
    yield "*"
    if origin & {"10", "20"}:
        yield "some"
    if origin and origin <= {"20", "30"}:
        yield "only"
    if person["tongue"] == "b":
        yield "told"
    if person["age"] in "23":
        yield "old"


def cells_of(person: Person) -> Iterator[tuple[str, str]]:
    yield "sexes", person["sex"]
    yield "everyone", "total"
    if person["age"] == "1":
        yield "ages", "one"
    if person["age"] in "12":
        yield "ages", "up"
    if person["age"] in "123" and person["sex"] == "f":
        yield "ages", "women"


def by_hand(
    persons: list[Person], places: dict[str, str], homes: dict[str, int]
) -> tuple[Counter[tuple[str, ...]], dict[str, set[str]]]:
    """Every count above 0 by table, kind, area, group and cell; and the areas of each kind where a home stands."""
    lie_in = {
        place: {"all": "XX", "state": place[0], "block": place} | ({"town": town} if town != "99" else {})
        for place, town in places.items()
        if place[0] != "4"
    }
    live = {kind: set[str]() for kind in DOCUMENT["areas"]}
    for place, areas in lie_in.items():
        for kind, area in areas.items() if homes.get(place) else ():
            live[kind].add(area)
    found: Counter[tuple[str, ...]] = Counter()
    for person in persons:
        for kind, area in lie_in.get(person["ST"] + person["BLK"], {}).items():
            shown = ["*"] if kind == "block" else LEVELS["by-some" if kind == "state" else "by-all"]
            for group in set(groups_of(person)) & set(shown) if area in live[kind] else ():
                for table, cell in cells_of(person):
                    if (table == "ages") == (kind != "block"):
                        found[table, kind, area, group, cell] += 1
    return found, live


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.thorough
def test_counts_are_those_of_plain_python(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_ROWS_AT_ONCE", (7, 25, 1000)[seed % 3])
    world = a_world(Random(seed))  # noqa: S311 (a test)
    data = write(tmp_path / "data", *world)
    exact = yupana.exact("tables", DOCUMENT, data, tmp_path / "out")
    due, live = by_hand(*world)
    for table in exact.tables:
        columns = exact.columns(table)
        group = columns.get("ITERATION_CODE", ["*"] * len(columns["COUNT"]))
        cell = next(columns[name] for name in ("CELL", "sex") if name in columns)
        keys = zip(columns["REGION_TYPE"], columns["REGION_ID"], group, cell, strict=True)
        here = {(table, *key): int(n) for key, n in zip(keys, columns["COUNT"], strict=True)}
        assert {key: n for key, n in here.items() if n} == {key: n for key, n in due.items() if key[0] == table}
        # Every area where a home stands has all its rows, zeros too.
        kinds = {key[1] for key in here}
        assert {(key[1], key[2]) for key in here} == {(kind, area) for kind in kinds for area in live[kind]}
        assert len(here) % max(sum(len(live[kind]) for kind in kinds), 1) == 0 or table == "ages"


def test_a_table_may_define_groups_of_its_own(tmp_path: Path) -> None:
    """What another table calls by the same code is another group, of other sensitivities."""
    persons, places, homes = a_world(Random(2))  # noqa: S311 (a test)
    data = write(tmp_path / "data", persons, places, homes)
    plain = {"counts": "people", "by": ["people.sex"], "budget": {"all-by-all": 1}}
    own = plain | {"by": ["people.age"], "groups": {"old": {"people.sex": "f"}}}
    exact = yupana.exact("tables", {**DOCUMENT, "tables": {"plain": plain, "own": own}}, data, tmp_path / "out")
    counted = [person for person in persons if person["ST"] != "4"]
    for table, column, condition in (("plain", "sex", "23"), ("own", "age", "f")):
        columns = exact.columns(table)
        rows = zip(columns["ITERATION_CODE"], columns[column], columns["COUNT"], strict=True)
        here = {str(value): int(n) for code, value, n in rows if code == "old" and int(n)}
        decides = "sex" if table == "own" else "age"
        assert here == Counter(person[column] for person in counted if person[decides] in condition)


@pytest.mark.thorough
def test_frames_of_records_and_blocks_make_the_release_of_their_files(tmp_path: Path) -> None:
    data = write(tmp_path / "data", *a_world(Random(4)))  # noqa: S311 (a test)
    frames = {
        path.stem: pl.read_csv(path, separator="|" if path.suffix == ".txt" else ",", infer_schema=False)
        for path in data.iterdir()
        if path.suffix
    }
    of_files = yupana.run("tables", DOCUMENT, data, tmp_path / "files", seed=1)
    release = yupana.run("tables", DOCUMENT, frames, tmp_path / "out", seed=1, synthetic=True)
    assert all(release.path(table).read_bytes() == of_files.path(table).read_bytes() for table in of_files.tables)
    assert yupana.check(release).wrong == ()
    del frames["places"]
    with pytest.raises(InputError, match=r"places\.parquet: file_present: no such file in the data"):
        yupana.run("tables", DOCUMENT, frames, tmp_path / "none", seed=1, synthetic=True)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["column_0", "column_1", "block", "live", "n", "number"])
@pytest.mark.slow
def test_a_column_of_blocks_may_have_any_name(name: str, tmp_path: Path) -> None:
    world = a_world(Random(5))  # noqa: S311 (a test)
    bare = yupana.exact("tables", DOCUMENT, write(tmp_path / "data", *world), tmp_path / "bare")
    data = write(tmp_path / "other", *world)
    (data / "places.txt").write_text((data / "places.txt").read_text().replace("TOWN", name), encoding="utf-8")
    renamed = json.loads(json.dumps(DOCUMENT).replace("TOWN", name))
    exact = yupana.exact("tables", renamed, data, tmp_path / "out")
    assert all(exact.path(table).read_bytes() == bare.path(table).read_bytes() for table in bare.tables)


@pytest.mark.thorough
def test_totals_that_decide_detail_may_list_areas_that_are_left_out(tmp_path: Path) -> None:
    """Two tables by one list of totals, one of which defines a group otherwise; then nobody lives anywhere."""
    budget = {"town-by-all": 1, "all-by-all": 1}
    tables = {"totals": {"counts": "people", "budget": budget}}
    for name, own in (("plain", {}), ("own", {"groups": {"old": {"people.sex": "f"}}})):
        steps, of_all = [["f_" + name], [name, "f_" + name]], {"f_" + name: []}
        detail = {"steps": steps, "thresholds": [5], "published": True}
        sexes = {"counts": "people", "by": ["people.sex"], "margins": of_all, "budget": budget}
        tables[name] = sexes | own | {"detail": detail}
    persons, places, homes = a_world(Random(2))  # noqa: S311 (a test)
    data = write(tmp_path / "data", persons, places, homes)
    first = yupana.run("tables", {**DOCUMENT, "tables": {"totals": tables["totals"]}}, data, tmp_path / "first", seed=1)
    document = {**DOCUMENT, "tables": tables}
    exact = yupana.exact("tables", document, data, tmp_path / "out", totals=first.path("totals"))
    everyone = [person for person in persons if person["ST"] != "4"]
    due = {"plain": Counter(p["sex"] for p in everyone if p["age"] in "23"), "own": Counter(p["sex"] for p in everyone)}
    due["own"]["m"] = 0
    for name, counts in due.items():
        columns = exact.columns(name)
        rows = zip(columns["REGION_TYPE"], columns["ITERATION_CODE"], columns["sex"], columns["COUNT"], strict=True)
        assert {str(sex): int(n) for kind, code, sex, n in rows if (kind, code) == ("all", "old")} == dict(counts)
    (data / "homes.csv").write_text("place,n\n1001,0\n", encoding="utf-8")
    bare = yupana.exact("tables", document, data, tmp_path / "bare", totals=first.path("totals"))
    assert not any(len(bare.columns(table)["COUNT"]) for table in bare.tables)


def refused(tmp_path: Path, name: str, text: str) -> str:
    data = write(tmp_path / "data", *a_world(Random(3)))  # noqa: S311 (a test)
    (data / name).write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        yupana.run("tables", DOCUMENT, data, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    return str(caught.value)


PEOPLE = "ST,BLK,age,sex,tongue,o1,o2,o3\n"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("people.csv", PEOPLE + "1,888,0,f,a,,,\n", "people.csv: block_in_reference: the block is not in places"),
        ("people.csv", PEOPLE + "1,01,0,f,a,,,\n", "people.csv: domain: BLK must be 000 to 999 (a code of 3 digits)"),
        ("people.csv", PEOPLE + "4,999,0,f,a,50,,\n", "people.csv: domain: o1 must be"),
        ("places.txt", "TOWN|BLK|ST\n01|001|1\n02|001|1\n", "places.txt: unique_block: the block is listed more than"),
        ("places.txt", "TOWN|BLK|ST\n1|001|1\n", "places.txt: domain: TOWN must be 00 to 99 (a code of 2 digits)"),
        ("places.txt", "TOWN|BLK\n01|001\n", "places.txt: columns_present: missing column ST in the header"),
        ("places.txt", "TOWN|BLK|ST\n", "places.txt: not_empty: the file has no block"),
        ("places.txt", "TOWN|BLK|ST\n01|001|8\n", "places.txt: not_empty: no block has a value of ST that blocks.only"),
        ("homes.csv", "place,n\n1001,x\n", "homes.csv: domain: n must be a whole number"),
        ("homes.csv", "place,n\n1001,1\n1001,2\n", "homes.csv: unique_block: the block is listed more than once"),
    ],
)
def test_rubbish_is_refused_in_words(name: str, text: str, said: str, tmp_path: Path) -> None:
    assert said in refused(tmp_path, name, text)


@pytest.mark.slow
def test_a_record_elsewhere_is_left_out_and_no_message_tells_its_block(tmp_path: Path) -> None:
    persons, places, homes = a_world(Random(3))  # noqa: S311 (a test)
    elsewhere = persons[0] | {"ST": "4", "BLK": "777"}
    data = write(tmp_path / "data", [*persons, elsewhere], places, homes)
    with_it = yupana.exact("tables", DOCUMENT, data, tmp_path / "with")
    without = write(tmp_path / "other", persons, places, homes)
    bare = yupana.exact("tables", DOCUMENT, without, tmp_path / "without")
    assert all(with_it.path(table).read_bytes() == bare.path(table).read_bytes() for table in bare.tables)


@pytest.mark.parametrize("left_out", [True, False])
@pytest.mark.thorough
def test_a_report_says_that_small_counts_were_left_out(tmp_path: Path, *, left_out: bool) -> None:
    data = write(tmp_path / "data", *a_world(Random(1)))  # noqa: S311 (a test)
    told = {"share": "1/10", "steps": [["everyone"], ["sexes", "everyone"]], "thresholds": [10]}
    told |= {"leave_out": {"block": "0.9"}} if left_out else {}
    sexes = DOCUMENT["tables"]["sexes"] | {"detail": told}
    page = tmp_path / "page.html"
    yupana.run("tables", {**DOCUMENT, "tables": {"sexes": sexes}}, data, tmp_path / "out", report=page)
    assert ('"leftOut":true' in page.read_text("utf-8")) == left_out


@pytest.mark.thorough
def test_a_release_by_blocks_is_checked_and_names_its_public_files(tmp_path: Path) -> None:
    data = write(tmp_path / "data", *a_world(Random(0)))  # noqa: S311 (a test)
    release = yupana.run("tables", {**DOCUMENT, "postprocess": {"non_negative": True}}, data, tmp_path / "out", seed=2)
    assert yupana.check(release).wrong == ()
    manifest = release.manifest
    assert {"places.txt", "homes.csv"} <= manifest["public_inputs"].keys()
    assert "people.csv" not in json.dumps(manifest)
    path = release.path("sexes")
    path = release.path("sexes")
    text = path.read_text("utf-8")
    assert "|block|" in text
    path.write_text(text.replace("|block|", "|blok|", 1), encoding="utf-8")
    assert yupana.check(release).wrong


def test_other_methods_are_not_set_beside_areas_of_blocks(tmp_path: Path) -> None:
    data = write(tmp_path / "data", *a_world(Random(0)))  # noqa: S311 (a test)
    with pytest.raises(ConfigError, match="compare takes no description with a file of blocks"):
        yupana.compare("tables", DOCUMENT, data, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("neighbours", "definition"),
    [
        ("add-remove", "zcdp"),
        ("replace", "puredp"),
        pytest.param("add-remove", "puredp", marks=pytest.mark.thorough),
        pytest.param("replace", "zcdp", marks=pytest.mark.thorough),
    ],
)
@pytest.mark.slow
def test_every_mechanism_and_neighbours_and_no_record_at_all_make_the_same_rows(
    definition: str, neighbours: str, tmp_path: Path
) -> None:
    asked = {**DOCUMENT, "privacy_defn": definition, "neighbours": neighbours}
    rows = []
    for name in ("full", "empty"):
        data = write(tmp_path / name, *a_world(Random(0)))  # noqa: S311 (a test)
        if name == "empty":
            (data / "people.csv").write_text(PEOPLE, encoding="utf-8")
        release = yupana.run("tables", asked, data, tmp_path / f"{name}-out")
        assert yupana.check(release).wrong == ()
        keys = ("REGION_ID", "REGION_TYPE", "ITERATION_CODE", "CELL", "sex")
        columns = {table: release.columns(table) for table in release.tables}
        rows.append({table: [of[key] for key in keys if key in of] for table, of in columns.items()})
    assert rows[0] == rows[1]
