"""Generalised least squares under identities: measurements moved until they add up. Public.

With independent measurements z of variances V and identities B y = 0 of what was measured, the best linear unbiased
estimate is ``z - V B' (B V B')^+ B z`` and its covariance ``V - V B' (B V B')^+ B V``. Unlike a tree of sums
(`least_squares`), identities may cross: states add to the nation while races add to everyone.
"""

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
