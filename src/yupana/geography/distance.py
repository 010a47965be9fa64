"""Off-spine entity distances (Algorithm 1), of arrays and of the entities of a file."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from yupana.arrays import Indices, Ints
from yupana.files.delimited import Labels
from yupana.geography.spine import Spine
from yupana.geography.spine_files import entities_of, manifest_of, read_spine, settings_of
from yupana.geography.tree import Members, Touched, Tree, partition, touch
from yupana.progress import Announce


@dataclass(frozen=True, slots=True, eq=False)
class Climb:
    """The recursion of Algorithm 1 over all pairs of a unit and an entity that meet, by geolevel."""

    touched: Touched  # the pairs
    inside: tuple[Ints, ...]  # the distance of the part of the entity in the unit: the paper's c[k, l, u]
    outside: tuple[Ints, ...]  # the distance of the rest of the unit: c[k', l, u]
    # added, subtracted: sums of both over the children of the unit; empty for blocks
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
        inside[level - 1], outside[level - 1] = nearer(x, y)
    return Climb(touched, tuple(inside), tuple(outside), tuple(added), tuple(subtracted))


def nearer(added: Ints, subtracted: Ints) -> tuple[Ints, Ints]:
    """The distances of what lies in a unit and of the rest, each by its own sum, or as what is not of the other."""
    return np.minimum(added, subtracted + 1), np.minimum(subtracted, added + 1)


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


Root = Literal["nation", "county"]


@dataclass(frozen=True, slots=True)
class Distance:
    """The off-spine entity distance of one entity, in the nation or, where a county is named, within it."""

    column: str
    entity: str
    county: str | None
    osed: int


def measure(folder: Path, entities: Path, root: Root, announce: Announce) -> list[Distance]:
    """Measure how far entities are from a spine: the paper's distance from the nation, or the code's in each county.

    Raises
    ------
    InputError, OutputError
        If the folder holds no spine, or the entities are not on it.
    """
    settings = settings_of(manifest_of(folder), folder)
    announce("reading the spine")
    spine = read_spine(folder, settings.levels)
    announce("reading the entities")
    found = entities_of(entities, spine, live=settings.live)
    announce("measuring")
    return [row for column, kind in found.items() for row in _measure(spine, column, kind, root)]


def _measure(spine: Spine, column: str, kind: Labels, root: Root) -> list[Distance]:
    members = partition(kind.index, len(kind.labels))
    if root == "nation":
        found = distances(spine.tree, members).tolist()
        return [Distance(column, label, None, osed) for label, osed in zip(kind.labels, found, strict=True)]
    level = spine.tree.names.index("County")
    names = spine.levels[level].labels()
    rows = [
        Distance(column, kind.labels[entity], names[unit], osed)
        for unit, entity, osed in zip(*(a.tolist() for a in distances_below(spine.tree, members, level)), strict=True)
    ]
    return sorted(rows, key=lambda row: (row.entity, row.county or ""))
