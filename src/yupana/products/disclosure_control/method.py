"""What methods of disclosure control have in common: what they publish, and what that tells who knows the method."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from yupana.arrays import Flags, Floats, Ints

UNBOUNDED: Final = 1 << 40
"""Stands for no upper bound: more than any count, and a million of them add up within 64 bits."""


@dataclass(frozen=True, slots=True, eq=False)
class Shown:
    """What is published of some counts.

    Attributes
    ----------
    values : int64 array, shape (counts,)
    flags : bool array, of the same shape
        Whether a count is published at all.
    """

    values: Ints
    flags: Flags

    @classmethod
    def whole(cls, values: Ints) -> "Shown":
        """All are published."""
        return cls(values, np.ones(len(values), dtype=bool))


class Chances(NamedTuple):
    """How likely a published value was for the true counts ``first``, ``first + 1``, and so on."""

    first: int
    of: Floats


class Method(ABC):
    """A way to publish counts, from the side of somebody who knows all of it but its random choices."""

    unchanged_together = False
    """Whether two counts of the very same records are always published alike."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The method with all its parameters, as `read_method` reads it."""

    @property
    @abstractmethod
    def title(self) -> str:
        """What people call it."""

    def bounds(self, shown: Shown) -> tuple[Ints, Ints]:
        """The least and the largest true count that each published value leaves possible; nothing, unless told."""
        return np.zeros(len(shown.values), dtype=np.int64), np.full(len(shown.values), UNBOUNDED)

    def chances(self, value: int | None) -> Chances:
        """How likely a published value, None for one left out, was for each true count; unless told, taken as it is."""
        return Chances(value or 0, np.ones(1))
