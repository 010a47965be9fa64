"""Where a release has TopDown's counts, and how those of blocks add up to geounits and to published geography."""

from collections.abc import Iterator
from typing import Final

from yupana.geography.published import Areas
from yupana.geography.spine import Spine
from yupana.topdown.histogram import Histogram

COUNTS: Final = "counts"
TABULATION: Final = "tabulation"
MICRODATA: Final = "microdata.csv"

BOUNDS: Final = ("LOWER", "UPPER", "MOE")
"""What stands after a count that has an interval."""


def sum_to_areas(histogram: Histogram, areas: list[Areas]) -> Iterator[tuple[Areas, Histogram]]:
    """Add block counts up to published geography.

    Parameters
    ----------
    histogram : Histogram
        Of the blocks of the spine, in its order.
    areas : list of Areas
        As `PublishedBlocks.areas` gives them.
    """
    sums = {"": histogram}
    for kind in areas:
        summed = sums[kind.below].sum_to(kind.index, kind.number)
        sums[kind.name] = summed
        yield kind, summed


def sum_to_levels(histogram: Histogram, spine: Spine) -> Iterator[tuple[int, Histogram]]:
    """Add block counts up the spine: each geolevel's number with its counts, from the blocks to the root."""
    last = len(spine.levels) - 1
    yield last, histogram
    for level in range(last, 0, -1):
        histogram = histogram.sum_to(spine.tree.parents[level], spine.tree.units(level - 1))
        yield level - 1, histogram
