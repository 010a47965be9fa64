"""What groups are counted of: responses and categories of records, and the areas that blocks make, cut into pieces.

A piece is what no area divides, so that records are counted by piece first.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import duckdb
import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Indices, Ints
from yupana.files.database import named
from yupana.files.delimited import positions
from yupana.geography.block_file import BlockAreas, BlockColumn, BlockFile
from yupana.plan.responses import ResponseGroup

Categories: TypeAlias = NDArray[np.uint8] | NDArray[np.uint16]

_MOST_DIGITS: Final = 18
"""Digits of a code that fit a number."""

_EVERYTHING: Final = 1
"""The id of an area that holds every block."""


@dataclass(frozen=True, eq=False)
class GroupAreas:
    """The areas that some blocks make; public.

    A piece is all blocks with the same values of the columns that areas are made of, and of the first two of the key. A
    section is all blocks with the same values of these two, or of the only one.
    """

    kinds: Mapping[str, BlockAreas]  # by kind
    # by kind: ids of the areas of each kind, as numbers, ascending. 1 for the one area of everything.
    ids: Mapping[str, Ints]
    every: Mapping[str, Ints]  # by kind: the same with the areas that are left out because no housing unit stands there
    # shape (pieces,): of each piece the place in `ids` of the area it is in, or -1. Pieces ascend by section.
    pieces: Mapping[str, Indices]
    sections: Indices  # shape (pieces,): the number of the section each piece is in
    # shape (sections,): the same as `pieces` by section, of the kinds that no section lies across
    of_sections: Mapping[str, Indices]
    first: BlockColumn  # the first column of the key

    def crosses(self, kind: str) -> bool:
        """Whether areas of a kind may hold blocks with several values of the first column of the key."""
        return self.kinds[kind].columns[:1] != (self.first,)

    def within(self, kind: str, first: int, last: int) -> tuple[int, int]:
        """Which areas of a kind lie in a range of values of the first column of the key, as a range of places in `ids`.

        All, if they cross these.
        """
        ids = self.ids[kind]
        if self.crosses(kind):
            return 0, len(ids)
        within = 10 ** (self.kinds[kind].width - self.first.digits)
        low, high = np.searchsorted(ids, [first * within, (last + 1) * within])
        return int(low), int(high)

    def stretches(self, kind: str, first: tuple[int, int] | None, most: int) -> Iterator[tuple[int, int]]:
        """Areas of a kind, some at a time, as ranges of places; all at once if they cross values of the first column.

        Parameters
        ----------
        kind : str
        first : tuple of int and int, optional
            The least and the greatest of them; by default all.
        most : int
            Areas of one of them are given together, but no more than so many, or one.
        """
        low, high = (0, len(self.ids[kind])) if first is None else self.within(kind, *first)
        if self.crosses(kind):
            yield low, high
            return
        of_first = self.ids[kind][low:high] // 10 ** (self.kinds[kind].width - self.first.digits)
        ends = [*(low + 1 + np.flatnonzero(of_first[1:] != of_first[:-1])).tolist(), high]
        for end in ends:
            for begin in range(low, end, max(1, most)):
                yield begin, min(begin + max(1, most), end)
            low = end

    def written(self, kind: str) -> list[str]:
        """The codes of the areas of a kind."""
        areas = self.kinds[kind]
        if not areas.columns:
            return [areas.code for _ in self.ids[kind]]
        return [str(number).zfill(areas.width) for number in self.ids[kind].tolist()]


def block_number(values: Sequence[str], key: Sequence[BlockColumn]) -> str:
    """SQL for the number of a block: the digits of its key, whose values are these SQL, one after another."""
    number = "0::BIGINT"
    for value, column in zip(values, key, strict=True):
        number = f"({number} * {10**column.digits} + ({value}))"
    return number


def in_chosen(value: str, blocks: BlockFile) -> str:
    """SQL for whether a value of the first column of the key counts."""
    return "true" if blocks.chosen is None else f"({value}) IN ({', '.join(map(str, sorted(blocks.chosen)))})"


def find_areas(db: duckdb.DuckDBPyConnection, blocks: BlockFile, kinds: Sequence[BlockAreas]) -> GroupAreas:
    """List the areas of some kinds in the relation ``blocks``, and cut them into pieces.

    Leaves a table ``block_pieces`` of the numbers of blocks (`block_number`) and of their pieces. Where blocks have a
    number of housing units, areas without one are left out.

    Parameters
    ----------
    db : duckdb.DuckDBPyConnection
        With a relation ``blocks``: the columns of the key, the others, and ``housing_units``, NULL where no list of
        them is given; all whole numbers.

    Raises
    ------
    ValueError
        If a key or a code has more than 18 digits.
    """
    if any(sum(c.digits for c in columns) > _MOST_DIGITS for columns in (blocks.key, *(k.columns for k in kinds))):
        raise ValueError(f"the key of a block and the code of an area have {_MOST_DIGITS} digits at most")
    used = {column.name for column in blocks.key[:2]}
    used |= {name for kind in kinds for name in (*(c.name for c in kind.columns), *(kind.nowhere or {}))}
    columns = [column.name for column in (*blocks.key, *blocks.columns) if column.name in used]
    # Numbered names, for a column may have any name.
    numbered = {name: f"column_{number}" for number, name in enumerate(columns)}
    values = ", ".join(f"{named(name)} AS {number}" for name, number in numbered.items())
    (first, *_), order = (named(column.name) for column in blocks.key), ", ".join(numbered.values())
    some = f"FROM blocks WHERE {in_chosen(first, blocks)}"
    db.execute(f"""
        CREATE OR REPLACE TABLE pieces AS SELECT *, (row_number() OVER (ORDER BY {order}) - 1)::INTEGER AS piece
        FROM (SELECT {order}, coalesce(max(n), 1) > 0 AS live FROM (SELECT {values}, housing_units AS n {some})
            GROUP BY {order})
        """)
    key = block_number([named(column.name) for column in blocks.key], blocks.key)
    db.execute(f"""
        CREATE OR REPLACE TABLE block_pieces AS SELECT block, piece
        FROM (SELECT {key} AS block, {values} {some}) JOIN pieces USING ({order}) ORDER BY block""")
    rows = db.execute("SELECT * FROM pieces ORDER BY piece").fetchnumpy()
    found = {name: rows[number].astype(np.int64) for name, number in numbered.items()}
    live = rows["live"].astype(bool)
    of_kind = {kind.name: _numbers(kind, found, len(live)) for kind in kinds}
    ids = {name: np.unique(of[live & (of >= 0)]) for name, of in of_kind.items()}
    every = {name: np.unique(of[of >= 0]) for name, of in of_kind.items()}
    pieces = {name: positions(of, ids[name]).astype(np.int32) for name, of in of_kind.items()}
    head = blocks.key[:2]
    section = sum(
        (found[column.name] * 10 ** sum(c.digits for c in head[place + 1 :]) for place, column in enumerate(head))
    )
    _, opens, number = np.unique(section, return_index=True, return_inverse=True)
    of_head = {column.name for column in head}
    whole = [k.name for k in kinds if of_head.issuperset((*(c.name for c in k.columns), *(k.nowhere or {})))]
    return GroupAreas(
        kinds={kind.name: kind for kind in kinds},
        ids=ids,
        every=every,
        pieces=pieces,
        sections=number.astype(np.int32),
        of_sections={name: pieces[name][opens] for name in whole},
        first=blocks.key[0],
    )


def _numbers(kind: BlockAreas, found: Mapping[str, Ints], pieces: int) -> Ints:
    """Of each piece the id of the area that it is in, or -1."""
    number = np.full(pieces, 0 if kind.columns else _EVERYTHING, dtype=np.int64)
    for column in kind.columns:
        number = number * 10**column.digits + found[column.name]
    for name, value in (kind.nowhere or {}).items():
        number[found[name] == value] = -1
    return number


CODE_BITS: Final = 14
CODES_IN_WORD: Final = 4
_MOST_COLUMNS: Final = 2 * CODES_IN_WORD
_MOST_CATEGORIES: Final = 1 << 12


@dataclass(frozen=True, eq=False)
class ResponseColumns:
    """A question that a record may answer with several codes, as the relation of records holds the answer.

    The answer is a set: a code that is given twice is given once, and a column may be skipped.

    Raises
    ------
    ValueError
        If there are too many columns or numbers, or none.
    """

    columns: tuple[str, ...]  # SQL of one to eight columns of numbers from 0 to below 2**14
    # shape (numbers,): of each number the place of the code, or -1 for none. The first such number is the quickest to
    # count.
    place: Ints
    codes: int  # how many codes there are

    def __post_init__(self) -> None:
        if not (1 <= len(self.columns) <= _MOST_COLUMNS and 1 <= len(self.place) <= 1 << CODE_BITS):
            raise ValueError(f"a response has 1 to {_MOST_COLUMNS} columns and 1 to {1 << CODE_BITS} numbers")

    @property
    def words(self) -> tuple[tuple[str, ...], ...]:
        """The columns by the number that they are packed into, four in each."""
        return tuple(
            self.columns[first : first + CODES_IN_WORD] for first in range(0, len(self.columns), CODES_IN_WORD)
        )


@dataclass(frozen=True, eq=False)
class GroupTabulation:
    """What is to be counted.

    Raises
    ------
    ValueError
        If there are more than 4096 categories, or groups by a response that is not among `responses`.
    """

    relation: str  # SQL of the relation of records; not of a temporary one, which belongs to one cursor
    key: tuple[str, ...]  # SQL for the columns of the key of the block of a record, in the order of `BlockFile.key`
    where: str  # SQL for which records count; `true` for all
    responses: Mapping[str, ResponseColumns]  # by response
    # by kind of areas the groups that its areas show, by responses of `responses`. Kinds that the areas given to
    # `count_groups` lack are not counted, but a record in one of their groups is in some group.
    spaces: Mapping[str, tuple[ResponseGroup, ...]]
    attribute: str  # SQL for a number that tells the category of a record
    category: Categories  # the category of each such number

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
