"""The interval of every published count, however it was found: two whole numbers and the margin of error. Public."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from yupana.arrays import Ints
from yupana.geography.published import Areas
from yupana.topdown.disk import sum_to_areas
from yupana.topdown.histogram import Histogram


@dataclass(frozen=True, slots=True, eq=False)
class Bounds:
    """Between which whole numbers true counts lie, with a stated confidence each.

    Attributes
    ----------
    lower, upper : ndarray of int64, of one shape
        Lower is at least 0 and at most upper. The published count need not lie between them.
    """

    lower: Ints
    upper: Ints

    @property
    def margins(self) -> Ints:
        """Half the width of each interval, rounded up; its middle is the estimate, and not the published count."""
        width = self.upper - self.lower
        return np.asarray(width // 2 + width % 2, dtype=np.int64)


class CountIntervals(Protocol):
    """Finds intervals of what a release publishes of one kind of areas."""

    def of_cells(self, kind: Areas, counts: Histogram) -> Bounds:
        """Of each entry of the published counts of the areas, in their order.

        Parameters
        ----------
        kind : Areas
        counts : Histogram
            Of the areas of that kind.
        """
        ...

    def of_table(self, kind: Areas, member: Ints, size: int, first: int, last: int) -> Bounds:
        """Of the variables of a table, of the areas from ``first`` up to ``last``; shape (last - first, size).

        Parameters
        ----------
        kind : Areas
        member : ndarray of int64, shape (cells, k)
            The variables that each cell counts in, each once, -1 for none.
        size : int
            How many variables there are.
        first, last : int
        """
        ...


FindsIntervals = Callable[[list[Areas]], CountIntervals]
"""Makes ready what finds the intervals of the areas that are published."""


@dataclass(frozen=True, slots=True, eq=False)
class ExactIntervals:
    """Intervals whose ends are the published count.

    Attributes
    ----------
    sums : mapping of kind to Histogram
        Published counts of the areas of each kind.
    """

    sums: Mapping[str, Histogram]

    @classmethod
    def of(cls, counts: Histogram, areas: list[Areas]) -> "ExactIntervals":
        """Add the counts of the blocks up to published areas."""
        return cls({kind.name: summed for kind, summed in sum_to_areas(counts, areas)})

    def of_cells(self, kind: Areas, counts: Histogram) -> Bounds:
        """Of each entry of the published counts of the areas, in their order."""
        del kind
        return Bounds(counts.counts, counts.counts)

    def of_table(self, kind: Areas, member: Ints, size: int, first: int, last: int) -> Bounds:
        """Of the variables of a table, of the areas from ``first`` up to ``last``; shape (last - first, size)."""
        values = self.sums[kind.name].variables(member, size, first, last)
        return Bounds(values, values)
