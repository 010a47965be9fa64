"""Zero suppression of SafeTab-P's totals after coterminous areas were combined: all areas of a set, or none. Public.

SafeTab-P leaves out totals below the state up to a quantile of its noise. Done within the run, that would choose among
the very numbers that are to be combined; so a run with `zero_suppression_chance` 0 keeps them all, and this leaves out
what is small once they are combined.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

import duckdb
import numpy as np

from yupana.errors import OutputError
from yupana.estimate.coterminous.areas import Area
from yupana.plan.plan import Plan
from yupana.products.safetab.iterations import CharacteristicIterations
from yupana.products.safetab.product import PERSONS
from yupana.products.safetab.regions import ITERATION_LEVELS, REGION_TYPES
from yupana.products.safetab.specification import AGE_TABLES, TOTALS

CHANCE_OF_RUN: Final = "zero_suppression_chance"
"""Where the manifest of a run says what it has suppressed already."""

_NEVER: Final = frozenset({"nation", "state"})


def refuse_suppressed(manifest: Mapping[str, Any], name: str) -> None:
    """Refuse a release whose small totals were left out before they could be combined.

    Raises
    ------
    OutputError
        If its manifest says so, or does not say that they were not, or lists no plan of SafeTab-P.
    """
    parameters = manifest.get("parameters")
    chance = parameters.get(CHANCE_OF_RUN) if isinstance(parameters, dict) else None
    if manifest.get("product") != PERSONS.key or chance != "0":
        raise OutputError(
            f"{name}: zero suppression after combining needs a release of SafeTab-P that was made with "
            f"{CHANCE_OF_RUN} 0 and still has its manifest"
        )


def without_small_totals(
    db: duckdb.DuckDBPyConnection,
    selects: Mapping[str, str],
    sets: Sequence[Sequence[Area]],
    iterations: CharacteristicIterations,
    plan: Plan,
    chance: Fraction,
) -> str:
    """SQL for T01001 without the totals of small groups below the state.

    A total stays if it is above the smallest k with P(noise <= k) >= chance, of the noise of one measured total of its
    level. Areas of a set show the same number and are held to the largest k of theirs, so that all or none stay; a set
    with a nation or state in it stays whole. Groups with a table of ages stay.

    Parameters
    ----------
    db : duckdb.DuckDBPyConnection
    selects : mapping of table name to SQL
        The tables as they are to be written.
    sets : sequence of sequence of Area
    iterations : CharacteristicIterations
    plan : Plan
        Of the run.
    chance : Fraction
    """
    cuts = [
        (region.name, iteration.code, cut)
        for region in REGION_TYPES
        if region.base not in _NEVER
        for level in ITERATION_LEVELS
        if (cut := _cut(plan, f"{region.name} {level}", chance)) is not None
        for iteration in iterations.eligible(level, region.granularity).iterations
    ]
    bases = {region.name: region.base for region in REGION_TYPES}
    members = [(area.region_type, area.region_id, number) for number, areas in enumerate(sets) for area in areas]
    whole = {number for kind, _, number in members if bases[kind] in _NEVER}
    _store(db, "cut_of", ("REGION_TYPE", "ITERATION_CODE"), [row[:2] for row in cuts], [row[2] for row in cuts])
    _store(db, "set_of", ("REGION_TYPE", "REGION_ID"), [row[:2] for row in members], [row[2] for row in members])
    _store(db, "whole_set", (), [() for _ in whole], sorted(whole))
    db.execute("""
        CREATE OR REPLACE TABLE set_cut AS SELECT number, ITERATION_CODE, max(c.value) AS cut
        FROM (SELECT REGION_TYPE, value AS number FROM set_of) JOIN cut_of c USING (REGION_TYPE) GROUP BY ALL""")
    key = "REGION_ID, REGION_TYPE, ITERATION_CODE"
    tables = " UNION ".join(f"SELECT DISTINCT {key} FROM ({selects[t]})" for t in AGE_TABLES if t in selects)
    db.execute(f"CREATE OR REPLACE TABLE with_ages AS {tables or f'SELECT {key} FROM {TOTALS} WHERE false'}")
    return f"""
        SELECT t.* EXCLUDE (place) FROM (SELECT *, row_number() OVER () AS place FROM ({selects[TOTALS]})) t
        LEFT JOIN set_of s USING (REGION_TYPE, REGION_ID) LEFT JOIN cut_of c USING (REGION_TYPE, ITERATION_CODE)
        LEFT JOIN set_cut m ON m.number = s.value AND m.ITERATION_CODE = t.ITERATION_CODE
        LEFT JOIN whole_set w ON w.value = s.value
        WHERE w.value IS NOT NULL OR CAST(t.COUNT AS BIGINT) > coalesce(m.cut, c.value, -9223372036854775808)
            OR EXISTS (SELECT 1 FROM with_ages a WHERE a.REGION_ID = t.REGION_ID
                AND a.REGION_TYPE = t.REGION_TYPE AND a.ITERATION_CODE = t.ITERATION_CODE)
        ORDER BY place"""


def _store(
    db: duckdb.DuckDBPyConnection,
    name: str,
    columns: tuple[str, ...],
    keys: Sequence[tuple[str, ...]],
    values: Sequence[int],
) -> None:
    arrays: dict[str, Any] = {
        column: np.array([key[place] for key in keys], dtype=object) for place, column in enumerate(columns)
    }
    described = ", ".join([*(f"{column} VARCHAR" for column in columns), "value BIGINT"])
    db.execute(f"CREATE OR REPLACE TABLE {name} ({described})")
    if values:
        db.register("stored", {**arrays, "value": np.array(values, dtype=np.int64)})
        db.execute(f"INSERT INTO {name} SELECT * FROM stored")
        db.unregister("stored")


def _cut(plan: Plan, level: str, chance: Fraction) -> int | None:
    """The largest total left out at a level, or None where it is not measured."""
    for measurement in plan.measurements:
        if measurement.name == f"stage 2/{level}":
            return measurement.law.quantile(float(chance))
    return None
