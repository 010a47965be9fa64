"""SafeTab from its definitions, in sets and dictionaries: what each product must publish for a world.

Written from the specification of the Bureau's SafeTab-P and SafeTab-H and the paper on SafeTab-H (Sexton et al.
2024), without the program. Records are taken one by one; `counted_by_combination` counts a second way, by distinct
combinations of codes, and the two must agree.
"""

import csv
import math
import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache, partial
from itertools import accumulate, combinations
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from safetab_worlds import (
    FAMILIES,
    LEVELS,
    PASSES,
    RACES,
    Block,
    Config,
    Household,
    Iteration,
    Person,
    World,
    block_id,
    is_infinite,
    is_run,
    is_zero,
    regions_of,
)

Group: TypeAlias = tuple[str, str, str]
"""REGION_TYPE, REGION_ID, ITERATION_CODE."""
Cell: TypeAlias = tuple[str, ...]
Record: TypeAlias = Person | Household

NATIONAL = {"USA", "STATE", "PR-STATE"}
"""Where detailed-only iterations are published, coarse-only ones are not, and zeros are never suppressed."""
T1, T2 = "T01001", ("T02001", "T02002", "T02003")
T3, T4 = ("T03001", "T03002", "T03003", "T03004"), ("T04001", "T04002")
TABLES = {"safetab-p": (T1, *T2), "safetab-h": (*T3, *T4)}
_KEY = ("REGION_ID", "REGION_TYPE", "ITERATION_CODE")
COLUMNS = {
    T1: (*_KEY, "COUNT", "VARIANCE", "MOE"),
    **dict.fromkeys(T2, (*_KEY, "AGESTART", "AGEEND", "SEX", "COUNT", "VARIANCE", "MOE")),
    **dict.fromkeys(T3, (*_KEY, "T3_DATA_CELL", "COUNT", "VARIANCE", "MOE")),
    **dict.fromkeys(T4, (*_KEY, "T4_DATA_CELL", "COUNT", "VARIANCE", "MOE")),
}
EDGES = (
    (18, 45, 65),
    (5, 18, 25, 35, 45, 55, 65, 75),
    (5, 10, 15, 18, 20, 21, 22, 25, 30, 35, 40, 45, 50, 55, 60, 62, 65, 67, 70, 75, 80, 85),
)
"""Left edges of the age bins of T02001 to T02003, but the first, which is 0."""
BASIS: Mapping[str, Mapping[str, str]] = {
    "T03001": dict.fromkeys("12345", "0"),
    "T03002": {"1": "1", "2": "1", "3": "1", "4": "6", "5": "6"},
    "T03003": {"1": "2", "2": "3", "3": "3", "4": "7", "5": "8"},
    "T03004": {"1": "2", "2": "4", "3": "5", "4": "7", "5": "8"},
    "T04001": dict.fromkeys("1234", "0"),
    "T04002": {"1": "1", "2": "2", "3": "3", "4": "3"},
}
"""Cell of the basis by HOUSEHOLD_TYPE or TEN."""
SUMS: Mapping[str, Mapping[str, str]] = {
    "T03002": {"0": "16"},
    "T03003": {"0": "2378", "1": "23", "6": "78"},
    "T03004": {"0": "24578", "1": "245", "3": "45", "6": "78"},
    "T04002": {"0": "123"},
}
"""Cells of the basis that a marginal adds up."""
MOST_CELLS = {3: 5, 4: 3}
"""Cells per population group of the largest basis, by class of table of SafeTab-H."""


# --- codes, iterations, regions -------------------------------------------------------------------------------------


def eligible(world: World, region_type: str, level: int) -> list[Iteration]:
    national = region_type in NATIONAL
    return [i for i in world.iterations if i.level == level and not (i.coarse_only if national else i.detailed_only)]


def stability(world: World, region_type: str, level: int) -> int:
    """How many population groups of a level one record can belong to, from the public files."""
    here = eligible(world, region_type, level)

    def most(alone: bool | None) -> int:  # noqa: FBT001 (None, too, is a case)
        codes = {i.code for i in here if i.alone is alone}
        return max(Counter(code for iteration, code in world.mapping if iteration in codes).values(), default=0)

    published = max(most(True), most(False)) * max(2, world.config.max_race_codes) + most(None)  # noqa: FBT003
    # The published formula is no bound where codes that share a group alone are in several in combination. In the
    # files of 2020 they are in one; those are too many to search.
    return published if len(world.codes) > SEARCHED else max(published, most_by_search(world, here) + most(None))


SEARCHED = 30


def most_by_search(world: World, here: Iterable[Iteration]) -> int:
    """Most race iterations of a record, by trying every set of codes that differ in what they are in."""
    kinds = {i.code: i.alone for i in here if i.alone is not None}
    of_code: dict[str, set[str]] = defaultdict(set)
    for iteration, code in world.mapping:
        if iteration in kinds:
            of_code[code].add(iteration)
    different = frozenset(frozenset(iterations) for iterations in of_code.values())
    assert len(different) <= SEARCHED, "too many codes to try every set of them"
    alone = frozenset(code for code, is_alone in kinds.items() if is_alone)
    return _most_by_search(different, alone, world.config.max_race_codes)


@cache
def _most_by_search(different: frozenset[frozenset[str]], alone: frozenset[str], race_codes: int) -> int:
    found = 0
    for size in range(1, min(race_codes, len(different)) + 1):
        for chosen in combinations(different, size):
            shared = frozenset.intersection(*chosen) & alone
            found = max(found, len(shared) + len(frozenset().union(*chosen) - alone))
    return found


def races_of(record: Record, most: int) -> list[str]:
    columns = [getattr(record, f"QRACE{number}") for number in range(1, RACES + 1)]
    return [code for code in columns[:most] if code != "Null"]


def memberships(world: World, region_type: str, level: int) -> Callable[[Record], frozenset[str]]:
    """The iterations of a record, as a function of it."""
    alone_of: dict[str, set[str]] = defaultdict(set)
    any_of: dict[str, set[str]] = defaultdict(set)
    ethnicity_of: dict[str, set[str]] = defaultdict(set)
    kinds = {i.code: i.alone for i in eligible(world, region_type, level)}
    for iteration, code in world.mapping:
        if iteration in kinds:
            {True: alone_of, False: any_of, None: ethnicity_of}[kinds[iteration]][code].add(iteration)

    def of(record: Record) -> frozenset[str]:
        races = races_of(record, world.config.max_race_codes)
        alone = set.intersection(*(alone_of[race] for race in races))
        in_combination = set().union(*(any_of[race] for race in races))
        return frozenset(alone | in_combination | ethnicity_of[record.QSPAN])

    return of


def run_blocks(world: World) -> dict[tuple[str, str, str, str], Block]:
    return {block[:4]: block for block in world.blocks if is_run(world.config, block.TABBLKST)}


def published_regions(world: World) -> dict[str, set[str]]:
    """Regions by type: those of the reference file, or of its blocks with housing units where these are listed."""
    found: dict[str, set[str]] = defaultdict(set)
    for block in run_blocks(world).values():
        if world.housing_units is None or world.housing_units.get(block_id(block), 0) > 0:
            for region_type, region in regions_of(block).items():
                found[region_type].add(region)
    return found


def place_of(record: Record) -> tuple[str, str, str, str]:
    return record.TABBLKST, record.TABBLKCOU, record.TABTRACTCE, record.TABBLK


def counted(
    world: World, records: Sequence[Record], cell_of: Callable[[Record], Cell], region_type: str, level: int
) -> dict[Group, Counter[Cell]]:
    """Records by population group and finest cell; only groups with a record."""
    blocks = run_blocks(world)
    of = memberships(world, region_type, level)
    counts: dict[Group, Counter[Cell]] = defaultdict(Counter)
    for record in records:
        if not is_run(world.config, record.TABBLKST):
            continue
        region = regions_of(blocks[place_of(record)]).get(region_type)
        if region is not None:
            for iteration in of(record):
                counts[region_type, region, iteration][cell_of(record)] += 1
    return counts


def counted_by_combination(world: World, records: Sequence[Record], region_type: str, level: int) -> dict[Group, int]:
    """Totals the other way: combinations of codes first, as bits, then what each is worth."""
    bit = {iteration.code: 1 << n for n, iteration in enumerate(world.iterations)}
    mask: Counter[tuple[bool | None, str]] = Counter()
    kind = {i.code: i.alone for i in world.iterations}
    for iteration, code in world.mapping:
        mask[kind[iteration], code] |= bit[iteration]
    level_mask = sum(bit[i.code] for i in world.iterations if i.level == level)
    flagged = "coarse_only" if region_type in NATIONAL else "detailed_only"
    level_mask &= ~sum(bit[i.code] for i in world.iterations if getattr(i, flagged))
    blocks = {block[:4]: block for block in world.blocks}
    combinations = Counter(
        (place_of(r), tuple(sorted(set(races_of(r, world.config.max_race_codes)))), r.QSPAN)
        for r in records
        if is_run(world.config, r.TABBLKST)
    )
    totals: Counter[Group] = Counter()
    for (place, races, span), number in combinations.items():
        region = regions_of(blocks[place]).get(region_type)
        alone, combined = mask[True, races[0]], 0
        for race in races:
            alone &= mask[True, race]
            combined |= mask[False, race]
        held = (alone | combined | mask[None, span]) & level_mask
        if region is not None:
            totals.update({(region_type, region, code): number for code, one in bit.items() if held & one})
    return dict(totals)


# --- noise ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Noise:
    """Discrete Gaussian of parameter sigma2, two-sided geometric of a scale, or none."""

    sigma2: Fraction | None = None
    scale: Fraction | None = None

    @property
    def variance(self) -> float:
        """As published: sigma2 under zCDP, the variance of the law under pure DP."""
        if self.sigma2 is not None:
            return float(self.sigma2)
        if self.scale is None:
            return 0.0
        ratio = math.exp(-1 / self.scale)
        return 2 * ratio / (1 - ratio) ** 2

    @property
    def reach(self) -> int:
        """What one draw exceeds with probability below 1e-17."""
        if self.sigma2 is not None:
            return math.ceil(9 * math.sqrt(self.sigma2)) + 1
        return 0 if self.scale is None else math.ceil(40 * self.scale) + 1

    def pmf(self) -> dict[int, float]:
        """Probabilities within the reach."""
        return _pmf(self)

    def at_least(self, k: int) -> float:
        """P(X >= k)."""
        return math.fsum(p for x, p in self.pmf().items() if x >= k)

    def inverse_cdf(self, chance: float) -> int:
        """Smallest k with P(X <= k) >= chance."""
        return _inverse_cdf(self, chance)


@lru_cache(maxsize=200)
def _pmf(noise: Noise) -> dict[int, float]:
    if noise.sigma2 is not None:
        reach = math.ceil(12 * math.sqrt(noise.sigma2)) + 2
        weights = {k: math.exp(-k * k / (2 * noise.sigma2)) for k in range(-reach, reach + 1)}
    elif noise.scale is not None:
        reach = math.ceil(45 * noise.scale) + 2
        weights = {k: math.exp(-abs(k) / noise.scale) for k in range(-reach, reach + 1)}
    else:
        weights = {0: 1.0}
    total = math.fsum(weights.values())
    return {k: weight / total for k, weight in weights.items()}


@lru_cache(maxsize=200)
def _inverse_cdf(noise: Noise, chance: float) -> int:
    law = sorted(_pmf(noise).items())
    return law[bisect_left(list(accumulate(p for _, p in law)), chance)][0]


def noise_for(world: World, region_type: str, level: int, budget: str, share: Fraction = Fraction(1)) -> Noise:
    if is_infinite(budget):
        return Noise()
    ratio = stability(world, region_type, level) / (Fraction(budget) * share)
    return Noise(sigma2=ratio / 2) if world.config.definition == "zcdp" else Noise(scale=ratio)


@lru_cache(maxsize=1000)
def margin(noise: Noise, cells: int) -> int:
    """The smallest m with P(|sum of so many draws| <= m) >= 95 percent, by convolving probabilities."""
    law = noise.pmf()
    reach = math.ceil(40 * math.sqrt(cells * noise.variance)) + len(law)
    circle = np.zeros(2 * reach + 1)
    for k, p in law.items():
        circle[k] += p
    summed = np.fft.irfft(np.fft.rfft(circle) ** cells, len(circle))
    coverage = summed[0] + 2 * np.concatenate([[0.0], np.cumsum(summed[1 : reach + 1])])
    return int(np.searchsorted(coverage, 0.95))


def stage_two(config: Config) -> Fraction:
    return 1 - Fraction(config.fraction)


# --- what is published ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    count: int
    variance: float
    moe: float


Tables: TypeAlias = dict[str, dict[tuple[str, ...], Row]]
"""By table, then by REGION_TYPE, REGION_ID, ITERATION_CODE and what names the cell."""


def read_tables(out: Path, product: str) -> Tables:
    tables: Tables = {}
    assert {path.name for path in out.glob("*.csv")} == {f"{name}.csv" for name in TABLES[product]}
    for name in TABLES[product]:
        columns = COLUMNS[name]
        with (out / f"{name}.csv").open(encoding="utf-8", newline="") as file:
            reader = csv.reader(file, delimiter="|")
            assert tuple(next(reader)) == columns, name
            rows: dict[tuple[str, ...], Row] = {}
            for line in reader:
                values = dict(zip(columns, line, strict=True))
                key = (values["REGION_TYPE"], values["REGION_ID"], *line[2:-3])
                assert key not in rows, (name, key)
                assert re.fullmatch(r"0|-?[1-9]\d*", values["COUNT"]), "COUNT is an integer"
                rows[key] = Row(int(values["COUNT"]), float(values["VARIANCE"]), float(values["MOE"]))
            tables[name] = rows
    return tables


def assert_same_rows(found: Mapping[Any, Row], expected: Mapping[Any, Row], where: str) -> None:
    """Cell by cell, with a few of the differences told."""
    missing, extra = expected.keys() - found.keys(), found.keys() - expected.keys()
    assert not missing, f"{where}: {len(missing)} rows are missing, such as {sorted(missing)[:5]}"
    assert not extra, f"{where}: {len(extra)} rows too many, such as {sorted(extra)[:5]}"
    wrong = {key: (found[key], row) for key, row in expected.items() if not agree(found[key], row)}
    assert not wrong, f"{where}: {len(wrong)} rows differ (found, expected), such as {list(wrong.items())[:5]}"


def agree(found: Row, expected: Row) -> bool:
    close = partial(math.isclose, rel_tol=1e-9, abs_tol=0.0)
    return found.count == expected.count and close(found.variance, expected.variance) and close(found.moe, expected.moe)


def assert_error_columns(rows: Mapping[Any, Row], sums: Mapping[Any, tuple[Noise, int]], where: str) -> None:
    """Rows are sums of numbers of cells of a noise."""
    due = {
        key: Row(rows[key].count, n * noise.variance, margin(noise, n))
        for key, (noise, n) in sums.items()
        if key in rows
    }
    assert_same_rows(rows, due, where)


def of_level(tables: Tables, iterations: set[str], region_type: str) -> dict[str, dict[tuple[str, ...], Row]]:
    return {
        name: {key: row for key, row in rows.items() if key[0] == region_type and key[2] in iterations}
        for name, rows in tables.items()
    }


def levels_of(world: World) -> Iterator[tuple[str, int]]:
    for region_type in world.config.types():
        for level in LEVELS:
            yield region_type, level


def assert_nothing_else(world: World, tables: Tables) -> None:
    """Every row belongs to a region type of the run and to an iteration published there."""
    allowed = {
        (region_type, iteration.code)
        for region_type, level in levels_of(world)
        for iteration in eligible(world, region_type, level)
    }
    for name, rows in tables.items():
        strays = {(key[0], key[2]) for key in rows} - allowed
        assert not strays, f"{name}: {sorted(strays)[:5]}"


# --- SafeTab-P -----------------------------------------------------------------------------------------------------


def age_and_sex(record: Record) -> Cell:
    assert isinstance(record, Person)
    return str(int(record.QAGE)), record.QSEX


def bins(stat_level: int) -> list[tuple[int, int]]:
    """First and last ages of the bins at a level of detail of 1 to 3."""
    starts = [0, *EDGES[stat_level - 1]]
    return list(zip(starts, [start - 1 for start in starts[1:]] + [115], strict=True))


def t2_rows(ages: Mapping[Cell, int], stat_level: int) -> dict[Cell, tuple[int, int]]:
    """Count and number of measured cells by AGESTART, AGEEND and SEX."""
    rows: dict[Cell, tuple[int, int]] = {}
    for sex in "12":
        for first, last in bins(stat_level):
            count = sum(n for (age, s), n in ages.items() if s == sex and first <= int(age) <= last)
            rows[str(first), str(last), sex] = (count, 1)
        rows["*", "*", sex] = (sum(n for (_, s), n in ages.items() if s == sex), len(bins(stat_level)))
    return rows


def universe(world: World, region_type: str, level: int) -> dict[Group, Iteration]:
    regions = sorted(published_regions(world)[region_type])
    return {
        (region_type, region, iteration.code): iteration
        for region in regions
        for iteration in eligible(world, region_type, level)
    }


def suppresses(config: Config, region_type: str) -> bool:
    return region_type not in NATIONAL and config.zero_suppression is not None and not is_zero(config.zero_suppression)


def check_p(world: World, tables: Tables, *, exact: bool = False) -> None:
    """Compare what SafeTab-P published with what it must publish; with ``exact``, every budget counts as infinite."""
    assert_nothing_else(world, tables)
    for region_type, level in levels_of(world):
        here = of_level(tables, {i.code for i in world.iterations if i.level == level}, region_type)
        budget = world.config.p[region_type, level]
        if is_zero(budget):
            assert not any(here.values()), (region_type, level, "has no budget")
        elif exact or is_infinite(budget):
            for name, expected in expected_p(world, region_type, level).items():
                assert_same_rows(here[name], expected, f"{name}, {region_type} {level}")
        else:
            check_noisy_p(world, here, region_type, level)


def expected_p(world: World, region_type: str, level: int) -> Tables:
    """Every row of one level without noise."""
    config = world.config
    counts = counted(world, world.persons, age_and_sex, region_type, level)
    tables: Tables = {name: {} for name in TABLES["safetab-p"]}
    for group, iteration in universe(world, region_type, level).items():
        ages = counts.get(group, Counter())
        total = ages.total()
        stat_level = 0 if iteration.detailed_only else bisect_right(config.thresholds_p[region_type, level], total)
        if stat_level == 0 and suppresses(config, region_type) and total == 0:
            continue
        tables[T1][group] = Row(total, 0.0, 0.0)
        if stat_level:
            for cell, (count, _) in t2_rows(ages, stat_level).items():
                tables[T2[stat_level - 1]][*group, *cell] = Row(count, 0.0, 0.0)
    return tables


def check_noisy_p(world: World, here: Tables, region_type: str, level: int) -> None:
    config = world.config
    budget = config.p[region_type, level]
    stages = [noise_for(world, region_type, level, budget, s) for s in (1 - stage_two(config), stage_two(config))]
    whole = noise_for(world, region_type, level, budget)
    groups = universe(world, region_type, level)
    counts = counted(world, world.persons, age_and_sex, region_type, level)
    thresholds = config.thresholds_p[region_type, level]
    levels = stat_levels(here)
    rows_of = by_group(here)
    strange = (here[T1].keys() | levels.keys()) - groups.keys()
    assert not strange, f"groups of no universe: {sorted(strange)[:5]}"
    sums: dict[str, dict[tuple[str, ...], tuple[Noise, int]]] = {name: {} for name in here}
    for group, iteration in groups.items():
        stat_level = levels.get(group, 0)
        ages = counts.get(group, Counter())
        noise = whole if iteration.detailed_only else stages[1]
        if group not in here[T1]:
            assert not stat_level, group
            assert suppresses(config, region_type), f"{group} is missing"
            cut = noise.inverse_cdf(float(Fraction(config.zero_suppression or "0")))
            assert ages.total() - noise.reach <= cut, f"{group} is far above the cut and missing"
            continue
        row = here[T1][group]
        if stat_level:
            assert not iteration.detailed_only, group
            cells = rows_of[group]
            due = t2_rows(ages, stat_level)
            assert cells.keys() == due.keys(), group
            assert_marginals(cells, row, group)
            for cell, (count, measured) in due.items():
                sums[T2[stat_level - 1]][*group, *cell] = noise, measured
                if measured == 1:
                    assert_near(cells[cell].count, count, noise, config, (group, cell))
            sums[T1][group] = noise, 2 * len(bins(stat_level))
        else:
            sums[T1][group] = noise, 1
            assert_near(row.count, ages.total(), noise, config, group)
            if suppresses(config, region_type):
                cut = noise.inverse_cdf(float(Fraction(config.zero_suppression or "0")))
                assert row.count > cut or (row.count == 0 and not config.allow_negative), f"{group} is below the cut"
        if not iteration.detailed_only:
            first = stages[0].reach
            assert bisect_right(thresholds, ages.total() - first) <= stat_level, (group, "too little detail")
            assert bisect_right(thresholds, ages.total() + first) >= stat_level, (group, "too much detail")
    for name, due_sums in sums.items():
        assert_error_columns(here[name], due_sums, f"{name}, {region_type} {level}")


def by_group(tables: Tables) -> dict[Group, dict[Cell, Row]]:
    """The rows of T02 by group, then by AGESTART, AGEEND and SEX."""
    found: dict[Group, dict[Cell, Row]] = defaultdict(dict)
    for name in T2:
        for key, row in tables[name].items():
            found[key[0], key[1], key[2]][key[3:]] = row
    return found


def assert_marginals(cells: Mapping[Cell, Row], total: Row, group: Group) -> None:
    for sex in "12":
        parts = [r.count for cell, r in cells.items() if cell[2] == sex and cell[0] != "*"]
        assert cells["*", "*", sex].count == sum(parts), group
    assert total.count == sum(cells["*", "*", sex].count for sex in "12"), group


def stat_levels(tables: Tables) -> dict[Group, int]:
    """Which T02 table a group is in; one at most."""
    levels: dict[Group, int] = {}
    for stat_level, name in enumerate(T2, start=1):
        for group in {(key[0], key[1], key[2]) for key in tables[name]}:
            assert group not in levels, f"{group} is in two tables"
            levels[group] = stat_level
    return levels


def assert_near(found: int, truth: int, noise: Noise, config: Config, where: object) -> None:
    if not config.allow_negative:
        assert found >= 0, (where, "is negative")
        assert found - truth <= noise.reach, (where, "is far off")
        assert found == 0 or truth - found <= noise.reach, (where, "is far off")
    else:
        assert abs(found - truth) <= noise.reach, (where, "is far off")


# --- SafeTab-H -----------------------------------------------------------------------------------------------------


def type_and_tenure(record: Record) -> Cell:
    assert isinstance(record, Household)
    return record.HOUSEHOLD_TYPE, record.TEN


def check_h(world: World, tables: Tables, *, exact: bool = False) -> None:
    """Compare what SafeTab-H published with what it must publish; with ``exact``, every budget counts as infinite."""
    assert_nothing_else(world, tables)
    for region_type, level in levels_of(world):
        here = of_level(tables, {i.code for i in world.iterations if i.level == level}, region_type)
        counts = counted(world, world.households, type_and_tenure, region_type, level)
        for family in FAMILIES:
            budget = world.config.h[family, region_type, level]
            noise = Noise() if exact or is_zero(budget) else noise_for(world, region_type, level, budget)
            due = expected_h(world, region_type, level, family, counts, noise)
            if is_zero(budget):
                due = {name: {} for name in due}
            for name, rows in due.items():
                where = f"{name}, {region_type} {level}"
                if noise == Noise():
                    assert_same_rows(here[name], rows, where)
                else:
                    check_noisy_h(name, here[name], rows, noise, world.config, where)


def expected_h(
    world: World, region_type: str, level: int, family: int, counts: Mapping[Group, Counter[Cell]], noise: Noise
) -> Tables:
    """Every row of one class of tables at one level: true counts, with the variances of the noise."""
    names = {3: T3, 4: T4}[family]
    tables: Tables = {name: {} for name in names}
    regions = published_regions(world)[region_type]
    iterations = {i.code for i in eligible(world, region_type, level)}
    thresholds = world.config.thresholds_h[family, region_type, level]
    for total in world.totals:
        if region_type != total.REGION_TYPE or total.REGION_ID not in regions or total.ITERATION_CODE not in iterations:
            continue
        name = names[bisect_right(thresholds, int(total.COUNT))]
        group = (region_type, total.REGION_ID, total.ITERATION_CODE)
        basis = dict.fromkeys(BASIS[name].values(), 0)
        for cell, number in counts.get(group, Counter[Cell]()).items():
            basis[BASIS[name][cell[family - 3]]] += number
        for label, number in basis.items():
            tables[name][*group, label] = Row(number, noise.variance, margin(noise, 1))
        for label, parts in SUMS.get(name, {}).items():
            variance = len(parts) * noise.variance
            tables[name][*group, label] = Row(sum(basis[part] for part in parts), variance, margin(noise, len(parts)))
    return tables


def check_noisy_h(
    name: str,
    found: Mapping[tuple[str, ...], Row],
    due: Mapping[tuple[str, ...], Row],
    noise: Noise,
    config: Config,
    where: str,
) -> None:
    assert_same_rows({key: Row(0, row.variance, row.moe) for key, row in found.items()},
                     {key: Row(0, row.variance, row.moe) for key, row in due.items()}, where)  # fmt: skip
    for key, row in found.items():
        if parts := SUMS.get(name, {}).get(key[3]):
            assert row.count == sum(found[*key[:3], part].count for part in parts), (where, key)
        else:
            assert_near(row.count, due[key].count, noise, config, (where, key))


# --- plans ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, order=True)
class Planned:
    """What a measurement of `plan --json` must say."""

    level: str
    family: str
    cells: int
    sensitivity: Fraction
    budget: Fraction
    sigma2: float
    moe: float


def planned(world: World, product: str) -> dict[str, list[Planned]]:
    """Measurements by pass."""
    return {run: [m for t in PASSES[run] for level in LEVELS for m in planned_level(world, product, t, level)]
            for run in world.config.runs}  # fmt: skip


def planned_level(world: World, product: str, region_type: str, level: int) -> list[Planned]:
    config = world.config
    here = eligible(world, region_type, level)
    parts: list[tuple[str, int, str, Fraction]] = []
    if product == "safetab-h":
        parts = [(f"T0{f}", MOST_CELLS[f], config.h[f, region_type, level], Fraction(1)) for f in FAMILIES if here]
    else:
        budget = config.p[region_type, level]
        if any(not i.detailed_only for i in here):
            parts += [("", 1, budget, 1 - stage_two(config)), ("", 46, budget, stage_two(config))]
        if any(i.detailed_only for i in here):
            parts += [("", 1, budget, Fraction(1))]
    found = []
    for family, cells, budget, share in parts:
        if not is_zero(budget):
            noise = noise_for(world, region_type, level, budget, share)
            sensitivity = Fraction(stability(world, region_type, level))
            spent = Fraction(budget) * share
            moe = margin(noise, 1)
            found.append(Planned(f"{region_type} {level}", family, cells, sensitivity, spent, noise.variance, moe))
    return found


def pass_totals(world: World, product: str) -> dict[str, Fraction]:
    """Loss by pass: of SafeTab-P's level, its one budget; of SafeTab-H's, both tables'."""
    config = world.config
    totals = {}
    for run in config.runs:
        keys = [(t, level) for t in PASSES[run] for level in LEVELS if eligible(world, t, level)]
        if product == "safetab-p":
            totals[run] = sum((Fraction(config.p[key]) for key in keys), Fraction(0))
        else:
            totals[run] = sum((Fraction(config.h[f, *key]) for key in keys for f in FAMILIES), Fraction(0))
    return totals


def check_plan(world: World, product: str, answer: Mapping[str, Any]) -> None:
    zcdp = world.config.definition == "zcdp"
    budget, sensitivity = ("rho", "l2_sensitivity_squared") if zcdp else ("epsilon", "l1_sensitivity")
    unit = {"safetab-p": "person", "safetab-h": "household"}[product]
    assert answer["product"].lower().replace("_", "-") == product
    assert unit in answer["privacy_unit"]
    assert answer["neighbours"] == "unbounded"
    assert answer["confidence"] == 0.95
    due = [m for measurements in planned(world, product).values() for m in measurements]
    found = []
    for m in answer["measurements"]:
        family = m["table"][:3] if product == "safetab-h" else ""
        found.append(
            Planned(m["level"], family, m["cells"], Fraction(m[sensitivity]), Fraction(m[budget]),
                    float(m["sigma2_float"]), float(m["moe"]))
        )  # fmt: skip
        if zcdp:
            assert Fraction(m["sigma2"]) == Fraction(m[sensitivity]) / (2 * Fraction(m[budget]))
    exact = [(m.level, m.family, m.sensitivity, m.budget) for m in sorted(found)]
    assert sorted(exact) == sorted((m.level, m.family, m.sensitivity, m.budget) for m in due)
    assert len({m["name"] for m in answer["measurements"]}) == len(found)
    key = lambda m: (m.level, m.family, m.budget, m.cells)  # noqa: E731
    for mine, theirs in zip(sorted(due, key=key), sorted(found, key=key), strict=True):
        assert math.isclose(mine.sigma2, theirs.sigma2, rel_tol=1e-9), (mine, theirs)
        assert math.isclose(mine.moe, theirs.moe, rel_tol=1e-9), (mine, theirs)
        assert mine.cells == theirs.cells, (mine, theirs)
    passes = answer["totals"]["passes"]
    assert passes.keys() == set(world.config.runs)
    for run, total in pass_totals(world, product).items():
        assert Fraction(passes[run][budget]) == total, run
        assert math.isclose(passes[run][f"{budget}_float"], total, rel_tol=1e-12)
        assert Fraction(passes[run][f"bounded_{budget}"]) == 2 * total, run
