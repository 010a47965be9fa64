"""Which tables of the S-DHC can tell values of an attribute of one person apart, and what that costs."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final

from yupana.errors import OutputError
from yupana.plan.measurement import Measurement
from yupana.plan.plan import Plan
from yupana.products.phsafe.specification import TABLES, MeasuredTable
from yupana.products.phsafe.tables import level_of

_SEEN: Final = {
    "Sex": {"HHT", "HHT2", "CPLT"},
    "Age": {"QAGE", "HHT2"},
    "Race": {"CENRACE", "HHRACE"},
    "Ethnicity": {"CENHISP", "HHSPAN"},
    "Relation": {"RELSHIP", "HHT", "HHT2", "CPLT"},
    "Tenure": {"TEN"},
}
"""The columns of the S-DHC that an attribute of one person can change, with those that follow from it."""


def moved_by_attribute(plan: Plan, parameters: Mapping[str, Any]) -> dict[str, dict[str, Fraction]]:
    """How far the measurements that can tell move at most where one person differs in one attribute.

    Raises
    ------
    OutputError
        If the parameters of a manifest hold no tau of a table of persons.
    """
    taus = parameters.get("tau", {})
    if missing := {m.table for m in plan.measurements if _persons(m.table)} - set(taus):
        raise OutputError(f"the manifest holds no tau of {', '.join(sorted(missing))}")
    return {name: _telling(plan, columns, taus) for name, columns in _SEEN.items()}


def _persons(table: str) -> bool:
    return any(t.name == table and t.persons is not None for t in TABLES)


def _telling(plan: Plan, columns: set[str], taus: Mapping[str, int]) -> dict[str, Fraction]:
    """The measurements of the S-DHC whose tables or iterations read a column, and how far they move."""
    tables = {table.name: table for table in TABLES}

    def distance(m: Measurement) -> Fraction:
        table = tables[m.table]
        tight = table.sensitivity(taus.get(m.table), m.mechanism, "tight").same_household
        return m.calibration if tight is None else tight

    return {m.name: distance(m) for m in plan.measurements if columns & _columns(tables[m.table], m.level)}


def _columns(table: MeasuredTable, level: str) -> set[str]:
    """Every column that decides whether and where a table counts at a level."""
    wheres = [table.units, *table.cells.values(), *(table.iteration(code) for code in level_of(level).iterations)]
    wheres += [table.persons] if table.persons is not None else []
    return {column for where in wheres for column, _ in where.columns} - {"RTYPE"}
