"""SafeTab through the command line, in this process; and a simulated SafeTab, to try the checks themselves on."""

import json
from bisect import bisect_right
from collections import Counter
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from random import Random

import pytest
from places import SHARED
from safetab_oracle import (
    BASIS,
    SUMS,
    T1,
    T2,
    TABLES,
    Cell,
    Noise,
    Row,
    Tables,
    age_and_sex,
    bins,
    counted,
    expected_h,
    levels_of,
    margin,
    noise_for,
    read_tables,
    stage_two,
    suppresses,
    t2_rows,
    type_and_tenure,
    universe,
)
from safetab_worlds import FAMILIES, FORMS, Config, Form, World, is_zero, write_data, write_parameters

from yupana.cli.main import main

PUBLIC = SHARED / "data" / "race_ethnicity_iterations_2020"
"""The Bureau's codes and toy inputs, where a copy is at hand."""
needs_public_files = pytest.mark.skipif(not PUBLIC.is_dir(), reason="the Bureau's files are not at hand")
PRODUCTION = {"safetab-p": PUBLIC / "ddhca_safetab_p_NMFv7", "safetab-h": PUBLIC / "ddhcb_safetab_h_NMFv5"}


def publish(
    product: str,
    world: World,
    folder: Path,
    *options: str,
    verb: str = "run",
    form: Form = FORMS["plain"],
    document: object = None,
) -> Tables:
    """Write a world, run a product on it and read what it published."""
    parameters = write_parameters(folder / "parameters", world, form, document)
    data = write_data(folder / "data", world, form)
    return released(product, parameters, data, folder / "out", *options, verb=verb)


def released(product: str, parameters: Path, data: Path, out: Path, *options: str, verb: str = "run") -> Tables:
    assert main([product, verb, str(parameters), str(data), str(out), *options]) == 0
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    if verb == "exact" or "--seed" in options:
        assert manifest["status"] == "NOT FOR RELEASE"
    return read_tables(out, product)


# --- a simulation --------------------------------------------------------------------------------------------------


def drawn(random: Random, noise: Noise) -> int:
    values, cumulated = _ladder(noise)
    return random.choices(values, cum_weights=cumulated)[0]


@lru_cache(maxsize=200)
def _ladder(noise: Noise) -> tuple[list[int], list[float]]:
    return list(noise.pmf()), list(accumulate(noise.pmf().values()))


def cut(config: Config, noise: Noise) -> int:
    """What a total must exceed to escape zero suppression."""
    return noise.inverse_cdf(float(Fraction(config.zero_suppression or "0")))


def row(count: int, noise: Noise, cells: int) -> Row:
    return Row(count, cells * noise.variance, margin(noise, cells))


def simulate_p(world: World, random: Random, *, error: Fraction = Fraction(1), first: Fraction = Fraction(1)) -> Tables:
    """Publish a world as SafeTab-P would; budgets off by a factor, in all stages or in the first, make it unsound."""
    config = world.config
    tables: Tables = {name: {} for name in TABLES["safetab-p"]}
    for region_type, level in levels_of(world):
        budget = config.p[region_type, level]
        if is_zero(budget):
            continue
        told = [noise_for(world, region_type, level, budget, s) for s in (stage_two(config), Fraction(1))]
        real = [noise_for(world, region_type, level, budget, s * error) for s in (stage_two(config), Fraction(1))]
        stage_one = noise_for(world, region_type, level, budget, (1 - stage_two(config)) * error * first)
        counts = counted(world, world.persons, age_and_sex, region_type, level)
        for group, iteration in universe(world, region_type, level).items():
            ages = counts.get(group, Counter[Cell]())
            noise, said = real[bool(iteration.detailed_only)], told[bool(iteration.detailed_only)]
            noisy = ages.total() + drawn(random, stage_one)
            thresholds = config.thresholds_p[region_type, level]
            stat_level = 0 if iteration.detailed_only else bisect_right(thresholds, noisy)
            total, measured = ages.total() + drawn(random, noise), 1
            if stat_level:
                cells = {}
                for cell, (count, parts) in t2_rows(ages, stat_level).items():
                    value = count + drawn(random, noise)
                    cells[cell] = value if config.allow_negative else max(0, value)
                    if parts > 1:
                        cells[cell] = sum(n for c, n in cells.items() if c[2] == cell[2] and c[0] != "*")
                    tables[T2[stat_level - 1]][*group, *cell] = row(cells[cell], said, parts)
                total, measured = sum(cells["*", "*", sex] for sex in "12"), 2 * len(bins(stat_level))
            elif suppresses(config, region_type) and total <= cut(config, noise):
                continue
            total = total if config.allow_negative else max(0, total)
            tables[T1][group] = row(total, said, measured)
    return tables


def simulate_h(world: World, random: Random, *, error: Fraction = Fraction(1)) -> Tables:
    """Publish a world as SafeTab-H would; budgets off by a factor make it unsound."""
    tables: Tables = {name: {} for name in TABLES["safetab-h"]}
    for region_type, level in levels_of(world):
        counts = counted(world, world.households, type_and_tenure, region_type, level)
        for family in FAMILIES:
            budget = world.config.h[family, region_type, level]
            if is_zero(budget):
                continue
            told = noise_for(world, region_type, level, budget)
            real = noise_for(world, region_type, level, budget, error)
            for name, rows in expected_h(world, region_type, level, family, counts, told).items():
                basis = set(BASIS[name].values())
                for key, row in rows.items():
                    if key[3] in basis:
                        value = row.count + drawn(random, real)
                        value = value if world.config.allow_negative else max(0, value)
                        tables[name][key] = Row(value, row.variance, row.moe)
                for key, row in rows.items():
                    if parts := SUMS.get(name, {}).get(key[3]):
                        value = sum(tables[name][*key[:3], part].count for part in parts)
                        tables[name][key] = Row(value, row.variance, row.moe)
    return tables
