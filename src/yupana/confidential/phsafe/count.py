"""Exact counts of every PHSafe table from a census. Confidential."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from yupana.confidential.records.census import Census
from yupana.confidential.tabulate.joined import Tabulation, tabulate
from yupana.plan.plan import Plan
from yupana.products.phsafe.configuration import Config
from yupana.products.phsafe.specification import TABLES, Table
from yupana.products.phsafe.tables import level_of


@dataclass(frozen=True, slots=True)
class ExactCounts:
    """Counts by measurement, with what truncation left out of each table.

    Attributes
    ----------
    states : tuple of str
        States with a housing unit in the geography file; public.
    by_measurement : mapping of name to int64 array, shape (population groups, cells)
    truncated : mapping of table to int
    """

    states: tuple[str, ...]
    by_measurement: Mapping[str, NDArray[np.int64]]
    truncated: Mapping[str, int]


def count(census: Census, config: Config, plan: Plan, *, truncate: bool = True) -> ExactCounts:
    """Count what a plan measures: every population group and basis cell, zeros included.

    Parameters
    ----------
    truncate : bool
        Keep at most tau persons of a unit, as a run does; False counts all, to tell truncation error from noise.
    """
    # Truncation looks for crowded units by FINAL_POP, which validation has compared with their persons.
    census.require_valid()
    tables = [table for table in TABLES if any(m.table == table.name for m in plan.measurements)]
    counts = tabulate(
        census.db, [_tabulation(table, config, truncate=truncate) for table in tables], config.truncation_key
    )
    by_measurement = {}
    for table in tables:
        cells = counts.by_table[table.name].reshape(len(counts.states), len(table.iterations), len(table.cells))
        for m in plan.measurements:
            if m.table == table.name:
                level = level_of(m.level)
                chosen = cells[:, [table.iterations.index(code) for code in level.iterations]]
                if level.region_type == "USA":
                    chosen = chosen.sum(axis=0)
                by_measurement[m.name] = chosen.reshape(-1, m.cells)
    states = tuple(f"{code:02}" for code in counts.states)
    return ExactCounts(states, by_measurement, counts.truncated)


def _tabulation(table: Table, config: Config, *, truncate: bool) -> Tabulation:
    return Tabulation(
        name=table.name,
        persons=table.persons,
        units=table.units,
        cells=tuple(table.iteration(code) & cell for code in table.iterations for cell in table.cells.values()),
        tau=config.taus[table.name] if table.persons is not None and truncate else None,
    )
