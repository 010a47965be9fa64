"""Count the records that limits leave out, reading those of crowded parents alone.

Counting is linear, so tables are counted without limits, and the few records that a limit leaves out are subtracted.
"""

from collections.abc import Mapping, Sequence

import duckdb

from yupana.confidential.tabulate.batches import Batch, Chain, LinkedLimit, Tally, joined, numbers_of, tally
from yupana.files.database import quoted
from yupana.plan.predicates import Where, as_sql

Ranked = tuple[Where, LinkedLimit]
"""Records that a limit ranks, and the limit."""


def count_left_out(
    db: duckdb.DuckDBPyConnection, chain: Chain, batches: Sequence[Batch], key: str
) -> Mapping[Ranked, list[Tally]]:
    """Count what each limit leaves out, by the numbers of all batches.

    Parameters
    ----------
    db : duckdb.DuckDBPyConnection
    chain : sequence of LinkedFile
    batches : sequence of Batch
    key : str
        Of each parent those records are kept that come first by SHA-256 of this key, the fields of the record and its
        number among identical ones, joined by ``|``.
    """
    wanted: dict[int, dict[Ranked, None]] = {}
    for table in (table for batch in batches for table in batch.tables):
        if table.limit is not None:
            wanted.setdefault(table.limit.beneath, {})[table.universe, table.limit] = None
    found: dict[Ranked, list[Tally]] = {}
    for beneath, some in wanted.items():
        universes = list(dict.fromkeys(universe for universe, _ in some))
        _find_crowded(db, chain, batches, beneath, list(some))
        _rank(db, chain, batches, beneath, universes, key)
        for universe, limit in some:
            place = universes.index(universe)
            source = f"(SELECT * FROM ranked_records WHERE counts_{place} AND rank_{place} > {limit.most})"
            found[universe, limit] = tally(db, source, len(batches))
        db.execute("DROP TABLE ranked_records")
    return found


def _find_crowded(
    db: duckdb.DuckDBPyConnection, chain: Chain, batches: Sequence[Batch], beneath: int, limits: Sequence[Ranked]
) -> None:
    """Make the table ``crowded_records``: those of parents with more records than some limit allows."""
    below = chain[: beneath + 1]
    columns = frozenset(name for file in below for name in file.header)
    # What is at the parent or above is the same for all its records, and need not be joined yet.
    conditions = [(as_sql(universe.on(columns)), limit.most) for universe, limit in limits]
    tested = {name for universe, _ in limits for name, _ in universe.columns}
    crowds = " OR ".join(f"count_if({condition}) > {most}" for condition, most in conditions)
    some = " OR ".join(f"({condition})" for condition, _ in conditions)
    link = f"link_{beneath}"
    read = [[name for name in file.header if name in tested] for file in below]
    needed = tested | {column for batch in batches for column in batch.terms}
    shown = [[name for name in file.header if not place or name in needed] for place, file in enumerate(below)]
    # The link of the last of them is wanted, whatever else is.
    read[-1].append("1 AS nothing")
    shown[-1].append("1 AS nothing")
    db.execute(
        f"CREATE TABLE crowded_records AS SELECT *, count(*) AS alike FROM {joined(below, shown)} SEMI JOIN ("
        f"SELECT {link} AS the_parent FROM {joined(below, read)} GROUP BY 1 HAVING {crowds}"
        f") ON {link} = the_parent WHERE {some} GROUP BY ALL"
    )


def _rank(
    db: duckdb.DuckDBPyConnection,
    chain: Chain,
    batches: Sequence[Batch],
    beneath: int,
    universes: Sequence[Where],
    key: str,
) -> None:
    """Make the table ``ranked_records``: of crowded ones their numbers, and by universe the rank in their parent."""
    needed = {column for batch in batches for column in batch.terms} | {
        name for universe in universes for name, _ in universe.columns
    }
    shown = [[name for name in file.header if place > beneath and name in needed] for place, file in enumerate(chain)]
    # The order is of the record alone, so that one which is added or removed moves no other. Two records may have one
    # hash, as where keys hold |: then their fields decide, so that none but those alike in all of them are tied.
    fields = ", ".join(chain[0].header)
    hashed = f"sha256(concat_ws('|', {quoted(key)}, {', '.join(chain[0].written)}, the_number))"
    ranks = [
        f"{as_sql(universe)} AS counts_{place}, count_if({as_sql(universe)}) OVER in_order AS rank_{place}"
        for place, universe in enumerate(universes)
    ]
    alike = "SELECT * EXCLUDE alike, unnest(range(1, alike + 1)) AS the_number FROM crowded_records"
    db.execute(
        f"CREATE TABLE ranked_records AS SELECT {', '.join([*numbers_of(batches), *ranks])} "
        f"FROM (SELECT *, {hashed} AS the_order FROM ({alike}) {joined(chain, shown, beneath + 1)}) "
        f"WINDOW in_order AS (PARTITION BY link_{beneath} ORDER BY the_order, {fields} ROWS UNBOUNDED PRECEDING)"
    )
    db.execute("DROP TABLE crowded_records")
