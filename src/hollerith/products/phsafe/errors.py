"""Observed errors of PHSafe's counts and their margins: plain numbers for reports. Public: it reads no record."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hollerith.products.phsafe.tables import Group

Array = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class CellError:
    """Errors of one basis cell in every population group of a level and every trial.

    Attributes
    ----------
    table, level : str
    cell : int
    groups : tuple of Group
    expected_moe : float
        z times sigma.
    truth : int64 array, shape (groups,)
        Exact counts, truncated as in a run.
    truncation_error : int64 array, shape (groups,)
        Truncated minus untruncated exact counts: zero or negative.
    noise : int64 array, shape (trials, groups)
    """

    table: str
    level: str
    cell: int
    groups: tuple[Group, ...]
    expected_moe: float
    truth: Array
    truncation_error: Array
    noise: Array


@dataclass(frozen=True, slots=True)
class Accuracy:
    """One row of the accuracy report: a table, level and cell (PHSafe's error report, with and without truncation)."""

    table: str
    region_type: str
    level: str
    cell: int
    count: int
    expected_moe: float
    experimental_moe: float
    experimental_moe_with_truncation: float
    bias_from_truncation: float


def summarize(errors: list[CellError], confidence: float) -> list[Accuracy]:
    """The experimental margin by table, level and cell: a quantile of |error| over groups and trials, interpolated."""
    rows = []
    for e in errors:
        with_truncation = e.noise + e.truncation_error
        rows.append(
            Accuracy(
                table=e.table,
                region_type=e.groups[0].region_type,
                level=e.level,
                cell=e.cell,
                count=e.noise.size,
                expected_moe=e.expected_moe,
                experimental_moe=float(np.quantile(np.abs(e.noise), confidence)),
                experimental_moe_with_truncation=float(np.quantile(np.abs(with_truncation), confidence)),
                bias_from_truncation=float(e.truncation_error.mean()),
            )
        )
    return rows
