"""The synthetic census against the rules of its formats, read back by plain loops that share nothing with it."""

import csv
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pytest

from yupana.errors import ConfigError, OutputError
from yupana.synthetic import census as synthetic
from yupana.synthetic.census import ALL_51_STATE_CODES, CensusSummary, synthesize

HEADERS = {
    "persons": "RTYPE|MAFID|QAGE|CENHISP|CENRACE|RELSHIP",
    "units": "RTYPE|MAFID|FINAL_POP|NPF|HHSPAN|HHRACE|TEN|HHT|HHT2|CPLT",
    "geo": "RTYPE|MAFID|TABBLKST|TABBLKCOU|TABTRACTCE|TABBLK|TABBLKGRPCE|REGIONCE|DIVISIONCE|PLACEFP|AIANNHCE",
}
PATTERNS = {
    "persons": {
        "RTYPE": "[35]",
        "MAFID": "[1-8][0-9]{8}",
        "QAGE": "0|[1-9][0-9]?|10[0-9]|11[0-5]",
        "CENHISP": "[12]",
        "CENRACE": "0[1-9]|[1-5][0-9]|6[0-3]",
        "RELSHIP": "2[0-9]|3[0-8]",
    },
    "units": {
        "RTYPE": "[24]",
        "MAFID": "[1-8][0-9]{8}",
        "FINAL_POP": "0|[1-9][0-9]{0,4}",
        "NPF": "0|[2-9]|[1-8][0-9]|9[0-7]",
        "HHSPAN": "[012]",
        "HHRACE": "[0-5][0-9]|6[0-3]",
        "TEN": "[0-4]",
        "HHT": "[0-7]",
        "HHT2": "0[0-9]|1[0-2]",
        "CPLT": "[0-5]",
    },
    "geo": {
        "RTYPE": "[24]",
        "MAFID": "[1-8][0-9]{8}",
        "TABBLKST": "[0-9]{2}",
        "TABBLKCOU": "[0-9]{2}[13579]",
        "TABTRACTCE": "[0-9]{6}",
        "TABBLK": "[0-9]{4}",
        "TABBLKGRPCE": "[0-9]",
        "REGIONCE": "[12349]",
        "DIVISIONCE": "[0-9]",
        "PLACEFP": "[0-9]{5}",
        "AIANNHCE": "[0-9]{4}",
    },
}
# Census divisions as the Bureau lists them
DIVISIONS = {
    ("1", "1"): "09 23 25 33 44 50",
    ("1", "2"): "34 36 42",
    ("2", "3"): "17 18 26 39 55",
    ("2", "4"): "19 20 27 29 31 38 46",
    ("3", "5"): "10 11 12 13 24 37 45 51 54",
    ("3", "6"): "01 21 28 47",
    ("3", "7"): "05 22 40 48",
    ("4", "8"): "04 08 16 30 32 35 49 56",
    ("4", "9"): "02 06 15 41 53",
    ("9", "0"): "72",
}
RECORDS = {"person-records.txt", "household-records.txt", "quarters.csv"}
BLOCKS = {"GRF-C.txt", "housing-units.txt", "group_quarters.csv"}
NOT_IN_UNIVERSE = {"HHSPAN": "0", "HHRACE": "00", "TEN": "0", "HHT": "0", "HHT2": "00", "CPLT": "0"}
RELATIVES = {str(code) for code in range(25, 34)}
OWN_CHILD = {"25", "26", "27"}
COUPLES = {"21": "1", "23": "2", "22": "3", "24": "4"}

Row = dict[str, str]


@dataclass
class Census:
    persons: list[Row]
    units: list[Row]
    geo: list[Row]


def read(folder: Path) -> Census:
    tables = {}
    for table, header in HEADERS.items():
        with (folder / f"{table}.csv").open(newline="", encoding="ascii") as file:
            assert file.readline() == header + "\n"
            names = header.split("|")
            tables[table] = [dict(zip(names, row, strict=True)) for row in csv.reader(file, delimiter="|")]
    return Census(**tables)


def family_size(people: list[Row]) -> int:
    family = sum(person["RELSHIP"] in RELATIVES | {"20", "21", "23"} for person in people)
    return family if family > 1 else 0


def expected_hht(unit: Row, people: list[Row]) -> set[str]:
    related = any(person["RELSHIP"] in RELATIVES for person in people)
    if unit["CPLT"] in {"1", "2"}:
        return {"1"}
    if unit["CPLT"] in {"3", "4"}:
        return {"2", "3"} if related else {"5", "7"}
    female = unit["HHT2"] in {"05", "06", "07", "08"}
    if related:
        return {"3"} if female else {"2"}
    alone, together = ("6", "7") if female else ("4", "5")
    return {alone if len(people) == 1 else together}


def expected_hht2(unit: Row, people: list[Row]) -> set[str]:
    own_child = any(person["RELSHIP"] in OWN_CHILD and int(person["QAGE"]) < 18 for person in people)
    if unit["CPLT"] in {"1", "2"}:
        return {"01"} if own_child else {"02"}
    if unit["CPLT"] in {"3", "4"}:
        return {"03"} if own_child else {"04"}
    if own_child:
        return {"06", "10"}
    if len(people) == 1:
        return {"05", "09"}
    if any(person["RELSHIP"] in RELATIVES for person in people):
        return {"07", "11"}
    return {"08", "12"}


def broken_in_household(unit: Row, people: list[Row]) -> Iterator[str]:
    householders = [person for person in people if person["RELSHIP"] == "20"]
    if len(householders) != 1:
        yield "one householder"
        return
    (householder,) = householders
    if (unit["HHSPAN"], unit["HHRACE"]) != (householder["CENHISP"], householder["CENRACE"]):
        yield "race and origin of the householder"
    if any(unit[name] == zero for name, zero in NOT_IN_UNIVERSE.items()):
        yield "zero codes"
    partners = [COUPLES[person["RELSHIP"]] for person in people if person["RELSHIP"] in COUPLES]
    if (partners or ["5"]) != [unit["CPLT"]]:
        yield "CPLT"
    if unit["HHT2"] not in expected_hht2(unit, people):
        yield "HHT2"
    if unit["HHT"] not in expected_hht(unit, people):
        yield "HHT"
    if int(unit["NPF"]) != family_size(people):
        yield "NPF"


def broken_in_unit(unit: Row, people: list[Row]) -> Iterator[str]:
    quarters = unit["RTYPE"] == "4"
    if any(person["RTYPE"] != ("5" if quarters else "3") for person in people):
        yield "record types"
    if any((person["RELSHIP"] in {"37", "38"}) != quarters for person in people):
        yield "group quarters people"
    if int(unit["FINAL_POP"]) != len(people):
        yield "FINAL_POP"
    if not quarters and people:
        yield from broken_in_household(unit, people)
    elif any(unit[name] != zero for name, zero in NOT_IN_UNIVERSE.items()) or unit["NPF"] != "0":
        yield "zero codes"


def broken_in_place(place: Row) -> Iterator[str]:
    if place["TABBLK"][0] != place["TABBLKGRPCE"] or place["TABBLKGRPCE"] == "0":
        yield "block group of the block"
    if place["TABBLKST"] not in DIVISIONS.get((place["REGIONCE"], place["DIVISIONCE"]), "").split():
        yield "region and division"


def broken_between_tables(census: Census) -> Iterator[str]:
    ids = [unit["MAFID"] for unit in census.units]
    if len(set(ids)) < len(ids) or not all(100_000_001 <= int(mafid) <= 899_999_999 for mafid in ids):
        yield "unique MAFID"
    if sorted((unit["MAFID"], unit["RTYPE"]) for unit in census.units) != sorted(
        (place["MAFID"], place["RTYPE"]) for place in census.geo
    ):
        yield "geo of every unit"
    if not {person["MAFID"] for person in census.persons} <= set(ids):
        yield "unit of every person"


def broken_rules(census: Census) -> set[str]:
    broken = set(broken_between_tables(census))
    for table, patterns in PATTERNS.items():
        for row in getattr(census, table):
            broken.update(name for name, pattern in patterns.items() if not re.fullmatch(pattern, row[name]))
    living = defaultdict(list)
    for person in census.persons:
        living[person["MAFID"]].append(person)
    for unit in census.units:
        broken.update(broken_in_unit(unit, living[unit["MAFID"]]))
    for place in census.geo:
        broken.update(broken_in_place(place))
    return broken


@pytest.fixture(scope="module")
def folder_and_summary(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, CensusSummary]:
    out = tmp_path_factory.mktemp("census") / "new" / "census"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(synthetic, "CHUNK", 1100)  # three chunks, the last one smaller
        summary = synthesize(out, households=3000, states=[*ALL_51_STATE_CODES, "72"], seed=5)
    return out, summary


@pytest.fixture
def census(folder_and_summary: tuple[Path, CensusSummary]) -> Census:
    return read(folder_and_summary[0])


@pytest.mark.slow
def test_every_rule_holds(census: Census) -> None:
    assert broken_rules(census) == set()


def break_unit(hht2: str, **changes: str) -> Callable[[Census], None]:
    def change(census: Census) -> None:
        next(unit for unit in census.units if unit["HHT2"] == hht2).update(changes)

    return change


def break_person(relship: str, **changes: str) -> Callable[[Census], None]:
    def change(census: Census) -> None:
        next(person for person in census.persons if person["RELSHIP"] == relship).update(changes)

    return change


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (break_person("21", RELSHIP="20"), "one householder"),
        (break_person("20", CENRACE="62"), "race and origin of the householder"),
        (break_person("20", RTYPE="5"), "record types"),
        (break_person("20", MAFID="899999999"), "unit of every person"),
        (break_person("37", RELSHIP="36"), "group quarters people"),
        (break_person("34", RELSHIP="38"), "group quarters people"),
        (break_person("23", RELSHIP="24"), "CPLT"),
        (break_person("20", QAGE="116"), "QAGE"),
        (break_unit("01", HHT2="02"), "HHT2"),
        (break_unit("02", HHT="2"), "HHT"),
        (break_unit("02", NPF="97"), "NPF"),
        (break_unit("05", FINAL_POP="2"), "FINAL_POP"),
        (break_unit("05", TEN="0"), "zero codes"),
        (break_unit("00", HHSPAN="1"), "zero codes"),
        (lambda census: census.geo.pop(), "geo of every unit"),
        (lambda census: census.units.append(census.units[0]), "unique MAFID"),
        (lambda census: census.geo[0].update(TABBLKGRPCE="9"), "block group of the block"),
        (lambda census: census.geo[0].update(DIVISIONCE="0"), "region and division"),
    ],
)
def test_the_rules_can_be_broken(census: Census, change: Callable[[Census], None], rule: str) -> None:
    change(census)
    assert rule in broken_rules(census)


def test_the_summary_counts_the_rows(folder_and_summary: tuple[Path, CensusSummary], census: Census) -> None:
    summary = folder_and_summary[1]
    occupied = sum(unit["RTYPE"] == "2" and unit["FINAL_POP"] != "0" for unit in census.units)
    vacant = sum(unit["RTYPE"] == "2" and unit["FINAL_POP"] == "0" for unit in census.units)
    quarters = sum(unit["RTYPE"] == "4" for unit in census.units)
    assert summary == CensusSummary(len(census.persons), len(census.units), occupied, vacant, quarters)
    assert occupied == 3000
    assert 0.09 < vacant / (occupied + vacant) < 0.11


def test_every_code_is_used(census: Census) -> None:
    assert {person["RELSHIP"] for person in census.persons} == {str(code) for code in range(20, 39)}
    for name, codes in {"HHT2": 13, "HHT": 8, "CPLT": 6, "TEN": 5, "HHSPAN": 3}.items():
        assert len({unit[name] for unit in census.units}) == codes
    assert len({place["TABBLKST"] for place in census.geo}) == 52
    assert {f"{race:02}" for race in range(1, 12)} <= {person["CENRACE"] for person in census.persons}


def test_ages_fit_the_family(census: Census) -> None:
    householders = {person["MAFID"]: int(person["QAGE"]) for person in census.persons if person["RELSHIP"] == "20"}
    assert min(householders.values()) >= 15
    spouse_gaps = []
    for person in census.persons:
        if person["RTYPE"] == "5":
            continue
        younger = householders[person["MAFID"]] - int(person["QAGE"])
        if person["RELSHIP"] in OWN_CHILD:
            assert 16 <= younger <= 45
        elif person["RELSHIP"] in {"29", "31"}:
            assert 16 <= -younger <= 46
        elif person["RELSHIP"] == "30":
            assert younger >= 32
        elif person["RELSHIP"] in {"21", "23"}:
            spouse_gaps.append(abs(younger))
    assert sum(spouse_gaps) / len(spouse_gaps) < 6


def test_distributions_look_like_a_nation(census: Census) -> None:
    sizes = [int(unit["FINAL_POP"]) for unit in census.units if unit["HHT2"] != "00"]
    children = Counter(
        person["MAFID"] for person in census.persons if person["RELSHIP"] in OWN_CHILD and int(person["QAGE"]) < 18
    )
    assert 2.45 < sum(sizes) / len(sizes) < 2.65
    assert max(sizes) > 10
    assert max(children.values()) > 6
    quarters = sum(person["RTYPE"] == "5" for person in census.persons)
    assert 0.02 < quarters / len(census.persons) < 0.03
    married = sum(unit["HHT"] == "1" for unit in census.units)
    assert 0.42 < married / len(sizes) < 0.50
    hispanic = Counter(person["CENHISP"] for person in census.persons)["2"]
    assert 0.18 < hispanic / len(census.persons) < 0.26


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.slow
def test_a_seed_gives_the_same_bytes_and_another_does_not(tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        synthesize(tmp_path / name, households=500, seed=seed)
    first, again, other = (contents(tmp_path / name) for name in "abc")
    assert first.keys() == {f"{table}.csv" for table in HEADERS} | RECORDS | BLOCKS | {"SYNTHETIC"}
    assert first == again
    # The two group quarters of so few households are of the two most frequent types, whatever the seed.
    assert all(first[name] != other[name] for name in first.keys() - {"quarters.csv"})


@pytest.mark.slow
def test_without_a_seed_the_marker_tells_the_number_that_repeats_it(tmp_path: Path) -> None:
    synthesize(tmp_path / "a", households=50)
    seed = re.search(r"seed (\d+)", (tmp_path / "a" / "SYNTHETIC").read_text(encoding="utf-8"))
    assert seed is not None
    synthesize(tmp_path / "b", households=50, seed=int(seed[1]))
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


@pytest.mark.slow
def test_parquet_holds_what_csv_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synthetic, "CHUNK", 230)  # what is drawn in three parts is one file
    # a name that a file pattern would read otherwise
    parquet = tmp_path / "it's [a] *.census"
    assert synthesize(parquet, households=500, seed=3, fmt="parquet") == synthesize(
        tmp_path / "csv", households=500, seed=3
    )
    names = {f"{table}.parquet" for table in (*HEADERS, "person-records", "household-records", "quarters")}
    assert {path.name for path in parquet.iterdir()} == names | BLOCKS | {"SYNTHETIC"}
    assert all((parquet / name).read_bytes() == (tmp_path / "csv" / name).read_bytes() for name in BLOCKS)
    expected = read(tmp_path / "csv")
    integers = {"MAFID", "QAGE", "CENHISP", "FINAL_POP", "NPF", "HHSPAN"}
    for table, header in HEADERS.items():
        found = duckdb.execute("from read_parquet($1)", [str(parquet / f"{table}.parquet").replace("[", "[[]")])
        types = {name: str(kind) for name, kind, *_ in found.description}
        assert list(types) == header.split("|")
        for name, kind in types.items():
            assert kind == ("INTEGER" if name in integers else "VARCHAR")
        rows = [[str(value) for value in row] for row in found.fetchall()]
        assert rows == [list(row.values()) for row in getattr(expected, table)]


def test_only_the_states_asked_for(tmp_path: Path) -> None:
    synthesize(tmp_path / "pr", households=200, states=["72"], seed=1)
    census = read(tmp_path / "pr")
    assert {place["TABBLKST"] for place in census.geo} == {"72"}
    assert broken_rules(census) == set()


@pytest.mark.parametrize("households", [1, 2, 60])
def test_a_tiny_census_holds_together(tmp_path: Path, households: int) -> None:
    assert synthesize(tmp_path / "tiny", households=households, seed=1).households == households
    assert broken_rules(read(tmp_path / "tiny")) == set()


def test_an_empty_folder_is_taken_and_a_full_one_refused(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    synthesize(out, households=20, seed=1)
    before = contents(out)
    with pytest.raises(OutputError, match="is not empty"):
        synthesize(out, households=20, seed=2)
    assert contents(out) == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_nothing_is_left_of_a_failure(tmp_path: Path) -> None:
    def fail(done: int, total: int) -> None:
        assert (done, total) == (20, 20)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        synthesize(tmp_path / "out", households=20, progress=fail)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "request_",
    [
        {"households": 0},
        {"households": 10, "states": []},
        {"households": 10, "states": ["6"]},
        {"households": 10, "states": ["06", "06"]},
        {"households": 10, "seed": -1},
        {"households": 10, "fmt": "xml"},
        {"households": 800_000_000},
    ],
)
def test_what_cannot_be_served_is_refused(tmp_path: Path, request_: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        synthesize(tmp_path / "out", **request_)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []
