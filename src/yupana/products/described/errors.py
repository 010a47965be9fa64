"""Observed errors of the counts of described tables: plain numbers for reports. Public: it reads no record."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from yupana.arrays import Ints
from yupana.plan.measurement import Measurement
from yupana.plan.plan import Plan
from yupana.products.census import observed_margin
from yupana.products.described.description import Description
from yupana.products.tables import Table


@dataclass(frozen=True, slots=True, eq=False)
class MeasurementErrors:
    """Errors of a measurement in the groups that one table shows, in all trials.

    Attributes
    ----------
    measurement : Measurement
    table : Table
        Whose rows show the measured cells by themselves.
    trial, area, group : int64 array, shape (observations,)
        In which trial a group was observed; the places of its area and its population group in their level.
    truth : int64 array, shape (observations, measured cells)
        Exact counts, limited as in a run.
    left_out : int64 array, of the same shape
        Limited minus unlimited counts.
    noise : int64 array, of the same shape
    """

    measurement: Measurement
    table: Table
    trial: Ints
    area: Ints
    group: Ints
    truth: Ints
    left_out: Ints
    noise: Ints

    @property
    def labels(self) -> list[str]:
        """Of each measured cell what its row says."""
        shown = {cell.parts[0]: cell.labels for cell in reversed(self.table.cells) if len(cell.parts) == 1}
        return [" × ".join(map(str, shown[place])) for place in range(self.noise.shape[1])]


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
    levels = {level.name: level for table in description.tables for level in table.levels}
    for e in errors:
        expected = plan.margin(e.measurement)
        for g, group in enumerate(levels[e.measurement.level].groups):
            of_group = e.group == g
            if not of_group.any():
                continue
            for c, label in enumerate(e.labels):
                noise, lost = e.noise[of_group, c], e.left_out[of_group, c]
                rows.append(
                    DescribedAccuracy(
                        table=e.table.name,
                        level=e.measurement.level,
                        iteration=group,
                        cell=label,
                        count=noise.size,
                        expected_moe=expected,
                        experimental_moe=observed_margin(noise, confidence),
                        experimental_moe_with_truncation=observed_margin(noise + lost, confidence),
                        bias_from_truncation=float(lost.mean()),
                        coverage=float((np.abs(noise) <= expected).mean()),
                    )
                )
    return rows
