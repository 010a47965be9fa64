"""Race and ethnicity of invented people, and the public shares they follow."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from yupana.arrays import Floats, Ints

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


Shares: TypeAlias = tuple[tuple[int, float, float, float, float], ...]

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

    frequent: Shares
    rare: float
    ranges: tuple[tuple[int, int], ...]


_WHITE = _GroupShares(
    (
        (1000, 18, 20, 26, 22), (1121, 10, 12, 17, 14), (1171, 9, 24, 10, 11), (1201, 15, 11, 9, 9),
        (1206, 17, 5, 4, 5), (1286, 5, 6, 1.5, 1.5), (1156, 2.5, 2, 2.5, 1.7), (1320, 2, 1.8, 3, 3),
        (1280, 0.4, 3, 0.6, 2), (1355, 1, 2, 0.7, 1.6), (1305, 2, 0.8, 0.8, 1.2), (1290, 1.6, 0.1, 0.2, 0.8),
        (1115, 1, 2.5, 0.9, 1.2), (1185, 1, 0.6, 0.4, 0.4), (1375, 0.9, 0.6, 0.3, 0.6), (1190, 0.7, 0.8, 0.3, 0.3),
        (1775, 1.5, 0.4, 0.5, 0.3), (1110, 0.2, 0.8, 0.2, 1), (1385, 0.6, 0.5, 0.4, 0.6), (1100, 0.2, 1, 0.4, 0.3),
        (1130, 2, 2, 3, 3), (1770, 0.5, 0.5, 0.8, 0.8), (1001, 1, 1, 1.5, 1.3), (7151, 0.4, 0.5, 0.2, 0.3),
        (7091, 0.1, 0.1, 0.2, 0.7), (7071, 0.3, 0.1, 0.15, 0.2), (1025, 0.15, 0.05, 0.03, 0.5),
    ),
    2.0,
    ((1050, 1051), (1070, 1072), (1075, 1077), (1095, 1096), (1130, 1135), (1139, 1140), (1171, 1175), (1206, 1208),
     (1290, 1292), (1310, 1312), (7071, 7072)),
)  # fmt: skip
_BLACK = _GroupShares(
    (
        (3000, 30, 38, 36, 34), (3011, 38, 52, 52, 46), (3020, 3, 3, 4, 3), (3446, 9, 0.6, 2, 0.8),
        (3441, 7, 0.4, 2.2, 0.3), (3236, 2, 1, 1.6, 1), (3166, 0.4, 0.6, 0.8, 3), (3266, 0.2, 2, 0.1, 1),
        (3180, 1.3, 0.4, 0.5, 0.2), (3465, 2, 0.1, 0.4, 0.1), (3420, 0.9, 0.05, 0.1, 0.05), (3100, 1.5, 1.3, 1, 1.3),
        (3200, 0.8, 0.5, 0.2, 0.2), (3145, 0.2, 0.4, 0.2, 0.3),
    ),
    1.5,
    ((3015, 3016), (3001, 3003), (3236, 3238), (3404, 3405), (3470, 3472)),
)  # fmt: skip
_AIAN = _GroupShares(
    (
        (5000, 30, 22, 24, 22), (5500, 6, 5, 6, 5), (5599, 14, 12, 16, 5), (5603, 1, 2, 9, 2),
        (5999, 0.5, 1, 1.5, 17), (5689, 1, 1.5, 4, 1), (5690, 0.2, 0.5, 4, 0.5), (5514, 1, 1, 1.5, 3),
        (5649, 1, 9, 0.5, 1), (5536, 4, 3, 3, 2), (5922, 0.5, 0.5, 6, 0.2), (5863, 6, 1.5, 0.5, 0.3),
        (5735, 0.3, 0.5, 4, 0.5), (6164, 0.3, 0.3, 0.5, 4), (5410, 0.05, 0.05, 0.05, 1.5), (5221, 0.1, 0.1, 0.1, 1.5),
        (5320, 0.1, 0.1, 0.1, 1), (5120, 0.1, 0.1, 0.1, 0.8), (5948, 0.1, 1.2, 0.1, 0.1), (5664, 0.1, 3, 0.1, 0.2),
    ),
    14.0,
    ((5020, 5089), (5120, 5132), (5134, 5173), (5220, 5266), (5320, 5342), (5410, 5483), (5599, 5617), (5649, 5673),
     (5735, 5747), (5771, 5784), (5786, 5811), (6043, 6063), (6117, 6141), (6164, 6186), (6189, 6210), (6300, 6318),
     (6500, 6563), (6565, 6696), (6800, 6822), (6843, 6880), (6914, 6941)),
)  # fmt: skip
_ASIAN = _GroupShares(
    (
        (4020, 26, 16, 16, 24), (4220, 28, 30, 30, 13), (4450, 9, 11, 13, 23), (4520, 5, 7, 14, 12),
        (4050, 8, 7, 8, 8), (4040, 2, 3, 2.5, 7), (4290, 4, 3, 4.5, 1.2), (4080, 0.2, 7, 1, 2),
        (4440, 1, 1, 1, 2), (4470, 0.4, 1.5, 1, 1.2), (4510, 0.8, 0.8, 0.9, 1.2), (4070, 1, 0.8, 0.8, 1.6),
        (4240, 3.5, 0.9, 0.9, 0.3), (4280, 1.2, 1.2, 1.6, 0.5), (4420, 0.8, 2.2, 1, 0.4), (4160, 0.5, 0.3, 0.6, 0.9),
        (4460, 0.3, 0.3, 0.3, 0.7), (4000, 2, 2, 2, 2), (4001, 0.5, 0.5, 0.6, 0.5),
    ),
    1.5,
    ((4002, 4003), (4021, 4026), (4041, 4043), (4223, 4224), (4521, 4523), (4790, 4790)),
)  # fmt: skip
_NHPI = _GroupShares(
    (
        (7530, 22, 18, 20, 42), (7550, 14, 12, 10, 20), (7615, 12, 12, 18, 9), (7561, 1, 2, 2, 8),
        (7641, 1, 10, 9, 4), (7711, 2, 1, 1, 5), (7620, 1, 3, 2, 2), (7805, 20, 16, 14, 3), (7500, 12, 10, 10, 3),
        (7665, 0.5, 0.5, 1, 0.8),
    ),
    3.0,
    ((7530, 7532), (7641, 7649), (7501, 7503), (7615, 7616)),
)  # fmt: skip
_SOME_OTHER_RACE = _GroupShares(
    (
        (8000, 40, 52, 50, 52), (8060, 14, 3, 7, 3), (8080, 5, 0.2, 0.3, 0.3), (8140, 12, 0.5, 2, 0.3),
        (8040, 1, 0.8, 0.8, 1.5), (8090, 3, 0.5, 2, 0.5), (8570, 5, 9, 8, 10), (8540, 3, 5, 4, 5), (8002, 2, 3, 3, 3),
    ),
    3.0,
    ((8001, 8004), (8140, 8141)),
)  # fmt: skip
_HISPANIC_ORIGIN = _GroupShares(
    (
        (2010, 7, 66, 50, 74), (2330, 32, 11, 8, 1.5), (2310, 2.5, 1, 8, 0.8), (2321, 18, 0.8, 2.5, 0.3),
        (2151, 5, 2, 5, 5.5), (2110, 3.5, 3, 3, 2.8), (2231, 5, 1.5, 3.5, 0.9), (2120, 2, 1.3, 2.8, 0.8),
        (2240, 7, 1.4, 0.8, 0.4), (2260, 3, 0.8, 1.2, 0.8), (2275, 0.8, 0.6, 2, 0.3), (2130, 0.4, 0.3, 1.3, 0.7),
        (2200, 0.7, 0.4, 0.7, 0.4), (2400, 1.5, 1.5, 1.8, 2.2), (2790, 4, 4, 4, 4), (2002, 1.2, 1.2, 1.4, 1.6),
        (2620, 0.8, 0.8, 0.8, 0.9), (2140, 0.5, 0.2, 0.4, 0.2), (2100, 0.4, 0.2, 0.3, 0.2), (2220, 0.3, 0.2, 0.3, 0.3),
        (2210, 0.2, 0.1, 0.3, 0.2),
    ),
    1.5,
    ((2058, 2096), (2280, 2296), (2160, 2164), (2169, 2174), (2300, 2304)),
)  # fmt: skip
_TABLES = (_WHITE, _BLACK, _AIAN, _ASIAN, _NHPI, _SOME_OTHER_RACE, _HISPANIC_ORIGIN)

# Where a code is that many times as frequent as in its region; assumed.
_BOOSTS: Mapping[str, Mapping[int, float]] = MappingProxyType(
    {
        "02": {5410: 20, 5221: 16, 5320: 12, 5120: 12, 5999: 0.05, 4450: 3},
        "04": {5999: 3},
        "06": {1025: 2, 7091: 2, 2151: 1.3},
        "11": {3166: 8, 2151: 5},
        "12": {2310: 5, 3441: 5, 3446: 3, 2275: 4, 2231: 3, 2330: 2},
        "15": {4040: 6, 4450: 2, 7530: 2},
        "24": {2151: 6, 3236: 2},
        "26": {7151: 5},
        "27": {4080: 5, 3266: 12, 1280: 5, 1355: 4},
        "35": {5999: 2, 6164: 5, 2400: 6},
        "36": {2321: 1.5, 3446: 1.4},
        "37": {5922: 8},
        "38": {1280: 8, 1171: 1.5},
        "40": {5603: 4, 5690: 5, 5735: 5},
        "48": {2010: 1.6, 4520: 1.4},
        "49": {1121: 2, 1110: 3},
        "51": {2151: 5, 3166: 3},
        "55": {1171: 1.6, 4080: 3, 5948: 6},
        "72": {2330: 300, 2321: 6},
    }
)

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
            weights = np.array([row[column] * boosts.get(row[0], 1) for row in group.frequent])
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
