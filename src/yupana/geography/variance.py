"""Variances under ordinary least squares, by recursion over the tree: no matrix is ever formed.

Every geounit's total is measured with its own precision (`yupana.geography.spine.precisions`), the unknowns are the
totals of the blocks, and the estimate is the least-squares one, weighted by the precisions. The recursions, and why
they are right, are in docs/spines-proofs.md. A unit with precision 0 is not measured.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from yupana.arrays import Flags, Floats, Indices, Ints
from yupana.geography.tree import Members, Tree, touch


@dataclass(frozen=True, slots=True, eq=False)
class _Below:
    """What the measurements in the subtree of each unit say of its total, by geolevel; arrays of shape (units,).

    Attributes
    ----------
    own : tuple of ndarray
        Variance by all measurements of the unit and below.
    sums : tuple of ndarray
        Variance by all measurements below the unit: the sum over its children, leaving out infinite ones.
    unknown : tuple of ndarray of int
        How many children have an infinite variance; a block counts as having one such child.
    """

    own: tuple[Floats, ...]
    sums: tuple[Floats, ...]
    unknown: tuple[Ints, ...]


def unit_variances(tree: Tree, precisions: Sequence[Floats]) -> tuple[Floats, ...]:
    """The variance of the estimated total of every geounit.

    Parameters
    ----------
    tree : Tree
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
    tree : Tree
    precisions : sequence of ndarray of float
        As in `unit_variances`.
    members : Members

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
