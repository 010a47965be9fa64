"""Which census blocks are of that a release does not have: counties that are others since, and states. Public."""

from typing import Final

import numpy as np

from yupana.arrays import Ints
from yupana.geography.kinds import BLOCK_WIDTH, BLOCKS_OF_COUNTY, NESTED, STATE

_REGIONS: Final = range(9110, 9191, 10)
_COUNTIES: Final = range(9001, 9016, 2)
_CHANGED: Final = (
    (_REGIONS, "the planning regions of Connecticut, its counties from 2022 on"),
    (_COUNTIES, "the counties of Connecticut until 2021"),
    ((2063, 2066), "Chugach and Copper River, Alaska, from 2019 on"),
    ((2261,), "Valdez-Cordova, Alaska, until 2018"),
    ((2158, 46102), "Kusilvak, Alaska, and Oglala Lakota, South Dakota, from 2015 on"),
    ((2270, 46113), "Wade Hampton, Alaska, and Shannon, South Dakota, until 2014"),
)
"""Counties that there are in some years only."""

_BLOCKS_OF_STATE: Final = 10 ** (BLOCK_WIDTH - NESTED[STATE])


def vintage_of(unknown: Ints, known: Ints) -> str:
    """What kind of codes blocks have that are unknown, as the end of a message; empty of none.

    Parameters
    ----------
    unknown, known : ndarray of int64
        16 digits as numbers.
    """
    if not len(unknown):
        return ""
    county = unknown // BLOCKS_OF_COUNTY
    there = np.unique(known // BLOCKS_OF_COUNTY)
    here = np.isin(unknown // _BLOCKS_OF_STATE, known // _BLOCKS_OF_STATE)
    for codes, words in _CHANGED:
        number = int((np.isin(county, codes) & here).sum())
        if number and not np.isin(there, codes).any():
            return f"{number:,} of them are codes of {words}"
    if not here.all():
        return f"they lie in other states, such as {unknown[~here][0] // _BLOCKS_OF_STATE:02d}"
    if not np.isin(county, there).all():
        return "they lie in other counties; the file may be of a larger area, or of another census"
    return "their counties are known, so they may be of another census"
