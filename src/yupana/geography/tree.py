"""A hierarchy of geounits as arrays, the part of it that entities touch, and variances under ordinary least squares.

For the variances every geounit's total is measured with its own precision (`yupana.geography.spine.precisions`), the
unknowns are the totals of the blocks, and the estimate is the least-squares one, weighted by the precisions. No matrix
is ever formed: the recursions over the tree, and why they are right, are in docs/spines-proofs.md. A unit with
precision 0 is not measured.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from yupana.arrays import Flags, Floats, Indices, Ints


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """Geounits by geolevel, from the root to the blocks."""

    names: tuple[str, ...]  # the geolevels
    # for each geolevel, the position of each unit's parent in the geolevel above, of shape (units,) and never
    # decreasing, so that children lie side by side. That of the root is `[0]`.
    parents: tuple[Indices, ...]

    def units(self, level: int) -> int:
        """How many units a geolevel has."""
        return len(self.parents[level])

    def children(self, level: int) -> Indices:
        """How many children each unit of a geolevel has, of shape (units,)."""
        if level == len(self.names) - 1:
            return np.zeros(self.units(level), dtype=np.int32)
        return np.bincount(self.parents[level + 1], minlength=self.units(level)).astype(np.int32)

    def ancestors(self, level: int) -> Indices:
        """The unit of a geolevel in which each block lies, of shape (blocks,)."""
        found = np.arange(self.units(len(self.names) - 1), dtype=np.int32)
        for parent in self.parents[:level:-1]:
            found = parent[found]
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Members:
    """Which blocks lie in which entities: pairs, each once. Entities may overlap."""

    block: Indices  # positions among the blocks of a tree, of shape (pairs,)
    entity: Indices  # numbers of entities, of shape (pairs,)
    number: int  # how many entities there are

    def keep(self, entities: Flags) -> "Members":
        """Return the members of some entities; numbers stay as they are."""
        kept = entities[self.entity]
        return Members(self.block[kept], self.entity[kept], self.number)


def partition(entity: Indices, number: int) -> Members:
    """Members of entities that do not overlap: for each block the number of its entity, or -1 for none."""
    block = np.flatnonzero(entity >= 0).astype(np.int32)
    return Members(block, entity[block], number)


@dataclass(frozen=True, slots=True, eq=False)
class Touched:
    """The pairs of a unit and an entity that meet, by geolevel: all that recursions over entities need to visit."""

    # unit, entity: the pairs of each geolevel; above the blocks in the order of units, then of entities
    unit: tuple[Indices, ...]
    entity: tuple[Indices, ...]
    # for each pair the position of the pair of its parent and the same entity in the geolevel above
    up: tuple[Ints, ...]


def touch(tree: Tree, members: Members, root: int = 0) -> Touched:
    """Find all pairs of units and entities that meet, at the geolevels from `root` down; those above are empty."""
    none = np.zeros(0, dtype=np.int32)
    bottom = len(tree.names) - 1
    units, entities = ([none] * (bottom + 1) for _ in range(2))
    up: list[Ints] = [np.zeros(0, dtype=np.int64)] * (bottom + 1)
    units[bottom], entities[bottom] = members.block, members.entity
    for level in range(bottom, root, -1):
        key = tree.parents[level][units[level]].astype(np.int64) * max(members.number, 1) + entities[level]
        # Neighbours mostly share parent and entity: shorten the runs before sorting.
        starts = np.flatnonzero(np.diff(key, prepend=-1))
        found, of_run = np.unique(key[starts], return_inverse=True)
        up[level] = np.repeat(of_run, np.diff(starts, append=len(key)))
        unit, entity = np.divmod(found, max(members.number, 1))
        units[level - 1], entities[level - 1] = unit.astype(np.int32), entity.astype(np.int32)
    return Touched(tuple(units), tuple(entities), tuple(up))


def nest(names: Sequence[str], keys: Sequence[Ints]) -> tuple[Tree, tuple[Ints, ...]]:
    """Make a tree of blocks that lie in the order of their units.

    Parameters
    ----------
    names : sequence of str
        The geolevels.
    keys : sequence of ndarray of int64
        For each geolevel what tells the unit of each block, of shape (blocks,). Blocks of one unit lie side by side;
        the key of a unit need not differ from that of a unit of another parent.

    Returns
    -------
    tuple
        The tree, and for each geolevel the position of the first block of each unit.
    """
    opens = np.zeros(len(keys[0]), dtype=np.bool_)
    opens[:1] = True
    above = np.zeros(len(opens), dtype=np.int32)
    parents: list[Indices] = []
    firsts: list[Ints] = []
    for key in keys:
        opens[1:] |= key[1:] != key[:-1]
        first = np.flatnonzero(opens)
        parents.append(above[first])
        firsts.append(first)
        above = (np.cumsum(opens) - 1).astype(np.int32)
    return Tree(tuple(names), tuple(parents)), tuple(firsts)


@dataclass(frozen=True, slots=True, eq=False)
class _Below:
    """What the measurements in the subtree of each unit say of its total, by geolevel; arrays of shape (units,)."""

    own: tuple[Floats, ...]  # variance by all measurements of the unit and below
    # variance by all measurements below the unit: the sum over its children, leaving out infinite ones
    sums: tuple[Floats, ...]
    unknown: tuple[Ints, ...]  # how many children have an infinite variance; a block counts as having one such child


def unit_variances(tree: Tree, precisions: Sequence[Floats]) -> tuple[Floats, ...]:
    """The variance of the estimated total of every geounit.

    Parameters
    ----------
    precisions : sequence of ndarray of float
        For each geolevel the inverse variance of each unit's noise, of shape (units,).

    Returns
    -------
    tuple of ndarray of float
        For each geolevel, of shape (units,); infinite where the measurements do not determine the total.
    """
    below = _ascend(tree, precisions)
    found = [below.own[0]]
    for level in range(1, len(tree.names)):
        parent = tree.parents[level]
        above, own = found[-1][parent], below.own[level]
        total, unknown = below.sums[level - 1][parent], below.unknown[level - 1][parent]
        # The estimates of siblings are independent before what is known of their sum is used; it changes them along
        # their variances.
        with np.errstate(invalid="ignore", divide="ignore"):
            known = own - own * (own / total) * (1 - above / total)
        variance = np.where(unknown == 0, np.where(total > 0, known, 0.0), own)
        # One sibling of unknown total is the parent less the others.
        variance = np.where((unknown == 1) & np.isinf(own), above + total, variance)
        found.append(variance)
    return tuple(found)


def entity_variances(tree: Tree, precisions: Sequence[Floats], members: Members) -> Floats:
    """The variance of the estimated total of each entity, of shape (entities,).

    Parameters
    ----------
    precisions : sequence of ndarray of float
        As in `unit_variances`.

    Returns
    -------
    ndarray of float
        Infinite where the measurements do not determine the total, 0 for an entity without blocks.
    """
    below = _ascend(tree, precisions)
    touched = touch(tree, members)
    bottom = len(tree.names) - 1
    # For the part of the entity in a unit: its variance, the variance of the rest of the unit, the covariance of the
    # part with the unit's total, by what is measured in the unit's subtree.
    part = below.own[bottom][members.block]
    rest, both = np.zeros(len(part)), part.copy()
    for level in range(bottom, 0, -1):
        up, unit = touched.up[level], touched.unit[level - 1]
        pairs = len(unit)
        child = below.own[level][touched.unit[level]]
        finite = np.isfinite(child)
        # Children that the entity does not meet are part of the rest, with their own variance.
        unmet = below.sums[level - 1][unit] - _sum(up, np.where(finite, child, 0), pairs)
        missing = below.unknown[level - 1][unit] - _sum(up, ~finite, pairs)
        in_part = _sum(up, part, pairs)
        in_rest = _sum(up, rest, pairs) + np.where(missing > 0.5, np.inf, np.maximum(unmet, 0))
        covariance = _sum(up, np.where(finite, both, 0), pairs)
        part, rest, both = _measure(
            in_part, in_rest, covariance, below, precisions, level - 1, unit, known=below.unknown[level - 1][unit] == 0
        )
    found = np.zeros(members.number)
    found[touched.entity[0]] = part
    return found


def _measure(
    part: Floats,
    rest: Floats,
    both: Floats,
    below: _Below,
    precisions: Sequence[Floats],
    level: int,
    unit: Indices,
    *,
    known: Flags,
) -> tuple[Floats, Floats, Floats]:
    """Add the measurement of a unit to what its children say of an entity's part, the rest, and their covariance."""
    total, own, weight = below.sums[level][unit], below.own[level][unit], precisions[level][unit]
    with np.errstate(invalid="ignore"):
        gain = weight / (1 + weight * total)
        cross = total - both  # covariance of the rest with the total
        by_children = (part - both * both * gain, rest - cross * cross * gain, both / (1 + weight * total))
        # Without the measurement the total is unknown, so it says nothing of a part that is known; an unknown part is
        # the total less the rest, if the rest is known.
        through_rest = np.isinf(part) & np.isfinite(rest)
        through_part = np.isinf(rest) & np.isfinite(part)
        by_total = (
            np.where(through_rest, own + rest, part),
            np.where(through_part, own + part, rest),
            np.where(through_rest, own, 0.0),
        )
    return (
        np.where(known, np.maximum(by_children[0], 0), by_total[0]),
        np.where(known, np.maximum(by_children[1], 0), by_total[1]),
        np.where(known, by_children[2], by_total[2]),
    )


def _ascend(tree: Tree, precisions: Sequence[Floats]) -> _Below:
    bottom = len(tree.names) - 1
    sums: list[Floats] = [np.zeros(tree.units(bottom))]
    unknown: list[Ints] = [np.ones(tree.units(bottom), dtype=np.int64)]
    own: list[Floats] = []
    for level in range(bottom, -1, -1):
        weight = precisions[level]
        with np.errstate(divide="ignore"):
            own.insert(0, np.where(unknown[0] == 0, sums[0] / (1 + weight * sums[0]), 1 / weight))
        if level:
            finite = np.isfinite(own[0])
            parent, units = tree.parents[level], tree.units(level - 1)
            sums.insert(0, _sum(parent, np.where(finite, own[0], 0), units))
            unknown.insert(0, _sum(parent, ~finite, units).astype(np.int64))
    return _Below(tuple(own), tuple(sums), tuple(unknown))


def _sum(place: Ints | Indices, values: Floats | Flags, number: int) -> Floats:
    """Add up values by place; infinite ones are allowed."""
    return np.bincount(place, values, number).astype(np.float64, copy=False)
