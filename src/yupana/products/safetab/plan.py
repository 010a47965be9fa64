"""What the measurements of both SafeTab products have in common: their sensitivity, by iteration level and areas."""

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Final

from yupana.plan.margin import Margins
from yupana.plan.measurement import Accounting, Measurement, PersonSensitivity, Sensitivity
from yupana.plan.plan import Neighbours, Plan
from yupana.privacy.exact import Budget
from yupana.products.safetab.configuration import Settings
from yupana.products.safetab.iterations import CharacteristicIterations
from yupana.products.safetab.regions import Level

DEFAULT_CONFIDENCE: Final = Fraction(95, 100)


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


def level_measurement(
    iterations: CharacteristicIterations,
    settings: Settings,
    level: Level,
    accounting: Accounting,
    *,
    name: str,
    table: str,
    cells: int,
    budget: Budget,
    person: Callable[[Sensitivity], PersonSensitivity],
    branch: str = "",
) -> Measurement:
    """One measurement of a level: ``branch`` names its place in the composition within its pass, where it has one.

    ``person`` tells, from the sensitivity to a record, that to a person.
    """
    promised = sensitivity(iterations, level, settings.max_race_codes, accounting)
    return Measurement(
        name=name,
        table=table,
        level=level.name,
        cells=cells,
        mechanism=settings.mechanism,
        calibration=promised.unbounded,
        sensitivity=promised,
        proven=sensitivity(iterations, level, settings.max_race_codes, "tight"),
        budget=budget,
        composition=f"pass:{level.region.run}" + (f"/{branch}" if branch else ""),
        person=person(promised),
    )


def product_plan(
    product: str,
    privacy_unit: str,
    settings: Settings,
    measurements: Iterable[Measurement],
    accounting: Accounting,
    confidence: Fraction,
    margins: Margins,
) -> Plan:
    """The plan of either product, under addition or removal of one of its records."""
    return Plan(
        product=product,
        privacy_unit=privacy_unit,
        neighbours=Neighbours.UNBOUNDED,
        accounting=accounting,
        confidence=confidence,
        mechanism=settings.mechanism,
        measurements=tuple(measurements),
        margins=margins,
    )
