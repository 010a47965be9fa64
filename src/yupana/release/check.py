"""Whether a release holds together: its files against its manifest, and nothing beside them."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import duckdb

from yupana.errors import OutputError
from yupana.files.delimited import PARQUET
from yupana.release.manifest import MANIFEST
from yupana.release.tables import (
    ReleaseTable,
    checksum,
    checksum_and_lines,
    parquet_row_count,
    table_columns,
)


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
    digest, lines = checksum_and_lines(path)
    if digest != described["sha256"]:
        return f"{name} was changed after it was written: its checksum is not the manifest's"
    return _shape_fault(name, path, described, lines) if "rows" in described else None


def _shape_fault(name: str, path: Path, described: Mapping[str, Any], lines: int) -> str | None:
    """What is wrong with the rows and columns that a manifest tells of a table."""
    if path.suffix not in {".csv", PARQUET}:
        return None
    try:
        columns = table_columns(path)
        rows = parquet_row_count(path) if path.suffix == PARQUET else lines - 1
    except (OSError, ValueError, duckdb.Error):
        return f"{name} is not readable as a table of a release"
    if columns != described.get("columns"):
        return f"{name} does not have the columns of the manifest"
    return None if rows == described["rows"] else f"{name} does not have the rows of the manifest"


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
