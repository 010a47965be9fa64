"""Observed errors of the SafeTab products and their margins: plain numbers for reports. Public: it reads no record."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from yupana.arrays import Ints
from yupana.plan.plan import Plan
from yupana.products.census import observed_margin
from yupana.products.described.criteria import MeasurementErrors
from yupana.products.safetab.iterations import CharacteristicIterations
from yupana.products.safetab.regions import BY_NAME, Level
from yupana.products.safetab.specification import DETAILED_ONLY

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
class LevelErrors:
    """Errors of the population groups of one level, of which each gets one of some tables or none."""

    level: Level
    # of SafeTab-P: whether the iterations are those of which only totals are made, with another variance. Of SafeTab-H,
    # which treats all alike, false.
    detailed_only: bool
    expected_moe: float  # of a measured cell, as the plan computes margins
    groups: Ints  # shape (bins,): how many groups of each of `SIZES` there are, whether or not they got a table
    tables: tuple[MeasurementErrors, ...]  # of the tables that groups got, in order
    trials: int


def by_level(plan: Plan, errors: Sequence[MeasurementErrors], trials: int) -> Iterator[LevelErrors]:
    """Errors by level and family of tables, in the plan's order."""
    for m in plan.measurements:
        of = [found for found in errors if found.measurement.name == m.name]
        if of:
            bins = size_bins(np.concatenate([found.every for found in of]))
            yield LevelErrors(
                BY_NAME[m.level],
                detailed_only=m.name.startswith(f"{DETAILED_ONLY}/"),
                expected_moe=plan.margin(m),
                groups=np.bincount(bins, minlength=len(SIZES)) // trials,
                tables=tuple(sorted((found for found in of if len(found.noise)), key=lambda found: found.table.name)),
                trials=trials,
            )


@dataclass(frozen=True, kw_only=True)
class _GroupsOfTable:
    """Groups of a level that got one table, or none."""

    # that of the measured cells: T01001 where a group has nothing but a total; `LEFT_OUT` where it has no table
    table: str
    region_type: str
    iteration_level: int
    count: int = 0  # errors observed: of all cells, groups and trials
    # expected_moe, experimental_moe: as the plan computes margins, and the smallest whole number that at least the
    # confidence's share of the |errors| do not pass; None where nothing was published
    expected_moe: float | None = None
    experimental_moe: float | None = None
    # the same whole number against the truth with all race codes of every record
    experimental_moe_uncapped: float | None = None
    # how many records the cap on race codes adds to a group (takes away, below 0), on average
    race_cap_bias: float | None = None


@dataclass(frozen=True, kw_only=True)
class SafetabAccuracy(_GroupsOfTable):
    """One row of the accuracy report: groups of a level and a size that got one table, or none."""

    detailed_only: bool
    size: str  # one of `SIZES`
    groups: int  # groups of this level and size, whichever table they got
    share: float  # of these, how many got this table, on average over the trials
    coverage: float | None = None  # the share of the errors within the expected margin


@dataclass(frozen=True, kw_only=True)
class IterationAccuracy(_GroupsOfTable):
    """One row of the accuracy by iteration: groups of a region type and an iteration that got one table."""

    iteration: str  # its code
    mean_size: float  # of the groups, with all race codes of every record


def _seen(found: LevelErrors, some: MeasurementErrors | None, confidence: float) -> dict[str, Any]:
    """What is told of groups of a level that got one table, or none."""
    level = {"region_type": found.level.region.name, "iteration_level": found.level.iteration_level}
    if some is None:
        return {"table": LEFT_OUT, **level}
    return {
        "table": some.table.name,
        **level,
        "count": some.noise.size,
        "expected_moe": found.expected_moe,
        "experimental_moe": observed_margin(some.noise, confidence),
        "experimental_moe_uncapped": observed_margin(some.noise + some.left_out, confidence),
        "race_cap_bias": _cap_bias(some),
    }


def summarize_iterations(
    levels: Iterable[LevelErrors], iterations: CharacteristicIterations, confidence: float
) -> list[IterationAccuracy]:
    """Margins and the bias of the race cap by iteration."""
    rows = []
    for found in levels:
        eligible = iterations.eligible(found.level.iteration_level, found.level.region.granularity).iterations
        for of_table in found.tables:
            for place in np.unique(of_table.group).tolist():
                some = of_table.chosen(of_table.group == place)
                size = float(some.sizes.mean()) - _cap_bias(some)
                seen = _seen(found, some, confidence)
                rows.append(IterationAccuracy(**seen, iteration=eligible[place].code, mean_size=size))
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
                if len(some.noise):
                    left -= len(some.noise)
                    rows.append(_row(found, number, len(some.noise), some, confidence))
            if left:
                rows.append(_row(found, number, left, None, confidence))
    return rows


def _cap_bias(some: MeasurementErrors) -> float:
    """Records that the cap on race codes adds to a group, on average."""
    return float(some.left_out.sum(axis=1).mean())


def _row(
    found: LevelErrors, number: int, times: int, some: MeasurementErrors | None, confidence: float
) -> SafetabAccuracy:
    """What groups of one size got, as many in all trials as ``times`` says; None where they got no table."""
    groups = int(found.groups[number])
    return SafetabAccuracy(
        **_seen(found, some, confidence),
        detailed_only=found.detailed_only,
        size=SIZES[number],
        groups=groups,
        share=times / (groups * found.trials),
        coverage=None if some is None else float((np.abs(some.noise) <= found.expected_moe).mean()),
    )
