"""Noisy measurement files beside a release: whether they are of it, and which published areas their blocks lie in."""

import numpy as np

from yupana.errors import OutputError
from yupana.geography.published import Areas, PublishedBlocks
from yupana.geography.spine import Spine
from yupana.products.gate import open_release
from yupana.products.topdown.verify import MEASUREMENTS, NOISY
from yupana.release.folder import MANIFEST
from yupana.release.release import ReleaseFolder
from yupana.release.tables import checksum
from yupana.topdown.nmf.finding import FoundFiles
from yupana.topdown.nmf.water import published_in


def areas_of_measured(spine: Spine, published: PublishedBlocks) -> list[Areas]:
    """The published areas of the blocks that were measured; a block in water counts where it is tabulated."""
    return published.areas(np.asarray(published_in(spine.blocks)))


def check_same_run(files: FoundFiles, release: ReleaseFolder) -> None:
    """Refuse measurement files that are not those of a release.

    Raises
    ------
    OutputError
        If they are of another run, or nothing tells.
    """
    if MEASUREMENTS in release.manifest:
        told = release.manifest[MEASUREMENTS].get("files", {})
        if told != {path.relative_to(files.folder).as_posix(): checksum(path) for path in files.files()}:
            raise OutputError(f"{files.folder} does not hold the files that {release.folder} was made of")
        return
    folder = files.folder.parent
    if not (folder / MANIFEST).exists():
        raise OutputError(
            f"{folder} has no {MANIFEST}, so nothing tells that its files are of the run of {release.folder}"
        )
    manifest = open_release(folder).manifest
    same = all(manifest.get(key) == release.manifest.get(key) for key in ("product", "created", "plan"))
    if manifest.get("system") != NOISY or not same:
        raise OutputError(f"{folder} holds the measurements of another run than {release.folder}")
