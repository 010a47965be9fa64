"""Intervals of all counts of a release, from replicates of it. Public."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain

from yupana.arrays import Ints
from yupana.geography.published import Areas
from yupana.topdown.count_intervals import Bounds
from yupana.topdown.disk import sum_to_areas
from yupana.topdown.histogram import Histogram
from yupana.topdown.monte_carlo.errors import ReplicateErrors


@dataclass(frozen=True, slots=True, eq=False)
class MonteCarloIntervals:
    """Approximate Monte Carlo intervals of published counts: how far replicates are from a release, by area.

    What is kept of a replicate are its counts of published areas that are not zero: less than the sums of all variables
    of all tables would take, and enough for any.

    Attributes
    ----------
    confidence : Fraction
        Of each interval alone.
    sums : mapping of kind to tuple of Histogram
        Counts of the areas of each kind: published, then of each replicate.
    """

    confidence: Fraction
    sums: Mapping[str, tuple[Histogram, ...]]

    @classmethod
    def of(
        cls, counts: Histogram, replicates: Iterable[Histogram], areas: list[Areas], confidence: Fraction
    ) -> "MonteCarloIntervals":
        """Add replicates up to published areas, one after the other.

        Parameters
        ----------
        counts : Histogram
            Published counts of the blocks of the spine.
        replicates : iterable of Histogram
            Of the same blocks.
        areas : list of Areas
        confidence : Fraction
        """
        sums: dict[str, list[Histogram]] = {kind.name: [] for kind in areas}
        for blocks in chain([counts], replicates):
            for kind, summed in sum_to_areas(blocks, areas):
                sums[kind.name].append(summed)
        return cls(confidence, {name: tuple(found) for name, found in sums.items()})

    def of_cells(self, kind: Areas, counts: Histogram) -> Bounds:
        """Of each entry of the published counts of the areas, in their order."""
        errors = ReplicateErrors.none(counts.counts.shape)
        for replicate in self.sums[kind.name][1:]:
            errors.add(replicate.counts_at(counts) - counts.counts)
        return errors.bounds(counts.counts, self.confidence)

    def of_table(self, kind: Areas, member: Ints, size: int, first: int, last: int) -> Bounds:
        """Of the variables of a table, of the areas from ``first`` up to ``last``; shape (last - first, size)."""
        published, *others = (counts.part(first, last) for counts in self.sums[kind.name])
        values = published.variables(member, size, 0, last - first)
        errors = ReplicateErrors.none(values.shape)
        for replicate in others:
            errors.add(replicate.variables(member, size, 0, last - first) - values)
        return errors.bounds(values, self.confidence)
