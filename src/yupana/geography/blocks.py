"""Public lists of census blocks: the reference file with the areas they lie in, and what stands in each block."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

import numpy as np

from yupana.arrays import Flags, Indices, Integers, Ints, narrow
from yupana.errors import InputError
from yupana.files.arrow_stream import Column, TextColumn
from yupana.files.code_tables import open_delimited
from yupana.files.database import open_database
from yupana.files.delimited import DelimitedFile, Labels, first_repeated, positions
from yupana.geography.kinds import BLOCK_WIDTH
from yupana.geography.settings import AREA_TYPES, NO_AREA
from yupana.release.lines import digits, texts
from yupana.release.tables import parts_of, write_parts

NO_ENTITY: Final = 99999
"""PLACEFP, COUSUBFP or school district of a block that lies in none."""

SCHOOL_COLUMNS: Final = ("SDUNILEA", "SDSECLEA", "SDELMLEA")
"""Unified, secondary and elementary school districts."""

PARTS: Final = {"TABBLKST": 2, "TABBLKCOU": 3, "TABTRACTCE": 6, "TABBLKGRPCE": 1, "TABBLK": 4}
"""The columns that make the 16 digits of a block, and the digits of each."""

COLUMNS: Final = (*PARTS, "AIANNHCE", "COUSUBFP", "PLACEFP")

FIFTEEN: Final = {name: width for name, width in PARTS.items() if name != "TABBLKGRPCE"}
"""The columns that make the 15 digits of a block, which leave out its block group: the block repeats it."""

GEOCODES: Final = ("GEOCODE", "GEOID", "BLOCK", "GEOCODE16", "GEOID10", "GEOID20")
"""Columns that may repeat the parts of a block in one; if it has 15 or 16 digits there, it must agree with them."""


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """The blocks of a reference file in the order of their digits; arrays of shape (blocks,)."""

    block: Ints  # 16 digits as a number: state 2, county 3, tract 6, block group 1, block 4
    # aiannh, cousub, place: AIANNHCE (9999 for none), COUSUBFP and PLACEFP (99999 for none)
    aiannh: Indices
    cousub: Indices
    place: Indices
    # school districts and columns of the user, by the name in the file; kinds of areas from other files
    columns: MappingProxyType[str, Labels]
    # those of the columns that are kinds of areas from other files, whose texts are identifiers of areas
    assigned: tuple[str, ...] = ()

    def keep(self, kept: Flags) -> "Reference":
        """Return some of the blocks."""
        columns = {name: column.of(kept) for name, column in self.columns.items()}
        of_block = {name: getattr(self, name)[kept] for name in ("block", "aiannh", "cousub", "place")}
        return Reference(**of_block, columns=MappingProxyType(columns), assigned=self.assigned)


def read_reference(path: Path, columns: Sequence[str] = (), *, schools: bool = False) -> Reference:
    """Read a reference file and check it.

    Parameters
    ----------
    path : Path
        Separated by ``|`` or ``,``, with a header that names at least `COLUMNS`, in any order.
    columns : sequence of str
        Further columns to read.
    schools : bool
        Whether the three columns of school districts must be there, too.

    Raises
    ------
    InputError
        If the file is no such table, a value is not in its domain, a block is listed twice, or its parts disagree.
    """
    required = (*COLUMNS, *columns, *(SCHOOL_COLUMNS if schools else ()))
    with open_delimited(path, required, (*SCHOOL_COLUMNS, *GEOCODES)) as file:
        block = _read_blocks(file)
        aiannh = file.digits("AIANNHCE", 4, none=NO_AREA).astype(np.int32)
        illegal = ~(in_areas(aiannh, AREA_TYPES) | (aiannh == NO_AREA))
        file.refuse(illegal, "AIANNHCE", lambda row: f"{aiannh[row]:04d} lies in no range of areas")
        cousub, place = (file.digits(name, 5, none=NO_ENTITY).astype(np.int32) for name in ("COUSUBFP", "PLACEFP"))
        wanted = dict.fromkeys((*columns, *(name for name in SCHOOL_COLUMNS if file.has(name))))
        texts = {name: file.texts(name) for name in wanted}
        refuse_repeated(file, "TABBLK", block)
    order = np.argsort(block)
    return Reference(
        block[order],
        aiannh[order],
        cousub[order],
        place[order],
        MappingProxyType({name: column.of(order) for name, column in texts.items()}),
    )


def in_areas(code: Indices, types: Collection[str]) -> Flags:
    """Which blocks lie in an AIAN area of the types named, by AIANNHCE; arrays of shape (blocks,)."""
    inside = np.zeros(len(code), dtype=np.bool_)
    for name in types:
        first, last = AREA_TYPES[name]
        inside |= (code >= first) & (code <= last)
    return inside


def read_areas(path: Path) -> tuple[Ints, Ints, Ints]:
    """Read the columns of a reference file that SafeTab needs, in the order of the file.

    Returns
    -------
    tuple of ndarray of int64, each of shape (blocks,)
        The 15 digits of the block, PLACEFP and AIANNHCE.

    Raises
    ------
    InputError
        If the file is no such table, a value is no code of so many digits, or a block is listed twice.
    """
    with open_delimited(path, (*FIFTEEN, "PLACEFP", "AIANNHCE")) as file:
        block = read_codes(file, FIFTEEN)
        refuse_repeated(file, "TABBLK", block, 15, "more than once")
        return block, file.digits("PLACEFP", 5), file.digits("AIANNHCE", 4)


def labels_of_codes(code: Ints, none: Flags, *widths: int) -> Labels:
    """Codes as texts of digits, none where there is none; a text has the least of the widths that holds the code."""
    values, place = np.unique(code[~none], return_inverse=True)
    written = (text.zfill(min(w for w in widths if w >= len(text))) for text in map(str, values.tolist()))
    return Labels.at(~none, len(code), place, written)


def subdivision_codes(reference: Reference) -> Ints:
    """County subdivisions with their counties, as numbers of 10 digits, of shape (blocks,)."""
    return reference.block // 10**11 * 10**5 + reference.cousub


def coded_areas(reference: Reference) -> dict[str, Labels]:
    """Places, county subdivisions and AIANNH areas, whatever a spine considers, by texts unique in the nation."""
    place = reference.block // 10**14 * 10**5 + reference.place
    return {
        "place": labels_of_codes(place, reference.place == NO_ENTITY, 7),
        "county_subdivision": labels_of_codes(subdivision_codes(reference), reference.cousub == NO_ENTITY, 10),
        "aiannh": labels_of_codes(reference.aiannh.astype(np.int64), reference.aiannh == NO_AREA, 4),
    }


def write_labels(path: Path, blocks: Ints, columns: Mapping[str, Labels]) -> int:
    """Write in which area of each kind every block lies, empty for none; return the number of rows.

    Parameters
    ----------
    blocks : ndarray of int64, shape (blocks,)
    columns : mapping of str to Labels
        By kind, the area of each block.
    """
    written: dict[str, Column] = {"block": TextColumn(digits(blocks, BLOCK_WIDTH), np.arange(len(blocks)))}
    for name, column in columns.items():
        written[name] = TextColumn(texts(["", *column.labels]), column.index.astype(np.int64) + 1)
    with open_database() as db:
        write_parts(db, path, parts_of(written))
    return len(blocks)


def read_codes(file: DelimitedFile, parts: Mapping[str, int]) -> Ints:
    """Join codes in several columns, each of so many digits, to one number, of shape (rows,).

    Raises
    ------
    InputError
        If a field is no such code.
    """
    joined = np.zeros(file.rows, dtype=np.int64)
    for name, width in parts.items():
        joined = joined * 10**width + file.digits(name, width)
    return joined


def refuse_repeated(file: DelimitedFile, column: str, block: Ints, width: int = 16, often: str = "twice") -> None:
    """Refuse a file that lists a block more than once.

    Raises
    ------
    InputError
    """
    if repeated := first_repeated(block):
        first, again = repeated
        text = f"block {block[again]:0{width}d} is listed {often}; first in line {file.line(first)}"
        raise file.fault(again, column, text)


def _read_blocks(file: DelimitedFile) -> Ints:
    block = read_codes(file, PARTS)
    group = block // 10**4 % 10
    file.refuse(
        group != block // 10**3 % 10,
        "TABBLKGRPCE",
        lambda row: (
            f"block group {group[row]} disagrees with block {block[row] % 10**4:04d}, whose first digit is "
            "that of its block group"
        ),
    )
    for name in GEOCODES:
        if file.has(name) and np.isin(file.lengths(name), (15, 16)).any():
            _compare_geocode(file, name, block)
    return block


def _compare_geocode(file: DelimitedFile, column: str, block: Ints) -> None:
    # A geocode of 15 digits leaves out the block group, which the block repeats.
    short = block // 10**5 * 10**4 + block % 10**4
    try:
        given, expected, width = file.digits(column, 16), block, 16
    except InputError:
        given, expected, width = file.digits(column, 15), short, 15
    file.refuse(
        given != expected,
        column,
        lambda row: f"{given[row]:0{width}d} disagrees with the parts of the block, {expected[row]:0{width}d}",
    )


QUARTERS_COLUMNS: Final = tuple(f"gq{kind}" for kind in range(1, 8))
"""Facilities: correctional, juvenile, nursing, other institutions, college, military, other."""

FACILITIES: Final = "group_quarters.csv"
"""The file of what stands in each block, beside the records and in releases."""

FACILITY_COLUMNS: Final = ("block", "housing_units", *QUARTERS_COLUMNS)


def read_facilities(path: Path, blocks: Ints, *, every: bool = False) -> Integers:
    """Read what stands in each block: columns block, housing_units, gq1 to gq7; a block without a row has zeros.

    Parameters
    ----------
    blocks : ndarray of int64, shape (blocks,)
        16 digits as a number, in order.
    every : bool
        Whether every block must have a row.

    Returns
    -------
    ndarray of integers, shape (blocks, 8)
        Housing units, and facilities of the major types 1 to 7.

    Raises
    ------
    InputError
        If the file is no such table, or blocks are unknown, listed twice, or missing where every block must be there.
    """
    at, facilities = _read_rows(path, blocks)
    if every and len(at) < len(blocks):
        missing = np.delete(blocks, at)
        raise InputError(
            f"{path}, column block: {len(missing):,} blocks of the reference file are missing, such as "
            f"{missing[0]:016d}; give every block a row, with zeros where nothing stands"
        )
    found = np.zeros((len(blocks), facilities.shape[1]), dtype=facilities.dtype)
    found[at] = facilities
    return found


def listed_blocks(path: Path, blocks: Ints) -> Ints:
    """The blocks that a table of attributes lists; see `read_facilities`."""
    return np.asarray(blocks[_read_rows(path, blocks)[0]], dtype=np.int64)


def quarters_in(facilities: Integers) -> Indices:
    """Which facilities there are, of shape (blocks,): bit j - 1 is set if there is one of major type j."""
    bits = 1 << np.arange(len(QUARTERS_COLUMNS), dtype=np.int32)
    return np.asarray((facilities[:, 1:] > 0) @ bits, dtype=np.int32)


def write_facilities(path: Path, blocks: Ints, facilities: Integers) -> int:
    """Write block attributes as `read_facilities` reads them, blocks in order; return the number of rows.

    Parameters
    ----------
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
        refuse_repeated(file, "block", block)
        at = positions(block, blocks)
        file.refuse(at < 0, "block", lambda row: f"block {block[row]:016d} is not in the reference file")
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
