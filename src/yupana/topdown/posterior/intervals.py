"""Intervals of block totals from their posterior, wider than it by stated factors. Public.

They rest on the prior: they hold the truth in the stated share of blocks of a size, not of each block before its noise
is drawn, as those of the least squares do (docs/topdown-posterior.md).
"""

from statistics import NormalDist
from typing import Final

import numpy as np

from yupana.arrays import Ints
from yupana.topdown.count_intervals import Bounds
from yupana.topdown.posterior.found import BlockPosterior

INFLATION: Final = ((0, 1.0), (1, 0.9), (10, 1.0), (50, 1.05), (100, 1.1), (250, 1.35))
"""By the least published total, factors of the posterior standard deviation: the tails of the model are too light.

Of blocks of Cook County, Illinois (2010), at 44 cells and 90 percent, in one draw of the noise.
"""

_HALF: Final = 0.5
"""A whole number covers so much to both sides."""


def intervals_of_totals(posterior: BlockPosterior, counts: Ints, confidence: float) -> Bounds:
    """Find the intervals of block totals.

    Parameters
    ----------
    posterior : BlockPosterior
    counts : ndarray of int64, shape (blocks,)
        Published totals.
    confidence : float
        Between 0 and 1.
    """
    begins, factors = np.array([low for low, _ in INFLATION]), np.array([factor for _, factor in INFLATION])
    factor = factors[np.searchsorted(begins, counts, side="right") - 1]
    reach = NormalDist().inv_cdf((1.0 + confidence) / 2.0) * factor * posterior.spread
    drawn = posterior.spread > 0
    lower = np.where(drawn, np.ceil(posterior.mean - reach - _HALF), counts)
    upper = np.where(drawn, np.floor(posterior.mean + reach + _HALF), counts)
    lower = np.maximum(lower, 0.0).astype(np.int64)
    return Bounds(lower, np.maximum(upper, lower).astype(np.int64))
