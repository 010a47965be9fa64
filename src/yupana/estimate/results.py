"""What a release answers to queries, of cells, of areas and of district plans, as tables.

Data-frame libraries keep the class of what they were given to the end of the process, and the database complains of
whatever that class can reach; so this file imports nothing that reaches it.
"""

import csv
import io
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from yupana.arrays import Floats
from yupana.files.arrow import ArrowTable, Tabular

if TYPE_CHECKING:
    from yupana.estimate.districts import Chance, Rule
    from yupana.estimate.intervals.intervals import Interval
    from yupana.geography.gazetteer import NamedArea


Answer = TypeVar("Answer", "Interval", "AreaInterval")


@dataclass(frozen=True, slots=True, repr=False)
class Answers(Tabular, Generic[Answer]):
    """Answers to queries of a release; a data-frame library takes them as it takes their `table`."""

    # product, status: as the manifest says
    product: str
    status: str
    confidence: Fraction
    intervals: tuple[Answer, ...]  # in the order of the queries
    notes: tuple[str, ...]  # what they cover and what not
    _WHAT: ClassVar[str] = "interval{}"

    def as_json(self) -> dict[str, Any]:
        """Describe them."""
        return {
            "product": self.product,
            "status": self.status,
            "confidence": float(self.confidence),
            "intervals": [self.told(one) for one in self.intervals],
            "notes": list(self.notes),
        }

    def told(self, one: Answer) -> dict[str, Any]:
        """Describe one of them."""
        return one.as_json()

    def __len__(self) -> int:
        """How many queries were answered."""
        return len(self.intervals)

    def __iter__(self) -> Iterator[Answer]:
        """Go through the answers."""
        return iter(self.intervals)

    def __getitem__(self, place: int) -> Answer:
        """The answer to a query, by its place."""
        return self.intervals[place]

    def notes_shown(self) -> tuple[str, ...]:
        """What a notebook shows below the table."""
        return f"status: {self.status}", *self.notes

    def __repr__(self) -> str:
        what = self._WHAT.format("s" * (len(self) != 1))
        return f"<{len(self)} {what} of {self.product} at {float(self.confidence):g} confidence>"


@dataclass(frozen=True, slots=True, repr=False)
class Intervals(Answers["Interval"]):
    """Intervals for the cells of a release, as `Answers`."""

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
class AreaIntervals(Answers[AreaInterval]):
    """Counts of areas with their intervals, as `Answers`.

    Attributes
    ----------
    others : tuple of str
        Further columns of a file of queries.
    """

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

    def told(self, one: AreaInterval) -> dict[str, Any]:
        """Describe one of them, with what its row holds besides."""
        return one.as_json() | dict(zip(self._others(), one.others, strict=False))

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

    _WHAT: ClassVar[str] = "count{} of areas"


_TEXTS = {"kind", "code", "name", "query", "method"}
_NUMBERS = {"published", "estimate", "lower", "upper", "moe", "confidence"}


def _plain(value: float) -> int | float:
    """A whole number as such."""
    return int(value) if math.isfinite(value) and value == int(value) else value


@dataclass(frozen=True, slots=True)
class Unassigned:
    """Blocks in no district, which are kept apart from the balance.

    Attributes
    ----------
    code : str
        What the plan calls them.
    blocks : int
        How many of the spine.
    published, estimate, standard_deviation : float
        As of the districts.
    """

    code: str
    blocks: int
    published: float
    estimate: float
    standard_deviation: float


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DistrictEstimates(Tabular):
    """A district plan under noise; a data-frame library takes its districts as it takes their `table`.

    Attributes
    ----------
    product, status : str
        As the manifest of the release says.
    query : str
        What is counted.
    districts : tuple of str
    published, estimate : ndarray of float64, shape (districts,)
        Of the release, and by least squares from all measurements.
    covariance : ndarray of float64, shape (districts, districts)
        Of the estimates; singular where the sum of all is known.
    confidence : Fraction
        Of the intervals.
    z : float
        Its two-sided normal quantile.
    rule : Rule
    tolerance, level : Fraction
        Of the rule, and the chance that a tightened tolerance keeps.
    departures : mapping of str to float
        How far the published and the estimated populations depart from balance, in shares of the ideal.
    chance : Chance
        That the true populations meet the rule.
    tightened : float or None
        The tolerance for published populations that keeps the chance at the level; None if there is none.
    notes : tuple of str
        What the numbers are of and what not.
    unassigned : Unassigned, optional
        What is in no district.
    """

    product: str
    status: str
    query: str
    districts: tuple[str, ...]
    published: Floats
    estimate: Floats
    covariance: Floats
    confidence: Fraction
    z: float
    rule: "Rule"
    tolerance: Fraction
    level: Fraction
    departures: dict[str, float]
    chance: "Chance"
    tightened: float | None
    notes: tuple[str, ...]
    unassigned: Unassigned | None = None

    @property
    def deviation(self) -> Floats:
        """Standard deviations of the estimates, of shape (districts,)."""
        return self.covariance.diagonal() ** 0.5

    def columns(self) -> dict[str, list[Any]]:
        """What there is of each district, by the name of the column."""
        ideal = self.estimate.mean()
        return {
            "district": list(self.districts),
            "published": self.published.tolist(),
            "estimate": self.estimate.tolist(),
            "standard_deviation": self.deviation.tolist(),
            "lower": (self.estimate - self.z * self.deviation).tolist(),
            "upper": (self.estimate + self.z * self.deviation).tolist(),
            "from_ideal": (self.estimate / ideal - 1).tolist(),
        }

    def as_json(self) -> dict[str, Any]:
        """Describe it, with the whole covariance."""
        columns = self.columns()
        rows = zip(*columns.values(), strict=True)
        return {
            "product": self.product,
            "status": self.status,
            "query": self.query,
            "confidence": float(self.confidence),
            "districts": [dict(zip(columns, row, strict=True)) for row in rows],
            "covariance": self.covariance.tolist(),
            "balance": {
                "rule": self.rule,
                "tolerance": float(self.tolerance),
                **self.departures,
                "chance": self.chance.value,
                "standard_error": self.chance.standard_error,
                "at_least": self.chance.lower,
                "at_most": self.chance.upper,
                "level": float(self.level),
                "tightened": self.tightened,
            },
            **({"unassigned": asdict(self.unassigned)} if self.unassigned else {}),
            "notes": list(self.notes),
        }

    def table(self) -> ArrowTable:
        """Tabulate them, with a row for each district."""
        return ArrowTable.of(
            {name: ("VARCHAR" if name == "district" else "DOUBLE", values) for name, values in self.columns().items()}
        )

    def __len__(self) -> int:
        """How many districts there are."""
        return len(self.districts)

    def __repr__(self) -> str:
        return f"<{len(self)} districts of {self.product}: balanced with chance {self.chance.value:.4f}>"

    def notes_shown(self) -> tuple[str, ...]:
        """What a notebook shows below the table."""
        return f"status: {self.status}", *self.notes
