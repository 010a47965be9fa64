"""What a description measures and publishes: its tables, the groups they show, and the plan of a run. Public."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Final, Unpack

from yupana.errors import ConfigError
from yupana.plan.budgets import Entry
from yupana.plan.measurement import Accounting, Measurement, PlanTerms, Sensitivity
from yupana.plan.plan import Neighbours, Plan
from yupana.privacy.exact import Budget
from yupana.products.described.description import DescribedLevel, DescribedTable, Description
from yupana.products.described.postprocess import postprocessed, suppressed
from yupana.products.described.stability import column_move, derive, footprints, moves_by_one
from yupana.products.tables import Cell, Choice, Family, Groups, Table, lay_out
from yupana.products.verify import Key
from yupana.release.recipe import MEASURED
from yupana.release.tables import RowTable

TOTALS_OF: Final = "totals of "
"""How plans call what decides the detail of a table; no table's own name begins so."""

_COARSEST_OF: Final = "coarsest of "


def families(description: Description) -> tuple[Family, ...]:
    """What is published: of each table that is measured its cells, and the tables that add them up."""
    measured = [table for table in description.tables if any(table.budgets.values())]
    return tuple(family for table in measured for family in families_of(table))


def families_of(of: DescribedTable) -> tuple[Family, ...]:
    """The family of a table; where some groups always get the coarsest step of it, theirs stands by itself.

    Raises
    ------
    ConfigError
        If a step does not show cells that hold each cell of the table once.
    """
    keys = ("REGION_ID", "REGION_TYPE", *(["ITERATION_CODE"] if of.has_groups else []))
    shown = {table.name: table for table in _shown(of)}
    if of.detail is None:
        return (Family(of.name, keys, (Choice(tuple(range(len(of.labels))), tuple(shown.values())),), of.numbers),)
    try:
        choices = tuple(_choice([shown[name] for name in step], len(of.cells)) for step in of.detail.steps)
    except ValueError as error:
        raise ConfigError(f"tables.{of.name}.detail.steps: {error}") from None
    if choices[-1].measured != len(of.cells):
        raise ConfigError(f"tables.{of.name}.detail.steps: the last must show every cell of the table by itself")
    every = Family(of.name, keys, choices, of.numbers)
    if not of.detail.coarsest:
        return (every,)
    alone = Choice(tuple(range(choices[0].measured)), choices[0].tables)
    return every, Family(coarsest_name(of), keys, (alone,), of.numbers)


def total_name(of: DescribedTable) -> str:
    """What plans call the totals that decide the detail of a table; they are not published."""
    return of.detail.called[0] if of.detail and of.detail.called[0] else f"{TOTALS_OF}{of.name}"


def table_of(measured: str) -> str:
    """The table of a description that a measurement is made for, by what plans call its own."""
    return measured.removeprefix(TOTALS_OF).removeprefix(_COARSEST_OF)


def coarsest_name(of: DescribedTable) -> str:
    """What plans call the counts of groups that always get the coarsest step of a table."""
    return of.detail.called[1] if of.detail and of.detail.called[1] else f"{_COARSEST_OF}{of.name}"


def _shown(of: DescribedTable) -> Iterator[Table]:
    """The table itself and those that add up its cells."""
    rows = tuple((labels, (i,)) for i, labels in enumerate(of.labels))
    for name, columns, some in ((of.name, of.columns, rows), *((s.name, s.columns, s.rows) for s in of.sums)):
        cells = (Cell(tuple(map(int, labels)) if of.numbered else labels, parts) for labels, parts in some)
        yield Table(name, columns, tuple(cells))


def _choice(tables: Sequence[Table], cells: int) -> Choice:
    """A step: the smallest rows of its first table are measured, and all its tables add them up."""
    first = tables[0]
    parts = list(dict.fromkeys(frozenset(cell.parts) for cell in first.cells))
    smallest = [row for row in parts if not any(other < row for other in parts)]
    if sorted(cell for row in smallest for cell in row) != list(range(cells)):
        raise ValueError(f"the smallest rows of {first.name} must hold each cell of the table once")
    finest = {cell: place for place, row in enumerate(smallest) for cell in row}
    return Choice(
        tuple(finest[cell] for cell in range(cells)), tuple(_coarser(table, finest, smallest) for table in tables)
    )


def _coarser(table: Table, finest: dict[int, int], measured: Sequence[frozenset[int]]) -> Table:
    rows = []
    for cell in table.cells:
        parts = tuple(sorted({finest[part] for part in cell.parts}))
        if sum(len(measured[part]) for part in parts) != len(cell.parts):
            raise ValueError(f"row {' × '.join(map(str, cell.labels))} of {table.name} is no sum of measured cells")
        rows.append(Cell(cell.labels, parts))
    return Table(table.name, table.columns, tuple(rows))


def published_groups(description: Description, family: Family, level: str) -> Iterator[Key]:
    """What the key columns of a family say of each group of a level."""
    for table, of in description.at_levels.values():
        if of.name == level and family.name in {table.name, coarsest_name(table)}:
            shown = groups_of(table, of, coarsest=family.name != table.name)
            for area, group in product(description.areas[of.areas].codes, shown):
                yield (area, of.areas, group)[: len(family.keys)]


def groups_of(table: DescribedTable, level: DescribedLevel, *, coarsest: bool) -> list[str]:
    """The groups of a level that always get the coarsest step of a table, or all others."""
    always = table.detail.coarsest if table.detail else frozenset()
    return [code for code in level.groups if (code in always) == coarsest]


def within(folder: str, family: Family) -> Family:
    """A family whose tables are written in a folder of a release, which their names begin with."""
    choices = (
        replace(choice, tables=tuple(replace(table, name=f"{folder}/{table.name}") for table in choice.tables))
        for choice in family.choices
    )
    return replace(family, choices=tuple(choices))


def published_tables(description: Description, plan: Plan, groups: Sequence[Groups]) -> list[RowTable]:
    """Lay out every table: a row per area, group and cell, zeros included.

    Where the description has something done to noisy counts, the tables as they were measured are there, too.
    """
    asked, kinds = description.postprocess, [*description.areas]
    measured = lay_out(families(description), groups, plan, kinds)
    if not asked:
        return measured
    tables = lay_out(families(description), postprocessed(description, plan, groups), plan, kinds)
    if asked.suppress_below:
        tables = [suppressed(table, asked.suppress_below) for table in tables]
    return [*tables, *(replace(table, name=f"{MEASURED}/{table.name}") for table in measured)]


def make_plan(description: Description, **terms: Unpack[PlanTerms]) -> Plan:
    """Plan a run: what each table and level with a budget above zero measures, composed sequentially.

    The run satisfies rho-zCDP (epsilon-DP under pure DP) under the neighbours of the description, with rho the sum of
    the budgets (docs/tables-privacy.md, theorems 3 and 4).

    Sensitivities are published where the description states them; the confidence is its own if none is given.
    """
    accounting = terms.get("accounting", "published")
    return Plan(
        product=description.name,
        privacy_unit=description.privacy_unit,
        neighbours=description.neighbours,
        accounting=accounting,
        confidence=terms.get("confidence") or description.confidence,
        mechanism=description.mechanism,
        measurements=tuple(
            measurement
            for table, level in description.measured.values()
            for measurement in _measurements(description, table, level, accounting)
        ),
        margins=terms.get("margins", "exact"),
    )


def entries(description: Description, accounting: Accounting = "published") -> dict[str, Entry]:
    """Every budget by the name of its measurement, such as ``children/county``.

    The share is that of the published cells that have least of it.

    Raises
    ------
    ConfigError
        If the description states smaller sensitivities than the derived.
    """
    return {
        name: Entry(
            table.budgets[level.name],
            _calibration(description, _scale(description, table, level, accounting)),
            1 - table.detail.share if table.detail and groups_of(table, level, coarsest=False) else Fraction(1),
        )
        for name, (table, level) in description.at_levels.items()
    }


def _scale(
    description: Description, table: DescribedTable, level: DescribedLevel, accounting: Accounting
) -> Sensitivity:
    """The sensitivities that the noise of a table at a level is scaled to: the derived, or those it states."""
    derived = derive(description, table, level).sensitivity
    stated = table.stated.get(level.name)
    if stated is None:
        return derived
    if stated.unbounded < derived.unbounded or stated.bounded < derived.bounded:
        raise ConfigError(
            f"tables.{table.name}.stated: must be at least what is derived, unbounded {derived.unbounded} and bounded "
            f"{derived.bounded} at level {level.name}"
        )
    return derived if accounting == "tight" else stated


def _calibration(description: Description, scale: Sensitivity) -> Fraction:
    """Which sensitivity noise is scaled to: that under the description's neighbours."""
    return scale.unbounded if description.neighbours is Neighbours.UNBOUNDED else scale.bounded


def _measurements(
    description: Description, table: DescribedTable, level: DescribedLevel, accounting: Accounting
) -> Iterator[Measurement]:
    """One measurement; of a table with detail the totals that decide it, and the counts of groups that have none."""
    scale, budget = _scale(description, table, level, accounting), table.budgets[level.name]
    by_one = moves_by_one(description, table, level)

    def measure(what: str, cells: int, part: Budget, branch: str = "") -> Measurement:
        return Measurement(
            name=f"{what}/{level.name}",
            table=what,
            level=level.name,
            cells=cells,
            mechanism=description.mechanism,
            calibration=_calibration(description, scale),
            sensitivity=scale,
            proven=derive(description, table, level).sensitivity,
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


def column_losses(description: Description, plan: Plan) -> Iterator[tuple[str, Budget]]:
    """Of each column of the unit's file and those below it, ``file.column``, the most that is lost where it changes.

    The column alone may change, in any way in all records of its file that are the unit's; all else stays. A response
    is one column, and so is the block.

    Parameters
    ----------
    plan : Plan
        Of the description.
    """
    measured = {
        f"{what}/{level.name}": (table, level)
        for table, level in description.at_levels.values()
        for what in (table.name, coarsest_name(table), total_name(table))
    }
    of = {m.name: footprints(description, *measured[m.name]) for m in plan.measurements}

    def distance(name: str, m: Measurement) -> Fraction:
        move = column_move(description, *measured[m.name], name)
        if move is None:
            return Fraction(0)
        return min(Fraction(move.unbounded(of[m.name], m.mechanism.power)[0]), m.proven.bounded)

    for name, (file, column) in description.attributes.items():
        if description.unit in description.chain(file):
            yield f"{file}.{column}", plan.loss(partial(distance, name))
