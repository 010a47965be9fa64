"""The spine of tabulation geography: nation, state, county, tract, block group, block."""

import numpy as np

from yupana.geography.blocks import Reference
from yupana.geography.levels import DIGITS
from yupana.geography.settings import Settings
from yupana.geography.spine import Spine, make_spine


def conventional_spine(reference: Reference, settings: Settings) -> Spine:
    """Make a spine of the digits of the blocks: a unit is the blocks that begin alike.

    Parameters
    ----------
    reference : Reference
    settings : Settings
        Its geolevels and shares.
    """
    order = np.argsort(reference.block, kind="stable")
    block = reference.block[order]
    widths = [DIGITS[level] for level in settings.levels]
    return make_spine(settings.levels, [block // 10 ** (16 - width) for width in widths], widths, settings.shares)
