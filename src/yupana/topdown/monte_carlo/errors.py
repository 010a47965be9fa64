"""From errors of replicates about a release to intervals about its counts, by running sums. Public."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from scipy.special import stdtrit

from yupana.arrays import Flags, Ints
from yupana.topdown.count_intervals import Bounds

FREEDOM: Final = 5
"""Degrees of freedom of the critical value, whatever the number of replicates: found by experiment, not by theory."""

_LEAST: Final = 5
"""Counts up to this are not corrected for bias."""

_LEAST_LOWERED: Final = 25
"""Counts below this are not corrected downwards."""


@dataclass(slots=True)
class ReplicateErrors:
    """Sums over replicates of their errors about published counts; no replicate is kept.

    Attributes
    ----------
    replicates : int
    sums, squares : ndarray of int64, of the shape of the counts
        Of replicate less published count, and of its square.
    """

    replicates: int
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
        confidence : Fraction

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
