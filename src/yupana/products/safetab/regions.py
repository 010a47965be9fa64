"""Region types of SafeTab: what areas of one kind are called, what blocks make them, which pass they belong to."""

from dataclasses import dataclass, replace
from typing import Final, Literal

from yupana.geography.block_file import BlockAreas, BlockColumn

Run = Literal["us", "pr"]
Granularity = Literal["detailed", "coarse"]

US: Final[Run] = "us"
PR: Final[Run] = "pr"

NO_PLACE: Final = 99999
NO_AIANNH: Final = 9999

_STATE, _COUNTY, _TRACT = BlockColumn("TABBLKST", 2), BlockColumn("TABBLKCOU", 3), BlockColumn("TABTRACTCE", 6)
_PLACE, _AIANNH = BlockColumn("PLACEFP", 5), BlockColumn("AIANNHCE", 4)
_AREAS: Final = {
    areas.name: areas
    for areas in (
        BlockAreas("nation", (), "1"),
        BlockAreas("state", (_STATE,)),
        BlockAreas("county", (_STATE, _COUNTY)),
        BlockAreas("tract", (_STATE, _COUNTY, _TRACT)),
        BlockAreas("place", (_STATE, _PLACE), nowhere={_PLACE.name: NO_PLACE}),
        BlockAreas("aiannh", (_AIANNH,), nowhere={_AIANNH.name: NO_AIANNH}),
    )
}


@dataclass(frozen=True, slots=True)
class RegionType:
    """One kind of area."""

    name: str  # REGION_TYPE of the tables, such as `PR-COUNTY`
    run: Run  # the pass it is tabulated in; the two passes are over disjoint records
    base: str  # the kind of area without the pass: `nation`, `state`, `county`, `tract`, `place` or `aiannh`

    @property
    def areas(self) -> BlockAreas:
        """How its areas are made of blocks."""
        return replace(_AREAS[self.base], name=self.name)

    @property
    def width(self) -> int:
        """Digits of REGION_ID."""
        return self.areas.width

    @property
    def key(self) -> str:
        """As the keys of a configuration write it: ``pr_county``."""
        return self.name.lower().replace("-", "_")

    @property
    def granularity(self) -> Granularity:
        """Nation and states have the detailed-only iterations; all others the coarse-only ones."""
        return "detailed" if self.base in {"nation", "state"} else "coarse"


REGION_TYPES: Final = (
    RegionType("USA", US, "nation"),
    RegionType("STATE", US, "state"),
    RegionType("COUNTY", US, "county"),
    RegionType("TRACT", US, "tract"),
    RegionType("PLACE", US, "place"),
    RegionType("AIANNH", US, "aiannh"),
    RegionType("PR-STATE", PR, "state"),
    RegionType("PR-COUNTY", PR, "county"),
    RegionType("PR-TRACT", PR, "tract"),
    RegionType("PR-PLACE", PR, "place"),
)
"""In the order in which they are measured and written."""

PUERTO_RICO: Final = "72"
"""Its state code."""

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

BY_NAME: Final = {level.name: level for level in LEVELS}
