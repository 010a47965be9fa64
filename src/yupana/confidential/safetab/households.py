"""SafeTab-H from records and totals to release: check, count, pass the door, lay out, publish. Confidential."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Ints
from yupana.confidential.records.census import is_synthetic
from yupana.confidential.records.detailed import DetailedRecords
from yupana.confidential.request import (
    Request,
    charge,
    confidential_log,
    input_checksums,
    options_of,
    reasons_against_release,
)
from yupana.confidential.safetab.run import (
    IN_NO_ITERATION,
    checked_records,
    notes_on,
    policies_of,
    public_inputs,
    remarks_on,
    write_release,
)
from yupana.confidential.tabulate.groups import Areas, SliceCounts, Tabulation, count_groups, find_areas, space_of
from yupana.errors import InputError
from yupana.plan.ledger import Ledger
from yupana.plan.plan import Plan
from yupana.privacy.entropy import Entropy
from yupana.products.safetab.households.configuration import Config
from yupana.products.safetab.households.plan import measurement_name
from yupana.products.safetab.households.targets import config_document
from yupana.products.safetab.iterations import CharacteristicIterations
from yupana.products.safetab.provenance import DECLARED, Provenance, provenance
from yupana.products.safetab.regions import Level
from yupana.products.safetab.specification import HOUSEHOLD_TYPE, QUESTIONS, TENURE, Question
from yupana.products.safetab.tables import published_tables
from yupana.products.safetab.totals import FILE, Totals, read_totals
from yupana.products.tables import Groups
from yupana.progress import Announce, Stopwatch
from yupana.release.folder import MANIFEST, new_folder
from yupana.release.recipe import Recipe
from yupana.release.rows import Coded

KIND: Final = "household-records"

TAKEN_AS_PUBLIC: Final = (
    "the reference file of blocks, and the list of housing units by block where one is given",
    "the codes, the iterations and which of them each code is in",
)
"""What the guarantee does not protect, for the manifest; beside the totals, of which `provenance` tells."""

_CATEGORY: Final = f"((HOUSEHOLD_TYPE - 1) * {TENURE.categories} + TEN - 1)::UTINYINT"
_CATEGORIES: Final = HOUSEHOLD_TYPE.categories * TENURE.categories


def run(
    config: Config,
    iterations: CharacteristicIterations,
    plan: Plan,
    totals: Path,
    request: Request,
    entropy: Entropy,
    announce: Announce,
) -> dict[str, Any]:
    """Make a release and return its manifest.

    The tables of each pass satisfy the plan's loss for that pass (`make_plan`) against neighbours that differ in one
    household record, given the totals. Validation of the records lies outside the guarantee, as does the confidential
    log.

    Parameters
    ----------
    config : Config
    iterations : CharacteristicIterations
    plan : Plan
        Of the same configuration and iterations.
    totals : Path
        T01001.
    request : Request
    entropy : Entropy
        `SystemEntropy` unless testing.
    announce : callable

    Raises
    ------
    ConfigError
        If records that are not synthetic were to be measured without noise or with a seed.
    InputError, OutputError, BudgetError
        If the totals, the records, the output folder or the ledger do not allow the run. Nothing is left in the
        folder. On records that are not synthetic, totals that may not be public are refused.
    """
    reasons = reasons_against_release(plan, entropy, request)
    clock = Stopwatch(announce)
    folder = new_folder(request.out, overwrite=request.overwrite, private=request.internal)
    with confidential_log(request) as write_log, folder as partial:
        clock.start("reading and checking the records")
        source, chosen, doubts = totals_of(totals, config, iterations, request.data)
        with checked_records(request.data, KIND, config.settings, iterations, request.memory) as records:
            records.require_valid()
            listed = list_groups(records, config, chosen)
            reasons += doubts + reasons_against_areas(totals, listed, source, request.data)
            files = public_inputs(request, records, iterations, totals)
            charge(request, plan)
            clock.start("counting and adding noise")
            ledger = Ledger(plan)
            none = count_levels(records, config, iterations, listed.levels)
            tables = published_tables(measure_levels(listed.levels, config, iterations, ledger, entropy), plan)
            log = {
                "totals_left_out": dict(listed.left_out),
                "notes": {**notes_on(records, config.settings), IN_NO_ITERATION: none, _NOT_LISTED: _unlisted(listed)},
                "inputs": input_checksums(records.folder, records.files),
            }
            remarks = [*remarks_on(records), *_remarks(listed, source)]
        clock.start("writing the release")
        recipe = Recipe(config_document(config), options_of(request, plan), files)
        manifest = write_release(
            partial,
            tables,
            request.fmt,
            config.settings,
            iterations,
            ledger,
            reasons,
            (*TAKEN_AS_PUBLIC, source.taken_as_public),
            recipe,
            totals={**source.described, "left_out": dict(listed.left_out), "levels_without_groups": listed.empty},
            policies=policies_of(config.settings) | {_NOT_LISTED: "groups that the totals do not list have no table"},
            remarks=remarks,
        )
        write_log({**log, "seconds": clock.stop()})
    return manifest


def totals_of(
    path: Path, config: Config, iterations: CharacteristicIterations, data: Path
) -> tuple[Provenance, Totals, list[str]]:
    """Read totals, and say where they come from and why that stands against a release of these data.

    Raises
    ------
    InputError
        If they are no table of totals, or the records are not synthetic and the totals may not be public.
    """
    source = provenance(path, config.settings, iterations)
    reasons = _reasons(path, source.doubts, data)
    return source, read_totals(path, config.settings, iterations), reasons


def reasons_against_areas(totals: Path, listed: "Listed", source: Provenance, data: Path) -> list[str]:
    """Why totals stand against a release of these data by the areas that they are of.

    Raises
    ------
    InputError
        If nothing would be measured; or if the records are not synthetic and the geography lacks some areas.
    """
    if len(listed.empty) == len(listed.levels):
        raise InputError(
            f"{totals}: none of its rows is of an area that GRF-C.txt and the list of housing units have, at a level "
            "with a budget, so nothing would be measured; name the totals and the geography of one census"
        )
    # Ids of AIANNH areas do not tell their states, and totals without a manifest may be of more states than the run.
    numbers = {base: n for base, n in listed.unknown.items() if base != "aiannh" or source.is_vouched}
    each = ", ".join(f"{base} {number:,}" for base, number in numbers.items())
    doubt = f"GRF-C.txt does not have the areas of {sum(numbers.values()):,} of its rows ({each})"
    return _reasons(totals, [doubt] if numbers else [], data)


def _reasons(totals: Path, doubts: Sequence[str], data: Path) -> list[str]:
    """Why the output may not be released although its own noise is sound; refused on records that are not synthetic."""
    if doubts and not is_synthetic(data):
        raise InputError(
            "\n".join(
                [
                    f"{totals} cannot be taken for totals that SafeTab-P has published:",
                    *(f"  {doubt}" for doubt in doubts),
                    "name T01001 of a release of safetab-p by the same parameters and geography, with its "
                    f"{MANIFEST} beside it",
                ]
            )
        )
    return [f"the totals ({totals.name}) may not be public, or not fit: {doubt}" for doubt in doubts]


@dataclass(eq=False)
class LevelGroups:
    """The population groups of one level, as T01001 lists them, and what has been counted of them.

    Attributes
    ----------
    level : Level
    listed : numpy.ndarray of int64
        All areas named by the totals, ascending.
    area, iteration : numpy.ndarray of int64, shape (groups,)
        Places in `listed` and in the iterations of the level.
    known : numpy.ndarray of int64, shape (groups,)
        Places of the areas in those of the reference file.
    statistics : mapping of a question's key to numpy.ndarray of int8
        Which choice of the question's family each group gets.
    memberships : int
        How often the households of the level's areas count in a group of the level, listed or not.
    """

    level: Level
    listed: Ints
    area: Ints
    iteration: Ints
    known: Ints
    statistics: dict[str, NDArray[np.int8]]
    totals: Ints
    detailed: Ints
    cells: Ints
    memberships: int = 0

    def add(self, part: SliceCounts, counts: Ints, columns: slice) -> None:
        """Add what a slice holds: ``counts`` are its totals of all iterations, ``columns`` those of the level."""
        base, granularity = self.level.region.base, self.level.region.granularity
        low, high = part.range_of(base)
        self.memberships += int(counts[:, columns].sum())
        here = np.flatnonzero((self.known >= low) & (self.known < high))
        if not len(here):
            return
        row, column = self.known[here] - low, columns.start + self.iteration[here]
        self.totals[here] += counts[row, column]
        wanted = self.detailed[here] >= 0
        selected = np.zeros(counts.shape, dtype=bool)
        selected[row[wanted], column[wanted]] = True
        numbers = row[wanted] * counts.shape[1] + column[wanted]
        # Groups ascend by area and iteration, as selected cells do.
        assert bool((np.diff(numbers) > 0).all())  # noqa: S101 (the counts would be given to other groups)
        self.cells[self.detailed[here[wanted]]] += part.details(base, granularity, selected)


@dataclass(frozen=True, eq=False)
class Listed:
    """The groups of T01001 in areas of the geography, and how many rows of it are left out.

    Attributes
    ----------
    levels : list of LevelGroups
        Pass after pass, of every level with a budget.
    left_out : mapping of reason to int
    unknown : mapping of base to int
        How many rows are of areas that the reference file does not have, by kind of area.
    """

    levels: list[LevelGroups]
    left_out: Mapping[str, int]
    unknown: Mapping[str, int]

    @property
    def empty(self) -> list[str]:
        """Levels that have a budget, but no group."""
        return [groups.level.name for groups in self.levels if not len(groups.area)]


def list_groups(records: DetailedRecords, config: Config, totals: Totals) -> Listed:
    """Find the groups that a run measures: those of T01001 in areas that the geography has. A function of public files.

    Where housing units are listed, areas without one are left out.
    """
    levels, left_out, unknown = [], Counter(totals.left_out), Counter[str]()
    for of_pass in config.settings.runs:
        found = find_areas(records.db, config.settings.states_of(of_pass))
        for level in config.settings.levels:
            base, (region, *_) = level.region.base, totals.by_level[level]
            if level.region.run != of_pass:
                continue
            if not any(config.budgets[question.key, level] > 0 for question in QUESTIONS):
                left_out["of levels without a budget"] += len(region)
                continue
            here, live = (np.isin(region, ids[base]) for ids in (found.every, found.ids))
            unknown[base] += int((~here).sum())
            left_out["of areas without housing units"] += int((here & ~live).sum())
            levels.append(_groups_of(level, totals, config, found, live))
    left_out["of areas that GRF-C does not have"] += unknown.total()
    return Listed(levels, +left_out, +unknown)


_NOT_LISTED: Final = "households_in_groups_not_listed"


def _unlisted(listed: Listed) -> int:
    """How often a household is in a group that has no table because the totals do not list it; over all levels."""
    return sum(groups.memberships - int(groups.totals.sum()) for groups in listed.levels)


def _remarks(listed: Listed, source: Provenance) -> list[str]:
    """What should be known of the totals."""
    remarks = [f"{number:,} rows of the totals are left out: {reason}" for reason, number in listed.left_out.items()]
    if listed.empty:
        remarks.append(f"the totals list no group of {', '.join(listed.empty)}; their budgets buy nothing")
    if source.taken_as_public == DECLARED:
        remarks.append(f"nothing but your word says that the totals are published: {FILE} has no manifest")
    return remarks


def count_levels(
    records: DetailedRecords, config: Config, iterations: CharacteristicIterations, counted: Sequence[LevelGroups]
) -> int:
    """Count the groups listed, pass after pass and level by level. Every record is read once.

    Returns
    -------
    int
        How many records are in no iteration.
    """
    none = 0
    for of_pass in config.settings.runs:
        states = config.settings.states_of(of_pass)
        found = find_areas(records.db, states)
        levels = [groups for groups in counted if groups.level.region.run == of_pass]
        bases = tuple(dict.fromkeys(groups.level.region.base for groups in levels))
        each = np.arange(_CATEGORIES, dtype=np.uint8)
        tabulation = Tabulation(iterations, _CATEGORY, each, bases, config.settings.max_race_codes)
        spaces = {groups.level: space_of(iterations, groups.level.region.granularity) for groups in levels}
        for part in count_groups(records.db, tabulation, found, states):
            none += part.in_no_iteration
            for _, of_base in groupby(levels, key=lambda groups: groups.level.region):
                both = list(of_base)
                counts = part.totals(both[0].level.region.base, both[0].level.region.granularity)
                for groups in both:
                    groups.add(part, counts, spaces[groups.level].columns(groups.level.iteration_level))
    return none


def measure_levels(
    counted: Sequence[LevelGroups],
    config: Config,
    iterations: CharacteristicIterations,
    ledger: Ledger,
    entropy: Entropy,
) -> Iterator[Groups]:
    """Measure what has been counted, level by level: first household types, then tenure."""
    for groups in counted:
        eligible = iterations.eligible(groups.level.iteration_level, groups.level.region.granularity).iterations
        codes = [iteration.code for iteration in eligible]
        for question in QUESTIONS:
            yield from _measure(groups, codes, question, config, ledger, entropy)


def _groups_of(level: Level, totals: Totals, config: Config, found: Areas, live: NDArray[np.bool_]) -> LevelGroups:
    region, iteration, count = (column[live] for column in totals.by_level[level])
    known = np.searchsorted(found.ids[level.region.base], region)
    listed, area = np.unique(region, return_inverse=True)
    statistics: dict[str, NDArray[np.int8]] = {
        question.key: np.minimum(
            np.searchsorted(config.thresholds[question.key, level], count, side="right"), len(question.tables) - 1
        ).astype(np.int8)
        for question in QUESTIONS
    }
    large = np.logical_or.reduce([numbers > 0 for numbers in statistics.values()])
    detailed = np.where(large, np.cumsum(large) - 1, -1)
    cells = np.zeros((int(large.sum()), _CATEGORIES), dtype=np.int64)
    return LevelGroups(level, listed, area, iteration, known, statistics, np.zeros_like(count), detailed, cells)


def _measure(
    groups: LevelGroups, codes: Sequence[str], question: Question, config: Config, ledger: Ledger, entropy: Entropy
) -> Iterator[Groups]:
    """Measure the groups of one level in the cells of the table each of them gets."""
    names = {m.name for m in ledger.plan.measurements}
    name = measurement_name(question, groups.level)
    if name not in names or not len(groups.area):
        return
    measurement = ledger.plan[name]
    choices = question.family.choices
    statistics = groups.statistics[question.key]
    width = np.array([choice.measured for choice in choices])[statistics]
    starts = np.cumsum(width) - width
    counts = np.zeros(int(width.sum()), dtype=np.int64)
    by_category = groups.cells.reshape(-1, HOUSEHOLD_TYPE.categories, TENURE.categories)
    by_category = by_category.sum(axis=2 if question is HOUSEHOLD_TYPE else 1)
    of_choice = [np.flatnonzero(statistics == number) for number in range(len(choices))]
    for choice, some in zip(choices, of_choice, strict=True):
        if choice.measured == 1:
            counts[starts[some]] = groups.totals[some]
            continue
        exact = by_category[groups.detailed[some]]
        for category, finest in enumerate(question.cells):
            counts[starts[some] + choice.finest[finest]] += exact[:, category]
    meter = ledger.open(measurement, len(groups.area))
    noisy = meter.measure(0, width, counts, entropy)
    if not config.settings.allow_negative_counts:
        noisy = np.maximum(noisy, 0)
    listed = groups.level.region.written(groups.listed)
    for number, some in enumerate(of_choice):
        yield Groups(
            question.family,
            number,
            groups.level.region.name,
            Coded(listed, groups.area[some]),
            Coded(codes, groups.iteration[some]),
            noisy[starts[some, None] + np.arange(choices[number].measured)],
            measurement,
        )
