"""A population no one here made through PHSafe: the town of pseudopeople, converted by examples/pseudopeople.py.

The tables are compared with two plain computations that share nothing with the package: one from the converted files,
one from the categories of the source, which knows no code of the Census Bureau.
"""

import contextlib
import csv
import importlib.util
import io
import json
import math
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import duckdb
import pytest
from places import ROOT, SHARED

from yupana.cli.main import main

pytestmark = pytest.mark.thorough

SOURCE = SHARED / "data" / "pseudopeople_sample_wa" / "decennial_census.parquet"
SCRIPT = ROOT / "examples" / "pseudopeople.py"
PAGE = ROOT / "docs" / "pseudopeople.md"

needs_source = pytest.mark.skipif(
    not SOURCE.is_file(), reason="the pseudopeople sample is not in ../shared/data/pseudopeople_sample_wa"
)

TAU = {"PH1_num": 10, "PH2": 10, "PH3": 6, "PH4": 10, "PH6": 6, "PH7": 10}
# rho of state_A-G, and of state_H,I and state_* (the paper's table 10)
RHO = {
    **dict.fromkeys(("PH1_num", "PH2", "PH4", "PH7"), ("0.141622", "0.016371")),
    **dict.fromkeys(("PH3", "PH6"), ("0.662976", "0.006630")),
    **dict.fromkeys(("PH1_denom", "PH5_denom", "PH8_denom"), ("0.001170", "0.000135")),
}
NOT_ITERATED = {"PH2", "PH6"}
CELLS = {
    "PH1_num": (2, 3),
    "PH1_denom": (1,),
    "PH2": (3, 4, 6, 7, 9, 10, 12, 13),
    "PH3": (2, 4, 5, 6, 7, 9, 10),
    "PH4": (2, 3),
    "PH5_denom": (1,),
    "PH6": tuple(cell for base in (3, 8, 13, 18) for cell in range(base, base + 4)),
    "PH7": (2, 3, 4),
    "PH8_denom": (2, 3),
}

Key = tuple[str, str, int]
"""Table, iteration, cell."""


class Answer(NamedTuple):
    """A published count with its variance and margin of error."""

    value: int
    variance: float
    moe: float


class Town(NamedTuple):
    """The converted folder and what the script printed."""

    folder: Path
    printed: str

    @property
    def config(self) -> Path:
        return self.folder / "config.json"


def yupana(*arguments: str | Path) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as told:
        assert main(list(map(str, arguments))) == 0
    return told.getvalue()


def released(folder: Path) -> dict[Key, Answer]:
    answers = {}
    for path in folder.glob("*.csv"):
        for row in rows_of(path):
            assert (row["REGION_TYPE"], row["REGION_ID"]) == ("STATE", "53")
            cell = int(row[f"{path.stem.upper()}_DATA_CELL"])
            key = (path.stem, row.get("ITERATION_CODE", "*"), cell)
            answers[key] = Answer(int(row["COUNT"]), float(row["VARIANCE"]), float(row["MOE"]))
    return answers


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file, delimiter="|"))


@pytest.fixture(scope="module")
def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("pseudopeople_example", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Town:
    folder = tmp_path_factory.mktemp("pseudopeople") / "anytown"
    done = subprocess.run([sys.executable, SCRIPT, SOURCE, folder], capture_output=True, text=True, check=True)
    return Town(folder, done.stdout)


@pytest.fixture(scope="module")
def exact(town: Town) -> dict[Key, Answer]:
    """With the thresholds of production."""
    out = town.folder.with_name("exact")
    yupana("phsafe", "exact", town.config, town.folder, out)
    return released(out)


@pytest.fixture(scope="module")
def whole(town: Town) -> dict[Key, int]:
    """With thresholds that no household reaches."""
    config = json.loads(town.config.read_text())
    config["tau"] = dict.fromkeys(config["tau"], 1000)
    path = town.folder.with_name("whole.json")
    path.write_text(json.dumps(config))
    out = town.folder.with_name("whole")
    yupana("phsafe", "exact", path, town.folder, out)
    return {key: answer.value for key, answer in released(out).items()}


@pytest.fixture(scope="module")
def source() -> list[dict[str, Any]]:
    with duckdb.connect() as db:
        found = db.execute("SELECT * FROM read_parquet(?) WHERE year = 2020", [str(SOURCE)])
        names = [column[0] for column in found.description or ()]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


# --- The converted files, counted in plain Python from the cell definitions of the specification ---


def iterations(race: str, hispanic: str) -> Iterator[str]:
    yield "*"
    yield "ABCDEF"[int(race) - 1] if int(race) <= 6 else "G"
    if hispanic == "2":
        yield "H"
    elif race == "01":
        yield "I"


def person_cells(person: dict[str, str], unit: dict[str, str]) -> Iterator[tuple[str, int]]:
    """The tables whose universe a person is in, before the join for PH4, with the cell; 0 for none."""
    age, relship, hht2 = int(person["QAGE"]), int(person["RELSHIP"]), unit["HHT2"]
    age_cell = 2 if age < 18 else 3
    in_household = person["RTYPE"] == "3"
    if relship in {20, 21, 23, *range(25, 34)}:
        yield "PH4", age_cell if unit["HHT"] in "123" else 0
    if not in_household:
        return
    yield "PH1_num", age_cell
    yield "PH7", {"1": 2, "2": 3, "3": 4, "4": 4}[unit["TEN"]]
    couple = {"1": 3, "2": 4, "3": 6, "4": 7}
    alone = {"09": 9, "10": 10, "11": 10, "12": 10, "05": 12, "06": 13, "07": 13, "08": 13}
    yield "PH2", couple[unit["CPLT"]] if unit["CPLT"] in couple else alone[hht2]
    if age >= 18:
        return
    if relship in {25, 26, 27}:
        yield "PH3", {"01": 4, "03": 5, "10": 6, "06": 7}[hht2]
        yield "PH6", {"01": 3, "03": 8, "10": 13, "06": 18}[hht2] + sum(age >= bound for bound in (4, 6, 12))
    else:
        yield "PH3", 9 if relship == 30 else 10 if relship in {28, 29, 31, 32, 33} else 2


def unit_cells(unit: dict[str, str]) -> Iterator[tuple[str, int]]:
    if unit["RTYPE"] == "2" and unit["HHT"] != "0":
        yield "PH1_denom", 1
        yield "PH8_denom", 2 if unit["TEN"] in "12" else 3
    if unit["HHT"] in "123":
        yield "PH5_denom", 1


@pytest.fixture(scope="module")
def counted(town: Town) -> tuple[Counter[Key], dict[str, Counter[str]]]:
    return from_files(town.folder)


def from_files(folder: Path) -> tuple[Counter[Key], dict[str, Counter[str]]]:
    """Counts without truncation, and persons in a table's universe by unit."""
    units = {unit["MAFID"]: unit for unit in rows_of(folder / "units.csv")}
    counts: Counter[Key] = Counter()
    universe: dict[str, Counter[str]] = defaultdict(Counter)
    for person in rows_of(folder / "persons.csv"):
        unit = units[person["MAFID"]]
        for table, cell in person_cells(person, unit):
            universe[table][person["MAFID"]] += 1
            by_person = (person["CENRACE"], person["CENHISP"])
            groups = by_person if table == "PH3" else (unit["HHRACE"], unit["HHSPAN"])
            counts.update((table, code, cell) for code in iterations(*groups) if cell)
    for unit in units.values():
        for table, cell in unit_cells(unit):
            counts.update((table, code, cell) for code in iterations(unit["HHRACE"], unit["HHSPAN"]))
    return counts, universe


def keys(table: str) -> list[Key]:
    codes = "*" if table in NOT_ITERATED else "*ABCDEFGHI"
    return [(table, code, cell) for code in codes for cell in CELLS[table]]


@needs_source
def test_every_cell_equals_a_plain_count_of_the_files(
    counted: tuple[Counter[Key], dict[str, Counter[str]]], whole: dict[Key, int]
) -> None:
    counts, _ = counted
    for table in CELLS:
        assert {key: whole[key] for key in whole if key[0] == table} == {key: counts[key] for key in keys(table)}


@needs_source
@pytest.mark.thorough
def test_derived_tables_add_up(exact: dict[Key, Answer]) -> None:
    for code in "*ABCDEFGHI":
        for cell in (2, 3):
            assert exact["PH5_num", code, cell].value == exact["PH4", code, cell].value
        owners = exact["PH7", code, 2].value + exact["PH7", code, 3].value
        assert exact["PH8_num", code, 2].value == owners
        assert exact["PH8_num", code, 3].value == exact["PH7", code, 4].value


@needs_source
@pytest.mark.parametrize("table", TAU)
def test_truncation_takes_what_is_over_the_threshold(
    table: str,
    counted: tuple[Counter[Key], dict[str, Counter[str]]],
    exact: dict[Key, Answer],
    whole: dict[Key, int],
) -> None:
    _, universe = counted
    over = sum(max(0, persons - TAU[table]) for persons in universe[table].values())
    lost = {key: whole[key] - exact[key].value for key in keys(table)}
    assert all(0 <= loss <= over for loss in lost.values())
    assert sum(loss for (_, code, _), loss in lost.items() if code == "*") == over
    # the town has one household of more than ten, a family, and none with more than six children
    assert over == (2 if TAU[table] == 10 else 0)


# --- The same numbers from the categories of the source: households, ages, and the origins that it has ---

CHILD = {"Biological child", "Adopted child", "Stepchild"}
KIN = {"Sibling", "Parent", "Parent-in-law", "Child-in-law", "Other relative"}
SPOUSE = {"Opposite-sex spouse", "Same-sex spouse"}
RELATIVE = CHILD | KIN | {"Grandchild"}
COUPLE_CELL = {
    "Opposite-sex spouse": 3,
    "Same-sex spouse": 4,
    "Opposite-sex unmarried partner": 6,
    "Same-sex unmarried partner": 7,
}


def from_source(source: list[dict[str, Any]]) -> Counter[Key]:
    """PH1 to PH6 for all, for Latinos (H) and for White alone, not Latino (I), whose origins are all in the source."""
    households: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for person in source:
        if person["housing_type"] == "Household":
            households[person["household_id"]].append(person)
    codes = {"Latino": "*H", "White": "*I"}
    counts: Counter[Key] = Counter()
    for members in households.values():
        relations = {person["relationship_to_reference_person"] for person in members}
        (reference,) = (p for p in members if p["relationship_to_reference_person"] == "Reference person")
        groups = codes.get(reference["race_ethnicity"], "*")
        counts.update(("PH1_denom", code, 1) for code in groups)
        family = bool(relations & (RELATIVE | SPOUSE))
        counts.update(("PH5_denom", code, 1) for code in groups if family)
        couple = next((cell for relation, cell in COUPLE_CELL.items() if relation in relations), 0)
        male = reference["sex"] == "Male"
        for person in members:
            relation, young = person["relationship_to_reference_person"], person["age"] < 18
            own = codes.get(person["race_ethnicity"], "*")
            counts.update(("PH1_num", code, 2 if young else 3) for code in groups)
            counts["PH2", "*", couple or (9 if male else 12) + (len(members) > 1)] += 1
            if family and relation in RELATIVE | SPOUSE | {"Reference person"}:
                counts.update(("PH4", code, 2 if young else 3) for code in groups)
            if not young:
                continue
            if relation in CHILD:
                kind = 0 if couple in {3, 4} else 1 if couple else 2 if male else 3
                counts.update(("PH3", code, 4 + kind) for code in own)
                band = next(i for i, ages in enumerate(((0, 3), (4, 5), (6, 11), (12, 17))) if person["age"] <= ages[1])
                counts["PH6", "*", 3 + 5 * kind + band] += 1
            else:
                counts.update(
                    ("PH3", code, 9 if relation == "Grandchild" else 10 if relation in KIN else 2) for code in own
                )
    return counts


@needs_source
def test_what_is_not_drawn_equals_a_count_of_the_source(source: list[dict[str, Any]], whole: dict[Key, int]) -> None:
    counts = from_source(source)
    tables = ("PH1_num", "PH1_denom", "PH2", "PH3", "PH4", "PH5_denom", "PH6")
    here = [key for table in tables for key in keys(table) if key[1] in "*HI"]
    assert {key: whole[key] for key in here} == {key: counts[key] for key in here}


@needs_source
def test_nobody_is_lost(source: list[dict[str, Any]], town: Town, whole: dict[Key, int]) -> None:
    in_households = [person for person in source if person["housing_type"] == "Household"]
    assert len(source) == 10_387 == len(rows_of(town.folder / "persons.csv"))
    assert sum(p["age"] < 18 for p in in_households) == whole["PH1_num", "*", 2]
    assert sum(whole["PH7", "*", cell] for cell in (2, 3, 4)) == len(in_households) == 9_606
    assert sum(whole["PH8_denom", "*", cell] for cell in (2, 3)) == len({p["household_id"] for p in in_households})
    assert re.search(r"10387 persons, 4070 households, 6 group quarters", town.printed)
    # no household of the sample needs to be left out or repaired
    touched = [int(line.split()[0]) for line in town.printed.splitlines()[1:]]
    assert touched == [0, 0, 0, 0, 12]


# --- The commands ---


@needs_source
@pytest.mark.thorough
def test_validate_finds_nothing(town: Town) -> None:
    answer = json.loads(yupana("phsafe", "validate", town.config, town.folder, "--json"))
    assert answer["valid"]
    assert answer["findings"] == []


@needs_source
@pytest.mark.thorough
def test_plan_is_the_state_half_of_production(town: Town) -> None:
    plan = json.loads(yupana("phsafe", "plan", town.config, "--json"))
    assert plan["totals"]["unbounded_rho"] == "1226649/1000000"
    assert plan["totals"]["bounded_rho"] == "1226649/500000"
    levels = {(m["table"], m["level"]): m for m in plan["measurements"]}
    assert len(levels) == 2 + 3 * (len(CELLS) - 2)
    for (table, level), m in levels.items():
        rho = Fraction(RHO[table][level != "state_A-G"])
        delta = 2 * TAU[table] + 2 if table in TAU else 2
        assert Fraction(m["rho"]) == rho
        assert Fraction(m["sigma2"]) == delta**2 / (2 * rho)


@needs_source
@pytest.mark.thorough
def test_release_is_within_six_sigma_and_holds_together(town: Town, exact: dict[Key, Answer]) -> None:
    out = town.folder.with_name("release")
    yupana("phsafe", "run", town.config, town.folder, out, "--margins", "bureau")
    noisy = released(out)
    assert noisy.keys() == exact.keys()
    scores = {key: (answer.value - exact[key].value) / math.sqrt(answer.variance) for key, answer in noisy.items()}
    assert not [key for key, score in scores.items() if abs(score) >= 6]
    for answer in noisy.values():
        assert answer.moe == pytest.approx(1.645 * math.sqrt(answer.variance))
    # The mean square of what was drawn, which the derived tables repeat: a chi-square.
    drawn = [score**2 for (table, _, _), score in scores.items() if table in CELLS]
    assert abs(sum(drawn) / len(drawn) - 1) < 6 * math.sqrt(2 / len(drawn))

    answer = json.loads(yupana("check", out, "--json"))
    assert answer["tables"] == 11
    assert answer["wrong"] == []
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["parameters"]["states"] == ["53"]
    assert manifest["ledger"]["spent"] == "1226649/1000000"


@needs_source
def test_accuracy_reports_the_noise_and_the_truncation(
    town: Town, exact: dict[Key, Answer], whole: dict[Key, int]
) -> None:
    rows = json.loads(yupana("phsafe", "accuracy", town.config, town.folder, "--trials", "50", "--seed", "1", "--json"))
    assert {(row["table"], row["iteration"], row["cell"]) for row in rows} == set(exact)
    for row in rows:
        key = row["table"], row["iteration"], row["cell"]
        assert row["count"] == 50
        assert row["bias_from_truncation"] == pytest.approx(exact[key].value - whole[key])
        # The 90 percent quantile of |noise| in 50 draws has a standard error of 0.125 margins.
        error = 0.125 * math.sqrt(50 / row["count"])
        assert row["experimental_moe"] == pytest.approx(row["expected_moe"], rel=6 * error)


@needs_source
def test_the_page_shows_the_counts_of_this_census(exact: dict[Key, Answer]) -> None:
    found = re.findall(
        r"^\| (PH\w+) \| (\S) \| (\d+) \| [^|]+ \| ([\d,]+) \| (-?[\d,]+) \| ([\d.]+) \|$",
        PAGE.read_text(),
        re.MULTILINE,
    )
    assert len(found) > 10
    plan_moe = {
        (table, by_race): moe for table in RHO for by_race, moe in ((True, _moe(table, 0)), (False, _moe(table, 1)))
    }
    for table, code, cell, count, _, margin in found:
        assert exact[table, code, int(cell)].value == int(count.replace(",", "")), (table, code, cell)
        assert float(margin) == pytest.approx(plan_moe[table, code in "ABCDEFG"], abs=0.051)


def _moe(table: str, level: int) -> float:
    delta = 2 * TAU[table] + 2 if table in TAU else 2
    return 1.645 * delta / math.sqrt(2 * float(RHO[table][level]))


@needs_source
def test_another_year_is_valid(tmp_path: Path) -> None:
    subprocess.run([sys.executable, SCRIPT, SOURCE, tmp_path / "t", "--year", "2040"], check=True)
    yupana("phsafe", "validate", tmp_path / "t" / "config.json", tmp_path / "t")


# --- The rules of conversion on households made for them; these need no data ---


def people(
    example: ModuleType, *members: tuple[str, int, str], race: str = "White", kind: str = "Household"
) -> list[Any]:
    return [
        example.Person("h", str(i), age, sex, race, relationship, kind)
        for i, (relationship, age, sex) in enumerate(members)
    ]


REFERENCE = ("Reference person", 40, "Female")
ONE, TWO = ("Opposite-sex spouse", 41, "Male"), ("Opposite-sex unmarried partner", 42, "Male")


def test_of_several_partners_the_spouse_stays(example: ModuleType) -> None:
    census = example.convert(people(example, REFERENCE, TWO, ONE), seed=0)
    assert [row[-1] for row in census.persons] == [20, 36, 21]
    assert census.touched[example.REPAIRED_PARTNERS] == 1
    # NPF, then HHT, HHT2, CPLT: a married couple without children
    assert (census.units[0][3], *census.units[0][-3:]) == (2, 1, "02", 1)


@pytest.mark.parametrize(
    ("members", "rule"),
    [
        ([REFERENCE, REFERENCE], "LEFT_OUT_REFERENCE"),
        ([ONE], "LEFT_OUT_REFERENCE"),
        ([REFERENCE, ("Institutionalized group quarters population", 50, "Male")], "LEFT_OUT_MIXED"),
    ],
)
def test_households_that_cannot_be_expressed_are_left_out(
    members: list[tuple[str, int, str]], rule: str, example: ModuleType
) -> None:
    census = example.convert(people(example, *members), seed=0)
    assert not census.persons + census.units + census.geo
    assert census.touched[getattr(example, rule)] == 1


def test_a_reference_person_in_group_quarters_leaves_out_the_facility(example: ModuleType) -> None:
    census = example.convert(people(example, REFERENCE, kind="College"), seed=0)
    assert census.touched[example.LEFT_OUT_MIXED] == 1
    assert census.units == []


def test_the_category_decides_over_the_sexes(example: ModuleType) -> None:
    census = example.convert(people(example, REFERENCE, ("Same-sex spouse", 41, "Male")), seed=0)
    assert census.touched[example.KEPT_COUPLE_SEX] == 1
    assert census.units[0][-1] == 2


@pytest.mark.parametrize(
    ("others", "sex", "derived"),
    [
        ([], "Male", (0, 4, "09", 5)),
        ([], "Female", (0, 6, "05", 5)),
        ([("Sibling", 30, "Male")], "Male", (2, 2, "11", 5)),
        ([("Foster child", 3, "Male")], "Female", (0, 7, "08", 5)),
        ([("Stepchild", 17, "Male")], "Female", (2, 3, "06", 5)),
        ([("Stepchild", 18, "Male")], "Male", (2, 2, "11", 5)),
        ([("Roommate or housemate", 18, "Male")], "Male", (0, 5, "12", 5)),
        ([TWO], "Female", (0, 7, "04", 3)),
        ([TWO, ("Biological child", 0, "Male")], "Female", (2, 3, "03", 3)),
        ([("Same-sex spouse", 41, "Male"), ("Adopted child", 5, "Male")], "Male", (3, 1, "01", 2)),
        ([("Same-sex unmarried partner", 41, "Male")], "Male", (0, 5, "04", 4)),
    ],
)
def test_household_types(
    others: list[tuple[str, int, str]], sex: str, derived: tuple[int, int, str, int], example: ModuleType
) -> None:
    unit = example.convert(people(example, ("Reference person", 40, sex), *others), seed=0).units[0]
    assert (unit[3], *unit[-3:]) == derived


def test_draws_follow_the_seed_and_not_the_order(example: ModuleType) -> None:
    town = [
        example.Person(f"h{i}", f"p{i}", 30, "Male", race, "Reference person", "Household")
        for i, race in enumerate([example.LATINO, example.MULTIRACIAL_OR_OTHER] * 300)
    ]
    census = example.convert(town, seed=7)
    assert census == example.convert(reversed(town), seed=7)
    assert census.persons != example.convert(town, seed=8).persons
    hispanic = [(row[3], row[4]) for row in census.persons]
    assert sum(ethnicity == 2 for ethnicity, _ in hispanic) == 300
    # never a race that the category rules out
    assert {race for ethnicity, race in hispanic if ethnicity == 2} <= {"01", "02", "03", "06", "11"}
    assert {race for ethnicity, race in hispanic if ethnicity == 1} <= {f"{code:02}" for code in range(6, 64)}


def test_a_family_shares_the_race_that_is_drawn(example: ModuleType) -> None:
    family = people(example, REFERENCE, ONE, ("Biological child", 3, "Male"), race=example.LATINO)
    assert len({row[4] for row in example.convert(family, seed=1).persons}) == 1


def test_weights_are_what_the_page_says(example: ModuleType) -> None:
    drawn = Counter(example.draw(example.TENURE_DRAWN, 0, "tenure", str(i)) for i in range(20_000))
    for value, weight in example.TENURE_DRAWN.items():
        assert drawn[value] / 20_000 == pytest.approx(weight / 100, abs=6 * math.sqrt(weight / 100 / 20_000))
