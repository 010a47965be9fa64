"""A synthetic census in the Bureau's input formats, made of nothing but random numbers.

Persons, units and geo are PHSafe's inputs, `person-records`, `household-records` and `GRF-C.txt` are SafeTab's, and
`housing-units.txt` lists what stands in each block; all tell of the same people. It is for tests, demonstrations and
measurements of speed and accuracy. The folder it writes holds a file named `SYNTHETIC`, by which other parts of the
system know that no real person is in it. `docs/synthetic.md` tells what is drawn from what.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from yupana.arrays import Ints
from yupana.errors import ConfigError
from yupana.files.arrow import ArrowTable
from yupana.files.columns import GEO, HOUSEHOLD_RECORDS, PERSON_RECORDS, PERSONS, UNITS
from yupana.release.folder import new_folder
from yupana.synthetic.files import (
    BLOCKS,
    GROUP_QUARTERS,
    HOUSING_UNITS,
    MAJOR_TYPES,
    QUARTERS,
    RECORDS,
    REFERENCE,
    Append,
    Whole,
    written_files,
)
from yupana.synthetic.geography import PUERTO_RICO, STATES, Geography, lay_out
from yupana.synthetic.households import InventedHouseholds, Mix, People, draw_households, draw_origin, reflect
from yupana.synthetic.race import FIGURES, CodeTables, RaceCodes, code_tables, draw_codes

Answers: TypeAlias = NDArray[np.uint16]

CHUNK = 200_000
"""Households drawn at a time: memory is bounded by it, and the draws of a seed depend on it."""


ALL_51_STATE_CODES: tuple[str, ...] = tuple(code for code in STATES if code != PUERTO_RICO)
"""FIPS codes of the fifty states and the District of Columbia."""

_VACANT = 0.097  # of housing units, 2020 Census, rounded
_GROUP_QUARTERS_PEOPLE = 0.025  # of all people, 2020 Census, rounded
_GROUP_QUARTERS_PER_HOUSEHOLD = 0.0015  # assumed: group quarters are fewer than 2 for every 1,000 households
_GROUP_QUARTERS_SPREAD = 1.0  # of the logarithm of their size; assumed
_GROUP_QUARTERS_MOST = 20_000  # people


class _Quarters(NamedTuple):
    """A kind of group quarters: major type 1 to 7, RELSHIP, percent of facilities, mean people in each, share of men.

    `age` is mean, spread, from, to.
    """

    major: int
    relship: int
    percent: float
    size: float
    male: float
    age: tuple[float, float, int, int]


_QUARTERS = tuple(_Quarters(**kind) for kind in FIGURES["quarters"])

# MAFIDs: unit number k has the (k * _MAFID_STEP mod _MAFID_COUNT)th of them, so that they follow no order of place.
_MAFID_FIRST, _MAFID_COUNT, _MAFID_STEP = 100_000_001, 799_999_999, 494_427_191

_BLOCKS_AT_ONCE = 200_000

_HOUSEHOLDER = 20  # RELSHIP
# HOUSEHOLD_TYPE by HHT: 4 and 6 live alone, 5 and 7 with others.
_HOUSEHOLD_TYPE = np.array([0, 1, 2, 3, 4, 5, 4, 5])


@dataclass(frozen=True)
class CensusSummary:
    """What a synthetic census holds: numbers of records.

    Attributes
    ----------
    persons : int
        Rows of persons, in households and in group quarters.
    units : int
        Rows of units, and of geo: households, vacant units and group quarters.
    households : int
        Occupied housing units.
    vacant : int
        Vacant housing units.
    group_quarters : int
        Group quarters.
    """

    persons: int
    units: int
    households: int
    vacant: int
    group_quarters: int

    def table(self) -> ArrowTable:
        """Tabulate them, with a row for each kind."""
        counts = {field.name: getattr(self, field.name) for field in fields(self)}
        return ArrowTable.of({"kind": ("VARCHAR", [*counts]), "records": ("BIGINT", [*counts.values()])})


@dataclass(frozen=True)
class _Request:
    """What to draw: states by FIPS code, occupied and vacant housing units, group quarters."""

    states: tuple[str, ...]
    households: int
    vacant: int
    quarters: int

    def before(self, household: int) -> tuple[int, int]:
        """Count the vacant units and group quarters written before a household: they are spread evenly."""
        return self.vacant * household // self.households, self.quarters * household // self.households


@dataclass(frozen=True)
class _Quarter:
    """Group quarters: kind of each, position in `_QUARTERS`, and everyone in them."""

    kind: Ints
    people: People


@dataclass(frozen=True)
class _Standing:
    """What stands in the blocks."""

    housing_units: Ints  # shape (blocks,)
    # shape (group quarters,): eight times the position of the block, and the major type: one for each group quarters,
    # in order
    facilities: Ints


@dataclass(frozen=True)
class _ChunkOfHouseholds:
    """What is drawn at a time: households, then vacant units, then group quarters, and everyone in the same order."""

    homes: InventedHouseholds
    vacant: int  # vacant units
    quarter: _Quarter  # its people count their units from 0
    people: People  # all, in households and in group quarters, who count theirs from 0, too, vacant ones between them
    codes: Answers  # shape (people, 9): QRACE1 to QRACE8 and QSPAN of everyone
    householders: Answers  # shape (households, 9): the same of the householders
    # shape (units,): MAFID of each unit, and the position of its block
    mafid: Ints
    block: Ints

    @property
    def housing(self) -> int:
        """Housing units, which come before group quarters."""
        return len(self.homes.size) + self.vacant


def synthesize(
    out: Path,
    *,
    households: int,
    states: Sequence[str] = ALL_51_STATE_CODES,
    seed: int | None = None,
    fmt: Literal["csv", "parquet"] = "csv",
    progress: Callable[[int, int], None] | None = None,
) -> CensusSummary:
    """Write a synthetic census as the input files of every product, with a file named `SYNTHETIC` beside them.

    The records obey every rule of consistency of the S-DHC inputs, and SafeTab's files tell of the same people in the
    same order. Distributions follow rounded national figures of the 2020 Census and the American Community Survey;
    each constant names its source. Places and tracts of a state differ in race and Hispanic origin.

    Parameters
    ----------
    out : Path
        Folder to write, new or empty. It appears complete or not at all: the work is done in `<out>.partial`.
    households : int
        Occupied housing units, at least 1. Vacant units (about a tenth of all housing units) and group quarters
        (about a fortieth of all people) come on top.
    states : sequence of str
        FIPS codes of states, each once; "72", Puerto Rico, is one. Households are shared out by the 2020 population,
        and every state gets one at least where they suffice.
    seed : int, optional
        The same seed gives the same records, byte for byte as CSV with the same release of numpy. Without it the
        operating system is asked; the number that results is in `SYNTHETIC` and can serve as a seed.
    fmt : {"csv", "parquet"}
        Text has a header and `|` between columns. In Parquet codes are text and counts, ages and MAFID integers. The
        files of blocks, `GRF-C.txt`, `housing-units.txt` and `group_quarters.csv`, are public and always text.
    progress : callable, optional
        Called with the households written and the households to write, after each chunk of `CHUNK`.

    Returns
    -------
    CensusSummary
        Numbers of records written.

    Raises
    ------
    ConfigError
        If a state is unknown or named twice, or a number or the format cannot be served.
    OutputError
        If `out` holds something, or the disk refuses.
    """
    request = _request(households, states, seed, fmt)
    with new_folder(out, noisy=False) as partial:
        sequence = np.random.SeedSequence(seed)
        rng = np.random.default_rng(sequence)
        geography = lay_out(rng, request.states, request.households)
        with written_files(partial, RECORDS, fmt) as append:
            persons, standing = _write_records(append, rng, request, geography, progress)
        with written_files(partial, BLOCKS) as append:
            _write_blocks(append, geography, standing)
        (partial / "SYNTHETIC").write_text(
            f"A synthetic census made by yupana: {households} households, states {','.join(states)}, "
            f"seed {sequence.entropy}.\nNo record in this folder describes a real person or household.\n",
            encoding="utf-8",
        )
    units = households + request.vacant + request.quarters
    return CensusSummary(persons, units, households, request.vacant, request.quarters)


def _request(households: int, states: Sequence[str], seed: int | None, fmt: str) -> _Request:
    """Refuse what cannot be served, and add the vacant units and group quarters that belong to the households."""
    if households < 1:
        raise ConfigError(f"a census needs 1 household at least, not {households}")
    unknown = sorted(set(states) - set(STATES))
    if not states or unknown:
        wrong = f"{', '.join(map(repr, unknown))} is no state" if unknown else "there is none"
        raise ConfigError(f"states: {wrong}; name FIPS codes of two digits, such as 06 or 72")
    if len(set(states)) < len(states):
        raise ConfigError("a state is named twice; name each once")
    if seed is not None and seed < 0:
        raise ConfigError("a seed is a whole number from 0 on")
    if fmt not in {"csv", "parquet"}:
        raise ConfigError(f"the format is csv or parquet, not {fmt}")
    vacant = round(households * _VACANT / (1 - _VACANT))
    # two at least, so that even a small census has both an institution and another
    quarters = max(2, round(households * _GROUP_QUARTERS_PER_HOUSEHOLD))
    if households + vacant + quarters > _MAFID_COUNT:
        raise ConfigError(f"there are only {_MAFID_COUNT} MAFIDs: ask for fewer households")
    return _Request(tuple(states), households, vacant, quarters)


def _write_records(
    append: Append, rng: Generator, request: _Request, geography: Geography, progress: Callable[[int, int], None] | None
) -> tuple[int, _Standing]:
    """Draw and write the records chunk by chunk; return the number of persons and what stands in each block."""
    tables = code_tables([(code, STATES[code].region) for code in request.states])
    vacant_units = np.zeros(len(geography.blocks.first), dtype=np.int32)
    facilities = []
    persons = 0
    for start in range(0, request.households, CHUNK):
        stop = min(start + CHUNK, request.households)
        chunk = _draw_chunk(rng, request, geography, tables, (start, stop))
        append(PERSONS, _persons(chunk))
        append(UNITS, _units(chunk))
        append(GEO, _geo(chunk, geography))
        append(PERSON_RECORDS, _person_records(chunk, geography))
        append(HOUSEHOLD_RECORDS, _household_records(chunk, geography))
        major = np.array([item.major for item in _QUARTERS])[chunk.quarter.kind]
        append(QUARTERS, [chunk.mafid[chunk.housing :], major * 100 + 1])

        empty = chunk.block[len(chunk.homes.size) : chunk.housing]
        np.add.at(vacant_units, empty, 1)
        facilities.append(chunk.block[chunk.housing :] * (MAJOR_TYPES + 1) + major)
        persons += len(chunk.people.unit)
        if progress is not None:
            progress(stop, request.households)
    return persons, _Standing(geography.blocks.households + vacant_units, np.sort(np.concatenate(facilities)))


def _draw_chunk(
    rng: Generator, request: _Request, geography: Geography, tables: CodeTables, households: tuple[int, int]
) -> _ChunkOfHouseholds:
    """Draw the households from one number up to another, and what is written with them."""
    start, stop = households
    occupied = stop - start
    vacant_before, quarters_before = request.before(start)
    vacant_after, quarters_after = request.before(stop)
    vacant, quarters = vacant_after - vacant_before, quarters_after - quarters_before

    block = geography.find(start, stop)
    homes, residents = draw_households(rng, geography.mix(rng, block))
    # vacant units and group quarters stand beside a household picked at random
    beside = block[rng.integers(0, occupied, quarters)]
    block = np.concatenate([block, geography.vacant(rng, block, vacant), beside])
    quarter = _group_quarters(rng, quarters, len(residents.unit), geography.mix(rng, block[occupied + vacant :]))
    state = geography.tracts.state[geography.blocks.tract[block]]

    householders = _answers(draw_codes(rng, tables, state[:occupied], homes.hispanic, homes.race))
    codes = householders[residents.unit]
    own = np.flatnonzero(~residents.like_householder)
    codes[own] = _answers(
        draw_codes(rng, tables, state[residents.unit[own]], residents.hispanic[own], residents.race[own])
    )
    others = replace(quarter.people, unit=quarter.people.unit + occupied + vacant)
    of_others = _answers(draw_codes(rng, tables, state[others.unit], others.hispanic, others.race))
    unit = start + vacant_before + quarters_before + np.arange(len(block))
    return _ChunkOfHouseholds(
        homes=homes,
        vacant=vacant,
        quarter=quarter,
        people=residents.followed_by(others),
        codes=np.concatenate([codes, of_others]),
        householders=householders,
        mafid=_MAFID_FIRST + unit * _MAFID_STEP % _MAFID_COUNT,
        block=block,
    )


def _group_quarters(rng: Generator, number: int, residents: int, mix: Mix) -> _Quarter:
    """Draw the people of `number` group quarters: a fixed share of everyone, in facilities of very unequal size."""
    percent = np.cumsum([kind.percent for kind in _QUARTERS])
    # one facility from each equal slice of the kinds, and the two largest kinds first: small numbers still vary
    kind = np.searchsorted(percent / percent[-1], (np.arange(number) + rng.random(number)) / max(number, 1), "right")
    kind[:2] = (0, 1)[:number]
    mean = np.array([item.size for item in _QUARTERS])[kind]
    size = mean * rng.lognormal(0, _GROUP_QUARTERS_SPREAD, number)
    people = residents * _GROUP_QUARTERS_PEOPLE / (1 - _GROUP_QUARTERS_PEOPLE)
    scaled = np.rint(size * people / max(float(size.sum()), 1.0))
    counts: Ints = np.clip(scaled, 1, _GROUP_QUARTERS_MOST).astype(np.int64)

    unit = np.repeat(np.arange(number), counts)
    person_kind = kind[unit]
    mean_age, spread, youngest, oldest = np.array([item.age for item in _QUARTERS], dtype=np.float64)[person_kind].T
    hispanic, race = draw_origin(rng, mix.take(unit))
    male = rng.random(len(unit)) < np.array([item.male for item in _QUARTERS])[person_kind]
    return _Quarter(
        kind,
        People(
            unit=unit,
            age=reflect(rng.normal(mean_age, spread), youngest, oldest),
            sex=2 - male,
            like_householder=np.zeros(len(unit), dtype=np.bool_),
            hispanic=hispanic,
            race=race,
            relship=np.array([item.relship for item in _QUARTERS])[person_kind],
        ),
    )


def _answers(codes: RaceCodes) -> Answers:
    """QRACE1 to QRACE8 and QSPAN, of shape (n, 9)."""
    return np.column_stack([codes.races, codes.origin]).astype(np.uint16)


def _persons(chunk: _ChunkOfHouseholds) -> list[Whole]:
    people = chunk.people
    return [
        np.where(people.unit < chunk.housing, 3, 5),
        chunk.mafid[people.unit],
        people.age,
        people.hispanic,
        people.race,
        people.relship,
    ]


def _units(chunk: _ChunkOfHouseholds) -> list[Whole]:
    homes, quarters = chunk.homes, len(chunk.quarter.kind)

    def padded(values: Ints) -> Ints:
        return np.concatenate([values, np.zeros(chunk.vacant + quarters, dtype=np.int64)])

    people = np.bincount(chunk.quarter.people.unit, minlength=quarters)
    return [
        _unit_types(chunk),
        chunk.mafid,
        np.concatenate([homes.size, np.zeros(chunk.vacant, dtype=np.int64), people]),
        padded(homes.family),
        padded(homes.hispanic),
        padded(homes.race),
        padded(homes.tenure),
        padded(homes.hht),
        padded(homes.hht2),
        padded(homes.couple),
    ]


def _unit_types(chunk: _ChunkOfHouseholds) -> Ints:
    """RTYPE of housing units and group quarters."""
    return np.repeat([2, 4], [chunk.housing, len(chunk.mafid) - chunk.housing])


def _geo(chunk: _ChunkOfHouseholds, geography: Geography) -> list[Whole]:
    blocks, block = geography.blocks, chunk.block
    return [
        _unit_types(chunk),
        chunk.mafid,
        *_address(geography, block),
        blocks.number[block] // 1000,
        *_regions(geography, block),
        blocks.place[block],
        blocks.tribal[block],
    ]


def _person_records(chunk: _ChunkOfHouseholds, geography: Geography) -> list[Whole]:
    people = chunk.people
    return [
        people.age,
        people.sex,
        people.relship == _HOUSEHOLDER,
        *(part[people.unit] for part in _address(geography, chunk.block)),
        people.race,
        *chunk.codes.T,
    ]


def _household_records(chunk: _ChunkOfHouseholds, geography: Geography) -> list[Whole]:
    homes = chunk.homes
    return [
        *_address(geography, chunk.block[: len(homes.size)]),
        homes.race,
        *chunk.householders.T,
        _HOUSEHOLD_TYPE[homes.hht],
        homes.tenure,
    ]


def _address(geography: Geography, block: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """State, county, tract and block, as codes."""
    blocks, tracts = geography.blocks, geography.tracts
    tract = blocks.tract[block]
    state = np.array([int(code) for code in geography.codes])[tracts.state[tract]]
    return state, tracts.county[tract], tracts.code[tract], blocks.number[block].astype(np.int64)


def _regions(geography: Geography, block: Ints) -> tuple[Ints, Ints]:
    """Region and division, as codes."""
    state = geography.tracts.state[geography.blocks.tract[block]]
    regions = np.array([int(item.region) for item in geography.states])
    return regions[state], np.array([int(item.division) for item in geography.states])[state]


def _write_blocks(append: Append, geography: Geography, standing: _Standing) -> None:
    """Write the files of blocks: where they are, and what stands in them."""
    blocks = geography.blocks
    for start in range(0, len(blocks.first), _BLOCKS_AT_ONCE):
        block = np.arange(start, min(start + _BLOCKS_AT_ONCE, len(blocks.first)))
        state, county, tract, number = address = _address(geography, block)
        group = number // 1000
        append(
            REFERENCE,
            [
                *address,
                blocks.place[block],
                blocks.tribal[block],
                group,
                blocks.subdivision[block],
                *_regions(geography, block),
                ((state * 1000 + county) * 1_000_000 + tract) * 10_000 + number,
            ],
        )
        code = (((state * 1000 + county) * 1_000_000 + tract) * 10 + group) * 10_000 + number
        columns: list[Whole] = [code, standing.housing_units[block]]
        append(HOUSING_UNITS, columns)
        ends = np.searchsorted(standing.facilities, np.array([start, start + len(block)]) * (MAJOR_TYPES + 1))
        here = standing.facilities[ends[0] : ends[1]] - start * (MAJOR_TYPES + 1)
        counts = np.bincount(here, minlength=len(block) * (MAJOR_TYPES + 1)).reshape(-1, MAJOR_TYPES + 1)
        append(GROUP_QUARTERS, [*columns, *counts[:, 1:].T])
