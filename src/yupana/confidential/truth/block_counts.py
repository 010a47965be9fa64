"""Counts of P.L. 94-171 by voting age, ethnicity and race, for blocks of one county and the geounits above them."""

from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from yupana.confidential.truth.columns import read_numbers
from yupana.errors import InputError

_GEOGRAPHY: Final = ("state", "county", "tract", "BLKGRP")
_RACES: Final = tuple(range(3, 10))
"""Variables of P1 and P3: six races alone, and two or more."""

_RACES_NOT_HISPANIC: Final = tuple(range(5, 12))
"""The same races among those not Hispanic, in P2 and P4."""


def read_strata(path: Path) -> dict[str, NDArray[np.int64]]:
    """Read blocks and sum them up by block group and tract.

    Parameters
    ----------
    path : Path
        One row per block, with the columns state, county, tract, BLKGRP and the variables P001003 to P004011 of the
        2010 tables P1 to P4, as the Census Bureau's interface names them.

    Returns
    -------
    mapping of geolevel to ndarray of int64, shape (geounits, 28)
        Tract, Block_Group and Block. Strata: under and of voting age, Hispanic or not, seven races.

    Raises
    ------
    InputError
        If columns are missing, or the counts contradict each other.
    """
    all_ages, not_hispanic, adults, adults_not_hispanic = (
        [f"P{table:03}{number:03}" for number in numbers]
        for table, numbers in ((1, _RACES), (2, _RACES_NOT_HISPANIC), (3, _RACES), (4, _RACES_NOT_HISPANIC))
    )
    names = [*_GEOGRAPHY, *all_ages, *not_hispanic, *adults, *adults_not_hispanic]
    columns = read_numbers(path, names)
    codes = np.stack(columns[:4]).astype(np.int64)
    if len({(int(state), int(county)) for state, county in np.unique(codes[:2], axis=1).T}) > 1:
        raise InputError(f"{path}: the blocks must be of one county, whose total is the invariant")
    every, others, of_age, others_of_age = np.stack(columns[4:], axis=1).reshape(-1, 4, 7).transpose(1, 0, 2)
    adult = np.stack([of_age - others_of_age, others_of_age], axis=1)
    whole = np.stack([every - others, others], axis=1)
    blocks = np.stack([whole - adult, adult], axis=1).reshape(len(every), -1).astype(np.int64)
    if (bad := np.flatnonzero((blocks < 0).any(axis=1))).size:
        raise InputError(f"{path}, row {bad[0] + 1}: a part of P1 to P4 is larger than the whole")
    tract = codes[2]
    return {
        "Tract": _summed(blocks, tract),
        "Block_Group": _summed(blocks, tract * 10 + codes[3]),
        "Block": blocks,
    }


def _summed(blocks: NDArray[np.int64], unit: NDArray[np.int64]) -> NDArray[np.int64]:
    found, place = np.unique(unit, return_inverse=True)
    sums = np.zeros((len(found), blocks.shape[1]), dtype=np.int64)
    np.add.at(sums, place, blocks)
    return sums
