"""What the posterior of the blocks came to, what it was given, and the intervals that follow from it. Public."""

from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Final

import numpy as np

from yupana.arrays import Floats, Integers, Ints
from yupana.topdown.count_intervals import Bounds
from yupana.topdown.posterior.diagnostics import Chains, PriorFit
from yupana.topdown.posterior.draw import Sweeps
from yupana.topdown.posterior.inflation import Inflation
from yupana.topdown.posterior.prior import Prior
from yupana.topdown.posterior.siblings import Places

UNUSUAL_BLOCKS: Final = (
    "the posterior draws blocks to what is common around them; where half of a block is unlike its block group, "
    "Hispanic by race was off by 25 percent more than without it (Cook County, 2010; docs/topdown-posterior.md)"
)
"""What is remarked of every release of which blocks were drawn from a posterior."""


@dataclass(frozen=True, slots=True, eq=False)
class PublicLists:
    """What is known of every block beside what was measured.

    Attributes
    ----------
    units : ndarray of integers, shape (blocks,), or None
        Housing units, where they are used.
    facilities : ndarray of integers, shape (blocks, types), or None
        Group-quarters facilities by type, where the schema bounds people by them.
    """

    units: Integers | None
    facilities: Integers | None

    def of(self, first: int, last: int) -> Places:
        """Of the blocks from ``first`` up to ``last``."""
        both = (self.units, self.facilities)
        return Places(*(None if of is None else of[first:last].astype(np.int64) for of in both))


@dataclass(frozen=True, slots=True, eq=False)
class BlockPosterior:
    """What was found of the blocks beside their counts.

    Attributes
    ----------
    mean, spread : ndarray of float64, shape (blocks,)
        Posterior mean and standard deviation of the total of each block; where nothing was drawn the count, and 0.
    inflation : Inflation
        Of the squared errors of those totals over their posterior variances, as the noisy answers tell it.
    prior : Prior
        As learned.
    chains : Chains
    fit : PriorFit
    sweeps : tuple of (int, int)
        How many were left out, and how many counted.
    seed : int
        Of all draws. It is no secret: with it the estimate can be made again from the measurements.
    with_units : bool
        Whether housing units were used.
    """

    mean: Floats
    spread: Floats
    inflation: Inflation
    prior: Prior
    chains: Chains
    fit: PriorFit
    sweeps: Sweeps
    seed: int
    with_units: bool

    def told(self) -> dict[str, Any]:
        """For a manifest."""
        return {
            "housing_units": self.with_units,
            "concentration_between": round(self.prior.between, 2),
            "concentration_within": round(self.prior.within, 2),
            "sweeps_left_out": self.sweeps[0],
            "sweeps": self.sweeps[1],
            "seed": str(self.seed),
            "inflation": self.inflation.told(),
            "chains": self.chains.told(),
            "fit": self.fit.told(),
        }


def intervals_of_totals(posterior: BlockPosterior, counts: Ints, confidence: float) -> Bounds:
    """Find the intervals of block totals, wider than the posterior by what the run itself tells of its errors.

    They rest on the prior: they hold the truth in the stated share of blocks of a size, not of each block before its
    noise is drawn, as those of the least squares do (docs/topdown-posterior.md). They are the whole numbers inside the
    normal interval: rounded outward, those of small blocks hold too often.

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
