"""What a release answers to queries of areas: counts and intervals, as one table.

It imports nothing that reaches the database (as `intervals.found` does not).
"""

import csv
import html
import io
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from yupana.files.arrow import ArrowTable

if TYPE_CHECKING:
    from yupana.estimate.intervals.intervals import Interval
    from yupana.geography.gazetteer import NamedArea


@dataclass(frozen=True, slots=True)
class AreaInterval:
    """The answer to a query of an area.

    Attributes
    ----------
    area : NamedArea
    published : int, float or None
        As the release has it; None for a ratio whose denominator it has as 0.
    interval : Interval
        Of the true value; without an estimate where it was read in the published tables.
    others : tuple of str
        Of a file of queries, what its row holds besides.
    """

    area: "NamedArea"
    published: int | float | None
    interval: "Interval"
    others: tuple[str, ...] = ()

    @property
    def query(self) -> str:
        """What was asked."""
        return self.interval.query

    @property
    def lower(self) -> int | float | None:
        """The lower end; None of a set that is no bounded interval."""
        return _plain(self.interval.pieces[0][0]) if self.interval.is_bounded else None

    @property
    def upper(self) -> int | float | None:
        """The upper end; None of a set that is no bounded interval."""
        return _plain(self.interval.pieces[0][1]) if self.interval.is_bounded else None

    @property
    def moe(self) -> int | float | None:
        """Half the width of the interval; of one of whole numbers rounded up."""
        if self.lower is None or self.upper is None:
            return None
        width = self.upper - self.lower
        return (width + 1) // 2 if isinstance(width, int) else width / 2

    @property
    def holds_published(self) -> bool | None:
        """Whether the published count lies in the set; None where none is published."""
        if self.published is None:
            return None
        return any(low <= self.published <= high for low, high in self.interval.pieces)

    @property
    def method(self) -> str:
        """How the interval was found."""
        return self.interval.method

    def as_json(self) -> dict[str, Any]:
        """Describe it."""
        area = {"area": self.area.text, "kind": self.area.kind, "code": self.area.code, "name": self.area.name}
        told = self.interval.as_json()
        ends = {"lower": self.lower, "upper": self.upper, "moe": self.moe}
        counted = {"query": self.query, "published": self.published, "holds_published": self.holds_published}
        return {**area, **counted, **(told | ends)}


@dataclass(frozen=True, slots=True, repr=False)
class AreaIntervals:
    """Counts of areas with their intervals; a data-frame library takes them as it takes their `table`.

    Attributes
    ----------
    product, status : str
        As the manifest says.
    confidence : Fraction
    intervals : tuple of AreaInterval
        In the order of the questions.
    notes : tuple of str
        What they cover and what not.
    others : tuple of str
        Further columns of a file of queries.
    """

    product: str
    status: str
    confidence: Fraction
    intervals: tuple[AreaInterval, ...]
    notes: tuple[str, ...]
    others: tuple[str, ...] = ()

    def columns(self) -> dict[str, list[Any]]:
        """What there is of each answer, by the name of the column; None where there is nothing."""
        found = self.intervals
        return {
            "kind": [one.area.kind for one in found],
            "code": [one.area.code for one in found],
            "name": [one.area.name for one in found],
            "query": [one.query for one in found],
            "published": [one.published for one in found],
            "estimate": [one.interval.estimate for one in found],
            "lower": [one.lower for one in found],
            "upper": [one.upper for one in found],
            "moe": [one.moe for one in found],
            "confidence": [float(self.confidence)] * len(found),
            "method": [one.method for one in found],
            **{name: [one.others[at] for one in found] for at, name in enumerate(self._others())},
        }

    def _others(self) -> Iterator[str]:
        """Further columns; one that is called as ours ends in ``_given``."""
        for name in self.others:
            yield f"{name}_given" if name in _TEXTS | _NUMBERS else name

    def as_json(self) -> dict[str, Any]:
        """Describe them."""
        return {
            "product": self.product,
            "status": self.status,
            "confidence": float(self.confidence),
            "intervals": [
                one.as_json() | dict(zip(self._others(), one.others, strict=False)) for one in self.intervals
            ],
            "notes": list(self.notes),
        }

    def table(self) -> ArrowTable:
        """Tabulate them, with a row for each answer; a set that is no bounded interval has no ends."""
        columns = self.columns()
        return ArrowTable.of(
            {name: ("DOUBLE" if name in _NUMBERS else "VARCHAR", values) for name, values in columns.items()}
        )

    def as_csv(self) -> str:
        """Write them as text with a header, separated by ``|``."""
        out, columns = io.StringIO(), self.columns()
        writer = csv.writer(out, delimiter="|", lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
        return out.getvalue()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Hand out a capsule with a stream of the rows of `table`."""
        return self.table().__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        """How many questions were answered."""
        return len(self.intervals)

    def __iter__(self) -> Iterator[AreaInterval]:
        """Go through the answers."""
        return iter(self.intervals)

    def __getitem__(self, place: int) -> AreaInterval:
        """The answer to a question, by its place."""
        return self.intervals[place]

    def __repr__(self) -> str:
        number = len(self.intervals)
        return (
            f"<{number} count{'s' * (number != 1)} of areas of {self.product} at {float(self.confidence):g} confidence>"
        )

    def _repr_html_(self) -> str:
        notes = "".join(f"<li>{html.escape(note)}</li>" for note in (f"status: {self.status}", *self.notes))
        return f"{self.table().as_html(100)}<ul>{notes}</ul>"


_TEXTS = {"kind", "code", "name", "query", "method"}
_NUMBERS = {"published", "estimate", "lower", "upper", "moe", "confidence"}


def _plain(value: float) -> int | float:
    """A whole number as such."""
    return int(value) if math.isfinite(value) and value == int(value) else value
