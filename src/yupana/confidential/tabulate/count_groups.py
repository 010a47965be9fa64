"""Records to exact counts of population groups: areas times groups by multiple responses.

Count first, map after. The records of a slice of the country are counted by piece of geography, by what they answer
to each question, and by category; each distinct set of codes is mapped to its groups once; and every count of a group
is a sum over (piece, set of codes) pairs. A slice is read in chunks of as many records as memory allows.
"""

import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import groupby, islice
from typing import TYPE_CHECKING, Final

import duckdb
import numpy as np

from yupana.arrays import Flags, Indices, Ints
from yupana.confidential.records.database import BESIDE_DATABASE, memory_limit, memory_of_process
from yupana.confidential.tabulate.group_counts import (
    NOTHING,
    CountedAreas,
    CountedPairs,
    GatheredCounts,
    KindCounts,
    Lists,
    PartCounts,
    count_pairs,
    merge_pairs,
)
from yupana.confidential.tabulate.group_tabulation import (
    CODE_BITS,
    CODES_IN_WORD,
    Categories,
    GroupAreas,
    GroupTabulation,
    ResponseColumns,
    block_number,
)
from yupana.errors import InputError
from yupana.geography.block_file import BlockColumn, BlockFile
from yupana.plan.responses import ResponseGroup
from yupana.topdown.histogram import runs_within

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True, slots=True)
class _Chunk:
    """What is read at once: records of some values of the first columns of the key."""

    bounds: tuple[tuple[int, int], ...]  # by column the least and the greatest value, which differ in the last alone
    records: int

    def where(self, values: Sequence[str]) -> str:
        """SQL for the records of the chunk, whose columns of the key are these SQL."""
        within = [
            f"({value}) BETWEEN {low} AND {high}" for value, (low, high) in zip(values, self.bounds, strict=False)
        ]
        return " AND ".join(within) or "true"

    def blocks(self, key: Sequence[BlockColumn]) -> str:
        """SQL for the numbers of its blocks."""
        within = 10 ** sum(column.digits for column in key[len(self.bounds) :])
        first = last = 0
        for column, (low, high) in zip(key, self.bounds, strict=False):
            first, last = first * 10**column.digits + low, last * 10**column.digits + high
        return f"block >= {first * within} AND block < {(last + 1) * within}"


def _plan_reading(
    db: duckdb.DuckDBPyConnection, tabulation: GroupTabulation, blocks: BlockFile, at_once: int
) -> list[list[_Chunk]]:
    """Slices of whole values of the first column of the key, each read in chunks of about ``at_once`` records.

    Values that have blocks but no records are in a slice, too: areas without records have counts.
    """

    def cut(whole: _Chunk, without_records: Mapping[int, int]) -> Iterator[_Chunk]:
        """Values of the next column one after the other, but those with too many records by the column after it."""
        value = tabulation.key[len(whole.bounds)]
        query = (
            f"SELECT ({value})::BIGINT, count(*) FROM {tabulation.relation} "
            f"WHERE {tabulation.condition(blocks)} AND {whole.where(tabulation.key)} GROUP BY 1"
        )
        counted = sorted({**without_records, **dict(db.execute(query).fetchall())}.items())
        for begin, end in runs_within(np.cumsum([number for _, number in counted]), at_once):
            some = counted[begin:end]
            chunk = _Chunk((*whole.bounds, (some[0][0], some[-1][0])), sum(number for _, number in some))
            if chunk.records > at_once and len(chunk.bounds) < len(tabulation.key):
                yield from cut(chunk, {})
            else:
                yield chunk

    each = 10 ** sum(column.digits for column in blocks.key[1:])
    values = db.execute(f"SELECT DISTINCT block // {each}, 0 FROM block_pieces").fetchall()
    return [list(some) for _, some in groupby(cut(_Chunk((), 0), dict(values)), lambda chunk: chunk.bounds[0])]


_ROWS_AT_ONCE: Final = 10_000_000
_BYTES_OF_A_ROW: Final = 200
"""Of the memory of the database: what is held while records are counted and the next ones are read."""
_SHARE_OF_GATHERED: Final = 8
_BYTES_OF_A_COUNTED: Final = 24
"""What is held of each record of a shard until all of it is counted and sent."""


def _groups_of(given: "csr_array", members: "csr_array", alone: Flags) -> Lists:
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
    return Lists.of(np.bincount(row[within], minlength=given.shape[0]), shared.indices[within])


@dataclass(frozen=True, eq=False)
class _Space:
    """The groups that areas of some kinds show: which codes of each response are members; which ask for all codes."""

    members: Mapping[str, "csr_array"]  # shape (codes, groups)
    alone: Flags  # shape (groups,)

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
    """A response, and how a single code becomes a key."""

    name: str
    columns: ResponseColumns
    # shape (codes + 1,): of each code its key, or -1 where it is in no group; -1 for no code, which stands last
    key: Indices

    @cached_property
    def of_number(self) -> Indices:
        """The key of each number that the columns hold."""
        return self.key[self.columns.place]

    @cached_property
    def rests(self) -> Ints:
        """The words of a record whose columns are all none, the first left out of the first word."""
        none = int(np.argmax(np.append(self.columns.place, -1) < 0))
        packed = [sum(none << CODE_BITS * place for place in range(len(word))) for word in self.columns.words]
        return np.array([packed[0] >> CODE_BITS, *packed[1:]])


def _rows_at_once(db: duckdb.DuckDBPyConnection) -> int:
    """How many records are read at a time: fewer where the database, and so the process, may take little."""
    return min(_ROWS_AT_ONCE, max(1, memory_limit(db) // _BYTES_OF_A_ROW))


def memory_for_gathered(memory: int) -> int:
    """How many bytes of counts wait in memory for those of other records; more wait on disk."""
    return memory // _SHARE_OF_GATHERED


def _require_memory(db: duckdb.DuckDBPyConnection, records: int) -> None:
    """Refuse a shard whose counts, beside the interpreter, take a quarter more than the process may.

    How many records a shard has is confidential, so the least that would suffice is not told.
    """
    if 4 * (BESIDE_DATABASE + _BYTES_OF_A_COUNTED * records) > 5 * memory_of_process(db):
        raise InputError("--memory is too little to count a shard of the records at once; give more, or more --shards")


def count_groups(
    db: duckdb.DuckDBPyConnection,
    tabulation: GroupTabulation,
    blocks: BlockFile,
    areas: GroupAreas,
    *,
    keep: bool = False,
) -> Iterator[CountedAreas]:
    """Count records slice after slice of the country; every record is read once.

    A slice is all records of some values of the first column of the key that follow one another. What is counted of one
    is given as soon as it is whole, some areas at a time (`GatheredCounts.areas`); areas that may lie in more than one
    slice come last.

    Parameters
    ----------
    db : duckdb.DuckDBPyConnection
        With `find_areas` done for the same blocks.
    keep : bool
        Keep what is counted in memory, so that it can be looked at when all is counted.

    Raises
    ------
    ValueError
        If there are too many areas, codes and categories to be counted together.
    """
    slices = _plan_reading(db, tabulation, blocks, _rows_at_once(db))
    parts = _count_chunks(db, tabulation, blocks, areas, [chunk for chunks in slices for chunk in chunks])
    memory = sys.maxsize if keep else memory_for_gathered(memory_limit(db))
    crossing = {kind for kind in areas.kinds if areas.crosses(kind)}
    with GatheredCounts(memory) as of_all:
        for chunks in slices:
            with GatheredCounts(memory) as gathered:
                for part in islice(parts, len(chunks)):
                    gathered.add(part.of_kinds(areas.kinds.keys() - crossing))
                    of_all.add(replace(part.of_kinds(crossing), in_no_group=0))
                yield from gathered.areas(areas, chunks[0].bounds[0])
        yield from of_all.areas(areas)


def count_shard(
    db: duckdb.DuckDBPyConnection, tabulation: GroupTabulation, blocks: BlockFile, areas: GroupAreas
) -> list[PartCounts]:
    """Count records that are some of the country's, in parts that are gathered with those of other shards.

    Parameters are those of `count_groups`.

    Raises
    ------
    InputError
        If the counts need more memory than the process may take, before any is counted.
    ValueError
        As `count_groups` has it.
    """
    slices = _plan_reading(db, tabulation, blocks, _rows_at_once(db))
    chunks = [chunk for of_slice in slices for chunk in of_slice]
    _require_memory(db, sum(chunk.records for chunk in chunks))
    return [*_count_chunks(db, tabulation, blocks, areas, chunks)]


def _count_chunks(
    db: duckdb.DuckDBPyConnection,
    tabulation: GroupTabulation,
    blocks: BlockFile,
    areas: GroupAreas,
    chunks: Sequence[_Chunk],
) -> Iterator[PartCounts]:
    """Read and count chunk after chunk.

    One is read while the one before it is counted: the database and numpy keep a core each busy.
    """
    asked, waiting = _Asked.of(tabulation), iter(chunks)
    with ThreadPoolExecutor(1) as reader:

        def read_next() -> Iterator[Future[_Entries]]:
            for chunk in islice(waiting, 1):
                yield reader.submit(_read, db.cursor(), tabulation, blocks, chunk, asked)

        reading = deque(read_next())
        for chunk in chunks:
            entries = reading.popleft().result()
            reading.extend(read_next())
            yield _count_chunk(chunk, entries, tabulation, areas, asked)


def _count_chunk(
    chunk: _Chunk, entries: "_Entries", tabulation: GroupTabulation, areas: GroupAreas, asked: "_Asked"
) -> PartCounts:
    """Count what was read of a chunk by areas of every kind."""
    kinds = [kind for kind in tabulation.spaces if kind in areas.kinds]
    lists = [found.extended(*(groups[space] for groups in entries.sets)) for space, found in enumerate(asked.groups)]
    counts = {
        kind: KindCounts(
            *areas.within(kind, *chunk.bounds[0]),
            len(tabulation.spaces[kind]),
            tabulation.categories,
            lists[asked.space_of[kind]],
            pairs,
        )
        for kind, pairs in _by_kind(kinds, areas, entries, tabulation.categories)
    }
    return PartCounts(entries.in_no_group, counts)


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
    """The questions, and all groups by them; areas of several kinds may show the same."""

    questions: tuple[_Question, ...]
    spaces: tuple[_Space, ...]
    space_of: Mapping[str, int]  # its place in `spaces`
    singles: int  # how many keys of single codes there are; larger ones are sets of several
    groups: list[Lists]  # by space the groups of each single code

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
            reduce(Lists.extended, (Lists(m.indptr, m.indices) for m in space.members.values())) for space in spaces
        ]
        space_of = {kind: distinct.index(groups) for kind, groups in tabulation.spaces.items()}
        return _Asked(tuple(questions), spaces, space_of, singles, groups)


@dataclass(frozen=True, eq=False)
class _Entries:
    """What the records of a chunk answer: an entry for each question of each record that it puts in some group."""

    piece: Indices
    key: Indices
    category: Categories
    in_no_group: int  # records without an entry
    # by question and space, the groups of sets of several codes that some records give, each in some group; the keys of
    # the sets follow those of single codes, in order
    sets: list[tuple[Lists, ...]]


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
        first += len(sets[0].starts) - 1
    some = np.concatenate([*records, NOTHING])
    return _Entries(
        piece=piece[some],
        key=np.concatenate([*keys, np.zeros(0, dtype=np.int32)]),
        category=category[some],
        in_no_group=int((~in_some).sum()),
        sets=found,
    )


def _keys(question: _Question, words: Sequence[Ints], asked: _Asked, first: int) -> tuple[Indices, tuple[Lists, ...]]:
    """The key of each record's answer, -1 where it is in no group; sets of several codes are numbered from ``first``.

    Most records give one code, in the first column, and their words need no sorting.
    """
    from scipy.sparse import csr_array  # noqa: PLC0415 (a tenth of a second, and few tables need it)

    mask = (1 << CODE_BITS) - 1
    key = question.of_number[words[0] & mask]
    more = (words[0] >> CODE_BITS) != question.rests[0]
    for word, rest in zip(words[1:], question.rests[1:], strict=True):
        more |= word != rest
    several = np.flatnonzero(more)
    distinct, number = _distinct([word[several] for word in words])
    shifts = CODE_BITS * np.arange(CODES_IN_WORD)
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
    return key, groups


def _word(columns: Sequence[str]) -> str:
    """SQL for up to four codes in one number."""
    return " | ".join(f"(({column})::BIGINT << {CODE_BITS * place})" for place, column in enumerate(columns))


def _distinct(words: Sequence[Ints]) -> tuple[list[Ints], Ints]:
    """Distinct rows of words, and of each row its place among them."""
    order = np.lexsort(words)
    ordered = [word[order] for word in words]
    new = np.ones(len(order), dtype=bool)
    new[1:] = np.logical_or.reduce([word[1:] != word[:-1] for word in ordered])
    number = np.empty(len(order), dtype=np.int64)
    number[order] = np.cumsum(new) - 1
    return [word[new] for word in ordered], number
