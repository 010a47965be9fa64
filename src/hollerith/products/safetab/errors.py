"""Observed errors of the SafeTab products and their margins: plain numbers for reports. Public: it reads no record."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hollerith.populations.regions import Level

Ints = NDArray[np.int64]

SIZES: Final = ("[0, 1]", *(f"({10**k:,}, {10 ** (k + 1):,}]" for k in range(9)))
"""Bins of the true size of a population group."""

LEFT_OUT: Final = "left out"
"""In place of a table's name, for groups that got none."""

_UPPER: Final = 10 ** np.arange(9, dtype=np.int64)


def size_bins(sizes: Ints) -> Ints:
    """Which of `SIZES` each number lies in."""
    found: Ints = np.searchsorted(_UPPER, sizes, side="left").astype(np.int64)
    return found


@dataclass(frozen=True, eq=False)
class TableErrors:
    """Errors of the measured cells of the groups that got one table, in all trials.

    Attributes
    ----------
    table : str
    expected_moe : float
        z times sigma of a measured cell.
    sizes : numpy.ndarray of int64, shape (groups of all trials,)
        True sizes of the groups.
    errors : numpy.ndarray of int64, shape (groups of all trials, cells)
        Noisy minus true.
    """

    table: str
    expected_moe: float
    sizes: Ints
    errors: Ints


@dataclass(frozen=True, eq=False)
class LevelErrors:
    """Errors of the population groups of one level, of which each gets one of some tables or none.

    Attributes
    ----------
    level : Level
    detailed_only : bool
        Of SafeTab-P: whether the iterations are those of which only totals are made, with another variance. Of
        SafeTab-H, which treats all alike, false.
    groups : numpy.ndarray of int64, shape (bins,)
        How many groups of each of `SIZES` there are, whether or not they got a table.
    tables : tuple of TableErrors
    trials : int
    """

    level: Level
    detailed_only: bool
    groups: Ints
    tables: tuple[TableErrors, ...]
    trials: int


@dataclass(frozen=True, slots=True)
class Accuracy:
    """One row of the accuracy report: groups of a level and a size that got one table, or none.

    Attributes
    ----------
    table : str
        That of the measured cells: T01001 where a group has nothing but a total; `LEFT_OUT` where it has no table.
    region_type : str
    iteration_level : int
    detailed_only : bool
    size : str
        One of `SIZES`.
    groups : int
        Groups of this level and size, whichever table they got.
    share : float
        Of these, how many got this table, on average over the trials.
    count : int
        Errors observed: of all cells, groups and trials.
    expected_moe, experimental_moe : float or None
        z times sigma, and the quantile of |error| at the same confidence; None where nothing was published.
    """

    table: str
    region_type: str
    iteration_level: int
    detailed_only: bool
    size: str
    groups: int
    share: float
    count: int
    expected_moe: float | None
    experimental_moe: float | None


def summarize(levels: Iterable[LevelErrors], confidence: float) -> list[Accuracy]:
    """Shares and margins by level, size and table. The experimental margin is a quantile of |error|, interpolated."""
    rows = []
    for found in levels:
        bins = [size_bins(of_table.sizes) for of_table in found.tables]
        for number in np.flatnonzero(found.groups).tolist():
            left = int(found.groups[number]) * found.trials
            for of_table, of_size in zip(found.tables, bins, strict=True):
                errors = of_table.errors[of_size == number]
                if len(errors):
                    left -= len(errors)
                    observed = float(np.quantile(np.abs(errors), confidence))
                    share = _Share(of_table.table, len(errors), errors.size, of_table.expected_moe, observed)
                    rows.append(_row(found, number, share))
            if left:
                rows.append(_row(found, number, _Share(LEFT_OUT, left, 0, None, None)))
    return rows


class _Share(NamedTuple):
    """What some groups of one size got: how many, counted anew in every trial, and with what error."""

    table: str
    times: int
    number: int
    expected: float | None
    observed: float | None


def _row(found: LevelErrors, number: int, share: _Share) -> Accuracy:
    groups = int(found.groups[number])
    return Accuracy(
        table=share.table,
        region_type=found.level.region.name,
        iteration_level=found.level.iteration_level,
        detailed_only=found.detailed_only,
        size=SIZES[number],
        groups=groups,
        share=share.times / (groups * found.trials),
        count=share.number,
        expected_moe=share.expected,
        experimental_moe=share.observed,
    )
