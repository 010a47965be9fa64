"""Block attributes from public lists: housing units, and group quarters by seven major types."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from yupana.arrays import Flags, Indices, Integers, Ints, narrow
from yupana.errors import InputError
from yupana.files.arrow_stream import TextColumn
from yupana.files.database import open_database
from yupana.files.delimited import first_repeated, open_delimited, positions
from yupana.geography.blocks import Reference
from yupana.geography.kinds import BLOCK_WIDTH
from yupana.release.lines import digits
from yupana.release.tables import parts_of, write_parts

QUARTERS_COLUMNS: Final = tuple(f"gq{kind}" for kind in range(1, 8))
"""Facilities: correctional, juvenile, nursing, other institutions, college, military, other."""

FACILITIES: Final = "group_quarters.csv"
"""The file of what stands in each block, beside the records and in releases."""

FACILITY_COLUMNS: Final = ("block", "housing_units", *QUARTERS_COLUMNS)


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
    at, facilities = _read_rows(path, reference.block)
    if len(at) < len(reference.block):
        missing = np.delete(reference.block, at)
        raise InputError(
            f"{path}, column block: {len(missing):,} blocks of the reference file are missing, such as "
            f"{missing[0]:016d}; give every block a row, with zeros where nothing stands"
        )
    return attributes_of(facilities[np.argsort(at)])


def read_facilities(path: Path, blocks: Ints) -> Integers:
    """Read block attributes as numbers; a block without a row has zeros.

    Parameters
    ----------
    path : Path
    blocks : ndarray of int64, shape (blocks,)
        16 digits as a number, in order.

    Returns
    -------
    ndarray of integers, shape (blocks, 8)
        Housing units, and facilities of the major types 1 to 7.

    Raises
    ------
    InputError
        If the file is no such table, or blocks are unknown or listed twice.
    """
    at, facilities = _read_rows(path, blocks)
    found = np.zeros((len(blocks), facilities.shape[1]), dtype=facilities.dtype)
    found[at] = facilities
    return found


def listed_blocks(path: Path, blocks: Ints) -> Ints:
    """The blocks that a table of attributes lists; see `read_facilities`."""
    return np.asarray(blocks[_read_rows(path, blocks)[0]], dtype=np.int64)


def attributes_of(facilities: Integers) -> Attributes:
    """What a spine needs to know of facilities, of shape (blocks, 8)."""
    stands = facilities > 0
    bits = 1 << np.arange(len(QUARTERS_COLUMNS), dtype=np.int32)
    return Attributes(np.asarray(stands.any(axis=1)), np.asarray(stands[:, 1:] @ bits, dtype=np.int32))


def write_facilities(path: Path, blocks: Ints, facilities: Integers) -> int:
    """Write block attributes as `read_facilities` reads them, blocks in order; return the number of rows.

    Parameters
    ----------
    path : Path
    blocks : ndarray of int64, shape (blocks,)
    facilities : ndarray of integers, shape (blocks, 8)
    """
    order = np.argsort(blocks)
    first = TextColumn(digits(blocks[order], BLOCK_WIDTH), np.arange(len(order)))
    with open_database() as db:
        write_parts(db, path, parts_of(dict(zip(FACILITY_COLUMNS, (first, *facilities[order].T), strict=True))))
    return len(order)


def _read_rows(path: Path, blocks: Ints) -> tuple[Ints, Integers]:
    """Positions of the listed blocks among all, and what stands in each, of shape (rows, 8)."""
    with open_delimited(path, FACILITY_COLUMNS) as file:
        block = file.digits("block", 16)
        if repeated := first_repeated(block):
            raise file.fault(
                repeated[1],
                "block",
                f"block {block[repeated[1]]:016d} is listed twice; first in line {file.line(repeated[0])}",
            )
        at = positions(block, blocks)
        unknown = np.flatnonzero(at < 0)
        if len(unknown):
            row = int(unknown[0])
            raise file.fault(row, "block", f"block {block[row]:016d} is not in the reference file")
        return at, np.stack([narrow(file.counts(name)) for name in FACILITY_COLUMNS[1:]], axis=1)


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
