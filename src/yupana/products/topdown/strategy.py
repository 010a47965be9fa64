"""The shares of a configuration of TopDown that make what a user cares for least variable. Public."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import numpy as np

from yupana.arrays import Floats
from yupana.errors import ConfigError
from yupana.files.declaration import declared, exact, key, keyed, read_as, table_of
from yupana.plan.least_variance import (
    LeastVariance,
    UndeterminedPartsError,
    VarianceProgram,
    goal_values,
    least_variance,
)
from yupana.plan.measurement import Mechanism, z_value
from yupana.privacy.exact import INFINITE
from yupana.products.strategy import WEIGHTS, Joined, Strategy, TargetVariance, losses_as_json, parts_of_one
from yupana.products.topdown.tables import tables_of
from yupana.topdown.configuration import OF_AREAS, Configuration
from yupana.topdown.plan import measurement_name, with_budgets
from yupana.topdown.queries import Query, query_named
from yupana.topdown.tree.basis import Basis, LevelParts

CONFIDENCE: Final = Fraction(9, 10)
"""Of the margins of error in a file of targets."""


@dataclass(frozen=True, slots=True)
class _StrategyTargets:
    """What a user cares for."""

    queries: Mapping[str, Fraction]  # the weight of the variance of each answer, by query or published table; not all 0
    # the weight of each geolevel, for which shares are then found; None keeps the shares of geolevels
    levels: Mapping[str, Fraction] | None = None
    # how many units of a geolevel lie in one of the geolevel above, for estimates that read the whole tree
    children: Mapping[str, Fraction] | None = None
    # in place of weights, the largest margin of error of each answer of a query or published table there
    margins: Mapping[str, Mapping[str, Fraction]] | None = None

    @property
    def free(self) -> bool:
        """Whether shares of geolevels are found, too."""
        return self.levels is not None or self.margins is not None

    def weights(self, levels: Sequence[str]) -> dict[tuple[int, str], float]:
        """The weight of the variance of an answer, by the number of its geolevel and query or table; not 0.

        A variance with the weight (z / margin)^2 is at most 1 exactly if it meets its margin.
        """
        if self.margins is not None:
            z = z_value(CONFIDENCE)
            return {
                (number, name): (z / float(margin)) ** 2
                for number, level in enumerate(levels)
                for name, margin in self.margins.get(level, {}).items()
            }
        by_level = {
            level: Fraction(1) if self.levels is None else self.levels.get(level, Fraction(0)) for level in levels
        }
        return {
            (number, name): float(by_level[level] * weight)
            for number, level in enumerate(levels)
            for name, weight in self.queries.items()
            if by_level[level] * weight
        }


_KEYS: Final = ("queries", "levels", "children")
_MARGIN: Final = exact(lambda margin: margin > 0, "must be more than 0")
_WEIGHTS: Final = keyed(dict.fromkeys(_KEYS, WEIGHTS), optional=_KEYS)


@dataclass(frozen=True, slots=True)
class DeclaredLimits:
    """A document of largest margins of error."""

    margins: Mapping[str, Mapping[str, Fraction]] = key(table_of(table_of(_MARGIN)))
    children: Mapping[str, Fraction] | None = key(WEIGHTS, default=None)


_TARGETS: Final = declared(DeclaredLimits, when=lambda told: "margins" in told) | _WEIGHTS


def default_targets(config: Configuration) -> _StrategyTargets:
    """All variables of the published tables alike, at the shares of geolevels that there are."""
    return _StrategyTargets({table.name: Fraction(1) for table in tables_of(config.schema)})


def read_targets(path: Path, config: Configuration) -> _StrategyTargets:
    """Read what a user cares for: a document in TOML or JSON.

    Raises
    ------
    ConfigError
        Naming every fault.
    """
    told = read_as(path, _TARGETS)
    if isinstance(told, DeclaredLimits):
        return _StrategyTargets({}, children=told.children, margins=told.margins)
    queries = told.get("queries", default_targets(config).queries)
    return _StrategyTargets(queries, told.get("levels"), told.get("children"))


def _levels_asked(config: Configuration, targets: _StrategyTargets, least: Fraction) -> tuple[str, ...]:
    """The geolevels that have a share of the budget, once the question is one that can be answered."""
    if config.mechanism is not Mechanism.ZCDP or config.budget == INFINITE:
        raise ConfigError("a strategy is found for a finite budget under zCDP, where variances are one over a budget")
    levels = tuple(level for level in config.levels if config.shares[level] > 0)
    faults = [*_unknown_queries(config, targets), *_wrong_geolevels(targets, levels)]
    if targets.margins is not None and not any(targets.margins.values()):
        faults.append("targets: no margin is asked for")
    elif targets.margins is None and not any(targets.queries.values()):
        faults.append("targets: the weights of all queries are 0; give one of them a weight")
    if targets.levels is not None and not any(targets.levels.values()):
        faults.append("targets: the weights of all geolevels are 0; give one of them a weight")
    asked = {level: sum(query.keeps_or_sums for query, _ in config.queries[level]) for level in levels}
    faults += [f"{level}: has no query that keeps or sums whole attributes" for level in levels if not asked[level]]
    together = sum(asked.values()) if targets.free else max(asked.values())
    if not 0 <= least * together < 1:
        faults.append(f"least: {together} queries cannot have a share of {least} each; name less than 1/{together}")
    if faults:
        raise ConfigError("\n".join(faults))
    return levels


def _unknown_queries(config: Configuration, targets: _StrategyTargets) -> list[str]:
    tables = [table.name for table in tables_of(config.schema)]
    faults = []
    asked = [targets.queries] if targets.margins is None else targets.margins.values()
    for name in dict.fromkeys(name for names in asked for name in names):
        try:
            if name not in tables:
                query_named(name, config.schema, config.recodes)
        except ValueError as error:
            faults.append(f"targets: {error}; published tables are {', '.join(tables)}")
    return faults


def _wrong_geolevels(targets: _StrategyTargets, levels: Sequence[str]) -> list[str]:
    faults = []
    for place, named in (("levels", targets.levels), ("margins", targets.margins), ("children", targets.children)):
        known = levels[1:] if place == "children" else levels
        faults += [
            f"targets: {place}.{level}: is no geolevel with a share of the budget; these are {', '.join(known)}"
            for level in named or ()
            if level not in known
        ]
    if targets.children is not None:
        faults += [f"targets: children.{level}: is missing" for level in levels[1:] if level not in targets.children]
        faults += [
            f"targets: children.{level}: must be 1 or more" for level, count in targets.children.items() if count < 1
        ]
    return faults


LEAST: Final = Fraction(1, 50)
"""What each query has of the budget of its geolevel unless asked otherwise. Estimates are made from the root down, and
children sum to their parents cell by cell: what no query tells of the cells spoils the other answers further down."""

UNTOLD: Final = (
    "targets: one of them is told by no query of the configuration that keeps or sums whole attributes; "
    "give its geolevel a query that keeps the attributes of the target, such as detailed"
)
_DIGITS: Final = (6, 9, 12)


def find_strategy(
    config: Configuration, targets: _StrategyTargets, loss: Joined = "sum", least: Fraction = LEAST
) -> Strategy[Configuration]:
    """Find the shares.

    Parameters
    ----------
    config : Configuration
        Its queries that keep or sum attributes are those that get shares; its budget stays, unless targets are margins:
        then it becomes the least that meets them all.
    loss : "sum", "max" or "ratio"
        Of weighted variances; with margins the largest, each by what its margin allows.
    least : Fraction
        Of the budget of its geolevel (where shares of geolevels are found, of the whole), what each query has at least.

    Raises
    ------
    ConfigError
        If targets are unknown, have no weight, or are told by no query.
    """
    levels = _levels_asked(config, targets, least)
    basis = Basis(config.schema.shape)
    measured = [
        (number, query)
        for number, level in enumerate(levels)
        for query, _ in config.queries[level]
        if query.keeps_or_sums
    ]
    weights = targets.weights(levels)
    loadings = {name: loadings_of(config, basis, name) for name in dict.fromkeys(name for _, name in weights)}
    parts = LevelParts(
        basis,
        len(levels),
        None if targets.children is None else tuple(float(targets.children[level]) for level in levels[1:]),
        exact_totals(config, levels, targets),
    )
    needed = {(number, name): parts.needed(number, loadings[name]) for number, name in weights}
    goals = [weight * needed[one] for one, weight in weights.items()]
    if targets.margins is not None:
        loss = "max"
    rows = np.concatenate(goals)
    if loss == "ratio":
        before = goal_values(rows, _precision(config, levels, parts))[:, None]
        if not np.isfinite(before).all():
            raise ConfigError(
                "targets: the shares given tell nothing of one of them, so there is no ratio; take sum or max"
            )
        rows = np.divide(rows, before, out=np.zeros_like(rows), where=before > 0)
        rows = rows * np.concatenate(
            [np.full((len(one), 1), w) for one, w in zip(goals, weights.values(), strict=True)]
        )
    goal = rows.sum(axis=0)[None] if loss == "sum" else _unlike(rows)
    goal = goal[goal.any(axis=1)]
    if not len(goal):
        raise ConfigError("targets: all of them are known exactly; there is nothing to find")
    solved, bound = _solve(config, levels, parts, measured, goal, targets, loss, least)
    for digits in _DIGITS:
        budgets = _rounded(config, levels, measured, solved, 10**digits, free=targets.free)
        found = _in_one_pass(with_budgets(config, budgets))
        found_loss = float(goal_values(goal, _precision(found, levels, parts)).max())
        if found_loss <= bound * (1 + 1e-6):
            break
    if targets.margins is not None:
        # Variances are in proportion to one over the budget: this one is the least that brings the largest to 1.
        factor = Fraction(math.ceil(found_loss * (1 + 1e-12) * 10**9), 10**9)
        found = _in_one_pass(with_budgets(config, {name: factor * budget for name, budget in budgets.items()}))
        bound /= float(factor)
        found_loss = float(goal_values(goal, _precision(found, levels, parts)).max())
    precision = [_precision(one, levels, parts) for one in (config, found)]
    told = tuple(
        TargetVariance(levels[n], name, given=means[0], found=means[1], weight=weight * len(needed[n, name]))
        for (n, name), weight in weights.items()
        if needed[n, name].any()
        for means in [[float(goal_values(needed[n, name], one).mean()) for one in precision]]
    )
    return Strategy(config, found, told, float(goal_values(goal, precision[0]).max()), found_loss, bound)


def _unlike(rows: Floats) -> Floats:
    """Each of the rows once, told apart by 12 digits."""
    digits, exponent = np.frexp(rows)
    unlike: Floats = np.unique(np.ldexp(np.round(digits, 12), exponent), axis=0)
    return unlike


def usual_least(config: Configuration, targets: _StrategyTargets) -> Fraction:
    """What each query has at least if nobody says: of its geolevel, or of the whole if shares of these are found."""
    return LEAST / len(config.levels) if targets.free else LEAST


def _in_one_pass(config: Configuration) -> Configuration:
    """The same with all queries of a geolevel estimated together, as its variances are predicted.

    A pass of the total alone reads no other query, and the total may have little of its own now.
    """
    passes = {
        level: replace(of, estimate=(measured,) if measured else ())
        for level, of in config.passes.items()
        for measured in (tuple(query for query, _ in config.measured(level)),)
    }
    return replace(config, passes=passes)


def exact_totals(config: Configuration, levels: Sequence[str], targets: _StrategyTargets) -> tuple[bool, ...]:
    """Of which geolevels the total of every unit is known: units that a spine has cut have none that is."""
    whole = config.spine_kind in {"conventional", OF_AREAS}
    known = [level in config.invariants and (whole or number == 0) for number, level in enumerate(levels)]
    # A sum of exact totals is exact.
    return tuple(known if targets.children is None else (any(known[number:]) for number in range(len(known))))


def _solve(
    config: Configuration,
    levels: Sequence[str],
    parts: LevelParts,
    measured: Sequence[tuple[int, Query]],
    goal: Floats,
    targets: _StrategyTargets,
    loss: Joined,
    least: Fraction,
) -> tuple[Floats, float]:
    """Budgets of the queries measured, and the bound."""
    of_level = np.array([float(config.budget * config.shares[level]) for level in levels])
    group = np.array([number for number, _ in measured])
    matrix = parts.precisions(measured)
    if targets.free:
        group, of_level = np.zeros_like(group), np.array([float(config.budget)])
    if targets.free or parts.children is not None:
        found = _least(VarianceProgram(matrix, goal, group, of_level, float(least) * of_level[group]))
        return found.spent, found.bound
    # Each geolevel by itself: so a largest variance is made least at every geolevel, not only where it is largest.
    spent, bounds = np.zeros(len(measured)), []
    sets = len(parts.basis.subsets)
    for number in range(len(levels)):
        here = slice(number * sets, (number + 1) * sets)
        mine = group == number
        own = goal[:, here]
        own = own[own.any(axis=1)]
        if not len(own):
            spent[mine] = of_level[number] / mine.sum()
            continue
        shares = np.full(int(mine.sum()), float(least) * of_level[number])
        none = np.zeros(len(shares), dtype=np.int64)
        found = _least(VarianceProgram(matrix[here][:, mine], own, none, of_level[[number]], shares))
        spent[mine] = found.spent
        bounds.append(found.bound)
    return spent, sum(bounds) if loss == "sum" else max(bounds)


def _least(program: VarianceProgram) -> LeastVariance:
    try:
        return least_variance(program)
    except UndeterminedPartsError:
        raise ConfigError(UNTOLD) from None


def _precision(config: Configuration, levels: Sequence[str], parts: LevelParts) -> Floats:
    """Of each part, with the shares of a configuration."""
    spent = [
        (number, query, float(config.budget * config.shares[level] * share))
        for number, level in enumerate(levels)
        for query, share in config.measured(level)
    ]
    precision: Floats = parts.precisions([(n, query) for n, query, _ in spent]) @ np.array([one for *_, one in spent])
    return precision


def loadings_of(config: Configuration, basis: Basis, name: str) -> Floats:
    """Of the answers of a query, or of the variables of a published table, of shape (answers, 2^attributes)."""
    tables = {table.name: table for table in tables_of(config.schema)}
    if name not in tables:
        return basis.loadings(query_named(name, config.schema, config.recodes))
    table = tables[name]
    rows = np.zeros((table.size, basis.cells))
    cell, place = np.nonzero(table.member >= 0)
    rows[table.member[cell, place], cell] = 1
    return basis.loadings_of(rows[rows.any(axis=1)])


def _rounded(
    config: Configuration,
    levels: Sequence[str],
    measured: Sequence[tuple[int, Query]],
    spent: Floats,
    denominator: int,
    *,
    free: bool,
) -> dict[str, Fraction]:
    """Budgets by entry, whose shares are whole parts of a denominator and sum to what they must."""
    budget = Fraction(config.budget)
    of_query = {(levels[n], query): float(one) for (n, query), one in zip(measured, spent, strict=True)}
    shares: Mapping[str, Fraction] = config.shares
    if free:
        sums = [sum(one for (name, _), one in of_query.items() if name == level) for level in levels]
        shares = dict(zip(levels, parts_of_one(sums, denominator), strict=True))
    budgets = {}
    for level in config.levels:
        mine = [query for query, _ in config.queries[level] if (level, query) in of_query]
        found = parts_of_one([of_query[level, query] for query in mine], denominator) if mine else []
        own = dict(zip(mine, found, strict=True))
        for query, _ in config.queries[level]:
            budgets[measurement_name(level, query)] = (
                budget * shares.get(level, Fraction(0)) * own.get(query, Fraction(0))
            )
    return budgets


def strategy_as_json(strategy: Strategy[Configuration]) -> dict[str, Any]:
    """The strategy as the command prints it with ``--json``; infinite variances are null."""
    return {
        "geolevels": {
            level: {
                "share": str(strategy.found.shares[level]),
                "share_given": str(strategy.given.shares[level]),
                "queries": {query.name: str(share) for query, share in strategy.found.queries[level]},
                "queries_given": {query.name: str(share) for query, share in strategy.given.queries[level]},
            }
            for level in strategy.given.levels
        },
        **losses_as_json(strategy, "geolevel"),
    }
