"""What the measurements of both SafeTab products have in common: their sensitivity, by iteration level and areas."""

from dataclasses import dataclass
from fractions import Fraction

from yupana.plan.measurement import Accounting, Measurement, Mechanism, PersonSensitivity, Sensitivity
from yupana.privacy.exact import Budget
from yupana.products.safetab.configuration import Settings
from yupana.products.safetab.iterations import CharacteristicIterations
from yupana.products.safetab.regions import Level


def sensitivity(
    iterations: CharacteristicIterations, level: Level, race_codes: int, accounting: Accounting
) -> Sensitivity:
    """How far one record moves the counts of a level: squared L2 under zCDP and L1 under pure DP are the same number.

    A record lies in one area of a kind and in at most s iterations, and is one of the count in one cell of each of
    these groups. Removing it moves s cells by one; changing it moves at most 2s (docs/safetab-privacy.md).

    Parameters
    ----------
    iterations : CharacteristicIterations
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


def level_plan(
    settings: Settings, iterations: CharacteristicIterations, level: Level, accounting: Accounting
) -> LevelPlan:
    """What the measurements of a level have in common, by its iterations."""
    promised = sensitivity(iterations, level, settings.max_race_codes, accounting)
    proven = sensitivity(iterations, level, settings.max_race_codes, "tight")
    return LevelPlan(level, settings.mechanism, promised, proven)
