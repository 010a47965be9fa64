"""The rounder of nodes that cannot sum to their parent, against every possible rounding."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from yupana.topdown.node.problem import InfeasibleNode
from yupana.topdown.rounding.program import Limit
from yupana.topdown.rounding.rounding import Rounding, round_failsafe


def answers(values: NDArray, labels: NDArray) -> NDArray:
    return values @ (labels[:, None] == np.arange(4))


def distances(estimate: NDArray, counts: NDArray, passes: tuple) -> list:
    part = estimate - np.floor(estimate)
    up = counts - np.floor(estimate)
    return [
        sum(
            abs(up - part).sum()
            if labels is None
            else abs(answers(up, labels) - np.floor(answers(part, labels) + 0.5 + 1e-6)).sum()
            for labels in queries
        )
        for queries in passes
    ]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1))
@pytest.mark.slow
def test_the_first_pass_reaches_the_best_of_all_roundings(seed: int) -> None:
    r = np.random.default_rng(seed)
    k, m = int(r.integers(1, 4)), int(r.integers(2, 4))
    groups = r.integers(0, 2, m).astype(np.int32)
    parent = r.integers(0, 6, m)
    # Children that keep the parent's total, but not the cells.
    estimate = r.dirichlet(np.ones(k * m)).reshape(k, m) * parent.sum()
    missed = abs(parent - estimate.sum(axis=0)).sum() - r.random()
    total = answers(estimate, groups)
    lower, upper = np.floor(total).astype(int), np.ceil(total).astype(int)
    passes = ((np.zeros(m, dtype=np.int32),), (groups, None))
    allowed = []
    for ups in product((0, 1), repeat=k * m):
        counts = np.floor(estimate).astype(int) + np.array(ups).reshape(k, m)
        found = answers(counts, groups)
        if (
            (counts[estimate == np.floor(estimate)] == estimate[estimate == np.floor(estimate)]).all()
            and counts.sum() == parent.sum()
            and (found >= lower).all()
            and (found <= upper).all()
            and abs(parent - counts.sum(axis=0)).sum() <= missed + 1 + 1e-6
        ):
            allowed.append(distances(estimate, counts, passes))
    counts = round_failsafe(estimate, Rounding(parent, passes, (Limit(groups, lower, upper),)), missed)
    found = answers(counts, groups)
    assert counts.sum() == parent.sum()
    assert (found >= lower).all()
    assert (found <= upper).all()
    assert (counts >= 0).all()
    assert abs(parent - counts.sum(axis=0)).sum() <= missed + 1 + 1e-6
    if allowed:
        assert (abs(counts - estimate) < 1).all()
        assert distances(estimate, counts, passes)[0] == pytest.approx(min(allowed)[0], abs=1e-5)
        same = [b for a, b in allowed if a == min(allowed)[0]]
        assert distances(estimate, counts, passes)[1] >= min(same) - 1e-5


def test_counts_go_beyond_floor_and_ceiling_where_they_must() -> None:
    """The first child must have three more than its ceiling."""
    estimate = np.array([[1.5, 0.5], [4.0, 4.0]])
    lower = np.array([[6], [0]])
    groups = np.zeros(2, dtype=np.int32)
    rounding = Rounding(np.array([6, 4]), ((None,),), (Limit(groups, lower, lower + 99),))
    counts = round_failsafe(estimate, rounding, 1.0)
    assert counts.sum() == 10
    assert counts[0].sum() == 6


def test_an_impossible_node_is_told() -> None:
    groups = np.zeros(2, dtype=np.int32)
    rounding = Rounding(np.ones(2, dtype=int), (), (Limit(groups, np.array([[3]]), np.array([[9]])),))
    with pytest.raises(InfeasibleNode):
        round_failsafe(np.ones((1, 2)), rounding, 0.0)


def test_the_overall_total_is_kept() -> None:
    counts = round_failsafe(np.array([[1.5, 1.5], [0.5, 0.5]]), Rounding(np.array([3, 1]), ((None,),)), 2.0)
    assert counts.sum() == 4


def test_integers_that_keep_the_constraints_stay() -> None:
    counts = np.array([[2, 1], [0, 3]])
    out = round_failsafe(counts.astype(float), Rounding(np.array([3, 3]), ((None,),)), 2.0)
    assert (out == counts).all()


def test_joint_totals_are_kept() -> None:
    counts = np.array([[1.5, 0.5], [1.5, 0.5], [2.0, 0.0]])
    out = round_failsafe(counts, Rounding(np.array([4, 2]), ((None,),), joint=(((0, 1), 3),)), 3.0)
    assert out[:2].sum() == 3
    assert out.sum() == 6
