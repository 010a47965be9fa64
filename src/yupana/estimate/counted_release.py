"""The counts of a TopDown release with its spine and public lists, as an estimate of them needs it. Public."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from yupana.arrays import Ints
from yupana.errors import InputError, OutputError
from yupana.files.database import open_database
from yupana.geography.attributes import FACILITIES, read_facilities
from yupana.geography.disk import BLOCKS, GEOUNITS, read_shares, read_spine
from yupana.geography.existing_spine import ordered_spine
from yupana.geography.hierarchy import spine_of
from yupana.geography.published import PublishedBlocks, read_published
from yupana.geography.settings import ROOT
from yupana.geography.spine import Spine
from yupana.products.topdown.count_files import CountFileError, counts_by_code, counts_by_label
from yupana.products.topdown.product import TOPDOWN
from yupana.release.folder import MANIFEST
from yupana.release.release import ReleaseFolder
from yupana.topdown.configuration import Configuration, Estimator
from yupana.topdown.disk import COUNTS
from yupana.topdown.histogram import Histogram

_SPINE: Final = "spine"


@dataclass(frozen=True, slots=True, eq=False)
class CountedRelease:
    """A release of TopDown in memory.

    Attributes
    ----------
    release : ReleaseFolder
    configuration : Configuration
    blocks : ndarray of int64, shape (blocks,)
        16 digits as a number, or where the configuration has areas of its own the number of the code.
    counts : Histogram
        Of the blocks.
    spine : Spine or None
        Of the same blocks, in the same order; None where the release does not tell the shares of its units.
    published : PublishedBlocks or None
        None where the units of the spine are what is published.
    """

    release: ReleaseFolder
    configuration: Configuration
    blocks: Ints
    counts: Histogram
    spine: Spine | None
    published: PublishedBlocks | None

    @property
    def estimator(self) -> Estimator:
        """How its counts were estimated.

        Raises
        ------
        OutputError
            If the manifest does not tell.
        """
        told = self.release.manifest["parameters"].get("estimator")
        if told == "topdown":
            return "topdown"
        if told == "full-information":
            return "full-information"
        if told == "posterior":
            return "posterior"
        raise OutputError(f"{self.release.folder}: the manifest does not tell the estimator")

    def facilities(self) -> Ints | None:
        """Housing units and facilities of the blocks, of shape (blocks, 8), where the configuration bounds them.

        Raises
        ------
        OutputError
            If it does, and the release does not hold them.
        """
        name = f"{_SPINE}/{FACILITIES}"
        if not self.configuration.group_quarters and name not in self.release.files.values():
            return None
        if name not in self.release.files.values():
            raise OutputError(
                f"{self.release.folder} has no {name}, which bounds its counts; it was made before releases held it. "
                "Give its noisy measurements, or make it again"
            )
        order = np.argsort(self.blocks)
        found = np.empty((len(order), 8), dtype=np.int64)
        found[order] = read_facilities(self.release.file(name), self.blocks[order])
        return found


def read_counted(release: ReleaseFolder) -> CountedRelease:
    """Read a release of TopDown whose files are those of its manifest.

    Raises
    ------
    ConfigError, InputError, OutputError
        If it is none, or its files do not go together.
    """
    release.intact()
    configuration = TOPDOWN.read(release.folder / MANIFEST)
    if f"{_SPINE}/{BLOCKS}" not in release.files.values():
        raise OutputError(f"{release.folder} has no {_SPINE}/{BLOCKS}; it is no release of TopDown")
    folder = release.folder / _SPINE
    name = f"{COUNTS}/{configuration.levels[-1]}"
    try:
        if configuration.areas is not None:
            spine = spine_of(configuration.areas, configuration.spine.shares)
            labels = spine.levels[-1].labels()
            with open_database() as db:
                counts = counts_by_label(db, release.folder, name, configuration.schema, labels)
            return CountedRelease(release, configuration, spine.blocks, counts, spine, None)
        written = read_spine(folder, configuration.levels)
        has_shares = f"{_SPINE}/{GEOUNITS}" in release.files.values()
        read = ordered_spine(folder, written, read_shares(folder, written)) if has_shares else None
        blocks = written.block if read is None else read.blocks
        return CountedRelease(
            release, configuration, blocks, _counts(release.folder, name, configuration, blocks), read,
            read_published(release.folder, nation=configuration.levels[0] == ROOT),
        )  # fmt: skip
    except CountFileError as error:
        raise InputError(f"{release.folder}: {error}") from None


def _counts(folder: Path, name: str, configuration: Configuration, blocks: Ints) -> Histogram:
    """Counts of blocks, in their order."""
    order = np.argsort(blocks)
    with open_database() as db:
        found = counts_by_code(db, folder, name, configuration.schema, blocks[order], 16)
    return found.sum_to(order, len(order))
