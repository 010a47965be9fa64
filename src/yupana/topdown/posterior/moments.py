"""How alike the children of a parent are, by moments of the noisy answers: squared residuals less what is noise."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from yupana.arrays import Floats
from yupana.topdown.divide import Terms
from yupana.topdown.posterior.siblings import Posed

_LEAST, _MOST = 1.0, 512.0
"""Concentrations are kept between these."""

_GROUPS: Final = (0.02, 0.98)
"""Shares of a parent's people between which a group tells how alike children are."""

_GROUP: Final = 0.1
"""Share of the parent's people from which on a group tells how alike its cells are."""


@dataclass(frozen=True, slots=True, eq=False)
class Restricted:
    """Least squares of each child from its own answers alone, on the parent's live cells.

    Attributes
    ----------
    estimate : ndarray of float64, shape (k, m)
        Unbiased; 0 of a child that was not measured.
    covariance : ndarray of float64, shape (profiles, m, m)
    profile : ndarray of int64, shape (k,)
        Of the covariance of each child; -1 where its answers do not determine the cells.
    """

    estimate: Floats
    covariance: Floats
    profile: np.typing.NDArray[np.int64]


def restricted(terms: Terms) -> Restricted:
    """Estimate each child from what an estimation pass fits, without the parent and without inequalities."""
    live = len(terms.queries[0])
    rows, profile = np.unique(terms.weights, axis=0, return_inverse=True)
    profile = profile.reshape(-1).astype(np.int64)
    said = np.zeros((len(terms.weights), live))
    for q, labels in enumerate(terms.queries):
        said += (
            terms.weights[:, q : q + 1] * np.where(terms.weights[:, q : q + 1] != 0, terms.answers[q], 0.0)[:, labels]
        )
    estimate = np.zeros_like(said)
    covariance = np.zeros((len(rows), live, live))
    for number, weights in enumerate(rows):
        here = profile == number
        if not weights.any():
            profile[here] = -1
            continue
        information = np.zeros((live, live))
        for weight, labels in zip(weights, terms.queries, strict=True):
            information += weight * (labels[:, None] == labels)
        values, vectors = np.linalg.eigh(information)
        if values[0] <= 1e-9 * values[-1]:
            profile[here] = -1
            continue
        covariance[number] = (vectors / values) @ vectors.T
        estimate[here] = said[here] @ covariance[number]
    return Restricted(estimate, covariance, profile)


def moments(posed: Posed, found: Restricted) -> Floats:
    """Sums over the children and groups of one parent; those of several parents add up, for `concentrations`.

    For a group with the share p of its kind of people, the square of e = group - p * kind is on average that of its
    noise and, under the model, p (1 - p) N (N + a) / (1 + a) for N people and the concentration a. The noise is that of
    the least squares that made the answers, not of detailed answers: with these, a is far off where totals are
    measured.

    Returns
    -------
    ndarray of float64, shape (2, 3)
        Between groups and within them: sums of the excess over the noise, of p (1 - p) N and of p (1 - p) N^2.
    """
    kind, group = posed.asked.kind, posed.asked.group
    here = kind == 0
    _, group = np.unique(group[here], return_inverse=True)
    sums = np.zeros((2, 3))
    if len(group) < 2:
        return sums
    live = np.flatnonzero(here)
    parent = posed.parent[live].astype(np.float64)
    into = np.zeros((len(live), int(group.max()) + 1))
    into[np.arange(len(live)), group] = 1.0
    of_group = parent @ into
    for number, covariance in enumerate(found.covariance):
        children = found.profile == number
        if not children.any():
            continue
        own = covariance[np.ix_(live, live)]
        estimate = found.estimate[np.ix_(children, live)]
        with_groups = own @ into
        groups = into.T @ with_groups
        sums[0] += _excess(
            estimate @ into, np.diag(groups), groups.sum(axis=1), estimate.sum(axis=1)[:, None], own.sum(),
            of_group / of_group.sum(), _GROUPS,
        )  # fmt: skip
        large = (of_group >= _GROUP * of_group.sum())[group]
        sums[1] += _excess(
            estimate[:, large],
            np.diag(own)[large],
            with_groups[np.arange(len(live)), group][large],
            (estimate @ into)[:, group[large]],
            np.diag(groups)[group[large]],
            (parent / of_group[group])[large],
            (0.0, 1.0),
        )
    return sums


def _excess(
    part: Floats, own: Floats, shared: Floats, whole: Floats, spread: Floats, share: Floats, kept: tuple[float, float]
) -> Floats:
    """Sums over children and parts: excess of squares over the noise, people, and people squared, by share (1 - share).

    Parameters
    ----------
    part, whole : ndarray of float64, shape (children, parts) or what broadcasts to it
        Estimates.
    own, shared, spread : ndarray of float64, shape (parts,), or float
        Variances of parts, covariances of parts with their wholes, and variances of the wholes.
    share : ndarray of float64, shape (parts,)
    kept : tuple of (float, float)
        Shares between which a part counts.
    """
    use = (share > kept[0]) & (share < kept[1])
    excess = (part - share * whole) ** 2 - (own - 2.0 * share * shared + share**2 * spread)
    even = share * (1.0 - share) * np.ones(part.shape)
    # The square of an unbiased estimate has its variance too much.
    squares = whole**2 - spread
    return np.array([excess[:, use].sum(), (even * whole)[:, use].sum(), (even * squares)[:, use].sum()])


def concentrations(sums: Floats) -> tuple[float, float]:
    """The concentrations between groups and within them that moments tell."""
    found = []
    for excess, people, squares in sums:
        told = people > 0 and squares > people
        wanted = (squares - excess) / (excess - people) if told and excess > people else _MOST
        found.append(float(np.clip(wanted, _LEAST, _MOST)))
    return found[0], found[1]
