"""Totals that another release has published, which decide the detail of described tables. Public: it sees no record."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import duckdb
import numpy as np

from yupana.arrays import Ints
from yupana.errors import InputError, system_fault
from yupana.files.database import open_database, quoted, unreadable
from yupana.files.delimited import column_types
from yupana.products.described.description import DescribedLevel, DescribedTable, Description
from yupana.release.folder import read_manifest
from yupana.release.manifest import MANIFEST
from yupana.release.recipe import SUPPRESSED
from yupana.release.status import MEASURED, status_of
from yupana.release.tables import checksum, table_rows

VOUCHED: Final = "the totals of population groups, which another release has published under its own privacy loss"
"""What a release takes as public whose totals have a release without a fault."""

DOUBTFUL: Final = "the totals of population groups, although they are not known to be public: see the reasons"
"""The same of totals that only synthetic records may be tabulated by."""


def source_of_totals(told: Mapping[str, Any], reasons: Sequence[str], stated: object) -> str:
    """What a manifest must say of the totals that it takes as public.

    Parameters
    ----------
    told : mapping
        `PublishedSource.told`, of the manifest.
    reasons : sequence of str
        Against its release.
    stated : object
        What it says; taken where doubts decide, of which the reasons tell.
    """
    vouched = "manifest_sha256" in told and not (stated == DOUBTFUL and reasons)
    return VOUCHED if vouched else DOUBTFUL


@dataclass(frozen=True, slots=True, eq=False)
class PublishedGroups:
    """Published totals of groups of a level; the others are not measured."""

    # shape (groups,): places of the areas, ascending. Of areas that are made of blocks their codes as numbers, as which
    # there are is told by the file of blocks.
    area: Ints
    group: Ints  # shape (groups,): places among the groups of the level, ascending within an area
    total: Ints  # shape (groups,)


@dataclass(frozen=True, slots=True, eq=False)
class PublishedSource:
    """A table of totals: where it comes from, and what it says."""

    path: Path
    told: Mapping[str, Any]  # for the manifest: the file and its checksum, and what its release says of itself
    doubts: tuple[str, ...]  # why the totals may not be public
    taken_as_public: str  # what a release by these totals takes as public
    # by `table/level`; of totals of SafeTab by level, as long as the areas are not known
    by_level: Mapping[str, PublishedGroups] = field(default_factory=dict)
    # left_out, unknown: of totals of SafeTab, how many rows are not measured, by reason; and how many of these are of
    # areas that the geography does not have, by kind of area
    left_out: Mapping[str, int] = field(default_factory=dict)
    unknown: Mapping[str, int] = field(default_factory=dict)

    @property
    def empty(self) -> list[str]:
        """Measurements of which the totals list no group."""
        return [name for name, of in self.by_level.items() if not len(of.total)]


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
    path : Path
        With the columns REGION_ID, REGION_TYPE and COUNT, and ITERATION_CODE where a level has groups; one row for a
        group.

    Raises
    ------
    InputError
        If it cannot be read as such a table, or lists no group of a level.
    OutputError
        If it lies in a release that is confidential, or does not hold together.
    """
    if path.is_dir():
        raise InputError(f"{path}: is a folder; name the table in it that has the totals")
    told, manifest, doubts = told_of(path)
    if manifest is not None:
        doubts = _doubts(path, told["sha256"], manifest)
        if not doubts:
            told["totals"] = manifest["plan"]["totals"]
    by_level = _read(description, path)
    if checksum(path) != told["sha256"]:
        raise InputError(f"{path}: was changed while it was read")
    return PublishedSource(path, told, tuple(doubts), DOUBTFUL if doubts else VOUCHED, by_level)


def file_of(path: Path) -> dict[str, Any]:
    """What is told of a file.

    Raises
    ------
    InputError
        If it cannot be read.
    """
    with system_fault(InputError, str(path)):
        return {"file": path.name, "sha256": checksum(path)}


def told_of(path: Path) -> tuple[dict[str, Any], dict[str, Any] | None, list[str]]:
    """What is told of a table of totals, and the manifest beside it; or the doubt that there is none.

    Raises
    ------
    InputError, OutputError
        If one of them cannot be read, or is of a confidential release.
    """
    told = file_of(path)
    if not (path.parent / MANIFEST).is_file():
        return told, None, [f"there is no {MANIFEST} beside it"]
    manifest = read_manifest(path.parent)
    told["manifest_sha256"] = checksum(path.parent / MANIFEST)
    return told | {key: manifest[key] for key in ("product", "status", "created") if key in manifest}, manifest, []


def status_doubts(manifest: Mapping[str, Any]) -> list[str]:
    """Why a manifest does not call what it lists released."""
    if (status := status_of(manifest)) == MEASURED:
        return []
    why = "; ".join(manifest.get("reasons", ()))
    return [f"its manifest does not call it released, but {status!r}" + (f": {why}" if why else "")]


def _doubts(path: Path, sha256: str, manifest: Mapping[str, Any]) -> list[str]:
    """Why a manifest does not vouch for a file."""
    from yupana.products.gate import open_checked  # it imports all products

    open_checked(path.parent)
    doubts = status_doubts(manifest)
    if not doubts and manifest.get("tables", {}).get(path.name, {}).get("sha256") != sha256:
        doubts = ["its manifest does not list it with its checksum"]
    return doubts


def _read(description: Description, path: Path) -> dict[str, PublishedGroups]:
    """The totals of every level of the tables that they decide."""
    by_size = {name: at for name, at in description.measured.items() if at[0].detail and at[0].detail.published}
    needed = ["REGION_ID", "REGION_TYPE", "COUNT"]
    if any(table.has_groups for table, _ in by_size.values()):
        needed.append("ITERATION_CODE")
    with open_database() as db, unreadable(InputError(f"{path}: not readable as a table of totals")):
        with system_fault(InputError, str(path)):
            source = table_rows(path)
        found = column_types(db, source)
        if missing := [name for name in needed if name not in found]:
            raise InputError(f"{path}: column {', '.join(missing)} is missing; needed are {', '.join(needed)}")
        group = "ITERATION_CODE" if "ITERATION_CODE" in found else quoted("*")
        db.execute(
            "CREATE TABLE totals AS SELECT REGION_TYPE::VARCHAR AS kind, REGION_ID::VARCHAR AS area, "
            f"{group}::VARCHAR AS code, COUNT::VARCHAR AS total FROM {source}"
        )
        _check_rows(db, path)
        levels = dict.fromkeys(level for _, level in by_size.values())
        listed = {level: _listed(db, description, level) for level in levels}
    empty = [level.name for level, of in listed.items() if not len(of.total)]
    # Which areas are made of blocks is not known here, so some kinds may have none.
    if empty and (not description.blocks or len(empty) == len(listed)):
        raise InputError(f"{path}: lists no group of level {empty[0]}, so nothing would be measured there")
    return {name: listed[level] for name, (_, level) in by_size.items()}


def _check_rows(db: duckdb.DuckDBPyConnection, path: Path) -> None:
    whole = f"total = {quoted(SUPPRESSED)} OR regexp_full_match(total, '-?[0-9]{{1,18}}')"
    odd, again = db.execute(
        f"SELECT count_if(({whole}) IS DISTINCT FROM true), count(*) - count(DISTINCT (kind, area, code)) FROM totals"
    ).fetchall()[0]
    if again:
        raise InputError(f"{path}: a group stands in more than one row; name a table with one row for each")
    if odd:
        raise InputError(f"{path}: COUNT must be a whole number, or {SUPPRESSED} where it is suppressed")


def _listed(db: duckdb.DuckDBPyConnection, description: Description, level: DescribedLevel) -> PublishedGroups:
    """The groups of a level that have a total, by area and group."""
    kind = description.areas[level.areas]
    db.register("groups_now", {"code": np.array(level.groups), "place": np.arange(len(level.groups))})
    if kind.blocks is None:
        db.register("areas_now", {"area": np.array(kind.codes), "number": np.arange(len(kind.codes))})
        number, areas = "number", "JOIN areas_now USING (area)"
    else:
        number, areas = "area::BIGINT", f"WHERE regexp_full_match(area, '[0-9]{{{kind.blocks.width}}}')"
    rows = db.execute(
        f"SELECT {number} AS number, place, total::BIGINT AS total "
        f"FROM (SELECT * FROM totals WHERE kind = ? AND total <> {quoted(SUPPRESSED)}) "
        f"JOIN groups_now USING (code) {areas} ORDER BY number, place",
        [level.areas],
    ).fetchnumpy()
    area, group, total = (np.asarray(rows[name], dtype=np.int64) for name in ("number", "place", "total"))
    return PublishedGroups(area, group, total)
