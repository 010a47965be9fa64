"""Groups whose table is chosen by a noisy total: every outcome of both stages, and no neighbours told better."""

from collections.abc import Iterator
from fractions import Fraction
from functools import cache, partial
from itertools import permutations
from typing import Final

import numpy as np
import pytest

from yupana.arrays import Floats
from yupana.plan.exact_loss import Change, delta_exact
from yupana.plan.measurement import Measurement, Mechanism, Sensitivity
from yupana.plan.plan import Neighbours, Plan
from yupana.privacy.laws import Law

CHANGES: Final[tuple[Change, ...]] = ("unbounded", "bounded")
EPSILONS: Final[dict[Change, tuple[float, ...]]] = {"unbounded": (0.3, 2.0), "bounded": (2.0,)}
THRESHOLDS = (1, 3)
"""Of the noisy total: below the first a group has a table of one cell, then of two, then of three."""

REACH = 20
CUT = 1e-6
"""More than the chance of the noise beyond the reach."""

Cells = tuple[int, int, int]
"""The counts of a group of two stages."""


def planned(mechanism: Mechanism, budget: Fraction, groups: int) -> Plan:
    """A record is in at most so many groups of a level; a third of the budget is for the totals that choose."""
    moves = Sensitivity(Fraction(groups), Fraction(2 * groups))
    parts = {"total": ("level:two", Fraction(1, 3)), "cells": ("level:two", Fraction(2, 3)), "alone": ("level:one", 1)}
    measurements = tuple(
        Measurement(name, name, "l", 1, mechanism, moves.unbounded, moves, moves, budget * part, where, by_one=True)
        for name, (where, part) in parts.items()
    )
    return Plan("p", "record", Neighbours.UNBOUNDED, "tight", Fraction(9, 10), mechanism, measurements)


def noise(law: Law) -> Floats:
    found = np.array([law.pmf(k) for k in range(-REACH, REACH + 1)])
    return found / found.sum()


def outcomes(plan: Plan, counts: Cells) -> Floats:
    """The chance of every outcome of the noisy total and of the table that it chooses."""
    total, cells = (noise(plan[name].law) for name in ("total", "cells"))

    def shifted(law: Floats, by: int) -> Floats:
        return np.concatenate([np.zeros(by), law[: len(law) - by]])

    first, found = shifted(total, sum(counts)), []
    for chosen, table in enumerate(((sum(counts),), (counts[0] + counts[1], counts[2]), counts)):
        low = -REACH if chosen == 0 else THRESHOLDS[chosen - 1]
        high = REACH + 1 if chosen == 2 else THRESHOLDS[chosen]
        outcome = first[low + REACH : high + REACH]
        for count in table:
            outcome = np.multiply.outer(outcome, shifted(cells, count)).ravel()
        found.append(outcome)
    return np.concatenate(found)


def with_one_more(cells: Cells, place: int) -> Cells:
    one, two, three = (count + (place == i) for i, count in enumerate(cells))
    return one, two, three


def neighbours(of: tuple[Cells, ...]) -> Iterator[tuple[Change, Cells, Cells]]:
    for cells in of:
        more = [with_one_more(cells, place) for place in range(3)]
        for one in more:
            yield "unbounded", one, cells
            yield "unbounded", cells, one
        for here, there in permutations(more, 2):
            yield "bounded", here, there


def delta_between(one: Floats, other: Floats, epsilon: float) -> float:
    return float(np.maximum(one - np.exp(epsilon) * other, 0).sum())


@pytest.mark.parametrize(
    "of", [((1, 0, 2),), pytest.param(((0, 0, 0), (1, 0, 2)), marks=pytest.mark.thorough)], ids=["one", "both"]
)
@pytest.mark.parametrize(("mechanism", "budget"), [(Mechanism.ZCDP, Fraction(1, 2)), (Mechanism.PURE, Fraction(3))])
def test_what_the_first_stage_chooses_is_told_no_better(
    mechanism: Mechanism, budget: Fraction, of: tuple[Cells, ...]
) -> None:
    plan = planned(mechanism, budget, 1)
    at_most = {(kind, e): delta_exact(plan, e, kind) for kind in CHANGES for e in EPSILONS[kind]}
    worst = dict.fromkeys(CHANGES, 0.0)
    outcomes_of = cache(partial(outcomes, plan))
    for kind, here, there in neighbours(of):
        one, other = outcomes_of(here), outcomes_of(there)
        for epsilon in EPSILONS[kind]:
            bound = at_most[kind, epsilon]
            assert bound is not None
            found = delta_between(one, other, epsilon)
            assert found <= bound * (1 + 1e-6) + CUT
            worst[kind] = max(worst[kind], found / bound)
    assert worst["unbounded"] > 0.8
    assert worst["bounded"] > 0.2


def test_a_record_that_leaves_one_kind_of_group_for_the_other() -> None:
    """One total alone in place of two stages: either, or one of each."""
    plan = planned(Mechanism.ZCDP, Fraction(1, 2), 1)
    alone, (total, cells) = noise(plan["alone"].law), (noise(plan[name].law) for name in ("total", "cells"))

    def moved(law: Floats) -> tuple[Floats, Floats]:
        return np.append(law, 0.0), np.insert(law, 0, 0.0)

    one, other = np.ones(1), np.ones(1)
    for law in (alone, total, cells):
        here, there = moved(law)
        one, other = np.multiply.outer(one, here).ravel(), np.multiply.outer(other, there).ravel()
    for epsilon in (0.5, 1.5):
        at_most = delta_exact(plan, epsilon, "bounded")
        assert at_most is not None
        assert 0.3 * at_most < delta_between(one, other, epsilon) <= at_most * (1 + 1e-6) + CUT
