"""What SafeTab counts: its records by race and ethnicity codes, in the areas of one pass."""

from collections.abc import Sequence
from typing import Final

import duckdb
import numpy as np
from numpy.typing import NDArray

from yupana.confidential.tabulate.pieces import GroupAreas, find_areas
from yupana.confidential.tabulate.tabulation import GroupTabulation, ResponseColumns
from yupana.products.safetab.iterations import ETHNICITY, MOST_RACE_CODES, RACE, CharacteristicIterations
from yupana.products.safetab.regions import REGION_TYPES, RegionType, Run, blocks_of

_RACE_COLUMNS: Final = tuple(f"QRACE{number}" for number in range(1, MOST_RACE_CODES + 1))
_NUMBERS: Final = 10_000
"""Codes have four digits, and 0 is none."""


def areas_of(db: duckdb.DuckDBPyConnection, states: frozenset[int], regions: Sequence[RegionType]) -> GroupAreas:
    """Find the areas of some region types of a pass, by the name of their base."""
    return find_areas(db, blocks_of(states), [region.areas for region in dict.fromkeys(regions)])


def tabulation_of(
    iterations: CharacteristicIterations,
    states: frozenset[int],
    run: Run,
    cells: tuple[str, NDArray[np.uint8]],
    race_codes: int,
) -> GroupTabulation:
    """How the relation ``records`` is counted by iteration and category.

    Parameters
    ----------
    iterations : CharacteristicIterations
    states : frozenset of int
    run : "us" or "pr"
    cells : tuple of str and numpy.ndarray of uint8
        SQL for a number that tells the category of a record, and the category of each such number.
    race_codes : int
        How many race codes of a record count.
    """
    codes = len(iterations.codes)
    place = np.full(_NUMBERS, -1, dtype=np.int64)
    place[list(iterations.codes)] = np.arange(codes)
    return GroupTabulation(
        relation="records",
        key=tuple(column.name for column in blocks_of(states).key),
        where="true",
        responses={
            RACE: ResponseColumns(_RACE_COLUMNS[:race_codes], place, codes),
            ETHNICITY: ResponseColumns(("QSPAN",), place, codes),
        },
        spaces={region.base: iterations.groups(region.granularity) for region in REGION_TYPES if region.run == run},
        attribute=cells[0],
        category=cells[1],
    )
