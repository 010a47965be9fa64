"""The budgets of least variance, with a bound that proves how near the least they are. Public.

Precisions of parts are sums of the budgets, lambda = M w; a goal is a weighted sum of the parts' variances 1/lambda;
the loss is the largest goal. It is convex in w. Derivation and proof of the bound: docs/strategies.md.

The least of the largest goal is found by a primal-dual interior point method. It moves shares of what there is above
the least, and the weights of the goals with which the bound is taken; until it ends, the goals need not be below their
top. Every step is reckoned in multiples of the shares, which makes its equations well scaled.
"""

from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Floats

_NEAR: Final = 1e-10
_STEPS: Final = 100
_CENTRE: Final = 0.1
_TO_THE_EDGE: Final = 0.95
_SMALLEST: Final = 1e-14
"""What a limit still costs, of a largest goal that is 1 at equal shares: less is lost in rounding."""


class UndeterminedPartsError(ValueError):
    """Goals need parts of a histogram that no query can tell, whatever the budgets."""


@dataclass(frozen=True, slots=True, eq=False)
class VarianceProgram:
    """What is to be minimised over budgets w, and under which limits."""

    # shape (parts, queries): M: the precision that a part has from each unit of budget of a query; not negative
    precisions: Floats
    # shape (goals, parts): how much each goal counts the variance of each part; not negative, and no goal is 0
    # throughout
    goals: Floats
    group: NDArray[np.int64]  # shape (queries,): which of the sums of `budgets` the budget of a query is part of
    budgets: Floats  # shape (groups,): what the budgets of the queries of a group sum to
    least: Floats  # shape (queries,): what each query has at least; in every group less than its budget in all

    @property
    def member(self) -> Floats:
        """1 where the budget of a query is part of that of a group, else 0; of shape (groups, queries)."""
        return np.asarray(np.arange(len(self.budgets))[:, None] == self.group, dtype=np.float64)

    @property
    def rest(self) -> Floats:
        """What each group has above the least, of shape (groups,)."""
        return self.budgets - self.member @ self.least

    def spent(self, shares: Floats) -> Floats:
        """Budgets from shares of the rest, both of shape (queries,)."""
        return self.least + shares * ((self.rest / (self.member @ shares)) @ self.member)

    def values(self, spent: Floats) -> Floats:
        """The goals at these budgets, of shape (goals,); infinite where one counts a part without precision."""
        return goal_values(self.goals, self.precisions @ spent)

    def bound(self, spent: Floats, weights: Floats) -> float:
        """What the loss is at least, by any budgets, and weights of the goals, of sum 1; every part has precision."""
        counted = weights @ self.goals
        variance = 1 / (self.precisions @ spent)
        slope = (counted * variance**2) @ self.precisions
        steepest = (slope * self.member).max(axis=1)
        return float((counted * variance).sum() ** 2 / (slope @ self.least + steepest @ self.rest))


class LeastVariance(NamedTuple):
    """Budgets, their loss, and what no budgets can be below."""

    spent: Floats  # shape (queries,)
    loss: float  # the largest goal
    bound: float  # at most the loss of any budgets within the limits


def goal_values(goals: Floats, precision: Floats) -> Floats:
    """Weighted sums of variances, of shape (goals,), from the precisions of parts; infinite where one is needed."""
    variance = np.divide(1.0, precision, out=np.zeros_like(precision), where=precision > 0)
    missing = np.asarray(goals[:, precision <= 0] > 0).any(axis=1)
    return np.where(missing, np.inf, goals @ variance)


class _Point(NamedTuple):
    """Where the search stands.

    `slack` is what the limits of shares cost, `level` what the budgets of groups do, and `room` how far goals are below
    the top.
    """

    shares: Floats
    top: float
    weights: Floats
    level: Floats
    slack: Floats
    room: Floats


@dataclass(frozen=True, slots=True, eq=False)
class _Scaled:
    """Goals as functions of shares, with the largest 1 at equal shares."""

    rows: Floats
    goals: Floats
    least: Floats
    member: Floats

    def at(self, shares: Floats) -> tuple[Floats, Floats, Floats]:
        """Precisions of parts, values of goals, and their slopes."""
        precision = self.rows @ shares + self.least
        return precision, self.goals @ (1 / precision), -(self.goals / precision**2) @ self.rows


def least_variance(program: VarianceProgram) -> LeastVariance:
    """Minimise the largest goal.

    Raises
    ------
    UndeterminedPartsError
        If a goal counts a part of which no query tells anything.
    """
    counted = program.goals.any(axis=0)
    program = replace(program, precisions=program.precisions[counted], goals=program.goals[:, counted])
    rows, member = program.precisions, program.member
    if not rows.any(axis=1).all():
        raise UndeterminedPartsError("a goal counts a part that no query tells anything of")
    equal = (1 / member.sum(axis=1)) @ member
    spent = program.spent(equal)
    loss, bound = float(program.values(spent).max()), 0.0
    scaled = _Scaled(rows * (program.rest @ member), program.goals / loss, rows @ program.least, member)
    point = _begin(scaled, equal)
    for _ in range(_STEPS):
        try:
            point = _step(scaled, point)
        except np.linalg.LinAlgError:
            break
        if not all(np.isfinite(of).all() for of in point):
            break
        there = program.spent(point.shares)
        reached = float(program.values(there).max())
        if reached < loss:
            spent, loss = there, reached
        bound = max(bound, program.bound(there, point.weights / point.weights.sum()))
        if loss <= bound * (1 + _NEAR):
            break
    return LeastVariance(spent, loss, bound)


def _begin(scaled: _Scaled, shares: Floats) -> _Point:
    _, values, slopes = scaled.at(shares)
    top = 1.5 * float(values.max())
    weights = 1 / (top - values)
    weights /= weights.sum()
    slope = weights @ slopes
    steepest = (-slope * scaled.member).max(axis=1)
    level = steepest + 0.1 * steepest.max()
    return _Point(shares, top, weights, level, slope + level @ scaled.member, top - values)


def _step(scaled: _Scaled, point: _Point) -> _Point:
    """Take Newton's step for the conditions of the optimum, as far as everything stays positive."""
    shares, top, weights, level, slack, room = point
    precision, values, slopes = scaled.at(shares)
    centre = max(_CENTRE * float(np.append(shares * slack, weights * room).mean()), _SMALLEST)
    leaning = slopes * shares
    rows = scaled.rows * shares
    counted = weights @ scaled.goals
    queries, last = len(shares), len(shares) + 1 + len(values)
    system = np.zeros((last + len(level), last + len(level)))
    system[:queries, :queries] = rows.T @ ((2 * counted / precision**3)[:, None] * rows)
    system[range(queries), range(queries)] += shares * slack
    system[queries + 1 : last, :queries] = leaning
    system[last:, :queries] = scaled.member * shares
    system[:queries, queries:] = system[queries:, :queries].T
    system[queries, queries + 1 : last] = system[queries + 1 : last, queries] = -1
    system[range(queries + 1, last), range(queries + 1, last)] = -room / weights
    of_top, of_goals = [weights.sum() - 1], top - values - centre / weights
    right = np.concatenate([centre - weights @ leaning, of_top, of_goals, 1 - scaled.member @ shares])
    found = np.linalg.solve(system, right)
    move, (rise,), turn, new_level = np.split(found, [queries, queries + 1, last])
    fall = centre / shares - slack - slack * move
    widening = centre / weights - room - room / weights * turn
    steepest = float(np.concatenate([-move, -turn / weights, -fall / slack, -widening / room]).max())
    length = _TO_THE_EDGE / max(steepest, _TO_THE_EDGE)
    return _Point(
        shares * (1 + length * move),
        top + length * float(rise),
        weights + length * turn,
        level + length * (new_level - level),
        slack + length * fall,
        room + length * widening,
    )
