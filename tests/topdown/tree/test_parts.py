"""Found budgets against a general convex solver, and variances against the least squares written out in full."""

from fractions import Fraction
from itertools import product
from math import prod

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
from yupana.topdown.queries import Query, margin
from yupana.topdown.tree.basis import Basis, LevelParts

SHAPES = ((3,), (2, 3), (4, 2), (2, 3, 2), (1, 3, 5))


def margins_of(shape: tuple[int, ...]) -> list[Query]:
    return [margin(str(kept), shape, kept) for kept in product((False, True), repeat=len(shape))]


def matrix(query: Query) -> Floats:
    counted: Floats = (np.arange(query.size)[:, None] == query.answers()).astype(np.float64)
    return counted


def one_level(shape: tuple[int, ...]) -> LevelParts:
    return LevelParts(Basis(shape), 1, None, (False,))


def random_program(seed: int, *, largest: bool) -> VarianceProgram:
    """Some margins of a random small schema, the detailed one among them, random targets, two groups or one."""
    rng = np.random.default_rng(seed)
    shape = SHAPES[rng.integers(len(SHAPES))]
    asked = margins_of(shape)
    measured = [query for query in asked if query.is_detailed or rng.random() < 0.6]
    parts = one_level(shape)
    wanted = [query for query in asked if rng.random() < 0.6] or asked[:1]
    rows = np.concatenate([rng.uniform(0.1, 3) * parts.needed(0, parts.basis.loadings(q)[:1]) for q in wanted])
    count = len(measured)
    group = np.zeros(count, dtype=np.int64)
    budgets = np.array([rng.uniform(0.1, 5)])
    least = np.full(count, rng.choice([0.0, 0.3 / count])) * budgets[0]
    return VarianceProgram(
        parts.precisions([(0, query) for query in measured]),
        rows if largest else rows.sum(axis=0)[None],
        group,
        budgets,
        least,
    )


def by_general_solver(program: VarianceProgram) -> float:
    """The least loss that SLSQP finds."""
    count, whole = len(program.least), program.budgets[0]
    start = program.least + (whole - program.least.sum()) / count
    scale = float(program.values(start).max())

    def goals(point: Floats) -> Floats:
        return program.goals @ (1 / (program.precisions @ np.maximum(point, 1e-15))) / scale

    def slopes(point: Floats) -> Floats:
        precision = program.precisions @ np.maximum(point, 1e-15)
        return -((program.goals / precision**2) @ program.precisions) / scale

    found = optimize.minimize(
        lambda point: point[-1],
        np.append(start, 1.0),
        jac=lambda _: np.append(np.zeros(count), 1.0),
        method="SLSQP",
        bounds=[*((low, whole) for low in program.least), (0, None)],
        constraints=[
            {
                "type": "eq",
                "fun": lambda point: (point[:-1].sum() - whole) / whole,
                "jac": lambda _: np.append(np.full(count, 1 / whole), 0.0),
            },
            {
                "type": "ineq",
                "fun": lambda point: point[-1] - goals(point[:-1]),
                "jac": lambda point: np.hstack([-slopes(point[:-1]), np.ones((len(program.goals), 1))]),
            },
        ],
        options={"maxiter": 500, "ftol": 1e-12},
    )
    feasible = program.least + np.maximum(found.x[:-1] - program.least, 0)
    above = feasible - program.least
    feasible = program.least + above * ((whole - program.least.sum()) / above.sum())
    return float(program.values(feasible).max())


@pytest.mark.parametrize("loss", ["sum", "max"])
@pytest.mark.slow
def test_it_is_as_good_as_a_general_solver_and_the_bound_says_so(loss: str) -> None:
    for seed in range(40):
        program = random_program(seed, largest=loss == "max")
        found = least_variance(program)
        general = by_general_solver(program)
        assert found.loss / found.bound - 1 < 1e-7, seed
        assert found.loss <= general * (1 + 1e-7), seed
        # A bound above what any budgets reach would prove something false.
        assert found.bound <= general * (1 + 1e-9), seed
        assert general <= found.loss * 1.001, seed
        np.testing.assert_allclose(found.spent.sum(), program.budgets[0], rtol=1e-12)
        assert (found.spent >= program.least).all()
        assert float(program.values(found.spent).max()) == pytest.approx(found.loss, rel=1e-12)


def test_several_budgets_are_held_each() -> None:
    parts = LevelParts(Basis((2, 3)), 2, (3.0,), (False, False))
    asked = margins_of((2, 3))
    measured = [(level, query) for level in range(2) for query in asked]
    goal = np.sum([parts.needed(level, parts.basis.loadings(query)[:1]) for level, query in measured], axis=0)
    program = VarianceProgram(
        parts.precisions(measured), goal, np.array([level for level, _ in measured]), np.array([1.0, 3.0]), np.zeros(8)
    )
    found = least_variance(program)
    assert found.loss / found.bound - 1 < 1e-7
    np.testing.assert_allclose([found.spent[:4].sum(), found.spent[4:].sum()], [1, 3], rtol=1e-12)


def test_shares_of_geolevels_are_those_of_the_closed_form() -> None:
    """By themselves, geolevels of least losses c share a budget as the roots of c; as c where the largest counts."""
    shape, weights = (2, 3), (1.0, 5.0, 0.2)
    parts = LevelParts(Basis(shape), 3, None, (False,) * 3)
    asked = [query for query in margins_of(shape) if query.size > 1]
    measured = [(level, query) for level in range(3) for query in asked]
    matrix_of_all = parts.precisions(measured)
    goals = [w * parts.needed(n, parts.basis.loadings(asked[-1])[:1]) for n, w in enumerate(weights)]
    for goal, root in ((np.sum(goals, axis=0), 0.5), (np.concatenate(goals), 1.0)):
        program = VarianceProgram(matrix_of_all, goal, np.zeros(9, dtype=np.int64), np.ones(1), np.zeros(9))
        found = least_variance(program)
        level_sums = found.spent.reshape(3, 3).sum(axis=1)
        expected = np.array(weights) ** root
        np.testing.assert_allclose(level_sums, expected / expected.sum(), rtol=2e-4)
        assert found.loss / found.bound - 1 < 1e-7


@pytest.mark.parametrize("shape", [(3,), (2, 3)])
@pytest.mark.parametrize("root", ["measured", "exact"])
def test_variances_on_a_regular_tree_are_those_of_the_dense_least_squares(shape: tuple[int, ...], root: str) -> None:
    exact_root = root == "exact"
    children = (2, 3)
    leaves = prod(children)
    units = [np.kron(np.eye(prod(children[:level])), np.ones((1, prod(children[level:])))) for level in range(3)]
    parts = LevelParts(Basis(shape), 3, tuple(map(float, children)), (exact_root, False, False))
    rng = np.random.default_rng(3)
    measured = [(level, query) for level in range(3) for query in margins_of(shape)]
    spent = rng.uniform(0.1, 2, len(measured))
    information = sum(
        weight * np.kron(units[level].T @ units[level], matrix(query).T @ matrix(query))
        for weight, (level, query) in zip(spent, measured, strict=True)
    )
    if exact_root:
        information = information + 1e9 * np.ones((leaves * prod(shape),) * 2)
    covariance = np.linalg.inv(information)
    precision = parts.precisions(measured) @ spent
    for level, query in measured:
        if exact_root and (level, query.size) == (0, 1):
            continue
        row = np.kron(units[level][0], matrix(query)[0])
        needed = parts.needed(level, parts.basis.loadings(query)[:1])
        assert goal_values(needed, precision)[0] == pytest.approx(row @ covariance @ row, rel=1e-5)


@pytest.mark.parametrize("shape", SHAPES)
def test_variances_of_a_geolevel_by_itself_are_those_of_the_dense_least_squares(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(5)
    parts = one_level(shape)
    measured = margins_of(shape)
    spent = rng.uniform(0.1, 2, len(measured))
    information = sum(w * matrix(query).T @ matrix(query) for w, query in zip(spent, measured, strict=True))
    covariance = np.linalg.inv(information)
    precision = parts.precisions([(0, query) for query in measured]) @ spent
    for _ in range(5):
        row = (rng.random(prod(shape)) < 0.5).astype(np.float64)
        needed = parts.needed(0, parts.basis.loadings_of(row[None]))
        assert goal_values(needed, precision)[0] == pytest.approx(row @ covariance @ row, rel=1e-9)


def test_a_grouping_is_credited_with_at_least_what_it_tells() -> None:
    grouped = Query("grouped", ((0, 1, 1, 1, 2), (0, 1)))
    parts = one_level((5, 2))
    detailed = margin("detailed", (5, 2), (True, True))
    spent = np.array([0.7, 2.0])
    information = 0.7 * matrix(detailed).T @ matrix(detailed) + 2 * matrix(grouped).T @ matrix(grouped)
    covariance = np.linalg.inv(information)
    precision = parts.precisions([(0, detailed), (0, grouped)]) @ spent
    for query in margins_of((5, 2)):
        row = matrix(query)[0]
        lower = goal_values(parts.needed(0, parts.basis.loadings(query)[:1]), precision)[0]
        assert lower <= row @ covariance @ row


def test_parts_that_no_query_tells_are_refused() -> None:
    parts = one_level((2, 3))
    total, detailed = margins_of((2, 3))[0], margins_of((2, 3))[-1]
    program = VarianceProgram(
        parts.precisions([(0, total)]),
        parts.needed(0, parts.basis.loadings(detailed)[:1]),
        np.zeros(1, dtype=np.int64),
        np.ones(1),
        np.zeros(1),
    )
    with pytest.raises(UndeterminedPartsError, match="no query"):
        least_variance(program)
    assert goal_values(program.goals, program.precisions @ np.ones(1))[0] == np.inf


def test_a_single_query_gets_all() -> None:
    parts = one_level((4,))
    query = margins_of((4,))[-1]
    goal = parts.needed(0, parts.basis.loadings(query)[:1])
    program = VarianceProgram(
        parts.precisions([(0, query)]),
        goal,
        np.zeros(1, dtype=np.int64),
        np.array([float(Fraction(1, 3))]),
        np.zeros(1),
    )
    found = least_variance(program)
    assert found.spent == pytest.approx([1 / 3])
    assert found.loss == pytest.approx(3)
