"""The tree that geocodes tell: a prefix of a geocode, of the right width, is the geounit above. Public."""

from collections.abc import Mapping
from itertools import pairwise

import numpy as np

from yupana.arrays import Ints
from yupana.errors import InputError
from yupana.geography.spine import Geolevel, Spine
from yupana.geography.tree import Tree
from yupana.release.lines import Texts
from yupana.topdown.nmf.layout import BLOCK_DIGITS, BRANCH_AND_STATE, COUNTY, NATION

_NUMBERS = 18
"""Digits that a whole number of 64 bits holds."""


def spine_of(geocodes: Mapping[str, Texts]) -> Spine:
    """Make the spine of the geounits of all geolevels, each in the order of its geocodes.

    It has no shares: what each unit was measured with is told by variances.

    Parameters
    ----------
    geocodes : mapping of str to ndarray of bytes
        By geolevel, from the root down, in order and each once. Those of the nation are not looked at.

    Raises
    ------
    InputError
        If they are no digits, differ in width, or do not nest; naming all faults.
    """
    faults: list[str] = []
    for level, codes in geocodes.items():
        faults += [] if level == NATION else _shape(level, codes)
    if faults:
        raise InputError("\n".join(faults))
    parents = [np.zeros(len(next(iter(geocodes.values()))), dtype=np.int32)]
    named = list(geocodes.items())
    for (above, upper), (below, lower) in pairwise(named):
        parents.append(_parents(above, upper, below, lower, faults))
    top, codes = named[0]
    if len(codes) != 1:
        faults.append(
            f"{top}, the first geolevel, has {len(codes)} geounits and must have one; name states by --states"
        )
    faults += _digits_of_areas(geocodes)
    if faults:
        raise InputError("\n".join(faults))
    levels = tuple(_geolevel(level, codes) for level, codes in named)
    return Spine(Tree(tuple(geocodes), tuple(parents)), levels, ())


def _shape(level: str, codes: Texts) -> list[str]:
    lengths = np.unique(np.char.str_len(codes))
    if len(lengths) > 1:
        return [
            f"{level}: geocodes have {' and '.join(map(str, lengths.tolist()))} characters, and must have as many each"
        ]
    if not np.char.isdigit(codes).all():
        return [f"{level}: geocode {codes[~np.char.isdigit(codes)][0].decode()!r} must be digits"]
    return []


def _parents(
    above: str, upper: Texts, below: str, lower: Texts, faults: list[str]
) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    """The position of each unit's parent; adds what is wrong."""
    if above == NATION:
        return np.zeros(len(lower), dtype=np.int32)
    width, own = upper.dtype.itemsize, lower.dtype.itemsize
    needed = width + (BLOCK_DIGITS if below == "Block" else 1)
    if own < needed or (below == "Block" and own != needed):
        faults.append(
            f"{below}: geocodes have {own} characters, which is too narrow for children of {above} with {width}"
            if own < needed
            else f"{below}: geocodes have {own} characters, and must have {needed}: those of {above} and {BLOCK_DIGITS}"
        )
        return np.zeros(len(lower), dtype=np.int32)
    prefix = lower.astype(f"S{width}")
    at = np.minimum(np.searchsorted(upper, prefix), len(upper) - 1)
    orphans = upper[at] != prefix
    if orphans.any():
        faults.append(
            f"{above}: {_few(np.unique(prefix[orphans]))} is not listed in its Constraint files, and geounits of "
            f"{below} lie in it: a partition is missing"
        )
    childless = np.setdiff1d(np.arange(len(upper)), at[~orphans])
    if len(childless):
        faults.append(f"{below}: nothing lies in {_few(upper[childless])} of {above}: a partition is missing")
    return at.astype(np.int32)


def _few(codes: Texts) -> str:
    more = f" and {len(codes) - 3:,} more" if len(codes) > 3 else ""
    return ", ".join(code.decode() for code in codes[:3].tolist()) + more


def _digits_of_areas(geocodes: Mapping[str, Texts]) -> list[str]:
    """Whether the digits of states, counties and blocks within geocodes agree."""
    level, codes = list(geocodes.items())[-1]
    if level != "Block":
        return [f"{level} is the last geolevel; the files of Block are missing"]
    states = codes.astype(f"S{BRANCH_AND_STATE}")
    width = codes.dtype.itemsize
    faults = []
    blocks = _cut(codes, width - BLOCK_DIGITS, width)
    if (odd := _cut(states, 1, BRANCH_AND_STATE) != _cut(blocks, 0, 2)).any():
        faults.append(f"Block: geocode {codes[odd][0].decode()} begins with another state than its last 16 digits")
    county = BRANCH_AND_STATE + len(COUNTY)
    if "County" in geocodes:
        plain = _cut(codes, BRANCH_AND_STATE, county) == COUNTY.encode()
        if (odd := plain & (_cut(codes, county, county + 3) != _cut(blocks, 2, 5))).any():
            faults.append(f"Block: geocode {codes[odd][0].decode()} holds another county than its last 16 digits")
    if (odd := _cut(blocks, 11, 12) != _cut(blocks, 12, 13)).any():
        faults.append(f"Block: {blocks[odd][0].decode()} has another block group than its block number says")
    if len(np.unique(blocks)) < len(blocks):
        faults.append("Block: the last 16 digits of two geocodes are the same")
    return faults


def _cut(codes: Texts, first: int, last: int) -> Texts:
    """Some of the characters of each."""
    letters = np.ascontiguousarray(codes).view("S1").reshape(len(codes), -1)
    return np.ascontiguousarray(letters[:, first:last]).view(f"S{last - first}")[:, 0]


def _geolevel(level: str, codes: Texts) -> Geolevel:
    none = np.zeros(len(codes), dtype=np.int32)
    number, width, names = np.arange(len(codes)), 0, tuple[str, ...]()
    if level == "Block":
        number, width = (
            _cut(codes, codes.dtype.itemsize - BLOCK_DIGITS, codes.dtype.itemsize).astype(np.int64),
            BLOCK_DIGITS,
        )
    elif level != NATION and codes.dtype.itemsize <= _NUMBERS:
        number, width = codes.astype(np.int64), codes.dtype.itemsize
    elif level != NATION:
        names = tuple(code.decode() for code in codes.tolist())
    return Geolevel(level, width, number, none, none, np.zeros(len(codes), dtype=np.bool_), names)


def sum_up(tree: Tree, level: int, values: Ints) -> Ints:
    """Add values of the units of a geolevel to those above, along the first axis."""
    first = np.flatnonzero(np.diff(tree.parents[level], prepend=-1))
    return np.asarray(np.add.reduceat(values, first, axis=0), dtype=np.int64)


def siblings(tree: Tree, level: int) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    """Which units of a geolevel are not the only one of their parent."""
    if level == 0:
        return np.zeros(1, dtype=np.bool_)
    return np.asarray(tree.children(level - 1)[tree.parents[level]] > 1)
