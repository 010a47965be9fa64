"""What a cell counts: public predicates on the columns of a record, in the codes of the specification."""

from dataclasses import dataclass

Values = str | int | range | frozenset[int]
"""Codes as the specification writes them, ``"20 21 24"``, or numbers."""


@dataclass(frozen=True, slots=True)
class Where:
    """Records whose every named column holds one of the named values; without a column, all records."""

    columns: tuple[tuple[str, frozenset[int]], ...] = ()

    def __and__(self, other: "Where") -> "Where":
        """Records that satisfy both."""
        merged = dict(self.columns)
        for column, values in other.columns:
            merged[column] = merged[column] & values if column in merged else values
        return Where(tuple(sorted(merged.items())))

    def __contains__(self, record: dict[str, int]) -> bool:
        """Whether a record, as a mapping of columns to numbers, satisfies this."""
        return all(record[column] in values for column, values in self.columns)

    @property
    def is_possible(self) -> bool:
        """Whether any record can satisfy this."""
        return all(values for _, values in self.columns)

    def on(self, columns: frozenset[str]) -> "Where":
        """The part of this that speaks of the given columns."""
        return Where(tuple((column, values) for column, values in self.columns if column in columns))


def as_sql(predicate: Where) -> str:
    """A condition in SQL, its columns by the names that they have there."""
    return " AND ".join(_test(column, sorted(values)) for column, values in predicate.columns) or "true"


def _test(column: str, values: list[int]) -> str:
    if not values:
        return "false"
    if len(values) == values[-1] - values[0] + 1:
        return f"{column} BETWEEN {values[0]} AND {values[-1]}"
    return f"{column} IN ({', '.join(map(str, values))})"


def where(**columns: Values) -> Where:
    """Build a `Where`: ``where(RTYPE="3", QAGE=range(18), HHT2="01 02")``."""
    return Where(tuple(sorted((column, _numbers(values)) for column, values in columns.items())))


def _numbers(values: Values) -> frozenset[int]:
    if isinstance(values, str):
        return frozenset(int(code) for code in values.split())
    return frozenset({values}) if isinstance(values, int) else frozenset(values)
