"""Area profiles of a TopDown release: the tables of any area, with their intervals, to pick from one page."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Final

import duckdb
import numpy as np

from yupana.arrays import Ints
from yupana.errors import OutputError
from yupana.files.database import named, open_database, quoted, unreadable
from yupana.products.topdown.codebook import table_title, variable_labels
from yupana.products.topdown.tables import TABLES, TOTALS, RedistrictingTable, levels_of
from yupana.report.html import Html, fill, text_of
from yupana.report.numbers import confidence_percent, whole
from yupana.report.topdown_counts import KindOfAreas, TopdownRelease, words_of

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
    yield _ProfileTable("Total", ("Total",), cells.counts.sum(axis=1, keepdims=True), _ends_of_total(kind))
    whole_table = cells.counts.reshape(-1, *schema.shape)
    if len(schema.shape) > 1:
        for axis, attribute in enumerate(schema.attributes):
            others = tuple(place + 1 for place in range(len(schema.shape)) if place != axis)
            yield _ProfileTable(attribute.name, attribute.labels, whole_table.sum(axis=others), None)
    if _shows_cells(made):
        yield cells


def _ends_of_total(kind: KindOfAreas) -> tuple[Ints, Ints] | None:
    if kind.ends is None:
        return None
    return kind.ends[0][:, None], kind.ends[1][:, None]


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
