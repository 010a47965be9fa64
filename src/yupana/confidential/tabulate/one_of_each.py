"""Count one record of each id, where ids stand in the records themselves."""

from collections.abc import Sequence
from typing import Final

import duckdb

from yupana.confidential.records.database import cut_by, numbers
from yupana.confidential.tabulate.batches import LinkedFile, TableBatch, Tally, numbers_of, tally
from yupana.files.database import quoted
from yupana.plan.predicates import Where, as_sql

_BYTES_OF_ID: Final = 256
"""Twice what an id takes whose record is being chosen."""


def count_one_of_each(
    db: duckdb.DuckDBPyConnection, file: LinkedFile, universe: Where, batches: Sequence[TableBatch], key: str
) -> tuple[list[Tally], int]:
    """Count one record of each id by the numbers of all batches; and how many are left out.

    Which record of an id is kept moves none of others, and alike ones need no order; so one pass without a sort does,
    by a hash that needs to be that of no other program. A record is one number meanwhile, as numbers are quick.
    """
    condition = as_sql(universe)
    (size,) = numbers(db, f"SELECT count(*) FROM {file.relation} WHERE {condition}")
    # One file may hold an id as a text, and another as a number.
    fields = ", ".join(f"{column.name}::VARCHAR" if column.key else column.name for column in file.columns)
    # Two records may have one hash; then their fields decide, so that the order is of the record alone.
    order = f"row(hash(hash({quoted(key)}, {fields})), {fields})"
    every = ", ".join([*numbers_of(batches), f"{order} AS the_order", f"{file.link} AS the_id"])
    names = [f"number_{place}" for place in range(len(batches))]
    kept = names[0] if len(batches) == 1 else f"struct_pack({', '.join(names)})"
    # The ids of a part are held in memory, each in about a hundred bytes.
    for place, part in enumerate(cut_by(db, file.link, size, _BYTES_OF_ID)):
        query = (
            f"SELECT min_by({kept}, the_order) AS kept FROM (SELECT {every} FROM {file.relation} "
            f"WHERE {condition} AND {part}) GROUP BY the_id"
        )
        db.execute(f"INSERT INTO kept_records {query}" if place else f"CREATE TABLE kept_records AS {query}")
    shown = "kept AS number_0" if len(batches) == 1 else "unnest(kept)"
    found = tally(db, f"(SELECT {shown} FROM kept_records)", len(batches))
    (left,) = numbers(db, "SELECT count(*) FROM kept_records")
    db.execute("DROP TABLE kept_records")
    return found, size - left
