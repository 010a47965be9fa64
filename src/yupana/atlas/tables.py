"""The tables of a release as the atlas shows them: a value and its interval by area, group and cell. Public.

Whatever wrote a release, three places tell a row: of its area, of its population group, and of its cell. Noisy tables
have a count with its variance; tables of TopDown and of estimates have a value with both ends of its interval.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, Final

import duckdb
import numpy as np

from yupana.arrays import Floats, Ints
from yupana.errors import ConfigError
from yupana.estimate.topdown_release import schema_of
from yupana.files.database import named, open_database, quoted, store_arrays
from yupana.products import family_of
from yupana.products.described.product import described_in
from yupana.products.phsafe.shells import SHELLS
from yupana.products.tables import Family
from yupana.products.topdown.tables import RedistrictingTable
from yupana.products.topdown.tables import tables_of as schema_tables
from yupana.release.recipe import COTERMINOUS, DESCRIBED_TABLES, MEASURED
from yupana.release.release import ReleaseFolder
from yupana.report.export.tables import ExportColumn, ExportTable, tables_of

AREA, KIND, GROUP = "REGION_ID", "REGION_TYPE", "ITERATION_CODE"
LEVEL, CODE = "SUMLEV", "GEOCODE"
_OF_NOISE: Final = ("COUNT", "VARIANCE", "MOE")
_OF_ESTIMATES: Final = ("ESTIMATE", "LOWER", "UPPER")
_BESIDE: Final = ("AREA", "ITERATION", "LABEL", "DEPTH", "NOISE_DISTRIBUTION", "REASON")
"""Columns that repeat what a code means, or tell nothing of a cell."""


@dataclass(slots=True)
class AreaIndex:
    """All areas of a release, numbered as they are met."""

    kinds: dict[str, int] = field(default_factory=dict)  # numbers of the kinds, by name
    places: dict[tuple[str, str], int] = field(default_factory=dict)  # numbers of the areas, by kind and code
    # what areas are called, of those whose name is known
    names: dict[tuple[str, str], str] = field(default_factory=dict)
    titles: dict[str, str] = field(default_factory=dict)  # what kinds are called; empty where nothing says so

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
class _PartsOf:
    """The measured cells that the rows of a table add up, for one choice of its family."""

    own: str  # the table that shows every measured cell by itself
    parts: tuple[tuple[int, ...], ...]  # by cell of this table, places of cells of that one


@dataclass(frozen=True, slots=True, eq=False)
class AtlasTable:
    """One table."""

    name: str
    title: str
    groups: CellColumn | None
    columns: tuple[CellColumn, ...]
    cells: Ints  # shape (cells, columns): of each cell the places of its codes
    depths: tuple[int, ...]  # how far each cell is indented; empty where nothing is
    # area, group, cell: shape (rows,): rows are in the order of their areas
    area: Ints
    group: Ints
    cell: Ints
    value: Floats  # shape (rows,): NaN where it is suppressed
    # low, high: shape (rows,): the ends of its interval; NaN where it has none
    low: Floats
    high: Floats
    # shape (rows,), or None: of noisy tables, and of what was measured under estimates of counts
    variance: Floats | None
    # the finest first; empty where errors of rows depend on each other in a way that the release does not tell
    choices: tuple[_PartsOf, ...] = ()
    why_alone: str = ""  # why sums of its rows have no interval; empty where they have one
    universe: str = ""  # what it counts; empty where the title says it all
    adds_up: bool = False  # whether no record counts in two of its cells, so that their sum counts records
    measured: Floats | None = None  # shape (rows,), or None: the noisy counts under estimates
    # by cell, what it adds up, numbered within the table: a sum of rows that adds up the same as another row is that
    # row. Empty where nothing is known.
    sums: tuple[tuple[int, ...], ...] = ()


def read_tables(shown: Sequence["ShownTable"], areas: AreaIndex, kinds: Collection[str] = ()) -> Iterator[AtlasTable]:
    """The rows of tables, but of those that have none.

    Parameters
    ----------
    areas : AreaIndex
        The areas that are met are added to it.
    kinds : collection of str
        Of areas: rows of others are left out. All if empty.

    Raises
    ------
    OutputError
        If a file is not what the manifest says.
    """
    for told in shown:
        made = _FORMS[told.form](told, areas, kinds)
        if len(made.value):
            yield made


@dataclass(frozen=True, slots=True)
class ShownTable:
    """A table that the atlas can show, before its rows are read."""

    tables: tuple[ExportTable, ...]  # one; of the counts by all attributes one for each kind of areas
    form: str  # what tells a row from others

    @property
    def rows(self) -> int:
        """How many rows the atlas makes of it."""
        return sum(one.rows for one in self.tables) * (len(_variables(self.tables[0])) if self.form == "wide" else 1)

    def columns(self) -> dict[str, ExportColumn]:
        """Its columns by name."""
        return {column.name: column for column in self.tables[0].columns}


def shown_tables(release: ReleaseFolder) -> list[ShownTable]:
    """The tables of a release, or of a part of one, that the atlas can show."""
    with open_database() as db:
        try:
            listed = tables_of(release, db, counts=True, labelled=False)
        except ConfigError:
            return []
    found: list[ShownTable] = []
    histogram = tuple(one for one in listed if one.name.startswith("tabulation/"))
    for table in listed:
        names = {column.name for column in table.columns}
        if table.name.startswith(f"{MEASURED}/"):
            continue
        if histogram and table is histogram[0]:
            found.append(ShownTable(histogram, "histogram"))
        elif {LEVEL, CODE} <= names and _variables(table):
            found.append(ShownTable((table,), "wide"))
        elif set(_OF_NOISE[:2]) <= names:
            found.append(ShownTable((table,), "noise"))
        elif {*_OF_ESTIMATES, AREA, "LABEL"} <= names:
            found.append(ShownTable((table,), "estimates"))
    return found


def kinds_of(release: ReleaseFolder) -> dict[str, int]:
    """How many areas of each kind the tables of a release have, without parts."""
    found: dict[str, int] = {}
    for told in shown_tables(release):
        query, kind, code = _rows_of(told)
        with open_database() as db:
            query = f"SELECT {named(kind)}, count(DISTINCT {named(code)}) FROM ({query}) GROUP BY 1 ORDER BY 1"
            counted = db.execute(query).fetchall()
        for name, number in counted:
            found[name] = max(number, found.get(name, 0))
    return found


def _with_levels(told: ShownTable) -> str:
    """A table of TopDown whose areas have the names of their kinds."""
    labels = told.columns()[LEVEL].labels
    levels = "".join(f" WHEN {quoted(code)} THEN {quoted(kind.replace(' ', '_'))}" for code, kind in labels.items())
    kind = f"CASE {LEVEL}{levels} ELSE {LEVEL} END" if levels else LEVEL
    return f"SELECT * REPLACE ({kind} AS {LEVEL}) FROM ({told.tables[0].query})"


def _rows_of(told: ShownTable) -> tuple[str, str, str]:
    """SQL of the rows of a table, and the columns that hold the kind and the code of their areas."""
    if told.form == "wide":
        return _with_levels(told), LEVEL, CODE
    if told.form != "histogram":
        return told.tables[0].query, KIND, AREA
    by_kind = {table.name.rsplit("/", 1)[-1]: table.query for table in told.tables}
    parts = (
        f"SELECT {quoted(kind)} AS kind, * REPLACE ({_code(kind)} AS geounit) FROM ({query})"
        for kind, query in by_kind.items()
    )
    return " UNION ALL ".join(parts), "kind", "geounit"


def _variables(table: ExportTable) -> list[str]:
    """The columns of a wide table that hold counts."""
    ends = ("_LOWER", "_UPPER", "_MOE")
    return [column.name for column in table.numbers if not column.name.endswith(ends)]


def _open(db: duckdb.DuckDBPyConnection, told: ShownTable, kinds: Collection[str]) -> None:
    """Make the table ``rows`` of those of some kinds of areas."""
    query, kind, _ = _rows_of(told)
    where = f" WHERE {named(kind)} IN ({', '.join(map(quoted, kinds))})" if kinds else ""
    db.execute(f"CREATE TABLE rows AS SELECT * FROM ({query}){where}")


def _cell_column(column: ExportColumn | None, name: str, codes: Sequence[str]) -> CellColumn:
    """A column with those of its codes that occur, in the order of the codebook."""
    labels = column.labels if column else {}
    order = {code: at for at, code in enumerate(labels)}
    codes = sorted(codes, key=lambda code: order.get(code, len(order)))
    return CellColumn(name, column.title if column else name, tuple(codes), tuple(labels.get(c, c) for c in codes))


def _of_noise(told: ShownTable, areas: AreaIndex, kinds: Collection[str]) -> AtlasTable:
    (table,), columns = told.tables, told.columns()
    release, name = table.release, table.name
    others = [key for key in columns if key not in (*_OF_NOISE, *_BESIDE, AREA, KIND, GROUP)]
    with open_database() as db:
        _open(db, told, kinds)
        found = _placed(db, told, others, areas, columns)
        value, variance, margin = (_end(db, column, columns, found) for column in _OF_NOISE)
    family = family_of(name, release.manifest)
    why = _why_alone(release, name)
    choices: tuple[_PartsOf, ...] = ()
    if family is not None and not why:
        choices = tuple(_choices(release, family, name, found))
    return AtlasTable(
        name, table.title, found.groups, found.columns, found.cells, (), found.area, found.group, found.cell,
        value, value - margin, value + margin, variance, choices, why, _universe_of(table), _adds_up(release, name),
    )  # fmt: skip


_MOST_CELLS: Final = 300


def _adds_up(release: ReleaseFolder, name: str) -> bool:
    """Whether the cells of a table of a description exclude each other."""
    if release.manifest.get("system") != DESCRIBED_TABLES:
        return False
    cells = next((table.cells for table in described_in(release.manifest).tables if table.name == name), ())
    if not 1 < len(cells) <= _MOST_CELLS:
        return False
    return not any((one & other).is_possible for one, other in combinations(cells, 2))


def _universe_of(table: ExportTable) -> str:
    return "" if table.universe == table.title else table.universe


def _why_alone(release: ReleaseFolder, name: str) -> str:
    if f"{MEASURED}/{name}" in release:
        return "treated"
    return COTERMINOUS if any(entry.get("rule") == COTERMINOUS for entry in release.record) else ""


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
    told: ShownTable,
    others: Sequence[str],
    areas: AreaIndex,
    columns: Mapping[str, ExportColumn],
) -> _Placed:
    """Number areas, groups and cells of the table ``rows``, and put it in the order of its areas."""
    (_, kind, code), has_group = _rows_of(told), GROUP in columns
    met = db.execute(f"SELECT {named(kind)}, {named(code)}, min(rowid) FROM rows GROUP BY ALL ORDER BY 3").fetchall()
    labels = columns[code].labels if code in columns else {}
    titles = columns[kind].labels if kind in columns else {}
    for of_kind, of_code, _ in met:
        areas.number(of_kind, of_code)
        areas.titles.setdefault(of_kind, titles.get(of_kind, ""))
        if of_code in labels:
            areas.names.setdefault((of_kind, of_code), labels[of_code])
    _number(db, "areas", [(k, c, areas.places[k, c]) for k, c, _ in met], (kind, code))
    groups = None
    if has_group:
        codes = [row[0] for row in db.execute(f"SELECT {GROUP} FROM rows GROUP BY 1 ORDER BY min(rowid)").fetchall()]
        groups = _cell_column(columns.get(GROUP), GROUP, codes)
        _number(db, "groups", [(c, at) for at, c in enumerate(groups.codes)], (GROUP,))
    cells: list[tuple[str, ...]] = [()]
    if others:
        cells = _met(db, others)
        _number(db, "cells", [(*c, at) for at, c in enumerate(cells)], others)
    keys = [kind, code, *([GROUP] if has_group else []), *others]
    joins = f"JOIN areas USING ({named(kind)}, {named(code)})"
    joins += f" JOIN groups USING ({GROUP})" if has_group else ""
    joins += f" JOIN cells USING ({', '.join(map(named, others))})" if others else ""
    group, cell = "groups.place" if has_group else "0", "cells.place" if others else "0"
    db.execute(
        f"CREATE TABLE placed AS SELECT rows.* EXCLUDE ({', '.join(map(named, keys))}), areas.place AS _area, "
        f"{group} AS _group, {cell} AS _cell FROM rows {joins} ORDER BY _area, _group, _cell"
    )
    db.execute("DROP TABLE rows")
    own = []
    for at, name in enumerate(others):
        own.append(_cell_column(columns.get(name), name, list(dict.fromkeys(cell[at] for cell in cells))))
    places = [{c: i for i, c in enumerate(column.codes)} for column in own]
    numbered = np.array([[places[i][c] for i, c in enumerate(cell)] for cell in cells], dtype=np.int64)
    return _Placed(
        groups, tuple(own), numbered.reshape(len(cells), len(own)), tuple(cells),
        *(_numbers(db, name).astype(np.int64) for name in ("_area", "_group", "_cell")),
    )  # fmt: skip


def _number(db: duckdb.DuckDBPyConnection, table: str, rows: Sequence[tuple[Any, ...]], columns: Sequence[str]) -> None:
    """Make a table of the numbers of some keys."""
    arrays = {name: np.array([row[at] for row in rows], dtype=object) for at, name in enumerate(columns)}
    store_arrays(db, table, {**arrays, "place": np.array([row[-1] for row in rows], dtype=np.int64)})


def _numbers(db: duckdb.DuckDBPyConnection, expression: str) -> Floats:
    query = f"SELECT coalesce(CAST({expression} AS DOUBLE), 'nan'::DOUBLE) AS v FROM placed"
    return np.ascontiguousarray(db.execute(query).fetchnumpy()["v"], dtype=np.float64)


def _choices(release: ReleaseFolder, family: Family, name: str, found: _Placed) -> Iterator[_PartsOf]:
    """What the cells of a table add up, the finest choice first."""
    for choice in reversed(family.having(name)):
        own = choice.own.name
        if own not in release:
            continue
        parts = {tuple(map(str, cell.labels)): cell.parts for cell in choice[name].cells}
        alone = [tuple(map(str, cell.labels)) for cell in choice.alone]
        listed = _cells_of(release, own) if own != name else list(found.keys)
        places = {labels: at for at, labels in enumerate(listed)}
        yield _PartsOf(
            own, tuple(tuple(places.get(alone[p], -1) for p in parts.get(labels, ())) for labels in found.keys)
        )


def _cells_of(release: ReleaseFolder, name: str) -> list[tuple[str, ...]]:
    """The cells of another table in the order in which `_placed` numbers them."""
    columns = [str(c) for c in _columns_of(release, name) if c not in (*_OF_NOISE, *_BESIDE, AREA, KIND, GROUP)]
    if not columns:
        return [()]
    with open_database() as db:
        db.execute(f"CREATE TABLE rows AS SELECT CAST(COLUMNS(*) AS VARCHAR) FROM {release.rows(name, as_text=True)}")
        return _met(db, columns)


def _columns_of(release: ReleaseFolder, name: str) -> Sequence[str]:
    return tuple(release.manifest["tables"][release.files[name]].get("columns", ()))


def _met(db: duckdb.DuckDBPyConnection, columns: Sequence[str]) -> list[tuple[str, ...]]:
    """The codes of some columns that rows have together, in the order in which they are met."""
    query = f"SELECT {', '.join(map(named, columns))} FROM rows GROUP BY ALL ORDER BY min(rowid)"
    return [tuple(row) for row in db.execute(query).fetchall()]


def _of_estimates(told: ShownTable, areas: AreaIndex, kinds: Collection[str]) -> AtlasTable:
    """A table of estimates: its lines have names and depths of their own."""
    (table,), columns = told.tables, told.columns()
    with open_database() as db:
        _open(db, told, kinds)
        lines = db.execute(
            "SELECT DATA_CELL, any_value(LABEL), any_value(DEPTH) FROM rows GROUP BY 1 ORDER BY min(rowid)"
        ).fetchall()
        for kind, code, called in db.execute(f"SELECT DISTINCT {KIND}, {AREA}, AREA FROM rows").fetchall():
            areas.names.setdefault((kind, code), called)
        line = replace(columns["DATA_CELL"], labels={str(c): str(label) for c, label, _ in lines})
        _add_measured(db, table)
        found = _placed(db, told, ["DATA_CELL"], areas, {**columns, "DATA_CELL": line})
        value, low, high, measured, variance = (
            _numbers(db, f"TRY_CAST({column} AS DOUBLE)") for column in (*_OF_ESTIMATES, "COUNT_NOISY", "VARIANCE")
        )
    depths = {str(c): int(depth) for c, _, depth in lines}
    shell = next((one for one in SHELLS if one.name == table.name and one.ratio is None), None)
    parts: tuple[tuple[int, ...], ...] = ()
    if shell is not None:
        at = {key[0]: place for place, key in enumerate(found.keys)}
        of = {str(stub.cell): tuple(at.get(str(part), -1) for part in stub.parts) for stub in shell.stubs}
        parts = tuple(of.get(key[0], ()) for key in found.keys)
    return AtlasTable(
        table.name, table.title, found.groups, found.columns, found.cells,
        tuple(depths[key[0]] for key in found.keys), found.area, found.group, found.cell, value, low, high,
        variance if parts else None, (_PartsOf(table.name, parts),) if parts else (), "estimates", _universe_of(table),
        measured=measured if parts else None, sums=parts,
    )  # fmt: skip


def _add_measured(db: duckdb.DuckDBPyConnection, table: ExportTable) -> None:
    """Put the noisy counts and their variances beside the table ``rows`` of estimates of counts."""
    keys = [name for name in (KIND, AREA, GROUP, "DATA_CELL") if name in {column.name for column in table.columns}]
    found = [
        f"SELECT REGION_TYPE, CASE REGION_TYPE WHEN 'USA' THEN '1' ELSE GEOID END AS REGION_ID, ITERATION_CODE, "
        f"DATA_CELL, COUNT_NOISY, VARIANCE FROM {table.release.rows(name, as_text=True)}"
        for name in (f"{table.name}_{of}_trunc_normal" for of in ("nation", "state", "PR_state"))
        if name in table.release
        and "COUNT_NOISY" in table.release.manifest["tables"][table.release.files[name]]["columns"]
    ]
    measured = " UNION ALL ".join(found) or f"SELECT {', '.join(keys)}, NULL AS COUNT_NOISY, NULL AS VARIANCE FROM rows"
    db.execute(f"CREATE OR REPLACE TABLE rows AS SELECT * FROM rows LEFT JOIN ({measured}) USING ({', '.join(keys)})")


def _of_variables(told: ShownTable, areas: AreaIndex, kinds: Collection[str]) -> AtlasTable:
    """A table of TopDown with a column for each variable, and its interval beside it where the release has one."""
    (table,), columns = told.tables, told.columns()
    variables = _variables(table)
    with open_database() as db:
        _open(db, told, kinds)
        found = _placed(db, told, [], areas, columns)
        value, low, high = (
            np.stack([_end(db, f"{variable}{end}", columns, found) for variable in variables], axis=1).ravel()
            for end in ("", "_LOWER", "_UPPER")
        )
    number = len(variables)
    titles = tuple(columns[variable].title for variable in variables)
    column = CellColumn("variable", "Variable", tuple(variables), titles)
    sums = _sums(table, variables)
    return AtlasTable(
        table.name.rsplit("/", 1)[-1], table.title, None, (column,), np.arange(number)[:, None], depths_of(sums),
        np.repeat(found.area, number), np.zeros(len(value), dtype=np.int64),
        np.tile(np.arange(number), len(found.area)),
        value, low, high, None, why_alone="topdown", universe=_universe_of(table), sums=sums,
    )  # fmt: skip


def _sums(table: ExportTable, variables: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    """What each variable adds up: the classes of cells of the histogram that no variable of the table tells apart."""
    name = table.name.rsplit("/", 1)[-1]
    found = next((one for one in schema_tables(schema_of(table.release)[0]) if one.name == name), None)
    if found is None or found.variables != tuple(variables):
        return ()
    return classes_of(found)


def classes_of(table: RedistrictingTable) -> tuple[tuple[int, ...], ...]:
    """By variable of a table the classes of cells that it adds up."""
    inside = np.stack([(table.member == place).any(axis=1) for place in range(table.size)])
    return tuple(tuple(np.flatnonzero(of).tolist()) for of in np.unique(inside, axis=1))


def depths_of(sums: Sequence[Collection[int]]) -> tuple[int, ...]:
    """How far lines stand in: one step for each line before them that adds up all that they do, and more."""
    sets = [frozenset(one) for one in sums]
    return tuple(sum(one < before for before in sets[:at]) for at, one in enumerate(sets))


def _end(db: duckdb.DuckDBPyConnection, name: str, columns: Mapping[str, ExportColumn], found: _Placed) -> Floats:
    """The numbers of a column; nothing where there is none."""
    return _numbers(db, f"TRY_CAST({named(name)} AS DOUBLE)") if name in columns else np.full(len(found.area), np.nan)


def _of_histogram(told: ShownTable, areas: AreaIndex, kinds: Collection[str]) -> AtlasTable:
    """The cells of all attributes of TopDown, for every kind of areas."""
    columns = told.columns()
    others = [c for c in columns if c not in ("geounit", "count", "LOWER", "UPPER", "MOE")]
    with open_database() as db:
        _open(db, told, kinds)
        found = _placed(db, told, others, areas, columns)
        value, low, high = (_end(db, name, columns, found) for name in ("count", "LOWER", "UPPER"))
    return AtlasTable(
        "tabulation", "Every count, by all attributes", None, found.columns, found.cells, (),
        found.area, found.group, found.cell, value, low, high, None, why_alone="topdown", adds_up=True,
    )  # fmt: skip


def _code(kind: str) -> str:
    """SQL of the code of an area as tables have it: that of a block without its block group, which it begins with."""
    block = "length(geounit) = 16 AND geounit[12] = geounit[13]"
    return f"CASE WHEN {block} THEN geounit[1:11] || geounit[13:] ELSE geounit END" if kind == "block" else "geounit"


_FORMS: Final = {
    "noise": _of_noise, "estimates": _of_estimates, "wide": _of_variables, "histogram": _of_histogram,
}  # fmt: skip
