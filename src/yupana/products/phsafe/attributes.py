"""Which tables of the S-DHC can tell values of an attribute of one person apart, and what that costs."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final

from yupana.errors import OutputError
from yupana.plan.plan import Plan
from yupana.products.described.stability import sifting_columns, sorting_columns
from yupana.products.phsafe.plan import sensitivity_of
from yupana.products.phsafe.specification import LEVELS, S_DHC, TABLES, table

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
    if missing := {t.name for t in TABLES if t.limit and any(m.table == t.name for m in plan.measurements)} - set(taus):
        raise OutputError(f"the manifest holds no tau of {', '.join(sorted(missing))}")
    moved = {}
    for name, seen in _SEEN.items():
        telling = [m for m in plan.measurements if seen & _columns(m.table, m.level)]
        # The person stays in the household.
        tight = {m.name: sensitivity_of(taus.get(m.table), m.mechanism, "tight").same_household for m in telling}
        moved[name] = {m.name: m.calibration if (of := tight[m.name]) is None else of for m in telling}
    return moved


def _columns(name: str, level: str) -> set[str]:
    """Every column that decides whether and where a table counts at a level."""
    read = sorting_columns(S_DHC, table(name), LEVELS[level]) | sifting_columns(S_DHC, table(name))
    return {S_DHC.columns[column].name for column in read}
