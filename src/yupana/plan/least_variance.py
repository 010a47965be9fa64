"""The budgets of least variance, with a bound that proves how near the least they are. Public.

Precisions of parts are sums of the budgets, lambda = M w; a goal is a weighted sum of the parts' variances 1/lambda;
the loss is the largest goal. It is convex in w. Derivation and proof of the bound: docs/strategies.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Floats
from yupana.plan.interior_point import VariancePrograms, least_largest


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


@dataclass(frozen=True, slots=True, eq=False)
class LeastSums:
    """Budgets for each of several goals.

    Attributes
    ----------
    spent : ndarray of float64, shape (sums, queries)
    losses : ndarray of float64, shape (sums,)
        What each is with its budgets.
    bounds : ndarray of float64, shape (sums,)
        At most what each is with any budgets within the limits.
    """

    spent: Floats
    losses: Floats
    bounds: Floats


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
    found = _least([program.goals], program)
    return LeastVariance(found.spent[0], float(found.losses[0]), float(found.bounds[0]))


def least_sums(program: VarianceProgram, weights: Floats) -> LeastSums:
    """Minimise weighted sums of the goals, all together: many times faster than one after another.

    Parameters
    ----------
    program : VarianceProgram
    weights : ndarray of float64, shape (sums, goals)
        Not negative, and in no sum 0 throughout.

    Raises
    ------
    UndeterminedPartsError
        If a sum counts a part of which no query tells anything.
    """
    return _least((weights @ program.goals)[:, None], program)


def _least(goals: Sequence[Floats] | Floats, program: VarianceProgram) -> LeastSums:
    counted = np.any(goals, axis=(0, 1))
    rows = program.precisions[counted]
    if not rows.any(axis=1).all():
        raise UndeterminedPartsError("a goal counts a part that no query tells anything of")
    member = (np.arange(len(program.budgets))[:, None] == program.group).astype(np.float64)
    programs = VariancePrograms(rows, np.asarray(goals)[:, :, counted], member, program.budgets, program.least)
    return LeastSums(*least_largest(programs))
