"""SafeTab-P's counter: from persons to the noisy totals and counts by sex and age of population groups."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Final

from yupana.confidential.counter import Told, input_checksums
from yupana.confidential.records.detailed import DetailedRecords
from yupana.confidential.request import RunRequest
from yupana.confidential.safetab.counter import (
    IN_NO_ITERATION,
    SafetabCounter,
    checked_records,
    notes_on,
    parameters_of,
    policies_of,
    public_inputs,
    remarks_on,
)
from yupana.confidential.safetab.measure_persons import PassCounts, PersonCounts, measure_persons
from yupana.confidential.safetab.tabulation import areas_of, tabulation_of
from yupana.confidential.tabulate.groups import count_groups
from yupana.plan.ledger import Ledger
from yupana.plan.plan import Plan
from yupana.privacy.entropy import Entropy
from yupana.products.safetab.iterations import MOST_RACE_CODES
from yupana.products.safetab.persons import STAGE_1, PersonsConfig
from yupana.products.safetab.product import PERSONS, Parameters
from yupana.products.safetab.regions import blocks_of
from yupana.products.safetab.specification import ATTRIBUTE, finest_cells
from yupana.products.tables import Groups
from yupana.progress import Stopwatch
from yupana.release.rows import RowTable

KIND: Final = "person-records"

_BARE: Final = "records_in_areas_without_housing_units"
_BARE_POLICY: Final = "an area where no housing unit stands is left out; other kinds of areas count its persons"


class PersonsCounter(SafetabCounter[PersonsConfig, DetailedRecords, PersonCounts]):
    """Counts slice by slice of the country, measured as they are counted."""

    choosing = f"{STAGE_1}/"

    @contextmanager
    def open(
        self,
        config: Parameters[PersonsConfig],
        data: Path,
        request: RunRequest,
        clock: Stopwatch,
        *,
        out: Path | None = None,
        to_count: bool = True,
    ) -> Iterator[DetailedRecords]:
        """Open persons, the reference file, and the list of housing units if there is one."""
        del out, to_count
        clock.start("reading and checking the records")
        with checked_records(
            data, KIND, config.config.settings, config.iterations, request.memory, request.columns
        ) as records:
            yield records

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
        """Count as the slices are asked for, unless the counts are to be kept."""
        del plan
        settings = config.config.settings
        codes = settings.max_race_codes if bounded else MOST_RACE_CODES

        def passes() -> Iterator[PassCounts]:
            for run in settings.runs:
                states = settings.states_of(run)
                measured = (level.region for level in settings.levels if config.config.budgets[level] > 0)
                areas = areas_of(records.db, states, [region for region in measured if region.run == run])
                tabulation = tabulation_of(config.iterations, states, run, (ATTRIBUTE, finest_cells()), codes)
                slices = count_groups(records.db, tabulation, blocks_of(states), areas)
                yield PassCounts(run, areas, tabulation, list(slices) if keep else slices)

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
        settings = config.config.settings
        bare = {_BARE: _BARE_POLICY} if records.has_housing_units else {}
        parameters = {
            **parameters_of(settings, config.iterations),
            "zero_suppression_chance": str(config.config.zero_suppression),
            "policies": policies_of(settings) | bare,
            "remarks": remarks_on(records),
        }
        notes = {
            **notes_on(records, settings),
            IN_NO_ITERATION: exact.in_no_iteration.total(),
            _BARE: dict(records.without_housing_units),
        }
        log = {"notes": notes, "inputs": input_checksums(records.folder, records.files)}
        return Told(parameters, PERSONS.taken_as_public(config), log)
