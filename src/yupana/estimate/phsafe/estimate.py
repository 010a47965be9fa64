"""Noisy measurements of a release of PHSafe, and estimates of the S-DHC from them. Public: reads no record.

Estimated counts are not negative, and averages lie within their bounds. The model is the Census Bureau's statistical
post-processing of the S-DHC; formulas and sources are in docs/phsafe-estimates.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import numpy as np

from yupana.arrays import Floats
from yupana.errors import OutputError
from yupana.estimate.phsafe import averages, truncated_normal
from yupana.products.gate import open_checked
from yupana.products.phsafe.product import PHSAFE
from yupana.products.phsafe.shells import SHELLS, Shell, ShellRatio
from yupana.products.phsafe.specification import TABLES, Group, cell_column, cells_of, table


@dataclass(frozen=True, slots=True)
class Measured:
    """What is known of the counts of a release."""

    manifest: Mapping[str, Any]
    groups: Mapping[str, tuple[Group, ...]]  # by table: the population groups of each measured table, the nation first
    counts: Mapping[str, Floats]  # shape (groups, basis cells)
    # shape (groups, basis cells, basis cells): of the errors of a group's counts; diagonal as measured
    covariances: Mapping[str, Floats]

    def sums(self, table: str, parts: tuple[int, ...]) -> tuple[Floats, Floats]:
        """Sums of basis cells of every group, and their variances; arrays of shape (groups,)."""
        cells = list(_cells(table))
        columns = [cells.index(part) for part in parts]
        block = self.covariances[table][:, columns][:, :, columns]
        return self.counts[table][:, columns].sum(axis=1), block.sum(axis=(1, 2))

    @property
    def is_puerto_rico(self) -> bool:
        """Whether this is the Puerto Rico run."""
        return list(self.manifest["parameters"]["states"]) == ["72"]


def read_measured(release: Path) -> Measured:
    """Read a release.

    Raises
    ------
    OutputError
        If the folder holds no release of PHSafe, if its files are not those of its manifest, or its tables not those
        of its plan, or if a variance is not positive: everything that is wrong is named.
    """
    opened = open_checked(release)
    manifest = opened.manifest
    if manifest.get("product") != PHSAFE.key:
        raise OutputError(
            f"{release} is a release of {manifest.get('product')!r}; estimates are made from one of PHSafe"
        )
    tables = {table: opened.columns(table) for table in opened}
    if wrong := _without_noise(tables):
        raise OutputError("\n  ".join([f"{release} cannot be estimated from:", *wrong]))
    groups, counts, covariances = {}, {}, {}
    for name in (of.name for of in TABLES if of.name in tables):
        groups[name], counts[name], variances = _arrays(name, tables[name])
        covariances[name] = variances[:, :, None] * np.eye(variances.shape[1])
    return Measured(dict(manifest), groups, counts, covariances)


def _without_noise(tables: Mapping[str, Mapping[str, list[str]]]) -> list[str]:
    """Rows whose variance is not positive, by table: the first line, and how many."""
    wrong = []
    for name, columns in tables.items():
        bad = np.flatnonzero(np.array(columns["VARIANCE"], dtype=np.float64) <= 0)
        if bad.size:
            more = f" (and {bad.size - 1} rows more)" if bad.size > 1 else ""
            line = bad[0] + 2
            wrong.append(f"table {name}, line {line}{more}: VARIANCE must be above 0; exact counts need no estimate")
    return wrong


def _arrays(name: str, columns: Mapping[str, list[str]]) -> tuple[tuple[Group, ...], Floats, Floats]:
    iterations = columns.get("ITERATION_CODE", ["*"] * len(columns["COUNT"]))
    places = [Group(*key) for key in zip(columns["REGION_TYPE"], columns["REGION_ID"], iterations, strict=True)]
    groups = tuple(dict.fromkeys(sorted(places, key=lambda g: (g.region_type != "USA", g.region_id, g.iteration))))
    row = {group: place for place, group in enumerate(groups)}
    column = {str(cell): place for place, cell in enumerate(_cells(name))}
    at = [row[group] for group in places], [column[cell] for cell in columns[cell_column(name)]]
    counts, variances = np.zeros((len(groups), len(column))), np.zeros((len(groups), len(column)))
    counts[at] = np.array(columns["COUNT"], dtype=np.float64)
    variances[at] = np.array(columns["VARIANCE"], dtype=np.float64)
    return groups, counts, variances


def _cells(name: str) -> tuple[int, ...]:
    return cells_of(table(name))


Method = Literal["exact", "original"]


@dataclass(frozen=True, slots=True)
class EstimatedCounts:
    """Measured counts with the variances of their noise; arrays of shape (groups, stubs)."""

    noisy: Floats
    variance: Floats


@dataclass(frozen=True, slots=True)
class Averages:
    """What an average is made of, as measured and as estimated; the last two have shape (groups, stubs)."""

    numerator: EstimatedCounts
    denominator: EstimatedCounts
    mean_numerator: Floats
    mean_denominator: Floats


@dataclass(frozen=True, slots=True)
class TableEstimate:
    """A published table for every population group."""

    shell: Shell
    groups: tuple[Group, ...]
    noisy: Floats  # shape (groups, stubs): as measured: a sum of measurements, or a ratio of two
    # estimate, lower, upper: posterior mean and equal-tailed credible interval
    estimate: Floats
    lower: Floats
    upper: Floats
    made_of: EstimatedCounts | Averages


def tails(confidence: Fraction) -> tuple[float, float]:
    """The probabilities between which an equal-tailed interval lies."""
    return float((1 - confidence) / 2), float((1 + confidence) / 2)


def estimate_tables(
    raw: Measured, measured: Measured, confidence: Fraction, method: Method
) -> tuple[tuple[TableEstimate, ...], Mapping[str, str]]:
    """Estimate every published table that the measurements allow.

    Parameters
    ----------
    raw : Measured
        As the release holds it, to be shown beside the estimates.
    measured : Measured
        To estimate from: the same, or combined.
    confidence : Fraction
        Of the intervals.
    method : "exact" or "original"
        The second rounds as the Bureau did: means of counts to whole numbers, half to even, marginals as sums of
        rounded cells, intervals outward to whole numbers.

    Returns
    -------
    tuple
        The tables, and by name why others are left out.
    """
    tables, absent = [], {}
    taus = measured.manifest["parameters"]["tau"]
    for shell in SHELLS:
        needed = [shell.source] + ([shell.ratio.denominator] if shell.ratio else [])
        missing = [name for name in needed if name not in measured.counts]
        if missing:
            absent[shell.name] = f"the release has no measurements of {' and '.join(missing)}"
        elif shell.ratio is None:
            tables.append(_count_table(shell, raw, measured, tails(confidence), method))
        elif taus[shell.source] <= shell.ratio.least:
            absent[shell.name] = (
                f"at tau {taus[shell.source]} of {shell.source} the average is no more than that number"
            )
        else:
            bounds = (shell.ratio.least, float(taus[shell.source]))
            tables.append(_average_table(shell, shell.ratio, bounds, raw, measured, tails(confidence)))
    return tuple(tables), absent


def _count_table(
    shell: Shell, raw: Measured, measured: Measured, probabilities: tuple[float, float], method: Method
) -> TableEstimate:
    shape = (len(measured.groups[shell.source]), len(shell.stubs))
    estimate, lower, upper = np.empty(shape), np.empty(shape), np.empty(shape)
    cells = {stub.cell: place for place, stub in enumerate(shell.stubs) if stub.parts == (stub.cell,)}
    basis = [stub.parts[0] for stub in shell.stubs if stub.parts == (stub.cell,)]
    counts, covariances = measured.counts[shell.source], measured.covariances[shell.source]
    variances = np.diagonal(covariances, axis1=1, axis2=2)
    means = truncated_normal.mean(counts, variances)
    if method == "original":
        means = np.rint(means)
    # Cells whose errors are correlated, as after a combination, add up to a count with an error of its own.
    independent = not (covariances - variances[:, :, None] * np.eye(len(basis))).any()
    for place, stub in enumerate(shell.stubs):
        if stub.cell in cells or independent:
            columns = [basis.index(part) for part in stub.parts]
            estimate[:, place] = means[:, columns].sum(axis=1)
            found = truncated_normal.quantiles_of_sum(counts[:, columns], variances[:, columns], probabilities)
        else:
            whole, variance = measured.sums(shell.source, stub.parts)
            estimate[:, place] = truncated_normal.mean(whole, variance)
            found = np.stack([truncated_normal.quantile(whole, variance, p) for p in probabilities], axis=1)
        lower[:, place], upper[:, place] = found.T
    if method == "original":
        lower, upper = np.floor(lower), np.ceil(upper)
    shown = _shown(raw, shell.source, tuple(stub.parts for stub in shell.stubs))
    return TableEstimate(shell, measured.groups[shell.source], shown.noisy, estimate, lower, upper, shown)


def _average_table(
    shell: Shell,
    ratio: ShellRatio,
    bounds: tuple[float, float],
    raw: Measured,
    measured: Measured,
    probabilities: tuple[float, float],
) -> TableEstimate:
    raw, measured = (_common(m, shell.source, ratio.denominator) for m in (raw, measured))
    groups = measured.groups[shell.source]
    below = tuple(_denominator_parts(measured, ratio, stub.cell) for stub in shell.stubs)
    if ratio.shared:
        denominator, variance = measured.sums(ratio.denominator, below[0])
        found: tuple[averages.Average, ...] = averages.parts(
            measured.counts[shell.source],
            measured.covariances[shell.source],
            denominator,
            variance,
            bounds,
            probabilities,
        )
    else:
        found = tuple(
            averages.single(
                *measured.sums(shell.source, stub.parts),
                *measured.sums(ratio.denominator, parts),
                bounds,
                probabilities,
            )
            for stub, parts in zip(shell.stubs, below, strict=True)
        )
    numerators = _shown(raw, shell.source, tuple(stub.parts for stub in shell.stubs))
    denominators = _shown(raw, ratio.denominator, below)
    zero = denominators.noisy == 0
    noisy = np.divide(numerators.noisy, denominators.noisy, out=np.full(zero.shape, np.nan), where=~zero)
    return TableEstimate(
        shell,
        groups,
        noisy,
        np.stack([each.mean for each in found], axis=1),
        np.stack([each.quantiles[:, 0] for each in found], axis=1),
        np.stack([each.quantiles[:, 1] for each in found], axis=1),
        Averages(
            numerators,
            denominators,
            np.stack([each.numerator for each in found], axis=1),
            np.stack([each.denominator for each in found], axis=1),
        ),
    )


def _denominator_parts(measured: Measured, ratio: ShellRatio, cell: int) -> tuple[int, ...]:
    """The measured cells of a line's denominator: the only one, its own, or for the total all."""
    if ratio.shared:
        return (1,)
    return (cell,) if cell > 1 else tuple(range(2, 2 + measured.counts[ratio.denominator].shape[1]))


def _shown(raw: Measured, table: str, parts: tuple[tuple[int, ...], ...]) -> EstimatedCounts:
    pairs = [raw.sums(table, some) for some in parts]
    return EstimatedCounts(
        np.stack([count for count, _ in pairs], axis=1), np.stack([variance for _, variance in pairs], axis=1)
    )


def _common(measured: Measured, *tables: str) -> Measured:
    """The population groups that all of some tables have: a budget of zero may leave out a level of one."""
    places = {t: {group: row for row, group in enumerate(measured.groups[t])} for t in tables}
    groups = [g for g in measured.groups[tables[0]] if all(g in places[t] for t in tables)]
    rows = {t: [places[t][g] for g in groups] for t in tables}
    return Measured(
        measured.manifest,
        {t: tuple(groups) for t in tables},
        {t: measured.counts[t][rows[t]] for t in tables},
        {t: measured.covariances[t][rows[t]] for t in tables},
    )
