"""Measurements of the S-DHC that count the same people, combined by least squares under identities. Public.

The identities hold for the counts that are measured, after truncation at tau; docs/phsafe-estimates.md proves them
from the tables' definitions, and says which others hold only before truncation and are left alone.

With independent measurements z of variances V and identities B y = 0 of what was measured, the best linear unbiased
estimate is ``z - V B' (B V B')^+ B z`` and its covariance ``V - V B' (B V B')^+ B V``. Unlike a tree of sums
(`yupana.topdown.tree`), identities may cross: states add to the nation while races add to everyone.

The noise is discrete Gaussian or two-sided geometric, so that neither a normal nor a chi-square table is exact. The
chance of a false alarm of the tests of the fit holds for the laws as they are; docs/phsafe-estimates.md proves it.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Floats
from yupana.errors import OutputError
from yupana.estimate.phsafe.estimate import Measured
from yupana.products.phsafe.specification import Group, cells_of, table

Identity = Mapping[int, float]
"""Coefficients by the place of a quantity; what they weigh sums to 0."""

_DEPENDENT: Final = 1e-9
"""An eigenvalue below this, relative to the largest of the scaled system, belongs to an identity implied by others."""

_NO_CORRELATION: Final = 1e-9


@dataclass(frozen=True, slots=True)
class _Projection:
    """Estimates under identities."""

    values: Floats  # shape (quantities,) or (quantities, releases)
    variances: Floats  # shape (quantities,): as measured
    # shape (identities that count, quantities): the covariance of the estimates is `diag(variances) - gained' gained`
    gained: Floats
    # shape () or (releases,): chi-square of the residual: squared distance from measurements to estimates, in standard
    # deviations
    misfit: Floats

    def covariances(self, places: NDArray[np.intp]) -> Floats:
        """Covariances within groups of quantities, by their places; exactly 0 where correlations are only rounding."""
        taken = self.gained[:, places]
        found = -np.einsum("kgi,kgj->gij", taken, taken)
        size = places.shape[1]
        found[:, np.arange(size), np.arange(size)] += self.variances[places]
        scale = np.sqrt(np.diagonal(found, axis1=1, axis2=2))
        return np.where(np.abs(found) < _NO_CORRELATION * scale[:, :, None] * scale[:, None, :], 0.0, found)


def project(values: Floats, variances: Floats, identities: Sequence[Identity]) -> _Projection:
    """Best linear unbiased estimates of quantities that satisfy identities, which may imply one another.

    Parameters
    ----------
    values : float array, shape (quantities,) or (quantities, releases)
        Independent measurements, of one release or of many alike.
    variances : float array, shape (quantities,)
        Of every release; positive.
    """
    if not identities:
        return _Projection(values, variances, np.zeros((0, variances.size)), np.zeros(values.shape[1:]))
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
    return _Projection(values - moved, variances, basis * root, np.asarray((misses**2).sum(axis=0)))


_TILTS: Final = np.linspace(0.01, 0.99, 99)
"""Exponents that are tried, as shares of the largest for which the noise has a moment; each gives a valid bound."""


@dataclass(frozen=True, slots=True)
class JointFit:
    """How well measurements fit."""

    chi_square: float  # squared distance of the measurements to the estimates, in standard deviations
    degrees: int  # identities that count
    largest: float  # what `chi_square` exceeds with at most half of the chance given; infinite where no bound is known
    worst: int  # the identity that is missed most improbably
    missed_by: float  # by how much
    logarithm: float  # of the chance of such a miss in some identity, bounded from above
    fits: bool  # whether neither test says that the identities are false


def fit(
    values: Floats,
    variances: Floats,
    identities: Sequence[Identity],
    found: _Projection,
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
    found : _Projection
        Of these.
    geometric : bool
        Whether the noise is two-sided geometric. It has heavier tails than a chi-square allows for, and each identity
        is tested on its own.
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


SAME_UNIVERSE: Final = (("PH1_num", "PH7", "PH2"), ("PH1_denom", "PH8_denom"))
"""Tables whose cells partition one universe; of persons only under one tau."""

FALSE_ALARM: Final = 1e-6
"""Chance of refusing measurements whose identities hold, bounded from above."""

_FAMILIES: Final = (*SAME_UNIVERSE, ("PH3",), ("PH4",), ("PH5_denom",), ("PH6",))
_RACES: Final = tuple("ABCDEFG")


@dataclass(frozen=True, slots=True)
class Identities:
    """Measured tables that identities join, with all their quantities in one row."""

    tables: tuple[str, ...]
    places: Mapping[str, NDArray[np.intp]]  # shape (groups, basis cells): where a count stands in the row
    identities: tuple[Identity, ...]
    words: tuple[str, ...]  # what each identity says

    def row(self, arrays: Mapping[str, Floats]) -> Floats:
        """One row of quantities from an array per table, of shape (groups, basis cells)."""
        return np.concatenate([arrays[name].ravel() for name in self.tables])


def families(measured: Measured) -> tuple[tuple[Identities, ...], list[str]]:
    """The identities among the measurements of a release, and why some that could hold are not used."""
    found, unused = [], []
    for several in _FAMILIES:
        tables = tuple(name for name in several if name in measured.counts)
        if not tables:
            continue
        linked, reason = _linked(measured, tables)
        unused += [reason] if reason else []
        places, size = {}, 0
        for name in tables:
            shape = measured.counts[name].shape
            places[name] = size + np.arange(shape[0] * shape[1]).reshape(shape)
            size += shape[0] * shape[1]
        said = list(_identities(measured, places, linked=linked))
        found.append(Identities(tables, places, tuple(i for _, i in said), tuple(words for words, _ in said)))
    return tuple(found), unused


def combine(measured: Measured) -> tuple[Measured, dict[str, Any]]:
    """Estimate all counts of a release together, by generalised least squares under the identities.

    Returns
    -------
    tuple
        The estimates with their covariances within each population group, not truncated yet; and for the manifest the
        number of identities, how well they fit, and what could not be used.

    Raises
    ------
    OutputError
        If the measurements contradict the identities. Where all identities hold this has a chance below `FALSE_ALARM`.
    """
    counts, covariances = dict(measured.counts), dict(measured.covariances)
    variances = {name: np.diagonal(each, axis1=1, axis2=2) for name, each in covariances.items()}
    joined, unused = families(measured)
    fits = []
    for family in joined:
        found = project(family.row(counts), family.row(variances), family.identities)
        if family.identities:
            fits.append(_fit(measured, family, found, FALSE_ALARM / len(joined)))
        for name in family.tables:
            counts[name] = found.values[family.places[name]]
            covariances[name] = found.covariances(family.places[name])
    note = {
        "identities": sum(len(family.identities) for family in joined),
        "fit": fits,
        **({"unused": unused} if unused else {}),
    }
    return Measured(measured.manifest, measured.groups, counts, covariances), note


def _fit(measured: Measured, family: Identities, found: _Projection, chance: float) -> dict[str, Any]:
    """What the manifest says of the fit of a family."""
    variances = {name: np.diagonal(each, axis1=1, axis2=2) for name, each in measured.covariances.items()}
    tested = fit(
        family.row(measured.counts),
        family.row(variances),
        family.identities,
        found,
        geometric=measured.manifest["plan"]["mechanism"] == "pure",
        chance=chance,
    )
    if not tested.fits:
        raise OutputError(
            "the measurements contradict each other by more than their noise can explain (a false alarm has a chance "
            f"below 1 in {round(1 / FALSE_ALARM):,}), so that --combine joint would spread an error over sound tables."
            f"\n  Missed most improbably: {family.words[tested.worst]}; it is off by {tested.missed_by:,.0f}"
            f"\n  Chi-square of the residual of {', '.join(family.tables)}: {tested.chi_square:,.1f} on "
            f"{tested.degrees:,} degrees of freedom\n"
            "Look for records that some tables count and others do not, or estimate without --combine joint"
        )
    return {"tables": list(family.tables), "chi_square": tested.chi_square, "degrees": tested.degrees}


def _linked(measured: Measured, tables: tuple[str, ...]) -> tuple[bool, str]:
    """Whether tables of one universe may be linked: their persons must have been truncated alike."""
    taus = measured.manifest["parameters"].get("tau", {})
    used = {name: taus.get(name) for name in tables if name in taus}
    if len(tables) < 2 or len(set(used.values())) <= 1:
        return len(tables) > 1, ""
    listed = ", ".join(f"{name} {tau}" for name, tau in used.items())
    return False, f"tables of persons in households are not linked, for they were truncated at different tau: {listed}"


def _identities(
    measured: Measured, places: Mapping[str, NDArray[np.intp]], *, linked: bool
) -> Iterator[tuple[str, Identity]]:
    """Identities among the measurements of some tables, in words and as coefficients."""
    states = tuple(measured.manifest["parameters"]["states"])
    rows = {name: {group: at for at, group in enumerate(measured.groups[name])} for name in places}
    for name, at in places.items():
        cells = cells_of(table(name))
        for words, whole, parts in _sums(rows[name], states):
            for place, cell in enumerate(cells):
                sums = {int(at[whole, place]): -1.0, **{int(at[part, place]): 1.0 for part in parts}}
                yield f"{name}, cell {cell}, {words}", sums
    if not linked:
        return
    for group in dict.fromkeys(group for name in places for group in rows[name]):
        same = [(name, at[rows[name][group]].tolist()) for name, at in places.items() if group in rows[name]]
        for (name, one), (beside, other) in pairwise(same):
            words = f"{name} and {beside} count the same in {_named(group)}"
            yield words, {**dict.fromkeys(one, 1.0), **dict.fromkeys(other, -1.0)}


def _named(group: Group) -> str:
    region = "USA" if group.region_type == "USA" else f"state {group.region_id}"
    return f"{region}, iteration {group.iteration}"


def _sums(rows: dict[Group, int], states: tuple[str, ...]) -> Iterator[tuple[str, int, list[int]]]:
    """Groups that are the sum of others, in words too: the nation of its states, everyone of the seven races."""
    for group, row in rows.items():
        if group.region_type == "USA":
            below = [Group("STATE", state, group.iteration) for state in states]
            if all(part in rows for part in below):
                yield f"iteration {group.iteration}: USA is the sum of its states", row, [rows[part] for part in below]
        if group.iteration == "*":
            races = [Group(group.region_type, group.region_id, race) for race in _RACES]
            if all(part in rows for part in races):
                words = f"{_named(group)} is the sum of iterations A to G"
                yield words, row, [rows[part] for part in races]
