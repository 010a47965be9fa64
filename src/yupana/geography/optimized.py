"""Spines with block groups made anew: optimized ones, which no entity crosses, and pieces of tabulation block groups.

Tract groups are near to the entities, and units are bypassed by Algorithm 3 of the spines paper: parents whose own
measurement helps less than their share would below. To bypass a parent with c children is to put c units in its place,
each with one child, with the share of the parent added to that of the child; the children give up their shares. Shares
along every path from the root keep their sum, so the privacy guarantee is unchanged. No least-squares variance is
raised where the geolevel of the parent and that below it ask the same queries in the same proportions; elsewhere the
rule is a heuristic, made for an estimator that does not read the answers of an only child. docs/spines-proofs.md has
the proof of this and of `worth_bypassing`.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import isqrt
from typing import Final

import numpy as np

from yupana.arrays import Flags, Indices, Ints
from yupana.files.delimited import Labels
from yupana.geography.blocks import Reference
from yupana.geography.distance import Climb, climb, nearer
from yupana.geography.settings import DIGITS, LEVELS, PIECES, Grouping, Mechanism, SpineSettings
from yupana.geography.spine import Geolevel, Spine, make_spine, side_key, side_width, sides
from yupana.geography.tree import Members, Tree, nest, partition
from yupana.progress import Stopwatch

_COUNTY = LEVELS.index("County")


def worth_bypassing(parent: Fraction, least_child: Fraction, children: int) -> bool:
    """Whether giving the share of a parent to its children raises no variance under pure DP: Theorem 2.

    It assumes that parent and children are asked the same queries in the same proportions.

    Parameters
    ----------
    parent : Fraction
        The share of the parent.
    least_child : Fraction
        The smallest share of a child.
    """
    return 2 * least_child >= (children - 1) * parent


def bypass(spine: Spine, mechanism: Mechanism, cutoff: int, unbypassed: Collection[str] = ()) -> Spine:
    """Bypass from the geolevel above the blocks up to the root, in one pass.

    Under zCDP, and at the county and above, parents with one child. Under pure DP below the county, also those that
    Theorem 2 allows, unless the unit above would then have more than `cutoff` children. Units of the geolevels
    `unbypassed` stay.
    """
    for level in range(len(spine.levels) - 2, -1, -1):
        if spine.levels[level].name in unbypassed:
            continue
        only_children = mechanism == "zcdp" or LEVELS.index(spine.levels[level].name) <= _COUNTY
        chosen = spine.tree.children(level) == 1
        if not only_children:
            chosen |= _within_cutoff(spine, level, _by_theorem(spine, level), cutoff)
        spine = _bypass_units(spine, level, chosen)
    return spine


def _by_theorem(spine: Spine, level: int) -> Flags:
    """Which units of a geolevel satisfy the condition of Theorem 2, of shape (units,)."""
    # Shares are few, so the exact rule is asked once for each combination that occurs.
    order = sorted(range(len(spine.shares)), key=spine.shares.__getitem__)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    first = np.flatnonzero(np.diff(spine.tree.parents[level + 1], prepend=-1))
    least = np.minimum.reduceat(rank[spine.levels[level + 1].share], first)
    cases = np.stack([spine.levels[level].share.astype(np.int64), least, spine.tree.children(level)])
    distinct, case = np.unique(cases, axis=1, return_inverse=True)
    verdicts = [
        worth_bypassing(spine.shares[parent], spine.shares[order[child]], children)
        for parent, child, children in distinct.T.tolist()
    ]
    return np.array(verdicts, dtype=np.bool_)[case.ravel()]


def _within_cutoff(spine: Spine, level: int, chosen: Flags, cutoff: int) -> Flags:
    """Which of the chosen units can be bypassed, one after the other, with at most `cutoff` units below each parent."""
    parent, children = spine.tree.parents[level], spine.tree.children(level)
    grown = np.bincount(parent, np.where(chosen, children, 1), spine.tree.units(level - 1))
    allowed = chosen.copy()
    for above in np.flatnonzero(grown > cutoff).tolist():
        start, stop = np.searchsorted(parent, (above, above + 1)).tolist()
        units = stop - start
        for unit in range(start, stop):
            more = int(children[unit]) - 1
            if chosen[unit] and units + more > cutoff:
                allowed[unit] = False
            elif chosen[unit]:
                units += more
    return allowed


def _bypass_units(spine: Spine, level: int, chosen: Flags) -> Spine:
    """Bypass the chosen units of a geolevel."""
    if not chosen.any():
        return spine
    tree, here, below = spine.tree, spine.levels[level], spine.levels[level + 1]
    children, child_parent = tree.children(level), tree.parents[level + 1]
    copies = np.where(chosen, children, 1)
    first = np.cumsum(copies) - copies
    within = np.arange(len(child_parent)) - (np.cumsum(children) - children)[child_parent]
    moved = chosen[child_parent]
    new_parent = np.where(moved, first[child_parent] + within, first[child_parent]).astype(np.int32)

    of_unit = np.repeat(np.arange(len(copies)), copies)
    split = (chosen & (children > 1))[of_unit]
    part = np.where(split, np.arange(len(of_unit)) - first[of_unit] + 1, here.part[of_unit]).astype(np.int32)
    shares, share, given_up = _add_shares(spine, here.share[child_parent[moved]], below.share[moved])
    here_share = here.share[of_unit]
    here_share[new_parent[moved]] = share
    below_share = np.where(moved, given_up, below.share).astype(np.int32)

    parents = list(tree.parents)
    parents[level], parents[level + 1] = parents[level][of_unit], new_parent
    levels = list(spine.levels)
    levels[level] = Geolevel(here.name, here.width, here.code[of_unit], part, here_share, here.bypassed[of_unit])
    levels[level + 1] = replace(below, share=below_share, bypassed=below.bypassed | moved)
    return Spine(Tree(tree.names, tuple(parents)), tuple(levels), shares)


def _add_shares(spine: Spine, parent: Indices, child: Indices) -> tuple[tuple[Fraction, ...], Indices, int]:
    """Add shares by position; return all shares, the positions of the sums, and the position of zero."""
    known = {share: position for position, share in enumerate(spine.shares)}
    pairs, pair = np.unique(parent.astype(np.int64) * len(spine.shares) + child, return_inverse=True)
    sums = [spine.shares[a] + spine.shares[b] for a, b in (divmod(of, len(spine.shares)) for of in pairs.tolist())]
    at = np.array([known.setdefault(share, len(known)) for share in sums], dtype=np.int32)
    zero = known.setdefault(Fraction(0), len(known))
    return tuple(known), at[pair], zero


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
        of = self._climb
        copies = [[a.copy() for a in one[: level + 1]] for one in (of.inside, of.outside, of.added, of.subtracted)]
        self._inside, self._outside, self._added, self._subtracted = copies
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
        self._inside[self._level][pairs], self._outside[self._level][pairs] = nearer(*total)
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
            self._inside[level - 1][up], self._outside[level - 1][up] = nearer(added[up], subtracted[up])
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
    added, subtracted = county.added, county.subtracted
    return nearer(added[:, u, None] + added[:, v], subtracted[:, u, None] + subtracted[:, v])


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
    inside, outside = nearer(x, y)
    for other_inside, other_outside in above:
        inside, outside = nearer(other_inside + inside, other_outside + outside)
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


_NUMBER: Final = 4
"""Digits that number the optimized block groups of a tract and the tract groups of a county."""


def optimized_spine(
    reference: Reference, entities: Mapping[str, Labels], settings: SpineSettings, clock: Stopwatch
) -> Spine:
    """Make an optimized spine or one of pieces.

    Block groups are redefined within each tract and side of AIAN areas: blocks of the same entities, on a spine of
    pieces also of the same tabulation block group, in the order of their digits, in chunks. Tract groups, where there
    are any, are found by Algorithm 2. Then Algorithm 3 bypasses.

    Parameters
    ----------
    entities : mapping of str to Labels
        By kind, what block groups must not cross and tract groups be near to, in the order of the reference.
    clock : Stopwatch
        Announces the stages.
    """
    clock.start("redefining block groups")
    side = sides(reference, settings)
    tract_key = side_key(reference.block, side, "Tract")
    kind = _classes(reference, entities, settings)
    order = np.lexsort((reference.block, kind, tract_key))
    block, side, tract_key, kind = reference.block[order], side[order], tract_key[order], kind[order]
    group_key = tract_key * 10**_NUMBER + _number_groups(tract_key, kind, settings.fanout_cutoff, settings.grouping)
    keys = {level: side_key(block, side, level) for level in settings.levels} | {"Block_Group": group_key}
    widths = {level: side_width(level) for level in settings.levels} | {"Block_Group": side_width("Tract") + _NUMBER}
    if "Tract_Group" in settings.levels:
        clock.start("grouping tracts")
        names = [level for level in settings.levels if level != "Tract_Group"]
        tree, firsts = nest(names, [keys[name] for name in names])
        members = _all_members([of.of(order) for of in entities.values()])
        number = group_tracts(tree, members, settings)
        of_block = np.repeat(number, np.diff(firsts[names.index("Tract")], append=len(block)))
        keys["Tract_Group"] = keys["County"] * 10**_NUMBER + of_block
        widths["Tract_Group"] = side_width("County") + _NUMBER
        again = np.argsort(keys["Tract_Group"], kind="stable")
        keys = {level: key[again] for level, key in keys.items()}
    spine = make_spine(
        settings.levels,
        [keys[level] for level in settings.levels],
        [widths[level] for level in settings.levels],
        settings.shares,
    )
    clock.start("bypassing")
    return bypass(spine, settings.mechanism, settings.bypass_cutoff, settings.unbypassed)


def _number_groups(tract: Ints, kind: Ints, fanout_cutoff: int | None, grouping: Grouping) -> Ints:
    """Number the block groups of each tract from 1; blocks are in order of tract, kind and digits."""
    new_tract = np.diff(tract, prepend=-1) != 0
    new_part = new_tract | (np.diff(kind, prepend=-1) != 0)
    opens = new_part
    if fanout_cutoff is not None:
        largest = cap(_run_lengths(new_tract), fanout_cutoff)[np.cumsum(new_tract) - 1]
        length = _run_lengths(new_part)[np.cumsum(new_part) - 1]
        at = np.arange(len(tract)) - np.flatnonzero(new_part)[np.cumsum(new_part) - 1]
        opens = new_part | (np.diff(chunks(at, length, largest, grouping), prepend=-1) != 0)
    group: Ints = np.cumsum(opens)
    number: Ints = group - np.repeat(group[new_tract], _run_lengths(new_tract)) + 1
    return number


def _run_lengths(opens: Flags) -> Ints:
    return np.diff(np.flatnonzero(opens), append=len(opens))


def cut_pieces(reference: Reference, entities: Mapping[str, Labels], settings: SpineSettings) -> tuple[int, int]:
    """How many classes of blocks the cut-off cuts, and how many classes there are."""
    if settings.fanout_cutoff is None:
        return 0, 0
    tract = side_key(reference.block, sides(reference, settings), "Tract")
    kind = _classes(reference, entities, settings)
    _, of_tract, blocks = np.unique(tract, return_inverse=True, return_counts=True)
    _, first, size = np.unique(np.stack([of_tract, kind]), axis=1, return_index=True, return_counts=True)
    largest = cap(blocks, settings.fanout_cutoff)[of_tract[first]]
    return int((size > largest).sum()), len(size)


def _classes(reference: Reference, entities: Mapping[str, Labels], settings: SpineSettings) -> Ints:
    """One number for each combination of entities, and of pieces of the block group, of a block, shape (blocks,)."""
    kind = np.zeros(len(reference.block), dtype=np.int64)
    if settings.kind == PIECES:
        kind = reference.block // 10 ** (16 - DIGITS["Block_Group"]) % 10
    for found in entities.values():
        _, kind = np.unique(kind * (len(found.labels) + 1) + found.index + 1, return_inverse=True)
    return kind


def _all_members(entities: Iterable[Labels]) -> Members:
    """The members of entities of all kinds, numbered one kind after the other."""
    none, total = np.zeros(0, dtype=np.int32), 0
    kinds = [Members(none, none, 0)]
    for found in entities:
        one = partition(found.index, len(found.labels))
        kinds.append(replace(one, entity=one.entity + np.int32(total)))
        total += one.number
    return Members(np.concatenate([of.block for of in kinds]), np.concatenate([of.entity for of in kinds]), total)
