"""Algorithm 3 of the spines paper: bypass parents whose own measurement helps less than their share would below.

To bypass a parent with c children is to put c units in its place, each with one child, with the share of the parent
added to that of the child; the children give up their shares. Shares along every path from the root keep their sum, so
the privacy guarantee is unchanged. No least-squares variance is raised where the geolevel of the parent and that below
it ask the same queries in the same proportions; elsewhere the rule is a heuristic, made for an estimator that does not
read the answers of an only child. docs/spines-proofs.md has the proof of this and of `worth_bypassing`.
"""

from collections.abc import Collection
from dataclasses import replace
from fractions import Fraction

import numpy as np

from yupana.arrays import Flags, Indices, Ints
from yupana.geography.settings import LEVELS, Mechanism
from yupana.geography.spine import Geolevel, Spine
from yupana.geography.tree import Tree

_COUNTY = LEVELS.index("County")


def worth_bypassing(parent: Fraction, least_child: Fraction, children: int) -> bool:
    """Whether giving the share of a parent to its children raises no variance under pure DP: Theorem 2.

    It assumes that parent and children are asked the same queries in the same proportions.

    Parameters
    ----------
    parent : Fraction
        The share of the parent.
    least_child : Fraction
        The smallest share of a child.
    children : int
    """
    return 2 * least_child >= (children - 1) * parent


def bypass(spine: Spine, mechanism: Mechanism, cutoff: int, unbypassed: Collection[str] = ()) -> Spine:
    """Bypass from the geolevel above the blocks up to the root, in one pass.

    Under zCDP, and at the county and above, parents with one child. Under pure DP below the county, also those that
    Theorem 2 allows, unless the unit above would then have more than `cutoff` children. Units of the geolevels
    `unbypassed` stay.
    """
    for level in range(len(spine.levels) - 2, -1, -1):
        if spine.levels[level].name in unbypassed:
            continue
        only_children = mechanism == "zcdp" or LEVELS.index(spine.levels[level].name) <= _COUNTY
        chosen = spine.tree.children(level) == 1
        if not only_children:
            chosen |= _within_cutoff(spine, level, _by_theorem(spine, level), cutoff)
        spine = _bypass_units(spine, level, chosen)
    return spine


def _by_theorem(spine: Spine, level: int) -> Flags:
    """Which units of a geolevel satisfy the condition of Theorem 2, of shape (units,)."""
    # Shares are few, so the exact rule is asked once for each combination that occurs.
    order = sorted(range(len(spine.shares)), key=spine.shares.__getitem__)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    first = np.flatnonzero(np.diff(spine.tree.parents[level + 1], prepend=-1))
    least = np.minimum.reduceat(rank[spine.levels[level + 1].share], first)
    cases = np.stack([spine.levels[level].share.astype(np.int64), least, spine.tree.children(level)])
    distinct, case = np.unique(cases, axis=1, return_inverse=True)
    verdicts = [
        worth_bypassing(spine.shares[parent], spine.shares[order[child]], children)
        for parent, child, children in distinct.T.tolist()
    ]
    return np.array(verdicts, dtype=np.bool_)[case.ravel()]


def _within_cutoff(spine: Spine, level: int, chosen: Flags, cutoff: int) -> Flags:
    """Which of the chosen units can be bypassed, one after the other, with at most `cutoff` units below each parent."""
    parent, children = spine.tree.parents[level], spine.tree.children(level)
    grown = np.bincount(parent, np.where(chosen, children, 1), spine.tree.units(level - 1))
    allowed = chosen.copy()
    for above in np.flatnonzero(grown > cutoff).tolist():
        start, stop = np.searchsorted(parent, (above, above + 1)).tolist()
        units = stop - start
        for unit in range(start, stop):
            more = int(children[unit]) - 1
            if chosen[unit] and units + more > cutoff:
                allowed[unit] = False
            elif chosen[unit]:
                units += more
    return allowed


def _bypass_units(spine: Spine, level: int, chosen: Flags) -> Spine:
    """Bypass the chosen units of a geolevel."""
    if not chosen.any():
        return spine
    tree, here, below = spine.tree, spine.levels[level], spine.levels[level + 1]
    children, child_parent = tree.children(level), tree.parents[level + 1]
    copies = np.where(chosen, children, 1)
    first = np.cumsum(copies) - copies
    within = np.arange(len(child_parent)) - (np.cumsum(children) - children)[child_parent]
    moved = chosen[child_parent]
    new_parent = np.where(moved, first[child_parent] + within, first[child_parent]).astype(np.int32)

    of_unit = np.repeat(np.arange(len(copies)), copies)
    split = (chosen & (children > 1))[of_unit]
    part = np.where(split, np.arange(len(of_unit)) - first[of_unit] + 1, here.part[of_unit]).astype(np.int32)
    shares, share, given_up = _add_shares(spine, here.share[child_parent[moved]], below.share[moved])
    here_share = here.share[of_unit]
    here_share[new_parent[moved]] = share
    below_share = np.where(moved, given_up, below.share).astype(np.int32)

    parents = list(tree.parents)
    parents[level], parents[level + 1] = parents[level][of_unit], new_parent
    levels = list(spine.levels)
    levels[level] = Geolevel(here.name, here.width, here.code[of_unit], part, here_share, here.bypassed[of_unit])
    levels[level + 1] = replace(below, share=below_share, bypassed=below.bypassed | moved)
    return Spine(Tree(tree.names, tuple(parents)), tuple(levels), shares)


def _add_shares(spine: Spine, parent: Indices, child: Indices) -> tuple[tuple[Fraction, ...], Indices, int]:
    """Add shares by position; return all shares, the positions of the sums, and the position of zero."""
    known = {share: position for position, share in enumerate(spine.shares)}
    pairs, pair = np.unique(parent.astype(np.int64) * len(spine.shares) + child, return_inverse=True)
    sums = [spine.shares[a] + spine.shares[b] for a, b in zip(*_split(pairs, len(spine.shares)), strict=True)]
    at = np.array([known.setdefault(share, len(known)) for share in sums], dtype=np.int32)
    zero = known.setdefault(Fraction(0), len(known))
    return tuple(known), at[pair], zero


def _split(pairs: Ints, base: int) -> tuple[list[int], list[int]]:
    high, low = np.divmod(pairs, base)
    return high.tolist(), low.tolist()
