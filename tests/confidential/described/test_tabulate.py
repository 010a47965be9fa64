"""Exact counts of random descriptions, compared row by row with a count in plain Python."""

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from described_tabulation import published
from described_worlds import World, make_world, save, with_missing, with_others
from free_files import FREE

import yupana
from yupana.confidential.described.counter import DescribedCounter
from yupana.confidential.described.records import open_described
from yupana.confidential.described.tabulate import measure_tables
from yupana.files.columns import ColumnMap
from yupana.plan import predicates
from yupana.plan.ledger import Ledger
from yupana.privacy.entropy import SystemEntropy
from yupana.products.described.plan import published_tables
from yupana.products.described.product import TABLES

Rows = list[dict[str, Any]]


def counted(description: Path, data: Path) -> dict[str, Rows]:
    """Every table without noise, as the product lays it out."""
    config = TABLES.read(description).without_noise()
    plan = TABLES.plan(config)
    counter = DescribedCounter(config)
    with open_described(config, data, None, ColumnMap()) as records:
        exact = counter.count(records)
    tables = published_tables(config, plan, measure_tables(exact.by_level, config, Ledger(plan), SystemEntropy(), {}))
    return {table.name: _rows(table.columns) for table in tables}


def _rows(columns: dict[str, Any]) -> Rows:
    whole = {
        name: [column.values[place] for place in column.places] if hasattr(column, "places") else column.tolist()
        for name, column in columns.items()
        if name not in ("NOISE_DISTRIBUTION", "VARIANCE", "MOE")
    }
    return [dict(zip(whole, values, strict=True)) for values in zip(*whole.values(), strict=True)]


def read_rows(path: Path) -> Rows:
    """The rows of a published file, without its columns on noise."""
    if path.suffix == ".parquet":
        rows = pq.read_table(path).to_pylist()
    else:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file, delimiter="|", quoting=csv.QUOTE_NONE))
    names = ("NOISE_DISTRIBUTION", "VARIANCE", "MOE")
    return [
        {name: int(value) if name == "COUNT" else value for name, value in row.items() if name not in names}
        for row in rows
    ]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("first", [0, 10])
@pytest.mark.slow
def test_random_worlds_are_counted_as_in_plain_python(tmp_path: Path, first: int, form: str) -> None:
    for seed in range(first, first + 6):
        world = make_world(seed)
        assert counted(*save(world, tmp_path / str(seed), seed, form)) == published(world.document, world.records), seed


@pytest.mark.sampled(1)
@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.thorough
def test_whole_numbers_that_are_missing_are_counted_as_in_plain_python(tmp_path: Path, form: str) -> None:
    found = 0
    for seed in range(400, 409):
        world = with_missing(make_world(seed), seed)
        if world is not None:
            found += any("missing" in c for of in world.document["files"].values() for c in of["columns"].values())
            saved = save(world, tmp_path / str(seed), seed, form)
            assert counted(*saved) == published(world.document, world.records), seed
    assert found > 3


def _worlds(first: int, number: int) -> list[tuple[int, World]]:
    """Worlds with others, and of half of them with missing values, too."""
    found = []
    for seed in range(first, first + number):
        world: World | None = make_world(seed)
        if world and seed % 2:
            world = with_missing(world, seed)
        if world and (made := with_others(world, seed)):
            found.append((seed, made))
    return found


@pytest.mark.sampled(1)
@pytest.mark.parametrize("form", FREE)
@pytest.mark.parametrize("first", [600, 720])
@pytest.mark.slow
def test_values_in_all_ways_to_write_them_are_counted_as_in_plain_python(tmp_path: Path, first: int, form: str) -> None:
    worlds = _worlds(first, 8)
    assert len(worlds) > 4
    for seed, world in worlds:
        saved = save(world, tmp_path / str(seed), seed, form)
        assert counted(*saved) == published(world.document, world.records), seed


@pytest.mark.sampled(1)
@pytest.mark.parametrize("form", ["frames", *FREE])
@pytest.mark.thorough
def test_frames_and_shards_are_counted_as_in_plain_python(tmp_path: Path, form: str) -> None:
    for seed, world in _worlds(760, 3):
        description, data = save(world, tmp_path / str(seed), seed, "typed" if form == "frames" else form)
        records: Any = data
        options: dict[str, Any] = {"shards": 3}
        if form == "frames":
            records = {name: pq.read_table(data / f"{name}.parquet") for name in world.document["files"]}
            options = {"synthetic": True}
        yupana.exact("tables", description, records, out := tmp_path / f"{seed}-out", **options)
        for name, rows in published(world.document, world.records).items():
            assert read_rows(out / f"{name}.csv") == rows, seed


@pytest.mark.thorough
def test_worlds_are_counted_alike_by_many_numbers_of_a_record_and_a_few_rows_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("yupana.confidential.tabulate.linked_tables._FEW", 1)
    monkeypatch.setattr("yupana.confidential.tabulate.linked_tables._AT_ONCE", 7)
    for seed in range(200, 206):
        world = make_world(seed)
        assert counted(*save(world, tmp_path / str(seed), seed)) == published(world.document, world.records), seed


def test_groups_that_are_too_many_together_are_counted_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    codes = [str(number) for number in range(6)]
    columns = {name: {"codes": codes} for name in "abc"}
    document = {
        "name": "groups",
        "unit": "persons",
        "files": {"persons": {"columns": columns}},
        "areas": {"all": {}, "a": {"column": "persons.a"}},
        "groups": {name: {"where": {f"persons.{name}": codes[:3]}} for name in "abc"},
        "levels": {"by": {"areas": "a", "groups": [*"abc"]}},
        "tables": {"t": {"counts": "persons", "by": ["persons.a"], "budget": {"by": 1}}},
    }
    records = {"persons": [{"a": str(i % 6), "b": str(i // 2 % 6), "c": str(i // 3 % 6)} for i in range(90)]}
    expected = published(document, records)
    saved = save(World(document, records), tmp_path)
    monkeypatch.setattr("yupana.confidential.tabulate.linked_tables._FEW", 1)
    # Cells are told apart by 6 values of a, and the groups b and c by 2 each.
    monkeypatch.setattr(predicates, "_MOST_COMBINATIONS", 12)
    assert counted(*saved) == expected
    plan = yupana.plan("tables", saved[0])
    # By all groups times all cells, which is more than by any record.
    assert plan["t/by"].sensitivity.unbounded == 18
    config = TABLES.read(saved[0])
    monkeypatch.setattr(predicates, "_MOST_COMBINATIONS", 11)
    with (
        open_described(config, saved[1], None, ColumnMap()) as opened,
        pytest.raises(yupana.ConfigError, match="of t some cell and group together tell too many combinations"),
    ):
        DescribedCounter(config).count(opened)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("seed", [1000, 1002])
@pytest.mark.slow
def test_random_worlds_end_to_end(tmp_path: Path, seed: int, form: str) -> None:
    world = make_world(seed)
    description, data = save(world, tmp_path, seed, form)
    release = yupana.exact("tables", description, data, tmp_path / "exact", format=form)
    assert not yupana.check(release).wrong
    for name, rows in published(world.document, world.records).items():
        assert read_rows(tmp_path / "exact" / f"{name}.{form}") == rows
    assert not yupana.check(yupana.run("tables", description, data, tmp_path / "noisy", seed=1)).wrong


PEOPLE = {
    "name": "people",
    "unit": "persons",
    "files": {
        "homes": {"key": "id", "columns": {"where": {"codes": ["N", "S"], "fixed": True}}},
        "persons": {"parent": {"file": "homes", "column": "home"}, "columns": {"sex": {"codes": ["m", "f"]}}},
    },
    "areas": {"side": {"column": "homes.where"}},
    "tables": {"sexes": {"counts": "persons", "by": ["persons.sex"], "budget": {"side": 1}}},
}


@pytest.mark.parametrize("kinds", [(pa.int64(), pa.string()), (pa.string(), pa.uint64()), (pa.int16(), pa.uint64())])
def test_keys_of_one_file_may_be_whole_numbers_and_those_of_another_texts(
    tmp_path: Path, kinds: tuple[pa.DataType, pa.DataType]
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    homes, persons = (
        pa.array([str(v) if kind == pa.string() else v for v in keys], kind)
        for keys, kind in zip(([1, 22], [22, 22, 1]), kinds, strict=True)
    )
    pq.write_table(pa.table({"id": homes, "where": ["N", "S"]}), data / "homes.parquet")
    pq.write_table(pa.table({"home": persons, "sex": ["m", "f", "f"]}), data / "persons.parquet")
    description = tmp_path / "people.json"
    description.write_text(json.dumps(PEOPLE), encoding="utf-8")
    assert [row["COUNT"] for row in counted(description, data)["sexes"]] == [0, 1, 1, 1]


@pytest.mark.slow
def test_names_of_files_and_columns_may_be_those_of_sql_and_of_each_other(tmp_path: Path) -> None:
    document = {
        "name": "names",
        "unit": "a-b",
        "files": {
            "order": {"key": "a-b", "columns": {"order": {"codes": ["x", "y"], "fixed": True}}},
            "a-b": {"parent": {"file": "order", "column": "group"}, "columns": {"order": {"codes": ["1", "2"]}}},
            "a_b": {"parent": {"file": "a-b", "column": "rowid"}, "columns": {"record": {"whole": [0, 1]}}},
        },
        "areas": {"select": {"column": "order.order"}},
        "tables": {
            "limit": {
                "counts": "a_b",
                "by": ["a-b.order", "a_b.record"],
                "limit": {"per": "a-b", "most": 1},
                "budget": {"select": 1},
            },
        },
    }
    document["files"]["a-b"]["key"] = "record"
    records = {
        "order": [{"a-b": 1, "order": "x"}, {"a-b": 2, "order": "y"}],
        "a-b": [{"record": 7, "group": 2, "order": "1"}, {"record": 8, "group": 1, "order": "2"}],
        "a_b": [{"rowid": 7, "record": 1}, {"rowid": 7, "record": 1}, {"rowid": 8, "record": 0}],
    }
    for form in ("csv", "parquet"):
        found = counted(*save(World(document, records), tmp_path / form, form=form))
        assert found == published(document, records)
        assert [row["COUNT"] for row in found["limit"]] == [0, 0, 1, 0, 0, 1, 0, 0]


def test_the_limit_keeps_the_same_records_in_any_order_of_the_file(tmp_path: Path) -> None:
    document = {
        "name": "keys",
        "unit": "persons",
        "files": {
            "homes": {"key": "id", "columns": {}},
            "rooms": {
                "key": "id",
                "parent": {"file": "homes", "column": "home"},
                "columns": {"floor": {"codes": ["1", "2"], "fixed": True}},
            },
            "persons": {"key": "id", "parent": {"file": "rooms", "column": "room"}, "columns": {}},
        },
        "areas": {"floor": {"column": "rooms.floor"}},
        "tables": {"one": {"counts": "persons", "limit": {"per": "homes", "most": 1}, "budget": {"floor": 1}}},
    }
    # What is hashed of the two is the same text.
    persons = [{"id": "a|b", "room": "c"}, {"id": "a", "room": "b|c"}]
    rooms = [{"id": "c", "home": "1", "floor": "1"}, {"id": "b|c", "home": "1", "floor": "2"}]
    for number in range(2):
        records = {"homes": [{"id": "1"}], "rooms": rooms, "persons": persons[:: 1 - 2 * number]}
        found = counted(*save(World(document, records), tmp_path / str(number)))
        assert found == published(document, records)
        assert [row["COUNT"] for row in found["one"]] == [0, 1]


@pytest.mark.parametrize("form", ["csv", pytest.param("parquet", marks=pytest.mark.thorough)])
@pytest.mark.thorough
def test_lists_of_thousands_of_codes(tmp_path: Path, form: str) -> None:
    codes = [f"{number:05d}" for number in range(2000)]
    document = {
        "name": "blocks",
        "unit": "persons",
        "files": {
            "blocks": {"key": "id", "columns": {"block": {"codes": codes, "fixed": True}}},
            "persons": {"parent": {"file": "blocks", "column": "id"}, "columns": {"code": {"codes": codes[::-1]}}},
        },
        "areas": {"block": {"column": "blocks.block"}, "all": {}},
        "tables": {
            "count": {"counts": "persons", "budget": {"block": 1}},
            "codes": {"counts": "persons", "by": ["persons.code"], "budget": {"all": 1}},
        },
    }
    records = {
        "blocks": [{"id": number, "block": code} for number, code in enumerate(codes)],
        "persons": [{"id": number * number % 2000, "code": codes[number % 1900]} for number in range(9000)],
    }
    found = counted(*save(World(document, records), tmp_path, form=form))
    by_block, by_code = Counter(r["id"] for r in records["persons"]), Counter(r["code"] for r in records["persons"])
    assert [row["COUNT"] for row in found["count"]] == [by_block[number] for number in range(2000)]
    assert {row["code"]: row["COUNT"] for row in found["codes"]} == {code: by_code[code] for code in codes}
