"""Block attributes from public lists: housing units, and group quarters by seven major types."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from hollerith.errors import InputError
from hollerith.geography.delimited import first_repeated, open_delimited, positions
from hollerith.geography.reference import Reference
from hollerith.geography.tree import Flags, Indices

QUARTERS_COLUMNS: Final = tuple(f"gq{kind}" for kind in range(1, 8))
"""Facilities: correctional, juvenile, nursing, other institutions, college, military, other."""


@dataclass(frozen=True, slots=True, eq=False)
class Attributes:
    """What stands in each block of a reference, arrays of shape (blocks,).

    Attributes
    ----------
    live : ndarray of bool
        Whether there is a housing unit or a facility.
    quarters : ndarray of int32
        Bit j - 1 is set if there is a facility of major type j.
    """

    live: Flags
    quarters: Indices


def read_attributes(path: Path, reference: Reference) -> Attributes:
    """Read block attributes: a row for every block of the reference file; columns block, housing_units, gq1 to gq7.

    Raises
    ------
    InputError
        If the file is no such table, or blocks are missing, unknown or listed twice.
    """
    with open_delimited(path, ("block", "housing_units", *QUARTERS_COLUMNS)) as file:
        block = file.digits("block", 16)
        if repeated := first_repeated(block):
            raise file.fault(
                repeated[1],
                "block",
                f"block {block[repeated[1]]:016d} is listed twice; first in line {file.line(repeated[0])}",
            )
        at = positions(block, reference.block)
        unknown = np.flatnonzero(at < 0)
        if len(unknown):
            row = int(unknown[0])
            raise file.fault(row, "block", f"block {block[row]:016d} is not in the reference file")
        units = file.counts("housing_units")
        quarters = np.zeros(len(block), dtype=np.int32)
        for bit, name in enumerate(QUARTERS_COLUMNS):
            quarters |= (file.counts(name) > 0).astype(np.int32) << bit
    if len(block) < len(reference.block):
        missing = np.setdiff1d(reference.block, block, assume_unique=True)
        raise InputError(
            f"{path}, column block: {len(missing):,} blocks of the reference file are missing, such as "
            f"{missing[0]:016d}; give every block a row, with zeros where nothing stands"
        )
    order = np.argsort(at)
    return Attributes(((units > 0) | (quarters > 0))[order], quarters[order])


def check_counties(reference: Reference, live: Flags, path: Path) -> None:
    """Refuse to leave out a whole county.

    Raises
    ------
    InputError
        If a county has no live block.
    """
    county = reference.block // 10**11
    empty = np.setdiff1d(county, county[live])
    if len(empty):
        raise InputError(
            f"{path}: county {empty[0]:05d} is empty: none of its blocks has a housing unit or group quarters"
            + (f"; so are {len(empty) - 1:,} more counties" if len(empty) > 1 else "")
            + ". Leave it out of the reference file, or build without --live"
        )
