"""`accuracy` of both SafeTab products against a release of the same seed and an independent tabulator."""

import csv
import json
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from safetab_oracle import (
    BASIS,
    T1,
    T2,
    T3,
    T4,
    Cell,
    Group,
    Row,
    Tables,
    age_and_sex,
    counted,
    expected_h,
    levels_of,
    noise_for,
    stat_levels,
    t2_rows,
    type_and_tenure,
    universe,
)
from safetab_runs import publish
from safetab_worlds import FAMILIES, World, is_zero, random_world, seeded, write_data, write_parameters

from yupana.cli.main import main
from yupana.products.safetab.errors import LEFT_OUT, SIZES, size_bins


class Key(NamedTuple):
    table: str
    region_type: str
    iteration_level: int
    detailed_only: bool
    size: str


class Found(NamedTuple):
    """What a row of the report says."""

    groups: int
    share: float
    count: int
    expected: float
    observed: float
    within: float


Errors = dict[Key, list[tuple[float, list[int]]]]
"""By row of the report, of each group that got the table, its margin and the errors of its cells."""


def size_of(total: int) -> str:
    return SIZES[bisect_left([1, 10, 100, 1000, 10_000], total)]


def errors_p(world: World, tables: Tables) -> tuple[Errors, Counter[Key]]:
    errors: Errors = defaultdict(list)
    exist: Counter[Key] = Counter()
    table_of = stat_levels(tables)
    for region_type, level in levels_of(world):
        if is_zero(world.config.p[region_type, level]):
            continue
        counts = counted(world, world.persons, age_and_sex, region_type, level)
        for group, iteration in universe(world, region_type, level).items():
            ages = counts.get(group, Counter[Cell]())
            key = Key("", region_type, level, bool(iteration.detailed_only), size_of(ages.total()))
            exist[key] += 1
            if number := table_of.get(group):
                name = T2[number - 1]
                cells = {(*group, *cell): n for cell, (n, parts) in t2_rows(ages, number).items() if parts == 1}
                errors[key._replace(table=name)].append(differences(tables[name], cells))
            elif group in tables[T1]:
                errors[key._replace(table=T1)].append(differences(tables[T1], {group: ages.total()}))
            else:
                errors[key._replace(table=LEFT_OUT)].append((0.0, []))
    return errors, exist


def errors_h(world: World, tables: Tables) -> tuple[Errors, Counter[Key]]:
    errors: Errors = defaultdict(list)
    exist: Counter[Key] = Counter()
    for region_type, level in levels_of(world):
        counts = counted(world, world.households, type_and_tenure, region_type, level)
        for family in FAMILIES:
            budget = world.config.h[family, region_type, level]
            if is_zero(budget):
                continue
            due = expected_h(world, region_type, level, family, counts, noise_for(world, region_type, level, budget))
            for name, rows in due.items():
                basis = set(BASIS[name].values())
                by_group: dict[Group, dict[Cell, int]] = defaultdict(dict)
                for cell, row in rows.items():
                    if cell[3] in basis:
                        by_group[cell[0], cell[1], cell[2]][cell] = row.count
                for cells in by_group.values():
                    key = Key(name, region_type, level, detailed_only=False, size=size_of(sum(cells.values())))
                    exist[key._replace(table=name[:3])] += 1
                    errors[key].append(differences(tables[name], cells))
    return errors, exist


def differences(rows: Mapping[Any, Row], cells: Mapping[Any, int]) -> tuple[float, list[int]]:
    """The margin of the first cell, and published minus true of all."""
    return rows[next(iter(cells))].moe, [rows[cell].count - true for cell, true in cells.items()]


def due(errors: Errors, exist: Counter[Key], product: str) -> Iterator[tuple[Key, Found]]:
    for key, of_groups in errors.items():
        groups = exist[key._replace(table="" if product == "safetab-p" else key.table[:3])]
        off = [abs(error) for _, cells in of_groups for error in cells]
        if not off:
            yield key, Found(groups, len(of_groups) / groups, 0, -1.0, -1.0, -1.0)
            continue
        margin = of_groups[0][0]
        observed = next(m for m in sorted(off) if sum(error <= m for error in off) >= Fraction(95, 100) * len(off))
        within = sum(error <= margin for error in off) / len(off)
        yield key, Found(groups, len(of_groups) / groups, len(off), margin, observed, within)


def told(rows: list[dict[str, Any]]) -> dict[Key, Found]:
    found = {}
    for row in rows:
        key = Key(*(row[name] for name in Key._fields))
        assert key not in found
        names = ("expected_moe", "experimental_moe", "coverage")
        margins = (-1.0 if row[name] is None else row[name] for name in names)
        found[key] = Found(row["groups"], row["share"], row["count"], *margins)
    return found


@pytest.mark.sampled(3)
@pytest.mark.parametrize("product", ["safetab-p", "safetab-h"])
@pytest.mark.parametrize("noise", ["none", "some", "mixed"])
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.thorough)])
@pytest.mark.slow
def test_accuracy_is_that_of_the_release_of_the_same_seed(
    product: str, noise: str, seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world = random_world(seeded(40 + seed), noise=noise)
    tables = publish(product, world, tmp_path, "--seed", "5")
    capsys.readouterr()
    folders = [str(tmp_path / "parameters"), str(tmp_path / "data")]
    assert main([product, "accuracy", *folders, "--seed", "5", "--json"]) == 0
    found = told(json.loads(capsys.readouterr().out))
    expected = dict(due(*(errors_p if product == "safetab-p" else errors_h)(world, tables), product))
    assert found.keys() == expected.keys()
    for key, row in expected.items():
        assert found[key] == pytest.approx(row, rel=1e-9), key


@pytest.mark.slow
def test_trials_are_drawn_anew_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world = random_world(seeded(1), noise="some")
    world.config.budgets("1/3")
    world.config.runs = ("us",)
    publish("safetab-h", world, tmp_path)
    out = tmp_path / "accuracy"
    arguments = [str(tmp_path / "parameters"), str(tmp_path / "data"), str(out)]
    assert main(["safetab-h", "accuracy", *arguments, "--trials", "8", "--seed", "1"]) == 0
    assert "expected" in capsys.readouterr().out
    assert json.loads((out / "manifest.json").read_text())["status"] == "NOT FOR RELEASE"
    with (out / "accuracy.csv").open(newline="") as file:
        rows = list(csv.DictReader(file, delimiter="|"))
    totals = [row for row in rows if row["TABLE"] in {T3[0], T4[0]} and row["REGION_TYPE"] == "COUNTY"]
    assert totals
    for row in totals:
        assert int(row["COUNT"]) == 8 * round(int(row["GROUPS"]) * float(row["SHARE"]))
    # Trials of the same noise would give the same error each time.
    assert len({row["EXPERIMENTAL_MOE"] for row in rows}) > 3


@pytest.mark.parametrize(("product", "cap"), [("safetab-p", 1), ("safetab-h", 2), ("safetab-p", 8)])
@pytest.mark.thorough
def test_the_bias_of_the_race_cap_by_iteration(product: str, cap: int, tmp_path: Path) -> None:
    """Without noise what is published errs by the cap alone: against an independent tabulator that has none."""
    world = random_world(seeded(60 + cap))
    world.config.budgets("Infinity")
    world.config.max_race_codes = cap
    tables = publish(product, world, tmp_path)
    out = tmp_path / "accuracy"
    arguments = [str(tmp_path / "parameters"), str(tmp_path / "data"), str(out)]
    assert main([product, "accuracy", *arguments]) == 0
    world.config.max_race_codes = 8
    errors = errors_by_iteration(world, tables, product)
    with (out / "accuracy_by_iteration.csv").open(newline="") as file:
        rows = list(csv.DictReader(file, delimiter="|"))
    found = {(row["TABLE"], row["REGION_TYPE"], row["ITERATION_CODE"]): row for row in rows}
    assert found.keys() == errors.keys()
    for key, of_groups in errors.items():
        cells = [error for group in of_groups.values() for error, _ in group]
        size = sum(true for group in of_groups.values() for _, true in group) / len(of_groups)
        assert float(found[key]["MEAN_SIZE"]) == pytest.approx(size)
        assert int(found[key]["COUNT"]) == len(cells)
        assert float(found[key]["RACE_CAP_BIAS"]) == pytest.approx(sum(cells) / len(of_groups))
        assert float(found[key]["EXPERIMENTAL_MOE"]) == 0
        uncapped = float(found[key]["EXPERIMENTAL_MOE_UNCAPPED"])
        assert uncapped == float(np.quantile(np.abs(cells), 0.95, method="inverted_cdf"))
    assert any(float(row["RACE_CAP_BIAS"]) for row in rows) == (cap < 8)


def errors_by_iteration(
    world: World, tables: Tables, product: str
) -> dict[tuple[str, str, str], dict[Group, list[tuple[int, int]]]]:
    """By table, region type and iteration, of each published group what its measured cells err by, and the truth."""
    found: dict[tuple[str, str, str], dict[Group, list[tuple[int, int]]]] = defaultdict(lambda: defaultdict(list))
    table_of = stat_levels(tables) if product == "safetab-p" else {}
    for region_type, level in levels_of(world):
        if product == "safetab-p":
            counts = counted(world, world.persons, age_and_sex, region_type, level)
            for group in universe(world, region_type, level):
                ages = counts.get(group, Counter[Cell]())
                if number := table_of.get(group):
                    rows = {(*group, *c): n for c, (n, parts) in t2_rows(ages, number).items() if parts == 1}
                    name = T2[number - 1]
                else:
                    rows, name = ({group: ages.total()}, T1) if group in tables[T1] else ({}, "")
                for cell, true in rows.items():
                    found[name, region_type, group[2]][group].append((tables[name][cell].count - true, true))
            continue
        counts = counted(world, world.households, type_and_tenure, region_type, level)
        for family in FAMILIES:
            noise = noise_for(world, region_type, level, "Infinity")
            for name, due_rows in expected_h(world, region_type, level, family, counts, noise).items():
                for cell, row in due_rows.items():
                    if cell[3] in set(BASIS[name].values()):
                        group = (cell[0], cell[1], cell[2])
                        found[name, region_type, cell[2]][group].append(
                            (tables[name][cell].count - row.count, row.count)
                        )
    return found


@pytest.mark.parametrize("product", ["safetab-p", "safetab-h"])
@pytest.mark.slow
def test_real_records_are_refused(product: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world = random_world(seeded(2), noise="some")
    parameters = write_parameters(tmp_path / "parameters", world)
    real = write_data(tmp_path / "real", world, synthetic=False)
    assert main([product, "accuracy", str(parameters), str(real)]) == 2
    assert "SYNTHETIC" in capsys.readouterr().err


def test_sizes_are_closed_above() -> None:
    sizes = np.array([0, 1, 2, 10, 11, 100, 101, 10**9, 2 * 10**9])
    assert size_bins(sizes).tolist() == [0, 0, 1, 1, 2, 2, 3, 9, 9]
    assert [SIZES[i] for i in size_bins(sizes)[:4]] == ["[0, 1]", "[0, 1]", "(1, 10]", "(1, 10]"]
