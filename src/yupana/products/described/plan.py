"""From a description to the plan of a run: no data needed. Public."""

from fractions import Fraction

from yupana.errors import ConfigError
from yupana.plan.margin import Margins
from yupana.plan.measurement import Accounting, Measurement, Sensitivity
from yupana.plan.plan import Neighbours, Plan
from yupana.products.described.description import DescribedLevel, DescribedTable, Description
from yupana.products.described.stability import overlap, sensitivity, stability


def make_plan(
    description: Description,
    *,
    accounting: Accounting = "published",
    confidence: Fraction | None = None,
    margins: Margins = "exact",
) -> Plan:
    """Plan a run: one measurement per table and level with a budget above zero, composed sequentially.

    The run satisfies rho-zCDP (epsilon-DP under pure DP) under the neighbours of the description, with rho the sum of
    the budgets (docs/tables-privacy.md, theorem 3).

    Parameters
    ----------
    description : Description
    accounting : "published" or "tight"
        Scale the noise to the sensitivities that the description states, where it does, or to the derived ones.
    confidence : Fraction, optional
        Of the margins of error; that of the description if not given.
    margins : "exact" or "bureau"
        How margins of error are computed.
    """
    return Plan(
        product=description.name,
        privacy_unit=description.privacy_unit,
        neighbours=description.neighbours,
        accounting=accounting,
        confidence=confidence or description.confidence,
        mechanism=description.mechanism,
        measurements=tuple(
            _measurement(description, table, level, budget, accounting)
            for table in description.tables
            for level in table.levels
            if (budget := table.budgets[level.name]) > 0
        ),
        margins=margins,
    )


def scales(table: DescribedTable, level: DescribedLevel, derived: Sensitivity, accounting: Accounting) -> Sensitivity:
    """The sensitivities that the noise of a table at a level is scaled to: the derived, or those it states.

    Raises
    ------
    ConfigError
        If the description states smaller ones than the derived.
    """
    stated = table.stated
    if stated is None:
        return derived
    if stated.unbounded < derived.unbounded or stated.bounded < derived.bounded:
        raise ConfigError(
            f"tables.{table.name}.stated: must be at least what is derived, unbounded {derived.unbounded} and bounded "
            f"{derived.bounded} at level {level.name}"
        )
    return derived if accounting == "tight" else stated


def proven(description: Description, table: DescribedTable, level: DescribedLevel) -> Sensitivity:
    """The sensitivities of a table at a level that are derived."""
    cells = overlap(description, table, level).cells
    return sensitivity(stability(description, table, level), cells, description.mechanism)


def calibration(description: Description, scale: Sensitivity) -> Fraction:
    """Which sensitivity noise is scaled to: that under the description's neighbours."""
    return scale.unbounded if description.neighbours is Neighbours.UNBOUNDED else scale.bounded


def _measurement(
    description: Description,
    table: DescribedTable,
    level: DescribedLevel,
    budget: Fraction | float,
    accounting: Accounting,
) -> Measurement:
    derived = proven(description, table, level)
    scale = scales(table, level, derived, accounting)
    return Measurement(
        name=f"{table.name}/{level.name}",
        table=table.name,
        level=level.name,
        cells=len(table.cells),
        mechanism=description.mechanism,
        calibration=calibration(description, scale),
        sensitivity=scale,
        proven=derived,
        budget=budget,
    )
