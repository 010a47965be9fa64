"""What breaks rules adds up over shards, and is told in the same words however records are cut into these."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import reduce
from operator import add
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pytest
from census_maker import Census as MadeUp
from census_maker import random_census, seeded, write_csv, write_parquet
from detailed_maker import CODES, sound_world, write_world
from detailed_maker import World as DetailedWorld
from detailed_relations import opened
from hypothesis import given, settings
from hypothesis import strategies as st

from yupana.confidential.records.phsafe_records import (
    FILES,
    RULES,
    Census,
    CheckedRecords,
    check_domains,
    check_units,
    open_census,
    word_domains,
    word_units,
)
from yupana.confidential.records.safetab_files import (
    count_races_after_blank,
    count_values,
    find_places,
    find_rules,
    word_places,
    word_rules,
)
from yupana.confidential.records.safetab_records import RECORDS, Kind, _count_by_block
from yupana.confidential.records.sources import PART_SHIFT, find_broken
from yupana.confidential.records.validation import MOST_LINES, BrokenRecords, Finding, add_broken
from yupana.products.phsafe.configuration import Policy

STATES = frozenset({6, 17, 36, 50})
POLICIES = {"final_pop": Policy.DROP, "own_child": Policy.DROP, "couple": Policy.FAIL}


def spoilt(random: Random) -> MadeUp:
    """A census with broken rules of every kind: domains, keys, links, states, consistency."""
    census = random_census(random, ("06", "17", "48"), random.choice((3, 60, 400)), breaks_rules=True)

    def some(rows: list[Any]) -> list[int]:
        return random.sample(range(len(rows)), min(len(rows), random.choice((0, 0, 1, 30))))

    for rows in (census.persons, census.units, census.geo):
        for column, value in (("RTYPE", "7"), ("MAFID", "12"), ("MAFID", str(random.randrange(10**8, 10**9)))):
            for at in some(rows):
                rows[at] = rows[at]._replace(**{column: value})
        rows += [rows[at] for at in some(rows)]
    for at in some(census.persons):
        census.persons[at] = census.persons[at]._replace(QAGE="116")
    for at in some(census.geo):
        del census.geo[at if at < len(census.geo) else -1]
    return census


def in_parts(data: Path, parts: int) -> None:
    """Cut the Parquet files into parts, row by row in turn."""
    for name in ("persons", "units", "geo"):
        whole = (data / f"{name}.parquet").rename(data / "whole")
        (data / f"{name}.parquet").mkdir()
        with duckdb.connect() as db:
            for part in range(parts):
                db.execute(
                    f"COPY (SELECT * EXCLUDE n FROM (SELECT *, row_number() OVER () AS n FROM read_parquet('{whole}'))"
                    f" WHERE n % {parts} = {part}) TO '{data}/{name}.parquet/{part:03}.parquet' (FORMAT parquet)"
                )
        whole.unlink()


@contextmanager
def sharded(whole: Census, random: Random, shards: int) -> Iterator[list[duckdb.DuckDBPyConnection]]:
    """Databases of units by chance, and of records without a key by chance; the last is empty."""
    with ExitStack() as stack:
        databases = [stack.enter_context(duckdb.connect(":memory:", config={"threads": 1})) for _ in range(shards + 1)]
        key = random.randrange(10**6)
        for name in ("persons", "units", "geo"):
            table = whole.db.sql(f"SELECT * FROM {name}").to_arrow_table()
            for shard, db in enumerate(databases):
                db.register("all_of_it", table)
                of = f"hash(coalesce(MAFID, record) + {key}) % {shards}"
                db.execute(f"CREATE TABLE {name} AS SELECT * FROM all_of_it WHERE {of} = {shard}")
                db.unregister("all_of_it")
        yield databases


def summed(random: Random, parts: list[CheckedRecords]) -> CheckedRecords:
    """In any order, some before others."""
    mixed = random.sample(parts, len(parts))
    cut = random.randint(1, len(mixed) - 1)
    return reduce(add, mixed[:cut]) + reduce(add, mixed[cut:])


def told(whole: Census, random: Random, shards: int) -> list[Finding]:
    findings = []
    with sharded(whole, random, shards) as databases:
        for schema in FILES:
            checked = summed(random, [check_domains(db, schema) for db in databases])
            findings += word_domains(checked, whole.files[schema.name], schema)
        checked = summed(random, [check_units(db, STATES, POLICIES, RULES) for db in databases])
        dropped = {row for db in databases for row in db.execute("FROM dropped_units").fetchall()}
    assert dropped == set(whole.db.execute("FROM dropped_units").fetchall())
    return findings + word_units(checked, whole.files, STATES, POLICIES, RULES)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("form", ["csv", "one file", "25 files"])
@pytest.mark.parametrize("seed", range(8))
def test_the_words_are_those_of_one_shard(tmp_path: Path, seed: int, form: str) -> None:
    random = seeded(seed)
    if form == "csv":
        write_csv(tmp_path / "data", spoilt(random))
    else:
        write_parquet(tmp_path / "data", spoilt(random), "text")
        if form == "25 files":
            in_parts(tmp_path / "data", 25)
    with open_census(tmp_path / "data", states=STATES, policies=POLICIES) as whole:
        expected = list(whole.findings)
        for shards in (1, 3, 8):
            assert [*map(str, told(whole, random, shards))] == [*map(str, expected)]
        assert told(whole, random, 3) == expected


def test_the_worlds_break_every_rule(tmp_path: Path) -> None:
    """Otherwise agreement above would mean little."""
    found: list[Finding] = []
    for seed in range(8):
        write_csv(tmp_path / str(seed), spoilt(seeded(seed)))
        with open_census(tmp_path / str(seed), states=STATES, policies=POLICIES) as whole:
            found += whole.findings
    links = {"unique_mafid", "person_has_unit", "geography_has_unit", "unit_has_geography", "state_in_filter"}
    assert {finding.rule for finding in found} >= {*links, "domain", "state_present", *(rule.name for rule in RULES)}
    assert any(finding.dropped for finding in found)
    assert any((finding.count or 0) > MOST_LINES for finding in found)


def spoilt_details(random: Random, kind: str) -> DetailedWorld:
    """Many records, some with values that no column has, codes that there are not, or in blocks that there are not."""
    world = sound_world(kind)
    records = []
    for _ in range(random.choice((4, 200))):
        row = dict(random.choice(world.records))
        for column in random.sample(sorted(row), random.choice((0, 0, 0, 1, 2))):
            row[column] = random.choice(("x", "1234", "Null", "0", "17", "9999"))
        if random.random() < 0.1:
            row |= {"QRACE2": "Null", "QRACE3": "1010"}
        if random.random() < 0.2:
            row["TABBLK"] = random.choice(("1000", "1001", "2000", "3000"))
        records.append(row)
    return DetailedWorld(kind, records, world.blocks, world.housing)


@pytest.mark.parametrize(
    ("kind", "parquet"),
    [
        ("person-records", False),
        ("household-records", True),
        pytest.param("person-records", True, marks=pytest.mark.thorough),
        pytest.param("household-records", False, marks=pytest.mark.thorough),
    ],
)
def test_what_breaks_the_rules_of_detailed_records_adds_up(tmp_path: Path, kind: Kind, *, parquet: bool) -> None:
    schema, found = RECORDS[kind], set[str]()
    for seed in range(12):
        random = seeded(seed)
        write_world(tmp_path / str(seed), spoilt_details(random, kind), parquet=parquet)
        with opened(tmp_path / str(seed), kind) as whole, ExitStack() as stack:
            rows = whole.db.sql(f"SELECT * FROM {schema.relation}").to_arrow_table()
            blocks = whole.db.sql("SELECT * FROM blocks").to_arrow_table()
            shards = random.choice((1, 3, 8))
            rules, places = [], []
            for shard in range(shards + 1):
                db = stack.enter_context(duckdb.connect(":memory:", config={"threads": 1}))
                for name, table in (("rows_now", rows), ("blocks_now", blocks)):
                    db.register(name, table)
                own = f"hash(record + {seed}) % {shards} = {shard}"
                db.execute(f"CREATE TABLE {schema.relation} AS SELECT * FROM rows_now WHERE {own}")
                db.execute("CREATE TABLE blocks AS FROM blocks_now")
                db.execute(f"CREATE VIEW records AS SELECT * FROM {schema.relation} WHERE TABBLKST IN (6, 17)")
                _count_by_block(db)
                _, broken = count_values(db, schema.relation, schema.columns, CODES)
                broken += count_races_after_blank(db, schema.relation)
                rules.append(find_rules(db, schema, CODES, broken))
                places.append(find_places(db, schema, households=kind == "household-records"))
            random.shuffle(rules)
            random.shuffle(places)
            source = whole.files["records"]
            told = word_rules(reduce(add_broken, rules), source, schema, CODES)
            told += word_places(reduce(add_broken, places), source)
            assert told == list(whole.findings)
            found |= {finding.rule for finding in told}
    assert found >= {"domain", "known_code", "race_after_null", "block_in_reference"}
    assert ("block_has_housing_unit" in found) == (kind == "household-records")


NUMBERED = st.integers(0, 60).flatmap(lambda part: st.integers(1, 40).map(lambda row: (part << PART_SHIFT) + row))
SHARDS = st.lists(st.lists(NUMBERED, max_size=80), min_size=3, max_size=3)


def broken(records: list[int]) -> BrokenRecords:
    """What plain Python finds."""
    by_part: dict[int, list[int]] = {}
    for record in sorted(records):
        by_part.setdefault(record >> PART_SHIFT, []).append(record)
    first = {part: tuple(of[:MOST_LINES]) for part, of in list(by_part.items())[:MOST_LINES]}
    return BrokenRecords({part: len(of) for part, of in by_part.items()}, first)


@settings(max_examples=100, deadline=None)
@given(SHARDS)
def test_sums_are_associative_and_commutative_and_those_of_all_records(shards: list[list[int]]) -> None:
    a, b, c = map(broken, shards)
    whole = broken([record for shard in shards for record in shard])
    assert a + b == b + a
    assert (a + b) + c == a + (b + c) == whole
    assert list((a + (b + c)).counts) == list(whole.counts)
    assert list((c + a + b).first) == list(whole.first)
    assert a + BrokenRecords({}, {}) == a
    assert whole.count == sum(map(len, shards))


@settings(max_examples=20, deadline=None)
@given(st.lists(NUMBERED, max_size=300))
def test_a_database_finds_what_plain_python_does(records: list[int]) -> None:
    with duckdb.connect(":memory:") as db:
        db.execute("CREATE TABLE these AS SELECT unnest(?::BIGINT[]) AS record", [records])
        assert find_broken(db, "these", "true") == broken(records)
