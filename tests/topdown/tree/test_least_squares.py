"""The least squares on the tree against the same least squares written out in one dense system over all blocks."""

import platform
import sys
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from measured_trees import SHAPES, Dense, World, margins, matrix, two_passes, unit_rows, worlds

from yupana.arrays import Floats
from yupana.geography.tree import partition
from yupana.topdown.queries import Query, margin
from yupana.topdown.tree.basis import Basis, reflect
from yupana.topdown.tree.least_squares import (
    Quadratic,
    TreeAnswers,
    TreeEstimate,
    combined,
    down,
    intervals,
    own,
    precisions_of_sums,
    quadratic,
    summed,
    variances,
)


def agree(found: Floats, variance: Floats, expected: tuple[Floats, Floats]) -> None:
    value, spread = expected
    np.testing.assert_array_equal(np.isinf(variance), np.isinf(spread))
    finite = np.isfinite(spread)
    np.testing.assert_allclose(variance[finite], spread[finite], rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(found[finite], value[finite], rtol=1e-6, atol=1e-6)


def groupings(shape: tuple[int, ...]) -> Iterator[Query]:
    """Every margin, and one query that groups the levels of an attribute of three."""
    yield from margins(shape)
    if 3 in shape:
        yield Query("grouped", tuple((0, 1, 1) if size == 3 else tuple(range(size)) for size in shape))


@pytest.mark.parametrize("examples", [20, pytest.param(60, marks=pytest.mark.thorough)])
@pytest.mark.thorough
def test_estimates_and_variances_are_those_of_the_dense_least_squares(examples: int) -> None:
    settings(max_examples=examples, deadline=None)(given(worlds())(_check_estimates))()


def _check_estimates(world: World) -> None:
    _, final = two_passes(world)
    dense, basis = Dense(world), Basis(world.shape)
    for level, estimate in enumerate(final):
        rows = unit_rows(world.tree, level)
        for query in groupings(world.shape):
            found, variance = basis.answers(estimate.coordinates, query), variances(basis, estimate.precision, query)
            for unit in range(len(rows)):
                agree(found[unit], variance[unit], dense.of(np.kron(rows[unit], matrix(query))))


@settings(max_examples=30, deadline=None)
@given(worlds(), st.data())
def test_upward_estimates_are_those_of_the_subtree(world: World, data: st.DataObject) -> None:
    upward, _ = two_passes(world)
    level = data.draw(st.integers(0, len(upward) - 1))
    unit = data.draw(st.integers(0, world.tree.units(level) - 1))
    dense, basis = Dense(world, (level, unit)), Basis(world.shape)
    detailed = margins(world.shape)[-1]
    estimate = upward[level].part(unit, unit + 1)
    rows = np.kron(unit_rows(world.tree, level)[unit], matrix(detailed))
    agree(basis.histograms(estimate.coordinates)[0], variances(basis, estimate.precision, detailed)[0], dense.of(rows))


@settings(max_examples=60, deadline=None)
@given(worlds())
@pytest.mark.slow
def test_children_sum_to_their_parents(world: World) -> None:
    _, final = two_passes(world)
    for above, below, parents in zip(final, final[1:], world.tree.parents[1:], strict=False):
        total = np.zeros_like(above.coordinates)
        np.add.at(total, parents, below.coordinates)
        np.testing.assert_allclose(total, above.coordinates, atol=1e-8)


def solve_node(parent: Floats, estimate: TreeEstimate, quad: Quadratic, basis: Basis) -> Floats:
    """Minimise the quadratic over children that sum to the parent, with exact parts held, as one dense system."""
    children, cells = estimate.coordinates.shape
    size = children * cells
    hessian, vector = np.zeros((size, size)), np.zeros(size)
    for number, (query, answers) in enumerate(zip(quad.queries, quad.answers, strict=True)):
        rows = (np.arange(query.size)[:, None] == query.answers()).astype(float)
        for child in range(children):
            here = slice(child * cells, (child + 1) * cells)
            hessian[here, here] += quad.weights[child, number] * rows.T @ rows
            vector[here] += quad.weights[child, number] * rows.T @ answers[child]
    equations, sides = [np.tile(np.eye(cells), children)], [parent]
    histograms = basis.histograms(estimate.coordinates)
    for child in range(children):
        for number, subset in enumerate(basis.subsets):
            if np.isinf(estimate.precision[child, number]):
                part = np.kron(np.eye(children)[child], projector(basis, subset))
                equations.append(part)
                sides.append(projector(basis, subset) @ histograms[child])
    rows, side = np.concatenate(equations), np.concatenate(sides)
    system = np.block([[hessian, rows.T], [rows, np.zeros((len(rows), len(rows)))]])
    return np.linalg.lstsq(system, np.concatenate([vector, side]), rcond=1e-11)[0][:size].reshape(children, cells)


def projector(basis: Basis, subset: tuple[bool, ...]) -> Floats:
    inside = iter(subset)
    out = np.ones((1, 1))
    for size in basis.shape:
        mean = np.full((size, size), 1 / size)
        out = np.kron(out, (np.eye(size) - mean if next(inside) else mean) if size > 1 else mean)
    assert out.shape == (basis.cells, basis.cells)
    return out


@settings(max_examples=60, deadline=None)
@given(worlds())
@pytest.mark.thorough
def test_nodes_solved_from_the_root_down_with_upward_targets_give_the_dense_least_squares(world: World) -> None:
    upward, _ = two_passes(world)
    basis, dense = Basis(world.shape), Dense(world)
    detailed = margins(world.shape)[-1]
    counts = [basis.histograms(upward[0].coordinates)]
    for level in range(1, len(upward)):
        parents, quad = world.tree.parents[level], quadratic(basis, upward[level])
        found = np.zeros((len(parents), basis.cells))
        for parent in range(world.tree.units(level - 1)):
            first, last = np.searchsorted(parents, [parent, parent + 1])
            family = upward[level].part(first, last)
            found[first:last] = solve_node(counts[-1][parent], family, quad.part(first, last), basis)
        counts.append(found)
        for unit, blocks in enumerate(unit_rows(world.tree, level)):
            value, variance = dense.of(np.kron(blocks, matrix(detailed)))
            finite = np.isfinite(variance)
            np.testing.assert_allclose(found[unit][finite], value[finite], rtol=1e-6, atol=1e-5)


@settings(max_examples=60, deadline=None)
@given(worlds(), st.data())
@pytest.mark.thorough
def test_variances_of_sums_of_blocks_are_those_of_the_dense_least_squares(world: World, data: st.DataObject) -> None:
    upward, _ = two_passes(world)
    blocks = world.tree.units(len(world.tree.names) - 1)
    entity = np.array(data.draw(st.lists(st.integers(-1, 2), min_size=blocks, max_size=blocks)), dtype=np.int32)
    basis, dense = Basis(world.shape), Dense(world)
    precision = precisions_of_sums(
        world.tree, [level.precision for level in upward], upward[0].precision, partition(entity, 3)
    )
    for query in margins(world.shape):
        variance = variances(basis, precision, query)
        for number in range(3):
            _, expected = dense.of(np.kron(entity == number, matrix(query)))
            np.testing.assert_array_equal(np.isinf(variance[number]), np.isinf(expected))
            finite = np.isfinite(expected)
            np.testing.assert_allclose(variance[number][finite], expected[finite], rtol=1e-6, atol=1e-7)


@settings(max_examples=30, deadline=None)
@given(worlds(complete=True), st.integers(0, 7))
def test_a_pass_counts_what_its_queries_see_and_no_more(world: World, number: int) -> None:
    """Fixing nothing, its minimum is the marginal of the estimate and its curvature the inverse marginal covariance."""
    upward, _ = two_passes(world)
    basis = Basis(world.shape)
    queries = margins(world.shape)
    query = queries[number % len(queries)]
    estimate = upward[-1]
    quad = quadratic(basis, estimate, (query,))
    rows = matrix(query)
    covariance = [
        sum(projector(basis, subset) / p for subset, p in zip(basis.subsets, precision, strict=True))
        for precision in estimate.precision
    ]
    histograms = basis.histograms(estimate.coordinates)
    rng = np.random.default_rng(number)
    for unit in range(len(histograms)):
        if np.isinf(estimate.precision[unit]).any():
            continue
        x = rng.normal(size=basis.cells)
        value = sum(
            weight * ((matrix(q) @ x - answers[unit]) ** 2).sum()
            for q, answers, weight in zip(quad.queries, quad.answers, quad.weights[unit], strict=True)
        )
        step = rows @ (x - histograms[unit])
        expected = step @ np.linalg.solve(rows @ covariance[unit] @ rows.T, step)
        assert value == pytest.approx(expected, rel=1e-7)


def test_a_block_gets_its_own_queries_and_no_others() -> None:
    """So that its node is as cheap as without the upward pass: other margins' weights are exactly zero."""
    shape, rng = (2, 2, 11), np.random.default_rng(5)
    basis = Basis(shape)
    kept = [(0, 0, 0), (0, 1, 1), (1, 1, 0), (1, 1, 1)]
    queries = [margin("x", shape, flags) for flags in kept]
    precision = np.exp(rng.normal(0, 3, (200, len(kept))))
    measured = [
        TreeAnswers(query, rng.normal(size=(200, query.size)), weight)
        for query, weight in zip(queries, precision.T, strict=True)
    ]
    quad = quadratic(basis, own(basis, 200, measured))
    assert [query.factors for query in quad.queries] == [query.factors for query in queries]
    np.testing.assert_allclose(quad.weights, precision, rtol=1e-6)


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(SHAPES), st.integers(0, 2**32))
@pytest.mark.slow
def test_the_basis_is_that_of_the_projectors(shape: tuple[int, ...], seed: int) -> None:
    basis, rng = Basis(shape), np.random.default_rng(seed)
    histogram = rng.normal(size=(3, basis.cells))
    coordinates = basis.coordinates(histogram, (True,) * len(basis.sizes)).reshape(3, -1)
    np.testing.assert_allclose(basis.histograms(coordinates), histogram, atol=1e-12)
    spectrum = rng.normal(size=(3, len(basis.subsets)))
    full = [sum(projector(basis, s) * value for s, value in zip(basis.subsets, row, strict=True)) for row in spectrum]
    applied = basis.histograms(basis.scaled(coordinates, spectrum))
    np.testing.assert_allclose(applied, np.einsum("uij,uj->ui", full, histogram), atol=1e-10)
    weights = basis.weights(spectrum)
    signed = [
        sum(w * matrix(basis.margin(s)).T @ matrix(basis.margin(s)) for s, w in zip(basis.subsets, row, strict=True))
        for row in weights
    ]
    np.testing.assert_allclose(signed, full, atol=1e-10)
    np.testing.assert_allclose(basis.precision(weights), spectrum, atol=1e-10)
    for query in groupings(shape):
        np.testing.assert_allclose(basis.answers(coordinates, query), histogram @ matrix(query).T, atol=1e-10)
        parts = [np.diag(matrix(query) @ projector(basis, s) @ matrix(query).T) for s in basis.subsets]
        np.testing.assert_allclose(basis.loadings(query), np.stack(parts, axis=1), atol=1e-10)


def test_a_query_that_groups_levels_is_refused() -> None:
    basis = Basis((3, 2))
    with pytest.raises(ValueError, match="groups levels"):
        own(basis, 1, [TreeAnswers(Query("grouped", ((0, 1, 1), (0, 1))), np.zeros((1, 4)), np.ones(1))])


def test_slices_of_the_tree_give_what_whole_levels_give() -> None:
    rng = np.random.default_rng(3)
    basis, shape, parents = Basis((2, 3)), (2, 3), np.array([0, 0, 1, 2, 2, 2], dtype=np.int32)
    query = margin("x", shape, (1, 1))
    children = own(basis, 6, [TreeAnswers(query, rng.normal(size=(6, 6)), np.exp(rng.normal(size=6)))])
    above = own(basis, 3, [TreeAnswers(query, rng.normal(size=(3, 6)), np.exp(rng.normal(size=3)))])
    whole, final = summed(children, parents, 3), down(basis, children, parents, above)
    for (first, last), units in (((0, 3), (0, 2)), ((3, 6), (2, 3))):
        part = parents[first:last] - units[0]
        sliced = summed(children.part(first, last), part, units[1] - units[0])
        np.testing.assert_array_equal(sliced.coordinates, whole.coordinates[slice(*units)])
        again = down(basis, children.part(first, last), part, above.part(*units))
        np.testing.assert_array_equal(again.coordinates, final.coordinates[first:last])
        np.testing.assert_array_equal(again.precision, final.precision[first:last])


def test_intervals_keep_exact_counts_and_every_count_of_the_normal_interval() -> None:
    basis, query = Basis((5, 3)), margin("x", (5, 3), (1, 1))
    counts = np.random.default_rng(7).integers(0, 20_000_000, (100, 15))
    precision = np.where(np.arange(100) < 99, np.inf, 0.0)
    exact = own(basis, 100, [TreeAnswers(query, counts, precision)])
    for kept in (query, margin("x", (5, 3), (0, 0)), margin("x", (5, 3), (1, 0))):
        found = intervals(basis, exact, kept)
        np.testing.assert_array_equal(found.lower[:-1], (counts @ matrix(kept).T)[:-1])
        np.testing.assert_array_equal(found.upper[:-1], found.lower[:-1])
        assert (found.lower[-1] == 0).all()
        assert (found.upper[-1] > 2**62).all()
        assert np.isinf(found.variance[-1]).all()
    basis = Basis((2,))
    noisy = own(basis, 4, [TreeAnswers(margin("x", (2,), (1,)), np.array([[10.3, -40.0]] * 4), np.full(4, 1 / 4))])
    found = intervals(basis, noisy, margin("x", (2,), (1,)), 0.95)
    # 10.3 - 1.96 * 2 = 6.38 and 10.3 + 1.96 * 2 = 14.2
    assert found.lower[0].tolist() == [7, 0]
    assert found.upper[0].tolist() == [14, 0]
    sharp = own(basis, 1, [TreeAnswers(margin("x", (2,), (1,)), np.array([[10.4, 3.0]]), np.full(1, 1e4))])
    found = intervals(basis, sharp, margin("x", (2,), (1,)))
    assert (found.lower.tolist(), found.upper.tolist()) == ([[10, 3]], [[10, 3]])


def test_precisions_survive_shares_that_differ_by_many_orders() -> None:
    """A unit of one child takes its child's precision, whatever its own."""
    basis = Basis((2, 2))
    query = margin("x", (2, 2), (1, 1))
    child = own(basis, 1, [TreeAnswers(query, np.ones((1, 4)), np.array([1e-9]))])
    above = own(basis, 1, [TreeAnswers(query, np.zeros((1, 4)), np.array([1e9]))])
    parents = np.zeros(1, dtype=np.int32)
    up = combined(basis, above, summed(child, parents, 1))
    final = down(basis, child, parents, up)
    np.testing.assert_allclose(final.precision, 1e9, rtol=1e-12)
    np.testing.assert_allclose(final.coordinates, up.coordinates, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("shape", [(2,), (63,), (300,), (3, 5), (8, 2, 2, 7), (4, 130), (130, 9), (1, 6, 1), ()])
@pytest.mark.parametrize("units", [0, 1, 40])
def test_reflections_are_those_of_whole_arrays(shape: tuple[int, ...], units: int) -> None:
    """Bit by bit where numpy adds up as it does here, so that releases that were made with arrays stay the same."""
    values = np.random.default_rng(1).normal(size=(units, *shape)) * 1e3
    expected = values.copy()
    for axis, size in enumerate(shape, start=1):
        if size > 1:
            constant = expected.sum(axis=axis, keepdims=True) / np.sqrt(size)
            first = expected.take([0], axis=axis)
            expected += (first - constant) / (np.sqrt(size) - 1.0)
            np.moveaxis(expected, axis, 0)[:1] = np.moveaxis(constant, axis, 0)
    found = values.reshape(units, int(np.prod(shape)))
    reflect(found, np.array(shape, dtype=np.int64))
    np.testing.assert_allclose(found.reshape(expected.shape), expected, rtol=0, atol=1e-9)
    if sys.platform == "linux" and platform.machine() == "x86_64":
        np.testing.assert_array_equal(found.reshape(expected.shape), expected)
