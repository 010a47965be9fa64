"""Noisy measurements of a run of TopDown, and least squares on its spine: covariances of any sums of answers. Public.

Measurements lie in files of the Census Bureau's layout or as text. Only the attributes that a query names are kept: all
measurements are summed over the others first, which loses nothing (docs/intervals.md), so that the estimate costs as
much as the query is fine.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from math import prod
from pathlib import Path
from typing import Any, Final

import duckdb
import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Floats
from yupana.errors import ConfigError, OutputError
from yupana.estimate.intervals.query import Linear, Selection
from yupana.estimate.intervals.selections import chosen_places, kept_by, list_labels, open_file
from yupana.estimate.topdown_release import file_of, must_be_of_topdown, released_spine, schema_of
from yupana.files.database import open_database, unreadable
from yupana.files.delimited import csv_rows, read_header
from yupana.geography.spine_files import WrittenSpine
from yupana.products.gate import open_release
from yupana.products.topdown.product import TOPDOWN
from yupana.products.topdown.verify import MEASUREMENTS, NOISY, cell_of
from yupana.progress import Stopwatch, silent
from yupana.release.manifest import MANIFEST
from yupana.release.release import ReleaseFolder
from yupana.release.tables import checksum
from yupana.topdown.configuration import OF_AREAS
from yupana.topdown.descent.measurements import StoredMeasurements
from yupana.topdown.nmf.layout import DPQUERY, FoundFiles, find_files
from yupana.topdown.nmf.reading import FileMeasurements, read_measurements
from yupana.topdown.queries import TOTAL, Schema, margin
from yupana.topdown.tree.basis import Basis
from yupana.topdown.tree.least_squares import TreeAnswers, TreeEstimate, combined, covariance_of_sums, down, own, summed

_AT_ONCE = 1 << 22
"""Answers that are summed at once."""


@dataclass(frozen=True, slots=True, eq=False)
class _NoisyFiles:
    """Measurements that were read from such files."""

    read: FileMeasurements

    @property
    def left_out(self) -> Sequence[str]:
        """Queries of recodes, each at every geolevel."""
        levels = zip(self.read.premises.spine.tree.names, self.read.once.levels, strict=True)
        return sorted(f"{name}/{q.name}" for name, level in levels for q in level.queries if not q.keeps_or_sums)

    def of_level(self, level: int, kept: tuple[int, ...], basis: Basis) -> list[TreeAnswers]:
        """What a geolevel was measured with, summed over the attributes that are not kept.

        Parameters
        ----------
        kept : tuple of int
            Attributes, by position.
        basis : Basis
            Of the levels of these.
        """
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


def _read_files(release: ReleaseFolder, folder: Path, run: ReleaseFolder | None, spine: WrittenSpine) -> _NoisyFiles:
    """Read the files that a release was made with or, if the manifest of a run lies beside them, that the run wrote."""
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
    return _NoisyFiles(read)


def _checksums(found: FoundFiles) -> dict[str, str]:
    return {path.relative_to(found.folder).as_posix(): checksum(path) for path in found.files()}


def _require(folder: Path, found: Mapping[str, str], told: Mapping[str, str]) -> None:
    odd = sorted(name for name in {*found, *told} if found.get(name) != told.get(name))
    if odd:
        raise OutputError(
            f"{folder} holds other measurements than the release was made with: {len(odd)} files are missing, are new "
            f"or were changed, such as {odd[0]}"
        )


@dataclass(frozen=True, slots=True, eq=False)
class _NoisyTexts:
    """The measurements in a folder that `write_noisy` wrote."""

    noisy: ReleaseFolder
    schema: Schema
    levels: tuple[str, ...]  # geolevels from the root down
    labels: tuple[Sequence[str], ...]  # identifiers of the geounits of each geolevel

    @property
    def left_out(self) -> Sequence[str]:
        """The files of recodes."""
        return sorted({name for name, kept in self._measurements() if kept is None})

    def of_level(self, level: int, kept: tuple[int, ...], basis: Basis) -> list[TreeAnswers]:
        """As of `_NoisyFiles`; each file is read once."""
        files = [
            (name, of_file)
            for name, of_file in self._measurements()
            if name.split("/")[0] == self.levels[level] and of_file is not None
        ]
        if not files:
            return []
        with open_database() as db:
            list_labels(db, "units", self.labels[level])
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
        wanted = (GEOUNIT, *(self.schema.names[i] for i in of_file), "value", "variance")
        with unreadable(fault):
            if read_header(path, separators="|", quote="").names != wanted:
                raise OutputError(f"{path} must have the columns {'|'.join(wanted)}")
            rows = csv_rows(path, wanted, kinds={"value": "BIGINT", "variance": "DOUBLE"})
            cell = cell_of([self.schema.attributes[i] for i in left])
            found = db.execute(
                f"SELECT coalesce(units.place, -1) AS unit, coalesce({cell}, -1) AS cell, sum(value)::DOUBLE AS value, "
                "min(variance) AS least, max(variance) AS most, count(*) AS n, count(value) AS numbers "
                f"FROM {rows} LEFT JOIN units ON units.label = geounit GROUP BY 1, 2"
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


NoisyAnswers = _NoisyFiles | _NoisyTexts
"""The noisy measurements of a tree, however they are kept."""

GEOUNIT: Final = "geounit"

_WIDTHS: Final = {"State": 2, "County": 5, "Tract": 11, "Block_Group": 12}
"""Digits of a block that name the published area of a geolevel."""

_DECIMALS: Final = 6

_MAY_CHANGE: Final = frozenset({"intervals", "remarks"})

COVERED: Final = (
    "of the true count, over the draw of the noise: of unbiased least-squares estimates from all noisy measurements, "
    "before they were made non-negative and rounded",
    "not of the released counts, which are consistent whole numbers, may lie outside, and have no known variance",
)


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer of a margin at one geounit: geolevel and geounit by position, and the level of each attribute kept."""

    level: int
    unit: int
    levels: tuple[tuple[int, int], ...]


@dataclass(slots=True)
class TreeMeasurements:
    """The noisy measurements of a run of TopDown, with the spine and the invariants of its release."""

    release: ReleaseFolder
    noisy: NoisyAnswers
    schema: Schema
    levels: tuple[str, ...]  # geolevels from the root down
    spine: WrittenSpine
    labels: tuple[Sequence[str], ...]  # identifiers of the geounits of each geolevel
    _solved: "dict[tuple[int, ...], tuple[list[TreeEstimate], dict[int, TreeEstimate]]]" = field(
        default_factory=dict, init=False
    )

    @property
    def rule(self) -> str:
        """How variances of sums are found."""
        return "covariance of least squares on the tree"

    @property
    def notes(self) -> tuple[str, ...]:
        """What an interval covers and what not."""
        left_out = self.noisy.left_out
        return (
            *COVERED,
            *([f"measurements of recodes are not used: {', '.join(left_out)}"] if left_out else []),
            *(
                ["noise is two-sided geometric: what rests on few measurements has other chances than the normal's"]
                if self.release.is_pure
                else []
            ),
        )

    def select(self, selection: Selection) -> Linear:
        """Find answers: LEVEL/QUERY[geounit=..., ATTRIBUTE=...], the query measured or not."""
        name, _, query = selection.table.partition("/")
        if name not in self.levels:
            raise ConfigError(
                f"the release has no geolevel {name}; it has {', '.join(self.levels)}. Counts of areas are asked for "
                "with --area KIND=WHICH"
            )
        kept = kept_by(query.replace(".", "*"), self.schema)
        if kept is None or not query:
            raise ConfigError(
                f"{selection.table}: name a geolevel and what is kept, such as {name}/total, {name}/detailed or "
                f"{name}/{'*'.join(self.schema.names[:2])}; attributes are {', '.join(self.schema.names)}"
            )
        level = self.levels.index(name)
        columns: dict[str, Sequence[str]] = {GEOUNIT: self.labels[level]}
        columns |= {self.schema.names[i]: self.schema.attributes[i].labels for i in kept}
        found = chosen_places(selection, columns)
        cells = list(product(*([(i, place) for place in found[self.schema.names[i]]] for i in kept)))
        one = Fraction(1)
        return Linear(Fraction(0), {Answer(level, unit, cell): one for unit in found[GEOUNIT] for cell in cells})

    def moments(self, forms: Sequence[Linear]) -> tuple[Floats, Floats]:
        """Least-squares estimates of forms, and their covariance."""
        answers = [cell for form in forms for cell in form.weights if isinstance(cell, Answer)]
        kept = tuple(sorted({i for answer in answers for i, _ in answer.levels}))
        shape = tuple(self.schema.shape[i] for i in kept) or (1,)
        basis = Basis(shape)
        upward, known = self.solve(kept, basis, max((answer.level for answer in answers), default=0))
        rows = _rows(forms, kept, shape)
        coordinates = {
            at: basis.coordinates(row, (True,) * len(basis.sizes)).reshape(len(forms), -1) for at, row in rows.items()
        }
        estimates = np.array([float(form.constant) for form in forms])
        for (level, unit), row in coordinates.items():
            estimates += row @ known[level].coordinates[unit]
        covariance = covariance_of_sums(self.spine.tree, basis, upward, coordinates, len(forms))
        if covariance is None:
            raise ConfigError("the measurements do not determine an answer it asks for; no estimate is possible")
        # A sum that is known exactly, such as units less their parent, comes with the rounding errors of its terms.
        exact = np.diag(covariance) == 0
        return np.where(exact, np.round(estimates, _DECIMALS), estimates), covariance

    def solve(
        self, kept: tuple[int, ...], basis: Basis, deepest: int
    ) -> tuple[list[TreeEstimate], dict[int, TreeEstimate]]:
        """Estimates upward of every geolevel, and those from all measurements down to some geolevel.

        Parameters
        ----------
        kept : tuple of int
            Attributes; over the others is summed.
        basis : Basis
            Of the levels of these.
        deepest : int
            The geolevel, by position.
        """
        tree = self.spine.tree
        if kept not in self._solved:
            upward: list[TreeEstimate] = []
            for level in range(len(self.levels) - 1, -1, -1):
                here = own(basis, tree.units(level), self._measured(level, kept, basis))
                if upward:
                    below = summed(upward[-1], tree.parents[level + 1], tree.units(level))
                    here = combined(basis, here, below)
                upward.append(here)
            upward.reverse()
            self._solved[kept] = upward, {0: upward[0]}
        upward, known = self._solved[kept]
        for level in range(len(known), deepest + 1):
            known[level] = down(basis, upward[level], tree.parents[level], known[level - 1])
        return upward, known

    def _measured(self, level: int, kept: tuple[int, ...], basis: Basis) -> list[TreeAnswers]:
        found = self.noisy.of_level(level, kept, basis)
        total = self._exact(level)
        if total is not None:
            query = margin(TOTAL, basis.shape, [False] * len(basis.shape))
            found.append(TreeAnswers(query, total[:, None], np.full(len(total), np.inf)))
        return found

    def _exact(self, level: int) -> NDArray[np.int64] | None:
        """Totals that invariants make known of every unit of a geolevel, from the released counts; None if not."""
        named = [i for i, name in enumerate(self.levels) if self.release.manifest["parameters"]["invariants"].get(name)]
        if not named or level > named[-1] or (level == named[-1] and not self._whole_areas(level)):
            return None
        total = np.zeros(len(self.labels[level]), dtype=np.int64)
        unit, _, count = self.released(level, ())
        np.add.at(total, unit, count)
        return total

    def released(self, level: int, kept: tuple[int, ...]) -> tuple[NDArray[np.int64], ...]:
        """The released counts of a geolevel, summed over the attributes that are not kept.

        Returns
        -------
        tuple of ndarray of int64, shape (entries,) each
            The geounit, the cell of the attributes kept in C order, and the count; zeros may be left out.

        Raises
        ------
        OutputError
            If the release has no such file, or it is none of counts.
        """
        stem = f"counts/{self.levels[level]}"
        name = file_of(self.release, stem)
        if name is None:
            raise OutputError(f"{self.release.folder} has no {stem}, which it must have; run yupana check")
        with open_database() as db:
            open_file(db, "counts", self.release.file(name))
            list_labels(db, "units", self.labels[level])
            cell = cell_of([self.schema.attributes[i] for i in kept])
            with unreadable(OutputError(f"{self.release.folder / name} is not readable as counts")):
                rows = db.execute(
                    f'SELECT units.place AS unit, {cell} AS cell, sum("count"::BIGINT)::BIGINT AS count FROM counts '
                    f"JOIN units ON units.label = geounit WHERE {cell} IS NOT NULL GROUP BY 1, 2"
                ).fetchnumpy()
        return tuple(np.asarray(rows[column], dtype=np.int64) for column in ("unit", "cell", "count"))

    def _whole_areas(self, level: int) -> bool:
        """Whether every published area of a geolevel is one unit: of areas in several only the sum is invariant."""
        width = _WIDTHS.get(self.levels[level])
        kind = self.release.manifest["parameters"]["spine"]
        if width is None or kind == OF_AREAS or (self.levels[level] == "Block_Group" and kind == "optimized"):
            return True
        first = np.searchsorted(self.spine.tree.ancestors(level), np.arange(self.spine.tree.units(level)))
        area = self.spine.block[first] // 10 ** (16 - width)
        return len(np.unique(area)) == len(area)


def open_tree(release: ReleaseFolder, noisy: Path) -> TreeMeasurements:
    """Open the measurements of a run and the spine of its release.

    Raises
    ------
    InputError, OutputError
        If it is no release of TopDown, the measurements are of another run, or files are missing, were changed or hold
        something else.
    """
    must_be_of_topdown(release)
    measurements = None if MEASUREMENTS in release.manifest else measurements_of(release, noisy)
    schema, levels = schema_of(release)
    spine = released_spine(release)
    labels = (*spine.labels, spine.block_labels())
    # In the Census Bureau's layout, whoever wrote them.
    if measurements is None or any(f"/{DPQUERY}/" in f"/{name}" for name in measurements.files.values()):
        answers: NoisyAnswers = _read_files(release, noisy, measurements, spine)
    else:
        answers = _NoisyTexts(measurements, schema, levels, labels)
    return TreeMeasurements(release, answers, schema, levels, spine, labels)


def measurements_of(release: ReleaseFolder, noisy: Path) -> ReleaseFolder:
    """The measurements of a run, which the folder must hold."""
    measurements = open_release(noisy)
    if measurements.product != NOISY:
        raise OutputError(f"{noisy} does not hold noisy measurements; name the folder that topdown run wrote them to")
    if _told_of_run(measurements) != _told_of_run(release):
        raise OutputError(f"{noisy} holds the measurements of another run than {release.folder}")
    return measurements


def _told_of_run(release: ReleaseFolder) -> list[Any]:
    """What tells runs apart; intervals may have been added to a release afterwards."""
    told = dict(release.manifest)
    parameters = {name: value for name, value in told.get("parameters", {}).items() if name not in _MAY_CHANGE}
    return [told.get("product"), told.get("created"), told.get("plan"), parameters]


def _rows(forms: Sequence[Linear], kept: tuple[int, ...], shape: tuple[int, ...]) -> dict[tuple[int, int], Floats]:
    """The weights of the forms on the histogram of each geounit, summed over all but the attributes kept."""
    axis = {attribute: place for place, attribute in enumerate(kept)}
    rows: dict[tuple[int, int], Floats] = {}
    for number, form in enumerate(forms):
        for cell, weight in form.weights.items():
            if not isinstance(cell, Answer):
                raise TypeError("forms must be of `select`")
            row = rows.setdefault((cell.level, cell.unit), np.zeros((len(forms), *shape)))
            at: list[int | slice] = [slice(None)] * len(shape)
            for attribute, level in cell.levels:
                at[axis[attribute]] = level
            row[(number, *at)] += float(weight)
    return {at: row.reshape(len(forms), -1) for at, row in rows.items()}
