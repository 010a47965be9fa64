"""Turn the sample population of pseudopeople into a census that PHSafe can protect (docs/pseudopeople.md).

    python examples/pseudopeople.py SOURCE_PARQUET OUT [--year 2020] [--seed 0]

SOURCE_PARQUET is ``decennial_census.parquet`` of the PyPI package pseudopeople: a simulated town, nobody's data. OUT
receives persons.csv, units.csv and geo.csv in the Census Bureau's formats, a config.json with the budgets and
thresholds that the 2020 run gave a state, and the mark SYNTHETIC.

From the source come household, relationship, age, sex, housing type, Hispanic origin and, for five of its seven
categories, race. The source lacks the rest, so it is DRAWN here, with assumed weights that estimate nothing:
tenure; the race of Latinos and of "Multiracial or Other"; tract and block. Each draw depends on the seed and on
an identifier of the source only, so that the order of the rows does not matter.
"""

import argparse
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import duckdb

import yupana

T = TypeVar("T")
Row = tuple[int | str, ...]

FILES: Final = {
    "persons": ("RTYPE", "MAFID", "QAGE", "CENHISP", "CENRACE", "RELSHIP"),
    "units": ("RTYPE", "MAFID", "FINAL_POP", "NPF", "HHSPAN", "HHRACE", "TEN", "HHT", "HHT2", "CPLT"),
    "geo": (
        *("RTYPE", "MAFID", "TABBLKST", "TABBLKCOU", "TABTRACTCE", "TABBLK", "TABBLKGRPCE", "REGIONCE", "DIVISIONCE"),
        *("PLACEFP", "AIANNHCE"),
    ),
}
"""Columns of the three files, as docs/phsafe.md describes them."""

FIRST_MAFID: Final = 100_000_001

STATE: Final = "53"  # Washington
REGION, DIVISION = 4, 9  # West, Pacific

RELSHIP: Final = {
    "Reference person": 20,
    "Opposite-sex spouse": 21,
    "Opposite-sex unmarried partner": 22,
    "Same-sex spouse": 23,
    "Same-sex unmarried partner": 24,
    "Biological child": 25,
    "Adopted child": 26,
    "Stepchild": 27,
    "Sibling": 28,
    "Parent": 29,
    "Grandchild": 30,
    "Parent-in-law": 31,
    "Child-in-law": 32,
    "Other relative": 33,
    "Roommate or housemate": 34,
    "Foster child": 35,
    "Other nonrelative": 36,
    "Institutionalized group quarters population": 37,
    "Noninstitutionalized group quarters population": 38,
}
COUPLE: Final = {21: 1, 23: 2, 22: 3, 24: 4}  # CPLT by the RELSHIP of spouse or partner
OTHER_NONRELATIVE: Final = 36
OWN_CHILDREN: Final = range(25, 28)
RELATIVES: Final = range(25, 34)
RACE: Final = {"White": 1, "Black": 2, "AIAN": 3, "Asian": 4, "NHOPI": 5}
LATINO: Final = "Latino"
MULTIRACIAL_OR_OTHER: Final = "Multiracial or Other"
HOUSEHOLD: Final = "Household"

# Assumed weights of what is drawn.
TENURE_DRAWN: Final = {1: 40, 2: 23, 3: 35, 4: 2}  # mortgage, free and clear, rented, no rent paid
RACE_DRAWN: Final = {
    # White, Black, AIAN, Some Other Race alone; White with Some Other Race
    LATINO: {1: 20, 2: 2, 3: 2, 6: 43, 11: 33},
    # Some Other Race alone 10 in 100; White with Black, AIAN, Asian, Some Other Race 20 each; 10 for all the rest
    MULTIRACIAL_OR_OTHER: {6: 530, **dict.fromkeys((7, 8, 9, 11), 1060), **dict.fromkeys((10, *range(12, 64)), 10)},
}
TRACTS_DRAWN: Final = {"000100": 1, "000200": 1, "000300": 1}
BLOCKS_DRAWN: Final = {group * 1000 + block: 1 for group in (1, 2) for block in range(20)}


class Person(NamedTuple):
    """A row of the source, as far as it is used."""

    household_id: str
    simulant_id: str
    age: int
    sex: str
    race_ethnicity: str
    relationship_to_reference_person: str
    housing_type: str


class Census(NamedTuple):
    """Rows of the three files in the order of their columns, and the households that each rule touched."""

    persons: list[Row]
    units: list[Row]
    geo: list[Row]
    touched: Counter[str]


LEFT_OUT_MIXED: Final = "left out: members of several housing types, or whose relationship belongs to another type"
LEFT_OUT_REFERENCE: Final = "left out: not exactly one reference person"
REPAIRED_PARTNERS: Final = "repaired: of several spouses or partners the first stays, the others become nonrelatives"
KEPT_COUPLE_SEX: Final = "kept: the sexes of a couple contradict its category; the category decides"
KEPT_YOUNG: Final = "kept: a reference person under 15"
RULES: Final = (LEFT_OUT_MIXED, LEFT_OUT_REFERENCE, REPAIRED_PARTNERS, KEPT_COUPLE_SEX, KEPT_YOUNG)


def read(source: Path, year: int) -> list[Person]:
    """Read one year of the source; refuse empty values and categories that are not of the noise-free sample."""
    query = f"SELECT {', '.join(Person._fields)} FROM read_parquet(?) WHERE year = ?"
    try:
        with duckdb.connect() as db:
            rows = db.execute(query, [str(source), year]).fetchall()
    except duckdb.Error:
        sys.exit(f"{source} is not the decennial_census.parquet of pseudopeople")
    people = [Person(*row) for row in rows]
    if not people:
        sys.exit(f"{source} has no persons in year {year}")
    unknown = sum(None in p or not _is_known(p) for p in people)
    if unknown:
        sys.exit(f"{source}: {unknown} persons with an empty or unknown value; take the sample before noise is added")
    return people


def _is_known(person: Person) -> bool:
    return (
        person.relationship_to_reference_person in RELSHIP
        and (person.race_ethnicity in RACE or person.race_ethnicity in RACE_DRAWN)
        and person.sex in {"Male", "Female"}
    )


def convert(people: Iterable[Person], seed: int) -> Census:
    """Convert persons to the three files, household by household.

    MAFIDs are numbers in the order of the household identifiers. There are no vacant units: the source has none.
    """
    households: defaultdict[str, list[Person]] = defaultdict(list)
    for person in sorted(people):
        households[person.household_id].append(person)
    census = Census([], [], [], Counter(dict.fromkeys(RULES, 0)))
    for mafid, (household_id, members) in enumerate(households.items(), FIRST_MAFID):
        if fault := why_left_out(members):
            census.touched[fault] += 1
            continue
        quarters = members[0].housing_type != HOUSEHOLD
        relships = [RELSHIP[member.relationship_to_reference_person] for member in members]
        origins = [origin(member, seed) for member in members]
        if quarters:
            unit: Row = (4, mafid, len(members), 0, 0, "00", 0, 0, "00", 0)
        else:
            census.touched.update(repair(members, relships))
            hispanic, race = origins[relships.index(20)]
            tenure = draw(TENURE_DRAWN, seed, "tenure", household_id)
            family, hht, hht2, couple = household_type(members, relships)
            unit = (2, mafid, len(members), family, hispanic, f"{race:02}", tenure, hht, hht2, couple)
        census.units.append(unit)
        census.persons.extend(
            (5 if quarters else 3, mafid, member.age, hispanic, f"{race:02}", relship)
            for member, relship, (hispanic, race) in zip(members, relships, origins, strict=True)
        )
        tract = draw(TRACTS_DRAWN, seed, "tract", household_id)
        block = draw(BLOCKS_DRAWN, seed, "block", household_id)
        # County, tracts, blocks and place are made up: there is no Anytown.
        place = (STATE, "999", tract, f"{block:04}", block // 1000, REGION, DIVISION, "99990", "9999")
        census.geo.append((unit[0], mafid, *place))
    return census


def why_left_out(members: Sequence[Person]) -> str | None:
    """Which rule leaves out a household whose relationships cannot be expressed, if any does."""
    quarters = members[0].housing_type != HOUSEHOLD
    for member in members:
        in_quarters = RELSHIP[member.relationship_to_reference_person] in {37, 38}
        if member.housing_type != members[0].housing_type or in_quarters != quarters:
            return LEFT_OUT_MIXED
    references = sum(member.relationship_to_reference_person == "Reference person" for member in members)
    return None if quarters or references == 1 else LEFT_OUT_REFERENCE


def repair(members: Sequence[Person], relships: list[int]) -> list[str]:
    """Apply the other rules to a household, changing ``relships``; return the rules that touched it."""
    touched = []
    partners = [i for i, relship in enumerate(relships) if relship in COUPLE]
    if len(partners) > 1:
        # A spouse comes before a partner, then the identifier decides.
        first = min(partners, key=lambda i: (COUPLE[relships[i]] > 2, members[i].simulant_id))
        for i in partners:
            if i != first:
                relships[i] = OTHER_NONRELATIVE
        partners = [first]
        touched.append(REPAIRED_PARTNERS)
    householder = members[relships.index(20)]
    if partners:
        same_sex = members[partners[0]].sex == householder.sex
        if same_sex != (relships[partners[0]] in {23, 24}):
            touched.append(KEPT_COUPLE_SEX)
    if householder.age < 15:
        touched.append(KEPT_YOUNG)
    return touched


def household_type(members: Sequence[Person], relships: Sequence[int]) -> tuple[int, int, str, int]:
    """Derive NPF, HHT, HHT2 and CPLT of a household from its members."""
    male = members[relships.index(20)].sex == "Male"
    couple = next((COUPLE[relship] for relship in relships if relship in COUPLE), 5)
    married, cohabiting = couple in {1, 2}, couple in {3, 4}
    relatives = sum(relship in RELATIVES for relship in relships)
    own_child = any(r in OWN_CHILDREN and m.age < 18 for m, r in zip(members, relships, strict=True))
    alone = len(members) == 1

    family = 1 + relatives + married
    if married:
        hht = 1
    elif relatives:
        hht = 2 if male else 3
    else:
        hht = (4 if male else 6) + (not alone)
    if married or cohabiting:
        hht2 = (1 if married else 3) + (not own_child)
    else:
        # living alone, with own children under 18, with other relatives, with nonrelatives only
        hht2 = (9 if male else 5) + (0 if alone else 1 if own_child else 2 if relatives else 3)
    return family if family > 1 else 0, hht, f"{hht2:02}", couple


def origin(person: Person, seed: int) -> tuple[int, int]:
    """CENHISP and CENRACE. What must be drawn is one draw for a household, so that families agree."""
    category = person.race_ethnicity
    hispanic = 2 if category == LATINO else 1
    if category in RACE:
        return hispanic, RACE[category]
    who = person.household_id if person.housing_type == HOUSEHOLD else person.simulant_id
    return hispanic, draw(RACE_DRAWN[category], seed, category, who)


def draw(weights: Mapping[T, int], seed: int, what: str, who: str) -> T:
    """Draw a value with chances proportional to whole weights, by a hash of the seed and the names."""
    point = int.from_bytes(sha256(f"{seed}|{what}|{who}".encode()).digest()) % sum(weights.values())
    for value, weight in weights.items():
        if point < weight:
            return value
        point -= weight
    raise ValueError("weights must not be negative")


def configuration() -> dict[str, Any]:
    """Build a configuration of the 2020 budgets and thresholds for a state by itself.

    The nation's budgets are 0, as they were for Puerto Rico: a nation of one town would count the same people twice.
    """
    product = yupana.PRODUCTS["phsafe"]
    return {**product.document(product.read("s-dhc-2020-pr")), "state_filter": [STATE], "reader": "csv"}


def write(census: Census, out: Path, mark: str) -> None:
    """Write the folder; refuse one that holds anything."""
    if out.exists() and any(out.iterdir()):
        sys.exit(f"{out} is not empty; name another folder")
    out.mkdir(parents=True, exist_ok=True)
    for (name, header), rows in zip(FILES.items(), (census.persons, census.units, census.geo), strict=True):
        lines = ["|".join(header), *("|".join(map(str, row)) for row in rows)]
        (out / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (out / "config.json").write_text(json.dumps(configuration(), indent=2) + "\n", encoding="utf-8")
    (out / "SYNTHETIC").write_text(mark, encoding="utf-8")


def main() -> None:
    """Convert one year and say what was done to whom."""
    parser = argparse.ArgumentParser(description="A simulated town as census records for PHSafe.")
    parser.add_argument("source", type=Path, metavar="SOURCE_PARQUET")
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument("--year", type=int, default=2020, help="2020 (default), 2030 or 2040")
    parser.add_argument("--seed", type=int, default=0, help="of what is drawn (default 0)")
    options = parser.parse_args()
    if not options.source.is_file():
        sys.exit(f"{options.source} does not exist")
    census = convert(read(options.source, options.year), options.seed)
    write(
        census,
        options.out,
        f"The simulated population of pseudopeople (IHME, BSD-3-Clause), year {options.year}.\n"
        f"Tenure, the races it lacks and all blocks are drawn, with seed {options.seed} (examples/pseudopeople.py).\n"
        "No record in this folder describes a real person or household.\n",
    )
    households = sum(unit[0] == 2 for unit in census.units)
    quarters = len(census.units) - households
    print(f"{options.out}: {len(census.persons)} persons, {households} households, {quarters} group quarters")
    for rule, count in census.touched.items():
        print(f"{count:6} households {rule}")


if __name__ == "__main__":
    main()
