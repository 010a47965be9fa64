"""What a dictionary says of record files: items, their values and labels, and where a line holds them. Public."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

CASE_KEY: Final = "QUESTIONNAIRE"
"""What the column is called that tells questionnaires apart, if no item has that name; `case_keys` says."""


@dataclass(frozen=True, slots=True)
class ValueRange:
    """Values of an item that have one label: a value, or all whole numbers from the first to the last.

    Attributes
    ----------
    first, last : str
        As the dictionary writes them; the same of one value.
    label : str
        Empty where there is none.
    missing : bool
        Whether the values stand for no answer, as MISSING, NOTAPPL, a user-missing value or ``.a`` do.
    """

    first: str
    last: str
    label: str = ""
    missing: bool = False


@dataclass(frozen=True, slots=True)
class ValueSet:
    """Values of an item, as one of several sets that a dictionary has of it.

    Attributes
    ----------
    name, label : str
        Empty where the dictionary has no name for it.
    """

    name: str
    label: str
    values: tuple[ValueRange, ...]


@dataclass(frozen=True, slots=True)
class DictionaryItem:
    """A column.

    Attributes
    ----------
    start : int
        The first place of its characters in a line, from 1; 0 where the file is no text of fixed width.
    length : int
        Its characters; 0 where the file is no text of fixed width.
    is_number : bool
        Whether values are numbers, of which blanks and leading zeros say nothing; else they are texts.
    decimals : int
        Of a number without a decimal point: how many of its digits stand behind it.
    values : tuple of ValueRange
        The values that are allowed; empty where the dictionary does not say. Of several sets of values this is the
        first one. A blank is the empty text.
    sets : tuple of ValueSet
        All sets of values, the first one included; empty where there is one alone, which has no name.
    is_fraction : bool
        Whether numbers are written with a decimal point.
    source, occurrence : str, int
        Of an item that a record holds several times: its own name, and which of the times it is, from 1. The name is
        both together. Else empty and 0.
    required : bool
        Whether every record has a value.
    """

    name: str
    label: str = ""
    start: int = 0
    length: int = 0
    is_number: bool = False
    decimals: int = 0
    values: tuple[ValueRange, ...] = ()
    sets: tuple[ValueSet, ...] = ()
    is_fraction: bool = False
    source: str = ""
    occurrence: int = 0
    required: bool = False


@dataclass(frozen=True, slots=True)
class RecordType:
    """Records of one kind.

    Attributes
    ----------
    code : str
        What a line says at the place of record types; empty where all records are of one kind.
    items : tuple of DictionaryItem
        Without the ids of its questionnaire.
    most : int
        How many a questionnaire has at most; 0 where the dictionary does not say.
    key : str
        The column that tells records apart, where records are not of a questionnaire; else empty.
    parent, link : str
        The record type that each record belongs to one record of, and the column that holds that one's key; else empty.
    length : int
        How many characters its lines have at most, fillers included; 0 where that is what the items say.
    """

    name: str
    label: str
    code: str
    items: tuple[DictionaryItem, ...]
    most: int = 0
    key: str = ""
    parent: str = ""
    link: str = ""
    length: int = 0


@dataclass(frozen=True, slots=True)
class Questionnaire:
    """A level of a dictionary: all lines with the same ids are one questionnaire.

    Attributes
    ----------
    name, label : str
        An empty name where a file of records has no level above them.
    ids : tuple of DictionaryItem
        From the largest area down, as the dictionary lists them. Of a level below another, its own ids alone.
    """

    name: str
    label: str
    ids: tuple[DictionaryItem, ...]
    records: tuple[RecordType, ...]


@dataclass(frozen=True, slots=True)
class Dictionary:
    """What a dictionary says.

    Attributes
    ----------
    type_start, type_length : int
        Where a line holds the code of its record type, from 1; 0 where all records are of one kind.
    levels : tuple of Questionnaire
        From the top down; one, mostly.
    path : Path
        Where it was read.
    kind : str
        What wrote it, in words, such as ``CSPro``.
    encoding : str
        Of the file of records, as Python calls it; empty where the dictionary does not say.
    lists_all : bool
        Whether an item that lists values lists all that are allowed. Files of statistics programs label some.
    """

    name: str
    label: str
    type_start: int
    type_length: int
    levels: tuple[Questionnaire, ...]
    path: Path
    kind: str = ""
    encoding: str = ""
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
