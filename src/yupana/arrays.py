"""The types of numpy arrays, by what they hold, and integers in few bytes."""

from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]
Indices: TypeAlias = NDArray[np.int32]
"""Positions in other arrays, and numbers of classes."""

Integers: TypeAlias = NDArray[np.integer[Any]]
"""Whole numbers in as few bytes as hold them: whoever computes with them takes 8."""

_NARROW: Final = (np.int16, np.int32)


def narrow(values: Integers) -> Integers:
    """The same numbers in as few bytes as hold them, 2 at least."""
    for kind in _NARROW:
        limits = np.iinfo(kind)
        if values.size == 0 or (values.min() >= limits.min and values.max() <= limits.max):
            return values.astype(kind)
    return values
