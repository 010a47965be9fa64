"""By how much the errors of block totals exceed their posterior deviations, told by the noisy answers alone. Public.

The posterior mean m of a total, its deviation s, and the least squares y of that total from the block's own answers, of
variance V, go together by Stein's identity: the covariance of y and m is V times the slope of m in y, which is s^2
whatever the prior. So (m - y)^2 - V + 2 s^2 is on average the squared error of m, however wrong the prior is
(docs/topdown-posterior.md).
"""

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from scipy.optimize import nnls

from yupana.arrays import Floats
from yupana.topdown.posterior.draw import Draws

_SIZES: Final[Floats] = np.array([30.0, 100.0, 300.0])
"""Means of a total for which the excess of its squared error is told; linear in the logarithm between them."""


def _by_size(mean: Floats) -> Floats:
    """How much each of the sizes says of a total with such a mean; shape (sizes, k), columns sum to 1."""
    at = np.log(np.maximum(mean, 1.0))
    return np.stack([np.interp(at, np.log(_SIZES), one) for one in np.eye(len(_SIZES))])


@dataclass(frozen=True, slots=True)
class Inflation:
    """How many times its posterior variance the squared error of a total is, less 1.

    Attributes
    ----------
    excess : tuple of float
        Of totals of 30, 100 and 300; at least 0, so that no interval is narrower than that of the posterior.
    """

    excess: tuple[float, ...]

    def factor(self, mean: Floats) -> Floats:
        """Of the posterior standard deviations of totals with these means."""
        return np.asarray(np.sqrt(1.0 + np.array(self.excess) @ _by_size(mean)))

    def told(self) -> dict[str, Any]:
        """For a manifest."""
        return {f"{size:.0f}": round(one, 4) for size, one in zip(_SIZES, self.excess, strict=True)}


@dataclass(slots=True)
class SquaredErrors:
    """Weighted least squares of estimated squared errors by size; those of many parents add up.

    Attributes
    ----------
    normal : ndarray of float64, shape (sizes, sizes)
    said : ndarray of float64, shape (sizes,)
    """

    normal: Floats = field(default_factory=lambda: np.zeros((len(_SIZES), len(_SIZES))))
    said: Floats = field(default_factory=lambda: np.zeros(len(_SIZES)))

    def add(self, draws: Draws, measured: Floats, variance: Floats) -> None:
        """Add the children of one parent.

        Parameters
        ----------
        draws : Draws
        measured, variance : ndarray of float64, shape (k,)
            Least squares of the totals from each child's own answers, and their variances; nan of a child without.
        """
        totals = draws.totals.astype(np.float64)
        half = len(totals) // 2
        mean, spread = totals.mean(axis=0), totals.var(axis=0)
        # A chain sees less than the whole variance, by that of its own mean.
        slope = spread + (totals[:half].mean(axis=0) - totals[half:].mean(axis=0)) ** 2 / 4.0
        excess = (mean - measured) ** 2 - variance + 2.0 * slope - spread
        here = np.isfinite(variance) & (spread > 0)
        # What is estimated varies as the square of the variance, nearly whatever the counts.
        by = _by_size(mean[here]) * spread[here] / variance[here]
        self.normal += by @ by.T
        self.said += by @ (excess[here] / variance[here])

    def inflation(self) -> Inflation:
        """The inflation that fits best; none where nothing was added."""
        values, vectors = np.linalg.eigh(self.normal)
        root = np.sqrt(np.maximum(values, 0.0))
        told = np.where(root > 0, vectors.T @ self.said / np.where(root > 0, root, 1.0), 0.0)
        found, _ = nnls(root[:, None] * vectors.T, told)
        return Inflation(tuple(found.tolist()))
