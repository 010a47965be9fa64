"""The measurements of noisy measurement files, with a variance for every row, and what they cost. Public."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Flags, Floats, Ints
from yupana.errors import InputError
from yupana.files.regular import take_room
from yupana.files.temporary import temporary_folder
from yupana.geography.spine import Spine
from yupana.plan.measurement import Measurement, Mechanism
from yupana.plan.plan import Plan
from yupana.privacy.exact import INFINITE
from yupana.release.lines import Texts
from yupana.topdown.budget import LevelSpending
from yupana.topdown.configuration import Configuration
from yupana.topdown.descent.checkpoint import Drawn, Keeper, Shape
from yupana.topdown.nmf.constraints import siblings
from yupana.topdown.nmf.layout import DPQUERY
from yupana.topdown.nmf.rows import LevelRows, list_kinds, named_as, query_of
from yupana.topdown.plan import make_measurement, measurement_name, measurement_with
from yupana.topdown.queries import Factor, Query


@dataclass(frozen=True, slots=True, eq=False)
class ReadLevel:
    """What the geounits of a geolevel were measured with."""

    queries: tuple[Query, ...]  # as the configuration calls them
    names: tuple[str, ...]  # as the files do; none where there are no files
    variances: Floats  # shape (units, queries): infinite where there is no measurement

    @property
    def measured(self) -> Flags:
        """Which units were measured."""
        return np.asarray(np.isfinite(self.variances).all(axis=1) & bool(self.queries))


def read_level(rows: LevelRows | None, config: Configuration, level: str, units: int) -> ReadLevel:
    """Read what a geolevel was measured with, and check it.

    Parameters
    ----------
    rows : LevelRows or None
        None where there are no files, as every geounit was bypassed. Geounits are those of the table "units" of the
        database.
    config : Configuration
        Tells the queries of the geolevel.
    units : int
        How many geounits the geolevel has.

    Raises
    ------
    InputError
        If a query is none of the configuration's, a geounit is not listed among the constraints or is there twice, a
        variance is no positive number, or a geounit has some of the queries alone.
    """
    queries = tuple(query for query, _ in config.measured(level))
    variances = np.full((units, len(queries)), np.inf)
    if rows is None:
        return ReadLevel(queries, (), variances)
    name_of = _names(rows, config, {query.factors: query for query in queries})
    if missing := [query.name for query in queries if query not in name_of]:
        raise InputError(f"{rows.place}: the configuration measures {', '.join(missing)} there, and the files do not")
    names = tuple(map(name_of.__getitem__, queries))
    _fill(rows, names, variances)
    found = ReadLevel(queries, names, variances)
    partly = np.isfinite(variances).any(axis=1) & ~found.measured
    if partly.any():
        raise InputError(
            f"{rows.place}: {_code(rows, partly)} lacks some of the queries of its geolevel; so of "
            f"{int(partly.sum()):,} geounits in all"
        )
    return found


def _names(rows: LevelRows, config: Configuration, expected: Mapping[tuple[Factor, ...], Query]) -> dict[Query, str]:
    """What the files call queries."""
    found: dict[Query, str] = {}
    faults = []
    for kind in rows.kinds:
        query = query_of(kind, config.schema, config.recodes)
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
        raise InputError("\n".join([f"{rows.place}: holds other queries:", *(f"  {fault}" for fault in faults)]))
    return found


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


class FileDraws(Keeper):
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
        if rows is None:
            return
        done = 0
        for q, unit, numbers in rows.answers(level.names, [query.size for query in level.queries]):
            if numbers.dtype.itemsize > values.itemsize and not (
                numbers.min(initial=0) >= -(1 << 31) and numbers.max(initial=0) < 1 << 31
            ):
                raise InputError(f"{rows.place}: {level.names[q]} holds a number that is no count of people")
            # Rows mostly lie in the order of the tree.
            in_order = len(unit) > 0 and bool((np.diff(unit) == 1).all())
            where = slice(int(unit[0]), int(unit[-1]) + 1) if in_order else unit
            values[where, offsets[q] : offsets[q + 1]] = numbers
            done += len(unit)
            tell(done, int(level.measured.sum()) * len(level.queries))

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


def _scratch(units: int, width: int) -> NDArray[np.int32]:
    """An array in a file that is gone when nobody holds it; its room on the disk is taken before."""
    if not units * width:
        return np.zeros((units, width), dtype=np.int32)
    with tempfile.TemporaryFile(dir=temporary_folder()) as file:
        take_room(file.fileno(), 0, 4 * units * width)
        return np.memmap(file, dtype=np.int32, mode="r+", shape=(units, width))


_NEAR = 1e-6
"""How far, relatively, losses may differ that were read from variances of 24 binary digits."""


@dataclass(frozen=True, slots=True, eq=False)
class SpentByFiles:
    """What every geolevel was measured with, as far as files tell."""

    levels: tuple[LevelSpending, ...]  # units of the same variances share a position in place of a share of a budget
    exact: bool  # whether every variance is one of the configuration, to the digits that the files have

    def lost(self, level: int) -> tuple[Fraction, ...]:
        """What a unit of each position lost in all its measurements, under bounded neighbours."""
        spent = self.levels[level]
        rows = (spent.measurements.get(position, ()) for position in range(len(spent.weights)))
        return tuple(sum((Fraction(m.budget) for m in row), Fraction(0)) for row in rows)


def spent_by(config: Configuration, levels: Sequence[tuple[str, ReadLevel]]) -> SpentByFiles:
    """Make classes of units with the same variances.

    Variances in the files are rounded to 24 binary digits. Where rounding one that the configuration can have, on any
    spine whose only children gave up their shares, gives that of the files, it is taken in its place.

    Parameters
    ----------
    levels : sequence of (str, ReadLevel)
        By geolevel, whose queries and passes are those of the level so called.

    Raises
    ------
    InputError
        If noise is not Gaussian, and a variance is none of the configuration's.
    """
    found, all_exact = [], True
    for name, level in levels:
        classes, share_of = _classes(level.variances)
        known = _possible(config, name)
        measurements: dict[int, tuple[Measurement, ...]] = {}
        for position, row in enumerate(classes):
            if not np.isfinite(row).all():
                continue
            exact = [known.get((query, float(np.float32(row[q])))) for q, query in enumerate(level.queries)]
            all_exact &= None not in exact
            measurements[position] = tuple(
                _measured(config, name, query, row[q]) if one is None else one
                for q, (query, one) in enumerate(zip(level.queries, exact, strict=True))
            )
            row[:] = [float(m.variance) for m in measurements[position]]
        with np.errstate(divide="ignore"):
            weights = np.where(np.isfinite(classes), 1 / classes, 0.0)
        ordered = config.passes[name].estimate if level.queries else ()
        passes = tuple(tuple(level.queries.index(q) for q in of) for of in ordered)
        found.append(LevelSpending(level.queries, share_of, measurements, weights, classes, passes or ((),)))
    return SpentByFiles(tuple(found), all_exact)


def _classes(variances: Floats) -> tuple[Floats, NDArray[np.int32]]:
    """The different rows, and which of them each row is."""
    if not variances.shape[1]:
        return variances[:1].copy(), np.zeros(len(variances), dtype=np.int32)
    rows = np.ascontiguousarray(variances)
    packed = rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).reshape(-1)
    _, first, place = np.unique(packed, return_index=True, return_inverse=True)
    return rows[first].copy(), place.astype(np.int32)


def _possible(config: Configuration, name: str) -> dict[tuple[Query, float], Measurement]:
    """By query and rounded variance, the measurements of units that got the shares of only children."""
    if config.budget == INFINITE:
        return {}
    below = config.levels[config.levels.index(name) :]
    found = {}
    for share in accumulate(config.shares[level] for level in below):
        for query, part in config.measured(name) if share else ():
            measurement = make_measurement(config, name, query, share, part)
            found[query, float(np.float32(float(measurement.variance)))] = measurement
    return found


def _measured(config: Configuration, level: str, query: Query, variance: float) -> Measurement:
    """The measurement that a variance tells, where it is none of the configuration's."""
    if config.mechanism is not Mechanism.ZCDP:
        raise InputError(f"{level}: the variance {variance:g} of {query.name} is none of the configuration's")
    name = f"{measurement_name(level, query)} at variance {variance!r}"
    return measurement_with(config, level, query, name, 1 / Fraction(variance))


def losses_of(plan: Plan) -> tuple[Fraction, Fraction]:
    """The least and the most that was lost along a path from the root to a block, under bounded neighbours."""
    sums = [sum((Fraction(plan.measurements[i].budget) for i in path), Fraction(0)) for path in plan.paths]
    return min(sums), max(sums)


def with_shares(spine: Spine, spent: SpentByFiles, total: Fraction) -> Spine:
    """The spine with the share of every geounit: what it lost, in parts of a total.

    Units that have no share at a geolevel which is measured gave it up.
    """
    lost = [spent.lost(level) for level in range(len(spine.levels))]
    shares = tuple(dict.fromkeys(loss / total for of in lost for loss in of))
    place = {share: i for i, share in enumerate(shares)}
    levels = []
    for number, (level, losses, of) in enumerate(zip(spine.levels, lost, spent.levels, strict=True)):
        index = np.array([place[loss / total] for loss in losses], dtype=np.int32)[of.share_of]
        gave_up = np.array([not loss for loss in losses], dtype=np.bool_)[of.share_of]
        bypassed = gave_up & bool(number and of.queries)
        levels.append(replace(level, share=index, bypassed=bypassed))
    return replace(spine, levels=tuple(levels), shares=shares)


def refuse_missing(
    spine: Spine, config: Configuration, spent: SpentByFiles, due: Fraction, geocodes: Mapping[str, Texts]
) -> None:
    """Refuse geounits without a measurement whose share went nowhere.

    An only child is taken to have given up its share. A unit with siblings is, if every path from the root to a block
    through it lost what is due, and holds a unit that lost more than others of its geolevel.

    Parameters
    ----------
    due : Fraction
        What a path lost along which nothing is missing.
    geocodes : mapping of str to ndarray of bytes

    Raises
    ------
    InputError
    """
    tree = spine.tree
    losses = [np.array([float(loss) for loss in spent.lost(i)])[of.share_of] for i, of in enumerate(spent.levels)]
    blocks = tree.units(len(losses) - 1)
    of_block, took = np.zeros(blocks), np.zeros(blocks, dtype=np.bool_)
    for number, loss in enumerate(losses):
        here = tree.ancestors(number)
        of_block += loss[here]
        took |= (loss > loss[loss > 0].min(initial=np.inf) * (1 + _NEAR))[here]
    short = (of_block < float(due) * (1 - _NEAR)) | ~took
    for number, (level, loss) in enumerate(zip(spine.levels, losses, strict=True)):
        if not config.measured(level.name):
            continue
        lost: Flags = (loss == 0) & siblings(tree, number)
        lost &= np.bincount(tree.ancestors(number)[short], minlength=len(loss)) > 0
        if lost.any():
            code = geocodes[level.name][lost][0].decode()
            raise InputError(
                f"{DPQUERY} of {level.name}: geocode {code} has siblings and no measurement, and no geounit above or "
                "below it has its share: a partition or a file is missing; so of "
                f"{int(lost.sum()):,} geounits in all"
            )
