"""Generalised least squares under identities, and tests of the fit whose chance of a false alarm is proven. Public.

With independent measurements z of variances V and identities B y = 0 of what was measured, the best linear unbiased
estimate is ``z - V B' (B V B')^+ B z`` and its covariance ``V - V B' (B V B')^+ B V``. Unlike a tree of sums
(`yupana.topdown.tree`), identities may cross: states add to the nation while races add to everyone.

The noise is discrete Gaussian or two-sided geometric, so that neither a normal nor a chi-square table is exact. The
bounds of the tests hold for the laws as they are; docs/phsafe-estimates.md proves them.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Floats

Identity = Mapping[int, float]
"""Coefficients by the place of a quantity; what they weigh sums to 0."""

_DEPENDENT: Final = 1e-9
"""An eigenvalue below this, relative to the largest of the scaled system, belongs to an identity implied by others."""

_NO_CORRELATION: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Projection:
    """Estimates under identities.

    Attributes
    ----------
    values : float array, shape (quantities,) or (quantities, releases)
    variances : float array, shape (quantities,)
        As measured.
    gained : float array, shape (identities that count, quantities)
        The covariance of the estimates is ``diag(variances) - gained' gained``.
    misfit : float array, shape () or (releases,)
        Chi-square of the residual: squared distance from measurements to estimates, in standard deviations.
    """

    values: Floats
    variances: Floats
    gained: Floats
    misfit: Floats

    def covariances(self, places: NDArray[np.intp]) -> Floats:
        """Covariances within groups of quantities.

        Parameters
        ----------
        places : int array, shape (groups, size)

        Returns
        -------
        float array, shape (groups, size, size)
            Exactly 0 where correlations are below 1e-9, which is rounding.
        """
        taken = self.gained[:, places]
        found = -np.einsum("kgi,kgj->gij", taken, taken)
        size = places.shape[1]
        found[:, np.arange(size), np.arange(size)] += self.variances[places]
        scale = np.sqrt(np.diagonal(found, axis1=1, axis2=2))
        return np.where(np.abs(found) < _NO_CORRELATION * scale[:, :, None] * scale[:, None, :], 0.0, found)


def project(values: Floats, variances: Floats, identities: Sequence[Identity]) -> Projection:
    """Best linear unbiased estimates of quantities that satisfy identities, which may imply one another.

    Parameters
    ----------
    values : float array, shape (quantities,) or (quantities, releases)
        Independent measurements, of one release or of many alike.
    variances : float array, shape (quantities,)
        Of every release; positive.
    identities : sequence of Identity
    """
    if not identities:
        return Projection(values, variances, np.zeros((0, variances.size)), np.zeros(values.shape[1:]))
    weights = np.zeros((len(identities), variances.size))
    for row, identity in enumerate(identities):
        weights[row, list(identity)] = list(identity.values())
    # Scaled so that every identity misses by a variance of 1, whatever its terms.
    spread = weights * np.sqrt(variances)
    spread /= np.sqrt((spread**2).sum(axis=1))[:, None]
    eigenvalues, vectors = np.linalg.eigh(spread @ spread.T)
    counts = eigenvalues > _DEPENDENT * eigenvalues[-1]
    basis = (vectors[:, counts] / np.sqrt(eigenvalues[counts])).T @ spread
    root = np.sqrt(variances)
    misses = (basis / root) @ values
    moved = (basis * root).T @ misses
    return Projection(values - moved, variances, basis * root, np.asarray((misses**2).sum(axis=0)))


_TILTS: Final = np.linspace(0.01, 0.99, 99)
"""Exponents that are tried, as shares of the largest for which the noise has a moment; each gives a valid bound."""


@dataclass(frozen=True, slots=True)
class JointFit:
    """How well measurements fit.

    Attributes
    ----------
    chi_square : float
        Squared distance of the measurements to the estimates, in standard deviations.
    degrees : int
        Identities that count.
    largest : float
        What `chi_square` exceeds with at most half of the chance given; infinite where no bound is known.
    worst : int
        The identity that is missed most improbably.
    missed_by : float
        By how much.
    logarithm : float
        Of the chance of such a miss in some identity, bounded from above.
    fits : bool
        Whether neither test says that the identities are false.
    """

    chi_square: float
    degrees: int
    largest: float
    worst: int
    missed_by: float
    logarithm: float
    fits: bool


def fit(
    values: Floats,
    variances: Floats,
    identities: Sequence[Identity],
    found: Projection,
    *,
    geometric: bool,
    chance: float,
) -> JointFit:
    """Test the fit of measurements; if all identities hold, both tests pass but with a probability of ``chance``.

    Parameters
    ----------
    values, variances : float arrays, shape (quantities,)
        Of a two-sided geometric law the variance; of a discrete Gaussian its parameter, which is no less.
    identities : sequence of Identity
        At least one.
    found : Projection
        Of these.
    geometric : bool
        Whether the noise is two-sided geometric. It has heavier tails than a chi-square allows for, and each identity
        is tested on its own.
    chance : float
    """
    misses = np.array([sum(w * values[place] for place, w in identity.items()) for identity in identities])
    tail = _log_geometric_tail if geometric else _log_gaussian_tail
    logarithms = np.array(
        [
            tail(abs(miss), np.array(list(identity.values())), variances[list(identity)])
            for miss, identity in zip(misses.tolist(), identities, strict=True)
        ]
    )
    worst = int(np.argmin(logarithms))
    logarithm = float(logarithms[worst]) + math.log(len(identities))
    degrees = found.gained.shape[0]
    largest = math.inf if geometric else chi_square_bound(degrees, chance / 2)
    chi_square = float(found.misfit)
    fits = chi_square <= largest and logarithm >= math.log(chance / 2)
    return JointFit(chi_square, degrees, largest, worst, float(misses[worst]), logarithm, fits)


def chi_square_bound(degrees: int, chance: float) -> float:
    """What the squared norm of a sub-Gaussian vector of this dimension exceeds with at most this chance."""
    t = -math.log(chance)
    return degrees + 2 * math.sqrt(degrees * t) + 2 * t


def _log_gaussian_tail(miss: float, weights: Floats, variances: Floats) -> float:
    """Chernoff's bound on the chance of so large a weighted sum of discrete Gaussians."""
    return math.log(2) - miss**2 / (2 * float(weights**2 @ variances))


def _log_geometric_tail(miss: float, weights: Floats, variances: Floats) -> float:
    """Chernoff's bound on the chance of so large a weighted sum of two-sided geometric variables."""
    # The variance is 2 q / (1 - q)^2; the moment generating function (1 - q)^2 / ((1 - q e^s) (1 - q e^-s)).
    q = variances / (variances + 1 + np.sqrt(2 * variances + 1))
    size = np.abs(weights)
    tilts = _TILTS * float((-np.log(q) / size).min())
    exponents = tilts[:, None] * size
    moments = 2 * np.log1p(-q) - np.log1p(-q * np.exp(exponents)) - np.log1p(-q * np.exp(-exponents))
    return min(0.0, math.log(2) + float((moments.sum(axis=1) - tilts * miss).min()))
