"""The plan of a run: what each geounit of a spine is measured with, its share and that of each query. Public."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Indices
from yupana.geography.spine import Spine
from yupana.geography.tree import Tree
from yupana.plan.measurement import Measurement
from yupana.plan.plan import Plan
from yupana.privacy.exact import INFINITE
from yupana.topdown.configuration import Configuration
from yupana.topdown.plan import make_measurement, make_plan
from yupana.topdown.queries import Query


@dataclass(frozen=True, slots=True, eq=False)
class LevelSpending:
    """What one geolevel is measured with.

    Attributes
    ----------
    queries : tuple of Query
        Those measured.
    share_of : ndarray of int32, shape (units,)
        Which of the spine's shares each geounit has.
    measurements : mapping of int to tuple of Measurement
        By the position of a share, the measurement of each query; shares of 0 have none.
    weights : ndarray of float64, shape (shares, queries)
        Inverse variances by the position of a share; 0 for a share of 0. Without noise they are those of budget 1.
    variances : ndarray of float64, shape (shares, queries)
        Of a noisy answer; infinite for a share of 0, 0 without noise.
    passes : tuple of tuple of int
        Queries of each estimation pass, by position; one pass of none where nothing is measured, for the geounits have
        constraints and a parent all the same.
    """

    queries: tuple[Query, ...]
    share_of: NDArray[np.int32]
    measurements: Mapping[int, tuple[Measurement, ...]]
    weights: NDArray[np.float64]
    variances: NDArray[np.float64]
    passes: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Spending:
    """A plan on a spine.

    Attributes
    ----------
    plan : Plan
        Its paths are the ways in which shares follow one another from the root to a block.
    levels : tuple of LevelSpending
        In the order of the spine.
    """

    plan: Plan
    levels: tuple[LevelSpending, ...]

    @property
    def answers(self) -> int:
        """How many noisy answers there are, if all are drawn."""
        return sum(
            sum(query.size for query in level.queries) * int(np.isin(level.share_of, [*level.measurements]).sum())
            for level in self.levels
        )


def spend(configuration: Configuration, spine: Spine) -> Spending:
    """Spread the budget of a configuration over a spine.

    A geounit with share s measures query q with budget (budget * s * share of q). Shares along every path from the
    root to a block sum to 1, and so do those of the queries of a geolevel; the loss of the plan is then that of the
    configuration, whichever units were bypassed (docs/topdown-privacy.md, theorem 1).
    """
    levels = tuple(_level(configuration, spine, number) for number in range(len(spine.levels)))
    return Spending(plan_on(make_plan(configuration), spine.tree, levels), levels)


def plan_on(plan: Plan, tree: Tree, levels: Sequence[LevelSpending]) -> Plan:
    """A plan with the measurements of the geounits of a tree, and the paths of them that one record can count in.

    Parameters
    ----------
    plan : Plan
        What it says but of measurements.
    tree : Tree
    levels : sequence of LevelSpending
        Measurements of one name are one.
    """
    measurements = {m.name: m for level in levels for row in level.measurements.values() for m in row}
    position = {name: i for i, name in enumerate(measurements)}
    paths = tuple(
        tuple(
            position[m.name]
            for level, share in zip(levels, path, strict=True)
            for m in level.measurements.get(share, ())
        )
        for path in _paths(tree, [level.share_of for level in levels])
    )
    return replace(plan, measurements=tuple(measurements.values()), paths=tuple(dict.fromkeys(paths)))


def _level(configuration: Configuration, spine: Spine, number: int) -> LevelSpending:
    level = spine.levels[number]
    measured = configuration.measured(level.name)
    queries = tuple(query for query, _ in measured)
    measurements: dict[int, tuple[Measurement, ...]] = {}
    weights = np.zeros((len(spine.shares), len(queries)))
    variances = np.full((len(spine.shares), len(queries)), np.inf)
    for position in np.unique(level.share).tolist():
        share = spine.shares[position]
        if share == 0:
            continue
        row = tuple(make_measurement(configuration, level.name, query, share, part) for query, part in measured)
        measurements[position] = row
        variances[position] = [float(m.variance) for m in row]
        weights[position] = (
            [float(share * part) for _, part in measured]
            if configuration.budget == INFINITE
            else 1 / variances[position]
        )
    chosen = tuple(
        tuple(queries.index(query) for query in queries_of) for queries_of in configuration.passes[level.name].estimate
    )
    return LevelSpending(queries, level.share, measurements, weights, variances, chosen or ((),))


def _paths(tree: Tree, index: Sequence[Indices]) -> list[tuple[int, ...]]:
    """The distinct sequences of shares, by position, from the root to the blocks."""
    paths: list[tuple[int, ...]] = [()]
    of_parent = np.zeros(1, dtype=np.int64)
    shares = 1 + max(int(share.max(initial=0)) for share in index)
    for share, parent in zip(index, tree.parents, strict=True):
        cases, case = np.unique(of_parent[parent] * shares + share, return_inverse=True)
        paths = [(*paths[c // shares], c % shares) for c in cases.tolist()]
        of_parent = case.astype(np.int64)
    return paths
