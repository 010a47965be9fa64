"""Kinds of published areas: their names, the Bureau's summary levels, and the codes of their areas. Public."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from yupana.arrays import Flags, Ints
from yupana.errors import InputError
from yupana.files.delimited import DelimitedFile, positions

US, STATE, COUNTY, NONE = "us", "state", "county", ""


@dataclass(frozen=True, slots=True)
class BureauKind:
    """A kind of published areas."""

    summary_level: str  # the Bureau's code of it
    # whose identifier stands before an area's own code in its GEOID: "state", "county", or "" for nothing
    within: str = NONE
    # least, most: characters of the area's own code; 0 where the digits of the block or other kinds tell it
    least: int = 0
    most: int = 0
    columns: str = ""  # a regular expression of the names that columns and files of the Bureau have for it

    @property
    def outer(self) -> int:
        """Digits of the identifier that stands before an area's own code."""
        return {STATE: 2, COUNTY: 5}.get(self.within, 0)


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
_LEAST: Final = 14
"""Digits of a block without its block group, and without the zero that its state begins with."""

_CODE: Final = re.compile(r"[0-9]{13,16}|[0-9](?:[.,][0-9]*)?[eE]\+?1[0-9]")
_NO_NAME: Final = 2


def is_block(field: str) -> bool:
    """Whether a field is a code of a block, whole or as a spreadsheet may have changed it."""
    return _CODE.fullmatch(field) is not None


def block_names(fields: Sequence[str]) -> tuple[str, ...] | None:
    """What the columns of a table of two are whose first row has a block; None if that names them.

    For `open_codes`: one column is of blocks, and the other of the areas that they lie in.
    """
    found = [place for place, field in enumerate(fields) if is_block(field)]
    if len(fields) != _NO_NAME or len(found) != 1:
        return None
    return ("block", "district") if found == [0] else ("district", "block")


def block_column(file: DelimitedFile) -> str:
    """The column of blocks, as the file spells it: by its name, or else the one whose first row has a block.

    Raises
    ------
    InputError
        If there is none, or several could be it.
    """
    names = [name for name in file.header if name.lower() in BLOCK_COLUMNS]
    if not names:
        names = [name for name in file.header if name and is_block(file.field(0, name))]
    if len(names) != 1:
        told = f"{' and '.join(names)} may all be the column of blocks" if names else "no column block"
        raise InputError(f"{file.path}, line 1: {told}; name one column of blocks block, BLOCKID or GEOID")
    return names[0]


@dataclass(frozen=True, slots=True, eq=False)
class BlockDigits:
    """Codes of blocks as a file writes them."""

    value: Ints  # shape (rows,)
    # shape (rows,): how many each has: 16, or 15, which leave out the block group, as it is the first digit of the
    # block; or one fewer where a spreadsheet took away the zero that the state begins with
    digits: Ints

    def whole(self, known: Ints) -> tuple[Ints, Flags]:
        """All 16 digits as numbers, and whether the leading zero was lost; arrays of shape (rows,).

        Parameters
        ----------
        known : ndarray of int64
            Blocks in order. Of 15 digits, those that are no known block without its block group may be one of 16
            without its zero.
        """
        short = self.digits < BLOCK_WIDTH
        block, group = self.value // 10**4 * 10**5 + self.value % 10**4, self.value % 10**4 // 10**3
        found = np.where(short, block + group * 10**4, self.value)
        lost = self.digits == _LEAST
        doubtful = np.flatnonzero((self.digits == _SHORT) & (positions(found, known) < 0))
        other = doubtful[positions(self.value[doubtful], known) >= 0]
        found[other], lost[other] = self.value[other], True
        return found, lost


def written_blocks(file: DelimitedFile, column: str) -> BlockDigits:
    """Read codes of blocks; one may be there twice.

    Raises
    ------
    InputError
        If a field is no such code, or its block group is not that of its block.
    """
    value = file.digits(column, _LEAST, most=BLOCK_WIDTH, said=f"{_SHORT} to {BLOCK_WIDTH} digits")
    found = BlockDigits(value, file.lengths(column))
    wrong = (found.digits == BLOCK_WIDTH) & (value // 10**4 % 10 != value // 10**3 % 10)
    file.refuse(wrong, column, lambda _: "the block group disagrees with the first digit of the block")
    return found


def on_lost_zeros(file: DelimitedFile, column: str, lost: Flags) -> str:
    """What is said of codes whose leading zero was restored, or ``""``."""
    rows = np.flatnonzero(lost)
    if not len(rows):
        return ""
    return (
        f"{file.path.name}, column {column}: {len(rows):,} code{'s' if len(rows) > 1 else ''} had lost the leading "
        f"zero, as in a spreadsheet, and got it back, first in {file.at(int(rows[0]))}"
    )
