"""Observed errors of the counts of described tables: plain numbers for reports. Public: it reads no record."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from yupana.arrays import Ints
from yupana.plan.measurement import Measurement
from yupana.plan.plan import Plan
from yupana.products.described.description import Description
from yupana.products.observed import observed_margin


@dataclass(frozen=True, slots=True, eq=False)
class MeasurementErrors:
    """Errors of a measurement in every area, group, cell and trial.

    Attributes
    ----------
    measurement : Measurement
    truth : int64 array, shape (areas by groups, cells)
        Exact counts, limited as in a run.
    left_out : int64 array, of the same shape
        Limited minus unlimited counts.
    noise : int64 array, shape (trials, areas by groups, cells)
    """

    measurement: Measurement
    truth: Ints
    left_out: Ints
    noise: Ints


@dataclass(frozen=True, slots=True)
class DescribedAccuracy:
    """One row of the accuracy report: a table, level, group and cell, with and without what the limit leaves out."""

    table: str
    level: str
    iteration: str
    cell: str
    count: int
    expected_moe: float
    experimental_moe: float
    experimental_moe_with_truncation: float
    bias_from_truncation: float
    coverage: float


def summarize(description: Description, plan: Plan, errors: Iterable[MeasurementErrors]) -> list[DescribedAccuracy]:
    """The experimental margin by table, level, group and cell, and how many errors lie within the expected one."""
    rows = []
    confidence = float(plan.confidence)
    for e in errors:
        table = next(table for table in description.tables if table.name == e.measurement.table)
        level = next(level for level in table.levels if level.name == e.measurement.level)
        expected = plan.margin(e.measurement)
        for g, group in enumerate(level.groups):
            for c, labels in enumerate(table.labels):
                noise, lost = e.noise[:, g :: len(level.groups), c], e.left_out[g :: len(level.groups), c]
                rows.append(
                    DescribedAccuracy(
                        table=table.name,
                        level=level.name,
                        iteration=group,
                        cell=" × ".join(labels),
                        count=noise.size,
                        expected_moe=expected,
                        experimental_moe=observed_margin(noise, confidence),
                        experimental_moe_with_truncation=observed_margin(noise + lost, confidence),
                        bias_from_truncation=float(lost.mean()),
                        coverage=float((np.abs(noise) <= expected).mean()),
                    )
                )
    return rows
