"""What a TopDown release tells of its areas: totals, margins of error and names, and profiles to pick from one page."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import product
from pathlib import PurePath
from typing import Any, Final

import duckdb
import numpy as np

from yupana.arrays import Floats, Indices, Ints
from yupana.errors import OutputError
from yupana.files.database import named, open_database, quoted, unreadable
from yupana.geography.published import indices, read_published
from yupana.geography.settings import ROOT
from yupana.geography.spine_files import WrittenSpine, read_shares, read_spine
from yupana.geography.tree import entity_variances, partition
from yupana.plan.measurement import z_value
from yupana.plan.plan import Plan
from yupana.products.topdown.codebook import table_title, variable_labels
from yupana.products.topdown.tables import COUNTS, TABLES, TABULATION, TOTALS, RedistrictingTable, levels_of, tables_of
from yupana.products.topdown.verify import MEASUREMENTS
from yupana.release.release import ReleaseFolder
from yupana.report.html import Html, fill, text_of
from yupana.report.numbers import confidence_percent, whole
from yupana.topdown.configuration import Configuration
from yupana.topdown.plan import make_measurement

KINDS: Final = {
    "us": ("the nation", "the nation"),
    "state": ("state", "states"),
    "county": ("county", "counties"),
    "county_subdivision": ("county subdivision", "county subdivisions"),
    "place": ("place", "places"),
    "place_county": ("place in a county", "places within counties"),
    "congressional_district": ("congressional district", "congressional districts"),
    "state_upper": ("state senate district", "state senate districts"),
    "state_lower": ("state house district", "state house districts"),
    "aiannh": ("AIANNH area", "AIANNH areas"),
    "state_aiannh": ("AIANNH area within a state", "AIANNH areas within states"),
    "school_unified": ("unified school district", "unified school districts"),
    "school_elementary": ("elementary school district", "elementary school districts"),
    "school_secondary": ("secondary school district", "secondary school districts"),
    "voting_district": ("voting district", "voting districts"),
    "tract": ("tract", "tracts"),
    "block_group": ("block group", "block groups"),
    "block": ("block", "blocks"),
}
"""What an area and several areas of each kind are called, in the order of the page."""

Words = tuple[str, str]
NAMES: Final = "areas/names"
BLOCKS: Final = "block"


def words_of(kind: str) -> Words:
    """What one area and several of a kind are called; a kind of the user's own by its name."""
    return KINDS.get(kind, (kind.replace("_", " "), f"areas of {kind.replace('_', ' ')}"))


@dataclass(frozen=True, slots=True, eq=False)
class KindOfAreas:
    """The published areas of one kind with their totals.

    Attributes
    ----------
    name : str
    codes : tuple of str
        In order.
    totals : ndarray of int64, shape (areas,)
    margins : ndarray of float or None
        How far the interval of each total reaches from it, at the release's confidence; None where nothing tells it.
    ends : pair of ndarray of int64, or None
        The intervals, where the release has them.
    """

    name: str
    codes: tuple[str, ...]
    totals: Ints
    margins: Floats | None = None
    ends: tuple[Ints, Ints] | None = None

    @property
    def relative(self) -> Floats:
        """Margins as shares of the totals; NaN where a total is 0 or has no margin."""
        if self.margins is None:
            return np.full(len(self.codes), np.nan)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.totals > 0, self.margins / self.totals, np.nan)


@dataclass(frozen=True, eq=False)
class TopdownRelease:
    """A release with its configuration and plan, as pages read it."""

    release: ReleaseFolder
    configuration: Configuration
    plan: Plan

    @cached_property
    def kinds(self) -> tuple[KindOfAreas, ...]:
        """Kinds of areas in the order of the page, without blocks; of areas of the user's own the geolevels."""
        with open_database() as db:
            found = [self._totals(db, kind) for kind in self._kind_names]
        found = [kind for kind in found if kind.codes]
        told = self.release.manifest.get(MEASUREMENTS)
        follows = told is None or told["loss"]["exact"]  # else variances are not those of the configuration
        if self.plan.is_finite and follows and any(kind.margins is None for kind in found):
            expected = self._expected()
            found = [kind if kind.name not in expected else _with(kind, expected[kind.name]) for kind in found]
        return tuple(found)

    @cached_property
    def tables(self) -> tuple[RedistrictingTable, ...]:
        """The published tables; none of areas of the user's own."""
        return tuple(one for one in tables_of(self.configuration.schema) if f"{TABLES}/{one.name}" in self.release)

    @property
    def _own_areas(self) -> bool:
        return self.configuration.areas is not None

    @property
    def _kind_names(self) -> list[str]:
        if self._own_areas:
            return list(self.configuration.levels[:-1])
        there = [PurePath(name).name for name in self.release if PurePath(name).parent.name == TABULATION]
        known = [kind for kind in KINDS if kind in there and kind != BLOCKS]
        return known + [kind for kind in there if kind not in (*known, BLOCKS)]

    def cells_of(self, kind: str) -> str:
        """The table that has the cells of a kind of areas."""
        tabulated = f"{TABULATION}/{kind}"
        # Areas of the user's own are tabulated only where they have intervals.
        return tabulated if tabulated in self.release or not self._own_areas else f"{COUNTS}/{kind}"

    @property
    def method(self) -> str:
        """How its intervals were made: "none" if it has none."""
        told = self.release.manifest["parameters"].get("intervals")
        return str(told["method"]) if isinstance(told, Mapping) and "method" in told else "none"

    @cached_property
    def _names(self) -> Mapping[tuple[str, str], str]:
        """What the release calls its areas, by kind and code; nothing if names were not given."""
        if NAMES not in self.release:
            return {}
        columns = self.release.columns(NAMES)
        return dict(zip(zip(columns["kind"], columns["code"], strict=True), columns["name"], strict=True))

    def name(self, kind: str, code: str) -> str:
        """What an area is called; its code if that is not known."""
        return self._names.get((kind, code)) or code

    def _totals(self, db: duckdb.DuckDBPyConnection, kind: str) -> KindOfAreas:
        if not self.tables:
            rows = self.release.rows(self.cells_of(kind))
            query = f"SELECT geounit AS code, sum(TRY_CAST(count AS BIGINT))::BIGINT AS total FROM {rows} GROUP BY 1"
            return self._read(db, kind, query)
        first = self.tables[0]
        total = first.variables[0]
        rows = self.release.rows(f"{TABLES}/{first.name}")
        of_kind = f"SUMLEV = {quoted(levels_of([kind])[kind])}"
        query = f"SELECT GEOCODE AS code, TRY_CAST({total} AS BIGINT) AS total FROM {rows} WHERE {of_kind}"
        ends = f"{TABLES}/{first.name}_intervals"
        if ends in self.release:
            numbers = ", ".join(f"TRY_CAST({total}_{name} AS BIGINT) AS {name}" for name in ("LOWER", "UPPER"))
            rows = self.release.rows(ends)
            margin = f"TRY_CAST({total}_MOE AS DOUBLE) AS MOE"
            query = f"""SELECT * FROM ({query}) JOIN
                (SELECT GEOCODE AS code, {numbers}, {margin} FROM {rows} WHERE {of_kind}) USING (code)"""
        return self._read(db, kind, query)

    def _read(self, db: duckdb.DuckDBPyConnection, kind: str, query: str) -> KindOfAreas:
        with unreadable(
            OutputError(f"{self.release.folder}: the counts of {kind} are not readable as those of a release")
        ):
            found = db.execute(f"SELECT * FROM ({query}) ORDER BY code").fetchnumpy()
        numbers = [
            np.ma.filled(found[name].astype(np.int64), -1) for name in ("total", "LOWER", "UPPER") if name in found
        ]
        if any((values < 0).any() for values in numbers):
            raise OutputError(f"{self.release.folder}: a count of {kind} is no whole number")
        return KindOfAreas(
            kind,
            tuple(found["code"].tolist()),
            numbers[0],
            np.ma.filled(found["MOE"].astype(np.float64), np.nan) if "MOE" in found else None,
            (numbers[1], numbers[2]) if len(numbers) > 1 else None,
        )

    def _expected(self) -> dict[str, Mapping[str, float]]:
        """The least-squares margin of the total of each area whose blocks are known, by kind and code.

        The queries of a geounit each tell its total by their sum, of variance (answers times that of one); these are
        independent (docs/topdown-least-squares.md). An invariant is used where an area is one geounit.
        """
        levels = self.configuration.levels
        spine = read_spine(self.release.folder / "spine", levels, any_codes=self._own_areas)
        shares = read_shares(self.release.folder / "spine", spine)
        precisions = [
            self._precisions(level, shares.shares)[index] for level, index in zip(levels, shares.index, strict=True)
        ]
        members = self._members(spine)
        for level in self.configuration.invariants:
            _hold(precisions, spine, levels.index(level), members.get(level.lower()))
        z = z_value(self.plan.confidence)
        found: dict[str, Mapping[str, float]] = {}
        for kind, (codes, index) in members.items():
            sigmas = np.sqrt(entity_variances(spine.tree, precisions, partition(index, len(codes))))
            margins = np.where(sigmas < _NONE, 0.0, z * sigmas)
            found[kind] = dict(zip(codes, margins.tolist(), strict=True))
        return found

    def _precisions(self, level: str, shares: tuple[Fraction, ...]) -> Floats:
        """The precision of a geounit's total by its own measurements, by the position of its share."""
        measured = self.configuration.measured(level)
        return np.array(
            [
                sum(
                    1 / (float(make_measurement(self.configuration, level, query, share, part).variance) * query.size)
                    for query, part in measured
                )
                if share > 0
                else 0.0
                for share in shares
            ]
        )

    def _members(self, spine: WrittenSpine) -> dict[str, tuple[tuple[str, ...], Indices]]:
        """By kind, the codes of areas and the area of each block of the spine."""
        if self._own_areas:
            units = enumerate(spine.labels)
            return {spine.tree.names[level]: (labels, spine.tree.ancestors(level)) for level, labels in units}
        areas = read_published(self.release.folder, nation=spine.tree.names[0] == ROOT).areas(spine.block)
        of_block = indices(areas, len(spine.block))
        return {
            kind.name: (tuple(label.decode() for label in kind.labels.tolist()), of_block[kind.name])
            for kind in areas
            if kind.name != "block"
        }


_EXACT: Final = 1e9
"""The precision that stands for an exact total, times that of the noisy ones."""
_NONE: Final = 1e-3
"""The standard deviation below which a total is exact."""


def _with(kind: KindOfAreas, margins: Mapping[str, float]) -> KindOfAreas:
    return replace(kind, margins=np.array([margins.get(code, np.nan) for code in kind.codes]))


def _hold(
    precisions: list[Floats], spine: WrittenSpine, level: int, areas: tuple[tuple[str, ...], Indices] | None
) -> None:
    """Hold the totals of the geounits that are areas of their own, which an invariant keeps."""
    index = np.zeros(len(spine.block), dtype=np.int32) if areas is None else areas[1]
    unit = spine.tree.ancestors(level)
    pairs = np.unique(np.stack([unit, index]), axis=1)
    alone = (np.bincount(pairs[0]) == 1)[pairs[0]] & (np.bincount(pairs[1]) == 1)[pairs[1]]
    most = max(float(values.max()) for values in precisions)
    precisions[level] = precisions[level].copy()
    precisions[level][pairs[0][alone]] = _EXACT * most


_MOST_NUMBERS: Final = 1_200_000
"""In all profiles, so that a page stays within some megabytes."""

_MOST_CELLS: Final = 300
"""Lines of a table of all combinations; a longer one is in the files."""


@dataclass(frozen=True, slots=True)
class Profiles:
    """What stands in the page, and the script that shows it."""

    html: Html
    script: str


@dataclass(frozen=True, slots=True, eq=False)
class _ProfileTable:
    """A table of every area of a kind.

    Attributes
    ----------
    title : str
    lines : tuple of str
    counts : ndarray of int64, shape (areas, lines)
    ends : pair of arrays of that shape, or None
    """

    title: str
    lines: tuple[str, ...]
    counts: Ints
    ends: tuple[Ints, Ints] | None


def profiles(made: TopdownRelease) -> Profiles | None:
    """The tables of as many kinds of areas as fit on a page, the largest areas first; None if none does."""
    told: list[dict[str, Any]] = []
    left_out: list[str] = []
    numbers = 0
    with open_database() as db:
        for kind in made.kinds:
            size = len(kind.codes) * _numbers(made)
            if numbers + size > _MOST_NUMBERS:
                left_out.append(f"{whole(len(kind.codes))} {words_of(kind.name)[1]}")
                continue
            numbers += size
            told.append(_kind(made, kind, list(_tables(db, made, kind))))
    if not told:
        return None
    data = {"percent": confidence_percent(made.plan.confidence).removesuffix("%"), "kinds": told}
    held = Html(json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c"))
    values = {
        "data": held,
        "left_out": left_out,
        "made": made,
        "style": text_of("interval_rows.css", "topdown_profiles.css"),
    }
    html = fill("topdown_profiles.html", values)
    return Profiles(html, text_of("interval_rows.js", "topdown_profiles.js"))


def _numbers(made: TopdownRelease) -> int:
    """How many numbers an area has."""
    schema = made.configuration.schema
    each = 3 if made.method != "none" else 1
    cells = each * schema.cells if _shows_cells(made) else 0
    if made.tables:
        return each * sum(table.size for table in made.tables) + cells
    return 1 + sum(schema.shape) + cells


def _shows_cells(made: TopdownRelease) -> bool:
    """Whether all combinations are shown: few enough, and of no schema whose tables tell them as the Bureau does."""
    told = {table.name for table in made.tables} - {TOTALS}
    return not told and made.configuration.schema.cells <= _MOST_CELLS


def _kind(made: TopdownRelease, kind: KindOfAreas, tables: Sequence[_ProfileTable]) -> dict[str, Any]:
    """The areas of a kind with their tables: counts, and how far intervals reach below and above."""
    return {
        "key": kind.name,
        "name": words_of(kind.name)[1],
        "areas": [[code, made.name(kind.name, code)] for code in kind.codes],
        "tables": [
            {
                "title": table.title,
                "lines": table.lines,
                "rows": table.counts.tolist(),
                **(
                    {}
                    if table.ends is None
                    else {
                        "below": (table.counts - table.ends[0]).tolist(),
                        "above": (table.ends[1] - table.counts).tolist(),
                    }
                ),
            }
            for table in tables
        ],
    }


def _tables(db: duckdb.DuckDBPyConnection, made: TopdownRelease, kind: KindOfAreas) -> Iterator[_ProfileTable]:
    for table in made.tables:
        yield _published(db, made, kind, table)
    if made.tables:
        if _shows_cells(made):
            yield _cells(db, made, kind)
        return
    schema = made.configuration.schema
    cells = _cells(db, made, kind)
    ends = None if kind.ends is None else (kind.ends[0][:, None], kind.ends[1][:, None])
    yield _ProfileTable("Total", ("Total",), cells.counts.sum(axis=1, keepdims=True), ends)
    whole_table = cells.counts.reshape(-1, *schema.shape)
    if len(schema.shape) > 1:
        for axis, attribute in enumerate(schema.attributes):
            others = tuple(place + 1 for place in range(len(schema.shape)) if place != axis)
            yield _ProfileTable(attribute.name, attribute.labels, whole_table.sum(axis=others), None)
    if _shows_cells(made):
        yield cells


def _published(
    db: duckdb.DuckDBPyConnection, made: TopdownRelease, kind: KindOfAreas, table: RedistrictingTable
) -> _ProfileTable:
    """A published table of all areas of a kind."""

    def read(name: str, columns: Sequence[str]) -> Ints:
        rows = made.release.rows(f"{TABLES}/{name}")
        numbers = ", ".join(f"TRY_CAST({named(column)} AS BIGINT) AS {named(column)}" for column in columns)
        level = quoted(levels_of([kind.name])[kind.name])
        query = f"SELECT GEOCODE, {numbers} FROM {rows} WHERE SUMLEV = {level} ORDER BY 1"
        with unreadable(OutputError(f"{made.release.folder}: {TABLES}/{name} is not readable as a table of a release")):
            found = db.execute(query).fetchnumpy()
        values = [found[column] for column in columns]
        if tuple(found["GEOCODE"].tolist()) != kind.codes or any(np.ma.is_masked(of) for of in values):
            raise OutputError(
                f"{made.release.folder}: {TABLES}/{name} does not have a whole number for each {kind.name}"
            )
        return np.stack([np.asarray(of, dtype=np.int64) for of in values], axis=1)

    counts = read(table.name, table.variables)
    ends = None
    if f"{TABLES}/{table.name}_intervals" in made.release:
        below, above = (
            read(f"{table.name}_intervals", [f"{variable}_{end}" for variable in table.variables])
            for end in ("LOWER", "UPPER")
        )
        ends = below, above
    lines = variable_labels(table.name, made.configuration.schema)
    return _ProfileTable(f"{table.name}. {table_title(table.name)}", lines, counts, ends)


def _cells(db: duckdb.DuckDBPyConnection, made: TopdownRelease, kind: KindOfAreas) -> _ProfileTable:
    """All combinations of the levels of the schema, as the file of a kind of areas has them; zeros are not in it."""
    schema = made.configuration.schema
    name = made.cells_of(kind.name)
    rows = made.release.rows(name)
    with unreadable(OutputError(f"{made.release.folder}: {name} is not readable as a table of a release")):
        found = db.execute(f"SELECT * FROM {rows}").fetchnumpy()
    at = {code: place for place, code in enumerate(kind.codes)}
    place = np.array([at[code] for code in found["geounit"].tolist()], dtype=np.int64)
    cell = np.zeros(len(place), dtype=np.int64)
    for attribute in schema.attributes:
        level = {label: number for number, label in enumerate(attribute.labels)}
        cell = cell * attribute.size + np.array(
            [level[label] for label in found[attribute.name].tolist()], dtype=np.int64
        )

    def spread(column: str) -> Ints:
        out = np.zeros((len(kind.codes), schema.cells), dtype=np.int64)
        out[place, cell] = np.asarray(found[column]).astype(np.int64)
        return out

    shown = map(", ".join, product(*(a.labels for a in schema.attributes)))
    ends = (spread("LOWER"), spread("UPPER")) if "LOWER" in found else None
    return _ProfileTable(" by ".join(schema.names), tuple(shown), spread("count"), ends)
