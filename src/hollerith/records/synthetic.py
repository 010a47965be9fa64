"""A synthetic census in the Bureau's input formats: persons, units and geo, made of nothing but random numbers.

It is for tests, demonstrations and measurements of speed and accuracy. The folder it writes holds a file named
`SYNTHETIC`, by which other parts of the system know that no real person is in it.
"""

import glob
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO, Literal, NamedTuple, TypeAlias

import duckdb
import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from hollerith.errors import ConfigError, OutputError
from hollerith.records.synthetic_households import (
    PROFILES,
    Households,
    Ints,
    Mix,
    People,
    draw_households,
    draw_origin,
    reflect,
)

Text: TypeAlias = NDArray[np.bytes_]

CHUNK = 200_000
"""Households drawn at a time: memory is bounded by it, and the draws of a seed depend on it."""


class _State(NamedTuple):
    """Population in thousands and percent Hispanic (2020 Census, PL 94-171, rounded), and its kind of race mix."""

    region: str
    division: str
    population: int
    hispanic: float
    profile: str


# FIPS code: region, division, people, Hispanic share; the profile is assumed.
_STATES: Mapping[str, _State] = MappingProxyType(
    {
        "01": _State("3", "6", 5024, 5, "deep south"),
        "02": _State("4", "9", 733, 7, "alaska"),
        "04": _State("4", "8", 7152, 31, "plains"),
        "05": _State("3", "7", 3012, 9, "south"),
        "06": _State("4", "9", 39538, 39, "pacific"),
        "08": _State("4", "8", 5774, 22, "mountain"),
        "09": _State("1", "1", 3606, 17, "industrial"),
        "10": _State("3", "5", 990, 11, "south"),
        "11": _State("3", "5", 690, 11, "capital"),
        "12": _State("3", "5", 21538, 26, "south"),
        "13": _State("3", "5", 10712, 11, "deep south"),
        "15": _State("4", "9", 1455, 10, "hawaii"),
        "16": _State("4", "8", 1839, 13, "mountain"),
        "17": _State("2", "3", 12813, 18, "industrial"),
        "18": _State("2", "3", 6786, 8, "industrial"),
        "19": _State("2", "4", 3190, 7, "rural"),
        "20": _State("2", "4", 2938, 13, "rural"),
        "21": _State("3", "6", 4506, 5, "rural"),
        "22": _State("3", "7", 4658, 7, "deep south"),
        "23": _State("1", "1", 1362, 2, "rural"),
        "24": _State("3", "5", 6177, 12, "deep south"),
        "25": _State("1", "1", 7030, 13, "industrial"),
        "26": _State("2", "3", 10077, 6, "industrial"),
        "27": _State("2", "4", 5706, 6, "industrial"),
        "28": _State("3", "6", 2961, 4, "deep south"),
        "29": _State("2", "4", 6155, 5, "industrial"),
        "30": _State("4", "8", 1084, 4, "plains"),
        "31": _State("2", "4", 1962, 12, "rural"),
        "32": _State("4", "8", 3105, 29, "pacific"),
        "33": _State("1", "1", 1378, 4, "rural"),
        "34": _State("1", "2", 9289, 22, "industrial"),
        "35": _State("4", "8", 2118, 48, "plains"),
        "36": _State("1", "2", 20201, 20, "industrial"),
        "37": _State("3", "5", 10439, 11, "south"),
        "38": _State("2", "4", 779, 4, "plains"),
        "39": _State("2", "3", 11799, 4, "industrial"),
        "40": _State("3", "7", 3959, 12, "plains"),
        "41": _State("4", "9", 4237, 14, "mountain"),
        "42": _State("1", "2", 13003, 8, "industrial"),
        "44": _State("1", "1", 1097, 17, "industrial"),
        "45": _State("3", "5", 5118, 7, "deep south"),
        "46": _State("2", "4", 887, 4, "plains"),
        "47": _State("3", "6", 6911, 7, "south"),
        "48": _State("3", "7", 29146, 39, "south"),
        "49": _State("4", "8", 3272, 15, "mountain"),
        "50": _State("1", "1", 643, 2, "rural"),
        "51": _State("3", "5", 8631, 11, "south"),
        "53": _State("4", "9", 7705, 14, "pacific"),
        "54": _State("3", "5", 1794, 2, "rural"),
        "55": _State("2", "3", 5894, 8, "rural"),
        "56": _State("4", "8", 577, 10, "mountain"),
        "72": _State("9", "0", 3286, 99, "south"),
    }
)
PUERTO_RICO = "72"

ALL_51_STATE_CODES: tuple[str, ...] = tuple(code for code in _STATES if code != PUERTO_RICO)
"""FIPS codes of the fifty states and the District of Columbia."""

_VACANT = 0.097  # of housing units, 2020 Census, rounded
_GROUP_QUARTERS_PEOPLE = 0.025  # of all people, 2020 Census, rounded
_GROUP_QUARTERS_PER_HOUSEHOLD = 0.0015  # assumed: group quarters are fewer than 2 for every 1,000 households
_GROUP_QUARTERS_SPREAD = 1.0  # of the logarithm of their size; assumed
_GROUP_QUARTERS_MOST = 20_000  # people


class _Quarters(NamedTuple):
    """A kind of group quarters: RELSHIP, percent of facilities, mean people in each, ages (mean, spread, from, to)."""

    relship: int
    percent: float
    size: float
    age: tuple[float, float, int, int]


# Facilities and mean sizes are assumed; together they give the people of each kind in the 2020 Census (DHC, rounded):
# millions 1.6 in nursing homes, 2.0 in prisons and jails, 2.8 in college housing, 0.3 in barracks, 1.5 in others.
_QUARTERS = (
    _Quarters(37, 8.3, 100, (79, 10, 25, 104)),  # nursing
    _Quarters(38, 21.3, 70, (19.5, 1.6, 17, 30)),  # college
    _Quarters(37, 3.2, 330, (38, 12, 18, 90)),  # correctional
    _Quarters(37, 1.6, 15, (16, 1.5, 10, 20)),  # juvenile
    _Quarters(38, 1.9, 90, (23, 5, 17, 55)),  # military
    _Quarters(38, 63.7, 11, (43, 18, 0, 95)),  # group homes, shelters and others
)

# Households in a tract, and tracts in a county, about as in the nation (2020: 84,000 tracts, 3,143 counties).
_TRACT_HOUSEHOLDS = 1500
_COUNTY_TRACTS = 27
_TRACT_SPREAD = 0.35  # of the logarithm of a tract's households; assumed
_MOST_TRACTS, _MOST_COUNTIES = 60_000, 500  # so that the codes suffice: four digits, odd numbers of three
_IN_PLACE = 0.76  # of people, 2020 Census, rounded
_PLACE_TRACTS = 4  # tracts that share a place; assumed
_IN_TRIBAL_AREA = MappingProxyType({"plains": 0.06, "alaska": 0.15, "hawaii": 0.03})  # of tracts; assumed
_IN_TRIBAL_AREA_ELSEWHERE = 0.004
_BLOCKS = 30  # in a block group; assumed

# MAFIDs: unit number k has the (k * _MAFID_STEP mod _MAFID_COUNT)th of them, so that they follow no order of place.
_MAFID_FIRST, _MAFID_COUNT, _MAFID_STEP = 100_000_001, 799_999_999, 494_427_191

_COLUMNS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "persons": dict.fromkeys(("RTYPE", "MAFID", "QAGE", "CENHISP", "CENRACE", "RELSHIP"), "VARCHAR")
        | dict.fromkeys(("MAFID", "QAGE", "CENHISP"), "INTEGER"),
        "units": dict.fromkeys(
            ("RTYPE", "MAFID", "FINAL_POP", "NPF", "HHSPAN", "HHRACE", "TEN", "HHT", "HHT2", "CPLT"), "VARCHAR"
        )
        | dict.fromkeys(("MAFID", "FINAL_POP", "NPF", "HHSPAN"), "INTEGER"),
        "geo": dict.fromkeys(
            (
                *("RTYPE", "MAFID", "TABBLKST", "TABBLKCOU", "TABTRACTCE", "TABBLK", "TABBLKGRPCE"),
                *("REGIONCE", "DIVISIONCE", "PLACEFP", "AIANNHCE"),
            ),
            "VARCHAR",
        )
        | {"MAFID": "INTEGER"},
    }
)


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
class _Tracts:
    """Tracts of all states in order: first household and number of them, state, block groups, and codes as text."""

    first: Ints
    households: Ints
    state: Ints
    block_groups: Ints
    state_code: Text
    region: Text
    division: Text
    county: Text
    code: Text
    place: Text
    tribal_area: Text


@dataclass(frozen=True)
class _Place:
    """Where units are: position of the state and of the tract, block group and block, arrays of shape (units,)."""

    state: Ints
    tract: Ints
    block_group: Ints
    block: Ints

    def take(self, index: Ints) -> "_Place":
        return _Place(self.state[index], self.tract[index], self.block_group[index], self.block[index])


def synthesize(
    out: Path,
    *,
    households: int,
    states: Sequence[str] = ALL_51_STATE_CODES,
    seed: int | None = None,
    fmt: Literal["csv", "parquet"] = "csv",
    progress: Callable[[int, int], None] | None = None,
) -> CensusSummary:
    """Write a synthetic census as persons, units and geo, with a file named `SYNTHETIC` beside them.

    The records obey every rule of consistency of the S-DHC inputs. Distributions follow rounded national figures of
    the 2020 Census and the American Community Survey; each constant of this module names its source. State, race and
    household type are joined, finer geography is not: tracts of a state are alike but for chance.

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
        CSV has a header and `|` between columns. In Parquet codes are text and counts, ages and MAFID integers.
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
        If `out` holds something, `<out>.partial` exists, or the disk refuses.
    """
    request = _request(households, states, seed, fmt)
    out = out.resolve()
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise OutputError(f"{out} is not an empty folder; name a new one or empty it")
    partial = out.with_name(out.name + ".partial")
    try:
        partial.mkdir(parents=True)
    except OSError as error:
        raise OutputError(
            f"{partial} could not be made ({error.strerror}); if an interrupted run left it, remove it"
        ) from error
    try:
        sequence = np.random.SeedSequence(seed)
        persons = _write(partial, np.random.default_rng(sequence), request, progress)
        if fmt == "parquet":
            _to_parquet(partial)
        (partial / "SYNTHETIC").write_text(
            f"A synthetic census made by hollerith: {households} households, states {','.join(states)}, "
            f"seed {sequence.entropy}.\nNo record in this folder describes a real person or household.\n",
            encoding="utf-8",
        )
        if out.exists():
            out.rmdir()
        partial.rename(out)
    except BaseException as error:
        shutil.rmtree(partial, ignore_errors=True)
        if isinstance(error, OSError | duckdb.Error):
            raise OutputError(f"{out} could not be written: {error}") from error
        raise
    units = households + request.vacant + request.quarters
    return CensusSummary(persons, units, households, request.vacant, request.quarters)


def _request(households: int, states: Sequence[str], seed: int | None, fmt: str) -> _Request:
    """Refuse what cannot be served, and add the vacant units and group quarters that belong to the households."""
    if households < 1:
        raise ConfigError(f"a census needs 1 household at least, not {households}")
    unknown = sorted(set(states) - set(_STATES))
    if not states or unknown:
        raise ConfigError(f"states are two-digit FIPS codes such as 06 or 72, at least one; unknown: {unknown}")
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


def _write(folder: Path, rng: Generator, request: _Request, progress: Callable[[int, int], None] | None) -> int:
    """Write the three CSV files chunk by chunk; return the number of persons."""
    states = [_STATES[code] for code in request.states]
    tracts = _tracts(rng, request)
    mix = Mix(
        hispanic=np.array([state.hispanic for state in states]) / 100,
        profile=np.array([PROFILES.index(state.profile) for state in states]),
        puerto_rico=np.array([code == PUERTO_RICO for code in request.states]),
    )
    persons = 0
    with (
        (folder / "persons.csv").open("wb") as persons_file,
        (folder / "units.csv").open("wb") as units_file,
        (folder / "geo.csv").open("wb") as geo_file,
    ):
        for table, file in (("persons", persons_file), ("units", units_file), ("geo", geo_file)):
            file.write("|".join(_COLUMNS[table]).encode() + b"\n")
        for start in range(0, request.households, CHUNK):
            stop = min(start + CHUNK, request.households)
            occupied = stop - start
            vacant_before, quarters_before = request.before(start)
            vacant_after, quarters_after = request.before(stop)
            vacant, quarters = vacant_after - vacant_before, quarters_after - quarters_before
            housing = occupied + vacant

            place = _place(rng, tracts, start, stop)
            homes, residents = draw_households(rng, mix.take(place.state))
            # vacant units and group quarters stand beside a household picked at random
            place = place.take(np.concatenate([np.arange(occupied), rng.integers(0, occupied, vacant + quarters)]))
            group_people = _group_quarters(rng, quarters, len(residents.unit), mix.take(place.state[housing:]))

            unit = start + vacant_before + quarters_before + np.arange(housing + quarters)
            ids = (_MAFID_FIRST + unit * _MAFID_STEP % _MAFID_COUNT).astype("S9")
            _write_persons(persons_file, ids, residents, group_people, housing)
            _write_units(units_file, ids, homes, vacant, np.bincount(group_people.unit, minlength=quarters))
            _write_geo(geo_file, ids, housing, place, tracts)
            persons += len(residents.unit) + len(group_people.unit)
            if progress is not None:
                progress(stop, request.households)
    return persons


def _share_out(households: int, weights: Sequence[int]) -> Ints:
    """Whole numbers in proportion to the weights (largest remainders), one at least where there are enough."""
    least = int(households >= len(weights))
    exact = np.array(weights) / sum(weights) * (households - least * len(weights))
    shares = np.floor(exact).astype(np.int64) + least
    shares[np.argsort(shares - exact, kind="stable")[: households - int(shares.sum())]] += 1
    return shares


def _tracts(rng: Generator, request: _Request) -> _Tracts:
    """Cut each state into tracts of unequal size, and name counties, places and tribal areas.

    A few counties have many tracts and many have few: tract t of T lies in county K (t / T)^2 of K.
    """
    states = [_STATES[code] for code in request.states]
    households = _share_out(request.households, [state.population for state in states])
    number = np.clip(-(-households // _TRACT_HOUSEHOLDS), 1, _MOST_TRACTS)
    state = np.repeat(np.arange(len(states)), number)
    within = np.arange(len(state)) - np.repeat(np.cumsum(number) - number, number)

    counties = np.clip(number // _COUNTY_TRACTS, 1, _MOST_COUNTIES)[state]
    county = (counties * (within / number[state]) ** 2).astype(np.int64)
    opens = np.flatnonzero(np.diff(state * 1000 + county, prepend=-1))
    in_county = np.arange(len(state)) - np.repeat(opens, np.diff(opens, append=len(state)))

    size = rng.lognormal(0, _TRACT_SPREAD, len(state))
    before = np.cumsum(size) - size
    state_opens = np.cumsum(number) - number
    portion = (before - before[state_opens][state]) / np.bincount(state, size)[state]
    first = (np.cumsum(households) - households)[state] + (portion * households[state]).astype(np.int64)

    group = within // _PLACE_TRACTS
    tribal = np.array([_IN_TRIBAL_AREA.get(item.profile, _IN_TRIBAL_AREA_ELSEWHERE) for item in states])
    # Hawaiian home lands have the codes from 5000 on
    tribal_first = np.array([5000 if item.profile == "hawaii" else 10 + 90 * i for i, item in enumerate(states)])
    in_place = rng.random(len(state)) < _IN_PLACE
    in_tribal = rng.random(len(state)) < tribal[state]
    return _Tracts(
        first=first,
        households=np.diff(first, append=int(households.sum())),
        state=state,
        block_groups=rng.integers(1, 6, len(state)),
        state_code=np.array(request.states, dtype="S2")[state],
        region=np.array([item.region for item in states], dtype="S1")[state],
        division=np.array([item.division for item in states], dtype="S1")[state],
        county=_codes(2 * county + 1, 3),
        code=_codes((in_county + 1) * 100, 6),
        place=_codes(np.where(in_place, 100 + 6 * group, 99999), 5),
        tribal_area=_codes(np.where(in_tribal, tribal_first[state] + group % 90, 9999), 4),
    )


def _place(rng: Generator, tracts: _Tracts, start: int, stop: int) -> _Place:
    """Find tract, block group and block of the households from `start` up to `stop`."""
    household = np.arange(start, stop)
    tract = np.searchsorted(tracts.first, household, side="right") - 1
    portion = (household - tracts.first[tract]) / tracts.households[tract]
    block_group = 1 + (portion * tracts.block_groups[tract]).astype(np.int64)
    # few blocks hold many households
    block = 1000 * block_group + (_BLOCKS * rng.random(stop - start) ** 2).astype(np.int64)
    return _Place(tracts.state[tract], tract, block_group, block)


def _group_quarters(rng: Generator, number: int, residents: int, mix: Mix) -> People:
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
    return People(
        unit=unit,
        age=reflect(rng.normal(mean_age, spread), youngest, oldest),
        hispanic=hispanic,
        race=race,
        relship=np.array([item.relship for item in _QUARTERS])[person_kind],
    )


def _codes(values: Ints, width: int) -> Text:
    """Turn codes from 0 on into text with leading zeros, of a width in digits."""
    most = int(values.max(initial=0))
    return np.strings.zfill(np.arange(most + 1).astype(f"S{width}"), width)[values]


def _numbers(values: Ints) -> Text:
    """Turn whole numbers from 0 on into text."""
    most = int(values.max(initial=0))
    return np.arange(most + 1).astype(f"S{len(str(most))}")[values]


def _write_rows(file: BinaryIO, columns: Sequence[Text]) -> None:
    """Append rows of text columns: fixed-width rows, less the null bytes that pad them."""
    last = len(columns) - 1
    layout = [
        field
        for i, column in enumerate(columns)
        for field in ((f"column{i}", column.dtype), (f"end{i}", np.dtype("S1")))
    ]
    rows = np.empty(len(columns[0]), dtype=layout)
    for i, column in enumerate(columns):
        rows[f"column{i}"] = column
        rows[f"end{i}"] = b"\n" if i == last else b"|"
    file.write(rows.tobytes().translate(None, b"\0"))


def _write_persons(file: BinaryIO, ids: Text, residents: People, group_people: People, first_quarters: int) -> None:
    for people, rtype, first in ((residents, b"3", 0), (group_people, b"5", first_quarters)):
        _write_rows(
            file,
            [
                np.full(len(people.unit), rtype),
                ids[people.unit + first],
                _numbers(people.age),
                _numbers(people.hispanic),
                _codes(people.race, 2),
                _codes(people.relship, 2),
            ],
        )


def _write_units(file: BinaryIO, ids: Text, homes: Households, vacant: int, quarters: Ints) -> None:
    """Write households, then vacant units, then group quarters, of the given numbers of people."""
    others = vacant + len(quarters)

    def padded(values: Ints) -> Ints:
        return np.concatenate([values, np.zeros(others, dtype=np.int64)])

    size = np.concatenate([homes.size, np.zeros(vacant, dtype=np.int64), quarters])
    _write_rows(
        file,
        [
            _codes(np.repeat([2, 4], [len(ids) - len(quarters), len(quarters)]), 1),
            ids,
            _numbers(size),
            _numbers(padded(homes.family)),
            _numbers(padded(homes.hispanic)),
            _codes(padded(homes.race), 2),
            _codes(padded(homes.tenure), 1),
            _codes(padded(homes.hht), 1),
            _codes(padded(homes.hht2), 2),
            _codes(padded(homes.couple), 1),
        ],
    )


def _write_geo(file: BinaryIO, ids: Text, housing: int, place: _Place, tracts: _Tracts) -> None:
    _write_rows(
        file,
        [
            _codes(np.repeat([2, 4], [housing, len(ids) - housing]), 1),
            ids,
            tracts.state_code[place.tract],
            tracts.county[place.tract],
            tracts.code[place.tract],
            _codes(place.block, 4),
            _codes(place.block_group, 1),
            tracts.region[place.tract],
            tracts.division[place.tract],
            tracts.place[place.tract],
            tracts.tribal_area[place.tract],
        ],
    )


def _to_parquet(folder: Path) -> None:
    """Replace each CSV file by a Parquet file of the same records in the same order."""
    with duckdb.connect() as connection:
        for table, types in _COLUMNS.items():
            csv = folder / f"{table}.csv"
            rows = connection.read_csv(glob.escape(str(csv)), sep="|", header=True, dtype=dict(types))
            rows.write_parquet(str(folder / f"{table}.parquet"), compression="zstd")
            csv.unlink()
