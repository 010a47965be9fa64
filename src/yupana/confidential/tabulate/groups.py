"""Records to exact counts of population groups: areas times characteristic iterations.

Count first, map after. The records of a slice of the country are counted by piece of geography, by what they say of
race and ethnicity, and by category; each distinct set of codes is mapped to its iterations once; and every count of a
group is a sum over (piece, set of codes) pairs. A piece is what no area divides: all blocks of one tract that lie in
the same place and the same AIANNH area.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Final

import duckdb
import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Ints
from yupana.privacy.sealed import Sealed
from yupana.products.safetab.iterations import CharacteristicIterations, Eligible
from yupana.products.safetab.regions import ITERATION_LEVELS, NO_AIANNH, NO_PLACE, Granularity

RACE_COLUMNS: Final = tuple(f"QRACE{number}" for number in range(1, 9))

_ROWS_AT_ONCE: Final = 10_000_000
_PAIRS_AT_ONCE: Final = 2_000_000
_CODE_BITS: Final = 14
_CODES_IN_WORD: Final = 4
_BLOCK_KEY: Final = "((TABBLKST::BIGINT * 1000 + TABBLKCOU) * 1000000 + TABTRACTCE) * 10000 + TABBLK"


@dataclass(frozen=True, eq=False)
class GroupAreas:
    """The areas of one pass, from the reference file; public.

    Attributes
    ----------
    ids : mapping of base to numpy.ndarray of int64
        Ids of the areas of each kind, as numbers, ascending. Areas within one state stand together.
    every : mapping of base to numpy.ndarray of int64
        The same with the areas that are left out because no housing unit stands there.
    pieces : mapping of base to numpy.ndarray of int32, shape (pieces,)
        Of each piece the place in `ids` of the area it is in, or -1. Pieces ascend by state, county and tract.
    counties : numpy.ndarray of int32, shape (pieces,)
        The number of the county each piece is in, whether or not that is among the areas.
    of_counties : mapping of base to numpy.ndarray of int32, shape (counties,)
        Of each county, so numbered, the place in `ids` of itself, its state and the nation, or -1.
    """

    ids: Mapping[str, Ints]
    every: Mapping[str, Ints]
    pieces: Mapping[str, NDArray[np.int32]]
    counties: NDArray[np.int32]
    of_counties: Mapping[str, NDArray[np.int32]]

    def within(self, base: str, first_state: int, last_state: int) -> tuple[int, int]:
        """Which areas of a kind lie in a range of states, as a range of places in `ids`: all, if they cross states."""
        if base not in _PER_STATE:
            return 0, len(self.ids[base])
        low, high = np.searchsorted(
            self.ids[base], [first_state * _PER_STATE[base], (last_state + 1) * _PER_STATE[base]]
        )
        return int(low), int(high)


_PER_STATE: Final = {"state": 1, "county": 1000, "tract": 1000 * 1_000_000, "place": 100_000}
"""Ids of areas within states: how many a state's number stands for."""


def find_areas(db: duckdb.DuckDBPyConnection, states: frozenset[int]) -> GroupAreas:
    """List the areas of the given states in the relation ``blocks``, and cut them into pieces.

    Leaves a table ``block_pieces`` of blocks and their pieces. Where blocks have a number of housing units, areas
    without one are left out.
    """
    chosen = f"TABBLKST IN ({', '.join(map(str, sorted(states)))})"
    columns = "TABBLKST, TABBLKCOU, TABTRACTCE, PLACEFP, AIANNHCE"
    db.execute(f"""
        CREATE OR REPLACE TABLE pieces AS SELECT *, (row_number() OVER (ORDER BY {columns}) - 1)::INTEGER AS piece
        FROM (SELECT {columns}, coalesce(max(housing_units), 1) > 0 AS live FROM blocks WHERE {chosen} GROUP BY ALL)
        """)
    db.execute(f"""
        CREATE OR REPLACE TABLE block_pieces AS SELECT {_BLOCK_KEY} AS block, piece
        FROM blocks JOIN pieces USING ({columns}) ORDER BY block""")
    found = db.execute("SELECT * FROM pieces ORDER BY piece").fetchnumpy()
    state, county, tract, place, aiannh = (found[name].astype(np.int64) for name in columns.split(", "))
    of_base = {
        "nation": np.ones_like(state),
        "state": state,
        "county": state * 1000 + county,
        "tract": (state * 1000 + county) * 1_000_000 + tract,
        "place": np.where(place == NO_PLACE, -1, state * 100_000 + place),
        "aiannh": np.where(aiannh == NO_AIANNH, -1, aiannh),
    }
    live = found["live"].astype(bool)
    ids = {base: np.unique(of[live & (of >= 0)]) for base, of in of_base.items()}
    every = {base: np.unique(of[of >= 0]) for base, of in of_base.items()}
    pieces = {base: _places(ids[base], of) for base, of in of_base.items()}
    _, first, number = np.unique(of_base["county"], return_index=True, return_inverse=True)
    of_counties = {base: pieces[base][first] for base in _OF_COUNTIES}
    return GroupAreas(ids, every, pieces, number.astype(np.int32), of_counties)


def _places(ids: Ints, wanted: Ints) -> NDArray[np.int32]:
    """Where numbers stand in an ascending list, or -1."""
    if not len(ids):
        return np.full(len(wanted), -1, dtype=np.int32)
    at = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
    return np.where(ids[at] == wanted, at, -1).astype(np.int32)


@dataclass(frozen=True, eq=False)
class Space:
    """The iterations areas of one granularity show, those of level 1 before those of level 2; public.

    Attributes
    ----------
    eligible : tuple of Eligible
        By level.
    """

    eligible: tuple[Eligible, ...]

    @property
    def size(self) -> int:
        """How many iterations."""
        return sum(len(e.iterations) for e in self.eligible)

    def columns(self, level: int) -> slice:
        """Which of them are of one level."""
        first = sum(len(e.iterations) for e in self.eligible[: level - 1])
        return slice(first, first + len(self.eligible[level - 1].iterations))


def space_of(iterations: CharacteristicIterations, granularity: Granularity) -> Space:
    """All iterations of a granularity."""
    return Space(tuple(iterations.eligible(level, granularity) for level in ITERATION_LEVELS))


@dataclass(frozen=True, eq=False)
class _Lists:
    """Lists of numbers by key: those of key k stand in ``values[starts[k]:starts[k + 1]]``."""

    starts: Ints
    values: NDArray[np.int32]

    def extended(self, other: "_Lists") -> "_Lists":
        """These lists, then those."""
        return _Lists(
            np.concatenate([self.starts, self.starts[-1] + other.starts[1:]]),
            np.concatenate([self.values, other.values]),
        )


def _lists(table: NDArray[np.int32]) -> _Lists:
    """Lists of a table's rows without their entries of -1."""
    present = table >= 0
    return _Lists(np.concatenate([[0], np.cumsum(present.sum(axis=1))]), table[present])


def _of_single_codes(space: Space) -> _Lists:
    """Iterations of each race code alone, then of each ethnicity code."""
    race, ethnic = [], []
    for level, e in zip(ITERATION_LEVELS, space.eligible, strict=True):
        first = space.columns(level).start
        race += [_shifted(e.alone, first), _shifted(e.in_combination, first)]
        ethnic.append(_shifted(e.ethnic, first))
    return _lists(np.stack(race, axis=1)).extended(_lists(np.stack(ethnic, axis=1)))


def _of_combinations(space: Space, codes: NDArray[np.int32]) -> _Lists:
    """Iterations of sets of race codes: rows of places of codes, -1 where there is none."""
    columns = []
    for level, e in zip(ITERATION_LEVELS, space.eligible, strict=True):
        first = space.columns(level).start
        combined = np.sort(np.where(codes >= 0, e.in_combination[codes], -1), axis=1)
        combined[:, 1:][combined[:, 1:] == combined[:, :-1]] = -1
        of_first = e.alone[codes[:, :1]]
        shared = ((codes < 0) | (e.alone[codes] == of_first)).all(axis=1, keepdims=True)
        columns += [_shifted(combined, first), _shifted(np.where(shared, of_first, -1), first)]
    return _lists(np.concatenate(columns, axis=1))


def _shifted(places: NDArray[np.int32], first: int) -> NDArray[np.int32]:
    return np.where(places >= 0, places + first, -1).astype(np.int32)


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Records counted by region and key, and within these by category.

    Attributes
    ----------
    region, key : numpy.ndarray of int32, shape (pairs,)
    starts : numpy.ndarray of int64, shape (pairs + 1,)
        Where the categories of each pair begin.
    category : numpy.ndarray of uint8
    count : numpy.ndarray of int32
        Records of each category of each pair.
    """

    region: NDArray[np.int32]
    key: NDArray[np.int32]
    starts: Ints
    category: NDArray[np.uint8]
    count: NDArray[np.int32]

    @cached_property
    def totals(self) -> Ints:
        """Records of each pair."""
        if not len(self.count):
            return np.zeros(0, dtype=np.int64)
        return np.add.reduceat(self.count, self.starts[:-1], dtype=np.int64)


def _counted(region: NDArray[np.int32], key: NDArray[np.int32], category: NDArray[np.uint8]) -> _Pairs:
    """Count records by region, key and category; those of region -1 are in none.

    The three are packed into one number, so that one sort finds what is equal.
    """
    if region.min(initial=0) < 0:
        inside = region >= 0
        region, key, category = region[inside], key[inside], category[inside]
    bits = _bits(key)
    packed = _packed(region, key, category, bits)
    packed.sort()
    first = _firsts(packed)
    return _unpacked(packed[first], np.diff(np.append(first, len(packed))), bits)


def _merged(pairs: _Pairs, region_of: NDArray[np.int32]) -> _Pairs:
    """The same records by larger regions: each region gives the one it is in, or -1."""
    lengths = np.diff(pairs.starts)
    region, key = np.repeat(region_of[pairs.region], lengths), np.repeat(pairs.key, lengths)
    inside = region >= 0
    bits = _bits(pairs.key)
    packed = _packed(region[inside], key[inside], pairs.category[inside], bits)
    order = np.argsort(packed)
    packed = packed[order]
    first = _firsts(packed)
    counts = pairs.count[inside][order]
    summed = np.add.reduceat(counts, first, dtype=np.int64) if len(first) else _NOTHING
    return _unpacked(packed[first], summed, bits)


def _bits(key: NDArray[np.int32]) -> int:
    return max(1, int(key.max(initial=0)).bit_length())


def _packed(region: NDArray[np.int32], key: NDArray[np.int32], category: NDArray[np.uint8], bits: int) -> Ints:
    packed = region.astype(np.int64)
    packed <<= bits
    packed |= key
    packed <<= _CATEGORY_BITS
    packed |= category
    return packed


def _unpacked(triple: Ints, count: Ints, bits: int) -> _Pairs:
    """Pairs of distinct packed numbers, ascending, and how many records each stands for."""
    category = (triple & ((1 << _CATEGORY_BITS) - 1)).astype(np.uint8)
    triple >>= _CATEGORY_BITS
    start = _firsts(triple)
    pair = triple[start]
    return _Pairs(
        region=(pair >> bits).astype(np.int32),
        key=(pair & ((1 << bits) - 1)).astype(np.int32),
        starts=np.append(start, len(triple)),
        category=category,
        count=count.astype(np.int32),
    )


_CATEGORY_BITS: Final = 6


def _firsts(ascending: Ints) -> Ints:
    """Where each number of an ascending list stands first."""
    return np.flatnonzero(np.append(True, ascending[1:] != ascending[:-1])) if len(ascending) else _NOTHING


_NOTHING: Final = np.zeros(0, dtype=np.int64)


def _joined(parts: Sequence[_Pairs]) -> _Pairs:
    """Parts one after the other; a pair may be in several."""
    shifts = np.cumsum([0, *(len(part.count) for part in parts)])
    starts = [part.starts[:-1] + shift for part, shift in zip(parts, shifts, strict=False)]
    return _Pairs(
        region=np.concatenate([part.region for part in parts]),
        key=np.concatenate([part.key for part in parts]),
        starts=np.concatenate([*starts, shifts[-1:]]),
        category=np.concatenate([part.category for part in parts]),
        count=np.concatenate([part.count for part in parts]),
    )


@dataclass(frozen=True, eq=False, repr=False)
class SliceCounts(Sealed):
    """Exact counts of the records of some states.

    Attributes
    ----------
    areas : GroupAreas
    first_state, last_state : int
    records : int
    in_no_iteration : int
        Of these, how many are in no iteration of any level, and so in no group.
    """

    areas: GroupAreas
    first_state: int
    last_state: int
    records: int
    in_no_iteration: int
    _categories: int
    _spaces: Mapping[Granularity, Space]
    _iterations_of: Mapping[Granularity, _Lists]
    _pairs: Mapping[str, _Pairs]

    def range_of(self, base: str) -> tuple[int, int]:
        """The areas of a kind in this slice, as a range of places in ``areas.ids``.

        Areas that cross states, and the nation, are in every slice: their counts here are parts of sums.
        """
        return self.areas.within(base, self.first_state, self.last_state)

    def totals(self, base: str, granularity: Granularity) -> Ints:
        """Records of every group, shape (areas of the slice, iterations of the granularity)."""
        low, high = self.range_of(base)
        size = self._spaces[granularity].size
        dense = np.zeros((high - low) * size, dtype=np.int64)
        pairs = self._pairs[base]
        for some in _stretches(len(pairs.key)):
            numbers = np.arange(some.start, some.stop)
            pair, group = self._groups(pairs, numbers, granularity, low, size)
            if len(group):
                least = int(group.min())
                summed = np.bincount(group - least, weights=pairs.totals[pair])
                dense[least : least + len(summed)] += summed.astype(np.int64)
        return dense.reshape(high - low, size)

    def details(self, base: str, granularity: Granularity, selected: NDArray[np.bool_]) -> Ints:
        """Records of selected groups by category.

        Parameters
        ----------
        base, granularity : str
        selected : numpy.ndarray of bool, shape (areas of the slice, iterations of the granularity)

        Returns
        -------
        numpy.ndarray of int64, shape (selected groups, categories)
            In the order of ``numpy.flatnonzero(selected)``.
        """
        low, _ = self.range_of(base)
        size = self._spaces[granularity].size
        chosen = np.flatnonzero(selected)
        cells = np.zeros(len(chosen) * self._categories, dtype=np.int64)
        place = np.full(selected.size, -1, dtype=np.int32)
        place[chosen] = np.arange(len(chosen))
        pairs = self._pairs[base]
        in_areas: NDArray[np.bool_] = np.asarray(selected.any(axis=1))
        near = np.flatnonzero(in_areas[pairs.region - low]) if len(chosen) else _NOTHING
        for some in _stretches(len(near)):
            pair, group = self._groups(pairs, near[some], granularity, low, size)
            wanted = place[group] >= 0
            pair, at = pair[wanted], place[group[wanted]].astype(np.int64) * self._categories
            for part in _stretches(len(pair)):
                starts = pairs.starts[pair[part]]
                lengths = pairs.starts[pair[part] + 1] - starts
                triple = _ranges(starts, lengths)
                cell = np.repeat(at[part], lengths) + pairs.category[triple]
                if len(cell):
                    least = int(cell.min())
                    summed = np.bincount(cell - least, weights=pairs.count[triple])
                    cells[least : least + len(summed)] += summed.astype(np.int64)
        return cells.reshape(-1, self._categories)

    def _groups(self, pairs: _Pairs, numbers: Ints, granularity: Granularity, low: int, size: int) -> tuple[Ints, Ints]:
        """Every group that some pairs count in: numbers of the pairs and places of the groups, one entry for each."""
        lists = self._iterations_of[granularity]
        key = pairs.key[numbers]
        starts = lists.starts[key]
        lengths = lists.starts[key + 1] - starts
        iteration = lists.values[_ranges(starts, lengths)]
        group = np.repeat((pairs.region[numbers].astype(np.int64) - low) * size, lengths) + iteration
        return np.repeat(numbers, lengths), group


@dataclass(eq=False)
class SummedCounts:
    """Exact counts of areas of a kind that cross slices, added up slice by slice; only cells that are not empty."""

    areas: int
    space: Space
    _categories: int
    _cells: list[tuple[Ints, Ints]] = field(default_factory=list)

    def add(self, part: SliceCounts, base: str, granularity: Granularity) -> None:
        """Add the counts of a slice."""
        occupied = part.totals(base, granularity) > 0
        cells = part.details(base, granularity, occupied)
        numbers = np.flatnonzero(occupied)[:, None] * self._categories + np.arange(self._categories)
        present = cells > 0
        self._cells.append((numbers[present], cells[present]))

    def totals(self) -> Ints:
        """Records of every group, shape (areas, iterations)."""
        summed = np.zeros(self.areas * self.space.size, dtype=np.int64)
        for numbers, counts in self._cells:
            weighed = np.bincount(numbers // self._categories, weights=counts, minlength=len(summed))
            summed += weighed.astype(np.int64)
        return summed.reshape(self.areas, self.space.size)

    def details(self, selected: NDArray[np.bool_]) -> Ints:
        """Records of selected groups by category: see `SliceCounts.details`."""
        chosen = np.flatnonzero(selected)
        place = np.full(selected.size, -1, dtype=np.int64)
        place[chosen] = np.arange(len(chosen))
        cells = np.zeros(len(chosen) * self._categories, dtype=np.int64)
        for numbers, counts in self._cells:
            group, category = np.divmod(numbers, self._categories)
            wanted = place[group] >= 0
            at = place[group[wanted]] * self._categories + category[wanted]
            cells += np.bincount(at, weights=counts[wanted], minlength=len(cells)).astype(np.int64)
        return cells.reshape(-1, self._categories)


def _stretches(length: int) -> Iterator[slice]:
    """Stretches of a long list that bound what is held at a time."""
    for first in range(0, length, _PAIRS_AT_ONCE):
        yield slice(first, min(first + _PAIRS_AT_ONCE, length))


def _ranges(starts: Ints, lengths: Ints) -> Ints:
    """The numbers of several ranges, one after the other."""
    if not len(lengths):
        return _NOTHING
    ends: Ints = np.cumsum(lengths)
    numbers: Ints = np.arange(ends[-1])
    numbers += np.repeat(starts - (ends - lengths), lengths)
    return numbers


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Some counties of one state, or all of some states: what is read at a time."""

    states: tuple[int, int]
    counties: tuple[int, int]
    records: int

    @property
    def where(self) -> str:
        """SQL for the records of the chunk."""
        return (
            f"TABBLKST BETWEEN {self.states[0]} AND {self.states[1]}"
            f" AND TABBLKCOU BETWEEN {self.counties[0]} AND {self.counties[1]}"
        )

    @property
    def blocks(self) -> str:
        """SQL for the keys of its blocks."""
        first = (self.states[0] * 1000 + self.counties[0]) * 10**10
        last = (self.states[1] * 1000 + self.counties[1] + 1) * 10**10
        return f"block >= {first} AND block < {last}"


_ALL_COUNTIES: Final = (0, 999)


def _plan_reading(db: duckdb.DuckDBPyConnection, states: frozenset[int], at_once: int) -> list[list[_Chunk]]:
    """Slices of whole states, each read in chunks of about ``at_once`` records."""
    chosen = f"TABBLKST IN ({', '.join(map(str, sorted(states)))})"
    query = f"SELECT TABBLKST, TABBLKCOU, count(*) FROM records WHERE {chosen} GROUP BY ALL ORDER BY ALL"
    counties: dict[int, list[tuple[int, int]]] = {state: [] for state in sorted(states)}
    for state, county, records in db.execute(query).fetchall():
        counties[state].append((county, records))
    slices: list[list[_Chunk]] = []
    for state, found in counties.items():
        records = sum(number for _, number in found)
        last = slices[-1][-1] if slices else None
        if last and last.counties == _ALL_COUNTIES and last.records + records <= at_once:
            slices[-1] = [_Chunk((last.states[0], state), _ALL_COUNTIES, last.records + records)]
        elif records <= at_once:
            slices.append([_Chunk((state, state), _ALL_COUNTIES, records)])
        else:
            slices.append(_in_counties(state, found, at_once))
    return slices


def _in_counties(state: int, counties: list[tuple[int, int]], at_once: int) -> list[_Chunk]:
    chunks: list[_Chunk] = []
    for county, records in counties:
        last = chunks[-1] if chunks else None
        if last and last.records + records <= at_once:
            chunks[-1] = _Chunk(last.states, (last.counties[0], county), last.records + records)
        else:
            chunks.append(_Chunk((state, state), (county, county), records))
    return chunks


@dataclass(frozen=True, eq=False)
class GroupTabulation:
    """What is to be counted.

    Attributes
    ----------
    attribute : str
        SQL for a number that tells the category of a record.
    category : numpy.ndarray of uint8
        The category of each such number; fewer than 64 categories.
    bases : tuple of str
        The kinds of areas.
    race_codes : int
        How many race codes of a record count.
    """

    iterations: CharacteristicIterations
    attribute: str
    category: NDArray[np.uint8]
    bases: tuple[str, ...]
    race_codes: int

    @property
    def categories(self) -> int:
        """How many categories."""
        return int(self.category.max()) + 1


def count_groups(
    db: duckdb.DuckDBPyConnection, tabulation: GroupTabulation, areas: GroupAreas, states: frozenset[int]
) -> Iterator[SliceCounts]:
    """Count the relation ``records`` slice after slice of whole states, in order; every record is read once.

    Parameters
    ----------
    db : duckdb.DuckDBPyConnection
        With `find_areas` done for the same states.
    tabulation : GroupTabulation
    areas : GroupAreas
    states : frozenset of int
    """
    granularities: tuple[Granularity, ...] = ("detailed", "coarse")
    spaces = {g: space_of(tabulation.iterations, g) for g in granularities}
    singles = {g: _of_single_codes(space) for g, space in spaces.items()}
    some_iteration = np.logical_or.reduce([np.diff(singles[g].starts) > 0 for g in granularities])
    codes = _CodeColumns.of(tabulation.iterations, some_iteration)
    slices = _plan_reading(db, states, _ROWS_AT_ONCE)
    # One chunk is read while the one before it is counted: the database and numpy keep a core each busy.
    with ThreadPoolExecutor(1) as reader:
        reading = deque([reader.submit(_read, db.cursor(), tabulation, chunk, codes) for chunk in slices[0][:1]])
        upcoming = iter([chunk for chunks in slices for chunk in chunks][1:])
        for chunks in slices:
            lists = dict(singles)
            parts: dict[str, list[_Pairs]] = {base: [] for base in tabulation.bases}
            in_no_iteration = 0
            for _ in chunks:
                entries = reading.popleft().result()
                reading.extend(
                    reader.submit(_read, db.cursor(), tabulation, chunk, codes) for chunk in islice(upcoming, 1)
                )
                # Sets of several codes are numbered after those of the chunks before.
                known = len(lists[granularities[0]].starts) - 1
                key = np.where(entries.key < codes.singles, entries.key, entries.key + (known - codes.singles))
                for base, pairs in _by_base(tabulation.bases, areas, entries, key.astype(np.int32)):
                    parts[base].append(pairs)
                lists = {g: lists[g].extended(_of_combinations(spaces[g], entries.sets)) for g in granularities}
                in_some = entries.is_ethnic.copy()
                for g in granularities:
                    in_some |= (np.diff(lists[g].starts) > 0)[key[: len(in_some)]]
                in_no_iteration += int((~in_some).sum())
            yield SliceCounts(
                areas=areas,
                first_state=chunks[0].states[0],
                last_state=chunks[-1].states[1],
                records=sum(chunk.records for chunk in chunks),
                in_no_iteration=in_no_iteration,
                _categories=tabulation.categories,
                _spaces=spaces,
                _iterations_of=lists,
                _pairs={base: _joined(found) for base, found in parts.items()},
            )


def _by_base(
    bases: Sequence[str], areas: GroupAreas, entries: "_Entries", key: NDArray[np.int32]
) -> Iterator[tuple[str, _Pairs]]:
    """Count a chunk by areas of every kind; states and the nation are sums of counties."""
    county: _Pairs | None = None
    for base in bases:
        if base in _OF_COUNTIES:
            if county is None:
                county = _counted(areas.counties[entries.piece], key, entries.category)
            yield base, _merged(county, areas.of_counties[base])
        else:
            yield base, _counted(areas.pieces[base][entries.piece], key, entries.category)


_OF_COUNTIES: Final = ("nation", "state", "county")


@dataclass(frozen=True, eq=False)
class _CodeColumns:
    """How codes become keys.

    Attributes
    ----------
    place : numpy.ndarray of int32
        Of each code, as a number, its place among all codes.
    number : int
        How many codes there are. The key of a race code is its place; that of an ethnicity code follows after those.
    counts : numpy.ndarray of bool
        Of each key of a single code whether it is in any iteration.
    """

    place: NDArray[np.int32]
    number: int
    counts: NDArray[np.bool_]

    @property
    def singles(self) -> int:
        """Keys of single codes; larger ones are sets of several."""
        return 2 * self.number

    @staticmethod
    def of(iterations: CharacteristicIterations, counts: NDArray[np.bool_]) -> "_CodeColumns":
        """Number the codes."""
        place = np.full(1 << _CODE_BITS, -1, dtype=np.int32)
        place[list(iterations.codes)] = np.arange(len(iterations.codes))
        return _CodeColumns(place, len(iterations.codes), counts)


@dataclass(frozen=True, eq=False)
class _Entries:
    """What the records of a chunk say: an entry for race, then one for ethnicity of those whose ethnicity counts.

    Attributes
    ----------
    piece, key : numpy.ndarray of int32
    category : numpy.ndarray of uint8
    is_ethnic : numpy.ndarray of bool, shape (records,)
        Of each record whether its ethnicity code is in an iteration.
    sets : numpy.ndarray of int32, shape (sets, race codes)
        Places of the codes of each set of several, -1 where there is none; their keys follow those of single codes.
    """

    piece: NDArray[np.int32]
    key: NDArray[np.int32]
    category: NDArray[np.uint8]
    is_ethnic: NDArray[np.bool_]
    sets: NDArray[np.int32]


def _read(db: duckdb.DuckDBPyConnection, tabulation: GroupTabulation, chunk: _Chunk, codes: _CodeColumns) -> _Entries:
    used = RACE_COLUMNS[: tabulation.race_codes]
    words = [_word(used[:_CODES_IN_WORD]), _word(used[_CODES_IN_WORD:])]
    rows = db.execute(f"""
        SELECT piece, {words[0]} AS low, {words[1]} AS high, QSPAN, {tabulation.attribute} AS attribute
        FROM (SELECT *, {_BLOCK_KEY} AS block FROM records WHERE {chunk.where})
        JOIN (SELECT * FROM block_pieces WHERE {chunk.blocks}) USING (block)""").fetchnumpy()
    low, high = (np.asarray(rows[name], dtype=np.int64) for name in ("low", "high"))
    piece = np.asarray(rows["piece"], dtype=np.int32)
    # A record whose block was lost, or is there twice, would be counted wrongly and nobody would know.
    assert len(piece) == chunk.records  # noqa: S101
    category = tabulation.category[np.asarray(rows["attribute"])]
    several = np.flatnonzero((low >> _CODE_BITS) | high)
    race = codes.place[low & ((1 << _CODE_BITS) - 1)]
    sets, number = _distinct(low[several], high[several])
    race[several] = codes.singles + number
    shifts = _CODE_BITS * np.arange(_CODES_IN_WORD)
    digits = np.concatenate([(word[:, None] >> shifts) & ((1 << _CODE_BITS) - 1) for word in sets], axis=1)
    # "Not Hispanic" is most people's ethnicity, and in no iteration.
    ethnic = codes.number + codes.place[np.asarray(rows["QSPAN"])]
    is_ethnic = codes.counts[ethnic]
    counts = np.flatnonzero(is_ethnic)
    return _Entries(
        piece=np.concatenate([piece, piece[counts]]),
        key=np.concatenate([race, ethnic[counts]]),
        category=np.concatenate([category, category[counts]]),
        is_ethnic=is_ethnic,
        sets=codes.place[digits],
    )


def _word(columns: Sequence[str]) -> str:
    """SQL for up to four codes in one number."""
    shifted = (f"({column}::BIGINT << {_CODE_BITS * place})" for place, column in enumerate(columns))
    return " | ".join(shifted) or "0::BIGINT"


def _distinct(low: Ints, high: Ints) -> tuple[tuple[Ints, Ints], Ints]:
    """Distinct pairs of words, and of each pair its place among them."""
    order = np.lexsort((low, high))
    low, high = low[order], high[order]
    new = np.append(True, (low[1:] != low[:-1]) | (high[1:] != high[:-1])) if len(low) else np.zeros(0, dtype=bool)
    number = np.empty(len(order), dtype=np.int64)
    number[order] = np.cumsum(new) - 1
    return (low[new], high[new]), number
