"""SafeTab-P's counter: from persons to the noisy totals and counts by sex and age of population groups."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from yupana.confidential.counter import Counter, Observed, Told, input_checksums
from yupana.confidential.records.detailed import DetailedRecords
from yupana.confidential.request import RunRequest
from yupana.confidential.safetab.accuracy_persons import errors_of
from yupana.confidential.safetab.counter import (
    COUNTING,
    IN_NO_ITERATION,
    checked_records,
    notes_on,
    observed,
    parameters_of,
    policies_of,
    public_inputs,
    remarks_on,
    write_tables,
)
from yupana.confidential.safetab.measure_persons import Measurer, PersonCounts
from yupana.confidential.tabulate.groups import Areas, SliceCounts, Tabulation, count_groups, find_areas
from yupana.plan.ledger import Ledger
from yupana.plan.plan import Plan
from yupana.products.safetab.iterations import MOST_RACE_CODES
from yupana.products.safetab.persons.configuration import Config, without_noise
from yupana.products.safetab.product import PERSONS, Parameters
from yupana.products.safetab.specification import ATTRIBUTE, finest_cells
from yupana.products.safetab.tables import published_tables
from yupana.products.tables import Groups
from yupana.progress import Stopwatch
from yupana.release.rows import RowTable

KIND: Final = "person-records"

_BARE: Final = "records_in_areas_without_housing_units"
_BARE_POLICY: Final = "an area where no housing unit stands is left out; other kinds of areas count its persons"


class PersonsCounter(Counter[Parameters[Config], DetailedRecords, PersonCounts, list[RowTable]]):
    """Counts slice by slice of the country, measured as they are counted."""

    stages = COUNTING
    is_checked = False

    def without_noise(self, config: Parameters[Config]) -> Parameters[Config]:
        """Infinite budgets for all that is measured."""
        return replace(config, config=without_noise(config.config))

    @contextmanager
    def open(
        self,
        config: Parameters[Config],
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
        with checked_records(data, KIND, config.config.settings, config.iterations, request.memory) as records:
            yield records

    def public_inputs(self, records: DetailedRecords, config: Parameters[Config]) -> dict[str, str]:
        """Codes, the reference file and the list of housing units."""
        return public_inputs(records, config.iterations)

    def count(
        self,
        records: DetailedRecords,
        config: Parameters[Config],
        plan: Plan,
        *,
        bounded: bool = True,
        keep: bool = False,
    ) -> PersonCounts:
        """Count as the slices are asked for, unless the counts are to be kept."""
        del plan
        settings = config.config.settings
        codes = settings.max_race_codes if bounded else MOST_RACE_CODES
        passes, slices = {}, {}
        for run in settings.runs:
            states = settings.states_of(run)
            passes[run] = find_areas(records.db, states)
            measured = (level.region for level in settings.levels if config.config.budgets[level] > 0)
            bases = tuple(dict.fromkeys(region.base for region in measured if region.run == run))
            tabulation = Tabulation(config.iterations, ATTRIBUTE, finest_cells(), bases, codes)
            counted = _counted(records, tabulation, passes[run], states, again=len(settings.runs) > 1 and not keep)
            slices[run] = list(counted) if keep else counted
        return PersonCounts(passes, slices)

    def measure(
        self,
        exact: PersonCounts,
        config: Parameters[Config],
        ledger: Ledger,
        request: RunRequest,
        clock: Stopwatch,
    ) -> list[RowTable]:
        """Pass after pass: stage 1 chooses the table of each group, stage 2 measures its cells."""
        del clock

        def groups() -> Iterator[Groups]:
            for run, areas in exact.passes.items():
                measurer = Measurer(config.config, config.iterations, areas, ledger, request.entropy, run)
                yield from measurer.measure(exact.of_pass(run))

        return published_tables(groups(), ledger.plan)

    def tell(
        self,
        records: DetailedRecords,
        exact: PersonCounts,
        measured: list[RowTable],
        config: Parameters[Config],
        request: RunRequest,
    ) -> Told:
        """States, passes and policies; how many records each policy touches."""
        del measured, request
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

    def write(
        self,
        folder: Path,
        records: DetailedRecords,
        measured: list[RowTable],
        config: Parameters[Config],
        plan: Plan,
        request: RunRequest,
    ) -> dict[str, dict[str, Any]]:
        """T01001 and T02001 to T02003."""
        del records, config, plan
        return write_tables(folder, measured, request.fmt)

    def observe(self, config: Parameters[Config], plan: Plan, data: Path, trials: int, request: RunRequest) -> Observed:
        """Errors by level and table, both stages drawn anew in each trial. All counts are held in memory at once."""
        with self.open(config, data, request, Stopwatch(request.announce)) as records:
            records.require_valid()
            request.announce("counting")
            exact, whole = (self.count(records, config, plan, bounded=bounded, keep=True) for bounded in (True, False))
        request.announce(f"adding noise, {trials} times")
        return observed(plan, config.iterations, errors_of(config, plan, exact, whole, trials, request.entropy))


def _counted(
    records: DetailedRecords, tabulation: Tabulation, areas: Areas, states: frozenset[int], *, again: bool
) -> Iterator[SliceCounts]:
    """Count slice after slice; ``again`` if the database may hold the areas of another pass by then."""
    if again:
        find_areas(records.db, states)
    yield from count_groups(records.db, tabulation, areas, states)
