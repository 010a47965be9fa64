"""What the measurements of both SafeTab products have in common: their sensitivity, by iteration level and areas."""

from fractions import Fraction
from typing import Final, Literal

from hollerith.plan.measurement import Sensitivity
from hollerith.populations.iterations import CharacteristicIterations
from hollerith.populations.regions import Level

DEFAULT_CONFIDENCE: Final = Fraction(95, 100)

Accounting = Literal["published", "tight"]


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
