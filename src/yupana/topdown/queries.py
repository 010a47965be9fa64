"""Query groups: Kronecker products of one factor per attribute, in which every cell counts exactly once."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

Factor = tuple[int, ...]
"""Which group each level of an attribute belongs to, groups numbered from 0 without gaps."""


@dataclass(frozen=True, slots=True)
class Query:
    """One query group.

    Attributes
    ----------
    name : str
        As configurations write it, such as ``"hispanic*race"``, ``"total"`` or ``"detailed"``.
    factors : tuple of Factor
        For each attribute its grouping: all levels in group 0 where it is summed over, each in its own where it is
        kept, anything between for a recode. Every cell then lies in exactly one answer, so that one record changes
        one answer by one: sensitivity 1, and squared L2 distance 2 between neighbours that change a record.
    """

    name: str
    factors: tuple[Factor, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Groups of each attribute; 1 where it is summed over."""
        return tuple(max(factor) + 1 for factor in self.factors)

    @property
    def size(self) -> int:
        """How many answers it has."""
        return prod(self.shape)

    @property
    def cells(self) -> int:
        """How many cells the histogram has."""
        return prod(map(len, self.factors))

    @property
    def is_detailed(self) -> bool:
        """Whether every cell is an answer of its own."""
        return self.size == self.cells

    @property
    def keeps_or_sums(self) -> bool:
        """Whether every attribute is kept or summed over as a whole, with no grouping between."""
        return all(max(factor) in {0, len(factor) - 1} for factor in self.factors)

    def answers(self) -> NDArray[np.int32]:
        """Which answer each cell counts in, of shape (cells,); answers in C order of `shape`."""
        index = np.zeros((), dtype=np.int32)
        for factor, size in zip(self.factors, self.shape, strict=True):
            index = index[..., None] * np.int32(size) + np.asarray(factor, dtype=np.int32)
        return np.ascontiguousarray(index.reshape(-1))


def margin(name: str, shape: Sequence[int], kept: Sequence[bool | int]) -> Query:
    """Make the query that keeps some attributes and sums over the others."""
    return Query(
        name,
        tuple(tuple(range(size)) if keep else (0,) * size for size, keep in zip(shape, kept, strict=True)),
    )
