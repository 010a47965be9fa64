"""Covariances of sums of blocks against one dense system over all blocks, undetermined and exact units included."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from yupana.arrays import Floats
from yupana.geography.tree import Tree
from yupana.topdown.queries import margin
from yupana.topdown.tree.basis import Basis
from yupana.topdown.tree.least_squares import TreeAnswers, TreeEstimate, combined, covariance_of_sums, own, summed

PARTS = 2


def ancestry(tree: Tree, level: int) -> Floats:
    return (np.arange(tree.units(level))[:, None] == tree.ancestors(level)).astype(float)


@st.composite
def trees(draw: st.DrawFn) -> tuple[Tree, list[Floats]]:
    """A tree, and of each level the precisions of the own measurements of its units, of shape (units, 2)."""
    parents = [np.zeros(1, np.int32)]
    for _ in range(draw(st.integers(1, 3))):
        children = draw(st.lists(st.integers(1, 4), min_size=len(parents[-1]), max_size=len(parents[-1])))
        parents.append(np.repeat(np.arange(len(parents[-1])), children).astype(np.int32))
    tree = Tree(tuple(f"level {i}" for i in range(len(parents))), tuple(parents))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    missing, exact = draw(st.sampled_from([0.0, 0.3])), draw(st.sampled_from([0.0, 0.2]))
    levels = []
    for level in range(len(parents)):
        precision = np.exp(rng.normal(0, 1.5, (tree.units(level), PARTS)))
        precision[rng.random(precision.shape) < missing] = 0.0
        # Exact values above the blocks, so that they agree.
        precision[rng.random(precision.shape) < (exact if level < len(parents) - 1 else 0)] = np.inf
        levels.append(precision)
    return tree, levels


def upward(tree: Tree, levels: list[Floats]) -> list[Floats]:
    """What a unit and all below it say, part by part as schemas of one cell."""
    basis = Basis((1,))
    found = []
    for part in range(PARTS):
        below: TreeEstimate | None = None
        of_part = []
        for level in range(len(levels) - 1, -1, -1):
            units = tree.units(level)
            answers = TreeAnswers(margin("total", (1,), [False]), np.zeros((units, 1)), levels[level][:, part])
            here = own(basis, units, [answers])
            if below is not None:
                here = combined(basis, here, summed(below, tree.parents[level + 1], units))
            of_part.insert(0, here.precision)
            below = here
        found.append(of_part)
    return [np.concatenate([of_part[level] for of_part in found], axis=1) for level in range(len(levels))]


def dense(tree: Tree, precision: list[Floats], rows: Floats) -> Floats:
    """Covariance of some sums of blocks; infinity where a sum is not determined."""
    blocks = rows.shape[1]
    information, equations = np.zeros((blocks, blocks)), [np.zeros((1, blocks))]
    for level, weights in enumerate(precision):
        for unit, weight in zip(ancestry(tree, level), weights, strict=True):
            if np.isinf(weight):
                equations.append(unit[None])
            else:
                information += weight * np.outer(unit, unit)
    _, values, right = np.linalg.svd(np.concatenate([*equations, np.zeros((blocks, blocks))]))
    free = right[(values > 1e-9).sum() :].T
    spectrum, vectors = np.linalg.eigh(free.T @ information @ free)
    good = spectrum > 1e-9
    covariance = free @ (vectors[:, good] / spectrum[good] @ vectors[:, good].T) @ free.T
    null = free @ vectors[:, ~good]
    unknown = np.abs(rows @ null).max(axis=1, initial=0) > 1e-7
    found = np.asarray(rows @ covariance @ rows.T)
    found[unknown] = 0.0
    found[:, unknown] = 0.0
    found[unknown, unknown] = np.inf
    return found


@settings(max_examples=150, deadline=None)
@given(trees(), st.data())
@pytest.mark.slow
def test_covariances_of_areas_are_those_of_the_dense_least_squares(
    world: tuple[Tree, list[Floats]], data: st.DataObject
) -> None:
    tree, levels = world
    blocks, areas = tree.units(len(tree.names) - 1), 4
    rows = np.random.default_rng(data.draw(st.integers(0, 2**32))).random((areas, blocks)) < 0.4
    # One area is all blocks, which an exact root knows; areas overlap.
    rows[0] = True
    inside = {len(levels) - 1: sparse.csr_array(rows.T.astype(float))}
    upwards = upward(tree, levels)
    for part in range(PARTS):
        covariance = covariance_of_sums(tree, [level[:, part] for level in upwards], inside, areas)
        expected = dense(tree, [level[:, part] for level in levels], rows.astype(float))
        np.testing.assert_array_equal(np.isinf(covariance), np.isinf(expected))
        np.testing.assert_allclose(covariance, expected, rtol=1e-6, atol=1e-7)


def test_what_is_known_exactly_has_variance_zero() -> None:
    tree = Tree(("root", "block"), (np.zeros(1, np.int32), np.zeros(3, np.int32)))
    levels = [np.full((1, PARTS), np.inf), np.array([[1.0, 2.0], [0.3, 0.7], [5.0, 1e-6]])]
    weights = {1: sparse.csr_array(np.array([[1.0, 1.0], [1.0, 0.0], [1.0, 0.0]]))}
    upwards = upward(tree, levels)
    for part in range(PARTS):
        covariance = covariance_of_sums(tree, [level[:, part] for level in upwards], weights, 2)
        assert covariance[0].tolist() == [0.0, 0.0]
        assert covariance[1, 1] > 0
