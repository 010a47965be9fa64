"""Targeted record swapping: risky records change areas with partners, and the counts are published as they then are."""

from dataclasses import dataclass
from fractions import Fraction

from yupana.errors import ConfigError
from yupana.products.disclosure_control.method import Method


@dataclass(frozen=True, slots=True)
class Swapping(Method):
    """Risky records, and others until a share of all is reached, change areas with partners of the same size.

    Attributes
    ----------
    rate : Fraction
        Of the records that are swapped, at least; all risky ones are.
    below : int
        k: a record is risky if it counts in an area in a cell of fewer records.

    Raises
    ------
    ConfigError
        If the rate is not from 0 to 1, or k from 0 to 1,000.

    Source
    ------
    Handbook on Statistical Disclosure Control (ESSnet), targeted record swapping; the defaults are those of recordSwap
    in the R package sdcMicro.
    """

    rate: Fraction = Fraction(1, 20)
    below: int = 3

    def __post_init__(self) -> None:
        if not (0 <= self.rate <= 1 and 0 <= self.below <= 1000):
            raise ConfigError(f"{self.name}: rate must be from 0 to 1, and k from 0 to 1,000")

    @property
    def name(self) -> str:
        """``swapping:rate=1/20:k=3``."""
        return f"swapping:rate={self.rate}:k={self.below}"

    @property
    def title(self) -> str:
        """In words."""
        return f"Targeted swapping, {float(100 * self.rate):g}%, k = {self.below}"
