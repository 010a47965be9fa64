"""Race and ethnicity of invented people, and the public shares they follow."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from yupana.arrays import Floats, Ints

FIGURES: Final = tomllib.loads((Path(__file__).parent / "figures.toml").read_text(encoding="utf-8"))
"""The public figures that invented people follow."""

RACES: Final = 6

COMBINATIONS: Final = tuple(races for size in range(1, RACES + 1) for races in combinations(range(RACES), size))
"""The races of CENRACE 1 to 63: six alone, then every pair, triple, ... of them in lexicographic order."""


def cumulative(rows: ArrayLike) -> Floats:
    """Row-wise cumulative shares, row r shifted to [r, r + 1), laid end to end: one search then serves all rows.

    Parameters
    ----------
    rows : array_like of float, shape (rows, columns)
        Weights, of any sum.

    Returns
    -------
    ndarray of float, shape (rows * columns,)
        For `draw_columns`.
    """
    shares = np.cumsum(np.asarray(rows, dtype=np.float64), axis=1)
    shares /= shares[:, -1:]
    flat: Floats = (shares + np.arange(len(shares))[:, None]).ravel()
    return flat


def draw_columns(rng: Generator, table: Floats, width: int, row: Ints) -> Ints:
    """Draw a column from each of the named rows of a `cumulative` table of so many columns.

    Parameters
    ----------
    rng : Generator
        Source of the draws.
    table : ndarray of float, shape (rows * width,)
    row : ndarray of int, shape (n,)

    Returns
    -------
    ndarray of int, shape (n,)
        Columns, from 0.
    """
    found = np.searchsorted(table, row + rng.random(len(row)), side="right") - row * width
    # row + u rounds up to row + 1 for u next to 1
    column: Ints = np.minimum(found, width - 1)
    return column


MOST_CODES = 8
"""Race codes on a record, at most."""

NOT_HISPANIC = 9950
"""QSPAN of everybody whose CENHISP is 1: the box "No, not of Hispanic, Latino, or Spanish origin"."""

_SOME_OTHER, _ORIGIN = 5, 6

# A second code within the same major groups: the chance of a person of one group and of several, and of one more after
# each. Assumed, so that with CENRACE's own share of two or more races about 90 percent have one code, 8 two, 2 more.
_ANOTHER, _ANOTHER_OF_SEVERAL, _ONE_MORE = 0.01, 0.1, 0.3
# Hispanic people of Some Other Race who repeat their origin as their race; assumed.
_ORIGIN_AS_RACE = 0.75


class _GroupShares(NamedTuple):
    """A major group: frequent codes with their weights in the Northeast, Midwest, South and West, and rare codes.

    `rare` is the percentage of answers that are one of the codes of `ranges` (ends included), all equally often.
    """

    frequent: list[tuple[int, float, float, float, float]]
    rare: float
    ranges: list[tuple[int, int]]


_TABLES: Final = [_GroupShares(**group) for group in FIGURES["groups"].values()]
_BOOSTS: Final[Mapping[str, Mapping[str, float]]] = FIGURES["boosts"]

_SIZE: Ints = np.array([len(races) for races in COMBINATIONS])
# the k-th group of each of the 63 combinations
_PART: Ints = np.array([races + (0,) * (RACES - len(races)) for races in COMBINATIONS])


@dataclass(frozen=True)
class CodeTables:
    """What codes are drawn from, for the states of one census."""

    cumulative: Floats  # of shares, one row for each state and group
    codes: Ints  # shape (groups, width): the code of each column; 0 stands for one of the rare codes
    rare: Ints  # the rare codes of all groups, laid end to end
    opens: Ints  # shape (groups + 1,): where the rare codes of each group begin


@dataclass(frozen=True)
class RaceCodes:
    """Detailed codes of n people."""

    races: Ints  # shape (n, 8): QRACE1 to QRACE8: different codes, and 0 after the last
    origin: Ints  # shape (n,): QSPAN


def code_tables(states: Sequence[tuple[str, str]]) -> CodeTables:
    """Prepare the shares of every state of a census.

    Parameters
    ----------
    states : sequence of (str, str)
        FIPS code and census region of each state, the region "1" to "4"; "9", Puerto Rico, is taken as the South.

    Returns
    -------
    CodeTables
        For `draw_codes`.
    """
    width = 1 + max(len(group.frequent) for group in _TABLES)
    codes = np.zeros((len(_TABLES), width), dtype=np.int64)
    shares = np.zeros((len(states), len(_TABLES), width))
    for g, group in enumerate(_TABLES):
        codes[g, 1 : 1 + len(group.frequent)] = [row[0] for row in group.frequent]
        for s, (state, region) in enumerate(states):
            column = 3 if region == "9" else int(region)
            boosts = _BOOSTS.get(state, {})
            weights = np.array([row[column] * boosts.get(str(row[0]), 1) for row in group.frequent])
            shares[s, g, 1 : 1 + len(weights)] = weights / weights.sum() * (1 - group.rare / 100)
            shares[s, g, 0] = group.rare / 100
    rare = [[code for low, high in group.ranges for code in range(low, high + 1)] for group in _TABLES]
    return CodeTables(
        cumulative=cumulative(shares.reshape(-1, width)),
        codes=codes,
        rare=np.array([code for group in rare for code in group]),
        opens=np.cumsum([0] + [len(group) for group in rare]),
    )


def draw_codes(rng: Generator, tables: CodeTables, state: Ints, hispanic: Ints, race: Ints) -> RaceCodes:
    """Draw detailed codes that agree with origin and major race groups.

    Parameters
    ----------
    rng : Generator
        Source of the draws.
    tables : CodeTables
        Of the states of the census.
    state : ndarray of int, shape (n,)
        Position of the state in `tables`.
    hispanic : ndarray of int, shape (n,)
        CENHISP, 1 or 2.
    race : ndarray of int, shape (n,)
        CENRACE, 1 to 63: the codes belong to exactly these major groups.

    Returns
    -------
    RaceCodes
        Of n people.
    """
    people = len(race)
    origin = np.full(people, NOT_HISPANIC)
    is_hispanic = np.flatnonzero(hispanic == 2)
    origin[is_hispanic] = _answers(rng, tables, state[is_hispanic], np.full(len(is_hispanic), _ORIGIN))

    size = _SIZE[race - 1]
    races = np.zeros((people, MOST_CODES), dtype=np.int64)
    for part in range(int(size.max(initial=0))):
        who = np.flatnonzero(size > part)
        group = _PART[race[who] - 1, part]
        code = _answers(rng, tables, state[who], group)
        as_race = (group == _SOME_OTHER) & (hispanic[who] == 2) & (rng.random(len(who)) < _ORIGIN_AS_RACE)
        races[who, part] = np.where(as_race, origin[who], code)

    filled = size.copy()
    who = np.flatnonzero(rng.random(people) < np.where(size > 1, _ANOTHER_OF_SEVERAL, _ANOTHER))
    while len(who):
        group = _PART[race[who] - 1, (size[who] * rng.random(len(who))).astype(np.int64)]
        code = _answers(rng, tables, state[who], group)
        # the same answer twice is one answer
        new = ~(races[who] == code[:, None]).any(axis=1)
        races[who[new], filled[who[new]]] = code[new]
        filled[who[new]] += 1
        who = who[(rng.random(len(who)) < _ONE_MORE) & (filled[who] < MOST_CODES)]
    return RaceCodes(races, origin)


def _answers(rng: Generator, tables: CodeTables, state: Ints, group: Ints) -> Ints:
    """Draw one code of a group for each person."""
    column = draw_columns(rng, tables.cumulative, tables.codes.shape[1], state * len(_TABLES) + group)
    code: Ints = tables.codes[group, column]
    rare = np.flatnonzero(code == 0)
    opens, ends = tables.opens[group[rare]], tables.opens[group[rare] + 1]
    code[rare] = tables.rare[opens + ((ends - opens) * rng.random(len(rare))).astype(np.int64)]
    return code
