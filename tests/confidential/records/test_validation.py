"""What breaks rules adds up over parts, and is told in the same words however records are cut into these."""

from itertools import cycle
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pytest
from census_maker import Census, random_census, seeded, write_csv, write_parquet
from hypothesis import given, settings
from hypothesis import strategies as st

from yupana.confidential.records import phsafe_records
from yupana.confidential.records.phsafe_records import RULES, open_census
from yupana.confidential.records.sources import PART_SHIFT, find_broken
from yupana.confidential.records.validation import MOST_LINES, BrokenRecords, Finding
from yupana.products.phsafe.configuration import Policy

STATES = frozenset({6, 17, 36, 50})
POLICIES: dict[str, Policy] = {"final_pop": "drop-and-count", "own_child": "drop-and-count", "couple": "fail"}


def spoilt(random: Random) -> Census:
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


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("seed", "form"), list(zip(range(5), cycle(["csv", "one file", "25 files"]), strict=False)))
@pytest.mark.slow
def test_the_words_are_those_of_one_part(tmp_path: Path, seed: int, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Units are checked part by part where memory does not hold all; what is found adds up."""
    random = seeded(seed)
    if form == "csv":
        write_csv(tmp_path / "data", spoilt(random))
    else:
        write_parquet(tmp_path / "data", spoilt(random), "text")
        if form == "25 files":
            in_parts(tmp_path / "data", 25)

    def found() -> tuple[tuple[Finding, ...], set[tuple[int]]]:
        with open_census(tmp_path / "data", states=STATES, policies=POLICIES) as census:
            return census.findings, set(census.db.execute("FROM dropped_units").fetchall())

    whole = found()
    for parts in (2, 7):
        some = [f"hash(MAFID) % {parts} = {part}" for part in range(parts)]
        monkeypatch.setattr(phsafe_records, "parts_of_units", lambda _db, some=some: some)
        assert found() == whole


@pytest.mark.thorough
def test_the_worlds_break_every_rule(tmp_path: Path) -> None:
    """Otherwise agreement above would mean little."""
    found: list[Finding] = []
    for seed in range(6):
        write_csv(tmp_path / str(seed), spoilt(seeded(seed)))
        with open_census(tmp_path / str(seed), states=STATES, policies=POLICIES) as whole:
            found += whole.findings
    links = {"unique_mafid", "person_has_unit", "geography_has_unit", "unit_has_geography", "state_in_filter"}
    assert {finding.rule for finding in found} >= {*links, "domain", "state_present", *(rule.name for rule in RULES)}
    assert any(finding.dropped for finding in found)
    assert any((finding.count or 0) > MOST_LINES for finding in found)


NUMBERED = st.integers(0, 60).flatmap(lambda part: st.integers(1, 40).map(lambda row: (part << PART_SHIFT) + row))
SHARDS = st.lists(st.lists(NUMBERED, max_size=80), min_size=3, max_size=3)


def broken(records: list[int]) -> BrokenRecords:
    """What plain Python finds."""
    by_part: dict[int, list[int]] = {}
    for record in sorted(records):
        by_part.setdefault(record >> PART_SHIFT, []).append(record)
    first = {part: tuple(of[:MOST_LINES]) for part, of in list(by_part.items())[:MOST_LINES]}
    return BrokenRecords({part: len(of) for part, of in by_part.items()}, first)


@settings(max_examples=25, deadline=None)
@given(SHARDS)
@pytest.mark.thorough
def test_sums_are_associative_and_commutative_and_those_of_all_records(shards: list[list[int]]) -> None:
    a, b, c = map(broken, shards)
    whole = broken([record for shard in shards for record in shard])
    assert a + b == b + a
    assert (a + b) + c == a + (b + c) == whole
    assert list((a + (b + c)).counts) == list(whole.counts)
    assert list((c + a + b).first) == list(whole.first)
    assert a + BrokenRecords({}, {}) == a
    assert whole.count == sum(map(len, shards))


@settings(max_examples=8, deadline=None)
@given(st.lists(NUMBERED, max_size=300))
@pytest.mark.thorough
def test_a_database_finds_what_plain_python_does(records: list[int]) -> None:
    with duckdb.connect(":memory:") as db:
        db.execute("CREATE TABLE these AS SELECT unnest(?::BIGINT[]) AS record", [records])
        assert find_broken(db, "these", "true") == broken(records)
