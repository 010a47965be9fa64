"""The tables of SafeTab-P: which cells a population group is counted in, by how large it is. Public."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

AGES: Final = range(116)
SEXES: Final = (1, 2)

_AGES_23: Final = (0, 5, 10, 15, 18, 20, 21, 22, 25, 30, 35, 40, 45, 50, 55, 60, 62, 65, 67, 70, 75, 80, 85)


@dataclass(frozen=True, slots=True)
class AgeTable:
    """A table of sex by age: its name and the first age of each bin."""

    name: str
    starts: tuple[int, ...]

    @property
    def ends(self) -> tuple[int, ...]:
        """The last age of each bin."""
        return (*(start - 1 for start in self.starts[1:]), AGES[-1])

    @property
    def cells(self) -> int:
        """Cells of a population group: sexes times ages."""
        return len(SEXES) * len(self.starts)

    @property
    def of_finest(self) -> NDArray[np.int64]:
        """Of each cell of the finest table the cell of this one that holds it, shape (46,). Sex varies slowest."""
        ages = np.searchsorted(self.starts, _AGES_23, side="right") - 1
        return np.concatenate([sex * len(self.starts) + ages for sex in range(len(SEXES))])


AGE_TABLES: Final = (
    AgeTable("T02001", (0, 18, 45, 65)),
    AgeTable("T02002", (0, 5, 18, 25, 35, 45, 55, 65, 75)),
    AgeTable("T02003", _AGES_23),
)
"""By statistics level 1, 2, 3; at level 0 a group is counted in total alone."""

FINEST: Final = AGE_TABLES[-1]

TOTALS: Final = "T01001"


ATTRIBUTE: Final = "QSEX::SMALLINT * 128 + QAGE"
"""SQL for the sex and age of a record as one number."""


def finest_cells() -> NDArray[np.uint8]:
    """The cell of the finest table of each number of `ATTRIBUTE`, shape (384,)."""
    ages = np.searchsorted(_AGES_23, np.arange(128), side="right") - 1
    return np.concatenate([ages, *(sex * len(_AGES_23) + ages for sex in range(len(SEXES)))]).astype(np.uint8)
