"""Small worlds of blocks and SafeTab-like tables for the tests of postprocessing, made without the code under test."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from yupana.release.folder import write_manifest
from yupana.release.status import MEASURED
from yupana.release.tables import Format, ReleaseTable, checksum, write_table

KEY = ("REGION_ID", "REGION_TYPE", "ITERATION_CODE")
EDGES = {
    "T02001": (0, 18, 45, 65),
    "T02002": (0, 5, 18, 25, 35, 45, 55, 65, 75),
    "T02003": (0, 5, 10, 15, 18, 20, 21, 22, 25, 30, 35, 40, 45, 50, 55, 60, 62, 65, 67, 70, 75, 80, 85),
}
TYPES_3 = {"0": "24578", "1": "245", "2": "2", "3": "45", "4": "4", "5": "5", "6": "78", "7": "7", "8": "8"}
SHOWN_3 = {"T03001": "0", "T03002": "016", "T03003": "0123678", "T03004": "012345678"}
BASIS_3 = {"T03001": "0", "T03002": "16", "T03003": "2378", "T03004": "24578"}
SHOWN_4 = {"T04001": "0", "T04002": "0123"}
BASIS_4 = {"T04001": "0", "T04002": "123"}
COLUMNS = {
    "T01001": (),
    **dict.fromkeys(EDGES, ("AGESTART", "AGEEND", "SEX")),
    **dict.fromkeys(SHOWN_3, ("T3_DATA_CELL",)),
    **dict.fromkeys(SHOWN_4, ("T4_DATA_CELL",)),
}
FAMILIES = (("T01001", *EDGES), tuple(SHOWN_3), tuple(SHOWN_4))

Cell = tuple[str, ...]
Leaf = tuple[str, int] | str


def ages(table: str) -> list[tuple[str, str]]:
    edges = EDGES[table]
    return [(str(a), str(b)) for a, b in zip(edges, [*(e - 1 for e in edges[1:]), 115], strict=True)]


def measured(table: str) -> list[Cell]:
    """The cells whose noise was drawn."""
    if table == "T01001":
        return [()]
    if table in EDGES:
        return [(a, b, sex) for sex in "12" for a, b in ages(table)]
    return [(cell,) for cell in {**BASIS_3, **BASIS_4}[table]]


def shown(table: str) -> list[tuple[str, Cell]]:
    """The rows of a population group, each with its table."""
    if table == "T01001":
        return [("T01001", ())]
    if table in EDGES:
        return [("T01001", ()), *((table, ("*", "*", sex)) for sex in "12"), *((table, c) for c in measured(table))]
    return [(table, (cell,)) for cell in {**SHOWN_3, **SHOWN_4}[table]]


def leaves(family: tuple[str, ...], cell: Cell) -> frozenset[Leaf]:
    """What a cell counts, in the finest terms of its family: a year of age and a sex, or a finest cell."""
    if family[0] == "T01001":
        if cell == ():
            return frozenset((sex, age) for sex in "12" for age in range(116))
        first, last = (0, 115) if cell[0] == "*" else (int(cell[0]), int(cell[1]))
        return frozenset((cell[2], age) for age in range(first, last + 1))
    if family[0] == "T03001":
        return frozenset(TYPES_3[cell[0]])
    return frozenset("123" if cell == ("0",) else cell[0])


@dataclass
class World:
    """Blocks (state, county, tract, block, place, AIANNH area) with housing units, and tables as rows."""

    blocks: list[tuple[str, ...]]
    units: dict[str, int]
    tables: dict[str, dict[tuple[str, str, str, Cell], tuple[int, float]]] = field(default_factory=dict)

    def areas(self) -> dict[tuple[str, str], frozenset[str]]:
        """The blocks of every area, by type and id."""
        found: dict[tuple[str, str], set[str]] = {}
        for state, county, tract, block, place, aiannh in self.blocks:
            here = state + county + tract + block
            prefix = "PR-" if state == "72" else ""
            mine = [("STATE", state), ("COUNTY", state + county), ("TRACT", state + county + tract)]
            mine += [("PLACE", state + place)] if place != "99999" else []
            keys = [(prefix + kind, region) for kind, region in mine]
            if state != "72":
                keys += [("USA", "1")] + ([("AIANNH", aiannh)] if aiannh != "9999" else [])
            for key in keys:
                found.setdefault(key, set()).add(here)
        return {key: frozenset(blocks) for key, blocks in found.items()}

    def write_reference(self, path: Path) -> Path:
        head = "OIDTABBLK|TABBLKST|TABBLKCOU|TABTRACTCE|TABBLK|PLACEFP|AIANNHCE"
        path.write_text("\n".join([head, *("7|" + "|".join(b) for b in self.blocks)]) + "\n")
        return path

    def write_units(self, path: Path) -> Path:
        lines = [f"{block}|{n}" for block, n in self.units.items()]
        path.write_text("\n".join(["block|housing_units", *lines]) + "\n")
        return path

    def write(self, folder: Path, fmt: Format = "csv") -> Path:
        folder.mkdir()
        listed = {}
        for name, rows in self.tables.items():
            columns: dict[str, list[Any]] = {c: [] for c in (*KEY, *COLUMNS[name], "COUNT", "VARIANCE", "MOE")}
            for (kind, region, iteration, cell), (count, variance) in rows.items():
                values = (region, kind, iteration, *cell, count, variance, 1.96 * math.sqrt(variance))
                for column, value in zip(columns.values(), values, strict=True):
                    column.append(value)
            path = write_table(folder, ReleaseTable(name, columns), fmt)
            size = len(rows)
            listed[path.name] = {"table": name, "sha256": checksum(path), "rows": size, "columns": list(columns)}
        write_manifest(folder, {"yupana": "0", "product": "safetab", "status": MEASURED, "tables": listed})
        return folder


def geography(rng: np.random.Generator) -> World:
    """A few blocks in few areas, so that many areas coincide."""
    blocks = []
    states = rng.choice(["11", "44", "72"], size=rng.integers(1, 4), replace=False).tolist()
    for state in states:
        for county in range(rng.integers(1, 3)):
            for tract in range(rng.integers(1, 3)):
                place = rng.choice(["99999", "10000", f"2{county}000", f"3{county}{tract}00"])
                aiannh = rng.choice(["9999", "0001", f"000{county + 2}", f"001{tract}"])
                for block in range(rng.integers(1, 4)):
                    own = place if rng.random() < 0.8 else "99999"
                    blocks.append((state, f"{county:03d}", f"{tract:06d}", f"{block:04d}", own, aiannh))
    keys = ["".join(b[:4]) for b in blocks]
    units = {key: int(rng.integers(0, 2)) for key in keys if rng.random() < 0.9}
    units[keys[0]] = 1
    return World(blocks, units)


def fill(world: World, rng: np.random.Generator, *, lowest: int, codes: Iterable[str], finer: float) -> None:
    """Measure every area for every iteration, some not shown below the state, some left out."""
    world.tables = {name: {} for family in FAMILIES for name in family}
    for family in FAMILIES:
        for kind, region in world.areas():
            whole_state = kind in {"USA", "STATE", "PR-STATE"}
            variances = [0.0, 0.5, 2.25, 31.5] if rng.random() < 0.1 else [0.5, 2.25, 31.5]
            variance = float(rng.choice(variances))
            for code in codes:
                table = family[int(rng.integers(1, len(family)))] if rng.random() < finer else family[0]
                if not whole_state and (code.startswith("9") or (table == family[0] and rng.random() < 0.3)):
                    continue
                _measure(world, rng, (kind, region, code), family, table, variance, lowest)


def _measure(
    world: World,
    rng: np.random.Generator,
    group: tuple[str, str, str],
    family: tuple[str, ...],
    table: str,
    variance: float,
    lowest: int,
) -> None:
    cells = measured(table)
    counts = {cell: int(rng.integers(lowest, 40)) for cell in cells}
    for name, cell in shown(table):
        inside = [part for part in cells if leaves(family, part) <= leaves(family, cell)]
        world.tables[name][(*group, cell)] = (sum(counts[part] for part in inside), variance * len(inside))


def read_rows(path: Path) -> dict[tuple[str, str, str, Cell], tuple[str, ...]]:
    """The rows of a table by group and cell: what follows the cell, as text."""
    name = path.stem
    wide = len(COLUMNS[name])
    found: dict[tuple[str, str, str, Cell], tuple[str, ...]] = {}
    for row in _lines(path):
        key = (row[1], row[0], row[2], tuple(row[3 : 3 + wide]))
        assert key not in found, "a row is there twice"
        found[key] = tuple(row[3 + wide :])
    return found


def _lines(path: Path) -> Iterator[list[str]]:
    if path.suffix == ".csv":
        for line in path.read_text().split("\n")[1:-1]:
            yield line.split("|")
        return
    with duckdb.connect(":memory:") as db:
        for row in db.execute("SELECT * FROM read_parquet(?)", [str(path)]).fetchall():
            yield [str(value) for value in row]
