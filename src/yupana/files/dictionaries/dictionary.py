"""What a dictionary says of record files: items, their values and labels, and where a line holds them. Public."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

CASE_KEY: Final = "QUESTIONNAIRE"
"""What the column is called that tells questionnaires apart, if no item has that name; `case_keys` says."""


@dataclass(frozen=True, slots=True)
class ValueRange:
    """Values of an item that have one label: a value, or all whole numbers from the first to the last."""

    # first, last: as the dictionary writes them; the same of one value
    first: str
    last: str
    label: str = ""  # empty where there is none
    # whether the values stand for no answer, as MISSING, NOTAPPL, a user-missing value or `.a` do
    missing: bool = False


@dataclass(frozen=True, slots=True)
class ValueSet:
    """Values of an item, as one of several sets that a dictionary has of it."""

    # name, label: empty where the dictionary has no name for it
    name: str
    label: str
    values: tuple[ValueRange, ...]


@dataclass(frozen=True, slots=True)
class DictionaryItem:
    """A column."""

    name: str
    label: str = ""
    start: int = 0  # the first place of its characters in a line, from 1; 0 where the file is no text of fixed width
    length: int = 0  # its characters; 0 where the file is no text of fixed width
    # whether values are numbers, of which blanks and leading zeros say nothing; else they are texts
    is_number: bool = False
    decimals: int = 0  # of a number without a decimal point: how many of its digits stand behind it
    # the values that are allowed; empty where the dictionary does not say. Of several sets of values this is the first
    # one. A blank is the empty text.
    values: tuple[ValueRange, ...] = ()
    # all sets of values, the first one included; empty where there is one alone, which has no name
    sets: tuple[ValueSet, ...] = ()
    is_fraction: bool = False  # whether numbers are written with a decimal point
    # source, occurrence: of an item that a record holds several times: its own name, and which of the times it is, from
    # 1. The name is both together. Else empty and 0.
    source: str = ""
    occurrence: int = 0
    required: bool = False  # whether every record has a value


@dataclass(frozen=True, slots=True)
class RecordType:
    """Records of one kind."""

    name: str
    label: str
    code: str  # what a line says at the place of record types; empty where all records are of one kind
    items: tuple[DictionaryItem, ...]  # without the ids of its questionnaire
    most: int = 0  # how many a questionnaire has at most; 0 where the dictionary does not say
    key: str = ""  # the column that tells records apart, where records are not of a questionnaire; else empty
    # parent, link: the record type that each record belongs to one record of, and the column that holds that one's key;
    # else empty
    parent: str = ""
    link: str = ""
    length: int = 0  # how many characters its lines have at most, fillers included; 0 where that is what the items say


@dataclass(frozen=True, slots=True)
class Questionnaire:
    """A level of a dictionary: all lines with the same ids are one questionnaire."""

    # name, label: an empty name where a file of records has no level above them
    name: str
    label: str
    # from the largest area down, as the dictionary lists them. Of a level below another, its own ids alone.
    ids: tuple[DictionaryItem, ...]
    records: tuple[RecordType, ...]


@dataclass(frozen=True, slots=True)
class Dictionary:
    """What a dictionary says."""

    name: str
    label: str
    # type_start, type_length: where a line holds the code of its record type, from 1; 0 where all records are of one
    # kind
    type_start: int
    type_length: int
    levels: tuple[Questionnaire, ...]  # from the top down; one, mostly
    path: Path  # where it was read
    kind: str = ""  # what wrote it, in words, such as `CSPro`
    encoding: str = ""  # of the file of records, as Python calls it; empty where the dictionary does not say
    # whether an item that lists values lists all that are allowed. Files of statistics programs label some.
    lists_all: bool = True

    @property
    def is_fixed_width(self) -> bool:
        """Whether it says where a line holds each item."""
        return any(item.start for level in self.levels for record in level.records for item in record.items)


def case_keys(dictionary: Dictionary) -> tuple[str, ...]:
    """Of each level the column that tells its questionnaires apart: a name that no item has.

    Their ids are many columns, and a key is one. The second level has ``QUESTIONNAIRE_2``.
    """
    taken = {
        item.name.lower()
        for level in dictionary.levels
        for items in (level.ids, *(record.items for record in level.records))
        for item in items
    }
    found = []
    for number in range(1, len(dictionary.levels) + 1):
        name = f"{CASE_KEY}_{number}" if number > 1 else CASE_KEY
        while name.lower() in taken:
            name += "_"
        found.append(name)
    return tuple(found)
