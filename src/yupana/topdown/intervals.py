"""The interval of every published count: what holds one, and Monte Carlo, which finds it by estimating again. Public.

A replicate is a release made again from its own counts, with new noise: it reads what the release and the public lists
hold, and coins of its own (docs/topdown-privacy.md, theorem 5). From its errors about the release intervals of the
counts follow, by running sums.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from typing import Final, Protocol

import numpy as np
from scipy.special import stdtrit

from yupana.arrays import Flags, Integers, Ints
from yupana.geography.published import Areas, areas_of_spine
from yupana.geography.spine import Spine
from yupana.privacy.entropy import Entropy
from yupana.progress import Progress, Stopwatch, silent
from yupana.topdown import Estimator
from yupana.topdown.budget import spend
from yupana.topdown.configuration import Configuration
from yupana.topdown.constraints import kept_areas, known_totals
from yupana.topdown.descent.checkpoint import unkept
from yupana.topdown.descent.compile import compile_kernels
from yupana.topdown.descent.estimate import coins_for, estimate_counts, measured, premises_of
from yupana.topdown.descent.measurements import Door
from yupana.topdown.histogram import Histogram, sum_to_areas, whole
from yupana.topdown.text_rows import variables
from yupana.topdown.tree.least_squares import Bounds


class CountIntervals(Protocol):
    """Finds intervals of what a release publishes of one kind of areas."""

    def of_cells(self, kind: Areas, counts: Histogram) -> Bounds:
        """Of each entry of the published counts of the areas, in their order.

        Parameters
        ----------
        counts : Histogram
            Of the areas of that kind.
        """
        ...

    def of_table(self, kind: Areas, member: Ints, size: int, first: int, last: int) -> Bounds:
        """Of the variables of a table, of the areas from ``first`` up to ``last``; shape (last - first, size).

        Parameters
        ----------
        member : ndarray of int64, shape (cells, k)
            The variables that each cell counts in, each once, -1 for none.
        size : int
            How many variables there are.
        """
        ...


FindsIntervals = Callable[[list[Areas]], CountIntervals]
"""Makes ready what finds the intervals of the areas that are published."""


@dataclass(frozen=True, slots=True, eq=False)
class ExactIntervals:
    """Intervals whose ends are the published count."""

    sums: Mapping[str, Histogram]  # by kind: published counts of the areas of each kind

    @classmethod
    def of(cls, counts: Histogram, areas: list[Areas]) -> "ExactIntervals":
        """Add the counts of the blocks up to published areas."""
        return cls(sum_to_areas(counts, areas))

    def of_cells(self, kind: Areas, counts: Histogram) -> Bounds:
        """Of each entry of the published counts of the areas, in their order."""
        del kind
        return Bounds(counts.counts, counts.counts)

    def of_table(self, kind: Areas, member: Ints, size: int, first: int, last: int) -> Bounds:
        """Of the variables of a table, of the areas from ``first`` up to ``last``; shape (last - first, size)."""
        values = variables(self.sums[kind.name].part(first, last), member, size)
        return Bounds(values, values)


FREEDOM: Final = 5
"""Degrees of freedom of the critical value, whatever the number of replicates: found by experiment, not by theory."""

_LEAST: Final = 5
"""Counts up to this are not corrected for bias."""

_LEAST_LOWERED: Final = 25
"""Counts below this are not corrected downwards."""


@dataclass(frozen=True, slots=True, eq=False)
class ReleasedCounts:
    """What an estimate made of the records, and all that it was made with but these. Public."""

    configuration: Configuration
    spine: Spine
    # shape (blocks, 8), or None: housing units and facilities by major type, in the order of the spine, where the
    # configuration bounds them or the estimator reads them
    facilities: Integers | None
    estimator: Estimator
    counts: Histogram  # published counts of the blocks, in the order of the spine


def replicates(
    published: ReleasedCounts, number: int, entropy: Entropy, progress: Progress = silent
) -> Iterator[Histogram]:
    """Estimate published counts as they were estimated themselves, with new noise of the same law each time.

    Parameters
    ----------
    entropy : Entropy
        Of coins that nothing else was made with.
    progress : callable
        Called with how many replicates are done.

    Yields
    ------
    Histogram
        Counts of the blocks, in the order of the spine.
    """
    configuration, spine = published.configuration, published.spine
    spending = spend(configuration, spine)
    kept = kept_areas(configuration, spine)
    # Published areas have the totals that were kept exactly.
    known = {} if kept is None else known_totals(kept, published.counts)
    premises = premises_of(configuration, spine, known, published.facilities)
    levels = [*sum_to_areas(published.counts, areas_of_spine(spine)).values()][::-1]

    def one(replicate: int) -> Histogram:
        clock = Stopwatch(silent)
        door = Door(levels, spending, entropy.branch(f"replicate {replicate}"))
        keeper = unkept(published.estimator)
        evidence = measured(premises, door, keeper, published.estimator, clock, silent, in_full=False)
        coins = coins_for(published.estimator, entropy.branch(f"replicate {replicate}"))
        return whole(estimate_counts(premises, evidence, keeper, clock, silent, coins).counts[-1])

    compile_kernels(silent)
    for replicate in range(number):
        counts = one(replicate)
        progress("replicates", replicate + 1, number)
        yield counts


@dataclass(slots=True)
class ReplicateErrors:
    """Sums over replicates of their errors about published counts; no replicate is kept."""

    replicates: int
    # sums, squares: of replicate less published count, and of its square
    sums: Ints
    squares: Ints

    @classmethod
    def none(cls, shape: tuple[int, ...]) -> "ReplicateErrors":
        """Before the first replicate."""
        return cls(0, np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64))

    def add(self, errors: Ints) -> None:
        """Add a replicate less the published counts."""
        self.replicates += 1
        self.sums += errors
        self.squares += errors * errors

    def bounds(self, counts: Ints, confidence: Fraction) -> Bounds:
        """The interval of each published count, at the confidence of each alone.

        The published count less its bias, if that is to be corrected, -/+ the critical value of Student's t with 5
        degrees of freedom times the root mean squared error, rounded outward, at least 0.

        Parameters
        ----------
        counts : ndarray of int64, of the shape of the sums

        Raises
        ------
        ValueError
            If there are fewer than two replicates, which do not tell bias from spread.

        Source
        ------
        Ashmead, Hawes, Pritts, Zhuravlev, Keller: approximate Monte Carlo confidence intervals, 16 April 2024, section
        3.3: the conditional interval with Student's t.
        """
        if self.replicates < 2:
            raise ValueError("an interval takes two replicates or more")
        bias = np.where(self._is_corrected(counts), self.sums / self.replicates, 0.0)
        reach = critical_value(confidence) * np.sqrt(self.squares / self.replicates)
        lower, upper = np.floor(counts - bias - reach), np.ceil(counts - bias + reach)
        return Bounds(np.maximum(lower, 0).astype(np.int64), np.maximum(upper, 0).astype(np.int64))

    def _is_corrected(self, counts: Ints) -> Flags:
        """Where the bias is at least half the standard deviation, and the count large enough."""
        number = float(self.replicates)
        squared = self.sums.astype(np.float64) ** 2
        # (number - 1) number times the variance of the replicates, and so the rule without a quotient or a root.
        varied = number * self.squares - squared
        notable = 4 * (number - 1) * squared >= number * varied
        large = (counts > _LEAST) & ((self.sums < 0) | (counts >= _LEAST_LOWERED))
        return np.asarray((varied > 0) & notable & large, dtype=np.bool_)


def critical_value(confidence: Fraction) -> float:
    """What part of Student's distribution with 5 degrees of freedom lies within -/+ this is the confidence."""
    # Of the tail, which doubles tell from 0 where they would not tell the confidence from 1.
    return -float(stdtrit(FREEDOM, float((1 - confidence) / 2)))


@dataclass(frozen=True, slots=True, eq=False)
class MonteCarloIntervals:
    """Approximate Monte Carlo intervals of published counts: how far replicates are from a release, by area.

    What is kept of a replicate are its counts of published areas that are not zero: less than the sums of all variables
    of all tables would take, and enough for any.
    """

    confidence: Fraction  # of each interval alone
    # by kind: counts of the areas of each kind: published, then of each replicate
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
        """
        sums: dict[str, list[Histogram]] = {kind.name: [] for kind in areas}
        for blocks in chain([counts], replicates):
            for kind, summed in sum_to_areas(blocks, areas).items():
                sums[kind].append(summed)
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
        values = variables(published, member, size)
        errors = ReplicateErrors.none(values.shape)
        for replicate in others:
            errors.add(variables(replicate, member, size) - values)
        return errors.bounds(values, self.confidence)
