"""The noise of SafeTab, level by level: its law is the plan's, and broken mechanisms are noticed.

All noise is seeded, so the verdict is the same every time. The bounds are those of tests that would alarm falsely with
probability 1e-6 each if it were not. Every examination is also made of
simulated releases, sound ones and broken ones.
"""

import itertools
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray
from safetab_oracle import (
    BASIS,
    T1,
    T2,
    Cell,
    Noise,
    Row,
    Tables,
    age_and_sex,
    check_h,
    check_p,
    counted,
    expected_h,
    levels_of,
    noise_for,
    stage_two,
    stat_levels,
    suppresses,
    t2_rows,
    type_and_tenure,
    universe,
)
from safetab_runs import released, simulate_h, simulate_p
from safetab_worlds import (
    FAMILIES,
    Block,
    Total,
    World,
    random_household,
    random_iterations,
    random_person,
    random_world,
    regions_of,
    seeded,
    write_data,
    write_parameters,
)
from scipy import stats

pytestmark = pytest.mark.quality

P = 1e-6
RUNS = 4
Residuals: TypeAlias = dict[tuple[object, ...], tuple[Noise, list[int]]]
"""By measurement: the law that is due and the noise that was found."""


def noisy_world(definition: str, *, thresholds: Sequence[int] = (4, 9, 25), chance: str | None = None) -> World:
    """Two states, 24 tracts in as many places, and two dozen iterations per level."""
    random = seeded(11)
    world = random_world(random, noise="some")
    world.codes = [str(code) for code in range(1000, 1014)]
    world.iterations, world.mapping = random_iterations(seeded(12), world.codes)
    world.blocks = [
        Block(state, f"{county:03}", f"{tract:06}", "1000", f"{county}{tract:04}", f"{county}{county}01")
        for state, county, tract in itertools.product(("01", "02"), (1, 3), range(1, 7))
    ]
    world.housing_units = None
    config = world.config
    config.runs, config.states, config.definition = ("us",), ("01", "02"), definition
    config.allow_negative, config.fraction, config.zero_suppression = True, "0.25", chance
    config.budgets("0.5").thresholds(thresholds, thresholds[0])
    for region_type, zcdp, pure in (("USA", "5", "15"), ("STATE", "2.134", "10"), ("TRACT", "0.159", "2")):
        for level in (1, 2):
            budget = zcdp if definition == "zcdp" else pure
            config.p[region_type, level] = budget
            for family in FAMILIES:
                config.h[family, region_type, level] = budget
    popular = world.codes[:4]
    blocks = world.blocks[::2]  # half of the tracts are empty
    world.persons = [random_person(random, random.choice(blocks), world.codes, popular) for _ in range(250)]
    world.households = [random_household(random, random.choice(blocks), world.codes, popular) for _ in range(250)]
    regions = sorted({region for block in world.blocks for region in regions_of(block).items()})
    world.totals = [
        Total(region, region_type, i.code, str(random.choice((0, thresholds[0], thresholds[1], thresholds[2]))))
        for region_type, region in regions
        for i in world.iterations
        if i.level and random.random() < 0.8
    ]
    return world


Source: TypeAlias = Callable[[World, Path], list[Tables]]


def by_program(product: str) -> Source:
    def make(world: World, folder: Path) -> list[Tables]:
        parameters, data = write_parameters(folder / "parameters", world), write_data(folder / "data", world)
        return [released(product, parameters, data, folder / f"out{seed}", "--seed", str(seed)) for seed in range(RUNS)]

    return make


def by_simulation(product: str, error: Fraction = Fraction(1), first: Fraction = Fraction(1)) -> Source:
    def make(world: World, _folder: Path) -> list[Tables]:
        if product == "safetab-p":
            return [simulate_p(world, seeded(seed), error=error, first=first) for seed in range(RUNS)]
        return [simulate_h(world, seeded(seed), error=error) for seed in range(RUNS)]

    return make


def sources(product: str, definition: str, *thorough: str) -> list[object]:
    """Releases of the program, and with the thorough tests of another definition and simulated ones."""
    return [
        pytest.param(source(product), mechanism, id=f"{kind}-{mechanism}", marks=[pytest.mark.thorough] * later)
        for kind, source, mechanism, later in (
            ("program", by_program, definition, False),
            *(("program", by_program, name, True) for name in thorough),
            ("simulation", by_simulation, "zcdp", True),
        )
    ]


# --- what is found ---------------------------------------------------------------------------------------------------


def residuals_p(world: World, releases: Iterable[Tables]) -> Residuals:
    """Noise of every measured cell: totals of level 0 and of detailed-only groups, cells of T02."""
    found: Residuals = {}
    tables = list(releases)
    levels = [stat_levels(release) for release in tables]
    for region_type, level in levels_of(world):
        budget = world.config.p[region_type, level]
        laws = [noise_for(world, region_type, level, budget, s) for s in (stage_two(world.config), Fraction(1))]
        counts = counted(world, world.persons, age_and_sex, region_type, level)
        for group, iteration in universe(world, region_type, level).items():
            ages = counts.get(group, Counter[Cell]())
            for release, by_group in zip(tables, levels, strict=True):
                stat_level = by_group.get(group, 0)
                kind = "detailed only" if iteration.detailed_only else stat_level
                sample = found.setdefault((region_type, level, kind), (laws[kind == "detailed only"], []))[1]
                if stat_level == 0 and not suppresses(world.config, region_type):
                    sample.append(release[T1][group].count - ages.total())
                elif stat_level:
                    rows = release[T2[stat_level - 1]]
                    for cell, (count, parts) in t2_rows(ages, stat_level).items():
                        if parts == 1:
                            sample.append(rows[*group, *cell].count - count)
    return found


def residuals_h(world: World, releases: Iterable[Tables]) -> Residuals:
    """Noise of every cell of a basis."""
    found: Residuals = {}
    tables = list(releases)
    for region_type, level in levels_of(world):
        counts = counted(world, world.households, type_and_tenure, region_type, level)
        for family in FAMILIES:
            noise = noise_for(world, region_type, level, world.config.h[family, region_type, level])
            for name, rows in expected_h(world, region_type, level, family, counts, noise).items():
                basis = set(BASIS[name].values())
                sample = found.setdefault((region_type, level, name), (noise, []))[1]
                sample += [
                    r[name][key].count - row.count for r in tables for key, row in rows.items() if key[3] in basis
                ]
    return found


# --- examinations ----------------------------------------------------------------------------------------------------


def assert_law(found: Residuals, *, least: int = 40) -> None:
    """Chi-square against the exact probabilities, and the mean."""
    examined = 0
    for where, (noise, sample) in found.items():
        if len(sample) < least:
            continue
        examined += 1
        law = noise.pmf()
        variance = sum(k * k * p for k, p in law.items())
        assert abs(sum(sample)) < -stats.norm.ppf(P / 2) * 1.2 * (len(sample) * variance) ** 0.5, (where, "mean")
        assert p_value(law, sample) > P, (where, "law", noise)
    assert examined > 8


def p_value(law: Mapping[int, float], sample: Sequence[int]) -> float:
    """Neighbouring values share a class until ten are expected in it."""
    seen = Counter(sample)
    assert seen.keys() <= law.keys()
    due_of, seen_of, due, number = [], [], 0.0, 0
    for k in sorted(law):
        due, number = due + law[k] * len(sample), number + seen[k]
        if due >= 10:
            due_of.append(due)
            seen_of.append(number)
            due, number = 0.0, 0
    if not due_of:
        return 1.0
    due_of[-1] += len(sample) - sum(due_of)
    seen_of[-1] += number
    return float(stats.chisquare(seen_of, due_of).pvalue) if len(due_of) > 1 else 1.0


def assert_marginals_have_their_variances(world: World, releases: Iterable[Tables], product: str) -> None:
    """Squares of the noise of sums, divided by VARIANCE, are 1 on average."""
    squares: dict[tuple[object, ...], list[float]] = defaultdict(list)
    for release in releases:
        for table, key, noise, row in marginals(world, release, product):
            squares[table, key[0], key[3:]].append(noise * noise / row.variance)
    examined = 0
    for where, values in squares.items():
        # A sum of two geometric draws has a kurtosis of about 4.5; all others have less.
        spread = (4.5 / len(values)) ** 0.5
        if len(values) > 100:
            examined += 1
            assert abs(np.mean(values) - 1) < -stats.norm.ppf(P / 2) * spread * 1.3, where
    assert examined > 5


def marginals(world: World, release: Tables, product: str) -> Iterable[tuple[str, tuple[str, ...], int, Row]]:
    """Sums over several measured cells: table, key, noise, row."""
    for region_type, level in levels_of(world):
        if product == "safetab-h":
            counts = counted(world, world.households, type_and_tenure, region_type, level)
            for family in FAMILIES:
                for name, rows in expected_h(world, region_type, level, family, counts, Noise()).items():
                    basis = set(BASIS[name].values())
                    for key, row in rows.items():
                        if key[3] not in basis:
                            yield name, key, release[name][key].count - row.count, release[name][key]
        else:
            counts = counted(world, world.persons, age_and_sex, region_type, level)
            groups = universe(world, region_type, level)
            for group, stat_level in stat_levels(release).items():
                if group in groups:
                    ages = counts.get(group, Counter[Cell]())
                    yield T1, group, release[T1][group].count - ages.total(), release[T1][group]
                    name = T2[stat_level - 1]
                    for sex in "12":
                        key = (*group, "*", "*", sex)
                        count = sum(number for (_, s), number in ages.items() if s == sex)
                        yield name, key, release[name][key].count - count, release[name][key]


def assert_stage_one(world: World, releases: Iterable[Tables]) -> None:
    """How often groups reach each level, against the probabilities of the first stage."""
    tables = [(release, stat_levels(release)) for release in releases]
    shares = 1 - stage_two(world.config)
    for region_type, level in levels_of(world):
        noise = noise_for(world, region_type, level, world.config.p[region_type, level], shares)
        thresholds = world.config.thresholds_p[region_type, level]
        counts = counted(world, world.persons, age_and_sex, region_type, level)
        due, spread, seen = np.zeros(4), np.zeros(4), np.zeros(4)
        above: dict[int, NDArray[np.float64]] = {}
        for group, iteration in universe(world, region_type, level).items():
            if iteration.detailed_only:
                continue
            total = counts.get(group, Counter[Cell]()).total()
            if total not in above:
                levels_due = Counter[int]()
                for k, p in noise.pmf().items():
                    levels_due[bisect_right(thresholds, total + k)] += p  # type: ignore[assignment]
                above[total] = np.array([float(levels_due[n]) for n in range(4)])
            for _, levels in tables:
                due += above[total]
                spread += above[total] * (1 - above[total])
                seen[levels.get(group, 0)] += 1
        z = (seen - due) / np.sqrt(spread + 1e-9)
        # The tail of a sum of coins is heavier than a normal one where few are due, so that those are left to one side.
        assert (np.abs(z[(due > 10) & (spread > 10)]) < 5.5).all(), (region_type, level, seen, due)
        assert (seen[due < 1e-6] == 0).all(), (region_type, level, seen, due)


def assert_survivors(world: World, releases: Sequence[Tables]) -> None:
    """Below the state, totals are released where they exceed the cut: how many of empty groups, and with what law."""
    chance = Fraction(world.config.zero_suppression or "0")
    examined = 0
    for region_type, level in levels_of(world):
        if not suppresses(world.config, region_type):
            continue
        noise = noise_for(world, region_type, level, world.config.p[region_type, level], stage_two(world.config))
        cut = noise.inverse_cdf(float(chance))
        survives = noise.at_least(cut + 1)
        law = {k: p / survives for k, p in noise.pmf().items() if k > cut}
        counts = counted(world, world.persons, age_and_sex, region_type, level)
        empty = [group for group in universe(world, region_type, level) if group not in counts]
        sample = [release[T1][group].count for release in releases for group in empty if group in release[T1]]
        number = len(empty) * len(releases)
        if not number:
            continue
        examined += 1
        assert stats.binomtest(len(sample), number, survives).pvalue > P, (region_type, level, len(sample), number)
        assert p_value(law, sample) > P, (region_type, level)
    assert examined >= 6


def assert_independent(world: World, releases: Iterable[Tables], residual: Callable[..., Residuals]) -> None:
    """The noise of no level repeats that of another: no long run of equal draws, no correlation."""
    samples = {
        where: np.array(sample) / float(noise.variance) ** 0.5
        for where, (noise, sample) in residual(world, releases).items()
        if len(sample) >= 100
    }
    pairs = list(itertools.combinations(samples, 2))
    assert len(pairs) > 20
    for one, other in pairs:
        n = min(len(samples[one]), len(samples[other]))
        z = float((samples[one][:n] * samples[other][:n]).sum() / n**0.5)
        assert abs(z) < -stats.norm.ppf(P / len(pairs) / 2) * 1.3, (one, other)


# --- SafeTab-P -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("source", "definition"), sources("safetab-p", "zcdp"))
def test_totals_have_the_noise_of_their_stage(tmp_path: Path, source: Source, definition: str) -> None:
    world = noisy_world(definition, thresholds=(100_000, 200_000, 300_000))
    releases = source(world, tmp_path)
    assert not any(release[name] for release in releases for name in T2)
    assert_law(residuals_p(world, releases))
    assert_independent(world, releases, residuals_p)


@pytest.mark.parametrize(("source", "definition"), sources("safetab-p", "zcdp", "puredp"))
def test_sex_and_age_and_the_choice_of_their_detail(tmp_path: Path, source: Source, definition: str) -> None:
    world = noisy_world(definition)
    releases = source(world, tmp_path)
    for release in releases:
        check_p(world, release)
    assert_law(residuals_p(world, releases))
    assert_stage_one(world, releases)
    assert_marginals_have_their_variances(world, releases, "safetab-p")


@pytest.mark.parametrize("chance", ["0.9", pytest.param("0.5", marks=pytest.mark.thorough)])
@pytest.mark.parametrize(("source", "definition"), sources("safetab-p", "puredp"))
def test_what_zero_suppression_leaves(tmp_path: Path, source: Source, chance: str, definition: str) -> None:
    world = noisy_world(definition, thresholds=(100_000, 200_000, 300_000), chance=chance)
    releases = source(world, tmp_path)
    for release in releases:
        check_p(world, release)
    assert_survivors(world, releases)


@pytest.mark.parametrize(("source", "definition"), sources("safetab-p", "puredp", "zcdp"))
def test_levels_of_empty_groups_when_zeros_are_suppressed(tmp_path: Path, source: Source, definition: str) -> None:
    # The first stage must be drawn for every group, also for those whose total would not be released.
    world = noisy_world(definition, thresholds=(3, 6, 9), chance="0.9")
    releases = source(world, tmp_path)
    assert_stage_one(world, releases)
    assert_law(residuals_p(world, releases))


# --- SafeTab-H -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("source", "definition"), sources("safetab-h", "zcdp"))
def test_household_types_and_tenures(tmp_path: Path, source: Source, definition: str) -> None:
    world = noisy_world(definition)
    releases = source(world, tmp_path)
    for release in releases:
        check_h(world, release)
    assert_law(residuals_h(world, releases))
    assert_independent(world, releases, residuals_h)
    assert_marginals_have_their_variances(world, releases, "safetab-h")


@pytest.mark.parametrize(("source", "definition"), sources("safetab-h", "puredp", "zcdp"))
def test_clamped_cells_have_the_noise_cut_at_zero(tmp_path: Path, source: Source, definition: str) -> None:
    world = noisy_world(definition)
    world.config.allow_negative = False
    releases = source(world, tmp_path)
    for release in releases:
        check_h(world, release)
    for (region_type, level, name), (noise, sample) in empty_cells(world, releases).items():
        law = {k: p for k, p in noise.pmf().items() if k > 0} | {0: 1 - noise.at_least(1)}
        assert p_value(law, sample) > P, (region_type, level, name)


def empty_cells(world: World, releases: Iterable[Tables]) -> dict[tuple[str, int, str], tuple[Noise, list[int]]]:
    found: dict[tuple[str, int, str], tuple[Noise, list[int]]] = {}
    for release in releases:
        for region_type, level in levels_of(world):
            counts = counted(world, world.households, type_and_tenure, region_type, level)
            for family in FAMILIES:
                noise = noise_for(world, region_type, level, world.config.h[family, region_type, level])
                for name, rows in expected_h(world, region_type, level, family, counts, noise).items():
                    sample = found.setdefault((region_type, level, name), (noise, []))[1]
                    basis = set(BASIS[name].values())
                    sample += [release[name][k].count for k, row in rows.items() if k[3] in basis and not row.count]
    return found


# --- the examinations notice what is broken --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "definition"),
    [(Fraction(3, 2), "zcdp"), pytest.param(Fraction(2, 3), "puredp", marks=pytest.mark.thorough)],
)
def test_another_budget_is_noticed(tmp_path: Path, error: Fraction, definition: str) -> None:
    world = noisy_world(definition)
    with pytest.raises(AssertionError):
        assert_law(residuals_p(world, by_simulation("safetab-p", error)(world, tmp_path)))
    with pytest.raises(AssertionError):
        assert_law(residuals_h(world, by_simulation("safetab-h", error)(world, tmp_path)))


@pytest.mark.parametrize("first", [pytest.param(Fraction(3), marks=pytest.mark.thorough), Fraction(1, 3)])
def test_another_share_of_the_first_stage_is_noticed(tmp_path: Path, first: Fraction) -> None:
    world = noisy_world("zcdp")
    with pytest.raises(AssertionError):
        assert_stage_one(world, by_simulation("safetab-p", first=first)(world, tmp_path))


def test_noise_used_twice_is_noticed(tmp_path: Path) -> None:
    world = noisy_world("zcdp")
    releases = by_simulation("safetab-h")(world, tmp_path)

    def twice(world: World, releases: Iterable[Tables]) -> Residuals:
        found = residuals_h(world, releases)
        return found | {("again", *where): sample for where, sample in found.items()}

    with pytest.raises(AssertionError):
        assert_independent(world, releases, twice)
