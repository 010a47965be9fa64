"""The types of numpy arrays, by what they hold; integers in few bytes, and arrays that lie in files."""

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

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


A = TypeVar("A", bound="DataclassInstance")


class FiledArray:
    """An array in a file, of which only what is asked for is read."""

    def __init__(self, array: NDArray[Any], path: Path) -> None:
        """Write an array."""
        with path.open("wb") as file:
            np.save(file, array)
        self._path, self.dtype = path, array.dtype

    def __array__(self, dtype: object = None, copy: object = None) -> NDArray[Any]:
        """The numbers, read where they are looked at."""
        del dtype, copy
        mapped: NDArray[Any] = np.load(self._path, mmap_mode="r")
        return mapped

    def __getitem__(self, some: "slice | Integers") -> NDArray[Any]:
        return np.array(self.__array__()[some])


def filed(of: A, path: Path) -> A:
    """A dataclass of arrays with the same arrays, which are in files from now on."""
    names = [field.name for field in fields(of)]
    arrays: Any = {name: FiledArray(getattr(of, name), path.with_name(f"{path.name}-{name}")) for name in names}
    return type(of)(**arrays)
