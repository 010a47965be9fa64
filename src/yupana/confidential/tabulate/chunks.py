"""Which records are read at a time: so many as memory allows, slice after slice of the country."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import duckdb

from yupana.confidential.tabulate.tabulation import GroupTabulation
from yupana.geography.block_file import BlockColumn, BlockFile

_THIRD: Final = 2
"""The place of the third column of a key."""


@dataclass(frozen=True, slots=True)
class Chunk:
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


def plan_reading(
    db: duckdb.DuckDBPyConnection, tabulation: GroupTabulation, blocks: BlockFile, at_once: int
) -> list[list[Chunk]]:
    """Slices of whole values of the first column of the key, each read in chunks of about ``at_once`` records.

    Values that have blocks but no records are in a slice, too: areas without records have counts.
    """

    def split(chunk: Chunk) -> list[Chunk]:
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
    found: dict[int, list[tuple[int, int]]] = {value: [] for (value,) in values}
    for first, second, number in db.execute(f"{records} GROUP BY ALL ORDER BY ALL").fetchall():
        found.setdefault(first, []).append((second, number))
    slices: list[list[Chunk]] = []
    for value in sorted(found):
        number = sum(each for _, each in found[value])
        last = slices[-1][-1] if slices else None
        if last and last.second is None and last.records + number <= at_once:
            slices[-1] = [Chunk((last.first[0], value), None, last.records + number)]
        elif number <= at_once or len(blocks.key) == 1:
            slices.append([Chunk((value, value), None, number)])
        else:
            parts = _in_parts(value, found[value], at_once)
            slices.append([part for chunk in parts for part in split(chunk)])
    return slices


def _in_parts(first: int, of_second: Sequence[tuple[int, int]], at_once: int) -> list[Chunk]:
    """Chunks of one value of the first column, by values of the second."""
    chunks: list[Chunk] = []
    for second, records in of_second:
        last = chunks[-1] if chunks else None
        if last and last.second and last.records + records <= at_once:
            chunks[-1] = Chunk(last.first, (last.second[0], second), last.records + records)
        else:
            chunks.append(Chunk((first, first), (second, second), records))
    return chunks
