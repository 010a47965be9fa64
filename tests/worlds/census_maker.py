"""Small random censuses, made to be awkward, and every form in which their files may come.

Households are drawn without regard to likelihood: all that the rules of consistency permit should turn up soon.
"""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Literal, NamedTuple, TypeAlias

import duckdb

CHILD = ("25", "26", "27")
PARTNER_OF_CPLT = {"1": "21", "2": "23", "3": "22", "4": "24"}
WITH_OWN_CHILD = ("01", "03", "06", "10")
RACES = ("01", "01", "01", "02", "03", "04", "05", "06", "07", "21", "22", "41", "42", "56", "57", "62", "63")
AGES = (0, 3, 4, 5, 6, 11, 12, 17, 18, 19, 64, 65, 115)


class Person(NamedTuple):
    RTYPE: str
    MAFID: str
    QAGE: str
    CENHISP: str
    CENRACE: str
    RELSHIP: str


class Unit(NamedTuple):
    RTYPE: str
    MAFID: str
    FINAL_POP: str
    NPF: str
    HHSPAN: str
    HHRACE: str
    TEN: str
    HHT: str
    HHT2: str
    CPLT: str


class Place(NamedTuple):
    RTYPE: str
    MAFID: str
    TABBLKST: str
    TABBLKCOU: str
    TABTRACTCE: str
    TABBLK: str
    TABBLKGRPCE: str
    REGIONCE: str
    DIVISIONCE: str
    PLACEFP: str
    AIANNHCE: str


@dataclass
class Census:
    persons: list[Person]
    units: list[Unit]
    geo: list[Place]

    def shuffled(self, random: Random) -> "Census":
        return Census(*(random.sample(rows, len(rows)) for rows in (self.persons, self.units, self.geo)))


Codes = Literal["text", "bureau", "integer"]
Drawn: TypeAlias = tuple[Unit, list[Person]]


def seeded(seed: int) -> Random:
    return Random(seed)  # noqa: S311 (made-up people need no cryptography)


def random_census(random: Random, states: Sequence[str], units: int, *, breaks_rules: bool = False) -> Census:
    """Draw a census of some of the states; with ``breaks_rules``, about one household in six breaks one."""
    census = Census([], [], [])
    for mafid in random.sample(range(100_000_001, 900_000_000), units):
        unit, people = draw(random, str(mafid), breaks_rules=breaks_rules and random.random() < 1 / 6)
        census.units.append(unit)
        census.persons += people
        place = place_of(random, unit, random.choice(states))
        if breaks_rules and random.random() < 1 / 30:
            place = place._replace(RTYPE={"2": "4", "4": "2"}[place.RTYPE])
        census.geo.append(place)
    return census


def draw(random: Random, mafid: str, *, breaks_rules: bool) -> Drawn:
    """Draw one unit and its persons, with ``breaks_rules`` one that may be inconsistent."""
    kind = random.choices(list(_KINDS), list(_KINDS.values()))[0]
    unit, people = kind(random, mafid)
    return random.choice(_BREAKS)(random, unit, people) if breaks_rules else (unit, people)


def _person(random: Random, mafid: str, relship: str, ages: Sequence[int]) -> Person:
    return Person("3", mafid, str(random.choice(ages)), random.choice("12"), random.choice(RACES), relship)


def _household(random: Random, mafid: str) -> Drawn:
    hht2 = f"{random.randint(1, 12):02}"
    cplt = random.choice({"01": "12", "02": "12", "03": "34", "04": "34"}.get(hht2, "5"))
    head = _person(random, mafid, "20", AGES)
    people = [head]
    if cplt != "5":
        people.append(_person(random, mafid, PARTNER_OF_CPLT[cplt], AGES))
    if hht2 in WITH_OWN_CHILD:
        children = random.choice((1, 1, 2, 3, 9))
        people += [_person(random, mafid, random.choice(CHILD), range(18)) for _ in range(children)]
    for _ in range(random.choice((0, 0, 0, 1, 2, 4, 20))):
        relship = str(random.choice((*range(25, 37), 30, 35)))
        ages = [age for age in AGES if age >= 18] if relship in CHILD else AGES
        people.append(_person(random, mafid, relship, ages))
    # Identical records: truncation must tell them apart by number. The householder and a partner are one each.
    if others := [p for p in people if p.RELSHIP > "24"]:
        people += random.choices(others, k=random.choice((0, 0, 1, 5)))
    random.shuffle(people)
    unit = Unit(
        "2",
        mafid,
        str(len(people)),
        random.choice(("0", "2", "97")),
        head.CENHISP,
        head.CENRACE,
        random.choice("1234"),
        "1" if hht2 in ("01", "02") else random.choice("234567"),
        hht2,
        cplt,
    )
    return unit, people


def _vacant(_random: Random, mafid: str) -> Drawn:
    return Unit("2", mafid, "0", "0", "0", "00", "0", "0", "00", "0"), []


def _quarters(random: Random, mafid: str) -> Drawn:
    # Relatives in group quarters are odd, but no rule forbids them.
    relships = random.choices(("37", "38", "20", "28", "30", "36"), (8, 8, 1, 1, 1, 1), k=random.randint(0, 12))
    people = [_person(random, mafid, relship, AGES)._replace(RTYPE="5") for relship in relships]
    return Unit("4", mafid, str(len(people)), "0", "0", "00", "0", "0", "00", "0"), people


def place_of(random: Random, unit: Unit, state: str) -> Place:
    """A place for a unit in a state, at random."""
    digits = [str(random.randrange(10**width)).zfill(width) for width in (3, 6, 4, 1)]
    return Place(
        unit.RTYPE, unit.MAFID, state, *digits, random.choice("12349"), random.choice("0123456789"), "99999", "9999"
    )


def _extra_householder(_random: Random, unit: Unit, people: list[Person]) -> Drawn:
    people = [*people, Person("5" if unit.RTYPE == "4" else "3", unit.MAFID, "40", "1", "01", "20")]
    return unit._replace(FINAL_POP=str(len(people))), people


def _no_householder(_random: Random, unit: Unit, people: list[Person]) -> Drawn:
    return unit, [p._replace(RELSHIP="36") if p.RELSHIP == "20" else p for p in people]


def _other_race(_random: Random, unit: Unit, people: list[Person]) -> Drawn:
    return unit._replace(HHRACE="61"), people


def _other_origin(_random: Random, unit: Unit, people: list[Person]) -> Drawn:
    return unit._replace(HHSPAN={"0": "1", "1": "2", "2": "1"}[unit.HHSPAN]), people


def _one_of_other_type(_random: Random, unit: Unit, people: list[Person]) -> Drawn:
    return unit, [p._replace(RTYPE={"3": "5", "5": "3"}[p.RTYPE]) for p in people[:1]] + people[1:]


def _inmate(random: Random, unit: Unit, people: list[Person]) -> Drawn:
    return unit, [p._replace(RELSHIP=random.choice(("37", "38"))) if p.RELSHIP > "27" else p for p in people]


def _population(_random: Random, unit: Unit, people: list[Person]) -> Drawn:
    return unit._replace(FINAL_POP=str(len(people) + 1)), people


def _zero_code(random: Random, unit: Unit, people: list[Person]) -> Drawn:
    column, zero, other = random.choice(
        (("TEN", "0", "2"), ("HHT", "0", "2"), ("CPLT", "0", "2"), ("HHT2", "00", "02"), ("HHRACE", "00", "02"))
    )
    return unit._replace(**{column: other if getattr(unit, column) == zero else zero}), people


def _own_child(_random: Random, unit: Unit, people: list[Person]) -> Drawn:
    swapped = {"01": "02", "02": "01", "03": "04", "04": "03", "06": "07", "07": "06", "10": "11"}
    return unit._replace(HHT2=swapped.get(unit.HHT2, "10")), people


def _couple(random: Random, unit: Unit, people: list[Person]) -> Drawn:
    return unit._replace(CPLT=random.choice([code for code in "12345" if code != unit.CPLT])), people


def _couple_type(_random: Random, unit: Unit, people: list[Person]) -> Drawn:
    swapped = {"01": "03", "02": "04", "03": "01", "04": "02", "07": "02", "11": "04"}
    return unit._replace(HHT2=swapped.get(unit.HHT2, unit.HHT2), HHT="5"), people


def _family_type(random: Random, unit: Unit, people: list[Person]) -> Drawn:
    return unit._replace(HHT=random.choice("234567") if unit.HHT == "1" else "1"), people


_KINDS = {_household: 85, _vacant: 8, _quarters: 7}
_BREAKS = (
    _extra_householder,
    _no_householder,
    _other_race,
    _other_origin,
    _one_of_other_type,
    _inmate,
    _population,
    _zero_code,
    _own_child,
    _couple,
    _couple_type,
    _family_type,
)


def write_csv(
    folder: Path, census: Census, *, separator: str = ",", end: str = "\n", bom: bool = False, quoted: bool = False
) -> None:
    """Write persons, units and geo as CSV, with the mark of synthetic data."""
    folder.mkdir()
    (folder / "SYNTHETIC").touch()
    for name, row_type in (("persons", Person), ("units", Unit), ("geo", Place)):
        with (folder / f"{name}.csv").open("w", encoding="utf-8-sig" if bom else "utf-8", newline="") as file:
            quoting = csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL
            writer = csv.writer(file, delimiter=separator, lineterminator=end, quoting=quoting)
            writer.writerow(row_type._fields)
            writer.writerows(getattr(census, name))


def write_parquet(folder: Path, census: Census, codes: Codes) -> None:
    """Write the same as Parquet: all text; integers where the Bureau has integers; or numbers throughout."""
    plain = folder.with_name(folder.name + ".plain")
    write_csv(plain, census)
    folder.mkdir()
    (folder / "SYNTHETIC").touch()
    with duckdb.connect() as db:
        for name, row_type in (("persons", Person), ("units", Unit), ("geo", Place)):
            columns = ", ".join(
                f"CAST({column} AS {_parquet_type(column, codes)}) AS {column}" for column in row_type._fields
            )
            db.execute(f"""
                COPY (SELECT {columns} FROM read_csv('{plain}/{name}.csv', header = true, all_varchar = true))
                TO '{folder}/{name}.parquet' (FORMAT parquet, ROW_GROUP_SIZE 2048)
                """)


def _parquet_type(column: str, codes: Codes) -> str:
    if codes == "text":
        return "VARCHAR"
    if column in {"MAFID", "QAGE", "CENHISP", "FINAL_POP", "NPF", "HHSPAN"}:
        return "BIGINT"
    if codes == "bureau":
        return "VARCHAR"
    return {"TABTRACTCE": "INTEGER", "PLACEFP": "UINTEGER", "TABBLK": "SMALLINT", "AIANNHCE": "USMALLINT"}.get(
        column, "SMALLINT" if column == "TABBLKCOU" else "UTINYINT"
    )
