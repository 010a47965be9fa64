"""Lists of numbers by key, one after the other in one array."""

from dataclasses import dataclass

import numpy as np

from yupana.arrays import Indices, Ints
from yupana.confidential.tabulate.pairs import NOTHING


@dataclass(frozen=True, eq=False)
class Lists:
    """Lists of numbers by key: those of key k stand in ``values[starts[k]:starts[k + 1]]``."""

    starts: Ints
    values: Indices

    @property
    def bytes(self) -> int:
        """What the arrays take."""
        return self.starts.nbytes + self.values.nbytes

    def extended(self, *others: "Lists") -> "Lists":
        """These lists, then those."""
        lists = (self, *others)
        before = np.cumsum([0, *(len(each.values) for each in lists)])
        starts = [each.starts[:-1] + shift for each, shift in zip(lists, before, strict=False)]
        return Lists(np.concatenate([*starts, before[-1:]]), np.concatenate([each.values for each in lists]))


def number_ranges(starts: Ints, lengths: Ints) -> Ints:
    """The numbers of several ranges, one after the other."""
    if not len(lengths):
        return NOTHING
    ends: Ints = np.cumsum(lengths)
    numbers: Ints = np.arange(ends[-1])
    numbers += np.repeat(starts - (ends - lengths), lengths)
    return numbers
