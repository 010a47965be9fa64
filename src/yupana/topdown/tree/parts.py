"""The parts of a histogram on the geolevels of a tree: what queries tell of them, what answers have of them. Public.

A part is a set S of attributes (docs/topdown-least-squares.md, section 1) at a geolevel: number k * 2^attributes + S.
Where each geolevel is estimated by itself it is P_S of its units. On a regular tree under full information it is P_S of
what units of geolevel k differ by among the children of one parent (of the root: of what it holds). Both make the
precision of every part a sum of budgets, and the variance of every answer a sum over parts (docs/strategies.md).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from yupana.arrays import Floats
from yupana.topdown.queries import Query, margin
from yupana.topdown.tree.basis import Basis


@dataclass(frozen=True, slots=True)
class LevelParts:
    """The parts of the geolevels of a tree.

    Attributes
    ----------
    basis : Basis
    levels : int
        How many geolevels are estimated.
    children : tuple of float or None
        How many children each unit has, from the root down, of all geolevels but the last; None where each geolevel is
        estimated from its own answers alone.
    exact : tuple of bool
        Of each geolevel, whether the total of its units is known exactly.
    """

    basis: Basis
    levels: int
    children: tuple[float, ...] | None
    exact: tuple[bool, ...]

    @property
    def size(self) -> int:
        """How many parts there are."""
        return self.levels * len(self.basis.subsets)

    def told(self, level: int, query: Query) -> Floats:
        """The precision of each part from a unit of budget of a query in every unit of a geolevel, of shape (size,).

        Of a query that groups levels it is more than it tells: that of the query which keeps these attributes whole,
        times the largest groups. So its variances are bounds from below.
        """
        kept = margin(query.name, self.basis.shape, [groups > 1 for groups in query.shape])
        grouped = prod(
            int(np.bincount(factor).max())
            for factor, groups in zip(query.factors, query.shape, strict=True)
            if groups > 1
        )
        sets = self.basis.kept(kept)
        alone = self.basis.within(sets) * float(self.basis.summed(sets) * grouped)
        told = np.zeros((self.levels, len(alone)))
        if self.children is None:
            told[level] = alone
        else:
            told[: level + 1] = alone * self._leaves(level)
        return told.reshape(-1)

    def needed(self, level: int, loadings: Floats) -> Floats:
        """What the variance of answers counts of each part, of shape (answers, size).

        Parameters
        ----------
        level : int
        loadings : ndarray of float64, shape (answers, 2^attributes)
            Of the answers in a unit, as of `Basis.loadings`.
        """
        needed = np.zeros((len(loadings), self.levels, loadings.shape[1]))
        if self.children is None:
            needed[:, level] = loadings
        else:
            inverse = [1 / self._leaves(k) for k in range(level + 1)]
            for k, (own, above) in enumerate(zip(inverse, [0.0, *inverse], strict=False)):
                needed[:, k] = loadings * self._leaves(level) ** 2 * (own - above)
        needed[:, [*self.exact], 0] = 0
        return needed.reshape(len(loadings), -1)

    def precisions(self, measured: Sequence[tuple[int, Query]]) -> Floats:
        """`told` of queries of geolevels, of shape (size, queries)."""
        return np.stack([self.told(level, query) for level, query in measured], axis=1)

    def _leaves(self, level: int) -> float:
        """How many units of the last geolevel a unit holds."""
        return prod(() if self.children is None else self.children[level:])
