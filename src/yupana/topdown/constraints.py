"""What every estimate must satisfy whatever was measured: bounds by group quarters, totals that are known. Public."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

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
