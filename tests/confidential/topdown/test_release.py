"""What TopDown writes, against sums in plain Python over the blocks; and the check that finds every change."""

import shutil
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import duckdb
import numpy as np
import pytest
from block_spines import make_spine
from census_maker import seeded
from hypothesis import given
from hypothesis import strategies as st
from schemas import PL94, make_schema
from spine_maker import Block, random_blocks, read_table, write_reference

from yupana.errors import ConfigError
from yupana.geography.assignments import read_with_areas
from yupana.geography.published import published_blocks
from yupana.geography.settings import DEFAULT_LEVELS
from yupana.geography.spine import Geolevel, Spine
from yupana.geography.tree import Tree
from yupana.products.topdown import agreement, in_order, outputs
from yupana.products.topdown import rows as file_rows
from yupana.products.topdown.agreement import verify_release
from yupana.products.topdown.outputs import (
    FilePiece,
    check_labels,
    describe_files,
    write_in_order,
    write_outputs,
    write_spine,
)
from yupana.products.topdown.tables import levels_of
from yupana.release.folder import write_manifest
from yupana.release.lines import digits, join, texts, whole
from yupana.release.release import read_release
from yupana.release.tables import Format
from yupana.topdown import histogram
from yupana.topdown.histogram import Histogram, count_entries
from yupana.topdown.queries import Schema

LABELLED = make_schema(sex=("männlich", "female"), order=3)
H1 = make_schema(h1=2)
Cell = tuple[str, ...]


@dataclass(frozen=True)
class Made:
    """A release and what is in it, in plain Python: counts of blocks by labels, and where blocks lie."""

    folder: Path
    schema: Schema
    spine: Spine
    blocks: dict[str, Block]
    counts: Counter[tuple[str, Cell]]
    facilities: dict[str, int]

    def sums(self, area: Callable[[Block], str]) -> Counter[tuple[str, ...]]:
        found: Counter[tuple[str, ...]] = Counter()
        for (block, cell), count in self.counts.items():
            if name := area(self.blocks[block]):
                found[name, *cell] += count
        return found


def random_counts(random: Random, schema: Schema, units: int, number: int) -> Histogram:
    unit = [random.randrange(units) for _ in range(number)]
    cell = [random.randrange(schema.cells) for _ in range(number)]
    count = [random.choice((1, 1, 2, 7, 1200)) for _ in range(number)]
    return count_entries(
        np.array(unit, dtype=np.int64), np.array(cell, dtype=np.int32), np.array(count, dtype=np.int64), units
    )


@cache
def once(schema: Schema, fmt: Format = "csv") -> tuple[TemporaryDirectory[str], Made]:
    """A release that is made once."""
    place = TemporaryDirectory()
    return place, make(Path(place.name) / "out", schema, 1, fmt=fmt)


def copied(folder: Path, schema: Schema, fmt: Format = "csv") -> Made:
    """A copy of it, to be spoiled."""
    _, made = once(schema, fmt)
    return replace(made, folder=Path(shutil.copytree(made.folder, folder / "out")))


def make(folder: Path, schema: Schema, seed: int, *, optimized: bool = False, fmt: Format = "csv") -> Made:
    random = seeded(seed)
    blocks = random_blocks(random)
    folder.mkdir(parents=True, exist_ok=True)
    listed = write_reference(folder.parent / f"{folder.name}.txt", blocks)
    districts = folder.parent / f"{folder.name}.csv"
    rows = [f"{b.geocode},{_district(b)},{b.cousub[1:4]},{_ward(b)}" for b in blocks]
    districts.write_text("\n".join(["block,VTD,SLDU,ward", *rows]) + "\n", encoding="utf-8")
    reference, _ = read_with_areas(listed, (), [districts], schools=False)
    # The spine leaves some blocks out, as that of blocks where somebody can live does.
    live = np.array([random.random() < 0.8 for _ in range(len(reference.block))])
    spine = make_spine(reference.keep(live), optimized=optimized)
    counts = random_counts(random, schema, len(spine.blocks), {3: 3, 4: 0}.get(seed, 200))
    standing = np.array([[random.randrange(3) for _ in range(8)] for _ in range(len(spine.blocks))])
    published = published_blocks(reference, nation=True)
    written = write_outputs(folder, spine, published, schema, counts, facilities=standing, fmt=fmt)
    written |= write_spine(folder, spine)
    write_manifest(folder, {"yupana": "0", "tables": describe_files(folder, written)})
    names = [f"{block:016d}" for block in spine.blocks.tolist()]
    held: Counter[tuple[str, Cell]] = Counter()
    for unit in range(counts.units):
        for entry in range(counts.starts[unit], counts.starts[unit + 1]):
            levels = np.unravel_index(int(counts.cells[entry]), schema.shape)
            cell = tuple(a.labels[int(level)] for a, level in zip(schema.attributes, levels, strict=True))
            held[names[unit], cell] = int(counts.counts[entry])
    quarters = {name: int(row[1:].sum()) for name, row in zip(names, standing, strict=True)}
    return Made(folder, schema, spine, {b.geocode: b for b in blocks}, held, quarters)


def _district(block: Block) -> str:
    """Voting districts, the last of a county without a code of its own."""
    return f"0{block.number[1:3]}A" if int(block.number) % 3 else ""


def _ward(block: Block) -> str:
    return ("Nord", "süd", "", "1 a")[int(block.number) % 4]


def rows_of(path: Path) -> list[dict[str, str]]:
    if path.suffix == ".csv":
        return read_table(path)
    with duckdb.connect() as db:
        found = db.execute("SELECT * FROM read_parquet(?)", [str(path)])
        names = [column[0] for column in found.description]
        return [dict(zip(names, map(str, row), strict=True)) for row in found.fetchall()]


def counted(path: Path, schema: Schema) -> Counter[tuple[str, ...]]:
    found: Counter[tuple[str, ...]] = Counter()
    for row in rows_of(path):
        assert list(row) == ["geounit", *schema.names, "count"]
        key = (row["geounit"], *(row[name] for name in schema.names))
        assert key not in found
        assert int(row["count"]) > 0
        found[key] = int(row["count"])
    return found


AREAS: dict[str, Callable[[Block], str]] = {
    "state": lambda b: b.state,
    "county": lambda b: b.state + b.county,
    "tract": lambda b: b.state + b.county + b.tract,
    "block_group": lambda b: b.state + b.county + b.tract + b.group,
    "block": lambda b: b.geocode,
    "place": lambda b: b.state + b.place if b.place != "99999" else "",
    "county_subdivision": lambda b: b.state + b.county + b.cousub if b.cousub != "99999" else "",
    "aiannh": lambda b: b.aiannh if b.aiannh != "9999" else "",
    "us": lambda _: "US",
    "place_county": lambda b: b.state + b.place + b.county if b.place != "99999" else "",
    "state_aiannh": lambda b: b.state + b.aiannh if b.aiannh != "9999" else "",
    "voting_district": lambda b: b.state + b.county + _district(b) if _district(b) else "",
    "state_upper": lambda b: b.state + b.cousub[1:4] if b.cousub[1:4] != "999" else "",
    "ward": _ward,
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("schema", [LABELLED, H1, PL94], ids=["labels", "units", "persons"])
@pytest.mark.parametrize(
    ("optimized", "fmt", "seed"), [(False, "csv", 1), (True, "csv", 2), (True, "parquet", 3), (False, "parquet", 4)]
)
@pytest.mark.slow
def test_counts_and_tabulation_are_sums_of_blocks(
    tmp_path: Path, schema: Schema, *, optimized: bool, fmt: Format, seed: int
) -> None:
    made = make(tmp_path / "out", schema, seed, optimized=optimized, fmt=fmt)
    of_block = {row["block"]: row for row in read_table(made.folder / "spine" / "blocks.csv")}
    for level in DEFAULT_LEVELS:
        expected = made.sums(lambda b, level=level: of_block[b.geocode][level])  # type: ignore[misc]
        assert counted(made.folder / "counts" / f"{level}.{fmt}", schema) == expected
    for name, area in AREAS.items():
        path = made.folder / "tabulation" / f"{name}.{fmt}"
        assert counted(path, schema) == made.sums(area)
        units = [row["geounit"] for row in rows_of(path)]
        assert units == sorted(units)
    assert {path.stem for path in (made.folder / "tabulation").iterdir()} == set(AREAS)
    assert verify_release(made.folder, schema, DEFAULT_LEVELS) == []
    assert read_release(made.folder).wrong() == []


@pytest.mark.slow
def test_records_of_any_schema_are_blocks_and_attributes() -> None:
    _, made = once(LABELLED)
    rows = read_table(made.folder / "microdata.csv")
    assert list(rows[0]) == ["block", "sex", "order"]
    assert Counter((row["block"], (row["sex"], row["order"])) for row in rows) == made.counts


@pytest.mark.thorough
def test_records_of_persons_are_those_of_the_mdf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_rows, "ROWS_AT_ONCE", 37)
    monkeypatch.setattr(histogram, "UNITS_AT_ONCE", 11)
    made = make(tmp_path / "out", PL94, 1)
    rows = read_table(made.folder / "microdata.csv")
    assert [row["EPNUM"] for row in rows] == [f"{number:09d}" for number in range(1, len(rows) + 1)]
    found = Counter[tuple[str, Cell]]()
    for row in rows:
        assert (row["SCHEMA_TYPE_CODE"], row["SCHEMA_BUILD_ID"]) == ("MPD", "1.1.0")
        assert row["RTYPE"] == ("3" if row["GQTYPE_PL"] == "0" else "5")
        assert len(row["CENRACE"]) == 2
        block = "".join(row[name] for name in ("TABBLKST", "TABBLKCOU", "TABTRACTCE", "TABBLKGRPCE", "TABBLK"))
        codes = (row["GQTYPE_PL"], *(str(int(row[name]) - 1) for name in ("VOTING_AGE", "CENHISP", "CENRACE")))
        found[block, codes] += 1
    assert found == made.counts


@pytest.mark.slow
def test_records_of_units_list_group_quarters_too() -> None:
    _, made = once(H1)
    found = Counter[tuple[str, str, str]]()
    for row in read_table(made.folder / "microdata.csv"):
        assert row["SCHEMA_TYPE_CODE"] == "MUD"
        block = "".join(row[name] for name in ("TABBLKST", "TABBLKCOU", "TABTRACTCE", "TABBLKGRPCE", "TABBLK"))
        found[block, row["RTYPE"], row["HH_STATUS"]] += 1
    expected = Counter({(block, "2", {"0": "2", "1": "1"}[cell[0]]): n for (block, cell), n in made.counts.items()})
    assert found == expected + Counter({(block, "4", "0"): n for block, n in made.facilities.items()})


@pytest.mark.parametrize(
    ("schema", "names"), [(PL94, ("P1", "P2", "P3", "P4", "P5")), (H1, ("H1",)), (LABELLED, ("T1",))]
)
def test_tables_hold_every_area(schema: Schema, names: tuple[str, ...]) -> None:
    _, made = once(schema)
    assert {path.stem for path in (made.folder / "tables").glob("*")} == set(names)
    areas = {level: {area(b) for b in made.blocks.values()} - {""} for level, area in AREAS.items() if level != "block"}
    for name in names:
        rows = read_table(made.folder / "tables" / f"{name}.csv")
        blocks = {row["GEOCODE"]: row for row in rows if row["SUMLEV"] == "750"}
        assert blocks.keys() == {b.geocode[:11] + b.geocode[12:] for b in made.blocks.values()}
        for level, all_there_are in areas.items():
            assert {row["GEOCODE"] for row in rows if row["SUMLEV"] == levels_of([level])[level]} == all_there_are
        first = next(variable for variable in rows[0] if variable.endswith("0001"))
        totals = Counter[str]()
        for (block, cell), count in made.counts.items():
            kept = {"P3": cell[1:2] == ("1",), "P4": cell[1:2] == ("1",), "P5": cell[0] != "0"}.get(name, True)
            totals[block[:11] + block[12:]] += count * kept
        assert {code: int(row[first]) for code, row in blocks.items()} == {code: totals[code] for code in blocks}


def _moved(rows: list[str]) -> list[str]:
    """Blocks of the ward Nord as blocks of a ward that was not there."""
    return [row.replace("|Nord", "|nord") for row in rows]


def without(rows: list[str], row: str) -> list[str]:
    return [other for other in rows if other != row]


CHANGES: dict[str, tuple[str, Callable[[list[str]], list[str]]]] = {
    "a count of a block": ("counts/Block.csv", lambda rows: [rows[0], rows[1] + "0", *rows[2:]]),
    "a count of a county": ("counts/County.csv", lambda rows: [*rows[:-1], rows[-1] + "0"]),
    "a row less": ("counts/Tract.csv", lambda rows: rows[:-1]),
    "a row twice": ("counts/Block_Group.csv", lambda rows: [*rows, rows[-1]]),
    "no number": ("counts/Block.csv", lambda rows: [rows[0], rows[1][:-1] + "x", *rows[2:]]),
    "a tract": ("tabulation/tract.csv", lambda rows: [*rows[:-1], rows[-1] + "0"]),
    "a place": ("tabulation/place.csv", lambda rows: [*rows[:-1], rows[-1] + "0000"]),
    "a district": ("tabulation/voting_district.csv", lambda rows: [*rows[:-1], rows[-1] + "0"]),
    "another district of a block": ("areas/blocks.csv", _moved),
    "a block without areas": ("areas/blocks.csv", lambda rows: rows[:20]),
    "no areas": ("areas/blocks.csv", lambda _: []),
    "a total of a ward": (
        "tables/P2.csv",
        lambda rows: [row + "1" if row.startswith("ward|Nord|") else row for row in rows],
    ),
    "a place twice": ("tabulation/place.csv", lambda rows: [*rows, rows[-1]]),
    "a record less": ("microdata.csv", lambda rows: rows[:-1]),
    "another record": ("microdata.csv", lambda rows: [rows[0], rows[1][:-2] + "99", *rows[2:]]),
    "another type": (
        "microdata.csv",
        lambda rows: [rows[0], rows[1].replace("|3|0|", "|5|0|").replace("|5|1|", "|3|1|"), *rows[2:]],
    ),
    "a field more": ("microdata.csv", lambda rows: [rows[0], rows[1] + "|", *rows[2:]]),
    "a total": ("tables/P1.csv", lambda rows: [*rows[:-1], rows[-1] + "1"]),
    "an area less": ("tables/P3.csv", lambda rows: [row for row in rows if not row.startswith("040|17")]),
    "a block less in a table": ("tables/P2.csv", lambda rows: rows[:-1]),
    "an empty block group less": (
        "tables/P1.csv",
        lambda rows: without(rows, next(row for row in rows if row.startswith("150|") and row.endswith("|0|0"))),
    ),
    "a block less": ("spine/blocks.csv", lambda rows: [rows[0], *rows[30:]]),
    "another column": ("counts/State.csv", lambda rows: [rows[0].replace("hhgq", "gq"), *rows[1:]]),
    "no table": ("tables/P5.csv", lambda _: []),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.slow
def test_the_check_finds_every_change(tmp_path: Path, name: str) -> None:
    made = copied(tmp_path, PL94)
    file, change = CHANGES[name]
    path = made.folder / file
    rows = path.read_text().splitlines()
    changed = change(rows)
    assert changed != rows
    path.write_text("".join(f"{row}\n" for row in changed)) if changed else path.unlink()
    assert verify_release(made.folder, PL94, DEFAULT_LEVELS) != []
    assert any(file in fault for fault in read_release(made.folder).wrong())


@pytest.mark.parametrize("schema", [PL94, H1], ids=["persons", "units"])
def test_blocks_with_codes_of_any_form_have_plain_records(tmp_path: Path, schema: Schema) -> None:
    _, made = once(schema, "csv")
    for any_codes in (False, True):
        (section,) = file_rows.record_file(tmp_path, schema, made.spine, None, any_codes=any_codes).sections
        assert isinstance(section, file_rows.RecordSection)
        assert (section.columns == ("block", *schema.names)) == any_codes
        assert (section.heads(0, 3) == made.spine.levels[-1].texts()[:3]).all() == any_codes


CHANGES_OF_UNITS: dict[str, Callable[[list[str]], list[str]]] = {
    "a housing unit less": lambda rows: without(rows, next(row for row in rows if "|2|" in row[-5:])),
    "a unit twice": lambda rows: [*rows, next(row for row in rows if row.endswith("|2|1"))],
    "another status": lambda rows: _once(rows, "|2|1", "|2|2"),
    "a status that there is not": lambda rows: _once(rows, "|2|1", "|2|7"),
    "group quarters with a status": lambda rows: _once(rows, "|4|0", "|4|1"),
    "group quarters for a housing unit": lambda rows: _once(rows, "|2|2", "|4|0"),
    "group quarters of no block": lambda rows: _once(rows, "|4|0", "|4|0", of_block="9999"),
    "a field more": lambda rows: [rows[0], rows[1] + "|", *rows[2:]],
}


def _once(rows: list[str], ending: str, other: str, of_block: str = "") -> list[str]:
    """The rows with another ending of the first that has this one, and if asked another number of its block."""
    at = next(place for place, row in enumerate(rows) if row.endswith(ending))
    *start, block = rows[at].removesuffix(ending).split("|")
    return [*rows[:at], "|".join([*start, of_block or block]) + other, *rows[at + 1 :]]


@pytest.mark.parametrize("name", CHANGES_OF_UNITS)
@pytest.mark.slow
def test_the_check_finds_every_change_of_records_of_units(tmp_path: Path, name: str) -> None:
    made = copied(tmp_path, H1)
    assert verify_release(made.folder, H1, DEFAULT_LEVELS) == []
    path = made.folder / "microdata.csv"
    rows = path.read_text().splitlines()
    changed = CHANGES_OF_UNITS[name](rows)
    assert changed != rows
    path.write_text("".join(f"{row}\n" for row in changed))
    (fault,) = verify_release(made.folder, H1, DEFAULT_LEVELS)
    assert fault.startswith("microdata.csv does not agree with the counts of the blocks in ")


def _small(monkeypatch: pytest.MonkeyPatch, seed: int, threads: int = 2) -> None:
    """Parts, stretches and reads of odd sizes, so that every file is made of many of them."""
    monkeypatch.setattr(histogram, "UNITS_AT_ONCE", (1, 5, 17)[seed % 3])
    monkeypatch.setattr(file_rows, "ROWS_AT_ONCE", (3, 1, 29)[seed % 3])
    monkeypatch.setattr(file_rows, "_AREAS_AT_ONCE", (2, 7, 1)[seed % 3])
    monkeypatch.setattr(in_order, "_ROWS_AT_ONCE", (2, 31, 8)[seed % 3])
    monkeypatch.setattr(in_order, "_BYTES_AT_ONCE", (200, 999, 4096)[seed % 3])
    monkeypatch.setattr(in_order, "workers", lambda: threads)
    monkeypatch.setattr(outputs, "workers", lambda: threads)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("schema", [LABELLED, H1, PL94], ids=["labels", "units", "persons"])
@pytest.mark.parametrize(("threads", "seed"), [(1, 0), (2, 1), (3, 2), (3, 4)])
@pytest.mark.slow
def test_the_bytes_are_the_same_in_any_parts_and_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, schema: Schema, *, threads: int, seed: int
) -> None:
    whole = make(tmp_path / "whole", schema, seed, optimized=seed > 0)
    _small(monkeypatch, seed, threads)
    parts = make(tmp_path / "parts", schema, seed, optimized=seed > 0)
    files = {path.relative_to(whole.folder) for path in whole.folder.rglob("*") if path.is_file()}
    assert {path.relative_to(parts.folder) for path in parts.folder.rglob("*") if path.is_file()} == files
    assert all((parts.folder / file).read_bytes() == (whole.folder / file).read_bytes() for file in files)


def _any_order(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that are not as they would have been written, in place of comparing their rows in any order."""
    asked: list[str] = []

    def faults(_release: object, files: Iterable[file_rows.RowsFile], *_: object) -> list[str]:
        found = [file.path.name for file in files]
        asked.extend(found)
        return found

    monkeypatch.setattr(agreement._ReleaseAgreement, "_faults_of", faults)
    return asked


@pytest.mark.sampled(1)
@pytest.mark.parametrize("schema", [LABELLED, H1, PL94], ids=["labels", "units", "persons"])
@pytest.mark.parametrize(
    ("optimized", "fmt", "seed"), [(False, "csv", 1), (True, "csv", 2), (True, "parquet", 3), (False, "parquet", 4)]
)
@pytest.mark.slow
def test_what_stands_as_written_is_compared_as_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, schema: Schema, *, optimized: bool, fmt: Format, seed: int
) -> None:
    made = make(tmp_path / "out", schema, seed, optimized=optimized, fmt=fmt)
    _small(monkeypatch, seed)
    asked = _any_order(monkeypatch)
    verify_release(made.folder, schema, DEFAULT_LEVELS)
    assert asked == []


@pytest.mark.slow
def test_comparing_as_it_is_read_finds_every_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = copied(tmp_path, PL94)
    for name, (file, change) in CHANGES.items():
        path = made.folder / file
        sound = path.read_text()
        changed = change(sound.splitlines())
        path.write_text("".join(f"{row}\n" for row in changed)) if changed else path.unlink()
        _any_order(monkeypatch)
        assert verify_release(made.folder, PL94, DEFAULT_LEVELS) != [], name
        path.write_text(sound)


STORED: dict[str, tuple[str, str]] = {
    "a count of a block": ("counts/Block", "count + (row = 3)::INTEGER AS count"),
    "a count of a county": ("counts/County", "count + (row = 3)::INTEGER AS count"),
    "a ward": ("tabulation/ward", "CASE WHEN row = 3 THEN 'west' ELSE geounit END AS geounit"),
    "a tract": ("tabulation/tract", "CASE WHEN row = 3 THEN '1' || geounit ELSE geounit END AS geounit"),
    "a level that there is not": ("counts/Tract", "CASE WHEN row = 3 THEN '9' ELSE hispanic END AS hispanic"),
    "no number": ("tabulation/place", "CASE WHEN row = 3 THEN NULL ELSE count END AS count"),
}
"""A file of Parquet, and the column that is changed in it."""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", STORED)
@pytest.mark.thorough
def test_the_check_finds_every_change_in_parquet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    made = copied(tmp_path, PL94, "parquet")
    file, change = STORED[name]
    path = made.folder / f"{file}.parquet"
    with duckdb.connect() as db:
        numbered = f"SELECT *, row_number() OVER () AS row FROM '{path}'"
        db.execute(f"CREATE TABLE changed AS SELECT * EXCLUDE (row) REPLACE ({change}) FROM ({numbered}) ORDER BY row")
        db.execute(f"COPY changed TO '{path}' (FORMAT parquet)")
    assert verify_release(made.folder, PL94, DEFAULT_LEVELS) != []
    asked = _any_order(monkeypatch)
    verify_release(made.folder, PL94, DEFAULT_LEVELS)
    assert asked


@pytest.mark.thorough
def test_rows_in_another_order_are_as_good(tmp_path: Path) -> None:
    made = copied(tmp_path, PL94)
    for file in ("counts/Block.csv", "counts/County.csv", "tabulation/place.csv", "tables/P1.csv", "microdata.csv"):
        path = made.folder / file
        header, *rows = path.read_text().splitlines()
        path.write_text("".join(f"{row}\n" for row in [header, *reversed(rows)]))
    assert verify_release(made.folder, PL94, DEFAULT_LEVELS) == []


@pytest.mark.thorough
def test_a_file_that_is_there_in_both_forms_is_told(tmp_path: Path) -> None:
    made = copied(tmp_path, PL94)
    (made.folder / "counts" / "County.parquet").write_bytes(b"")
    assert verify_release(made.folder, PL94, DEFAULT_LEVELS) == [
        "counts/County is missing, or there both as CSV and as Parquet"
    ]


def test_parts_of_a_bypassed_unit_are_read_by_their_numbers() -> None:
    """They are written 1, 2, ..., 10; as texts 10 comes before 2."""
    parts = [f"01-{part}" for part in sorted(range(1, 13), key=str)]
    above = np.array([*range(12), 12], dtype=np.int32)
    tree = Tree(("US", "State", "Block"), (np.zeros(1, dtype=np.int32), np.zeros(13, dtype=np.int32), above))
    codes = np.array([int(label[3:]) for label in parts] + [99])
    names = (("US",), (*parts, "02"))
    levels = [Geolevel.whole(tree.names[i], 0, np.arange(len(of)), names=of) for i, of in enumerate(names)]
    written = in_order.as_written(Spine(tree, (*levels, Geolevel.whole("Block", 16, codes))))
    assert written.levels[1].labels() == [*(f"01-{part}" for part in range(1, 13)), "02"]
    assert written.blocks.tolist() == [*range(1, 13), 99]
    assert written.tree.parents[2].tolist() == list(range(13))


def test_what_fails_in_a_thread_ends_the_writing(tmp_path: Path) -> None:
    made = []

    def work(number: int) -> bytes:
        if number == 7:
            raise MemoryError
        made.append(number)
        return b"x"

    pieces = (FilePiece(tmp_path / "file", partial(work, number), 1) for number in range(1000))
    with pytest.raises(MemoryError):
        write_in_order(pieces, 2)
    assert len(made) < 20


def test_a_file_too_many_is_found(tmp_path: Path) -> None:
    made = copied(tmp_path, LABELLED)
    (made.folder / "counts" / "notes.txt").write_text("x")
    assert read_release(made.folder).wrong() == ["counts/notes.txt is not in the manifest"]


def test_names_that_a_table_cannot_hold_are_refused() -> None:
    check_labels(LABELLED)
    for schema in (
        make_schema(sex=("a|b", "c")),
        make_schema(sex=("", "c")),
        make_schema(Count=2),
        make_schema(a=2, A=2),
    ):
        with pytest.raises(ConfigError):
            check_labels(schema)


@given(st.lists(st.integers(0, 10**15), max_size=20), st.integers(16, 18))
@pytest.mark.slow
def test_numbers_become_text(values: list[int], width: int) -> None:
    array = np.array(values, dtype=np.int64)
    assert digits(array, width).tolist() == [f"{value:0{width}d}".encode() for value in values]
    assert whole(array).tolist() == [str(value).encode() for value in values]
    small = array % 7
    written = join([texts(["", "ä", "long"])[small % 3], whole(small)], b";").tolist()
    assert [row.replace(b"\0", b"") for row in written] == [
        f"{['', 'ä', 'long'][value % 7 % 3]}|{value % 7};".encode() for value in values
    ]
