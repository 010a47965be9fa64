"""From a configuration and the code files to the plan of a SafeTab-H run: no data needed."""

from fractions import Fraction

from yupana.plan.margin import Margins
from yupana.plan.measurement import Accounting, of_household_record
from yupana.plan.plan import Plan
from yupana.products.safetab.households.configuration import HouseholdsConfig
from yupana.products.safetab.iterations import CharacteristicIterations
from yupana.products.safetab.plan import DEFAULT_CONFIDENCE, level_measurement, product_plan
from yupana.products.safetab.regions import Level
from yupana.products.safetab.specification import QUESTIONS, HouseholdQuestion


def measurement_name(question: HouseholdQuestion, level: Level) -> str:
    """Name of a measurement: ``T03/COUNTY 2``."""
    return f"{question.name}/{level.name}"


def make_plan(
    config: HouseholdsConfig,
    iterations: CharacteristicIterations,
    *,
    accounting: Accounting = "published",
    confidence: Fraction = DEFAULT_CONFIDENCE,
    margins: Margins = "exact",
) -> Plan:
    """Plan a run: household types and tenure at each level with a budget above zero.

    Each pass satisfies rho-zCDP (epsilon-DP under pure DP) under addition or removal of one household record, with rho
    the sum of its budgets (SafeTab-H, theorems 1 and 2; docs/safetab-privacy.md).

    Parameters
    ----------
    config : HouseholdsConfig
    iterations : CharacteristicIterations
    accounting : "published" or "tight"
        Which sensitivities the noise is scaled to.
    confidence : Fraction
        Of the margins of error.
    margins : "exact" or "bureau"
        How margins of error are computed.
    """
    measurements = [
        level_measurement(
            iterations,
            config.settings,
            level,
            accounting,
            name=measurement_name(question, level),
            table=question.name,
            cells=question.family.measured,
            budget=config.budgets[question.key, level],
            person=lambda record: of_household_record(record, config.settings.mechanism),
        )
        for level in config.settings.levels
        for question in QUESTIONS
        if config.budgets[question.key, level] > 0
        and iterations.eligible(level.iteration_level, level.region.granularity).iterations
    ]
    return product_plan("safetab-h", "household record", config.settings, measurements, accounting, confidence, margins)
