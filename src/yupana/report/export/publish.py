"""Export a release, and compare an export with the release that it was made of."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import duckdb

from yupana.errors import ConfigError, OutputError
from yupana.files.database import open_database
from yupana.products.gate import check_release, open_checked
from yupana.products.product import Checked
from yupana.progress import Progress
from yupana.release.folder import new_folder, write_manifest
from yupana.release.manifest import MANIFEST
from yupana.release.recipe import EXPORT
from yupana.release.release import read_release
from yupana.release.status import reasons_of_plans, refuse_confidential
from yupana.release.tables import checksum
from yupana.report.export.labelled import labelled_faults, write_labelled
from yupana.report.export.sdmx import sdmx_faults, write_sdmx
from yupana.report.export.tables import Export, tables_of
from yupana.report.export.workbook import workbook_faults, write_workbook
from yupana.version import __version__

_Write = Callable[[Path, Export, duckdb.DuckDBPyConnection, Progress], None]
_Faults = Callable[[Path, Export, duckdb.DuckDBPyConnection, Progress], Iterator[str]]

_FORMS: Final[dict[str, tuple[_Write, _Faults]]] = {
    "workbook": (write_workbook, workbook_faults),
    "sdmx": (write_sdmx, sdmx_faults),
    "labelled": (write_labelled, labelled_faults),
}


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """What is asked for."""

    release: Path
    out: Path
    to: str
    tables: tuple[str, ...] = ()  # all that hold numbers, or all if they are labelled, if empty
    split: str = ""  # of workbooks: a column, each of whose values has its own
    agency: str = ""  # of SDMX: who maintains the structures
    overwrite: bool = False


def publish_export(request: ExportRequest, tell: Progress) -> dict[str, Any]:
    """Write an export, the same bytes for the same release, options and libraries, and return its manifest."""
    for name, value, form in (("split", request.split, "workbook"), ("agency", request.agency, "sdmx")):
        if value and request.to != form:
            raise ConfigError(f"{name} is for --to {form}, and the export is --to {request.to}")
    write, _ = _FORMS[request.to]
    with new_folder(request.out, overwrite=request.overwrite, noisy=False) as partial, open_database() as database:
        tell("checking the release")
        export = _export(request, database)
        write(partial, export, database, tell)
        files = sorted(path.name for path in partial.iterdir())
        release = export.release
        reasons = [*release.manifest.get("reasons", ()), *reasons_of_plans(release.manifest)]
        manifest: dict[str, Any] = {
            "yupana": __version__,
            "product": EXPORT,
            "status": release.status,
            **({"reasons": list(dict.fromkeys(reasons))} if reasons else {}),
            "created": release.manifest.get("created", ""),
            EXPORT: {
                "to": request.to,
                "release": release.folder.resolve().name,
                "release_manifest_sha256": release.sha256,
                "tables": list(request.tables),
                "split": request.split,
                "agency": request.agency,
            },
            "tables": {name: {"sha256": checksum(partial / name)} for name in files},
        }
        write_manifest(partial, manifest)
    return manifest


def _export(request: ExportRequest, database: duckdb.DuckDBPyConnection) -> Export:
    release = open_checked(request.release, confidential=True)
    refuse_confidential(release.manifest, str(request.release))
    tables = tables_of(release, database, request.tables, counts=request.to != "labelled")
    return Export(release, tuple(tables), request.split, request.agency or "YUPANA")


def check_export(folder: Path, release: Path | None, tell: Progress) -> Checked:
    """Compare an export with its release: the one given, else the folder of its name beside it."""
    found, own = check_release(folder), read_release(folder, confidential=True)
    request = _request_in(folder, release, own.manifest.get(EXPORT))
    if found.wrong:
        return found
    beside = request.release / MANIFEST
    is_there = release is not None or beside.is_file()
    if not is_there or checksum(beside) != own.manifest[EXPORT]["release_manifest_sha256"]:
        if release is None:
            return Checked(unchecked=(_NAME_IT,), against="the manifest")
        return Checked((f"it was made of another release than {release}",), against="the manifest")
    _, faults = _FORMS[request.to]
    with open_database() as database:
        tell("checking the release")
        export = _export(request, database)
        wrong = []
        if export.release.status != own.status:
            wrong.append(f"the status is not that of the release, {export.release.status!r}")
        try:
            wrong += faults(folder, export, database, tell)
        except OutputError as error:
            wrong.append(str(error))
    return Checked(tuple(wrong), against=f"every number, code and label of {request.release}")


_NAME_IT: Final = "the numbers: the release that it was made of does not lie beside it; name it with --release"


def _request_in(folder: Path, release: Path | None, told: Any) -> ExportRequest:  # noqa: ANN401 (of a manifest)
    """What an export was asked for, as its manifest tells."""
    try:
        texts = {key: told[key] for key in ("to", "release", "release_manifest_sha256", "split", "agency")}
        tables = tuple(told["tables"])
    except (KeyError, TypeError):
        texts, tables = {}, ()
    name = texts.get("release", "")
    are_texts = all(isinstance(text, str) for text in (*texts.values(), *tables))
    if not are_texts or texts.get("to") not in _FORMS or not name or Path(name).name != name:
        raise OutputError(f"{folder}: the manifest does not say what was exported")
    beside = release or folder.resolve().parent / name
    return ExportRequest(beside, folder, texts["to"], tables, texts["split"], texts["agency"])
