"""What two answers of TopDown cost each other: how precise one can be at every precision of the other. Public."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from yupana.arrays import Floats
from yupana.errors import ConfigError
from yupana.plan.least_variance import (
    UndeterminedPartsError,
    VarianceProgram,
    goal_values,
    least_sums,
)
from yupana.products.topdown.strategy import UNTOLD, exact_totals, loadings_of
from yupana.products.topdown.strategy_targets import StrategyTargets, levels_asked
from yupana.topdown.configuration import Configuration
from yupana.topdown.queries import Query
from yupana.topdown.tree.basis import Basis, LevelParts

_LEANING: Final = np.logspace(4, -4, 33)
"""How many times more the first answer counts than the second, each relative to the least that it can be."""


@dataclass(frozen=True, slots=True)
class AnswerPair:
    """Two answers between which a budget is shared out.

    Attributes
    ----------
    first, second : (geolevel, query or published table)
    levels_kept : bool
        Whether geolevels keep their shares, and the queries of one share out its budget; else all of the budget is
        shared out anew.
    """

    first: tuple[str, str]
    second: tuple[str, str]
    levels_kept: bool


@dataclass(frozen=True, slots=True, eq=False)
class Frontier:
    """The least variances of two answers, on the mean, from all weight on the first to all on the second.

    Attributes
    ----------
    variances : ndarray of float64, shape (points, 2)
        The first answer's grow, the second's fall.
    weights : ndarray of float64, shape (points, 2)
        Of the two variances, whose weighted sum is least in this point.
    bounds : ndarray of float64, shape (points,)
        No shares within the limits have a smaller weighted sum.
    """

    variances: Floats
    weights: Floats
    bounds: Floats


class TradeOff:
    """A pair of answers of a configuration, and what strategies make of them.

    Grouping queries are left out: their information is known as a bound only (docs/strategies.md), so no strategy is
    shown better than it is.

    Parameters
    ----------
    config : Configuration
    pair : AnswerPair

    Raises
    ------
    ConfigError
        If an answer is unknown, is known exactly or is told by no query, or if both are one or share no budget.
    """

    def __init__(self, config: Configuration, pair: AnswerPair) -> None:
        both = (pair.first, pair.second)
        if pair.first == pair.second:
            raise ConfigError("a trade-off is between two different answers")
        asked = StrategyTargets({name: Fraction(1) for _, name in both})
        having = levels_asked(config, asked, Fraction(0))
        for level, _ in both:
            if level not in having:
                raise ConfigError(f"{level} has no share of the budget")
        if pair.levels_kept and pair.first[0] != pair.second[0]:
            raise ConfigError(
                "while geolevels keep their shares, answers of two of them cost each other nothing; choose one "
                "geolevel for both, or have the shares of geolevels found"
            )
        self.config, self.pair = config, pair
        self._levels = tuple(dict.fromkeys(level for level, _ in both))
        basis = Basis(config.schema.shape)
        known = dict(zip(having, exact_totals(config, having, asked), strict=True))
        self._parts = LevelParts(basis, len(self._levels), None, tuple(known[level] for level in self._levels))
        self._goals = np.stack(
            [self._parts.needed(self._levels.index(at), loadings_of(config, basis, of)).mean(axis=0) for at, of in both]
        )
        for (level, name), goal in zip(both, self._goals, strict=True):
            if not goal.any():
                raise ConfigError(f"{name} of {level} is known exactly, so nothing is given up for it")

    def variances(self, strategy: Configuration) -> tuple[float, float]:
        """The mean variances of both answers with the shares of a strategy, at the configuration's budget.

        Where geolevels keep their shares, these are the configuration's.
        """
        spent = [
            (number, query, self._spent(strategy, level, share))
            for number, level in enumerate(self._levels)
            for query, share in strategy.measured(level)
            if query.keeps_or_sums
        ]
        if not spent:
            return np.inf, np.inf
        precision = self._parts.precisions([(n, query) for n, query, _ in spent]) @ np.array([one for *_, one in spent])
        first, second = goal_values(self._goals, precision)
        return float(first), float(second)

    @property
    def grouping(self) -> tuple[str, ...]:
        """The queries that are left out."""
        measured = [self.config.measured(level) for level in self._asked]
        return tuple(dict.fromkeys(query.name for of in measured for query, _ in of if not query.keeps_or_sums))

    def asks_all_that(self, strategy: Configuration) -> bool:
        """Whether a strategy measures no query that cannot get a share here; else it can lie below the frontier."""
        return all(
            any(query.factors == own.factors for query in queries)
            for level, queries in self._asked.items()
            if level in strategy.queries
            for own, _ in strategy.measured(level)
            if own.keeps_or_sums
        )

    def frontier(self, least: Fraction, within: Sequence[Configuration] = ()) -> Frontier:
        """Find the frontier.

        Parameters
        ----------
        least : Fraction
            What each query has at least, as of `find_strategy`; or what it has in the configuration or in another of
            the strategies below, where that is less. So none of them lies below the frontier.
        within : sequence of Configuration
            Strategies; what those spend that measure other queries, too, is not looked at.
        """
        asked = self._asked
        levels = tuple(asked)
        compared = [one for one in (self.config, *within) if self.asks_all_that(one)]
        whole = {level: self._spent(self.config, level, Fraction(1)) for level in levels}
        base = whole if self.pair.levels_kept else dict.fromkeys(levels, float(self.config.budget))
        floors = {
            (level, query): min(
                [float(least) * base[level], *(self._spent_on(one, level, query) for one in compared)],
            )
            for level in levels
            for query in asked[level]
        }
        measured = [(n, query) for n, level in enumerate(self._levels) for query in asked[level]]
        budget = sum(whole.values()) - sum(one for (level, _), one in floors.items() if level not in self._levels)
        program = VarianceProgram(
            self._parts.precisions(measured),
            self._goals,
            np.zeros(len(measured), dtype=np.int64),
            np.array([budget]),
            np.array([floors[self._levels[n], query] for n, query in measured]),
        )
        try:
            alone = least_sums(program, np.eye(2)).losses
            weights = np.stack([_LEANING / alone[0], np.full(len(_LEANING), 1 / alone[1])], axis=1)
            found = least_sums(program, weights)
        except UndeterminedPartsError:
            raise ConfigError(UNTOLD) from None
        variances = np.stack([program.values(one) for one in found.spent])
        return Frontier(variances, weights, found.bounds)

    @property
    def _asked(self) -> dict[str, list[Query]]:
        """The queries that share out a budget."""
        levels = self._levels if self.pair.levels_kept else self.config.levels
        return {level: [query for query, _ in self.config.queries[level] if query.keeps_or_sums] for level in levels}

    def _spent(self, strategy: Configuration, level: str, share: Fraction) -> float:
        """The budget of a query of a strategy, from its share of the geolevel."""
        of_levels = self.config.shares if self.pair.levels_kept else strategy.shares
        return float(self.config.budget * of_levels.get(level, Fraction(0)) * share)

    def _spent_on(self, strategy: Configuration, level: str, query: Query) -> float:
        shares = {own.factors: share for own, share in strategy.queries.get(level, ())}
        return self._spent(strategy, level, shares.get(query.factors, Fraction(0)))
