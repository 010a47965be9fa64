"""The keys of records, summed by cell: the cell key method finds by them the noise of a count."""

from collections.abc import Mapping, Sequence

import duckdb
import numpy as np

from yupana.arrays import Ints
from yupana.confidential.described.tabulate import tabulate
from yupana.confidential.tabulate.linked_tables import (
    Chain,
    LinkedCounts,
    LinkedTable,
    Tally,
    joined,
    make_batches,
    numbers_of,
)
from yupana.files.database import named, quoted
from yupana.products.described.description import DescribedLevel, Description


def cell_keys(
    db: duckdb.DuckDBPyConnection,
    description: Description,
    wanted: Mapping[str, Sequence[DescribedLevel]],
    secret: str,
) -> Mapping[str, Ints]:
    """Add up the keys of the records of every cell, modulo 2^64.

    The key of a record is a hash of all its fields and a secret, so that the same records have the same sum wherever
    they are counted. Of records alike in all fields each has a key of its own. No limit holds.

    Returns
    -------
    mapping of ``table/level`` to int64 array, shape (areas by groups of the level, cells)
        The sums as bits.
    """
    keyed = {named(file.schema.relation) for file in description.record_files if file.key}

    def add_up(
        db: duckdb.DuckDBPyConnection, chain: Chain, tables: Sequence[LinkedTable], key: str
    ) -> dict[str, LinkedCounts]:
        del key
        batches = make_batches(chain, tables)
        fields = ", ".join(chain[0].header)
        alike = "" if chain[0].relation in keyed else f", row_number() OVER (PARTITION BY {fields})"
        hashed = f"hash({quoted(secret)}, {fields}{alike}) AS the_key"
        rows = joined(chain, [file.header for file in chain])
        found: dict[str, LinkedCounts] = {}
        for batch, number in zip(batches, numbers_of(batches), strict=True):
            query = (
                f"SELECT number::BIGINT, (sum(the_key) % {1 << 64})::UBIGINT "
                f"FROM (SELECT {number.rpartition(' AS ')[0]} AS number, {hashed} FROM {rows}) GROUP BY 1"
            )
            numbers, keys = (np.asarray(column) for column in db.execute(query).fetchnumpy().values())
            # As bits: sums of whole numbers in arrays are modulo 2^64, too.
            tally = Tally(numbers.astype(np.int64), keys.astype(np.uint64).view(np.int64))
            found |= {table.name: batch.counts(table, tally, 0) for table in batch.tables}
        return found

    return tabulate(db, description, wanted, limited=False, count=add_up).by_level
