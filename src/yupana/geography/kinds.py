"""Kinds of published areas: their names, the Bureau's summary levels, and the codes of their areas. Public."""

import re
from dataclasses import dataclass
from typing import Final

import numpy as np

from yupana.arrays import Ints
from yupana.errors import InputError
from yupana.files.delimited import DelimitedFile

US, STATE, COUNTY, NONE = "us", "state", "county", ""


@dataclass(frozen=True, slots=True)
class BureauKind:
    """A kind of published areas.

    Attributes
    ----------
    summary_level : str
        The Bureau's code of it.
    within : str
        Whose identifier stands before an area's own code in its GEOID: "state", "county", or "" for nothing.
    least, most : int
        Characters of the area's own code; 0 where the digits of the block or other kinds tell it.
    columns : str
        A regular expression of the names that columns and files of the Bureau have for it.
    """

    summary_level: str
    within: str = NONE
    least: int = 0
    most: int = 0
    columns: str = ""


KINDS: Final = {
    US: BureauKind("010"),
    STATE: BureauKind("040"),
    COUNTY: BureauKind("050"),
    "county_subdivision": BureauKind("060", COUNTY, 5, 5, "COUSUB|COUSUBFP|MCD"),
    "tract": BureauKind("140"),
    "block_group": BureauKind("150"),
    "place_county": BureauKind("155"),
    "place": BureauKind("160", STATE, 5, 5, "PLACE|PLACEFP|INCPLACE_CDP"),
    "aiannh": BureauKind("250", NONE, 4, 4, "AIANNH|AIANNHCE|AIANHH"),
    "state_aiannh": BureauKind("280"),
    "congressional_district": BureauKind("500", STATE, 2, 2, r"CD(\d{2,3})?(FP)?"),
    "state_upper": BureauKind("610", STATE, 3, 3, r"SLDU(\d{2}|ST)?"),
    "state_lower": BureauKind("620", STATE, 3, 3, r"SLDL(\d{2}|ST)?"),
    "voting_district": BureauKind("700", COUNTY, 1, 6, "VTD(ST)?"),
    "block": BureauKind("750"),
    "school_elementary": BureauKind("950", STATE, 5, 5, "SDELM|SDELMLEA"),
    "school_secondary": BureauKind("960", STATE, 5, 5, "SDSEC|SDSECLEA"),
    "school_unified": BureauKind("970", STATE, 5, 5, "SDUNI|SDUNILEA"),
}
"""The kinds of P.L. 94-171, in the order of their summary levels, which is that of the published tables."""

NESTED: Final = {"block_group": 12, "tract": 11, COUNTY: 5, STATE: 2}
"""Digits of the 16 of a block that name the area above it, each kind adding up the one before."""

_DERIVED: Final = {"place_county", "state_aiannh"}

BLOCK_WIDTH: Final = 16

BLOCKS_OF_COUNTY: Final = 10 ** (BLOCK_WIDTH - NESTED[COUNTY])
"""What the 16 digits of a block are divided by for those of its county."""

TOLD: Final = frozenset({"block", US, *NESTED, *_DERIVED})
"""Kinds that the digits of a block and other kinds tell: no column is needed for them."""


def kind_of(column: str) -> str:
    """The kind that a column of a table of areas tells: one of `KINDS`, or one of the user's that is called so."""
    for name, kind in KINDS.items():
        if column.lower() == name or (kind.columns and re.fullmatch(kind.columns, column, re.IGNORECASE)):
            return name
    return column


def summary_levels() -> dict[str, str]:
    """The Bureau's code of every kind, by name."""
    return {name: kind.summary_level for name, kind in KINDS.items()}


BLOCK_COLUMNS: Final = ("block", "blockid", "geocode", "geoid", "geoid20", "geoid10")
"""What the column of blocks may be called, in any case."""

_SHORT: Final = 15


def block_column(file: DelimitedFile) -> str:
    """The column of blocks, as the file spells it.

    Raises
    ------
    InputError
        If there is none, or several could be it.
    """
    names = [name for name in file.header if name.lower() in BLOCK_COLUMNS]
    if len(names) != 1:
        told = f"{' and '.join(names)} may all be the column of blocks" if names else "no column block"
        raise InputError(f"{file.path}, line 1: {told}; name one column of blocks block, BLOCKID or GEOID")
    return names[0]


def block_codes(file: DelimitedFile, column: str) -> Ints:
    """Codes of blocks as numbers of 16 digits, of shape (rows,); a block may be there twice.

    Parameters
    ----------
    file : DelimitedFile
    column : str
        Of 16 digits, or of 15, which leave out the block group: it is the first digit of the block.

    Raises
    ------
    InputError
        If a field is no such code, or its block group is not that of its block.
    """
    block = file.digits(column, _SHORT, most=BLOCK_WIDTH)
    short = file.lengths(column) == _SHORT
    whole = np.where(short, block // 10**4 * 10**5 + block % 10**4 // 10**3 * 10**4 + block % 10**4, block)
    wrong = np.flatnonzero(whole // 10**4 % 10 != whole // 10**3 % 10)
    if len(wrong):
        raise file.fault(int(wrong[0]), column, "the block group disagrees with the first digit of the block")
    return whole
