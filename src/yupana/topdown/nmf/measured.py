"""The measurements of noisy measurement files, with a variance for every row, as an estimate reads them. Public."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Flags, Floats, Ints
from yupana.errors import InputError
from yupana.files.regular import take_room
from yupana.files.temporary import temporary_folder
from yupana.topdown.configuration import Configuration
from yupana.topdown.draws import Drawn, KeepsNothing, Shape
from yupana.topdown.nmf.layout import DPQUERY
from yupana.topdown.nmf.rows import LevelRows, list_kinds, named_as, query_of
from yupana.topdown.queries import Factor, Query


@dataclass(frozen=True, slots=True, eq=False)
class ReadLevel:
    """What the geounits of a geolevel were measured with.

    Attributes
    ----------
    queries : tuple of Query
        As the configuration calls them.
    names : tuple of str
        As the files do.
    variances : ndarray of float64, shape (units, queries)
        Infinite where there is no measurement.
    """

    queries: tuple[Query, ...]
    names: tuple[str, ...]
    variances: Floats

    @property
    def measured(self) -> Flags:
        """Which units were measured."""
        return np.asarray(np.isfinite(self.variances).all(axis=1) & bool(self.queries))


def read_level(rows: LevelRows | None, config: Configuration, level: str, units: int) -> ReadLevel:
    """Read what a geolevel was measured with, and check it.

    Parameters
    ----------
    rows : LevelRows or None
        None where there are no files. Geounits are those of the table "units" of the database.
    config : Configuration
        Tells the queries of the geolevel.
    level : str
    units : int
        How many geounits the geolevel has.

    Raises
    ------
    InputError
        If a query is none of the configuration's, a geounit is not listed among the constraints or is there twice, a
        variance is no positive number, or a geounit has some of the queries alone.
    """
    expected = {query.factors: query for query, _ in config.measured(level)}
    place = rows.place if rows is not None else f"{DPQUERY} of {level}"
    queries, names = _queries(rows, config, expected, place) if rows is not None else ((), ())
    if rows is not None and (missing := [q.name for q in expected.values() if q not in queries]):
        raise InputError(f"{place}: the configuration measures {', '.join(missing)} there, and the files do not")
    variances = np.full((units, len(queries)), np.inf)
    if rows is not None:
        _fill(rows, names, variances)
    found = ReadLevel(queries, names, variances)
    partly = np.isfinite(variances).any(axis=1) & ~found.measured
    if rows is not None and partly.any():
        raise InputError(
            f"{place}: {_code(rows, partly)} lacks some of the queries of its geolevel; so of {int(partly.sum()):,} "
            "geounits in all"
        )
    return found


def _queries(
    rows: LevelRows, config: Configuration, expected: Mapping[tuple[Factor, ...], Query], place: str
) -> tuple[tuple[Query, ...], tuple[str, ...]]:
    found: dict[Query, str] = {}
    faults = []
    for kind in rows.kinds:
        query = query_of(kind, DPQUERY, config.schema, config.recodes)
        if isinstance(query, str):
            faults.append(query)
        elif not named_as(query, kind, config.schema):
            faults.append(f"{kind.name}: its axes {', '.join(kind.axes)} are those of another query")
        elif query.factors not in expected:
            faults.append(f"{kind.name}: is no query that the configuration measures there")
        elif expected[query.factors] in found:
            faults.append(f"{kind.name} and {found[expected[query.factors]]} are the same query")
        else:
            found[expected[query.factors]] = kind.name
    if faults:
        raise InputError("\n".join([f"{place}: holds other queries:", *(f"  {fault}" for fault in faults)]))
    ordered = tuple(query for query in expected.values() if query in found)
    return ordered, tuple(found[query] for query in ordered)


def _fill(rows: LevelRows, names: Sequence[str], variances: Floats) -> None:
    """Put the variance of each row in its place, each once."""
    list_kinds(rows, names)
    found = rows.read(
        "SELECT coalesce(units.place, -1) AS unit, kinds.place AS kind, variance, r.geocode AS geocode FROM "
        f"(SELECT geocode, name, variance FROM {rows.relation}) r JOIN kinds ON kinds.name = r.name "
        "LEFT JOIN units ON units.geocode = r.geocode"
    )
    unit, kind, variance = found["unit"], found["kind"], np.asarray(found["variance"], dtype=np.float64)
    if (unknown := unit < 0).any():
        odd = found["geocode"][unknown][0]
        raise InputError(f"{rows.place}: geounit {odd} is measured, and the Constraint files do not list it")
    if (wrong := ~(np.isfinite(variance) & (variance > 0))).any():
        at = int(np.flatnonzero(wrong)[0])
        raise InputError(
            f"{rows.place}, geocode {found['geocode'][at]}: {names[kind[at]]} has the variance {variance[at]:g}; it "
            f"must be a positive number; so of {int(wrong.sum()):,} rows in all"
        )
    key = np.sort(unit * len(names) + kind)
    if (twice := key[1:] == key[:-1]).any():
        again = int(key[1:][twice][0])
        code = _code(rows, np.arange(len(variances)) == again // len(names))
        raise InputError(f"{rows.place}: {code} has {names[again % len(names)]} twice")
    variances[unit, kind] = variance


def _code(rows: LevelRows, odd: Flags) -> str:
    """The geocode of the first of some units."""
    return rows.code(int(np.flatnonzero(odd)[0]))


class FileDraws(KeepsNothing):
    """The answers of all geounits, taken out of the files into a scratch file, in the order of the tree."""

    def __init__(self) -> None:
        self._levels: list[NDArray[np.int32]] = []
        self._offsets: list[Ints] = []

    def add_sum(self) -> None:
        """Add a geolevel of one unit, whose answers are the sums of those of the next; it must be added first."""
        self._levels.append(np.zeros((0, 0), dtype=np.int32))
        self._offsets.append(np.zeros(1, dtype=np.int64))

    def add(self, rows: LevelRows | None, level: ReadLevel, tell: Callable[[int, int], None]) -> None:
        """Read the answers of the next geolevel; each row once, whatever their order.

        Raises
        ------
        InputError
            If a row has more or fewer numbers than its query, or one of them does not fit into 32 bits.
        OSError
            If the disk of the temporary folder is full.
        """
        offsets = np.cumsum([0, *(query.size for query in level.queries)]).astype(np.int64)
        values = _scratch(len(level.variances), int(offsets[-1]))
        self._levels.append(values)
        self._offsets.append(offsets)
        if rows is None or not level.queries:
            return
        done = 0
        for q, unit, numbers in rows.answers(level.names, [query.size for query in level.queries]):
            if numbers.dtype.itemsize > values.itemsize and _is_wide(numbers):
                raise InputError(f"{rows.place}: {level.names[q]} holds a number that is no count of people")
            # Rows mostly lie in the order of the tree.
            in_order = len(unit) > 0 and bool((np.diff(unit) == 1).all())
            where = slice(int(unit[0]), int(unit[-1]) + 1) if in_order else unit
            values[where, offsets[q] : offsets[q + 1]] = numbers
            done += len(unit)
            tell(done, int(level.measured.sum()) * len(level.queries))

    def has_draws(self, level: int, first: int) -> bool:
        """Yes: all were drawn, by whoever made the files."""
        del level, first
        return True

    def load_draws(self, level: int, first: int, shapes: Sequence[Shape]) -> Drawn | None:
        """The answers of the geounits of a level from ``first`` on."""
        values, offsets = self._levels[level], self._offsets[level]
        if not len(values):
            # A sum of noisy answers; the scratch file of the next geolevel is that of the units it adds up.
            below, offsets = self._levels[level + 1], self._offsets[level + 1]
            values = below.sum(axis=0, dtype=np.int64)[None]
            return tuple(values[:, offsets[q] : offsets[q] + shape[1]] for q, shape in enumerate(shapes))
        last = first + shapes[0][0] if shapes else first
        return tuple(values[first:last, offsets[q] : offsets[q + 1]] for q in range(len(shapes)))


def summed_level(level: ReadLevel) -> ReadLevel:
    """What one unit above those of a geolevel was measured with, if their answers are added up."""
    return replace(level, variances=level.variances.sum(axis=0, keepdims=True))


def unmeasured_level() -> ReadLevel:
    """A geolevel of one unit of which nothing was measured."""
    return ReadLevel((), (), np.zeros((1, 0)))


def _is_wide(numbers: NDArray[np.integer]) -> bool:
    """Whether some number does not fit into 32 bits."""
    return bool(numbers.max(initial=0) >= 1 << 31 or numbers.min(initial=0) < -(1 << 31))


def _scratch(units: int, width: int) -> NDArray[np.int32]:
    """An array in a file that is gone when nobody holds it; its room on the disk is taken before."""
    if not units * width:
        return np.zeros((units, width), dtype=np.int32)
    with tempfile.TemporaryFile(dir=temporary_folder()) as file:
        take_room(file.fileno(), 0, 4 * units * width)
        return np.memmap(file, dtype=np.int32, mode="r+", shape=(units, width))
