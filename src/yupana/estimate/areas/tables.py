"""The published tables of a release of TopDown by area: counts, and the intervals beside them. Public."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Final

import numpy as np

from yupana.arrays import Floats, Ints
from yupana.errors import OutputError
from yupana.estimate.areas.queries import WeightedCells, cells_of_variable
from yupana.estimate.areas.released_areas import ReleasedAreas, file_of
from yupana.estimate.intervals.counted import Counted
from yupana.estimate.intervals.table_cells import cell_of, list_labels, open_file
from yupana.files.database import named, open_database, unreadable
from yupana.geography.kinds import BLOCK_WIDTH
from yupana.products.topdown.tables import BOUNDS, COUNTS, INTERVALS_OF, TABLES, TABULATION, levels_of
from yupana.release.release import ReleaseFolder

ENDS: Final = BOUNDS[:2]
"""The columns of an interval; its margin follows from these."""


@dataclass(frozen=True, slots=True)
class PublishedIntervals:
    """How the intervals of the tables were found.

    Attributes
    ----------
    method : str
    confidence : Fraction
    replicates : int
        Of Monte Carlo; 0 of other methods.
    """

    method: str
    confidence: Fraction
    replicates: int

    @property
    def words(self) -> str:
        """The method in words."""
        of = f" of {self.replicates} replicates" if self.replicates else ""
        return {"monte-carlo": "approximate Monte Carlo", "least-squares": "least squares"}.get(
            self.method, self.method
        ) + of


def published_intervals(release: ReleaseFolder) -> PublishedIntervals | None:
    """What the manifest says of the intervals of the tables; None if they have none.

    Raises
    ------
    OutputError
        If it says it in another way.
    """
    told = release.manifest.get("parameters", {}).get("intervals")
    if told is None or told.get("method", "none") == "none":
        return None
    try:
        confidence = Fraction(str(told["confidence"]))
        found = PublishedIntervals(str(told["method"]), confidence, int(told.get("replicates", 0)))
    except (KeyError, ValueError, TypeError, ZeroDivisionError):
        confidence = Fraction(0)
    if not 0 < confidence < 1:
        raise OutputError(f"{release.folder}: the manifest does not tell the confidence of the intervals of its tables")
    return found


@dataclass(frozen=True, slots=True, eq=False)
class TabulatedRows:
    """Rows of a long table, of some areas.

    Attributes
    ----------
    area : ndarray of int64, shape (rows,)
        By its place among those asked for.
    cell, count : ndarray of int64, shape (rows,)
        The cell of the schema in C order. Cells that are not there count 0.
    ends : ndarray of int64, shape (rows, 2), or None
        `ENDS`.
    """

    area: Ints
    cell: Ints
    count: Ints
    ends: Ints | None

    def sums(self, cells: WeightedCells, shape: tuple[int, ...], areas: int) -> Floats:
        """A weighted sum of cells of every area, of shape (areas,)."""
        weighted = cells.at(self.cell, shape) * self.count
        return np.asarray(cells.constant + np.bincount(self.area, weights=weighted, minlength=areas))


@dataclass(frozen=True, slots=True, eq=False)
class PublishedTables:
    """The tables of a release.

    Attributes
    ----------
    areas : ReleasedAreas
    words : Counted
        The schema and the tables that it gives.
    intervals : PublishedIntervals or None
    """

    areas: ReleasedAreas
    words: Counted
    intervals: PublishedIntervals | None

    @property
    def release(self) -> ReleaseFolder:
        """Where they lie."""
        return self.areas.release

    def has(self, kind: str) -> bool:
        """Whether the areas of a kind are tabulated."""
        return file_of(self.release, f"{TABULATION}/{kind}") is not None

    def rows(self, kind: str, codes: Sequence[str]) -> TabulatedRows:
        """The counts of all cells of some areas of a kind.

        They are those of its own table or, of a kind that is not tabulated, sums of those of its blocks.

        Raises
        ------
        OutputError
            If the release does not hold what is needed.
        """
        stem = next(
            (
                stem
                for stem in (f"{TABULATION}/{kind}", f"{COUNTS}/{kind}" if self.areas.published is None else "")
                if stem and file_of(self.release, stem) is not None
            ),
            None,
        )
        if stem is not None:
            return self._rows(stem, codes, np.arange(len(codes), dtype=np.int64))
        published = self.areas.published
        if published is None:
            raise OutputError(f"{self.release.folder} has no {COUNTS}/{kind}, which it must have; run yupana check")
        column = published.kinds[kind]
        place = {column.labels.index(code): at for at, code in enumerate(codes)}
        inside = np.flatnonzero(np.isin(column.index, list(place)))
        blocks = [f"{code:0{BLOCK_WIDTH}d}" for code in published.block[inside].tolist()]
        of_block = np.array([place[i] for i in column.index[inside].tolist()], dtype=np.int64)
        return self._rows(f"{TABULATION}/block", blocks, of_block)

    def _rows(self, stem: str, geounits: Sequence[str], area: Ints) -> TabulatedRows:
        """Rows of a file by geounit, each geounit in an area; several geounits of one area are added up."""
        name = file_of(self.release, stem)
        if name is None:
            raise OutputError(f"{self.release.folder} has no {stem}, which tells the counts that are asked for")
        path = self.release.file(name)
        attributes = self.words.schema.attributes
        with open_database() as db:
            columns = open_file(db, "tabulated", path)
            if columns[: len(attributes) + 2] != ["geounit", *(one.name for one in attributes), "count"]:
                raise OutputError(f"{path} is no tabulation of the schema that the manifest names")
            cell = cell_of(db, [(one.name, one.labels) for one in attributes])
            list_labels(db, "wanted", list(geounits))
            joins = "".join(f" JOIN l{k} ON l{k}.label = {named(one.name)}" for k, one in enumerate(attributes))
            ends = [end for end in ENDS if end in columns]
            picked = "".join(f", {named(end)}::BIGINT AS {named(end)}" for end in ends)
            with unreadable(OutputError(f"{path} is not readable as counts")):
                found = db.execute(
                    f'SELECT wanted.place AS place, {cell} AS cell, "count"::BIGINT AS number{picked} FROM tabulated '
                    f"JOIN wanted ON wanted.label = geounit{joins}"
                ).fetchnumpy()
        place, cells, count = (np.asarray(found[column], dtype=np.int64) for column in ("place", "cell", "number"))
        alone = len(ends) == len(ENDS) and len(area) == len(np.unique(area))
        bounds = np.stack([np.asarray(found[end], dtype=np.int64) for end in ENDS], axis=1) if alone else None
        return TabulatedRows(area[place], cells, count, bounds)

    def variables(self) -> dict[tuple[tuple[int, ...], bytes], tuple[str, str]]:
        """Which variable, by table, is a sum of cells, as `WeightedCells.key`, if the tables have intervals of it."""
        found: dict[tuple[tuple[int, ...], bytes], tuple[str, str]] = {}
        for table in self.words.tables:
            if self._file(table.name) is not None:
                for place, variable in enumerate(table.variables):
                    cells = cells_of_variable(table.member, place, self.words.schema)
                    found.setdefault(cells.key, (table.name, variable))
        return found

    def ends_of(self, kind: str, codes: Sequence[str], table: str, variables: Sequence[str]) -> Mapping[str, Ints]:
        """The intervals of variables of a table: for each an array of shape (areas, 2), of `ENDS`.

        Raises
        ------
        OutputError
            If the file is missing, or does not have them once for every area.
        """
        name = self._file(table)
        if name is None:
            raise OutputError(f"{self.release.folder} has no {TABLES}/{table}{INTERVALS_OF}")
        path = self.release.file(name)
        level = levels_of(self.areas.gazetteer.kinds)[kind]
        geocodes = [_short(code) if kind == "block" else code for code in codes]
        wanted = [f"{variable}_{end}" for variable in variables for end in ENDS]
        with open_database() as db:
            columns = open_file(db, "ends", path)
            if missing := [column for column in ("SUMLEV", "GEOCODE", *wanted) if column not in columns]:
                raise OutputError(f"{path} has no column {missing[0]}")
            list_labels(db, "wanted", geocodes)
            picked = "".join(f", {named(column)}::BIGINT AS {named(column)}" for column in wanted)
            with unreadable(OutputError(f"{path} is not readable as a table of intervals")):
                found = db.execute(
                    f"SELECT wanted.place AS place{picked} FROM ends JOIN wanted ON wanted.label = GEOCODE "
                    "WHERE SUMLEV = ?",
                    [level],
                ).fetchnumpy()
        place = np.asarray(found["place"], dtype=np.int64)
        if len(place) != len(codes) or len(np.unique(place)) != len(codes):
            raise OutputError(f"{path} does not have one row for every {kind} that is asked for; run yupana check")
        order = np.argsort(place)
        return {
            variable: np.stack([np.asarray(found[f"{variable}_{end}"], dtype=np.int64)[order] for end in ENDS], axis=1)
            for variable in variables
        }

    def _file(self, table: str) -> str | None:
        return file_of(self.release, str(Path(TABLES) / f"{table}{INTERVALS_OF}"))


def _short(block: str) -> str:
    """The 15 digits of a block: without that of the block group, which the block repeats."""
    return block[:11] + block[12:]
