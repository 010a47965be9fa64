"""One parent as the chain takes it: what is asked of its children, and what is believed of them before: the prior."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Floats, Indices, Integers, Ints
from yupana.topdown.descent.divide import Siblings, Terms
from yupana.topdown.posterior.kernels import Believed, ChildrenAsked
from yupana.topdown.rounding.program import Limit

_STEP: Final = 0.03
_LOWEST, _HIGHEST = 0.01, 3000.0

THETA: Final[Floats] = np.exp(np.arange(np.log(_LOWEST), np.log(_HIGHEST), _STEP))
"""Midpoints of the intervals of an intensity over its base: coarser ones make a comb of large blocks."""

UNITS: Final[Ints] = np.array([1, 2, 4, 8, 16, 32, 64, 128, 256])
"""Classes of housing units begin here; those without one are a class before."""

QUARTERS: Final[Ints] = np.array([2, 4])
"""Classes of facilities of one type begin here; one facility is a class before."""

_WIDTH: Final = 2.0
"""Of the kernel that smooths densities, in intervals: a wider one widens the density at every round."""

_EVEN: Final = 0.01
"""Share of a density that is spread over all intervals, so that none is impossible."""

_SHARED: Final = 20.0
"""Rows for which the density of all classes together stands in that of each."""


@dataclass(frozen=True, slots=True, eq=False)
class Prior:
    """What is believed of the children of any parent before their own answers are read."""

    # shape (classes, intervals): of the logarithm of an intensity over its base, by the class of the row; rows sum to 1
    density: Floats
    between: float  # how alike the groups of children are: the concentration of their shares about the parent's
    within: float  # the same of the cells within a group


def flat(classes: int) -> Floats:
    """A wide density to begin with."""
    wide = np.exp(-0.5 * (np.log(THETA) / 0.7) ** 2) + 0.01
    return np.repeat((wide / wide.sum())[None], classes, axis=0)


def smoothed(held: Floats) -> Floats:
    """Densities from how often rows of each class were in each interval; a row cannot hold on to one of its own.

    Parameters
    ----------
    held : ndarray of float64, shape (classes, intervals)
        In rows.
    """
    at = np.arange(len(THETA))
    kernel = np.exp(-0.5 * ((at[:, None] - at) / _WIDTH) ** 2)
    counted = held @ (kernel / kernel.sum(axis=0)).T
    everything = counted.sum(axis=0)
    whole = everything.sum()
    if whole <= 0:
        return flat(len(held))
    density = counted + _SHARED * everything / whole
    density /= density.sum(axis=1, keepdims=True)
    return np.asarray((1.0 - _EVEN) * density + _EVEN / len(THETA))


_NEVER = np.int64(1) << 50


@dataclass(frozen=True, slots=True, eq=False)
class PublicLists:
    """What public lists tell of some blocks."""

    units: Integers | None  # shape (k,), or None: housing units, where they are used
    # shape (k, kinds - 1), or None: group-quarters facilities by type, where the schema bounds people by them
    facilities: Integers | None

    def part(self, first: int, last: int) -> "PublicLists":
        """The blocks from ``first`` up to ``last``."""
        both = (self.units, self.facilities)
        return PublicLists(*(None if of is None else of[first:last].astype(np.int64) for of in both))


@dataclass(frozen=True, slots=True, eq=False)
class Posed:
    """What is asked of the children of one parent, on the parent's live cells."""

    parent: Ints  # shape (m,)
    asked: ChildrenAsked
    answers: Floats  # shape (k, answers): noisy ones, query after query
    base: Floats  # shape (k, kinds)
    klass: Ints  # shape (k, kinds)
    swaps: int  # of so many proposals one is that two people change places

    def residual(self, counts: Ints) -> Floats:
        """Answers of counts of shape (k, m), less the noisy ones."""
        found = -self.answers
        for place in self.asked.place.T:
            np.add.at(found.T, place, counts.T)
        return found

    def believed(self, prior: Prior) -> Believed:
        """The prior of these children."""
        kind, group = self.asked.kind, self.asked.group
        of_kind = np.bincount(kind, self.parent)
        of_group = np.bincount(group, self.parent)
        kind_of = np.zeros(len(of_group), dtype=np.int64)
        kind_of[group] = kind
        return Believed(
            THETA,
            np.log(THETA),
            prior.density,
            self.base,
            self.klass,
            prior.between * of_group / of_kind[kind_of],
            prior.within * self.parent / of_group[group],
            prior.between,
            prior.within,
        )


def classes(kinds: int) -> int:
    """How many classes rows have."""
    return len(UNITS) + 1 + (len(QUARTERS) + 1 if kinds > 1 else 0)


def pose(family: Siblings, terms: Terms, used: Sequence[int], groups: Indices, places: PublicLists) -> Posed:
    """Pose the question of one parent to the chain.

    Parameters
    ----------
    terms : Terms
        Of the last estimation pass: everything that was measured.
    used : sequence of int
        The queries of the terms that are used, by position.
    groups : ndarray of int32, shape (m,)
        A label of the group of each live cell.
    """
    number = family.children
    low, high = np.zeros((number, 1), dtype=np.int64), np.full((number, 1), _NEVER)
    (limit,) = family.limits or (Limit(np.zeros(len(family.parent), dtype=np.int32), low, high),)
    kind, lower, upper = limit.labels.astype(np.int64), np.maximum(limit.lower, 0), limit.upper
    together, known = _together(family)
    doors, opened, position = _doors(upper)
    place, answers = _compact(terms, used)
    swaps = 1 if known == number else 4 if known or family.limits else 0
    asked = ChildrenAsked(
        kind,
        np.unique(kind * (int(groups.max(initial=0)) + 1) + groups, return_inverse=True)[1].astype(np.int64),
        place,
        np.ascontiguousarray(terms.weights[:, list(used)]),
        # Copies: whoever holds a parent must not hold its batch by views of it.
        np.array(lower, dtype=np.int64, order="C"),
        np.array(upper, dtype=np.int64, order="C"),
        together,
        doors,
        opened,
        position,
    )
    base, klass = _expected(np.bincount(kind, family.parent, lower.shape[1]), upper > 0, places)
    return Posed(family.parent.copy(), asked, answers, base, klass, swaps)


def _compact(terms: Terms, used: Sequence[int]) -> tuple[Ints, Floats]:
    """Where each cell counts, among the answers that live cells reach; and those answers."""
    place = np.empty((len(terms.queries[0]), len(used)), dtype=np.int64)
    answers, begin = [], 0
    for at, query in enumerate(used):
        local, reached = terms.reached(query)
        place[:, at] = begin + local
        answers.append(reached)
        begin += reached.shape[1]
    return place, np.concatenate(answers, axis=1).astype(np.float64)


def _together(family: Siblings) -> tuple[Ints, int]:
    """Sets of children whose totals are known together, as numbers; and how many children have a total of their own."""
    number = family.children
    if family.totals is not None:
        return np.arange(number), number
    together = np.zeros(number, dtype=np.int64)
    for at, (members, _) in enumerate(family.joint):
        together[list(members)] = 1 + at
    sets, sizes = np.unique(together, return_counts=True)
    alone = int((sizes == 1).sum())
    return together, number if alone == number else int(len(sets) > 1) * max(alone, 1)


def _doors(upper: Ints) -> tuple[Ints, Ints, Ints]:
    """The children that may hold people of each kind first; how many they are; and where each child stands."""
    shut = (upper <= 0).T
    doors = np.argsort(shut, axis=1, kind="stable")
    position = np.empty_like(doors)
    np.put_along_axis(position, doors, np.arange(doors.shape[1])[None], axis=1)
    return doors.astype(np.int64), (~shut).sum(axis=1).astype(np.int64), position.astype(np.int64)


def _expected(people: NDArray[np.generic], may: NDArray[np.bool_], places: PublicLists) -> tuple[Floats, Ints]:
    """People expected in each row where its intensity is 1, and its class."""
    number, kinds = may.shape
    base = np.zeros((number, kinds))
    klass = np.zeros((number, kinds), dtype=np.int64)
    for kind in range(kinds):
        whole = float(people[kind])
        base[:, kind] = whole / max(int(may[:, kind].sum()), 1)
        if kind == 0:
            stands = places.units
        else:
            stands = None if places.facilities is None else places.facilities[:, kind - 1]
            klass[:, kind] = len(UNITS) + 1
        if stands is None:
            continue
        every = int(stands.sum())
        base[:, kind] = np.where(stands > 0, whole / max(every, 1) * stands, base[:, kind])
        klass[:, kind] += np.searchsorted(UNITS if kind == 0 else QUARTERS, stands, side="right")
    return np.maximum(base, 1e-3), klass
