"""Algorithm 1 of the spines paper: how many geounits must be added and subtracted to make an entity."""

from dataclasses import dataclass

import numpy as np

from yupana.arrays import Indices, Ints
from yupana.geography.tree import Members, Touched, Tree, touch


@dataclass(frozen=True, slots=True, eq=False)
class Climb:
    """The recursion of Algorithm 1 over all pairs of a unit and an entity that meet, by geolevel.

    Attributes
    ----------
    touched : Touched
        The pairs.
    inside : tuple of ndarray of int64
        The distance of the part of the entity in the unit: the paper's c[k, l, u].
    outside : tuple of ndarray of int64
        The distance of the rest of the unit: c[k', l, u].
    added, subtracted : tuple of ndarray of int64
        Sums of both over the children of the unit; empty for blocks.

    A unit that an entity does not meet has 0 inside and 1 outside, and is not visited.
    """

    touched: Touched
    inside: tuple[Ints, ...]
    outside: tuple[Ints, ...]
    added: tuple[Ints, ...]
    subtracted: tuple[Ints, ...]


def climb(tree: Tree, members: Members, root: int = 0) -> Climb:
    """Run Algorithm 1 from the blocks up to a geolevel; what lies above is left empty."""
    touched = touch(tree, members, root)
    bottom = len(tree.names) - 1
    empty = [np.zeros(0, dtype=np.int64)] * (bottom + 1)
    inside, outside, added, subtracted = empty.copy(), empty.copy(), empty.copy(), empty.copy()
    inside[bottom] = np.ones(len(members.block), dtype=np.int64)
    outside[bottom] = np.zeros(len(members.block), dtype=np.int64)
    for level in range(bottom, root, -1):
        up, pairs = touched.up[level], len(touched.unit[level - 1])
        others = tree.children(level - 1)[touched.unit[level - 1]] - np.bincount(up, minlength=pairs)
        x = _sum(up, inside[level], pairs)
        y = _sum(up, outside[level], pairs) + others
        added[level - 1], subtracted[level - 1] = x, y
        inside[level - 1], outside[level - 1] = np.minimum(x, y + 1), np.minimum(y, x + 1)
    return Climb(touched, tuple(inside), tuple(outside), tuple(added), tuple(subtracted))


def distances(tree: Tree, members: Members) -> Ints:
    """The distance of each entity from the whole spine, of shape (entities,); 0 for an entity without blocks."""
    climbed = climb(tree, members)
    found = np.zeros(members.number, dtype=np.int64)
    found[climbed.touched.entity[0]] = climbed.inside[0]
    return found


def distances_below(tree: Tree, members: Members, level: int) -> tuple[Indices, Indices, Ints]:
    """The distance of each entity within each unit of a geolevel that it meets.

    Returns
    -------
    tuple
        The units, the entities and the distances, arrays of shape (pairs,).
    """
    climbed = climb(tree, members, level)
    return climbed.touched.unit[level], climbed.touched.entity[level], climbed.inside[level]


def _sum(up: Ints, values: Ints, pairs: int) -> Ints:
    # Sums of whole numbers below 2**53 are exact in floating point.
    return np.bincount(up, weights=values, minlength=pairs).astype(np.int64)
