"""The two demonstrations of the paper: composition that is not tight, and an invariant that raises the loss.

Both add geometric noise to strata of geounits and then solve small problems; each solution here is exact, not searched.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Final

import numpy as np

from yupana.arrays import Floats, Ints
from yupana.audit.empirical.series import Series
from yupana.privacy.entropy import Entropy
from yupana.privacy.laws import TwoSidedGeometric
from yupana.privacy.sampler import add_noise

TOTAL_SHARE: Final = Fraction(1, 4)
"""Of epsilon 1, for the total of a geounit; the strata get the rest."""

STRATA_EPSILON: Final = Fraction(1, 4)
"""Of the strata under the invariant."""


WORDS: Final = {
    "composition": (
        "A changed record moves two counts, so a step of one count is half of a change. By composition such a step of "
        "the total loses at most (1/4 + 3/4) / 2 = 0.5; the noisy total alone loses 1/8.",
        "Least squares minimise 1/4 (sum of strata - total)^2 + 3/4 sum (stratum - measured)^2, least absolute "
        "deviations the same without squares; strata are not negative. The latter never use the noisy total.",
    ),
    "invariant": (
        "The noisy strata alone lose 1/8 by a step of one count (epsilon 1/4 for a changed record).",
        "The second series shows what the ban on negative counts does without any invariant; the third keeps the total "
        "of the county, too.",
    ),
}
"""What a reader of a demonstration must know."""


def least_squares(total: Floats, strata: Floats, weight: float) -> Floats:
    """Non-negative x that minimise ``weight (sum x - total)^2 + sum (x - strata)^2``, row by row.

    By the optimality conditions x = max(strata - t, 0) with t = weight (sum x - total), so that only t is sought: for
    the k largest strata of a row, t = weight (their sum - total) / (1 + weight k), and the right k is the one whose t
    lies between its smallest stratum and the next.

    Parameters
    ----------
    total : ndarray of float64, shape (rows,)
        Not negative where the weight is infinite.
    strata : ndarray of float64, shape (rows, strata)
    weight : float
        Above zero; infinite for a total that is kept exactly.

    Returns
    -------
    ndarray of float64, shape (rows, strata)
    """
    ordered = -np.sort(-strata, axis=1)
    number = np.arange(1, strata.shape[1] + 1)
    excess = np.cumsum(ordered, axis=1) - total[:, None]
    t = excess / number if np.isinf(weight) else weight * excess / (1 + weight * number)
    # t of k holds the k-th stratum positive for exactly the first few k, and the last of them is the right one.
    positive = (ordered > t).sum(axis=1)
    chosen = t[np.arange(len(t)), np.maximum(positive, 1) - 1]
    if not np.isinf(weight):
        chosen = np.where(positive > 0, chosen, -weight * total)
    return np.asarray(np.maximum(strata - chosen[:, None], 0.0), dtype=np.float64)


def least_absolute(strata: Floats) -> Floats:
    """Non-negative x that minimise ``a |sum x - total| + b sum |x - strata|`` for a at most b, whatever the total.

    A stratum moved by one away from max(strata, 0) costs b and saves at most a.

    Parameters
    ----------
    strata : ndarray of float64, shape (rows, strata)
    """
    return np.maximum(strata, 0.0)


def composition(geolevels: Mapping[str, Ints], entropy: Entropy) -> list[Series]:
    """Total and strata of every geounit with noise, made consistent in two ways; the residuals are of the total.

    The total is measured with epsilon 1/4 and the strata with 3/4, under neighbours that change one record: a step
    of one count is half of that change, so by composition it loses at most 1/2.

    Parameters
    ----------
    geolevels : mapping of name to ndarray of int64, shape (geounits, strata)
    entropy : Entropy

    Returns
    -------
    list of Series
        By geolevel: the noisy total alone, least squares, least absolute deviations.
    """
    found = []
    for name, counts in geolevels.items():
        exact = counts.sum(axis=1)
        law = _law(TOTAL_SHARE)
        total = add_noise(exact, law, entropy).astype(np.float64)
        strata = add_noise(counts, _law(1 - TOTAL_SHARE), entropy).astype(np.float64)
        weight = float(TOTAL_SHARE / (1 - TOTAL_SHARE))
        truth = exact.astype(np.float64)
        squares = least_squares(total, strata, weight).sum(axis=1)
        found += [
            Series(f"{name}, noisy total alone", truth, total, law),
            Series(f"{name}, least squares", truth, squares),
            Series(f"{name}, least absolute deviations", truth, least_absolute(strata).sum(axis=1)),
        ]
    return found


def invariant(geolevels: Mapping[str, Ints], entropy: Entropy) -> list[Series]:
    """Strata of every geounit with noise, made non-negative with and without the total of the county kept exactly.

    The strata are measured with epsilon 1/4, so a step of one count loses 1/8.

    Parameters
    ----------
    geolevels : mapping of name to ndarray of int64, shape (geounits, strata)
        All of one county.
    entropy : Entropy

    Returns
    -------
    list of Series
        By geolevel: noisy strata, without negative counts, and with the invariant; the residuals are of the strata.
    """
    found = []
    for name, counts in geolevels.items():
        law = _law(STRATA_EPSILON)
        strata = add_noise(counts, law, entropy).astype(np.float64)
        truth = counts.ravel().astype(np.float64)
        kept = least_squares(np.array([truth.sum()]), strata.reshape(1, -1), np.inf)
        found += [
            Series(f"{name}, noisy strata alone", truth, strata.ravel(), law),
            Series(f"{name}, no negative counts", truth, np.maximum(strata, 0).ravel()),
            Series(f"{name}, county total kept", truth, kept.ravel()),
        ]
    return found


def _law(epsilon: Fraction) -> TwoSidedGeometric:
    """Noise of a count that is part of a vector which moves by two when one record is changed."""
    return TwoSidedGeometric(2 / epsilon)
