"""Budgets of least variance, against random budgets, a general solver, and what is known in closed form."""

import numpy as np
import pytest
from scipy import optimize

from yupana.arrays import Floats
from yupana.plan.least_variance import (
    UndeterminedPartsError,
    VarianceProgram,
    goal_values,
    least_variance,
)


def random_program(seed: int) -> VarianceProgram:
    """Up to six queries in one group or two, with goals that count some parts."""
    rng = np.random.default_rng(seed)
    queries, parts, goals = rng.integers(2, 7), rng.integers(2, 7), rng.integers(1, 4)
    precisions = rng.uniform(0.1, 3, (parts, queries)) * (rng.random((parts, queries)) < 0.6)
    precisions[:, 0] += 0.05
    counted = rng.uniform(0.1, 3, (goals, parts)) * (rng.random((goals, parts)) < 0.7)
    counted[:, 0] += 0.1
    group = np.arange(queries) % rng.integers(1, 3)
    budgets = rng.uniform(0.1, 5, group.max() + 1)
    least = rng.choice([0.0, 0.3]) * (budgets / np.bincount(group))[group]
    return VarianceProgram(precisions, counted, group, budgets, least)


def random_spent(program: VarianceProgram, rng: np.random.Generator) -> Floats:
    """Budgets within the limits."""
    shares = rng.gamma(rng.choice([0.3, 1.0]), size=len(program.least)) + 1e-9
    rest = program.budgets - np.bincount(program.group, program.least)
    scaled: Floats = program.least + shares * (rest / np.bincount(program.group, shares))[program.group]
    return scaled


def by_general_solver(program: VarianceProgram) -> float:
    """The least loss that SLSQP finds, from equal shares."""
    member = np.arange(len(program.budgets))[:, None] == program.group
    rest = program.budgets - np.bincount(program.group, program.least)
    start = program.least + (rest / np.bincount(program.group))[program.group]
    scale = float(program.values(start).max())

    def room(point: Floats) -> Floats:
        return point[-1] - program.goals @ (1 / (program.precisions @ point[:-1])) / scale

    found = optimize.minimize(
        lambda point: point[-1],
        np.append(start, 1.0),
        method="SLSQP",
        bounds=[*((max(low, 1e-12), None) for low in program.least), (0, None)],
        constraints=[
            {"type": "eq", "fun": lambda point: member @ point[:-1] - program.budgets},
            {"type": "ineq", "fun": room},
        ],
        options={"maxiter": 500, "ftol": 1e-13},
    )
    return float(found.x[-1] * scale)


def test_it_is_as_good_as_a_general_solver_and_random_budgets() -> None:
    for seed in range(60):
        program = random_program(seed)
        found = least_variance(program)
        assert -1e-12 <= found.loss / found.bound - 1 < 1e-8, seed  # below 0 by rounding
        np.testing.assert_allclose(np.bincount(program.group, found.spent), program.budgets, rtol=1e-12)
        assert (found.spent >= program.least).all()
        assert float(program.values(found.spent).max()) == pytest.approx(found.loss, rel=1e-12)
        assert found.loss == pytest.approx(by_general_solver(program), rel=1e-5), seed
        rng = np.random.default_rng(seed)
        for _ in range(20):
            assert found.bound <= float(program.values(random_spent(program, rng)).max()) * (1 + 1e-9)


def test_every_bound_is_below_the_least_and_the_best_one_is_the_least() -> None:
    for seed in range(40):
        program = random_program(seed)
        found = least_variance(program)
        assert found.loss == pytest.approx(found.bound, rel=1e-8)
        rng = np.random.default_rng(seed)
        for _ in range(10):
            weights = rng.dirichlet(np.ones(len(program.goals)))
            assert program.bound(rng.exponential(size=program.goals.shape[1]), weights) <= found.loss * (1 + 1e-9)
        if len(program.goals) == 1:
            variances = 1 / (program.precisions @ found.spent)
            assert program.bound(variances, np.ones(1)) == pytest.approx(found.loss, rel=1e-5)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_budgets_go_as_the_roots_of_the_weights_in_closed_form(scale: float) -> None:
    """By the sum of w / b; where the largest counts, as w."""
    weights = np.array([1.0, 5.0, 0.2])
    for goals, power in ((weights[None], 0.5), (np.diag(weights), 1.0)):
        found = least_variance(
            VarianceProgram(np.eye(3) * scale, goals, np.zeros(3, dtype=np.int64), np.array([2.0]), np.zeros(3))
        )
        shares = weights**power / (weights**power).sum()
        np.testing.assert_allclose(found.spent, 2 * shares, rtol=1e-4)
        assert found.loss == pytest.approx(float((goals @ (1 / (2 * shares))).max()) / scale, rel=1e-9)


def test_goals_of_what_no_query_tells_are_infinite_and_refused() -> None:
    goals, precision = np.array([[1.0, 2.0], [3.0, 0.0]]), np.array([4.0, 0.0])
    np.testing.assert_array_equal(goal_values(goals, precision), [np.inf, 0.75])
    np.testing.assert_array_equal(goal_values(goals, np.array([4.0, 8.0])), [0.5, 0.75])
    rows = np.array([[1.0, 1.0], [0.0, 0.0]])
    program = VarianceProgram(rows, goals, np.zeros(2, dtype=np.int64), np.ones(1), np.zeros(2))
    np.testing.assert_array_equal(program.values(np.array([1.0, 3.0])), [np.inf, 0.75])
    with pytest.raises(UndeterminedPartsError, match="a goal counts a part that no query tells anything of"):
        least_variance(program)
    # A part that no goal counts needs no query.
    other = VarianceProgram(rows, goals[1:], program.group, program.budgets, program.least)
    assert least_variance(other).loss == pytest.approx(3)
