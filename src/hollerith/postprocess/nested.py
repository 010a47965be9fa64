"""The nested cells of the SafeTab tables: a family is one tree, and each of its tables shows a part of it. Public."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

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
    "T01001": (),
    **dict.fromkeys(("T02001", "T02002", "T02003"), ("AGESTART", "AGEEND", "SEX")),
    **dict.fromkeys(("T03001", "T03002", "T03003", "T03004"), ("T3_DATA_CELL",)),
    **dict.fromkeys(("T04001", "T04002"), ("T4_DATA_CELL",)),
}
"""By table, the columns that name its cell."""


def columns(table: str) -> tuple[str, ...]:
    """The columns of a table, in order."""
    return (*KEY, *CELL_COLUMNS[table], *NUMBERS)


_AGES: Final = (
    (0, 18, 45, 65),
    (0, 5, 18, 25, 35, 45, 55, 65, 75),
    (0, 5, 10, 15, 18, 20, 21, 22, 25, 30, 35, 40, 45, 50, 55, 60, 62, 65, 67, 70, 75, 80, 85),
)
"""First ages of the bins of T02001, T02002 and T02003."""

_LAST_AGE: Final = 115
_SEXES: Final = ("1", "2")


def _persons() -> Family:
    """Total, sex, then sex by age in 4, 9 and 23 bins, each a refinement of the one before."""
    tables = ("T01001", "T02001", "T02002", "T02003")
    parents = [np.zeros(2, dtype=np.intp)]
    total = Row("T01001", (), 0, 0)
    rows: list[tuple[Row, ...]] = [(total,)]
    coarser: tuple[int, ...] = (0,)
    for depth, (table, ages) in enumerate(zip(tables[1:], _AGES, strict=True), start=2):
        bins = np.searchsorted(coarser, ages, side="right") - 1
        parents.append(np.concatenate([bins, bins + len(coarser)]).astype(np.intp))
        ends = [*(age - 1 for age in ages[1:]), _LAST_AGE]
        cells = [(str(a), str(b), sex) for sex in _SEXES for a, b in zip(ages, ends, strict=True)]
        sexes = [Row(table, ("*", "*", sex), 1, i) for i, sex in enumerate(_SEXES)]
        rows.append((total, *sexes, *(Row(table, cell, depth, i) for i, cell in enumerate(cells))))
        coarser = ages
    return Family(tables, tuple(parents), (0, 2, 3, 4), tuple(rows))


def _tree(tables: tuple[str, ...], depths: Sequence[Sequence[int]], parents: Sequence[Sequence[int]]) -> Family:
    """A family whose tables each show the cells of their depth and all above; a cell that stays is shown once."""
    rows = []
    for detail, table in enumerate(tables):
        place = {cell: (d, i) for d in range(detail + 1) for i, cell in enumerate(depths[d])}
        rows.append(tuple(Row(table, (str(cell),), *place[cell]) for cell in sorted(place)))
    return Family(tables, tuple(np.array(p, dtype=np.intp) for p in parents), tuple(range(len(tables))), tuple(rows))


FAMILIES: Final = (
    _persons(),
    _tree(
        ("T03001", "T03002", "T03003", "T03004"),
        ((0,), (1, 6), (2, 3, 7, 8), (2, 4, 5, 7, 8)),
        ((0, 0), (0, 0, 1, 1), (0, 1, 1, 2, 3)),
    ),
    _tree(("T04001", "T04002"), ((0,), (1, 2, 3)), ((0, 0, 0),)),
)
"""Persons (T01001, T02), households by type (T03), households by tenure (T04): measured apart, so combined apart."""
