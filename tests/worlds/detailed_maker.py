"""Small SafeTab data folders in every form, and what is wrong with them according to plain Python."""

import itertools
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

ADDRESS = ("TABBLKST", "TABBLKCOU", "TABTRACTCE", "TABBLK")
RACES = tuple(f"QRACE{number}" for number in range(1, 9))
HEADERS = {
    "person-records": ("QAGE", "QSEX", "HOUSEHOLDER", *ADDRESS, "CENRACE", *RACES, "QSPAN"),
    "household-records": (*ADDRESS, "HHRACE", *RACES, "QSPAN", "HOUSEHOLD_TYPE", "TEN"),
}
STATES = frozenset({6, 17})
CODES = frozenset({1000, 1010, 2020, 3105, 7680, 9950})
ETHNICITY_CODES = frozenset({2020, 9950, 1010})

Row = dict[str, str]
Places = dict[tuple[str, str, str], list[int]]


@dataclass
class World:
    """Rows as text by column; `housing` is None if there is no list."""

    kind: str
    records: list[Row]
    blocks: list[Row]
    housing: list[Row] | None = None
    reference_columns: tuple[str, ...] = (*ADDRESS, "PLACEFP", "AIANNHCE")

    @property
    def files(self) -> dict[str, tuple[Sequence[str], list[Row]]]:
        files: dict[str, tuple[Sequence[str], list[Row]]] = {
            self.kind: (HEADERS[self.kind], self.records),
            "GRF-C": (self.reference_columns, self.blocks),
        }
        if self.housing is not None:
            files["housing-units"] = (("block", "housing_units"), self.housing)
        return files


def sound_world(kind: str = "person-records", *, listed: bool = True) -> World:
    """Two states and one that is left out; one block has no housing unit."""
    blocks = [
        {**dict(zip(ADDRESS, address, strict=True)), "PLACEFP": place, "AIANNHCE": "9999"}
        for address, place in (
            (("06", "001", "400100", "1000"), "99999"),
            (("06", "001", "400100", "1001"), "00562"),
            (("17", "031", "010100", "1000"), "14000"),
            (("17", "031", "010100", "2000"), "14000"),
            (("72", "031", "010100", "2000"), "00001"),
        )
    ]
    races = [
        ("1000", *["Null"] * 7, "9950"),
        ("3105", "1010", *["Null"] * 6, "2020"),
        ("1000", "1010", "2020", "3105", "7680", "9950", "1000", "3105", "1000"),
        ("7680", *["Null"] * 7, "1010"),
    ]
    others = [("028", "1", "True"), ("0", "2", "False"), ("115", "1", "True"), ("7", "2", "False")]
    homes = [("1", "1"), ("2", "2"), ("5", "4"), ("4", "3")]
    records = []
    for block, race, other, home in zip((*blocks[:3], blocks[4]), races, others, homes, strict=True):
        row = {name: block[name] for name in ADDRESS} | dict(zip((*RACES, "QSPAN"), race, strict=True))
        if kind == "person-records":
            row |= dict(zip(("QAGE", "QSEX", "HOUSEHOLDER"), other, strict=True)) | {"CENRACE": "01"}
        else:
            row |= dict(zip(("HOUSEHOLD_TYPE", "TEN"), home, strict=True)) | {"HHRACE": "63"}
        records.append(row)
    housing = [{"block": code_of(block), "housing_units": str(3 - i)} for i, block in enumerate(blocks[:4])]
    return World(kind, records, blocks, housing if listed else None)


def code_of(row: Row, digits: int = 16) -> str:
    state, county, tract, block = (row[name] for name in ADDRESS)
    return state + county + tract + (block[0] if digits == 16 else "") + block


def write_text(path: Path, header: Sequence[str], rows: Iterable[Row], separator: str = "|", end: str = "\n") -> None:
    lines = [header, *([row[name] for name in header] for row in rows)]
    path.write_text("".join(separator.join(line) + end for line in lines), encoding="utf-8", newline="")


def write_parquet(path: Path, header: Sequence[str], rows: Sequence[Row], casts: dict[str, str] | None = None) -> None:
    """Write text as it stands; `casts` gives SQL for columns that are to be stored otherwise."""
    data = path.with_suffix(".json")
    data.write_text(json.dumps(list(rows)))
    columns = ", ".join(f"{name}: 'VARCHAR'" for name in header)
    chosen = ", ".join(f"{(casts or {}).get(name, name)} AS {name}" for name in header)
    # What the path says is not what the file says.
    rows_of = f"read_json('{data}', columns = {{{columns}}}, hive_partitioning = false)"
    with duckdb.connect() as db:
        db.execute(f"COPY (SELECT {chosen} FROM {rows_of}) TO '{path}'")
    data.unlink()


def write_world(folder: Path, world: World, *, parquet: bool = False, separator: str = "|", end: str = "\n") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, (header, rows) in world.files.items():
        if parquet and name == world.kind:
            write_parquet(folder / f"{name}.parquet", header, rows)
        else:
            write_text(folder / f"{name}.txt", header, rows, separator, end)


# --- what is wrong, by the words of the specification ---------------------------------------------------------------


def _digits(width: int) -> Callable[[str], bool]:
    return lambda text: re.fullmatch(f"[0-9]{{{width}}}", text) is not None


def _code(text: str) -> bool:
    return re.fullmatch("[1-9][0-9]{3}", text) is not None


ALLOWED: dict[str, Callable[[str], bool]] = {
    "TABBLKST": _digits(2),
    "TABBLKCOU": _digits(3),
    "TABTRACTCE": _digits(6),
    "TABBLK": _digits(4),
    "PLACEFP": _digits(5),
    "AIANNHCE": _digits(4),
    "QAGE": lambda text: re.fullmatch("[0-9]{1,9}", text) is not None and int(text) <= 115,
    "QSEX": lambda text: text in {"1", "2"},
    "HOUSEHOLDER": lambda text: text in {"True", "False"},
    "CENRACE": lambda text: text in {f"{code:02}" for code in range(1, 64)},
    "HHRACE": lambda text: text in {f"{code:02}" for code in range(1, 64)},
    "QRACE1": _code,
    **{race: lambda text: text == "Null" or _code(text) for race in RACES[1:]},
    "QSPAN": _code,
    "HOUSEHOLD_TYPE": lambda text: text in {"1", "2", "3", "4", "5"},
    "TEN": lambda text: text in {"1", "2", "3", "4"},
    "block": lambda text: re.fullmatch("[0-9]{15,16}", text) is not None,
    "housing_units": lambda text: re.fullmatch("[0-9]{1,9}", text) is not None,
}


def _block(row: Row) -> tuple[str, ...] | None:
    if "block" in row:
        code = row["block"]
        return (code[:2], code[2:5], code[5:11], code[-4:]) if ALLOWED["block"](code) else None
    return tuple(row[name] for name in ADDRESS) if all(ALLOWED[name](row[name]) for name in ADDRESS) else None


def _runs(block: tuple[str, ...] | None) -> bool:
    return block is not None and int(block[0]) in STATES


def broken_rules(world: World) -> Places:
    """Positions, from 0, of the rows that break a rule, by file, rule and column ("" where it is not about one)."""
    found: Places = {}
    for file, (header, rows) in world.files.items():
        if not rows:
            found[file, "not_empty", ""] = []
        for (i, row), column in itertools.product(enumerate(rows), header):
            if column in ALLOWED and not ALLOWED[column](row[column]):
                _add(found, file, "domain", column, i)
            elif column in {*RACES, "QSPAN"} and row[column] != "Null" and int(row[column]) not in CODES:
                _add(found, file, "known_code", column, i)
    for i in (i for i, row in enumerate(world.records) if _is_out_of_order([row[race] for race in RACES[1:]])):
        _add(found, world.kind, "race_after_null", "", i)
    for file in {"GRF-C", "housing-units"} & world.files.keys():
        listed = [_block(row) for row in world.files[file][1]]
        for i in (i for i, block in enumerate(listed) if block is not None and listed.count(block) > 1):
            _add(found, file, "unique_block", "", i)
    if all(file == world.kind for file, _, _ in found):
        _add_places(found, world)
    return found


def _is_out_of_order(races: list[str]) -> bool:
    return any(first == "Null" and _code(second) for first, second in itertools.combinations(races, 2))


def _add_places(found: Places, world: World) -> None:
    known = {_block(row) for row in world.blocks}
    units = {_block(row): int(row["housing_units"]) for row in world.housing or ()}
    for i, row in enumerate(world.records):
        block = _block(row)
        if _runs(block) and block not in known:
            _add(found, world.kind, "block_in_reference", "", i)
        elif _runs(block) and world.kind == "household-records" and world.housing and not units.get(block):
            _add(found, world.kind, "block_has_housing_unit", "", i)


def _add(found: Places, file: str, rule: str, column: str, position: int) -> None:
    found.setdefault((file, rule, column), []).append(position)


def notes(world: World) -> dict[str, int]:
    """What is counted of a world that breaks no rule."""
    known = {_block(row) for row in world.blocks}
    return {
        "records_of_other_states": sum(not _runs(_block(row)) for row in world.records),
        "blocks_of_other_states": sum(not _runs(_block(row)) for row in world.blocks),
        "qspan_is_race_code": sum(
            _runs(_block(row)) and int(row["QSPAN"]) not in ETHNICITY_CODES for row in world.records
        ),
        "housing_units_outside_reference": sum(
            _runs(_block(row)) and _block(row) not in known for row in world.housing or ()
        ),
    }


def tabulated(world: World) -> tuple[Counter[tuple[int, ...]], Counter[tuple[int | None, ...]]]:
    """Rows of ``records`` and ``blocks``, as numbers, of a world that breaks no rule."""
    extra = ("QAGE", "QSEX") if world.kind == "person-records" else ("HOUSEHOLD_TYPE", "TEN")
    records = Counter(
        tuple(0 if row[name] == "Null" else int(row[name]) for name in (*ADDRESS, *RACES, "QSPAN", *extra))
        for row in world.records
        if _runs(_block(row))
    )
    units = {_block(row): int(row["housing_units"]) for row in world.housing or ()}
    blocks = Counter(
        (
            *(int(row[name]) for name in (*ADDRESS, "PLACEFP", "AIANNHCE")),
            None if world.housing is None else units.get(_block(row), 0),
        )
        for row in world.blocks
        if _runs(_block(row))
    )
    return records, blocks
