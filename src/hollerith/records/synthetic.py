"""A synthetic census in the Bureau's input formats, made of nothing but random numbers.

Persons, units and geo are PHSafe's inputs, `person-records`, `household-records` and `GRF-C.txt` are SafeTab's, and
`housing-units.txt` lists what stands in each block; all tell of the same people. It is for tests, demonstrations and
measurements of speed and accuracy. The folder it writes holds a file named `SYNTHETIC`, by which other parts of the
system know that no real person is in it. `docs/synthetic.md` tells what is drawn from what.
"""

import glob
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO, Literal, NamedTuple, TypeAlias

import duckdb
import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from hollerith.errors import ConfigError, OutputError
from hollerith.records.synthetic_geography import PUERTO_RICO, STATES, Geography, lay_out
from hollerith.records.synthetic_households import Households, Ints, Mix, People, draw_households, draw_origin, reflect
from hollerith.records.synthetic_race import MOST_CODES, Codes, CodeTables, code_tables, draw_codes

Text: TypeAlias = NDArray[np.bytes_]

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


# Facilities and mean sizes are assumed; together they give the people of each kind in the 2020 Census (DHC, rounded):
# millions 1.6 in nursing homes, 2.0 in prisons and jails, 2.8 in college housing, 0.3 in barracks, 1.5 in others.
_QUARTERS = (
    _Quarters(3, 37, 8.3, 100, 0.36, (79, 10, 25, 104)),  # nursing
    _Quarters(5, 38, 21.3, 70, 0.46, (19.5, 1.6, 17, 30)),  # college
    _Quarters(1, 37, 3.2, 330, 0.91, (38, 12, 18, 90)),  # correctional
    _Quarters(2, 37, 1.6, 15, 0.85, (16, 1.5, 10, 20)),  # juvenile
    _Quarters(6, 38, 1.9, 90, 0.83, (23, 5, 17, 55)),  # military
    _Quarters(7, 38, 63.7, 11, 0.58, (43, 18, 0, 95)),  # group homes, shelters and others
)
# The share of men is assumed.

# MAFIDs: unit number k has the (k * _MAFID_STEP mod _MAFID_COUNT)th of them, so that they follow no order of place.
_MAFID_FIRST, _MAFID_COUNT, _MAFID_STEP = 100_000_001, 799_999_999, 494_427_191

_BLOCK_COLUMNS = ("TABBLKST", "TABBLKCOU", "TABTRACTCE", "TABBLK")
_RACE_COLUMNS = (*(f"QRACE{number}" for number in range(1, MOST_CODES + 1)), "QSPAN")


class _Table(NamedTuple):
    """A file of records: how it ends as text, its columns, and which of them are integers in Parquet."""

    ending: str
    columns: tuple[str, ...]
    integers: frozenset[str]


_TABLES: Mapping[str, _Table] = MappingProxyType(
    {
        "persons": _Table(
            "csv",
            ("RTYPE", "MAFID", "QAGE", "CENHISP", "CENRACE", "RELSHIP"),
            frozenset({"MAFID", "QAGE", "CENHISP"}),
        ),
        "units": _Table(
            "csv",
            ("RTYPE", "MAFID", "FINAL_POP", "NPF", "HHSPAN", "HHRACE", "TEN", "HHT", "HHT2", "CPLT"),
            frozenset({"MAFID", "FINAL_POP", "NPF", "HHSPAN"}),
        ),
        "geo": _Table(
            "csv",
            (
                *("RTYPE", "MAFID", *_BLOCK_COLUMNS, "TABBLKGRPCE"),
                *("REGIONCE", "DIVISIONCE", "PLACEFP", "AIANNHCE"),
            ),
            frozenset({"MAFID"}),
        ),
        "person-records": _Table(
            "txt",
            ("QAGE", "QSEX", "HOUSEHOLDER", *_BLOCK_COLUMNS, "CENRACE", *_RACE_COLUMNS),
            frozenset({"QAGE"}),
        ),
        "household-records": _Table(
            "txt", (*_BLOCK_COLUMNS, "HHRACE", *_RACE_COLUMNS, "HOUSEHOLD_TYPE", "TEN"), frozenset()
        ),
    }
)
# SafeTab ignores what follows its six columns; the spines read them.
_REFERENCE_COLUMNS = (
    *(*_BLOCK_COLUMNS, "PLACEFP", "AIANNHCE"),
    *("TABBLKGRPCE", "COUSUBFP", "REGIONCE", "DIVISIONCE"),
)
_MAJOR_TYPES = 7
_BLOCKS_AT_ONCE = 200_000
_CONVERTER_MEMORY = "2GB"  # DuckDB would take most of the machine for a large census

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
class _Coded:
    """Everyone of a chunk, in the order of the records: codes as text, arrays of shape (people,) and (people, 9)."""

    people: People
    householder: NDArray[np.bool_]
    codes: Text


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
    unknown = sorted(set(states) - set(STATES))
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
    """Write the files of records chunk by chunk, then those of blocks; return the number of persons."""
    geography = lay_out(rng, request.states, request.households)
    tables = code_tables([(code, STATES[code].region) for code in request.states])
    vacant_units = np.zeros(len(geography.blocks.first), dtype=np.int32)
    facilities = []
    persons = 0
    with ExitStack() as stack:
        files = {name: stack.enter_context(_path(folder, name).open("wb")) for name in _TABLES}
        for name, table in _TABLES.items():
            files[name].write("|".join(table.columns).encode() + b"\n")
        for start in range(0, request.households, CHUNK):
            stop = min(start + CHUNK, request.households)
            occupied = stop - start
            vacant_before, quarters_before = request.before(start)
            vacant_after, quarters_after = request.before(stop)
            vacant, quarters = vacant_after - vacant_before, quarters_after - quarters_before
            housing = occupied + vacant

            block = geography.find(start, stop)
            homes, residents = draw_households(rng, geography.mix(rng, block))
            # vacant units and group quarters stand beside a household picked at random
            block = block[np.concatenate([np.arange(occupied), rng.integers(0, occupied, vacant + quarters)])]
            quarter = _group_quarters(rng, quarters, len(residents.unit), geography.mix(rng, block[housing:]))
            state = geography.tracts.state[geography.blocks.tract[block]]
            householders, coded = _codes_of_residents(rng, tables, homes, residents, state)
            everyone = (coded, _codes_of_others(rng, tables, quarter.people, housing, state))

            unit = start + vacant_before + quarters_before + np.arange(housing + quarters)
            ids = (_MAFID_FIRST + unit * _MAFID_STEP % _MAFID_COUNT).astype("S9")
            _write_persons(files["persons"], ids, everyone)
            _write_units(files["units"], ids, homes, vacant, np.bincount(quarter.people.unit, minlength=quarters))
            _write_geo(files["geo"], ids, housing, geography, block)
            address = _addresses(geography, block)
            _write_person_records(files["person-records"], address, everyone)
            _write_household_records(files["household-records"], address[:occupied], homes, householders)

            vacant_units += np.bincount(block[occupied:housing], minlength=len(vacant_units)).astype(np.int32)
            major = np.array([item.major for item in _QUARTERS])[quarter.kind]
            facilities.append(block[housing:] * (_MAJOR_TYPES + 1) + major)
            persons += len(residents.unit) + len(quarter.people.unit)
            if progress is not None:
                progress(stop, request.households)
    _write_blocks(folder, geography, geography.blocks.households + vacant_units, np.sort(np.concatenate(facilities)))
    return persons


def _path(folder: Path, name: str) -> Path:
    return folder / f"{name}.{_TABLES[name].ending}"


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


def _codes_of_residents(
    rng: Generator, tables: CodeTables, homes: Households, residents: People, state: Ints
) -> tuple[Text, _Coded]:
    """Draw detailed codes for householders, and for all residents: who is like the householder has the same."""
    householder = residents.relship == 20
    of_households = _text(draw_codes(rng, tables, state[: len(homes.size)], homes.hispanic, homes.race))
    codes = of_households[residents.unit]
    own = np.flatnonzero(~residents.like_householder)
    codes[own] = _text(
        draw_codes(rng, tables, state[residents.unit[own]], residents.hispanic[own], residents.race[own])
    )
    return of_households, _Coded(residents, householder, codes)


def _codes_of_others(rng: Generator, tables: CodeTables, people: People, first: int, state: Ints) -> _Coded:
    """Draw detailed codes for people in group quarters, which are the units from `first` on."""
    moved = replace(people, unit=people.unit + first)
    codes = _text(draw_codes(rng, tables, state[moved.unit], people.hispanic, people.race))
    return _Coded(moved, np.zeros(len(people.unit), dtype=np.bool_), codes)


@cache
def _race_texts() -> Text:
    texts = np.arange(10_000).astype("S4")
    texts[0] = b"Null"
    return texts


def _text(codes: Codes) -> Text:
    """Return QRACE1 to QRACE8 and QSPAN as text, an array of shape (n, 9)."""
    text: Text = _race_texts()[np.column_stack([codes.races, codes.origin])]
    return text


@cache
def _code_texts(width: int) -> Text:
    texts: Text = np.strings.zfill(np.arange(10**width).astype(f"S{width}"), width)
    return texts


def _codes(values: NDArray[np.integer], width: int) -> Text:
    """Turn codes from 0 on into text with leading zeros, of a width in digits."""
    texts: Text = _code_texts(width)[values]
    return texts


def _numbers(values: NDArray[np.integer]) -> Text:
    """Turn whole numbers from 0 on into text."""
    most = int(values.max(initial=0))
    texts: Text = np.arange(most + 1).astype(f"S{len(str(most))}")[values]
    return texts


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


def _write_persons(file: BinaryIO, ids: Text, everyone: Sequence[_Coded]) -> None:
    for coded, rtype in zip(everyone, (b"3", b"5"), strict=True):
        people = coded.people
        _write_rows(
            file,
            [
                np.full(len(people.unit), rtype),
                ids[people.unit],
                _numbers(people.age),
                _numbers(people.hispanic),
                _codes(people.race, 2),
                _codes(people.relship, 2),
            ],
        )


def _write_person_records(file: BinaryIO, address: Text, everyone: Sequence[_Coded]) -> None:
    for coded in everyone:
        people = coded.people
        _write_rows(
            file,
            [
                _numbers(people.age),
                _codes(people.sex, 1),
                np.where(coded.householder, b"True", b"False"),
                address[people.unit],
                _codes(people.race, 2),
                *coded.codes.T,
            ],
        )


def _write_household_records(file: BinaryIO, address: Text, homes: Households, householders: Text) -> None:
    _write_rows(
        file,
        [
            address,
            _codes(homes.race, 2),
            *householders.T,
            _codes(_HOUSEHOLD_TYPE[homes.hht], 1),
            _codes(homes.tenure, 1),
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


def _addresses(geography: Geography, block: Ints) -> Text:
    """Join state, county, tract and block as they stand in a row: they have the same width everywhere."""
    blocks, tracts = geography.blocks, geography.tracts
    tract = blocks.tract[block]
    state = np.array(geography.codes, dtype="S2")[tracts.state[tract]]
    parts = (state, _codes(tracts.county[tract], 3), _codes(tracts.code[tract], 6), _codes(blocks.number[block], 4))
    joined = np.full((len(block), 18), b"|", dtype="S1")
    start = 0
    for part in parts:
        width = part.dtype.itemsize
        joined[:, start : start + width] = part.view("S1").reshape(-1, width)
        start += width + 1
    address: Text = joined.view("S18").ravel()
    return address


def _write_geo(file: BinaryIO, ids: Text, housing: int, geography: Geography, block: Ints) -> None:
    blocks = geography.blocks
    state = geography.tracts.state[blocks.tract[block]]
    _write_rows(
        file,
        [
            _codes(np.repeat([2, 4], [housing, len(ids) - housing]), 1),
            ids,
            _addresses(geography, block),
            _codes(blocks.number[block] // 1000, 1),
            np.array([item.region for item in geography.states], dtype="S1")[state],
            np.array([item.division for item in geography.states], dtype="S1")[state],
            _codes(blocks.place[block], 5),
            _codes(blocks.tribal[block], 4),
        ],
    )


def _write_blocks(folder: Path, geography: Geography, housing_units: NDArray[np.int32], facilities: Ints) -> None:
    """Write the files of blocks: where they are, and what stands in them.

    `facilities` holds, for each group quarters in order, eight times the position of its block and its major type.
    """
    blocks = geography.blocks
    with (
        (folder / "GRF-C.txt").open("wb") as reference,
        (folder / "housing-units.txt").open("wb") as housing,
        (folder / "group_quarters.csv").open("wb") as quarters,
    ):
        reference.write("|".join(_REFERENCE_COLUMNS).encode() + b"\n")
        housing.write(b"block|housing_units\n")
        quarters.write(b"block|housing_units|" + b"|".join(b"gq%d" % (i + 1) for i in range(_MAJOR_TYPES)) + b"\n")
        for block in _slices(len(blocks.first)):
            address = _addresses(geography, block)
            state = geography.tracts.state[blocks.tract[block]]
            group = _codes(blocks.number[block] // 1000, 1)
            _write_rows(
                reference,
                [
                    address,
                    _codes(blocks.place[block], 5),
                    _codes(blocks.tribal[block], 4),
                    group,
                    _codes(blocks.subdivision[block], 5),
                    np.array([item.region for item in geography.states], dtype="S1")[state],
                    np.array([item.division for item in geography.states], dtype="S1")[state],
                ],
            )
            columns = [_long_codes(address, group), _numbers(housing_units[block])]
            _write_rows(housing, columns)
            ends = np.searchsorted(facilities, np.array([block[0], block[-1] + 1]) * (_MAJOR_TYPES + 1))
            here = facilities[ends[0] : ends[1]] - block[0] * (_MAJOR_TYPES + 1)
            counts = np.bincount(here, minlength=len(block) * (_MAJOR_TYPES + 1)).reshape(-1, _MAJOR_TYPES + 1)
            _write_rows(quarters, columns + [_numbers(counts[:, major]) for major in range(1, _MAJOR_TYPES + 1)])


def _slices(blocks: int) -> Iterator[Ints]:
    for start in range(0, blocks, _BLOCKS_AT_ONCE):
        yield np.arange(start, min(start + _BLOCKS_AT_ONCE, blocks))


def _long_codes(address: Text, group: Text) -> Text:
    """Return the 16 digits of each block: state, county, tract, block group and block."""
    digits = address.view("S1").reshape(-1, 18)
    parts = [digits[:, 0:2], digits[:, 3:6], digits[:, 7:13], group.reshape(-1, 1), digits[:, 14:18]]
    code: Text = np.ascontiguousarray(np.concatenate(parts, axis=1)).view("S16").ravel()
    return code


def _to_parquet(folder: Path) -> None:
    """Replace each text file of records by a Parquet file of the same records in the same order."""
    spill = folder / "spill"
    config: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": _CONVERTER_MEMORY,
        "temp_directory": str(spill),
    }
    with duckdb.connect(config=config) as connection:
        for name, table in _TABLES.items():
            text = _path(folder, name)
            types = {column: "INTEGER" if column in table.integers else "VARCHAR" for column in table.columns}
            rows = connection.read_csv(glob.escape(str(text)), sep="|", header=True, dtype=types)
            rows.write_parquet(str(folder / f"{name}.parquet"), compression="zstd")
            text.unlink()
    shutil.rmtree(spill, ignore_errors=True)
