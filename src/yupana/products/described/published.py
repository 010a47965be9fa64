"""Totals that another release has published, which decide the detail of described tables. Public: it sees no record."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from yupana.arrays import Flags, Ints
from yupana.errors import InputError, OutputError
from yupana.files.database import open_database, quoted, unreadable
from yupana.files.delimited import column_types
from yupana.products.check import check_release
from yupana.products.described.description import DescribedLevel, DescribedTable, Description
from yupana.release.folder import MANIFEST, read_manifest
from yupana.release.processing import SUPPRESSED
from yupana.release.status import MEASURED, status_of
from yupana.release.tables import checksum, table_rows

VOUCHED: Final = "the totals of population groups, which another release has published under its own privacy loss"
"""What a release takes as public whose totals have a release without a fault."""

DOUBTFUL: Final = "the totals of population groups, although they are not known to be public: see the reasons"
"""The same of totals that only synthetic records may be tabulated by."""


@dataclass(frozen=True, slots=True, eq=False)
class PublishedSizes:
    """Published totals of the groups of a level.

    Attributes
    ----------
    total : int64 array, shape (areas by groups of the level,)
    listed : bool array, of the same shape
        Which groups have a total; the others are not measured.
    """

    total: Ints
    listed: Flags


@dataclass(frozen=True, slots=True, eq=False)
class PublishedSource:
    """A table of totals: where it comes from, and what it says.

    Attributes
    ----------
    path : Path
    told : mapping
        For the manifest: the file and its checksum, and what its release says of itself.
    doubts : tuple of str
        Why the totals may not be public.
    by_level : mapping of ``table/level`` to PublishedSizes
    """

    path: Path
    told: Mapping[str, Any]
    doubts: tuple[str, ...]
    by_level: Mapping[str, PublishedSizes]

    @property
    def taken_as_public(self) -> str:
        """What a release by these totals takes as public."""
        return DOUBTFUL if self.doubts else VOUCHED


def tables_by_size(description: Description) -> list[DescribedTable]:
    """The tables whose detail published totals decide."""
    return [table for table in description.tables if table.detail and table.detail.published]


def read_source(description: Description, path: Path) -> PublishedSource:
    """Read a table of totals, and find out whether a release vouches for it.

    A release vouches if it is one of noisy measurements (`yupana.release.status.MEASURED`), lists the file with its
    checksum, and holds together with its plan (`check_release`). Its groups need only have the same codes: the
    guarantee holds for any totals that are public (docs/tables-privacy.md, theorem 5).

    Parameters
    ----------
    description : Description
    path : Path
        With the columns REGION_ID, REGION_TYPE and COUNT, and ITERATION_CODE where a level has groups; one row for a
        group.

    Raises
    ------
    InputError
        If it cannot be read as such a table, or lists no group of a level.
    OutputError
        If it lies in a release that is confidential.
    """
    try:
        told: dict[str, Any] = {"file": path.name, "sha256": checksum(path)}
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    doubts = [f"there is no {MANIFEST} beside it"]
    if (path.parent / MANIFEST).is_file():
        manifest = read_manifest(path.parent)
        told["manifest_sha256"] = checksum(path.parent / MANIFEST)
        told |= {key: manifest[key] for key in ("product", "status", "created") if key in manifest}
        doubts = list(_doubts(path, told["sha256"], manifest))
        if not doubts:
            told["totals"] = manifest["plan"]["totals"]
    by_level = _read(description, path)
    if checksum(path) != told["sha256"]:
        raise InputError(f"{path}: was changed while it was read")
    return PublishedSource(path, told, tuple(doubts), by_level)


def _doubts(path: Path, sha256: str, manifest: Mapping[str, Any]) -> list[str]:
    """Why a manifest does not vouch for a file."""
    try:
        status = status_of(manifest)
    except OutputError as error:
        return [str(error)]
    if status != MEASURED:
        why = "; ".join(manifest.get("reasons", ()))
        return [f"its manifest does not call it released, but {status!r}" + (f": {why}" if why else "")]
    tables = manifest.get("tables")
    listed = tables.get(path.name) if isinstance(tables, dict) else None
    if not isinstance(listed, dict) or listed.get("sha256") != sha256:
        return ["its manifest does not list it with its checksum"]
    return [f"its release does not hold together: {fault}" for fault in check_release(path.parent).wrong]


def _read(description: Description, path: Path) -> dict[str, PublishedSizes]:
    """The totals of every level of the tables that they decide."""
    levels = [(table, level) for table in tables_by_size(description) for level in table.levels]
    needed = ["REGION_ID", "REGION_TYPE", "COUNT"]
    if any(table.has_groups for table, _ in levels):
        needed.append("ITERATION_CODE")
    with open_database() as db, unreadable(InputError(f"{path}: not readable as a table of totals")):
        try:
            source = table_rows(path)
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}") from None
        found = column_types(db, source)
        if missing := [name for name in needed if name not in found]:
            raise InputError(f"{path}: column {', '.join(missing)} is missing; needed are {', '.join(needed)}")
        group = "ITERATION_CODE" if "ITERATION_CODE" in found else quoted("*")
        rows = db.execute(
            f"SELECT REGION_TYPE::VARCHAR, REGION_ID::VARCHAR, {group}::VARCHAR, COUNT::VARCHAR FROM {source}"
        ).fetchall()
    totals: dict[tuple[str, str, str], int | None] = {}
    for kind, area, code, count in rows:
        if (kind, area, code) in totals:
            raise InputError(f"{path}: a group stands in more than one row; name a table with one row for each")
        totals[kind, area, code] = _whole(path, count)
    return {f"{table.name}/{level.name}": _sizes(description, level, totals, path) for table, level in levels}


def _whole(path: Path, count: str | None) -> int | None:
    """A total; None of one that is suppressed."""
    if count == SUPPRESSED:
        return None
    if count is None or not count.removeprefix("-").isdecimal() or len(count) > 18:
        raise InputError(f"{path}: COUNT must be a whole number, or {SUPPRESSED} where it is suppressed")
    return int(count)


def _sizes(
    description: Description,
    level: DescribedLevel,
    totals: Mapping[tuple[str, str, str], int | None],
    path: Path,
) -> PublishedSizes:
    keys = [(level.areas, area, code) for area in description.areas[level.areas].codes for code in level.groups]
    found = [totals.get(key) for key in keys]
    listed = np.array([total is not None for total in found], dtype=bool)
    if not listed.any():
        raise InputError(f"{path}: lists no group of level {level.name}, so nothing would be measured there")
    return PublishedSizes(np.array([total or 0 for total in found], dtype=np.int64), listed)
