"""SafeTab-H's counter: from households and totals to the noisy household types and tenures of population groups."""

from collections import Counter as Numbers
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from yupana.confidential.choices import Choosing, LevelGroups, needs_cells
from yupana.confidential.counter import Told, Validation, input_checksums, not_published
from yupana.confidential.records.census import is_synthetic
from yupana.confidential.records.database import numbers, require_memory
from yupana.confidential.records.detailed import DetailedRecords
from yupana.confidential.records.detailed_rules import BYTES_OF_A_BLOCK
from yupana.confidential.records.findings import Finding
from yupana.confidential.request import RunRequest
from yupana.confidential.safetab.counter import (
    CheckedDetails,
    SafetabCounter,
    notes_on,
    public_inputs,
)
from yupana.confidential.safetab.tabulation import areas_of, tabulation_of
from yupana.confidential.slices import CellSums, ListedLevel, add_up
from yupana.confidential.tabulate.groups import count_groups
from yupana.confidential.tabulate.pieces import GroupAreas
from yupana.errors import InputError
from yupana.plan.ledger import Ledger
from yupana.plan.plan import Plan
from yupana.privacy.entropy import Entropy
from yupana.privacy.sealed import Sealed
from yupana.products.safetab.households import HouseholdsConfig, measurement_name
from yupana.products.safetab.iterations import MOST_RACE_CODES, CharacteristicIterations
from yupana.products.safetab.product import HOUSEHOLDS, IN_NO_ITERATION, NOT_LISTED, Parameters
from yupana.products.safetab.provenance import DECLARED, Provenance, provenance
from yupana.products.safetab.regions import Level, blocks_of
from yupana.products.safetab.specification import HOUSEHOLD_TYPE, QUESTIONS, TENURE, HouseholdQuestion
from yupana.products.safetab.totals import FILE, Totals, find_totals, read_totals
from yupana.products.tables import Groups
from yupana.progress import Stopwatch
from yupana.release.rows import RowTable

KIND: Final = "household-records"

_CATEGORY: Final = f"((HOUSEHOLD_TYPE - 1) * {TENURE.categories} + TEN - 1)::UTINYINT"
_CATEGORIES: Final = HOUSEHOLD_TYPE.categories * TENURE.categories
_EACH: Final = np.arange(_CATEGORIES, dtype=np.uint8)
_CELLS: Final[Mapping[str, CellSums]] = {
    question.key: CellSums(np.array(question.cells)[_EACH // div % mod] == np.arange(max(question.cells) + 1)[:, None])
    for question, div, mod in (
        (HOUSEHOLD_TYPE, TENURE.categories, HOUSEHOLD_TYPE.categories),
        (TENURE, 1, TENURE.categories),
    )
}
"""Which categories each finest cell of a question counts."""

_BYTES_OF_A_LISTED: Final = 60
"""What is held of each group that the totals list."""


@dataclass(frozen=True, eq=False)
class PublishedTotals:
    """T01001 as SafeTab-P published it, or somebody says so; public.

    Attributes
    ----------
    path : Path
    source : Provenance
    totals : Totals
    doubts : tuple of str
        Why it stands against a release that it may not be public, or not of the same groups.
    """

    path: Path
    source: Provenance
    totals: Totals
    doubts: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Households:
    """Households, opened, and the totals that say which groups are counted.

    Attributes
    ----------
    records : DetailedRecords
    config : Parameters
    published : PublishedTotals or None
        None where there are none yet, for validation alone.
    """

    records: DetailedRecords
    config: Parameters[HouseholdsConfig]
    published: PublishedTotals | None

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Rules that the records break."""
        return self.records.findings

    @property
    def totals(self) -> PublishedTotals:
        """The totals of whoever counts."""
        if self.published is None:
            raise RuntimeError("households cannot be counted without totals")
        return self.published

    @cached_property
    def listed(self) -> "Listed":
        """The groups that are measured; of valid records."""
        return list_groups(self.records, self.config.config, self.config.iterations, self.totals.totals)

    def list_anew(self) -> "Listed":
        """The same groups, not counted yet."""
        return list_groups(self.records, self.config.config, self.config.iterations, self.totals.totals)


@dataclass(frozen=True, eq=False, repr=False)
class HouseholdCounts(Sealed):
    """Exact counts of the groups listed, and how many records are in no iteration."""

    listed: "Listed"
    in_no_iteration: int


class HouseholdsCounter(SafetabCounter[HouseholdsConfig, Households, HouseholdCounts]):
    """Counts the groups that the totals list, each in the cells of the table that its total gives it."""

    takes = frozenset({"totals"})
    kind = KIND

    @contextmanager
    def open(
        self,
        config: Parameters[HouseholdsConfig],
        data: Path,
        request: RunRequest,
        clock: Stopwatch,
        *,
        out: Path | None = None,
        kept: Path | None = None,
        to_count: bool = True,
    ) -> Iterator[Households]:
        """Open totals, households, the reference file, and the list of housing units if there is one.

        On records that are not synthetic, totals that may not be public are refused.
        """
        del out, kept
        clock.start("reading and checking the records")
        there = to_count or request.totals is not None or (data / FILE).exists()
        published = read_published(find_totals(data, request.totals), config, data) if there else None
        settings, iterations = config.config.settings, config.iterations
        checked = CheckedDetails(KIND, settings, iterations, request.columns)
        task = partial(_count_shard, config, published if to_count else None)
        with checked.open_as_asked(data, request, task) as records:
            yield Households(records, config, published)

    def doubts(self, records: Households, config: Parameters[HouseholdsConfig]) -> list[str]:
        """Why the totals may not be public, or not of these areas."""
        del config
        return [*records.totals.doubts, *reasons_against_areas(records)]

    def inputs(self, records: Households) -> dict[str, str]:
        """Households, the reference file and the list of housing units."""
        return input_checksums(records.records.folder, records.records.files)

    def public_inputs(self, records: Households, config: Parameters[HouseholdsConfig]) -> dict[str, str]:
        """Codes, the reference file, the list of housing units and the totals."""
        return public_inputs(records.records, config.iterations, records.totals.path)

    def look(self, records: Households, config: Parameters[HouseholdsConfig], request: RunRequest) -> Validation:
        """The findings; of valid records also whether the totals are of these areas."""
        del request
        if records.published is None:
            missing = "there are no totals to be checked; name SafeTab-P's T01001 with --totals"
            return Validation(records.findings, (missing,))
        if not records.findings:
            self.doubts(records, config)
        return Validation(records.findings)

    def count(
        self,
        records: Households,
        config: Parameters[HouseholdsConfig],
        plan: Plan,
        *,
        bounded: bool = True,
        keep: bool = False,
    ) -> HouseholdCounts:
        """Count the groups listed."""
        del plan, keep
        listed = records.listed if bounded else records.list_anew()
        if records.records.counted is not None:
            return HouseholdCounts(listed, sum(_add_shard(listed, part) for part in records.records.counted))
        codes = config.config.settings.max_race_codes if bounded else MOST_RACE_CODES
        none = count_levels(records.records, config.config, config.iterations, listed.levels, codes)
        return HouseholdCounts(listed, none)

    def groups(
        self, exact: HouseholdCounts, config: Parameters[HouseholdsConfig], ledger: Ledger, entropy: Entropy
    ) -> Iterator[Groups]:
        """Level by level: first household types, then tenure."""
        return measure_levels(exact.listed.levels, config.config, config.iterations, ledger, entropy)

    def uncut(self, config: Parameters[HouseholdsConfig]) -> Parameters[HouseholdsConfig]:
        """Negative counts are not set to zero."""
        settings = replace(config.config.settings, allow_negative_counts=True)
        return replace(config, config=replace(config.config, settings=settings))

    def tell(
        self,
        records: Households,
        exact: HouseholdCounts,
        measured: list[RowTable],
        config: Parameters[HouseholdsConfig],
        plan: Plan,
        request: RunRequest,
    ) -> Told:
        """States, passes, policies and totals; how many records each policy touches."""
        del measured, plan, request
        settings, listed, source = config.config.settings, exact.listed, records.totals.source
        left_out = dict(listed.left_out)
        parameters = HOUSEHOLDS.parameters(
            config.config,
            config.iterations.sha256,
            {**source.described, "left_out": left_out, "levels_without_groups": listed.empty},
            housing_units=records.records.has_housing_units,
            own=source.taken_as_public == DECLARED,
        )
        notes = {
            **notes_on(records.records, settings),
            IN_NO_ITERATION: exact.in_no_iteration,
            NOT_LISTED: _unlisted(listed),
        }
        log = {"totals_left_out": left_out, "notes": notes}
        return Told(parameters, (*HOUSEHOLDS.taken_as_public(config), source.taken_as_public), log)


def read_published(path: Path, config: Parameters[HouseholdsConfig], data: Path) -> PublishedTotals:
    """Read totals, and say where they come from and why that stands against a release of these data.

    Raises
    ------
    InputError
        If they are no table of totals, or the records are not synthetic and the totals may not be public.
    """
    settings, iterations = config.config.settings, config.iterations
    source = provenance(path, settings, iterations)
    doubts = _reasons(path, source.doubts, data)
    return PublishedTotals(path, source, read_totals(path, settings, iterations), tuple(doubts))


def reasons_against_areas(households: Households) -> list[str]:
    """Why totals stand against a release of these data by the areas that they are of.

    Raises
    ------
    InputError
        If nothing would be measured; or if the records are not synthetic and the geography lacks some areas.
    """
    listed, totals = households.listed, households.totals.path
    if len(listed.empty) == len(listed.levels):
        raise InputError(
            f"{totals}: none of its rows is of an area that GRF-C.txt and the list of housing units have, at a level "
            "with a budget, so nothing would be measured; name the totals and the geography of one census"
        )
    # Ids of AIANNH areas do not tell their states, and totals without a manifest may be of more states than the run.
    numbers = {base: n for base, n in listed.unknown.items() if base != "aiannh" or households.totals.source.is_vouched}
    each = ", ".join(f"{base} {number:,}" for base, number in numbers.items())
    doubt = f"GRF-C.txt does not have the areas of {sum(numbers.values()):,} of its rows ({each})"
    return _reasons(totals, [doubt] if numbers else [], households.records.folder)


def _reasons(totals: Path, doubts: Sequence[str], data: Path) -> list[str]:
    """Why the output may not be released although its own noise is sound; refused on records that are not synthetic."""
    if doubts and not is_synthetic(data):
        what = "T01001 of a release of safetab-p by the same parameters and geography"
        raise not_published(totals, "totals that SafeTab-P has published", doubts, what)
    return [f"the totals ({totals.name}) may not be public, or not fit: {doubt}" for doubt in doubts]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class HouseholdLevel(Sealed):
    """The population groups of one level, as T01001 lists them, and what has been counted of them.

    Attributes
    ----------
    level : Level
    areas : sequence of str
        Codes of the areas there are.
    counts : ListedLevel
        By the key of each question.
    """

    level: Level
    areas: Sequence[str]
    counts: ListedLevel


@dataclass(frozen=True, eq=False)
class Listed:
    """The groups of T01001 in areas of the geography, and how many rows of it are left out.

    Attributes
    ----------
    levels : list of HouseholdLevel
        Pass after pass, of every level with a budget.
    left_out : mapping of reason to int
    unknown : mapping of base to int
        How many rows are of areas that the reference file does not have, by kind of area.
    """

    levels: list[HouseholdLevel]
    left_out: Mapping[str, int]
    unknown: Mapping[str, int]

    @property
    def empty(self) -> list[str]:
        """Levels that have a budget, but no group."""
        return [groups.level.name for groups in self.levels if not len(groups.counts.area)]


def list_groups(
    records: DetailedRecords, config: HouseholdsConfig, iterations: CharacteristicIterations, totals: Totals
) -> Listed:
    """Find the groups that a run measures: those of T01001 in areas that the geography has. A function of public files.

    Where housing units are listed, areas without one are left out.

    Raises
    ------
    InputError
        If there are more groups than fit into memory.
    """
    levels, left_out, unknown = [], Numbers(totals.left_out), Numbers[str]()
    for of_pass in config.settings.runs:
        levels_of_pass = [level for level in config.settings.levels if level.region.run == of_pass]
        regions = [level.region for level in levels_of_pass]
        found = areas_of(records.db, config.settings.states_of(of_pass), regions)
        for level in levels_of_pass:
            base, (region, *_) = level.region.base, totals.by_level[level]
            if not any(config.budgets[question.key, level] > 0 for question in QUESTIONS):
                left_out["of levels without a budget"] += len(region)
                continue
            here, live = (np.isin(region, ids[base]) for ids in (found.every, found.ids))
            unknown[base] += int((~here).sum())
            left_out["of areas without housing units"] += int((here & ~live).sum())
            levels.append(_listed(level, totals, config, iterations, found, live))
    (blocks,) = numbers(records.db, "SELECT count(*) FROM blocks")
    groups = sum(len(of.counts.area) for of in levels)
    needed = BYTES_OF_A_BLOCK * blocks + _BYTES_OF_A_LISTED * groups
    require_memory(records.db, needed, f"the {groups:,} groups that the totals list")
    left_out["of areas that GRF-C does not have"] += unknown.total()
    return Listed(levels, +left_out, +unknown)


def _unlisted(listed: Listed) -> int:
    """How often a household is in a group that has no table because the totals do not list it; over all levels."""
    return sum(of.counts.memberships - int(of.counts.totals[HOUSEHOLD_TYPE.key].sum()) for of in listed.levels)


def count_levels(
    records: DetailedRecords,
    config: HouseholdsConfig,
    iterations: CharacteristicIterations,
    counted: Sequence[HouseholdLevel],
    race_codes: int,
) -> int:
    """Count the groups listed, pass after pass and level by level. Every record is read once.

    Of each record so many race codes count.

    Returns
    -------
    int
        How many records are in no iteration.
    """
    none = 0
    for of_pass in config.settings.runs:
        states = config.settings.states_of(of_pass)
        levels = [of for of in counted if of.level.region.run == of_pass]
        areas = areas_of(records.db, states, [of.level.region for of in levels])
        tabulation = tabulation_of(iterations, states, of_pass, (_CATEGORY, _EACH), race_codes)
        for found in count_groups(records.db, tabulation, blocks_of(states), areas):
            none += found.in_no_group
            add_up(found, [of.counts for of in levels])
    return none


@dataclass(frozen=True, slots=True, repr=False)
class _ShardOfLevels(Sealed):
    """What a shard has of the groups listed, level by level, and how many of its records are in no iteration."""

    levels: tuple[ListedLevel, ...]
    in_no_iteration: int


def _count_shard(
    config: Parameters[HouseholdsConfig], published: PublishedTotals | None, records: DetailedRecords
) -> _ShardOfLevels | None:
    if published is None:
        return None
    listed = list_groups(records, config.config, config.iterations, published.totals)
    codes = config.config.settings.max_race_codes
    none = count_levels(records, config.config, config.iterations, listed.levels, codes)
    return _ShardOfLevels(tuple(of.counts for of in listed.levels), none)


def _add_shard(listed: Listed, part: _ShardOfLevels) -> int:
    """Add what a shard has of the groups; returned is how many of its records are in no iteration."""
    for of, more in zip(listed.levels, part.levels, strict=True):
        of.counts.add_counts(more)
    return part.in_no_iteration


def measure_levels(
    counted: Sequence[HouseholdLevel],
    config: HouseholdsConfig,
    iterations: CharacteristicIterations,
    ledger: Ledger,
    entropy: Entropy,
) -> Iterator[Groups]:
    """Measure what has been counted, level by level: first household types, then tenure."""
    measurements = {m.name: m for m in ledger.plan.measurements}
    for of, question in ((of, question) for of in counted for question in QUESTIONS):
        region = of.level.region
        eligible = iterations.eligible(of.level.iteration_level, region.granularity).iterations
        groups = LevelGroups(
            kind=region.name,
            areas=of.areas,
            groups=[iteration.code for iteration in eligible],
            family=question.family,
            measured=measurements.get(measurement_name(question, of.level)),
            choosing=_choosing(config, question, of.level),
            coarsest=None,
            always=np.zeros(len(eligible), dtype=bool),
            negative=config.settings.allow_negative_counts,
        )
        yield from of.counts.measure(question.key, groups, ledger, entropy)


def _choosing(config: HouseholdsConfig, question: HouseholdQuestion, level: Level) -> Choosing:
    return Choosing(thresholds=config.thresholds[question.key, level][: len(question.tables) - 1])


def _listed(
    level: Level,
    totals: Totals,
    config: HouseholdsConfig,
    iterations: CharacteristicIterations,
    found: GroupAreas,
    live: NDArray[np.bool_],
) -> HouseholdLevel:
    """The groups that the totals list in areas that there are, each in the cells that it needs."""
    region, iteration, count = (column[live] for column in totals.by_level[level])
    base = level.region.base
    wanted: NDArray[np.bool_] = np.logical_or.reduce(
        [needs_cells(q.family, _choosing(config, q, level).choice(count)) for q in QUESTIONS]
    )
    counts = ListedLevel(
        kind=base,
        columns=iterations.columns(level.iteration_level, level.region.granularity),
        area=np.searchsorted(found.ids[base], region),
        group=iteration,
        published=count,
        wanted=wanted,
        tables=_CELLS,
        categories=_CATEGORIES,
    )
    return HouseholdLevel(level, found.written(base), counts)
