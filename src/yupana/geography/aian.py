"""The AIAN spine: every geounit from the state down is cut in two, inside and outside of AIAN areas."""

import numpy as np

from yupana.arrays import Flags, Ints
from yupana.geography.areas import on_spine
from yupana.geography.blocks import Reference
from yupana.geography.settings import DIGITS, SpineSettings
from yupana.geography.spine import Spine, make_spine


def aian_spine(reference: Reference, settings: SpineSettings) -> Spine:
    """Make the conventional spine of the two sides. A digit before an identifier tells the side: 1 inside, 0 outside.

    Parameters
    ----------
    reference : Reference
    settings : SpineSettings
        Its geolevels, shares and types of AIAN areas.
    """
    side = sides(reference, settings)
    order = np.lexsort((reference.block, side))
    block, side = reference.block[order], side[order]
    names = settings.levels
    return make_spine(names, [side_key(block, side, n) for n in names], [side_width(n) for n in names], settings.shares)


def sides(reference: Reference, settings: SpineSettings) -> Flags:
    """Which blocks lie in an AIAN area that is on the spine, of shape (blocks,)."""
    return on_spine(reference.aiannh, settings.aian_areas)


def side_width(level: str) -> int:
    """Digits of an identifier: one more than in tabulation geography, but for the nation and the blocks."""
    return DIGITS[level] + (level not in {"US", "Block"})


def side_key(block: Ints, side: Flags, level: str) -> Ints:
    """The identifier, as a number, of the unit of each block, of shape (blocks,)."""
    digits = DIGITS[level]
    key: Ints = block // 10 ** (16 - digits)
    return key if level in {"US", "Block"} else key + side.astype(np.int64) * 10**digits
