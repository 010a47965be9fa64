"""Tract groups by Algorithm 2 of the paper, and how a run of units is cut into groups."""

from dataclasses import dataclass
from math import isqrt

import numpy as np

from yupana.arrays import Flags, Indices, Ints
from yupana.geography.distance import Climb, climb
from yupana.geography.settings import Grouping, SpineSettings
from yupana.geography.tree import Members, Tree


def cap(number: Ints, fanout_cutoff: int) -> Ints:
    """How many of n units one group may hold: int(sqrt(n) + F) + 1, exactly, or all; of the shape of `number`."""
    values, index = np.unique(number, return_inverse=True)
    return np.array([min(isqrt(n) + fanout_cutoff + 1, n) for n in values.tolist()], dtype=np.int64)[index]


def chunks(at: Ints, length: Ints, largest: Ints, grouping: Grouping) -> Ints:
    """In which chunk each element of a run goes, from 0; all arrays of one shape.

    Parameters
    ----------
    at : ndarray of int64
        Place in the run, from 0.
    length : ndarray of int64
        Elements of the run.
    largest : ndarray of int64
        Elements a chunk may have.
    grouping : "orig" or "even"
        Full chunks and what is left; or as many chunks of two sizes, smaller ones first, where that evens them out.
    """
    full = at // largest
    if grouping == "orig":
        return full
    number = -(-length // largest)
    low = length // number
    small = number - length % number  # chunks of the smaller size
    even = np.where(at < small * low, at // low, small + (at - small * low) // (low + 1))
    return np.where((length <= largest) | np.isin(length % largest, (0, 1)), full, even)


_FIRST_TRIALS = 16
_MORE_TRIALS = 4


def group_tracts(tree: Tree, members: Members, settings: SpineSettings) -> Ints:
    """Group the tracts of each county.

    Parameters
    ----------
    tree : Tree
        With geolevels County and Tract, one below the other.
    members : Members
        The entities to be near to.
    settings : SpineSettings
        Only entities farther than its threshold are considered. A county that none of them meets is cut into chunks
        of consecutive tracts.

    Returns
    -------
    ndarray of int64
        For each tract the number of its group within the county, from 1 in the order of first tracts, (tracts,).
    """
    county_level = tree.names.index("County")
    tracts = tree.children(county_level).astype(np.int64)
    first = np.cumsum(tracts) - tracts
    largest = cap(tracts, settings.tract_cutoff)
    county = tree.parents[county_level + 1]
    at = np.arange(len(county)) - first[county]
    group = chunks(at, tracts[county], largest[county], settings.grouping) + 1

    climbed = climb(tree, members)
    far = np.zeros(members.number, dtype=np.bool_)
    far[climbed.touched.entity[0]] = climbed.inside[0] > settings.entity_threshold
    # An entity within one tract has the same distance whatever the groups. Where only such ones are far, every join
    # is allowed, and the search would fill one group after the other.
    met = np.zeros(len(tracts), dtype=np.bool_)
    met[climbed.touched.unit[county_level][far[climbed.touched.entity[county_level]]]] = True
    group = np.where(met[county], at // largest[county] + 1, group)
    wide = np.bincount(climbed.touched.entity[county_level + 1], minlength=members.number) > 1
    search = _Search(tree, members.keep(far & wide), county_level)
    for unit in search.counties.tolist():
        search.open(unit, int(first[unit]), int(tracts[unit]), int(largest[unit]))
    search.run()
    for unit, found in search.groups():
        group[first[unit] : first[unit] + tracts[unit]] = found
    return group


@dataclass(slots=True, eq=False)
class _County:
    """The groups of one county: alive ones in order, and what they add to the distance of each entity there.

    Arrays over groups have one entry per tract, of which those of `alive` count; matrices are (entities, tracts).
    """

    unit: int
    pairs: slice
    largest: int
    alive: Ints
    size: Ints
    owner: Ints
    added: Ints
    subtracted: Ints
    inside: Ints
    outside: Ints


class _Search:
    """The search over all counties that a far entity meets."""

    def __init__(self, tree: Tree, members: Members, level: int) -> None:
        self._level = level
        self._climb: Climb = climb(tree, members)
        touched = self._climb.touched
        # Working copies from the root down to the county, which joins change.
        self._inside = [a.copy() for a in self._climb.inside[: level + 1]]
        self._outside = [a.copy() for a in self._climb.outside[: level + 1]]
        self._added = [a.copy() for a in self._climb.added[: level + 1]]
        self._subtracted = [a.copy() for a in self._climb.subtracted[: level + 1]]
        self._unit, self._entity = touched.unit[level], touched.entity[level]
        self._up = touched.up
        self.counties: Indices = np.unique(self._unit)
        self._open: dict[int, _County] = {}

    def open(self, unit: int, first: int, tracts: int, largest: int) -> None:
        """Start with one group per tract."""
        touched = self._climb.touched
        start, stop = np.searchsorted(self._unit, (unit, unit + 1)).tolist()
        entities = self._entity[start:stop]
        tract_unit, tract_entity = touched.unit[self._level + 1], touched.entity[self._level + 1]
        low, high = np.searchsorted(tract_unit, (first, first + tracts)).tolist()
        row = np.searchsorted(entities, tract_entity[low:high])
        column = tract_unit[low:high] - first
        # A tract that an entity does not meet adds 0 to it and 1 to its complement.
        inside = np.zeros((len(entities), tracts), dtype=np.int64)
        outside = np.ones((len(entities), tracts), dtype=np.int64)
        inside[row, column] = self._climb.inside[self._level + 1][low:high]
        outside[row, column] = self._climb.outside[self._level + 1][low:high]
        self._open[unit] = _County(
            unit,
            slice(start, stop),
            largest,
            np.arange(tracts),
            np.ones(tracts, dtype=np.int64),
            np.arange(tracts),
            inside.copy(),
            outside.copy(),
            inside,
            outside,
        )

    def run(self) -> None:
        """Sweep over the counties in order until no two groups can be joined."""
        changed = True
        while changed:
            changed = False
            for county in self._open.values():
                changed |= self._sweep(county)

    def groups(self) -> list[tuple[int, Ints]]:
        """For each county the numbers of its tracts' groups, from 1."""
        return [(c.unit, np.searchsorted(c.alive, c.owner) + 1) for c in self._open.values()]

    def _sweep(self, county: _County) -> bool:
        """Try all pairs of groups of a county once; return whether any were joined."""
        pairs = county.pairs
        above = self._above(pairs)
        total = [self._added[self._level][pairs], self._subtracted[self._level][pairs]]
        before = self._inside[self._level][pairs].copy(), self._outside[self._level][pairs].copy()
        changed = False
        place = 0
        while place < len(county.alive) - 1:
            after = place + 1
            while (found := self._first(county, above, total, place, after)) is not None:
                _join(county, total, place, found)
                changed, after = True, found
            place += 1
        if not changed:
            return False
        self._inside[self._level][pairs] = np.minimum(total[0], total[1] + 1)
        self._outside[self._level][pairs] = np.minimum(total[1], total[0] + 1)
        self._added[self._level][pairs], self._subtracted[self._level][pairs] = total
        self._propagate(pairs, *before)
        return True

    def _above(self, pairs: slice) -> list[tuple[Ints, Ints]]:
        """For each ancestor, from below, the sums over the units that do not hold the county, shape (entities, 1)."""
        others = []
        at: Ints = np.arange(pairs.start, pairs.stop)
        for level in range(self._level, 0, -1):
            up = self._up[level][at]
            others.append(
                (
                    (self._added[level - 1][up] - self._inside[level][at])[:, None],
                    (self._subtracted[level - 1][up] - self._outside[level][at])[:, None],
                )
            )
            at = up
        return others

    def _propagate(self, pairs: slice, inside: Ints, outside: Ints) -> None:
        """Carry a county's new values up to the root."""
        at: Ints = np.arange(pairs.start, pairs.stop)
        for level in range(self._level, 0, -1):
            up = self._up[level][at]
            added, subtracted = self._added[level - 1], self._subtracted[level - 1]
            added[up] += self._inside[level][at] - inside
            subtracted[up] += self._outside[level][at] - outside
            inside, outside = self._inside[level - 1][up].copy(), self._outside[level - 1][up].copy()
            self._inside[level - 1][up] = np.minimum(added[up], subtracted[up] + 1)
            self._outside[level - 1][up] = np.minimum(subtracted[up], added[up] + 1)
            at = up

    @staticmethod
    def _first(
        county: _County, above: list[tuple[Ints, Ints]], total: list[Ints], place: int, after: int
    ) -> int | None:
        """The place of the first group, from `after` on, that may be joined to that at `place`."""
        u = county.alive[place]
        later = county.alive[after:]
        fits = after + np.flatnonzero(county.size[u] + county.size[later] <= county.largest)
        now = _at_root(total[0][:, None], total[1][:, None], above)
        trials, tried = _FIRST_TRIALS, 0
        while tried < len(fits):
            places = fits[tried : tried + trials]
            v = county.alive[places]
            inside, outside = _joined(county, u, v)
            x = (total[0] - county.inside[:, u])[:, None] - county.inside[:, v] + inside
            y = (total[1] - county.outside[:, u])[:, None] - county.outside[:, v] + outside
            if (hit := _first_no_larger(_at_root(x, y, above), now)) is not None:
                return int(places[hit])
            tried += trials
            trials *= _MORE_TRIALS
        return None


def _joined(county: _County, u: int, v: Ints) -> tuple[Ints, Ints]:
    x = county.added[:, u, None] + county.added[:, v]
    y = county.subtracted[:, u, None] + county.subtracted[:, v]
    return np.minimum(x, y + 1), np.minimum(y, x + 1)


def _join(county: _County, total: list[Ints], place: int, found: int) -> None:
    u, v = int(county.alive[place]), int(county.alive[found])
    inside, outside = (a[:, 0] for a in _joined(county, u, np.array([v])))
    total[0] += inside - county.inside[:, u] - county.inside[:, v]
    total[1] += outside - county.outside[:, u] - county.outside[:, v]
    county.added[:, u] += county.added[:, v]
    county.subtracted[:, u] += county.subtracted[:, v]
    county.inside[:, u], county.outside[:, u] = inside, outside
    county.size[u] += county.size[v]
    county.owner[county.owner == v] = u
    county.alive = np.delete(county.alive, found)


def _at_root(x: Ints, y: Ints, above: list[tuple[Ints, Ints]]) -> Ints:
    """Distances at the root, given the sums over the groups of a county."""
    inside, outside = np.minimum(x, y + 1), np.minimum(y, x + 1)
    for other_inside, other_outside in above:
        x, y = other_inside + inside, other_outside + outside
        inside, outside = np.minimum(x, y + 1), np.minimum(y, x + 1)
    return inside


def _first_no_larger(trial: Ints, now: Ints) -> int | None:
    """The first column whose entries, largest first, are lexicographically no larger than those now."""
    changed: Flags = trial != now
    largest = np.where(changed, trial, -1).max(axis=0, initial=-1)
    largest_now = np.where(changed, now, -1).max(axis=0, initial=-1)
    for column in np.flatnonzero(largest <= largest_now).tolist():
        if largest[column] < largest_now[column] or largest[column] < 0:
            return int(column)
        rows = changed[:, column]
        left, right = np.sort(trial[rows, column])[::-1], np.sort(now[rows, 0])[::-1]
        differ = np.flatnonzero(left != right)
        if not len(differ) or left[differ[0]] < right[differ[0]]:
            return int(column)
    return None
