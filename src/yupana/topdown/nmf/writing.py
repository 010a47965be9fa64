"""Write all noisy measurements of a run: as CSV, or with what it held exactly in the Census Bureau's layout. Public."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import duckdb
import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Floats, Integers, Ints
from yupana.errors import ConfigError
from yupana.files.arrow_stream import Column, TextColumn
from yupana.files.database import named, open_database, quoted, write_query
from yupana.files.delimited import parquet_rows
from yupana.geography.settings import DIGITS, ROOT
from yupana.geography.spine import Spine
from yupana.release.lines import Texts, digits, texts
from yupana.release.tables import write_parts
from yupana.topdown.configuration import Configuration
from yupana.topdown.constraints import facility_limits, limits_by_level
from yupana.topdown.descent.estimate import Premises
from yupana.topdown.descent.measurements import StoredMeasurements
from yupana.topdown.nmf.layout import (
    BLOCK_DIGITS,
    BRANCH_AND_STATE,
    COLUMNS,
    CONSTRAINT,
    COUNTY,
    DPQUERY,
    JOINED,
    LEVEL_ENDING,
    LEVEL_NAMES,
    MORE_CHARACTERS,
    NURSING_MINORS,
    PARTITION,
    QUARTERS_AT_LEAST,
    QUARTERS_AT_MOST,
    QUERY_ENDING,
    SUMMED,
    TOTAL_AT_LEAST,
    TOTAL_IS,
    WHOLE,
    ZERO_ENDING,
)
from yupana.topdown.nmf.rows import RowKind
from yupana.topdown.queries import DETAILED, Query, Recode, Schema, kept_columns

_ROWS_AT_ONCE: Final = 1 << 19
"""Rows that the database lays out at a time, some 300 bytes each."""


@dataclass(frozen=True, slots=True, eq=False)
class AnswerFile:
    """Numbers about the answers of consecutive geounits."""

    units: NDArray[np.int64]  # shape (units,): positions of the geounits in their geolevel
    numbers: Mapping[str, NDArray[np.number[Any]]]  # shape (units, size) or (units, 1): by the name of the column


def write_answers(
    path: Path, geounits: Sequence[str], kept: Mapping[str, Sequence[str]], pieces: Iterable[AnswerFile]
) -> int:
    """Write ``geounit``, what the query keeps, and the numbers; return the rows.

    Parameters
    ----------
    geounits : sequence of str
        Identifiers of the geolevel.
    kept : mapping of str to sequence of str
        `kept_columns` of the query.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    rows = 0
    units = texts(geounits)
    labels = {name: texts(of) for name, of in kept.items()}
    size = max([1, *map(len, kept.values())])
    at_once = max(1, _ROWS_AT_ONCE // size)

    def parts() -> Iterator[dict[str, Column]]:
        nonlocal rows
        for piece in pieces:
            for first in range(0, max(len(piece.units), 1), at_once):
                here = slice(first, first + at_once)
                unit, answer = np.repeat(piece.units[here], size), np.tile(np.arange(size), len(piece.units[here]))
                columns: dict[str, Column] = {"geounit": TextColumn(units, unit)}
                columns |= {name: TextColumn(of, answer) for name, of in labels.items()}
                for name, numbers in piece.numbers.items():
                    columns[name] = np.broadcast_to(numbers[here], (len(unit) // size, size)).reshape(-1)
                rows += len(unit)
                yield columns

    with open_database() as db:
        write_parts(db, path, parts())
    return rows


def write_noisy(
    folder: Path, spine: Spine, schema: Schema, recodes: Mapping[str, Recode], stored: StoredMeasurements
) -> dict[str, int]:
    """Write all measurements with their variances; geounits without a share have no rows.

    Returns
    -------
    dict of str to int
        Rows, by the file's path within the folder.
    """
    rows: dict[str, int] = {}
    for number, level in enumerate(spine.levels):
        labels = level.labels()
        for q, query in enumerate(stored.levels[number].queries):
            path = folder / level.name / f"{query.name.replace('*', '.')}.csv"
            pieces = (
                AnswerFile(rows.units, {"value": rows.values[q].astype(np.int64), "variance": rows.variances[:, [q]]})
                for rows in _measurements(stored, number)
            )
            rows[path.relative_to(folder).as_posix()] = write_answers(
                path, labels, kept_columns(query, schema, recodes), pieces
            )
    return rows


_ONE_FILE = "part-00000.parquet"


@dataclass(frozen=True, slots=True, eq=False)
class _UnitRows:
    """Rows of units that lie side by side."""

    units: Ints  # shape (units,): their positions in the geolevel
    values: tuple[NDArray[np.integer], ...]  # shape (units, size): by row of each unit
    variances: Floats  # shape (units, rows)


def check_writable(configuration: Configuration, spine: Spine) -> None:
    """Refuse what the layout has no place for.

    Raises
    ------
    ConfigError
    """
    if configuration.areas is not None:
        raise ConfigError(
            "--nmf: geocodes hold the digits of the Census Bureau's blocks, and the configuration has areas of its "
            "own; use --noisy-measurements"
        )
    taken = {name.lower() for name in COLUMNS}
    if odd := [name for name in configuration.schema.names if name.lower() in taken]:
        raise ConfigError(
            f"--nmf: {', '.join(odd)} is a column of the files beside the attributes; choose another name"
        )
    _geocodes_of(spine)


def write_measurement_files(
    root: Path, dataset: str, premises: Premises, stored: StoredMeasurements, facilities: Integers | None
) -> dict[str, int]:
    """Write the folder of a dataset: of every geolevel the measurements and the constraints, a file for each state.

    Variances are rounded to 24 binary digits, as the column has no more. Geounits without a share have constraints and
    no measurement. Totals are written of geolevels whose units all have a known one; those of published areas that are
    known for several units together, as of the two sides of a state, are not in the files.

    Parameters
    ----------
    dataset : str
        Its name, such as US_Person_PL_PROD.
    premises : Premises
        Of the run.
    stored : StoredMeasurements
        All of its measurements.
    facilities : ndarray of integers, shape (blocks, 8), or None
        As the run had them.

    Returns
    -------
    dict of str to int
        Rows, by the file's path within the root.

    Raises
    ------
    ConfigError
        If the geocodes cannot be made; see `_geocodes_of`.
    """
    config, spine = premises.configuration, premises.spine
    geocodes = _geocodes_of(spine)
    written: dict[str, int] = {}
    with open_database() as db:
        for number, level in enumerate(spine.levels):
            told: dict[str, tuple[Sequence[RowKind], Iterator[_UnitRows]]] = {
                DPQUERY: (
                    [_measured(query, config.schema, config.recodes) for query in stored.levels[number].queries],
                    _measurements(stored, number),
                ),
                CONSTRAINT: _constraints(premises, number, facilities),
            }
            for kind, (rows, pieces) in told.items():
                folder = root / dataset / f"{level.name}{LEVEL_ENDING}" / kind
                alone = level.name == ROOT
                for path, count in _write(db, folder, config.schema, rows, pieces, geocodes[number], alone=alone):
                    written[path.relative_to(root).as_posix()] = count
    return written


def _measured(query: Query, schema: Schema, recodes: Mapping[str, Recode]) -> RowKind:
    """How the files tell of a query."""
    if query.name == DETAILED:
        return RowKind(DETAILED + QUERY_ENDING, "", (WHOLE,) * len(schema.names), schema.shape)
    parts = query.name.split("*")
    named_by = {recodes[part].attribute if part in recodes else part: part for part in parts}
    axes = tuple(named_by.get(name, SUMMED) for name in schema.names)
    return RowKind(JOINED.join(parts) + QUERY_ENDING, "", axes, query.shape)


def _measurements(stored: StoredMeasurements, number: int) -> Iterator[_UnitRows]:
    spent = stored.levels[number]
    for first, last, answers in stored.pieces(number, 0, len(spent.share_of)):
        share = spent.share_of[first:last]
        measured = np.flatnonzero(np.isfinite(spent.variances[share]).all(axis=1))
        if spent.queries:
            values = tuple(of_query[measured] for of_query in answers)
            yield _UnitRows(measured + first, values, spent.variances[share[measured]])


def _constraints(
    premises: Premises, number: int, facilities: Integers | None
) -> tuple[list[RowKind], Iterator[_UnitRows]]:
    """What holds of every unit of a geolevel; if nothing else, that no total is negative, which lists the units."""
    config, tree = premises.configuration, premises.spine.tree
    schema, units = config.schema, tree.units(number)
    summed, one = (SUMMED,) * len(schema.names), (1,) * len(schema.names)
    found: list[tuple[RowKind, Integers]] = []
    known = premises.known.get(number)
    if known is not None and known.of_each is not None:
        found.append((RowKind(TOTAL_IS, "=", summed, one), known.of_each[:, None]))
    if config.group_quarters and facilities is not None:
        limits = limits_by_level(tree, facility_limits(facilities[:, : schema.shape[0]]), {}, {})[number]
        axes, shape = (config.group_quarters, *summed[1:]), (schema.shape[0], *one[1:])
        found.append((RowKind(QUARTERS_AT_LEAST, ">=", axes, shape), limits.lower))
        found.append((RowKind(QUARTERS_AT_MOST, "<=", axes, shape), limits.upper))
    zero = np.zeros((units, 1), dtype=np.int64)
    found += [(_zero(schema, levels), zero) for levels in config.structural_zeros]
    if not found:
        found.append((RowKind(TOTAL_AT_LEAST, ">=", summed, one), zero))
    rows = _UnitRows(np.arange(units), tuple(values for _, values in found), np.zeros((units, len(found))))
    return [row for row, _ in found], iter([rows])


def _zero(schema: Schema, levels: Sequence[int | None]) -> RowKind:
    """How the files tell that no record has a combination of levels; an axis of our own is ``attribute=number``."""
    kept = {name: level for name, level in zip(schema.names, levels, strict=True) if level is not None}
    axes = tuple(
        SUMMED if name not in kept else LEVEL_NAMES.get((name, kept[name]), f"{name}={kept[name]}")
        for name in schema.names
    )
    bureau = set(kept.items()) == set(LEVEL_NAMES)
    name = NURSING_MINORS if bureau else "_".join(f"{name}{level}" for name, level in kept.items()) + ZERO_ENDING
    return RowKind(name, "=", axes, (1,) * len(axes))


def _write(
    db: duckdb.DuckDBPyConnection,
    folder: Path,
    schema: Schema,
    rows: Sequence[RowKind],
    pieces: Iterator[_UnitRows],
    geocodes: Texts,
    *,
    alone: bool,
) -> Iterator[tuple[Path, int]]:
    """Write one file for each state, or one alone; yields each with its rows."""
    written: dict[Path, list[Path]] = {}
    counts: dict[Path, int] = {}
    for piece in pieces:
        states = geocodes[piece.units].astype(f"S{BRANCH_AND_STATE}") if not alone else np.zeros(len(piece.units), "S1")
        for state in np.unique(states):
            here = np.flatnonzero(states == state)
            part = _UnitRows(piece.units[here], tuple(v[here] for v in piece.values), piece.variances[here])
            path = (folder if alone else folder / f"{PARTITION}={state.decode()}") / _ONE_FILE
            path.parent.mkdir(parents=True, exist_ok=True)
            parts = written.setdefault(path, [])
            parts.append(path.with_name(f"{len(parts)}.part.parquet"))
            _write_part(db, parts[-1], schema, rows, part, geocodes)
            counts[path] = counts.get(path, 0) + len(here) * len(rows)
    for path, parts in written.items():
        if len(parts) == 1:
            parts[0].rename(path)
        else:
            # Integers may be wider in one part than in another.
            write_query(db, " UNION ALL ".join(f"FROM {parquet_rows([one])}" for one in parts), path)
            for one in parts:
                one.unlink()
        yield path, counts[path]


def _write_part(
    db: duckdb.DuckDBPyConnection,
    path: Path,
    schema: Schema,
    rows: Sequence[RowKind],
    piece: _UnitRows,
    geocodes: Texts,
) -> None:
    values = np.empty((len(piece.units), len(rows)), dtype=object)
    for place, of_row in enumerate(piece.values):
        for unit, answers in enumerate(of_row):
            values[unit, place] = answers
    most = max(int(np.abs(of_row).max(initial=0)) for of_row in piece.values)
    wide = "INTEGER" if most < 1 << 31 else "BIGINT"
    listed = {
        "query_name": [row.name for row in rows],
        **({"sign": [row.sign for row in rows]} if rows[0].sign else {}),
        **{name: [row.axes[i] for row in rows] for i, name in enumerate(schema.names)},
    }
    columns = [f"{_one_of(map(quoted, texts))} AS {named(name)}" for name, texts in listed.items()]
    shapes = _one_of(f"{list(row.shape)}::INTEGER[]" for row in rows)
    db.register(
        "measured_now",
        {
            "geocode": np.repeat(np.char.decode(geocodes[piece.units], "ascii").astype(object), len(rows)),
            "place": np.tile(np.arange(1, len(rows) + 1), len(piece.units)),
            "answers": values.reshape(-1),
            "variance": np.ascontiguousarray(piece.variances).reshape(-1),
        },
    )
    query = (
        f"SELECT geocode, {', '.join(columns)}, {shapes} AS query_shape, answers::{wide}[] AS value, "
        "variance::FLOAT AS variance FROM measured_now"
    )
    write_query(db, query, path)
    db.unregister("measured_now")


def _one_of(choices: Iterable[str]) -> str:
    """SQL for that of some values which ``place`` numbers, from 1."""
    return f"list_extract([{', '.join(choices)}], place)"


NATION_GEOCODE = "0"
"""Nothing known says what the nation is called; readers take its only row."""


def _geocodes_of(spine: Spine) -> tuple[Texts, ...]:
    """The geocode of every unit of every geolevel, from the root down, on a spine of the Census Bureau's blocks."""
    firsts = [np.flatnonzero(np.diff(spine.tree.ancestors(n), prepend=-1)) for n in range(len(spine.levels))]
    base = _states(spine)
    found: list[Texts] = []
    for number, level in enumerate(spine.levels):
        if level.name == ROOT:
            found.append(texts([NATION_GEOCODE]))
            continue
        blocks, state = spine.blocks[firsts[number]], base[firsts[number]]
        nested = number > 0 and spine.levels[number - 1].name != ROOT
        above = found[-1][spine.tree.parents[number]] if nested else state
        if level.name == "State":
            found.append(state)
        elif level.name == "Block":
            found.append(_beside(above, digits(blocks, BLOCK_DIGITS)))
        else:
            if level.name == "County":
                county = digits(blocks // 10 ** (16 - DIGITS["County"]) % 1000, 3)
                above = _beside(state, np.full(len(state), COUNTY.encode()), county)
            within = _within(above)
            width = max(MORE_CHARACTERS[level.name], len(str(int(within.max()))))
            found.append(_beside(above, digits(within, width)))
        if len(np.unique(found[-1])) < len(found[-1]):
            raise _strange(level.name)
    return tuple(found)


def _states(spine: Spine) -> Texts:
    """Branch and state of each block, of shape (blocks,)."""
    named = [number for number, level in enumerate(spine.levels) if level.name in {"State", "County"}]
    sides = [_sides(spine, number) for number in named]
    return _beside(digits(sides[0], BRANCH_AND_STATE - 2), digits(spine.blocks // 10**14, 2))


def _sides(spine: Spine, number: int) -> Ints:
    """The digit before the state or county of each block, 0 where there is none."""
    level = spine.levels[number]
    known = DIGITS[level.name]
    code, tabulated = level.code[spine.tree.ancestors(number)], spine.blocks // 10 ** (16 - known)
    side = (code - tabulated) // 10**known
    if not np.array_equal(tabulated + side * 10**known, code) or side.max() > level.width - known or side.min() < 0:
        raise _strange(level.name)
    return np.asarray(side, dtype=np.int64)


def _strange(level: str) -> ConfigError:
    return ConfigError(
        f"--nmf: geocodes hold the side of AIAN areas, state, county and numbers within these, and the geounits of "
        f"{level} on this spine are called otherwise; use a spine that spine build makes"
    )


def _within(above: Texts) -> Ints:
    """Number units that lie side by side from 1 within what they lie in."""
    opens = np.concatenate([[True], above[1:] != above[:-1]])
    starts = np.flatnonzero(opens)
    return np.asarray(np.arange(1, len(above) + 1) - starts[np.cumsum(opens) - 1], dtype=np.int64)


def _beside(*parts: Texts) -> Texts:
    """Texts of fixed width, one behind the other."""
    bytes_of = [np.ascontiguousarray(part).view("S1").reshape(len(part), -1) for part in parts]
    return np.ascontiguousarray(np.concatenate(bytes_of, axis=1)).view(f"S{sum(b.shape[1] for b in bytes_of)}")[:, 0]
