"""Variances by recursion over the tree against least squares with matrices."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from spine_maker import nested, trees

from yupana.geography.tree import Members, Tree
from yupana.topdown.tree.least_squares import entity_variances, unit_variances

Matrix = NDArray[np.float64]


def strategy_matrix(tree: Tree) -> Matrix:
    """A row of flags per unit, from the root down, a column per block."""
    plain = nested(tree)
    blocks = plain.units(plain.levels - 1)
    units = [plain.leaves(level, unit) for level in range(plain.levels) for unit in range(plain.units(level))]
    return np.array([[float(block in unit) for block in range(blocks)] for unit in units])


def dense(measured: Matrix, precision: Matrix, asked: Matrix) -> Matrix:
    """Variances of least-squares estimates of the rows asked; infinite where the measurements do not determine them."""
    design = measured * np.sqrt(precision)[:, None]
    _, values, directions = np.linalg.svd(design)
    rank = int((values > 1e-9 * values.max(initial=0)).sum()) if values.max(initial=0) > 0 else 0
    seen, unseen = directions[:rank], directions[rank:]
    variance = ((asked @ seen.T / values[:rank]) ** 2).sum(axis=1)
    return np.where((np.abs(asked @ unseen.T) > 1e-7).any(axis=1), np.inf, variance)


def precisions(tree: Tree, data: st.DataObject, weights: list[float]) -> tuple[Matrix, ...]:
    return tuple(
        np.array(data.draw(st.lists(st.sampled_from(weights), min_size=tree.units(level), max_size=tree.units(level))))
        for level in range(len(tree.names))
    )


@given(trees(most_units=20), st.data(), st.sampled_from([[1.0], [0.5, 1.0, 4.0], [0.0, 1.0, 2.0], [0.0, 0.0, 1.0]]))
@pytest.mark.thorough
def test_variances_are_those_of_dense_least_squares(tree: Tree, data: st.DataObject, weights: list[float]) -> None:
    weight = precisions(tree, data, weights)
    matrix = strategy_matrix(tree)
    blocks = matrix.shape[1]
    expected = dense(matrix, np.concatenate(weight), matrix)
    assert np.allclose(np.concatenate(unit_variances(tree, weight)), expected, rtol=1e-8)

    entities = data.draw(st.lists(st.sets(st.integers(0, blocks - 1), min_size=1), min_size=1, max_size=5))
    pairs = sorted((block, entity) for entity, held in enumerate(entities) for block in held)
    found = entity_variances(
        tree,
        weight,
        Members(*(np.array([pair[i] for pair in pairs], dtype=np.int32) for i in range(2)), len(entities)),
    )
    asked = np.array([[float(block in held) for block in range(blocks)] for held in entities])
    assert np.allclose(found, dense(matrix, np.concatenate(weight), asked), rtol=1e-8)


def test_the_variance_of_a_root_with_two_blocks() -> None:
    # Shares 1/2 each at rho 1: the root measured with variance 2, or summed with variance 4: 1 / (1/2 + 1/4).
    tree = Tree(("US", "Block"), (np.zeros(1, dtype=np.int32), np.zeros(2, dtype=np.int32)))
    root, blocks = unit_variances(tree, (np.array([0.5]), np.array([0.5, 0.5])))
    assert np.allclose(root, 4 / 3)
    # A block by itself has 2; as the difference 2 + 2; the two are independent: 1 / (1/2 + 1/4).
    assert np.allclose(blocks, 4 / 3)
