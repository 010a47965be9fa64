"""How many units have how many persons of a universe: what a truncation threshold would leave out."""

from collections.abc import Sequence

import duckdb
import numpy as np
from numpy.typing import NDArray

from yupana.plan.predicates import Where, as_sql

Int64Array = NDArray[np.int64]


def count_crowds(
    db: duckdb.DuckDBPyConnection, universes: Sequence[tuple[Where, Where]]
) -> list[tuple[Int64Array, Int64Array]]:
    """Count the housing units of a valid census by their persons, without units that a policy drops.

    Parameters
    ----------
    db : duckdb.DuckDBPyConnection
        With the relations ``persons``, ``units`` and ``dropped_units``.
    universes : sequence of (Where, Where)
        Which persons of which units.

    Returns
    -------
    list of tuple of int64 arrays
        For each universe the numbers of persons that occur, ascending from 1, and how many units have so many.
    """
    if not universes:
        return []
    counts = ", ".join(f"count_if({as_sql(persons)}) AS n{i}" for i, (persons, _) in enumerate(universes))
    db.execute(f"""
        CREATE OR REPLACE TEMP TABLE crowds AS
        SELECT units.*, of_unit.* EXCLUDE (MAFID) FROM units
        JOIN (SELECT MAFID, {counts} FROM persons GROUP BY MAFID) of_unit ON units.MAFID = of_unit.MAFID
        WHERE units.RTYPE = 2 AND units.MAFID NOT IN (SELECT MAFID FROM dropped_units)
        """)
    found = []
    for i, (_, units) in enumerate(universes):
        query = f"SELECT n{i}, count(*) FROM crowds WHERE n{i} > 0 AND {as_sql(units)} GROUP BY 1 ORDER BY 1"
        sizes, number = (np.asarray(column, dtype=np.int64) for column in db.execute(query).fetchnumpy().values())
        found.append((sizes, number))
    return found
