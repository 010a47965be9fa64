"""Pairs of exact and noisy counts, their residuals, the losses published for 1940, and the demonstrations of the paper.

The demonstrations are composition that is not tight, and an invariant that raises the loss: geometric noise is added to
strata of geounits, and small problems are solved exactly, not searched.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from yupana.arrays import Floats, Ints
from yupana.errors import InputError
from yupana.files.regular import read_json
from yupana.privacy.entropy import Entropy
from yupana.privacy.laws import Law, TwoSidedGeometric
from yupana.privacy.sampler import add_noise
from yupana.privacy.sealed import Sealed

_MILLIONS: Final = 1 << 22

FEWEST: Final = 30
"""Fewer residuals say nothing about a density."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Residuals(Sealed):
    """Noisy minus exact counts, each distinct value once. Made by `residuals_of`."""

    values: Floats  # shape (distinct values,): ascending
    times: Floats  # shape (distinct values,): how often each occurs

    @property
    def number(self) -> int:
        """How many residuals."""
        return round(float(self.times.sum()))

    @property
    def deviation(self) -> float:
        """Standard deviation, with number - 1 below."""
        mean = float(self.times @ self.values) / self.number
        return float(np.sqrt(self.times @ (self.values - mean) ** 2 / (self.number - 1)))

    @property
    def are_whole(self) -> bool:
        """Whether every residual is a whole number."""
        return bool((self.values == np.rint(self.values)).all())

    @property
    def offsets(self) -> Floats:
        """Parts of the residuals after the point, each once; few where they lie on lattices of whole steps."""
        return np.unique(np.round(self.values - np.floor(self.values), 6) % 1)

    def percentile(self, level: float) -> float:
        """A percentile, linear between order statistics as numpy's is.

        Parameters
        ----------
        level : float
            From 0 to 100.
        """
        place = level / 100 * (self.number - 1)
        reached = np.cumsum(self.times) - 1
        low, high = (
            float(self.values[np.searchsorted(reached, min(step, self.number - 1) - 1e-9)])
            for step in (np.floor(place), np.floor(place) + 1)
        )
        return low + (high - low) * float(place - np.floor(place))


def residuals_of(exact: ArrayLike, noisy: ArrayLike, name: str = "the counts", unchanged: int = 0) -> Residuals:
    """Subtract exact from noisy counts, and check that a density can be estimated from what is left.

    Parameters
    ----------
    exact, noisy : array_like, shape (counts,)
    name : str
        What the counts are, for messages.
    unchanged : int
        Further counts that are the same in both.

    Raises
    ------
    InputError
        If the counts do not match, one is not finite, there are fewer than 30, or all residuals are the same.
    """
    pair = [np.asarray(counts, dtype=np.float64) for counts in (exact, noisy)]
    if pair[0].shape != pair[1].shape or pair[0].ndim != 1:
        sizes = " and ".join(f"{counts.size:,}" for counts in pair)
        raise InputError(f"{name} do not match: {sizes} exact and noisy counts; each exact count needs its noisy one")
    for which, counts in zip(("exact", "noisy"), pair, strict=True):
        if (bad := np.flatnonzero(~np.isfinite(counts))).size:
            raise InputError(f"{name}: the {which} count at position {bad[0] + 1} is not a finite number (NaN or inf)")
    return checked(pair[1] - pair[0], name, unchanged)


def checked(differences: Floats, name: str = "the counts", unchanged: int = 0) -> Residuals:
    """Group differences by value, and refuse those of which no density can be estimated; see `residuals_of`."""
    number = differences.size + unchanged
    if number < FEWEST:
        raise InputError(f"{name}: {number} residuals are too few to estimate a density; at least {FEWEST} are needed")
    differences = np.append(differences, 0.0) if unchanged else differences
    # To nine decimals, so that what is the same but for rounding is one value; beyond some millions a double has fewer.
    differences = np.where(np.abs(differences) < _MILLIONS, np.round(differences, 9), differences)
    values, times = np.unique(differences, return_counts=True)
    if unchanged:
        times[np.searchsorted(values, 0.0)] += unchanged - 1
    if values.size == 1:
        raise InputError(
            f"{name}: all residuals are the same, so they have no density: the counts were shifted, or not changed"
        )
    return Residuals(values, times.astype(np.float64))


TOTAL: Final = "total"
DETAILED: Final = "detailed"

_PUBLISHED: Final = "results_dp_epl.json"
_KEY: Final = re.compile(r"(tc|sc)_privacy_loss_(state|county|enum_dist)_(\d+)_(\d+)_max_abs")
_QUERY_OF_1940: Final = {"tc": TOTAL, "sc": DETAILED}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Series(Sealed):
    """Counts with noise of one kind."""

    name: str
    exact: Floats  # shape (counts,)
    noisy: Floats  # shape (counts,)
    law: Law | None = None  # of the noise, where it is known
    both_zero: int = 0  # further counts that are zero in both
    left_out: int = 0  # noisy counts without an exact one, left out

    def residuals(self) -> Residuals:
        """Noisy minus exact counts.

        Raises
        ------
        InputError
            If no density can be estimated from them (`yupana.audit.empirical.series`).
        """
        return residuals_of(self.exact, self.noisy, self.name, self.both_zero)


@dataclass(frozen=True, slots=True)
class PublishedLoss:
    """An EPL that Flaxman and Petti published of the Bureau's runs on the 1940 census."""

    geolevel: str  # "state", "county" or "enum_dist"
    query: str  # "total", or "detailed" for counts by voting age, race and ethnicity
    epsilon: float  # of the whole run
    loss: float

    def as_json(self) -> dict[str, Any]:
        """With the names of the attributes."""
        return {"geolevel": self.geolevel, "query": self.query, "epsilon": self.epsilon, "epl": self.loss}


def read_published_1940(folder: Path) -> tuple[PublishedLoss, ...]:
    """Read the published losses, in their order.

    Parameters
    ----------
    folder : Path
        Holds ``results_dp_epl.json``.

    Raises
    ------
    InputError
        If it holds no such results.
    """
    path = folder / _PUBLISHED
    try:
        document = read_json(path)
        found = [(_KEY.fullmatch(key), float(value)) for key, value in document.items()]
    except (OSError, ValueError, AttributeError, TypeError):
        raise InputError(f"{path} is not readable as the published results of 1940") from None
    rows = tuple(
        PublishedLoss(match[2], _QUERY_OF_1940[match[1]], float(f"{match[3]}.{match[4]}"), loss)
        for match, loss in found
        if match
    )
    if not rows:
        raise InputError(f"{path} holds no published losses")
    return rows


def counterpart(geolevel: str, geolevels: Sequence[str]) -> str | None:
    """Which geolevel of 1940 compares with one of ours: states and counties by name, enumeration districts our lowest.

    Parameters
    ----------
    geolevels : sequence of str
        All of ours, from the root down or in any order.
    """
    same = {"State": "state", "County": "county"}
    if geolevel in same:
        return same[geolevel]
    finest = next((name for name in ("Block", "Block_Group", "Tract") if name in geolevels), None)
    return "enum_dist" if geolevel == finest else None


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
