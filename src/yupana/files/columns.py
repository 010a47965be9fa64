"""The columns of a record file: names, order and allowed values; and what other files call them. Public.

Values are whole numbers, codes of digits, or words that stand for numbers.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from yupana.errors import ConfigError, nearest
from yupana.files.declaration import TEXT, scalar, table_of
from yupana.files.document import is_text, read_document, refuse
from yupana.files.names import folded, normal


@dataclass(frozen=True, slots=True)
class Column:
    """One column."""

    name: str
    domain: range | frozenset[int]  # allowed values; a code is taken as its number
    width: int | None = None  # digits of a code, leading zeros included; None for an integer
    words: tuple[str, ...] = ()  # what is written in place of the numbers 0, 1, ..., where the column holds words
    # the word for no value, which becomes 0; in Parquet NULL says the same. Empty if there must be a value. Of `words`
    # it is the first.
    blank: str = ""
    # of whole numbers: what the word for no value becomes is the last of the domain instead, which is no number that
    # may be written; an empty field says the same
    blank_is_last: bool = False
    saying: str = ""  # what is allowed, where `rule` could not say it in few words
    text: str = ""  # SQL for the code where a file may write more than that; empty if it is written as it is
    # whether it tells records apart and is read as it stands, whatever the domain: never NULL, never counted by
    key: bool = False
    # whether files may write values in the ways of any office (`yupana.confidential.records.values`)
    free: bool = False
    decimal: str = ""  # what may stand between a whole number and zeros in a text, where `free`; empty if nothing may
    of: str = ""  # of whole numbers: which part of a date they are (`DATE_PARTS`); empty if they stand there as numbers
    # the word for every value that is not allowed, which becomes the last of the domain. Without a word for no value it
    # stands for no value, too. Empty if such values are refused. It is the last of `words`.
    others: str = ""
    about: str = ""  # what it says, for readers

    @property
    def none(self) -> int:
        """What no value becomes."""
        return self.high - bool(self.others) if self.blank_is_last else 0

    @property
    def not_numbers(self) -> dict[str, int]:
        """Of whole numbers: what is no number, by its word; they are the last of the domain."""
        none = {self.blank: self.none} if self.blank_is_last else {}
        return none if self.words or not self.others else none | {self.others: self.high}

    @property
    def in_no_class(self) -> set[int]:
        """Values that a recode need not put into a class: none, and others."""
        return ({self.none} if self.blank else set()) | ({self.high} if self.others else set())

    @property
    def numbers(self) -> "Column":
        """The same without words that are the last of the domain of whole numbers."""
        if not self.not_numbers or not isinstance(self.domain, range):
            return self
        domain = self.domain[: -len(self.not_numbers)]
        return replace(self, domain=domain, blank="", blank_is_last=False, others="")

    @property
    def low(self) -> int:
        """Smallest allowed value."""
        # min() would walk through a range of a billion.
        return self.domain[0] if isinstance(self.domain, range) else min(self.domain)

    @property
    def high(self) -> int:
        """Largest allowed value."""
        return self.domain[-1] if isinstance(self.domain, range) else max(self.domain)

    @property
    def storage(self) -> str:
        """The narrowest SQL type that holds the domain."""
        for bits, kind in ((8, "UTINYINT"), (15, "SMALLINT"), (16, "USMALLINT"), (31, "INTEGER")):
            if self.high < 1 << bits:
                return kind
        return "BIGINT"

    @property
    def rule(self) -> str:
        """What is allowed, in words."""
        if self.saying:
            return self.saying
        if self.not_numbers:
            return ", or ".join([self.numbers.rule, *self.not_numbers])
        if len(self.words) > 6:
            return f"one of {len(self.words):,} codes, such as {', '.join(self.words[:3])}"
        if len(self.domain) <= 6:
            text = ", ".join(map(self.written, sorted(self.domain)))
        else:
            text = f"{self.written(self.low)} to {self.written(self.high)}"
            if isinstance(self.domain, frozenset):
                gaps = sorted(set(range(self.low, self.high)) - self.domain)
                text += f" without {', '.join(map(self.written, gaps))}"
        return f"{text} (a code of {self.width} digits)" if self.width and self.width > 1 else text

    def written(self, value: int) -> str:
        """A value as the file writes it."""
        for word, number in self.not_numbers.items():
            if value == number:
                return word
        return self.words[value] if self.words else str(value).zfill(self.width or 1)


DATE_PARTS: Final = {
    "year": "1985",
    "month": "1 to 12",
    "year-month": "198503",
    "date": "19850317",
}
"""What whole numbers may be of a date, with an example."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """How an office writes its files of text."""

    separator: str = ""  # what separates fields; empty if the header tells
    encoding: str = ""  # as Python calls it; empty for UTF-8
    decimal: str = ""  # as `Column` has it


UNSAID: Final = Dialect()
"""Of a file of which nothing is said."""


@dataclass(frozen=True, slots=True)
class RecordFile:
    """One file of records."""

    name: str  # without extension
    row: str  # what a row is called
    columns: tuple[Column, ...]  # in file order
    endings: tuple[str, ...] = ("csv", "parquet")  # how the file's name may end; only one of these files may be there
    called: tuple[tuple[str, str], ...] = ()  # columns that the file calls otherwise, and how (`yupana.files.columns`)
    alias: str = ""  # the name in the database, if that is not the file's
    # how a file of text is written that may be of any office; None of the Census Bureau's, whose form is fixed
    dialect: Dialect | None = None

    def __getitem__(self, name: str) -> Column:
        """Find a column by name, or raise KeyError."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)

    @property
    def relation(self) -> str:
        """The name in the database."""
        return self.alias or self.name.replace("-", "_")

    @property
    def file_names(self) -> tuple[str, ...]:
        """Names of files that may hold the records."""
        return tuple(f"{self.name}.{ending}" for ending in self.endings)

    @property
    def header(self) -> tuple[str, ...]:
        """Column names in file order."""
        return tuple(column.name for column in self.columns)

    @property
    def written(self) -> dict[str, str]:
        """What the file calls each column, by its name."""
        return {name: name for name in self.header} | dict(self.called)


MAFID = Column("MAFID", range(100_000_001, 900_000_000), about="the housing unit or group quarters")
_RACE = range(1, 64)
_RACE_WORDS: Final = (
    "01 White, 02 Black, 03 American Indian or Alaska Native, 04 Asian, 05 Native Hawaiian or Pacific Islander, "
    "06 other, from 07 several"
)

PERSONS = RecordFile(
    "persons",
    "person",
    (
        Column("RTYPE", frozenset({3, 5}), 1, about="3 in a household, 5 in group quarters"),
        MAFID,
        Column("QAGE", range(116), about="age"),
        Column("CENHISP", range(1, 3), about="1 not Hispanic, 2 Hispanic"),
        Column("CENRACE", _RACE, 2, about=_RACE_WORDS),
        Column(
            "RELSHIP",
            range(20, 39),
            2,
            about="20 householder; 21, 23 spouse; 22, 24 unmarried partner; 25 to 27 own child; 28 to 36 others; "
            "37, 38 in group quarters",
        ),
    ),
)
"""persons.csv of the Census Bureau's PHSafe: one row per person."""

UNITS = RecordFile(
    "units",
    "unit",
    (
        Column("RTYPE", frozenset({2, 4}), 1, about="2 housing unit, 4 group quarters"),
        MAFID,
        Column("FINAL_POP", range(100_000), about="its persons"),
        Column("NPF", frozenset({0, *range(2, 98)}), about="persons in the family; 0 none"),
        Column("HHSPAN", range(3), about="CENHISP of the householder; 0 none"),
        Column("HHRACE", range(64), 2, about="CENRACE of the householder; 00 none"),
        Column("TEN", range(5), 1, about="1 owned with a mortgage, 2 owned free and clear; 3, 4 rented; 0 none"),
        Column("HHT", range(8), 1, about="1 to 3 families, 4 to 7 other households, 0 none"),
        Column(
            "HHT2",
            range(13),
            2,
            about="01, 02 married and 03, 04 cohabiting couples; 05 to 08 female and 09 to 12 male householders; "
            "00 none",
        ),
        Column(
            "CPLT",
            range(6),
            1,
            about="1, 2 married and 3, 4 unmarried couples, of two sexes and of one; 5 no couple, 0 none",
        ),
    ),
)
"""units.csv: one row per housing unit, vacant or not, and per group quarters."""

GEO = RecordFile(
    "geo",
    "unit",
    (
        Column("RTYPE", frozenset({2, 4}), 1, about="2 housing unit, 4 group quarters"),
        MAFID,
        Column("TABBLKST", range(100), 2, about="state"),
        Column("TABBLKCOU", range(1000), 3, about="county"),
        Column("TABTRACTCE", range(1_000_000), 6, about="tract"),
        Column("TABBLK", range(10_000), 4, about="block"),
        Column("TABBLKGRPCE", range(10), 1, about="block group"),
        Column("REGIONCE", frozenset({1, 2, 3, 4, 9}), 1, about="region; 9 Puerto Rico"),
        Column("DIVISIONCE", range(10), 1, about="division"),
        Column("PLACEFP", range(100_000), 5, about="place; 99999 none"),
        Column("AIANNHCE", range(10_000), 4, about="American Indian area; 9999 none"),
    ),
)
"""geo.csv: where each unit lies, one row per unit."""


_BLOCK = tuple(GEO[name] for name in ("TABBLKST", "TABBLKCOU", "TABTRACTCE", "TABBLK"))
_CODES = range(1000, 10_000)
_DETAILED_RACE = (
    Column("QRACE1", _CODES, 4, about="detailed race"),
    *(
        Column(
            f"QRACE{n}",
            _CODES,
            4,
            blank="Null",
            saying="Null or a code of 4 digits, 1000 to 9999",
            about="a further detailed race",
        )
        for n in range(2, 9)
    ),
    Column("QSPAN", _CODES, 4, about="detailed ethnicity; 9950 not Hispanic in the synthetic census"),
)

PERSON_RECORDS = RecordFile(
    "person-records",
    "person",
    (
        Column("QAGE", range(116), about="age"),
        Column("QSEX", range(1, 3), 1, about="1 male, 2 female"),
        Column("HOUSEHOLDER", range(2), words=("False", "True"), about="whether the person is; not read"),
        *_BLOCK,
        Column("CENRACE", _RACE, 2, about=_RACE_WORDS),
        *_DETAILED_RACE,
    ),
    ("txt", "csv", "parquet"),
)
"""person-records.txt of the Census Bureau's SafeTab-P: one row per person."""

HOUSEHOLD_RECORDS = RecordFile(
    "household-records",
    "household",
    (
        *_BLOCK,
        Column("HHRACE", _RACE, 2, about="CENRACE of the householder"),
        *_DETAILED_RACE,
        Column("HOUSEHOLD_TYPE", range(1, 6), 1, about="HHT, with 4 for 6 and 5 for 7"),
        Column("TEN", range(1, 5), 1, about="1 owned with a mortgage, 2 owned free and clear; 3, 4 rented"),
    ),
    ("txt", "csv", "parquet"),
)
"""household-records.txt of SafeTab-H: one row per occupied housing unit, with the codes of its householder."""

REFERENCE = RecordFile("GRF-C", "block", (*_BLOCK, GEO["PLACEFP"], GEO["AIANNHCE"]), ("txt", "csv"))
"""GRF-C.txt, the reference file of SafeTab: one row per block, whether or not anyone lives there."""

HOUSING_UNITS = RecordFile(
    "housing-units",
    "block",
    (
        Column(
            "block",
            range(10**15),
            15,
            saying="15 digits (state, county, tract, block), or 16 with the block group after the tract",
            # The block group says nothing that the block does not.
            text="CASE WHEN length(block) = 16 THEN left(block, 11) || right(block, 4) ELSE block END",
            about="the block",
        ),
        Column("housing_units", range(1 << 31), saying="a whole number", about="occupied or not"),
    ),
    ("txt", "csv"),
)
"""housing-units.txt: how many housing units stand in each block, occupied or not."""


BUREAU_FILES: Final = {file.name: file for file in (PERSONS, UNITS, GEO, PERSON_RECORDS, HOUSEHOLD_RECORDS)}
"""The record files of the Census Bureau's products."""


@dataclass(frozen=True, slots=True)
class ColumnMap:
    """Names of columns by record file."""

    # by file: of each record file, without extension: the names in it by ours. Others are ours.
    names: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def applied(self, file: RecordFile) -> RecordFile:
        """The record file with these names."""
        names = self.names.get(file.name, {})
        written = ((ours, names.get(own, own)) for ours, own in file.written.items())
        return replace(file, called=tuple((ours, own) for ours, own in written if ours != own))

    def as_text(self) -> str:
        """Describe it, for the options of a manifest; empty if every column has our name."""
        return json.dumps(self.names) if self.names else ""


BUREAU: Final = ColumnMap()
"""Every column has the Census Bureau's name."""


def read_column_map(path: Path, files: Mapping[str, RecordFile] = BUREAU_FILES) -> ColumnMap:
    """Read a map in TOML or JSON: a table for each record file, such as ``AGE = "alter"`` in ``[persons]``.

    Parameters
    ----------
    files : mapping of str to RecordFile
        The record files there are, by name.

    Raises
    ------
    ConfigError
        If a file or column is unknown, or a name stands for two columns. All faults are named at once.
    """
    document, faults = read_document(path)
    found = _checked(document, files, faults)
    if faults:
        raise refuse(path, faults)
    return found


def column_map_of(
    text: str, name: str = "options.columns", files: Mapping[str, RecordFile] = BUREAU_FILES
) -> ColumnMap:
    """Read what `ColumnMap.as_text` wrote; ``name`` is what an error calls it.

    Raises
    ------
    ConfigError
        If it is something else.
    """
    faults: list[str] = []
    try:
        found = _checked(json.loads(text) if text else {}, files, faults)
    except (ValueError, RecursionError):
        faults.append("must be JSON")
    if faults:
        raise ConfigError(f"{name}: {'; '.join(faults)}")
    return found


_NAME: Final = scalar(
    "a name in ASCII that begins with a letter",
    lambda told: str(told) if is_text(told) and str(told).isascii() and str(told)[0].isalpha() else None,
    TEXT.schema,
)
_HEADING: Final = scalar(
    "the name of a column, as its file writes it",
    lambda told: normal(str(told)) if is_text(told) else None,
    TEXT.schema,
)
"""In files that a description tells of; the Census Bureau's are stricter."""


def _checked(document: object, files: Mapping[str, RecordFile], faults: list[str]) -> ColumnMap:
    are_described = any(file.alias for file in files.values())
    names = table_of(table_of(_HEADING if are_described else _NAME)).read("", document, faults) or {}
    known = ", ".join(files)
    faults += [
        f"{name!r} is no record file; there are {known}{nearest(name, files)}" for name in names if name not in files
    ]
    for name, table in names.items():
        if name in files:
            _check_names(files[name], table, faults)
    return ColumnMap({name: table for name, table in names.items() if table})


def _check_names(file: RecordFile, table: Mapping[str, str], faults: list[str]) -> None:
    strange = [column for column in table if column not in file.header]
    faults += [
        f"{file.name}: {column!r} is no column; there are {', '.join(file.header)}{nearest(column, file.header)}"
        for column in strange
    ]
    if strange:
        return
    ours: dict[str, str] = {}
    for column in file.header:
        name = table.get(column, column)
        first = ours.setdefault(folded(name), column)
        if first != column:
            faults.append(f"{file.name}: {name!r} would be both {first} and {column}; map each to a name of its own")
