"""A strategy found, beside the one given: what it makes of the variances, and how near the best it is. Public."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, Literal, TypeVar

import numpy as np

Joined = Literal["sum", "max", "ratio"]
"""Whether the weighted sum of all variances is made least, the largest, or the largest of them over those given."""

C = TypeVar("C")
"""A product's own configuration."""


@dataclass(frozen=True, slots=True)
class TargetVariance:
    """The variance of a target's answers, on the mean, with both strategies; infinite where nothing tells them.

    Attributes
    ----------
    level, target : str
    given, found : float
    weight : float
        Of all its answers together.
    """

    level: str
    target: str
    given: float
    found: float
    weight: float

    @property
    def ratio(self) -> float:
        """Found by given."""
        return self.found / self.given if self.given else 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Strategy(Generic[C]):
    """A strategy found, beside the one given.

    Attributes
    ----------
    given, found
        Configurations of the product.
    rows : tuple of TargetVariance
    given_loss, found_loss : float
        What is made least: with the budgets given, and with those found as they are written.
    bound : float
        No budgets within the limits have a smaller loss.
    """

    given: C
    found: C
    rows: tuple[TargetVariance, ...]
    given_loss: float
    found_loss: float
    bound: float

    @property
    def gap(self) -> float:
        """How far the loss found can be above the least, relative to it."""
        return self.found_loss / self.bound - 1

    @property
    def levels(self) -> Mapping[str, float]:
        """Of each level the weighted sum of variances found, by that of those given."""
        sums = {row.level: np.zeros(2) for row in self.rows}
        for row in self.rows:
            sums[row.level] += row.found * row.weight, row.given * row.weight
        return {level: float(found / given) for level, (found, given) in sums.items()}


def parts_of_one(sizes: Sequence[float], denominator: int) -> list[Fraction]:
    """Shares that sum to 1 exactly: each rounded down to a part of the denominator, and the rest to the largest."""
    whole = sum(sizes)
    parts = [int(size / whole * denominator) for size in sizes]
    parts[int(np.argmax(sizes))] += denominator - sum(parts)
    return [Fraction(part, denominator) for part in parts]


def losses_as_json(strategy: Strategy[Any], level: str) -> dict[str, Any]:
    """Variances, losses and the bound for ``--json``, levels under the name given; infinite variances are null."""

    def finite(value: float) -> float | None:
        return value if np.isfinite(value) else None

    return {
        "targets": [
            {
                level: row.level,
                "target": row.target,
                "variance_given": finite(row.given),
                "variance": finite(row.found),
                "ratio": finite(row.ratio),
            }
            for row in strategy.rows
        ],
        "loss_given": finite(strategy.given_loss),
        "loss": strategy.found_loss,
        "bound": strategy.bound,
        "gap": strategy.gap,
    }
