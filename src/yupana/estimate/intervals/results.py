"""What a release answers to queries: intervals, as one table.

Data-frame libraries keep the class of what they were given to the end of the process, and the database complains of
whatever that class can reach; so this file imports nothing that reaches it.
"""

import html
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from yupana.files.arrow import ArrowTable

if TYPE_CHECKING:
    from yupana.estimate.intervals.intervals import Interval


@dataclass(frozen=True, slots=True, repr=False)
class Intervals:
    """Intervals for the cells of a release; a data-frame library takes them as it takes their `table`.

    Attributes
    ----------
    product, status : str
        As the manifest says.
    confidence : Fraction
    intervals : tuple of Interval
        In the order of the queries.
    notes : tuple of str
        What they cover and what not.
    """

    product: str
    status: str
    confidence: Fraction
    intervals: "tuple[Interval, ...]"
    notes: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Describe them."""
        return {
            "product": self.product,
            "status": self.status,
            "confidence": float(self.confidence),
            "intervals": [found.as_json() for found in self.intervals],
            "notes": list(self.notes),
        }

    def table(self) -> ArrowTable:
        """Tabulate them, with a row for each piece of a confidence set: a ratio may have two, or ends at infinity."""
        rows = [(one, *piece) for one in self.intervals for piece in one.pieces]
        return ArrowTable.of(
            {
                "query": ("VARCHAR", [one.query for one, _, _ in rows]),
                "estimate": ("DOUBLE", [one.estimate for one, _, _ in rows]),
                "variance": ("DOUBLE", [one.variance for one, _, _ in rows]),
                "lower": ("DOUBLE", [lower for _, lower, _ in rows]),
                "upper": ("DOUBLE", [upper for _, _, upper in rows]),
                "cells": ("BIGINT", [one.cells for one, _, _ in rows]),
                "method": ("VARCHAR", [one.method for one, _, _ in rows]),
            }
        )

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Hand out a capsule with a stream of the rows of `table`."""
        return self.table().__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        """How many queries were answered."""
        return len(self.intervals)

    def __getitem__(self, place: int) -> "Interval":
        """The answer to a query, by its place."""
        return self.intervals[place]

    def __repr__(self) -> str:
        number = len(self.intervals)
        return f"<{number} interval{'s' * (number != 1)} of {self.product} at {float(self.confidence):g} confidence>"

    def _repr_html_(self) -> str:
        notes = "".join(f"<li>{html.escape(note)}</li>" for note in (f"status: {self.status}", *self.notes))
        return f"{self.table().as_html(100)}<ul>{notes}</ul>"
