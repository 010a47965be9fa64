"""What the tables of both SafeTab products share: written areas, variances and margins of error. Public."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from yupana.arrays import Ints
from yupana.plan.measurement import Measurement
from yupana.plan.plan import Plan
from yupana.products.safetab.regions import REGION_TYPES, Level, Run


@dataclass(frozen=True, eq=False)
class AreaCodes:
    """All areas of a run as tables write them.

    Attributes
    ----------
    ids, types : sequence of str
        REGION_ID and REGION_TYPE of every area, kind after kind.
    first : mapping of REGION_TYPE to int
        Where the areas of a kind begin.
    """

    ids: Sequence[str]
    types: Sequence[str]
    first: Mapping[str, int]

    @staticmethod
    def of(ids: Mapping[tuple[Run, str], Ints]) -> "AreaCodes":
        """Write areas, given as numbers by pass and kind."""
        texts: list[str] = []
        types: list[str] = []
        first: dict[str, int] = {}
        for region in REGION_TYPES:
            found = ids.get((region.run, region.base))
            if found is not None:
                first[region.name] = len(texts)
                texts += [str(number).zfill(region.width) for number in found.tolist()]
                types += [region.name] * len(found)
        return AreaCodes(texts, types, first)

    def places(self, level: Level, areas: Ints) -> Ints:
        """Places among all areas, of areas given by their place in their kind."""
        return areas + self.first[level.region.name]


@dataclass(slots=True)
class Variances:
    """The few variances of a release, each listed once with its margin of error.

    Attributes
    ----------
    plan : Plan
        Of the margins of error.
    """

    plan: Plan
    _found: dict[tuple[Measurement, int], int] = field(default_factory=dict)

    def place(self, measurement: Measurement, cells: int) -> int:
        """Where the variance of a sum of so many cells of a measurement stands in the list."""
        return self._found.setdefault((measurement, cells), len(self._found))

    @property
    def values(self) -> list[float]:
        """The variances as decimals."""
        return [float(measurement.variance * cells) for measurement, cells in self._found]

    @property
    def margins(self) -> list[float]:
        """Their margins of error."""
        return [self.plan.margin(measurement, cells) for measurement, cells in self._found]
