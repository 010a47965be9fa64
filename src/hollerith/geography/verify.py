"""Whether a spine is one: every block once, shares along every path from the root summing to exactly 1."""

from fractions import Fraction

import numpy as np

from hollerith.geography.spine import Spine
from hollerith.geography.tree import Ints


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
    sums = path_sums(spine)
    if sums != {Fraction(1)}:
        wrong.append(f"shares from the root to the blocks sum to {', '.join(sorted(map(str, sums)))}, not all to 1")
    return wrong


def path_sums(spine: Spine) -> set[Fraction]:
    """The sums of shares that occur along the paths from the root to the blocks, exactly."""
    sums = [Fraction(0)]
    of_parent = np.zeros(1, dtype=np.int64)
    for level, parent in zip(spine.levels, spine.tree.parents, strict=True):
        # Sums are few: each combination that occurs is added once.
        case = of_parent[parent] * len(spine.shares) + level.share
        cases, index = np.unique(case, return_inverse=True)
        found = [sums[c // len(spine.shares)] + spine.shares[c % len(spine.shares)] for c in cases.tolist()]
        sums = list(dict.fromkeys(found))
        place = {share: i for i, share in enumerate(sums)}
        of_parent = np.array([place[share] for share in found], dtype=np.int64)[index]
    return {sums[i] for i in np.unique(of_parent).tolist()}


def _covers(parent: "np.ndarray[tuple[int, ...], np.dtype[np.int32]]", above: int) -> bool:
    steps = np.diff(parent)
    return bool(parent[0] == 0 and parent[-1] == above - 1 and ((steps == 0) | (steps == 1)).all())
