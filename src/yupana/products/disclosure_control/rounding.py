"""Random rounding: each count goes to one of the two nearest multiples of a base, so that it is right on average."""

from dataclasses import dataclass

import numpy as np

from yupana.arrays import Ints
from yupana.errors import ConfigError
from yupana.products.disclosure_control.method import Chances, Method, Shown


@dataclass(frozen=True, slots=True)
class RandomRounding(Method):
    """A count with remainder r goes up with chance r / base, and down otherwise; each by itself.

    Raises
    ------
    ConfigError
        If the base is not from 2 to 1,000.

    Source
    ------
    Handbook on Statistical Disclosure Control (ESSnet), section on rounding of frequency tables.
    """

    base: int

    def __post_init__(self) -> None:
        if not 2 <= self.base <= 1000:
            raise ConfigError(f"{self.name}: the base must be from 2 to 1,000")

    @property
    def name(self) -> str:
        """``rounding-3``."""
        return f"rounding-{self.base}"

    @property
    def title(self) -> str:
        """In words."""
        return f"Random rounding to {self.base}"

    def publish(self, counts: Ints, draws: Ints) -> Shown:
        """Round counts; ``draws`` are uniform from 0 to base - 1, one for each."""
        rest = counts % self.base
        return Shown.whole(counts - rest + np.where(draws < rest, self.base, 0))

    def bounds(self, shown: Shown) -> tuple[Ints, Ints]:
        """Less than a base away."""
        return np.maximum(0, shown.values - self.base + 1), shown.values + self.base - 1

    def chances(self, value: int | None) -> Chances:
        """Falling with the distance."""
        value = value or 0
        first = max(0, value - self.base + 1)
        counts = np.arange(first, value + self.base)
        return Chances(first, 1 - np.abs(counts - value) / self.base)
