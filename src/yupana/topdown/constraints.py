"""What every estimate must satisfy whatever was measured: bounds by group quarters, totals that are known. Public."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from yupana.arrays import Integers, Ints
from yupana.geography.tree import Tree

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
    """Units of one geolevel whose totals add up to a total that is known.

    Attributes
    ----------
    units : tuple of int
        Children of one parent.
    total : int
    """

    units: tuple[int, ...]
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
    tree : Tree
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
