"""From a configuration and the code files to the plan of a SafeTab-H run: no data needed."""

from fractions import Fraction

from hollerith.plan.measurement import Measurement
from hollerith.plan.plan import Neighbours, Plan
from hollerith.populations.household_tables import FAMILIES, Family
from hollerith.populations.iterations import CharacteristicIterations
from hollerith.populations.regions import Level
from hollerith.products.safetab.plan import DEFAULT_CONFIDENCE, Accounting, sensitivity
from hollerith.products.safetab_h.config import Config


def measurement_name(family: Family, level: Level) -> str:
    """Name of a measurement: ``T03/COUNTY 2``."""
    return f"{family.name}/{level.name}"


def make_plan(
    config: Config,
    iterations: CharacteristicIterations,
    *,
    accounting: Accounting = "published",
    confidence: Fraction = DEFAULT_CONFIDENCE,
) -> Plan:
    """Plan a run: household types and tenure at each level with a budget above zero.

    Each pass satisfies rho-zCDP (epsilon-DP under pure DP) under addition or removal of one household record, with rho
    the sum of its budgets (SafeTab-H, theorems 1 and 2; docs/safetab-privacy.md).

    Parameters
    ----------
    config : Config
    iterations : CharacteristicIterations
    accounting : "published" or "tight"
        Which sensitivities the noise is scaled to.
    confidence : Fraction
        Of the margins of error.
    """
    most = config.settings.max_race_codes
    measurements = [
        Measurement(
            name=measurement_name(family, level),
            table=family.name,
            level=level.name,
            cells=family.cells,
            mechanism=config.settings.mechanism,
            calibration=sensitivity(iterations, level, most, accounting).unbounded,
            sensitivity=sensitivity(iterations, level, most, accounting),
            proven=sensitivity(iterations, level, most, "tight"),
            budget=config.budgets[family.key, level],
            composition=f"pass:{level.region.run}",
        )
        for level in config.settings.levels
        for family in FAMILIES
        if config.budgets[family.key, level] > 0
        and iterations.eligible(level.iteration_level, level.region.granularity).iterations
    ]
    return Plan(
        product="safetab-h",
        privacy_unit="household record",
        neighbours=Neighbours.UNBOUNDED,
        accounting=accounting,
        confidence=confidence,
        mechanism=config.settings.mechanism,
        measurements=tuple(measurements),
    )
