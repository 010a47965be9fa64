"""The tables of a release as the atlas shows them: a value and its interval by area, group and cell. Public.

Whatever wrote a release, three places tell a row: of its area, of its population group, and of its cell. Noisy tables
have a count with its variance; tables of TopDown and of estimates have a value with both ends of its interval.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import duckdb
import numpy as np

from yupana.arrays import Floats, Ints
from yupana.files.database import named, open_database, quoted
from yupana.products import family_of
from yupana.products.tables import Family
from yupana.release.codebook import meanings
from yupana.release.recipe import COTERMINOUS, MEASURED
from yupana.release.release import ReleaseFolder

AREA, KIND, GROUP = "REGION_ID", "REGION_TYPE", "ITERATION_CODE"
_OF_NOISE: Final = ("COUNT", "VARIANCE", "MOE")
_OF_ESTIMATES: Final = ("ESTIMATE", "LOWER", "UPPER")
_BESIDE: Final = ("AREA", "ITERATION", "LABEL", "DEPTH", "NOISE_DISTRIBUTION", "REASON")
"""Columns that repeat what a code means, or tell nothing of a cell."""


@dataclass(slots=True)
class AreaIndex:
    """All areas of a release, numbered as they are met.

    Attributes
    ----------
    kinds : dict of str to int
        Numbers of the kinds, by name.
    places : dict of (str, str) to int
        Numbers of the areas, by kind and code.
    names : dict of (str, str) to str
        What areas are called, of those whose name is known.
    """

    kinds: dict[str, int] = field(default_factory=dict)
    places: dict[tuple[str, str], int] = field(default_factory=dict)
    names: dict[tuple[str, str], str] = field(default_factory=dict)

    def number(self, kind: str, code: str) -> int:
        """The number of an area."""
        self.kinds.setdefault(kind, len(self.kinds))
        return self.places.setdefault((kind, code), len(self.places))


@dataclass(frozen=True, slots=True)
class CellColumn:
    """A column that tells cells apart: its title, its codes in order, and what each is called."""

    name: str
    title: str
    codes: tuple[str, ...]
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PartsOf:
    """The measured cells that the rows of a table add up, for one choice of its family.

    Attributes
    ----------
    own : str
        The table that shows every measured cell by itself.
    parts : tuple of tuple of int
        By cell of this table, places of cells of that one.
    """

    own: str
    parts: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True, eq=False)
class AtlasTable:
    """One table.

    Attributes
    ----------
    name, title : str
    groups : CellColumn or None
    columns : tuple of CellColumn
    cells : int array, shape (cells, columns)
        Of each cell the places of its codes.
    depths : tuple of int
        How far each cell is indented; empty where nothing is.
    area, group, cell : int array, shape (rows,)
        Rows are in the order of their areas.
    value : float array, shape (rows,)
        NaN where it is suppressed.
    low, high : float array, shape (rows,)
        The ends of its interval; NaN where it has none.
    variance : float array, shape (rows,), or None
        Of noisy tables.
    choices : tuple of PartsOf
        The finest first; empty where errors of rows depend on each other in a way that the release does not tell.
    why_alone : str
        Why sums of its rows have no interval; empty where they have one.
    """

    name: str
    title: str
    groups: CellColumn | None
    columns: tuple[CellColumn, ...]
    cells: Ints
    depths: tuple[int, ...]
    area: Ints
    group: Ints
    cell: Ints
    value: Floats
    low: Floats
    high: Floats
    variance: Floats | None
    choices: tuple[PartsOf, ...] = ()
    why_alone: str = ""


@dataclass(frozen=True, slots=True)
class _AtlasFields:
    """What a codebook says of the columns of a table."""

    titles: Mapping[str, str]
    labels: Mapping[str, Mapping[str, str]]

    def column(self, name: str, codes: Sequence[str]) -> CellColumn:
        """A column with those of its codes that occur."""
        labels = self.labels.get(name, {})
        return CellColumn(name, self.titles.get(name, name), tuple(codes), tuple(labels.get(c, c) for c in codes))


def read_tables(release: ReleaseFolder, areas: AreaIndex) -> Iterator[AtlasTable]:
    """All tables of a release that the atlas can show, in the order of its manifest.

    Parameters
    ----------
    release : ReleaseFolder
        Without parts.
    areas : AreaIndex
        The areas that are met are added to it.

    Raises
    ------
    OutputError
        If a file is not what the manifest says.
    """
    wide = {name for name in release if f"{name}_intervals" in release}
    histograms = [name for name in release if name.startswith("tabulation/")]
    for name in release:
        if name.startswith(f"{MEASURED}/"):
            continue
        if name in wide:
            yield _of_variables(release, name, areas)
        elif name == (histograms or [""])[0]:
            yield _of_histogram(release, histograms, areas)
        elif (columns := _columns_of(release, name)) and set(_OF_NOISE[:2]) <= set(columns):
            yield _of_noise(release, name, columns, areas)
        elif columns and set(_OF_ESTIMATES) <= set(columns) and AREA in columns and "LABEL" in columns:
            yield _of_estimates(release, name, columns, areas)


def _columns_of(release: ReleaseFolder, name: str) -> list[str]:
    told = release.manifest["tables"][release.files[name]].get("columns", ())
    return [str(column) for column in told]


def _fields(release: ReleaseFolder, name: str) -> tuple[str, _AtlasFields]:
    """The title of a table and what its codebook says of its columns."""
    package, path = release.codebook or {"resources": ()}, release.files[name]
    for resource in package["resources"]:
        if resource["path"] == path:
            titles = {field["name"]: str(field["title"]) for field in resource["schema"]["fields"]}
            return str(resource["title"]), _AtlasFields(titles, meanings(package, path))
    return name, _AtlasFields({}, {})


def _open(db: duckdb.DuckDBPyConnection, release: ReleaseFolder, name: str) -> None:
    """Make the table ``rows`` of a table: all columns as text, be they numbers in Parquet or not."""
    db.execute(f"CREATE TABLE rows AS SELECT CAST(COLUMNS(*) AS VARCHAR) FROM {release.rows(name, as_text=True)}")


def _of_noise(release: ReleaseFolder, name: str, columns: Sequence[str], areas: AreaIndex) -> AtlasTable:
    title, fields = _fields(release, name)
    keys = [column for column in columns if column not in (*_OF_NOISE, *_BESIDE)]
    others = [key for key in keys if key not in (AREA, KIND, GROUP)]
    with open_database() as db:
        _open(db, release, name)
        found = _placed(db, others, areas, fields, has_group=GROUP in keys)
        value, variance, margin = (
            _numbers(db, f"TRY_CAST({column} AS DOUBLE)") if column in columns else np.full(len(found.area), np.nan)
            for column in _OF_NOISE
        )
    family = family_of(name, release.manifest)
    why = _why_alone(release, name)
    choices: tuple[PartsOf, ...] = ()
    if family is not None and not why:
        choices = tuple(_choices(release, family, name, found))
    return AtlasTable(
        name, title, found.groups, found.columns, found.cells, (), found.area, found.group, found.cell,
        value, value - margin, value + margin, variance, choices, why,
    )  # fmt: skip


def _why_alone(release: ReleaseFolder, name: str) -> str:
    if f"{MEASURED}/{name}" in release:
        return "What was done to these counts makes their errors depend on each other; the release does not tell how."
    if any(entry.get("rule") == COTERMINOUS for entry in release.record):
        return "Areas that hold the same were combined, so that errors of rows depend on each other."
    return ""


@dataclass(frozen=True, slots=True, eq=False)
class _Placed:
    groups: CellColumn | None
    columns: tuple[CellColumn, ...]
    cells: Ints
    keys: tuple[tuple[str, ...], ...]
    area: Ints
    group: Ints
    cell: Ints


def _placed(
    db: duckdb.DuckDBPyConnection,
    others: Sequence[str],
    areas: AreaIndex,
    fields: _AtlasFields,
    *,
    has_group: bool,
    kind: str = KIND,
    code: str = AREA,
) -> _Placed:
    """Number areas, groups and cells of the table ``rows``, and put it in the order of its areas."""
    met = db.execute(f"SELECT {named(kind)}, {named(code)}, min(rowid) FROM rows GROUP BY ALL ORDER BY 3").fetchall()
    labels = fields.labels.get(code, {})
    for of_kind, of_code, _ in met:
        areas.number(of_kind, of_code)
        if of_code in labels:
            areas.names.setdefault((of_kind, of_code), labels[of_code])
    _number(db, "areas", [(k, c, areas.places[k, c]) for k, c, _ in met], (kind, code))
    groups = None
    if has_group:
        codes = [row[0] for row in db.execute(f"SELECT {GROUP} FROM rows GROUP BY 1 ORDER BY min(rowid)").fetchall()]
        groups = fields.column(GROUP, codes)
        _number(db, "groups", [(c, at) for at, c in enumerate(codes)], (GROUP,))
    cells: list[tuple[str, ...]] = [()]
    if others:
        cells = _met(db, others)
        _number(db, "cells", [(*c, at) for at, c in enumerate(cells)], others)
    joins = f"JOIN areas USING ({named(kind)}, {named(code)})"
    joins += f" JOIN groups USING ({GROUP})" if has_group else ""
    joins += f" JOIN cells USING ({', '.join(map(named, others))})" if others else ""
    group, cell = "groups.place" if has_group else "0", "cells.place" if others else "0"
    db.execute(
        f"CREATE TABLE placed AS SELECT rows.*, areas.place AS _area, {group} AS _group, {cell} AS _cell "
        f"FROM rows {joins} ORDER BY _area, _group, _cell"
    )
    columns = []
    for at, name in enumerate(others):
        columns.append(fields.column(name, list(dict.fromkeys(cell[at] for cell in cells))))
    places = [{c: i for i, c in enumerate(column.codes)} for column in columns]
    numbered = np.array([[places[i][c] for i, c in enumerate(cell)] for cell in cells], dtype=np.int64)
    return _Placed(
        groups, tuple(columns), numbered.reshape(len(cells), len(columns)), tuple(cells),
        *(_numbers(db, name).astype(np.int64) for name in ("_area", "_group", "_cell")),
    )  # fmt: skip


def _number(db: duckdb.DuckDBPyConnection, table: str, rows: Sequence[tuple[Any, ...]], columns: Sequence[str]) -> None:
    """Make a table of the numbers of some keys."""
    arrays = {name: np.array([row[at] for row in rows], dtype=object) for at, name in enumerate(columns)}
    db.register("given", {**arrays, "place": np.array([row[-1] for row in rows], dtype=np.int64)})
    db.execute(f"CREATE TABLE {table} AS SELECT * FROM given")
    db.unregister("given")


def _numbers(db: duckdb.DuckDBPyConnection, expression: str) -> Floats:
    values = db.execute(f"SELECT coalesce(CAST({expression} AS DOUBLE), 'nan'::DOUBLE) AS v FROM placed").fetchnumpy()[
        "v"
    ]
    return np.ascontiguousarray(values, dtype=np.float64)


def _choices(release: ReleaseFolder, family: Family, name: str, found: _Placed) -> Iterator[PartsOf]:
    """What the cells of a table add up, the finest choice first."""
    for choice in reversed(family.having(name)):
        own = choice.own.name
        if own not in release:
            continue
        parts = {tuple(map(str, cell.labels)): cell.parts for cell in choice[name].cells}
        alone = [tuple(map(str, cell.labels)) for cell in choice.alone]
        listed = _cells_of(release, own) if own != name else list(found.keys)
        places = {labels: at for at, labels in enumerate(listed)}
        yield PartsOf(
            own, tuple(tuple(places.get(alone[p], -1) for p in parts.get(labels, ())) for labels in found.keys)
        )


def _cells_of(release: ReleaseFolder, name: str) -> list[tuple[str, ...]]:
    """The cells of another table in the order in which `_placed` numbers them."""
    columns = [c for c in _columns_of(release, name) if c not in (*_OF_NOISE, *_BESIDE, AREA, KIND, GROUP)]
    if not columns:
        return [()]
    with open_database() as db:
        _open(db, release, name)
        return _met(db, columns)


def _met(db: duckdb.DuckDBPyConnection, columns: Sequence[str]) -> list[tuple[str, ...]]:
    """The codes of some columns that rows have together, in the order in which they are met."""
    query = f"SELECT {', '.join(map(named, columns))} FROM rows GROUP BY ALL ORDER BY min(rowid)"
    return [tuple(row) for row in db.execute(query).fetchall()]


def _of_estimates(release: ReleaseFolder, name: str, columns: Sequence[str], areas: AreaIndex) -> AtlasTable:
    """A table of estimates: its lines have names and depths of their own."""
    title, fields = _fields(release, name)
    with open_database() as db:
        _open(db, release, name)
        lines = db.execute("SELECT DATA_CELL, any_value(LABEL), any_value(DEPTH) FROM rows GROUP BY 1").fetchall()
        for kind, code, called in db.execute(f"SELECT DISTINCT {KIND}, {AREA}, AREA FROM rows").fetchall():
            areas.names.setdefault((kind, code), called)
        labels = {**fields.labels, "DATA_CELL": {str(c): str(label) for c, label, _ in lines}}
        told = _AtlasFields(fields.titles, labels)
        found = _placed(db, ["DATA_CELL"], areas, told, has_group=GROUP in columns)
        value, low, high = (_numbers(db, f"TRY_CAST({column} AS DOUBLE)") for column in _OF_ESTIMATES)
    depths = {str(c): int(depth) for c, _, depth in lines}
    return AtlasTable(
        name, title, found.groups, found.columns, found.cells, tuple(depths[key[0]] for key in found.keys),
        found.area, found.group, found.cell, value, low, high, None,
        why_alone="Errors of estimates depend on each other, in a way that the release does not tell.",
    )  # fmt: skip


_TOPDOWN_ALONE: Final = "Sums of these numbers need the noisy measurements: yupana interval --area ... --noisy DIR."


def _of_variables(release: ReleaseFolder, name: str, areas: AreaIndex) -> AtlasTable:
    """A table of TopDown with a column for each variable, and the intervals beside it."""
    title, fields = _fields(release, name)
    level, code = "SUMLEV", "GEOCODE"
    variables = [column for column in _columns_of(release, name) if column not in (level, code)]
    with open_database() as db:
        beside = ", ".join(
            f"CAST(i.{named(f'{variable}_{end}')} AS DOUBLE) AS {named(f'{variable}_{end}')}"
            for variable in variables
            for end in ("LOWER", "UPPER")
        )
        db.execute(
            f"CREATE TABLE rows AS SELECT t.*, {beside} FROM {release.rows(name, as_text=True)} t "
            f"JOIN {release.rows(f'{name}_intervals', as_text=True)} i USING ({level}, {code})"
        )
        found = _placed(db, [], areas, fields, has_group=False, kind=level, code=code)
        value, low, high = (
            np.stack([_numbers(db, named(f"{variable}{end}")) for variable in variables], axis=1).ravel()
            for end in ("", "_LOWER", "_UPPER")
        )
    number = len(variables)
    column = CellColumn("variable", "Variable", tuple(variables), tuple(fields.titles.get(v, v) for v in variables))
    return AtlasTable(
        name.rsplit("/", 1)[-1], title, None, (column,), np.arange(number)[:, None], (),
        np.repeat(found.area, number), np.zeros(len(value), dtype=np.int64),
        np.tile(np.arange(number), len(found.area)),
        value, low, high, None, why_alone=_TOPDOWN_ALONE,
    )  # fmt: skip


def _of_histogram(release: ReleaseFolder, names: Sequence[str], areas: AreaIndex) -> AtlasTable:
    """The cells of all attributes of TopDown, for every kind of areas."""
    _, fields = _fields(release, names[0])
    columns = _columns_of(release, names[0])
    others = [c for c in columns if c not in ("geounit", "count", "LOWER", "UPPER", "MOE")]
    ends = [c for c in ("LOWER", "UPPER") if c in columns]
    picked = ", ".join(map(named, (*others, "count", *ends)))
    with open_database() as db:
        parts = [
            f"SELECT {quoted(name.rsplit('/', 1)[-1])} AS kind, geounit, {picked} "
            f"FROM {release.rows(name, as_text=True)}"
            for name in names
        ]
        db.execute(f"CREATE TABLE rows AS {' UNION ALL '.join(parts)}")
        found = _placed(db, others, areas, fields, has_group=False, kind="kind", code="geounit")
        value, low, high = (
            _numbers(db, f"TRY_CAST({column} AS DOUBLE)") if column in columns else np.full(len(found.area), np.nan)
            for column in ("count", "LOWER", "UPPER")
        )
    return AtlasTable(
        "tabulation", "Every count, by all attributes", None, found.columns, found.cells, (),
        found.area, found.group, found.cell, value, low, high, None, why_alone=_TOPDOWN_ALONE,
    )  # fmt: skip
