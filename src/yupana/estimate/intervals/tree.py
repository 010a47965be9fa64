"""Noisy measurements of a run of TopDown, and least squares on its spine: covariances of any sums of answers. Public.

Measurements lie in files of the Census Bureau's layout or as text. Only the attributes that a query names are kept: all
measurements are summed over the others first, which loses nothing (docs/intervals.md), so that the estimate costs as
much as the query is fine.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any, Final

import duckdb
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from yupana.arrays import Floats, narrow
from yupana.errors import ConfigError, OutputError
from yupana.estimate.intervals.query import Linear, Selection
from yupana.estimate.intervals.selections import chosen_places, kept_by, list_labels, open_file
from yupana.estimate.topdown_release import must_be_of_topdown, path_of, released_spine
from yupana.files.database import named, open_database, store_arrays, unreadable
from yupana.geography.spine import Geolevel, Spine
from yupana.geography.spine_files import GEOUNITS, read_shares
from yupana.geography.tree import Tree
from yupana.products.gate import open_release
from yupana.products.topdown.product import TOPDOWN
from yupana.products.topdown.tables import SPINE
from yupana.products.topdown.verify import MEASUREMENTS, NOISY, cell_of
from yupana.progress import Stopwatch, silent
from yupana.release.manifest import MANIFEST
from yupana.release.release import ReleaseFolder
from yupana.release.tables import checksum
from yupana.topdown.budget import LevelSpending, spend
from yupana.topdown.configuration import Configuration
from yupana.topdown.constraints import kept_areas
from yupana.topdown.descent.checkpoint import Drawn, Keeper, Shape
from yupana.topdown.descent.measurements import StoredMeasurements
from yupana.topdown.nmf.layout import DPQUERY, FoundFiles, find_files
from yupana.topdown.nmf.reading import read_measurements
from yupana.topdown.queries import Schema, kept_columns
from yupana.topdown.tree.basis import Basis
from yupana.topdown.tree.least_squares import TreeEstimate, covariance_of_sums, down
from yupana.topdown.tree.margins import MarginMeasurements

GEOUNIT: Final = "geounit"

_NEAR: Final = 1e-9
"""How far a variance that was written may be off the plan's, as a share."""


class _TableDraws(Keeper):
    """The answers of tables, in memory."""

    def __init__(self, read: Sequence[Sequence[NDArray[np.integer]]]) -> None:
        self._read = read

    def load_draws(self, level: int, first: int, shapes: Sequence[Shape]) -> Drawn | None:
        """The answers of the geounits of a level from ``first`` on."""
        return tuple(
            of_query[first : first + units] for of_query, (units, _) in zip(self._read[level], shapes, strict=True)
        )


def read_measured(
    noisy: ReleaseFolder, configuration: Configuration, levels: Sequence[Geolevel], spent: Sequence[LevelSpending]
) -> StoredMeasurements:
    """Read the measurements that a run wrote as tables; those of recodes are left out, and stand as zeros.

    Parameters
    ----------
    levels, spent : sequence
        The geounits of each geolevel, and what the plan measures them with.

    Raises
    ------
    ConfigError
        If there was no noise.
    OutputError
        If a file is missing, was changed, or does not hold each answer once with the variance of the plan.
    """
    read: list[list[NDArray[np.integer]]] = []
    for level, of_level in zip(levels, spent, strict=True):
        labels = level.labels()
        read.append([np.broadcast_to(np.int8(0), (len(labels), query.size)) for query in of_level.queries])
        for q, query in enumerate(of_level.queries):
            if query.keeps_or_sums:
                name = f"{level.name}/{query.name.replace('*', '.')}.csv"
                if name not in noisy.files.values():
                    raise OutputError(f"{noisy.folder} has no {name}; it does not hold all measurements of the run")
                columns = kept_columns(query, configuration.schema, configuration.recodes)
                with open_database() as db:
                    read[-1][q] = _read_answers(db, noisy.file(name), labels, columns, of_level, q)
    return StoredMeasurements(tuple(spent), _TableDraws(read))


def _read_answers(
    db: duckdb.DuckDBPyConnection,
    path: Path,
    labels: list[str],
    columns: Mapping[str, list[str]],
    spent: LevelSpending,
    q: int,
) -> NDArray[np.integer]:
    """The answers of a query for all geounits, zeros where it was not measured."""
    wanted = [GEOUNIT, *columns, "value", "variance"]
    if open_file(db, "measured", path) != wanted:
        raise OutputError(f"{path} must have the columns {'|'.join(wanted)}")
    list_labels(db, "units", labels)
    size = spent.queries[q].size
    texts = {f"k{i}": np.array(values, dtype=object) for i, values in enumerate(columns.values())}
    store_arrays(db, "answers", {"place": np.arange(size), **texts})
    on = " AND ".join(f"k{i} = {named(name)}" for i, name in enumerate(columns)) or "true"
    with unreadable(OutputError(f"{path} is not readable as noisy measurements")):
        found = db.execute(
            "SELECT coalesce(units.place, -1) AS unit, coalesce(answers.place, -1) AS answer, value::BIGINT AS value, "
            "variance::DOUBLE AS variance FROM measured LEFT JOIN units ON units.label = geounit "
            f"LEFT JOIN answers ON {on}"
        ).fetchnumpy()
    unit, answer = (np.asarray(found[name], dtype=np.int64) for name in ("unit", "answer"))
    values = np.zeros((len(labels), size), dtype=np.int64)
    expected = spent.variances[spent.share_of, q]
    measured = np.isfinite(expected)
    ok = not np.ma.isMaskedArray(found["value"]) and bool((unit >= 0).all() and (answer >= 0).all())
    if not ok or len(np.unique(unit * size + answer)) != len(unit) or len(unit) != size * int(measured.sum()):
        raise OutputError(f"{path} does not hold each answer of a geounit once")
    if (found["variance"] == 0).any():
        raise ConfigError(f"{path}: variance is 0, so there was no noise, and the counts need no interval")
    if not np.allclose(found["variance"], expected[unit], rtol=_NEAR, atol=0):
        raise OutputError(f"{path} has variances that are not those of the plan of the release")
    values[unit, answer] = found["value"]
    return narrow(values)


def measurement_files(release: ReleaseFolder, folder: Path) -> FoundFiles:
    """The noisy measurement files that a release was made with, or that its run wrote.

    Raises
    ------
    OutputError
        If the folder holds others, or nothing tells that they are of the run.
    """
    told = release.manifest.get(MEASUREMENTS)
    if told is not None:
        found, due = find_files(folder, told["dataset"], tuple(told["states"])), told["files"]
    else:
        found = find_files(folder, None)
        run = measurements_of(release, found.folder.parent)
        due = {name.partition("/")[2]: checksum(run.file(name)) for name in run.files.values()}
    here = {path.relative_to(found.folder).as_posix(): checksum(path) for path in found.files()}
    if odd := sorted(name for name in {*here, *due} if here.get(name) != due.get(name)):
        raise OutputError(
            f"{folder} holds other measurements than the release was made with: {len(odd)} files are missing, are new "
            f"or were changed, such as {odd[0]}"
        )
    return found


def _read_files(release: ReleaseFolder, folder: Path, config: Configuration, spine: Spine) -> StoredMeasurements:
    if release.manifest.get("moved_blocks"):
        moved = len(release.manifest["moved_blocks"])
        raise OutputError(
            f"{release.folder}: the counts of {moved} blocks in water were moved to others, so that the geounits which "
            "were measured are not those of the release; the intervals in its tables have them right"
        )
    files = measurement_files(release, folder)
    read = read_measurements(files, config, "full-information", None, Stopwatch(lambda *_: None), silent)
    tree = read.premises.spine.tree
    same = np.array_equal(read.premises.spine.blocks, spine.blocks) and all(
        np.array_equal(here, there) for here, there in zip(tree.parents, spine.tree.parents, strict=True)
    )
    if not same:
        raise OutputError(f"{folder} holds measurements of other geounits than those of {release.folder}")
    return StoredMeasurements(read.once.levels, read.draws)


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
    configuration: Configuration
    stored: StoredMeasurements
    spine: Spine
    labels: tuple[Sequence[str], ...]  # identifiers of the geounits of each geolevel
    _solved: "dict[tuple[int, ...], tuple[list[TreeEstimate], dict[int, TreeEstimate]]]" = field(
        default_factory=dict, init=False
    )

    @property
    def schema(self) -> Schema:
        """Of the counts."""
        return self.configuration.schema

    @property
    def levels(self) -> tuple[str, ...]:
        """Geolevels from the root down."""
        return self.spine.tree.names

    @property
    def rule(self) -> str:
        """How variances of sums are found."""
        return "covariance of least squares on the tree"

    @property
    def notes(self) -> tuple[str, ...]:
        """What an interval covers and what not."""
        measured = zip(self.levels, self.stored.levels, strict=True)
        left_out = sorted(f"{name}/{q.name}" for name, level in measured for q in level.queries if not q.keeps_or_sums)
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
        covariance = np.zeros((len(forms), len(forms)))
        part_of = basis.part_of
        for part in range(len(basis.subsets)):
            precisions = [estimate.precision[:, part] for estimate in upward]
            weights = _weights_in(self.spine.tree, coordinates, np.flatnonzero(part_of == part))
            covariance += covariance_of_sums(self.spine.tree, precisions, weights, len(forms))
        if not np.isfinite(covariance).all():
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
            flags = tuple(attribute in kept for attribute in range(len(self.schema.shape)))
            measured = MarginMeasurements(tree, self.stored, self._totals(), self.schema.shape, flags)
            upward = measured.climb(0, 0, tree.units(0))
            self._solved[kept] = upward, {0: upward[0]}
        upward, known = self._solved[kept]
        for level in range(len(known), deepest + 1):
            known[level] = down(basis, upward[level], tree.parents[level], known[level - 1])
        return upward, known

    def _totals(self) -> dict[int, NDArray[np.int64]]:
        """By geolevel, totals that invariants make known of every unit by itself, from the released counts."""
        kept = kept_areas(self.configuration, self.spine)
        known = [] if kept is None else [level for level, sets in kept.sets.items() if sets.alone.all()]
        found = {level: np.zeros(len(self.labels[level]), dtype=np.int64) for level in known}
        for level, total in found.items():
            unit, _, count = self.released(level, ())
            np.add.at(total, unit, count)
        return found

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
        path = path_of(self.release, stem)
        with open_database() as db:
            open_file(db, "counts", path)
            list_labels(db, "units", self.labels[level])
            cell = cell_of([self.schema.attributes[i] for i in kept])
            with unreadable(OutputError(f"{path} is not readable as counts")):
                rows = db.execute(
                    f'SELECT units.place AS unit, {cell} AS cell, sum("count"::BIGINT)::BIGINT AS count FROM counts '
                    f"JOIN units ON units.label = geounit WHERE {cell} IS NOT NULL GROUP BY 1, 2"
                ).fetchnumpy()
        return tuple(np.asarray(rows[column], dtype=np.int64) for column in ("unit", "cell", "count"))


def open_tree(release: ReleaseFolder, noisy: Path) -> TreeMeasurements:
    """Open the measurements of a run and the spine of its release.

    Raises
    ------
    InputError, OutputError
        If it is no release of TopDown, the measurements are of another run, or files are missing, were changed or hold
        something else.
    """
    must_be_of_topdown(release)
    config = TOPDOWN.read(release.folder / MANIFEST)
    written = released_spine(release)
    run = None if MEASUREMENTS in release.manifest else measurements_of(release, noisy)
    # In the Census Bureau's layout, whoever wrote them.
    if run is None or any(f"/{DPQUERY}/" in f"/{name}" for name in run.files.values()):
        stored = _read_files(release, noisy, config, written)
    else:
        release.file(f"{SPINE}/{GEOUNITS}")
        spine, _ = read_shares(release.folder / SPINE, written)
        stored = read_measured(run, config, spine.levels, spend(config, spine).levels)
    labels = tuple(level.labels() for level in written.levels)
    return TreeMeasurements(release, config, stored, written, labels)


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


_ROUNDING: Final = 1e-12
"""A coordinate below this share of the largest is a rounding error of 0."""


def _weights_in(
    tree: Tree, coordinates: Mapping[tuple[int, int], Floats], places: NDArray[np.intp]
) -> dict[int, sparse.csr_array]:
    """Some coordinates of the weights of forms, by geolevel, as `covariance_of_sums` takes them."""
    least = _ROUNDING * max(float(np.abs(row).max()) for row in coordinates.values())
    found = {}
    for level in {level for level, _ in coordinates}:
        units = [unit for at, unit in coordinates if at == level]
        rows = np.stack([coordinates[level, unit][:, places].T.reshape(-1) for unit in units])
        place, column = np.nonzero(np.abs(rows) > least)
        shape = tree.units(level), rows.shape[1]
        found[level] = sparse.csr_array((rows[place, column], (np.array(units)[place], column)), shape=shape)
    return found
