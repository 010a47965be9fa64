"""How both SafeTab products open their records and write their release. Confidential."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hollerith.plan.ledger import Ledger
from hollerith.populations.iterations import CharacteristicIterations
from hollerith.products.run import manifest_of
from hollerith.products.safetab.settings import Settings
from hollerith.records.detailed import DetailedRecords, Kind, open_detailed
from hollerith.release.check import describe
from hollerith.release.folder import write_manifest
from hollerith.release.rows import RowTable, write_rows
from hollerith.release.tables import Format


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


def write_release(
    folder: Path,
    tables: Sequence[RowTable],
    fmt: Format,
    settings: Settings,
    iterations: CharacteristicIterations,
    ledger: Ledger,
    reasons: list[str],
    taken_as_public: tuple[str, ...],
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
    manifest = manifest_of(ledger, reasons, of_run, taken_as_public)
    manifest["tables"] = {
        paths[table.name].name: describe(table.name, paths[table.name], table.rows, table.columns) for table in tables
    }
    write_manifest(folder, manifest)
    return manifest
