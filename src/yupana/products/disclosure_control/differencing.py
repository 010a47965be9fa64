"""What somebody learns of published counts that add up, or whose records differ by few, if they know the method."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from yupana.arrays import Floats, Ints
from yupana.products.disclosure_control.methods import UNBOUNDED, Method, Shown

_PASSES: Final = 100
"""Bounds are right after any number of passes; on counts that form a tree a few reach the tightest."""


@dataclass(frozen=True, slots=True, eq=False)
class Relations:
    """Counts that are the sums of others, by their places."""

    sums: Ints  # shape (relations,)
    parts: Ints  # shape (parts of all,)
    starts: Ints  # shape (relations,): where the parts of each begin; each has one at least

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

    @classmethod
    def joined(cls, relations: Sequence["Relations"]) -> "Relations":
        """Several in one."""
        ends = np.cumsum([0, *(len(some.parts) for some in relations)])
        return cls(
            np.concatenate([some.sums for some in relations]),
            np.concatenate([some.parts for some in relations]),
            np.concatenate([some.starts + end for some, end in zip(relations, ends, strict=False)]),
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


FEW: Final = 10
"""Counts and differences of 1 to so many records are what an attacker looks for."""


@dataclass(frozen=True, slots=True, eq=False)
class Nested:
    """Pairs of published counts of which the first is of all records of the second, and maybe others."""

    # outer, inner: shape (pairs,): their places
    outer: Ints
    inner: Ints

    def differences(self, values: Ints) -> Ints:
        """The first less the second, of each pair."""
        return values[self.outer] - values[self.inner]


def possible(
    method: Method, shown: Shown, relations: Relations, nested: Sequence[Nested]
) -> tuple[tuple[Ints, Ints], list[tuple[Ints, Ints]]]:
    """Between which bounds the true counts and differences lie for certain, from all that is published together.

    Parameters
    ----------
    method : Method
        With its parameters; its random choices are not known.
    shown : Shown
        All that is published.
    relations : Relations
        Which hold of the true counts.
    nested : sequence of Nested
        Whose differences are asked for.

    Returns
    -------
    tuple
        The least and largest of all counts, and of the differences of each `Nested`; equal where the value is certain.
        A sound bound, and not always the tightest.
    """
    low, high = method.bounds(shown)
    ends = np.cumsum([len(low), *(len(of.outer) for of in nested)]).tolist()
    low = np.concatenate([low, np.zeros(ends[-1] - ends[0], dtype=np.int64)])
    high = np.concatenate([high, np.full(ends[-1] - ends[0], UNBOUNDED)])
    places = [np.arange(start, start + len(of.outer)) for of, start in zip(nested, ends, strict=False)]
    split = Relations.of(
        (of.outer, np.stack([of.inner, place], axis=1)) for of, place in zip(nested, places, strict=True)
    )
    low, high = tighten(low, high, Relations.joined([relations, split]))
    for of, place in zip(nested, places, strict=True):
        pairs, others_low, others_high = _made_of_others(relations, of, low, high)
        low[place[pairs]] = np.maximum(low[place[pairs]], others_low)
        high[place[pairs]] = np.minimum(high[place[pairs]], others_high)
    return (low[: ends[0]], high[: ends[0]]), [(low[place], high[place]) for place in places]


def _made_of_others(relations: Relations, of: Nested, low: Ints, high: Ints) -> tuple[Ints, Ints, Ints]:
    """The pairs of a sum and one of its parts, whose difference is the other parts, with the bounds of these."""
    every = np.repeat(relations.sums, relations.widths) * len(low) + relations.parts
    order = np.argsort(every, kind="stable")
    wanted = of.outer * len(low) + of.inner
    found = np.searchsorted(every[order], wanted)
    pairs = np.flatnonzero(found < len(every))
    pairs = pairs[every[order[found[pairs]]] == wanted[pairs]]
    part = order[found[pairs]]
    return pairs, relations.others(low)[part], np.minimum(relations.others(high)[part], UNBOUNDED)


@lru_cache(maxsize=1 << 16)
def likeliest_count(method: Method, value: int | None, low: int, high: int) -> int:
    """The true count between bounds that makes a published value the likeliest; None stands for one left out."""
    chances = method.chances(value)
    return _likeliest(chances.first, chances.of, low, high)


@lru_cache(maxsize=1 << 16)
def likeliest_difference(method: Method, outer: int | None, inner: int | None, low: int, high: int) -> int:
    """The difference of two nested counts that makes their published values the likeliest.

    All pairs of counts are equally likely before. Published values depend on the true ones alone, each by itself; but
    counts of the very same records may be published alike (`Method.unchanged_together`).
    """
    whole, part = method.chances(outer), method.chances(inner)
    scores = np.correlate(whole.of, part.of, "full")
    first = whole.first - part.first - (len(part.of) - 1)
    if method.unchanged_together and 0 <= -first < len(scores):
        scores[-first] = part.of.sum() if outer == inner else 0.0
    return _likeliest(first, scores, low, high)


def _likeliest(first: int, scores: Floats, low: int, high: int) -> int:
    """The least of the values of the highest score between bounds; the nearest bound if they leave no value."""
    start, stop = max(0, low - first), min(len(scores), high - first + 1)
    if start >= stop or not scores[start:stop].any():
        return min(max(low, first), high)
    return first + start + int(scores[start:stop].argmax())
