"""Budgets of least variance for many weighted sums at once, as a frontier of two answers needs them. Public.

Each is a `VarianceProgram` of one goal and one budget. All take the steps of a primal-dual interior point method
together, which is many times faster than one after another.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from yupana.arrays import Flags, Floats
from yupana.topdown.strategy.least_variance import UndeterminedPartsError

_STEPS: Final = 80
_NEAR: Final = 1e-10
_SHORTEST: Final = 1e-6
_SMALLEST: Final = 1e-14
"""What a share's limit still costs, of a goal that is 1 at equal shares: less is lost in rounding."""


@dataclass(frozen=True, slots=True, eq=False)
class LeastSums:
    """Budgets for each of several goals.

    Attributes
    ----------
    spent : ndarray of float64, shape (goals, queries)
    losses : ndarray of float64, shape (goals,)
        What each goal is with its budgets.
    bounds : ndarray of float64, shape (goals,)
        At most what each goal is with any budgets within the limits (docs/strategies.md).
    """

    spent: Floats
    losses: Floats
    bounds: Floats


@dataclass(frozen=True, slots=True, eq=False)
class _Sums:
    """Goals as functions of shares of what there is above the least; all of shape (goals, ...)."""

    rows: Floats
    goals: Floats
    least: Floats

    def of(self, chosen: Flags) -> "_Sums":
        """Some of the goals."""
        return _Sums(self.rows, self.goals[chosen], self.least)

    def at(self, shares: Floats) -> tuple[Floats, Floats]:
        """Precisions of parts, and slopes."""
        precision = shares @ self.rows.T + self.least
        return precision, -(self.goals / precision**2) @ self.rows

    def residual(self, shares: Floats, level: Floats, slack: Floats, centre: Floats) -> Floats:
        """How far from the conditions of the optimum, as one number of each goal."""
        _, slope = self.at(shares)
        stationary = shares * (slope + level - slack)
        size: Floats = np.sqrt((stationary**2).sum(axis=1) + ((shares * slack - centre) ** 2).sum(axis=1))
        return size


def least_sums(precisions: Floats, goals: Floats, budget: float, least: Floats) -> LeastSums:
    """Minimise each goal.

    Parameters
    ----------
    precisions, goals
        As of `VarianceProgram`.
    budget : float
        What the budgets sum to.
    least : ndarray of float64, shape (queries,)
        Its sum is less than the budget.

    Raises
    ------
    UndeterminedPartsError
        If a goal counts a part of which no query tells anything.
    """
    counted = goals.any(axis=0)
    rows = precisions[counted]
    if not rows.any(axis=1).all():
        raise UndeterminedPartsError("a goal counts a part that no query tells anything of")
    rest = budget - float(least.sum())
    shares = np.full((len(goals), rows.shape[1]), 1 / rows.shape[1])
    scale = goals[:, counted] @ (1 / (rows @ (least + rest * shares[0])))
    sums = _Sums(rest * rows, goals[:, counted] / scale[:, None], rows @ least)
    _, slope = sums.at(shares)
    level = -slope.min(axis=1, keepdims=True) + 1e-3 * np.abs(slope).max(axis=1, keepdims=True)
    slack = slope + level
    far = np.ones(len(goals), dtype=np.bool_)
    for _ in range(_STEPS):
        shares[far], level[far], slack[far] = _step(sums.of(far), shares[far], level[far], slack[far])
        precision, slope = sums.at(shares)
        # What any shares are at least, by the slopes here.
        value = (sums.goals / precision).sum(axis=1)
        bound = value**2 / ((sums.goals * sums.least / precision**2).sum(axis=1) - slope.min(axis=1))
        far = value > bound * (1 + _NEAR)
        if not far.any():
            break
    return LeastSums(least + rest * shares, value * scale, bound * scale)


def _step(sums: _Sums, shares: Floats, level: Floats, slack: Floats) -> tuple[Floats, Floats, Floats]:
    """Take a step towards the optimum of every goal, in multiples of its shares, which makes it well scaled."""
    count = shares.shape[1]
    centre = np.maximum(0.1 * (shares * slack).mean(axis=1, keepdims=True), _SMALLEST)
    precision, slope = sums.at(shares)
    scaled = sums.rows[None] * shares[:, None, :]
    curve = scaled.transpose(0, 2, 1) @ ((2 * sums.goals / precision**3)[:, :, None] * scaled)
    system = np.zeros((len(shares), count + 1, count + 1))
    system[:, :count, :count] = curve
    system[:, range(count), range(count)] += shares * slack
    system[:, :count, count] = system[:, count, :count] = shares
    right = np.append(-shares * (slope + level) + centre, np.zeros((len(shares), 1)), axis=1)
    found = np.linalg.solve(system, right[:, :, None])[:, :, 0]
    move, rise = found[:, :count], found[:, count:]
    fall = centre / shares - slack - slack * move
    length = np.minimum(1.0, 0.95 / np.maximum(-move, -fall / slack).max(axis=1, keepdims=True, initial=0.95))
    before = sums.residual(shares, level, slack, centre)
    while True:
        there = shares * (1 + length * move), level + length * rise, slack + length * fall
        worse = sums.residual(*there, centre) > before * (1 - 0.01 * length[:, 0])
        if not worse.any() or length[worse].min() < _SHORTEST:
            return there
        length[worse] /= 2
