"""Kinds of published areas: their names, the Bureau's summary levels, and the codes of their areas. Public."""

import re
from dataclasses import dataclass
from typing import Final

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
