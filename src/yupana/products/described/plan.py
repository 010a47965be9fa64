"""From a description to the plan of a run: no data needed. Public."""

from collections.abc import Iterator, Mapping
from fractions import Fraction

from yupana.errors import ConfigError
from yupana.plan.budgets import budget_for_margin
from yupana.plan.measurement import Accounting, Margins, Measurement, Sensitivity
from yupana.plan.plan import Neighbours, Plan
from yupana.privacy.exact import Budget
from yupana.products.described.description import DescribedLevel, DescribedTable, Description
from yupana.products.described.stability import derive, moves_by_one
from yupana.products.described.tables import coarsest_name, families_of, groups_of, total_name


def make_plan(
    description: Description,
    *,
    accounting: Accounting = "published",
    confidence: Fraction | None = None,
    margins: Margins = "exact",
) -> Plan:
    """Plan a run: what each table and level with a budget above zero measures, composed sequentially.

    The run satisfies rho-zCDP (epsilon-DP under pure DP) under the neighbours of the description, with rho the sum of
    the budgets (docs/tables-privacy.md, theorems 3 and 4).

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
            measurement
            for table in description.tables
            for level in table.levels
            if (budget := table.budgets[level.name]) > 0
            for measurement in _measurements(description, table, level, budget, accounting)
        ),
        margins=margins,
    )


def budgets_for_margins(description: Description, wanted: Mapping[str, Fraction]) -> dict[str, Budget]:
    """The least budgets by which margins of error of single cells are kept, at the description's confidence.

    Margins are exact ones, and noise is scaled to what the description states (`yupana.plan.budgets`).

    Parameters
    ----------
    description : Description
    wanted : mapping of ``table/level`` to Fraction
        Margins, in records.
    """
    found: dict[str, Budget] = {}
    for table in description.tables:
        for level in table.levels:
            margin = wanted.get(f"{table.name}/{level.name}")
            if margin is not None:
                scale = scales(table, level, proven(description, table, level), "published")
                one = calibration(description, scale)
                budget = budget_for_margin(margin, one, description.confidence, description.mechanism)
                found[f"{table.name}/{level.name}"] = budget / share_of_cells(table, level)
    return found


def share_of_cells(table: DescribedTable, level: DescribedLevel) -> Fraction:
    """Which share of a budget the published cells have that have least of it."""
    shared = table.detail and groups_of(table, level, coarsest=False)
    return 1 - table.detail.share if table.detail and shared else Fraction(1)


def scales(table: DescribedTable, level: DescribedLevel, derived: Sensitivity, accounting: Accounting) -> Sensitivity:
    """The sensitivities that the noise of a table at a level is scaled to: the derived, or those it states.

    Raises
    ------
    ConfigError
        If the description states smaller ones than the derived.
    """
    stated = table.stated.get(level.name)
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
    return derive(description, table, level).sensitivity


def calibration(description: Description, scale: Sensitivity) -> Fraction:
    """Which sensitivity noise is scaled to: that under the description's neighbours."""
    return scale.unbounded if description.neighbours is Neighbours.UNBOUNDED else scale.bounded


def _measurements(
    description: Description, table: DescribedTable, level: DescribedLevel, budget: Budget, accounting: Accounting
) -> Iterator[Measurement]:
    """One measurement; of a table with detail the totals that decide it, and the counts of groups that have none."""
    derived = proven(description, table, level)
    scale = scales(table, level, derived, accounting)
    by_one = moves_by_one(description, table, level)

    def measure(what: str, cells: int, part: Budget, branch: str = "") -> Measurement:
        return Measurement(
            name=f"{what}/{level.name}",
            table=what,
            level=level.name,
            cells=cells,
            mechanism=description.mechanism,
            calibration=calibration(description, scale),
            sensitivity=scale,
            proven=derived,
            budget=part,
            composition=f"{table.name} {level.name}:{branch}" if branch else "",
            by_one=by_one,
        )

    if table.detail is None:
        yield measure(table.name, len(table.cells), budget)
        return
    for_total, for_cells = table.detail.budgets(budget)
    # A record is in so many groups of both kinds together; so the two do not add (theorem 4).
    both = groups_of(table, level, coarsest=True) and groups_of(table, level, coarsest=False)
    if groups_of(table, level, coarsest=True):
        coarsest = families_of(table)[1].measured
        yield measure(coarsest_name(table), coarsest, budget, "coarsest" if both else "")
    if groups_of(table, level, coarsest=False):
        branch = "chosen" if both else ""
        if not table.detail.published:
            yield measure(total_name(table), 1, for_total, branch)
        yield measure(table.name, len(table.cells), for_cells, branch)
