"""People in homes, written as SafeTab's own files and as the Census Edited File."""

import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from detailed_maker import ADDRESS, CODES, HEADERS, RACES, code_of, write_text
from detailed_relations import KINDS
from safetab_worlds import FORMS, NAMES, Total, World, random_world, write_parameters
from safetab_worlds import write_text as write_rows

from yupana.interface.configured import Configured, setup

BLOCKS = [
    ("06", "001", "400100", "1000", "99999", "9999"),
    ("06", "001", "400100", "1001", "00562", "0001"),
    ("06", "003", "400100", "1001", "00562", "0001"),
    ("17", "031", "010100", "1000", "14000", "9999"),
    ("17", "031", "010100", "2000", "14000", "9999"),
    ("72", "031", "010100", "2000", "00001", "9999"),
]
REFERENCE = (*ADDRESS, "PLACEFP", "AIANNHCE")


@dataclass
class Person:
    sex: str
    age: str
    codes: list[str]
    relship: str
    race: str = "01"


@dataclass
class Home:
    """A unit: its people, the first of whom is the householder where there is one."""

    mafid: str
    rtype: str
    block: tuple[str, ...]
    people: list[Person]
    hht: str = "0"
    tenure: str = "0"


def draw_homes(rng: random.Random, number: int) -> list[Home]:
    homes = []
    for i in range(number):
        rtype = rng.choice("2224")
        occupied = rtype == "2" and rng.random() < 0.8
        size = rng.randint(1, 4) if occupied or rtype == "4" else 0
        people = []
        for place in range(size):
            known = rng.sample(sorted(map(str, CODES)), rng.randint(1, 6))
            codes = [*known, *["Null"] * (8 - len(known)), rng.choice(sorted(map(str, CODES)))]
            relship = "37" if rtype == "4" else "20" if place == 0 else rng.choice(("21", "25", "38"))
            people.append(Person(rng.choice("12"), str(rng.randint(0, 115)), codes, relship))
        # The householder need not stand first.
        rng.shuffle(people)
        hht, tenure = (rng.choice("1234567"), rng.choice("1234")) if occupied else ("0", "0")
        homes.append(Home(f"{100_000_001 + 7 * i}", rtype, rng.choice(BLOCKS[:4] + BLOCKS[5:]), people, hht, tenure))
    return homes


def write_files(folder: Path, homes: list[Home], places: Sequence[tuple[str, ...]] = BLOCKS) -> None:
    """Write SafeTab's own files."""
    folder.mkdir()
    persons, households = [], []
    units = Counter(home.block for home in homes if home.rtype == "2")
    for home in homes:
        address = dict(zip(ADDRESS, home.block, strict=False))
        for person in home.people:
            codes = dict(zip((*RACES, "QSPAN"), person.codes, strict=True))
            head = str(person.relship == "20")
            row = {"QAGE": person.age, "QSEX": person.sex, "HOUSEHOLDER": head, "CENRACE": person.race}
            persons.append(row | address | codes)
            if person.relship == "20":
                kind = {"6": "4", "7": "5"}.get(home.hht, home.hht)
                households.append(address | codes | {"HHRACE": "01", "HOUSEHOLD_TYPE": kind, "TEN": home.tenure})
    for kind, rows in zip(KINDS, (persons, households), strict=True):
        write_text(folder / f"{kind}.txt", HEADERS[kind], rows)
    blocks = [dict(zip(REFERENCE, block, strict=True)) for block in places]
    write_text(folder / "GRF-C.txt", REFERENCE, blocks)
    listed = [
        {"block": code_of(row), "housing_units": str(units[block])} for row, block in zip(blocks, places, strict=True)
    ]
    write_text(folder / "housing-units.txt", ("block", "housing_units"), listed)


def line_of(width: int, fields: dict[int, str]) -> str:
    line = ["x"] * width
    for start, text in fields.items():
        line[start : start + len(text)] = text
    return "".join(line)


def write_cef(folder: Path, homes: list[Home], blocks: Sequence[tuple[str, ...]] = BLOCKS) -> None:
    """Write the same as lines of fixed width by state; what is not read is filled so that a wrong place would show."""
    folder.mkdir()
    lines: dict[str, list[str]] = defaultdict(list)
    for home in homes:
        state = home.block[0]
        blank = home.hht == "0"
        codes = {27: "  " if blank else "01", 29: " " if blank else home.tenure, 59: " " if blank else home.hht}
        key = "".join(home.block[:4]).ljust(22)
        lines[f"CEF20_UNIT_{state}.txt"].append(line_of(76, {0: home.rtype, 1: home.mafid, 37: key, **codes}))
        for person in home.people:
            detailed = {42: person.codes[8]} | {
                48 + 4 * i: code.replace("Null", "    ") for i, code in enumerate(person.codes[:8])
            }
            rest = {22: person.sex, 23: person.age.rjust(3, "0"), 81: person.race, 85: person.relship}
            rtype = "3" if home.rtype == "2" else "5"
            line = line_of(91, {0: rtype, 1: home.mafid, **detailed, **rest})
            lines[f"CEF20_PER_{state}.txt"].append(line)
    for block in blocks:
        name = f"grfc_tab20_{block[0]}.txt"
        lines[name] = lines[name] or ["|".join(("NAME", *REFERENCE[::-1], "OIDTABBLK"))]
        lines[name].append("|".join(("n/a", *block[::-1], "".join(block[:4]).ljust(22))))
    for name, rows in lines.items():
        (folder / name).write_text("\n".join(rows) + "\n")


def homes_of(world: World) -> list[Home]:
    """A home for each person of a world whose block is listed."""
    block_of = {block[:4]: block for block in world.blocks}
    homes = []
    for i, person in enumerate(person for person in world.persons if person[3:7] in block_of):
        alone = Person(person.QSEX, person.QAGE, list(person[8:]), "20", person.CENRACE)
        block = block_of[person[3:7]]
        homes.append(Home(f"{100_000_001 + i}", "2", block, [alone], "1234567"[i % 7], "1234"[i % 4]))
    return homes


def edited(product: str, folder: Path, rng: random.Random) -> tuple[Configured, Path]:
    """A world as the edited file: some blocks have no housing unit, and some homes are group quarters."""
    world = random_world(rng, noise="some")
    homes = [in_quarters(home) if rng.random() < 0.1 else home for home in homes_of(world)]
    bare = rng.sample(sorted({home.block for home in homes}), 3)
    homes = [in_quarters(home) if home.block in bare[:2] else home for home in homes if home.block != bare[2]]
    write_cef(folder / "data", homes, world.blocks)
    write_rows(folder / "data" / NAMES["totals"], Total._fields, world.totals, FORMS["plain"], "|")
    (folder / "data" / "SYNTHETIC").touch()
    document = world.config.document() | {"reader": "cef"}
    return setup(product, write_parameters(folder / "parameters", world, document=document)), folder / "data"


def in_quarters(home: Home) -> Home:
    people = [replace(person, relship="37") for person in home.people]
    return replace(home, rtype="4", hht="0", tenure="0", people=people)
