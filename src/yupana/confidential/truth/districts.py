"""Counts by district and stratum, which the figures of the paper are drawn of: read, or made up."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from yupana.arrays import Ints
from yupana.audit.empirical.kernel_density import DISTRICTS
from yupana.confidential.truth.block_counts import read_strata
from yupana.confidential.truth.columns import column_names, read_counts
from yupana.errors import InputError

_KEYS: Final = ("state", "county", "enum_dist", "age", "race", "eth")
COLUMNS: Final = (*_KEYS, "count")
"""Of a file of enumeration districts: one row for every district and stratum with people."""

_CELLS: Final = 20_000_000
"""Counts of a file, at most: a state of 1940 has 64,000."""

WANTED: Final = (
    "The printed figure is of Washington State in 1940: 2,663 enumeration districts of 39 counties, 24 strata each. "
    f"Such counts are read by --data FILE, with the columns {', '.join(COLUMNS)}, one row for every district and "
    "stratum with people; the authors counted them from the complete census of 1940 that IPUMS holds. A file of P.L. "
    "94-171 by block is read, too, and its block groups stand for districts."
)


@dataclass(frozen=True, slots=True, eq=False)
class Districts:
    """People of every district by stratum.

    Attributes
    ----------
    counts : ndarray of int64, shape (districts, strata)
    county : ndarray of int64, shape (districts,)
        A number for each county, the same for all of its districts.
    words : str
        What these districts are.
    """

    counts: Ints
    county: Ints
    words: str


def read_districts(path: Path) -> Districts:
    """Read enumeration districts of one state (`COLUMNS`), or blocks of one county (`read_strata`).

    Strata are all combinations of the ages, races and ethnicities that occur; districts and strata are in the order of
    their numbers, as the authors' code has them, so that its noise falls on the same counts.

    Raises
    ------
    InputError
        If columns are missing, a number is not whole or is negative, or the rows are of several states.
    """
    if "enum_dist" not in column_names(path):
        groups = read_strata(path)["Block_Group"]
        words = f"{len(groups):,} block groups of {path.name}, all of one county"
        return Districts(groups, np.zeros(len(groups), dtype=np.int64), words)
    state, county, district, *strata, count = read_counts(path, COLUMNS)
    if not state.size or (state != state[0]).any():
        raise InputError(
            f"{path}: the districts must be of one state, and at least one; the figure's is Washington, 53"
        )
    places, row = np.unique(np.stack([county, district]), axis=1, return_inverse=True)
    column = np.zeros(len(count), dtype=np.int64)
    number = 1
    for codes in strata:
        known, code = np.unique(codes, return_inverse=True)
        column, number = column * len(known) + code, number * len(known)
    if places.shape[1] * number > _CELLS:
        raise InputError(f"{path}: more than {_CELLS:,} counts of districts by stratum; age is 17 or 18, as in 1940")
    counts = np.zeros((places.shape[1], number), dtype=np.int64)
    np.add.at(counts, (row.ravel(), column), count)
    words = f"{len(counts):,} districts of {len(np.unique(places[0])):,} counties of {path.name}"
    return Districts(counts, places[0], words)


_COUNTIES: Final = 39
_STRATA: Final = 24
_PEOPLE: Final = 652
"""Of a district on average: 1,736,191 people of Washington in 1940, over its districts."""

_SPREAD: Final = 0.687
"""Standard deviation of the logarithm of a district's people: that of a lognormal law with the ratio of standard
deviation and mean, 762.7 / 981.8, that enumeration districts of all states have (results_dp_counts.json)."""

_ADULTS: Final = 0.72
_OCCUPIED: Final = (9869 / DISTRICTS - 2) / (_STRATA - 2)
"""Share of the strata with people beyond the two that every district has: 9,869 in all have people."""

_FEW: Final = 8.4
"""People of such a stratum on average: those who were not White, over these strata."""


def made_up_districts(seed: int = 1940) -> Districts:
    """People invented to stand for Washington in 1940, by what is published of it."""
    generator = np.random.default_rng(seed)
    people = np.ceil(generator.lognormal(np.log(_PEOPLE) - _SPREAD**2 / 2, _SPREAD, DISTRICTS)).astype(np.int64)
    shape = (DISTRICTS, _STRATA - 2)
    others = np.where(generator.random(shape) < _OCCUPIED, generator.geometric(1 / _FEW, shape), 0)
    adults = generator.binomial(people, _ADULTS)
    weights = 1 / np.arange(1, _COUNTIES + 1)
    county = np.sort(generator.choice(_COUNTIES, DISTRICTS, p=weights / weights.sum()))
    words = (
        f"{DISTRICTS:,} made-up districts of {_COUNTIES} counties, with about as many people and as many strata "
        "without any as Washington had in 1940"
    )
    return Districts(np.column_stack([people - adults, adults, others]), county, words)
