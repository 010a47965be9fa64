"""Draws of the children of one parent, and what is learned of the prior: densities by draws, concentrations by moments.

Moments tell how alike the children of a parent are: squared residuals of the noisy answers less what is noise.
"""

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Floats, Ints
from yupana.topdown.descent.divide import Terms
from yupana.topdown.posterior.kernels import wander
from yupana.topdown.posterior.siblings import Posed, Prior, smoothed

Sweeps = tuple[int, int]
"""How many are left out, and how many count."""

_SWEEPS: Final[tuple[Sweeps, ...]] = ((25, 20), *((5, 20),) * 4)
"""Of each round, left out and counted; a round goes on where the one before ended."""

ROUNDS: Final = len(_SWEEPS)


@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """Draws of the children of one parent."""

    sums: Ints  # shape (k, m): of the draws that count
    totals: NDArray[np.int32]  # shape (draws, k): of each child in each of them
    last: Ints  # shape (k, m)
    # shape (classes, intervals): how many rows were in each interval of intensity, in all draws that count
    held: Floats
    moves: Ints  # shape (2,): made, and people asked

    @property
    def means(self) -> Floats:
        """Means of the draws; the children sum to the parent exactly, but for the rounding of a double."""
        return np.asarray(self.sums / len(self.totals))


def draw(posed: Posed, prior: Prior, start: Ints, sweeps: Sweeps, seed: tuple[int, ...], *, learning: bool) -> Draws:
    """Draw the children of one parent.

    Parameters
    ----------
    start : ndarray of int64, shape (k, m)
        Counts that sum to the parent and meet every bound.
    sweeps : tuple of (int, int)
    seed : tuple of int
        Of the stream: nothing else is drawn from it, so that threads do not matter.
    learning : bool
        Whether `Draws.held` is told; zeros if not.
    """
    random = np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed)))
    last = np.array(start, dtype=np.int64, order="C")
    believed, residual = posed.believed(prior), posed.residual(last)
    sums, totals, held, moves = wander(last, posed.asked, believed, residual, posed.swaps, sweeps, learning, random)
    return Draws(sums, totals, last, held, moves)


Learner = tuple[int, Posed, Ints]
"""The number of a parent, its question, and counts of its children."""


def learn_densities(parents: Sequence[Learner], prior: Prior, seed: int, pool: Executor) -> tuple[Prior, list[Ints]]:
    """Learn how the intensities of rows lie about their bases.

    In each round the density of a class becomes that of the intensities its rows had, given their people in each draw:
    the steps of an expectation-maximisation by draws.

    Parameters
    ----------
    parents : sequence of (int, Posed, ndarray of int64 of shape (k, m))
    prior : Prior
        To begin with; its concentrations are kept.
    seed : int
        Each round of each parent has a stream of its own.

    Returns
    -------
    tuple
        The prior, and the last draw of each parent.
    """
    numbers, posed = [number for number, _, _ in parents], [of for _, of, _ in parents]
    last = [start for _, _, start in parents]
    for stage, sweeps in enumerate(_SWEEPS):
        held = np.zeros(prior.density.shape)
        found = []
        # In the order of the parents, so that sums do not depend on threads.
        for draws in pool.map(partial(_draw, prior, sweeps, seed, stage), numbers, posed, last):
            held += draws.held / sweeps[1]
            found.append(draws.last)
        last, prior = found, replace(prior, density=smoothed(held))
    return prior, last


def _draw(prior: Prior, sweeps: Sweeps, seed: int, stage: int, number: int, posed: Posed, start: Ints) -> Draws:
    return draw(posed, prior, start, sweeps, (seed, stage, number), learning=True)


_LEAST, _MOST = 1.0, 512.0
"""Concentrations are kept between these."""

_GROUPS: Final = (0.02, 0.98)
"""Shares of a parent's people between which a group tells how alike children are."""

_GROUP: Final = 0.1
"""Share of the parent's people from which on a group tells how alike its cells are."""


@dataclass(frozen=True, slots=True, eq=False)
class Restricted:
    """Least squares of each child from its own answers alone, on the parent's live cells."""

    estimate: Floats  # shape (k, m): unbiased; 0 of a child that was not measured
    covariance: Floats  # shape (profiles, m, m)
    # shape (k,): of the covariance of each child; -1 where its answers do not determine the cells
    profile: np.typing.NDArray[np.int64]

    def totals(self) -> tuple[Floats, Floats]:
        """Estimate the total of each child, and its variance; nan where its answers do not determine it."""
        known = self.profile >= 0
        variance = np.full(len(known), np.nan)
        variance[known] = self.covariance.sum(axis=(1, 2))[self.profile[known]]
        return np.where(known, self.estimate.sum(axis=1), np.nan), variance


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
    measured. The concentration is that about the parent's own shares, which the chain takes for p, too; it is somewhat
    above that about shares unknown (docs/topdown-posterior.md).

    Returns
    -------
    ndarray of float64, shape (2, 3)
        Between groups and within them: sums of the excess over the noise, of p (1 - p) N and of p (1 - p) N^2.
    """
    kind, group = posed.asked.kind, posed.asked.group
    live = np.flatnonzero(kind == 0)
    if len(live) < 2 or (found.profile < 0).any():
        return np.zeros((2, 3))
    _, group = np.unique(group[live], return_inverse=True)
    parent = posed.parent[live].astype(np.float64)
    into = np.zeros((len(live), int(group.max()) + 1))
    into[np.arange(len(live)), group] = 1.0
    of_group, everybody = parent @ into, parent.sum()
    estimate = found.estimate[:, live]
    in_groups = estimate @ into
    own = found.covariance[:, live][:, :, live]
    with_groups = own @ into
    groups = into.T @ with_groups
    of_cells, of_groups = (np.einsum("pii->pi", of)[found.profile] for of in (own, groups))
    between = _sums(
        _Parts(in_groups, of_groups, groups.sum(axis=2)[found.profile]),
        estimate.sum(axis=1)[:, None],
        own.sum(axis=(1, 2))[found.profile][:, None],
        np.full(len(of_group), everybody),
        np.where((of_group > _GROUPS[0] * everybody) & (of_group < _GROUPS[1] * everybody), of_group / everybody, 0.0),
    )
    shared = with_groups[:, np.arange(len(live)), group][found.profile]
    within = _sums(
        _Parts(estimate, of_cells, shared),
        in_groups[:, group],
        of_groups[:, group],
        of_group[group],
        np.where(of_group[group] >= _GROUP * everybody, parent / of_group[group], 0.0),
    )
    return np.array([between, within])


@dataclass(frozen=True, slots=True, eq=False)
class _Parts:
    """Estimates of parts of wholes, their variances, and covariances with their wholes; all of shape (k, parts)."""

    estimate: Floats
    variance: Floats
    shared: Floats


def _sums(parts: _Parts, whole: Floats, spread: Floats, people: Floats, share: Floats) -> Floats:
    """Sum over children and parts what `moments` says."""
    noise = parts.variance - 2.0 * share * parts.shared + share**2 * spread
    excess = ((parts.estimate - share * whole) ** 2 - noise).sum(axis=0)
    # The square of an unbiased estimate, less what its noise adds on average.
    squares = (whole**2 - spread).sum(axis=0)
    even = share * (1.0 - share)
    return np.array([excess[even > 0].sum(), (even * people).sum(), (even * squares).sum()])


def concentrations(sums: Floats) -> tuple[float, float]:
    """The concentrations between groups and within them that moments tell."""
    found = []
    for excess, people, squares in sums:
        told = people > 0 and squares > people
        wanted = (squares - excess) / (excess - people) if told and excess > people else _MOST
        found.append(float(np.clip(wanted, _LEAST, _MOST)))
    return found[0], found[1]
