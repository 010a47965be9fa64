"""What a dictionary says of record files: items, their values and labels, and where a line holds them. Public."""

from dataclasses import dataclass
from pathlib import Path


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
class DictionaryItem:
    """A column.

    Attributes
    ----------
    name, label : str
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
        first one.
    """

    name: str
    label: str = ""
    start: int = 0
    length: int = 0
    is_number: bool = False
    decimals: int = 0
    values: tuple[ValueRange, ...] = ()


@dataclass(frozen=True, slots=True)
class RecordType:
    """Records of one kind.

    Attributes
    ----------
    name, label : str
    code : str
        What a line says at the place of record types; empty where all records are of one kind.
    items : tuple of DictionaryItem
        Without the ids of its questionnaire.
    """

    name: str
    label: str
    code: str
    items: tuple[DictionaryItem, ...]


@dataclass(frozen=True, slots=True)
class Questionnaire:
    """A level of a dictionary: all lines with the same ids are one questionnaire.

    Attributes
    ----------
    name, label : str
        An empty name where a file of records has no level above them.
    ids : tuple of DictionaryItem
        From the largest area down, as the dictionary lists them. Of a level below another, its own ids alone.
    records : tuple of RecordType
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
    name, label : str
    type_start, type_length : int
        Where a line holds the code of its record type, from 1; 0 where all records are of one kind.
    levels : tuple of Questionnaire
        From the top down; one, mostly.
    path : Path
        Where it was read.
    """

    name: str
    label: str
    type_start: int
    type_length: int
    levels: tuple[Questionnaire, ...]
    path: Path
