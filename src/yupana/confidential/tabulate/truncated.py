"""Count the records that limits leave out, reading those of crowded parents alone.

Counting is linear, so tables are counted without limits, and the few records that a limit leaves out are subtracted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import duckdb

from yupana.confidential.tabulate.batches import Chain, LinkedLimit, TableBatch, Tally, joined, numbers_of, tally
from yupana.files.database import quoted
from yupana.plan.predicates import Where, as_sql

Ranked = tuple[Where, LinkedLimit]
"""Records that a limit ranks, and the limit."""


def count_left_out(
    db: duckdb.DuckDBPyConnection, chain: Chain, batches: Sequence[TableBatch], key: str
) -> Mapping[Ranked, list[Tally]]:
    """Count what each limit leaves out, by the numbers of all batches.

    Parameters
    ----------
    db : duckdb.DuckDBPyConnection
    chain : sequence of LinkedFile
    batches : sequence of TableBatch
    key : str
        Of each parent those records are kept that come first by SHA-256 of this key, the fields of the record and its
        number among identical ones, joined by ``|``.
    """
    wanted: dict[int, dict[Ranked, None]] = {}
    for table in (table for batch in batches for table in batch.tables):
        if table.limit is not None:
            wanted.setdefault(table.limit.beneath, {})[table.universe, table.limit] = None
    found: dict[Ranked, list[Tally]] = {}
    for limits in wanted.values():
        _find_crowded(db, chain, batches, list(limits))
        _find_left_out(db, chain[: next(iter(limits))[1].beneath + 1], list(limits), key)
        _number(db, chain, batches, list(limits))
        for place, ranked in enumerate(limits):
            source = f"(SELECT * FROM left_out_records WHERE beyond_{place})"
            found[ranked] = tally(db, source, len(batches))
        db.execute("DROP TABLE left_out_records")
    return found


def _find_crowded(
    db: duckdb.DuckDBPyConnection, chain: Chain, batches: Sequence[TableBatch], limits: Sequence[Ranked]
) -> None:
    """Make the table ``crowded_records``: those of parents with more than some limit allows, alike ones once."""
    beneath = limits[0][1].beneath
    below, link = [*chain[: beneath + 1]], f"link_{beneath}"
    below[0] = replace(below[0], relation=below[0].crowded or below[0].relation)
    tested = {name for universe, _ in limits for name, _ in universe.columns}
    needed = tested | {column for batch in batches for column in batch.terms}
    read = [[name for name in file.header if name in tested] for file in below]
    shown = [[name for name in file.header if not place or name in needed] for place, file in enumerate(below)]
    # The link of the last of them is wanted, whatever else is.
    read[-1].append("1 AS nothing")
    shown[-1].append("1 AS nothing")
    some = " OR ".join(f"({as_sql(universe)})" for universe in dict.fromkeys(_below(below, limits)))
    least = min(limit.most for _, limit in limits)
    # Of all universes together first, which is quicker than by universe and leaves few.
    db.execute(
        f"CREATE TABLE crowded_parents AS SELECT {link} AS the_parent FROM {joined(below, read)} WHERE {some} "
        f"GROUP BY 1 HAVING count(*) > {least}"
    )
    db.execute(
        f"CREATE TABLE crowded_records AS SELECT *, count(*) AS alike FROM {joined(below, shown)} "
        f"SEMI JOIN crowded_parents ON {link} = the_parent WHERE {some} GROUP BY ALL"
    )
    crowds = " OR ".join(
        f"sum(alike) FILTER ({as_sql(universe)}) > {limit.most}"
        for universe, (_, limit) in zip(_below(below, limits), limits, strict=True)
    )
    db.execute(
        f"CREATE OR REPLACE TABLE crowded_parents AS SELECT {link} AS the_parent FROM crowded_records "
        f"GROUP BY 1 HAVING {crowds}"
    )
    db.execute(f"DELETE FROM crowded_records WHERE {link} NOT IN (SELECT the_parent FROM crowded_parents)")
    db.execute("DROP TABLE crowded_parents")


def _below(below: Chain, limits: Sequence[Ranked]) -> list[Where]:
    """Of each universe what is about files below the parent: the rest is the same for all records of one parent."""
    columns = frozenset(name for file in below for name in file.header)
    return [universe.on(columns) for universe, _ in limits]


def _find_left_out(db: duckdb.DuckDBPyConnection, below: Chain, limits: Sequence[Ranked], key: str) -> None:
    """Make the table ``ranked_records``: of crowded ones those that come after as many as a limit allows.

    What is about files above the parent is the same for all its records, and so is asked of these few afterwards.
    """
    # The order is of the record alone, so that one which is added or removed moves no other. Two records may have one
    # hash, as where keys hold |: then their fields decide, so that none but those alike in all of them are tied.
    fields = ", ".join(below[0].header)
    hashed = f"sha256(concat_ws('|', {quoted(key)}, {', '.join(below[0].written)}, the_number))"
    beyond = [
        f"({as_sql(universe)}) AND count_if({as_sql(universe)}) OVER in_order > {limit.most} AS beyond_{place}"
        for place, (universe, (_, limit)) in enumerate(zip(_below(below, limits), limits, strict=True))
    ]
    alike = "SELECT * EXCLUDE alike, unnest(range(1, alike + 1)) AS the_number FROM crowded_records"
    some = " OR ".join(f"beyond_{place}" for place in range(len(limits)))
    db.execute(
        f"CREATE TABLE ranked_records AS SELECT * FROM (SELECT *, {', '.join(beyond)} "
        f"FROM (SELECT *, {hashed} AS the_order FROM ({alike})) WINDOW in_order AS "
        f"(PARTITION BY link_{len(below) - 1} ORDER BY the_order, {fields} ROWS UNBOUNDED PRECEDING)) WHERE {some}"
    )
    db.execute("DROP TABLE crowded_records")


def _number(
    db: duckdb.DuckDBPyConnection, chain: Chain, batches: Sequence[TableBatch], limits: Sequence[Ranked]
) -> None:
    """Make the table ``left_out_records``: the numbers of those ranked, and which limits leave them out."""
    beneath = limits[0][1].beneath
    needed = {column for batch in batches for column in batch.terms} | {
        name for universe, _ in limits for name, _ in universe.columns
    }
    shown = [[name for name in file.header if place > beneath and name in needed] for place, file in enumerate(chain)]
    beyond = [f"beyond_{place} AND {as_sql(universe)} AS beyond_{place}" for place, (universe, _) in enumerate(limits)]
    db.execute(
        f"CREATE TABLE left_out_records AS SELECT {', '.join([*numbers_of(batches), *beyond])} "
        f"FROM ranked_records {joined(chain, shown, beneath + 1)}"
    )
    db.execute("DROP TABLE ranked_records")
