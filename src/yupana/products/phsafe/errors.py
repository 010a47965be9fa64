"""Observed errors of PHSafe's counts and their margins: plain numbers for reports. Public: it reads no record."""

from collections.abc import Iterable
from dataclasses import dataclass

from yupana.plan.plan import Plan
from yupana.products.described.criteria import DescribedAccuracy, MeasurementErrors, observed_errors
from yupana.products.phsafe.specification import FAMILIES, LEVELS


@dataclass(frozen=True, slots=True)
class PhsafeAccuracy(DescribedAccuracy):
    """One row of the accuracy report: a table, level, iteration and cell, with and without truncation.

    Races are told apart, as in PHSafe's error report: truncation leaves out more of some than of others.
    """

    region_type: str


def summarize(plan: Plan, errors: Iterable[MeasurementErrors]) -> list[PhsafeAccuracy]:
    """The rows of every cell of the tables that are measured, and of those that add these up, by iteration."""
    families = {family.name: family for family in FAMILIES}
    return [
        PhsafeAccuracy(
            table.name,
            e.measurement.level,
            code,
            int(cell.labels[0]),
            **observed_errors(plan, e, e.group == place, cell.parts),
            region_type=LEVELS[e.measurement.level].areas,
        )
        for e in errors
        for table in families[e.measurement.table].choices[0].tables
        for cell in table.cells
        for place, code in enumerate(LEVELS[e.measurement.level].groups)
        if (e.group == place).any()
    ]
