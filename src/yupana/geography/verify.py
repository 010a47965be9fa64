"""Whether a spine is one: every block once, shares along every path from the root summing to exactly 1."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from yupana.arrays import Indices, Ints
from yupana.geography.spine import Spine
from yupana.geography.tree import Tree


def check_spine(spine: Spine, blocks: Ints) -> list[str]:
    """Compare a spine with the blocks it was made of; return what is wrong, in words.

    Parameters
    ----------
    spine : Spine
    blocks : ndarray of int64
        In order, of shape (blocks,).
    """
    wrong = []
    if not np.array_equal(np.sort(spine.blocks), blocks):
        wrong.append("the blocks of the spine are not those of the reference file, each once")
    if spine.tree.units(0) != 1:
        wrong.append("the spine has no single root")
    for level, parent in enumerate(spine.tree.parents):
        name = spine.levels[level].name
        # Children side by side, every unit above with at least one.
        if level and not _covers(parent, spine.tree.units(level - 1)):
            wrong.append(f"the units of {name} do not lie in the order of their parents, each parent with a child")
        identifiers = np.stack([spine.levels[level].code, spine.levels[level].part.astype(np.int64)])
        if np.unique(identifiers, axis=1).shape[1] != len(parent):
            wrong.append(f"an identifier of {name} is there twice")
    sums = path_sums(spine.tree, spine.shares, [level.share for level in spine.levels])
    if sums != {Fraction(1)}:
        wrong.append(f"shares from the root to the blocks sum to {', '.join(sorted(map(str, sums)))}, not all to 1")
    return wrong


def path_sums(tree: Tree, shares: Sequence[Fraction], index: Sequence[Indices]) -> set[Fraction]:
    """The sums of shares that occur along the paths from the root to the blocks, exactly.

    Parameters
    ----------
    tree : Tree
    shares : sequence of Fraction
        Distinct shares.
    index : sequence of ndarray of int32
        For each geolevel the position of each unit's share, of shape (units,).
    """
    sums = [Fraction(0)]
    of_parent = np.zeros(1, dtype=np.int64)
    for share, parent in zip(index, tree.parents, strict=True):
        # Sums are few: each combination that occurs is added once.
        cases, case = np.unique(of_parent[parent] * len(shares) + share, return_inverse=True)
        found = [sums[c // len(shares)] + shares[c % len(shares)] for c in cases.tolist()]
        sums = list(dict.fromkeys(found))
        place = {total: i for i, total in enumerate(sums)}
        of_parent = np.array([place[total] for total in found], dtype=np.int64)[case]
    return {sums[i] for i in np.unique(of_parent).tolist()}


def _covers(parent: Indices, above: int) -> bool:
    steps = np.diff(parent)
    return bool(parent[0] == 0 and parent[-1] == above - 1 and ((steps == 0) | (steps == 1)).all())
