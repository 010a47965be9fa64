"""Primary suppression: counts below a threshold are not published, all others as they are."""

from dataclasses import dataclass

import numpy as np

from yupana.arrays import Ints
from yupana.errors import ConfigError
from yupana.products.disclosure_control.method import Chances, Method, Shown


@dataclass(frozen=True, slots=True)
class Suppression(Method):
    """Counts from 1 to below - 1 are left out; 0 is published. No further counts are left out to protect these.

    Raises
    ------
    ConfigError
        If the threshold is below 2, which leaves out nothing, or above 1,000.

    Source
    ------
    Handbook on Statistical Disclosure Control (ESSnet), minimum frequency rule.
    """

    below: int = 3

    def __post_init__(self) -> None:
        if not 2 <= self.below <= 1000:
            raise ConfigError(f"{self.name}: must be from 2, below which no count is left out, to 1,000")

    @property
    def name(self) -> str:
        """``suppression:below=3``."""
        return f"suppression:below={self.below}"

    @property
    def title(self) -> str:
        """In words."""
        return f"Counts below {self.below} left out"

    def publish(self, counts: Ints) -> Shown:
        """Leave out small counts; what stands in their place is 0."""
        small = (counts > 0) & (counts < self.below)
        return Shown(np.where(small, 0, counts), ~small)

    def bounds(self, shown: Shown) -> tuple[Ints, Ints]:
        """Exact where published, else below the threshold."""
        return np.where(shown.flags, shown.values, 1), np.where(shown.flags, shown.values, self.below - 1)

    def chances(self, value: int | None) -> Chances:
        """A count that is left out is any below the threshold."""
        return Chances(1, np.ones(self.below - 1)) if value is None else Chances(value, np.ones(1))
