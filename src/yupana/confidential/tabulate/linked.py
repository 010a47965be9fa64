"""Count tables of linked record files: one scan for all tables of a file, whatever their limits."""

from collections.abc import Callable, Sequence

import duckdb
import numpy as np

from yupana.confidential.tabulate.batches import Chain, LinkedCounts, LinkedTable, Tally, make_batches, numbered, tally
from yupana.confidential.tabulate.one_of_each import count_one_of_each
from yupana.confidential.tabulate.truncated import count_left_out
from yupana.plan.predicates import Where

CountLinked = Callable[[duckdb.DuckDBPyConnection, Chain, Sequence[LinkedTable], str], dict[str, LinkedCounts]]
"""What `count_linked` is: it counts tables of the first file of a chain, by name, with the key of limits' hashes."""


def count_linked(
    db: duckdb.DuckDBPyConnection, chain: Chain, tables: Sequence[LinkedTable], key: str
) -> dict[str, LinkedCounts]:
    """Count tables of the first file of a chain, by name.

    Parameters
    ----------
    db : duckdb.DuckDBPyConnection
    chain : sequence of LinkedFile
        Valid: every link is to one record.
    tables : sequence of LinkedTable
    key : str
        Of the hashes that limits order records by.

    Raises
    ------
    TooManyClassesError
        If a table tells too many combinations of values apart.
    """
    of_ids: dict[Where, list[LinkedTable]] = {}
    others: list[LinkedTable] = []
    for table in tables:
        of_each = table.limit is not None and table.limit.of_ids and table.limit.most == 1
        (of_ids.setdefault(table.universe, []) if of_each else others).append(table)
    found: dict[str, LinkedCounts] = {}
    for universe, some in of_ids.items():
        batches = make_batches(chain, some)
        kept, left_out = count_one_of_each(db, chain[0], universe, batches, key)
        for batch, tally_of in zip(batches, kept, strict=True):
            found |= {table.name: batch.counts(table, tally_of, left_out) for table in batch.tables}
    if others:
        found |= _count_less_left_out(db, chain, others, key)
    return found


def _count_less_left_out(
    db: duckdb.DuckDBPyConnection, chain: Chain, tables: Sequence[LinkedTable], key: str
) -> dict[str, LinkedCounts]:
    batches = make_batches(chain, tables)
    every = tally(db, numbered(chain, batches), len(batches))
    lost = count_left_out(db, chain, batches, key)
    found = {}
    for place, (batch, whole) in enumerate(zip(batches, every, strict=True)):
        for table in batch.tables:
            rest, left_out = whole, 0
            if table.limit is not None:
                beyond = lost[table.universe, table.limit][place]
                left_out = int(beyond.count.sum())
                rest = Tally(
                    np.concatenate([whole.number, beyond.number]), np.concatenate([whole.count, -beyond.count])
                )
            found[table.name] = batch.counts(table, rest, left_out)
    return found
