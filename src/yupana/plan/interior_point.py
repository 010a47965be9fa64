"""The method by which budgets of least variance are found, for many programs at once. Public.

A primal-dual interior point method for the least of the largest goal. It moves shares of what there is above the least,
and the weights of the goals with which the bound of docs/strategies.md is taken; until it ends, the goals need not be
below their top. Every step is reckoned in multiples of the shares, which makes its equations well scaled.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from yupana.arrays import Flags, Floats

_NEAR: Final = 1e-10
_STEPS: Final = 100
_CENTRE: Final = 0.1
_TO_THE_EDGE: Final = 0.95
_SMALLEST: Final = 1e-14
"""What a limit still costs, of a largest goal that is 1 at equal shares: less is lost in rounding."""


@dataclass(frozen=True, slots=True, eq=False)
class VariancePrograms:
    """Programs that differ in their goals alone.

    Attributes
    ----------
    rows : ndarray of float64, shape (parts, queries)
        The precision that a part has from each unit of budget; every part has some.
    goals : ndarray of float64, shape (programs, goals, parts)
        Not negative.
    member : ndarray of float64, shape (groups, queries)
        1 where the budget of a query is part of that of a group, else 0.
    budgets : ndarray of float64, shape (groups,)
    least : ndarray of float64, shape (queries,)
        In every group less than its budget in all.
    """

    rows: Floats
    goals: Floats
    member: Floats
    budgets: Floats
    least: Floats

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
