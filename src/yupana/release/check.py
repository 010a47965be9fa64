"""Whether a release holds together: its files against its manifest, and nothing beside them."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from yupana.errors import OutputError
from yupana.release.folder import MANIFEST, read_manifest
from yupana.release.tables import ReleaseTable, checksum, read_table


def describe_tables(paths: dict[str, Path], tables: list[ReleaseTable]) -> dict[str, Any]:
    """What a manifest says of its tables: by file name, checksum, rows and columns."""
    return {
        paths[table.name].name: describe(table.name, paths[table.name], table.rows, table.columns) for table in tables
    }


def describe(name: str, path: Path, rows: int, columns: Iterable[str]) -> dict[str, Any]:
    """What a manifest says of one table."""
    return {"table": name, "sha256": checksum(path), "rows": rows, "columns": list(columns)}


def describe_reports(folder: Path, names: Iterable[str]) -> dict[str, Any]:
    """What a manifest says of the pages beside its tables."""
    return {name: {"sha256": checksum(folder / name)} for name in names}


def file_fault(folder: Path, name: str, described: Mapping[str, Any]) -> str | None:
    """What is wrong with a file that a manifest lists, in words; None if its bytes are the manifest's."""
    path = folder / name
    if any((folder / part).is_symlink() for part in (name, *map(str, Path(name).parents[:-1]))):
        return f"{name} is a link; a release holds files"
    if not path.is_file():
        return f"{name} is missing"
    if checksum(path) != described["sha256"]:
        return f"{name} was changed after it was written: its checksum is not the manifest's"
    return None


def checked_file(folder: Path, manifest: Mapping[str, Any], name: str, listed: str = "tables") -> Path:
    """The path of a file that the manifest of a folder lists, under "tables" or "reports", if it has the same bytes.

    Raises
    ------
    OutputError
        If it is missing, a link, or was changed.
    """
    if wrong := file_fault(folder, name, manifest[listed][name]):
        raise OutputError(f"{folder}: {wrong}")
    return folder / name


def check_checksums(release: Path, *, confidential: bool = False) -> tuple[dict[str, Any], list[str]]:
    """Compare the files of a release with its manifest; `read_manifest` tells what ``confidential`` means.

    Returns
    -------
    tuple
        The manifest, and what is wrong, in words: files missing, changed or not listed, links and empty folders.

    Raises
    ------
    OutputError
        If there is no manifest, or it is not one of a release of ours.
    """
    if not release.is_dir():
        raise OutputError(f"{release} is no folder")
    manifest = read_manifest(release, confidential=confidential)
    if "tables" not in manifest:
        raise OutputError(f"{release / MANIFEST} is not the manifest of a release of yupana: it lists no tables")
    return manifest, folder_faults(release, manifest)


def folder_faults(release: Path, manifest: Mapping[str, Any]) -> list[str]:
    """What is wrong with the files of a release, in words: missing, changed or not listed, links and empty folders."""
    listed = manifest["tables"] | manifest.get("reports", {})
    wrong = [fault for name, described in listed.items() if (fault := file_fault(release, name, described))]
    return wrong + _beside(release, {MANIFEST, *listed})


def _beside(release: Path, listed: set[str]) -> list[str]:
    """What lies in a release and is not in its manifest."""
    wrong = []
    for folder, below, files in os.walk(release):
        within = Path(folder).relative_to(release)
        if not below and not files:
            wrong.append(f"{within.as_posix()} is an empty folder")
        linked = [name for name in below if (Path(folder) / name).is_symlink()]
        strangers = [*linked, *(name for name in files if (within / name).as_posix() not in listed)]
        wrong += [f"{(within / name).as_posix()} is not in the manifest" for name in strangers]
    return sorted(ascii(text)[1:-1] if not text.isprintable() else text for text in wrong)


def check_files(
    release: Path, *, confidential: bool = False
) -> tuple[dict[str, Any], dict[str, dict[str, list[str]]], list[str]]:
    """Compare the files of a release with its manifest, and read its tables.

    `read_manifest` tells what ``confidential`` means.

    Returns
    -------
    tuple
        The manifest, the tables by name as columns of text, and what is wrong, in words.

    Raises
    ------
    OutputError
        If there is no manifest, or it is not one of a release of ours.
    """
    manifest, wrong = check_checksums(release, confidential=confidential)
    tables: dict[str, dict[str, list[str]]] = {}
    for name, described in manifest["tables"].items():
        path = release / name
        if path.is_symlink() or not path.is_file():
            continue
        try:
            columns = read_table(path)
        except OutputError as error:
            wrong.append(str(error))
            continue
        if list(columns) != described.get("columns"):
            wrong.append(f"{name} does not have the columns of the manifest")
        if {len(values) for values in columns.values()} != {described.get("rows")}:
            wrong.append(f"{name} does not have the rows of the manifest")
        tables[described.get("table", path.stem)] = columns
    return manifest, tables, wrong
