"""Intervals of counts that were measured without noise: the counts themselves. Public."""

from collections.abc import Mapping
from dataclasses import dataclass

from yupana.arrays import Ints
from yupana.geography.published import Areas
from yupana.topdown.count_intervals import Bounds
from yupana.topdown.disk import sum_to_areas
from yupana.topdown.histogram import Histogram


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
