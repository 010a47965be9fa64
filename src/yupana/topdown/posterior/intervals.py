"""Intervals of block totals from their posterior, wider than it by what the run itself tells of its errors. Public.

They rest on the prior: they hold the truth in the stated share of blocks of a size, not of each block before its noise
is drawn, as those of the least squares do (docs/topdown-posterior.md).
"""

from statistics import NormalDist

import numpy as np

from yupana.arrays import Ints
from yupana.topdown.count_intervals import Bounds
from yupana.topdown.posterior.results import BlockPosterior


def intervals_of_totals(posterior: BlockPosterior, counts: Ints, confidence: float) -> Bounds:
    """Find the intervals of block totals.

    They are the whole numbers inside the normal interval: rounded outward, those of small blocks hold too often.

    Parameters
    ----------
    posterior : BlockPosterior
    counts : ndarray of int64, shape (blocks,)
        Published totals, which are always inside. Where nothing was drawn they are the whole interval, which then says
        nothing of the error of the parent.
    confidence : float
        Between 0 and 1.
    """
    factor = posterior.inflation.factor(posterior.mean)
    reach = NormalDist().inv_cdf((1.0 + confidence) / 2.0) * factor * posterior.spread
    lower = np.maximum(np.ceil(posterior.mean - reach), 0.0).astype(np.int64)
    upper = np.floor(posterior.mean + reach).astype(np.int64)
    return Bounds(np.minimum(lower, counts), np.maximum(upper, counts))
