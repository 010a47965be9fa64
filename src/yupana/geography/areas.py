"""American Indian, Alaska Native and Native Hawaiian areas by type, and states whose county subdivisions govern."""

from collections.abc import Collection
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NO_AREA: Final = 9999
"""AIANNHCE of a block outside all areas."""

AREA_TYPES: Final = {
    "federal": (1, 4799),
    "joint-use": (4800, 4989),
    "hawaiian-home-land": (5000, 5499),
    "otsa": (5500, 5899),
    "joint-otsa": (5900, 5999),
    "anvsa": (6000, 7999),
    "tdsa": (8000, 8999),
    "state": (9000, 9499),
    "sdtsa": (9500, 9998),
}
"""AIANNHCE codes of each type, first and last: legal areas of federally recognized tribes, joint-use areas, Hawaiian
home lands, Oklahoma tribal statistical areas and their joint-use areas, Alaska Native village statistical areas,
tribal designated statistical areas, legal areas of state-recognized tribes, state designated tribal statistical areas.
"""

PRODUCTION_AREAS: Final = tuple(name for name in AREA_TYPES if name not in {"tdsa", "sdtsa"})
"""On the spine of 2020: all but the two types that no law defines."""

STRONG_MCD_STATES: Final = (9, 23, 25, 26, 27, 33, 34, 36, 42, 44, 50, 55)
"""CT, ME, MA, MI, MN, NH, NJ, NY, PA, RI, VT, WI: minor civil divisions serve as general-purpose governments."""


def is_area_code(code: "NDArray[np.int32]") -> "NDArray[np.bool_]":
    """Which codes lie in the range of some type, or say that there is no area."""
    legal: NDArray[np.bool_] = _within(code, AREA_TYPES) | (code == NO_AREA)
    return legal


def on_spine(code: "NDArray[np.int32]", types: Collection[str]) -> "NDArray[np.bool_]":
    """Which blocks lie in an area of the types named, arrays of shape (blocks,)."""
    return _within(code, types)


def _within(code: "NDArray[np.int32]", types: Collection[str]) -> "NDArray[np.bool_]":
    import numpy as np

    inside: NDArray[np.bool_] = np.zeros(len(code), dtype=np.bool_)
    for name in types:
        first, last = AREA_TYPES[name]
        inside |= (code >= first) & (code <= last)
    return inside
