"""What the measurements of both SafeTab products have in common: their sensitivity, by iteration level and areas."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from yupana.plan.measurement import Accounting, Sensitivity
from yupana.plan.plan import Plan
from yupana.plan.responses import ResponseGroup
from yupana.products.safetab.iterations import ETHNICITY, CharacteristicIterations, Eligible, Iteration
from yupana.products.safetab.regions import LEVELS, Granularity, Level
from yupana.products.safetab.specification import DETAILED_ONLY


@dataclass(frozen=True, slots=True)
class EligibleOfPlan:
    """Iterations as the measurements of one plan tell them; all levels of areas that show the same must agree."""

    kinds: frozenset[bool] = frozenset()
    promised: int = 0
    proven: int = 0

    @property
    def iterations(self) -> Sequence[Iteration]:
        """One that stands for those of which totals alone are made, and one for all others."""
        return [
            Iteration(str(only), "", 1, alone=None, detailed_only=only, coarse_only=False)
            for only in sorted(self.kinds)
        ]

    @property
    def groups(self) -> Sequence[ResponseGroup]:
        """Placeholders, too."""
        return [ResponseGroup(ETHNICITY, frozenset({0}))] * len(self.kinds)

    def published_stability(self, race_codes: int) -> int:
        """What noise was scaled to."""
        del race_codes
        return self.promised

    def stability(self, race_codes: int) -> int:
        """What was proven."""
        del race_codes
        return self.proven


@dataclass(frozen=True, slots=True)
class IterationsOfPlan:
    """What a plan tells of the iterations that it was made of: which kinds there are, and how many a record is in."""

    by_level: Mapping[tuple[int, Granularity], EligibleOfPlan]
    codes: tuple[int, ...] = ()

    def eligible(self, level: int, granularity: Granularity) -> EligibleOfPlan:
        """Those of a level that areas of a granularity show."""
        return self.by_level.get((level, granularity), EligibleOfPlan())


EligibleIterations: TypeAlias = Eligible | EligibleOfPlan
Iterations: TypeAlias = CharacteristicIterations | IterationsOfPlan
"""What a plan follows from beside the configuration: the code files, or another plan that was made of them."""


def iterations_of(plan: Plan) -> IterationsOfPlan:
    """What a plan of either product tells of the iterations that it was made of.

    The plan that the configuration makes of them is the same, or the plan is not one of the configuration.

    Raises
    ------
    ValueError
        If a measurement is of no level of SafeTab, or moved by no whole number.
    """
    levels = {level.name: level for level in LEVELS}
    found: dict[tuple[int, Granularity], EligibleOfPlan] = {}
    for m in plan.measurements:
        if m.level not in levels or m.calibration.denominator != 1 or m.proven.unbounded.denominator != 1:
            raise ValueError(f"{m.name} is no measurement of SafeTab")
        level = levels[m.level]
        key = (level.iteration_level, level.region.granularity)
        kinds = found.get(key, EligibleOfPlan()).kinds | {m.name.startswith(f"{DETAILED_ONLY}/")}
        found[key] = EligibleOfPlan(kinds, int(m.calibration), int(m.proven.unbounded))
    return IterationsOfPlan(found)


def sensitivity(iterations: Iterations, level: Level, race_codes: int, accounting: Accounting) -> Sensitivity:
    """How far one record moves the counts of a level: squared L2 under zCDP and L1 under pure DP are the same number.

    A record lies in one area of a kind and in at most s iterations, and is one of the count in one cell of each of
    these groups. Removing it moves s cells by one; changing it moves at most 2s (docs/safetab-privacy.md).

    Parameters
    ----------
    iterations : Iterations
    level : Level
    race_codes : int
        How many race codes of a record count.
    accounting : "published" or "tight"
        s as the originals bound it (9 in production), or the least bound that the code files allow.
    """
    eligible = iterations.eligible(level.iteration_level, level.region.granularity)
    tight = eligible.stability(race_codes)
    # Made-up code files can be worse than the formula, which then does not bound what one record does.
    bound = tight if accounting == "tight" else max(tight, eligible.published_stability(race_codes))
    return Sensitivity(Fraction(bound), Fraction(2 * bound))
