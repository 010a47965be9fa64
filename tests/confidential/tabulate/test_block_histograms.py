"""TopDown's confidential input: histograms and microdata counted by block, against counting in plain Python."""

import csv
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import duckdb
import numpy as np
import pytest
from cef_maker import write_cef
from census_maker import Census, Codes, random_census, seeded, write_csv, write_parquet
from counted_blocks import count_all
from hypothesis import given, settings
from hypothesis import strategies as st
from schemas import PL94, make_schema
from spine_maker import random_blocks, write_reference

from yupana.confidential.request import RunRequest
from yupana.confidential.tabulate.block_histograms import check_facilities, open_block_counts
from yupana.engine.local import LocalEngine
from yupana.errors import InputError
from yupana.geography.blocks import QUARTERS_COLUMNS, quarters_in, read_facilities, read_reference
from yupana.synthetic.census import synthesize
from yupana.topdown.histogram import Histogram
from yupana.topdown.queries import Schema

CANARY = "739154826"
BLOCKS = (4400100010011000, 4400100010011001, 4400100020012000)


SMALL = make_schema(sex=("M", "F"), order=3)


def counted(h: Histogram, blocks: Sequence[int] = BLOCKS) -> Counter[tuple[int, int]]:
    found: Counter[tuple[int, int]] = Counter()
    for unit in range(h.units):
        cells = h.cells[h.starts[unit] : h.starts[unit + 1]].tolist()
        assert cells == sorted(set(cells))
        for cell, count in zip(cells, h.counts[h.starts[unit] : h.starts[unit + 1]].tolist(), strict=True):
            assert count > 0
            found[int(blocks[unit]), cell] = count
    return found


def write(folder: Path, *rows: str, name: str = "histogram.csv") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("\n".join(rows) + "\n", encoding="utf-8")
    return folder


def read(folder: Path, schema: Schema = SMALL, blocks: Sequence[int] = BLOCKS) -> Histogram:
    return count_all(folder, schema, blocks)


ROWS = ("block|sex|order|count", f"{BLOCKS[2]}|F|2|5", f"{BLOCKS[0]}|M|0|1", f"{BLOCKS[0]}|F|0|0")


@pytest.mark.parametrize(
    "rows",
    [
        ROWS,
        tuple(row.replace("|", ",") for row in ROWS),
        ("count|order|block|sex", f"5|2|{BLOCKS[2]}|F", f"1|0|{BLOCKS[0]}|M"),
        ("block|sex|order|count", f"{BLOCKS[2]}|1|2|5", f"{BLOCKS[0]}|M|0|1"),
    ],
    ids=["bars", "commas", "another order", "numbers"],
)
def test_the_forms_of_a_histogram_are_read_alike(tmp_path: Path, rows: tuple[str, ...]) -> None:
    assert counted(read(write(tmp_path, *rows))) == {(BLOCKS[2], 5): 5, (BLOCKS[0], 0): 1}


def test_text_of_other_programs_is_read_too(tmp_path: Path) -> None:
    text = "\r\n".join(",".join(f'"{field}"' for field in row.split("|")) for row in ROWS)
    (tmp_path / "histogram.csv").write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert counted(read(tmp_path)) == {(BLOCKS[2], 5): 5, (BLOCKS[0], 0): 1}


def test_a_block_without_a_row_has_zeros_and_blocks_come_in_any_order(tmp_path: Path) -> None:
    counts = read(write(tmp_path, *ROWS), blocks=(BLOCKS[1], BLOCKS[2], BLOCKS[0]))
    assert counts.totals().tolist() == [0, 5, 1]


def test_labels_that_are_numbers_of_other_levels_are_read_as_labels_alone(tmp_path: Path) -> None:
    schema = make_schema(origin=("1", "2"))
    rows = ("block|origin|count", f"{BLOCKS[0]}|1|3", f"{BLOCKS[0]}|2|4")
    assert counted(read(write(tmp_path / "labels", *rows), schema)) == {(BLOCKS[0], 0): 3, (BLOCKS[0], 1): 4}
    with pytest.raises(InputError, match=r"origin must be a label of the schema; 1 record; line 3"):
        read(write(tmp_path / "numbers", rows[0], rows[1], f"{BLOCKS[0]}|0|4"), schema)


@pytest.mark.parametrize("kind", ["VARCHAR", "BIGINT"])
@pytest.mark.parametrize("parts", [1, 2])
def test_parquet_is_read_as_text_is(tmp_path: Path, kind: str, parts: int) -> None:
    rows = [(BLOCKS[i % 3], i // 3 % 2, i // 6, 10 + i) for i in range(18)]
    with duckdb.connect() as db:
        for part in range(parts):
            values = ", ".join(map(str, rows[part::parts]))
            path = tmp_path / ("histogram" if parts > 1 else "") / f"part{part}.parquet"
            path = path if parts > 1 else tmp_path / "histogram.parquet"
            path.parent.mkdir(exist_ok=True)
            columns = f'block::{kind} AS block, sex::{kind} AS sex, "order"::{kind} AS "order", count::INT AS count'
            db.execute(f"COPY (SELECT {columns} FROM (VALUES {values}) t(block, sex, \"order\", count)) TO '{path}'")
    assert counted(read(tmp_path)) == {(block, sex * 3 + order): count for block, sex, order, count in rows}


@pytest.mark.parametrize("examples", [15, pytest.param(40, marks=pytest.mark.thorough)])
@pytest.mark.thorough
def test_any_rows_are_counted(tmp_path_factory: pytest.TempPathFactory, examples: int) -> None:
    @settings(max_examples=examples)
    @given(
        st.lists(
            st.tuples(st.sampled_from(BLOCKS), st.integers(0, 1), st.integers(0, 2), st.integers(0, 99)),
            unique_by=lambda row: row[:3],
            min_size=1,
        ),
        st.permutations(BLOCKS),
    )
    def check(rows: list[tuple[int, int, int, int]], blocks: list[int]) -> None:
        folder = write(tmp_path_factory.mktemp("h"), ROWS[0], *("|".join(map(str, row)) for row in rows))
        expected = {(block, sex * 3 + order): count for block, sex, order, count in rows if count}
        assert counted(read(folder, blocks=tuple(blocks)), tuple(blocks)) == expected

    check()


BAD: dict[str, tuple[tuple[str, ...], list[str]]] = {
    "no such label": ((*ROWS, f"{BLOCKS[1]}|{CANARY}|1|1"), ["domain: sex must be a label", "line 5"]),
    "no such number": ((*ROWS, f"{BLOCKS[1]}|2|1|1"), ["domain: sex must be a label", "0 to 1", "line 5"]),
    "a number padded": ((*ROWS, f"{BLOCKS[1]}|M|01|1"), ["domain: order", "line 5"]),
    "a level with decimals": ((*ROWS, f"{BLOCKS[1]}|M|1.0|1"), ["domain: order", "line 5"]),
    "no level": ((*ROWS, f"{BLOCKS[1]}|M||1"), ["domain: order", "line 5"]),
    "an unknown block": ((*ROWS, "4400100020012999|M|1|1"), ["block_in_geography", "line 5"]),
    "a short block": ((*ROWS, "440010002001299|M|1|1"), ["domain: block", "16 digits", "line 5"]),
    "no block": ((*ROWS, "|M|1|1"), ["domain: block", "line 5"]),
    "a negative count": ((*ROWS, f"{BLOCKS[1]}|M|1|-{CANARY}"), ["domain: count", "line 5"]),
    "half a person": ((*ROWS, f"{BLOCKS[1]}|M|1|1.5"), ["domain: count", "whole number", "line 5"]),
    "no count": ((*ROWS, f"{BLOCKS[1]}|M|1|"), ["domain: count", "line 5"]),
    "a count too large": ((*ROWS, f"{BLOCKS[1]}|M|1|1000000000"), ["domain: count", "line 5"]),
    "a row twice": ((*ROWS, f"{BLOCKS[0]}|F|0|7"), ["unique_cell", "2 records", "lines 4, 5"]),
    "a cell by label and number": ((*ROWS, f"{BLOCKS[2]}|1|2|7"), ["unique_cell", "lines 2, 5"]),
    "too few fields": ((*ROWS, f"{BLOCKS[1]}|M|1"), ["row_shape", "too few", "line 5"]),
    "too many fields": ((*ROWS, f"{BLOCKS[1]}|M|1|2|3"), ["row_shape", "too many", "line 5"]),
    "no header": (ROWS[1:], ["missing column block, sex, order, count"]),
    "a column missing": (("block|sex|count", f"{BLOCKS[1]}|M|1"), ["missing column order"]),
    "a column more": (("block|sex|order|x|count", f"{BLOCKS[1]}|M|1|1|1"), ["unexpected column at position 4"]),
    "a column twice": (("block|sex|order|sex|count", f"{BLOCKS[1]}|M|1|M|1"), ["column sex is there twice"]),
    "no rows": (ROWS[:1], ["not_empty"]),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_histogram_is_refused(tmp_path: Path, name: str) -> None:
    rows, expected = BAD[name]
    with pytest.raises(InputError) as refused:
        read(write(tmp_path, *rows))
    text = str(refused.value)
    assert all(word in text for word in [*expected, "histogram.csv"])
    assert CANARY not in text


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    def refused(name: str, content: bytes) -> str:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        (folder / name).write_bytes(content)
        with pytest.raises(InputError) as error:
            read(folder)
        return str(error.value)

    text = "\n".join(ROWS).encode() + b"\n"
    assert "empty" in refused("histogram.csv", b"")
    assert "not UTF-8" in refused("histogram.csv", text + f"{BLOCKS[1]}|".encode() + b"\xe9|1|1\n")
    assert "no header" in refused("histogram.csv", b"\xff\xfe" + text)
    with duckdb.connect() as db:
        rows = f"SELECT {BLOCKS[0]} AS block, 'M' AS sex, 1 AS \"order\", 1 AS count"
        db.execute(f"COPY ({rows}) TO '{tmp_path}/whole.parquet'")
        db.execute(f"COPY ({rows}::DOUBLE AS count) TO '{tmp_path}/real.parquet'".replace("1 AS count", "1"))
    whole = (tmp_path / "whole.parquet").read_bytes()
    assert "not a complete Parquet file" in refused("histogram.parquet", whole[: len(whole) // 2])
    assert "column count has type DOUBLE" in refused("histogram.parquet", (tmp_path / "real.parquet").read_bytes())
    with pytest.raises(InputError, match="does not exist"):
        read(tmp_path / "nowhere")
    write(tmp_path / "both", *ROWS)
    write(tmp_path / "both", "x", name="persons.csv")
    with pytest.raises(InputError, match="leave one of them"):
        read(tmp_path / "both")
    (tmp_path / "twice").mkdir()
    (tmp_path / "twice" / "histogram.parquet").write_bytes(whole)
    with pytest.raises(InputError, match="leave one"):
        read(write(tmp_path / "twice", *ROWS))


# Microdata

MAJOR = {"101": 1, "203": 2, "301": 3, "405": 4, "501": 5, "602": 6, "701": 7, "802": 7, "904": 7}


def block_of(place: object) -> int:
    parts = ("TABBLKST", "TABBLKCOU", "TABTRACTCE", "TABBLKGRPCE", "TABBLK")
    return int("".join(getattr(place, part) for part in parts))


def typed(census: Census, seed: int) -> dict[str, str]:
    """A type for each group quarters that its persons may have."""
    random = seeded(seed)
    kind = {person.MAFID: person.RELSHIP for person in census.persons}
    types = {"37": ["101", "203", "301", "405"], "38": ["501", "602", "701", "802", "904"]}
    return {u.MAFID: random.choice(types[kind.get(u.MAFID, "38")]) for u in census.units if u.RTYPE == "4"}


def of_one_kind(census: Census) -> None:
    """Make all persons of a group quarters institutional, or none."""
    first: dict[str, str] = {}
    for person in census.persons:
        if person.RTYPE == "5" and person.RELSHIP in {"37", "38"}:
            first.setdefault(person.MAFID, person.RELSHIP)
    census.persons = [p._replace(RELSHIP=first.get(p.MAFID, "37")) if p.RTYPE == "5" else p for p in census.persons]


def expected_persons(census: Census, types: dict[str, str]) -> Counter[tuple[int, int]]:
    block = {place.MAFID: block_of(place) for place in census.geo}
    found: Counter[tuple[int, int]] = Counter()
    for person in census.persons:
        hhgq = MAJOR[types[person.MAFID]] if person.RTYPE == "5" else 0
        levels = (hhgq, int(person.QAGE) >= 18, int(person.CENHISP) - 1, int(person.CENRACE) - 1)
        found[block[person.MAFID], int(np.ravel_multi_index(tuple(map(int, levels)), PL94.shape))] += 1
    return found


def sample(seed: int) -> tuple[Census, dict[str, str], tuple[int, ...]]:
    census = random_census(seeded(seed), ("06", "44"), 300)
    of_one_kind(census)
    kinds = {unit.MAFID: unit.RTYPE for unit in census.units}
    census.geo = [row._replace(RTYPE=kinds[row.MAFID], TABBLKGRPCE=row.TABBLK[0]) for row in census.geo]
    blocks = tuple(sorted({block_of(place) for place in census.geo}))
    return census, typed(census, seed), blocks


def write_types(folder: Path, types: dict[str, str]) -> None:
    write(folder, "MAFID|QGQTYP", *map("|".join, types.items()), name="quarters.csv")


def as_csv(folder: Path, census: Census, types: dict[str, str]) -> None:
    write_csv(folder, census)
    write_types(folder, types)


def as_parquet(folder: Path, census: Census, types: dict[str, str]) -> None:
    codes: Codes = "integer"
    write_parquet(folder, census, codes)
    write_types(folder, types)


def as_cef(folder: Path, census: Census, types: dict[str, str]) -> None:
    write_cef(folder, census)
    for path in folder.glob("CEF20_UNIT_*.txt"):
        lines = path.read_text().splitlines()
        text = (line[:33] + types.get(line[1:10], "   ") + line[36:] for line in lines)
        path.write_text("\n".join(text) + "\n")


@pytest.mark.parametrize("form", [as_csv, as_parquet, as_cef])
@pytest.mark.thorough
def test_persons_are_counted_by_block_and_cell(
    tmp_path: Path, form: Callable[[Path, Census, dict[str, str]], None]
) -> None:
    census, types, blocks = sample(1)
    form(tmp_path / "data", census, types)
    counts = read(tmp_path / "data", PL94, blocks)
    assert counted(counts, blocks) == expected_persons(census, types)
    assert counts.counts.sum() == len(census.persons)
    with open_block_counts(tmp_path / "data", PL94, np.array(blocks), RunRequest()) as found:
        names = {path.name for source in found.files.values() for path in source.paths}
    assert names >= ({"quarters.csv", "geo.csv"} if form is as_csv else set())


@pytest.mark.parametrize(
    ("form", "shards"),
    [
        (as_csv, 2),
        (as_cef, None),
        pytest.param(as_csv, None, marks=pytest.mark.thorough),
        pytest.param(as_cef, 2, marks=pytest.mark.thorough),
    ],
)
@pytest.mark.thorough
def test_persons_are_counted_in_shards_by_block_and_cell(
    tmp_path: Path, form: Callable[[Path, Census, dict[str, str]], None], shards: int | None
) -> None:
    census, types, blocks = sample(1)
    form(tmp_path / "data", census, types)
    engine = LocalEngine(tmp_path)
    with open_block_counts(
        tmp_path / "data", PL94, np.array(blocks), RunRequest(engine=engine, shards=shards)
    ) as found:
        assert counted(found.part(0, len(blocks)), blocks) == expected_persons(census, types)
        names = {path.name for source in found.files.values() for path in source.paths}
    with open_block_counts(tmp_path / "data", PL94, np.array(blocks), RunRequest()) as found:
        assert names == {path.name for source in found.files.values() for path in source.paths}


@pytest.mark.parametrize("form", [as_csv, as_cef])
def test_units_are_counted_by_occupancy(tmp_path: Path, form: Callable[[Path, Census, dict[str, str]], None]) -> None:
    census, types, blocks = sample(2)
    form(tmp_path / "data", census, types)
    block = {place.MAFID: block_of(place) for place in census.geo}
    expected = Counter((block[u.MAFID], int(u.FINAL_POP != "0")) for u in census.units if u.RTYPE == "2")
    assert counted(read(tmp_path / "data", make_schema(h1=("vacant", "occupied")), blocks), blocks) == expected


def test_some_attributes_in_another_order(tmp_path: Path) -> None:
    census, _, blocks = sample(3)
    write_csv(tmp_path / "data", census)
    block = {place.MAFID: block_of(place) for place in census.geo}
    expected = Counter((block[p.MAFID], (int(p.CENRACE) - 1) * 2 + (int(p.QAGE) >= 18)) for p in census.persons)
    assert counted(read(tmp_path / "data", make_schema(cenrace=63, votingage=2), blocks), blocks) == expected


@pytest.mark.thorough
def test_facilities_tell_the_type_where_a_block_has_one_of_a_kind(tmp_path: Path) -> None:
    census, types, blocks = sample(4)
    write_csv(tmp_path / "data", census)
    block = {place.MAFID: block_of(place) for place in census.geo}
    facilities = np.zeros((len(blocks), 8), dtype=np.int64)
    # One type of each kind in a block: all its group quarters of that kind are of the first unit's type.
    first: dict[tuple[int, bool], str] = {}
    for mafid, code in types.items():
        types[mafid] = first.setdefault((block[mafid], MAJOR[code] > 4), code)
        facilities[blocks.index(block[mafid]), MAJOR[types[mafid]]] += 1
    counts = count_all(tmp_path / "data", PL94, blocks, facilities)
    assert counted(counts, blocks) == expected_persons(census, types)
    people = next(person.MAFID for person in census.persons if person.RELSHIP == "37")
    at = blocks.index(block[people])
    other = next(g for g in range(1, 5) if not facilities[at, g])
    facilities[at, other] = 1
    with pytest.raises(InputError, match=r"persons.csv: group_quarters_type: .*several types.*quarters.csv"):
        count_all(tmp_path / "data", PL94, blocks, facilities)
    with pytest.raises(InputError, match=r"quarters.csv or quarters.parquet: file_present"):
        read(tmp_path / "data", PL94, blocks)


@pytest.mark.thorough
def test_microdata_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    census, types, blocks = sample(5)
    as_csv(tmp_path / "data", census, types)
    missing = block_of(census.geo[-1])
    number = sum(block_of(place) == missing for place in census.geo)
    with pytest.raises(InputError, match=rf"geo.csv: block_in_geography.*{number} record.*{len(census.geo) + 1}"):
        read(tmp_path / "data", PL94, tuple(block for block in blocks if block != missing))
    for schema in (make_schema(age=116), make_schema(hispanic=3), make_schema(h1=2, hispanic=2)):
        with pytest.raises(InputError, match=r"cannot be counted.*cenrace \(63 levels\).*h1.*histogram.csv"):
            read(tmp_path / "data", schema, blocks)
    live = next(person.MAFID for person in census.persons if person.RTYPE == "5")
    write_types(tmp_path / "data", {mafid: code for mafid, code in types.items() if mafid != live})
    with pytest.raises(InputError, match="group_quarters_type: the unit of a person of RTYPE 5 has no QGQTYP"):
        read(tmp_path / "data", PL94, blocks)
    write_types(tmp_path / "data", {**types, live: "302"})
    with pytest.raises(InputError, match=r"quarters.csv: domain: QGQTYP must be a type"):
        read(tmp_path / "data", PL94, blocks)
    for mafid in ("100000001", next(unit.MAFID for unit in census.units if unit.RTYPE == "2")):
        write_types(tmp_path / "data", {**types, mafid: "301"})
        with pytest.raises(InputError, match=r"quarters.csv: quarters_has_unit: .*1 record"):
            read(tmp_path / "data", PL94, blocks)


@pytest.mark.parametrize("shuffled", [False, True])
def test_a_unit_of_two_record_types_is_refused(tmp_path: Path, shuffled: bool) -> None:  # noqa: FBT001
    census, types, blocks = sample(5)
    place = census.geo[3]
    census.geo[3] = place._replace(RTYPE={"2": "4", "4": "2"}[place.RTYPE])
    as_csv(tmp_path / "data", census.shuffled(seeded(1)) if shuffled else census, types)
    with pytest.raises(InputError, match=r"geo.csv: geo_record_type: .*1 record"):
        read(tmp_path / "data", PL94, blocks)


@pytest.mark.slow
def test_families_are_none_of_topdowns_business(tmp_path: Path) -> None:
    census, types, blocks = sample(6)
    census.units = [u._replace(CPLT="1") if u.CPLT == "5" else u for u in census.units]
    as_csv(tmp_path / "data", census, types)
    assert counted(read(tmp_path / "data", PL94, blocks), blocks) == expected_persons(census, types)
    census.units = [u._replace(FINAL_POP="7") if u.FINAL_POP == "3" else u for u in census.units]
    as_csv(tmp_path / "other", census, types)
    with pytest.raises(InputError, match="final_pop"):
        read(tmp_path / "other", PL94, blocks)


@pytest.mark.slow
def test_a_synthetic_census_is_counted_and_agrees_with_its_facilities(tmp_path: Path) -> None:
    synthesize(tmp_path / "census", households=3000, states=("44",), seed=5)
    reference = read_reference(tmp_path / "census" / "GRF-C.txt")
    facilities = read_facilities(tmp_path / "census" / "group_quarters.csv", reference.block)
    counts = count_all(tmp_path / "census", PL94, reference.block, facilities)
    with (tmp_path / "census" / "persons.csv").open() as file:
        assert counts.counts.sum() == len(list(csv.reader(file))) - 1
    check_facilities(counts, str, PL94, "hhgq", facilities)


# Facilities


def test_facilities_of_blocks_that_are_not_listed_are_zero(tmp_path: Path) -> None:
    blocks = random_blocks(seeded(3))
    reference = read_reference(write_reference(tmp_path / "grfc.txt", blocks))
    random = seeded(4)
    rows = {block.geocode: [random.choice((0, 0, 0, 1, 12)) for _ in range(8)] for block in blocks[::2]}
    header = "|".join(("block", "housing_units", *QUARTERS_COLUMNS))
    lines = [f"{block}|{'|'.join(map(str, row))}" for block, row in rows.items()]
    path = write(tmp_path, header, *lines, name="group_quarters.csv") / "group_quarters.csv"
    found = read_facilities(path, reference.block)
    expected = [rows.get(f"{block:016d}", [0] * 8) for block in reference.block.tolist()]
    assert found.tolist() == expected
    assert quarters_in(found).tolist() == [sum((n > 0) << g for g, n in enumerate(row[1:])) for row in expected]
    with pytest.raises(InputError, match="blocks of the reference file are missing"):
        read_facilities(path, reference.block, every=True)
    write(tmp_path, header, *lines, "4400100020012999|1|0|0|0|0|0|0|0", name="group_quarters.csv")
    with pytest.raises(InputError, match=r"line \d+, column block: .* is not in the reference file"):
        read_facilities(path, reference.block)


@pytest.mark.parametrize(
    ("facilities", "wrong"),
    [
        ([1, 0, 0, 2, 0, 0, 0, 0], ""),
        ([0, 0, 0, 2, 0, 0, 0, 0], "of which it has none"),
        ([1, 0, 0, 0, 0, 0, 0, 0], "of which it has none"),
        ([1, 0, 0, 6, 0, 0, 0, 0], "fewer persons than facilities"),
        ([1, 1, 0, 2, 0, 0, 0, 0], "fewer persons than facilities"),
        ([100, 0, 0, 5, 0, 0, 0, 0], ""),
    ],
)
def test_counts_that_contradict_the_facilities_are_refused(tmp_path: Path, facilities: list[int], wrong: str) -> None:
    schema = make_schema(votingage=2, hhgq=8)
    rows = ("block|votingage|hhgq|count", f"{BLOCKS[1]}|1|0|1", f"{BLOCKS[1]}|1|3|3", f"{BLOCKS[1]}|0|3|2")
    counts = read(write(tmp_path, *rows), schema)
    there = np.zeros((3, 8), dtype=np.int64)
    there[1] = facilities
    if not wrong:
        check_facilities([(0, counts.part(0, 1)), (1, counts.part(1, 3))], str, schema, "hhgq", there)
        return
    with pytest.raises(InputError, match=wrong):
        check_facilities([(0, counts.part(0, 1)), (1, counts.part(1, 3))], str, schema, "hhgq", there)


def test_more_persons_than_the_constraints_allow_are_refused(tmp_path: Path) -> None:
    """The estimate would move them elsewhere without a word, or could not keep a total that is known."""
    schema = make_schema(votingage=2, hhgq=8)
    rows = ("block|votingage|hhgq|count", f"{BLOCKS[1]}|1|0|150000", f"{BLOCKS[1]}|0|0|49998")
    counts = read(write(tmp_path, *rows), schema)
    there = np.zeros((3, 8), dtype=np.int64)
    there[1, 0] = 2
    check_facilities([(0, counts.part(0, 1)), (1, counts.part(1, 3))], str, schema, "hhgq", there)
    there[1, 0] = 1
    with pytest.raises(InputError, match="more than 99,999 persons for each"):
        check_facilities([(0, counts.part(0, 1)), (1, counts.part(1, 3))], str, schema, "hhgq", there)
