"""The nested cells of the SafeTab tables: a family is one tree, and each of its tables shows a part of it. Public."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from yupana.products.safetab import household_tables
from yupana.products.safetab.person_tables import AGE_TABLES, SEXES, TOTALS

KEY: Final = ("REGION_ID", "REGION_TYPE", "ITERATION_CODE")
"""The columns that name a population group."""

NUMBERS: Final = ("COUNT", "VARIANCE", "MOE")
"""The columns every table ends with."""

Parents = tuple[NDArray[np.intp], ...]
"""By depth from 1 on, the parent of each node: an index into the depth above. Children of a node are neighbours."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row that a population group has in a table: the text of its cell, and the node of the tree it counts."""

    table: str
    cell: tuple[str, ...]
    depth: int
    node: int


@dataclass(frozen=True, slots=True)
class Family:
    """Tables of which a population group has one, with more or fewer cells.

    Attributes
    ----------
    tables : tuple of str
        By detail, coarsest first.
    parents : Parents
        The tree of cells, the total at depth 0.
    basis : tuple of int
        By detail, the depth whose nodes were measured; all other numbers are sums of them.
    rows : tuple of tuple of Row
        By detail, the rows of a group, the measured ones by node. In SafeTab-P a group with an age table has its row
        of T01001, too.
    """

    tables: tuple[str, ...]
    parents: Parents
    basis: tuple[int, ...]
    rows: tuple[tuple[Row, ...], ...]


CELL_COLUMNS: Final = {
    TOTALS: (),
    **{table.name: ("AGESTART", "AGEEND", "SEX") for table in AGE_TABLES},
    **{table.name: (family.cell_column,) for family in household_tables.FAMILIES for table in family.tables},
}
"""By table, the columns that name its cell."""


def columns(table: str) -> tuple[str, ...]:
    """The columns of a table, in order."""
    return (*KEY, *CELL_COLUMNS[table], *NUMBERS)


def _persons() -> Family:
    """Total, sex, then sex by age in 4, 9 and 23 bins, each a refinement of the one before."""
    parents = [np.zeros(len(SEXES), dtype=np.intp)]
    total = Row(TOTALS, (), 0, 0)
    rows: list[tuple[Row, ...]] = [(total,)]
    coarser: tuple[int, ...] = (0,)
    for depth, table in enumerate(AGE_TABLES, start=2):
        bins = np.searchsorted(coarser, table.starts, side="right") - 1
        parents.append(np.concatenate([bins + i * len(coarser) for i in range(len(SEXES))]).astype(np.intp))
        ages = tuple(zip(table.starts, table.ends, strict=True))
        cells = [(str(start), str(end), str(sex)) for sex in SEXES for start, end in ages]
        sexes = [Row(table.name, ("*", "*", str(sex)), 1, i) for i, sex in enumerate(SEXES)]
        rows.append((total, *sexes, *(Row(table.name, cell, depth, i) for i, cell in enumerate(cells))))
        coarser = table.starts
    names = (TOTALS, *(table.name for table in AGE_TABLES))
    return Family(names, tuple(parents), (0, *range(2, 2 + len(AGE_TABLES))), tuple(rows))


def _households(family: household_tables.Family) -> Family:
    """The cells of a table are the nodes of a depth; it shows them and all above, a cell that stays once."""
    depths = [[cell for cell, _ in table.basis] for table in family.tables]
    parents = [
        np.array([next(above.index(cell) for cell in family.ancestors(child) if cell in above) for child in below])
        for above, below in pairwise(depths)
    ]
    rows = []
    for detail, table in enumerate(family.tables):
        place = {cell: (d, i) for d in range(detail + 1) for i, cell in enumerate(depths[d])}
        rows.append(tuple(Row(table.name, (str(cell),), *place[cell]) for cell, _ in family.published(table)))
    names = tuple(table.name for table in family.tables)
    return Family(names, tuple(parents), tuple(range(len(names))), tuple(rows))


FAMILIES: Final = (_persons(), *map(_households, household_tables.FAMILIES))
"""Persons (T01001, T02), households by type (T03), households by tenure (T04): measured apart, so combined apart."""
