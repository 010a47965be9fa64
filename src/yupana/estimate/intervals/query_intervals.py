"""Intervals for cells of any release, by the product that its manifest names, and what its tables tell of them. Public.

The noise of measured cells is independent, so a row of a noisy table is written as the measured cells it adds up, and a
cell that several rows hold counts once, with its weights added. A full-information release of TopDown brings intervals
of single answers along. See docs/intervals.md.
"""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from statistics import NormalDist
from typing import Final

import duckdb
import numpy as np

from yupana.arrays import Floats
from yupana.errors import ConfigError, OutputError
from yupana.estimate.intervals.intervals import IntervalEvidence, interval
from yupana.estimate.intervals.query import Cell, Linear, Selection
from yupana.estimate.intervals.selections import open_file, rows_where
from yupana.estimate.intervals.tree import COVERED, open_tree
from yupana.estimate.results import Intervals
from yupana.estimate.topdown_release import must_be_of_topdown
from yupana.files.database import named, open_database, unreadable
from yupana.plan.measurement import z_value
from yupana.products import PRODUCTS, family_of
from yupana.products.gate import open_release
from yupana.products.tables import Family
from yupana.products.topdown.verify import SYSTEM
from yupana.release.recipe import COTERMINOUS, MEASURED, SUPPRESSED, SUPPRESSION, leaves_out_small
from yupana.release.release import ReleaseFolder
from yupana.topdown.tree.intervals import INTERVALS

Key = tuple[str, ...]
"""The values of the columns that name a row."""

MeasuredRow = tuple[str, Key]
"""A table and the key of a row that was measured."""

_NUMBERS: Final = ("COUNT", "NOISE_DISTRIBUTION", "VARIANCE", "MOE", "REASON")
_WHOLE: Final = re.compile(r"-?[0-9]{1,18}", re.ASCII)


@dataclass(slots=True)
class _OpenedTables(ABC):
    """Tables of a release that are opened at their first use, and what they tell of single cells."""

    db: duckdb.DuckDBPyConnection
    release: ReleaseFolder
    _columns: dict[str, list[str]] = field(default_factory=dict, init=False)
    # by cell its estimate and its variance
    _found: dict[Cell, tuple[float, float]] = field(default_factory=dict, init=False)

    @property
    @abstractmethod
    def _depends(self) -> str:
        """Why forms in several cells have no covariance; empty where the errors of cells are independent."""

    def moments(self, forms: Sequence[Linear]) -> tuple[Floats, Floats]:
        """Estimates and covariance of forms in cells, exact but for the last rounding."""
        cells = list(dict.fromkeys(cell for form in forms for cell in form.weights))
        if len(cells) > 1 and self._depends:
            raise ConfigError(self._depends.format(len(cells)))
        estimates = [
            form.constant + sum(w * self._found[cell][0] for cell, w in form.weights.items()) for form in forms
        ]
        variances = np.array([self._found[cell][1] for cell in cells])
        weights = np.array([[float(form.weights.get(cell, 0)) for cell in cells] for form in forms])
        weights = weights.reshape(len(forms), len(cells))
        return np.array([float(estimate) for estimate in estimates]), (weights * variances) @ weights.T


@dataclass(slots=True)
class NoisyTables(_OpenedTables):
    """The tables of a release of PHSafe or SafeTab."""

    @property
    def rule(self) -> str:
        """How variances of sums are found."""
        return "published variance" if self._is_combined else "variances of independent measured cells add"

    @property
    def notes(self) -> tuple[str, ...]:
        """What an interval covers and what not."""
        parameters = self.release.manifest.get("parameters") or {}
        small = leaves_out_small(self.release.manifest)
        suppressed = any(entry.get("rule") == SUPPRESSION for entry in self.release.record)
        told = {
            "intervals are of the tabulated count, over the draw of the noise; errors of records are not in it": True,
            "counts of persons are after truncation: what a household has beyond the threshold is not in them": (
                "tau" in parameters
            ),
            "noise is two-sided geometric, but z is the normal quantile: for a lone cell, 90 percent are about 90.2, "
            "and 95 are about 93.7": self.release.is_pure,
            "rows whose noisy count was small or impossible were left out or suppressed; those that are there are "
            "covered less often where counts are small": small or suppressed,
            "coterminous areas were combined, so that errors of rows depend on each other: a query may name one row": (
                self._is_combined
            ),
        }
        return tuple(note for note, holds in told.items() if holds)

    @property
    def _is_combined(self) -> bool:
        return any(entry.get("rule") == COTERMINOUS for entry in self.release.record)

    def select(self, selection: Selection) -> Linear:
        """Find rows, and write their sum in measured cells."""
        if (measured := f"{MEASURED}/{selection.table}") in self.release:
            raise ConfigError(
                f"what was done to the counts of {selection.table} makes their errors depend on each other; ask "
                f"{measured}, which holds them as they were measured"
            )
        keys = self._keys(self._opened(selection.table))
        rows = rows_where(self.db, selection.table, (*keys, "COUNT", "VARIANCE"), keys, selection)
        weights: dict[MeasuredRow, int] = {}
        for cell in self._measured(selection.table, rows):
            weights[cell] = weights.get(cell, 0) + 1
        return Linear(Fraction(0), {cell: Fraction(weight) for cell, weight in weights.items()})

    @property
    def _depends(self) -> str:
        if not self._is_combined:
            return ""
        return (
            "the release combined coterminous areas, so errors of its rows depend on each other in a way it does not "
            "tell; ask for one row, or use the release before it"
        )

    def _opened(self, table: str) -> list[str]:
        """Open a table at its first use; its columns."""
        if table not in self._columns:
            if table not in self.release:
                raise ConfigError(f"the release has no table {table}; it has {', '.join(self.release)}")
            path = self.release.path(table)
            columns = open_file(self.db, table, path)
            if not {"COUNT", "VARIANCE"} <= set(columns):
                raise OutputError(f"{path} has no columns COUNT and VARIANCE")
            self._check_noise(table)
            self._columns[table] = columns
        return self._columns[table]

    def _check_noise(self, table: str) -> None:
        """Refuse rows whose noise is not that of the plan."""
        product = PRODUCTS.of(self.release.manifest)
        if product is not None and (wrong := product.noise_faults(self.release.folder, self.release.manifest, table)):
            raise OutputError("\n  ".join([f"{self.release.folder} does not hold together:", *wrong]))

    @staticmethod
    def _keys(columns: Sequence[str]) -> list[str]:
        return [name for name in columns if name not in _NUMBERS]

    def _measured(self, table: str, rows: Sequence[tuple[str, ...]]) -> Iterable[MeasuredRow]:
        """The measured cells of the rows of a table, those of each row."""
        family = family_of(table, self.release.manifest)
        return self._hold(table, rows) if self._is_combined or family is None else self._of_family(family, table, rows)

    def _hold(self, table: str, rows: Iterable[tuple[str, ...]]) -> list[MeasuredRow]:
        """Note count and variance of measured rows, by their names."""
        cells = []
        for *key, count, variance in rows:
            place = f"{table}[{', '.join(f'{c}={v}' for c, v in zip(self._columns[table], key, strict=False))}]"
            cell = table, tuple(key)
            self._found[cell] = _number(place, count, variance)
            cells.append(cell)
        return cells

    def _of_family(self, family: Family, table: str, rows: Sequence[tuple[str, ...]]) -> list[MeasuredRow]:
        """Write rows in the cells that their population group was measured in: those of the choice it was given."""
        found: list[MeasuredRow] = []
        left, keys = list(rows), len(family.keys)
        for choice in reversed(family.having(table)):
            own = choice.own.name
            if own not in self.release:
                continue
            parts = {tuple(map(str, cell.labels)): cell.parts for cell in choice[table].cells}
            if own == table and all(len(cells) == 1 for cells in parts.values()):
                return found + self._hold(table, left)
            of_group = self._of_groups(own, keys, {row[:keys] for row in left})
            for row in [row for row in left if row[:keys] in of_group]:
                there, wanted = of_group[row[:keys]], parts.get(row[keys:-2], ())
                alone = [tuple(map(str, choice.alone[part].labels)) for part in wanted]
                if not alone or any(labels not in there for labels in alone):
                    raise OutputError(_LACKING.format(own, table))
                found += self._hold(own, [there[labels] for labels in alone])
            left = [row for row in left if row[:keys] not in of_group]
        if left:
            raise OutputError(_LACKING.format(f"the release of {family.name}", table))
        return found

    def _of_groups(self, table: str, number: int, groups: set[Key]) -> dict[Key, dict[Key, tuple[str, ...]]]:
        """The rows of population groups, which so many columns name, by group and cell."""
        keys = self._keys(self._opened(table))
        of_groups = [np.array([group[i] for group in sorted(groups)], dtype=object) for i in range(number)]
        self.db.register("wanted", {f"g{i}": values for i, values in enumerate(of_groups)})
        on = " AND ".join(f"{named(name)} = g{i}" for i, name in enumerate(keys[:number]))
        found: dict[Key, dict[Key, tuple[str, ...]]] = {}
        for row in self._fetch(table, keys, f"SEMI JOIN wanted ON {on}"):
            found.setdefault(row[:number], {})[row[number:-2]] = row
        self.db.unregister("wanted")
        return found

    def _fetch(self, table: str, keys: Sequence[str], which: str = "") -> list[tuple[str, ...]]:
        picked = ", ".join(map(named, (*keys, "COUNT", "VARIANCE")))
        with unreadable(OutputError(f"{table} is not readable as a table of a release")):
            found = self.db.execute(f"SELECT {picked} FROM {named(table)} {which}").fetchall()
        return [tuple(map(str, row)) for row in found]


_LACKING: Final = "{} lacks cells that a row of {} adds up; run yupana check"


def _number(place: str, count: str, variance: str) -> tuple[int, float]:
    if SUPPRESSED in {count, variance}:
        raise ConfigError(f"{place} is suppressed, or a cell that a row adds up; use the release before suppression")
    try:
        found = float(variance)
    except ValueError:
        found = math.nan
    if not _WHOLE.fullmatch(count) or not math.isfinite(found) or found < 0:
        raise OutputError(f"{place}: COUNT must be a whole number and VARIANCE a positive one; run yupana check")
    if found == 0:
        raise ConfigError(f"{place}: VARIANCE is 0, so there was no noise, and the count needs no interval")
    return int(count), found


_INTERVAL_COLUMNS: Final = ("estimate", "variance", "lower", "upper")

NEEDS_MEASUREMENTS: Final = (
    "its variance needs the noisy measurements; make the release with --noisy-measurements DIR, and give DIR here"
)


@dataclass(slots=True)
class MarginalIntervals(_OpenedTables):
    """Estimates and variances of single answers."""

    @property
    def rule(self) -> str:
        """How variances are found."""
        return "variance of least squares on the tree, as released"

    @property
    def notes(self) -> tuple[str, ...]:
        """What an interval covers and what not."""
        return COVERED

    def select(self, selection: Selection) -> Linear:
        """Find one answer, LEVEL/QUERY[geounit=..., ATTRIBUTE=...], of a query with released intervals."""
        if selection.is_sum:
            raise ConfigError(
                f"sum({selection.text}) is a sum, and released intervals are of single answers; {NEEDS_MEASUREMENTS}"
            )
        table = selection.table.replace("*", ".")
        columns = self._opened(table)
        keys = columns[: -len(_INTERVAL_COLUMNS)]
        (row,) = rows_where(self.db, table, columns, keys, selection)
        try:
            estimate, variance = (float(text) for text in row[len(keys) : len(keys) + 2])
        except ValueError:
            estimate = variance = math.nan
        if not math.isfinite(estimate) or math.isnan(variance) or variance < 0:
            raise OutputError(f"{selection.text}: estimate and variance must be numbers, variance not negative")
        if math.isinf(variance):
            raise ConfigError(f"{selection.text}: the measurements do not determine it; no estimate is possible")
        cell = (table, *row[: len(keys)])
        self._found[cell] = estimate, variance
        return Linear(Fraction(0), {cell: Fraction(1)})

    @property
    def _depends(self) -> str:
        return f"it is made of {{}} answers, whose errors depend on each other; {NEEDS_MEASUREMENTS}"

    def _opened(self, table: str) -> list[str]:
        if table not in self._columns:
            name = f"{INTERVALS}/{table}.csv"
            if name not in self.release.manifest["tables"]:
                listed = [
                    n.removeprefix(f"{INTERVALS}/").removesuffix(".csv")
                    for n in self.release.manifest["tables"]
                    if n.startswith(f"{INTERVALS}/")
                ]
                raise ConfigError(
                    f"the release has no intervals of {table}; it has {', '.join(listed)}; for others, "
                    f"{NEEDS_MEASUREMENTS}"
                )
            columns = open_file(self.db, table, self.release.file(name))
            if tuple(columns[-len(_INTERVAL_COLUMNS) :]) != _INTERVAL_COLUMNS:
                raise OutputError(f"{self.release.folder / name} must end in the columns {'|'.join(_NUMBERS)}")
            self._columns[table] = columns
        return self._columns[table]


_WITHOUT_PLAN: Final = Fraction(95, 100)
"""Of single tables, which are of SafeTab."""


def intervals(
    release: Path, queries: Sequence[str], *, confidence: Fraction | None = None, noisy: Path | None = None
) -> Intervals:
    """Intervals for sums, differences, ratios and percentages of cells, as `releases.interval` tells."""
    opened = open_release(release)
    with open_database() as db:
        evidence = _evidence(db, opened, noisy)
        level = confidence or opened.confidence or _WITHOUT_PLAN
        is_tree = opened.product == SYSTEM
        # Margins of error of tables have z as the Bureau rounds it; the intervals of TopDown have it exactly.
        z = NormalDist().inv_cdf(float((1 + level) / 2)) if is_tree else z_value(level)
        found = tuple(interval(query, evidence, z) for query in queries)
        notes = evidence.notes
    # The status needs not follow from the plan: whether there was noise is asked of every cell that is used.
    return Intervals(opened.name, str(opened.manifest.get("status")), level, found, notes)


def _evidence(db: duckdb.DuckDBPyConnection, release: ReleaseFolder, noisy: Path | None) -> IntervalEvidence:
    product = PRODUCTS.of(release.manifest)
    if "system" in release.manifest and (product is None or product.key == SYSTEM):
        return _of_topdown(db, release, noisy)
    if product is None:
        raise OutputError(f"{release.folder} is of {release.name!r}, which has no noisy cells to give intervals of")
    if noisy is not None:
        raise ConfigError("--noisy-measurements is for releases of TopDown; the tables of others are noisy themselves")
    return NoisyTables(db, release)


def _of_topdown(db: duckdb.DuckDBPyConnection, release: ReleaseFolder, noisy: Path | None) -> IntervalEvidence:
    if noisy is not None:
        return open_tree(release, noisy)
    must_be_of_topdown(release)
    if any(name.startswith(f"{INTERVALS}/") for name in release.files.values()):
        return MarginalIntervals(db, release)
    raise OutputError(
        f"{release.folder} holds counts without known variances. Give the noisy measurements of its run with "
        "--noisy-measurements DIR. If the run wrote none, run anew: topdown run --noisy-measurements DIR, or "
        "--estimator full-information for intervals of single answers. Its tables may have intervals of areas by code "
        "or name: --area KIND=WHICH"
    )
