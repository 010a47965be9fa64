"""The intervals that a full-information release of TopDown brings along: evidence of one answer at a time. Public."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final

import numpy as np

from yupana.arrays import Floats
from yupana.errors import ConfigError, OutputError
from yupana.estimate.intervals.forms import Linear
from yupana.estimate.intervals.query import Selection
from yupana.estimate.intervals.table_cells import OpenedTables, open_file, rows_where
from yupana.estimate.intervals.tree import COVERED
from yupana.topdown.tree.intervals import INTERVALS

_NUMBERS: Final = ("estimate", "variance", "lower", "upper")

NEEDS_MEASUREMENTS: Final = (
    "its variance needs the noisy measurements; make the release with --noisy-measurements DIR, and give DIR here"
)


@dataclass(slots=True)
class MarginalIntervals(OpenedTables):
    """Estimates and variances of single answers."""

    _found: dict[tuple[str, ...], tuple[float, float]] = field(default_factory=dict, init=False)

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
        keys = columns[: -len(_NUMBERS)]
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

    def moments(self, forms: Sequence[Linear]) -> tuple[Floats, Floats]:
        """Estimates and variances of forms in a single answer."""
        cells = list(dict.fromkeys(cell for form in forms for cell in form.weights))
        if len(cells) > 1:
            raise ConfigError(
                f"it is made of {len(cells)} answers, whose errors depend on each other; {NEEDS_MEASUREMENTS}"
            )
        estimate, variance = self._found[cells[0]] if cells else (0.0, 0.0)  # type: ignore[index] # forms are of `select`
        weights = np.array([float(sum(form.weights.values())) for form in forms])
        constants = np.array([float(form.constant) for form in forms])
        return constants + weights * estimate, variance * np.outer(weights, weights)

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
            if tuple(columns[-len(_NUMBERS) :]) != _NUMBERS:
                raise OutputError(f"{self.release.folder / name} must end in the columns {'|'.join(_NUMBERS)}")
            self._columns[table] = columns
        return self._columns[table]
