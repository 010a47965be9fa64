"""Made-up measurements on small trees, and their least squares as one dense system over the cells of all blocks."""

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from yupana.arrays import Floats
from yupana.geography.tree import Tree
from yupana.topdown.queries import Query, margin
from yupana.topdown.tree.basis import Basis
from yupana.topdown.tree.least_squares import TreeAnswers, TreeEstimate, combined, down, own, summed

SHAPES = ((2,), (3,), (1,), (2, 3), (1, 3), (2, 1, 2), (2, 2, 2), (3, 2))


@dataclass(frozen=True)
class World:
    """A small tree, its measurements by level, and the exact ones among them agreeing with one set of true counts."""

    shape: tuple[int, ...]
    tree: Tree
    levels: tuple[tuple[TreeAnswers, ...], ...]


def matrix(query: Query) -> Floats:
    """Rows of 0 and 1: one for each answer."""
    return (np.arange(query.size)[:, None] == query.answers()).astype(float)


def margins(shape: tuple[int, ...]) -> list[Query]:
    return [margin("x", shape, [(bits >> i) & 1 for i in range(len(shape))]) for bits in range(2 ** len(shape))]


def unit_rows(tree: Tree, level: int) -> Floats:
    """Which blocks lie in each unit, of shape (units, blocks)."""
    return (np.arange(tree.units(level))[:, None] == tree.ancestors(level)).astype(float)


@st.composite
def worlds(draw: st.DrawFn, *, complete: bool = False) -> World:
    """Draw a world; in a complete one every unit has the detailed query, so that all is determined."""
    shape = draw(st.sampled_from(SHAPES))
    depth = draw(st.integers(2, 4))
    parents = [np.zeros(1, np.int32)]
    for _ in range(depth - 1):
        children = draw(st.lists(st.integers(1, 3), min_size=len(parents[-1]), max_size=len(parents[-1])))
        parents.append(
            np.repeat(np.arange(len(parents[-1])), children[:8] + [1] * (len(children) - 8)).astype(np.int32)
        )
    tree = Tree(tuple(f"level {i}" for i in range(depth)), tuple(parents))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    queries = margins(shape)
    truth = rng.integers(0, 9, (tree.units(depth - 1), int(np.prod(shape)))).astype(float)
    filled, with_exact = complete or draw(st.booleans()), draw(st.booleans())
    levels = []
    for level in range(depth):
        counts = unit_rows(tree, level) @ truth
        chosen = [] if not filled and rng.random() < 0.3 else rng.permutation(queries)[: rng.integers(1, 4)]
        measured = []
        for query in [*chosen, *([queries[-1]] if filled else [])]:
            precision = np.exp(rng.normal(0, 1.5, len(counts)))
            if not filled or query is not queries[-1]:
                precision[rng.random(len(counts)) < 0.3] = 0.0
            answers = counts @ matrix(query).T + rng.normal(0, 3, (len(counts), query.size))
            answers[precision == 0] = np.nan
            measured.append(TreeAnswers(query, answers, precision))
        if with_exact and rng.random() < 0.5:
            query = queries[rng.integers(len(queries))]
            precision = np.where(rng.random(len(counts)) < 0.5, np.inf, 0.0)
            answers = np.where(precision[:, None] > 0, counts @ matrix(query).T, np.nan)
            measured.append(TreeAnswers(query, answers, precision))
        levels.append(tuple(measured))
    return World(shape, tree, tuple(levels))


def two_passes(world: World) -> tuple[list[TreeEstimate], list[TreeEstimate]]:
    """Upward and final estimates by level."""
    basis, tree = Basis(world.shape), world.tree
    bottom = len(world.levels) - 1
    upward = [own(basis, tree.units(bottom), world.levels[bottom])]
    for level in range(bottom - 1, -1, -1):
        units = tree.units(level)
        below = summed(upward[0], tree.parents[level + 1], units)
        upward.insert(0, combined(basis, own(basis, units, world.levels[level]), below))
    final = [upward[0]]
    for level in range(1, bottom + 1):
        final.append(down(basis, upward[level], tree.parents[level], final[-1]))
    return upward, final


class Dense:
    """Generalised least squares in the cells of all blocks, exact answers as equations."""

    def __init__(self, world: World, root: tuple[int, int] = (0, 0)) -> None:
        """Take the measurements of the unit `root` (level, number) and below it alone."""
        tree = world.tree
        self.cells = int(np.prod(world.shape))
        inside = unit_rows(tree, root[0])[root[1]]
        size = tree.units(len(tree.names) - 1) * self.cells
        information, vector = np.zeros((size, size)), np.zeros(size)
        equations, sides = [np.zeros((0, size))], [np.zeros(0)]
        for level in range(root[0], len(tree.names)):
            for measured in world.levels[level]:
                for unit, blocks in enumerate(unit_rows(tree, level)):
                    weight = measured.precision[unit]
                    if weight > 0 and blocks @ inside > 0:
                        rows = np.kron(blocks, matrix(measured.query))
                        if np.isinf(weight):
                            equations.append(rows)
                            sides.append(measured.answers[unit])
                        else:
                            information += weight * rows.T @ rows
                            vector += weight * rows.T @ measured.answers[unit]
        rows = np.concatenate(equations)
        start = np.linalg.lstsq(rows, np.concatenate(sides), rcond=1e-10)[0]
        left, values = np.linalg.svd(np.concatenate([rows, np.zeros((1, size))]), full_matrices=True)[1:][::-1]
        free = left[(values > 1e-9).sum() :].T
        spectrum, vectors = np.linalg.eigh(free.T @ information @ free)
        good = spectrum > 1e-10 * max(np.abs(information).max(), 1e-300)
        inverse = vectors[:, good] / spectrum[good] @ vectors[:, good].T
        self.null = free @ vectors[:, ~good]
        self.covariance = free @ inverse @ free.T
        self.value = start + self.covariance @ (vector - information @ start)

    def of(self, rows: Floats) -> tuple[Floats, Floats]:
        """Estimates and covariance of linear functions; variance infinity where they are not determined."""
        rows = np.atleast_2d(rows)
        covariance = rows @ self.covariance @ rows.T
        unknown = np.abs(rows @ self.null).max(axis=1, initial=0) > 1e-6
        variance = np.where(unknown, np.inf, np.diag(covariance))
        return rows @ self.value, variance
