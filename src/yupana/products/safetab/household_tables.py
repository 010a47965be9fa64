"""The tables of SafeTab-H: cells measured and cells added up, by how large a population group is. Public."""

from dataclasses import dataclass
from typing import Final, Literal


@dataclass(frozen=True, slots=True)
class Table:
    """One published table.

    Attributes
    ----------
    name : str
    basis : mapping of cell to categories
        The cells that are measured, each with the categories of the records' column it counts.
    """

    name: str
    basis: tuple[tuple[int, frozenset[int]], ...]


@dataclass(frozen=True, slots=True)
class Family:
    """The tables of one question, of which a population group gets one.

    Attributes
    ----------
    key : "t3" or "t4"
        As the keys of a configuration write it.
    name : str
        Of the measurement.
    column : str
        The column of the household records that is tabulated, with categories from 1.
    cell_column : str
        The column of the published tables that names the cell.
    categories : int
    tables : tuple of Table
        By statistics level, from 0.
    parents : mapping of cell to cell
        What each cell is a part of, as pairs.
    """

    key: Literal["t3", "t4"]
    name: str
    column: str
    cell_column: str
    categories: int
    tables: tuple[Table, ...]
    parents: tuple[tuple[int, int], ...]

    @property
    def cells(self) -> int:
        """Most cells a group is measured in."""
        return max(len(table.basis) for table in self.tables)

    def ancestors(self, cell: int) -> tuple[int, ...]:
        """A cell and all that it is a part of."""
        parents = dict(self.parents)
        found = [cell]
        while found[-1] in parents:
            found.append(parents[found[-1]])
        return tuple(found)

    def published(self, table: Table) -> tuple[tuple[int, tuple[int, ...]], ...]:
        """Cells of a published table, each with the places in `Table.basis` of those it adds up, in order of cells."""
        parts: dict[int, list[int]] = {}
        for place, (cell, _) in enumerate(table.basis):
            for ancestor in self.ancestors(cell):
                parts.setdefault(ancestor, []).append(place)
        return tuple((cell, tuple(places)) for cell, places in sorted(parts.items()))


def _table(name: str, **basis: str) -> Table:
    return Table(name, tuple((int(cell[1:]), frozenset(map(int, values.split()))) for cell, values in basis.items()))


HOUSEHOLD_TYPE: Final = Family(
    key="t3",
    name="T03",
    column="HOUSEHOLD_TYPE",
    cell_column="T3_DATA_CELL",
    categories=5,
    tables=(
        _table("T03001", c0="1 2 3 4 5"),
        _table("T03002", c1="1 2 3", c6="4 5"),
        _table("T03003", c2="1", c3="2 3", c7="4", c8="5"),
        _table("T03004", c2="1", c4="2", c5="3", c7="4", c8="5"),
    ),
    parents=((1, 0), (6, 0), (2, 1), (3, 1), (4, 3), (5, 3), (7, 6), (8, 6)),
)
"""0 total, 1 family, 2 married couple, 3 other family, 4 male and 5 female householder without spouse, 6 nonfamily,
7 living alone, 8 not living alone."""

TENURE: Final = Family(
    key="t4",
    name="T04",
    column="TEN",
    cell_column="T4_DATA_CELL",
    categories=4,
    tables=(_table("T04001", c0="1 2 3 4"), _table("T04002", c1="1", c2="2", c3="3 4")),
    parents=((1, 0), (2, 0), (3, 0)),
)
"""0 total, 1 owned with a mortgage, 2 owned free and clear, 3 rented or occupied without payment of rent."""

FAMILIES: Final = (HOUSEHOLD_TYPE, TENURE)
