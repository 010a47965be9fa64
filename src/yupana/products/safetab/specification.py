"""The tables of SafeTab: which cells a population group is counted in, by how large it is, and what they add up to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from yupana.products.tables import Cell, Choice, Family, Table

KEYS: Final = ("REGION_ID", "REGION_TYPE", "ITERATION_CODE")
"""The columns that name a population group."""

# Persons: a total, or sex by more or fewer ages.

AGES: Final = range(116)
SEXES: Final = (1, 2)

_AGES_23: Final = (0, 5, 10, 15, 18, 20, 21, 22, 25, 30, 35, 40, 45, 50, 55, 60, 62, 65, 67, 70, 75, 80, 85)

AGE_TABLES: Final[Mapping[str, tuple[int, ...]]] = {
    "T02001": (0, 18, 45, 65),
    "T02002": (0, 5, 18, 25, 35, 45, 55, 65, 75),
    "T02003": _AGES_23,
}
"""The first age of each bin of the tables of sex by age: statistics levels 1, 2 and 3. Level 0 is a total alone."""

TOTALS: Final = "T01001"


def _bins(starts: Sequence[int]) -> tuple[int, ...]:
    """Of each cell of the finest table the cell that holds it. Sex varies slowest."""
    ages = [sum(start <= age for start in starts) - 1 for age in _AGES_23]
    return tuple(sex * len(starts) + age for sex in range(len(SEXES)) for age in ages)


def _sex_by_age(name: str, starts: tuple[int, ...]) -> Table:
    """Of each sex a row of all ages, then one of each bin."""
    ends = (*(start - 1 for start in starts[1:]), AGES[-1])
    cells = []
    for number, sex in enumerate(map(str, SEXES)):
        own = range(number * len(starts), (number + 1) * len(starts))
        cells.append(Cell(("*", "*", sex), tuple(own)))
        cells += [
            Cell((str(start), str(end), sex), (part,)) for start, end, part in zip(starts, ends, own, strict=True)
        ]
    return Table(name, ("AGESTART", "AGEEND", "SEX"), tuple(cells))


def _total_of(cells: int) -> Table:
    return Table(TOTALS, (), (Cell((), tuple(range(cells))),))


_TOTAL_ALONE: Final = Choice((0,) * len(SEXES) * len(_AGES_23), (_total_of(1),))

PERSONS: Final = Family(
    "T01001-T02003",
    KEYS,
    (
        _TOTAL_ALONE,
        *(
            Choice(_bins(starts), (_sex_by_age(name, starts), _total_of(len(SEXES) * len(starts))))
            for name, starts in AGE_TABLES.items()
        ),
    ),
)
"""A group that is counted by sex and age has its total in T01001, too: the sum of its cells."""

DETAILED_TOTALS: Final = Family(TOTALS, KEYS, (Choice((0,), (_total_of(1),)),))
"""Iterations of which there is a total alone, whatever their size: measured apart, so with noise of its own."""

ATTRIBUTE: Final = "QSEX::SMALLINT * 128 + QAGE"
"""SQL for the sex and age of a record as one number."""


def finest_cells() -> NDArray[np.uint8]:
    """The cell of the finest table of each number of `ATTRIBUTE`, shape (384,)."""
    ages = np.searchsorted(_AGES_23, np.arange(128), side="right") - 1
    return np.concatenate([ages, *(sex * len(_AGES_23) + ages for sex in range(len(SEXES)))]).astype(np.uint8)


# Households: by type, and by tenure.


@dataclass(frozen=True, eq=False)
class HouseholdQuestion:
    """What the records of households are asked, and the tables of the answers.

    Attributes
    ----------
    key : "t3" or "t4"
        As the keys of a configuration write it.
    column : str
        The column of the household records that is tabulated, with categories from 1.
    cells : tuple of int
        Of each category the cell of the finest table that counts it.
    family : Family
    """

    key: Literal["t3", "t4"]
    column: str
    cells: tuple[int, ...]
    family: Family

    @property
    def name(self) -> str:
        """Of its measurements."""
        return self.family.name

    @property
    def tables(self) -> tuple[str, ...]:
        """By statistics level, from 0."""
        return tuple(self.family.tables)

    @property
    def categories(self) -> int:
        """How many categories the column has."""
        return len(self.cells)


def _question(
    key: Literal["t3", "t4"],
    column: str,
    cells: tuple[int, ...],
    parents: Mapping[int, int],
    tables: Mapping[str, tuple[int, ...]],
) -> HouseholdQuestion:
    """A question by its tree of cells: what each is a part of, and by table which of them are measured."""

    def within(cell: int) -> tuple[int, ...]:
        """A cell and all that it is a part of."""
        return (cell, *within(parents[cell])) if cell in parents else (cell,)

    choices = []
    for table, own in tables.items():
        shown = sorted({cell for part in own for cell in within(part)})
        rows = tuple(
            Cell((str(cell),), tuple(number for number, part in enumerate(own) if cell in within(part)))
            for cell in shown
        )
        finest = tuple(next(own.index(cell) for cell in within(part) if cell in own) for part in [*tables.values()][-1])
        choices.append(Choice(finest, (Table(table, (f"{key.upper()}_DATA_CELL",), rows),)))
    return HouseholdQuestion(key, column, cells, Family(f"T0{key[1]}", KEYS, tuple(choices)))


HOUSEHOLD_TYPE: Final = _question(
    "t3",
    "HOUSEHOLD_TYPE",
    (0, 1, 2, 3, 4),
    {1: 0, 6: 0, 2: 1, 3: 1, 4: 3, 5: 3, 7: 6, 8: 6},
    {"T03001": (0,), "T03002": (1, 6), "T03003": (2, 3, 7, 8), "T03004": (2, 4, 5, 7, 8)},
)
"""0 total, 1 family, 2 married couple, 3 other family, 4 male and 5 female householder without spouse, 6 nonfamily,
7 living alone, 8 not living alone. The categories are married couple, male, female, living alone, not living alone."""

TENURE: Final = _question("t4", "TEN", (0, 1, 2, 2), {1: 0, 2: 0, 3: 0}, {"T04001": (0,), "T04002": (1, 2, 3)})
"""0 total, 1 owned with a mortgage, 2 owned free and clear, 3 rented, or occupied without payment of rent."""

QUESTIONS: Final = (HOUSEHOLD_TYPE, TENURE)

FAMILIES: Final[Mapping[str, tuple[Family, ...]]] = {
    "safetab-p": (PERSONS, DETAILED_TOTALS),
    "safetab-h": tuple(question.family for question in QUESTIONS),
}
"""What each product publishes."""
