"""Published tables as sums of measured cells: what a population group is measured in, and what its rows add up.

A published cell is a sum of measured cells of its group. That one statement decides its row, its variance and margin
of error, how a release is checked, what an interval is computed from, and which cells refine which.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Flags, Floats, Ints
from yupana.plan.measurement import Measurement
from yupana.plan.plan import Plan
from yupana.release.tables import Coded, RowTable

NUMBERS = ("COUNT", "VARIANCE", "MOE")

_ROUNDING: Final = 1e-9
"""What floating point may take from a margin."""

_N = TypeVar("_N", np.int64, np.float64)


class Cell(NamedTuple):
    """A row that every group of a table has."""

    # what the columns of its table say, such as ("18", "44", "1"); a whole number is written as one to Parquet, too
    labels: tuple[str | int, ...]
    # the measured cells it adds up. Their noise is independent, so its variance is theirs times their number.
    parts: tuple[int, ...]


@dataclass(frozen=True)
class Table:
    """A published table.

    Raises
    ------
    ValueError
        If a cell does not have a label for each column, stands twice, or adds up nothing or a cell twice.
    """

    name: str  # such as T02001
    columns: tuple[str, ...]  # those that tell its cells apart, such as AGESTART, AGEEND, SEX
    cells: tuple[Cell, ...]  # in the order of the rows of a group

    def __post_init__(self) -> None:
        twice = [labels for labels, times in Counter(cell.labels for cell in self.cells).items() if times > 1]
        if twice or any(len(cell.labels) != len(self.columns) for cell in self.cells):
            raise ValueError(f"{self.name}: every cell needs labels of its own, one for each column")
        if any(not cell.parts or len(set(cell.parts)) != len(cell.parts) for cell in self.cells):
            raise ValueError(f"{self.name}: every cell adds up measured cells, each once")


@dataclass(frozen=True)
class Choice:
    """What a group is measured in and shown, if it is given this much detail.

    Raises
    ------
    ValueError
        If measured cells are not numbered from 0 without a gap, a published cell adds up one that is not measured, or
        no table shows every measured cell by itself.
    """

    finest: tuple[int, ...]  # of each cell of the family's finest choice the measured cell of this one that holds it
    tables: tuple[Table, ...]  # all that show the group

    def __post_init__(self) -> None:
        measured = self.measured
        if set(self.finest) != set(range(measured)):
            raise ValueError("measured cells are numbered from 0, and each holds a cell of the finest choice")
        if any(not 0 <= part < measured for table in self.tables for cell in table.cells for part in cell.parts):
            raise ValueError("a published cell adds up cells that are measured")
        if not any(len(_alone(table)) == measured for table in self.tables):
            raise ValueError("one table of a choice shows every measured cell by itself")

    @property
    def measured(self) -> int:
        """How many cells a group is measured in."""
        return max(self.finest, default=-1) + 1

    @cached_property
    def own(self) -> Table:
        """The table that shows every measured cell by itself."""
        return next(table for table in self.tables if len(_alone(table)) == self.measured)

    @cached_property
    def alone(self) -> tuple[Cell, ...]:
        """The rows of `own` that show the measured cells, in the order in which these are numbered."""
        shown = _alone(self.own)
        return tuple(shown[number] for number in range(self.measured))

    def __getitem__(self, table: str) -> Table:
        """Find a table by its name, or raise KeyError."""
        for found in self.tables:
            if found.name == table:
                return found
        raise KeyError(table)


def _alone(table: Table) -> dict[int, Cell]:
    """The first row of a table that shows a measured cell by itself, by measured cell."""
    return {cell.parts[0]: cell for cell in reversed(table.cells) if len(cell.parts) == 1}


@dataclass(frozen=True)
class Family:
    """Tables that are measured under one name, of which a population group gets those of one choice.

    Raises
    ------
    ValueError
        If a choice is not of the cells of the finest, or two tables of one name have other rows.
    """

    name: str  # that the measurements of a plan call their table: PH4, T03
    keys: tuple[str, ...]  # the columns that name a population group
    choices: tuple[Choice, ...]  # the coarsest first, the finest last
    numbers: tuple[str, ...] = NUMBERS  # the columns of numbers, among COUNT, NOISE_DISTRIBUTION, VARIANCE and MOE

    def __post_init__(self) -> None:
        if {len(choice.finest) for choice in self.choices} != {self.choices[-1].measured}:
            raise ValueError(f"{self.name}: every choice tells which of its cells holds each cell of the finest")
        rows = {(table.name, table.columns, tuple(cell.labels for cell in table.cells)) for table in self._every}
        if len(rows) != len(self.tables):
            raise ValueError(f"{self.name}: tables of one name have the same columns and rows, whatever these add up")

    @property
    def _every(self) -> Iterator[Table]:
        return (table for choice in self.choices for table in choice.tables)

    @cached_property
    def tables(self) -> Mapping[str, tuple[str, ...]]:
        """By name of its tables, from the coarsest choice on, all columns in order."""
        return {table.name: (*self.keys, *table.columns, *self.numbers) for table in self._every}

    @property
    def measured(self) -> int:
        """The most cells a group is measured in."""
        return max(choice.measured for choice in self.choices)

    def having(self, table: str) -> tuple[Choice, ...]:
        """The choices that a table is shown in."""
        return tuple(choice for choice in self.choices if any(shown.name == table for shown in choice.tables))


@dataclass(frozen=True, eq=False)
class MovedCounts:
    """What is known of counts that were moved after they were measured."""

    # shape (groups, measured cells): unbiased estimates that the counts are near to, whose margins are known
    values: Floats
    # shape (groups, measured cells): of the estimates that the counts were made of, before they were made whole numbers
    # and none negative
    variances: Floats
    alone: Flags  # shape (groups,): whether the values are the group's own measurement


def without_negative(counts: Ints) -> Ints:
    """Noisy counts, those below 0 set to 0; no count comes to lie farther from a true one, which is not negative."""
    return np.maximum(counts, 0)


@dataclass(frozen=True, eq=False)
class Groups:
    """Noisy counts of some population groups in the measured cells of one choice: what the door lets out."""

    family: Family
    choice: int  # which of the family's
    region_type: str  # the kind of their areas
    # area, iteration: the codes of each group's area and iteration; `places` have shape (groups,)
    area: Coded
    iteration: Coded
    counts: Ints  # shape (groups, measured cells)
    measurement: Measurement  # whose noise every count has
    # of counts that are not as they were measured. Cells of a group are independent, as measured cells are.
    estimated: MovedCounts | None = None


def lay_out(families: Iterable[Family], groups: Iterable[Groups], plan: Plan, kinds: Sequence[str]) -> list[RowTable]:
    """Lay out every table of some families: a row for each group and cell, with its noise and margin of error.

    Rows are ordered by kind of area, area, iteration and cell. What is held meanwhile are the published counts.

    Parameters
    ----------
    groups : iterable of Groups
        Of these families; each group at most once in a table. Read once, so that it may be a stream.
    plan : Plan
        Of the margins of error.
    kinds : sequence of str
        The kinds of areas, in order.
    """
    written = {table: (family, table) for family in families for table in family.tables}
    pieces: dict[str, list[_Piece]] = {table: [] for table in written}
    noise = _Noise(plan)
    for found in groups:
        if len(found.counts):
            for table in found.family.choices[found.choice].tables:
                pieces[table.name].append(_piece(found, table, noise))
    codes = _Codes([piece.of for of_table in pieces.values() for piece in of_table], kinds)
    return [_rows(*written[table], pieces.pop(table), codes, noise) for table in list(written)]


class _Piece(NamedTuple):
    """What some groups show in one table: counts by group and cell, and of each cell the place of its noise.

    The places have shape (cells,), or (groups, cells) where the noise is that of estimates.
    """

    of: Groups
    table: Table
    counts: Ints
    noise: Ints


def _piece(groups: Groups, table: Table, noise: "_Noise") -> _Piece:
    counts = _sums(groups.counts, table)
    terms = np.array([noise.place(groups.measurement, len(cell.parts)) for cell in table.cells])
    if (found := groups.estimated) is not None:
        values, variances = _sums(found.values, table), _sums(found.variances, table)
        terms = noise.places(groups.measurement, counts, values, variances, np.where(found.alone[:, None], terms, -1))
    return _Piece(groups, table, counts, terms)


def _sums(measured: NDArray[_N], table: Table) -> NDArray[_N]:
    """Of every group the cells of a table, from its measured cells."""
    found = np.empty((len(measured), len(table.cells)), dtype=measured.dtype)
    single = [place for place, cell in enumerate(table.cells) if len(cell.parts) == 1]
    found[:, single] = measured[:, [table.cells[place].parts[0] for place in single]]
    for place, cell in enumerate(table.cells):
        if len(cell.parts) > 1:
            found[:, place] = measured[:, list(cell.parts)].sum(axis=1)
    return found


def _rows(family: Family, name: str, pieces: list[_Piece], codes: "_Codes", noise: "_Noise") -> RowTable:
    table = family.having(name)[0][name]
    groups, cells = sum(len(piece.counts) for piece in pieces), len(table.cells)
    area, iteration = (np.empty(groups, dtype=np.int32) for _ in range(2))
    counts, noises = np.empty((groups, cells), dtype=np.int64), np.empty((groups, cells), dtype=np.int32)
    start = 0
    for piece in pieces:
        some = slice(start, start := start + len(piece.counts))
        area[some], iteration[some] = codes.places(piece.of)
        counts[some], noises[some] = piece.counts, piece.noise
    order = np.lexsort((iteration, area))
    terms = noises[order].ravel()
    area, iteration = area[order].repeat(cells), iteration[order].repeat(cells)
    cell = np.tile(np.arange(cells, dtype=np.int32), groups)
    columns: dict[str, Coded | Ints] = {
        "REGION_ID": Coded(codes.ids, area),
        "REGION_TYPE": Coded(codes.types, area),
        "ITERATION_CODE": Coded(codes.iterations, iteration),
        **{column: _labels([c.labels[i] for c in table.cells], cell) for i, column in enumerate(table.columns)},
        "COUNT": counts[order].ravel(),
        "NOISE_DISTRIBUTION": Coded(noise.laws, terms),
        "VARIANCE": Coded(noise.variances, terms),
        "MOE": Coded(noise.margins, terms),
    }
    return RowTable(name, {column: columns[column] for column in family.tables[name]})


def _labels(labels: Sequence[str | int], cell: NDArray[np.int32]) -> Coded | Ints:
    numbers = [label for label in labels if isinstance(label, int)]
    return np.array(numbers, dtype=np.int64)[cell] if numbers else Coded([str(label) for label in labels], cell)


class _Noise:
    """The few kinds of noise of a release: of sums of so many cells of a measurement, and of estimates."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._found: dict[tuple[Measurement, int], int] = {}
        self.laws: list[str] = []
        self.variances: list[float] = []
        self.margins: list[float] = []

    def place(self, measurement: Measurement, cells: int) -> int:
        """Where the noise of a sum of so many cells stands in the lists."""
        if (measurement, cells) not in self._found:
            variance, margin = float(measurement.variance * cells), self._plan.margin(measurement, cells)
            self._found[measurement, cells] = self._add(measurement.law.name, variance, margin)
        return self._found[measurement, cells]

    def places(self, measurement: Measurement, counts: Ints, values: Floats, variances: Floats, own: Ints) -> Ints:
        """Where the noise of moved counts stands in the lists; arrays of shape (groups, cells).

        The margin of what a count was made of, with how far the count was moved, holds for the count (docs/margins.md,
        "Estimates").

        Parameters
        ----------
        values, variances : float arrays
            As `MovedCounts` has them.
        own : int array
            Where the noise of values stands that are the measurement itself; -1 of others.
        """
        # A true count is not negative, so to move a negative estimate to 0 takes it no farther away.
        moved = np.minimum(np.abs(counts - values), np.abs(counts - np.maximum(values, 0)))
        is_own = own >= 0
        distinct, which = np.unique(variances, return_inverse=True)
        bounds = np.array([self._plan.margin_of_estimate(variance) for variance in distinct.tolist()])
        base = np.where(is_own, np.array(self.margins)[own], bounds[which].reshape(own.shape))
        # Counts are whole, so their errors are.
        margins = np.floor(base + moved + _ROUNDING) if self._plan.margins == "exact" else base + moved
        pairs, which = np.unique(np.stack([variances, margins]).reshape(2, -1), axis=1, return_inverse=True)
        first = len(self.laws)
        for variance, margin in pairs.T.tolist():
            self._add(measurement.law.name, variance, margin)
        return np.asarray(first + which, dtype=np.int64).reshape(own.shape)

    def _add(self, law: str, variance: float, margin: float) -> int:
        self.laws.append(law)
        self.variances.append(variance)
        self.margins.append(margin)
        return len(self.laws) - 1


class _Codes:
    """The areas and iterations of all groups in the order of rows, and where those of each group stand."""

    def __init__(self, groups: Iterable[Groups], kinds: Sequence[str]) -> None:
        areas: dict[str, dict[int, Sequence[Any]]] = {kind: {} for kind in kinds}
        iterations: dict[int, Sequence[Any]] = {}
        for found in groups:
            areas[found.region_type].setdefault(id(found.area.values), found.area.values)
            iterations.setdefault(id(found.iteration.values), found.iteration.values)
        self.ids: list[str] = []
        self.types: list[str] = []
        self._areas: dict[tuple[str, int], NDArray[np.int32]] = {}
        for kind, lists in areas.items():
            ids, places = _merged(lists)
            self._areas |= {(kind, of): np.int32(len(self.ids)) + place for of, place in places.items()}
            self.ids += ids
            self.types += [kind] * len(ids)
        self.iterations, self._iterations = _merged(iterations)

    def places(self, groups: Groups) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Of each group the place of its area, and that of its iteration."""
        area = self._areas[groups.region_type, id(groups.area.values)]
        iteration = self._iterations[id(groups.iteration.values)]
        return area[groups.area.places], iteration[groups.iteration.places]


def _merged(lists: Mapping[int, Sequence[Any]]) -> tuple[list[str], dict[int, NDArray[np.int32]]]:
    """One sorted list of all texts in some lists, and by list the place of each of its texts."""
    merged, place = np.unique(np.concatenate([np.array([], dtype=str), *lists.values()]), return_inverse=True)
    ends = np.cumsum([len(values) for values in lists.values()])
    parts = np.split(place.astype(np.int32), ends[:-1]) if lists else []
    return merged.tolist(), dict(zip(lists, parts, strict=True))
