"""Blocks drawn from the model: what is learned of them, how far means are off, how often intervals hold."""

from dataclasses import replace

import numpy as np
import pytest
from modelled_blocks import BETWEEN, PLANS, WITHIN, Drawn, learned, parent
from numpy.typing import NDArray

from yupana.topdown.descent.divide import Siblings, Terms
from yupana.topdown.posterior.learning import Draws, concentrations, draw, moments, restricted
from yupana.topdown.posterior.siblings import THETA, Prior, PublicLists, classes, flat, pose, smoothed


@pytest.mark.thorough
def test_concentrations_are_recovered_whatever_the_plan() -> None:
    # About the shares of twelve children themselves they are a third above those about shares unknown.
    found = []
    for plan in PLANS.values():
        random = np.random.default_rng(11)
        parents = [parent(random, plan) for _ in range(200)]
        found.append(concentrations(sum((moments(of.posed, restricted(of.terms)) for of in parents), np.zeros((2, 3)))))
    for between, within in found:
        assert BETWEEN < between < 1.5 * BETWEEN
        assert WITHIN < within < 1.7 * WITHIN
    assert found[0][0] == pytest.approx(found[1][0], rel=0.03)
    assert found[0][1] == pytest.approx(found[1][1], rel=0.1)


@pytest.mark.slow
def test_the_noise_of_detailed_answers_is_the_wrong_term() -> None:
    # With their own variance in place of that of the least squares it is far off, once totals are measured.
    random = np.random.default_rng(12)
    wrong, right = np.zeros((2, 3)), np.zeros((2, 3))
    for _ in range(150):
        of = parent(random, (0.3, 0.001, 0.03), lumpy=0.2)
        found = restricted(of.terms)
        alone = np.eye(len(of.posed.parent)) / 0.03
        right += moments(of.posed, found)
        wrong += moments(of.posed, type(found)(found.estimate, alone[None], found.profile))
    assert BETWEEN < concentrations(right)[0] < 1.5 * BETWEEN
    assert concentrations(wrong)[0] > 1.2 * concentrations(right)[0]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.thorough
def test_means_are_as_far_off_as_they_say_and_intervals_hold(plan: str) -> None:
    random = np.random.default_rng(13)
    parents = [parent(random, PLANS[plan]) for _ in range(100)]
    prior = learned(parents)
    drawn = [draw(of.posed, prior, of.start, (25, 150), (2, at), learning=False) for at, of in enumerate(parents)]
    error, spread = totals_off(parents, drawn)
    # 1,200 blocks: the mean square is known to 4 percent, a share of 0.9 to 0.9 points.
    assert np.mean(error**2) == pytest.approx(np.mean(spread**2), rel=0.12)
    assert abs(error.mean()) < 1e-9  # children sum to their parents
    assert np.mean(np.abs(error) <= 1.645 * spread) == pytest.approx(0.9, abs=0.025)
    large = np.concatenate([of.truth.sum(axis=1) for of in parents]) >= 150
    assert np.mean(error[large] ** 2) == pytest.approx(np.mean(spread[large] ** 2), rel=0.3)
    unbiased = np.concatenate([of.terms.answers[2].sum(axis=1) - of.truth.sum(axis=1) for of in parents])
    assert np.mean(error**2) < 0.7 * np.mean(unbiased**2)


def totals_off(parents: list[Drawn], drawn: list[Draws]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    error = np.concatenate(
        [of.totals.mean(axis=0) - true.truth.sum(axis=1) for of, true in zip(drawn, parents, strict=True)]
    )
    return error, np.concatenate([of.totals.std(axis=0) for of in drawn])


@pytest.mark.thorough
def test_fifty_sweeps_are_near_a_thousand() -> None:
    # People visited in the order of their blocks are far off for hundreds of sweeps: the first mistake of the study.
    random = np.random.default_rng(14)
    parents = [parent(random, PLANS["production"]) for _ in range(20)]
    prior = Prior(flat(classes(1)), BETWEEN, WITHIN)
    short = [draw(of.posed, prior, of.start, (10, 50), (3, at), learning=False) for at, of in enumerate(parents)]
    long = [draw(of.posed, prior, of.start, (100, 1000), (4, at), learning=False) for at, of in enumerate(parents)]
    change = np.concatenate([(a.totals.mean(axis=0) - b.totals.mean(axis=0)) for a, b in zip(short, long, strict=True)])
    spread = np.concatenate([of.totals.std(axis=0) for of in long])
    assert np.sqrt(np.mean(change**2)) < 0.5 * np.sqrt(np.mean(spread**2))


def test_a_block_of_thousands_is_reached_from_nothing() -> None:
    # Intensities that start at 1 hold a large block where it begins: the third mistake of the study.
    children, number = 5, 3000
    labels = np.zeros(1, dtype=np.int32)
    measured = np.array([[2950.0], [20.0], [10.0], [15.0], [5.0]])
    terms = Terms((labels,), (measured,), np.full((children, 1), 0.01), ())
    family = Siblings(np.array([number]), children, ((None,),), (), None, ())
    posed = pose(family, terms, (0,), labels, PublicLists(np.array([10, 10, 10, 10, 10]), None))
    start = np.array([[0], [750], [750], [750], [750]])
    found = draw(posed, Prior(flat(classes(1)), 10.0, 10.0), start, (25, 100), (5,), learning=False)
    assert found.means[0, 0] == pytest.approx(2950, abs=20)


@pytest.mark.thorough
def test_densities_of_large_blocks_are_no_comb_and_do_not_widen() -> None:
    # A coarse grid is a comb where N is large, and a wide kernel widens the density at every round: the second mistake.
    random = np.random.default_rng(16)
    parents = [parent(random, (0.5, 0.05, 0.5), spread=0.2) for _ in range(100)]
    prior = learned(parents)
    log_theta = np.log(THETA)
    used = np.unique(np.concatenate([of.posed.klass[:, 0] for of in parents]))
    for row in prior.density[used]:
        core = row[np.abs(log_theta) < 1.0] / row[np.abs(log_theta) < 1.0].sum()
        x = log_theta[np.abs(log_theta) < 1.0]
        mean = float(core @ x)
        assert np.sqrt(core @ (x - mean) ** 2) == pytest.approx(0.2, abs=0.08)
        # Few ups and downs: a comb has one for every tooth.
        peaks = np.sum((core[1:-1] > core[:-2]) & (core[1:-1] > core[2:]) & (core[1:-1] > 0.3 * core.max()))
        assert peaks <= 3


def test_a_density_of_nothing_is_wide_and_classes_without_rows_take_that_of_all() -> None:
    held = np.zeros((3, flat(1).shape[1]))
    assert np.allclose(smoothed(held), flat(3))
    held[0, 100] = 50.0
    found = smoothed(held)
    assert found.sum(axis=1) == pytest.approx(1.0)
    assert (found > 0).all()
    assert np.argmax(found[2]) == 100


def test_what_is_held_of_a_parent_keeps_no_batch_alive() -> None:
    """Arrays of a batch are cut into views, one for each parent; with a few parents held all batches would be."""
    made = parent(np.random.default_rng(3), PLANS["production"])
    wide = [np.concatenate([answers, np.full((len(answers), 900), np.nan)], axis=1) for answers in made.terms.answers]
    of_batch = [np.concatenate([answers] * 50) for answers in wide]
    weights = np.concatenate([made.terms.weights] * 50)
    children = len(made.truth)
    cut = replace(made.terms, answers=tuple(one[:children] for one in of_batch), weights=weights[:children])
    apart = cut.apart()
    arrays = (*apart.queries, *apart.answers, apart.weights)
    assert sum(one.nbytes for one in arrays) < sum(one.nbytes for one in of_batch) / 500
    assert not any(np.shares_memory(one, whole) for one in arrays for whole in (*of_batch, weights))
    assert all(one.base is None or one.base.nbytes == one.nbytes for one in arrays)
    found, expected = restricted(apart), restricted(cut)
    for name in ("estimate", "covariance", "profile"):
        assert np.array_equal(getattr(found, name), getattr(expected, name))
