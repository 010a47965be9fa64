"""Least squares on a written spine as evidence: covariances of any sums of answers over geounits. Public.

Only the attributes that a query names are kept: all measurements are summed over the others first, which loses nothing
(docs/intervals.md), so that the estimate costs as much as the query is fine.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Floats
from yupana.errors import ConfigError, OutputError
from yupana.estimate.intervals.counted import chosen_places, kept_by
from yupana.estimate.intervals.forms import Linear
from yupana.estimate.intervals.noisy_measurements import NoisyAnswers, NoisyTexts, is_of_bureau, read_files
from yupana.estimate.intervals.query import Selection
from yupana.estimate.intervals.table_cells import cell_of, list_labels, open_file
from yupana.estimate.topdown_release import must_be_of_topdown, released_spine, schema_of
from yupana.files.database import named, open_database, unreadable
from yupana.geography.spine_files import WrittenSpine
from yupana.products.gate import open_release
from yupana.products.topdown.verify import MEASUREMENTS, NOISY
from yupana.release.release import ReleaseFolder
from yupana.topdown.configuration import OF_AREAS
from yupana.topdown.queries import TOTAL, Schema, margin
from yupana.topdown.tree.basis import Basis
from yupana.topdown.tree.least_squares import TreeAnswers, TreeEstimate, combined, covariance_of_sums, down, own, summed

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
    """The noisy measurements of a run of TopDown, with the spine and the invariants of its release.

    Attributes
    ----------
    release : ReleaseFolder
    noisy : NoisyAnswers
    schema : Schema
    levels : tuple of str
        Geolevels from the root down.
    spine : WrittenSpine
    labels : tuple of sequence of str
        Identifiers of the geounits of each geolevel.
    """

    release: ReleaseFolder
    noisy: NoisyAnswers
    schema: Schema
    levels: tuple[str, ...]
    spine: WrittenSpine
    labels: tuple[Sequence[str], ...]
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
        name = next((name for name in (f"{stem}.csv", f"{stem}.parquet") if name in self.release.files.values()), None)
        if name is None:
            raise OutputError(f"{self.release.folder} has no {stem}, which it must have; run yupana check")
        with open_database() as db:
            open_file(db, "counts", self.release.file(name))
            list_labels(db, "units", self.labels[level])
            attributes = [self.schema.attributes[i] for i in kept]
            cell = cell_of(db, [(attribute.name, attribute.labels) for attribute in attributes])
            joins = "".join(f" JOIN l{k} ON l{k}.label = {named(a.name)}" for k, a in enumerate(attributes))
            with unreadable(OutputError(f"{self.release.folder / name} is not readable as counts")):
                rows = db.execute(
                    f'SELECT units.place AS unit, {cell} AS cell, sum("count"::BIGINT)::BIGINT AS count FROM counts '
                    f"JOIN units ON units.label = geounit{joins} GROUP BY 1, 2"
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
    if measurements is None or is_of_bureau(measurements):
        answers: NoisyAnswers = read_files(release, noisy, measurements, spine)
    else:
        answers = NoisyTexts(measurements, schema, levels, labels)
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
