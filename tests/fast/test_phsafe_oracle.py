"""PHSafe, from files to tables, against a tabulator written from its specification in plain loops.

The tabulator below shares nothing with the program. It follows the definitions of PHSafe's private tabulations (the
released specification and source of the Census Bureau's PHSafe 3.0.0) and docs/phsafe.md for what truncation keeps.
"""

import csv
import hashlib
import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from itertools import product
from pathlib import Path
from random import Random

import duckdb
import numpy as np
import pytest
from census_maker import (
    PARTNER_OF_CPLT,
    WITH_OWN_CHILD,
    Census,
    Person,
    Unit,
    random_census,
    seeded,
    write_csv,
    write_parquet,
)

from hollerith.cli.main import main

# --- the tabulator --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Spec:
    """One measured table: which persons (None: it counts units), which units, its cells, whose race and origin."""

    persons: Callable[[Person], bool] | None
    units: Callable[[Unit], bool]
    cells: tuple[int, ...]
    cell: Callable[[Person | None, Unit], int | None]
    by: str | None


def by_age(person: Person, _unit: Unit) -> int:
    return 2 if int(person.QAGE) < 18 else 3


HOUSEHOLD_TYPES = {
    3: ({"01", "02"}, {"1"}),
    4: ({"01", "02"}, {"2"}),
    6: ({"03", "04"}, {"3"}),
    7: ({"03", "04"}, {"4"}),
    9: ({"09"}, set("12345")),
    10: ({"10", "11", "12"}, set("12345")),
    12: ({"05"}, set("12345")),
    13: ({"06", "07", "08"}, set("12345")),
}


def household_type(_person: Person, unit: Unit) -> int | None:
    fitting = (cell for cell, (hht2, cplt) in HOUSEHOLD_TYPES.items() if unit.HHT2 in hht2 and unit.CPLT in cplt)
    return next(fitting, None)


def child(person: Person, unit: Unit) -> int | None:
    if person.RELSHIP in {"25", "26", "27"}:
        return {"01": 4, "03": 5, "10": 6, "06": 7}.get(unit.HHT2)
    if person.RELSHIP in {"20", "21", "22", "23", "24", "34", "35", "36"}:
        return 2
    if person.RELSHIP == "30":
        return 9
    return 10 if person.RELSHIP in {"28", "29", "31", "32", "33"} else None


def own_child(person: Person, unit: Unit) -> int | None:
    age = int(person.QAGE)
    first = {"01": 3, "03": 8, "10": 13, "06": 18}.get(unit.HHT2)
    return first and first + (age >= 4) + (age >= 6) + (age >= 12)


def tenure(_person: Person | None, unit: Unit) -> int | None:
    return {"1": 2, "2": 3, "3": 4, "4": 4}.get(unit.TEN)


def owner_or_renter(_person: Person | None, unit: Unit) -> int | None:
    return {"1": 2, "2": 2, "3": 3, "4": 3}.get(unit.TEN)


def is_young(person: Person) -> bool:
    return int(person.QAGE) < 18


FAMILY = {"20", "21", "23", "25", "26", "27", "28", "29", "30", "31", "32", "33"}
ANY = lambda _unit: True  # noqa: E731
OCCUPIED = lambda unit: unit.RTYPE == "2" and unit.HHT != "0"  # noqa: E731
IN_HOUSEHOLD = lambda person: person.RTYPE == "3"  # noqa: E731

SPECS = {
    "PH1_num": Spec(IN_HOUSEHOLD, ANY, (2, 3), by_age, "householder"),
    "PH1_denom": Spec(None, OCCUPIED, (1,), lambda _p, _u: 1, "householder"),
    "PH2": Spec(IN_HOUSEHOLD, ANY, tuple(HOUSEHOLD_TYPES), household_type, None),
    "PH3": Spec(lambda p: p.RTYPE == "3" and is_young(p), ANY, (2, 4, 5, 6, 7, 9, 10), child, "person"),
    "PH4": Spec(lambda p: p.RELSHIP in FAMILY, lambda u: u.HHT in "0123", (2, 3), by_age, "householder"),
    "PH5_denom": Spec(None, lambda u: u.HHT in "123", (1,), lambda _p, _u: 1, "householder"),
    "PH6": Spec(
        lambda p: is_young(p) and p.RELSHIP in {"25", "26", "27"},
        ANY,
        (3, 4, 5, 6, 8, 9, 10, 11, 13, 14, 15, 16, 18, 19, 20, 21),
        own_child,
        None,
    ),
    "PH7": Spec(IN_HOUSEHOLD, ANY, (2, 3, 4), tenure, "householder"),
    "PH8_denom": Spec(None, OCCUPIED, (2, 3), owner_or_renter, "householder"),
}
PERSON_TABLES = tuple(name for name, spec in SPECS.items() if spec.persons is not None)
CODES = {"A-G": "ABCDEFG", "H,I": "HI", "*": "*"}


def iterations(race: str, origin: str) -> set[str]:
    found = {"*"}
    if race != "00":
        found.add("ABCDEFG"[min(int(race), 7) - 1])
    if origin == "2":
        found.add("H")
    if origin == "1" and race == "01":
        found.add("I")
    return found


def kept(people: list[Person], tau: int, key: str) -> list[Person]:
    """The tau persons of one unit whose hash is smallest."""
    seen: Counter[Person] = Counter()
    hashed = []
    for person in people:
        seen[person] += 1
        text = "|".join((key, *person, str(seen[person])))
        hashed.append((hashlib.sha256(text.encode()).hexdigest(), person))
    return [person for _, person in sorted(hashed)[:tau]]


def breaks_a_rule(unit: Unit, people: list[Person], kind: str) -> bool:
    heads = [p for p in people if p.RELSHIP == "20"]
    empty = unit.FINAL_POP == "0" or unit.RTYPE == "4"
    zeros = [unit[4:].count(zero) for zero in ("0", "00")]
    relships = {p.RELSHIP for p in people}
    return (
        (unit.RTYPE == "2" and unit.FINAL_POP != "0" and len(heads) != 1)
        or (unit.RTYPE == "2" and any((p.CENRACE, p.CENHISP) != (unit.HHRACE, unit.HHSPAN) for p in heads))
        or any({"2": "3", "4": "5"}[unit.RTYPE] != p.RTYPE for p in people)
        or any(p.RELSHIP in {"37", "38"} and p.RTYPE != "5" for p in people)
        or int(unit.FINAL_POP) != len(people)
        or (sum(zeros) != 6 if empty else sum(zeros) != 0)
        or (unit.HHT2 in WITH_OWN_CHILD) != any(p.RELSHIP in {"25", "26", "27"} and is_young(p) for p in people)
        or any((code == unit.CPLT) != (relship in relships) for code, relship in PARTNER_OF_CPLT.items())
        or {"01": "married", "02": "married", "03": "cohabiting", "04": "cohabiting"}.get(unit.HHT2)
        != {"1": "married", "2": "married", "3": "cohabiting", "4": "cohabiting"}.get(unit.CPLT)
        or (unit.HHT == "1") != (unit.HHT2 in {"01", "02"})
        or kind != unit.RTYPE
    )


Row = tuple[str, str, str, int]
"""REGION_TYPE, REGION_ID, iteration, cell."""


@dataclass
class Config:
    states: tuple[str, ...] = ("06", "17", "48", "50")
    taus: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PERSON_TABLES, 3))
    key: str = ""
    drops: bool = False
    definition: str = "zcdp"
    budgets: dict[tuple[str, str], str] = field(default_factory=dict)
    """Budget by table and level where it is not 1."""

    def budget(self, table: str, level: str) -> str:
        return self.budgets.get((table, level), "1")

    def levels(self, table: str) -> list[tuple[str, str, str]]:
        """Region type, iteration codes and budget of each level that is measured."""
        groups = ("A-G", "H,I", "*") if SPECS[table].by else ("*",)
        found = []
        for region_type in ("USA", "STATE"):
            for group in groups:
                budget = self.budget(table, f"{region_type.lower()}_{group}")
                if budget not in {"0", "0.0"}:
                    found.append((region_type, CODES[group], budget))
        return found

    def write(self, path: Path) -> Path:
        budgets: dict[str, dict[str, str]] = {}
        for name, spec in SPECS.items():
            groups = ("A-G", "H,I", "*") if spec.by else ("*",)
            levels = [f"{region}_{group}" for region in ("usa", "state") for group in groups]
            budgets[name] = {level: self.budget(name, level) for level in levels}
        document = {
            "privacy_budget": budgets,
            "tau": self.taus,
            "state_filter": list(self.states),
            "reader": "csv",
            "privacy_defn": self.definition,
        }
        if self.key:
            document["truncation_key"] = self.key
        if self.drops:
            document["consistency"] = dict.fromkeys(ALL_RULES, "drop-and-count")
        path.write_text(json.dumps(document), encoding="utf-8")
        return path


ALL_RULES = (
    "one_householder",
    "householder_race",
    "record_types",
    "group_quarters_relationship",
    "final_pop",
    "zero_codes",
    "own_child",
    "couple",
    "couple_type",
    "family_type",
    "geo_record_type",
)


def tabulated(census: Census, config: Config) -> dict[str, dict[Row, int]]:
    """Every row that must be published, by table."""
    living = by_unit(census)
    state_of = {place.MAFID: place.TABBLKST for place in census.geo if place.RTYPE not in {"4", "5"}}
    units = [unit for unit in census.units if unit.MAFID in state_of]
    if config.drops:
        units = [unit for unit in units if not breaks_a_rule(unit, living[unit.MAFID], "2")]
    tables = {}
    for name in SPECS:
        if levels := config.levels(name):
            counts = counted(name, units, living, state_of, config)
            tables[name] = laid_out(name, levels, counts, sorted(set(state_of.values())))
    return tables | derived(tables)


def by_unit(census: Census) -> defaultdict[str, list[Person]]:
    living = defaultdict(list)
    for person in census.persons:
        living[person.MAFID].append(person)
    return living


def counted(
    name: str, units: list[Unit], living: dict[str, list[Person]], state_of: dict[str, str], config: Config
) -> Counter[tuple[str, str, int]]:
    """Records by state, iteration and cell."""
    spec = SPECS[name]
    counts: Counter[tuple[str, str, int]] = Counter()
    for unit in filter(spec.units, units):
        people: list[Person | None] = [None]
        if spec.persons is not None:
            people = [*kept(list(filter(spec.persons, living[unit.MAFID])), config.taus[name], config.key)]
        for person in people:
            cell = spec.cell(person, unit)
            whose = (person.CENRACE, person.CENHISP) if person and spec.by == "person" else (unit.HHRACE, unit.HHSPAN)
            for code in iterations(*whose) if cell else ():
                counts[state_of[unit.MAFID], code, cell] += 1
    return counts


def laid_out(
    name: str, levels: list[tuple[str, str, str]], counts: Counter[tuple[str, str, int]], states: list[str]
) -> dict[Row, int]:
    """A row for each region, iteration and cell, zeros included."""
    rows: dict[Row, int] = {}
    for region_type, codes, _ in levels:
        regions = {"1": states} if region_type == "USA" else {state: [state] for state in states}
        for (region, inside), code, cell in product(regions.items(), codes, SPECS[name].cells):
            rows[region_type, region, code, cell] = sum(counts[state, code, cell] for state in inside)
    return rows


def derived(tables: dict[str, dict[Row, int]]) -> dict[str, dict[Row, int]]:
    """PH5_num is PH4; PH8_num adds the two kinds of owners of PH7."""
    more = {}
    if "PH4" in tables:
        more["PH5_num"] = tables["PH4"]
    if "PH7" in tables:
        tenures = tables["PH7"]
        more["PH8_num"] = {
            (*row[:3], 2 if row[3] == 2 else 3): tenures[row] + tenures[(*row[:3], 3)] if row[3] == 2 else tenures[row]
            for row in tenures
            if row[3] != 3
        }
    return more


# --- what the program publishes -----------------------------------------------------------------------------------


def published(out: Path) -> dict[str, list[dict[str, str]]]:
    tables = {}
    for path in sorted(out.glob("*.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            tables[path.stem] = list(csv.DictReader(file, delimiter="|"))
    return tables


def row_of(table: str, row: dict[str, str]) -> Row:
    cell = int(row[f"{table.upper()}_DATA_CELL"])
    return row["REGION_TYPE"], row["REGION_ID"], row.get("ITERATION_CODE", "*"), cell


def counts_of(out: Path) -> dict[str, dict[Row, int]]:
    counts = {}
    for table, rows in published(out).items():
        counts[table] = {row_of(table, row): int(row["COUNT"]) for row in rows}
        assert len(counts[table]) == len(rows), f"{table} has a row twice"
    return counts


def exact(config: Path, data: Path, out: Path) -> dict[str, dict[Row, int]]:
    assert main(["phsafe", "exact", str(config), str(data), str(out)]) == 0
    return counts_of(out)


def random_config(random: Random, states: tuple[str, ...]) -> Config:
    config = Config(states, taus={name: random.choice((1, 2, 3, 4, 5, 10)) for name in PERSON_TABLES})
    config.key = random.choice(("", "a key", "Schlüssel|'\"%s"))
    config.definition = random.choice(("zcdp", "puredp"))
    for name in SPECS:
        for region in ("usa", "state"):
            for group in CODES:
                config.budgets[name, f"{region}_{group}"] = random.choice(("0.0", "0", "1/3", "2.5e-3", "7"))
    for name in random.sample(sorted(SPECS), 2):
        for region in ("usa", "state"):
            for group in CODES:
                config.budgets[name, f"{region}_{group}"] = "0"
    return config


STATES = ("06", "11", "17", "48", "50", "56")
FORMS: dict[str, Callable[[Path, Census], None]] = {
    "comma": write_csv,
    "bar": lambda folder, census: write_csv(folder, census, separator="|"),
    "crlf and bom": lambda folder, census: write_csv(folder, census, end="\r\n", bom=True),
    "quoted": lambda folder, census: write_csv(folder, census, quoted=True),
    "quoted bar crlf": lambda folder, census: write_csv(folder, census, separator="|", end="\r\n", quoted=True),
    "parquet text": lambda folder, census: write_parquet(folder, census, "text"),
    "parquet bureau": lambda folder, census: write_parquet(folder, census, "bureau"),
    "parquet integer": lambda folder, census: write_parquet(folder, census, "integer"),
}


@pytest.mark.parametrize(("seed", "form"), list(enumerate(FORMS)))
def test_every_cell_of_a_random_census(tmp_path: Path, seed: int, form: str) -> None:
    random = seeded(seed)
    census = random_census(random, random.sample(STATES, 3), random.choice((40, 300)))
    config = random_config(random, STATES)
    FORMS[form](tmp_path / "data", census)
    assert exact(config.write(tmp_path / "config.json"), tmp_path / "data", tmp_path / "out") == tabulated(
        census, config
    )


def test_the_random_censuses_reach_every_cell_and_iteration() -> None:
    # Otherwise agreement above would mean little.
    reached: set[tuple[str, str, int]] = set()
    for seed in range(5):
        tables = tabulated(random_census(seeded(seed), STATES, 300), Config(STATES))
        reached |= {(table, row[2], row[3]) for table, rows in tables.items() for row, count in rows.items() if count}
    everything = {(table, row[2], row[3]) for table, rows in tables.items() for row in rows}
    assert len(everything) == 10 * (2 + 1 + 7 + 2 + 2 + 1 + 3 + 2 + 2) + 8 + 16
    assert reached == everything


def test_truncation_matters_to_the_random_censuses() -> None:
    census = random_census(seeded(1), STATES, 300)
    loose, tight, keyed = (
        tabulated(census, Config(STATES, dict.fromkeys(PERSON_TABLES, tau), key))
        for tau, key in ((99, ""), (2, ""), (2, "key"))
    )
    assert all(loose[table] != tight[table] for table in PERSON_TABLES)
    assert all(tight[table] != keyed[table] for table in ("PH1_num", "PH3", "PH4", "PH6"))


@pytest.fixture(scope="module")
def one_census() -> Census:
    return random_census(seeded(77), STATES[:4], 250)


@pytest.mark.parametrize("form", ["comma", "parquet integer"])
def test_the_order_of_the_rows_does_not_matter(tmp_path: Path, one_census: Census, form: str) -> None:
    config = Config(STATES, dict.fromkeys(PERSON_TABLES, 1))
    FORMS[form](tmp_path / "data", one_census.shuffled(seeded(5)))
    counts = exact(config.write(tmp_path / "config.json"), tmp_path / "data", tmp_path / "out")
    assert counts == tabulated(one_census, config)


def test_the_three_files_may_have_different_forms(tmp_path: Path, one_census: Census) -> None:
    config = Config(STATES)
    data = tmp_path / "data"
    write_csv(data, one_census, separator="|")
    write_parquet(tmp_path / "parquet", one_census, "text")
    (data / "units.csv").unlink()
    (tmp_path / "parquet" / "units.parquet").rename(data / "units.parquet")
    assert exact(config.write(tmp_path / "config.json"), data, tmp_path / "out") == tabulated(one_census, config)


@pytest.mark.parametrize("name", ["it's [a] census", "[d]ata", "da*", "d?ta"])
def test_a_folder_name_is_no_pattern(tmp_path: Path, one_census: Census, name: str) -> None:
    # A name that, read as a pattern, would find the files of another census too.
    write_csv(tmp_path / "data", random_census(seeded(3), STATES, 30))
    write_csv(tmp_path / name, one_census)
    config = Config(STATES)
    counts = exact(config.write(tmp_path / "config.json"), tmp_path / name, tmp_path / "out")
    assert counts == tabulated(one_census, config)


@pytest.mark.parametrize("seed", range(3))
def test_units_that_break_rules_are_dropped_with_their_persons(tmp_path: Path, seed: int) -> None:
    census = random_census(seeded(seed), STATES, 200, breaks_rules=True)
    config = Config(STATES, drops=True)
    living = by_unit(census)
    kind = {place.MAFID: place.RTYPE for place in census.geo}
    broken = [u.MAFID for u in census.units if breaks_a_rule(u, living[u.MAFID], kind[u.MAFID])]
    assert len(broken) > 10
    write_csv(tmp_path / "data", census)
    counts = exact(config.write(tmp_path / "config.json"), tmp_path / "data", tmp_path / "out")
    assert counts == tabulated(census, config)
    log = json.loads((tmp_path / "out.confidential.log").read_text())
    assert log["dropped_units"] == len(broken)
    assert log["dropped_persons"] == sum(len(living[mafid]) for mafid in broken)


def test_a_dropped_unit_leaves_its_state_published(tmp_path: Path) -> None:
    census = random_census(seeded(8), ["17"], 60)
    unit = next(unit for unit in census.units if unit.TEN != "0")
    census.units[census.units.index(unit)] = unit._replace(FINAL_POP="99999")
    place = next(place for place in census.geo if place.MAFID == unit.MAFID)
    census.geo[census.geo.index(place)] = place._replace(TABBLKST="06", RTYPE="2")
    write_csv(tmp_path / "data", census)
    config = Config(STATES, drops=True)
    counts = exact(config.write(tmp_path / "config.json"), tmp_path / "data", tmp_path / "out")
    assert counts == tabulated(census, config)
    assert {row[1] for row in counts["PH2"]} == {"1", "06", "17"}
    assert not any(count for row, count in counts["PH1_num"].items() if row[1] == "06")


def test_a_state_of_group_quarters_alone_has_no_rows(tmp_path: Path) -> None:
    census = random_census(seeded(9), ["17"], 60)
    census.geo = [place._replace(TABBLKST="50" if place.RTYPE == "4" else "17") for place in census.geo]
    write_csv(tmp_path / "data", census)
    config = Config(STATES)
    counts = exact(config.write(tmp_path / "config.json"), tmp_path / "data", tmp_path / "out")
    assert counts == tabulated(census, config)
    assert {row[1] for row in counts["PH1_denom"]} == {"1", "17"}


def test_puerto_rico_with_the_budgets_of_2020(tmp_path: Path) -> None:
    census = random_census(seeded(10), ["72"], 200)
    config = Config(("72",), TAUS_2020, budgets=BUDGETS_2020 | {(t, f"usa_{g}"): "0.0" for t in SPECS for g in CODES})
    write_csv(tmp_path / "data", census)
    counts = exact(config.write(tmp_path / "config.json"), tmp_path / "data", tmp_path / "out")
    assert counts == tabulated(census, config)
    assert {table: len(rows) for table, rows in counts.items()} == ROWS_PER_REGION
    assert {row[:2] for rows in counts.values() for row in rows} == {("STATE", "72")}


def test_everyone_in_a_household_is_in_every_table_of_everyone() -> None:
    # The rules leave no combination of codes that a table has no cell for.
    for seed in range(5):
        tables = tabulated(random_census(seeded(seed), STATES, 300), Config(STATES, dict.fromkeys(PERSON_TABLES, 999)))
        sizes = {
            name: sum(count for row, count in tables[name].items() if row[0] == "USA" and row[2] == "*")
            for name in tables
        }
        assert sizes["PH1_num"] == sizes["PH2"] == sizes["PH7"] > 0
        assert sizes["PH1_denom"] == sizes["PH8_denom"] > 0


def test_a_census_without_persons(tmp_path: Path) -> None:
    census = random_census(seeded(2), ["06", "17"], 50)
    vacant = {unit.MAFID for unit in census.units if unit.RTYPE == "2" and unit.FINAL_POP == "0"}
    census = Census([], [u for u in census.units if u.MAFID in vacant], [g for g in census.geo if g.MAFID in vacant])
    write_csv(tmp_path / "data", census)
    config = Config()
    counts = exact(config.write(tmp_path / "config.json"), tmp_path / "data", tmp_path / "out")
    assert counts == tabulated(census, config)
    assert counts.keys() == {*SPECS, "PH5_num", "PH8_num"}


def test_a_household_above_every_threshold_is_counted_by_hash(tmp_path: Path) -> None:
    # 400 records, many of them identical, in one household: numbers of three digits among identical records.
    random = seeded(4)
    census = random_census(random, ["06"], 1)
    mafid = census.units[0].MAFID
    people = [
        Person("3", mafid, random.choice(("7", "70")), "1", "01", random.choice(("30", "36"))) for _ in range(400)
    ]
    census.persons = [Person("3", mafid, "50", "2", "62", "20"), *people]
    census.units = [Unit("2", mafid, "401", "97", "2", "62", "4", "3", "07", "5")]
    census.geo = [census.geo[0]._replace(RTYPE="2")]
    config = Config(taus=dict(zip(PERSON_TABLES, (101, 57, 33, 12, 1, 250), strict=True)), key="0")
    write_csv(tmp_path / "data", census)
    counts = exact(config.write(tmp_path / "config.json"), tmp_path / "data", tmp_path / "out")
    assert counts == tabulated(census, config)
    assert sum(counts["PH7"]["USA", "1", "*", cell] for cell in (2, 3, 4)) == 250


# --- noise, and what is said of it ---------------------------------------------------------------------------------

TAUS_2020 = {"PH1_num": 10, "PH2": 10, "PH3": 6, "PH4": 10, "PH6": 6, "PH7": 10}
_OF_TABLES = {
    ("PH1_num", "PH4", "PH7", "PH2"): ("0.002619", "0.141622", "0.016371"),
    ("PH3", "PH6"): ("0.001061", "0.662976", "0.006630"),
    ("PH1_denom", "PH5_denom", "PH8_denom"): ("0.000022", "0.001170", "0.000135"),
}
BUDGETS_2020 = {
    (table, level): budget
    for tables, (nation, races, rest) in _OF_TABLES.items()
    for table in tables
    for level, budget in {
        **dict.fromkeys(("usa_A-G", "usa_H,I", "usa_*"), nation),
        "state_A-G": races,
        "state_H,I": rest,
        "state_*": rest,
    }.items()
}
ROWS_PER_REGION = {
    "PH1_num": 20, "PH1_denom": 10, "PH2": 8, "PH3": 70, "PH4": 20, "PH5_num": 20, "PH5_denom": 10, "PH6": 16,
    "PH7": 30, "PH8_num": 20, "PH8_denom": 20,
}  # fmt: skip


def run(config: Path, data: Path, out: Path, *options: str) -> dict[str, list[dict[str, str]]]:
    assert main(["phsafe", "run", str(config), str(data), str(out), *options]) == 0
    return published(out)


def expected_noise(config: Config, table: str, row: dict[str, str], *, tight: bool) -> tuple[int, Fraction]:
    """How many cells a row adds up, and sigma squared (the scale under pure DP) of each."""
    source = {"PH5_num": "PH4", "PH8_num": "PH7"}.get(table, table)
    code = row.get("ITERATION_CODE", "*")
    level = f"{row['REGION_TYPE'].lower()}_{next(group for group, codes in CODES.items() if code in codes)}"
    budget = Fraction(config.budget(source, level))
    tau = config.taus.get(source)
    summed = 2 if table == "PH8_num" and row["PH8_NUM_DATA_CELL"] == "2" else 1
    if config.definition == "zcdp":
        squared = (2 if tight else 4) if tau is None else (2 * tau**2 if tight else (2 * tau + 2) ** 2)
        return summed, squared / (2 * budget)
    distance = 2 if tau is None else (2 * tau if tight else 2 * tau + 2)
    return summed, distance / budget


def expected_variance(config: Config, table: str, row: dict[str, str], *, tight: bool) -> Fraction | Decimal:
    summed, noise = expected_noise(config, table, row, tight=tight)
    if config.definition == "zcdp":
        return summed * noise
    with localcontext() as context:
        context.prec = 60
        ratio = (-Decimal(noise.denominator) / noise.numerator).exp()
        return summed * 2 * ratio / (1 - ratio) ** 2


@cache
def expected_margin(definition: str, summed: int, noise: Fraction, level: float) -> int:
    """The smallest m with P(|sum of draws| <= m) >= level, by adding up probabilities."""
    reach = math.ceil(60 * (math.sqrt(noise) if definition == "zcdp" else noise))
    k = np.minimum(np.arange(2 * reach + 1), np.arange(2 * reach + 1)[::-1] + 1)
    law = np.exp(-(k**2) / (2 * float(noise))) if definition == "zcdp" else np.exp(-k / float(noise))
    sums = np.fft.irfft(np.fft.rfft(law / law.sum()) ** summed, len(k))
    coverage = sums[0] + 2 * np.concatenate([[0.0], np.cumsum(sums[1 : reach + 1])])
    return int(np.searchsorted(coverage, level))


@pytest.mark.parametrize("definition", ["zcdp", "puredp"])
@pytest.mark.parametrize("accounting", ["published", "tight"])
def test_variance_and_margin_are_those_of_the_formulas(
    tmp_path: Path, one_census: Census, definition: str, accounting: str
) -> None:
    config = Config(STATES, TAUS_2020, definition=definition, budgets=BUDGETS_2020)
    config.budgets = BUDGETS_2020 | {("PH7", "state_*"): "3/7", ("PH1_denom", "usa_*"): "2.75"}
    write_csv(tmp_path / "data", one_census)
    options = ("--sensitivity", accounting, "--seed", "1")
    tables = run(config.write(tmp_path / "config.json"), tmp_path / "data", tmp_path / "out", *options)
    for table, rows in tables.items():
        for row in rows:
            variance = float(expected_variance(config, table, row, tight=accounting == "tight"))
            noise_of_row = expected_noise(config, table, row, tight=accounting == "tight")
            assert float(row["VARIANCE"]) == pytest.approx(variance, rel=0 if definition == "zcdp" else 1e-9, abs=0)
            assert row["MOE"] == str(expected_margin(definition, *noise_of_row, 0.9))
            noise = {"zcdp": "Discrete Gaussian", "puredp": "Two-Sided Geometric"}[definition]
            assert row["NOISE_DISTRIBUTION"] == noise


def test_margins_of_the_bureau_are_z_sigma_and_named_in_the_manifest(tmp_path: Path, one_census: Census) -> None:
    config = Config(STATES, TAUS_2020, budgets=BUDGETS_2020).write(tmp_path / "config.json")
    write_csv(tmp_path / "data", one_census)
    for margins in ("bureau", "exact"):
        tables = run(config, tmp_path / "data", tmp_path / margins, "--margins", margins, "--seed", "1")
        z_sigma = [
            float(row["MOE"]) == pytest.approx(1.645 * math.sqrt(float(row["VARIANCE"])), rel=1e-12)
            for rows in tables.values()
            for row in rows
        ]
        assert all(z_sigma) if margins == "bureau" else not any(z_sigma)
        assert json.loads((tmp_path / margins / "manifest.json").read_text())["plan"]["margins"] == margins
        assert main(["check", str(tmp_path / margins)]) == 0
    # A manifest without the key was made when all margins were the Bureau's.
    path = tmp_path / "bureau" / "manifest.json"
    manifest = json.loads(path.read_text())
    del manifest["plan"]["margins"]
    path.write_text(json.dumps(manifest))
    assert main(["check", str(tmp_path / "bureau")]) == 0
    path = tmp_path / "exact" / "manifest.json"
    path.write_text(path.read_text().replace('"margins": "exact"', '"margins": "bureau"'))
    assert main(["check", str(tmp_path / "exact")]) == 2


def test_known_variances_of_the_2020_run(tmp_path: Path, one_census: Census) -> None:
    config = Config(STATES, TAUS_2020, budgets=BUDGETS_2020)
    write_csv(tmp_path / "data", one_census)
    tables = run(config.write(tmp_path / "config.json"), tmp_path / "data", tmp_path / "out", "--seed", "1")
    found = {
        (table, row["REGION_TYPE"], row.get("ITERATION_CODE", "*")): round(float(row["VARIANCE"]), 6)
        for table, rows in tables.items()
        for row in rows
        if table != "PH8_num"
    }
    assert found["PH1_num", "USA", "A"] == 92401.680031
    assert found["PH4", "STATE", "H"] == 14782.236882
    assert found["PH5_num", "STATE", "G"] == 1708.774061
    assert found["PH3", "STATE", "B"] == 147.818322
    assert found["PH6", "USA", "*"] == 92365.692743
    assert found["PH1_denom", "USA", "*"] == 90909.090909
    assert found["PH8_denom", "STATE", "I"] == 14814.814815


def test_columns_and_numbers_of_rows(tmp_path: Path, one_census: Census) -> None:
    config = Config(STATES, TAUS_2020, budgets=BUDGETS_2020)
    write_csv(tmp_path / "data", one_census)
    out = tmp_path / "out"
    tables = run(config.write(tmp_path / "config.json"), tmp_path / "data", out, "--seed", "1")
    assert {table: len(rows) for table, rows in tables.items()} == {t: 5 * rows for t, rows in ROWS_PER_REGION.items()}
    for table in tables:
        iteration = [] if table in {"PH2", "PH6"} else ["ITERATION_CODE"]
        header = ["REGION_ID", "REGION_TYPE", *iteration, f"{table.upper()}_DATA_CELL", "COUNT", "NOISE_DISTRIBUTION"]
        assert (out / f"{table}.csv").read_text().splitlines()[0] == "|".join([*header, "VARIANCE", "MOE"])
    assert {path.name for path in out.iterdir()} == {*(f"{table}.csv" for table in tables), "manifest.json"}


def test_parquet_tables_hold_what_csv_tables_hold(tmp_path: Path, one_census: Census) -> None:
    config = Config(STATES, TAUS_2020, budgets=BUDGETS_2020).write(tmp_path / "config.json")
    write_csv(tmp_path / "data", one_census)
    tables = run(config, tmp_path / "data", tmp_path / "csv", "--seed", "1")
    assert run(config, tmp_path / "data", tmp_path / "parquet", "--seed", "1", "--format", "parquet") == {}
    with duckdb.connect() as db:
        for table, rows in tables.items():
            found = db.execute("FROM read_parquet(?)", [str(tmp_path / "parquet" / f"{table}.parquet")]).fetchall()
            expected = [tuple(row.values()) for row in rows]
            numbers = [(*row[:-2], float(row[-2]), float(row[-1])) for row in expected]
            assert [(*map(str, row[:-2]), row[-2], row[-1]) for row in found] == numbers


def noise_of(noisy: dict[str, dict[Row, int]], truth: dict[str, dict[Row, int]]) -> dict[str, dict[Row, int]]:
    assert noisy.keys() == truth.keys()
    return {t: {row: noisy[t][row] - count for row, count in rows.items()} for t, rows in truth.items()}


@pytest.mark.parametrize(("definition", "fourth_moment"), [("zcdp", 3), ("puredp", 6)])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_noise_has_the_variance_it_says(
    tmp_path: Path, one_census: Census, definition: str, fourth_moment: int, seed: int
) -> None:
    config = Config(STATES, TAUS_2020, definition=definition, budgets=BUDGETS_2020, key=str(seed))
    write_csv(tmp_path / "data", one_census)
    path, out = config.write(tmp_path / "config.json"), tmp_path / "out"
    tables = run(path, tmp_path / "data", out, "--seed", str(seed))
    noise = noise_of(counts_of(out), tabulated(one_census, config))
    by_level: defaultdict[tuple[str, str, str], list[float]] = defaultdict(list)
    for table in SPECS:
        for row in tables[table]:
            z = noise[table][row_of(table, row)] / math.sqrt(float(row["VARIANCE"]))
            by_level[table, row["REGION_TYPE"], ""].append(z)
            by_level["", row["REGION_TYPE"], row.get("ITERATION_CODE", "*")].append(z)
            by_level["", "", ""].append(z)
    assert len(by_level["", "", ""]) == 5 * 204
    for level, drawn in by_level.items():
        n = len(drawn)
        assert abs(sum(drawn)) < 4.5 * math.sqrt(n), level
        squares = sum(z * z for z in drawn)
        # A sum of n squares has variance n (kurtosis - 1); its upper tail is longer than a normal law's.
        assert abs(squares - n) < 5 * math.sqrt((fourth_moment - 1) * n) + 10, level


def test_derived_tables_repeat_the_noisy_counts_of_their_sources(tmp_path: Path, one_census: Census) -> None:
    config = Config(STATES, TAUS_2020, budgets=BUDGETS_2020)
    write_csv(tmp_path / "data", one_census)
    run(config.write(tmp_path / "config.json"), tmp_path / "data", tmp_path / "out", "--seed", "4")
    noisy = counts_of(tmp_path / "out")
    assert derived(noisy) == {table: noisy[table] for table in ("PH5_num", "PH8_num")}


def test_no_draw_is_used_twice(tmp_path: Path, one_census: Census) -> None:
    config = Config(STATES, TAUS_2020, budgets=dict.fromkeys(BUDGETS_2020, "1e-9"))
    write_csv(tmp_path / "data", one_census)
    run(config.write(tmp_path / "config.json"), tmp_path / "data", tmp_path / "out", "--seed", "6")
    noise = noise_of(counts_of(tmp_path / "out"), tabulated(one_census, config))
    drawn = [value for table in SPECS for value in noise[table].values()]
    # Sigmas of 45,000 and more: among 920 draws two are equal now and then, in absolute value, too, but not often.
    assert len({abs(value) for value in drawn}) > len(drawn) - 30


def test_a_seed_repeats_itself_and_no_seed_does_not(tmp_path: Path, one_census: Census) -> None:
    config = Config(STATES, TAUS_2020, budgets=BUDGETS_2020).write(tmp_path / "config.json")
    data = tmp_path / "data"
    write_csv(data, one_census)
    first, again, other, *unseeded = (
        run(config, data, tmp_path / name, *options)
        for name, options in (
            ("a", ("--seed", "1")),
            ("b", ("--seed", "1")),
            ("c", ("--seed", "2")),
            ("d", ()),
            ("e", ()),
        )
    )
    assert first == again
    assert first != other
    assert unseeded[0] != unseeded[1]
    for name, status in (("a", "NOT FOR RELEASE"), ("d", "noisy measurements under the plan")):
        assert json.loads((tmp_path / name / "manifest.json").read_text())["status"] == status


@pytest.mark.parametrize("verb", [("exact",), ("run", "--seed", "1"), ("accuracy",)])
def test_without_the_mark_nothing_exact_or_seeded_is_made(
    tmp_path: Path, one_census: Census, capsys: pytest.CaptureFixture[str], verb: tuple[str, ...]
) -> None:
    config = Config(STATES).write(tmp_path / "config.json")
    write_csv(tmp_path / "data", one_census)
    (tmp_path / "data" / "SYNTHETIC").unlink()
    before = sorted(tmp_path.iterdir())
    assert main(["phsafe", verb[0], str(config), str(tmp_path / "data"), str(tmp_path / "out"), *verb[1:]]) == 2
    assert "SYNTHETIC" in capsys.readouterr().err
    assert sorted(tmp_path.iterdir()) == before


def test_an_infinite_budget_means_no_noise(tmp_path: Path, one_census: Census) -> None:
    config = Config(STATES, budgets={("PH2", "state_*"): "Infinity"})
    write_csv(tmp_path / "data", one_census)
    tables = run(config.write(tmp_path / "config.json"), tmp_path / "data", tmp_path / "out")
    truth = tabulated(one_census, config)["PH2"]
    for row in tables["PH2"]:
        if row["REGION_TYPE"] == "STATE":
            assert int(row["COUNT"]) == truth[row_of("PH2", row)]
            assert float(row["VARIANCE"]) == 0
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["status"] == "NOT FOR RELEASE"
