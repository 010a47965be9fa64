"""SafeTab tables opened in the database to be postprocessed, and which of their cells refine which."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

import duckdb
import numpy as np

from yupana.errors import OutputError
from yupana.files.database import open_database, unreadable
from yupana.files.delimited import PARQUET, column_types
from yupana.products.gate import open_checked, open_table
from yupana.products.least_squares import Parents
from yupana.products.safetab.specification import FAMILIES, KEYS
from yupana.products.tables import NUMBERS, Choice, Family
from yupana.release.release import ReleaseFolder
from yupana.release.status import refuse_confidential
from yupana.release.tables import table_rows

Block = frozenset[int]
"""Cells of the finest choice that some cell holds."""


@dataclass(frozen=True, slots=True)
class NestedRow:
    """A row that a population group has in a table, and the node of the tree that it counts."""

    table: str
    labels: tuple[str, ...]
    depth: int
    node: int


@dataclass(frozen=True, slots=True)
class NestedCells:
    """The tree of the cells of a family."""

    tables: tuple[str, ...]  # that of each choice, coarsest first
    parents: Parents  # the total at depth 0
    basis: tuple[int, ...]  # by choice, the depth whose nodes were measured; all other numbers are sums of them
    # by choice, the rows of a group in all its tables, in their order. In SafeTab-P a group with an age table has its
    # row of T01001, too.
    rows: tuple[tuple[NestedRow, ...], ...]


def nested(family: Family) -> NestedCells:
    """Build the tree from what each choice tells of the finest cells.

    Raises
    ------
    ValueError
        If the published cells are no tree: one overlaps another, or marginals do not divide all cells.
    """
    layers = _layers(family)
    place = [{block: node for node, block in enumerate(layer)} for layer in layers]
    parents = tuple(
        np.array([next(node for node, block in enumerate(above) if part <= block) for part in below], dtype=np.intp)
        for above, below in pairwise(layers)
    )
    basis, rows = [], []
    for choice in family.choices:
        blocks = _blocks(choice)
        basis.append(next(depth for depth, layer in enumerate(layers) if set(layer) == set(blocks)))
        found = []
        for table in choice.tables:
            for cell in table.cells:
                block = frozenset().union(*(blocks[part] for part in cell.parts))
                # A cell that finer depths leave as it is stands at each; it is counted at the finest measured.
                depth = max(depth for depth in range(basis[-1] + 1) if block in place[depth])
                found.append(NestedRow(table.name, tuple(map(str, cell.labels)), depth, place[depth][block]))
        rows.append(tuple(found))
    return NestedCells(tuple(choice.own.name for choice in family.choices), parents, tuple(basis), tuple(rows))


def _blocks(choice: Choice) -> list[Block]:
    """By measured cell, the finest cells that it holds."""
    return [frozenset(i for i, own in enumerate(choice.finest) if own == part) for part in range(choice.measured)]


def _layers(family: Family) -> list[tuple[Block, ...]]:
    """The depths of the tree: the measured cells of each choice, and what marginals divide all cells into."""
    divisions = {frozenset(_blocks(choice)) for choice in family.choices}
    measured = {block for division in divisions for block in division}
    marginals = frozenset(
        frozenset().union(*(_blocks(choice)[part] for part in cell.parts))
        for choice in family.choices
        for table in choice.tables
        for cell in table.cells
    )
    between = marginals - measured
    layers = sorted([*divisions, *([between] if between else [])], key=len)
    every = range(family.choices[-1].measured)
    holder = [{cell: block for block in layer for cell in block} for layer in layers]
    refined = all(
        sum(map(len, layer)) == len(every) == len(holder[depth])
        and all(block <= holder[max(depth - 1, 0)][min(block)] for block in (layer if depth else ()))
        for depth, layer in enumerate(layers)
    )
    if not refined:
        raise ValueError(f"the cells of {family.name} are no tree")
    # By the blocks that hold it, from the coarsest on, so that the children of a block are neighbours.
    order = sorted(every, key=lambda cell: [min(of[cell]) for of in holder])
    return [tuple(dict.fromkeys(of[cell] for cell in order)) for of in holder]


PUBLISHED: Final = tuple(family for families in FAMILIES.values() for family in families)
"""The families of the SafeTab products."""

TREES: Final = tuple(nested(family) for family in PUBLISHED if len(family.choices) > 1)
"""Persons (T01001, T02), households by type (T03), households by tenure (T04): measured apart, so combined apart."""

COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {name: of for family in PUBLISHED for name, of in family.tables.items()}
"""By table, its columns in order."""

CELL_COLUMNS: Final = {name: columns[len(KEYS) : -len(NUMBERS)] for name, columns in COLUMNS.items()}
"""By table, the columns that name its cell."""


@dataclass(frozen=True, slots=True)
class TableSource:
    """Tables of a release, each a table of its name in the database, with the columns of the file.

    A column is text if the file is CSV, and of the type that Parquet gives it otherwise.
    """

    release: ReleaseFolder  # of a lone table, a release of it alone (`open_table`)
    db: duckdb.DuckDBPyConnection
    tables: Mapping[str, Mapping[str, str]]  # by table name


@contextmanager
def open_source(path: Path) -> Iterator[TableSource]:
    """Open the SafeTab tables of a release folder, or one table by its file, with or without a manifest.

    Raises
    ------
    OutputError
        If there are no such tables, or one is unreadable, was changed after its manifest, lacks the columns of its
        name, or holds something other than whole counts and variances.
    """
    release = open_checked(path) if path.is_dir() else open_table(path)
    names = ", ".join(COLUMNS)
    wanted = [table for table in release if table in COLUMNS]
    if not wanted and not release.sha256:
        raise OutputError(f"{path} is no table of SafeTab: its name must be one of {names}")
    if not wanted:
        raise OutputError(f"{path} holds none of the tables {names}")
    refuse_confidential(release.manifest, str(path))
    paths = {table: release.path(table) for table in wanted}
    with open_database() as db:
        yield TableSource(release, db, {table: _load(db, table, file) for table, file in paths.items()})


def _load(db: duckdb.DuckDBPyConnection, name: str, path: Path) -> dict[str, str]:
    expected = list(COLUMNS[name])
    with unreadable(OutputError(f"{path} is not readable as a table of a release")):
        rows = table_rows(path)
        header = list(column_types(db, rows))
        is_empty = path.suffix == PARQUET and not db.execute(f"SELECT 1 FROM {rows} LIMIT 1").fetchall()
        if header == expected:
            typed = _typed(header, is_empty=is_empty) if path.suffix == PARQUET else "*"
            db.execute(f"CREATE TABLE {name} AS SELECT {typed} FROM {rows}")
    if "REASON" in header:
        raise OutputError(f"{path} has a column REASON: it was suppressed, which comes last; use the release before it")
    if header != expected:
        raise OutputError(f"{path} must have the columns {'|'.join(expected)}")
    first = db.execute(
        f"SELECT min(rowid) FROM {name} WHERE ITERATION_CODE IS NULL OR REGION_ID IS NULL OR REGION_TYPE IS NULL OR"
        " NOT coalesce(regexp_full_match(CAST(COUNT AS VARCHAR), '-?[0-9]{1,15}'), false) OR"
        " NOT coalesce(TRY_CAST(VARIANCE AS DOUBLE) >= 0 AND isfinite(TRY_CAST(VARIANCE AS DOUBLE)), false)"
    ).fetchall()[0][0]
    if first is not None:
        rule = "COUNT is a whole number and VARIANCE a number, not negative"
        raise OutputError(f"{path}, line {int(first) + 2}: {rule}; a suppressed count cannot be postprocessed")
    return column_types(db, name)


def _typed(header: list[str], *, is_empty: bool) -> str:
    """Region and iteration as text; in an empty table, whose types mean nothing, every column by what it is."""
    types = dict.fromkeys(KEYS, "VARCHAR")
    if is_empty:
        types |= {**dict.fromkeys(header, "VARCHAR"), "COUNT": "BIGINT", "VARIANCE": "DOUBLE", "MOE": "DOUBLE"}
    return ", ".join(
        f'CAST("{column}" AS {types[column]}) AS "{column}"' if column in types else f'"{column}"' for column in header
    )
