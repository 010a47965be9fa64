"""From a configuration and the code files to the plan of a SafeTab-P run: no data needed."""

from fractions import Fraction
from typing import Final

from yupana.plan.margin import Margins
from yupana.plan.measurement import Accounting, of_own_record
from yupana.plan.plan import Plan
from yupana.privacy.exact import Budget
from yupana.products.safetab.iterations import CharacteristicIterations
from yupana.products.safetab.persons.configuration import PersonsConfig
from yupana.products.safetab.plan import DEFAULT_CONFIDENCE, level_measurement, product_plan
from yupana.products.safetab.regions import Level
from yupana.products.safetab.specification import DETAILED_TOTALS, PERSONS

STAGE_1: Final = "stage 1"
STAGE_2: Final = "stage 2"
DETAILED_ONLY: Final = "detailed-only"


def measurement_name(kind: str, level: Level) -> str:
    """Name of a measurement: ``stage 1/COUNTY 2``."""
    return f"{kind}/{level.name}"


def make_plan(
    config: PersonsConfig,
    iterations: CharacteristicIterations,
    *,
    accounting: Accounting = "published",
    confidence: Fraction = DEFAULT_CONFIDENCE,
    margins: Margins = "exact",
) -> Plan:
    """Plan a run: two stages at each level with a budget above zero, and one total of its detailed-only iterations.

    Each pass satisfies rho-zCDP (epsilon-DP under pure DP) under addition or removal of one person record, with rho
    the sum of the budgets of its levels: of the rows of a record, those of detailed-only iterations meet one
    measurement of the whole budget, and all others two that share it (docs/safetab-privacy.md).

    Parameters
    ----------
    config : PersonsConfig
    iterations : CharacteristicIterations
    accounting : "published" or "tight"
        Which sensitivities the noise is scaled to.
    confidence : Fraction
        Of the margins of error.
    margins : "exact" or "bureau"
        How margins of error are computed.
    """
    measurements = []
    for level in config.settings.levels:
        budget = config.budgets[level]
        if not budget > 0:
            continue
        eligible = iterations.eligible(level.iteration_level, level.region.granularity).iterations
        detailed_only = any(i.detailed_only for i in eligible)
        common = any(not i.detailed_only for i in eligible)
        kinds: dict[str, tuple[bool, str, int, str, Fraction]] = {
            STAGE_1: (common, STAGE_1, 1, "common", config.stage_1),
            STAGE_2: (common, PERSONS.name, PERSONS.measured, "common", 1 - config.stage_1),
            DETAILED_ONLY: (detailed_only, DETAILED_TOTALS.name, 1, DETAILED_ONLY, Fraction(1)),
        }
        measurements += [
            level_measurement(
                iterations,
                config.settings,
                level,
                accounting,
                name=measurement_name(kind, level),
                table=table,
                cells=cells,
                budget=_share(budget, share),
                person=of_own_record,
                branch=f"{level.name}:{branch}",
            )
            for kind, (exists, table, cells, branch, share) in kinds.items()
            if exists
        ]
    return product_plan("safetab-p", "person record", config.settings, measurements, accounting, confidence, margins)


def _share(budget: Budget, share: Fraction) -> Budget:
    return budget * share if isinstance(budget, Fraction) else budget
