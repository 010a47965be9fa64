"""The engine of population groups against counting record by record, on random blocks, questions and groups."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import numpy as np
import pytest
from safetab_worlds import seeded

from yupana.confidential.records.database import private_database
from yupana.confidential.tabulate import count_groups as engine
from yupana.confidential.tabulate import group_counts
from yupana.confidential.tabulate.count_groups import count_groups, count_shard
from yupana.confidential.tabulate.group_counts import (
    CountedAreas,
    GatheredShards,
    PartCounts,
    count_pairs,
)
from yupana.confidential.tabulate.group_tabulation import GroupAreas, GroupTabulation, ResponseColumns, find_areas
from yupana.errors import InputError
from yupana.geography.block_file import BlockAreas, BlockColumn, BlockFile
from yupana.plan.responses import ResponseGroup

Row = Mapping[str, int]


@dataclass
class GroupWorld:
    """Blocks, records and what is asked of them."""

    blocks: BlockFile
    block_rows: list[Row]
    kinds: list[BlockAreas]
    records: list[Row]
    tabulation: GroupTabulation

    def answers(self, record: Row) -> dict[str, frozenset[int]]:
        """The codes of each response."""
        return {
            name: frozenset(int(of.place[record[column]]) for column in of.columns if of.place[record[column]] >= 0)
            for name, of in self.tabulation.responses.items()
        }

    @property
    def counted(self) -> list[Row]:
        """The records that count."""
        first = self.blocks.key[0].name
        return [
            r for r in self.records if r["asked"] and (self.blocks.chosen is None or r[first] in self.blocks.chosen)
        ]

    def groups_of(self, record: Row, kind: str) -> list[int]:
        """Places of the groups a record is in."""
        answers = self.answers(record)
        return [g for g, group in enumerate(self.tabulation.spaces[kind]) if answers[group.response] in group]

    def area_of(self, row: Row, kind: BlockAreas) -> str | None:
        """The code of the area of a block."""
        if any(row[column] == value for column, value in (kind.nowhere or {}).items()):
            return None
        return kind.code or "".join(str(row[c.name]).zfill(c.digits) for c in kind.columns)

    @property
    def chosen_blocks(self) -> list[Row]:
        """The blocks that count."""
        first = self.blocks.key[0].name
        return [row for row in self.block_rows if self.blocks.chosen is None or row[first] in self.blocks.chosen]

    def live(self, kind: BlockAreas) -> list[str]:
        """The codes of the areas that are counted."""
        bare = self.block_rows[0]["housing_units"] is None
        found = {self.area_of(row, kind) for row in self.chosen_blocks if bare or row["housing_units"]}
        return sorted(code for code in found if code is not None)

    def cells(self, kind: BlockAreas) -> Counter[tuple[str, int, int]]:
        """Records by area, group and category."""
        names = [column.name for column in self.blocks.key]
        of_key = {tuple(row[name] for name in names): row for row in self.block_rows}
        live = set(self.live(kind))
        counts: Counter[tuple[str, int, int]] = Counter()
        for record in self.counted:
            area = self.area_of(of_key[tuple(record[name] for name in names)], kind)
            if area in live:
                category = int(self.tabulation.category[record["attribute"]])
                counts.update((area, group, category) for group in self.groups_of(record, kind.name))
        return counts


def random_response(random: Random, name: str, records: list[dict[str, Any]]) -> ResponseColumns:
    """A response whose numbers for none are any, and its columns in the records."""
    numbers = random.randint(1, 12)
    place = list(range(numbers)) + [-1] * random.randint(0, 2)
    random.shuffle(place)
    columns = tuple(f"{name}{number}" for number in range(random.choice([1, 1, 2, 3, 4, 5, 8])))
    few = random.sample(range(len(place)), min(len(place), random.randint(1, 4)))
    for record in records:
        for column in columns:
            record[column] = random.choice(few) if random.random() < 0.8 else random.randrange(len(place))
    return ResponseColumns(columns, np.array(place), numbers)


def random_group_world(random: Random) -> GroupWorld:
    key = tuple(BlockColumn(f"key {n}", random.choice([1, 2])) for n in range(random.randint(1, 4)))
    others = tuple(BlockColumn(name, 1) for name in ("piece", "live", "block")[: random.randint(0, 3)])
    firsts = random.sample(range(10), random.randint(1, 4))
    distinct = {
        (random.choice(firsts), *(random.randrange(random.choice([2, 10])) for _ in key[1:]))
        for _ in range(random.randint(1, 25))
    }
    listed = random.random() < 0.5
    block_rows = [
        {
            **dict(zip((c.name for c in key), values, strict=True)),
            **{c.name: random.randrange(4) for c in others},
            "housing_units": random.choice([0, 0, 3]) if listed else None,
        }
        for values in sorted(distinct)
    ]
    every = (*key, *others)
    kinds = [BlockAreas("all", (), "US")]
    for number in range(random.randint(1, 5)):
        columns = tuple(random.sample(every, random.randint(1, len(every))))
        columns = every[: random.randint(1, len(key))] if random.random() < 0.5 else columns
        nowhere = {random.choice(every).name: random.randrange(3)} if random.random() < 0.4 else None
        kinds.append(BlockAreas(f"kind {number}", columns, nowhere=nowhere))
    categories = random.choice([1, 2, 7, 300])
    records: list[dict[str, Any]] = [
        {
            **{c.name: row[c.name] for c in key},
            "asked": random.random() < 0.9,
            "attribute": random.randrange(2 * categories),
        }
        for row in random.choices(block_rows, k=random.choice([0, 5, 60]))
    ]
    responses = {name: random_response(random, name, records) for name in ("a", "b", "c")[: random.randint(1, 3)]}

    def space() -> tuple[ResponseGroup, ...]:
        groups = []
        for _ in range(random.randint(0, 8)):
            response = random.choice(list(responses))
            codes = range(responses[response].codes)
            members = frozenset(random.sample(codes, random.randint(0, min(len(codes), 5))))
            groups.append(ResponseGroup(response, members, random.random() < 0.5))
        return tuple(groups)

    shared = [space(), space()]
    tabulation = GroupTabulation(
        relation='"all records"',
        key=tuple(f'"{c.name}"' for c in key),
        where="asked",
        responses=responses,
        spaces={kind.name: random.choice(shared) for kind in kinds},
        attribute="attribute",
        category=np.array(
            [*range(categories), *(random.randrange(categories) for _ in range(categories))], dtype=np.uint16
        ),
    )
    chosen = frozenset(random.sample(firsts, random.randint(1, len(firsts)))) if random.random() < 0.5 else None
    return GroupWorld(BlockFile("blocks", key, others, chosen), block_rows, kinds, records, tabulation)


def stored(db: duckdb.DuckDBPyConnection, name: str, rows: list[Row], columns: list[str]) -> None:
    """Make a table of rows."""
    typed = ", ".join(f'"{column}" {"BOOLEAN" if column == "asked" else "BIGINT"}' for column in columns)
    db.execute(f'CREATE TABLE "{name}" ({typed})')
    if rows:
        slots = ", ".join("?" for _ in columns)
        db.executemany(f'INSERT INTO "{name}" VALUES ({slots})', [[row[column] for column in columns] for row in rows])


@contextmanager
def opened(world: GroupWorld) -> Iterator[tuple[duckdb.DuckDBPyConnection, GroupAreas]]:
    """The database of a world, and its areas."""
    key = [column.name for column in world.blocks.key]
    asked = [column for of in world.tabulation.responses.values() for column in of.columns]
    with duckdb.connect(":memory:", config={"threads": 1}) as db:
        stored(db, "blocks", world.block_rows, [*key, *(c.name for c in world.blocks.columns), "housing_units"])
        stored(db, "all records", world.records, [*key, "asked", "attribute", *asked])
        yield db, find_areas(db, world.blocks, world.kinds)


def check(world: GroupWorld, areas: GroupAreas, counted: list[CountedAreas], seed: int) -> None:
    """Compare what was counted with counting record by record."""
    tabulation, categories = world.tabulation, world.tabulation.categories
    lost = sum(not any(world.groups_of(record, kind) for kind in tabulation.spaces) for record in world.counted)
    assert sum(found.in_no_group for found in counted) == lost
    for kind in world.kinds:
        listed, groups = world.live(kind), len(tabulation.spaces[kind.name])
        assert areas.written(kind.name) == listed
        truth = np.zeros((len(listed), groups, categories), dtype=np.int64)
        for (area, group, category), count in world.cells(kind).items():
            truth[listed.index(area), group, category] = count
        draws = np.random.default_rng(seed)
        some, selected = draws.random(categories) < 0.5, draws.random(truth.shape[:2]) < 0.5
        of_kind = [found for found in counted if found.kind == kind.name]
        end = 0
        for found in of_kind:
            low, high = found.low, found.high
            assert low == end, "an area is in no slice, or in two"
            end = high
            here = truth[low:high]
            assert np.array_equal(found.totals(), here.sum(axis=2))
            assert np.array_equal(found.totals(some), here[:, :, some].sum(axis=2))
            assert np.array_equal(found.details(selected[low:high]), here[selected[low:high]])
        assert end == len(listed)


def kept(counted: Iterator[CountedAreas]) -> list[CountedAreas]:
    """What is counted, looked at while it is there: it may be on disk for no longer."""
    return [replace(found, parts=[part.within(found.low, found.high) for part in found.parts]) for found in counted]


def draw_sizes(random: Random, monkeypatch: pytest.MonkeyPatch) -> int:
    """Read, hold and give few or many at a time; how many bytes wait in memory."""
    monkeypatch.setattr(engine, "_ROWS_AT_ONCE", random.choice([1, 7, 10_000]))
    monkeypatch.setattr(group_counts, "_PAIRS_AT_ONCE", random.choice([1, 5, 10_000]))
    monkeypatch.setattr(group_counts, "_GROUPS_AT_ONCE", random.choice([1, 10, 10_000]))
    memory = random.choice([0, 1000, 10**9])
    monkeypatch.setattr(engine, "memory_for_gathered", lambda _: memory)
    return memory


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.slow
def test_counts_are_those_of_counting_record_by_record(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = seeded(seed)
    world = random_group_world(random)
    draw_sizes(random, monkeypatch)
    with opened(world) as (db, areas):
        check(world, areas, kept(count_groups(db, world.tabulation, world.blocks, areas)), seed)


def test_a_shard_that_needs_more_memory_than_there_is_is_refused_before_any_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = next(w for w in map(random_group_world, map(seeded, range(60))) if w.counted and not w.blocks.chosen)
    monkeypatch.setattr(engine, "_BYTES_OF_A_COUNTED", 10**15)
    with opened(world) as (db, areas), pytest.raises(InputError, match="more --shards"):
        count_shard(db, world.tabulation, world.blocks, areas)


@pytest.mark.thorough
def test_counts_that_are_kept_on_disk_leave_nothing_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(engine, "memory_for_gathered", lambda _: 0)
    monkeypatch.setattr(engine, "_ROWS_AT_ONCE", 1)
    written = 0
    for world in map(random_group_world, map(seeded, range(8))):
        with opened(world) as (db, areas):
            slices = count_groups(db, world.tabulation, world.blocks, areas)
            for _ in slices:
                files = [path for path in tmp_path.rglob("*") if path.is_file() and path.parent.name.isdigit()]
                written += len(files)
                assert all(path.stat().st_mode & 0o077 == 0 or private(path) for path in files)
        assert [path for path in tmp_path.glob("*/*") if path.is_dir()] == []
    assert written


def private(path: Path) -> bool:
    """Whether a folder above is its user's alone."""
    return any(parent.stat().st_mode & 0o077 == 0 for parent in path.parents)


@pytest.mark.thorough
def test_little_memory_reads_few_records_at_a_time_of_one_county_too(monkeypatch: pytest.MonkeyPatch) -> None:
    with private_database(400_000_000) as db:
        assert engine._rows_at_once(db) == pytest.approx(250_000_000 / engine._BYTES_OF_A_ROW, rel=0.01)
    read, split = engine._read, list[int]()

    def note(*arguments: Any) -> Any:  # noqa: ANN401
        chunk = arguments[3]
        split.append(chunk.records if len(chunk.bounds) > 2 else 0)
        return read(*arguments)

    monkeypatch.setattr(engine, "_read", note)
    monkeypatch.setattr(engine, "_ROWS_AT_ONCE", 3)
    for seed in range(10):
        world = random_group_world(seeded(seed))
        with opened(world) as (db, areas):
            check(world, areas, kept(count_groups(db, world.tabulation, world.blocks, areas)), seed)
    assert sum(number > 0 for number in split) > 3


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.thorough
def test_shards_add_up_to_the_whole(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever records a shard holds, none included, in whatever order shards are merged."""
    random = seeded(seed)
    world = random_group_world(random)
    memory = draw_sizes(random, monkeypatch)
    number = random.choice([1, 3, 8])
    shards: list[list[Row]] = [[] for _ in range(number)]
    for record in world.records:
        shards[random.randrange(number)].append(record)
    if number > 1:
        shards[0] += shards.pop()
        shards.append([])
    parts: list[list[PartCounts]] = []
    for records in shards:
        with opened(replace(world, records=records)) as (db, areas):
            parts.append(count_shard(db, world.tabulation, world.blocks, areas))
    random.shuffle(parts)
    with GatheredShards(memory) as gathered:
        for counted in parts:
            gathered.take([counted])
        gathered.forget()
        for counted in parts:
            gathered.take([counted])
        check(world, areas, [*gathered.each[0].areas(areas)], seed)


def test_worlds_have_what_is_hard() -> None:
    worlds = [random_group_world(seeded(seed)) for seed in range(60)]
    assert any(len(world.blocks.key) == 1 for world in worlds)
    assert any(len(world.counted) < len(world.records) for world in worlds)
    records = [(world, record) for world in worlds for record in world.records]
    columns = [
        (of.place[[record[column] for column in of.columns]], of)
        for world, record in records
        for of in world.tabulation.responses.values()
    ]
    assert any(len(set(codes[codes >= 0])) < (codes >= 0).sum() for codes, _ in columns), "no code is given twice"
    assert any(len(codes) > 4 and codes[0] < 0 <= codes[-1] for codes, _ in columns), "no column is skipped"
    assert any((of.place >= 0).all() for _, of in columns), "every response has a number for none"
    spaces = [space for world in worlds for space in world.tabulation.spaces.values()]
    alone = [[group.members for group in space if group.alone] for space in spaces]
    assert any(a & b and a - b and b - a for members in alone for a in members for b in members), "no overlap"


def test_a_record_whose_block_is_lost_stops_the_count() -> None:
    world = next(w for w in map(random_group_world, map(seeded, range(60))) if w.counted and not w.blocks.chosen)
    world.block_rows = [row for row in world.block_rows if row[world.blocks.key[0].name] != first_of(world)]
    with opened(world) as (db, areas), pytest.raises(AssertionError):
        list(count_groups(db, world.tabulation, world.blocks, areas))


def first_of(world: GroupWorld) -> int:
    """A value of the first column of the key that records have."""
    return world.counted[0][world.blocks.key[0].name]


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="1 to 8 columns"):
        ResponseColumns(("x",) * 9, np.zeros(3, dtype=np.int64), 1)
    with pytest.raises(ValueError, match="4096 categories"):
        GroupTabulation("r", ("a",), "true", {}, {}, "b", np.array([4096], dtype=np.uint16))
    shown = {"all": (ResponseGroup("race", frozenset()),)}
    with pytest.raises(ValueError, match="not given: race"):
        GroupTabulation("r", ("a",), "true", {}, shown, "b", np.array([1], dtype=np.uint8))
    wide = np.array([2**30], dtype=np.int32)
    with pytest.raises(ValueError, match="too many areas"):
        count_pairs(wide, wide, np.zeros(1, dtype=np.uint16), 4096)
    blocks = BlockFile("blocks", (BlockColumn("a", 10), BlockColumn("b", 9)))
    with duckdb.connect(":memory:") as db, pytest.raises(ValueError, match="18 digits"):
        find_areas(db, blocks, [])
