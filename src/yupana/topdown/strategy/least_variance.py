"""The budgets of least variance, with a bound that proves how near the least they are. Public.

Precisions of parts are sums of the budgets, lambda = M w; a goal is a weighted sum of the parts' variances 1/lambda;
the loss is the largest goal. It is convex in w. Derivation and proof of the bound: docs/strategies.md.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Floats

_NEAR: Final = 1e-9
_SHARPEST: Final = 1e12
_STEPS: Final = 60
_SMALL_FALL: Final = 1e-4
"""Below it Newton's steps are safe, and what they gain is lost in rounding."""


class UndeterminedPartsError(ValueError):
    """Goals need parts of a histogram that no query can tell, whatever the budgets."""


@dataclass(frozen=True, slots=True, eq=False)
class VarianceProgram:
    """What is to be minimised over budgets w, and under which limits.

    Attributes
    ----------
    precisions : ndarray of float64, shape (parts, queries)
        M: the precision that a part has from each unit of budget of a query; not negative.
    goals : ndarray of float64, shape (goals, parts)
        How much each goal counts the variance of each part; not negative, and no goal is 0 throughout.
    group : ndarray of int64, shape (queries,)
        Which of the sums of `budgets` the budget of a query is part of.
    budgets : ndarray of float64, shape (groups,)
        What the budgets of the queries of a group sum to.
    least : ndarray of float64, shape (queries,)
        What each query has at least; in every group less than its budget in all.
    """

    precisions: Floats
    goals: Floats
    group: NDArray[np.int64]
    budgets: Floats
    least: Floats

    def values(self, spent: Floats) -> Floats:
        """The goals at these budgets, of shape (goals,); infinite where one counts a part without precision."""
        return goal_values(self.goals, self.precisions @ spent)

    def bound(self, spent: Floats, weights: Floats) -> float:
        """Bound the loss of all budgets within the limits from below, by any budgets and weights of the goals.

        Parameters
        ----------
        spent : ndarray of float64, shape (queries,)
            Every part that a goal counts has a precision.
        weights : ndarray of float64, shape (goals,)
            Not negative, of sum 1.
        """
        counted = weights @ self.goals
        precision = self.precisions @ spent
        variance = np.divide(1.0, precision, out=np.zeros_like(precision), where=counted > 0)
        slope = self.precisions.T @ (counted * variance**2)
        rest = self.budgets - np.bincount(self.group, self.least, len(self.budgets))
        steepest = np.zeros(len(self.budgets))
        np.maximum.at(steepest, self.group, slope)
        return float((counted @ variance) ** 2 / (slope @ self.least + rest @ steepest))


@dataclass(frozen=True, slots=True, eq=False)
class LeastVariance:
    """Budgets, their loss, and what no budgets can be below.

    Attributes
    ----------
    spent : ndarray of float64, shape (queries,)
    loss : float
        The largest goal.
    bound : float
        At most the loss of any budgets within the limits.
    """

    spent: Floats
    loss: float
    bound: float

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
    """Minimise the largest goal by Newton steps along the central path, until the bound is met.

    Raises
    ------
    UndeterminedPartsError
        If a goal counts a part of which no query tells anything.
    """
    counted = program.goals.any(axis=0)
    rows = program.precisions[counted]
    if not rows.any(axis=1).all():
        raise UndeterminedPartsError("a goal counts a part that no query tells anything of")
    count = np.bincount(program.group, minlength=len(program.budgets))
    rest = program.budgets - np.bincount(program.group, program.least, len(program.budgets))
    spent = program.least + (rest / count)[program.group]
    scale = float(program.values(spent).max())
    goals = program.goals[:, counted] / scale
    equal = (np.arange(len(program.budgets))[:, None] == program.group).astype(np.float64)
    top = 2.0
    sharpness = 1.0
    best = LeastVariance(spent, scale, 0.0)
    bound = 0.0
    while sharpness <= _SHARPEST:
        spent, top = _centred(rows, goals, equal, program.least, spent, top, sharpness)
        above = spent - program.least
        # Rounding errors of many steps would spend more than there is.
        spent = program.least + above * (rest / (equal @ above))[program.group]
        values = program.values(spent)
        slack = 1 / np.maximum(top - values / scale, 1e-15)
        bound = max(bound, program.bound(spent, slack / slack.sum()))
        loss = min(best.loss, float(values.max()))
        best = LeastVariance(spent if loss < best.loss else best.spent, loss, bound)
        if best.gap <= _NEAR:
            break
        sharpness *= 6
    if best.gap > _NEAR and len(goals) > 1:
        bound = max(bound, program.bound(best.spent, _weights(program, best)))
    return LeastVariance(best.spent, best.loss, bound)


def _weights(program: VarianceProgram, best: LeastVariance) -> Floats:
    """Weights of the goals that make the bound at these budgets large, by a linear program of the goals' tangents.

    The bound is at least 2 v - d, with v the weighted goal and d what the bound divides by, at a loss of 1.
    """
    from scipy import optimize  # noqa: PLC0415 (half a second, and not every command needs it)

    precision = program.precisions @ best.spent
    counted = program.goals.any(axis=0)
    rows, goals = program.precisions[counted], program.goals[:, counted] / best.loss
    precision = precision[counted]
    groups = len(program.budgets)
    rest = program.budgets - np.bincount(program.group, program.least, groups)
    slopes = rest[program.group, None] * (rows.T @ (goals / precision**2).T)
    cost = program.least @ (rows.T @ (goals / precision**2).T) - 2 * (goals @ (1 / precision))
    steepest = -(np.arange(groups) == program.group[:, None]).astype(np.float64)
    found = optimize.linprog(
        np.append(cost, np.ones(groups)),
        A_ub=np.hstack([slopes, steepest]),
        b_ub=np.zeros(len(slopes)),
        A_eq=np.append(np.ones(len(goals)), np.zeros(groups))[None],
        b_eq=[1.0],
        bounds=(0, None),
    )
    weights = np.maximum(found.x[: len(goals)], 0) if found.x is not None else np.ones(len(goals))
    scaled: Floats = weights / weights.sum()
    return scaled


def _centred(
    rows: Floats, goals: Floats, equal: Floats, least: Floats, spent: Floats, top: float, sharpness: float
) -> tuple[Floats, float]:
    """Minimise sharpness * top - sum of log(top - goals) - sum of log(spent - least), budgets in all held."""

    def room(budgets: Floats, above: float) -> Floats:
        """What must stay positive: of each goal below the top, and of each query above its least."""
        if budgets.min() <= 0:
            return np.zeros(1)
        return np.append(above - goals @ (1 / (rows @ budgets)), budgets - least)

    queries, groups = len(spent), len(equal)
    for _ in range(_STEPS):
        # Steps are taken in multiples of what a query has above its least, which makes the equations well scaled.
        unit = np.append(spent - least, 1.0)
        precision = rows @ spent
        slopes = -(goals / precision**2) @ rows
        slack = 1 / (top - goals @ (1 / precision))
        leaning = np.hstack([slopes, -np.ones((len(goals), 1))]) * slack[:, None]
        gradient = leaning.sum(axis=0)
        gradient[:-1] -= 1 / unit[:-1]
        gradient[-1] += sharpness
        curve = leaning.T @ leaning
        curve[:-1, :-1] += rows.T @ ((2 * (slack @ goals) / precision**3)[:, None] * rows)
        curve *= unit[:, None] * unit
        curve[:-1, :-1] += np.eye(queries)
        held = np.hstack([equal, np.zeros((groups, 1))]) * unit
        system = np.block([[curve, held.T], [held, np.zeros((groups, groups))]])
        right = np.append(-gradient * unit, np.zeros(groups))
        size = 1 / np.sqrt(np.maximum(np.abs(np.diag(system)), 1e-300))
        size[queries + 1 :] = 1.0
        step = (np.linalg.lstsq(system * size[:, None] * size, right * size, rcond=None)[0] * size)[: queries + 1]
        fall = -float(gradient * unit @ step)
        if fall <= 1e-12:
            break
        here, length = room(spent, top), 1.0
        while length > 1e-12:
            budgets, above = spent + length * step[:-1] * unit[:-1], top + length * step[-1]
            there = room(budgets, above)
            # As a difference, for at the end the heights themselves have too few digits to tell.
            if there.min() > 0 and (
                fall < _SMALL_FALL or sharpness * (above - top) - np.log(there / here).sum() <= -0.1 * length * fall
            ):
                break
            length /= 2
        else:
            break
        spent, top = budgets, float(above)
    return spent, top
