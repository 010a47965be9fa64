"""Areas of different summary levels that are made of the same blocks, found in the reference file of blocks. Public."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from yupana.errors import InputError
from yupana.files.code_tables import open_delimited
from yupana.geography.blocks import FIFTEEN, read_areas, read_codes
from yupana.products.safetab.regions import NO_AIANNH, NO_PLACE, PR, PUERTO_RICO, REGION_TYPES, US

Codes = NDArray[np.int64]

NO_AREA: Final = -1

_SUMMARY_LEVELS: Final = tuple(region for region in REGION_TYPES if region.run == US)
_OF_PUERTO_RICO: Final = {region.base: region for region in REGION_TYPES if region.run == PR}


@dataclass(frozen=True, slots=True, order=True)
class Area:
    """A region of a summary level, named as the tables name it."""

    region_type: str
    region_id: str


@dataclass(frozen=True, slots=True)
class Blocks:
    """The reference file as columns, a row per block."""

    block: Codes  # shape (blocks,): state, county, tract and block as one number of 15 digits
    # place, aiannh: shape (blocks,): state and place, and AIANNH area; -1 for none
    place: Codes
    aiannh: Codes

    @property
    def state(self) -> Codes:
        """The state of each block."""
        return self.block // 10**13


def coterminous_sets(blocks: Blocks, live: NDArray[np.bool_] | None = None) -> tuple[tuple[Area, ...], ...]:
    """All sets of two or more areas of different summary levels with the same blocks.

    Parameters
    ----------
    live : bool array, shape (blocks,), optional
        Blocks with housing units. Then only they are compared, and areas without any are compared by all their blocks.

    Returns
    -------
    tuple of tuples of Area
        Each set from the coarsest summary level to the finest.
    """
    puerto_rico = blocks.state == int(PUERTO_RICO)
    of_base = {
        "nation": np.where(puerto_rico, NO_AREA, 1),
        "state": blocks.state,
        "county": blocks.block // 10**10,
        "tract": blocks.block // 10**4,
        "place": blocks.place,
        "aiannh": np.where(puerto_rico, NO_AREA, blocks.aiannh),
    }
    levels = [of_base[region.base] for region in _SUMMARY_LEVELS]
    if live is None or not live.any():
        found = _same_blocks(levels)
    else:
        found = _same_blocks([level[live] for level in levels])
        alive = [_distinct(level[live]) for level in levels]
        # Areas without housing units can only equal each other. All blocks of such areas, and of others a part:
        rest = [level[~live] for level in levels]
        without = [~np.isin(level, codes) & (level >= 0) for level, codes in zip(rest, alive, strict=True)]
        for members in _same_blocks([level[np.logical_or.reduce(without)] for level in rest]):
            empty = [(level, code) for level, code in members if not np.isin(code, alive[level])]
            found += [empty] if len(empty) > 1 else []
    return tuple(sorted(tuple(_area(level, code) for level, code in members) for members in found))


def _area(level: int, code: int) -> Area:
    region = _SUMMARY_LEVELS[level]
    text = f"{code:0{region.width}d}"
    if text.startswith(PUERTO_RICO):
        region = _OF_PUERTO_RICO.get(region.base, region)
    return Area(region.name, text)


def _same_blocks(levels: Sequence[Codes]) -> list[list[tuple[int, int]]]:
    """Areas (level, code) of different levels with the same rows, from the area that each row is in; -1 for none."""
    # A equals B if all rows of A are in B, and B has as many. All rows of A can lie only in the area of another
    # level that its first row is in, so that A is compared with that alone.
    found: dict[tuple[int, int], list[tuple[int, int]]] = {}
    coded = [_coded(level) for level in levels]
    taken = [np.zeros(len(codes), dtype=bool) for codes, *_ in coded]
    for one, (codes, of_row, first, size) in enumerate(coded):
        for other in range(one + 1, len(coded)):
            other_codes, other_of_row, _, other_size = coded[other]
            if not other_codes.size:
                continue
            twin = other_of_row[first]
            alike = (twin >= 0) & (other_size[twin] == size) & ~taken[one]
            candidates = np.flatnonzero(alike)
            if not candidates.size:
                continue
            twin = np.where(alike, twin, -2)
            together = np.bincount(of_row[(of_row >= 0) & (twin[of_row] == other_of_row)], minlength=len(codes))
            for area in candidates[together[candidates] == size[candidates]].tolist():
                key = (one, int(codes[area]))
                found.setdefault(key, [key]).append((other, int(other_codes[twin[area]])))
                # It is in this set, and needs not begin one of its own.
                taken[other][twin[area]] = True
    return list(found.values())


def _distinct(values: Codes) -> Codes:
    """Sorted distinct values; by sorting, which is faster here than numpy's hashing."""
    ordered = np.sort(values)
    return ordered[np.diff(ordered, prepend=NO_AREA - 1) > 0]


def _coded(level: Codes) -> tuple[Codes, Codes, NDArray[np.intp], NDArray[np.intp]]:
    """Areas of a level; the area of each row as an index into them (-1 for none); their first rows and sizes."""
    codes, first, of_row = np.unique(level, return_index=True, return_inverse=True)
    if codes.size and codes[0] == NO_AREA:
        codes, first, of_row = codes[1:], first[1:], of_row - 1
    return codes, of_row, first, np.bincount(of_row[of_row >= 0], minlength=codes.size)


def read_blocks(path: Path, states: Iterable[str] | None = None) -> Blocks:
    """Read the reference file of blocks, GRF-C: TABBLKST, TABBLKCOU, TABTRACTCE, TABBLK, PLACEFP, AIANNHCE and others.

    Parameters
    ----------
    path : Path
        Separated by `|` or `,`, or Parquet with text.
    states : iterable of str, optional
        Leave out the blocks of all other states.

    Raises
    ------
    InputError
        If it cannot be read, lacks a column, has a value of the wrong form, or lists a block twice.
    """
    block, place, aiannh = read_areas(path)
    state = block // 10**13
    place = np.where(place == int(NO_PLACE), NO_AREA, state * 10**5 + place)
    aiannh = np.where(aiannh == int(NO_AIANNH), NO_AREA, aiannh)
    if states is None:
        return Blocks(block, place, aiannh)
    chosen = np.isin(state, [int(code) for code in states])
    return Blocks(block[chosen], place[chosen], aiannh[chosen])


def read_live(path: Path, blocks: Blocks) -> NDArray[np.bool_]:
    """Which blocks have housing units, by a list of housing units.

    Parameters
    ----------
    path : Path
        Columns BLOCK (state, county, tract, block: 15 digits; or 16, with the block group before the block) or
        TABBLKST, TABBLKCOU, TABTRACTCE, TABBLK, and HOUSING_UNITS; upper or lower case; separated by `|` or `,`, or
        Parquet. A block that is not listed has none.

    Raises
    ------
    InputError
        If it cannot be read, a value has the wrong form, or none of the blocks has a housing unit by it.
    """
    with open_delimited(path, ("HOUSING_UNITS",), others=True) as file:
        if file.has("BLOCK"):
            block = file.digits("BLOCK", 15, most=16)
            short = block // 10**5 * 10**4 + block % 10**4
            block = np.where(file.lengths("BLOCK") == 16, short, block)
        elif all(file.has(name) for name in FIFTEEN):
            block = read_codes(file, FIFTEEN)
        else:
            raise InputError(f"{path} must have a column BLOCK, or {', '.join(FIFTEEN)}")
        listed = block[file.counts("HOUSING_UNITS") > 0]
    live = np.isin(blocks.block, listed)
    if not live.any():
        raise InputError(f"{path} gives no block of the reference file a housing unit; it may be of another state")
    return live
