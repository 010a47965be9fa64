"""From a configuration to the plan of a PHSafe run: no data needed."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from yupana.plan.measurement import Accounting, Margins, Measurement, Mechanism, Sensitivity, of_own_record
from yupana.plan.plan import Neighbours, Plan
from yupana.privacy.exact import Budget
from yupana.products.census import STATES
from yupana.products.phsafe.configuration import PhsafeConfig

DEFAULT_CONFIDENCE: Final = Fraction(9, 10)


def sensitivity_of(tau: int | None, mechanism: Mechanism, accounting: Accounting) -> Sensitivity:
    """How far the count vector of one level moves: squared L2 under zCDP, L1 under pure DP.

    ``published`` is the paper's: stability 2 tau + 2 of the truncated join (2 for units), its square under zCDP,
    and a factor 2 for an arbitrary change (PHSafe, lemma 6 and theorems 1 to 4). ``tight`` compares non-negative
    vectors of sum at most tau before and after, of one household, or of two for an arbitrary change
    (docs/phsafe-privacy.md). What is derived of the description alone may be less: a rule of consistency can drop a
    whole household because of one person.

    Parameters
    ----------
    tau : int or None
        Truncation threshold; None for a table of units.
    mechanism : Mechanism
    accounting : "published" or "tight"
    """
    if accounting == "published":
        stability = 2 if tau is None else 2 * tau + 2
        one = Fraction(stability**mechanism.power)
        return Sensitivity(unbounded=one, bounded=2 * one, same_household=2 * one)
    most = 1 if tau is None else tau
    one = Fraction(2 * most**mechanism.power)
    return Sensitivity(unbounded=one, bounded=2**mechanism.power * one, same_household=one)


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
        Which sensitivities the noise is scaled to (`sensitivity_of`).
    confidence : Fraction
        Of the margins of error.
    margins : "exact" or "bureau"
        How margins of error are computed.
    """
    mechanism, measurements = config.mechanism, list[Measurement]()
    for table in config.tables:
        tau = table.limit.most if table.limit else None
        sensitivity = sensitivity_of(tau, mechanism, accounting)
        proven = sensitivity_of(tau, mechanism, "tight")
        measurements += [
            Measurement(
                name=f"{table.name}/{level.name}",
                table=table.name,
                level=level.name,
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
            if (budget := table.budgets[level.name]) > 0
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


def plan_of(
    budgets: Mapping[str, Budget],
    taus: Mapping[str, int],
    mechanism: Mechanism,
    *,
    accounting: Accounting = "published",
    confidence: Fraction = DEFAULT_CONFIDENCE,
    margins: Margins = "exact",
) -> Plan:
    """Plan a run from its numbers alone; see `make_plan`."""
    config = PhsafeConfig.of(budgets, taus, STATES, mechanism)
    return make_plan(config, accounting=accounting, confidence=confidence, margins=margins)
