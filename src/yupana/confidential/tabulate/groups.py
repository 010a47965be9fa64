"""Records to exact counts of population groups: areas times groups by multiple responses.

Count first, map after. The records of a slice of the country are counted by piece of geography, by what they answer
to each question, and by category; each distinct set of codes is mapped to its groups once; and every count of a group
is a sum over (piece, set of codes) pairs. A piece is what no area divides (`pieces`).
"""

import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from itertools import islice
from typing import TYPE_CHECKING, Final

import duckdb
import numpy as np

from yupana.arrays import Flags, Indices, Ints
from yupana.confidential.records.database import BESIDE_DATABASE, memory_limit, memory_of_process
from yupana.confidential.tabulate.pairs import NOTHING, Categories, CountedPairs, count_pairs, join_pairs, merge_pairs
from yupana.confidential.tabulate.pieces import GroupAreas, block_number, in_chosen
from yupana.errors import InputError
from yupana.geography.block_file import BlockColumn, BlockFile
from yupana.plan.responses import ResponseGroup
from yupana.privacy.sealed import Sealed

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_ROWS_AT_ONCE: Final = 10_000_000
_BYTES_OF_A_ROW: Final = 200
"""Of the memory of the database: what is held while records are counted and the next ones are read."""
_BYTES_OF_A_COUNTED: Final = 24
"""What is held of each record of a slice until all of it is counted: 42.7 million of a state took 1.05 GB, and 16.5
million 0.53."""
_PAIRS_AT_ONCE: Final = 250_000
_THIRD: Final = 2
"""The place of the third column of a key."""
_CELLS_AT_ONCE: Final = 1 << 22
_CODE_BITS: Final = 14
_CODES_IN_WORD: Final = 4
_MOST_COLUMNS: Final = 2 * _CODES_IN_WORD
_MOST_CATEGORIES: Final = 1 << 12


@dataclass(frozen=True, eq=False)
class _Lists:
    """Lists of numbers by key: those of key k stand in ``values[starts[k]:starts[k + 1]]``."""

    starts: Ints
    values: Indices

    def extended(self, *others: "_Lists") -> "_Lists":
        """These lists, then those."""
        lists = (self, *others)
        before = np.cumsum([0, *(len(each.values) for each in lists)])
        starts = [each.starts[:-1] + shift for each, shift in zip(lists, before, strict=False)]
        return _Lists(np.concatenate([*starts, before[-1:]]), np.concatenate([each.values for each in lists]))

    def since(self, key: int) -> "_Lists":
        """The lists of this key and of larger ones, which begin at 0."""
        return _Lists(self.starts[key:] - self.starts[key], self.values[self.starts[key] :])


def _groups_of(given: "csr_array", members: "csr_array", alone: Flags) -> _Lists:
    """Groups of sets of codes, which stand one in a row.

    Parameters
    ----------
    given : scipy.sparse.csr_array, shape (sets, codes)
        An entry of 1 for each code of a set; two for one that is given twice, which is a member twice, too.
    members : scipy.sparse.csr_array, shape (codes, groups)
        1 for each group that a code is a member of.
    alone : numpy.ndarray of bool, shape (groups,)
        Whether all codes of a set must be members, rather than any.
    """
    shared = given @ members
    row = np.repeat(np.arange(given.shape[0]), np.diff(shared.indptr))
    within = ~alone[shared.indices] | (shared.data == np.diff(given.indptr)[row])
    ends = np.cumsum(np.bincount(row[within], minlength=given.shape[0]))
    return _Lists(np.append(0, ends), shared.indices[within].astype(np.int32))


@dataclass(frozen=True, eq=False)
class ResponseColumns:
    """A question that a record may answer with several codes, as the relation of records holds the answer.

    The answer is a set: a code that is given twice is given once, and a column may be skipped.

    Attributes
    ----------
    columns : tuple of str
        SQL of one to eight columns of numbers from 0 to below 2**14.
    place : numpy.ndarray of int, shape (numbers,)
        Of each number the place of the code, or -1 for none. The first such number is the quickest to count.
    codes : int
        How many codes there are.

    Raises
    ------
    ValueError
        If there are too many columns or numbers, or none.
    """

    columns: tuple[str, ...]
    place: Ints
    codes: int

    def __post_init__(self) -> None:
        if not (1 <= len(self.columns) <= _MOST_COLUMNS and 1 <= len(self.place) <= 1 << _CODE_BITS):
            raise ValueError(f"a response has 1 to {_MOST_COLUMNS} columns and 1 to {1 << _CODE_BITS} numbers")

    @property
    def words(self) -> tuple[tuple[str, ...], ...]:
        """The columns by the number that they are packed into, four in each."""
        return tuple(
            self.columns[first : first + _CODES_IN_WORD] for first in range(0, len(self.columns), _CODES_IN_WORD)
        )


@dataclass(frozen=True, eq=False)
class _Space:
    """The groups that areas of some kinds show: which codes of each response are members, and which ask for all codes.

    Attributes
    ----------
    members : mapping of response to scipy.sparse.csr_array, shape (codes, groups)
    alone : numpy.ndarray of bool, shape (groups,)
    """

    members: Mapping[str, "csr_array"]
    alone: Flags

    @staticmethod
    def of(groups: Sequence[ResponseGroup], responses: Mapping[str, ResponseColumns]) -> "_Space":
        from scipy.sparse import csr_array  # noqa: PLC0415 (a tenth of a second, and few tables need it)

        members = {}
        for name, response in responses.items():
            pairs = [
                (code, place) for place, group in enumerate(groups) if group.response == name for code in group.members
            ]
            code, place = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
            ones, shape = np.ones(len(pairs), dtype=np.int32), (response.codes, len(groups))
            members[name] = csr_array((ones, (code, place)), shape=shape)
        return _Space(members, np.array([group.alone for group in groups], dtype=bool))


@dataclass(frozen=True, eq=False)
class _Question:
    """A response, and how a single code becomes a key.

    Attributes
    ----------
    name : str
    columns : ResponseColumns
    key : numpy.ndarray of int32, shape (codes + 1,)
        Of each code its key, or -1 where it is in no group; -1 for no code, which stands last.
    """

    name: str
    columns: ResponseColumns
    key: Indices

    @cached_property
    def of_number(self) -> Indices:
        """The key of each number that the columns hold."""
        return self.key[self.columns.place]

    @cached_property
    def rests(self) -> Ints:
        """The words of a record whose columns are all none, the first left out of the first word."""
        none = int(np.argmax(np.append(self.columns.place, -1) < 0))
        packed = [sum(none << _CODE_BITS * place for place in range(len(word))) for word in self.columns.words]
        return np.array([packed[0] >> _CODE_BITS, *packed[1:]])


@dataclass(frozen=True, eq=False)
class _Sets:
    """Sets of several codes that some records give, each in some group, and by space the groups of each."""

    number: int
    groups: tuple[_Lists, ...]


@dataclass(frozen=True, eq=False, repr=False)
class SliceCounts(Sealed):
    """Exact counts of the records of some values of the first column of the key, or of some of these records.

    Attributes
    ----------
    records : int
    in_no_group : int
        Of these, how many are in no group of any kind of areas.
    categories : int
    ranges : mapping of kind to tuple of int and int
        See `range_of`.
    sizes : mapping of kind to int
        How many groups areas of the kind show.
    singles : int
        How many keys are single codes. Larger ones are sets of several, numbered as they were found.
    spaces : tuple of _Lists
        The groups of each key; areas of several kinds may show the same.
    space_of : mapping of kind to int
        Its place in `spaces`.
    pairs : mapping of kind to CountedPairs
        Of keys by area.
    """

    records: int
    in_no_group: int
    categories: int
    ranges: Mapping[str, tuple[int, int]]
    sizes: Mapping[str, int]
    singles: int
    spaces: tuple[_Lists, ...]
    space_of: Mapping[str, int]
    pairs: Mapping[str, CountedPairs]

    def range_of(self, kind: str) -> tuple[int, int]:
        """The areas of a kind in this slice, as a range of places in `GroupAreas.ids`.

        Areas that cross slices are in every slice: their counts here are parts of sums.
        """
        return self.ranges[kind]

    def totals(self, kind: str, counted: Flags | None = None) -> Ints:
        """Records of every group, shape (areas of the slice, groups).

        Parameters
        ----------
        kind : str
        counted : numpy.ndarray of bool, shape (categories,), optional
            Which categories count; all by default.
        """
        low, high = self.range_of(kind)
        size = self.sizes[kind]
        dense = np.zeros((high - low) * size, dtype=np.int64)
        pairs = self.pairs[kind]
        totals = pairs.totals(counted)
        for some in _stretches(len(pairs.key)):
            pair, group = self._groups(kind, np.arange(some.start, some.stop), low)
            if len(group):
                least = int(group.min())
                summed = np.bincount(group - least, weights=totals[pair])
                dense[least : least + len(summed)] += summed.astype(np.int64)
        return dense.reshape(high - low, size)

    def details(self, kind: str, selected: Flags) -> Ints:
        """Records of selected groups by category.

        Parameters
        ----------
        kind : str
        selected : numpy.ndarray of bool, shape (areas of the slice, groups)

        Returns
        -------
        numpy.ndarray of int64, shape (selected groups, categories)
            In the order of ``numpy.flatnonzero(selected)``.
        """
        low, _ = self.range_of(kind)
        chosen = np.flatnonzero(selected)
        cells = np.zeros(len(chosen) * self.categories, dtype=np.int64)
        place = np.full(selected.size, -1, dtype=np.int32)
        place[chosen] = np.arange(len(chosen))
        pairs = self.pairs[kind]
        in_areas: Flags = np.asarray(selected.any(axis=1))
        near = np.flatnonzero(in_areas[pairs.region - low]) if len(chosen) else NOTHING
        for some in _stretches(len(near)):
            pair, group = self._groups(kind, near[some], low)
            wanted = place[group] >= 0
            pair, at = pair[wanted], place[group[wanted]].astype(np.int64) * self.categories
            for part in _stretches(len(pair)):
                starts = pairs.starts[pair[part]]
                lengths = pairs.starts[pair[part] + 1] - starts
                triple = _ranges(starts, lengths)
                cell = np.repeat(at[part], lengths) + pairs.category[triple]
                if len(cell):
                    least = int(cell.min())
                    summed = np.bincount(cell - least, weights=pairs.count[triple])
                    cells[least : least + len(summed)] += summed.astype(np.int64)
        return cells.reshape(-1, self.categories)

    def _groups(self, kind: str, numbers: Ints, low: int) -> tuple[Ints, Ints]:
        """Every group that some pairs count in: numbers of the pairs and places of the groups, one entry for each."""
        pairs, lists = self.pairs[kind], self.spaces[self.space_of[kind]]
        key = pairs.key[numbers]
        starts = lists.starts[key]
        lengths = lists.starts[key + 1] - starts
        of_space = lists.values[_ranges(starts, lengths)]
        row = (pairs.region[numbers].astype(np.int64) - low) * self.sizes[kind]
        return np.repeat(numbers, lengths), np.repeat(row, lengths) + of_space


def merge_slices(parts: Sequence[SliceCounts]) -> SliceCounts:
    """Counts of several parts of the records of one slice together: in any order, and merged before or not, the same.

    Parameters
    ----------
    parts : sequence of SliceCounts
        One at least, by one tabulation and the same areas. No record is in two. What values they are of follow one
        another.
    """
    if len(parts) == 1:
        return parts[0]
    first, known = parts[0], parts[0].singles
    pairs: dict[str, list[CountedPairs]] = {kind: [] for kind in first.pairs}
    for part in parts:
        # Sets of several codes are numbered after those of the parts before.
        for kind, found in part.pairs.items():
            key = np.where(found.key < part.singles, found.key, found.key + np.int32(known - part.singles))
            pairs[kind].append(replace(found, key=key))
        known += len(part.spaces[0].starts) - 1 - part.singles if part.spaces else 0
    return SliceCounts(
        records=sum(part.records for part in parts),
        in_no_group=sum(part.in_no_group for part in parts),
        categories=first.categories,
        ranges={kind: _spanned([part.ranges[kind] for part in parts]) for kind in first.ranges},
        sizes=first.sizes,
        singles=first.singles,
        spaces=tuple(
            lists.extended(*(part.spaces[space].since(part.singles) for part in parts[1:]))
            for space, lists in enumerate(first.spaces)
        ),
        space_of=first.space_of,
        pairs={kind: join_pairs(found) for kind, found in pairs.items()},
    )


def merge_shards(shards: Sequence[Sequence[SliceCounts]]) -> Iterator[SliceCounts]:
    """What shards have counted by `count_slices`, as `count_groups` gives it where there is one: in the same slices.

    Parameters
    ----------
    shards : sequence of sequence of SliceCounts
        One shard at least; all have the same slices.
    """
    waiting: list[SliceCounts] = []
    for parts in zip(*shards, strict=True):
        part = merge_slices(parts)
        if waiting and sum(one.records for one in (*waiting, part)) > _ROWS_AT_ONCE:
            yield merge_slices(waiting)
            waiting = []
        waiting.append(part)
    if waiting:
        yield merge_slices(waiting)


def _spanned(ranges: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """From the first of some ranges to the last."""
    return min(low for low, _ in ranges), max(high for _, high in ranges)


@dataclass(eq=False)
class SummedCounts:
    """Exact counts of areas of a kind that cross slices, added up slice by slice; only cells that are not empty."""

    areas: int
    groups: int
    categories: int
    _cells: list[tuple[Ints, Ints]] = field(default_factory=list)

    def add(self, part: SliceCounts, kind: str) -> None:
        """Add the counts of a slice."""
        occupied = part.totals(kind) > 0
        numbers = np.flatnonzero(occupied)
        step = max(1, _CELLS_AT_ONCE // self.categories)
        for first in range(0, len(numbers), step):
            some = numbers[first : first + step]
            selected = np.zeros(occupied.size, dtype=bool)
            selected[some] = True
            cells = part.details(kind, selected.reshape(occupied.shape))
            present = cells > 0
            self._cells.append(
                ((some[:, None] * self.categories + np.arange(self.categories))[present], cells[present])
            )

    def totals(self, counted: Flags | None = None) -> Ints:
        """Records of every group, shape (areas, groups): see `SliceCounts.totals`."""
        summed = np.zeros(self.areas * self.groups, dtype=np.int64)
        for numbers, counts in self._cells:
            group, category = np.divmod(numbers, self.categories)
            weights = counts if counted is None else counts * counted[category]
            summed += np.bincount(group, weights=weights, minlength=len(summed)).astype(np.int64)
        return summed.reshape(self.areas, self.groups)

    def details(self, selected: Flags) -> Ints:
        """Records of selected groups by category: see `SliceCounts.details`."""
        chosen = np.flatnonzero(selected)
        place = np.full(selected.size, -1, dtype=np.int64)
        place[chosen] = np.arange(len(chosen))
        cells = np.zeros(len(chosen) * self.categories, dtype=np.int64)
        for numbers, counts in self._cells:
            group, category = np.divmod(numbers, self.categories)
            wanted = place[group] >= 0
            at = place[group[wanted]] * self.categories + category[wanted]
            cells += np.bincount(at, weights=counts[wanted], minlength=len(cells)).astype(np.int64)
        return cells.reshape(-1, self.categories)


def _rows_at_once(db: duckdb.DuckDBPyConnection) -> int:
    """How many records are read at a time: fewer where the database, and so the process, may take little."""
    return min(_ROWS_AT_ONCE, max(1, memory_limit(db) // _BYTES_OF_A_ROW))


def _require_memory(db: duckdb.DuckDBPyConnection, records: int) -> None:
    """Refuse a slice whose counts, beside the interpreter, take a quarter more than the process may."""
    if 4 * (BESIDE_DATABASE + _BYTES_OF_A_COUNTED * records) > 5 * memory_of_process(db):
        raise InputError("--memory is too little to count the records of one state or county at once; give more")


def _stretches(length: int) -> Iterator[slice]:
    """Stretches of a long list that bound what is held at a time."""
    for first in range(0, length, _PAIRS_AT_ONCE):
        yield slice(first, min(first + _PAIRS_AT_ONCE, length))


def _ranges(starts: Ints, lengths: Ints) -> Ints:
    """The numbers of several ranges, one after the other."""
    if not len(lengths):
        return NOTHING
    ends: Ints = np.cumsum(lengths)
    numbers: Ints = np.arange(ends[-1])
    numbers += np.repeat(starts - (ends - lengths), lengths)
    return numbers


@dataclass(frozen=True, slots=True)
class _Chunk:
    """What is read at once: records of some values of the first column of the key, or of the second, or a part of them.

    Attributes
    ----------
    first : tuple of int and int
        Least and greatest value.
    second : tuple of int and int, or None
        The same of the second column; None for all.
    records : int
    part : tuple of int and int, or None
        Of records of one value of the second column, those of which the third leaves the one where it is divided by
        the other; None for all.
    """

    first: tuple[int, int]
    second: tuple[int, int] | None
    records: int
    part: tuple[int, int] | None = None

    def where(self, values: Sequence[str]) -> str:
        """SQL for the records of the chunk, whose columns of the key are these SQL."""
        bounds = (self.first,) if self.second is None else (self.first, self.second)
        within = [f"({value}) BETWEEN {low} AND {high}" for value, (low, high) in zip(values, bounds, strict=False)]
        if self.part is not None:
            rest, by = self.part
            within.append(f"({values[_THIRD]})::BIGINT % {by} = {rest}")
        return " AND ".join(within)

    def blocks(self, key: Sequence[BlockColumn]) -> str:
        """SQL for the numbers of its blocks."""
        within = 10 ** sum(column.digits for column in key[1:])
        first, last = (value * within for value in self.first)
        end = last + within
        if self.second is not None:
            of_second = 10 ** sum(column.digits for column in key[2:])
            first, end = first + self.second[0] * of_second, first + (self.second[1] + 1) * of_second
        return f"block >= {first} AND block < {end}"


def _plan_reading(
    db: duckdb.DuckDBPyConnection,
    tabulation: "GroupTabulation",
    blocks: BlockFile,
    at_once: int,
    within: tuple[int, int] | None = None,
) -> list[list[_Chunk]]:
    """Slices of whole values of the first column of the key, each read in chunks of about ``at_once`` records.

    Values that have blocks but no records are in a slice, too: areas without records have counts. Records have no
    others than those within bounds, if these are given.
    """

    def split(chunk: _Chunk) -> list[_Chunk]:
        """A chunk of too many records of one value of the second column, in parts by the third, if there is one."""
        if chunk.records <= at_once or len(tabulation.key) <= _THIRD:
            return [chunk]
        by = -(-chunk.records // at_once)
        query = (
            f"SELECT ({tabulation.key[_THIRD]})::BIGINT % {by} AS rest, count(*) FROM {tabulation.relation} "
            f"WHERE {tabulation.condition(blocks)} AND {chunk.where(tabulation.key)} GROUP BY 1 ORDER BY 1"
        )
        return [replace(chunk, records=number, part=(rest, by)) for rest, number in db.execute(query).fetchall()]

    key = ", ".join(f"({value})::BIGINT" for value in (*tabulation.key, "0")[:2])
    records = f"SELECT {key}, count(*) FROM {tabulation.relation} WHERE {tabulation.condition(blocks)}"
    each = 10 ** sum(column.digits for column in blocks.key[1:])
    values = db.execute(f"SELECT DISTINCT block // {each} FROM block_pieces").fetchall()
    low, high = within or (0, math.inf)
    found: dict[int, list[tuple[int, int]]] = {value: [] for (value,) in values if low <= value <= high}
    for first, second, number in db.execute(f"{records} GROUP BY ALL ORDER BY ALL").fetchall():
        found.setdefault(first, []).append((second, number))
    slices: list[list[_Chunk]] = []
    for value in sorted(found):
        number = sum(each for _, each in found[value])
        last = slices[-1][-1] if slices else None
        if last and last.second is None and last.records + number <= at_once:
            slices[-1] = [_Chunk((last.first[0], value), None, last.records + number)]
        elif number <= at_once or len(blocks.key) == 1:
            slices.append([_Chunk((value, value), None, number)])
        else:
            parts = _in_parts(value, found[value], at_once)
            slices.append([part for chunk in parts for part in split(chunk)])
    return slices


def _in_parts(first: int, of_second: Sequence[tuple[int, int]], at_once: int) -> list[_Chunk]:
    """Chunks of one value of the first column, by values of the second."""
    chunks: list[_Chunk] = []
    for second, records in of_second:
        last = chunks[-1] if chunks else None
        if last and last.second and last.records + records <= at_once:
            chunks[-1] = _Chunk(last.first, (last.second[0], second), last.records + records)
        else:
            chunks.append(_Chunk((first, first), (second, second), records))
    return chunks


@dataclass(frozen=True, eq=False)
class GroupTabulation:
    """What is to be counted.

    Attributes
    ----------
    relation : str
        SQL of the relation of records; not of a temporary one, which belongs to one cursor.
    key : tuple of str
        SQL for the columns of the key of the block of a record, in the order of `BlockFile.key`.
    where : str
        SQL for which records count; ``true`` for all.
    responses : mapping of response to ResponseColumns
    spaces : mapping of kind to tuple of ResponseGroup
        By kind of areas the groups that its areas show, by responses of `responses`. Kinds that the areas given to
        `count_groups` lack are not counted, but a record in one of their groups is in some group.
    attribute : str
        SQL for a number that tells the category of a record.
    category : numpy.ndarray of uint8 or uint16
        The category of each such number.

    Raises
    ------
    ValueError
        If there are more than 4096 categories, or groups by a response that is not among `responses`.
    """

    relation: str
    key: tuple[str, ...]
    where: str
    responses: Mapping[str, ResponseColumns]
    spaces: Mapping[str, tuple[ResponseGroup, ...]]
    attribute: str
    category: Categories

    def __post_init__(self) -> None:
        if self.categories > _MOST_CATEGORIES:
            raise ValueError(f"records are counted in {_MOST_CATEGORIES} categories at most")
        unknown = {group.response for groups in self.spaces.values() for group in groups} - self.responses.keys()
        if unknown:
            raise ValueError(f"there are groups by responses that are not given: {', '.join(sorted(unknown))}")

    @property
    def categories(self) -> int:
        """How many categories."""
        return int(self.category.max()) + 1

    def condition(self, blocks: BlockFile) -> str:
        """SQL for the records that count, in blocks that do."""
        return f"({self.where}) AND {in_chosen(self.key[0], blocks)}"


def count_groups(
    db: duckdb.DuckDBPyConnection, tabulation: GroupTabulation, blocks: BlockFile, areas: GroupAreas
) -> Iterator[SliceCounts]:
    """Count records slice after slice, in order; every record is read once.

    A slice is all records of some values of the first column of the key that follow one another.

    Parameters
    ----------
    db : duckdb.DuckDBPyConnection
        With `find_areas` done for the same blocks.
    tabulation : GroupTabulation
    blocks : BlockFile
    areas : GroupAreas

    Raises
    ------
    InputError
        If the counts of a slice need more memory than the process may take, before any is counted.
    ValueError
        If there are too many areas, codes and categories to be counted together.
    """
    asked = _Asked.of(tabulation)
    slices = _plan_reading(db, tabulation, blocks, _rows_at_once(db))
    _require_memory(db, max((sum(chunk.records for chunk in chunks) for chunks in slices), default=0))
    chunks_of_all = iter([chunk for chunks in slices for chunk in chunks])
    # One chunk is read while the one before it is counted: the database and numpy keep a core each busy.
    with ThreadPoolExecutor(1) as reader:

        def read_next() -> Iterator[Future[_Entries]]:
            for chunk in islice(chunks_of_all, 1):
                yield reader.submit(_read, db.cursor(), tabulation, blocks, chunk, asked)

        reading = deque(read_next())
        for chunks in slices:
            parts = []
            for chunk in chunks:
                entries = reading.popleft().result()
                reading.extend(read_next())
                parts.append(_count_chunk(chunk, entries, tabulation, areas, asked))
            yield merge_slices(parts)


def count_slice(
    db: duckdb.DuckDBPyConnection,
    tabulation: GroupTabulation,
    blocks: BlockFile,
    areas: GroupAreas,
    values: tuple[int, int],
) -> SliceCounts:
    """Count the records of a slice that a database holds, all or some, as part of the slice: see `merge_slices`.

    Parameters
    ----------
    db : duckdb.DuckDBPyConnection
        With `find_areas` done for the same blocks.
    tabulation : GroupTabulation
    blocks : BlockFile
    areas : GroupAreas
    values : tuple of int and int
        Of the first column of the key, the least and the greatest; blocks have some of them.

    Raises
    ------
    ValueError
        If there are too many areas, codes and categories to be counted together.
    """
    asked, within = _Asked.of(tabulation), f"({tabulation.key[0]}) BETWEEN {values[0]} AND {values[1]}"
    some = replace(tabulation, where=f"({tabulation.where}) AND {within}")
    chunks = [chunk for of in _plan_reading(db, some, blocks, _rows_at_once(db), values) for chunk in of]
    return merge_slices(
        [_count_chunk(each, _read(db, some, blocks, each, asked), some, areas, asked) for each in chunks]
    )


def count_slices(
    db: duckdb.DuckDBPyConnection, tabulation: GroupTabulation, blocks: BlockFile, areas: GroupAreas
) -> list[SliceCounts]:
    """Count the records of a shard as parts of slices that are the same for any shard.

    There is one for each value of the first column of the key of which there are blocks. Parameters and errors are
    those of `count_slice`.
    """
    each = 10 ** sum(column.digits for column in blocks.key[1:])
    values = db.execute(f"SELECT DISTINCT block // {each} FROM block_pieces ORDER BY 1").fetchall()
    return [count_slice(db, tabulation, blocks, areas, (value, value)) for (value,) in values]


def _count_chunk(
    chunk: _Chunk, entries: "_Entries", tabulation: GroupTabulation, areas: GroupAreas, asked: "_Asked"
) -> SliceCounts:
    """Count what was read of a chunk by areas of every kind."""
    kinds = [kind for kind in tabulation.spaces if kind in areas.kinds]
    return SliceCounts(
        records=chunk.records,
        in_no_group=entries.in_no_group,
        categories=tabulation.categories,
        ranges={kind: areas.within(kind, *chunk.first) for kind in kinds},
        sizes={kind: len(tabulation.spaces[kind]) for kind in kinds},
        singles=asked.singles,
        spaces=tuple(
            lists.extended(*(sets.groups[space] for sets in entries.sets)) for space, lists in enumerate(asked.groups)
        ),
        space_of={kind: asked.space_of[kind] for kind in kinds},
        pairs=dict(_by_kind(kinds, areas, entries, tabulation.categories)),
    )


def _by_kind(
    kinds: Iterable[str], areas: GroupAreas, entries: "_Entries", categories: int
) -> Iterator[tuple[str, CountedPairs]]:
    """Count a chunk by areas of every kind; those that hold whole sections are sums of these."""
    by_section: CountedPairs | None = None
    for kind in kinds:
        if kind in areas.of_sections:
            if by_section is None:
                by_section = count_pairs(areas.sections[entries.piece], entries.key, entries.category, categories)
            yield kind, merge_pairs(by_section, areas.of_sections[kind], categories)
        else:
            yield kind, count_pairs(areas.pieces[kind][entries.piece], entries.key, entries.category, categories)


@dataclass(frozen=True, eq=False)
class _Asked:
    """The questions, and all groups by them; areas of several kinds may show the same.

    Attributes
    ----------
    questions : tuple of _Question
    spaces : tuple of _Space
    space_of : mapping of kind to int
        Its place in `spaces`.
    singles : int
        How many keys of single codes there are; larger ones are sets of several.
    groups : list of _Lists
        By space the groups of each single code.
    """

    questions: tuple[_Question, ...]
    spaces: tuple[_Space, ...]
    space_of: Mapping[str, int]
    singles: int
    groups: list[_Lists]

    @staticmethod
    def of(tabulation: GroupTabulation) -> "_Asked":
        distinct = list(dict.fromkeys(tabulation.spaces.values()))
        spaces = tuple(_Space.of(groups, tabulation.responses) for groups in distinct)
        questions, singles = [], 0
        for name, columns in tabulation.responses.items():
            in_some = np.zeros(columns.codes, dtype=bool)
            for space in spaces:
                in_some |= np.diff(space.members[name].indptr) > 0
            key = np.append(np.where(in_some, np.arange(singles, singles + columns.codes), -1), -1)
            questions.append(_Question(name, columns, key.astype(np.int32)))
            singles += columns.codes
        # A single code is in every group that it is a member of, alone or not.
        groups = [
            reduce(_Lists.extended, (_Lists(m.indptr, m.indices) for m in space.members.values())) for space in spaces
        ]
        space_of = {kind: distinct.index(groups) for kind, groups in tabulation.spaces.items()}
        return _Asked(tuple(questions), spaces, space_of, singles, groups)


@dataclass(frozen=True, eq=False)
class _Entries:
    """What the records of a chunk answer: an entry for each question of each record that it puts in some group.

    Attributes
    ----------
    piece, key : numpy.ndarray of int32
    category : numpy.ndarray of uint8 or uint16
    in_no_group : int
        Records without an entry.
    sets : list of _Sets
        Their keys follow those of single codes, in order.
    """

    piece: Indices
    key: Indices
    category: Categories
    in_no_group: int
    sets: list[_Sets]


def _read(
    db: duckdb.DuckDBPyConnection, tabulation: GroupTabulation, blocks: BlockFile, chunk: _Chunk, asked: _Asked
) -> _Entries:
    words = [_word(word) for question in asked.questions for word in question.columns.words]
    packed = "".join(f", {word} AS word_{number}" for number, word in enumerate(words))
    rows = db.execute(f"""
        SELECT * EXCLUDE (block) FROM (
            SELECT {block_number(tabulation.key, blocks.key)} AS block, {tabulation.attribute} AS attribute{packed}
            FROM {tabulation.relation} WHERE {tabulation.condition(blocks)} AND {chunk.where(tabulation.key)})
        JOIN (SELECT * FROM block_pieces WHERE {chunk.blocks(blocks.key)}) USING (block)""").fetchnumpy()
    piece = np.asarray(rows["piece"], dtype=np.int32)
    # A record whose block was lost, or is there twice, would be counted wrongly and nobody would know; one without an
    # answer or a category, too.
    assert len(piece) == chunk.records  # noqa: S101
    assert not any(np.ma.is_masked(column) for column in rows.values())  # noqa: S101
    category = tabulation.category[np.asarray(rows["attribute"])]
    in_some = np.zeros(len(piece), dtype=bool)
    keys, records, found = [], [], []
    first, number = asked.singles, 0
    for question in asked.questions:
        each = range(number, number + len(question.columns.words))
        number = each.stop
        key, sets = _keys(question, [np.asarray(rows[f"word_{n}"], dtype=np.int64) for n in each], asked, first)
        given = np.flatnonzero(key >= 0)
        in_some[given] = True
        keys.append(key[given])
        records.append(given)
        found.append(sets)
        first += sets.number
    some = np.concatenate([*records, NOTHING])
    return _Entries(
        piece=piece[some],
        key=np.concatenate([*keys, np.zeros(0, dtype=np.int32)]),
        category=category[some],
        in_no_group=int((~in_some).sum()),
        sets=found,
    )


def _keys(question: _Question, words: Sequence[Ints], asked: _Asked, first: int) -> tuple[Indices, _Sets]:
    """The key of each record's answer, -1 where it is in no group; sets of several codes are numbered from ``first``.

    Most records give one code, in the first column, and their words need no sorting.
    """
    from scipy.sparse import csr_array  # noqa: PLC0415 (a tenth of a second, and few tables need it)

    mask = (1 << _CODE_BITS) - 1
    key = question.of_number[words[0] & mask]
    more = (words[0] >> _CODE_BITS) != question.rests[0]
    for word, rest in zip(words[1:], question.rests[1:], strict=True):
        more |= word != rest
    several = np.flatnonzero(more)
    distinct, number = _distinct([word[several] for word in words])
    shifts = _CODE_BITS * np.arange(_CODES_IN_WORD)
    digits = np.concatenate([(word[:, None] >> shifts) & mask for word in distinct], axis=1)
    codes = question.columns.place[digits[:, : len(question.columns.columns)]]
    there = codes >= 0
    size = there.sum(axis=1)
    of_several = size > 1
    starts = np.append(0, np.cumsum(size[of_several]))
    given = csr_array(
        (np.ones(starts[-1], dtype=np.int32), codes[of_several][there[of_several]], starts),
        shape=(len(starts) - 1, question.columns.codes),
    )
    groups = tuple(_groups_of(given, space.members[question.name], space.alone) for space in asked.spaces)
    in_some = np.zeros(len(starts) - 1, dtype=bool)
    for lists in groups:
        in_some |= np.diff(lists.starts) > 0
    of_sets = question.key[codes.max(axis=1)]
    of_sets[of_several] = np.where(in_some, np.arange(first, first + len(in_some)), -1)
    key[several] = of_sets[number]
    return key, _Sets(len(in_some), groups)


def _word(columns: Sequence[str]) -> str:
    """SQL for up to four codes in one number."""
    return " | ".join(f"(({column})::BIGINT << {_CODE_BITS * place})" for place, column in enumerate(columns))


def _distinct(words: Sequence[Ints]) -> tuple[list[Ints], Ints]:
    """Distinct rows of words, and of each row its place among them."""
    order = np.lexsort(words)
    ordered = [word[order] for word in words]
    new = np.ones(len(order), dtype=bool)
    new[1:] = np.logical_or.reduce([word[1:] != word[:-1] for word in ordered])
    number = np.empty(len(order), dtype=np.int64)
    number[order] = np.cumsum(new) - 1
    return [word[new] for word in ordered], number
