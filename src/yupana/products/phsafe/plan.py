"""From a configuration to the plan of a PHSafe run: no data needed."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from yupana.plan.margin import Margins
from yupana.plan.measurement import Accounting, Measurement, Mechanism, of_own_record
from yupana.plan.plan import Neighbours, Plan
from yupana.privacy.exact import Budget
from yupana.products.phsafe.configuration import PhsafeConfig
from yupana.products.phsafe.specification import TABLES

DEFAULT_CONFIDENCE: Final = Fraction(9, 10)


def make_plan(
    config: PhsafeConfig,
    *,
    accounting: Accounting = "published",
    confidence: Fraction = DEFAULT_CONFIDENCE,
    margins: Margins = "exact",
) -> Plan:
    """Plan a run: one measurement per table and level with a budget above zero, composed sequentially.

    The run satisfies rho-zCDP (epsilon-DP under pure DP) under addition or removal of one person record, with rho the
    sum of the budgets (PHSafe, theorems 1 and 2; docs/phsafe-privacy.md).

    Parameters
    ----------
    config : PhsafeConfig
    accounting : "published" or "tight"
        Which sensitivities the noise is scaled to (`Table.sensitivity`).
    confidence : Fraction
        Of the margins of error.
    margins : "exact" or "bureau"
        How margins of error are computed.
    """
    return plan_of(
        config.budgets, config.taus, config.mechanism, accounting=accounting, confidence=confidence, margins=margins
    )


def plan_of(
    budgets: Mapping[tuple[str, str], Budget],
    taus: Mapping[str, int],
    mechanism: Mechanism,
    *,
    accounting: Accounting = "published",
    confidence: Fraction = DEFAULT_CONFIDENCE,
    margins: Margins = "exact",
) -> Plan:
    """Plan a run from its numbers alone; see `make_plan`."""
    measurements = []
    for table in TABLES:
        tau = taus.get(table.name) if table.persons is not None else None
        sensitivity = table.sensitivity(tau, mechanism, accounting)
        proven = table.sensitivity(tau, mechanism, "tight")
        measurements += [
            Measurement(
                name=f"{table.name}/{level.key}",
                table=table.name,
                level=level.key,
                cells=len(table.cells),
                mechanism=mechanism,
                calibration=sensitivity.unbounded,
                sensitivity=sensitivity,
                proven=proven,
                budget=budget,
                # A unit's record counts as its members' own: the bounds are those of a household that changes whole.
                person=of_own_record(sensitivity),
            )
            for level in table.levels
            if (budget := budgets[table.name, level.key]) > 0
        ]
    return Plan(
        product="phsafe",
        privacy_unit="person record",
        neighbours=Neighbours.UNBOUNDED,
        accounting=accounting,
        confidence=confidence,
        mechanism=mechanism,
        measurements=tuple(measurements),
        margins=margins,
    )
