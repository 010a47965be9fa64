"""Whether a release holds together: its files against its manifest."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hollerith.errors import OutputError
from hollerith.release.folder import MANIFEST, read_manifest
from hollerith.release.tables import ReleaseTable, checksum, read_table


def describe_tables(paths: dict[str, Path], tables: list[ReleaseTable]) -> dict[str, Any]:
    """What a manifest says of its tables: by file name, checksum, rows and columns."""
    return {
        paths[table.name].name: describe(table.name, paths[table.name], table.rows, table.columns) for table in tables
    }


def describe(name: str, path: Path, rows: int, columns: Iterable[str]) -> dict[str, Any]:
    """What a manifest says of one table."""
    return {"table": name, "sha256": checksum(path), "rows": rows, "columns": list(columns)}


def check_checksums(release: Path, *, confidential: bool = False) -> tuple[dict[str, Any], list[str]]:
    """Compare the bytes of a release with its manifest; `read_manifest` tells what ``confidential`` means.

    Returns
    -------
    tuple
        The manifest, and what is wrong, in words: files missing, changed, or not listed.

    Raises
    ------
    OutputError
        If there is no manifest, or it is not one of ours.
    """
    if not release.is_dir():
        raise OutputError(f"{release} is no folder")
    manifest = read_manifest(release, confidential=confidential)
    listed = manifest.get("tables")
    if "hollerith" not in manifest or not isinstance(listed, dict):
        raise OutputError(f"{release / MANIFEST} is not the manifest of a release of hollerith")
    wrong: list[str] = []
    for name, described in listed.items():
        path = release / name
        if ".." in Path(name).parts or not path.resolve().is_relative_to(release.resolve()) or not path.is_file():
            wrong.append(f"{name} is missing")
        elif not isinstance(described, dict) or checksum(path) != described.get("sha256"):
            wrong.append(f"{name} was changed after it was written: its checksum is not the manifest's")
    there = {path.relative_to(release).as_posix() for path in release.rglob("*") if not path.is_dir()}
    strangers = there - set(listed) - {MANIFEST} - set(manifest.get("reports", ()))
    return manifest, wrong + [f"{name} is not in the manifest" for name in sorted(strangers)]


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
        If there is no manifest, or it is not one of ours.
    """
    manifest, wrong = check_checksums(release, confidential=confidential)
    tables: dict[str, dict[str, list[str]]] = {}
    for name, described in manifest["tables"].items():
        path = release / Path(name).name
        if not path.is_file():
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
