"""The areas of a release of TopDown: what they are called, and which blocks of its spine lie in each. Public."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from yupana.arrays import Ints
from yupana.errors import ConfigError
from yupana.estimate.intervals.topdown_release import must_be_of_topdown, schema_of, spine_of
from yupana.geography.assignments import Assignment, assign_published
from yupana.geography.disk import WrittenSpine
from yupana.geography.gazetteer import Gazetteer, NamedArea, gazetteer_of
from yupana.geography.published import PublishedBlocks, indices
from yupana.geography.released import released_blocks, released_names
from yupana.release.release import ReleaseFolder


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
        return spine_of(self.release)

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
