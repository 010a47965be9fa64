"""A hierarchy of geounits as arrays, and the part of it that entities touch."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from yupana.arrays import Flags, Indices, Ints


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

    def below(self, level: int, units: ArrayLike) -> list[NDArray[np.intp]]:
        """By geolevel from their own down, the first unit that lies in each of some units, or after it."""
        found = [np.asarray(units)]
        for parents in self.parents[level + 1 :]:
            found.append(np.searchsorted(parents, found[-1]))
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
