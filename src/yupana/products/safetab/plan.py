"""What the measurements of both SafeTab products have in common: their sensitivity, by iteration level and areas."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Protocol

from yupana.plan.measurement import Accounting, Measurement, Mechanism, PersonSensitivity, Sensitivity
from yupana.plan.plan import Plan
from yupana.privacy.exact import Budget
from yupana.products.safetab.configuration import Settings
from yupana.products.safetab.regions import LEVELS, Granularity, Level

DETAILED_ONLY: Final = "detailed-only"
"""How the measurement of iterations is called of which only totals are made."""


class ShownIteration(Protocol):
    """An iteration, as far as a plan depends on it."""

    @property
    def detailed_only(self) -> bool:
        """Whether only its totals are made."""
        ...


class EligibleIterations(Protocol):
    """The iterations of one level that areas of one granularity show, as far as a plan depends on them."""

    @property
    def iterations(self) -> Sequence[ShownIteration]:
        """All of them."""
        ...

    def published_stability(self, race_codes: int) -> int:
        """Most iterations a record can be in, as the originals bound it."""
        ...

    def stability(self, race_codes: int) -> int:
        """Most iterations a record can be in, exactly."""
        ...


class Iterations(Protocol):
    """What a plan follows from beside the configuration: the code files, or another plan that was made of them."""

    def eligible(self, level: int, granularity: Granularity) -> EligibleIterations:
        """Iterations of a level that areas of a granularity show."""
        ...


@dataclass(frozen=True, slots=True)
class _ShownOfPlan:
    detailed_only: bool


@dataclass(frozen=True, slots=True)
class _EligibleOfPlan:
    """Iterations as the measurements of one plan tell them; all levels of areas that show the same must agree."""

    iterations: Sequence[_ShownOfPlan] = ()
    promised: int = 0
    proven: int = 0

    def published_stability(self, race_codes: int) -> int:
        del race_codes
        return self.promised

    def stability(self, race_codes: int) -> int:
        del race_codes
        return self.proven


@dataclass(frozen=True, slots=True)
class _IterationsOfPlan:
    by_level: Mapping[tuple[int, Granularity], _EligibleOfPlan]

    def eligible(self, level: int, granularity: Granularity) -> _EligibleOfPlan:
        return self.by_level.get((level, granularity), _EligibleOfPlan())


def iterations_of(plan: Plan) -> Iterations:
    """What a plan of either product tells of the iterations that it was made of.

    The plan that the configuration makes of them is the same, or the plan is not one of the configuration.

    Raises
    ------
    ValueError
        If a measurement is of no level of SafeTab, or moved by no whole number.
    """
    levels = {level.name: level for level in LEVELS}
    found: dict[tuple[int, Granularity], _EligibleOfPlan] = {}
    for m in plan.measurements:
        if m.level not in levels or m.calibration.denominator != 1 or m.proven.unbounded.denominator != 1:
            raise ValueError(f"{m.name} is no measurement of SafeTab")
        level = levels[m.level]
        key = (level.iteration_level, level.region.granularity)
        shown = _ShownOfPlan(m.name.startswith(f"{DETAILED_ONLY}/"))
        before = found.get(key, _EligibleOfPlan())
        found[key] = _EligibleOfPlan((*before.iterations, shown), int(m.calibration), int(m.proven.unbounded))
    return _IterationsOfPlan(found)


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


@dataclass(frozen=True, slots=True)
class LevelPlan:
    """What the measurements of a level have in common.

    Attributes
    ----------
    level : Level
    mechanism : Mechanism
    promised, proven : Sensitivity
        What one record does to the counts: as the noise is scaled to it, and at most.
    """

    level: Level
    mechanism: Mechanism
    promised: Sensitivity
    proven: Sensitivity

    def measurement(
        self, name: str, table: str, cells: int, budget: Budget, person: PersonSensitivity, branch: str = ""
    ) -> Measurement:
        """One measurement: ``branch`` names its place in the composition within its pass, where it has one."""
        return Measurement(
            name=name,
            table=table,
            level=self.level.name,
            cells=cells,
            mechanism=self.mechanism,
            calibration=self.promised.unbounded,
            sensitivity=self.promised,
            proven=self.proven,
            budget=budget,
            composition=f"pass:{self.level.region.run}" + (f"/{branch}" if branch else ""),
            person=person,
            by_one=True,
        )


def level_plan(settings: Settings, iterations: Iterations, level: Level, accounting: Accounting) -> LevelPlan:
    """What the measurements of a level have in common, by its iterations."""
    promised = sensitivity(iterations, level, settings.max_race_codes, accounting)
    proven = sensitivity(iterations, level, settings.max_race_codes, "tight")
    return LevelPlan(level, settings.mechanism, promised, proven)
