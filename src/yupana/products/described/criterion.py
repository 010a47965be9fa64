"""An acceptance criterion of a description: how far from the truth which rows of a table may be. Public."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class Criterion:
    """A quantile of the errors of some rows of a table, as measured, that shall be small, with some chance.

    Of n errors the quantile q is the smallest value that at least q n of them do not pass: 1 is their maximum.

    Attributes
    ----------
    name : str
    table, level : str
        A published table, or one of its margins or sums, and a level with a budget.
    rows : mapping of column to tuple of str
        What rows say in some columns; all rows where empty.
    at_least : int
        The smallest true count of a row.
    at_most : int or None
        The largest one; None where there is no bound.
    fewest : int
        How many rows of the size there are at least, as is publicly known.
    relative : bool
        Whether errors are shares of the true count.
    quantile : Fraction
        Above 0, at most 1.
    most : Fraction
        In records, or as a share.
    chance : Fraction
        Over the noise, strictly between 0 and 1.
    """

    name: str
    table: str
    level: str
    rows: Mapping[str, tuple[str, ...]]
    at_least: int
    at_most: int | None
    fewest: int
    relative: bool
    quantile: Fraction
    most: Fraction
    chance: Fraction

    @property
    def by_size(self) -> bool:
        """Whether the truth decides which rows it is about."""
        return self.at_least > 0 or self.at_most is not None

    @property
    def words(self) -> str:
        """What it says, in a sentence."""
        share = f"{float(100 * self.quantile):g}"
        of = {Fraction(1): "the largest", Fraction(1, 2): "the median"}.get(
            self.quantile, f"the {share}% quantile of the"
        )
        said = "; ".join(f"{column} {' or '.join(labels)}" for column, labels in self.rows.items())
        rows = f" ({said})" if said else ""
        least = [f"at least {self.at_least:,}"] if self.at_least else []
        most = [] if self.at_most is None else [f"at most {self.at_most:,}"]
        size = f" where the true count is {' and '.join(least + most)}" if self.by_size else ""
        fewest = f", as it is of {self.fewest:,} rows or more," if self.fewest > 1 else ""
        limit = f"{float(100 * self.most):g}%" if self.relative else f"{float(self.most):g}"
        kind = "relative error" if self.relative else "error"
        return (
            f"{of} {kind} of {self.table} by {self.level}{rows}{size}{fewest} is at most {limit}, "
            f"with a chance of {float(100 * self.chance):g}%"
        )
