"""The published tables of a description: which there are, and the groups that they show. Public: it sees no record."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Final

from yupana.errors import ConfigError
from yupana.plan.plan import Plan
from yupana.products.described.description import DescribedLevel, DescribedTable, Description
from yupana.products.described.postprocess import postprocessed, suppressed
from yupana.products.tables import Cell, Choice, Family, Groups, Table, lay_out
from yupana.products.verify import Key
from yupana.release.recipe import MEASURED
from yupana.release.tables import RowTable

TOTALS_OF: Final = "totals of "
"""How plans call what decides the detail of a table; no table's own name has a space."""

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
    """A step: the smallest rows of its first table are measured, and all its tables add them up.

    Raises
    ------
    ValueError
        If these rows do not hold each cell once, or a row of a table is no sum of them.
    """
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
    for table in description.tables:
        for of in table.levels:
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
