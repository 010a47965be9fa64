"""How both SafeTab products open their records and write their release. Confidential."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from yupana.confidential.records.database import numbers
from yupana.confidential.records.detailed import DetailedRecords, Kind, open_detailed
from yupana.confidential.request import Request, manifest_of
from yupana.files.columns import HOUSING_UNITS, REFERENCE
from yupana.plan.ledger import Ledger
from yupana.products.safetab.configuration import Settings
from yupana.products.safetab.iterations import MOST_RACE_CODES, CharacteristicIterations
from yupana.release.check import describe
from yupana.release.folder import write_manifest
from yupana.release.recipe import Recipe, check_public_inputs
from yupana.release.rows import RowTable, write_rows
from yupana.release.tables import Format, checksum


@contextmanager
def checked_records(
    data: Path, kind: Kind, settings: Settings, iterations: CharacteristicIterations, memory: int | None
) -> Iterator[DetailedRecords]:
    """Open and check the records of the states of all passes, in ``memory`` bytes."""
    codes, ethnic = frozenset(iterations.codes), iterations.ethnicity_codes
    with open_detailed(
        data, kind, states=settings.states, codes=codes, ethnicity_codes=ethnic, memory=memory
    ) as records:
        yield records


def notes_on(records: DetailedRecords, settings: Settings) -> dict[str, int]:
    """How many records are not counted in full, by the policy that leaves something out. Confidential."""
    more = settings.max_race_codes + 1
    query = f"SELECT count_if(QRACE{more} <> 0) FROM records" if more <= MOST_RACE_CODES else "SELECT 0"
    return {**records.notes, "records_with_more_race_codes": numbers(records.db, query)[0]}


def policies_of(settings: Settings) -> dict[str, str]:
    """What a run does not count, for the manifest, by the names of the counts in the confidential log. Public."""
    return {
        "records_of_other_states": "left out: their state is in no pass",
        "records_with_more_race_codes": f"the first {settings.max_race_codes} race codes of a record count",
        "qspan_is_race_code": "in no ethnicity group: their ethnicity code is in no ethnicity iteration",
        IN_NO_ITERATION: "in no group: none of their codes that count is in an iteration of level 1 or 2",
    }


IN_NO_ITERATION: Final = "records_in_no_iteration"


def remarks_on(records: DetailedRecords) -> list[str]:
    """What should be known of a release, for its manifest and for whoever makes it. Public."""
    text = "no list of housing units was given, so areas where none stands are not left out"
    return [] if records.has_housing_units else [text]


def public_inputs(
    request: Request, records: DetailedRecords, iterations: CharacteristicIterations, *others: Path
) -> dict[str, str]:
    """SHA-256 of the public files of a run by name: codes, the reference file, housing units, and others.

    Where housing units are counted in the records of units, these are no public file and have no checksum.

    Raises
    ------
    InputError
        If the run repeats a release that was made of other files.
    """
    public = [
        path
        for name, file in (("GRF-C", REFERENCE), ("housing-units", HOUSING_UNITS))
        for path in (records.files[name].paths if name in records.files else ())
        if path.relative_to(records.folder).parts[0] in file.file_names
    ]
    found = {
        **iterations.files,
        **{path.relative_to(records.folder).as_posix(): checksum(path) for path in public},
        **{path.name: checksum(path) for path in others},
    }
    check_public_inputs(request.repeats, found)
    return found


def write_release(
    folder: Path,
    tables: Sequence[RowTable],
    fmt: Format,
    settings: Settings,
    iterations: CharacteristicIterations,
    ledger: Ledger,
    reasons: list[str],
    taken_as_public: tuple[str, ...],
    recipe: Recipe,
    **parameters: object,
) -> dict[str, Any]:
    """Write the tables and the manifest of a release, and return the manifest.

    What else is public of the run may be named for the manifest's parameters.
    """
    paths = {table.name: write_rows(folder, table, fmt) for table in tables}
    of_run = {
        "states": list(settings.us_states),
        "passes": list(settings.runs),
        "max_race_codes": settings.max_race_codes,
        "allow_negative_counts": settings.allow_negative_counts,
        "iterations_sha256": iterations.sha256,
        **parameters,
    }
    manifest = manifest_of(ledger, reasons, of_run, taken_as_public, recipe)
    manifest["tables"] = {
        paths[table.name].name: describe(table.name, paths[table.name], table.rows, table.columns) for table in tables
    }
    write_manifest(folder, manifest)
    return manifest
