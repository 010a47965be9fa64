"""SafeTab's files and the files of blocks of a synthetic census, against its persons, units and geo, by plain loops."""

import csv
from collections import Counter, defaultdict
from pathlib import Path

import duckdb
import numpy as np
import pytest
from places import SHARED

from yupana.synthetic import census as synthetic
from yupana.synthetic.census import ALL_51_STATE_CODES, synthesize
from yupana.synthetic.geography import lay_out
from yupana.synthetic.race import MOST_CODES, code_tables, draw_codes

RACES = [f"QRACE{number}" for number in range(1, 9)]
ADDRESS = ["TABBLKST", "TABBLKCOU", "TABTRACTCE", "TABBLK"]
HEADERS = {
    "person-records.txt": ["QAGE", "QSEX", "HOUSEHOLDER", *ADDRESS, "CENRACE", *RACES, "QSPAN"],
    "household-records.txt": [*ADDRESS, "HHRACE", *RACES, "QSPAN", "HOUSEHOLD_TYPE", "TEN"],
    "GRF-C.txt": [
        *(*ADDRESS, "PLACEFP", "AIANNHCE"),
        *("TABBLKGRPCE", "COUSUBFP", "REGIONCE", "DIVISIONCE", "OIDTABBLK"),
    ],
    "quarters.csv": ["MAFID", "QGQTYP"],
    "housing-units.txt": ["block", "housing_units"],
    "group_quarters.csv": ["block", "housing_units", "gq1", "gq2", "gq3", "gq4", "gq5", "gq6", "gq7"],
}
# the order of the 63 codes, written out to three races; four and more are not looked up
ORDER = (
    "1 2 3 4 5 6 12 13 14 15 16 23 24 25 26 34 35 36 45 46 56 "
    "123 124 125 126 134 135 136 145 146 156 234 235 236 245 246 256 345 346 356 456"
)
GROUPS = dict(enumerate(ORDER.split(), start=1))
CODE_LIST = (SHARED / "data/race_ethnicity_iterations_2020/ddhca_safetab_p_NMFv7") / "race-and-ethnicity-codes.txt"

Row = dict[str, str]
Files = dict[str, list[Row]]


def read(path: Path) -> list[Row]:
    with path.open(newline="", encoding="ascii") as file:
        return list(csv.DictReader(file, delimiter="|"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("detail") / "census"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(synthetic, "CHUNK", 1100)
        patch.setattr(synthetic, "_BLOCKS_AT_ONCE", 37)
        synthesize(out, households=3000, states=[*ALL_51_STATE_CODES, "72"], seed=11)
    return out


@pytest.fixture(scope="module")
def files(folder: Path) -> Files:
    return {path.name: read(path) for path in folder.iterdir() if path.name != "SYNTHETIC"}


def address(row: Row) -> tuple[str, ...]:
    return tuple(row[name] for name in ADDRESS)


def group(code: str) -> str:
    if "7500" <= code <= "7999":
        return "5"
    return {"1": "1", "2": "6", "3": "2", "4": "4", "5": "3", "6": "3", "7": "1", "8": "6"}[code[0]]


def living(files: Files) -> dict[str, list[tuple[Row, Row]]]:
    homes = defaultdict(list)
    for person, record in zip(files["persons.csv"], files["person-records.txt"], strict=True):
        homes[person["MAFID"]].append((person, record))
    return homes


@pytest.mark.parametrize("name", HEADERS)
def test_the_header_is_the_format(folder: Path, name: str) -> None:
    assert (folder / name).read_text(encoding="ascii").startswith("|".join(HEADERS[name]) + "\n")


def test_a_person_record_is_its_person(files: Files) -> None:
    where = {place["MAFID"]: address(place) for place in files["geo.csv"]}
    for person, record in zip(files["persons.csv"], files["person-records.txt"], strict=True):
        assert (record["QAGE"], record["CENRACE"]) == (person["QAGE"], person["CENRACE"])
        assert address(record) == where[person["MAFID"]]
        assert record["HOUSEHOLDER"] == str(person["RELSHIP"] == "20")
        assert record["QSEX"] in {"1", "2"}


def test_a_household_record_is_its_unit_and_has_the_codes_of_the_householder(files: Files) -> None:
    where = {place["MAFID"]: address(place) for place in files["geo.csv"]}
    codes = {
        person["MAFID"]: [record[name] for name in (*RACES, "QSPAN")]
        for person, record in zip(files["persons.csv"], files["person-records.txt"], strict=True)
        if person["RELSHIP"] == "20"
    }
    types = {"1": "1", "2": "2", "3": "3", "4": "4", "5": "5", "6": "4", "7": "5"}
    occupied = [unit for unit in files["units.csv"] if unit["RTYPE"] == "2" and unit["FINAL_POP"] != "0"]
    for unit, record in zip(occupied, files["household-records.txt"], strict=True):
        assert address(record) == where[unit["MAFID"]]
        assert (record["HHRACE"], record["TEN"]) == (unit["HHRACE"], unit["TEN"])
        assert record["HOUSEHOLD_TYPE"] == types[unit["HHT"]]
        assert [record[name] for name in (*RACES, "QSPAN")] == codes[unit["MAFID"]]


def test_codes_agree_with_race_and_origin(files: Files) -> None:
    for person, record in zip(files["persons.csv"], files["person-records.txt"], strict=True):
        codes = [record[name] for name in RACES]
        answered = [code for code in codes if code != "Null"]
        assert answered
        assert codes == answered + ["Null"] * (8 - len(answered))
        assert len(set(answered)) == len(answered)
        groups = "".join(sorted({group(code) for code in answered}))
        assert groups == GROUPS.get(int(record["CENRACE"]), groups)
        assert (len(groups) > 3) == (int(record["CENRACE"]) > max(GROUPS))
        assert record["QSPAN"].startswith("2") == (person["CENHISP"] == "2")
        assert record["QSPAN"].startswith("2") or record["QSPAN"] == "9950"


def test_sex_agrees_with_couples_and_household_type(files: Files) -> None:
    homes = living(files)
    for unit in files["units.csv"]:
        sexes = {person["RELSHIP"]: record["QSEX"] for person, record in homes[unit["MAFID"]]}
        for partner in {"21", "22", "23", "24"} & sexes.keys():
            assert (sexes[partner] == sexes["20"]) == (partner in {"23", "24"})
        if unit["HHT2"] in {"05", "06", "07", "08"} or unit["HHT"] in {"3", "6", "7"}:
            assert sexes["20"] == "2"
        elif unit["HHT2"] in {"09", "10", "11", "12"} or unit["HHT"] in {"2", "4", "5"}:
            assert sexes["20"] == "1"


@pytest.mark.slow
def test_most_relatives_share_the_codes_of_the_householder(files: Files) -> None:
    same = Counter(
        [record[name] for name in (*RACES, "QSPAN")] == [people[0][1][name] for name in (*RACES, "QSPAN")]
        for people in living(files).values()
        for person, record in people[1:]
        if person["RELSHIP"] <= "33"
    )
    assert 0.8 < same[True] / sum(same.values()) < 0.95


def test_nine_in_ten_people_have_one_code(files: Files) -> None:
    number = Counter(sum(record[name] != "Null" for name in RACES) for record in files["person-records.txt"])
    people = sum(number.values())
    assert 0.85 < number[1] / people < 0.92
    assert 0.07 < number[2] / people < 0.12
    assert 0.01 < sum(number[most] for most in range(3, 9)) / people < 0.035


def test_the_reference_file_lists_every_block_once_and_in_order(files: Files) -> None:
    blocks = [address(row) for row in files["GRF-C.txt"]]
    assert blocks == sorted(set(blocks))
    reference = {address(row): row for row in files["GRF-C.txt"]}
    for place in files["geo.csv"]:
        row = reference[address(place)]
        for name in ("PLACEFP", "AIANNHCE", "TABBLKGRPCE", "REGIONCE", "DIVISIONCE"):
            assert row[name] == place[name]
    for row in files["GRF-C.txt"]:
        assert row["TABBLKGRPCE"] == row["TABBLK"][0]
        assert len(row["COUSUBFP"]) == 5
        assert len(row["PLACEFP"]) == 5
        assert len(row["AIANNHCE"]) == 4
        assert row["OIDTABBLK"] == "".join(address(row)).zfill(22)


def test_units_are_counted_by_block(files: Files) -> None:
    housing: Counter[str] = Counter()
    quarters: Counter[str] = Counter()
    for place in files["geo.csv"]:
        block = "".join((*address(place)[:3], place["TABBLKGRPCE"], place["TABBLK"]))
        (housing if place["RTYPE"] == "2" else quarters)[block] += 1
    order = ["".join((*address(row)[:3], row["TABBLKGRPCE"], row["TABBLK"])) for row in files["GRF-C.txt"]]
    for name in ("housing-units.txt", "group_quarters.csv"):
        assert [row["block"] for row in files[name]] == order
        assert all(int(row["housing_units"]) == housing[row["block"]] for row in files[name])
    assert any(housing[block] == 0 for block in order)
    for row in files["group_quarters.csv"]:
        assert sum(int(row[f"gq{major}"]) for major in range(1, 8)) == quarters[row["block"]]


def test_institutions_are_of_the_major_types_of_institutions(files: Files) -> None:
    where = {
        place["MAFID"]: "".join((*address(place)[:3], place["TABBLKGRPCE"], place["TABBLK"]))
        for place in files["geo.csv"]
        if place["RTYPE"] == "4"
    }
    facilities = {row["block"]: row for row in files["group_quarters.csv"]}
    alone = Counter(where.values())
    for mafid, people in living(files).items():
        if mafid in where and alone[where[mafid]] == 1:
            row = facilities[where[mafid]]
            institution = any(row[f"gq{major}"] != "0" for major in (1, 2, 3, 4))
            assert {person["RELSHIP"] for person, _ in people} == {"37" if institution else "38"}


@pytest.mark.slow
def test_parquet_holds_what_text_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synthetic, "CHUNK", 230)  # three parts become one file
    synthesize(tmp_path / "text", households=500, seed=3)
    synthesize(tmp_path / "parquet", households=500, seed=3, fmt="parquet")
    for name in ("person-records", "household-records"):
        found = duckdb.read_parquet(str(tmp_path / "parquet" / f"{name}.parquet"))
        assert found.columns == HEADERS[f"{name}.txt"]
        for column, kind in zip(found.columns, found.types, strict=True):
            assert str(kind) == ("INTEGER" if column == "QAGE" else "VARCHAR")
        rows = [[str(value) for value in row] for row in found.fetchall()]
        assert rows == [list(row.values()) for row in read(tmp_path / "text" / f"{name}.txt")]


@pytest.mark.slow
def test_puerto_rico_has_no_tribal_areas(tmp_path: Path) -> None:
    synthesize(tmp_path / "pr", households=4000, states=["72"], seed=1)
    reference = read(tmp_path / "pr" / "GRF-C.txt")
    assert {row["AIANNHCE"] for row in reference} == {"9999"}
    origins = Counter(row["QSPAN"] for row in read(tmp_path / "pr" / "person-records.txt"))
    assert origins.most_common(1)[0][0] == "2330"
    assert origins["2330"] > 0.9 * sum(origins.values())


@pytest.mark.parametrize("households", [1, 2, 51, 60, 5000, 120_000])
def test_every_household_has_a_block(households: int) -> None:
    geography = lay_out(np.random.default_rng(households), ALL_51_STATE_CODES, households)
    blocks = geography.blocks
    found = geography.find(0, households)
    assert (np.bincount(found, minlength=len(blocks.first)) == blocks.households).all()
    for values, most in ((blocks.number, 9999), (blocks.place, 99999), (blocks.tribal, 9999)):
        assert values.min() >= 0
        assert values.max() <= most


def test_areas_are_as_many_and_as_unequal_as_in_the_nation() -> None:
    geography = lay_out(np.random.default_rng(1), ALL_51_STATE_CODES, 1_000_000)
    blocks, tracts = geography.blocks, geography.tracts
    state = tracts.state[blocks.tract]
    inhabited = blocks.households[blocks.households > 0]
    assert 14 < 1_000_000 / len(blocks.first) < 17
    assert 0.2 < (blocks.households == 0).mean() < 0.35
    assert (inhabited == 1).sum() > 1000
    assert inhabited.max() > 300
    places = np.unique(state * 100_000 + blocks.place)[:-1]
    assert 150 < len(places) < 350
    in_place = blocks.households[blocks.place != 99999].sum()
    assert 0.74 < in_place / 1_000_000 < 0.78
    county = (state * 1000 + tracts.county[blocks.tract]) * 100_000
    assert 200 < len(np.unique(county + blocks.subdivision)) < 450
    # places cut through tracts
    assert len(np.unique(blocks.tract.astype(np.int64) * 100_000 + blocks.place)) > 1.2 * len(tracts.state)


@pytest.mark.thorough
def test_small_areas_differ_in_race(tmp_path: Path) -> None:
    synthesize(tmp_path / "one", households=40_000, states=["17"], seed=1)
    people: Counter[str] = Counter()
    black: Counter[str] = Counter()
    hispanic: Counter[str] = Counter()
    for record in read(tmp_path / "one" / "person-records.txt"):
        tract = record["TABBLKCOU"] + record["TABTRACTCE"]
        people[tract] += 1
        black[tract] += record["CENRACE"] == "02"
        hispanic[tract] += record["QSPAN"] != "9950"
    for counted in (black, hispanic):
        shares = [counted[tract] / people[tract] for tract in people if people[tract] > 500]
        assert max(shares) > 3 * min(shares)


def test_every_code_is_of_the_list_of_2020() -> None:
    if not CODE_LIST.is_file():
        pytest.skip("the list of codes is not in ../shared")
    known = {int(line.split("|")[0]) for line in CODE_LIST.read_text(encoding="utf-8").splitlines()[1:] if line}
    tables = code_tables([("06", "4")])
    assert set(tables.codes.ravel().tolist()) - {0} <= known
    assert set(tables.rare.tolist()) <= known


@pytest.mark.slow
def test_up_to_eight_different_codes_and_none_after_the_last() -> None:
    rng = np.random.default_rng(1)
    n = 400_000
    tables = code_tables([("06", "4"), ("72", "9")])
    race = np.full(n, 62)
    drawn = draw_codes(rng, tables, rng.integers(0, 2, n), rng.integers(1, 3, n), race)
    number = (drawn.races > 0).sum(axis=1)
    assert set(np.unique(number)) == {5, 6, 7, 8}
    assert drawn.races.shape == (n, MOST_CODES)
    given = np.sort(drawn.races, axis=1)
    assert not ((given[:, 1:] == given[:, :-1]) & (given[:, 1:] > 0)).any()
    assert (np.diff((drawn.races == 0).astype(int), axis=1) >= 0).all()
