"""A hierarchy of areas of any codes, given as a table of units and what each lies in. Public."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Final

import numpy as np

from yupana.files.declaration import WORD
from yupana.files.document import is_text
from yupana.geography.spine import Geolevel, Spine
from yupana.geography.tree import Tree

_SHOWN: Final = 3


@dataclass(frozen=True)
class Hierarchy:
    """Units by geolevel, from the root to the blocks, children side by side."""

    levels: tuple[str, ...]  # geolevels from the root down; the last are the blocks
    # codes of the units of each geolevel, in the order of their parents and then of the codes
    units: tuple[tuple[str, ...], ...]
    parents: tuple[tuple[int, ...], ...]  # position of each unit's parent in the geolevel above; `(0,)` for the root

    def __repr__(self) -> str:
        told = ", ".join(f"{len(of):,} {level}" for level, of in zip(self.levels, self.units, strict=True))
        return f"<hierarchy: {told}>"

    @cached_property
    def blocks(self) -> tuple[str, ...]:
        """The codes of the blocks, in order: the number of a block is its place here."""
        return tuple(sorted(self.units[-1]))

    @property
    def pairs(self) -> dict[str, str | list[str]]:
        """The parent of each unit, and an empty list for the root: what `hierarchy_of` makes the same hierarchy of."""
        found: dict[str, str | list[str]] = {self.units[0][0]: []}
        for above, units, parents in zip(self.units, self.units[1:], self.parents[1:], strict=False):
            found |= {unit: above[parent] for unit, parent in zip(units, parents, strict=True)}
        return found


def check_level_names(place: str, levels: Sequence[object], faults: list[str]) -> None:
    """Name the geolevels that could not be columns and names of files, each another whatever its case."""
    faults += [f"{place}: {level!r} must be {WORD.words}" for level in levels if not WORD.fits(level)]
    lower = [str(level).lower() for level in levels]
    faults += [f"{place}: {level!r} is named twice" for i, level in enumerate(levels) if lower[i] in lower[:i]]
    if "block" in lower[:-1]:
        faults.append(f"{place}: only the last may be called block")


def hierarchy_of(
    place: str, levels: Sequence[str], pairs: Mapping[str, Sequence[str]], faults: list[str]
) -> Hierarchy | None:
    """Make a hierarchy of a table of units and parents; None, with faults, where it is none.

    Parameters
    ----------
    place : str
        Where the table stands, for the faults.
    levels : sequence of str
        Geolevels from the root down.
    pairs : mapping of str to sequence of str
        What each unit lies in. The root lies in nothing; it may be left out.
    faults : list of str
        Faults found are added, of each kind the first few units.
    """
    before = len(faults)
    named = dict.fromkeys([*pairs, *(above for of in pairs.values() for above in of)])
    _fault_some(faults, place, [u for u in named if not is_text(u) or set(u) & set('|"')], "no code of a unit")
    _fault_some(
        faults, place, [unit for unit, of in pairs.items() if len(of) > 1], "in several units; a unit has one parent"
    )
    if not named:
        faults.append(f"{place}: has no unit")
    if len(faults) > before:
        return None
    parent = {unit: of[0] for unit, of in pairs.items() if of}
    depth, circles = _depths(parent, named)
    _fault_some(faults, place, [" > ".join(circle) for circle in circles], "a circle, which no root reaches")
    roots = [unit for unit in named if unit not in parent]
    if len(roots) > 1:
        _fault_some(faults, place, roots, "in no other unit; there is one root, which holds all others", all_of=True)
    holding = set(parent.values())
    shallow = [unit for unit, steps in depth.items() if unit not in holding and steps != len(levels) - 1]
    if shallow and not circles and len(roots) == 1:
        units = ", ".join(f"{unit!r} ({depth[unit]})" for unit in shallow[:_SHOWN])
        faults.append(
            f"{place}: {len(shallow):,} units that hold no other are not {len(levels) - 1} steps below the root, as "
            f"{', '.join(levels)} are: {units}"
        )
    if len(faults) > before:
        return None
    below: list[dict[str, str]] = [{} for _ in levels]
    for unit, above in parent.items():
        below[depth[unit]][unit] = above
    return ordered_hierarchy(tuple(levels), roots[0], below[1:])


def _fault_some(faults: list[str], place: str, units: Sequence[str], what: str, *, all_of: bool = False) -> None:
    if units:
        shown = ", ".join(map(repr, units[:_SHOWN])) + (", ..." if len(units) > _SHOWN else "")
        faults.append(f"{place}: {shown} {'are each' if all_of else 'is'} {what}")


def _depths(parent: Mapping[str, str], units: Mapping[str, None]) -> tuple[dict[str, int], list[list[str]]]:
    """How many steps each unit is below one without a parent, and the circles that units run in."""
    depth: dict[str, int] = {}
    lost: set[str] = set()
    circles: list[list[str]] = []
    for unit in units:
        path = [unit]
        on_path = {unit}
        while path[-1] not in depth and path[-1] not in lost and path[-1] in parent:
            above = parent[path[-1]]
            if above in on_path:
                circles.append([*path[path.index(above) :], above])
                break
            path.append(above)
            on_path.add(above)
        if path[-1] in lost or (circles and circles[-1][0] in on_path):
            lost |= on_path
            continue
        start = depth.get(path[-1], 0)
        depth |= {passed: start + step for step, passed in enumerate(reversed(path))}
    return depth, circles


def ordered_hierarchy(levels: tuple[str, ...], root: str, parents: Sequence[Mapping[str, str]]) -> Hierarchy:
    """Put the units of each geolevel in the order of their parents, then of their codes.

    Parameters
    ----------
    parents : sequence of mapping of str to str
        For each geolevel below the first the parent of each unit, in the geolevel above.
    """
    units: list[tuple[str, ...]] = [(root,)]
    of: list[tuple[int, ...]] = [(0,)]
    for parent in parents:
        place = {unit: i for i, unit in enumerate(units[-1])}
        ordered = sorted((place[above], unit) for unit, above in parent.items())
        of.append(tuple(above for above, _ in ordered))
        units.append(tuple(unit for _, unit in ordered))
    return Hierarchy(levels, tuple(units), tuple(of))


def spine_of(hierarchy: Hierarchy, shares: Sequence[Fraction]) -> Spine:
    """The spine whose units are those of a hierarchy; codes are places among the sorted codes of the geolevel.

    Parameters
    ----------
    shares : sequence of Fraction
        For each geolevel the share of its units.
    """
    tree = Tree(hierarchy.levels, tuple(np.array(parents, dtype=np.int32) for parents in hierarchy.parents))
    distinct = tuple(dict.fromkeys(shares))
    levels = []
    for name, units, share in zip(hierarchy.levels, hierarchy.units, shares, strict=True):
        names = tuple(sorted(units))
        place = {unit: i for i, unit in enumerate(names)}
        code = np.array([place[unit] for unit in units], dtype=np.int64)
        levels.append(Geolevel.whole(name, 0, code, share=distinct.index(share), names=names))
    return Spine(tree, tuple(levels), distinct)
