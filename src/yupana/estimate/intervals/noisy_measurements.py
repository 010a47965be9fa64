"""Noisy measurements of a run, as files of the Census Bureau's layout or as text, summed to a margin. Public."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Protocol

import duckdb
import numpy as np

from yupana.errors import ConfigError, OutputError
from yupana.estimate.intervals.counted import kept_by
from yupana.estimate.intervals.table_cells import list_labels
from yupana.files.database import named, open_database, unreadable
from yupana.files.delimited import csv_rows, read_header
from yupana.geography.spine_files import WrittenSpine
from yupana.products.topdown.product import TOPDOWN
from yupana.products.topdown.verify import MEASUREMENTS
from yupana.progress import Stopwatch, silent
from yupana.release.folder import MANIFEST
from yupana.release.release import ReleaseFolder
from yupana.release.tables import checksum
from yupana.topdown.descent.measurements import StoredMeasurements
from yupana.topdown.nmf.layout import DPQUERY, FoundFiles, find_files
from yupana.topdown.nmf.reading import FileMeasurements, read_measurements
from yupana.topdown.queries import Schema, margin
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
        stored = StoredMeasurements(self.read.once.levels, self.read.draws)
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


_GEOUNIT = "geounit"


class NoisyAnswers(Protocol):
    """The noisy measurements of a tree, however they are kept."""

    @property
    def left_out(self) -> Sequence[str]:
        """Measurements that are not used, as they group levels of an attribute."""
        ...

    def of_level(self, level: int, kept: tuple[int, ...], basis: Basis) -> list[TreeAnswers]:
        """What a geolevel was measured with, summed over the attributes that are not kept.

        Parameters
        ----------
        level : int
        kept : tuple of int
            Attributes, by position.
        basis : Basis
            Of the levels of these.
        """
        ...


@dataclass(frozen=True, slots=True, eq=False)
class NoisyTexts:
    """The measurements in a folder that `write_noisy` wrote.

    Attributes
    ----------
    noisy : ReleaseFolder
    schema : Schema
    levels : tuple of str
        Geolevels from the root down.
    labels : tuple of sequence of str
        Identifiers of the geounits of each geolevel.
    """

    noisy: ReleaseFolder
    schema: Schema
    levels: tuple[str, ...]
    labels: tuple[Sequence[str], ...]

    @property
    def left_out(self) -> Sequence[str]:
        """The files of recodes."""
        return sorted({name for name, kept in self._measurements() if kept is None})

    def of_level(self, level: int, kept: tuple[int, ...], basis: Basis) -> list[TreeAnswers]:
        """Read the files of a geolevel, each once.

        Raises
        ------
        OutputError
            If a file was changed, or does not hold what it should.
        ConfigError
            If there was no noise.
        """
        files = [
            (name, of_file)
            for name, of_file in self._measurements()
            if name.split("/")[0] == self.levels[level] and of_file is not None
        ]
        if not files:
            return []
        with open_database() as db:
            list_labels(db, "units", self.labels[level])
            for i in kept:
                list_labels(db, f"l{i}", self.schema.attributes[i].labels)
            return [self._read(db, name, level, of_file, kept, basis) for name, of_file in files]

    def _measurements(self) -> list[tuple[str, tuple[int, ...] | None]]:
        """The files of measurements, and which attributes each keeps; None for a recode."""
        names = [name for name in self.noisy.files.values() if name.endswith(".csv") and name.count("/") == 1]
        return [(name, kept_by(Path(name).stem.replace(".", "*"), self.schema)) for name in names]

    def _read(
        self,
        db: duckdb.DuckDBPyConnection,
        name: str,
        level: int,
        of_file: tuple[int, ...],
        kept: tuple[int, ...],
        basis: Basis,
    ) -> TreeAnswers:
        """A measurement summed over the attributes that are not kept, in one pass over its file."""
        path = self.noisy.file(name)
        left = [i for i in of_file if i in kept]
        summed_up = prod(self.schema.shape[i] for i in of_file if i not in kept)
        query = margin(name, basis.shape, [i in left for i in kept] or [False])
        units = len(self.labels[level])
        fault = OutputError(f"{path} is not readable as noisy measurements")
        wanted = (_GEOUNIT, *(self.schema.names[i] for i in of_file), "value", "variance")
        with unreadable(fault):
            if read_header(path, separators="|", quote="").names != wanted:
                raise OutputError(f"{path} must have the columns {'|'.join(wanted)}")
            rows = csv_rows(path, wanted, kinds={"value": "BIGINT", "variance": "DOUBLE"})
            joins = "".join(f" LEFT JOIN l{i} ON l{i}.label = {named(self.schema.names[i])}" for i in left)
            cell = "0"
            for i in left:
                cell = f"({cell} * {self.schema.shape[i]} + l{i}.place)"
            found = db.execute(
                f"SELECT coalesce(units.place, -1) AS unit, coalesce({cell}, -1) AS cell, sum(value)::DOUBLE AS value, "
                "min(variance) AS least, max(variance) AS most, count(*) AS n, count(value) AS numbers "
                f"FROM {rows} LEFT JOIN units ON units.label = geounit{joins} GROUP BY 1, 2"
            ).fetchnumpy()
        unit, most = found["unit"].astype(np.int64), np.ma.filled(found["most"].astype(np.float64), np.nan)
        least, cells = np.ma.filled(found["least"].astype(np.float64), np.nan), found["cell"].astype(np.int64)
        known = (unit >= 0) & (cells >= 0)
        alike = np.full(units, np.nan)
        alike[unit[known]] = most[known]
        measured = np.bincount(unit[known], minlength=units)
        if not (np.isfinite(most) & (least >= 0)).all():
            raise OutputError(f"{path} has a variance that is no number above 0")
        if (
            not known.all()
            or (found["n"] != summed_up).any()
            or (found["numbers"] != summed_up).any()
            or not np.isin(measured, (0, query.size)).all()
            or (least != most).any()
            or (alike[unit] != most).any()
        ):
            raise OutputError(f"{path} does not hold each answer of a geounit once, with one variance for all of them")
        if (most == 0).any():
            raise ConfigError(f"{path}: variance is 0, so there was no noise, and the counts need no interval")
        answers = np.zeros((units, query.size))
        answers[unit, cells] = np.ma.filled(found["value"].astype(np.float64), np.nan)
        precision = np.where(measured > 0, 1.0 / np.where(measured > 0, alike * summed_up, 1.0), 0.0)
        return TreeAnswers(query, answers, precision)
