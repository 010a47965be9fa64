"""The columns of a record file: names, order and allowed values, all of which are whole numbers or codes of digits."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    Attributes
    ----------
    name : str
    domain : range or frozenset of int
        Allowed values; a code is taken as its number.
    width : int or None
        Digits of a code, leading zeros included; None for an integer.
    """

    name: str
    domain: range | frozenset[int]
    width: int | None = None

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
        return "UTINYINT" if self.high < 1 << 8 else "USMALLINT" if self.high < 1 << 16 else "INTEGER"

    @property
    def rule(self) -> str:
        """What is allowed, in words."""
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
        return str(value).zfill(self.width or 1)


@dataclass(frozen=True, slots=True)
class RecordFile:
    """One file of records: its name without extension, what a row is called, and its columns in file order."""

    name: str
    row: str
    columns: tuple[Column, ...]

    def __getitem__(self, name: str) -> Column:
        """Find a column by name, or raise KeyError."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)

    @property
    def header(self) -> tuple[str, ...]:
        """Column names in file order."""
        return tuple(column.name for column in self.columns)


MAFID = Column("MAFID", range(100_000_001, 900_000_000))
_RACE = range(1, 64)

PERSONS = RecordFile(
    "persons",
    "person",
    (
        Column("RTYPE", frozenset({3, 5}), 1),
        MAFID,
        Column("QAGE", range(116)),
        Column("CENHISP", range(1, 3)),
        Column("CENRACE", _RACE, 2),
        Column("RELSHIP", range(20, 39), 2),
    ),
)
"""persons.csv of the Census Bureau's PHSafe: one row per person."""

UNITS = RecordFile(
    "units",
    "unit",
    (
        Column("RTYPE", frozenset({2, 4}), 1),
        MAFID,
        Column("FINAL_POP", range(100_000)),
        Column("NPF", frozenset({0, *range(2, 98)})),
        Column("HHSPAN", range(3)),
        Column("HHRACE", range(64), 2),
        Column("TEN", range(5), 1),
        Column("HHT", range(8), 1),
        Column("HHT2", range(13), 2),
        Column("CPLT", range(6), 1),
    ),
)
"""units.csv: one row per housing unit, vacant or not, and per group quarters."""

GEO = RecordFile(
    "geo",
    "unit",
    (
        Column("RTYPE", frozenset({2, 4}), 1),
        MAFID,
        Column("TABBLKST", range(100), 2),
        Column("TABBLKCOU", range(1000), 3),
        Column("TABTRACTCE", range(1_000_000), 6),
        Column("TABBLK", range(10_000), 4),
        Column("TABBLKGRPCE", range(10), 1),
        Column("REGIONCE", frozenset({1, 2, 3, 4, 9}), 1),
        Column("DIVISIONCE", range(10), 1),
        Column("PLACEFP", range(100_000), 5),
        Column("AIANNHCE", range(10_000), 4),
    ),
)
"""geo.csv: where each unit lies, one row per unit."""
