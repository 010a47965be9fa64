"""Small random worlds for SafeTab: codes, iterations, blocks, people, totals and configurations, made to be awkward.

Formats are those of the Bureau's SafeTab inputs. Worlds are legal but not likely: whatever the rules permit should
turn up soon. Nothing here knows how the program reads or counts.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, TypeVar

import duckdb

US_TYPES = ("USA", "STATE", "COUNTY", "TRACT", "PLACE", "AIANNH")
PR_TYPES = ("PR-STATE", "PR-COUNTY", "PR-TRACT", "PR-PLACE")
PASSES = {"us": US_TYPES, "pr": PR_TYPES}
LEVELS = (1, 2)
FAMILIES = (3, 4)
"""The table classes of SafeTab-H."""
RACES = 8


class Iteration(NamedTuple):
    """A characteristic iteration; ``alone`` is None for an ethnicity, the flags are None at level 0."""

    code: str
    level: int
    alone: bool | None
    detailed_only: bool | None
    coarse_only: bool | None


def an_iteration(code: str, level: int, kind: str, flags: str = "common") -> Iteration:
    """An iteration in words: alone, any or ethnicity; common, detailed only or coarse only."""
    alone = {"alone": True, "any": False, "ethnicity": None}[kind]
    return Iteration(code, level, alone, flags == "detailed only", flags == "coarse only")


class Block(NamedTuple):
    TABBLKST: str
    TABBLKCOU: str
    TABTRACTCE: str
    TABBLK: str
    PLACEFP: str
    AIANNHCE: str


class Person(NamedTuple):
    QAGE: str
    QSEX: str
    HOUSEHOLDER: str
    TABBLKST: str
    TABBLKCOU: str
    TABTRACTCE: str
    TABBLK: str
    CENRACE: str
    QRACE1: str
    QRACE2: str
    QRACE3: str
    QRACE4: str
    QRACE5: str
    QRACE6: str
    QRACE7: str
    QRACE8: str
    QSPAN: str


class Household(NamedTuple):
    TABBLKST: str
    TABBLKCOU: str
    TABTRACTCE: str
    TABBLK: str
    HHRACE: str
    QRACE1: str
    QRACE2: str
    QRACE3: str
    QRACE4: str
    QRACE5: str
    QRACE6: str
    QRACE7: str
    QRACE8: str
    QSPAN: str
    HOUSEHOLD_TYPE: str
    TEN: str


class Total(NamedTuple):
    """A row of T01001."""

    REGION_ID: str
    REGION_TYPE: str
    ITERATION_CODE: str
    COUNT: str


@dataclass
class Config:
    """What config.json says; budgets are the texts written there."""

    p: dict[tuple[str, int], str] = field(default_factory=dict)
    """Budget by region type and level."""
    h: dict[tuple[int, str, int], str] = field(default_factory=dict)
    """Budget by table class, region type and level."""
    thresholds_p: dict[tuple[str, int], list[int]] = field(default_factory=dict)
    thresholds_h: dict[tuple[int, str, int], list[int]] = field(default_factory=dict)
    max_race_codes: int = 8
    fraction: str = "0.1"
    zero_suppression: str | None = None
    allow_negative: bool = True
    runs: tuple[str, ...] = ("us", "pr")
    states: tuple[str, ...] = ("01", "02")
    definition: str = "zcdp"

    def types(self) -> list[str]:
        return [region_type for run in self.runs for region_type in PASSES[run]]

    def budgets(self, budget: str) -> "Config":
        """Give every level of both products one budget."""
        self.p = {(t, level): budget for t in (*US_TYPES, *PR_TYPES) for level in LEVELS}
        self.h = {(f, t, level): budget for f in FAMILIES for t in (*US_TYPES, *PR_TYPES) for level in LEVELS}
        return self

    def thresholds(self, three: Sequence[int], one: int) -> "Config":
        """Give every level of both products the same thresholds."""
        levels = [(t, level) for t in (*US_TYPES, *PR_TYPES) for level in LEVELS]
        self.thresholds_p = {key: list(three) for key in levels}
        self.thresholds_h = {(3, *key): list(three) for key in levels} | {(4, *key): [one] for key in levels}
        return self

    def document(self, products: str = "ph", types: Iterable[str] | None = None) -> dict[str, Any]:
        """The object in config.json for one product or both, thresholds for all region types or some."""
        kept = set((*US_TYPES, *PR_TYPES) if types is None else types)
        answer: dict[str, Any] = {"max_race_codes": self.max_race_codes}
        if "p" in products:
            for (region_type, level), budget in self.p.items():
                answer[f"privacy_budget_p_level_{level}_{key_of(region_type)}"] = json_number(budget)
            answer["privacy_budget_p_stage_1_fraction"] = json_number(self.fraction)
            answer["thresholds_p"] = {f"({t}, {level})": v for (t, level), v in self.thresholds_p.items() if t in kept}
            if self.zero_suppression is not None:
                answer["zero_suppression_chance"] = json_number(self.zero_suppression)
        if "h" in products:
            for (family, region_type, level), budget in self.h.items():
                key = f"privacy_budget_h_t{family}_level_{level}_{key_of(region_type)}"
                answer[key] = json_number(budget)
            for family in FAMILIES:
                answer[f"thresholds_h_t{family}"] = {
                    f"({t}, {level})": v for (f, t, level), v in self.thresholds_h.items() if f == family and t in kept
                }
        return answer | {
            "allow_negative_counts": self.allow_negative,
            "run_us": "us" in self.runs,
            "run_pr": "pr" in self.runs,
            "reader": "csv",
            "state_filter_us": list(self.states),
            "privacy_defn": self.definition,
        }


def key_of(region_type: str) -> str:
    return region_type.lower().replace("-", "_")


def json_number(text: str) -> int | float | str:
    """A number where JSON has one, the fraction's text otherwise; json writes `Infinity` for an infinite float."""
    if "/" in text:
        return text
    return int(text) if text.isdecimal() else float(text)


@dataclass
class World:
    codes: list[str]
    iterations: list[Iteration]
    mapping: list[tuple[str, str]]
    """Iteration code and race or ethnicity code."""
    blocks: list[Block]
    persons: list[Person]
    households: list[Household]
    totals: list[Total]
    housing_units: dict[str, int] | None
    """Housing units by block of 16 digits."""
    config: Config


def block_id(block: Block) -> str:
    """16 digits: the block group is the first digit of the block."""
    return f"{block.TABBLKST}{block.TABBLKCOU}{block.TABTRACTCE}{block.TABBLK[0]}{block.TABBLK}"


# --- drawing -------------------------------------------------------------------------------------------------------


def seeded(seed: int) -> Random:
    return Random(seed)  # noqa: S311 (made-up people need no cryptography)


STATES = ("01", "02", "06", "11", "17", "48", "56")
ANY_FLAGS = ((False, False), (False, False), (True, False), (False, True))
THRESHOLDS = (1, 1, 2, 2, 3, 4, 5, 6, 8, 10, 15, 25)


def random_world(random: Random, *, persons: int = 150, households: int = 120, noise: str = "none") -> World:
    """Draw a world; ``noise`` is none (budgets infinite or zero), some (finite or zero) or mixed."""
    codes = [str(code) for code in sorted(random.sample(range(1000, 10_000), random.choice((3, 8, 14))))]
    iterations, mapping = random_iterations(random, codes)
    runs = random.choice((("us",), ("us", "pr"), ("us", "pr"), ("pr",)))
    states = tuple(random.sample(STATES, 3))
    blocks = random_blocks(random, [*states, "72"])
    config = random_config(random, runs, states[: random.choice((1, 2, 2))], noise)
    housing = None
    if random.random() < 0.4:
        housing = {block_id(block): random.choice((0, 0, 1, 30)) for block in blocks}
        for first in {block.TABBLKST: block for block in reversed(blocks)}.values():
            housing[block_id(first)] = 2
    lived = [block for block in blocks if housing is None or housing[block_id(block)]]
    some = random.sample(lived, max(1, len(lived) * 3 // 4))
    some += [block for block in lived if block not in some and block.TABBLKST not in {b.TABBLKST for b in some}]
    popular = random.choices(codes, k=4)
    world = World(codes, iterations, mapping, blocks, [], [], [], housing, config)
    world.persons = [random_person(random, random.choice(some), codes, popular) for _ in range(persons)]
    world.households = [random_household(random, random.choice(some), codes, popular) for _ in range(households)]
    for state in ("72", config.states[0]):  # each pass has somebody
        block = next(block for block in some if state == block.TABBLKST)
        world.persons.append(random_person(random, block, codes, popular))
        world.households.append(random_household(random, block, codes, popular))
    world.totals = random_totals(random, world)
    if random.random() < 0.5:  # records and totals of left-out states, and no block of theirs
        world.blocks = [block for block in blocks if is_run(config, block.TABBLKST)]
        kept = {block_id(block) for block in world.blocks}
        world.housing_units = housing and {block: units for block, units in housing.items() if block in kept}
    for rows in (world.iterations, world.mapping, world.blocks, world.persons, world.households):
        random.shuffle(rows)
    return world


def random_iterations(random: Random, codes: Sequence[str]) -> tuple[list[Iteration], list[tuple[str, str]]]:
    """Iterations and their codes: one code has at most one per level, alone-ness and granularity."""
    names = iter(f"{number:04}" for number in random.sample(range(1, 10_000), 400))
    iterations: list[Iteration] = []
    mapping: list[tuple[str, str]] = []
    for alone in (True, False, None):
        for _ in range(random.choice((0, 2))):  # level 0 may overlap as it likes
            iterations.append(Iteration(next(names), 0, alone, None, None))
            mapping += [(iterations[-1].code, code) for code in codes if random.random() < 0.5]
    for level in LEVELS:
        for alone in (True, False, None):
            mine = [Iteration(next(names), level, alone, *flags) for flags in ANY_FLAGS[: random.choice((2, 4, 4))]]
            mine += [
                Iteration(next(names), level, alone, *random.choice(ANY_FLAGS)) for _ in range(random.choice((0, 1, 3)))
            ]
            common = [i for i in mine if not i.detailed_only and not i.coarse_only]
            parted = [[i for i in mine if i.detailed_only], [i for i in mine if i.coarse_only]]
            for code in codes:
                kind = random.choices(("none", "common", "parted"), (1, 5, 3))[0]
                if alone is False and code == codes[0]:  # no level is without any code
                    kind = "common"
                if kind == "common":
                    mapping.append((random.choice(common).code, code))
                if kind == "parted":
                    mapping += [(random.choice(part).code, code) for part in parted if part and random.random() < 0.7]
            iterations += mine
    return iterations, mapping


def random_blocks(random: Random, states: Sequence[str]) -> list[Block]:
    areas = random.sample(range(1, 9999), 3)
    blocks = set()
    for state in states:
        places = [*(f"{random.randrange(99_999):05}" for _ in range(2)), "99999"]
        for county in random.sample(range(1, 900), random.choice((1, 2))):
            for tract in random.sample(range(100, 999_999), random.choice((1, 3))):
                for number in random.sample(range(1000, 9999), random.choice((1, 3))):
                    aiannh = "9999" if state == "72" else random.choice((*(f"{area:04}" for area in areas), "9999"))
                    place = random.choice(places)
                    blocks.add(Block(state, f"{county:03}", f"{tract:06}", f"{number:04}", place, aiannh))
    return sorted(blocks)


def random_config(random: Random, runs: tuple[str, ...], states: tuple[str, ...], noise: str) -> Config:
    choices = {
        "none": ("Infinity", "Infinity", "Infinity", "0"),
        "some": ("0", "0.006915", "0.142869", "1.9208", "25", "1/3", "2.134", "0.0"),
        "mixed": ("Infinity", "0", "0.5", "7/2"),
    }[noise]
    config = Config(runs=runs, states=states)
    config.thresholds((5, 10, 20), 5).budgets("0")
    for table in (config.p, config.h):
        for key in table:
            table[key] = random.choice(choices)  # type: ignore[index]
    first = {"us": "USA", "pr": "PR-STATE"}
    for run in runs:
        for key in ((first[run], 2), (3, first[run], 2), (4, first[run], 1)):
            (config.p if len(key) == 2 else config.h)[key] = choices[-2]  # type: ignore[index]
    for thresholds in (config.thresholds_p, config.thresholds_h):
        for key, values in thresholds.items():
            thresholds[key] = sorted(random.choice(THRESHOLDS) for _ in values)  # type: ignore[index]
    config.max_race_codes = random.randint(1, 8)
    config.fraction = random.choice(("0.1", "0.25", "0.9", "0.3"))
    config.zero_suppression = random.choice((None, "0", "0.5", "0.9999", "0.1"))
    config.allow_negative = random.choice((True, False))
    config.definition = random.choice(("zcdp", "puredp"))
    return config


def random_races(random: Random, codes: Sequence[str], popular: Sequence[str]) -> list[str]:
    number = random.choice((1, 1, 1, 2, 2, 3, 5, 8))
    pool = popular if random.random() < 0.7 else codes
    return [*random.choices(pool, k=number), *["Null"] * (RACES - number)]


AGES = (0, 4, 5, 9, 10, 14, 15, 17, 18, 19, 20, 21, 22, 24, 25, 29, 30, 34, 35, 39, 40, 44, 45, 49, 50, 54, 55, 59, 60)
OLD = (61, 62, 64, 65, 66, 67, 69, 70, 74, 75, 79, 80, 84, 85, 100, 115)


def random_person(random: Random, block: Block, codes: Sequence[str], popular: Sequence[str]) -> Person:
    age = str(random.choice((*AGES, *OLD)))
    return Person(  # type: ignore[call-arg]
        age if random.random() < 0.8 else age.zfill(3),  # the Bureau's toy file pads ages
        random.choice("12"),
        random.choice(("True", "False")),
        *block[:4],
        f"{random.randint(1, 63):02}",
        *random_races(random, codes, popular),
        random.choice(codes),
    )


def random_household(random: Random, block: Block, codes: Sequence[str], popular: Sequence[str]) -> Household:
    return Household(  # type: ignore[call-arg]
        *block[:4],
        f"{random.randint(1, 63):02}",
        *random_races(random, codes, popular),
        random.choice(codes),
        random.choice("12345"),
        random.choice("1234"),
    )


def regions_of(block: Block) -> dict[str, str]:
    """REGION_ID by REGION_TYPE of everything that contains a block."""
    state, county, tract, _, place, aiannh = block
    prefix = "PR-" if state == "72" else ""
    found = {
        f"{prefix}STATE": state,
        f"{prefix}COUNTY": state + county,
        f"{prefix}TRACT": state + county + tract,
    }
    if place != "99999":
        found[f"{prefix}PLACE"] = state + place
    if state != "72":
        found["USA"] = "1"
        if aiannh != "9999":
            found["AIANNH"] = aiannh
    return found


def is_run(config: Config, state: str) -> bool:
    """Whether the records of a state belong to a pass of the run."""
    return "pr" in config.runs if state == "72" else "us" in config.runs and state in config.states


def random_totals(random: Random, world: World) -> list[Total]:
    """Totals of most groups of every region, and of groups that no run may publish (level 0, flags, other states)."""
    regions = sorted({region for block in world.blocks for region in regions_of(block).items()})
    share = random.choice((0.4, 0.9))
    rows = [
        Total(region, region_type, iteration.code, str(random.choice((-3, -1, 0, *THRESHOLDS))))
        for region_type, region in regions
        for iteration in world.iterations
        if random.random() < share or (region_type in {"USA", "PR-STATE"} and iteration.level)
    ]
    random.shuffle(rows)
    return rows


# --- writing -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Form:
    """How files look."""

    end: str = "\n"
    bom: bool = False
    blank_lines: int = 0
    separator: str = "|"
    records: str = "text"
    """text; or parquet, all columns text; or parquet with integers where the Bureau has integers."""
    extra_columns: bool = False
    """In GRF-C, between the six that are needed."""


FORMS = {
    "plain": Form(),
    "crlf": Form(end="\r\n", blank_lines=1),
    "bom": Form(bom=True, extra_columns=True),
    "blank lines": Form(blank_lines=3, extra_columns=True),
    "comma": Form(separator=",", extra_columns=True),
    "crlf and bom": Form(end="\r\n", bom=True, blank_lines=2, extra_columns=True),
    "parquet": Form(records="parquet"),
    "parquet integer": Form(records="parquet integer", end="\r\n", blank_lines=2),
}
NAMES = {
    "race": "race-characteristic-iterations.txt",
    "ethnicity": "ethnicity-characteristic-iterations.txt",
    "map": "race-and-ethnicity-code-to-iteration.txt",
    "codes": "race-and-ethnicity-codes.txt",
    "blocks": "GRF-C.txt",
    "persons": "person-records.txt",
    "households": "household-records.txt",
    "totals": "pop-group-totals.txt",
    "housing": "housing-units.txt",
    "config": "config.json",
}
FLAG: Mapping[bool | None, str] = {True: "True", False: "False", None: "Null"}


def write_text(path: Path, header: Sequence[str], rows: Iterable[Sequence[str]], form: Form, separator: str) -> None:
    lines = [separator.join(header), *(separator.join(row) for row in rows)]
    text = form.end.join([*lines, *[""] * (1 + form.blank_lines)])
    path.write_text(text, encoding="utf-8-sig" if form.bom else "utf-8", newline="")


def write_parameters(folder: Path, world: World, form: Form = FORMS["plain"], document: object = None) -> Path:
    """Write the parameter folder; names hold commas, apostrophes and letters beyond ASCII, as real ones do."""
    folder.mkdir(parents=True)
    flags = {
        i.code: (
            str(i.level),
            *([] if i.alone is None else [FLAG[i.alone]]),
            FLAG[i.detailed_only],
            FLAG[i.coarse_only],
        )
        for i in world.iterations
    }
    for kind, header in (("race", ["ALONE"]), ("ethnicity", [])):
        columns = ["ITERATION_CODE", "ITERATION_NAME", "LEVEL", *header, "DETAILED_ONLY", "COARSE_ONLY"]
        mine = [i for i in world.iterations if (i.alone is None) == (kind == "ethnicity")]
        rows = [(i.code, f"Ka'ū {i.code}, not specified (All geos)", *flags[i.code]) for i in mine]
        write_text(folder / NAMES[kind], columns, rows, form, "|")
    write_text(folder / NAMES["map"], ["ITERATION_CODE", "RACE_ETH_CODE"], world.mapping, form, "|")
    names = [(code, f"Name, of {code}") for code in world.codes]
    write_text(folder / NAMES["codes"], ["RACE_ETH_CODE", "RACE_ETH_NAME"], names, form, "|")
    text = json.dumps(world.config.document() if document is None else document, indent=2)
    (folder / NAMES["config"]).write_text(text.replace("\n", form.end), encoding="utf-8", newline="")
    return folder


def write_data(folder: Path, world: World, form: Form = FORMS["plain"], *, synthetic: bool = True) -> Path:
    """Write the data folder of both products."""
    folder.mkdir(parents=True)
    if synthetic:
        (folder / "SYNTHETIC").touch()
    write_blocks(folder / NAMES["blocks"], world.blocks, form)
    write_text(folder / NAMES["totals"], Total._fields, world.totals, form, form.separator)
    if world.housing_units is not None:
        rows = [(block, str(units)) for block, units in world.housing_units.items()]
        write_text(folder / NAMES["housing"], ["block", "housing_units"], rows, form, form.separator)
    for kind, fields, records in (
        ("persons", Person._fields, world.persons),
        ("households", Household._fields, world.households),
    ):
        path = folder / NAMES[kind]
        if form.records == "text":
            write_text(path, fields, records, form, form.separator)
        else:
            write_parquet(path.with_suffix(".parquet"), fields, records, integers=form.records.endswith("integer"))
    return folder


def write_blocks(path: Path, blocks: Sequence[Block], form: Form) -> None:
    if not form.extra_columns:
        write_text(path, Block._fields, blocks, form, form.separator)
        return
    header = ["OIDTABBLK", *Block._fields[:4], "TABBLKGRPCE", "PLACEFP", "COUSUBFP", "AIANNHCE", "REGIONCE"]
    rows = [(str(n), *b[:4], b.TABBLK[0], b.PLACEFP, "00100", b.AIANNHCE, "4") for n, b in enumerate(blocks)]
    write_text(path, header, rows, form, form.separator)


INTEGERS = {"QAGE", "QSEX", "HOUSEHOLD_TYPE", "TEN"}


def write_parquet(path: Path, fields: Sequence[str], records: Sequence[Sequence[str]], *, integers: bool) -> None:
    plain = path.with_suffix(".plain")
    write_text(plain, fields, records, Form(), "|")
    cast = ", ".join(f"CAST({f} AS {'INTEGER' if integers and f in INTEGERS else 'VARCHAR'}) AS {f}" for f in fields)
    with duckdb.connect() as db:
        db.execute(
            f"COPY (SELECT {cast} FROM read_csv('{plain}', header = true, delim = '|', all_varchar = true)) "
            f"TO '{path}' (FORMAT parquet)"
        )
    plain.unlink()


# --- reading -------------------------------------------------------------------------------------------------------

Row = TypeVar("Row")


def read_world(parameters: Path, data: Path) -> World:
    """Read a world as it was written, whichever records are there."""
    iterations = [
        Iteration(row[0], int(row[2]), _flag(row[3]), _flag(row[4]), _flag(row[5]))
        for row in read_rows(parameters / NAMES["race"])
    ]
    iterations += [
        Iteration(row[0], int(row[2]), None, _flag(row[3]), _flag(row[4]))
        for row in read_rows(parameters / NAMES["ethnicity"])
    ]

    def records(kind: str, make: Callable[..., Row]) -> list[Row]:
        path = data / NAMES[kind]
        return [make(*row) for row in read_rows(path)] if path.exists() else []

    housing = {row[0]: int(row[1]) for row in read_rows(data / NAMES["housing"])} if _is_there(data) else None
    return World(
        codes=[row[0] for row in read_rows(parameters / NAMES["codes"])],
        iterations=iterations,
        mapping=[(row[0], row[1]) for row in read_rows(parameters / NAMES["map"])],
        blocks=records("blocks", lambda *row: Block(*row[:6])),
        persons=records("persons", Person),
        households=records("households", Household),
        totals=records("totals", lambda *row: Total(*row[:4])),
        housing_units=housing,
        config=read_config(parameters / NAMES["config"]),
    )


def _is_there(data: Path) -> bool:
    return (data / NAMES["housing"]).exists()


def _flag(text: str) -> bool | None:
    return {"True": True, "False": False, "Null": None}[text]


def read_rows(path: Path) -> list[list[str]]:
    lines = path.read_text(encoding="utf-8-sig").replace("\r\n", "\n").split("\n")
    separator = "|" if "|" in lines[0] else ","
    return [line.split(separator) for line in lines[1:] if line]


def read_config(path: Path) -> Config:
    document = json.loads(path.read_text(encoding="utf-8"), parse_float=str, parse_int=str, parse_constant=str)
    config = Config(
        max_race_codes=int(document["max_race_codes"]),
        fraction=document.get("privacy_budget_p_stage_1_fraction", "0.1"),
        zero_suppression=document.get("zero_suppression_chance"),
        allow_negative=document["allow_negative_counts"],
        runs=tuple(run for run in PASSES if document[f"run_{run}"]),
        states=tuple(document["state_filter_us"]),
        definition=document["privacy_defn"],
    )
    for region_type in (*US_TYPES, *PR_TYPES):
        for level in LEVELS:
            key, where = f"level_{level}_{key_of(region_type)}", f"({region_type}, {level})"
            if f"privacy_budget_p_{key}" in document:
                config.p[region_type, level] = document[f"privacy_budget_p_{key}"]
                config.thresholds_p[region_type, level] = [int(x) for x in document["thresholds_p"].get(where, ())]
            for family in FAMILIES:
                if f"privacy_budget_h_t{family}_{key}" in document:
                    config.h[family, region_type, level] = document[f"privacy_budget_h_t{family}_{key}"]
                    values = document[f"thresholds_h_t{family}"].get(where, ())
                    config.thresholds_h[family, region_type, level] = [int(x) for x in values]
    return config


def is_infinite(budget: str) -> bool:
    return budget in {"Infinity", "inf"}


def is_zero(budget: str) -> bool:
    return not is_infinite(budget) and not any(digit in budget for digit in "123456789")
