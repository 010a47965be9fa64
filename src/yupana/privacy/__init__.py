"""The guarantee: definitions of privacy loss, the laws of the noise and the exact sampler.

Nothing here knows a table, a file or a record. Budgets and scales are exact rationals; floating point
appears only in what is reported (epsilons, probabilities, quantiles), never in a draw.
"""

from yupana.privacy.laws import DiscreteGaussian, Law, TwoSidedGeometric, Zero
from yupana.privacy.sampler import add_noise, sample
from yupana.privacy.zcdp import epsilon_bun_steinke, epsilon_tight, rho_for_epsilon

__all__ = [
    "DiscreteGaussian",
    "Law",
    "TwoSidedGeometric",
    "Zero",
    "add_noise",
    "epsilon_bun_steinke",
    "epsilon_tight",
    "rho_for_epsilon",
    "sample",
]
