"""Arrays that lie in files of the private scratch folder, so that memory stays small."""

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from yupana.arrays import Integers

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

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
