"""The published tables of a description, from noisy counts. Public: nothing here sees a record."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import product

import numpy as np

from yupana.arrays import Ints
from yupana.plan.plan import Plan
from yupana.products.described.description import DescribedLevel, DescribedTable, Description
from yupana.products.tables import Cell, Choice, Family, Groups, Table, lay_out
from yupana.products.verify import Key
from yupana.release.rows import Coded, RowTable

_NUMBERS = ("COUNT", "NOISE_DISTRIBUTION", "VARIANCE", "MOE")


def families(description: Description) -> tuple[Family, ...]:
    """What is published: of each table that is measured its cells, and the tables that add them up."""
    return tuple(_family(table) for table in description.tables if any(table.budgets.values()))


def _family(of: DescribedTable) -> Family:
    alone = tuple(Cell(labels, (i,)) for i, labels in enumerate(of.labels))
    sums = (Table(s.name, s.columns, tuple(Cell(labels, parts) for labels, parts in s.rows)) for s in of.sums)
    choice = Choice(tuple(range(len(alone))), (Table(of.name, of.columns, alone), *sums))
    keys = ("REGION_ID", "REGION_TYPE", *(["ITERATION_CODE"] if of.has_groups else []))
    return Family(of.name, keys, (choice,), _NUMBERS)


def groups(description: Description, level: DescribedLevel) -> Iterator[tuple[str, str]]:
    """The areas and groups of a level, in the order of its counts."""
    return product(description.areas[level.areas].codes, level.groups)


def published_groups(description: Description, family: Family, level: str) -> Iterator[Key]:
    """What the key columns of a family say of each group of a level."""
    table = next(table for table in description.tables if table.name == family.name)
    of = next(of for of in table.levels if of.name == level)
    for area, group in groups(description, of):
        yield (area, of.areas, group)[: len(family.keys)]


def noisy_groups(description: Description, plan: Plan, noisy: Mapping[str, Ints]) -> Iterator[Groups]:
    """The population groups of a plan, measurement by measurement.

    Parameters
    ----------
    description : Description
    plan : Plan
    noisy : mapping of measurement name to int64 array, shape (areas by groups of the level, cells)
    """
    of = {family.name: family for family in families(description)}
    levels = {(table.name, level.name): level for table in description.tables for level in table.levels}
    for m in plan.measurements:
        level = levels[m.table, m.level]
        codes = description.areas[level.areas].codes
        area, group = np.divmod(np.arange(len(codes) * len(level.groups)), len(level.groups))
        yield Groups(of[m.table], 0, level.areas, Coded(codes, area), Coded(level.groups, group), noisy[m.name], m)


def published_tables(description: Description, plan: Plan, groups: Iterable[Groups]) -> list[RowTable]:
    """Lay out every table: a row per area, group and cell, zeros included."""
    return lay_out(families(description), groups, plan, [*description.areas])
