"""What the counters of both SafeTab products do alike: open records, tell of them, write row tables."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from yupana.confidential.counter import Observed
from yupana.confidential.records.database import numbers
from yupana.confidential.records.detailed import DetailedRecords, Kind, open_detailed
from yupana.files.columns import HOUSING_UNITS, REFERENCE
from yupana.plan.plan import Plan
from yupana.products.safetab.configuration import Settings
from yupana.products.safetab.errors import Accuracy, IterationAccuracy, LevelErrors, summarize, summarize_iterations
from yupana.products.safetab.iterations import MOST_RACE_CODES, CharacteristicIterations
from yupana.release.check import describe
from yupana.release.rows import RowTable, write_rows
from yupana.release.tables import Format, ReleaseTable, Value, checksum

IN_NO_ITERATION: Final = "records_in_no_iteration"

COUNTING: Final = ("counting and adding noise", "", "")


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


def parameters_of(settings: Settings, iterations: CharacteristicIterations) -> dict[str, Any]:
    """What a manifest says of the configuration of either product. Public."""
    return {
        "states": list(settings.us_states),
        "passes": list(settings.runs),
        "max_race_codes": settings.max_race_codes,
        "allow_negative_counts": settings.allow_negative_counts,
        "iterations_sha256": iterations.sha256,
    }


def policies_of(settings: Settings) -> dict[str, str]:
    """What a run does not count, for the manifest, by the names of the counts in the confidential log. Public."""
    return {
        "records_of_other_states": "left out: their state is in no pass",
        "records_with_more_race_codes": f"the first {settings.max_race_codes} race codes of a record count",
        "qspan_is_race_code": "in no ethnicity group: their ethnicity code is in no ethnicity iteration",
        IN_NO_ITERATION: "in no group: none of their codes that count is in an iteration of level 1 or 2",
    }


def remarks_on(records: DetailedRecords) -> list[str]:
    """What should be known of a release, for its manifest and for whoever makes it. Public."""
    text = "no list of housing units was given, so areas where none stands are not left out"
    return [] if records.has_housing_units else [text]


def public_inputs(records: DetailedRecords, iterations: CharacteristicIterations, *others: Path) -> dict[str, str]:
    """SHA-256 of the public files of a run by name: codes, the reference file, housing units, and others.

    Where housing units are counted in the records of units, these are no public file and have no checksum.
    """
    public = [
        path
        for name, file in (("GRF-C", REFERENCE), ("housing-units", HOUSING_UNITS))
        for path in (records.files[name].paths if name in records.files else ())
        if path.relative_to(records.folder).parts[0] in file.file_names
    ]
    return {
        **iterations.files,
        **{path.relative_to(records.folder).as_posix(): checksum(path) for path in public},
        **{path.name: checksum(path) for path in others},
    }


def write_tables(folder: Path, tables: Iterable[RowTable], fmt: Format) -> dict[str, dict[str, Any]]:
    """Write tables, and return what a manifest says of them."""
    described = {}
    for table in tables:
        path = write_rows(folder, table, fmt)
        described[path.name] = describe(table.name, path, table.rows, table.columns)
    return described


def observed(plan: Plan, iterations: CharacteristicIterations, errors: list[LevelErrors]) -> Observed:
    """What accuracy tells of errors by level: rows by table and size, and by iteration."""
    confidence = float(plan.confidence)
    rows = summarize(errors, confidence)
    tables = accuracy_tables(rows, summarize_iterations(errors, iterations, confidence))
    return Observed(plan.product, errors, rows, tables)


def accuracy_tables(rows: list[Accuracy], by_iteration: list[IterationAccuracy]) -> list[ReleaseTable]:
    """The rows as accuracy.csv and accuracy_by_iteration.csv."""
    table = ReleaseTable(
        "accuracy",
        {
            "TABLE": [row.table for row in rows],
            "REGION_TYPE": [row.region_type for row in rows],
            "ITERATION_LEVEL": [row.iteration_level for row in rows],
            "DETAILED_ONLY": [str(row.detailed_only) for row in rows],
            "GROUP_SIZE": [row.size for row in rows],
            "GROUPS": [row.groups for row in rows],
            "SHARE": [row.share for row in rows],
            "COUNT": [row.count for row in rows],
            "EXPECTED_MOE": [_known(row.expected_moe) for row in rows],
            "EXPERIMENTAL_MOE": [_known(row.experimental_moe) for row in rows],
            "EXPERIMENTAL_MOE_UNCAPPED": [_known(row.experimental_moe_uncapped) for row in rows],
            "RACE_CAP_BIAS": [_known(row.race_cap_bias) for row in rows],
            "COVERAGE": [_known(row.coverage) for row in rows],
        },
    )
    iterations = ReleaseTable(
        "accuracy_by_iteration",
        {
            "TABLE": [row.table for row in by_iteration],
            "REGION_TYPE": [row.region_type for row in by_iteration],
            "ITERATION_LEVEL": [row.iteration_level for row in by_iteration],
            "ITERATION_CODE": [row.iteration for row in by_iteration],
            "COUNT": [row.count for row in by_iteration],
            "MEAN_SIZE": [row.mean_size for row in by_iteration],
            "EXPECTED_MOE": [row.expected_moe for row in by_iteration],
            "EXPERIMENTAL_MOE": [row.experimental_moe for row in by_iteration],
            "EXPERIMENTAL_MOE_UNCAPPED": [row.experimental_moe_uncapped for row in by_iteration],
            "RACE_CAP_BIAS": [row.race_cap_bias for row in by_iteration],
        },
    )
    return [table, iterations]


def _known(value: float | None) -> Value:
    return "" if value is None else value
