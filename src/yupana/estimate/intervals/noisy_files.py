"""Noisy measurement files in the Census Bureau's layout, summed to a margin of the tree of a release. Public."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np

from yupana.errors import OutputError
from yupana.geography.disk import WrittenSpine
from yupana.products.topdown.product import TOPDOWN
from yupana.products.topdown.verify import MEASUREMENTS
from yupana.progress import Stopwatch, silent
from yupana.release.folder import MANIFEST
from yupana.release.release import ReleaseFolder
from yupana.release.tables import checksum
from yupana.topdown.evidence import StoredMeasurements
from yupana.topdown.nmf.finding import FoundFiles, find_files
from yupana.topdown.nmf.layout import DPQUERY
from yupana.topdown.nmf.reading import FileMeasurements, read_measurements
from yupana.topdown.queries import margin
from yupana.topdown.tree.basis import Basis
from yupana.topdown.tree.least_squares import TreeAnswers

_AT_ONCE = 1 << 22
"""Answers that are summed at once."""


@dataclass(frozen=True, slots=True, eq=False)
class NoisyFiles:
    """Measurements that were read from such files.

    Attributes
    ----------
    read : FileMeasurements
    """

    read: FileMeasurements

    @property
    def left_out(self) -> Sequence[str]:
        """Queries of recodes, each at every geolevel."""
        levels = zip(self.read.premises.spine.tree.names, self.read.once.levels, strict=True)
        return sorted(f"{name}/{q.name}" for name, level in levels for q in level.queries if not q.keeps_or_sums)

    def of_level(self, level: int, kept: tuple[int, ...], basis: Basis) -> list[TreeAnswers]:
        """Sum the answers of a geolevel."""
        stored = StoredMeasurements(self.read.once, self.read.draws)
        spent = self.read.once.levels[level]
        units = len(spent.share_of)
        precisions = stored.precisions(level, 0, units)
        found = []
        for q, query in enumerate(spent.queries):
            if not query.keeps_or_sums:
                continue
            over = [axis for axis, size in enumerate(query.shape) if size > 1 and axis not in kept]
            summed_up = prod(query.shape[axis] for axis in over)
            asked = margin(query.name, basis.shape, [query.shape[axis] > 1 for axis in kept] or [False])
            answers = np.empty((units, asked.size), dtype=np.int64)
            at_once = max(1, _AT_ONCE // query.size)
            for first in range(0, units, at_once):
                last = min(first + at_once, units)
                values = stored.answers(level, first, last)[q].reshape(last - first, *query.shape)
                answers[first:last] = values.sum(axis=tuple(a + 1 for a in over), dtype=np.int64).reshape(
                    last - first, -1
                )
            found.append(TreeAnswers(asked, answers, precisions[:, q] / summed_up))
        return found


def is_of_bureau(measurements: ReleaseFolder) -> bool:
    """Whether the measurements of a run lie in the Census Bureau's layout."""
    return any(f"/{DPQUERY}/" in f"/{name}" for name in measurements.files.values())


def read_files(release: ReleaseFolder, folder: Path, run: ReleaseFolder | None, spine: WrittenSpine) -> NoisyFiles:
    """Read the measurements that a release was made with.

    Parameters
    ----------
    release : ReleaseFolder
        Made from such files, or by the run that wrote them.
    folder : Path
    run : ReleaseFolder or None
        The manifest beside the files, if the release is of the run that wrote them.
    spine : WrittenSpine
        That of the release.

    Raises
    ------
    OutputError
        If they are other files, were changed, or blocks were moved between measurement and tabulation.
    InputError
        If they do not hold together.
    """
    told = release.manifest.get(MEASUREMENTS)
    if release.manifest.get("moved_blocks"):
        moved = len(release.manifest["moved_blocks"])
        raise OutputError(
            f"{release.folder}: the counts of {moved} blocks in water were moved to others, so that the geounits which "
            "were measured are not those of the release; the intervals in its tables have them right"
        )
    if told is not None:
        found = find_files(folder, told["dataset"], tuple(told["states"]))
        _require(folder, _checksums(found), told["files"])
    else:
        found = find_files(folder, None)
        of_run = {} if run is None else {name: checksum(run.file(name)) for name in run.files.values()}
        of_data = {name.partition("/")[2]: digest for name, digest in of_run.items()}
        _require(folder, _checksums(found), of_data)
    config = TOPDOWN.read(release.folder / MANIFEST)
    read = read_measurements(found, config, "full-information", None, Stopwatch(lambda *_: None), silent)
    tree = read.premises.spine.tree
    same = np.array_equal(read.premises.spine.blocks, spine.block) and all(
        np.array_equal(here, there) for here, there in zip(tree.parents, spine.tree.parents, strict=True)
    )
    if not same:
        raise OutputError(f"{folder} holds measurements of other geounits than those of {release.folder}")
    return NoisyFiles(read)


def _checksums(found: FoundFiles) -> dict[str, str]:
    return {path.relative_to(found.folder).as_posix(): checksum(path) for path in found.files()}


def _require(folder: Path, found: Mapping[str, str], told: Mapping[str, str]) -> None:
    odd = sorted(name for name in {*found, *told} if found.get(name) != told.get(name))
    if odd:
        raise OutputError(
            f"{folder} holds other measurements than the release was made with: {len(odd)} files are missing, are new "
            f"or were changed, such as {odd[0]}"
        )
