"""Exact counts of all geounits: of each geolevel a file on private scratch, of which parts are read. Confidential.

The records of a description are counted here, too: a histogram over the cells of a schema for each block.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from yupana.arrays import Ints, filed, narrow
from yupana.confidential.described.records import cut_of, open_described
from yupana.confidential.described.tabulate import chain_of
from yupana.confidential.records.sources import OpenedRecords
from yupana.confidential.request import RunRequest
from yupana.confidential.tabulate import linked_tables
from yupana.confidential.tabulate.block_histograms import BlockCounts, CountedBlocks
from yupana.errors import OutputError, system_fault
from yupana.files.database import store_arrays
from yupana.geography.hierarchy import Hierarchy
from yupana.geography.tree import Tree
from yupana.privacy.sealed import Sealed
from yupana.products.topdown.described import DescribedConfiguration
from yupana.topdown.descent.measurements import CountsOfUnits
from yupana.topdown.histogram import BlockParts, Histogram, count_entries, joined, runs_within

_BLOCKS_AT_ONCE: Final = 1 << 17
"""So many blocks are counted together, about, and added up to the geolevels above."""

_UNITS_OF: Final = 2
"""The geolevel whose units are never cut. Those above it have few units, whose counts are held in memory."""

CountBlocks = Callable[[int, int], Histogram]
"""Counts the blocks from one up to another, in the order of the spine."""


@dataclass(slots=True, eq=False, repr=False)
class CountsInParts(Sealed):
    """Exact counts of one geolevel in consecutive parts: in memory, or each of its arrays in a file."""

    folder: Path | None = None  # readable by its owner alone, and removed with the run; None for memory
    name: str = ""  # of the geolevel's files there
    units: int = 0  # so far
    # with the places of the first unit of each, and of the one after the last
    _parts: list[tuple[int, int, Histogram]] = field(default_factory=list)

    def add(self, counts: Histogram) -> None:
        """Add the counts of the units that follow.

        Raises
        ------
        OutputError
            If the scratch disk is full.
        """
        first, self.units = self.units, self.units + counts.units
        if self.folder is not None:
            few: Any = narrow(counts.counts)
            refused = f"the scratch disk of {self.folder.parent}"
            with system_fault(OutputError, refused, "; free space, or set TMPDIR"):
                counts = filed(replace(counts, counts=few), self.folder / f"{self.name}-{len(self._parts)}")
        self._parts.append((first, self.units, counts))

    def part(self, first: int, last: int) -> Histogram:
        """The units from ``first`` up to ``last``, numbered from 0."""
        pieces = [
            counts.part(max(first, begin) - begin, min(last, end) - begin)
            for begin, end, counts in self._parts
            if begin < last and first < end
        ]
        none = np.zeros(0, dtype=np.int64)
        found = joined(pieces) if pieces else count_entries(none, none, none, last - first)
        return replace(found, counts=found.counts.astype(np.int64))

    def __iter__(self) -> Iterator[tuple[int, Histogram]]:
        """The counts in the parts in which they were added, and the place of the first unit of each."""
        for first, last, _ in self._parts:
            yield first, self.part(first, last)


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


def add_up(tree: Tree, count_blocks: CountBlocks, scratch: Path | None) -> GeolevelCounts:
    """Count the blocks, some counties at a time, and add them up to the geolevels above.

    Parameters
    ----------
    count_blocks : callable
        Is called for all blocks in order, each once.
    scratch : Path or None
        A private folder for what is counted; without one it stays in memory.

    Raises
    ------
    OutputError
        If the scratch disk is full.
    """
    last = len(tree.names) - 1
    lowest = min(_UNITS_OF, last)
    found = {number: CountsInParts(scratch, str(number)) for number in range(lowest, last + 1)}
    tops: list[tuple[int, Histogram]] = []
    # Units of the lowest, one after the other, up to so many blocks or a single unit.
    ends = tree.below(lowest, np.arange(1, tree.units(lowest) + 1))[-1]
    for first, end in runs_within(ends, _BLOCKS_AT_ONCE):
        spans = [span.tolist() for span in tree.below(lowest, (first, end))]
        counts = count_blocks(*spans[-1])
        for number in range(last, lowest - 1, -1):
            found[number].add(counts)
            if number:
                begin, stop = spans[number - lowest]
                parents = tree.parents[number][begin:stop]
                counts = counts.sum_to(parents - parents[0], int(parents[-1] - parents[0]) + 1)
                at = int(parents[0])
        tops.append((at if lowest else 0, counts))
    levels: list[CountsOfUnits] = [*found.values()]
    if lowest:
        unit = np.concatenate([top.owners() + at for at, top in tops])
        cells, counts_of = (np.concatenate([getattr(top, of) for _, top in tops]) for of in ("cells", "counts"))
        above = count_entries(unit, cells, counts_of, tree.units(lowest - 1))
        levels.insert(0, above)
        for number in range(lowest - 1, 0, -1):
            above = above.sum_to(tree.parents[number], tree.units(number - 1))
            levels.insert(0, above)
    return GeolevelCounts(tuple(levels), found[last])


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
    return count.opened(data, blocks, cut, request, areas.blocks)


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
        values = of.column.low + np.arange(len(column.place))
        store_arrays(db, name, {"value": values, "place": np.array(column.place, dtype=np.int64)})
    source = linked_tables.joined(chain_of(db, description, configuration.counted), shown)
    listed = "".join(f" JOIN {name} ON of_{name} = {name}.value" for name in counted)
    store_arrays(db, "spine_now", {"number": blocks, "node": np.arange(len(blocks))})
    return (
        f"SELECT node * {configuration.schema.cells} + {cell} AS key, count(*) AS count "
        f"FROM {source}{listed} JOIN spine_now ON block_now.place = spine_now.number GROUP BY key"
    )
