"""Which AIANNHCE codes are codes at all, and which blocks lie on the AIAN side of a spine."""

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from yupana.geography.areas import AREA_TYPES, NO_AREA


def is_area_code(code: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Which codes lie in the range of some type, or say that there is no area."""
    legal: NDArray[np.bool_] = _within(code, AREA_TYPES) | (code == NO_AREA)
    return legal


def on_spine(code: NDArray[np.int32], types: Collection[str]) -> NDArray[np.bool_]:
    """Which blocks lie in an area of the types named, arrays of shape (blocks,)."""
    return _within(code, types)


def _within(code: NDArray[np.int32], types: Collection[str]) -> NDArray[np.bool_]:
    inside: NDArray[np.bool_] = np.zeros(len(code), dtype=np.bool_)
    for name in types:
        first, last = AREA_TYPES[name]
        inside |= (code >= first) & (code <= last)
    return inside
