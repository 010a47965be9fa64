"""SafeTab-P from records to release: open and check, count slice by slice, pass the door, publish. Confidential."""

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from yupana.confidential.records.detailed import DetailedRecords
from yupana.confidential.request import (
    Request,
    charge,
    confidential_log,
    input_checksums,
    options_of,
    reasons_against_release,
)
from yupana.confidential.safetab.measure_persons import Measurer
from yupana.confidential.safetab.run import (
    IN_NO_ITERATION,
    checked_records,
    notes_on,
    policies_of,
    public_inputs,
    remarks_on,
    write_release,
)
from yupana.confidential.tabulate.groups import Areas, SliceCounts, Tabulation, count_groups, find_areas
from yupana.plan.ledger import Ledger
from yupana.plan.plan import Plan
from yupana.privacy.entropy import Entropy
from yupana.products.safetab.iterations import CharacteristicIterations
from yupana.products.safetab.persons.configuration import Config
from yupana.products.safetab.persons.targets import config_document
from yupana.products.safetab.regions import Run
from yupana.products.safetab.specification import ATTRIBUTE, finest_cells
from yupana.products.safetab.tables import published_tables
from yupana.products.tables import Groups
from yupana.progress import Announce, Stopwatch
from yupana.release.folder import new_folder
from yupana.release.recipe import Recipe

KIND: Final = "person-records"

TAKEN_AS_PUBLIC: Final = (
    "the reference file of blocks, and the list of housing units by block where one is given",
    "the codes, the iterations and which of them each code is in",
    "the areas, population groups and cells that may be published",
)
"""What the guarantee does not protect, for the manifest."""

_BARE: Final = "records_in_areas_without_housing_units"
_BARE_POLICY: Final = "an area where no housing unit stands is left out; other kinds of areas count its persons"


def run(
    config: Config,
    iterations: CharacteristicIterations,
    plan: Plan,
    request: Request,
    entropy: Entropy,
    announce: Announce,
) -> dict[str, Any]:
    """Make a release and return its manifest.

    The tables of each pass satisfy the plan's loss for that pass (`make_plan`) against neighbours that differ in one
    person record. Validation of the records lies outside the guarantee, as does the confidential log.

    Parameters
    ----------
    config : Config
    iterations : CharacteristicIterations
    plan : Plan
        Of the same configuration and iterations.
    request : Request
    entropy : Entropy
        `SystemEntropy` unless testing.
    announce : callable

    Raises
    ------
    ConfigError
        If records that are not synthetic were to be measured without noise or with a seed.
    InputError, OutputError, BudgetError
        If the records, the output folder or the ledger do not allow the run. Nothing is left in the folder.
    """
    reasons = reasons_against_release(plan, entropy, request)
    clock = Stopwatch(announce)
    folder = new_folder(request.out, overwrite=request.overwrite, private=request.internal)
    with confidential_log(request) as write_log, folder as partial:
        clock.start("reading and checking the records")
        with checked_records(request.data, KIND, config.settings, iterations, request.memory) as records:
            records.require_valid()
            files = public_inputs(request, records, iterations)
            charge(request, plan)
            clock.start("counting and adding noise")
            ledger = Ledger(plan)
            notes = Counter(notes_on(records, config.settings))
            tables = published_tables(_measured(records, config, iterations, ledger, entropy, notes), plan)
            log = {
                "notes": {**notes, _BARE: dict(records.without_housing_units)},
                "inputs": input_checksums(records.folder, records.files),
            }
            bare = {_BARE: _BARE_POLICY} if records.has_housing_units else {}
            remarks = remarks_on(records)
        clock.start("writing the release")
        manifest = write_release(
            partial,
            tables,
            request.fmt,
            config.settings,
            iterations,
            ledger,
            reasons,
            TAKEN_AS_PUBLIC,
            Recipe(config_document(config), options_of(request, plan), files),
            zero_suppression_chance=str(config.zero_suppression),
            policies=policies_of(config.settings) | bare,
            remarks=remarks,
        )
        write_log({**log, "seconds": clock.stop()})
    return manifest


def _measured(
    records: DetailedRecords,
    config: Config,
    iterations: CharacteristicIterations,
    ledger: Ledger,
    entropy: Entropy,
    notes: Counter[str],
) -> Iterator[Groups]:
    """Measure pass after pass, and note how many records are in no group."""
    for of_pass in config.settings.runs:
        found, slices = counted(records, config, iterations, of_pass)
        slices = _noted(slices, notes)
        yield from Measurer(config, iterations, found, ledger, entropy, of_pass).measure(slices)


def _noted(slices: Iterator[SliceCounts], notes: Counter[str]) -> Iterator[SliceCounts]:
    for part in slices:
        notes[IN_NO_ITERATION] += part.in_no_iteration
        yield part


def counted(
    records: DetailedRecords, config: Config, iterations: CharacteristicIterations, of_pass: Run
) -> tuple[Areas, Iterator[SliceCounts]]:
    """The areas of a pass and its exact counts, slice after slice: one pass is counted before the next is begun."""
    states = config.settings.states_of(of_pass)
    found = find_areas(records.db, states)
    measured = (level.region for level in config.settings.levels if config.budgets[level] > 0)
    bases = tuple(dict.fromkeys(region.base for region in measured if region.run == of_pass))
    tabulation = Tabulation(iterations, ATTRIBUTE, finest_cells(), bases, config.settings.max_race_codes)
    return found, count_groups(records.db, tabulation, found, states)
