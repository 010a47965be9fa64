"""The geography of a synthetic census: states cut into counties, tracts, block groups, blocks, places and the like.

Everything is a stretch of one long row of households. Counties, tracts, block groups and blocks nest. Places, county
subdivisions and American Indian, Alaska Native and Native Hawaiian (AIANNH) areas are stretches of their own whose
ends are blocks' ends and nothing else, so that they cut through tracts as real ones do.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from yupana.arrays import Floats, Ints
from yupana.synthetic.households import LEANS, PROFILES, Mix, draw_lean
from yupana.synthetic.race import FIGURES


class StateShares(NamedTuple):
    """Population in thousands and percent Hispanic (2020 Census, PL 94-171, rounded), and its kind of race mix."""

    region: str
    division: str
    population: int
    hispanic: float
    profile: str


STATES: Mapping[str, StateShares] = MappingProxyType(
    {code: StateShares(*shares) for code, shares in FIGURES["states"].items()}
)
"""By FIPS code."""

PUERTO_RICO = "72"

# Households in a tract, and tracts in a county, about as in the nation (2020: 84,000 tracts, 3,143 counties).
_TRACT_HOUSEHOLDS = 1500
_COUNTY_TRACTS = 27
_TRACT_SPREAD = 0.35  # of the logarithm of a tract's households; assumed
_MOST_TRACTS, _MOST_COUNTIES = 60_000, 500  # so that the codes suffice: four digits, odd numbers of three

# InventedBlocks (2020: 8.1 million, 5.8 million of them with people, 127 million households; the spread is assumed).
_BLOCK_HOUSEHOLDS = 15.6
_BLOCKS_SPREAD = 0.4  # of the logarithm of a tract's blocks
_BLOCK_SPREAD = 1.2  # of the logarithm of a block's households
_EMPTY_BLOCKS = 0.25  # of blocks, before those that chance leaves empty
_MOST_BLOCKS = 990  # of a block group, so that three digits suffice

_IN_PLACE = 0.76  # of people, 2020 Census, rounded
_PLACE_HOUSEHOLDS = 4000  # for one place: 2020, 32,000 places; rounded
_PLACE_SPREAD = 1.9  # of the logarithm of a place's households; assumed, so that the mean is six times the median
_SUBDIVISION_TRACTS = 2.3  # for one county subdivision: 2020, 36,000 of them; rounded
_SUBDIVISION_SPREAD = 1.0  # of the logarithm of its households; assumed


class _Tribal(NamedTuple):
    """AIANNH areas of a state: number, percent of households in them, first code (its range tells the kind), pull.

    `pull` is the chance that a household there is of the areas' own people, whatever the place is else like.
    """

    areas: int
    percent: float
    code: int
    pull: float


_TRIBAL: Mapping[str, _Tribal] = {code: _Tribal(*areas) for code, areas in FIGURES["tribal"].items()}
_AIAN_RACE, _NHPI_RACE = 2, 4
_HISPANIC_IN_TRIBE = 0.04  # of households drawn to be of an area's own people; assumed

# Hispanic people live in larger households, so that of householders a smaller share is Hispanic: odds, fitted by trial
# to the share of people.
_HISPANIC_HOUSEHOLDERS = 1 / 1.2

# How much the race of a household is that of its place's or tract's leaning, and how unequal Hispanic shares are:
# Beta(c p, c (1 - p)) about the state's share p. The larger its part of the state, the less an area may differ: the
# pull falls and c grows with it. All assumed.
_PLACE_PULL, _TRACT_PULL = (0.5, 2.2), (0.6, 0.75)  # laws of the pull, Beta: many areas are mixed, many hardly
_PLACE_LIKENESS, _TRACT_LIKENESS, _LIKENESS_OF_ALL = 6.0, 4.0, 300.0

# Owning a home is more or less usual in a tract, whoever lives there: logarithm of the odds, mean and spread; assumed,
# the mean by trial. Vacant units are more or less frequent in a place, and more so outside of places; assumed.
_OWNERS = (0.13, 0.9)
_VACANCY_SPREAD, _VACANCY_OUTSIDE = 0.6, 1.6


@dataclass(frozen=True)
class _Character:
    """What the people of areas are like, arrays of shape (areas,)."""

    lean: Ints  # the race to which they lean, as `Mix.profile` says it
    pull: Floats  # share of households that are of it, whatever the rest of the state is like
    hispanic: Floats  # chance of Hispanic origin


@dataclass(frozen=True)
class Tracts:
    """Tracts in order: position of the state, county and tract code, arrays of shape (tracts,).

    `owners` is the logarithm of the odds by which owning a home is more usual than for such people elsewhere.
    """

    state: Ints
    county: Ints
    code: Ints
    character: _Character
    owners: Floats


@dataclass(frozen=True)
class _InventedBlocks:
    """Blocks in the order of their codes, arrays of shape (blocks,), of 32 bits where there may be eight million."""

    first: Ints  # the first household of the block, counted through all states
    households: NDArray[np.int32]  # households in it, 0 in many
    tract: NDArray[np.int32]  # position of the tract
    number: NDArray[np.int32]  # code of the block, TABBLK: its first digit is that of the block group
    stretch: NDArray[np.int32]  # position of the place or land between places
    # PLACEFP, COUSUBFP and AIANNHCE, all nines for none
    place: NDArray[np.int32]
    subdivision: NDArray[np.int32]
    tribal: NDArray[np.int32]


@dataclass(frozen=True)
class Geography:
    """Where everything is."""

    codes: tuple[str, ...]  # FIPS codes of the states
    states: tuple[StateShares, ...]  # the states themselves
    tracts: Tracts  # of all states, in order
    stretches: _Character  # of places and the land between them, in order
    vacancy: Floats  # shape (stretches,): vacant units for a household there, in proportion
    blocks: _InventedBlocks  # of all states, in order

    def find(self, start: int, stop: int) -> Ints:
        """Return the position of the block of each household from `start` up to `stop`."""
        return np.searchsorted(self.blocks.first, np.arange(start, stop), side="right") - 1

    def vacant(self, rng: Generator, block: Ints, number: int) -> Ints:
        """Pick blocks of vacant units, among those of households: more of them where vacancy is frequent.

        Parameters
        ----------
        rng : Generator
            Source of the draws.
        block : ndarray of int, shape (households,)
            Positions of the households' blocks.
        number : int
            Vacant units.

        Returns
        -------
        ndarray of int, shape (number,)
        """
        weight = np.cumsum(self.vacancy[self.blocks.stretch[block]])
        chosen: Ints = block[np.searchsorted(weight[:-1], rng.random(number) * weight[-1], side="right")]
        return chosen

    def mix(self, rng: Generator, block: Ints) -> Mix:
        """Return what race and origin are drawn from, for a household or person in each of the blocks.

        Parameters
        ----------
        rng : Generator
            Source of the draws: whether somebody is like the state, the place or the tract.
        block : ndarray of int, shape (n,)
            Positions of blocks.

        Returns
        -------
        Mix
            Of shape (n,).
        """
        tract, stretch = self.blocks.tract[block], self.blocks.stretch[block]
        state = self.tracts.state[tract]
        like = rng.random(len(block))
        profile = np.array([PROFILES.index(item.profile) for item in self.states])[state]
        of_place, of_tract = self.stretches, self.tracts.character
        profile = np.where(like < of_place.pull[stretch], of_place.lean[stretch], profile)
        profile = np.where(like > 1 - of_tract.pull[tract], of_tract.lean[tract], profile)

        tribal = [_TRIBAL.get(code, _Tribal(0, 0, 0, 0)) for code in self.codes]
        own = np.array([_NHPI_RACE if item.profile == "hawaii" else _AIAN_RACE for item in self.states])
        pull = np.where(self.blocks.tribal[block] == 9999, 0.0, np.array([item.pull for item in tribal])[state])
        in_tribe = rng.random(len(block)) < pull
        return Mix(
            hispanic=np.where(
                in_tribe, _HISPANIC_IN_TRIBE, (of_place.hispanic[stretch] + of_tract.hispanic[tract]) / 2
            ),
            profile=np.where(in_tribe, LEANS + own[state], profile),
            puerto_rico=np.array([code == PUERTO_RICO for code in self.codes])[state],
            owners=self.tracts.owners[tract],
        )


@dataclass(frozen=True)
class _Rows:
    """Rows of households, as of a state, one behind the other: the first household and the number of each."""

    opens: Ints
    size: Ints


@dataclass(frozen=True)
class _Runs:
    """Stretches of rows of households: where each opens, in which row, its number there, and whether it is a gap."""

    opens: Floats
    row: Ints
    number: Ints
    gap: NDArray[np.bool_]


def lay_out(rng: Generator, codes: Sequence[str], households: int) -> Geography:
    """Cut states into areas of unequal size.

    Parameters
    ----------
    rng : Generator
        Source of the draws.
    codes : sequence of str
        FIPS codes of the states, each once.
    households : int
        Of all states together; they are shared out by the 2020 population.

    Returns
    -------
    Geography
        States without a household have no areas.
    """
    states = tuple(STATES[code] for code in codes)
    size = _share_out(households, [state.population for state in states])
    of_states = _Rows(np.cumsum(size) - size, size)
    state, county, counties = _number_tracts(size)
    first = _cut(rng.lognormal(0, _TRACT_SPREAD, len(state)), state, of_states)
    of_tracts = _Rows(first, np.diff(first, append=households))
    block_first, tract, number = _cut_blocks(rng, of_tracts)
    block_size = np.diff(block_first, append=households)
    middle = block_first + block_size / 2

    places = np.maximum(size // _PLACE_HOUSEHOLDS, 1)
    place = _runs(rng, of_states, places, np.full(len(size), _IN_PLACE), _PLACE_SPREAD)
    stretch, in_place = _locate(place, of_states, state[tract], middle)
    place_code = 100 + place.number * (99_000 // places)[place.row]
    subdivision = _lay_subdivisions(rng, of_tracts, counties, tract, middle)
    tribal = _lay_tribal(rng, codes, of_states, state[tract], middle)

    of_state = np.maximum(size, 1)
    place_part = np.clip(np.diff(place.opens, append=float(households)) / of_state[place.row], 0, 1)
    return Geography(
        codes=tuple(codes),
        states=states,
        tracts=Tracts(
            state=state,
            county=2 * county + 1,
            code=(_parts(counties)[1] + 1) * 100,
            character=_character(rng, states, state, of_tracts.size / of_state[state], _TRACT_PULL, _TRACT_LIKENESS),
            owners=rng.normal(*_OWNERS, len(state)),
        ),
        stretches=_character(rng, states, place.row, place_part, _PLACE_PULL, _PLACE_LIKENESS),
        vacancy=rng.lognormal(0, _VACANCY_SPREAD, len(place.row)) * np.where(place.gap, _VACANCY_OUTSIDE, 1),
        blocks=_InventedBlocks(
            first=block_first,
            households=block_size.astype(np.int32),
            tract=tract.astype(np.int32),
            number=number.astype(np.int32),
            stretch=stretch.astype(np.int32),
            place=np.where(in_place, place_code[stretch], 99999).astype(np.int32),
            subdivision=subdivision.astype(np.int32),
            tribal=tribal.astype(np.int32),
        ),
    )


def _number_tracts(size: Ints) -> tuple[Ints, Ints, Ints]:
    """State and county of each tract of states with so many households, and the number of tracts of each county.

    A few counties have many tracts and many have few: tract t of T lies in county K (t / T)^2 of K.
    """
    number = np.clip(-(-size // _TRACT_HOUSEHOLDS), np.minimum(size, 1), _MOST_TRACTS)
    state, within = _parts(number)
    counties = np.clip(number // _COUNTY_TRACTS, 1, _MOST_COUNTIES)[state]
    county = (counties * (within / number[state]) ** 2).astype(np.int64)
    return state, county, np.diff(np.flatnonzero(np.diff(state * 1000 + county, prepend=-1)), append=len(state))


def _lay_subdivisions(rng: Generator, of_tracts: _Rows, counties: Ints, tract: Ints, middle: Floats) -> Ints:
    """The subdivision of each block, by its tract and middle; counties have so many tracts, and are cut whole."""
    opens = of_tracts.opens[np.cumsum(counties) - counties]
    of_counties = _Rows(opens, np.diff(opens, append=of_tracts.size.sum()))
    parts = np.maximum(np.rint(counties / _SUBDIVISION_TRACTS), 1).astype(np.int64)
    part = _runs(rng, of_counties, parts, np.ones(len(parts)), _SUBDIVISION_SPREAD)
    inside, in_part = _locate(part, of_counties, _parts(counties)[0][tract], middle)
    code = 100 + part.number * (90_000 // parts)[part.row]
    return np.where(in_part, code[inside], 100)


def _lay_tribal(rng: Generator, codes: Sequence[str], of_states: _Rows, state: Ints, middle: Floats) -> Ints:
    """The AIANNH area of each block, by its state and middle; 9999 for none."""
    tribal = [_TRIBAL.get(item, _Tribal(0, 0, 0, 0)) for item in codes]
    share = np.array([item.percent for item in tribal]) / 100
    area = _runs(rng, of_states, np.array([item.areas for item in tribal]), share, 1.0)
    inside, in_area = _locate(area, of_states, state, middle)
    code = np.append(np.array([item.code for item in tribal])[area.row] + area.number, 9999)
    return np.where(in_area, code[inside], 9999)


def _character(
    rng: Generator, states: Sequence[StateShares], of: Ints, part: Floats, pull: tuple[float, float], likeness: float
) -> _Character:
    """What areas are like that are such parts of their states: the larger, the more like them."""
    profile = np.array([PROFILES.index(item.profile) for item in states])
    odds = np.array([item.hispanic / (100 - item.hispanic) for item in states]) * _HISPANIC_HOUSEHOLDERS
    share = odds / (1 + odds)
    return _Character(
        lean=draw_lean(rng, profile[of]),
        pull=rng.beta(*pull, len(of)) * (1 - part),
        hispanic=_shares(rng, share[of], likeness + _LIKENESS_OF_ALL * part),
    )


def _shares(rng: Generator, mean: Floats, likeness: Floats) -> Floats:
    return rng.beta(likeness * mean, likeness * (1 - mean))


def _share_out(households: int, weights: Sequence[int]) -> Ints:
    """Whole numbers in proportion to the weights (largest remainders), one at least where there are enough."""
    least = int(households >= len(weights))
    exact = np.array(weights) / sum(weights) * (households - least * len(weights))
    shares = np.floor(exact).astype(np.int64) + least
    shares[np.argsort(shares - exact, kind="stable")[: households - int(shares.sum())]] += 1
    return shares


def _parts(number: Ints) -> tuple[Ints, Ints]:
    """The row of each of so many parts of rows, and its place within the row."""
    row = np.repeat(np.arange(len(number)), number)
    return row, np.arange(len(row)) - np.repeat(np.cumsum(number) - number, number)


def _cut(weights: Floats, row: Ints, rows: _Rows) -> Ints:
    """Cut rows of households into parts in proportion to weights; return the first household of each part.

    `row` is the row of each part, in order.
    """
    before = np.cumsum(weights) - weights
    total = np.bincount(row, weights, minlength=len(rows.opens))
    begins = np.searchsorted(row, np.arange(len(rows.opens)))
    portion = (before - before[begins[row]]) / total[row]
    size = rows.size[row]
    # so small a part of the whole that rounding can reach the row's end, not pass it
    return rows.opens[row] + np.minimum((np.maximum(portion, 0) * size).astype(np.int64), size)


def _cut_blocks(rng: Generator, of_tracts: _Rows) -> tuple[Ints, Ints, Ints]:
    """Cut tracts into block groups and blocks; return first household, tract and code of each block."""
    size = of_tracts.size
    groups = rng.integers(1, 6, len(size))
    number = np.rint(size / _BLOCK_HOUSEHOLDS * rng.lognormal(0, _BLOCKS_SPREAD, len(size)))
    number = np.clip(number, groups, groups * _MOST_BLOCKS).astype(np.int64)
    tract, within = _parts(number)
    weights = rng.lognormal(0, _BLOCK_SPREAD, len(tract))
    # the first block of a tract is never empty: somebody must live there
    weights[(rng.random(len(tract)) < _EMPTY_BLOCKS) & (within > 0)] = 0
    group = within * groups[tract] // number[tract]
    group_opens = -(-group * number[tract] // groups[tract])
    return _cut(weights, tract, of_tracts), tract, 1000 * (group + 1) + within - group_opens


def _runs(rng: Generator, rows: _Rows, number: Ints, share: Floats, spread: float) -> _Runs:
    """Lay `number` areas of unequal size on each row of households, on a `share` of it, with gaps before them."""
    row, within = _parts(number)
    area = rng.lognormal(0, spread, len(row))
    area *= share[row] / np.bincount(row, area, minlength=len(number))[row]
    gap = rng.exponential(1, len(row)) + 1e-9
    gap *= (1 - share[row]) / np.bincount(row, gap, minlength=len(number))[row]
    length = np.stack([gap, area], axis=1).ravel()
    row, within = np.repeat(row, 2), np.repeat(within, 2)
    before = np.cumsum(length) - length
    begins = np.searchsorted(row, np.arange(len(number)))
    portion = before - before[begins[row]] if len(row) else before
    return _Runs(
        opens=rows.opens[row] + np.clip(portion, 0, 1) * rows.size[row],
        row=row,
        number=within,
        gap=np.arange(len(row)) % 2 == 0,
    )


def _locate(runs: _Runs, rows: _Rows, row: Ints, middle: Floats) -> tuple[Ints, NDArray[np.bool_]]:
    """Find the run in which the middle of each block lies, and whether that is an area and not a gap."""
    if not len(runs.row):
        return np.zeros(len(row), dtype=np.int64), np.zeros(len(row), dtype=np.bool_)
    # an empty block at the end of a row lies in that row and not in the next
    inside = np.minimum(middle, (rows.opens + rows.size)[row] - 0.25)
    found = np.maximum(np.searchsorted(runs.opens, inside, side="right") - 1, 0)
    return found, ~runs.gap[found] & (runs.row[found] == row)
