"""What a release tells of a district plan: populations with their joint law, and the balance of the true ones.

It imports nothing that reaches the database (as `intervals.found` does not).
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from yupana.arrays import Floats
from yupana.estimate.districts.balance import Chance, Rule
from yupana.files.arrow import ArrowTable


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DistrictEstimates:
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
    rule: Rule
    tolerance: Fraction
    level: Fraction
    departures: dict[str, float]
    chance: Chance
    tightened: float | None
    notes: tuple[str, ...]

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
            "notes": list(self.notes),
        }

    def table(self) -> ArrowTable:
        """Tabulate them, with a row for each district."""
        return ArrowTable.of(
            {name: ("VARCHAR" if name == "district" else "DOUBLE", values) for name, values in self.columns().items()}
        )

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Hand out a capsule with a stream of the rows of `table`."""
        return self.table().__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        """How many districts there are."""
        return len(self.districts)

    def __repr__(self) -> str:
        return f"<{len(self)} districts of {self.product}: balanced with chance {self.chance.value:.4f}>"
