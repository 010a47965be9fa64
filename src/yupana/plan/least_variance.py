"""The budgets of least variance, with a bound that proves how near the least they are. Public.

Precisions of parts are sums of the budgets, lambda = M w; a goal is a weighted sum of the parts' variances 1/lambda;
the loss is the largest goal. It is convex in w, and clarabel minimises it as a conic program. Derivation and proof of
the bound: docs/strategies.md.
"""

from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Floats

_NEAR: Final = 1e-10
_ROUNDS: Final = 2
"""How often it is solved: in the units of equal shares, and again in those of what was found."""

_SMALLEST: Final = 1e-15
"""Shares, weights and slopes that are not found to be above it, or not found at all, are taken to be that."""


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

    def bound(self, variances: Floats, weights: Floats) -> float:
        """What the loss is at least, by any variances of parts, and any weights of goals, of sum 1; none is below 0."""
        counted = weights @ self.goals
        slope = (counted * variances**2) @ self.precisions
        steepest = (slope * self.member).max(axis=1)
        return float((counted * variances).sum() ** 2 / (slope @ self.least + steepest @ self.rest))


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


def least_variance(program: VarianceProgram) -> LeastVariance:
    """Minimise the largest goal.

    Raises
    ------
    UndeterminedPartsError
        If a goal counts a part of which no query tells anything.
    """
    counted = program.goals.any(axis=0)
    program = replace(program, precisions=program.precisions[counted], goals=program.goals[:, counted])
    if not program.precisions.any(axis=1).all():
        raise UndeterminedPartsError("a goal counts a part that no query tells anything of")
    equal = program.spent(np.ones(len(program.least)))
    best = LeastVariance(equal, float(program.values(equal).max()), 0.0)
    for _ in range(_ROUNDS):
        # The solver is exact where precisions and the largest goal are about 1.
        precision = program.precisions @ best.spent
        goals = program.goals / precision / best.loss
        scaled = replace(program, precisions=program.precisions / precision[:, None], goals=goals)
        shares, variances, weights = _solve(scaled)
        spent, bound = program.spent(shares), best.loss * scaled.bound(variances, weights)
        found = LeastVariance(spent, float(program.values(spent).max()), max(bound, best.bound))
        best = found if found.loss < best.loss else best._replace(bound=found.bound)
    return best


def _solve(program: VarianceProgram) -> tuple[Floats, Floats, Floats]:
    """Shares of the rest, and the variances of parts and weights of goals that bound the loss most.

    Over shares x, variances v and the largest goal t it minimises t with a_g v <= t and v lambda(x) >= 1, which is
    the cone |(lambda - v, 2)| <= lambda + v.
    """
    import clarabel  # noqa: PLC0415 (few commands need it)
    from scipy import sparse  # noqa: PLC0415 (the same)

    (goals, parts), (groups, queries) = program.goals.shape, program.member.shape
    rows, identity = program.precisions * (program.rest @ program.member), np.eye(parts)
    linear = np.append(np.zeros(queries + parts), 1.0)
    cone = np.zeros((parts, 3, len(linear)))
    cone[:, 0] = np.hstack([-rows, -identity, np.zeros((parts, 1))])
    cone[:, 1] = np.hstack([-rows, identity, np.zeros((parts, 1))])
    matrix = np.vstack(
        [
            np.hstack([program.member, np.zeros((groups, parts + 1))]),
            np.hstack([np.zeros((goals, queries)), program.goals, np.full((goals, 1), -1.0)]),
            -np.eye(queries, len(linear)),
            cone.reshape(-1, len(linear)),
        ]
    )
    least = program.precisions @ program.least
    in_cone = np.stack([least, least, np.full(parts, 2.0)], axis=1)
    right = np.concatenate([np.ones(groups), np.zeros(goals + queries), in_cone.ravel()])
    cones = [clarabel.ZeroConeT(groups), clarabel.NonnegativeConeT(goals + queries)]
    cones += [clarabel.SecondOrderConeT(3)] * parts
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = _NEAR
    nothing = sparse.csc_matrix((len(linear), len(linear)))
    found = clarabel.DefaultSolver(nothing, linear, sparse.csc_matrix(matrix), right, cones, settings).solve()
    # Whatever it has found, even nothing, the loss and the bound are of what is made of it.
    shares, duals = (np.nan_to_num(np.array(of)) for of in (found.x[:queries], found.z))
    weights = np.maximum(duals[groups : groups + goals], _SMALLEST)
    weights /= weights.sum()
    in_cone = duals[groups + goals + queries :].reshape(parts, 3)
    slopes, counted = np.maximum(in_cone[:, 0] + in_cone[:, 1], _SMALLEST), weights @ program.goals
    return np.maximum(shares, _SMALLEST), np.sqrt(slopes / counted), weights
