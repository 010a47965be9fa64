"""Exact counts of all geounits: of each geolevel a file on private scratch, of which parts are read. Confidential.

The records of a description are counted here, too: a histogram over the cells of a schema for each block.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import duckdb
import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Ints
from yupana.confidential.described.records import cut_of, open_described
from yupana.confidential.described.tabulate import chain_of
from yupana.confidential.records.sources import OpenedRecords
from yupana.confidential.request import RunRequest
from yupana.confidential.tabulate import linked_tables
from yupana.confidential.tabulate.block_histograms import BlockCounts, CountedBlocks
from yupana.errors import OutputError
from yupana.files.database import store_arrays
from yupana.geography.hierarchy import Hierarchy
from yupana.geography.tree import Tree
from yupana.privacy.sealed import Sealed
from yupana.products.topdown.described import CountedColumn, DescribedConfiguration
from yupana.topdown.descent.measurements import CountsOfUnits
from yupana.topdown.histogram import BlockParts, Histogram, HistogramParts, count_entries, joined, runs_within

_BLOCKS_AT_ONCE: Final = 1 << 17
"""So many blocks are counted together, about, and added up to the geolevels above."""

_UNITS_OF: Final = 2
"""The geolevel whose units are never cut. Those above it have few units, whose counts are held in memory."""

CountBlocks = Callable[[int, int], Histogram]
"""Counts the blocks from one up to another, in the order of the spine."""


@dataclass(slots=True, eq=False, repr=False)
class CountsOnDisk(Sealed):
    """Exact counts of one geolevel in files: three columns, as `Histogram` has them."""

    folder: Path  # readable by its owner alone, and removed with the run
    name: str  # of the geolevel's files there
    wide: bool  # whether a count may take 8 bytes. If not, all records together are fewer than 2**31.
    units: int = 0  # so far
    _entries: int = 0
    _cuts: list[int] = field(default_factory=lambda: [0])

    def add(self, counts: Histogram) -> None:
        """Add the counts of the units that follow.

        Raises
        ------
        OverflowError
            If a count is too large for its column.
        OutputError
            If the scratch disk is full.
        """
        kind = self._kinds["counts"]
        if int(counts.counts.max(initial=0)) > np.iinfo(kind).max:
            raise OverflowError("a count does not fit into its column")
        columns: dict[str, NDArray[Any]] = {
            "starts": counts.starts[1:] + self._entries,
            "cells": counts.cells,
            "counts": counts.counts.astype(kind),
        }
        try:
            for column, values in columns.items():
                with self._path(column).open("ab") as file:
                    file.write(values.tobytes())
        except OSError as error:
            place = self.folder.parent
            raise OutputError(f"the scratch disk of {place}: {error.strerror}; free space, or set TMPDIR") from None
        self.units += counts.units
        self._entries += len(counts.cells)
        self._cuts.append(self.units)

    def part(self, first: int, last: int) -> Histogram:
        """The units from ``first`` up to ``last``, numbered from 0."""
        starts = np.zeros(last - first + 1, dtype=np.int64)
        # The first unit of all begins at 0, which no file says.
        starts[first == 0 :] = self._read("starts", max(first - 1, 0), last)
        begin, end = int(starts[0]), int(starts[-1])
        counts = self._read("counts", begin, end).astype(np.int64)
        return Histogram(starts - begin, self._read("cells", begin, end), counts)

    def __iter__(self) -> Iterator[tuple[int, Histogram]]:
        """The counts in the parts in which they were added, and the place of the first unit of each."""
        for first, last in pairwise(self._cuts):
            yield first, self.part(first, last)

    @property
    def _kinds(self) -> dict[str, type[np.signedinteger[Any]]]:
        return {"starts": np.int64, "cells": np.int32, "counts": np.int64 if self.wide else np.int32}

    def _path(self, column: str) -> Path:
        return self.folder / f"{self.name}.{column}"

    def _read(self, column: str, first: int, last: int) -> NDArray[Any]:
        kind = np.dtype(self._kinds[column])
        if first == last:
            return np.zeros(0, dtype=kind)
        return np.fromfile(self._path(column), dtype=kind, count=last - first, offset=first * kind.itemsize)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class GeolevelCounts(Sealed):
    """Exact counts of all geounits."""

    levels: tuple[CountsOfUnits, ...]  # from the root down
    blocks: BlockParts  # those of the last

    @property
    def records(self) -> int:
        """How many records there are."""
        root = self.levels[0]
        return int(root.part(0, root.units).counts.sum())


def add_up(tree: Tree, count_blocks: CountBlocks, scratch: Path | None, *, records: int) -> GeolevelCounts:
    """Count the blocks, some counties at a time, and add them up to the geolevels above.

    Parameters
    ----------
    count_blocks : callable
        Is called for all blocks in order, each once.
    scratch : Path or None
        A private folder for what is counted; without one it stays in memory.
    records : int
        How many there are in all.

    Raises
    ------
    OutputError
        If the scratch disk is full.
    """
    last = len(tree.names) - 1
    lowest = min(_UNITS_OF, last)
    files = {n: CountsOnDisk(scratch, str(n), wide=records >= 1 << 31) for n in range(lowest, last + 1) if scratch}
    found: dict[int, list[Histogram]] = {n: [] for n in range(last + 1)}
    tops: list[tuple[int, Histogram]] = []
    for first, end in _stretches(tree, lowest):
        spans = [(first, end)]
        for parents in tree.parents[lowest + 1 :]:
            begin, stop = np.searchsorted(parents, spans[-1]).tolist()
            spans.append((begin, stop))
        counts = count_blocks(*spans[-1])
        for number in range(last, lowest - 1, -1):
            if files:
                files[number].add(counts)
            else:
                found[number].append(counts)
            if number:
                begin, stop = spans[number - lowest]
                parents = tree.parents[number][begin:stop]
                counts = counts.sum_to(parents - parents[0], int(parents[-1] - parents[0]) + 1)
                at = int(parents[0])
        tops.append((at if lowest else 0, counts))
    levels: list[CountsOfUnits] = [files[n] if files else joined(found[n]) for n in range(lowest, last + 1)]
    if lowest:
        unit = np.concatenate([top.owners() + at for at, top in tops])
        cells, counts_of = (np.concatenate([getattr(top, of) for _, top in tops]) for of in ("cells", "counts"))
        above = count_entries(unit, cells, counts_of, tree.units(lowest - 1))
        levels.insert(0, above)
        for number in range(lowest - 1, 0, -1):
            above = above.sum_to(tree.parents[number], tree.units(number - 1))
            levels.insert(0, above)
    blocks = levels[-1]
    return GeolevelCounts(tuple(levels), HistogramParts(blocks) if isinstance(blocks, Histogram) else files[last])


def _stretches(tree: Tree, lowest: int) -> Iterator[tuple[int, int]]:
    """Units of a geolevel, one after the other, up to so many blocks or a single unit."""
    ends = np.arange(1, tree.units(lowest) + 1)
    for parents in tree.parents[lowest + 1 :]:
        ends = np.searchsorted(parents, ends)
    return runs_within(ends, _BLOCKS_AT_ONCE)


def open_described_counts(
    configuration: DescribedConfiguration, areas: Hierarchy, blocks: Ints, data: Path, request: RunRequest
) -> AbstractContextManager[BlockCounts]:
    """Count the records of a data folder by block, as `open_block_counts` does.

    Parameters
    ----------
    areas : Hierarchy
        Of the configuration.
    blocks : ndarray of int64, shape (blocks,)
        Numbers of the blocks of the spine, in its order.
    data : Path
        With the record files of the description.
    request : RunRequest
        Tells the memory to get along with, and the engine that counts them in shards.

    Raises
    ------
    InputError
        If the records break a rule.
    """
    description = configuration.description
    count = CountedBlocks(
        partial(open_described, description, columns=request.columns),
        partial(_keys, configuration, blocks),
        configuration.schema.cells,
    )
    cut = cut_of(description, request.columns, request.shards)
    return count.opened(data, blocks, cut, request.engine, request.memory, request.progress, codes=areas.blocks)


def _keys(configuration: DescribedConfiguration, blocks: Ints, records: OpenedRecords) -> str:
    """A query that counts records by block and cell, as `count_keys` reads it."""
    db, description = records.db, configuration.description
    counted = {"block_now": configuration.block}
    cell = "0"
    for number, (attribute, column) in enumerate(
        zip(configuration.schema.attributes, configuration.attributes, strict=True)
    ):
        counted[f"level_{number}"] = column
        cell = f"({cell} * {attribute.size} + level_{number}.place)"
    chain = description.chain(configuration.counted)
    shown: list[list[str]] = [[] for _ in chain]
    for name, column in counted.items():
        of = description.columns[column.name]
        shown[chain.index(of.file)].append(f"{column.name} AS of_{name}")
        _list(db, name, of.column.low, column)
    source = linked_tables.joined(chain_of(db, description, configuration.counted), shown)
    listed = "".join(f" JOIN {name} ON of_{name} = {name}.value" for name in counted)
    store_arrays(db, "spine_now", {"number": blocks, "node": np.arange(len(blocks))})
    return (
        f"SELECT node * {configuration.schema.cells} + {cell} AS key, count(*) AS count "
        f"FROM {source}{listed} JOIN spine_now ON block_now.place = spine_now.number GROUP BY key"
    )


def _list(db: duckdb.DuckDBPyConnection, name: str, low: int, column: CountedColumn) -> None:
    """Make a table of the values of a column and what each is counted as."""
    values = np.arange(low, low + len(column.place))
    store_arrays(db, name, {"value": values, "place": np.array(column.place, dtype=np.int64)})
