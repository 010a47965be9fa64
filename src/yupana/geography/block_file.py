"""A public file of blocks beside the records, and the kinds of areas that are made of its blocks.

A block is named by one or more columns of digits, which records have, too; each of its other columns says what the
block lies in.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from yupana.files.declaration import NAME, TEXT, key


@dataclass(frozen=True, slots=True)
class BlockColumn:
    """A column of digits: its name, and how many it has."""

    name: str
    digits: int


@dataclass(frozen=True, slots=True)
class HousingUnitFile:
    """A public file of how many housing units stand in each block: its name, and what its columns are called."""

    file: str = key(NAME)
    block: str = key(TEXT)
    number: str = key(TEXT)


@dataclass(frozen=True, slots=True)
class BlockFile:
    """A file with a row for each block."""

    file: str  # its name in the folder of the records, without the ending
    # which together name a block, the largest area first; 18 digits at most. Records have columns of these names.
    key: tuple[BlockColumn, ...]
    columns: tuple[BlockColumn, ...] = ()  # others that areas are made of
    # the values of the first column of the key that count; records and blocks of others are left out. None for all.
    chosen: frozenset[int] | None = None
    # areas where no unit stands, by this file beside it, are left out; blocks that it does not list have none
    housing_units: HousingUnitFile | None = None

    @property
    def files(self) -> tuple[str, ...]:
        """The names of the public files that lie beside the records."""
        return (self.file, self.housing_units.file) if self.housing_units else (self.file,)


@dataclass(frozen=True, slots=True)
class BlockAreas:
    """A kind of areas made of blocks: those with the same values of some columns are one area."""

    name: str
    # their digits, one after another, are the code of an area; none for one area that holds every block
    columns: tuple[BlockColumn, ...]
    code: str = ""  # of the one area that holds every block; empty of others
    nowhere: Mapping[str, int] | None = None  # by column: values that say that a block lies in no area of the kind

    @property
    def width(self) -> int:
        """Digits of a code."""
        return len(self.code) or sum(column.digits for column in self.columns)
