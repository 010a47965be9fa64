"""Compare what methods publish with the truth: errors by size, sums that do not add up, and what an attacker learns."""

from collections.abc import Iterator
from typing import Final

import numpy as np

from yupana.arrays import Flags, Ints
from yupana.products.disclosure_control.differencing import FEW, joined, likeliest_count, likeliest_difference, possible
from yupana.products.disclosure_control.methods import Method, Shown
from yupana.products.disclosure_control.published import PublishedCounts
from yupana.products.disclosure_control.results import AdditivityRow, LearntRow, SizeErrors

SIZES: Final = (
    ("0", 0),
    ("1 to 4", 1),
    ("5 to 9", 5),
    ("10 to 99", 10),
    ("100 to 999", 100),
    ("1,000 to 9,999", 1000),
    ("10,000 and more", 10_000),
)
"""Of true counts: what a size is called, and the least of it."""


def errors_by_size(method: Method, shown: Shown, truth: Ints) -> Iterator[SizeErrors]:
    """How far published counts are from true ones, for each size that occurs."""
    of = np.searchsorted([least for _, least in SIZES], truth, side="right") - 1
    for number, (size, _) in enumerate(SIZES):
        here = of == number
        if not here.any():
            continue
        errors = (shown.values - truth)[here & shown.flags]
        off = np.abs(errors)
        told = (
            (float((off == 0).mean()), float(off.mean()), float(errors.mean()), float(_quantile(off)), float(off.max()))
            if off.size
            else (None,) * 5
        )
        yield SizeErrors(method.name, size, int(here.sum()), off.size, *told)


def _quantile(off: Ints) -> int:
    """The least of the errors that nine in ten do not pass."""
    return int(np.sort(off)[-(-9 * off.size // 10) - 1])


def additivity(method: Method, shown: Shown, truth: Ints, published: PublishedCounts) -> Iterator[AdditivityRow]:
    """How far published sums are from the sums of their parts, for each kind; sums of no record are left out."""
    for kind, relations in published.sums.items():
        some = truth[relations.sums] > 0
        if not some.any():
            continue
        whole = some & shown.flags[relations.sums] & (relations.added((~shown.flags).astype(np.int64)) == 0)
        off = np.abs(shown.values[relations.sums] - relations.added(shown.values))[whole]
        told = (float((off == 0).mean()), float(off.mean()), float(off.max())) if off.size else (None,) * 3
        yield AdditivityRow(method.name, kind, int(some.sum()), off.size, *told)


def learnt(method: Method, shown: Shown, truth: Ints, published: PublishedCounts) -> Iterator[LearntRow]:
    """What is learnt of small differences between nested counts, and of small counts."""
    (low, high), bounds = possible(method, shown, joined([*published.sums.values()]), [*published.nested.values()])
    said: list[int | None] = [
        value if flag else None for value, flag in zip(shown.values.tolist(), shown.flags.tolist(), strict=True)
    ]
    for (target, of), (least, most) in zip(published.nested.items(), bounds, strict=True):
        true = of.differences(truth)
        small = _small(true)
        pairs = zip(
            of.outer[small].tolist(), of.inner[small].tolist(), least[small].tolist(), most[small].tolist(), strict=True
        )
        guess = [likeliest_difference(method, said[outer], said[inner], a, b) for outer, inner, a, b in pairs]
        readable = (shown.flags[of.outer] & shown.flags[of.inner])[small]
        face = readable & (of.differences(shown.values) == true)[small]
        yield _learnt(method, target, true[small], face, (least == most)[small], guess)
    small = _small(truth)
    single = zip(small.tolist(), low[small].tolist(), high[small].tolist(), strict=True)
    guess = [likeliest_count(method, said[place], a, b) for place, a, b in single]
    face = (shown.flags & (shown.values == truth))[small]
    yield _learnt(method, "counts", truth[small], face, (low == high)[small], guess)


def _small(values: Ints) -> Ints:
    return np.flatnonzero((values > 0) & (values <= FEW))


def _learnt(method: Method, target: str, true: Ints, face: Flags, certain: Flags, guess: list[int]) -> LearntRow:
    if not len(true):
        return LearntRow(method.name, target, 0, None, None, None)
    right = np.array(guess) == true
    return LearntRow(method.name, target, len(true), float(face.mean()), float(certain.mean()), float(right.mean()))
