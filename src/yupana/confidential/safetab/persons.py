"""SafeTab-P's counter: from persons to the noisy totals and counts by sex and age of population groups."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Final

from yupana.confidential.counter import Told, input_checksums
from yupana.confidential.records.database import default_memory
from yupana.confidential.records.detailed import DetailedRecords
from yupana.confidential.request import RunRequest
from yupana.confidential.safetab.counter import (
    CheckedDetails,
    SafetabCounter,
    notes_on,
    public_inputs,
)
from yupana.confidential.safetab.measure_persons import PassCounts, PersonCounts, measure_persons
from yupana.confidential.safetab.tabulation import areas_of, tabulation_of
from yupana.confidential.tabulate.gathered import GatheredShards
from yupana.confidential.tabulate.groups import count_groups, count_shard, memory_for_gathered
from yupana.confidential.tabulate.part_counts import PartCounts
from yupana.confidential.tabulate.pieces import GroupAreas
from yupana.confidential.tabulate.tabulation import GroupTabulation
from yupana.plan.ledger import Ledger
from yupana.plan.plan import Plan
from yupana.privacy.entropy import Entropy
from yupana.products.safetab.iterations import MOST_RACE_CODES
from yupana.products.safetab.persons import STAGE_1, PersonsConfig
from yupana.products.safetab.product import IN_BARE_AREAS, IN_NO_ITERATION, PERSONS, Parameters
from yupana.products.safetab.regions import Run, blocks_of
from yupana.products.safetab.specification import ATTRIBUTE, finest_cells
from yupana.products.tables import Groups
from yupana.progress import Stopwatch
from yupana.release.rows import RowTable

KIND: Final = "person-records"


class PersonsCounter(SafetabCounter[PersonsConfig, DetailedRecords, PersonCounts]):
    """Counts slice by slice of the country, measured as they are counted."""

    choosing = f"{STAGE_1}/"
    kind = KIND

    @contextmanager
    def open(
        self,
        config: Parameters[PersonsConfig],
        data: Path,
        request: RunRequest,
        clock: Stopwatch,
        *,
        out: Path | None = None,
        kept: Path | None = None,
        to_count: bool = True,
    ) -> Iterator[DetailedRecords]:
        """Open persons, the reference file, and the list of housing units if there is one."""
        del out, kept
        clock.start("reading and checking the records")
        checked = CheckedDetails(KIND, config.config.settings, config.iterations, request.columns)
        task = partial(_count_shard, config, _passes(config) if to_count else [])
        memory = memory_for_gathered(request.memory or default_memory())
        with GatheredShards(memory) as gathered, checked.open_as_asked(data, request, task, gathered) as records:
            yield replace(records, counted=tuple(gathered.each)) if records.counted else records

    def inputs(self, records: DetailedRecords) -> dict[str, str]:
        """Persons, the reference file and the list of housing units."""
        return input_checksums(records.folder, records.files)

    def public_inputs(self, records: DetailedRecords, config: Parameters[PersonsConfig]) -> dict[str, str]:
        """Codes, the reference file and the list of housing units."""
        return public_inputs(records, config.iterations)

    def count(
        self,
        records: DetailedRecords,
        config: Parameters[PersonsConfig],
        plan: Plan,
        *,
        bounded: bool = True,
        keep: bool = False,
    ) -> PersonCounts:
        """Count as areas are asked for, unless the counts are to be kept."""
        del plan
        codes = config.config.settings.max_race_codes if bounded else MOST_RACE_CODES

        def passes() -> Iterator[PassCounts]:
            for place, (run, states) in enumerate(_passes(config)):
                areas = _areas(records, config, run, states)
                tabulation = _tabulation(config, run, states, codes)
                if records.counted is None:
                    counted = count_groups(records.db, tabulation, blocks_of(states), areas, keep=keep)
                else:
                    counted = records.counted[place].areas(areas)
                yield PassCounts(run, areas, tabulation, list(counted) if keep else counted)

        return PersonCounts(list(passes()) if keep else passes())

    def groups(
        self, exact: PersonCounts, config: Parameters[PersonsConfig], ledger: Ledger, entropy: Entropy
    ) -> Iterator[Groups]:
        """Pass after pass: stage 1 chooses the table of each group, stage 2 measures its cells."""
        return measure_persons(exact, config.config, config.iterations, ledger, entropy)

    def uncut(self, config: Parameters[PersonsConfig]) -> Parameters[PersonsConfig]:
        """Small totals are not suppressed, nor negative counts set to zero."""
        settings = replace(config.config.settings, allow_negative_counts=True)
        return replace(config, config=replace(config.config, settings=settings, zero_suppression=Fraction(0)))

    def tell(
        self,
        records: DetailedRecords,
        exact: PersonCounts,
        measured: list[RowTable],
        config: Parameters[PersonsConfig],
        plan: Plan,
        request: RunRequest,
    ) -> Told:
        """States, passes and policies; how many records each policy touches."""
        del measured, plan, request
        digest, settings = config.iterations.sha256, config.config.settings
        parameters = PERSONS.parameters(config.config, digest, housing_units=records.has_housing_units)
        notes = {
            **notes_on(records, settings),
            IN_NO_ITERATION: exact.in_no_iteration.total(),
            IN_BARE_AREAS: dict(records.without_housing_units),
        }
        return Told(parameters, PERSONS.taken_as_public(config), {"notes": notes})


def _passes(config: Parameters[PersonsConfig]) -> list[tuple[Run, frozenset[int]]]:
    settings = config.config.settings
    return [(run, settings.states_of(run)) for run in settings.runs]


def _areas(records: DetailedRecords, config: Parameters[PersonsConfig], run: Run, states: frozenset[int]) -> GroupAreas:
    """The areas of a pass that have a budget."""
    measured = (level.region for level in config.config.settings.levels if config.config.budgets[level] > 0)
    return areas_of(records.db, states, [region for region in measured if region.run == run])


def _tabulation(config: Parameters[PersonsConfig], run: Run, states: frozenset[int], codes: int) -> GroupTabulation:
    return tabulation_of(config.iterations, states, run, (ATTRIBUTE, finest_cells()), codes)


def _count_shard(
    config: Parameters[PersonsConfig], passes: Sequence[tuple[Run, frozenset[int]]], records: DetailedRecords
) -> list[list[PartCounts]]:
    """A shard's parts of each pass."""
    codes = config.config.settings.max_race_codes
    return [
        count_shard(
            records.db,
            _tabulation(config, run, states, codes),
            blocks_of(states),
            _areas(records, config, run, states),
        )
        for run, states in passes
    ]
