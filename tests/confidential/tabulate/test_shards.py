"""Counts of shards add up to those of the whole, whichever units a shard holds and in whatever order shards come."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import duckdb
import numpy as np
import pytest
from census_maker import Census as MadeUp
from census_maker import Person, Place, Unit, random_census, seeded, write_csv
from described_worlds import World, make_world, save
from hypothesis import given, settings
from hypothesis import strategies as st
from phsafe_oracle import PERSON_TABLES, Config
from schemas import PL94, make_schema

from yupana.confidential.described.phsafe import checked_census, count_census
from yupana.confidential.described.records import open_described
from yupana.confidential.described.tabulate import Tabulated, merge_tabulated
from yupana.confidential.described.tabulate import tabulate as tabulate_described
from yupana.confidential.records.sources import OpenedRecords
from yupana.confidential.tabulate.block_histograms import (
    BlockEntries,
    CountedBlocks,
    _keys,
    _what_is_counted,
    merge_entries,
)
from yupana.files.columns import ColumnMap
from yupana.products.described.product import TABLES as DESCRIBED
from yupana.products.phsafe.configuration import read_config

P = TypeVar("P")
STATES = ("06", "17", "48")
GIANT = 500
SHARDS = (1, 3, 8)


def merged(random: Random, parts: Sequence[P], merge: Callable[[Sequence[P]], P]) -> list[P]:
    """Parts merged in another order all at once, and some of them before others."""
    mixed = random.sample(parts, len(parts))
    cut = random.randint(0, len(parts))
    groups = [some for some in (mixed[:cut], mixed[cut:]) if some]
    return [merge(mixed), merge([merge(some) for some in groups]), merge([merge([one]) for one in reversed(mixed)])]


def with_giant(random: Random, units: int) -> MadeUp:
    """A census with a household of 500, of whom many are alike."""
    census = random_census(random, STATES, units)
    census.geo = [
        place._replace(RTYPE=unit.RTYPE, TABBLKCOU="001", TABTRACTCE="000100", TABBLKGRPCE=block[0], TABBLK=block)
        for place, unit in zip(census.geo, census.units, strict=True)
        for block in random.choices(("1000", "1001", "2000"))
    ]
    mafid = str(next(n for n in range(100_000_001, 10**9) if all(str(n) != u.MAFID for u in census.units)))
    people = [
        Person("3", mafid, random.choice(("7", "70")), "1", "01", random.choice(("30", "36"))) for _ in range(GIANT - 1)
    ]
    census.persons += [Person("3", mafid, "50", "2", "62", "20"), *people]
    census.units.append(Unit("2", mafid, str(GIANT), "97", "2", "62", "4", "3", "07", "5"))
    census.geo.append(Place("2", mafid, STATES[0], "001", "000100", "1000", "1", "1", "1", "99999", "9999"))
    return census


@contextmanager
def sharded(whole: OpenedRecords, of_unit: dict[int, int], shards: int) -> Iterator[list[OpenedRecords]]:
    """Shards of an opened census, each in a database of its own; one more is empty."""
    with ExitStack() as stack:
        found = []
        tables: dict[str, Any] = {
            name: whole.db.sql(f"SELECT * FROM {name}").to_arrow_table()
            for name in ("persons", "units", "geo", "dropped_units")
        }
        for shard in range(shards + 1):
            db = stack.enter_context(duckdb.connect(":memory:", config={"threads": 1}))
            some = [mafid for mafid, of in of_unit.items() if of == shard]
            db.execute("CREATE TABLE here AS SELECT unnest(?::INTEGER[]) AS MAFID", [some])
            for name, table in tables.items():
                db.register("all_of_it", table)
                db.execute(f"CREATE TABLE {name} AS SELECT * FROM all_of_it SEMI JOIN here USING (MAFID)")
                db.unregister("all_of_it")
            found.append(replace(whole, db=db))
        yield found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("census")
    write_csv(folder / "data", with_giant(seeded(5), 60))
    return folder


def opened(folder: Path, taus: dict[str, int], key: str) -> Any:  # noqa: ANN401
    config = read_config(Config(STATES, taus, key).write(folder / "config.json"))
    return config, checked_census(config, folder / "data")


def told(counts: Tabulated) -> Any:  # noqa: ANN401
    return {name: of.tolist() for name, of in counts.by_level.items()}, dict(counts.left_out)


ODD = st.sampled_from([1, 2, 3, 7, GIANT - 1, GIANT, GIANT + 1])


@pytest.mark.parametrize("seed", [1])
@pytest.mark.thorough
def test_tables_of_phsafe_add_up(folder: Path, seed: int) -> None:
    random = seeded(seed)
    tables_of_phsafe_add_up(folder, seed, random.choices([1, 2, 3, 7, GIANT - 1, GIANT, GIANT + 1], k=6), "k|'é")


@pytest.mark.thorough
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10**6), taus=st.lists(ODD, min_size=6, max_size=6), key=st.sampled_from(["", "k|'é"]))
def test_any_tables_of_phsafe_add_up(folder: Path, seed: int, taus: list[int], key: str) -> None:
    tables_of_phsafe_add_up(folder, seed, taus, key)


def tables_of_phsafe_add_up(folder: Path, seed: int, taus: list[int], key: str) -> None:
    random = seeded(seed)
    config, census = opened(folder, dict(zip(PERSON_TABLES, taus, strict=True)), key)
    with census as whole:
        whole.require_valid()
        expected = told(count_census(whole, config))
        shards = random.choice(SHARDS)
        mafids = [row[0] for row in whole.db.execute("SELECT MAFID FROM units").fetchall()]
        with sharded(whole, {mafid: random.randrange(shards) for mafid in mafids}, shards) as parts:
            counts = [count_census(part, config) for part in parts]
    assert not any(of.any() for of in counts[-1].by_level.values())
    assert all(told(one) == expected for one in merged(random, counts, merge_tabulated))
    assert min(taus) == GIANT + 1 or any(expected[1].values())


@pytest.mark.thorough
def test_a_unit_in_two_shards_would_not_add_up(folder: Path) -> None:
    """Which the test above would see: truncation is by unit."""
    config, census = opened(folder, dict.fromkeys(PERSON_TABLES, 3), "")
    with census as whole:
        expected = told(count_census(whole, config))
        with sharded(whole, {}, 2) as parts:
            for number, part in enumerate(parts[:2]):
                for name in ("units", "geo"):
                    part.db.register("all_of_it", whole.db.sql(f"SELECT * FROM {name}").to_arrow_table())
                    part.db.execute(f"INSERT INTO {name} SELECT * FROM all_of_it")
                part.db.register("all_of_it", whole.db.sql("SELECT * FROM persons").to_arrow_table())
                part.db.execute(f"INSERT INTO persons SELECT * FROM all_of_it WHERE record % 2 = {number}")
            counts = [count_census(part, config) for part in parts]
    assert told(merge_tabulated(counts)) != expected


def entries(part: BlockEntries) -> list[Any]:
    return [part.place.tolist(), part.cell.tolist(), part.count.tolist()]


UNITS = make_schema(h1=("vacant", "occupied"))
RACES = make_schema(cenrace=63, votingage=2)


@pytest.mark.parametrize(("schema", "shards"), [(PL94, 3), (UNITS, 1), (RACES, 8)], ids=["persons", "units", "races"])
@pytest.mark.slow
def test_blocks_of_topdown_add_up(folder: Path, schema: Any, shards: int) -> None:  # noqa: ANN401
    random = seeded(shards)
    _, census = opened(folder, dict.fromkeys(PERSON_TABLES, 3), "")
    with census as whole:
        blocks = np.array(
            whole.db.execute(
                "SELECT DISTINCT TABBLKST::BIGINT * 10**14 + TABBLKCOU::BIGINT * 10**11 + TABTRACTCE::BIGINT * 10**5"
                " + TABBLKGRPCE * 10**4 + TABBLK FROM geo"
            ).fetchall(),
            dtype=np.int64,
        )[:, 0]
        mafids = [row[0] for row in whole.db.execute("SELECT MAFID FROM units").fetchall()]
        # One type of each kind of group quarters in every block, which tells the type of each.
        facilities = np.tile([9, 1, 0, 0, 0, 1, 0, 0], (len(blocks), 1))
        # Of persons of RELSHIP 37 and 38 in one unit nobody could say of which type that is.
        whole.db.execute(
            "CREATE TABLE alike AS SELECT * REPLACE (CASE WHEN RTYPE = 5 THEN 37 ELSE RELSHIP END::UTINYINT AS RELSHIP)"
            " FROM persons"
        )
        whole.db.execute("DROP VIEW IF EXISTS persons")
        whole.db.execute("CREATE VIEW persons AS FROM alike")
        keys = partial(_keys, _what_is_counted(schema), schema, blocks, facilities)
        counted = CountedBlocks(lambda *_: census, keys, schema.cells)
        with sharded(whole, {mafid: random.randrange(shards) for mafid in mafids}, shards) as parts:
            counts = [counted.entries(part) for part in parts]
        expected = counted.entries(whole)
    assert not len(counts[-1].count)
    found = [entries(one) for one in merged(random, counts, merge_entries)]
    assert found[0] == found[1] == found[2] == entries(merge_entries([expected]))
    one, other = (of.histogram(len(blocks)) for of in (expected, merge_entries(counts)))
    for name in ("starts", "cells", "counts"):
        assert np.array_equal(getattr(one, name), getattr(other, name))
    assert other.counts.max() > 1


def roots(world: World) -> dict[str, list[tuple[str, Any]]]:
    """Of each record the topmost that it is linked to, by file: what is in one shard."""
    files, found = world.document["files"], dict[str, list[tuple[str, Any]]]()

    def of(name: str) -> list[tuple[str, Any]]:
        if name not in found:
            parent = files[name].get("parent")
            if parent is None:
                found[name] = [(name, number) for number in range(len(world.records[name]))]
            else:
                key = files[parent["file"]]["key"]
                above = dict(zip((r[key] for r in world.records[parent["file"]]), of(parent["file"]), strict=True))
                found[name] = [above[record[parent["column"]]] for record in world.records[name]]
        return found[name]

    return {name: of(name) for name in files}


def of_folder(description: Path, data: Path) -> Tabulated:
    config = DESCRIBED.read(description)
    with open_described(config, data, None, ColumnMap()) as records:
        records.require_valid()
        return tabulate_described(records.db, config, limited=True)


@pytest.mark.parametrize("seed", [0, 2])
@pytest.mark.thorough
def test_tables_of_a_description_add_up(tmp_path: Path, seed: int) -> None:
    random, world = seeded(seed), make_world(seed)
    number = SHARDS[seed % 3]
    of_root = roots(world)
    shard_of = {root: random.randrange(number) for some in of_root.values() for root in some}
    parts = []
    for shard in range(number + 1):
        records = {
            name: [r for r, root in zip(rows, of_root[name], strict=True) if shard_of[root] == shard]
            for name, rows in world.records.items()
        }
        parts.append(of_folder(*save(World(world.document, records), tmp_path / str(shard), seed)))
    whole = of_folder(*save(world, tmp_path / "whole", seed))
    for one in merged(random, parts, merge_tabulated):
        assert one.left_out == whole.left_out
        assert {k: v.tolist() for k, v in one.by_level.items()} == {k: v.tolist() for k, v in whole.by_level.items()}


@pytest.mark.parametrize("most", [1, 7])
@pytest.mark.slow
def test_tables_by_id_add_up(tmp_path: Path, most: int) -> None:
    """All records of one id are in one shard, many of them alike."""
    random = seeded(most)
    visits = [{"patient": random.randrange(12), "kind": random.choice("ab"), "ward": "1"} for _ in range(90)]
    document = {
        "name": "visits",
        "unit": {"file": "visits", "column": "patient"},
        "files": {"visits": {"columns": {"kind": {"codes": ["a", "b"]}, "ward": {"codes": ["1", "2"]}}}},
        "areas": {"wards": {"column": "visits.ward"}},
        "tables": {
            "kinds": {
                "counts": "visits",
                "by": ["visits.kind"],
                "limit": {"per": "patient", "most": most},
                "budget": {"wards": 1},
            }
        },
    }

    def counted(name: str, chosen: Callable[[int], bool]) -> Tabulated:
        data = tmp_path / name
        data.mkdir()
        (data / "SYNTHETIC").touch()
        rows = [f"{v['patient']},{v['kind']},{v['ward']}" for v in visits if chosen(int(v["patient"]))]
        (data / "visits.csv").write_text("\n".join(["patient,kind,ward", *rows, ""]))
        (tmp_path / f"{name}.json").write_text(json.dumps(document))
        return of_folder(tmp_path / f"{name}.json", data)

    parts = [counted(str(shard), lambda patient, shard=shard: patient % 3 == shard) for shard in range(4)]
    whole = counted("whole", lambda _: True)
    assert whole.left_out["kinds"] > 0
    for one in merged(random, parts, merge_tabulated):
        assert one.left_out == whole.left_out
        assert one.by_level["kinds/wards"].tolist() == whole.by_level["kinds/wards"].tolist()
