"""Random families: what is laid out is verified, its variances are those of sums, and any altered row is found."""

import json
from collections.abc import Callable
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from yupana.plan.measurement import Margins, Measurement, Mechanism, Sensitivity, of_own_record
from yupana.plan.plan import Neighbours, Plan
from yupana.products import PRODUCTS
from yupana.products.tables import NUMBERS, Cell, Choice, Family, Groups, Table, lay_out
from yupana.products.verify import Codes, verify_tables
from yupana.release.tables import Coded, Format, checksum, describe, read_table, write_all

KINDS = ("USA", "STATE", "COUNTY")
CODES = Codes(lambda _: "regexp_full_match(REGION_ID, '[0-9]{3}') AND length(ITERATION_CODE) = 1", lambda level: level)
KEYS = ("REGION_ID", "REGION_TYPE", "ITERATION_CODE")


def partition(rng: np.random.Generator, cells: int, into: int) -> tuple[int, ...]:
    """So many cells in so many parts, numbered in the order of their first cells."""
    parts = [*range(into), *rng.integers(into, size=cells - into).tolist()]
    numbers: dict[int, int] = {}
    return tuple(numbers.setdefault(part, len(numbers)) for part in rng.permutation(parts).tolist())


def random_family(rng: np.random.Generator, name: str) -> Family:
    """One to three choices, each with a table of its own and marginals in it, and maybe one more table of sums."""
    finest = int(rng.integers(2, 7))
    sizes = sorted(set(rng.integers(1, finest + 1, size=int(rng.integers(0, 3))).tolist()) | {finest})
    total, beside = bool(rng.integers(2)), bool(rng.integers(2))
    choices = []
    for number, size in enumerate(sizes):
        alone = [Cell((f"c{part}", "*"), (part,)) for part in range(size)]
        picked = {
            tuple(sorted(rng.choice(size, size=int(rng.integers(2, size + 1)), replace=False).tolist()))
            for _ in range(int(rng.integers(3)) if size > 1 else 0)
        }
        rows = [*alone, *(Cell(("*", f"m{i}"), parts) for i, parts in enumerate(sorted(picked)))]
        own = Table(f"{name}_{number}", ("CELL", "MARGINAL"), tuple(rows[i] for i in rng.permutation(len(rows))))
        tables = [own]
        if beside:
            pairs = [(i,) if i + 1 == size else (i, i + 1) for i in range(0, size, 2)]
            tables.append(
                Table(f"{name}_{number}_sums", ("NUMBER",), tuple(Cell((i,), p) for i, p in enumerate(pairs)))
            )
        if total:
            tables.append(Table(f"{name}_total", (), (Cell((), tuple(range(size))),)))
        choices.append(Choice(tuple(range(size)) if size == finest else partition(rng, finest, size), tuple(tables)))
    return Family(name, KEYS, tuple(choices), ("COUNT", "NOISE_DISTRIBUTION", *NUMBERS[1:]))


def random_plan(rng: np.random.Generator, families: tuple[Family, ...], margins: Margins) -> Plan:
    mechanism = list(Mechanism)[int(rng.integers(2))]
    one = Sensitivity(Fraction(1), Fraction(2))
    measurements = [
        Measurement(
            name=f"{family.name}/{kind}",
            table=family.name,
            level=kind,
            cells=family.measured,
            mechanism=mechanism,
            calibration=one.unbounded,
            sensitivity=one,
            proven=one,
            budget=Fraction(int(rng.integers(1, 50)), 97),
            person=of_own_record(one),
        )
        for family in families
        for kind in KINDS
    ]
    plan = (Neighbours.UNBOUNDED, "tight", Fraction(9, 10), mechanism, tuple(measurements))
    return Plan("random", "person", *plan, margins=margins)


def random_groups(rng: np.random.Generator, families: tuple[Family, ...], plan: Plan) -> list[Groups]:
    """Some of all groups of three areas and two iterations of each kind, in pieces whose lists of codes differ."""
    found = []
    for m in plan.measurements:
        family = next(family for family in families if family.name == m.table)
        given = rng.integers(-1, len(family.choices), size=6)
        for choice, of in enumerate(family.choices):
            some = np.flatnonzero(given == choice)
            ids = [f"{i:03}" for i in ((2, 0, 1) if rng.integers(2) else (0, 1, 2))]
            places = np.array([ids.index(f"{i:03}") for i in range(3)])
            counts = rng.integers(-5, 1000, size=(len(some), of.measured))
            codes = Coded(ids, places[some // 2]), Coded(("A", "B"), some % 2)
            found.append(Groups(family, choice, m.level, *codes, counts, m))
    return found


def published(
    folder: Path, families: tuple[Family, ...], groups: list[Groups], plan: Plan, fmt: Format
) -> dict[str, Any]:
    tables = {}
    for table in lay_out(families, iter(groups), plan, KINDS):
        path = write_all(folder, [table], fmt)[table.name]
        tables[path.name] = describe(table.name, path, table.rows, table.columns)
    return {"product": "random", "plan": json.loads(json.dumps(plan.as_json())), "tables": tables}


def wrong(folder: Path, manifest: dict[str, Any], families: tuple[Family, ...]) -> list[str]:
    return verify_tables(folder, manifest, families, CODES)[0]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.slow
def test_random_families_are_laid_out_as_sums_and_any_altered_row_is_found(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    families = tuple(random_family(rng, name) for name in ("F", "G"))
    plan = random_plan(rng, families, "exact" if seed % 2 else "bureau")
    groups = random_groups(rng, families, plan)
    manifest = published(tmp_path, families, groups, plan, "csv")
    tables = {table: read_table(tmp_path / f"{table}.csv") for family in families for table in family.tables}
    # By brute force: every row of every group.
    rows: dict[tuple[str, ...], tuple[float, ...]] = {}
    for found in groups:
        for table in found.family.choices[found.choice].tables:
            for line, (area, iteration) in enumerate(zip(found.area.places, found.iteration.places, strict=True)):
                codes = str(found.area.values[area]), found.region_type, str(found.iteration.values[iteration])
                for cell in table.cells:
                    parts, m = list(cell.parts), found.measurement
                    rows[table.name, *codes, *map(str, cell.labels)] = (
                        int(found.counts[line, parts].sum()),
                        float(m.variance * len(parts)),
                        plan.margin(m, len(parts)),
                    )
    told = {}
    for family in families:
        for table, columns in family.tables.items():
            assert list(tables[table]) == list(columns)
            lines = list(zip(*tables[table].values(), strict=True))
            told |= {(table, *line[:-4]): (int(line[-4]), float(line[-2]), float(line[-1])) for line in lines}
            order = [(KINDS.index(line[1]), line[0], line[2]) for line in lines]
            assert order == sorted(order)
    assert told == rows
    assert wrong(tmp_path, manifest, families) == []
    # One number, label or row at a time.
    for _ in range(8):
        alter(tmp_path, manifest, families, rng)


def alter(folder: Path, manifest: dict[str, Any], families: tuple[Family, ...], rng: np.random.Generator) -> None:
    """Change a row that others tell of, see that it is found, and change it back."""
    family = families[int(rng.integers(len(families)))]
    names = [name for name in family.tables if manifest["tables"][f"{name}.csv"]["rows"]]
    name = names[int(rng.integers(len(names)))]
    path, entry = folder / f"{name}.csv", manifest["tables"][f"{name}.csv"]
    before = path.read_text()
    header, *lines = before.splitlines()
    columns, at = header.split("|"), int(rng.integers(len(lines)))
    row = dict(zip(columns, lines[at].split("|"), strict=True))
    kinds = ["VARIANCE", "MOE", "NOISE_DISTRIBUTION", "again", "REGION_TYPE"]
    shown = [(choice, choice[name]) for choice in family.having(name)]
    # A count that is measured and in no sum, and a group that is gone with all its rows, nobody could miss.
    if len(shown) == 1 and any(len(cell.parts) > 1 for cell in shown[0][1].cells):
        kinds += ["gone"]
        (cell,) = (c for c in shown[0][1].cells if [*map(str, c.labels)] == [row[c] for c in shown[0][1].columns])
        if len(cell.parts) > 1:
            kinds += ["COUNT"]
    if len(family.tables[name]) > len(KEYS) + len(family.numbers):
        kinds += [str(columns[len(KEYS)])]
    kind = kinds[int(rng.integers(len(kinds)))]
    if kind == "again":
        lines.insert(at, lines[at])
    elif kind == "gone":
        del lines[at]
    else:
        row[kind] = {"COUNT": str(int(row["COUNT"]) + 1), "VARIANCE": repr(float(row["VARIANCE"]) * 1.01)}.get(
            kind, repr(float(row["MOE"]) + 1) if kind == "MOE" else "other"
        )
        lines[at] = "|".join(row.values())
    path.write_text("".join(f"{line}\n" for line in (header, *lines)))
    changed = {**entry, "sha256": checksum(path), "rows": len(lines)}
    assert wrong(folder, {**manifest, "tables": {**manifest["tables"], path.name: changed}}, families) != [], (
        kind,
        row,
    )
    path.write_text(before)


@pytest.mark.thorough
def test_parquet_says_the_same(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    families = (random_family(rng, "F"),)
    plan = random_plan(rng, families, "exact")
    groups = random_groups(rng, families, plan)
    for fmt in ("csv", "parquet"):
        (tmp_path / fmt).mkdir()
        assert wrong(tmp_path / fmt, published(tmp_path / fmt, families, groups, plan, fmt), families) == []
    for table in families[0].tables:
        csv, parquet = (read_table(tmp_path / fmt / f"{table}.{fmt}") for fmt in ("csv", "parquet"))
        assert csv == parquet


def read_family(told: dict[str, Any]) -> Family:
    """A family from plain lists and texts, as a document holds it."""
    return Family(
        told["name"],
        tuple(told["keys"]),
        tuple(
            Choice(
                tuple(choice["finest"]),
                tuple(
                    Table(
                        table["name"],
                        tuple(table["columns"]),
                        tuple(Cell(tuple(labels), tuple(parts)) for labels, parts in table["cells"]),
                    )
                    for table in choice["tables"]
                ),
            )
            for choice in told["choices"]
        ),
        tuple(told["numbers"]),
    )


@pytest.mark.parametrize("product", list(PRODUCTS))
def test_families_can_be_read_from_a_document(product: str) -> None:
    for family in PRODUCTS[product].families:
        assert read_family(json.loads(json.dumps(asdict(family)))) == family


ONE = Table("T", (), (Cell((), (0,)),))
TOTAL = Table("T", (), (Cell((), (0, 1)),))
PARTS = Table("P", ("C",), (Cell((1,), (0,)), Cell((2,), (1,))))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Table("T", ("C",), (Cell((), (0,)),)), "labels of its own"),
        (lambda: Table("T", (), (Cell((), (0,)), Cell((), (1,)))), "labels of its own"),
        (lambda: Table("T", (), (Cell((), ()),)), "adds up"),
        (lambda: Table("T", (), (Cell((), (0, 0)),)), "adds up"),
        (lambda: Choice((0, 2), (PARTS,)), "numbered from 0"),
        (lambda: Choice((0, 0), (PARTS,)), "cells that are measured"),
        (lambda: Choice((0, 1), (TOTAL,)), "every measured cell by itself"),
        (
            lambda: Family("F", KEYS, (Choice((0,), (Table("T", (), (Cell((), (0,)),)),)), Choice((0, 1), (PARTS,)))),
            "F: ",
        ),
        (
            lambda: Family("F", KEYS, (Choice((0, 1), (PARTS, Table("P", (), (Cell((), (0,)),)))),)),
            "same columns and rows",
        ),
    ],
)
def test_what_is_no_family_is_refused(make: Callable[[], object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()
