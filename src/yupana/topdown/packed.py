"""Whole numbers that nearly all fit into a byte, as arrays to keep on disk: noisy answers are such. Public."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Integers

_PLACES, _VALUES = "places", "values"
ARRAYS: Final = 3
"""How many arrays a packed one takes at most."""


def packed(name: str, values: Integers) -> dict[str, Integers]:
    """What to keep of an array: itself, or a byte for each number, and the places and values of those that are larger.

    Parameters
    ----------
    name : str
        What the first array is to be called; others are called after it.
    values : ndarray of signed integers
        In as few bytes as hold them, 2 at least (`yupana.arrays.narrow`).

    Returns
    -------
    dict of str to ndarray
        Never of more bytes than ``values``.
    """
    bytes_ = values.astype(np.int8)
    places = np.flatnonzero(bytes_ != values)
    if len(places) * (8 + values.itemsize) >= values.size * (values.itemsize - 1):
        return {name: values}
    larger = values.reshape(-1)[places]
    return {name: bytes_, f"{name} {_PLACES}": places, f"{name} {_VALUES}": larger}


def unpacked(arrays: Mapping[str, NDArray[Any]]) -> dict[str, Integers]:
    """The arrays that were packed, by name: of the same values, shapes and types.

    Raises
    ------
    ValueError
        If one is not of signed integers, or of another shape than `packed` makes.
    KeyError, IndexError
        If something of it is missing, or lies at no place of it.
    """
    found: dict[str, Integers] = {}
    for name, kept in arrays.items():
        if kept.dtype.kind != "i":
            raise ValueError(name)
        if " " in name:
            continue
        if kept.dtype == np.int8:
            places, larger = arrays[f"{name} {_PLACES}"], arrays[f"{name} {_VALUES}"]
            values = kept.astype(larger.dtype)
            np.put(values, places, larger)
            found[name] = values
        else:
            found[name] = kept
    return found
