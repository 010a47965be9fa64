"""What every estimate must satisfy whatever was measured: bounds by group quarters, totals that are kept exactly.

Public but for the totals of records that `known_totals` reads.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog
from scipy.sparse.csgraph import connected_components

from yupana.arrays import Flags, Indices, Integers, Ints
from yupana.errors import ConfigError
from yupana.geography.settings import DIGITS
from yupana.geography.spine import Spine
from yupana.geography.tree import Tree
from yupana.topdown.configuration import Configuration
from yupana.topdown.histogram import BlockParts

MOST_PERSONS: Final = 99_999
"""More than any facility or housing unit holds: the bound the 2020 system used."""

UNKNOWN: Final = -1
"""The total of a unit that is not known."""


@dataclass(frozen=True, slots=True, eq=False)
class Limits:
    """Bounds on the counts of each unit of a geolevel by the levels of the first attribute, (units, groups)."""

    lower: Integers
    upper: Integers

    def part(self, first: int, last: int) -> "Limits":
        """Those of the units from ``first`` up to ``last``."""
        return Limits(self.lower[first:last], self.upper[first:last])

    def wide(self) -> tuple[Ints, Ints]:
        """Lower and upper bounds in 8 bytes each, as they are computed with."""
        return self.lower.astype(np.int64), self.upper.astype(np.int64)


@dataclass(frozen=True, slots=True)
class Joint:
    """Units of one geolevel whose totals add up to a total that is known."""

    units: tuple[int, ...]  # children of one parent
    total: int


def facility_limits(facilities: Integers) -> Limits:
    """Bound the persons of each block by what stands there.

    Nobody lives in a housing unit where there is none, nor in group quarters of a type without a facility; every
    facility houses at least one person, a housing unit may be vacant (2020 redistricting data, invariants and
    constraints of persons).

    Parameters
    ----------
    facilities : ndarray of integers, shape (blocks, groups)
        Housing units, then facilities by major type.
    """
    lower = facilities.copy()
    lower[:, 0] = 0
    most = int(facilities.max(initial=0)) * MOST_PERSONS
    kind = np.int32 if most <= np.iinfo(np.int32).max else np.int64
    return Limits(lower, np.multiply(facilities, MOST_PERSONS, dtype=kind))


def limits_by_level(
    tree: Tree, blocks: Limits, totals: Mapping[int, Ints], joint: Mapping[int, Sequence[Joint]]
) -> tuple[Limits, ...]:
    """Add the bounds of the blocks up to every geolevel, and draw the consequences of totals that are known.

    Parameters
    ----------
    blocks : Limits
        Of the last geolevel.
    totals : mapping of int to ndarray of int64
        By geolevel the known total of each unit, or `UNKNOWN`.
    joint : mapping of int to sequence of Joint
        By geolevel the units whose totals are known together.
    """
    found: list[Limits] = []
    here = blocks
    for level in range(len(tree.names) - 1, -1, -1):
        if level < len(tree.names) - 1:
            first = np.flatnonzero(np.diff(tree.parents[level + 1], prepend=-1))
            gained = _from_joint(here, joint.get(level + 1, ()), tree.parents[level + 1], tree.units(level))
            lower, upper = (np.add.reduceat(of, first, dtype=np.int64) for of in (here.lower, here.upper))
            here = Limits(lower + gained.lower, upper + gained.upper)
        if level in totals:
            here = _with_totals(here, totals[level])
        found.append(here)
    return tuple(reversed(found))


def _from_joint(limits: Limits, joint: Sequence[Joint], parents: NDArray[np.integer], units: int) -> Limits:
    """What totals known together add to the sums of bounds that their parents have; shape (units, groups)."""
    shape = (units, limits.lower.shape[1])
    lower, upper = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    for one in joint:
        members = list(one.units)
        both = Limits(limits.lower[members].sum(axis=0)[None], limits.upper[members].sum(axis=0)[None])
        tight = _with_totals(both, np.array([one.total]))
        lower[parents[members[0]]] += (tight.lower - both.lower)[0]
        upper[parents[members[0]]] += (tight.upper - both.upper)[0]
    return Limits(lower, upper)


def _with_totals(limits: Limits, totals: Ints) -> Limits:
    """Tighten bounds by a known total: what the other groups must or can hold leaves the rest to each."""
    known = (totals != UNKNOWN)[:, None]
    total = totals[:, None]
    most = total - (limits.lower.sum(axis=1, keepdims=True) - limits.lower)
    least = total - (limits.upper.sum(axis=1, keepdims=True) - limits.upper)
    lower = np.where(known, np.maximum(limits.lower, least), limits.lower)
    upper = np.where(known, np.minimum(limits.upper, most), limits.upper)
    return Limits(lower, upper)


def joint_by_parent(joint: Sequence[Joint], parents: Ints) -> dict[int, tuple[Joint, ...]]:
    """Sort joint totals by the parent of their units."""
    found: dict[int, tuple[Joint, ...]] = {}
    for one in joint:
        parent = int(parents[one.units[0]])
        found[parent] = (*found.get(parent, ()), one)
    return found


def impossible(
    groups: Ints, children: slice, limits: Limits | None, totals: Ints | None, joint: Sequence[Joint]
) -> bool:
    """Whether no counts of the children sum to their parent.

    Within a group of the first attribute cells are all alike to the constraints, so group totals decide.

    Parameters
    ----------
    groups : ndarray of int64, shape (groups,)
        Totals of the parent by the levels of the first attribute; only their sum matters without limits.
    children : slice
        The children's positions in their geolevel.
    limits : Limits or None
        Of the geolevel of the children.
    totals : ndarray of int64, shape (units,), or None
        Known totals of the geolevel.
    joint : sequence of Joint
        Known sums of totals of children.
    """
    wanted = [] if totals is None else [(position, int(totals[position])) for position in _positions(children)]
    sums = [*(((position,), total) for position, total in wanted), *((one.units, one.total) for one in joint)]
    if limits is None:
        covered = {unit for units, _ in sums for unit in units}
        known, total = sum(total for _, total in sums), int(groups.sum())
        return known != total if covered == set(_positions(children)) else known > total
    lower, upper = limits.part(children.start, children.stop).wide()
    if bool((lower > upper).any() or (lower.sum(axis=0) > groups).any() or (upper.sum(axis=0) < groups).any()):
        return True
    return bool(sums) and not _flows(groups, lower, upper, [([u - children.start for u in us], t) for us, t in sums])


def _positions(children: slice) -> range:
    return range(children.start, children.stop)


def _flows(groups: Ints, lower: Ints, upper: Ints, sums: list[tuple[list[int], int]]) -> bool:
    """Whether totals by child and group exist within bounds, with sums by group and by sets of children."""
    number, width = lower.shape
    by_group = np.tile(np.eye(width), number)
    by_sum = np.zeros((len(sums), number * width))
    for row, (units, _) in enumerate(sums):
        for unit in units:
            by_sum[row, unit * width : (unit + 1) * width] = 1
    found = linprog(
        np.zeros(number * width),
        A_eq=np.vstack([by_group, by_sum]),
        b_eq=np.concatenate([groups, [total for _, total in sums]]),
        bounds=np.stack([lower.ravel(), upper.ravel()], axis=1),
        method="highs",
    )
    return bool(found.status != 2)  # 2: infeasible


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """The totals known at one geolevel."""

    totals: Ints  # shape (units,): `UNKNOWN` where the total of a unit is only known together with those of others
    # units of published areas, such as the two sides of a state, whose totals are known together
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
    """The smallest sets of units of one geolevel that are made up of whole published areas."""

    of_area: Indices  # shape (areas,): the set that holds each area
    of_unit: Indices  # shape (units,): the set of each unit
    alone: Flags  # shape (units,): which units are a set of their own
    joined: tuple[tuple[int, ...], ...]  # sets of several units that are not the blocks of a set of the geolevel above


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """The published areas whose totals are kept exactly, and the units they bind."""

    area: Ints  # shape (blocks,): the area of each block of the spine, numbered from 0
    sets: Mapping[int, Sets]  # by geolevel, where the areas say anything that the geolevels above do not


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
            raise ConfigError(
                f"invariants.{name}: {name} {int(codes[torn]):0{DIGITS[name]}d} lies in several units of the spine at "
                f"{spine.levels[number].name}, with different parents, so its total cannot be kept; use a conventional "
                "spine, or keep totals of higher geolevels only"
            )
        if number >= named[-1] and int(sets[number].of_area.max()) + 1 == len(codes):
            break
    return Kept(area, sets)


def known_totals(kept: Kept, blocks: BlockParts) -> dict[int, Known]:
    """The totals that the estimate is given without noise, by geolevel: functions of the totals of areas kept alone.

    Parameters
    ----------
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
