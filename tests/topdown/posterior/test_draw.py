"""The chain against the posterior itself, which can be enumerated where a parent has few people."""

from collections.abc import Iterator
from itertools import product
from math import lgamma, log

import numpy as np
import pytest
from numpy.typing import NDArray

from yupana.topdown.descent.divide import Siblings, Terms
from yupana.topdown.posterior.learning import draw
from yupana.topdown.posterior.siblings import THETA, Posed, Prior, PublicLists, classes, flat, pose
from yupana.topdown.rounding.program import Limit

CELLS = np.arange(4, dtype=np.int32)
GROUPS = np.array([0, 0, 1, 2], dtype=np.int32)
PARENT = np.array([3, 1, 2, 1])
CHILDREN = 3


def posed(
    *,
    seed: int,
    kinds: NDArray[np.int32] | None = None,
    lower: list[list[int]] | None = None,
    upper: list[list[int]] | None = None,
    totals: list[int] | None = None,
    joint: tuple[tuple[tuple[int, ...], int], ...] = (),
) -> Posed:
    """A parent of seven people whose three children were measured with noise."""
    random = np.random.default_rng(seed)
    family = Siblings(
        PARENT,
        CHILDREN,
        ((None,),),
        () if kinds is None else (Limit(kinds, np.array(lower), np.array(upper)),),
        None if totals is None else np.array(totals),
        joint,
    )
    labels = (np.zeros(4, dtype=np.int32), GROUPS, CELLS)
    answers = tuple(random.normal(1.5, 1.5, (CHILDREN, 1 + int(of.max()))) for of in labels)
    weights = random.uniform(0.1, 0.6, (CHILDREN, 3))
    facilities = None if kinds is None else np.array([[1], [0], [2]])
    places = PublicLists(np.array([3, 0, 9]), facilities)
    return pose(family, Terms(labels, answers, weights, ()), range(3), GROUPS, places)


def prior_of(kinds: int = 1) -> Prior:
    """Lumpy, so that a wrong use of it shows."""
    random = np.random.default_rng(5)
    density = (
        flat(classes(kinds))
        * random.uniform(0.2, 2.0, (classes(kinds), 1 + len(THETA) // 40)).repeat(40, axis=1)[:, : len(THETA)]
    )
    return Prior(density / density.sum(axis=1, keepdims=True), 2.0, 5.0)


def divisions(count: int) -> list[tuple[int, ...]]:
    return [of for of in product(range(count + 1), repeat=CHILDREN) if sum(of) == count]


def states(question: Posed) -> Iterator[NDArray[np.int64]]:
    """All counts of the children that sum to the parent."""
    for columns in product(*(divisions(int(count)) for count in question.parent)):
        yield np.array(columns).T


def log_density(counts: NDArray[np.int64], question: Posed, prior: Prior) -> float:
    """The logarithm of the posterior, up to a constant, written down from docs/topdown-posterior.md."""
    asked, parent = question.asked, question.parent
    found = -0.5 * float((asked.weights[:, _query_of(question)] * question.residual(counts) ** 2).sum())
    for child, row in enumerate(counts):
        for kind in range(asked.lower.shape[1]):
            mine = asked.kind == kind
            people, base = int(row[mine].sum()), question.base[child, kind]
            if asked.upper[child, kind] == 0:
                continue
            density = prior.density[question.klass[child, kind]]
            rate = base * THETA
            found += log(float((density * np.exp(people * np.log(rate) - rate)).sum()))
            groups = np.unique(asked.group[mine])
            found -= lgamma(people + prior.between)
            for group in groups:
                cells = asked.group == group
                share = parent[cells].sum() / parent[mine].sum()
                held = int(row[cells].sum())
                found += lgamma(held + prior.between * share) - lgamma(held + prior.within)
                for cell in np.flatnonzero(cells):
                    part = prior.within * parent[cell] / parent[cells].sum()
                    found += lgamma(row[cell] + part) - lgamma(row[cell] + 1)
    return found


def _query_of(question: Posed) -> NDArray[np.int64]:
    """The query of each answer."""
    query = np.zeros(question.answers.shape[1], dtype=np.int64)
    for q, place in enumerate(question.asked.place.T):
        query[place] = q
    return query


def enumerated(question: Posed, prior: Prior, allowed: list[NDArray[np.int64]]) -> tuple[NDArray[np.float64], float]:
    """Posterior means, and the variance of the first child's total."""
    logs = np.array([log_density(counts, question, prior) for counts in allowed])
    chance = np.exp(logs - logs.max())
    chance /= chance.sum()
    means = np.einsum("s,sij->ij", chance, np.array(allowed, dtype=np.float64))
    first = np.array([counts[0].sum() for counts in allowed])
    return means, float(chance @ first**2 - (chance @ first) ** 2)


def compare(question: Posed, prior: Prior, allowed: list[NDArray[np.int64]], sweeps: int = 40_000) -> None:
    expected, variance = enumerated(question, prior, allowed)
    drawn = draw(question, prior, allowed[0], (100, sweeps), (7,), learning=False)
    assert np.array_equal(drawn.sums.sum(axis=0), sweeps * question.parent)
    assert np.abs(drawn.means - expected).max() < 0.02
    assert drawn.totals[:, 0].var() == pytest.approx(variance, rel=0.05)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_means_are_those_of_the_enumerated_posterior(seed: int) -> None:
    question = posed(seed=seed)
    compare(question, prior_of(), list(states(question)))


@pytest.mark.slow
def test_a_wrong_prior_would_show() -> None:
    question, prior = posed(seed=1), prior_of()
    expected, _ = enumerated(question, prior, list(states(question)))
    other = Prior(prior.density, prior.between * 3.0, prior.within)
    assert np.abs(enumerated(question, other, list(states(question)))[0] - expected).max() > 0.04


def test_people_in_quarters_stay_where_there_are_some_and_bounds_hold() -> None:
    kinds = np.array([0, 0, 0, 1], dtype=np.int32)
    lower, upper = [[0, 0], [0, 0], [1, 0]], [[9, 9], [3, 0], [5, 9]]
    question = posed(seed=4, kinds=kinds, lower=lower, upper=upper)
    allowed = [of for of in states(question) if _within(of, kinds, lower, upper)]
    assert 100 < len(allowed) < len(list(states(question)))
    compare(question, prior_of(2), allowed)


@pytest.mark.thorough
def test_bounds_that_leave_no_single_move_leave_swaps() -> None:
    kinds = np.zeros(4, dtype=np.int32)
    tight = [[2], [2], [3]]
    question = posed(seed=5, kinds=kinds, lower=tight, upper=tight)
    allowed = [of for of in states(question) if of.sum(axis=1).tolist() == [2, 2, 3]]
    compare(question, prior_of(), allowed, sweeps=80_000)


@pytest.mark.thorough
def test_known_totals_are_kept_by_swaps() -> None:
    question = posed(seed=6, totals=[2, 4, 1])
    assert question.swaps == 1
    compare(question, prior_of(), [of for of in states(question) if of.sum(axis=1).tolist() == [2, 4, 1]])


def test_totals_known_together_are_kept() -> None:
    question = posed(seed=7, joint=(((0, 2), 4),))
    allowed = [of for of in states(question) if of[[0, 2]].sum() == 4]
    compare(question, prior_of(), allowed)


def _within(
    counts: NDArray[np.int64], kinds: NDArray[np.int32], lower: list[list[int]], upper: list[list[int]]
) -> bool:
    people = np.stack([counts[:, kinds == kind].sum(axis=1) for kind in range(len(lower[0]))], axis=1)
    return bool((people >= lower).all() and (people <= upper).all())


def test_the_same_stream_draws_the_same_and_another_does_not() -> None:
    question, prior = posed(seed=1), prior_of()
    start = next(states(question))
    one, same, other = (draw(question, prior, start, (1, 30), (seed,), learning=True) for seed in (3, 3, 4))
    assert np.array_equal(one.sums, same.sums)
    assert np.array_equal(one.held, same.held)
    assert not np.array_equal(one.totals, other.totals)
    assert one.held.sum() == pytest.approx(30 * CHILDREN)
