"""Replicates: the estimate made again, of published counts in place of the records. Public.

It reads what a release and the public lists hold, and coins of its own (docs/topdown-privacy.md, theorem 5).
"""

from collections.abc import Iterator
from dataclasses import dataclass

from yupana.arrays import Integers
from yupana.geography.spine import Spine
from yupana.privacy.entropy import Entropy
from yupana.progress import Progress, Stopwatch, silent
from yupana.topdown.block_parts import HistogramParts, whole
from yupana.topdown.budget import spend
from yupana.topdown.compile import compile_kernels
from yupana.topdown.configuration import Configuration, Estimator
from yupana.topdown.disk import sum_to_levels
from yupana.topdown.door import Door
from yupana.topdown.draws import unkept
from yupana.topdown.estimate import coins_for, estimate_counts, measured, premises_of
from yupana.topdown.histogram import Histogram
from yupana.topdown.invariants import kept_areas, known_totals


@dataclass(frozen=True, slots=True, eq=False)
class ReleasedCounts:
    """What an estimate made of the records, and all that it was made with but these. Public.

    Attributes
    ----------
    configuration : Configuration
    spine : Spine
    facilities : ndarray of integers, shape (blocks, 8), or None
        Housing units and facilities by major type, in the order of the spine, where the configuration bounds them or
        the estimator reads them.
    estimator : "topdown", "full-information" or "posterior"
    counts : Histogram
        Published counts of the blocks, in the order of the spine.
    """

    configuration: Configuration
    spine: Spine
    facilities: Integers | None
    estimator: Estimator
    counts: Histogram


def replicates(
    published: ReleasedCounts, number: int, entropy: Entropy, progress: Progress = silent
) -> Iterator[Histogram]:
    """Estimate published counts as they were estimated themselves, with new noise of the same law each time.

    Parameters
    ----------
    published : ReleasedCounts
    number : int
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
    known = {} if kept is None else known_totals(kept, HistogramParts(published.counts))
    premises = premises_of(configuration, spine, known, published.facilities)
    levels = [counts for _, counts in sum_to_levels(published.counts, spine)][::-1]

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
