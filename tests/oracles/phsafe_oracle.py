"""PHSafe's tables, counted by a tabulator written from its specification in plain loops.

The tabulator below shares nothing with the program. It follows the definitions of PHSafe's private tabulations (the
released specification and source of the Census Bureau's PHSafe 3.0.0) and docs/phsafe.md for what truncation keeps.
"""

import csv
import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from random import Random

from census_maker import (
    PARTNER_OF_CPLT,
    WITH_OWN_CHILD,
    Census,
    Person,
    Unit,
)

from yupana.cli.main import main


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
