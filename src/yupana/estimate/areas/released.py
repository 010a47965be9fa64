"""The areas of a release of TopDown: names, rows of tables, and which blocks of its spine lie in each. Public."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

import numpy as np

from yupana.arrays import Ints
from yupana.errors import ConfigError
from yupana.estimate.areas.queries import open_parts
from yupana.estimate.intervals.selections import counted_in
from yupana.estimate.topdown_release import file_of, must_be_of_topdown, released_spine, schema_of
from yupana.files.arrow import ArrowTable
from yupana.geography.assignments import Assignment, assign_published
from yupana.geography.gazetteer import NAME_COLUMNS, NAMES, AreaNames, Gazetteer, NamedArea, gazetteer_of, read_names
from yupana.geography.published import AREAS_FOLDER, BLOCKS_STEM, PublishedBlocks, indices, read_published
from yupana.geography.settings import ROOT
from yupana.geography.spine import Spine
from yupana.products.topdown.tables import levels_of
from yupana.release.release import ReleaseFolder
from yupana.topdown.queries import DETAILED, TOTAL


def released_blocks(release: ReleaseFolder) -> PublishedBlocks | None:
    """All blocks of a release of TopDown with their areas; None where the units of its spine are what is published.

    Raises
    ------
    InputError, OutputError
        If the file is missing, was changed, or is no such table.
    """
    name = file_of(release, f"{AREAS_FOLDER}/{BLOCKS_STEM}")
    if name is None:
        return None
    release.file(name)
    levels = release.manifest.get("parameters", {}).get("geolevels") or [""]
    return read_published(release.folder, nation=levels[0] == ROOT)


def short_block(block: str) -> str:
    """The 15 digits of a block: without that of the block group, which the block repeats."""
    return block[:11] + block[12:]


@dataclass(frozen=True, eq=False)
class ReleasedAreas:
    """The areas that can be asked for."""

    release: ReleaseFolder
    # none where the units of the spine are what is published: its geolevels are the kinds then
    published: PublishedBlocks | None
    assigned: tuple[Assignment, ...]  # what files told beside the release

    @cached_property
    def spine(self) -> Spine:
        """The spine of the release."""
        return released_spine(self.release)

    @cached_property
    def gazetteer(self) -> Gazetteer:
        """All areas by kind, code and name."""
        told = NAMES in self.release.files.values()
        names: AreaNames = read_names(self.release.file(NAMES)) if told else MappingProxyType({})
        if self.published is not None:
            return gazetteer_of(self.published, names)
        labels = [level.labels() for level in self.spine.levels]
        _, levels = schema_of(self.release)
        return Gazetteer(dict(zip(levels, labels, strict=True)), names)

    @cached_property
    def of_block(self) -> dict[str, Ints]:
        """By kind, the place of the area of each block of the spine among its codes, or -1; of shape (blocks,)."""
        if self.published is None:
            tree = self.spine.tree
            return {name: tree.ancestors(level).astype(np.int64) for level, name in enumerate(tree.names)}
        areas = self.published.areas(self.spine.blocks)
        return {name: index.astype(np.int64) for name, index in indices(areas, len(self.spine.blocks)).items()}

    @property
    def is_whole(self) -> bool:
        """Whether its blocks are those of a nation."""
        return self.published is None or self.published.nation

    def states_of(self, area: NamedArea) -> list[str]:
        """The states that the blocks of an area lie in, in order; none where codes tell no states."""
        if self.published is None or area.kind not in self.published.kinds:
            return []
        column = self.published.kinds[area.kind]
        inside = self.published.block[column.index == column.labels.index(area.code)]
        return [f"{state:02d}" for state in np.unique(inside // 10**14).tolist()]


def released_areas(release: ReleaseFolder, files: Sequence[Path], encoding: str | None = None) -> ReleasedAreas:
    """Read which areas a release has, and those that files of a user tell of its blocks (`assign_published`)."""
    must_be_of_topdown(release)
    published = released_blocks(release)
    if published is None:
        if files:
            raise ConfigError(f"--areas: {release.folder} publishes the units of its spine, and no blocks by digits")
        return ReleasedAreas(release, None, ())
    return ReleasedAreas(release, *assign_published(published, files, encoding))


GEOUNIT, LEVEL, CODE = "geounit", "SUMLEV", "GEOCODE"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AreaList:
    """The areas of a release of TopDown. Made by `areas`.

    Attributes
    ----------
    areas : ReleasedAreas
        Of a release of several parts those of the first: all have the same blocks.
    parts : tuple of ReleaseFolder
        The release, or its parts.
    """

    areas: ReleasedAreas
    parts: tuple[ReleaseFolder, ...]

    def __repr__(self) -> str:
        kinds = self.kinds
        shown = ", ".join(f"{kind} {number:,}" for kind, number in kinds.items())
        return f"<{sum(kinds.values()):,} areas of a release: {shown}>"

    @property
    def kinds(self) -> dict[str, int]:
        """How many areas each kind has."""
        return {kind: len(codes) for kind, codes in self.areas.gazetteer.codes.items()}

    @property
    def queries(self) -> dict[str, str]:
        """What can be counted of an area, each with what it means."""
        found: dict[str, str] = {}
        for part in self.parts:
            found |= self._queries_of(part)
        return found

    def _queries_of(self, part: ReleaseFolder) -> dict[str, str]:
        words = counted_in(schema_of(part)[0])
        alone = len(self.parts) == 1
        found = {TOTAL: "everybody or everything that is counted"} if alone else {}
        for one in words.schema.attributes:
            found[f"{one.name}[{one.name}=...]"] = ", ".join(one.labels)
        if len(words.schema.attributes) > 1 and alone:
            names = ", ".join(f"{one.name}=..." for one in words.schema.attributes)
            found[f"{DETAILED}[{names}]"] = "one cell of all attributes"
        for table in words.tables:
            found[table.name] = f"all its variables, {table.variables[0]} to {table.variables[-1]}, or one by its name"
        return found

    def find(self, area: str) -> NamedArea:
        """Find an area by KIND=CODE or KIND=NAME, such as ``place=1714000`` or ``place=Chicago``.

        Returns
        -------
        NamedArea
            With ``kind``, ``code`` and ``name``.

        Raises
        ------
        ConfigError
            If none is meant, or several.
        """
        return self.areas.gazetteer.find(area)

    def table(self, kind: str | None = None) -> ArrowTable:
        """Tabulate areas: kind, code, name, land and water in square metres, latitude and longitude.

        Parameters
        ----------
        kind : str, optional
            All if not given.

        Raises
        ------
        ConfigError
            If there is no such kind.
        """
        gazetteer = self.areas.gazetteer
        known = [row for one in ([kind] if kind else gazetteer.kinds) for row in gazetteer.known(one)]
        texts = {
            NAME_COLUMNS[0]: [area.kind for area, _ in known],
            NAME_COLUMNS[1]: [area.code for area, _ in known],
            NAME_COLUMNS[2]: [area.name for area, _ in known],
        }
        numbers = {
            name: [float(text) if (text := getattr(one, name)) else None for _, one in known]
            for name in NAME_COLUMNS[3:]
        }
        return ArrowTable.of(
            {name: ("VARCHAR", values) for name, values in texts.items()}
            | {name: ("DOUBLE", values) for name, values in numbers.items()}
        )

    def rows(self, table: str, area: str) -> ArrowTable:
        """The rows of a table of the release that are of an area.

        Parameters
        ----------
        table : str
            Such as ``tables/P1``, or ``tabulation/place``, which must be of the area's kind.
        area : str
            As of `find`.

        Raises
        ------
        ConfigError
            If no area is meant, or the table has no such areas.
        KeyError, OutputError
            As by `ReleaseFolder.path`.
        """
        found = self.find(area)
        rows = next((part for part in self.parts if table in part), self.parts[0])[table]
        if {LEVEL, CODE} <= set(rows.columns):
            level = levels_of(self.areas.gazetteer.kinds)[found.kind]
            code = short_block(found.code) if found.kind == "block" else found.code
            return rows.where({LEVEL: level, CODE: code})
        if GEOUNIT not in rows.columns or table.rsplit("/", maxsplit=1)[-1] != found.kind:
            raise ConfigError(f"{table} is no table of {found.kind}")
        return rows.where({GEOUNIT: found.code})


def listed_areas(release: Path, files: Sequence[Path] = (), encoding: str | None = None) -> AreaList:
    """Open the list of the areas of a release; parameters and errors as of `released_areas`."""
    opened, found = open_parts(release)
    parts = tuple(found.values()) or (opened,)
    return AreaList(released_areas(parts[0], files, encoding), parts)
