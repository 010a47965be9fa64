"""Observed errors of PHSafe's counts and their margins: plain numbers for reports. Public: it reads no record."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from yupana.arrays import Ints
from yupana.plan.plan import Plan
from yupana.products.census import observed_margin
from yupana.products.described.criteria import MeasurementErrors
from yupana.products.phsafe.specification import FAMILIES, LEVELS, Group, groups_of


@dataclass(frozen=True, slots=True)
class CellError:
    """Errors of one basis cell in every population group of a level and every trial."""

    table: str
    level: str
    cell: int
    groups: tuple[Group, ...]
    expected_moe: float  # as the plan computes margins
    truth: Ints  # shape (groups,): exact counts, truncated as in a run
    truncation_error: Ints  # shape (groups,): truncated minus untruncated exact counts: zero or negative
    noise: Ints  # shape (trials, groups)


def cell_errors(plan: Plan, seen: MeasurementErrors, states: Sequence[str]) -> Iterator[CellError]:
    """Errors of a measurement cell by cell, and of the cells of tables that add these up.

    Parameters
    ----------
    seen : MeasurementErrors
        Of all groups of the level, trial after trial.
    states : sequence of str
        Codes of those that are published.
    """
    m = seen.measurement
    groups = groups_of(LEVELS[m.level], states)
    noise = seen.noise.reshape(len(seen.noise) // max(1, len(groups)), len(groups), m.cells)
    # The truth is the same in all trials.
    truth, left_out = seen.truth[: len(groups)], seen.left_out[: len(groups)]
    (family,) = (family for family in FAMILIES if family.name == m.table)
    for table in family.choices[0].tables:
        for labels, parts in table.cells:
            columns = list(parts)
            yield CellError(
                table=table.name,
                level=m.level,
                cell=int(labels[0]),
                groups=groups,
                expected_moe=plan.margin(m, len(parts)),
                truth=truth[:, columns].sum(axis=-1),
                truncation_error=left_out[:, columns].sum(axis=-1),
                noise=noise[:, :, columns].sum(axis=-1),
            )


@dataclass(frozen=True, slots=True)
class PhsafeAccuracy:
    """One row of the accuracy report: a table, level, iteration and cell, with and without truncation.

    Races are told apart, as in PHSafe's error report: truncation leaves out more of some than of others.
    """

    table: str
    region_type: str
    level: str
    iteration: str
    cell: int
    count: int
    expected_moe: float
    experimental_moe: float
    experimental_moe_with_truncation: float
    bias_from_truncation: float
    coverage: float


def summarize(errors: list[CellError], confidence: float) -> list[PhsafeAccuracy]:
    """The experimental margin by table, level, iteration and cell, and how many errors lie within the expected one.

    The experimental margin is the smallest whole number that at least the confidence's share of the |errors| over all
    regions and trials do not pass: the definition of an exact margin.
    """
    rows = []
    for e in errors:
        codes = np.array([group.iteration for group in e.groups])
        for code in dict.fromkeys(codes.tolist()):
            noise, left_out = e.noise[:, codes == code], e.truncation_error[codes == code]
            rows.append(
                PhsafeAccuracy(
                    table=e.table,
                    region_type=e.groups[0].region_type,
                    level=e.level,
                    iteration=code,
                    cell=e.cell,
                    count=noise.size,
                    expected_moe=e.expected_moe,
                    experimental_moe=observed_margin(noise, confidence),
                    experimental_moe_with_truncation=observed_margin(noise + left_out, confidence),
                    bias_from_truncation=float(left_out.mean()),
                    coverage=float((np.abs(noise) <= e.expected_moe).mean()),
                )
            )
    return rows
