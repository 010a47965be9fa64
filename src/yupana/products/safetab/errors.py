"""Observed errors of the SafeTab products and their margins: plain numbers for reports. Public: it reads no record."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Ints
from yupana.products.census import observed_margin
from yupana.products.safetab.iterations import CharacteristicIterations
from yupana.products.safetab.regions import Level

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
        Of a measured cell, as the plan computes margins.
    sizes : numpy.ndarray of int64, shape (groups of all trials,)
        True sizes of the groups.
    errors : numpy.ndarray of int64, shape (groups of all trials, cells)
        Noisy minus true, where of each record only the race codes count that the run counts.
    iterations : numpy.ndarray of int64, shape (groups of all trials,)
        Places of the groups' iterations among those of the level.
    bias : numpy.ndarray of int64, shape (groups of all trials, cells)
        What the cap on race codes adds: true cells with the cap minus true cells with all race codes.
    """

    table: str
    expected_moe: float
    sizes: Ints
    errors: Ints
    iterations: Ints
    bias: Ints

    def chosen(self, some: NDArray[np.bool_]) -> "TableErrors":
        """Those of some groups."""
        return replace(
            self,
            sizes=self.sizes[some],
            errors=self.errors[some],
            iterations=self.iterations[some],
            bias=self.bias[some],
        )

    def cap_bias(self) -> float:
        """Records that the cap on race codes adds to a group, on average."""
        return float(self.bias.sum(axis=1).mean())

    def coverage(self) -> float:
        """The share of the errors within the expected margin."""
        return float((np.abs(self.errors) <= self.expected_moe).mean())

    def margin(self, confidence: float) -> int:
        """The smallest whole number that so large a share of the |errors| do not pass."""
        return observed_margin(self.errors, confidence)

    def margin_uncapped(self, confidence: float) -> int:
        """The same against the truth with all race codes."""
        return observed_margin(self.errors + self.bias, confidence)


def joined(parts: Iterable[TableErrors]) -> TableErrors:
    """Errors of one table in several trials or of several groups; they have one margin."""
    parts = list(parts)
    return replace(
        parts[0],
        sizes=np.concatenate([part.sizes for part in parts]),
        errors=np.concatenate([part.errors for part in parts]),
        iterations=np.concatenate([part.iterations for part in parts]),
        bias=np.concatenate([part.bias for part in parts]),
    )


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
class SafetabAccuracy:
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
        As the plan computes margins, and the smallest whole number that at least the confidence's share of the |errors|
        do not pass; None where nothing was published.
    coverage : float or None
        The share of the errors within the expected margin.
    experimental_moe_uncapped : float or None
        The same whole number against the truth with all race codes of every record.
    race_cap_bias : float or None
        How many records the cap on race codes adds to a group (takes away, below 0), on average.
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
    coverage: float | None
    experimental_moe_uncapped: float | None = None
    race_cap_bias: float | None = None


@dataclass(frozen=True, slots=True)
class IterationAccuracy:
    """One row of the accuracy by iteration: groups of a region type and an iteration that got one table.

    Attributes
    ----------
    table, region_type : str
    iteration_level : int
    iteration : str
        Its code.
    count : int
        Errors observed: of all cells, groups and trials.
    mean_size : float
        Of the groups, with all race codes of every record.
    expected_moe, experimental_moe, experimental_moe_uncapped, race_cap_bias : float
        As of `SafetabAccuracy`.
    """

    table: str
    region_type: str
    iteration_level: int
    iteration: str
    count: int
    mean_size: float
    expected_moe: float
    experimental_moe: float
    experimental_moe_uncapped: float
    race_cap_bias: float


def summarize_iterations(
    levels: Iterable[LevelErrors], iterations: CharacteristicIterations, confidence: float
) -> list[IterationAccuracy]:
    """Margins and the bias of the race cap by iteration."""
    rows = []
    for found in levels:
        eligible = iterations.eligible(found.level.iteration_level, found.level.region.granularity).iterations
        for of_table in found.tables:
            for place in np.unique(of_table.iterations).tolist():
                some = of_table.chosen(of_table.iterations == place)
                rows.append(
                    IterationAccuracy(
                        of_table.table,
                        found.level.region.name,
                        found.level.iteration_level,
                        eligible[place].code,
                        some.errors.size,
                        float(some.sizes.mean()) - some.cap_bias(),
                        of_table.expected_moe,
                        some.margin(confidence),
                        some.margin_uncapped(confidence),
                        some.cap_bias(),
                    )
                )
    return rows


def summarize(levels: Iterable[LevelErrors], confidence: float) -> list[SafetabAccuracy]:
    """Shares and margins by level, size and table."""
    rows = []
    for found in levels:
        bins = [size_bins(of_table.sizes) for of_table in found.tables]
        for number in np.flatnonzero(found.groups).tolist():
            left = int(found.groups[number]) * found.trials
            for of_table, of_size in zip(found.tables, bins, strict=True):
                some = of_table.chosen(of_size == number)
                if len(some.errors):
                    left -= len(some.errors)
                    rows.append(_row(found, number, len(some.errors), some, confidence))
            if left:
                rows.append(_row(found, number, left, None, confidence))
    return rows


def _row(found: LevelErrors, number: int, times: int, some: TableErrors | None, confidence: float) -> SafetabAccuracy:
    """What groups of one size got, as many in all trials as ``times`` says; None where they got no table."""
    groups = int(found.groups[number])
    return SafetabAccuracy(
        table=some.table if some else LEFT_OUT,
        region_type=found.level.region.name,
        iteration_level=found.level.iteration_level,
        detailed_only=found.detailed_only,
        size=SIZES[number],
        groups=groups,
        share=times / (groups * found.trials),
        count=some.errors.size if some else 0,
        expected_moe=some.expected_moe if some else None,
        experimental_moe=some.margin(confidence) if some else None,
        coverage=some.coverage() if some else None,
        experimental_moe_uncapped=some.margin_uncapped(confidence) if some else None,
        race_cap_bias=some.cap_bias() if some else None,
    )
