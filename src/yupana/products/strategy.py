"""The budgets of a plan that make what is asked for least variable at the same loss, beside those it has. Public."""

import html
import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, Generic, Literal

import numpy as np

from yupana.arrays import Floats
from yupana.errors import ConfigError, nearest
from yupana.files.arrow import ArrowTable
from yupana.files.declaration import declared, exact, key, read_as, table_of
from yupana.plan.budgets import NUMBERS_BY_ENTRY, Entry, check_entries, least
from yupana.plan.least_variance import VarianceProgram, goal_values, least_variance
from yupana.plan.measurement import Mechanism
from yupana.plan.plan import Plan
from yupana.privacy.exact import INFINITE
from yupana.products.product import C, Product

WEIGHTS: Final = table_of(exact(lambda number: number >= 0, "must be 0 or more, and finite"))
"""Finite numbers that are not negative."""


@dataclass(frozen=True, slots=True)
class TableTargets:
    """What a user cares for: a document in TOML or JSON."""

    tables: Mapping[str, Fraction] | None = key(
        WEIGHTS, "the weight of the variance of each cell, by published table; else 1 of all", default=None
    )
    levels: Mapping[str, Fraction] | None = key(
        WEIGHTS, "what these weights are multiplied by, by level; else 1 at all", default=None
    )
    margins: Mapping[str, Fraction] = key(
        NUMBERS_BY_ENTRY, "the largest margins of error of a measured count that the entry pays for", default={}
    )

    def weight(self, table: str, level: str) -> Fraction:
        """Of the variance of each cell of a table at a level."""
        weight = Fraction(1)
        for weights, name in ((self.tables, table), (self.levels, level)):
            weight *= Fraction(1) if weights is None else weights.get(name, Fraction(0))
        return weight


def read_table_targets(path: Path, entries: Collection[str]) -> TableTargets:
    """Read what a user cares for.

    Parameters
    ----------
    entries : collection of str
        The budgets that there are.

    Raises
    ------
    ConfigError
        Naming every fault.
    """
    return read_as(
        path,
        declared(TableTargets, partial=True),
        lambda told, faults: check_entries("margins", told.margins, entries, faults),
    )


Joined = Literal["sum", "max", "ratio"]
"""Whether the weighted sum of all variances is made least, the largest, or the largest of them over those given."""


@dataclass(frozen=True, slots=True)
class TargetVariance:
    """The variance of a target's answers, on the mean, with both strategies; infinite where nothing tells them.

    Attributes
    ----------
    level, target : str
    given, found : float
    weight : float
        Of all its answers together.
    """

    level: str
    target: str
    given: float
    found: float
    weight: float

    @property
    def ratio(self) -> float:
        """Found by given."""
        return self.found / self.given if self.given else 1.0


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Strategy(Generic[C]):
    """A strategy found, beside the one given.

    Attributes
    ----------
    given, found
        Configurations of the product.
    rows : tuple of TargetVariance
    given_loss, found_loss : float
        What is made least: with the budgets given, and with those found as they are written.
    bound : float
        No budgets within the limits have a smaller loss.
    """

    given: C
    found: C
    rows: tuple[TargetVariance, ...]
    given_loss: float
    found_loss: float
    bound: float

    def table(self) -> ArrowTable:
        """Tabulate the variances, with a row for each target at a level."""
        kinds = {"level": "VARCHAR", "target": "VARCHAR", "given": "DOUBLE", "found": "DOUBLE", "weight": "DOUBLE"}
        return ArrowTable.of({name: (kind, [getattr(row, name) for row in self.rows]) for name, kind in kinds.items()})

    def __repr__(self) -> str:
        return f"<strategy: loss {self.found_loss:.6g}, given {self.given_loss:.6g}; {len(self.rows)} targets>"

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(repr(self)[1:-1])}</p>{self.table().as_html(100)}"

    @property
    def gap(self) -> float:
        """How far the loss found can be above the least, relative to it."""
        return self.found_loss / self.bound - 1

    @property
    def levels(self) -> Mapping[str, float]:
        """Of each level the weighted sum of variances found, by that of those given."""
        sums = {row.level: np.zeros(2) for row in self.rows}
        for row in self.rows:
            sums[row.level] += row.found * row.weight, row.given * row.weight
        return {level: float(found / given) for level, (found, given) in sums.items()}


def parts_of_one(sizes: Sequence[float], denominator: int) -> list[Fraction]:
    """Shares that sum to 1 exactly: each rounded down to a part of the denominator, and the rest to the largest."""
    whole = sum(sizes)
    parts = [int(size / whole * denominator) for size in sizes]
    parts[int(np.argmax(sizes))] += denominator - sum(parts)
    return [Fraction(part, denominator) for part in parts]


def losses_as_json(strategy: Strategy[Any], level: str) -> dict[str, Any]:
    """Variances, losses and the bound for ``--json``, levels under the name given; infinite variances are null."""

    def finite(value: float) -> float | None:
        return value if np.isfinite(value) else None

    return {
        "targets": [
            {
                level: row.level,
                "target": row.target,
                "variance_given": finite(row.given),
                "variance": finite(row.found),
                "ratio": finite(row.ratio),
            }
            for row in strategy.rows
        ],
        "loss_given": finite(strategy.given_loss),
        "loss": strategy.found_loss,
        "bound": strategy.bound,
        "gap": strategy.gap,
    }


@dataclass(frozen=True, slots=True, eq=False)
class _PublishedCells:
    """The cells of a table at a level that one budget pays for."""

    table: str
    level: str
    entry: str
    # shape (kinds, parts): what the variance of a cell has of the variance of each part; cells alike in that are of one
    # kind
    loadings: Floats
    # shape (kinds,): how many cells are of each kind; of a table that groups of several kinds are shown, the mean over
    # these
    counts: Floats


@dataclass(frozen=True, slots=True, eq=False)
class _PublishedVariances:
    """How the variances of all published cells follow from the budgets."""

    entries: tuple[str, ...]  # the budgets above zero
    precisions: Floats  # shape (parts, entries): the precision that a part has from each unit of a budget
    cells: tuple[_PublishedCells, ...]


def _published(product: Product[C], config: C, plan: Plan, entries: Mapping[str, Entry]) -> _PublishedVariances:
    """Each measurement is a part: a cell that adds up k of its cells has k times the variance of one."""
    families = {family.name: family for family in product.families_of(config)}
    spent = tuple(name for name, entry in entries.items() if entry.budget > 0)
    precisions = np.zeros((len(plan.measurements), len(spent)))
    cells = []
    for part, measured in enumerate(plan.measurements):
        entry = product.entry_of(measured)
        precisions[part, spent.index(entry)] = 1 / (measured.variance * entries[entry].budget)
        # What only decides the detail of a group is measured and not published.
        if measured.table not in families:
            continue
        family = families[measured.table]
        for table in family.tables:
            choices = family.having(table)
            sizes = Counter(len(cell.parts) for choice in choices for cell in choice[table].cells)
            loadings = np.zeros((len(sizes), len(plan.measurements)))
            loadings[:, part] = [*sizes]
            counts = np.array([*sizes.values()]) / len(choices)
            cells.append(_PublishedCells(table, measured.level, entry, loadings, counts))
    return _PublishedVariances(spent, precisions, tuple(cells))


LEAST: Final = Fraction(1, 50)
"""What each budget keeps of the one given unless asked otherwise: without a budget a table would not be published."""

_DIGITS: Final = (6, 9, 12, 15)
_NEAR: Final = 1e-6
"""How far the budgets as they are written may be from the least that is proven, relative to it."""


@dataclass(frozen=True, slots=True)
class BudgetQuestion:
    """What budgets are to be found."""

    targets: TableTargets = field(default_factory=TableTargets)
    loss: Joined = "sum"
    least: Fraction = LEAST  # what each budget keeps of the one given
    total: Fraction | None = None  # what the budgets of each population may cost; None for what they cost now


@dataclass(frozen=True, slots=True, eq=False)
class _Limits:
    """What the budgets of a population have at least and in all; budgets that are kept stand apart."""

    shared: Mapping[str, Fraction]
    kept: Mapping[str, Fraction]
    total: Fraction

    @property
    def rest(self) -> Fraction:
        """What is left to share out."""
        return self.total - sum(self.shared.values()) - sum(self.kept.values())


def find_budgets(product: Product[C], config: C, plan: Plan, question: BudgetQuestion) -> Strategy[C]:
    """Find the budgets that make what is asked for least variable at the same loss.

    Losses of budgets add within a population, and those of disjoint populations stand beside each other (`Entry`); so
    each population has a program of its own, which `yupana.plan.least_variance` solves with a bound
    (docs/strategies.md).

    Parameters
    ----------
    config
        The product's own. Budgets of 0 stay 0; those of tables and levels without a weight are kept.
    plan : Plan
        Of the configuration.

    Raises
    ------
    ConfigError
        If variances are no multiples of one over a budget, targets are unknown, are not measured or have no weight, or
        the total does not meet them.
    """
    if plan.mechanism is not Mechanism.ZCDP or not plan.is_finite:
        raise ConfigError("a strategy is found for finite budgets under zCDP, where variances are one over a budget")
    entries = product.entries(config, "tight" if plan.accounting == "tight" else "published")
    told = _published(product, config, plan, entries)
    weights = _weights(told, question.targets, entries)
    given = {name: Fraction(entries[name].budget) for name in told.entries}
    counted = {cells.entry for cells, weight in zip(told.cells, weights, strict=True) if weight}
    before = told.precisions @ np.array([float(given[name]) for name in told.entries])
    spent, goals, bounds = dict(given), [], []
    limits = [*_limits(given, counted, entries, plan, question)]
    for limit in limits:
        mine = [
            _goal(cells, weight, before, question.loss)
            for cells, weight in zip(told.cells, weights, strict=True)
            if weight and cells.entry in limit.shared
        ]
        spent |= limit.kept
        if mine:
            rows = np.concatenate(mine)
            goals.append(rows.sum(axis=0)[None] if question.loss == "sum" else np.unique(rows, axis=0))
            solved, bound = _solve(told, limit, goals[-1])
            spent |= solved
            bounds.append(bound)
    joined = sum if question.loss == "sum" else max
    bound = float(joined(bounds))
    for digits in _DIGITS:
        budgets = {name: budget for limit in limits for name, budget in _rounded(limit, spent, digits).items()}
        after = told.precisions @ np.array([float(budgets[name]) for name in told.entries])
        found_loss, given_loss = (
            float(joined(goal_values(goal, precision).max() for goal in goals)) for precision in (after, before)
        )
        met = all(budgets[name] >= low for limit in limits for name, low in limit.shared.items())
        if met and found_loss <= bound * (1 + _NEAR):
            break
    found = product.with_budgets(config, budgets)
    return Strategy(config, found, tuple(_rows(told, weights, before, after)), given_loss, found_loss, bound)


def _weights(told: _PublishedVariances, targets: TableTargets, entries: Mapping[str, Entry]) -> list[float]:
    """The weight of each of the published cells, once the question is one that can be answered."""
    weights = [targets.weight(cells.table, cells.level) for cells in told.cells]
    faults = []
    for what, named in (("table", targets.tables), ("level", targets.levels)):
        known = dict.fromkeys(getattr(cells, what) for cells in told.cells)
        reached = {getattr(cells, what) for cells, weight in zip(told.cells, weights, strict=True) if weight}
        for name in named or ():
            if name not in known:
                hint = nearest(name, known) or f"; these are {', '.join(known)}"
                faults.append(f"targets: {what}s.{name}: is no {what} that is measured and published{hint}")
            elif named and named[name] and name not in reached and any(weights):
                faults.append(f"targets: {what}s.{name}: nothing of it that is measured has a weight")
    faults += [
        f"targets: margins.{name}: is not measured, for its budget is 0"
        for name in targets.margins
        if not entries[name].budget
    ]
    if not faults and not any(weights):
        faults.append("targets: all weights are 0; give a table a weight at a level where it is measured")
    if faults:
        raise ConfigError("\n".join(faults))
    return [float(weight) for weight in weights]


def _limits(
    given: Mapping[str, Fraction], counted: set[str], entries: Mapping[str, Entry], plan: Plan, question: BudgetQuestion
) -> Iterator[_Limits]:
    """The limits of each population."""
    asked = least(entries, question.targets.margins, plan.confidence, plan.mechanism, plan.margins)
    for population in dict.fromkeys(entries[name].population for name in given):
        here = [name for name in given if entries[name].population == population]
        own = sum(given[name] for name in here)
        limits = _Limits(
            {name: max(question.least * given[name], asked.get(name, Fraction(0))) for name in here if name in counted},
            {name: asked.get(name, given[name]) for name in here if name not in counted},
            Fraction(own if question.total is None else question.total),
        )
        if limits.rest < 0 or (limits.shared and not limits.rest):
            needed = limits.total - limits.rest
            whose = f" of the pass {population}" if population else ""
            raise ConfigError(
                f"a total of {float(limits.total):g} meets no such strategy: what budgets{whose} keep, their least and "
                f"the margins asked for need {float(needed):.6g}, and something must be left to share out"
            )
        yield limits


def _goal(cells: _PublishedCells, weight: float, before: Floats, loss: Joined) -> Floats:
    """What the loss counts of each part, of shape (goals, parts)."""
    if loss == "sum":
        return weight * (cells.counts @ cells.loadings)[None]
    if loss == "max":
        return weight * cells.loadings
    scaled: Floats = weight * cells.loadings / goal_values(cells.loadings, before)[:, None]
    return scaled


def _solve(told: _PublishedVariances, limit: _Limits, goal: Floats) -> tuple[dict[str, Fraction], float]:
    """Budgets of a population, and the bound. Each budget that is kept is a group of its own."""
    mine = [name for name in told.entries if name in limit.shared or name in limit.kept]
    kept = [name for name in mine if name in limit.kept]
    program = VarianceProgram(
        told.precisions[:, [told.entries.index(name) for name in mine]],
        goal,
        np.array([1 + kept.index(name) if name in limit.kept else 0 for name in mine]),
        np.array([float(limit.total - sum(limit.kept.values())), *(float(limit.kept[name]) for name in kept)]),
        np.array([float(limit.shared.get(name, 0)) for name in mine]),
    )
    found = least_variance(program)
    spent = {name: Fraction(float(one)) for name, one in zip(mine, found.spent, strict=True) if name in limit.shared}
    return spent, found.bound


def _rounded(limit: _Limits, spent: Mapping[str, Fraction], digits: int) -> dict[str, Fraction]:
    """Budgets of so many decimals, none below its least, and the rest to the one farthest above it."""
    unit = 10**digits
    budgets = {
        name: Fraction(max(math.floor(spent[name] * unit), math.ceil(low * unit)), unit)
        for name, low in limit.shared.items()
    }
    if budgets:
        largest = max(budgets, key=lambda name: budgets[name] - limit.shared[name])
        budgets[largest] += limit.total - sum(budgets.values()) - sum(limit.kept.values())
    return {**budgets, **limit.kept}


def _rows(told: _PublishedVariances, weights: list[float], before: Floats, after: Floats) -> Iterator[TargetVariance]:
    """The mean variance of a cell, of each table at each level that has a weight."""
    sums: dict[tuple[str, str], Floats] = {}
    for cells, weight in zip(told.cells, weights, strict=True):
        if weight:
            number = cells.counts.sum()
            means = [cells.counts @ goal_values(cells.loadings, one) for one in (before, after)]
            row = np.array([number, *means, weight * number])
            sums[cells.level, cells.table] = sums.get((cells.level, cells.table), np.zeros(4)) + row
    for (level, table), (number, given, found, weight) in sums.items():
        yield TargetVariance(level, table, float(given / number), float(found / number), float(weight))


def budgets_as_json(product: Product[Any], strategy: Strategy[Any]) -> dict[str, Any]:
    """The strategy as the command prints it with ``--json``."""
    given, found = (product.entries(config) for config in (strategy.given, strategy.found))
    return {
        "budgets": {
            name: {"budget": str(found[name].budget), "budget_given": str(entry.budget)}
            for name, entry in given.items()
            if entry.budget not in (0, INFINITE)
        },
        **losses_as_json(strategy, "level"),
    }
