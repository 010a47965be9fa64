"""The areas of a release of TopDown: what they are called, and which blocks of its spine lie in each. Public."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

import numpy as np

from yupana.arrays import Ints
from yupana.errors import ConfigError, OutputError
from yupana.estimate.topdown_release import must_be_of_topdown, released_spine, schema_of
from yupana.geography.assignments import Assignment, assign_published
from yupana.geography.gazetteer import NAMES, AreaNames, Gazetteer, NamedArea, gazetteer_of, read_names
from yupana.geography.published import AREAS_FOLDER, BLOCKS_STEM, PublishedBlocks, indices, read_published
from yupana.geography.settings import ROOT
from yupana.geography.spine_files import WrittenSpine
from yupana.release.release import ReleaseFolder


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


def released_names(release: ReleaseFolder) -> AreaNames:
    """What a release calls its areas, by kind and identifier; nothing if it names none.

    Raises
    ------
    InputError, OutputError
        As by `released_blocks`.
    """
    return read_names(release.file(NAMES)) if NAMES in release.files.values() else MappingProxyType({})


def file_of(release: ReleaseFolder, stem: str) -> str | None:
    """The file of a release, text or Parquet, that is called so without its ending; None if it has none.

    Raises
    ------
    OutputError
        If it has both.
    """
    found = [name for name in (f"{stem}.csv", f"{stem}.parquet") if name in release.files.values()]
    if len(found) > 1:
        raise OutputError(f"{release.folder} has {' and '.join(found)}, which say the same; run yupana check")
    return found[0] if found else None


@dataclass(frozen=True, eq=False)
class ReleasedAreas:
    """The areas that can be asked for.

    Attributes
    ----------
    release : ReleaseFolder
    published : PublishedBlocks or None
        None where the units of the spine are what is published: its geolevels are the kinds then.
    assigned : tuple of Assignment
        What files told beside the release.
    """

    release: ReleaseFolder
    published: PublishedBlocks | None
    assigned: tuple[Assignment, ...]

    @cached_property
    def spine(self) -> WrittenSpine:
        """The spine of the release."""
        return released_spine(self.release)

    @cached_property
    def gazetteer(self) -> Gazetteer:
        """All areas by kind, code and name."""
        names = released_names(self.release)
        if self.published is not None:
            return gazetteer_of(self.published, names)
        labels = (*self.spine.labels, tuple(self.spine.block_labels()))
        _, levels = schema_of(self.release)
        return Gazetteer(dict(zip(levels, labels, strict=True)), names)

    @cached_property
    def of_block(self) -> dict[str, Ints]:
        """By kind, the place of the area of each block of the spine among its codes, or -1; of shape (blocks,)."""
        if self.published is None:
            tree = self.spine.tree
            return {name: tree.ancestors(level).astype(np.int64) for level, name in enumerate(tree.names)}
        areas = self.published.areas(self.spine.block)
        return {name: index.astype(np.int64) for name, index in indices(areas, len(self.spine.block)).items()}

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


def released_areas(release: ReleaseFolder, files: Sequence[Path]) -> ReleasedAreas:
    """Read which areas a release has, and those that files of a user tell of its blocks.

    Parameters
    ----------
    release : ReleaseFolder
    files : sequence of Path
        As of `assign_published`.

    Raises
    ------
    ConfigError
        If files are given and the units of the spine are what is published.
    InputError, OutputError
        If it is no release of TopDown, or a file is not what it should be.
    """
    must_be_of_topdown(release)
    published = released_blocks(release)
    if published is None:
        if files:
            raise ConfigError(f"--areas: {release.folder} publishes the units of its spine, and no blocks by digits")
        return ReleasedAreas(release, None, ())
    return ReleasedAreas(release, *assign_published(published, files))
