"""The reference file: census blocks with their tabulation geography and the areas they lie in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Final

import numpy as np

from yupana.arrays import Flags, Indices, Ints
from yupana.errors import InputError
from yupana.files.delimited import DelimitedFile, Labels, first_repeated, open_delimited
from yupana.geography.areas import NO_AREA, is_area_code

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
    """The blocks of a reference file in the order of their digits; arrays of shape (blocks,).

    Attributes
    ----------
    block : ndarray of int64
        16 digits as a number: state 2, county 3, tract 6, block group 1, block 4.
    aiannh, cousub, place : ndarray of int32
        AIANNHCE (9999 for none), COUSUBFP and PLACEFP (99999 for none).
    columns : mapping of str to Labels
        School districts and columns of the user, by the name in the file; kinds of areas from other files.
    assigned : tuple of str
        Those of the columns that are kinds of areas from other files, whose texts are identifiers of areas.
    """

    block: Ints
    aiannh: Indices
    cousub: Indices
    place: Indices
    columns: MappingProxyType[str, Labels]
    assigned: tuple[str, ...] = ()

    def keep(self, kept: Flags) -> "Reference":
        """Return some of the blocks."""
        columns = {name: replace(c, index=c.index[kept]) for name, c in self.columns.items()}
        return Reference(
            self.block[kept],
            self.aiannh[kept],
            self.cousub[kept],
            self.place[kept],
            MappingProxyType(columns),
            self.assigned,
        )


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
        illegal = np.flatnonzero(~is_area_code(aiannh))
        if len(illegal):
            raise file.fault(int(illegal[0]), "AIANNHCE", f"{aiannh[illegal[0]]:04d} lies in no range of areas")
        cousub, place = (file.digits(name, 5, none=NO_ENTITY).astype(np.int32) for name in ("COUSUBFP", "PLACEFP"))
        wanted = dict.fromkeys((*columns, *(name for name in SCHOOL_COLUMNS if file.has(name))))
        texts = {name: file.texts(name) for name in wanted}
        _refuse_repeated(file, block, 16, "twice")
    order = np.argsort(block)
    return Reference(
        block[order],
        aiannh[order],
        cousub[order],
        place[order],
        MappingProxyType({name: replace(c, index=c.index[order]) for name, c in texts.items()}),
    )


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
        _refuse_repeated(file, block, 15, "more than once")
        return block, file.digits("PLACEFP", 5), file.digits("AIANNHCE", 4)


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


def _refuse_repeated(file: DelimitedFile, block: Ints, width: int, often: str) -> None:
    if repeated := first_repeated(block):
        first, again = repeated
        text = f"block {block[again]:0{width}d} is listed {often}; first in line {file.line(first)}"
        raise file.fault(again, "TABBLK", text)


def _read_blocks(file: DelimitedFile) -> Ints:
    block = read_codes(file, PARTS)
    group, first_digit = block // 10**4 % 10, block // 10**3 % 10
    wrong = np.flatnonzero(group != first_digit)
    if len(wrong):
        row = int(wrong[0])
        raise file.fault(
            row,
            "TABBLKGRPCE",
            f"block group {group[row]} disagrees with block {block[row] % 10**4:04d}, whose first "
            "digit is that of its block group",
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
    wrong = np.flatnonzero(given != expected)
    if len(wrong):
        row = int(wrong[0])
        raise file.fault(
            row, column, f"{given[row]:0{width}d} disagrees with the parts of the block, {expected[row]:0{width}d}"
        )
