"""The budgets of least variance, with a bound that proves how near the least they are. Public.

Precisions of parts are sums of the budgets, lambda = M w; a goal is a weighted sum of the parts' variances 1/lambda;
the loss is the largest goal. It is convex in w. Derivation and proof of the bound: docs/strategies.md.

The least of the largest goal is found by a primal-dual interior point method, for many programs at once. It moves
shares of what there is above the least, and the weights of the goals with which the bound is taken; until it ends, the
goals need not be below their top. Every step is reckoned in multiples of the shares, which makes its equations well
scaled.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Flags, Floats

_NEAR: Final = 1e-10
_STEPS: Final = 100
_CENTRE: Final = 0.1
_TO_THE_EDGE: Final = 0.95
_SMALLEST: Final = 1e-14
"""What a limit still costs, of a largest goal that is 1 at equal shares: less is lost in rounding."""


@dataclass(frozen=True, slots=True, eq=False)
class VariancePrograms:
    """Programs that differ in their goals alone."""

    rows: Floats  # shape (parts, queries): the precision that a part has from each unit of budget; every part has some
    goals: Floats  # shape (programs, goals, parts): not negative
    member: Floats  # shape (groups, queries): 1 where the budget of a query is part of that of a group, else 0
    budgets: Floats  # shape (groups,)
    least: Floats  # shape (queries,): in every group less than its budget in all

    @property
    def rest(self) -> Floats:
        """What each group has above the least, of shape (groups,)."""
        return self.budgets - self.member @ self.least

    def spent(self, shares: Floats) -> Floats:
        """Budgets from shares of the rest, both of shape (programs, queries)."""
        return self.least + shares * ((self.rest / (shares @ self.member.T)) @ self.member)

    def losses(self, spent: Floats) -> Floats:
        """The largest goal of each program."""
        values = self.goals @ (1 / (spent @ self.rows.T))[:, :, None]
        return np.asarray(values.max(axis=(1, 2)), dtype=np.float64)

    def bounds(self, spent: Floats, weights: Floats) -> Floats:
        """What the loss of each program is at least, by any budgets and weights of its goals, of sum 1.

        Parameters
        ----------
        spent : ndarray of float64, shape (programs, queries)
        weights : ndarray of float64, shape (programs, goals)
        """
        counted = (weights[:, None] @ self.goals)[:, 0]
        variance = 1 / (spent @ self.rows.T)
        slope = (counted * variance**2) @ self.rows
        steepest = (slope[:, None] * self.member).max(axis=2)
        return np.asarray((counted * variance).sum(axis=1) ** 2 / (slope @ self.least + steepest @ self.rest))


class _Point(NamedTuple):
    """Where programs stand, each array of shape (programs, ...).

    `slack` is what the limits of shares cost, `level` what the budgets of groups do, and `room` how far goals are below
    the top.
    """

    shares: Floats
    top: Floats
    weights: Floats
    level: Floats
    slack: Floats
    room: Floats

    def of(self, chosen: Flags) -> "_Point":
        return _Point(*(array[chosen] for array in self))

    def put(self, chosen: Flags, moved: "_Point") -> None:
        for array, there in zip(self, moved, strict=True):
            array[chosen] = there


@dataclass(frozen=True, slots=True, eq=False)
class _Scaled:
    """Goals as functions of shares, with the largest 1 at equal shares."""

    rows: Floats
    goals: Floats
    least: Floats
    member: Floats

    def of(self, chosen: Flags) -> "_Scaled":
        return _Scaled(self.rows, self.goals[chosen], self.least, self.member)

    def at(self, shares: Floats) -> tuple[Floats, Floats, Floats]:
        """Precisions of parts, values of goals, and their slopes."""
        precision = shares @ self.rows.T + self.least
        values = (self.goals @ (1 / precision)[:, :, None])[:, :, 0]
        return precision, values, -(self.goals / precision[:, None] ** 2) @ self.rows


def least_largest(programs: VariancePrograms) -> tuple[Floats, Floats, Floats]:
    """Find the budgets of each program, of shape (programs, queries), their losses, and what no budgets are below."""
    member = programs.member
    equal = np.tile((1 / member.sum(axis=1)) @ member, (len(programs.goals), 1))
    spent = programs.spent(equal)
    losses, bounds = programs.losses(spent), np.zeros(len(equal))
    scaled = _Scaled(
        programs.rows * (programs.rest @ member),
        programs.goals / losses[:, None, None],
        programs.rows @ programs.least,
        member,
    )
    point = _begin(scaled, equal)
    far = np.ones(len(equal), dtype=np.bool_)
    for _ in range(_STEPS):
        try:
            point.put(far, _step(scaled.of(far), point.of(far)))
        except np.linalg.LinAlgError:
            break
        if not all(np.isfinite(array).all() for array in point):
            break
        there = programs.spent(point.shares)
        reached = programs.losses(there)
        spent = np.where((reached < losses)[:, None], there, spent)
        losses = np.minimum(losses, reached)
        weights = point.weights / point.weights.sum(axis=1, keepdims=True)
        bounds = np.maximum(bounds, programs.bounds(there, weights))
        far = losses > bounds * (1 + _NEAR)
        if not far.any():
            break
    return spent, losses, bounds


def _begin(scaled: _Scaled, shares: Floats) -> _Point:
    _, values, slopes = scaled.at(shares)
    top = 1.5 * values.max(axis=1, keepdims=True)
    weights = 1 / (top - values)
    weights /= weights.sum(axis=1, keepdims=True)
    slope = (weights[:, None] @ slopes)[:, 0]
    steepest = (-slope[:, None] * scaled.member).max(axis=2)
    level = steepest + 0.1 * steepest.max(axis=1, keepdims=True)
    return _Point(shares, top, weights, level, slope + level @ scaled.member, top - values)


def _step(scaled: _Scaled, point: _Point) -> _Point:
    """Take Newton's step for the conditions of the optimum, as far as everything stays positive."""
    shares, top, weights, level, slack, room = point
    precision, values, slopes = scaled.at(shares)
    products = np.append(shares * slack, weights * room, axis=1)
    centre = np.maximum(_CENTRE * products.mean(axis=1, keepdims=True), _SMALLEST)
    leaning = slopes * shares[:, None]
    held = scaled.member * shares[:, None]
    rows = scaled.rows * shares[:, None]
    counted = (weights[:, None] @ scaled.goals)[:, 0]
    queries, last = shares.shape[1], shares.shape[1] + 1 + values.shape[1]
    system = np.zeros((len(shares), last + len(scaled.member), last + len(scaled.member)))
    system[:, :queries, :queries] = rows.transpose(0, 2, 1) @ ((2 * counted / precision**3)[:, :, None] * rows)
    system[:, range(queries), range(queries)] += shares * slack
    system[:, queries + 1 : last, :queries] = leaning
    system[:, last:, :queries] = held
    system[:, :queries, queries:] = system[:, queries:, :queries].transpose(0, 2, 1)
    system[:, queries, queries + 1 : last] = system[:, queries + 1 : last, queries] = -1
    system[:, range(queries + 1, last), range(queries + 1, last)] = -room / weights
    right = np.concatenate(
        [
            centre - (weights[:, None] @ leaning)[:, 0],
            weights.sum(axis=1, keepdims=True) - 1,
            top - values - centre / weights,
            1 - shares @ scaled.member.T,
        ],
        axis=1,
    )
    found = np.linalg.solve(system, right[:, :, None])[:, :, 0]
    move, rise, turn, new_level = np.split(found, [queries, queries + 1, last], axis=1)
    fall = centre / shares - slack - slack * move
    widening = centre / weights - room - room / weights * turn
    steepest = np.concatenate([-move, -turn / weights, -fall / slack, -widening / room], axis=1)
    length = np.minimum(1.0, _TO_THE_EDGE / np.maximum(steepest.max(axis=1, keepdims=True), _TO_THE_EDGE))
    return _Point(
        shares * (1 + length * move),
        top + length * rise,
        weights + length * turn,
        level + length * (new_level - level),
        slack + length * fall,
        room + length * widening,
    )


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

    def values(self, spent: Floats) -> Floats:
        """The goals at these budgets, of shape (goals,); infinite where one counts a part without precision."""
        return goal_values(self.goals, self.precisions @ spent)


@dataclass(frozen=True, slots=True, eq=False)
class LeastVariance:
    """Budgets, their loss, and what no budgets can be below."""

    spent: Floats  # shape (queries,)
    loss: float  # the largest goal
    bound: float  # at most the loss of any budgets within the limits

    @property
    def gap(self) -> float:
        """How far the loss can be above the least, relative to it."""
        return self.loss / self.bound - 1


def goal_values(goals: Floats, precision: Floats) -> Floats:
    """Weighted sums of variances, of shape (goals,), from the precisions of parts; infinite where one is needed."""
    variance = np.divide(1.0, precision, out=np.zeros_like(precision), where=precision > 0)
    missing = np.asarray(goals[:, precision <= 0] > 0).any(axis=1)
    return np.where(missing, np.inf, goals @ variance)


def least_variance(program: VarianceProgram) -> LeastVariance:
    """Minimise the largest goal.

    Raises
    ------
    UndeterminedPartsError
        If a goal counts a part of which no query tells anything.
    """
    counted = program.goals.any(axis=0)
    rows = program.precisions[counted]
    if not rows.any(axis=1).all():
        raise UndeterminedPartsError("a goal counts a part that no query tells anything of")
    member = (np.arange(len(program.budgets))[:, None] == program.group).astype(np.float64)
    goals = program.goals[None, :, counted]
    spent, losses, bounds = least_largest(VariancePrograms(rows, goals, member, program.budgets, program.least))
    return LeastVariance(spent[0], float(losses[0]), float(bounds[0]))
