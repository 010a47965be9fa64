"""The records of a description as TopDown counts them: a histogram over the cells of a schema for each block."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import duckdb
import numpy as np

from yupana.arrays import Ints
from yupana.confidential.described.records import cut_of, open_described
from yupana.confidential.described.tabulate import chain_of
from yupana.confidential.records.validation import Finding, require_none
from yupana.confidential.request import RunRequest
from yupana.confidential.shards.count_in_shards import can_be_cut, count_in_shards
from yupana.confidential.tabulate.block_histograms import (
    BlockCounts,
    BlockEntries,
    block_entries,
    count_keys,
    merge_entries,
)
from yupana.confidential.tabulate.linked_tables import joined
from yupana.files.columns import ColumnMap
from yupana.geography.hierarchy import Hierarchy
from yupana.products.topdown.described import CountedColumn, DescribedConfiguration


@contextmanager
def open_described_counts(
    configuration: DescribedConfiguration, areas: Hierarchy, blocks: Ints, data: Path, request: RunRequest
) -> Iterator[BlockCounts]:
    """Count the records of a data folder by block, as `open_block_counts` does.

    Parameters
    ----------
    configuration : DescribedConfiguration
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
    cut = cut_of(configuration.description, request.columns, request.shards)
    if request.engine is not None and can_be_cut(data, cut):
        count = partial(_count_shard, configuration, blocks, request.columns)
        found = count_in_shards(request.engine, data, cut, count, request.memory, request.progress)
        require_none(found.findings)
        histogram = merge_entries(found.parts).histogram(len(blocks))
        yield BlockCounts(blocks, found.files, int(histogram.counts.sum()), histogram.part, areas.blocks)
        return
    with open_described(configuration.description, data, request.memory, request.columns) as records:
        records.require_valid()
        number, part = count_keys(records.db, _keys(records.db, configuration, blocks), configuration.schema.cells)
        yield BlockCounts(blocks, dict(records.files), number, part, areas.blocks)


def _count_shard(
    configuration: DescribedConfiguration, blocks: Ints, columns: ColumnMap, folder: Path, memory: int
) -> tuple[tuple[Finding, ...], BlockEntries | None]:
    with open_described(configuration.description, folder, memory, columns) as records:
        if records.findings:
            return records.findings, None
        query = _keys(records.db, configuration, blocks)
        return (), block_entries(records.db, query, configuration.schema.cells)


def _keys(db: duckdb.DuckDBPyConnection, configuration: DescribedConfiguration, blocks: Ints) -> str:
    """A query that counts records by block and cell, as `count_keys` reads it."""
    description = configuration.description
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
    source = joined(chain_of(db, description, configuration.counted), shown)
    listed = "".join(f" JOIN {name} ON of_{name} = {name}.value" for name in counted)
    db.register("list_now", {"number": blocks, "node": np.arange(len(blocks))})
    db.execute("CREATE TABLE spine_now AS SELECT * FROM list_now")
    db.unregister("list_now")
    return (
        f"SELECT node * {configuration.schema.cells} + {cell} AS key, count(*) AS count "
        f"FROM {source}{listed} JOIN spine_now ON block_now.place = spine_now.number GROUP BY key"
    )


def _list(db: duckdb.DuckDBPyConnection, name: str, low: int, column: CountedColumn) -> None:
    """Make a table of the values of a column and what each is counted as."""
    values = np.arange(low, low + len(column.place))
    db.register("list_now", {"value": values, "place": np.array(column.place, dtype=np.int64)})
    db.execute(f"CREATE TABLE {name} AS SELECT * FROM list_now")
    db.unregister("list_now")
