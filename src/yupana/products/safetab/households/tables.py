"""From noisy cells to the tables of SafeTab-H: marginals, a variance and a margin of error on every row. Public."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from yupana.arrays import Ints
from yupana.plan.measurement import Measurement
from yupana.plan.plan import Plan
from yupana.products.safetab.household_tables import FAMILIES, Family
from yupana.products.safetab.iterations import CharacteristicIterations
from yupana.products.safetab.regions import Level
from yupana.products.safetab.tables import AreaCodes, Variances
from yupana.release.rows import Coded, RowTable

_MOST_CELLS: Final = 16
"""More than a group has rows in one table."""


@dataclass(frozen=True, eq=False)
class NoisyGroups:
    """Noisy basis cells of some population groups of one level and table, public.

    Attributes
    ----------
    family : Family
    table : int
        Which of the family's tables: the groups' statistics level.
    level : Level
    areas, iterations : numpy.ndarray of int64, shape (groups,)
        Places in the areas of the kind and in the iterations of the level.
    counts : numpy.ndarray of int64, shape (groups, basis cells)
    measurement : Measurement
        Whose noise every cell has.
    """

    family: Family
    table: int
    level: Level
    areas: Ints
    iterations: Ints
    counts: Ints
    measurement: Measurement


def published_tables(
    groups: Iterable[NoisyGroups],
    iterations: CharacteristicIterations,
    areas: AreaCodes,
    plan: Plan,
) -> list[RowTable]:
    """Lay out T03001 to T03004, T04001 and T04002.

    A marginal is the sum of the basis cells below it. Where negative counts are not allowed, the cells were set to
    zero before they are added up here.

    Parameters
    ----------
    groups : iterable of NoisyGroups
    iterations : CharacteristicIterations
    areas : AreaCodes
    plan : Plan
        Of the margins of error.
    """
    variances = Variances(plan)
    parts: dict[str, list[Ints]] = {table.name: [] for family in FAMILIES for table in family.tables}
    for found in groups:
        table = found.family.tables[found.table]
        eligible = iterations.eligible(found.level.iteration_level, found.level.region.granularity).iterations
        iteration = iterations.places(eligible)[found.iterations]
        area = areas.places(found.level, found.areas)
        for cell, basis in found.family.published(table):
            count = found.counts[:, list(basis)].sum(axis=1)
            variance = variances.place(found.measurement, len(basis))
            rows = (area, iteration, np.full(len(area), cell), count, np.full(len(area), variance))
            parts[table.name].append(np.stack(rows))
    return [
        _table(table.name, family, parts[table.name], iterations, areas, variances)
        for family in FAMILIES
        for table in family.tables
    ]


def _table(
    name: str,
    family: Family,
    parts: list[Ints],
    iterations: CharacteristicIterations,
    areas: AreaCodes,
    variances: Variances,
) -> RowTable:
    nothing = np.zeros((5, 0), dtype=np.int64)
    area, iteration, cell, count, variance = np.concatenate([nothing, *parts], axis=1)
    return RowTable(
        name,
        {
            "REGION_ID": Coded(areas.ids, area),
            "REGION_TYPE": Coded(areas.types, area),
            "ITERATION_CODE": Coded([i.code for i in iterations.iterations], iteration),
            family.cell_column: Coded([str(number) for number in range(_MOST_CELLS)], cell),
            "COUNT": count,
            "VARIANCE": Coded(variances.values, variance),
            "MOE": Coded(variances.margins, variance),
        },
        order=(area * len(iterations.iterations) + iteration) * _MOST_CELLS + cell,
    )
