"""Which published counts add up to which others, and what follows for counts that are known between bounds only."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from yupana.arrays import Ints
from yupana.products.disclosure_control.method import UNBOUNDED

_PASSES: Final = 100
"""Bounds are right after any number of passes; on counts that form a tree a few reach the tightest."""


@dataclass(frozen=True, slots=True, eq=False)
class Relations:
    """Counts that are the sums of others, by their places.

    Attributes
    ----------
    sums : int64 array, shape (relations,)
    parts : int64 array, shape (parts of all,)
    starts : int64 array, shape (relations,)
        Where the parts of each begin; each has one at least.
    """

    sums: Ints
    parts: Ints
    starts: Ints

    @classmethod
    def of(cls, bundles: Iterable[tuple[Ints, Ints]]) -> "Relations":
        """Join bundles of sums, shape (relations,), with their parts, shape (relations, parts of each)."""
        found = [bundle for bundle in bundles if bundle[0].size]
        none = np.zeros(0, dtype=np.int64)
        widths = np.concatenate([none, *(np.full(len(sums), parts.shape[1]) for sums, parts in found)])
        return cls(
            np.concatenate([none, *(sums for sums, _ in found)]),
            np.concatenate([none, *(parts.ravel() for _, parts in found)]),
            np.cumsum(widths) - widths,
        )

    def __len__(self) -> int:
        """How many there are."""
        return len(self.sums)

    @property
    def widths(self) -> Ints:
        """How many parts each has."""
        return np.diff(np.append(self.starts, len(self.parts)))

    def others(self, values: Ints) -> Ints:
        """Of each part, the sum of the other parts of its relation; of the parts of all."""
        return np.repeat(self.added(values), self.widths) - values[self.parts]

    def added(self, values: Ints) -> Ints:
        """The sum of the parts of each relation."""
        return np.add.reduceat(values[self.parts], self.starts) if len(self) else np.zeros(0, dtype=np.int64)


def joined(relations: Sequence[Relations]) -> Relations:
    """Several in one."""
    ends = np.cumsum([0, *(len(some.parts) for some in relations)])
    return Relations(
        np.concatenate([some.sums for some in relations]),
        np.concatenate([some.parts for some in relations]),
        np.concatenate([some.starts + end for some, end in zip(relations, ends, strict=False)]),
    )


def tighten(low: Ints, high: Ints, relations: Relations) -> tuple[Ints, Ints]:
    """What bounds of counts follow from bounds and relations: a sum bounds its parts, and they bound it.

    Every number between the bounds that are returned need not be possible, but what lies outside is not.

    Parameters
    ----------
    low, high : int64 array, shape (counts,)
        Zero or more, and at most `UNBOUNDED`.
    relations : Relations
        Of at most a million parts each.
    """
    low, high = low.copy(), high.copy()
    for _ in range(_PASSES):
        before = low.copy(), high.copy()
        np.maximum.at(low, relations.sums, relations.added(low))
        np.minimum.at(high, relations.sums, np.minimum(relations.added(high), UNBOUNDED))
        least, most = (np.repeat(bound[relations.sums], relations.widths) for bound in (low, high))
        others_low, others_high = relations.others(low), relations.others(high)
        np.maximum.at(low, relations.parts, least - others_high)
        np.minimum.at(high, relations.parts, most - others_low)
        if np.array_equal(low, before[0]) and np.array_equal(high, before[1]):
            break
    return low, high
