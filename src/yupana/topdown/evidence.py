"""Noisy measurements of some families, as the estimator reads them. Public."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from yupana.arrays import Floats, Ints
from yupana.topdown.budget import LevelSpending
from yupana.topdown.divide import Terms
from yupana.topdown.draws import Drawn
from yupana.topdown.families import Asked, SiblingBatch


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredFamilies:
    """What was measured of the children of some families.

    Attributes
    ----------
    families : SiblingBatch
    asked : tuple of Asked
        By query: which answers were asked.
    values : tuple of ndarray of integers
        By query the noisy answers, in as few bytes as they were kept.
    places : tuple of ndarray of int64
        By query where the answers of each parent begin: see `Asked.places`.
    weights : ndarray of float64, shape (children of all, queries)
        Inverse variances; 0 where a child was not measured.
    chosen : tuple of tuple of int
        Queries of each estimation pass, by position.
    """

    families: SiblingBatch
    asked: tuple[Asked, ...]
    values: Drawn
    places: tuple[Ints, ...]
    weights: Floats
    chosen: tuple[tuple[int, ...], ...]

    @classmethod
    def of(
        cls, spent: LevelSpending, families: SiblingBatch, asked: tuple[Asked, ...], values: Drawn
    ) -> "MeasuredFamilies":
        """What was measured of families under a plan."""
        places = tuple(one.places(families.children) for one in asked)
        weights = spent.weights[spent.share_of[families.first : families.last]]
        return cls(families, asked, values, places, weights, spent.passes)

    def passes(self, parent: int) -> Sequence[Callable[[], Terms]]:
        """What each estimation pass of a parent fits; what a pass answers, later passes hold."""
        last = len(self.chosen) - 1
        return [partial(self._terms, parent, queries, holds=i < last) for i, queries in enumerate(self.chosen)]

    def _terms(self, parent: int, queries: tuple[int, ...], *, holds: bool) -> Terms:
        children = slice(*(self.families.children[parent : parent + 2] - self.families.first))
        live = slice(*self.families.starts[parent : parent + 2])
        labels = tuple(self.asked[q].local[live] for q in queries)
        number = children.stop - children.start
        answers = tuple(
            self.values[q][slice(*self.places[q][parent : parent + 2])].reshape(number, -1).astype(np.float64)
            for q in queries
        )
        weights = np.ascontiguousarray(self.weights[children][:, list(queries)])
        return Terms(labels, answers, weights, labels if holds else ())
