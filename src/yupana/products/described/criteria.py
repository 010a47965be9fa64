"""What a plan promises of the errors of tables, whatever the records hold, and errors as they were observed. Public.

What is promised of acceptance criteria and why is proven in docs/tables-criteria.md.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Any, Final, NamedTuple

import numpy as np

from yupana.arrays import Flags, Ints
from yupana.errors import ConfigError
from yupana.plan.measurement import Measurement
from yupana.plan.plan import Plan, number
from yupana.privacy.coverage import least_bound, noise_of, share_outside
from yupana.products.census import observed_margin
from yupana.products.described.description import Description
from yupana.products.described.plan import families_of, groups_of
from yupana.products.described.reading.declaration import DeclaredCriterion
from yupana.products.tables import Table

TESTED: Final = "its acceptance criteria were tested on the true counts of synthetic records"
"""Why what tells the outcome of a test may not be released."""


@dataclass(frozen=True, kw_only=True)
class Criterion(DeclaredCriterion):
    """A quantile of the errors of some rows of a table, as measured, that shall be small, with some chance.

    Of n errors the quantile q is the smallest value that at least q n of them do not pass: 1 is their maximum.
    """

    name: str

    @property
    def relative(self) -> bool:
        """Whether errors are shares of the true count."""
        return self.error == "relative"

    @property
    def by_size(self) -> bool:
        """Whether the truth decides which rows it is about."""
        return self.at_least > 0 or self.at_most is not None

    @property
    def words(self) -> str:
        """What it says, in a sentence."""
        share = f"{float(100 * self.quantile):g}"
        of = {Fraction(1): "the largest", Fraction(1, 2): "the median"}.get(
            self.quantile, f"the {share}% quantile of the"
        )
        said = "; ".join(f"{column} {' or '.join(labels)}" for column, labels in self.rows.items())
        rows = f" ({said})" if said else ""
        least = [f"at least {self.at_least:,}"] if self.at_least else []
        most = [] if self.at_most is None else [f"at most {self.at_most:,}"]
        size = f" where the true count is {' and '.join(least + most)}" if self.by_size else ""
        fewest = f", as it is of {self.fewest:,} rows or more," if self.fewest > 1 else ""
        limit = f"{float(100 * self.most):g}%" if self.relative else f"{float(self.most):g}"
        kind = "relative error" if self.relative else "error"
        return (
            f"{of} {kind} of {self.table} by {self.level}{rows}{size}{fewest} is at most {limit}, "
            f"with a chance of {float(100 * self.chance):g}%"
        )


@dataclass(frozen=True, slots=True, eq=False)
class _CriterionRows:
    """The rows of a table that a criterion is about, of whatever size."""

    groups: Ints  # places of their areas by groups among those of the level
    # of each measurement, and of each table that shows its measured cells by themselves where the rows are shown, the
    # measured cells that each row of a group adds up: by the step that a group got
    parts: Mapping[tuple[str, str], tuple[tuple[int, ...], ...]]
    all_shown: bool  # whether all of them are published, whatever is drawn: none where the table has detail

    @property
    def number(self) -> int:
        """How many there are at most."""
        return len(self.groups) * max(map(len, self.parts.values()), default=0)

    @property
    def independent(self) -> bool:
        """Whether no measured cell is in two of them, so that their noises are independent."""
        every = ([cell for of_row in rows for cell in of_row] for rows in self.parts.values())
        return all(len(set(cells)) == len(cells) for cells in every)


def rows_of(description: Description, criterion: Criterion) -> _CriterionRows:
    """Find the rows of a criterion, which the reader of descriptions has found to exist."""
    table = next(of for of in description.tables if criterion.table in of.published)
    level = description.levels[criterion.level]

    def meant(columns: tuple[str, ...], labels: tuple[str | int, ...]) -> bool:
        return all(
            str(label) in criterion.rows.get(column, (str(label),))
            for column, label in zip(columns, labels, strict=True)
        )

    keys = ("REGION_ID", "ITERATION_CODE")
    groups = list(enumerate(product(description.areas[level.areas].codes, level.groups)))
    places: list[int] = []
    parts: dict[tuple[str, str], tuple[tuple[int, ...], ...]] = {}
    for family in families_of(table):
        # Those that always get the coarsest step of a table have a measurement of their own.
        codes = groups_of(table, level, coarsest=family.name != table.name)
        some = [place for place, key in groups if key[1] in codes and meant(keys, key)]
        steps = {choice.own.name: choice[criterion.table] for choice in family.having(criterion.table)}
        if some and steps:
            places += some
            for own, shown in steps.items():
                of_rows = tuple(cell.parts for cell in shown.cells if meant(shown.columns, cell.labels))
                parts[f"{family.name}/{level.name}", own] = of_rows
    return _CriterionRows(np.array(sorted(places), dtype=np.int64), parts, table.detail is None)


@dataclass(frozen=True, slots=True)
class _Prediction:
    """What a plan promises of a criterion, whatever the records hold: of the noise alone."""

    rows: int  # the most rows it can be about
    noise: int  # how far the noise of each row may lie from 0; it does with so large a chance that the criterion holds
    promised: Fraction  # the least `Criterion.most` with which it would hold for any records
    holds: bool  # whether it does; if not, it cannot be promised, and may hold nevertheless

    def as_json(self) -> dict[str, Any]:
        """The same as a manifest tells it."""
        return {"rows": self.rows, "noise": self.noise, **number("promised", self.promised), "holds": self.holds}


def predict(description: Description, plan: Plan, criterion: Criterion) -> _Prediction:
    """What the plan promises of a criterion (docs/tables-criteria.md, theorem 1).

    Raises
    ------
    ConfigError
        If the plan does not measure its rows, as with budgets that were rounded to 0.
    """
    rows = rows_of(description, criterion)
    laws = {m.name: m.law for m in plan.measurements}
    for name, _ in rows.parts:
        if name not in laws:
            raise ConfigError(f"criteria.{criterion.name}: {name} has no budget, so nothing can be promised")
    outside = share_outside(
        criterion.quantile,
        criterion.chance,
        criterion.fewest if criterion.by_size or not rows.all_shown else rows.number,
        rows.number,
        independent=rows.independent,
    )
    wide = {(laws[name], max(map(len, of_rows))) for (name, _), of_rows in rows.parts.items()}
    noise = max(least_bound(noise_of([one]), 1 - outside) for one in wide)
    promised = Fraction(noise, criterion.at_least if criterion.relative else 1)
    return _Prediction(rows.number, noise, promised, promised <= criterion.most)


def predictions(description: Description, plan: Plan) -> dict[str, dict[str, Any]]:
    """Of every criterion by name what it says, and what the plan promises of it, ready for JSON."""
    limited = {name for of in description.tables if of.limit for name in of.published}
    by_detail = {name for of in description.tables if of.detail for name in of.published}
    return {
        criterion.name: {
            "says": criterion.words,
            "error": "relative" if criterion.relative else "absolute",
            "predicted": predict(description, plan, criterion).as_json(),
            **({"limited": True} if criterion.table in limited else {}),
            **({"detail": True} if criterion.table in by_detail else {}),
        }
        for criterion in description.criteria
    }


def untested(criteria: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """The criteria of a manifest as `predictions` gave them, without what tests have added."""
    return {name: {key: value for key, value in told.items() if key != "tested"} for name, told in criteria.items()}


class CriterionVerdict(NamedTuple):
    """What is known of a criterion, in words; ``tested`` is empty where it was not."""

    name: str
    says: str
    predicted: str
    tested: str


def verdicts(criteria: Mapping[str, Mapping[str, Any]]) -> list[CriterionVerdict]:
    """Put in words what `predictions` tells, and what tests have added."""
    return [CriterionVerdict(name, told["says"], _predicted(told), _tested(told)) for name, told in criteria.items()]


def _predicted(told: Mapping[str, Any]) -> str:
    predicted = told["predicted"]
    promised = f"at most {_shown(told, predicted['promised_float'])}"
    whole = " of which the table's limit leaves none out" if told.get("limited") else ""
    shown = ", whichever rows are shown" if told.get("detail") else ""
    if predicted["holds"]:
        return f"holds for any records{whole}{shown}; {promised} is promised"
    return f"cannot be promised; {promised} can be{' for records' if whole else ''}{whole}{shown}"


def _tested(told: Mapping[str, Any]) -> str:
    tested = told.get("tested")
    if tested is None:
        return ""
    found = ", ".join(f"{tested[what]:,} {what[:-1]}{'s' * (tested[what] != 1)}" for what in ("rows", "trials"))
    if tested["holds"] is None:
        return f"not tested, as there are too few rows of the size; {found}"
    return f"{'holds' if tested['holds'] else 'does not hold'}; {_shown(told, tested['value'])}, {found}"


def _shown(told: Mapping[str, Any], value: float) -> str:
    return f"{100 * value:.6g}%" if told["error"] == "relative" else f"{value:,g}"


@dataclass(frozen=True, slots=True, eq=False)
class MeasurementErrors:
    """Errors of a measurement in the groups that one table shows, in all trials."""

    measurement: Measurement
    table: Table  # whose rows show the measured cells by themselves
    # trial, area, group: shape (observations,): in which trial a group was observed; the places of its area and its
    # population group in their level
    trial: Ints
    area: Ints
    group: Ints
    truth: Ints  # shape (observations, measured cells): exact counts, limited as in a run
    left_out: Ints  # limited minus unlimited counts
    noise: Ints  # int64 array, of the same shape
    # shape (groups of all trials,): true totals of the groups of the table, those that are left out after they were
    # measured included
    every: Ints

    @property
    def sizes(self) -> Ints:
        """True totals of the groups observed, limited as in a run."""
        found: Ints = self.truth.sum(axis=1)
        return found

    def chosen(self, some: Flags) -> "MeasurementErrors":
        """Those of some observations."""
        names = ("trial", "area", "group", "truth", "left_out", "noise")
        return replace(self, **{name: getattr(self, name)[some] for name in names})

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
    cell: str | int
    count: int
    expected_moe: float
    # the smallest whole number that at least the confidence's share of the |errors| over all regions and trials do not
    # pass: the definition of an exact margin
    experimental_moe: float
    experimental_moe_with_truncation: float
    bias_from_truncation: float
    coverage: float


def observed_errors(plan: Plan, of: MeasurementErrors, some: Flags, parts: Sequence[int]) -> dict[str, Any]:
    """How far the sums of some measured cells were from the truth in some observations; numbers of an accuracy row."""
    noise, lost = (numbers[some][:, list(parts)].sum(axis=1) for numbers in (of.noise, of.left_out))
    expected, confidence = plan.margin(of.measurement, len(parts)), float(plan.confidence)
    return {
        "count": noise.size,
        "expected_moe": expected,
        "experimental_moe": observed_margin(noise, confidence),
        "experimental_moe_with_truncation": observed_margin(noise + lost, confidence),
        "bias_from_truncation": float(lost.mean()),
        "coverage": float((np.abs(noise) <= expected).mean()),
    }


def summarize(description: Description, plan: Plan, errors: Iterable[MeasurementErrors]) -> list[DescribedAccuracy]:
    """The experimental margin by table, level, group and cell, and how many errors lie within the expected one."""
    return [
        DescribedAccuracy(
            e.table.name, e.measurement.level, group, label, **observed_errors(plan, e, e.group == g, [c])
        )
        for e in errors
        for g, group in enumerate(description.levels[e.measurement.level].groups)
        if (e.group == g).any()
        for c, label in enumerate(e.labels)
    ]
