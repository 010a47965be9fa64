"""Totals that are kept exactly: those of published areas, and the units they bind. Public but for the totals."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from yupana.arrays import Flags, Indices, Ints
from yupana.errors import ConfigError
from yupana.geography.settings import DIGITS
from yupana.geography.spine import Spine
from yupana.topdown.block_parts import BlockParts
from yupana.topdown.configuration import Configuration
from yupana.topdown.constraints import UNKNOWN, Joint


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """The totals known at one geolevel.

    Attributes
    ----------
    totals : ndarray of int64, shape (units,)
        `UNKNOWN` where the total of a unit is only known together with those of others.
    joint : tuple of Joint
        Units of published areas, such as the two sides of a state, whose totals are known together.
    """

    totals: Ints
    joint: tuple[Joint, ...]

    @property
    def of_each(self) -> Ints | None:
        """The totals, if all are known one by one."""
        return None if (self.totals == UNKNOWN).any() else self.totals

    @property
    def in_sets(self) -> tuple[Joint, ...]:
        """All totals as sets of units, if not all are known one by one."""
        if self.of_each is not None:
            return ()
        alone = [Joint((unit,), int(self.totals[unit])) for unit in np.flatnonzero(self.totals != UNKNOWN).tolist()]
        return (*alone, *self.joint)


@dataclass(frozen=True, slots=True, eq=False)
class Sets:
    """The smallest sets of units of one geolevel that are made up of whole published areas.

    Attributes
    ----------
    of_area : ndarray of int32, shape (areas,)
        The set that holds each area.
    of_unit : ndarray of int32, shape (units,)
        The set of each unit.
    alone : ndarray of bool, shape (units,)
        Which units are a set of their own.
    joined : tuple of tuple of int
        Sets of several units that are not the blocks of a set of the geolevel above.
    """

    of_area: Indices
    of_unit: Indices
    alone: Flags
    joined: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """The published areas whose totals are kept exactly, and the units they bind.

    Attributes
    ----------
    area : ndarray of int64, shape (blocks,)
        The area of each block of the spine, numbered from 0.
    sets : mapping of int to Sets
        By geolevel, where the areas say anything that the geolevels above do not.
    """

    area: Ints
    sets: Mapping[int, Sets]


def kept_areas(configuration: Configuration, spine: Spine) -> Kept | None:
    """Find what the invariants of a configuration bind on a spine; None without invariants.

    An invariant is the total of a published area, the blocks whose digits begin alike, whatever units a spine is made
    of; where the configuration has areas of its own, of one of these. Areas nest, so those of the lowest geolevel with
    an invariant decide. Of the totals of units they make known those of the sets in which units and areas that share a
    block are joined, and nothing else (docs/topdown-privacy.md, theorem 3).

    Raises
    ------
    ConfigError
        If an area is no set of children of one parent at any geolevel, so that its total cannot be kept.
    """
    named = [number for number, level in enumerate(spine.levels) if level.name in configuration.invariants]
    if not named:
        return None
    name = spine.levels[named[-1]].name
    if configuration.areas is None:
        codes, area = np.unique(spine.blocks // 10 ** (16 - DIGITS[name]), return_inverse=True)
    else:
        # Areas of the configuration are the units of the spine themselves.
        area = spine.tree.ancestors(named[-1]).astype(np.int64)
        codes = np.arange(spine.tree.units(named[-1]))
    sets: dict[int, Sets] = {}
    for number in range(len(spine.levels)):
        sets[number] = _sets(spine, number, area, sets.get(number - 1))
        if (torn := _torn(spine, number, area, sets[number])) is not None:
            raise ConfigError(_scattered(name, int(codes[torn]), spine.levels[number].name))
        if number >= named[-1] and int(sets[number].of_area.max()) + 1 == len(codes):
            break
    return Kept(area, sets)


def known_totals(kept: Kept, blocks: BlockParts) -> dict[int, Known]:
    """The totals that the estimate is given without noise, by geolevel: functions of the totals of areas kept alone.

    Parameters
    ----------
    kept : Kept
    blocks : BlockParts
        Confidential counts of the blocks of the spine. The totals of the areas kept become public here, and no other
        number is made of the counts.
    """
    areas = np.zeros(int(kept.area.max()) + 1, dtype=np.int64)
    for first, part in blocks:
        np.add.at(areas, kept.area[first : first + part.units], part.totals())
    return known_of_areas(kept, areas)


def known_of_areas(kept: Kept, totals: Ints) -> dict[int, Known]:
    """The totals that the estimate is given, by geolevel, from those of the areas kept, of shape (areas,)."""
    return {number: _known(sets, totals) for number, sets in kept.sets.items()}


def _known(sets: Sets, areas: Ints) -> Known:
    totals = np.zeros(int(sets.of_area.max()) + 1, dtype=np.int64)
    np.add.at(totals, sets.of_area, areas)
    joint = tuple(Joint(units, int(totals[sets.of_unit[units[0]]])) for units in sets.joined)
    return Known(np.where(sets.alone, totals[sets.of_unit], UNKNOWN), joint)


def _sets(spine: Spine, number: int, area: Ints, above: Sets | None) -> Sets:
    of_unit, of_area = _join(spine.tree.ancestors(number), area, spine.tree.units(number), int(area.max()) + 1)
    units = np.bincount(of_unit)
    # A set of as many areas as the set above that holds it is the same blocks: its total is kept there.
    areas = np.bincount(of_area)
    told = np.zeros(len(areas), dtype=np.bool_)
    if above is not None:
        told[of_area] = areas[of_area] == np.bincount(above.of_area)[above.of_area]
    several = np.flatnonzero(((units > 1) & ~told)[of_unit])
    several = several[np.argsort(of_unit[several], kind="stable")]
    starts = np.flatnonzero(np.diff(of_unit[several], prepend=-1))
    joined = tuple(tuple(part.tolist()) for part in np.split(several, starts[1:]) if len(part))
    return Sets(of_area, of_unit, units[of_unit] == 1, joined)


def _join(unit: Indices, area: Ints, units: int, areas: int) -> tuple[Indices, Indices]:
    """The set of each unit, of shape (units,), and of each area, of shape (areas,): two that share a block have one."""
    of_area = np.zeros(areas, dtype=np.int32)
    of_area[area] = unit
    if np.array_equal(of_area[area], unit):  # every area lies in one unit
        return np.arange(units, dtype=np.int32), of_area
    pairs = area * units + unit
    pairs = np.unique(pairs[np.flatnonzero(np.diff(pairs, prepend=-1))])
    graph = sparse.coo_matrix(
        (np.ones(len(pairs), dtype=np.bool_), (pairs % units, units + pairs // units)), shape=(units + areas,) * 2
    )
    _, found = connected_components(graph, directed=False)
    return found[:units], found[units:]


def _torn(spine: Spine, number: int, area: Ints, sets: Sets) -> int | None:
    """An area of a joined set whose units have different parents, if there is one."""
    parents = spine.tree.parents[number]
    torn = [sets.of_unit[units[0]] for units in sets.joined if len(np.unique(parents[list(units)])) > 1]
    if not torn:
        return None
    above = spine.tree.ancestors(number - 1)
    pairs = np.unique(area * spine.tree.units(number - 1) + above)
    here, times = np.unique(pairs // spine.tree.units(number - 1), return_counts=True)
    return int(here[(times > 1) & (sets.of_area[here] == torn[0])][0])


def _scattered(name: str, code: int, below: str) -> str:
    return (
        f"invariants.{name}: {name} {code:0{DIGITS[name]}d} lies in several units of the spine at {below}, with "
        "different parents, so its total cannot be kept; use a conventional spine, or keep totals of higher geolevels "
        "only"
    )
