"""Region types of SafeTab: what areas of one kind are called, how their ids are written, which pass they belong to."""

from dataclasses import dataclass
from typing import Final, Literal

from yupana.arrays import Ints

Run = Literal["us", "pr"]
Granularity = Literal["detailed", "coarse"]

US: Final[Run] = "us"
PR: Final[Run] = "pr"


@dataclass(frozen=True, slots=True)
class RegionType:
    """One kind of area.

    Attributes
    ----------
    name : str
        REGION_TYPE of the tables, such as ``PR-COUNTY``.
    run : "us" or "pr"
        The pass it is tabulated in; the two passes are over disjoint records.
    base : str
        The kind of area without the pass: ``nation``, ``state``, ``county``, ``tract``, ``place`` or ``aiannh``.
    width : int
        Digits of REGION_ID.
    """

    name: str
    run: Run
    base: str
    width: int

    @property
    def key(self) -> str:
        """As the keys of a configuration write it: ``pr_county``."""
        return self.name.lower().replace("-", "_")

    @property
    def granularity(self) -> Granularity:
        """Nation and states have the detailed-only iterations; all others the coarse-only ones."""
        return "detailed" if self.base in {"nation", "state"} else "coarse"

    def written(self, numbers: Ints) -> list[str]:
        """Areas as REGION_ID writes them."""
        return [str(number).zfill(self.width) for number in numbers.tolist()]


REGION_TYPES: Final = (
    RegionType("USA", US, "nation", 1),
    RegionType("STATE", US, "state", 2),
    RegionType("COUNTY", US, "county", 5),
    RegionType("TRACT", US, "tract", 11),
    RegionType("PLACE", US, "place", 7),
    RegionType("AIANNH", US, "aiannh", 4),
    RegionType("PR-STATE", PR, "state", 2),
    RegionType("PR-COUNTY", PR, "county", 5),
    RegionType("PR-TRACT", PR, "tract", 11),
    RegionType("PR-PLACE", PR, "place", 7),
)
"""In the order in which they are measured and written."""

PUERTO_RICO: Final = "72"
"""Its state code."""

NO_PLACE: Final = 99999
NO_AIANNH: Final = 9999

ITERATION_LEVELS: Final = (1, 2)
"""Regional and detailed; level 0, major race, is never tabulated."""


@dataclass(frozen=True, slots=True)
class Level:
    """A population-group level: areas of one kind and iterations of one level, such as ``COUNTY 2``."""

    region: RegionType
    iteration_level: int

    @property
    def name(self) -> str:
        """As plans write it."""
        return f"{self.region.name} {self.iteration_level}"

    @property
    def threshold_key(self) -> str:
        """As the thresholds of a configuration write it: ``(COUNTY, 2)``."""
        return f"({self.region.name}, {self.iteration_level})"

    @property
    def budget_key(self) -> str:
        """The end of a budget's key: ``level_2_county``."""
        return f"level_{self.iteration_level}_{self.region.key}"


LEVELS: Final = tuple(Level(region, level) for region in REGION_TYPES for level in ITERATION_LEVELS)
